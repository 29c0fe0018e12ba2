// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace whose marks are events of their own kinds.
//!
//! Nothing is copied: a mark is the event that contains its text, with a class of its own and the
//! values from the text after its own.

use std::collections::HashMap;
use std::ops::ControlFlow;

use lateralis_model::{
    Clock, Damage, Event, Events, FieldKind, Interval, Loss, Names, Packet, Repeated, RingPlace,
    Slot, Source, StreamIndex, StreamSummary, Trace, Value, Writer,
};
use lateralis_units::Nanos;

use super::Mark;
use super::survey::{Found, survey, values};

/// The last parts of the names of events that hold a text for the kernel's trace.
const TEXTS: [&str; 2] = ["print", "tracing_mark_write"];
/// The field with the text.
const TEXT: &str = "buf";
/// Fields of contexts with the number of the thread.
const THREADS: [&str; 5] = ["tid", "vtid", "_tid", "_vtid", "perf_tid"];

/// Indices of a stream class and of a class in it.
pub type Place = (u32, u32);
/// Classes of marks by the class that holds the text, the letter, and the name.
pub type Kinds = HashMap<(Place, u8), HashMap<String, u32>>;

/// The class of a mark without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub stream: u32,
    /// The reading of the stream's clock: it stays what it is if the clock is set.
    pub clock: u64,
    /// `None` where nothing was open.
    pub class: Option<u32>,
}

/// The stream of an event, and the reading of its clock.
pub fn key_of(event: &Event<'_>) -> (u32, u64) {
    (event.stream.0, event.ticks.map_or(event.time.0 as u64, |ticks| ticks.0))
}

/// The text of an event that may be a mark.
pub fn text_of<'a>(event: &Event<'a>) -> Option<&'a str> {
    match event.payload()?.get(TEXT)?.value() {
        Value::Text(text) => std::str::from_utf8(text.bytes).ok(),
        _ => None,
    }
}

/// The thread of an event.
pub fn thread_of(event: &Event<'_>) -> Option<u32> {
    let of_context = || {
        let contexts = [event.common_context(), event.context()];
        let number = |name: &&str| {
            let mut fields = contexts.into_iter().flatten();
            fields.find_map(|fields| fields.get(name)?.as_u64())
        };
        let number = THREADS.iter().find_map(number)?;
        // As the kernel has it, signed.
        (number != u64::MAX).then_some(number as u32)
    };
    event.writer.map(|writer| writer.tid).or_else(of_context)
}

/// The trace with the marks in it as spans, counters and instants, as [`crate::perfetto`] has
/// them; the trace itself where there are none. What does not fit into `limit_bytes` stays text,
/// with a remark.
///
/// Cost: where the trace has events with texts, a walk over it.
#[must_use]
pub fn with_marks(source: Box<dyn Source>, limit_bytes: u64) -> Box<dyn Source> {
    let is_text = |name: &str, has_text: bool| {
        has_text && name.rsplit(':').next().is_some_and(|last| TEXTS.contains(&last))
    };
    let of_class = |class: &lateralis_model::EventClass| {
        let mut members = class.payload.iter().flat_map(|class| class.members());
        let has_text = members
            .any(|member| member.name == TEXT && matches!(member.class.kind, FieldKind::Text(_)));
        is_text(&class.name, has_text)
    };
    let classes = source.trace().stream_classes.iter();
    let texts: Vec<Vec<bool>> =
        classes.map(|class| class.event_classes.iter().map(of_class).collect()).collect();
    if !texts.iter().flatten().any(|is_text| *is_text) {
        return source;
    }
    let is_text = |place: Place| {
        let classes = texts.get(place.0 as usize);
        classes.and_then(|classes| classes.get(place.1 as usize)).is_some_and(|is_text| *is_text)
    };
    let Some(found) = survey(source.as_ref(), &is_text, limit_bytes) else { return source };
    let Found { trace, kinds, mut ends, processes, remarks } = found;
    ends.sort_by_key(|end| (end.stream, end.clock));
    Box::new(Marked { inner: source, trace, texts, kinds, ends, processes, remarks })
}

struct Marked {
    inner: Box<dyn Source>,
    trace: Trace,
    /// By stream class and class: whether it holds texts.
    texts: Vec<Vec<bool>>,
    kinds: Kinds,
    /// By stream and clock; those of the same clock in their order.
    ends: Vec<End>,
    /// Processes by thread.
    processes: HashMap<u32, u32>,
    remarks: Vec<String>,
}

impl Marked {
    /// The text of an event, if its class holds texts.
    #[inline]
    fn text<'e>(&self, event: &Event<'e>) -> Option<&'e str> {
        let classes = self.texts.get(event.stream_class_index as usize)?;
        classes.get(event.class_index as usize).filter(|is_text| **is_text)?;
        text_of(event)
    }

    /// With the process of the thread, where only the thread is known.
    fn writer(&self, writer: Writer) -> Writer {
        match self.processes.get(&writer.tid) {
            Some(pid) if writer.pid == writer.tid => Writer { pid: *pid, ..writer },
            _ => writer,
        }
    }
}

