// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of one class in a batch, as columns and, if needed, as events.

use lateralis_model::{
    ClassBatch, Column, ColumnBatch, Event, Fields, Place, Slot, StreamClass, Writer,
};

/// Index of an event of a class, and the thread that wrote the events from there on.
type Run = (u32, Option<Writer>);

/// A batch, by class.
pub struct Parts<'b> {
    batch: &'b dyn ColumnBatch,
    stream_class: &'b StreamClass,
    /// By class of the batch; empty if writers are not needed.
    runs: Vec<Vec<Run>>,
}

impl<'b> Parts<'b> {
    /// Parts of a batch of a stream of this class, with the writers of events if `with_writers`.
    ///
    /// Cost: with writers, a pass over the order of the batch if it has several.
    #[must_use]
    pub fn new(
        batch: &'b dyn ColumnBatch,
        stream_class: &'b StreamClass,
        with_writers: bool,
    ) -> Self {
        let runs = if with_writers { runs(batch) } else { Vec::new() };
        Self { batch, stream_class, runs }
    }

    /// Number of classes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.batch.class_count()
    }

    /// Whether there are no classes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part of a class.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn part(&self, index: usize) -> Part<'_> {
        let class = self.batch.class(index);
        let runs = self.runs.get(index).map_or(&[][..], Vec::as_slice);
        Part { batch: self.batch, stream_class: self.stream_class, index, class, runs }
    }
}

fn runs(batch: &dyn ColumnBatch) -> Vec<Vec<Run>> {
    let writers = batch.writers();
    let classes = batch.class_count();
    match writers {
        [] => return vec![vec![(0, None)]; classes],
        [(0, writer)] => return vec![vec![(0, Some(*writer))]; classes],
        _ => {}
    }
    let mut index_of: Vec<usize> = Vec::new();
    for index in 0..classes {
        let class = batch.class(index).class as usize;
        index_of.resize(index_of.len().max(class + 1), usize::MAX);
        index_of[class] = index;
    }
    let mut runs = vec![vec![(0, None)]; classes];
    let mut counts = vec![0_u32; classes];
    let begin = |runs: &mut Vec<Vec<Run>>, counts: &[u32], writer: Writer| {
        for (runs, count) in runs.iter_mut().zip(counts) {
            match runs.last_mut() {
                // The previous writer wrote nothing of this class.
                Some(last) if last.0 == *count => last.1 = Some(writer),
                Some((_, last)) if *last == Some(writer) => {}
                _ => runs.push((*count, Some(writer))),
            }
        }
    };
    let mut next = writers.iter().peekable();
    for (at, place) in (0_u32..).zip(batch.order().iter()) {
        while let Some((_, writer)) = next.next_if(|(from, _)| *from <= at) {
            begin(&mut runs, &counts, *writer);
        }
        if let Place::Columns(class) = place
            && let Some(count) =
                index_of.get(class as usize).and_then(|index| counts.get_mut(*index))
        {
            *count += 1;
        }
    }
    runs
}

/// Events of one class in a batch.
#[derive(Clone, Copy)]
pub struct Part<'b> {
    batch: &'b dyn ColumnBatch,
    stream_class: &'b StreamClass,
    index: usize,
    class: ClassBatch<'b>,
    runs: &'b [Run],
}

impl<'b> Part<'b> {
    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.class.times.len()
    }

    /// Whether there are no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its class and times.
    #[must_use]
    pub fn class(&self) -> ClassBatch<'b> {
        self.class
    }

    pub(super) fn column(&self, column: usize) -> Column<'b> {
        match column < self.class.columns {
            true => self.batch.column(self.index, column),
            false => Column::Skipped,
        }
    }

    pub(super) fn bytes(&self) -> &'b [u8] {
        self.batch.bytes()
    }

    /// Runs of events by writer; empty if writers were not requested.
    #[must_use]
    pub fn runs(&self) -> &'b [(u32, Option<Writer>)] {
        self.runs
    }

    /// Whether the stream has the writer of each event.
    pub(super) fn knows_writers(&self) -> bool {
        self.batch.writers().first().is_some_and(|(from, _)| *from == 0)
    }

    pub(super) fn knows_cpu(&self) -> bool {
        self.batch.packet().cpu.is_some()
    }

    fn writer(&self, at: usize) -> Option<Writer> {
        let after = self.runs.partition_point(|(from, _)| *from as usize <= at);
        self.runs.get(after.checked_sub(1)?)?.1
    }

    /// One event with the requested columns; the others are 0. `slots` is scratch memory.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn event<'e>(&'e self, at: usize, slots: &'e mut Vec<Slot>) -> Event<'e> {
        slots.clear();
        let column = |column| self.column(column).slot(at).unwrap_or(Slot::Unsigned(0));
        slots.extend((0..self.class.columns).map(column));
        Event {
            stream: self.batch.stream(),
            stream_class_index: self.batch.stream_class(),
            stream_class: self.stream_class,
            class_index: self.class.class,
            class: &self.stream_class.event_classes[self.class.class as usize],
            ticks: self
                .stream_class
                .clock
                .and_then(|_| self.class.ticks.get(at))
                .map(|ticks| lateralis_units::Ticks(*ticks)),
            time: self.class.times[at],
            writer: self.writer(at),
            packet: self.batch.packet(),
            bytes: self.batch.bytes(),
            packet_slots: self.batch.packet_context().as_ref().map_or(&[], Fields::slots),
            slots,
        }
    }
}
