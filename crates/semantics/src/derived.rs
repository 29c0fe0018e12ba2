// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Output of a [`Deriver`](crate::Deriver): spans, flows and states, each with both ends and a quality.

use lateralis_analysis::{Edge, Ended, Joined, Message, PairedSpan, Side, Span, SpanInRun};
use lateralis_model::{Quality, StreamIndex};
use lateralis_units::Nanos;

use crate::facts::{At, Doubts, Fact, Kinds, Owner};
use crate::{ClockErrors, Contradiction, CpuInterval, ThreadStateInterval};

/// An event that begins or ends a span; `E` is what the consumer needs to find the event again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanEnd<E = ()> {
    /// Time, thread and key.
    pub edge: Edge,
    /// Stream of the event, which determines its clock.
    pub stream: StreamIndex,
    /// The event.
    pub event: E,
}

/// Which ends of a span are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanStatus {
    /// Both ends come from events of their own.
    Complete,
    /// One event contains both ends.
    Whole,
    /// The span began and has not ended.
    Unfinished,
    /// The span ended, but its begin is missing.
    Orphan,
    /// One end is known. Either its thread is unknown because events are missing, or the trace may or may
    /// not contain the other end ([`Deriver::is_unmatched`](crate::Deriver::is_unmatched)).
    Doubtful,
}

impl SpanStatus {
    /// Name in tables; for a doubtful span, depending on which end is known.
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

/// A span with one or both of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DerivedSpan<E = ()> {
    /// Kind of the span, an index into [`Kinds::spans`].
    pub kind: u32,
    /// Begin of the span.
    pub begin: Option<SpanEnd<E>>,
    /// End of the span.
    pub end: Option<SpanEnd<E>>,
    /// Which of the ends are known.
    pub status: SpanStatus,
    /// The thread that began the span, as a number of [`Deriver::threads`](crate::Deriver::threads).
    pub thread: u32,
    /// Self time in nanoseconds: time in which it was the innermost span of its thread; `None` if
    /// unknown.
    pub own_ns: Option<u64>,
    /// Whether the pair would stay the same if missing events were put back, regardless of clock errors.
    pub is_certain: bool,
    /// Error between the clocks of both ends; `None` if unbounded.
    pub clock_error_ns: Option<u64>,
    /// Quality of the duration.
    pub quality: Quality,
    /// End of the recording in which an unfinished span is open.
    pub seen_until: Option<Nanos>,
}

impl<E> DerivedSpan<E> {
    /// Both ends, if both are known.
    #[must_use]
    #[inline]
    pub fn span(&self) -> Option<Span> {
        let (begin, end) = self.begin.as_ref().zip(self.end.as_ref())?;
        Some(Span { begin: begin.edge, end: end.edge })
    }

    /// Duration, if both ends are known.
    #[must_use]
    #[inline]
    pub fn duration_ns(&self) -> Option<u64> {
        self.span().map(|span| span.nanos())
    }
}

/// Which ends of a flow are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedFlow<E = ()> {
    /// Sent and received.
    Complete {
        /// Both ends.
        message: Message<E>,
        /// Confidence that the ends belong together.
        joined: Joined,
        /// Error between the clocks of the ends; `None` if unbounded.
        clock_error_ns: Option<u64>,
        /// Quality of the latency.
        quality: Quality,
    },
    /// Sent, but not received in the trace.
    NotReceived(Option<u64>, lateralis_analysis::End<E>),
    /// Received, but not sent in the trace.
    NotSent(Option<u64>, lateralis_analysis::End<E>),
}

/// An interval in which a machine was in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateInterval<E = ()> {
    /// The machine, an index into [`Kinds::machines`].
    pub machine: u32,
    /// Owner of the machine.
    pub owner: Owner,
    /// The state, an index into the states of the machine.
    pub state: u32,
    /// Time and place of the first event that reports the state.
    pub since: At,
    /// That event.
    pub event: E,
    /// End of the interval: the machine left the state, or the recording ended.
    pub until: Nanos,
    /// Whether the machine left the state.
    pub is_complete: bool,
    /// Quality of the length.
    pub quality: Quality,
}

/// Receives derived items, in the order of the events that complete them. Only [`DerivedSink::Event`] is
/// required.
pub trait DerivedSink {
    /// Reference by which the consumer finds an event again; `()` if it does not need to.
    type Event: Copy + Default;

