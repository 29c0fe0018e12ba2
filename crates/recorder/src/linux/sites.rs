// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Patchable sites of running programs follow their enable bytes [ring-abi §10].
//!
//! A site is five bytes: disabled an instruction without effect, enabled a jump with the same
//! distance. They differ in the first byte, which is written through /proc/PID/mem. Everything
//! read from the program may be hostile: lengths are bounded, and a byte is written only where
//! such an instruction stands and leads where its table says.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use lateralis_ring::{AreaView, enable_byte, processes, wanted_byte};

/// First byte of a disabled site: `test $distance, %eax`.
const DISABLED: u8 = 0xa9;
/// First byte of an enabled site: `jmp distance`.
const ENABLED: u8 = 0xe9;
/// Tables and sites looked at in one process.
const TABLES_MAX: usize = 1024;
const SITES_MAX: usize = 1 << 20;
const SITE_BYTES: usize = 16;
const TABLE_BYTES: usize = 24;

/// What was done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// Sites that were changed.
    pub(super) changed: usize,
    /// Processes whose sites could not be changed, and why: their events stay as they were.
    pub(super) refused: Vec<(u32, String)>,
}

/// Makes the sites of all processes of an area follow its enable bytes, and what a trigger
/// would enable.
///
/// Cost: nothing without patchable sites; else some system calls per thousand sites.
pub(super) fn follow(view: &AreaView<'_>) -> Followed {
    let mut followed = Followed::default();
    if !cfg!(target_arch = "x86_64") {
        return followed;
    }
    for entry in processes(view).unwrap_or_default() {
        if entry.patch_table == 0 {
            continue;
        }
        let wanted = |id| {
            enable_byte(view, id).is_ok_and(|byte| byte != 0)
                || wanted_byte(view, id).is_ok_and(|byte| byte != 0)
        };
        match follow_process(entry.pid, entry.patch_table, &wanted) {
            Ok(changed) => followed.changed += changed,
            // It ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => followed.refused.push((entry.pid, error.to_string())),
        }
    }
    followed
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|half| half.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The address that the field at `address` points to, relative to itself.
fn relative(address: u64, distance: u32) -> u64 {
    address.wrapping_add_signed(i64::from(distance.cast_signed()))
}

fn follow_process(pid: u32, first_table: u64, wanted: &dyn Fn(u32) -> bool) -> io::Result<usize> {
    let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
    let mut changed = 0;
    let mut sites_left = SITES_MAX;
    let mut table = first_table;
    for _ in 0..TABLES_MAX {
        if table == 0 {
            break;
        }
        let mut bytes = [0; TABLE_BYTES];
        memory.read_exact_at(&mut bytes, table)?;
        let (next, begin, end) = (word(&bytes, 0), word(&bytes, 8), word(&bytes, 16));
        let count = usize::try_from(end.saturating_sub(begin)).unwrap_or(0) / SITE_BYTES;
        let count = count.min(sites_left);
        sites_left -= count;
        changed += follow_table(&memory, begin, count, wanted)?;
        table = next;
    }
    Ok(changed)
}

fn follow_table(
    memory: &File,
    begin: u64,
    count: usize,
    wanted: &dyn Fn(u32) -> bool,
) -> io::Result<usize> {
    const AT_ONCE: usize = 1024;
    // Address of a schema in the program: its first id and number of events.
    let mut schemas: HashMap<u64, Option<(u32, u32)>> = HashMap::new();
    let mut changed = 0;
    for first in (0..count).step_by(AT_ONCE) {
        let mut sites = vec![0; (count - first).min(AT_ONCE) * SITE_BYTES];
        let start = begin.wrapping_add((first * SITE_BYTES) as u64);
        memory.read_exact_at(&mut sites, start)?;
        for (index, site) in sites.chunks_exact(SITE_BYTES).enumerate() {
            let address = start.wrapping_add((index * SITE_BYTES) as u64);
            let code = relative(address, half(site, 0));
            let target = relative(address.wrapping_add(4), half(site, 4));
            let schema = relative(address.wrapping_add(8), half(site, 8));
            let ids = *schemas.entry(schema).or_insert_with(|| {
                let mut bytes = [0; 16];
                memory.read_exact_at(&mut bytes, schema).ok()?;
                Some((half(&bytes, 8), half(&bytes, 12)))
            });
            let Some((base_id, event_count)) = ids else { continue };
            let event = half(site, 12);
            let Some(id) = base_id.checked_add(event).filter(|_| event < event_count) else {
                continue;
            };
            changed += usize::from(set_site(memory, code, target, wanted(id))?);
        }
    }
    Ok(changed)
}

/// Writes the first byte of a site if it has to change and the site is one.
fn set_site(memory: &File, code: u64, target: u64, enabled: bool) -> io::Result<bool> {
    let mut instruction = [0; 5];
    if memory.read_exact_at(&mut instruction, code).is_err() {
        return Ok(false);
    }
    let leads_to = relative(code.wrapping_add(5), half(&instruction, 1));
    let (from, to) = if enabled { (DISABLED, ENABLED) } else { (ENABLED, DISABLED) };
    if instruction[0] != from || leads_to != target {
        return Ok(false);
    }
    memory.write_all_at(&[to], code)?;
    Ok(true)
}
