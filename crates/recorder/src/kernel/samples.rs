// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Descriptions and records of Linux 6.18, for tests.

use super::layout::KernelFormat;

pub(crate) const SCHED_SWITCH: &str = include_str!("../../tests/kernel/sched_switch.format");
const SCHED_WAKING: &str = include_str!("../../tests/kernel/sched_waking.format");
pub(crate) const TASK_NEWTASK: &str = include_str!("../../tests/kernel/task_newtask.format");
pub(crate) const SYS_ENTER_OPENAT: &str =
    include_str!("../../tests/kernel/sys_enter_openat.format");
const SYS_EXIT_OPENAT: &str = include_str!("../../tests/kernel/sys_exit_openat.format");
const SOFTIRQ_ENTRY: &str = include_str!("../../tests/kernel/softirq_entry.format");
/// A combination of fields that no event of the kernel has.
const ODD: &str = include_str!("../../tests/kernel/odd.format");

pub(crate) fn formats() -> Vec<KernelFormat> {
    let all = [
        ("sched", SCHED_SWITCH),
        ("sched", SCHED_WAKING),
        ("task", TASK_NEWTASK),
        ("syscalls", SYS_ENTER_OPENAT),
        ("syscalls", SYS_EXIT_OPENAT),
        ("irq", SOFTIRQ_ENTRY),
        ("odd", ODD),
    ];
    all.iter().map(|(system, text)| format(system, text)).collect()
}

pub(crate) fn format(system: &str, text: &str) -> KernelFormat {
    KernelFormat { system: system.to_owned(), text: text.to_owned(), clause: String::new() }
}

/// The common fields of all records.
pub(crate) fn common(id: u16, tid: u32) -> Vec<u8> {
    let mut record = id.to_ne_bytes().to_vec();
    record.extend([0, 0]);
    record.extend(tid.to_ne_bytes());
    record
}

pub(crate) fn newtask(by: u32, tid: u32, flags: u64) -> Vec<u8> {
    let mut record = common(205, by);
    record.extend(tid.to_ne_bytes());
    record.extend(b"name of a task\0\0");
    record.extend([0; 4]);
    record.extend(flags.to_ne_bytes());
    record.extend([0; 8]);
    record
}

pub(crate) fn switch(from: u32, to: u32) -> Vec<u8> {
    let mut record = common(372, from);
    for tid in [from, to] {
        record.extend(b"a name\0garbage\0\0");
        record.extend(tid.to_ne_bytes());
        record.extend(120_u32.to_ne_bytes());
        if tid == from && record.len() < 40 {
            record.extend(1_i64.to_ne_bytes());
        }
    }
    record
}

/// A waking record with these flags, by thread 5 for thread 6.
pub(crate) fn waking(flags: u8) -> Vec<u8> {
    let mut record = common(375, 5);
    record[2] = flags;
    record.extend(b"a name\0garbage\0\0");
    for number in [6_u32, 120, 1] {
        record.extend(number.to_ne_bytes());
    }
    record
}

pub(crate) fn openat(tid: u32, dfd: u64) -> Vec<u8> {
    let mut record = common(782, tid);
    record.extend(257_u32.to_ne_bytes());
    record.extend([0; 4]);
    for argument in [dfd, 0x7fff_0000, 0, 0x1a4] {
        record.extend(argument.to_ne_bytes());
    }
    record
}

/// A page of 4096 bytes with records at times; `missed` events before it.
pub(crate) fn page(begin: u64, records: &[(u64, Vec<u8>)], missed: Option<u64>) -> Vec<u8> {
    let mut data = Vec::new();
    let mut last = begin;
    for (time, record) in records {
        let words = record.len().div_ceil(4);
        let (kind, extra) = if words <= 28 { (words as u32, false) } else { (0, true) };
        let head = if cfg!(target_endian = "little") {
            (time - last) as u32 * 32 + kind
        } else {
            kind << 27 | (time - last) as u32
        };
        data.extend(head.to_ne_bytes());
        if extra {
            data.extend((words as u32 * 4 + 4).to_ne_bytes());
        }
        data.extend(record);
        data.resize(data.len().next_multiple_of(4), 0);
        last = *time;
    }
    let flags = if missed.is_some() { 3_u64 << 30 } else { 0 };
    let mut page = begin.to_ne_bytes().to_vec();
    page.extend((data.len() as u64 | flags).to_ne_bytes());
    page.extend(data);
    page.extend(missed.unwrap_or(0).to_ne_bytes());
    assert!(page.len() <= 4096);
    page.resize(4096, 0);
    page
}
