// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a [`Deriver`](crate::Deriver) gives: spans, flows, states, each with both ends and a quality.

use lateralis_analysis::{Edge, Ended, Joined, Message, PairedSpan, Side, Span, SpanInRun};
use lateralis_model::{Quality, StreamIndex};
use lateralis_units::Nanos;

use crate::facts::{At, Doubts, Fact, Kinds, Owner};
use crate::{ClockErrors, Contradiction, CpuInterval, ThreadStateInterval};

/// An event that begins or ends a span; `E` is what the consumer needs to find the event again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanEnd<E = ()> {
    /// When, whose, of which key.
    pub edge: Edge,
    /// In which stream, and so by which clock.
    pub stream: StreamIndex,
    /// The event.
    pub event: E,
}

/// What is known of the ends of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanStatus {
    /// Two events tell both.
    Complete,
    /// One event tells both.
    Whole,
    /// It began and has not ended.
    Unfinished,
    /// It ended and has not begun.
    Orphan,
    /// One of its ends: its thread is unknown, because events are missing, or it is unknown whether the
    /// other one is in the trace ([`Deriver::is_unmatched`](crate::Deriver::is_unmatched)).
    Doubtful,
}

impl SpanStatus {
    /// The word of the tables; of a doubtful one, which end is there.
    #[must_use]
    #[inline]
    pub fn name(self, has_begin: bool) -> &'static str {
        match (self, has_begin) {
            (Self::Complete | Self::Whole, _) => "complete",
            (Self::Orphan, _) | (Self::Doubtful, false) => "orphan",
            (Self::Unfinished, _) | (Self::Doubtful, true) => "unfinished",
        }
    }
}

/// A span, or as much as there is of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DerivedSpan<E = ()> {
    /// Its kind, an index into [`Kinds::spans`].
    pub kind: u32,
    /// Where it began.
    pub begin: Option<SpanEnd<E>>,
    /// Where it ended.
    pub end: Option<SpanEnd<E>>,
    /// What is known of these.
    pub status: SpanStatus,
    /// The thread that began it, by its number in [`Deriver::threads`](crate::Deriver::threads).
    pub thread: u32,
    /// Nanoseconds in which it was the innermost span of its thread; `None` where that is not known.
    pub own_ns: Option<u64>,
    /// Whether it is one if missing events are put back, whatever its clocks say.
    pub is_certain: bool,
    /// What the clocks of both ends may be off by; `None`: by any.
    pub clock_error_ns: Option<u64>,
    /// How far its duration can be trusted.
    pub quality: Quality,
    /// When the recording ended in which an unfinished one is open.
    pub seen_until: Option<Nanos>,
}

impl<E> DerivedSpan<E> {
    /// Both ends, where they are known.
    #[must_use]
    #[inline]
    pub fn span(&self) -> Option<Span> {
        let (begin, end) = self.begin.as_ref().zip(self.end.as_ref())?;
        Some(Span { begin: begin.edge, end: end.edge })
    }

    /// How long it took, where both ends are known.
    #[must_use]
    #[inline]
    pub fn duration_ns(&self) -> Option<u64> {
        self.span().map(|span| span.nanos())
    }
}

/// What is known of the ends of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedFlow<E = ()> {
    /// It was sent and received.
    Complete {
        /// Both ends.
        message: Message<E>,
        /// How sure it is that they belong together.
        joined: Joined,
        /// What their clocks may be off by; `None`: by any.
        clock_error_ns: Option<u64>,
        /// How far its latency can be trusted.
        quality: Quality,
    },
    /// It was sent and not received in the trace.
    NotReceived(Option<u64>, lateralis_analysis::End<E>),
    /// It was received and not sent in the trace.
    NotSent(Option<u64>, lateralis_analysis::End<E>),
}

/// A state that a machine was in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateInterval<E = ()> {
    /// The machine, an index into [`Kinds::machines`].
    pub machine: u32,
    /// Whose it is.
    pub owner: Owner,
    /// The state, an index into those of the machine.
    pub state: u32,
    /// Where it was told first.
    pub since: At,
    /// The event that told it.
    pub event: E,
    /// Until then: it was left, or the recording ended.
    pub until: Nanos,
    /// Whether it was left.
    pub is_complete: bool,
    /// How far its length can be trusted.
    pub quality: Quality,
}

/// Takes what is derived, in the order of the events that tell it; all but [`DerivedSink::Event`] may
/// be left out.
pub trait DerivedSink {
    /// How this consumer finds an event again; `()` where it does not.
    type Event: Copy + Default;

    /// The event that says this: asked once for each beginning, end, send, receive and state; where threads
    /// are followed, for each switch and wake-up as well.
    #[inline]
    fn event(&mut self, kinds: &Kinds, at: &At, fact: &Fact) -> Self::Event {
        let _ = (kinds, at, fact);
        Self::Event::default()
    }

    /// A span begins; its end may come.
    #[inline]
    fn span_begins(&mut self, kind: u32, is_keyless: bool) {
        let _ = (kind, is_keyless);
    }

    /// A span: with both ends, or one that has none, or will have none.
    #[inline]
    fn span(&mut self, kinds: &Kinds, span: &DerivedSpan<Self::Event>) {
        let _ = (kinds, span);
    }

