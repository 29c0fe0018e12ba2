// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing text dumps.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use lateralis_model::{Dropped, EnvValue, Event, EventClass, FieldKind, Source, Trace, Value};

use super::{Definitions, keys};

/// What becomes of a kind of event.
#[derive(Debug, Clone)]
enum Form {
    /// Upper half, and the field with the argument.
    Argument(u64, Option<String>),
    /// Upper byte.
    Message(u64),
    Raw,
    /// It has no number here.
    None,
}

/// Writes a dump that Aquarium 2 and [`read`](super::read) read.
///
/// Events that come from a dump keep their numbers, raw time stamps and cores.
/// Events of other sources need numbers in `definitions`, by their names
/// `subsystem:EVENT`; their argument is the field `arg`, else their first whole
/// number, of which 32 bits are kept; their time stamps are nanoseconds.
///
/// Returns the items that could not be kept. Cost: memory for the kinds of events, cores and
/// applications.
///
/// # Errors
/// Those of `out`.
pub fn write(
    source: &dyn Source,
    out: &mut dyn Write,
    definitions: &Definitions,
) -> io::Result<Dropped> {
    let mut writer = Writer {
        trace: source.trace(),
        out,
        definitions,
        own: source.format() == keys::FORMAT || source.trace().env(keys::START).is_some(),
        forms: HashMap::new(),
        offsets: BTreeMap::new(),
        dcbs: BTreeMap::new(),
        begun: BTreeMap::new(),
        dropped: Dropped::default(),
    };
    writer.environment();
    let mut events = source.events();
    let mut first = true;
    while events.advance() {
        let event = events.event();
        if std::mem::take(&mut first) {
            writer.header(&event)?;
        }
        writer.event(&event)?;
    }
    if first {
        writer.header_of(None)?;
    }
    source.losses().iter().for_each(|loss| writer.dropped.note(&format!("losses: {}", loss.cause)));
    for damage in source.damage().iter().chain(&events.damage()) {
        writer.dropped.note(&format!("damage: {}", damage.reason));
    }
    Ok(writer.dropped)
}

struct Writer<'a> {
    trace: &'a Trace,
    out: &'a mut dyn Write,
    definitions: &'a Definitions,
    /// The source was a dump.
    own: bool,
    forms: HashMap<(u32, u32), Form>,
    offsets: BTreeMap<u32, i64>,
    dcbs: BTreeMap<u32, Vec<(u64, String)>>,
    /// Cores whose header is written.
    begun: BTreeMap<u32, ()>,
    dropped: Dropped,
}

