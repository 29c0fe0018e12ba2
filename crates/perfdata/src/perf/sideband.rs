// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records other than samples: about processes, memory and the recording itself.

use lateralis_model::{Base, ByteOrder, FieldClass, FieldKind, Label, Range};

use super::records::{self, MISC_BUILD_ID, Record};
use super::sample_class::words;
use crate::row::Row;
use crate::wire::{Wire, cut_at_nul};

/// A part of a record's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Signed, 4 bytes: process and thread ids, where −1 means none.
    Int,
    /// 2 bytes.
    Short,
    /// 4 bytes.
    Word,
    /// 8 bytes.
    Long,
    /// 8 bytes, hexadecimal.
    Hex,
    /// Bytes that are ignored; no field.
    Skip(usize),
    /// A number of raw bytes.
    Bytes(usize),
    /// A build id in 24 bytes; its length is in the byte before it, if set, otherwise in the byte after
    /// its 20 bytes, unless that is 0.
    BuildId(bool),
    /// Text up to a NUL; the bytes after it are padding.
    Text,
    /// All remaining bytes.
    Rest,
    /// All remaining words of 8 bytes.
    Words,
    /// A number of pairs, then the pairs.
    Pairs(&'static str, &'static str),
    /// Flags of AUX.
    AuxFlags,
    /// Whether the bit of `misc` is set; takes no bytes.
    Misc(u16),
    /// Position in the file of the bytes after the record; takes no bytes.
    Behind,
    /// The bytes after the record; takes no bytes of the record.
    Data,
    /// Configuration of the event that the record refers to; takes no bytes.
    Config,
}

/// Data that belongs to a record but is not in it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// Position in the file of the first byte after it.
    pub behind: u64,
    /// Bytes after it that belong to it.
    pub data: &'a [u8],
    /// The `config` of the event source that it describes; 0 if there is none.
    pub config: u64,
}

