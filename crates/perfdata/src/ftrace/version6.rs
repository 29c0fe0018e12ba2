// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `trace.dat` of version 6: one part after the other.

use super::cut;
use super::options::{Options, selected_clock};
use super::pages::Content;
use super::trace::{Buffer, PerCpu};
use crate::notes::Notes;
use crate::tracing_data::TracingData;
use crate::wire::{Wire, text};

/// Option with a buffer besides the main one.
const BUFFER: u16 = 3;
/// Largest plausible number of CPUs.
const CPUS_MAX: u32 = 1 << 14;
/// Largest plausible number of buffers.
const BUFFERS_MAX: usize = 1 << 10;

/// Reads the parts after the page size, at `at`. Damage is noted; everything before it is returned.
pub fn read(
    bytes: &[u8],
    at: u64,
    data: &mut TracingData,
    options: &mut Options,
    notes: &mut Notes,
) -> Vec<Buffer> {
    let order = data.order;
    let mut wire = Wire::at(bytes, at, order);
    if data.all(&mut wire).is_none() {
        cut(notes, wire.position() as u64, bytes);
        return Vec::new();
    }
    let mut more = Vec::new();
    let Some(cpu_count) = wire.u32() else {
        cut(notes, wire.position() as u64, bytes);
        return Vec::new();
    };
    let mut kind = wire.take(10);
    if kind == Some(b"options  \0") {
        while let Some(id @ 1..) = wire.u16() {
            let option = wire.u32().and_then(|size| wire.take(size as usize));
            let Some(option) = option else {
                cut(notes, wire.position() as u64, bytes);
                return Vec::new();
            };
            if id != BUFFER {
                options.take(id, option, order);
            } else if more.len() < BUFFERS_MAX {
                let offset = Wire::new(option, order).u64().unwrap_or(u64::MAX);
                more.push((offset, text(option.get(8..).unwrap_or(&[]))));
            }
        }
        kind = wire.take(10);
    }
    if kind == Some(b"latency  \0") {
        notes.remark("the file holds the text of a latency tracer, which has no events");
        return Vec::new();
    }
    let cpu_count = cpu_count.min(CPUS_MAX);
    let mut buffers = Vec::new();
    let mut left = bytes.len() as u64;
    if kind == Some(b"flyrecord\0") {
        buffers.extend(table(bytes, &mut wire, cpu_count, "", data, options, &mut left, notes));
    } else {
        cut(notes, wire.position() as u64, bytes);
    }
    for (offset, name) in more {
        let mut wire = Wire::at(bytes, offset, order);
        if wire.take(10) == Some(b"flyrecord\0") {
            let count = options.cpu_count.unwrap_or(cpu_count).min(CPUS_MAX);
            buffers.extend(table(bytes, &mut wire, count, &name, data, options, &mut left, notes));
        } else {
            cut(notes, offset, bytes);
        }
    }
    buffers
}

/// Reads the positions of the pages of each CPU, and the name of the clock after them. `left` bytes of
/// the file do not belong to a CPU yet.
#[allow(clippy::too_many_arguments)]
fn table(
    bytes: &[u8],
    wire: &mut Wire<'_>,
    cpu_count: u32,
    name: &str,
    data: &TracingData,
    options: &Options,
    left: &mut u64,
    notes: &mut Notes,
) -> Option<Buffer> {
    let mut cpus = Vec::new();
    for cpu in 0..cpu_count {
        let (Some(offset), Some(size)) = (wire.u64(), wire.u64()) else {
            cut(notes, wire.position() as u64, bytes);
            break;
        };
        if size == 0 {
            continue;
        }
        let from = Wire::at(bytes, offset, data.order);
        let whole = from.clone().take64(size);
        if whole.is_none() {
            let reason = lateralis_model::DamageReason::Truncated {
                missing_bytes: Some(size - (from.left() as u64).min(size)),
            };
            notes.damage(from.position() as u64, bytes.len() as u64, reason, None);
        }
        let begin = from.position();
        let end = begin + whole.map_or(from.left(), <[u8]>::len);
        let length = (end - begin) as u64;
        if length > *left {
            notes.remark("pages of CPUs lie over each other; the later ones are not read");
            break;
        }
        *left -= length;
        cpus.push(PerCpu { cpu, file: 0, content: Content::Plain(begin, end) });
    }
    // Files of older trace-cmd have no clock name here.
    let length = wire.u64().filter(|&length| length < 256);
    let clock = length.and_then(|length| wire.take64(length)).map(text);
    let clock = clock.filter(|clock| clock.starts_with('['));
    let clock = clock.map_or_else(|| options.clock.clone(), |clock| selected_clock(&clock));
    (!cpus.is_empty()).then(|| Buffer {
        name: name.to_owned(),
        clock,
        page_bytes: data.page_bytes,
        cpus,
    })
}