    /// One without a key that came in a run of its thread ([`crate::facts::Sink::run`]): nothing is
    /// missing, and its ends are of one clock. Whoever allows runs takes it here.
    #[inline]
    fn span_in_run(&mut self, span: &SpanInRun) {
        let _ = span;
    }

    /// The end of a [`SpanStatus::Whole`] has come: how long it was the innermost.
    fn whole_ended(&mut self, ended: &Ended, is_certain: bool) {
        let _ = (ended, is_certain);
    }

    /// A message: with both ends, or one that has none, or will have none.
    fn flow(&mut self, kinds: &Kinds, channel: u32, flow: &DerivedFlow<Self::Event>) {
        let _ = (kinds, channel, flow);
    }

    /// A machine is reported to be in a state; `is_whole` if nothing is missing since the report before.
    fn state_reported(&mut self, place: (u32, Owner), time: Nanos, state: u32, is_whole: bool) {
        let _ = (place, time, state, is_whole);
    }

    /// The recording has ended in this state; `is_whole` as in [`DerivedSink::state_reported`].
    fn state_ends(&mut self, place: (u32, Owner), time: Nanos, is_whole: bool) {
        let _ = (place, time, is_whole);
    }

    /// A state has ended, or the recording in it.
    fn state(&mut self, kinds: &Kinds, interval: &StateInterval<Self::Event>) {
        let _ = (kinds, interval);
    }

    /// A thread goes into a state, where they are followed ([`crate::Known::follows_threads`]).
    ///
    /// Gives the event, as it comes with the interval when that has ended.
    #[inline]
    fn thread_state_begins(&mut self, interval: &ThreadStateInterval<Self::Event>) -> Self::Event {
        interval.begun_by
    }

    /// A thread has left a state, or the recording has ended in it.
    #[inline]
    fn thread_state(&mut self, kinds: &Kinds, interval: &ThreadStateInterval<Self::Event>) {
        let _ = (kinds, interval);
    }

    /// A thread comes to a processor, or that becomes idle, where they are followed.
    ///
    /// Gives the event, as [`DerivedSink::thread_state_begins`] does.
    #[inline]
    fn cpu_interval_begins(&mut self, interval: &CpuInterval<Self::Event>) -> Self::Event {
        interval.begun_by
    }

    /// A processor turned to another thread, or the recording has ended.
    #[inline]
    fn cpu_interval(&mut self, kinds: &Kinds, interval: &CpuInterval<Self::Event>) {
        let _ = (kinds, interval);
    }

    /// Switches of a processor contradict each other, where they are followed.
    fn contradiction(&mut self, contradiction: &Contradiction) {
        let _ = contradiction;
    }

    /// What no two events say together: levels, switches, wake-ups, processes of threads.
    #[inline]
    fn fact(&mut self, kinds: &Kinds, at: &At, fact: &Fact) {
        let _ = (kinds, at, fact);
    }

    /// The first event of some on a processor ([`crate::facts::Sink::appears`]).
    #[inline]
    fn appears(&mut self, cpu: u32, time: Nanos) {
        let _ = (cpu, time);
    }

    /// Whether nothing more is wanted.
    #[inline]
    fn is_enough(&self) -> bool {
        false
    }
}

/// What is kept of the event that began a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tag<E> {
    /// Its stream.
    pub stream: u32,
    /// The event.
    pub event: E,
}

/// An edge without a thread that nobody knows.
#[inline]
fn known(edge: Edge) -> Edge {
    Edge { writer: edge.writer.filter(Doubts::is_known), ..edge }
}

/// A span with both ends.
#[inline]
pub(crate) fn complete<E: Copy>(
    paired: &PairedSpan<Tag<E>>,
    errors: &mut ClockErrors,
) -> DerivedSpan<E> {
    let PairedSpan { kind, span, tag, end_tag, thread, is_certain, own_nanos } = *paired;
    let (stream, event) = (StreamIndex(end_tag.stream), end_tag.event);
    let begun = StreamIndex(tag.stream);
    let clock_error_ns = errors.between(begun, stream);
    let quality = if is_certain { Quality::Exact } else { Quality::Unknown };
    let Span { begin, end } = Span { begin: known(span.begin), end: known(span.end) };
    DerivedSpan {
        kind,
        begin: Some(SpanEnd { edge: begin, stream: begun, event: tag.event }),
        end: Some(SpanEnd { edge: end, stream, event }),
        status: SpanStatus::Complete,
        thread,
        own_ns: own_nanos,
        is_certain,
        clock_error_ns,
        quality: ClockErrors::quality(clock_error_ns, span.nanos(), quality),
        seen_until: None,
    }
}

/// One that has one end.
pub(crate) fn half<E: Copy>(
    kind: u32,
    edge: Edge,
    Tag { stream, event }: Tag<E>,
    status: SpanStatus,
) -> DerivedSpan<E> {
    let end = SpanEnd { edge: known(edge), stream: StreamIndex(stream), event };
    let begins = edge.side == Side::Begin;
    DerivedSpan {
        kind,
        begin: begins.then_some(end),
        end: (!begins).then_some(end),
        status,
        thread: u32::MAX,
        own_ns: None,
        is_certain: false,
        clock_error_ns: None,
        quality: Quality::Unknown,
        seen_until: None,
    }
}
