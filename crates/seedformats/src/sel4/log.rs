// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log buffer of the kernel.

use std::collections::BTreeMap;

use lateralis_model::role::ATTRIBUTE;
use lateralis_model::{
    Attribute, Base, Builder, Clock, DamageReason, EventClass, FieldClass, FieldKind, IntegerClass,
    Interval, Label, Loss, LossCause, MemoryTrace, Range, StreamClass, StreamIndex,
};
use lateralis_units::CpuId;

use super::Options;
use crate::Error;
use crate::damages::{self, Damages};

/// Tracepoints with a class of their own; a kernel has few.
const POINTS: usize = 256;

/// Cycles in nanoseconds; one for one if the frequency is unknown.
fn nanos(cycles: u64, options: &Options) -> u64 {
    let frequency = options.frequency_hz.filter(|frequency| *frequency > 0);
    let Some(frequency) = frequency else { return cycles };
    let nanos = u128::from(cycles) * 1_000_000_000 / u128::from(frequency);
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

/// The whole entries of a log: those the kernel counted, or those before the zeros.
fn entries<'a>(bytes: &'a [u8], size: usize, options: &Options) -> &'a [u8] {
    let whole = bytes.len() / size * size;
    match options.entries {
        Some(count) => {
            let wanted = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size);
            &bytes[..whole.min(wanted)]
        }
        None => {
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            &bytes[..used.next_multiple_of(size).min(whole)]
        }
    }
}

fn begin(name: &str, bytes: &[u8], size: usize, options: &Options) -> Result<(), Error> {
    if bytes.len() >= size {
        return Ok(());
    }
    let advice = format!("give at least one entry, {size} bytes on {:?}", options.abi);
    Err(Error::new("no log of the seL4 kernel", name, advice))
}

/// Losses and damage that both kinds of log have, and the remark on cycles.
fn end(
    name: &str,
    bytes: &[u8],
    (size, used): (usize, usize),
    options: &Options,
    stream: StreamIndex,
    builder: &mut Builder,
) {
    if options.frequency_hz.is_none() {
        builder.remark(
            "the log does not say how fast the cycle counter runs: cycles are shown as nanoseconds",
        );
    }
    let held = (bytes.len() / size) as u64;
    let beyond = options.entries.unwrap_or(0).saturating_sub(held);
    if beyond > 0 {
        let interval = Interval::default();
        let cause = LossCause::Full;
        builder.loss(Loss { stream, cause, count: Some(beyond), interval });
    }
    let rest = bytes.len() % size;
    if rest > 0 && used + rest >= bytes.len() && options.entries.is_none_or(|n| n > held) {
        let missing_bytes = Some((size - rest) as u64);
        let mut damages = Damages::new(name);
        damages.add(used, bytes.len(), DamageReason::Truncated { missing_bytes });
        damages.finish(builder);
    }
}

/// Reads a log of tracepoints: entries of two words, the number of the tracepoint
/// and the cycles from its start to its stop.
///
/// There are no times, so the events have none; they come in the order in which
/// they stopped. Each tracepoint is a class `tracepoint N` with a span.
///
/// # Errors
/// If there is not one whole entry.
pub fn read_tracepoints(
    name: &str,
    bytes: &[u8],
    limit_bytes: u64,
    options: &Options,
) -> Result<MemoryTrace, Error> {
    let word = options.abi.word_bytes();
    begin(name, bytes, 2 * word, options)?;
    let mut points = Points::new(limit_bytes);
    let used = entries(bytes, 2 * word, options);
    for (index, entry) in used.chunks_exact(2 * word).enumerate() {
        let value = |bytes: &[u8]| {
            let mut wide = [0; 8];
            wide[..word].copy_from_slice(bytes);
            u64::from_le_bytes(wide)
        };
        let (point, cycles) = (value(&entry[..word]), value(&entry[word..]));
        if points.add(point, cycles, nanos(cycles, options)).is_err() {
            points.builder.remark(damages::full(name, index * 2 * word));
            break;
        }
    }
    let size = (2 * word, used.len());
    end(name, bytes, size, options, points.stream, &mut points.builder);
    Ok(points.builder.finish())
}

/// Tracepoints as events; also those of the text.
pub(super) struct Points {
    pub(super) builder: Builder,
    stream_class: u32,
    pub(super) stream: StreamIndex,
    classes: BTreeMap<u64, u32>,
}

impl Points {
    pub(super) fn new(limit_bytes: u64) -> Self {
        let mut builder = MemoryTrace::builder("seL4 tracepoints", limit_bytes);
        let stream_class = builder.stream_class(StreamClass {
            name: Some("kernel".to_owned()),
            ..StreamClass::default()
        });
        let stream = builder.stream(stream_class, "kernel", None);
        Self { builder, stream_class, stream, classes: BTreeMap::new() }
    }

    pub(super) fn add(
        &mut self,
        point: u64,
        cycles: u64,
        nanos: u64,
    ) -> Result<(), lateralis_model::Full> {
        let own = self.classes.len() < POINTS || self.classes.contains_key(&point);
        // All others share the class of the largest number there is.
        let key = if own { point } else { u64::MAX };
        let class = match self.classes.get(&key) {
            Some(class) => *class,
            None => {
                let class = point_class(own.then_some(point));
                let class = self.builder.event_class(self.stream_class, class);
                self.classes.insert(key, class);
                class
            }
        };
        let pending = self.builder.event(self.stream, class, 0, None);
        pending.u64(point).u64(cycles).u64(nanos).end()
    }
}

