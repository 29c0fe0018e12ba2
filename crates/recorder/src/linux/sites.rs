// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Updates patchable sites of running programs to match their enable bytes [ring-abi §10].
//!
//! A site is five bytes: disabled an instruction without effect, enabled a jump with the same
//! distance. They differ in the first byte, which is written through /proc/PID/mem. Everything
//! read from the area and the program may be hostile. The process must map this area and
//! have its user and no other ([`ProgramMemory`]). The list of sites must be a constant of a
//! program's file, and the sites code of the same file, so that nothing is accepted that a process
//! with fewer rights, which maps the area as well, built in memory. Lengths are
//! bounded, and a byte is written only if such an instruction is there and its target matches the
//! list.

use std::collections::HashMap;
use std::io;

use lateralis_ring::{AreaView, enable_byte, processes, wanted_byte};

use super::area_file::{AreaFile, FileKey};
use super::verified::{ProgramMemory, VerifiedProcess};

/// First byte of a disabled site: `test $distance, %eax`.
const DISABLED: u8 = 0xa9;
/// First byte of an enabled site: `jmp distance`.
const ENABLED: u8 = 0xe9;
/// Maximum number of tables and sites in one process.
const TABLES_MAX: usize = 1024;
const SITES_MAX: usize = 1 << 20;
const SITE_BYTES: usize = 16;
const TABLE_BYTES: usize = 24;

/// Result of an update.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// Number of changed sites.
    pub(super) changed: usize,
    /// Processes whose sites could not be changed, and why: their events are unchanged.
    pub(super) refused: Vec<(u32, String)>,
}

/// Result in one process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Switched {
    /// Number of changed sites.
    changed: usize,
    /// Sites that begin with neither of the two instructions, but have the right target.
    foreign: usize,
}