    /// Returns the reference of the current event. Called once for each begin, end, send, receive and
    /// state; also for each switch and wakeup if threads are followed.
    #[inline]
    fn event(&mut self, kinds: &Kinds, at: &At, fact: &Fact) -> Self::Event {
        let _ = (kinds, at, fact);
        Self::Event::default()
    }

    /// A span begins; it may or may not end later.
    #[inline]
    fn span_begins(&mut self, kind: u32, is_keyless: bool) {
        let _ = (kind, is_keyless);
    }

    /// A span: complete, or with one end that is final.
    #[inline]
    fn span(&mut self, kinds: &Kinds, span: &DerivedSpan<Self::Event>) {
        let _ = (kinds, span);
    }

    /// A span without a key from a run of its thread ([`crate::facts::Sink::run`]): no events are
    /// missing, and both ends have the same clock. Consumers that allow runs implement this.
    #[inline]
    fn span_in_run(&mut self, span: &SpanInRun) {
        let _ = span;
    }

    /// A [`SpanStatus::Whole`] span has ended; reports its self time.
    fn whole_ended(&mut self, ended: &Ended, is_certain: bool) {
        let _ = (ended, is_certain);
    }

    /// A flow: complete, or with one end that is final.
    fn flow(&mut self, kinds: &Kinds, channel: u32, flow: &DerivedFlow<Self::Event>) {
        let _ = (kinds, channel, flow);
    }

    /// A machine reports a state; `is_whole` if no events are missing since the previous report.
    fn state_reported(&mut self, place: (u32, Owner), time: Nanos, state: u32, is_whole: bool) {
        let _ = (place, time, state, is_whole);
    }

    /// The recording ends in this state; `is_whole` as in [`DerivedSink::state_reported`].
    fn state_ends(&mut self, place: (u32, Owner), time: Nanos, is_whole: bool) {
        let _ = (place, time, is_whole);
    }

    /// A state has ended, or the recording has ended in it.
    fn state(&mut self, kinds: &Kinds, interval: &StateInterval<Self::Event>) {
        let _ = (kinds, interval);
    }

    /// A thread enters a state, if threads are followed ([`crate::Known::follows_threads`]).
    ///
    /// Returns the reference of the event, which is repeated in the interval once that has ended.
    #[inline]
    fn thread_state_begins(&mut self, interval: &ThreadStateInterval<Self::Event>) -> Self::Event {
        interval.begun_by
    }

    /// A thread has left a state, or the recording has ended in it.
    #[inline]
    fn thread_state(&mut self, kinds: &Kinds, interval: &ThreadStateInterval<Self::Event>) {
        let _ = (kinds, interval);
    }

    /// A thread comes to a CPU or the CPU becomes idle, if threads are followed.
    ///
    /// Returns the reference of the event, as [`DerivedSink::thread_state_begins`] does.
    #[inline]
    fn cpu_interval_begins(&mut self, interval: &CpuInterval<Self::Event>) -> Self::Event {
        interval.begun_by
    }

    /// A CPU has switched to another thread, or the recording has ended.
    #[inline]
    fn cpu_interval(&mut self, kinds: &Kinds, interval: &CpuInterval<Self::Event>) {
        let _ = (kinds, interval);
    }

    /// Switches of a CPU contradict each other; only if threads are followed.
    fn contradiction(&mut self, contradiction: &Contradiction) {
        let _ = contradiction;
    }

    /// Facts that are not derived from two events: counter samples, switches, wakeups, processes of
    /// threads.
    #[inline]
    fn fact(&mut self, kinds: &Kinds, at: &At, fact: &Fact) {
        let _ = (kinds, at, fact);
    }

    /// The first event of a batch on a CPU ([`crate::facts::Sink::appears`]).
    #[inline]
    fn appears(&mut self, cpu: u32, time: Nanos) {
        let _ = (cpu, time);
    }

    /// Whether the sink needs no further items.
    #[inline]
    fn is_enough(&self) -> bool {
        false
    }
}

/// Data kept of the event that began a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tag<E> {
    /// Its stream.
    pub stream: u32,
    /// The event.
    pub event: E,
}

/// An edge without a known thread.
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

/// A span with one end.
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