type Layout = (&'static str, &'static [(&'static str, Part)]);

/// Name and layout of a record; those of unknown types are raw bytes.
fn layout(kind: u32, misc: u16) -> Layout {
    use Part::*;
    const THREAD: (&str, Part) = ("pid", Int);
    const TID: (&str, Part) = ("tid", Int);
    match kind {
        records::MMAP => (
            "mmap",
            &[THREAD, TID, ("addr", Hex), ("len", Hex), ("pgoff", Hex), ("filename", Text)],
        ),
        records::MMAP2 if misc & MISC_BUILD_ID != 0 => (
            "mmap2_build_id",
            &[
                THREAD,
                TID,
                ("addr", Hex),
                ("len", Hex),
                ("pgoff", Hex),
                ("build_id", BuildId(true)),
                ("prot", Word),
                ("flags", Word),
                ("filename", Text),
            ],
        ),
        records::MMAP2 => (
            "mmap2",
            &[
                THREAD,
                TID,
                ("addr", Hex),
                ("len", Hex),
                ("pgoff", Hex),
                ("maj", Word),
                ("min", Word),
                ("ino", Long),
                ("ino_generation", Long),
                ("prot", Word),
                ("flags", Word),
                ("filename", Text),
            ],
        ),
        records::COMM => ("comm", &[THREAD, TID, ("comm", Text), ("exec", Misc(1 << 13))]),
        records::EXIT => ("exit", &[THREAD, ("ppid", Int), TID, ("ptid", Int), ("time", Long)]),
        records::FORK => ("fork", &[THREAD, ("ppid", Int), TID, ("ptid", Int), ("time", Long)]),
        records::THROTTLE => ("throttle", &[("time", Long), ("id", Long), ("stream_id", Long)]),
        records::UNTHROTTLE => ("unthrottle", &[("time", Long), ("id", Long), ("stream_id", Long)]),
        records::READ => ("read", &[THREAD, TID, ("values", Words)]),
        records::AUX => ("aux", &[("aux_offset", Hex), ("aux_size", Long), ("flags", AuxFlags)]),
        records::ITRACE_START => ("itrace_start", &[THREAD, TID]),
        records::SWITCH => ("switch", &[("out", Misc(1 << 13)), ("preempt", Misc(1 << 14))]),
        records::SWITCH_CPU_WIDE => (
            "switch_cpu_wide",
            &[
                ("next_prev_pid", Int),
                ("next_prev_tid", Int),
                ("out", Misc(1 << 13)),
                ("preempt", Misc(1 << 14)),
            ],
        ),
        records::NAMESPACES => ("namespaces", &[THREAD, TID, ("links", Pairs("dev", "inode"))]),
        records::KSYMBOL => (
            "ksymbol",
            &[("addr", Hex), ("len", Word), ("ksym_type", Short), ("flags", Short), ("name", Text)],
        ),
        records::BPF_EVENT => {
            ("bpf_event", &[("type", Short), ("flags", Short), ("id", Word), ("tag", Bytes(8))])
        }
        records::CGROUP => ("cgroup", &[("id", Long), ("path", Text)]),
        records::TEXT_POKE => {
            ("text_poke", &[("addr", Hex), ("old_len", Short), ("new_len", Short), ("bytes", Rest)])
        }
        records::AUX_OUTPUT_HW_ID => ("aux_output_hw_id", &[("hw_id", Hex)]),
        records::BUILD_ID => {
            ("build_id", &[THREAD, ("build_id", BuildId(false)), ("filename", Text)])
        }
        records::AUXTRACE_INFO => (
            "auxtrace_info",
            &[("type", Word), ("", Skip(4)), ("private", Words), ("config", Config)],
        ),
        records::AUXTRACE => (
            "auxtrace",
            &[
                ("size", Long),
                ("offset", Hex),
                ("reference", Hex),
                ("idx", Word),
                TID,
                ("cpu", Int),
                ("file_offset", Behind),
                ("data", Data),
            ],
        ),
        records::AUXTRACE_ERROR => (
            "auxtrace_error",
            &[
                ("type", Word),
                ("code", Word),
                ("cpu", Int),
                THREAD,
                TID,
                ("fmt", Word),
                ("ip", Hex),
                ("message", Rest),
            ],
        ),
        _ => ("record", &[("bytes", Rest)]),
    }
}

/// Name of the event class of a record.
pub fn name(kind: u32, misc: u16) -> String {
    match layout(kind, misc) {
        ("record", _) => format!("record{kind}"),
        (name, _) => name.to_owned(),
    }
}

/// Distinguishes classes of one type of record.
pub fn variant(kind: u32, misc: u16) -> bool {
    kind == records::MMAP2 && misc & MISC_BUILD_ID != 0
}

/// Bits of `misc` for a [`variant`].
pub fn misc_of(variant: bool) -> u16 {
    if variant { MISC_BUILD_ID } else { 0 }
}

/// The class of its fields.
pub fn class(kind: u32, misc: u16) -> FieldClass {
    let word = |bits| FieldClass::unsigned(bits, Base::Decimal);
    let hex = || FieldClass::unsigned(64, Base::Hexadecimal);
    let class = |part: Part| {
        Some(match part {
            Part::Int => FieldClass::signed(32),
            Part::Short => word(16),
            Part::Word => word(32),
            Part::Long => word(64),
            Part::Hex | Part::Behind | Part::Config => hex(),
            Part::Skip(_) => return None,
            Part::Bytes(_) | Part::BuildId(_) | Part::Rest | Part::Data => FieldClass::blob(),
            Part::Text => FieldClass::text(),
            Part::Words => words(),
            Part::Pairs(first, second) => {
                let pair = FieldClass::structure([(first, word(64)), (second, word(64))]);
                FieldClass::array(pair, None)
            }
            Part::AuxFlags => {
                let names = ["truncated", "overwrite", "partial", "collision"];
                let label = |(name, bit): (&&str, i128)| Label {
                    name: (*name).to_owned(),
                    ranges: vec![Range { low: bit, high: bit }],
                };
                let flags = names.iter().zip(0..).map(label).collect();
                FieldClass::new(FieldKind::Bits { bits: 64, flags })
            }
            Part::Misc(_) => FieldClass::boolean(),
        })
    };
    let (_, parts) = layout(kind, misc);
    FieldClass::structure(parts.iter().filter_map(|&(name, part)| Some((name, class(part)?))))
}

/// Adds the values of a record. `body` does not include the trailer of records.
///
/// `None` if the body is too short; the event is then dropped.
pub fn values(
    record: &Record<'_>,
    body: &[u8],
    order: ByteOrder,
    beside: Beside<'_>,
    row: &mut Row,
) -> Option<()> {
    let mut wire = Wire::new(body, order);
    let (_, parts) = layout(record.kind, record.misc);
    for &(_, part) in parts {
        match part {
            Part::Int => row.i64(i64::from(wire.u32()? as i32)),
            Part::Short => row.u64(u64::from(wire.u16()?)),
            Part::Word => row.u64(u64::from(wire.u32()?)),
            Part::Long | Part::Hex | Part::AuxFlags => row.u64(wire.u64()?),
            Part::Skip(count) => {
                wire.take(count)?;
            }
            Part::Bytes(count) => row.bytes(wire.take(count)?),
            Part::BuildId(before) => row.bytes(build_id(wire.take(24)?, before)),
            Part::Text => row.bytes(cut_at_nul(wire.take(wire.left())?)),
            Part::Rest => row.bytes(wire.take(wire.left())?),
            Part::Words => row.integers(wire.take(wire.left())?, 8, order),
            Part::Pairs(..) => {
                let count = wire.u64()?.min(wire.left() as u64 / 16) as u32;
                row.array(count, |row| {
                    for _ in 0..count * 2 {
                        row.u64(wire.u64().unwrap_or(0));
                    }
                });
            }
            Part::Misc(bit) => row.u64(u64::from(record.misc & bit != 0)),
            Part::Behind => row.u64(beside.behind),
            Part::Data => row.bytes(beside.data),
            Part::Config => row.u64(beside.config),
        }
    }
    Some(())
}

fn build_id(bytes: &[u8], before: bool) -> &[u8] {
    if before {
        let size = usize::from(bytes[0]).min(20);
        return &bytes[4..4 + size];
    }
    let size = match bytes[20] {
        0 => 20,
        size => usize::from(size).min(20),
    };
    &bytes[..size]
}
