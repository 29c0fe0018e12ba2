// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing pcapng: one section, so that every number names one interface.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

use lateralis_model::{
    Dropped, EnvValue, Event, EventClass, FieldKind, Loss, LossCause, Names, Source, StreamIndex,
    Trace, Value, Writer,
};
use lateralis_units::Nanos;

use crate::blocks;

/// Beyond it other tools take a block for damage.
const LONGEST_PACKET: usize = 16 << 20;

/// What a capture says about who wrote it.
#[derive(Debug, Clone)]
pub struct Options {
    /// `shb_userappl`.
    pub application: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { application: "Lateralis".to_owned() }
    }
}

/// Ethernet, where the source does not say.
const DEFAULT_LINK_TYPE: u16 = 1;

/// Writes the events `packet` (of any subsystem) of a source that have a field `data`, with the
/// fields of [`FIELDS`](crate::FIELDS) as far as they have them. Times are nanoseconds; an
/// interface is defined before its first packet; losses of streams that contain only packets are
/// written at the following packet, and in the statistics at the end. In other streams it is
/// unknown whether packets were lost.
///
/// Returns what could not be kept. Cost: memory for the interfaces, the pending
/// losses and one packet.
///
/// # Errors
/// Those of `out`.
pub fn write(source: &dyn Source, out: &mut dyn Write, options: &Options) -> io::Result<Dropped> {
    let mut writer = Capture {
        trace: source.trace(),
        names: source.names(),
        out,
        block: Vec::new(),
        data: Vec::new(),
        interfaces: Vec::new(),
        by_name: HashMap::new(),
        of_stream: HashMap::new(),
        pending: HashMap::new(),
        last_time: 0,
        dropped: Dropped::default(),
    };
    let streams = source.streams();
    let only_packets: Vec<bool> =
        streams.iter().map(|stream| holds_only_packets(source.trace(), stream.class)).collect();
    let is_of_packets = |loss: &&Loss| only_packets.get(loss.stream.0 as usize) == Some(&true);
    writer.pending = pending_losses(source.losses().iter().filter(is_of_packets));
    for loss in source.losses() {
        if !is_of_packets(&loss) {
            writer.dropped.note("losses of streams that hold other events, too");
        } else if loss.count.is_none() {
            writer.dropped.note("losses without a count");
        } else if loss.cause != LossCause::Discarded {
            writer.dropped.note("causes of losses");
        }
    }
    writer.section(options)?;
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        let name = streams.get(event.stream.0 as usize).map_or("", |stream| &stream.name);
        writer.event(&event, name)?;
    }
    for damage in source.damage().iter().chain(&events.damage()) {
        writer.dropped.note(&format!("damage: {}", damage.reason));
    }
    writer.statistics(&streams.iter().map(|stream| stream.name.as_str()).collect::<Vec<_>>())?;
    Ok(writer.dropped)
}

/// Whether what a stream of this class lost were packets. Records of the tracer itself, a few for
/// each thread, may be among them.
fn holds_only_packets(trace: &Trace, class: u32) -> bool {
    trace.stream_classes.get(class as usize).is_some_and(|class| {
        let others = |class: &&EventClass| !class.name.starts_with("lateralis:");
        class.event_classes.iter().filter(others).all(is_packet)
    })
}

/// Losses by stream, by their end.
fn pending_losses<'a>(
    losses: impl Iterator<Item = &'a Loss>,
) -> HashMap<StreamIndex, VecDeque<(Option<Nanos>, u64)>> {
    let mut pending: HashMap<StreamIndex, VecDeque<(Option<Nanos>, u64)>> = HashMap::new();
    for loss in losses {
        if let Some(count) = loss.count {
            pending.entry(loss.stream).or_default().push_back((loss.interval.end, count));
        }
    }
    for losses in pending.values_mut() {
        // Losses without an end come last: they are in the statistics only.
        losses.make_contiguous().sort_by_key(|(end, _)| (end.is_none(), *end));
    }
    pending
}

#[derive(Default)]
struct Interface {
    packets: u64,
    drops: u64,
}

