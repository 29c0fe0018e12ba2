// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events as babeltrace2 prints them with
//! `--clock-seconds --clock-gmt --no-delta --names=all`, byte for byte, so that
//! the two can be compared by `diff`.
//!
//! Reference: output of babeltrace 2.1.2. Two of its properties are reproduced on purpose: clocks
//! that do not tick in nanoseconds are converted in floating point, and there is no comma before
//! the name in traces without clock.

use std::cell::RefCell;

use super::fields::structure;
use super::layout::{COMMA, Layout};
use super::pen::{Literal, Pen};
use super::time::ClockText;
use crate::{EnvValue, Event, EventClass, FieldKind, Slot, StreamClass, Trace};

/// Writes the events of one trace.
pub struct Babeltrace<'t> {
    trace: &'t Trace,
    known: RefCell<Known<'t>>,
}

/// What need not be made again for every event.
struct Known<'t> {
    /// By stream class and event class.
    classes: Vec<Vec<Option<Box<ClassText<'t>>>>>,
    /// The last packet context of each stream: many events of a packet are consecutive.
    packets: Vec<PacketText>,
    /// By index in the trace.
    clocks: Vec<ClockText<'t>>,
}

/// A class as text.
struct ClassText<'t> {
    class: &'t EventClass,
    /// The text after the time, and its replacement if there is no time: up to the context of the
    /// packet or, if that shows nothing, up to the first leaf.
    head: Literal,
    head_without_time: Literal,
    /// After the context of the packet, up to the first leaf.
    behind_packet: Option<Literal>,
    fields: Layout<'t>,
}

/// A packet context as text, and the values it was made of.
struct PacketText {
    stream_class: u32,
    made_of: MadeOf,
    text: Literal,
}

/// What else the text of a packet context depends on.
enum MadeOf {
    /// Integers: their places among the slots, and their values.
    Integers(Vec<(usize, u64)>),
    /// All slots, and the bytes of the texts among them.
    Everything(Vec<Slot>, Vec<u8>),
    /// More than is worth keeping: made for every event.
    Once,
}

impl<'t> Babeltrace<'t> {
    /// A writer for events of `trace`.
    #[must_use]
    pub fn new(trace: &'t Trace) -> Self {
        let clocks = trace.clocks.iter().map(ClockText::new).collect();
        let none = |stream: &StreamClass| stream.event_classes.iter().map(|_| None).collect();
        let classes = trace.stream_classes.iter().map(none).collect();
        Self { trace, known: RefCell::new(Known { classes, packets: Vec::new(), clocks }) }
    }

    /// Appends one event of the trace and a line feed.
    ///
    /// Cost: what the text of its values costs; the rest is copied, 32 bytes at a
    /// time. No allocation but the growth of `out`, once for every class, for every
    /// packet whose context shows something new, and for text that is not UTF-8.
    pub fn line(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        let known = &mut *self.known.borrow_mut();
        let (stream, class) = (event.stream_class_index as usize, event.class_index as usize);
        let mut pen = Pen::new(out);
        let clock = event.stream_class.clock.and_then(|index| known.clocks.get_mut(index));
        let has_time = match (clock, event.ticks) {
            (Some(clock), Some(ticks)) => {
                clock.time(&mut pen, ticks);
                true
            }
            _ => false,
        };
        let place = known.classes.get_mut(stream).and_then(|stream| stream.get_mut(class));
        let text = match place {
            Some(Some(text)) if std::ptr::eq(text.class, event.class) => &**text,
            place => match (place, self.of_trace(event)) {
                (Some(place), Some(made)) => &**place.insert(made),
                // Not of this trace: made for this once.
                _ => {
                    let text = self.class_text(stream, event.stream_class, event.class);
                    return text.line(pen, &mut PacketText::default(), event, has_time);
                }
            },
        };
        let stream = event.stream.0 as usize;
        if known.packets.len() <= stream {
            known.packets.resize_with(stream + 1, PacketText::default);
        }
        text.line(pen, &mut known.packets[stream], event, has_time);
    }

    /// The text of the event's class, if that is one of this trace.
    #[cold]
    fn of_trace(&self, event: &Event<'_>) -> Option<Box<ClassText<'t>>> {
        let index = event.stream_class_index as usize;
        let stream = self.trace.stream_classes.get(index)?;
        let class = stream.event_classes.get(event.class_index as usize)?;
        std::ptr::eq(class, event.class).then(|| Box::new(self.class_text(index, stream, class)))
    }

    #[cold]
    fn class_text<'c>(
        &self,
        index: usize,
        stream: &'c StreamClass,
        class: &'c EventClass,
    ) -> ClassText<'c> {
        let name = if class.name.is_empty() { "<unknown>" } else { class.name.as_str() };
        let mut head = origin(self.trace.environment_of(index as u32));
        head.extend_from_slice(b", name = ");
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(COMMA);
        let (first, fields) = Layout::of(stream, class);
        let behind_packet = shows_packet(stream).then(|| Literal::new(&first));
        let mut head_without_time = without_commas(&head);
        if behind_packet.is_none() {
            let first = first.strip_prefix(COMMA).unwrap_or(&first);
            head.extend_from_slice(first);
            head_without_time.extend_from_slice(first);
        }
        let head_without_time = Literal::new(&head_without_time);
        ClassText { class, head: Literal::new(&head), head_without_time, behind_packet, fields }
    }
}

