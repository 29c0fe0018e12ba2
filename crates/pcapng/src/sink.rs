// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets as events: classes, streams, clocks.

use std::collections::HashMap;

use lateralis_model::{
    Base, Builder, Clock, Damage, DamageReason, EnvValue, EventClass, FieldClass, FieldKind, Full,
    IntegerClass, Interval, Label, MemoryTrace, Range, StreamClass, StreamIndex,
};

use crate::interface::Resolution;

/// Fields of an event `packet`, in order.
///
/// | field | content |
/// |---|---|
/// | `interface` | its name |
/// | `direction` | 0 unknown, 1 inbound, 2 outbound |
/// | `link_type` | LINKTYPE number: 1 is Ethernet |
/// | `captured_bytes`, `original_bytes` | length here, and on the wire |
/// | `flags` | `epb_flags` unchanged; 0 if there are none |
/// | `comment` | optional text |
/// | `data` | the bytes |
pub const FIELDS: [&str; 8] = [
    "interface",
    "direction",
    "link_type",
    "captured_bytes",
    "original_bytes",
    "flags",
    "comment",
    "data",
];

/// Different resolutions or offsets of time that get a clock of their own; the
/// times of all others are converted to nanoseconds.
const CLOCKS: usize = 64;

/// Streams of a trace; a file may define interfaces by the million.
const STREAMS: usize = 1 << 16;

/// Damages and environment entries that are kept one by one.
const KEPT: usize = 4096;

/// One packet on its way into the trace.
#[derive(Debug, Default)]
pub(crate) struct Packet<'a> {
    pub(crate) interface: &'a str,
    pub(crate) link_type: u16,
    pub(crate) original_bytes: u32,
    pub(crate) flags: u32,
    pub(crate) comment: Option<&'a str>,
    pub(crate) data: &'a [u8],
}

/// How the time stamps of an interface become ticks of its stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    class: u32,
    /// Set where ticks are not kept but converted to nanoseconds.
    convert: Option<(Resolution, i64)>,
}