struct Capture<'a> {
    trace: &'a Trace,
    names: &'a Names,
    out: &'a mut dyn Write,
    /// The block that is being made, without its frame.
    block: Vec<u8>,
    /// Bytes of a packet that is an array of numbers.
    data: Vec<u8>,
    interfaces: Vec<Interface>,
    by_name: HashMap<String, Vec<(u16, u32)>>,
    of_stream: HashMap<StreamIndex, u32>,
    pending: HashMap<StreamIndex, VecDeque<(Option<Nanos>, u64)>>,
    last_time: u64,
    dropped: Dropped,
}

fn is_packet(class: &EventClass) -> bool {
    let named = class.name.rsplit(':').next() == Some("packet");
    named
        && class.payload.as_ref().is_some_and(|payload| {
            payload.members().iter().any(|member| {
                member.name == "data"
                    && matches!(member.class.kind, FieldKind::Bytes(_) | FieldKind::Array { .. })
            })
        })
}

impl Capture<'_> {
    fn section(&mut self, options: &Options) -> io::Result<()> {
        self.block.extend_from_slice(&blocks::BYTE_ORDER_MAGIC.to_le_bytes());
        self.block.extend_from_slice(&[1, 0, 0, 0]);
        self.block.extend_from_slice(&u64::MAX.to_le_bytes());
        for (key, value) in &self.trace.environment {
            let code = match (key.as_str(), value) {
                ("comment", EnvValue::Text(_)) => 1,
                ("hardware", EnvValue::Text(_)) => 2,
                ("os", EnvValue::Text(_)) => 3,
                // Written for each interface.
                (key, _) if key.starts_with("interface.") => continue,
                _ => {
                    self.dropped.note("entries of the environment");
                    continue;
                }
            };
            let text = value.as_text().unwrap_or("");
            option(&mut self.block, code, text.as_bytes(), &mut self.dropped);
        }
        option(&mut self.block, 4, options.application.as_bytes(), &mut self.dropped);
        end_of_options(&mut self.block);
        self.end(blocks::SECTION)
    }

    fn end(&mut self, kind: u32) -> io::Result<()> {
        let total = (self.block.len() + blocks::FRAME_BYTES) as u32;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&total.to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&total.to_le_bytes())?;
        self.block.clear();
        Ok(())
    }

    /// The number of an interface, which is defined if it is new.
    fn interface(&mut self, name: &str, link_type: u16) -> io::Result<u32> {
        let known = self.by_name.get(name).into_iter().flatten();
        if let Some((_, number)) = known.into_iter().find(|(of, _)| *of == link_type) {
            return Ok(*number);
        }
        let number = self.interfaces.len() as u32;
        self.interfaces.push(Interface::default());
        self.by_name.entry(name.to_owned()).or_default().push((link_type, number));
        self.block.extend_from_slice(&link_type.to_le_bytes());
        // Reserved, and no limit of length.
        self.block.extend_from_slice(&[0; 6]);
        option(&mut self.block, 2, name.as_bytes(), &mut self.dropped);
        for (what, code) in [("comment", 1), ("description", 3), ("os", 12), ("hardware", 15)] {
            let text = self.trace.env(&format!("interface.{name}.{what}"));
            if let Some(text) = text.and_then(EnvValue::as_text) {
                option(&mut self.block, code, text.as_bytes(), &mut self.dropped);
            }
        }
        option(&mut self.block, 9, &[9], &mut self.dropped);
        end_of_options(&mut self.block);
        self.end(blocks::INTERFACE)?;
        Ok(number)
    }

    fn event(&mut self, event: &Event<'_>, stream_name: &str) -> io::Result<()> {
        let payload = event.payload().filter(|_| is_packet(event.class));
        let Some(payload) = payload else {
            self.dropped.note(&format!("events {}", event.class.name));
            return Ok(());
        };
        let (mut name, mut comment) = (None, None);
        let (mut link_type, mut flags, mut original) = (DEFAULT_LINK_TYPE, 0u32, None);
        let mut spilled = std::mem::take(&mut self.data);
        spilled.clear();
        let mut data: Option<&[u8]> = None;
        for (member, field) in payload {
            let number = || field.as_u64().unwrap_or(0);
            match (member.name.as_str(), field.value()) {
                ("interface", Value::Text(text)) => name = Some(text.to_str()),
                ("interface", _) => name = label(&member.class.kind, number()).map(Into::into),
                ("direction", _) => flags |= (number() & 3) as u32,
                ("link_type", _) => link_type = number() as u16,
                ("original_bytes", _) => original = u32::try_from(number()).ok(),
                ("flags", _) => flags |= number() as u32,
                ("comment", Value::Text(text)) => comment = Some(text.to_str()),
                ("comment", Value::Optional(Some(text))) => comment = text.as_text(),
                ("data", Value::Bytes(bytes)) => data = Some(bytes),
                ("data", Value::Array(elements)) => {
                    spilled.extend(elements.map(|element| element.as_u64().unwrap_or(0) as u8));
                }
                // CTF 1.8 has the length of a sequence as a field of its own.
                ("captured_bytes" | "comment" | "_data_length", _) => {}
                (other, _) => self.dropped.note(&format!("fields {other}")),
            }
        }
        let mut data = data.unwrap_or(&spilled);
        if let Some(first) = data.get(..LONGEST_PACKET) {
            self.dropped.note("bytes of a packet beyond 16 MiB");
            data = first;
        }
        let number = self.interface(name.as_deref().unwrap_or(stream_name), link_type)?;
        self.of_stream.insert(event.stream, number);
        self.note_context(event);
        let comment = comment.or_else(|| self.thread_of(event).map(Cow::Owned));
        let original = original.unwrap_or(data.len() as u32);
        if event.ticks.is_none() && self.simple(number, data, original, flags, comment.is_some())? {
            self.data = spilled;
            return Ok(());
        }
        let time = self.time(event);
        let drops = self.drops_before(event, number);
        for word in [number, (time >> 32) as u32, time as u32, data.len() as u32, original] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
        self.block.extend_from_slice(data);
        pad(&mut self.block);
        let options_at = self.block.len();
        if let Some(comment) = comment.as_deref() {
            option(&mut self.block, 1, comment.as_bytes(), &mut self.dropped);
        }
        if flags != 0 {
            option(&mut self.block, 2, &flags.to_le_bytes(), &mut self.dropped);
        }
        if drops != 0 {
            option(&mut self.block, 4, &drops.to_le_bytes(), &mut self.dropped);
        }
        if self.block.len() > options_at {
            end_of_options(&mut self.block);
        }
        self.data = spilled;
        self.end(blocks::PACKET)
    }

    /// Writes a packet without a time as the block that has none, which belongs to
    /// the first interface and holds nothing but a whole packet.
    fn simple(
        &mut self,
        number: u32,
        data: &[u8],
        original: u32,
        flags: u32,
        comment: bool,
    ) -> io::Result<bool> {
        if number != 0 || flags != 0 || comment || data.len() != original as usize {
            return Ok(false);
        }
        self.interfaces[0].packets += 1;
        self.block.extend_from_slice(&original.to_le_bytes());
        self.block.extend_from_slice(data);
        pad(&mut self.block);
        self.end(blocks::SIMPLE_PACKET)?;
        Ok(true)
    }

    /// Nanoseconds since 1970.
    fn time(&mut self, event: &Event<'_>) -> u64 {
        let Some(ticks) = event.ticks else {
            self.dropped.note("the absence of a time");
            return 0;
        };
        let clock = event.stream_class.clock.and_then(|clock| self.trace.clocks.get(clock));
        if let Some(clock) = clock {
            let exact = u128::from(ticks.0) * 1_000_000_000 % u128::from(clock.frequency()) == 0;
            if !exact {
                self.dropped.note("parts of times below a nanosecond");
            }
        }
        let time = u64::try_from(event.time.0).unwrap_or_else(|_| {
            self.dropped.note("times before 1970");
            0
        });
        self.last_time = self.last_time.max(time);
        time
    }

    /// Losses of the stream of an event that ended before it.
    fn drops_before(&mut self, event: &Event<'_>, number: u32) -> u64 {
        let interface = &mut self.interfaces[number as usize];
        interface.packets += 1;
        let mut drops = 0u64;
        if let Some(pending) = self.pending.get_mut(&event.stream) {
            while let Some((Some(end), count)) = pending.front() {
                if *end > event.time {
                    break;
                }
                drops = drops.saturating_add(*count);
                pending.pop_front();
            }
        }
        interface.drops = interface.drops.saturating_add(drops);
        drops
    }

    fn note_context(&mut self, event: &Event<'_>) {
        let common = event.common_context().is_some_and(|fields| fields.slot_count() > 0);
        if common || event.context().is_some_and(|fields| fields.slot_count() > 0) {
            self.dropped.note("contexts of events");
        }
    }

    /// Which thread recorded a packet, as its comment.
    fn thread_of(&self, event: &Event<'_>) -> Option<String> {
        let Writer { pid, tid } = event.writer?;
        let process = self.names.processes.get(&pid).map_or("", String::as_str);
        let thread = self.names.threads.get(&tid).map_or("", String::as_str);
        let named = |name: &str| if name.is_empty() { String::new() } else { format!(" ({name})") };
        Some(format!("process {pid}{}, thread {tid}{}", named(process), named(thread)))
    }

    /// Totals of the interfaces that lost something.
    fn statistics(&mut self, streams: &[&str]) -> io::Result<()> {
        let mut pending: Vec<_> = std::mem::take(&mut self.pending).into_iter().collect();
        pending.sort_by_key(|(stream, _)| *stream);
        for (stream, losses) in pending {
            let left = losses.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
            if left == 0 {
                continue;
            }
            let number = match self.of_stream.get(&stream) {
                Some(number) => *number,
                None => {
                    let name = streams.get(stream.0 as usize).copied().unwrap_or("");
                    let link_type = match self.trace.env(&format!("interface.{name}.link_type")) {
                        Some(EnvValue::Integer(number)) => *number as u16,
                        _ => DEFAULT_LINK_TYPE,
                    };
                    self.interface(name, link_type)?
                }
            };
            let interface = &mut self.interfaces[number as usize];
            interface.drops = interface.drops.saturating_add(left);
        }
        for number in 0..self.interfaces.len() {
            let Interface { packets, drops } = self.interfaces[number];
            if drops == 0 {
                continue;
            }
            let time = self.last_time;
            for word in [number as u32, (time >> 32) as u32, time as u32] {
                self.block.extend_from_slice(&word.to_le_bytes());
            }
            let received = packets.saturating_add(drops);
            option(&mut self.block, 4, &received.to_le_bytes(), &mut self.dropped);
            option(&mut self.block, 5, &drops.to_le_bytes(), &mut self.dropped);
            end_of_options(&mut self.block);
            self.end(blocks::STATISTICS)?;
        }
        Ok(())
    }
}

/// The name of a value of an enumeration.
fn label(kind: &FieldKind, value: u64) -> Option<&str> {
    let (FieldKind::Unsigned(class) | FieldKind::Signed(class)) = kind else {
        return None;
    };
    let holds = |ranges: &[lateralis_model::Range]| ranges.iter().any(|r| r.contains(value.into()));
    class.labels.iter().find(|label| holds(&label.ranges)).map(|label| label.name.as_str())
}

fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}

fn option(block: &mut Vec<u8>, code: u16, value: &[u8], dropped: &mut Dropped) {
    let length = value.len().min(usize::from(u16::MAX));
    if length < value.len() {
        dropped.note("texts beyond 65535 bytes");
    }
    block.extend_from_slice(&code.to_le_bytes());
    block.extend_from_slice(&(length as u16).to_le_bytes());
    block.extend_from_slice(&value[..length]);
    pad(block);
}

fn end_of_options(block: &mut Vec<u8>) {
    block.extend_from_slice(&[0; 4]);
}
