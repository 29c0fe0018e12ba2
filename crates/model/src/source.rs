// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An opened trace of any format, as analyses and writers see it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use lateralis_units::{CpuId, Nanos};

use crate::columns::OneRow;
use crate::{
    Clock, ColumnBatch, ColumnRequest, Damage, Event, Interval, Loss, Packet, PartSummary,
    Repeated, RingPlace, StreamIndex, Trace, Writer,
};

/// A stream of an opened trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamSummary {
    /// Index into [`Trace::stream_classes`].
    pub class: u32,
    /// Its name: that of its file, of a CPU, of a network interface.
    pub name: String,
    /// Packets it consists of, 0 where the format has none.
    pub packets: u64,
    /// Bytes of it in its files, 0 where streams are interleaved.
    pub bytes: u64,
    /// The processor all its events happened on, where there is one.
    pub cpu: Option<CpuId>,
}

/// Names of processes and threads, if the trace contains them. The last name is used if one had
/// several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// By process id.
    pub processes: BTreeMap<u32, String>,
    /// By thread id.
    pub threads: BTreeMap<u32, String>,
}

/// A readable trace of any format.
///
/// Opening has found out what can happen and what is damaged as a whole; the
/// events themselves may still lie in files and be decoded while they are
/// iterated. Several threads may read one at the same time.
pub trait Source: Send + Sync {
    /// Name of the format: `CTF 1.8`, `perf.data`, `Chrome JSON`, …
    fn format(&self) -> &str;

    /// What can happen.
    fn trace(&self) -> &Trace;

    /// Its streams; [`Event::stream`] is an index into them.
    fn streams(&self) -> Vec<StreamSummary>;

    /// What the trace covers, where that is known without reading all events.
    fn interval(&self) -> Interval;

    /// Losses that the producer counted.
    fn losses(&self) -> &[Loss];

    /// Bytes that cannot be read, as far as opening has found them.
    fn damage(&self) -> &[Damage];

    /// Where the trace's description of itself is wrong: its metadata, a schema,
    /// a format text. Events may be missing or misread because of it.
    fn faults(&self) -> Vec<String> {
        Vec::new()
    }

    /// Everything else worth a sentence: what was not understood and left out,
    /// how times were converted.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Names of processes and threads.
    fn names(&self) -> &Names;

    /// Has the trace convert ticks of one of its clocks, by index, as this clock does: it is
    /// known better from another trace. Whether it could; else nothing has changed.
    ///
    /// Cost: proportional to packets, losses and damage.
    fn set_clock(&mut self, index: usize, clock: &Clock) -> bool {
        let _ = (index, clock);
        false
    }

    /// The events of an interval, both ends included, in the order of time.
    fn events_in(&self, interval: Interval) -> Box<dyn Events + '_>;