impl Source for Marked {
    fn format(&self) -> &str {
        self.inner.format()
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    fn streams(&self) -> Vec<StreamSummary> {
        self.inner.streams()
    }

    fn interval(&self) -> Interval {
        self.inner.interval()
    }

    fn losses(&self) -> &[Loss] {
        self.inner.losses()
    }

    fn damage(&self) -> &[Damage] {
        self.inner.damage()
    }

    fn faults(&self) -> Vec<String> {
        self.inner.faults()
    }

    fn remarks(&self) -> Vec<String> {
        self.inner.remarks().into_iter().chain(self.remarks.iter().cloned()).collect()
    }

    fn names(&self) -> &Names {
        self.inner.names()
    }

    fn set_clock(&mut self, index: usize, clock: &Clock) -> bool {
        let done = self.inner.set_clock(index, clock);
        self.trace.clocks.clone_from(&self.inner.trace().clocks);
        done
    }

    fn events_in(&self, interval: Interval) -> Box<dyn Events + '_> {
        Box::new(MarkedEvents {
            source: self,
            inner: self.inner.events_in(interval),
            class: None,
            writer: None,
            slots: Vec::new(),
            passed: HashMap::new(),
        })
    }

    fn packets(
        &self,
        see: &mut dyn FnMut(StreamIndex, u64, &Packet, Interval) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.inner.packets(see)
    }

    fn ring_places(&self, see: &mut dyn FnMut(StreamIndex, u64, &RingPlace)) {
        self.inner.ring_places(see);
    }

    fn drop_repeated(&mut self, repeated: &Repeated) {
        self.inner.drop_repeated(repeated);
    }
}

struct MarkedEvents<'a> {
    source: &'a Marked,
    inner: Box<dyn Events + 'a>,
    /// The class of the event stepped to, if it is a mark.
    class: Option<u32>,
    writer: Option<Writer>,
    /// Its values, if it is a mark.
    slots: Vec<Slot>,
    /// By stream: the clock at the last end without a name, and how many there were by it.
    passed: HashMap<u32, (u64, usize)>,
}

impl MarkedEvents<'_> {
    fn look(&mut self) {
        let event = self.inner.event();
        self.class = None;
        self.writer = event.writer.map(|writer| self.source.writer(writer));
        let mark = self.source.text(&event).and_then(Mark::parse);
        let Some(mark) = mark else { return };
        let place = (event.stream_class_index, event.class_index);
        self.class = if mark.begins() == Some(false) && mark.name.is_empty() {
            let (stream, clock) = key_of(&event);
            let passed = self.passed.entry(stream).or_insert((clock, 0));
            let nth = if passed.0 == clock { passed.1 } else { 0 };
            *passed = (clock, nth + 1);
            let ends = &self.source.ends;
            let first = ends.partition_point(|end| (end.stream, end.clock) < (stream, clock));
            let end = ends.get(first + nth);
            end.filter(|end| (end.stream, end.clock) == (stream, clock)).and_then(|end| end.class)
        } else {
            let kinds = self.source.kinds.get(&(place, mark.letter));
            kinds.and_then(|names| names.get(mark.name)).copied()
        };
        if self.class.is_none() {
            return;
        }
        if self.writer.is_none()
            && let Some(tid) = thread_of(&event)
        {
            let pid = self.source.processes.get(&tid).copied().or(mark.pid).unwrap_or(tid);
            self.writer = Some(Writer { pid, tid });
        }
        self.slots.clear();
        self.slots.extend_from_slice(event.slots);
        for value in values(mark.letter) {
            self.slots.push(match *value {
                "value" => Slot::Signed(mark.value.unwrap_or(0)),
                "process" => Slot::Unsigned(mark.pid.unwrap_or(0).into()),
                "track" => span(mark.track, event.bytes),
                _ => span(mark.cookie.unwrap_or_default(), event.bytes),
            });
        }
    }
}

/// Where a part of a text lies in the bytes that the text was taken from.
fn span(part: &str, bytes: &[u8]) -> Slot {
    let start = (part.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
    let fits = start.checked_add(part.len()).is_some_and(|end| end <= bytes.len());
    match u32::try_from(part.len()) {
        Ok(len) if fits => Slot::Span { len, start: start as u64 },
        _ => Slot::Span { len: 0, start: 0 },
    }
}

impl Events for MarkedEvents<'_> {
    fn advance(&mut self) -> bool {
        let is_there = self.inner.advance();
        if is_there {
            self.look();
        }
        is_there
    }

    #[inline]
    fn event(&self) -> Event<'_> {
        let event = self.inner.event();
        let stream_class = &self.source.trace.stream_classes[event.stream_class_index as usize];
        let class_index = self.class.unwrap_or(event.class_index);
        Event {
            stream_class,
            class_index,
            class: &stream_class.event_classes[class_index as usize],
            writer: self.writer,
            slots: if self.class.is_some() { &self.slots } else { event.slots },
            ..event
        }
    }

    fn time(&self) -> Nanos {
        self.inner.time()
    }

    fn damage(&self) -> Vec<Damage> {
        self.inner.damage()
    }
}