impl Writer<'_> {
    fn environment(&mut self) {
        for (key, value) in &self.trace.environment {
            let offset = key.strip_prefix(keys::OFFSET).and_then(|core| core.parse().ok());
            if let (Some(core), EnvValue::Integer(offset)) = (offset, value) {
                self.offsets.insert(core, *offset as i64);
                continue;
            }
            let dcb = key.strip_prefix(keys::DCB).and_then(|rest| rest.split_once('_'));
            let dcb = dcb.and_then(|(core, dcb)| {
                Some((core.parse::<u32>().ok()?, u64::from_str_radix(dcb, 16).ok()?))
            });
            match (dcb, value) {
                (Some((core, dcb)), EnvValue::Text(name)) => {
                    self.dcbs.entry(core).or_default().push((dcb, name.clone()));
                }
                _ if key.starts_with("barrelfish_") => {}
                _ => self.dropped.note("entries of the environment"),
            }
        }
    }

    fn header(&mut self, first: &Event<'_>) -> io::Result<()> {
        let time = u64::try_from(first.time.0).unwrap_or(0);
        self.header_of(Some(time))
    }

    fn header_of(&mut self, first: Option<u64>) -> io::Result<()> {
        let number = |key: &str| match self.trace.env(key) {
            Some(EnvValue::Integer(value)) => u64::try_from(*value).ok(),
            _ => None,
        };
        let start = number(keys::START).or(first).unwrap_or(0);
        let duration = number(keys::DURATION).unwrap_or(0);
        let stop = number(keys::STOP).unwrap_or(u64::MAX);
        writeln!(self.out, "# Start {start} Duration {duration} Stop {stop}")?;
        // Its absence says that times are relative.
        let earliest = number(keys::MIN_TIMESTAMP);
        let earliest = if self.own { earliest } else { Some(first.unwrap_or(u64::MAX)) };
        if let Some(earliest) = earliest {
            writeln!(self.out, "# Min_timestamp {earliest}")?;
        }
        Ok(())
    }

    fn core(&mut self, core: u32) -> io::Result<()> {
        if self.begun.insert(core, ()).is_some() {
            return Ok(());
        }
        writeln!(self.out, "# Core {core} LOG DUMP {}", "=".repeat(50))?;
        if let Some(offset) = self.offsets.get(&core) {
            writeln!(self.out, "# Offset {core} {offset}")?;
        }
        for (dcb, name) in self.dcbs.get(&core).into_iter().flatten() {
            writeln!(self.out, "# DCB {core} {dcb:x} {name}")?;
        }
        Ok(())
    }

    fn form(&mut self, event: &Event<'_>) -> Form {
        let key = (event.stream_class_index, event.class_index);
        if let Some(known) = self.forms.get(&key) {
            return known.clone();
        }
        let form = self.form_of(event.class);
        self.forms.insert(key, form.clone());
        form
    }

    fn form_of(&self, class: &EventClass) -> Form {
        match class.name.as_str() {
            "barrelfish:event" => return Form::Raw,
            "ump:send" => return Form::Message(0xea << 56),
            "ump:receive" => return Form::Message(0xeb << 56),
            _ => {}
        }
        let parse = |id: &str| {
            let (subsystem, event) = id.split_once(':')?;
            let half = |text| u16::from_str_radix(text, 16).ok();
            Some((half(subsystem)?, half(event)?))
        };
        let numbers = class.attribute(keys::ID).and_then(parse);
        let Some((subsystem, number)) = numbers.or_else(|| self.definitions.find(&class.name))
        else {
            return Form::None;
        };
        let members = class.payload.as_ref().map_or(&[][..], |payload| payload.members());
        let whole = |kind: &FieldKind| {
            matches!(kind, FieldKind::Unsigned(_) | FieldKind::Signed(_) | FieldKind::Bits { .. })
        };
        let named = members.iter().find(|member| member.name == "arg");
        let field = named.or_else(|| members.iter().find(|member| whole(&member.class.kind)));
        let upper = u64::from(subsystem) << 48 | u64::from(number) << 32;
        Form::Argument(upper, field.map(|member| member.name.clone()))
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let payload = event.payload();
        let number = |name: &str| {
            payload.and_then(|fields| fields.get(name)).and_then(|field| field.as_u64())
        };
        let raw = match self.form(event) {
            Form::None => {
                self.dropped.note(&format!("events {}: no number is defined", event.class.name));
                return Ok(());
            }
            Form::Raw => number("raw").unwrap_or(0),
            Form::Message(upper) => match (number("channel"), number("sequence")) {
                (Some(channel), Some(sequence)) => {
                    upper | (channel & 0xffff_ffff) << 24 | sequence & 0xff_ffff
                }
                (channel, _) => {
                    let low_bits = number("low_bits").unwrap_or(0);
                    upper | channel.unwrap_or(0) & 0x00ff_ffff_ffff_f000 | low_bits & 0xfff
                }
            },
            Form::Argument(upper, field) => {
                let argument = field.as_deref().and_then(number).unwrap_or(0);
                self.note_rest(event, field.as_deref(), argument);
                upper | argument & 0xffff_ffff
            }
        };
        let cpu_id = event.common_context().and_then(|fields| fields.get("cpu_id"));
        let core = match cpu_id.and_then(|field| field.as_u64()) {
            Some(core) => core as u32,
            None => event.packet.cpu.map_or(0, |cpu| cpu.0),
        };
        self.core(core)?;
        let timestamp = self.timestamp(event, core);
        writeln!(self.out, "{core} {timestamp} {raw:x}")
    }

    fn note_rest(&mut self, event: &Event<'_>, field: Option<&str>, argument: u64) {
        // Negative numbers of 32 bits keep their bits.
        let kept = argument >> 32 == 0 || argument as i64 == i64::from(argument as i32);
        if !kept {
            self.dropped.note("upper halves of arguments");
        }
        if event.class.attribute(keys::ID).is_some() {
            return;
        }
        for (member, value) in event.payload().into_iter().flatten() {
            let empty = matches!(value.value(), Value::Optional(None));
            if field != Some(&member.name) && !empty {
                self.dropped.note(&format!("fields {}.{}", event.class.name, member.name));
            }
        }
    }

    /// The time stamp as its core took it.
    fn timestamp(&mut self, event: &Event<'_>, core: u32) -> u64 {
        let clock = event.stream_class.clock.and_then(|clock| self.trace.clocks.get(clock));
        let time = match (self.own, clock, event.ticks) {
            (true, Some(clock), Some(ticks)) => {
                let offset = self.offsets.get(&core).copied().unwrap_or(0);
                i128::from(ticks.0) + i128::from(clock.offset_ticks()) - i128::from(offset)
            }
            _ => i128::from(event.time.0),
        };
        u64::try_from(time).unwrap_or_else(|_| {
            self.dropped.note("times before the zero of the clock");
            0
        })
    }
}
