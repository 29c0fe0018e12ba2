// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records of the guest's perf events: mappings, names, created and ended threads, and context switches,
//! as requested by its init (`open_events` in `c/init.c`).

use lateralis_perfdata::perf::write::{Mapping, Origin, Sideband, Task};

/// Types of records, and bits of their flags [Linux: include/uapi/linux/perf_event.h].
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const MMAP2: u32 = 10;
const SWITCH_CPU_WIDE: u32 = 15;
const HEADER: usize = 8;
const COMM_EXEC: u16 = 1 << 13;
const MMAP_BUILD_ID: u16 = 1 << 14;
const SWITCH_OUT: u16 = 1 << 13;
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Size of the trailer of each: process and thread, time, CPU.
const TRAILER: usize = 24;

/// Splits the guest's data, which contains complete records only. Damaged data ends it.
pub fn read(bytes: &[u8], mut each: impl FnMut(Sideband, Origin)) {
    let mut rest = bytes;
    while let Some((kind, misc, body, behind)) = next(rest) {
        rest = behind;
        let Some((content, trailer)) = body.split_last_chunk::<TRAILER>() else { continue };
        let origin = Origin {
            pid: u32_at(trailer, 0),
            tid: u32_at(trailer, 4),
            nanos: u64_at(trailer, 8),
            cpu: u32_at(trailer, 16),
        };
        if let Some(what) = of_record(kind, misc, content) {
            each(what, origin);
        }
    }
}

fn next(bytes: &[u8]) -> Option<(u32, u16, &[u8], &[u8])> {
    let header = bytes.first_chunk::<HEADER>()?;
    let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
    let body = bytes.get(HEADER..size)?;
    let misc = u16::from_le_bytes([header[4], header[5]]);
    Some((u32_at(header, 0), misc, body, &bytes[size..]))
}

fn of_record(kind: u32, misc: u16, content: &[u8]) -> Option<Sideband> {
    const MAPPING: usize = 64;
    Some(match kind {
        COMM if content.len() > 8 => Sideband::Comm {
            pid: u32_at(content, 0),
            tid: u32_at(content, 4),
            exec: misc & COMM_EXEC != 0,
            name: text(&content[8..]),
        },
        MMAP2 if content.len() > MAPPING && misc & MMAP_BUILD_ID == 0 => Sideband::Mmap2(Mapping {
            pid: u32_at(content, 0),
            tid: u32_at(content, 4),
            begin: u64_at(content, 8),
            size: u64_at(content, 16),
            offset: u64_at(content, 24),
            device: (u32_at(content, 32), u32_at(content, 36)),
            inode: (u64_at(content, 40), u64_at(content, 48)),
            protection: u32_at(content, 56),
            flags: u32_at(content, 60),
            path: text(&content[MAPPING..]),
            kernel: false,
        }),
        FORK | EXIT if content.len() >= 24 => {
            let task = Task {
                pid: u32_at(content, 0),
                parent: u32_at(content, 4),
                tid: u32_at(content, 8),
                parent_tid: u32_at(content, 12),
                nanos: u64_at(content, 16),
            };
            if kind == FORK { Sideband::Fork(task) } else { Sideband::Exit(task) }
        }
        SWITCH_CPU_WIDE if content.len() >= 8 => Sideband::Switch {
            out: misc & SWITCH_OUT != 0,
            preempted: misc & SWITCH_OUT_PREEMPT != 0,
            pid: u32_at(content, 0),
            tid: u32_at(content, 4),
        },
        LOST if content.len() >= 16 => Sideband::Lost { count: u64_at(content, 8) },
        _ => return None,
    })
}

/// Up to the first zero byte.
fn text(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

/// 0 if there are not enough bytes.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, content: &[u8]) -> Vec<u8> {
        let trailer = [7u32.to_le_bytes(), 8u32.to_le_bytes()].concat();
        let trailer = [&trailer[..], &99u64.to_le_bytes(), &1u64.to_le_bytes()].concat();
        let size = (HEADER + content.len() + TRAILER) as u16;
        [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), content, &trailer]
            .concat()
    }

    #[test]
    fn records_are_read_and_what_is_cut_is_left_out() {
        let comm = [&7u32.to_le_bytes()[..], &8u32.to_le_bytes(), b"cat\0\0\0\0\0"].concat();
        let all = [record(COMM, COMM_EXEC, &comm), record(77, 0, b""), record(EXIT, 0, &[1; 24])];
        let all = all.concat();
        let read_all = |bytes: &[u8]| {
            let mut found = Vec::new();
            read(bytes, |what, origin| found.push((what, origin)));
            found
        };
        let found = read_all(&all);
        let name = Sideband::Comm { pid: 7, tid: 8, exec: true, name: b"cat".to_vec() };
        assert_eq!(found[0], (name, Origin { pid: 7, tid: 8, nanos: 99, cpu: 1 }));
        assert!(matches!(found[1].0, Sideband::Exit(Task { pid: 0x0101_0101, .. })));
        assert_eq!(found.len(), 2);
        for cut in 0..all.len() {
            assert!(read_all(&all[..cut]).len() < 2, "{cut}");
        }
    }
}