impl Timing {
    fn ticks(&self, raw: u64) -> u64 {
        let Some((resolution, offset_seconds)) = self.convert else {
            return raw;
        };
        let offset = i128::from(offset_seconds) * 1_000_000_000;
        let nanos = (resolution.nanos(raw) as i128).saturating_add(offset);
        nanos.clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// Builds the trace.
pub(crate) struct Sink {
    pub(crate) builder: Builder,
    file: String,
    timings: Vec<((u64, i64), u32)>,
    untimed: Option<u32>,
    streams: HashMap<(u32, String), StreamIndex>,
    damages: usize,
    entries: usize,
}

impl Sink {
    pub(crate) fn new(format: &str, file: &str, limit_bytes: u64) -> Self {
        Self {
            builder: MemoryTrace::builder(format, limit_bytes),
            file: file.to_owned(),
            timings: Vec::new(),
            untimed: None,
            streams: HashMap::new(),
            damages: 0,
            entries: 0,
        }
    }

    /// The timing of an interface with this resolution and offset.
    pub(crate) fn timing(&mut self, resolution: Resolution, offset_seconds: i64) -> Timing {
        let own = resolution.frequency().filter(|_| self.timings.len() < CLOCKS);
        let key = own.map_or((1_000_000_000, 0), |frequency| (frequency, offset_seconds));
        // A clock that exists already is taken even if there are too many for a new one.
        let exact = resolution.frequency().map(|frequency| (frequency, offset_seconds));
        let known = |key| self.timings.iter().find(|(of, _)| *of == key).map(|(_, class)| *class);
        if let Some(class) = exact.and_then(known) {
            return Timing { class, convert: None };
        }
        let convert = own.is_none().then_some((resolution, offset_seconds));
        if let Some(class) = known(key) {
            return Timing { class, convert };
        }
        let mut clock = Clock::new("capture", key.0, key.1, 0);
        clock.unix_epoch = true;
        let clock = self.builder.clock(clock);
        let class = self.class(Some(clock));
        self.timings.push((key, class));
        Timing { class, convert }
    }

    fn class(&mut self, clock: Option<usize>) -> u32 {
        let class = self.builder.stream_class(StreamClass {
            name: Some("interface".to_owned()),
            clock,
            ..StreamClass::default()
        });
        let payload = Some(payload());
        self.builder.event_class(
            class,
            EventClass { name: "packet".to_owned(), payload, ..EventClass::default() },
        );
        class
    }

    /// The stream of an interface; `None` if there are too many.
    pub(crate) fn stream(&mut self, timing: Timing, name: &str) -> Option<StreamIndex> {
        self.stream_of(timing.class, name)
    }

    /// The stream of its packets that carry no time.
    pub(crate) fn untimed_stream(&mut self, name: &str) -> Option<StreamIndex> {
        let class = match self.untimed {
            Some(class) => class,
            None => self.class(None),
        };
        self.untimed = Some(class);
        self.stream_of(class, name)
    }

    fn stream_of(&mut self, class: u32, name: &str) -> Option<StreamIndex> {
        if let Some(stream) = self.streams.get(&(class, name.to_owned())) {
            return Some(*stream);
        }
        if self.streams.len() >= STREAMS {
            return None;
        }
        let stream = self.builder.stream(class, name, None);
        self.streams.insert((class, name.to_owned()), stream);
        Some(stream)
    }

    /// Adds a packet of a stream at the raw time of its interface.
    pub(crate) fn packet(
        &mut self,
        stream: StreamIndex,
        at: Option<(Timing, u64)>,
        packet: &Packet<'_>,
    ) -> Result<(), Full> {
        let ticks = at.map_or(0, |(timing, raw)| timing.ticks(raw));
        let pending = self.builder.event(stream, 0, ticks, None);
        let pending = pending
            .text(packet.interface)
            .u64(u64::from(packet.flags & 3))
            .u64(u64::from(packet.link_type))
            .u64(packet.data.len() as u64)
            .u64(u64::from(packet.original_bytes))
            .u64(u64::from(packet.flags));
        let pending = match packet.comment {
            Some(comment) => pending.option(1).text(comment),
            None => pending.option(0),
        };
        pending.bytes(packet.data).end()
    }

    /// A raw time of an interface as nanoseconds.
    pub(crate) fn nanos(&mut self, timing: Timing, raw: u64) -> lateralis_units::Nanos {
        let ticks = lateralis_units::Ticks(timing.ticks(raw));
        let trace = self.builder.describe();
        let clock = trace.stream_classes[timing.class as usize].clock.unwrap_or(0);
        trace.clocks[clock].nanos(ticks)
    }

    /// Notes damage of these bytes.
    pub(crate) fn damage(&mut self, begin: usize, end: usize, reason: DamageReason) {
        self.damages += 1;
        if self.damages > KEPT {
            return;
        }
        self.builder.damage(Damage {
            file: self.file.clone(),
            begin_bytes: begin as u64,
            end_bytes: end as u64,
            reason,
            interval: Interval::default(),
        });
    }

    /// Adds what the capture says about itself.
    pub(crate) fn describe(&mut self, key: String, value: EnvValue) {
        self.entries += 1;
        let environment = &mut self.builder.describe().environment;
        if self.entries <= KEPT
            && !environment.iter().any(|(known, old)| *known == key && *old == value)
        {
            environment.push((key, value));
        }
    }

    pub(crate) fn finish(mut self) -> MemoryTrace {
        let beyond = [(self.damages, "damages"), (self.entries, "entries of the environment")];
        for (count, what) in beyond.into_iter().filter(|(count, _)| *count > KEPT) {
            self.builder.remark(format!("{}: {count} {what}, {KEPT} are listed", self.file));
        }
        self.builder.finish()
    }
}

fn payload() -> FieldClass {
    let label = |value: i128, name: &str| Label {
        name: name.to_owned(),
        ranges: vec![Range { low: value, high: value }],
    };
    let labelled = |bits, labels| {
        FieldClass::new(FieldKind::Unsigned(IntegerClass { bits, base: Base::Decimal, labels }))
    };
    let directions = vec![label(0, "unknown"), label(1, "inbound"), label(2, "outbound")];
    let classes = [
        FieldClass::text(),
        labelled(2, directions),
        FieldClass::unsigned(16, Base::Decimal),
        FieldClass::unsigned(32, Base::Decimal),
        FieldClass::unsigned(32, Base::Decimal),
        FieldClass::unsigned(32, Base::Hexadecimal),
        FieldClass::optional(FieldClass::text()),
        FieldClass::blob(),
    ];
    FieldClass::structure(FIELDS.into_iter().zip(classes))
}