impl ClassText<'_> {
    /// The line after the time.
    #[inline(always)]
    fn line(&self, mut pen: Pen<'_>, packet: &mut PacketText, event: &Event<'_>, has_time: bool) {
        pen.literal(if has_time { &self.head } else { &self.head_without_time });
        if let Some(behind) = &self.behind_packet {
            packet.show(event);
            pen.literal(&packet.text);
            pen.literal(behind);
        }
        self.fields.print(&mut pen, event.slots, event.bytes);
        pen.finish();
    }
}

/// The head of a line that begins with it: that program then writes no commas
/// before its parts.
fn without_commas(head: &[u8]) -> Vec<u8> {
    let (mut parts, mut out) = (head, Vec::new());
    while let Some(rest) = parts.strip_prefix(COMMA) {
        let end = rest.windows(2).position(|pair| pair == COMMA).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..end]);
        parts = &rest[end..];
        if rest[..end].starts_with(b"name = ") {
            break;
        }
    }
    out.extend_from_slice(parts);
    out
}

/// A context without a field to show is not shown at all.
fn shows_packet(stream: &StreamClass) -> bool {
    let members = stream.packet_context.iter().flat_map(|class| class.members());
    members.into_iter().any(|member| !member.class.structural)
}

/// The places of the slots that are shown, where nothing else is shown: all members
/// have one slot, and those shown are integers.
fn shown_slots(stream: &StreamClass) -> Option<Vec<usize>> {
    let mut shown = Vec::new();
    for (place, member) in stream.packet_context.as_ref()?.members().iter().enumerate() {
        match member.class.kind {
            FieldKind::Unsigned(_) | FieldKind::Signed(_) if !member.class.structural => {
                shown.push(place);
            }
            FieldKind::Unsigned(_) | FieldKind::Signed(_) => {}
            _ => return None,
        }
    }
    Some(shown)
}

impl Default for PacketText {
    fn default() -> Self {
        Self { stream_class: 0, made_of: MadeOf::Once, text: Literal::new(b"") }
    }
}

impl PacketText {
    /// Makes the text that of the event's packet, unless it is already.
    #[inline(always)]
    fn show(&mut self, event: &Event<'_>) {
        let slots = event.packet_slots;
        let same_integer = |&(place, known): &(usize, u64)| match slots.get(place) {
            Some(&Slot::Unsigned(value)) => value == known,
            Some(&Slot::Signed(value)) => value as u64 == known,
            _ => false,
        };
        let is_same = match &self.made_of {
            MadeOf::Integers(integers) => integers.iter().all(same_integer),
            MadeOf::Everything(made_of, texts) => made_of == slots && texts_of(event) == *texts,
            MadeOf::Once => false,
        };
        if !is_same || self.stream_class != event.stream_class_index {
            self.make(event);
        }
    }

    #[cold]
    #[inline(never)]
    fn make(&mut self, event: &Event<'_>) {
        let slots = event.packet_slots;
        let integers = shown_slots(event.stream_class).and_then(|shown| {
            let integer = |place| match slots.get(place)? {
                Slot::Unsigned(value) => Some((place, *value)),
                Slot::Signed(value) => Some((place, *value as u64)),
                _ => None,
            };
            shown.into_iter().map(integer).collect()
        });
        // Zeros of either sign are equal, but not as text; arrays are in the packet.
        let more = |slot: &Slot| matches!(slot, Slot::Real(_) | Slot::Packed { .. });
        self.made_of = match integers {
            Some(integers) => MadeOf::Integers(integers),
            None if slots.iter().any(more) => MadeOf::Once,
            None => MadeOf::Everything(slots.to_vec(), texts_of(event)),
        };
        self.stream_class = event.stream_class_index;
        let mut text = Vec::new();
        if let Some(fields) = event.packet_context() {
            text.extend_from_slice(b"stream.packet.context = ");
            let mut pen = Pen::new(&mut text);
            structure(&mut pen, fields);
            pen.finish();
        }
        self.text = Literal::new(&text);
    }
}

/// The bytes of the texts in the context of a packet.
#[cold]
fn texts_of(event: &Event<'_>) -> Vec<u8> {
    let mut texts = Vec::new();
    for slot in event.packet_slots {
        if let &Slot::Span { len, start } = slot {
            let text = event.bytes.get(start as usize..).and_then(|text| text.get(..len as usize));
            texts.extend_from_slice(text.unwrap_or(&[]));
        }
    }
    texts
}

/// The text between time and name.
fn origin(environment: &[(String, EnvValue)]) -> Vec<u8> {
    let find = |name| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let mut out = Vec::new();
    for name in ["hostname", "procname"] {
        if let Some(value) = find(name).and_then(EnvValue::as_text) {
            out.extend_from_slice(format!(", trace:{name} = {value}").as_bytes());
        }
    }
    if let Some(EnvValue::Integer(vpid)) = find("vpid") {
        out.extend_from_slice(format!(", trace:vpid = ({vpid})").as_bytes());
    }
    out
}