fn point_class(point: Option<u64>) -> EventClass {
    let name = point.map_or("tracepoint".to_owned(), |point| format!("tracepoint {point}"));
    let fields = ["id", "duration_cycles", "duration_ns"].map(|name| (name, FieldClass::u64()));
    EventClass {
        attributes: vec![Attribute {
            name: ATTRIBUTE.to_owned(),
            value: format!("span \"{name}\" for duration_ns"),
        }],
        name,
        payload: Some(FieldClass::structure(fields)),
        ..EventClass::default()
    }
}

/// Why the kernel was entered, by the first three bits of an entry.
const PATHS: [&str; 8] = [
    "unknown",
    "interrupt",
    "unknown_syscall",
    "user_fault",
    "debug_fault",
    "vm_fault",
    "syscall",
    "vcpu_fault",
];
const SYSCALL: usize = 6;

/// Numbers of system calls, as negated in the log.
const SYSCALLS: [&str; 8] =
    ["Call", "ReplyRecv", "Send", "NBSend", "Recv", "Reply", "Yield", "NBRecv"];
const MCS_SYSCALLS: [&str; 11] = [
    "Call",
    "ReplyRecv",
    "NBSendRecv",
    "NBSendWait",
    "Send",
    "NBSend",
    "Recv",
    "NBRecv",
    "Wait",
    "NBWait",
    "Yield",
];

/// Reads a log of kernel entries.
///
/// ```text
///  0 u64 start   8 u32 duration   12 3 bits path
/// 13 system calls: 4 bits number, 5 cap type, 1 fast path, 19 tag of the invocation
///    others:       3 bits core, 26 bits word
/// ```
///
/// The path is in a byte of its own: the structure inside is not packed, although its author
/// assumed so. Each path is a class with a span; the stream is that of the core, which system calls
/// do not record.
///
/// # Errors
/// If there is not one whole entry.
pub fn read_entries(
    name: &str,
    bytes: &[u8],
    limit_bytes: u64,
    options: &Options,
) -> Result<MemoryTrace, Error> {
    let size = options.abi.entry_bytes();
    begin(name, bytes, size, options)?;
    let mut builder = MemoryTrace::builder("seL4 kernel entries", limit_bytes);
    let frequency = options.frequency_hz.unwrap_or(1_000_000_000);
    let clock = builder.clock(Clock::new("cycles", frequency, 0, 0));
    let stream_class = builder.stream_class(StreamClass {
        name: Some("core".to_owned()),
        clock: Some(clock),
        ..StreamClass::default()
    });
    for (path, label) in PATHS.into_iter().enumerate() {
        builder.event_class(stream_class, entry_class(path, label, options));
    }
    // Eight cores fit the three bits; the last stream is for entries without a core.
    let mut streams: [Option<StreamIndex>; 9] = [None; 9];
    let mut stream = |builder: &mut Builder, core: usize| {
        *streams[core].get_or_insert_with(|| match u32::try_from(core) {
            Ok(core @ 0..8) => {
                builder.stream(stream_class, &format!("core {core}"), Some(CpuId(core)))
            }
            _ => builder.stream(stream_class, "system calls", None),
        })
    };
    let used = entries(bytes, size, options);
    for (index, entry) in used.chunks_exact(size).enumerate() {
        let word = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|i| entry[at + i])));
        let (start, cycles) = (word(0) | word(4) << 32, word(8));
        let path = usize::from(entry[12] & 7);
        let bits = word(13);
        let core = if path == SYSCALL { 8 } else { (bits & 7) as usize };
        let stream = stream(&mut builder, core);
        let pending = builder.event(stream, path as u32, start, None);
        let pending = pending.u64(cycles).u64(nanos(cycles, options));
        let pending = if path == SYSCALL {
            let tag = bits >> 10 & 0x7_ffff;
            pending.u64(bits & 15).u64(bits >> 4 & 31).u64(bits >> 9 & 1).u64(tag)
        } else {
            pending.u64(bits >> 3 & 0x3ff_ffff)
        };
        if pending.end().is_err() {
            builder.remark(damages::full(name, index * size));
            break;
        }
    }
    let first = stream(&mut builder, if used.is_empty() { 0 } else { first_core(used) });
    end(name, bytes, (size, used.len()), options, first, &mut builder);
    Ok(builder.finish())
}

/// The stream to which a loss is attributed: that of the first entry.
fn first_core(used: &[u8]) -> usize {
    let path = usize::from(used[12] & 7);
    if path == SYSCALL { 8 } else { usize::from(used[13] & 7) }
}

fn entry_class(path: usize, label: &str, options: &Options) -> EventClass {
    let mut fields =
        vec![("duration_cycles", FieldClass::u64()), ("duration_ns", FieldClass::u64())];
    if path == SYSCALL {
        let names: &[&str] = if options.mcs { &MCS_SYSCALLS } else { &SYSCALLS };
        let label = |(index, name): (usize, &&str)| {
            let value = index as i128 + 1;
            let ranges = vec![Range { low: value, high: value }];
            Label { name: (*name).to_owned(), ranges }
        };
        let labels = names.iter().enumerate().map(label).collect();
        let number = IntegerClass { bits: 4, base: Base::Decimal, labels };
        fields.extend([
            ("syscall", FieldClass::new(FieldKind::Unsigned(number))),
            ("cap_type", FieldClass::unsigned(5, Base::Decimal)),
            ("is_fastpath", FieldClass::boolean()),
            ("invocation_tag", FieldClass::unsigned(19, Base::Decimal)),
        ]);
    } else {
        fields.push(("word", FieldClass::unsigned(26, Base::Decimal)));
    }
    EventClass {
        name: format!("kernel:{label}"),
        payload: Some(FieldClass::structure(fields)),
        attributes: vec![Attribute {
            name: ATTRIBUTE.to_owned(),
            value: format!("span {label} for duration_ns"),
        }],
        ..EventClass::default()
    }
}