/// Updates the sites of all processes of an area to match its enable bytes, and the events that a trigger
/// would enable.
///
/// Cost: nothing without patchable sites; else some system calls per thousand sites.
pub(super) fn follow(view: &AreaView<'_>, area: &AreaFile) -> Followed {
    let mut followed = Followed::default();
    if !cfg!(target_arch = "x86_64") {
        return followed;
    }
    // Processes of other PID namespaces are searched once, if there are any.
    let mut all: Option<Vec<VerifiedProcess>> = None;
    for entry in processes(view).unwrap_or_default() {
        if entry.patch_table == 0 {
            continue;
        }
        let local = VerifiedProcess::local(entry.pid, area);
        let all = &mut all;
        let process = local.or_else(|| {
            let all = all.get_or_insert_with(|| VerifiedProcess::all(area, None));
            let place = all.iter().position(|process| process.number() == entry.pid)?;
            Some(all.swap_remove(place))
        });
        // It has ended, or never belonged to this area.
        // A recorder never writes its own memory.
        let Some(process) = process.filter(|process| process.pid() != std::process::id()) else {
            continue;
        };
        let wanted = |id| {
            enable_byte(view, id).is_ok_and(|byte| byte != 0)
                || wanted_byte(view, id).is_ok_and(|byte| byte != 0)
        };
        match follow_process(&process, area, entry.patch_table, &wanted) {
            Ok(switched) => {
                followed.changed += switched.changed;
                if switched.foreign != 0 {
                    let text =
                        format!("a breakpoint or probe stands at {} sites", switched.foreign);
                    followed.refused.push((entry.pid, text));
                }
            }
            // It has ended meanwhile.
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

fn follow_process(
    process: &VerifiedProcess,
    area: &AreaFile,
    first_table: u64,
    wanted: &dyn Fn(u32) -> bool,
) -> io::Result<Switched> {
    let memory = process.memory(area)?;
    let mut switched = Switched::default();
    let mut sites_left = SITES_MAX;
    let mut table = first_table;
    for _ in 0..TABLES_MAX {
        if table == 0 {
            break;
        }
        let mut bytes = [0; TABLE_BYTES];
        memory.read(&mut bytes, table)?;
        let (next, begin, end) = (word(&bytes, 0), word(&bytes, 8), word(&bytes, 16));
        let count = usize::try_from(end.saturating_sub(begin)).unwrap_or(0) / SITE_BYTES;
        let count = count.min(sites_left);
        sites_left -= count;
        table = next;
        if count == 0 {
            continue;
        }
        let Some(object) = memory.constants(begin, (count * SITE_BYTES) as u64) else {
            return Err(io::Error::other("its list of sites is not a constant of its program"));
        };
        follow_table(&memory, object, (begin, count), wanted, &mut switched)?;
    }
    Ok(switched)
}

fn follow_table(
    memory: &ProgramMemory,
    object: FileKey,
    (begin, count): (u64, usize),
    wanted: &dyn Fn(u32) -> bool,
    switched: &mut Switched,
) -> io::Result<()> {
    const AT_ONCE: usize = 1024;
    // Address of a schema in the program: its first id and number of events.
    let mut schemas: HashMap<u64, Option<(u32, u32)>> = HashMap::new();
    for first in (0..count).step_by(AT_ONCE) {
        let mut sites = vec![0; (count - first).min(AT_ONCE) * SITE_BYTES];
        let start = begin.wrapping_add((first * SITE_BYTES) as u64);
        memory.read(&mut sites, start)?;
        for (index, site) in sites.chunks_exact(SITE_BYTES).enumerate() {
            let address = start.wrapping_add((index * SITE_BYTES) as u64);
            let code = relative(address, half(site, 0));
            let target = relative(address.wrapping_add(4), half(site, 4));
            let schema = relative(address.wrapping_add(8), half(site, 8));
            let ids = *schemas.entry(schema).or_insert_with(|| {
                let mut bytes = [0; 16];
                memory.read(&mut bytes, schema).ok()?;
                Some((half(&bytes, 8), half(&bytes, 12)))
            });
            let Some((base_id, event_count)) = ids else { continue };
            let event = half(site, 12);
            let Some(id) = base_id.checked_add(event).filter(|_| event < event_count) else {
                continue;
            };
            if memory.is_code_of(object, code, 5) {
                set_site(memory, code, target, wanted(id), switched)?;
            }
        }
    }
    Ok(())
}

/// Memory that contains sites.
trait Memory {
    fn read(&self, bytes: &mut [u8], address: u64) -> io::Result<()>;
    fn write(&self, byte: u8, address: u64) -> io::Result<()>;
}

impl Memory for ProgramMemory {
    fn read(&self, bytes: &mut [u8], address: u64) -> io::Result<()> {
        ProgramMemory::read(self, bytes, address)
    }

    fn write(&self, byte: u8, address: u64) -> io::Result<()> {
        ProgramMemory::write(self, byte, address)
    }
}

/// Writes the first byte of a site if it has to change and the site is valid.
fn set_site(
    memory: &dyn Memory,
    code: u64,
    target: u64,
    enabled: bool,
    switched: &mut Switched,
) -> io::Result<()> {
    let mut instruction = [0; 5];
    if memory.read(&mut instruction, code).is_err() {
        return Ok(());
    }
    let leads_to = relative(code.wrapping_add(5), half(&instruction, 1));
    let (from, to) = if enabled { (DISABLED, ENABLED) } else { (ENABLED, DISABLED) };
    if leads_to != target || instruction[0] == to {
        return Ok(());
    }
    if instruction[0] != from {
        switched.foreign += 1;
        return Ok(());
    }
    memory.write(to, code)?;
    switched.changed += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Memory for std::cell::RefCell<Vec<u8>> {
        fn read(&self, bytes: &mut [u8], address: u64) -> io::Result<()> {
            bytes.copy_from_slice(&self.borrow()[address as usize..][..bytes.len()]);
            Ok(())
        }

        fn write(&self, byte: u8, address: u64) -> io::Result<()> {
            self.borrow_mut()[address as usize] = byte;
            Ok(())
        }
    }

    /// Simulated memory of a program: one site at 16, with its target at 64.
    fn after(first: u8, distance: u32, enabled: bool) -> (u8, Switched) {
        let mut bytes = vec![0x90; 128];
        bytes[16] = first;
        bytes[17..21].copy_from_slice(&distance.to_ne_bytes());
        let memory = std::cell::RefCell::new(bytes.clone());
        let mut switched = Switched::default();
        set_site(&memory, 16, 64, enabled, &mut switched).unwrap();
        let now = memory.into_inner();
        bytes[16] = now[16];
        assert_eq!(now, bytes, "only the first byte of a site is ever written");
        (now[16], switched)
    }

    #[test]
    fn a_site_is_switched_only_if_it_is_one() {
        const GOOD: u32 = 64 - 21;
        let changed = Switched { changed: 1, foreign: 0 };
        let foreign = Switched { changed: 0, foreign: 1 };
        assert_eq!(after(DISABLED, GOOD, true), (ENABLED, changed));
        assert_eq!(after(ENABLED, GOOD, false), (DISABLED, changed));
        assert_eq!(after(ENABLED, GOOD, true), (ENABLED, Switched::default()));
        assert_eq!(after(DISABLED, GOOD, false), (DISABLED, Switched::default()));
        // A debugger's breakpoint is kept, and reported.
        assert_eq!(after(0xcc, GOOD, true), (0xcc, foreign));
        assert_eq!(after(0xcc, GOOD, false), (0xcc, foreign));
        // A jump with another target is not this site.
        assert_eq!(after(DISABLED, GOOD + 1, true), (DISABLED, Switched::default()));
    }
}