    /// All events in the order of time.
    fn events(&self) -> Box<dyn Events + '_> {
        self.events_in(Interval::default())
    }

    /// Shows all events, each stream in its order, streams in any: the
    /// cheapest way to see every event once. Returns the damage found on the way.
    fn visit(&self, see: &mut dyn FnMut(&Event<'_>)) -> Vec<Damage> {
        let mut events = self.events();
        while let Some(event) = events.next_event() {
            see(&event);
        }
        events.damage()
    }

    /// Shows every event once, as [`Source::visit`] does, but only those classes whole
    /// (stream class and class, by index) for which `look` says so. Of others it may show only
    /// what is asked, and who wrote them, many at a time, which is several times cheaper
    /// where the format has columns. Returns the damage found on the way.
    fn survey(
        &self,
        look: &dyn Fn(u32, u32) -> Look,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Vec<Damage> {
        let _ = look;
        self.visit(&mut |event| see(Seen::Event(event)))
    }

    /// Whether [`Source::columns`] costs less than rows, and events of the same time come in
    /// the order of their streams.
    fn has_columns(&self) -> bool {
        false
    }

    /// The pieces of the trace that can be read each on its own, on any thread; together
    /// they are all of it. Of one stream they come in its order. One piece where a format
    /// offers nothing better.
    ///
    /// Cost: proportional to the packets, not to the events.
    fn parts(&self) -> Vec<PartSummary> {
        vec![PartSummary { interval: self.interval(), ..PartSummary::default() }]
    }

    /// Visits every packet: its stream, its number there from 0, and the time of its events as far
    /// as known. Streams in their order, packets in that of the stream; none if the format has
    /// none. Ends early if `see` requests it.
    fn packets(
        &self,
        see: &mut dyn FnMut(StreamIndex, u64, &Packet, Interval) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let _ = see;
        ControlFlow::Continue(())
    }

    /// Shows where the packets of Lateralis were in memory: stream, number in it from 0, place.
    /// Packets of which that is unknown are left out.
    fn ring_places(&self, see: &mut dyn FnMut(StreamIndex, u64, &RingPlace)) {
        let _ = see;
    }

    /// Drops packets that are read from another source; numbers are those of
    /// [`Source::ring_places`].
    ///
    /// Cost: proportional to packets.
    fn drop_repeated(&mut self, repeated: &Repeated) {
        let _ = repeated;
    }

    /// Shows the events of some parts as columns, and as rows what has none; an event at
    /// a time, and all of them rows, where a format has no columns. Ends early when `see`
    /// says so. Returns the damage found on the way.
    ///
    /// Cost: that of the parts, as far as they are of the interval, and of the columns
    /// wanted; memory of one batch.
    fn columns(
        &self,
        request: &ColumnRequest<'_>,
        see: &mut dyn FnMut(&dyn ColumnBatch) -> ControlFlow<()>,
    ) -> Vec<Damage> {
        let mut damage = Vec::new();
        for _ in request.parts.iter().filter(|part| **part == 0) {
            let mut events = self.events_in(request.interval);
            let flow = show_rows(&mut *events, request, see);
            damage.extend(events.damage());
            if flow.is_break() {
                break;
            }
        }
        damage
    }
}

/// Shows events as batches of one.
pub(crate) fn show_rows(
    events: &mut dyn Events,
    request: &ColumnRequest<'_>,
    see: &mut dyn FnMut(&dyn ColumnBatch) -> ControlFlow<()>,
) -> ControlFlow<()> {
    while let Some(event) = events.next_event() {
        see(&OneRow::new(&event, request.wanted))?;
    }
    ControlFlow::Continue(())
}

/// How closely [`Source::survey`] shall look at events of a class; it may look closer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// How many there are, when the first and when the last happened.
    Ends,
    /// When each happened.
    Times,
    /// The whole event.
    Whole,
}

/// What [`Source::survey`] shows.
pub enum Seen<'a> {
    /// One event whole.
    Event(&'a Event<'a>),
    /// Events of one class of one stream, in its order.
    Times {
        /// The stream.
        stream: StreamIndex,
        /// Index of its class in the trace.
        stream_class: u32,
        /// Index of the events' class in that.
        class: u32,
        /// When each happened; 0 in a stream without time.
        times: &'a [Nanos],
    },
    /// The same of which only the ends are asked.
    Ends {
        /// The stream.
        stream: StreamIndex,
        /// Index of its class in the trace.
        stream_class: u32,
        /// Index of the events' class in that.
        class: u32,
        /// How many, at least one.
        count: u64,
        /// The earliest; 0 in a stream without time.
        first: Nanos,
        /// The latest.
        last: Nanos,
    },
    /// Who wrote some of the events that were shown without their writer.
    Written {
        /// Index of the stream's class in the trace.
        stream_class: u32,
        /// Index of the events' class in that.
        class: u32,
        /// The thread.
        writer: Writer,
        /// How many events.
        count: u64,
    },
}

/// Lends events one after the other.
pub trait Events {
    /// Steps to the next event; false after the last.
    fn advance(&mut self) -> bool;

    /// The event stepped to; only after [`Events::advance`] has returned true.
    ///
    /// # Panics
    /// It may, if nothing was stepped to.
    fn event(&self) -> Event<'_>;

    /// Time of that event.
    fn time(&self) -> Nanos {
        self.event().time
    }

    /// The next event; `None` after the last.
    fn next_event(&mut self) -> Option<Event<'_>> {
        self.advance().then(|| self.event())
    }

    /// Damage that was found while reading, so far.
    fn damage(&self) -> Vec<Damage>;
}
