// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of Barrelfish as events of the model.

use std::collections::{BTreeMap, HashMap};

use lateralis_model::role::{ATTRIBUTE, Keyed, Role};
use lateralis_model::{
    Attribute, Base, Builder, Clock, EnvValue, EventClass, FieldClass, Full, Loss, LossCause,
    MemoryTrace, StreamClass, StreamIndex, Writer,
};
use lateralis_units::CpuId;

use super::{Definitions, Options, keys, roles};

/// Cores, classes of events and applications of a dump; more are damage or share
/// what they have in common.
const CORES: usize = 4096;
const CLASSES: usize = 4096;
const APPLICATIONS: usize = 1 << 16;

/// What a dump says about itself.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) start: Option<u64>,
    pub(super) duration: Option<u64>,
    pub(super) stop: Option<u64>,
    pub(super) min_timestamp: Option<u64>,
    /// By core, signs put right.
    pub(super) offsets: BTreeMap<u32, i64>,
    /// Names by core and dispatcher.
    pub(super) dcbs: BTreeMap<(u32, u64), String>,
    /// Whether its numbers of subsystems are of the time before 2013.
    pub(super) legacy: bool,
    /// The earliest time, with offset.
    pub(super) earliest: i128,
}

impl Header {
    /// Takes an event into account that will be added later.
    pub(super) fn see(&mut self, time: i128, raw: u64) {
        self.earliest = self.earliest.min(time);
        let subsystem = (raw >> 48) as u16;
        self.legacy |= subsystem >= 0x1000 && !is_message(raw);
    }

    /// The time of core 0.
    pub(super) fn time(&self, core: u32, timestamp: u64) -> i128 {
        i128::from(timestamp) + i128::from(self.offsets.get(&core).copied().unwrap_or(0))
    }
}

/// Whether it is an event of user-level message passing, which has no subsystem.
fn is_message(raw: u64) -> bool {
    matches!(raw >> 56, 0xea | 0xeb)
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Argument,
    Switch,
    /// Channel, and what is below it.
    Message,
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Event(u16, u16),
    Send,
    Receive,
    Other,
}

pub(super) struct Recorder {
    pub(super) builder: Builder,
    definitions: Definitions,
    legacy_definitions: Definitions,
    legacy: bool,
    earliest: i128,
    stream_class: u32,
    streams: BTreeMap<u32, StreamIndex>,
    classes: HashMap<Key, (u32, Shape)>,
    /// By core and the lower half of the dispatcher's address.
    applications: HashMap<(u32, u32), u32>,
    /// By core.
    running: BTreeMap<u32, u32>,
}

impl Recorder {
    pub(super) fn new(header: &Header, options: &Options, limit_bytes: u64) -> Self {
        let mut builder = MemoryTrace::builder(keys::FORMAT, limit_bytes);
        // Ticks are counted from the earliest time where that is negative.
        let earliest = header.earliest.clamp(i64::MIN.into(), 0);
        let frequency = options.frequency_hz.unwrap_or(1_000_000_000);
        let mut clock = Clock::new("tsc", frequency, 0, earliest as i64);
        clock.description = "cycle counter of core 0".to_owned();
        if options.frequency_hz.is_none() {
            builder.remark(
                "the dump does not say how fast its cycle counter runs: cycles are shown as \
                 nanoseconds",
            );
        }
        let clock = builder.clock(clock);
        let stream_class = builder.stream_class(StreamClass {
            name: Some("core".to_owned()),
            clock: Some(clock),
            common_context: Some(FieldClass::structure([(
                "cpu_id",
                FieldClass::unsigned(32, Base::Decimal),
            )])),
            ..StreamClass::default()
        });
        let mut recorder = Self {
            builder,
            definitions: options.definitions.clone(),
            legacy_definitions: Definitions::legacy(),
            legacy: header.legacy,
            earliest,
            stream_class,
            streams: BTreeMap::new(),
            classes: HashMap::new(),
            applications: HashMap::new(),
            running: BTreeMap::new(),
        };
        recorder.describe(header);
        recorder
    }

    fn describe(&mut self, header: &Header) {
        let mut environment = Vec::new();
        let numbers = [
            (keys::START, header.start),
            (keys::DURATION, header.duration),
            (keys::STOP, header.stop),
            (keys::MIN_TIMESTAMP, header.min_timestamp),
        ];
        for (key, value) in numbers {
            if let Some(value) = value {
                environment.push((key.to_owned(), EnvValue::Integer(value.into())));
            }
        }
        for (core, offset) in &header.offsets {
            let key = format!("{}{core}", keys::OFFSET);
            environment.push((key, EnvValue::Integer((*offset).into())));
        }
        self.builder.names().processes.insert(0, "idle".to_owned());
        for ((core, dcb), name) in header.dcbs.iter().take(APPLICATIONS) {
            let key = format!("{}{core}_{dcb:x}", keys::DCB);
            environment.push((key, EnvValue::Text(name.clone())));
            self.application(*core, *dcb as u32, || name.clone());
        }
        self.builder.describe().environment = environment;
    }

    /// The number of an application; it gets the next one if it is new.
    fn application(&mut self, core: u32, dcb: u32, name: impl FnOnce() -> String) -> u32 {
        if dcb == 0 {
            return 0;
        }
        if let Some(known) = self.applications.get(&(core, dcb)) {
            return *known;
        }
        if self.applications.len() >= APPLICATIONS {
            return 0;
        }
        let number = self.applications.len() as u32 + 1;
        self.applications.insert((core, dcb), number);
        self.builder.names().processes.insert(number, name());
        number
    }

    /// The stream of a core; `None` if there are too many.
    pub(super) fn stream(&mut self, core: u32) -> Option<StreamIndex> {
        if let Some(stream) = self.streams.get(&core) {
            return Some(*stream);
        }
        if self.streams.len() >= CORES {
            return None;
        }
        let cpu = Some(CpuId(core));
        let stream = self.builder.stream(self.stream_class, &format!("core {core}"), cpu);
        self.streams.insert(core, stream);
        Some(stream)
    }

    /// Notes that the buffer of a core was full: its last events are missing.
    pub(super) fn full_buffer(&mut self, core: u32) {
        if let Some(stream) = self.stream(core) {
            let interval = lateralis_model::Interval::default();
            self.builder.loss(Loss { stream, cause: LossCause::Full, count: None, interval });
        }
    }

    fn class(&mut self, raw: u64) -> (u32, Shape) {
        let (subsystem, event) = ((raw >> 48) as u16, (raw >> 32) as u16);
        let mut key = match raw >> 56 {
            0xea => Key::Send,
            0xeb => Key::Receive,
            _ => Key::Event(subsystem, event),
        };
        if let Some(known) = self.classes.get(&key) {
            return *known;
        }
        if self.classes.len() >= CLASSES {
            key = Key::Other;
            if let Some(known) = self.classes.get(&key) {
                return *known;
            }
        }
        let (class, shape) = match key {
            Key::Event(..) => self.named(subsystem, event),
            Key::Send => (message("ump:send", self.legacy, Role::Send), Shape::Message),
            Key::Receive => (message("ump:receive", self.legacy, Role::Receive), Shape::Message),
            Key::Other => {
                let class = with_fields("barrelfish:event", [("raw", 64)]);
                (class, Shape::Raw)
            }
        };
        let made = (self.builder.event_class(self.stream_class, class), shape);
        self.classes.insert(key, made);
        made
    }

    fn named(&self, subsystem: u16, event: u16) -> (EventClass, Shape) {
        let all = [&self.definitions, &self.legacy_definitions];
        let known = all.iter().find_map(|all| Some((all.of(subsystem)?, all)));
        let names = known.and_then(|(of, all)| Some((of, all.lookup(subsystem, event)?.1)));
        let mut class;
        match (known, names) {
            (_, Some((of, names))) => {
                class = with_fields(&format!("{}:{}", of.name, names.name), [("arg", 32)]);
                if !names.description.is_empty() && names.description != names.name {
                    let value = names.description.clone();
                    class.attributes.push(Attribute { name: "description".to_owned(), value });
                }
                for role in roles::of(of, &names.name) {
                    let (name, value) = (ATTRIBUTE.to_owned(), role.to_string());
                    class.attributes.push(Attribute { name, value });
                }
            }
            (Some((of, _)), None) => {
                class = with_fields(&format!("{}:{event:#06x}", of.name), [("arg", 32)]);
            }
            (None, None) => {
                class = with_fields(&format!("{subsystem:#06x}:{event:#06x}"), [("arg", 32)]);
            }
        }
        let value = format!("{subsystem:04x}:{event:04x}");
        class.attributes.push(Attribute { name: keys::ID.to_owned(), value });
        if class.name != "kernel:CSWITCH" {
            return (class, Shape::Argument);
        }
        class.payload = Some(FieldClass::structure([
            ("arg", FieldClass::unsigned(32, Base::Hexadecimal)),
            ("application", FieldClass::text()),
        ]));
        (class, Shape::Switch)
    }

    /// Adds an event at a time of core 0.
    pub(super) fn event(
        &mut self,
        stream: StreamIndex,
        core: u32,
        time: i128,
        raw: u64,
    ) -> Result<(), Full> {
        let (class, shape) = self.class(raw);
        let arg = raw as u32;
        if let Shape::Switch = shape {
            let application = self.application(core, arg, || format!("dcb {arg:08x}"));
            self.running.insert(core, application);
        }
        let running = self.running.get(&core).copied();
        let writer = running.map(|number| Writer { pid: number, tid: number });
        let application = match (shape, running) {
            (Shape::Switch, Some(number)) => self.builder.names().processes.get(&number).cloned(),
            _ => None,
        };
        let ticks = time.saturating_sub(self.earliest).clamp(0, u64::MAX.into()) as u64;
        let pending = self.builder.event(stream, class, ticks, writer).u64(core.into());
        let pending = match shape {
            Shape::Argument => pending.u64(arg.into()),
            Shape::Switch => pending.u64(arg.into()).text(application.as_deref().unwrap_or("")),
            Shape::Message if self.legacy => {
                pending.u64(raw >> 24 & 0xffff_ffff).u64(raw & 0xff_ffff)
            }
            Shape::Message => pending.u64(raw & 0x00ff_ffff_ffff_f000).u64(raw & 0xfff),
            Shape::Raw => pending.u64(raw),
        };
        pending.end()
    }
}

fn with_fields<const N: usize>(name: &str, fields: [(&str, u32); N]) -> EventClass {
    let class = |(name, bits)| (name, FieldClass::unsigned(bits, Base::Hexadecimal));
    EventClass {
        name: name.to_owned(),
        payload: Some(FieldClass::structure(fields.map(class))),
        ..EventClass::default()
    }
}

/// Messages pair up by channel, first in, first out; before 2013 they carried a
/// number, too.
fn message(name: &str, legacy: bool, role: fn(Keyed) -> Role) -> EventClass {
    let (fields, keys) = if legacy {
        ([("channel", 32), ("sequence", 24)], vec!["channel".to_owned(), "sequence".to_owned()])
    } else {
        ([("channel", 64), ("low_bits", 12)], vec!["channel".to_owned()])
    };
    let mut class = with_fields(name, fields);
    let value = role(Keyed { name: "ump".to_owned(), keys, fans_out: false }).to_string();
    class.attributes.push(Attribute { name: ATTRIBUTE.to_owned(), value });
    class
}
