// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chosen events by columns, where only their times and writers are wanted.

use std::ops::ControlFlow;

use lateralis_analysis::filter::Context;
use lateralis_analysis::filter::columns::{
    Answer, Asking, Integers, Mask, Node, Part, Parts, Plan, Question, Ranges, Whole,
};
use lateralis_model::{
    ColumnBatch, ColumnRequest, Damage, EventClass, Interval, Look, Seen, Slot, Source,
    StreamClass, Want, Wanted,
};
use lateralis_script::expression::Piece;
use lateralis_units::Nanos;

use super::Selection;

/// What chooses events of one class.
struct Chooser {
    filter: Option<Plan<Question>>,
    scripts: Vec<Plan<Piece>>,
    /// Whether somebody wants to see the chosen ones whole.
    is_whole: bool,
}

impl Chooser {
    fn want(&self) -> Want {
        let filter = self.filter.iter().map(Plan::want);
        let wants = filter.chain(self.scripts.iter().map(Plan::want));
        let first = if self.is_whole { Want::All } else { Want::Times };
        wants.fold(first, |all, want| match (all, want) {
            (_, Want::Count) | (Want::Count, _) => Want::Count,
            (Want::All, _) | (_, Want::All) => Want::All,
            (Want::Times, other) | (other, Want::Times) => other,
            (Want::Columns(mut all), Want::Columns(more)) => {
                all.resize(all.len().max(more.len()), false);
                all.iter_mut().zip(more).for_each(|(wanted, more)| *wanted |= more);
                Want::Columns(all)
            }
        })
    }

    fn needs_writers(&self) -> bool {
        let filter = self.filter.as_ref().is_some_and(Plan::needs_writers);
        filter || !self.scripts.is_empty()
    }
}

impl Selection<'_> {
    /// Shows the chosen events as [`Source::survey`] does, by columns where the format has
    /// them. Returns the damage found on the way.
    ///
    /// Cost: only what decides is decoded; nothing of classes that cannot be chosen.
    pub fn survey(
        &self,
        source: &dyn Source,
        look: &dyn Fn(u32, u32) -> Look,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Vec<Damage> {
        if self.is_everything() && self.interval == Interval::default() {
            return source.survey(look, see);
        }
        let has_engine = self.scripts.borrow().all.iter().any(|script| !script.is_compiled());
        if has_engine || self.page.is_some() {
            return self.survey_in_order(source, see);
        }
        let trace = source.trace();
        let mut wanted = Wanted::counts(trace);
        let mut choosers: Vec<Vec<Option<Chooser>>> = Vec::new();
        for (stream_index, stream) in (0..).zip(&trace.stream_classes) {
            let mut of_stream = Vec::new();
            for (index, class) in (0..).zip(&stream.event_classes) {
                let chooser = self.chooser(stream_index, index, stream, class);
                let is_whole = look(stream_index, index) == Look::Whole;
                let chooser = chooser.map(|c| Chooser { is_whole, ..c });
                if let Some(chooser) = &chooser {
                    wanted = wanted.with(stream_index, index, chooser.want());
                }
                of_stream.push(chooser);
            }
            choosers.push(of_stream);
        }
        let parts: Vec<usize> = (0..source.parts().len()).collect();
        let request = ColumnRequest { parts: &parts, interval: self.interval, wanted: &wanted };
        let context = Context { names: self.names, streams: self.streams };
        let mut room = Room::new(&context, self.interval);
        source.columns(&request, &mut |batch| {
            let index = batch.stream_class() as usize;
            if let (Some(stream), Some(of)) = (trace.stream_classes.get(index), choosers.get(index))
            {
                self.batch(batch, stream, of, &mut room, see);
            }
            match self.has_failed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    }

    /// A script that runs in the engine may remember events, and a filter of the page counts them: they see
    /// them in the order of time, each once.
    fn survey_in_order(&self, source: &dyn Source, see: &mut dyn FnMut(Seen<'_>)) -> Vec<Damage> {
        let mut events = source.events_in(self.interval);
        while !self.has_failed()
            && let Some(event) = events.next_event()
        {
            if self.contains(&event) {
                see(Seen::Event(&event));
            }
        }
        events.damage()
    }

    fn chooser(
        &self,
        stream_index: u32,
        index: u32,
        stream: &StreamClass,
        class: &EventClass,
    ) -> Option<Chooser> {
        if !*self.chosen.get(stream_index as usize)?.get(index as usize)? {
            return None;
        }
        let filter = self.filter.as_ref().map(|filter| filter.plan(stream, class));
        let filter = filter.filter(|plan| plan.constant() != Some(Answer::Yes));
        let scripts: Vec<Plan<Piece>> =
            self.scripts.borrow().all.iter().map(|script| script.plan(stream, class)).collect();
        let never = |plan: &Plan<Piece>| plan.constant() == Some(Answer::No);
        // A script before one that keeps nothing may still fail.
        let is_nothing = scripts.first().is_some_and(never);
        (!is_nothing).then_some(Chooser { filter, scripts, is_whole: false })
    }

    fn batch(
        &self,
        batch: &dyn ColumnBatch,
        stream: &StreamClass,
        choosers: &[Option<Chooser>],
        room: &mut Room<'_>,
        see: &mut dyn FnMut(Seen<'_>),
    ) {
        let chooser = |class: u32| choosers.get(class as usize)?.as_ref();
        let classes = || (0..batch.class_count()).map(|index| batch.class(index).class);
        let tells_writers = !batch.writers().is_empty();
        let with_writers =
            tells_writers || classes().filter_map(chooser).any(Chooser::needs_writers);
        let parts = Parts::new(batch, stream, with_writers);
        for index in 0..parts.len() {
            let part = parts.part(index);
            let Some(chooser) = chooser(part.class().class) else { continue };
            room.choose(chooser, &part);
            let asked = room.mask.asked().to_vec();
            for event in asked {
                if self.contains(&part.event(event as usize, &mut room.slots)) {
                    room.mask.insert(event as usize);
                }
            }
            room.show(batch, &part, chooser.is_whole, see);
        }
        for index in 0..batch.row_count() {
            let event = batch.row(index);
            if contains(self.interval, event.time) && self.contains(&event) {
                see(Seen::Event(&event));
            }
        }
    }
}

pub(super) fn contains(interval: Interval, time: Nanos) -> bool {
    interval.begin.is_none_or(|begin| begin <= time) && interval.end.is_none_or(|end| time <= end)
}

/// What is reused from batch to batch.
struct Room<'a> {
    asking: Asking<'a>,
    /// Whether an event is of the time that is chosen.
    within: Option<Plan<Question>>,
    mask: Mask,
    other: Mask,
    times: Vec<Nanos>,
    slots: Vec<Slot>,
}

impl<'a> Room<'a> {
    fn new(context: &'a Context<'a>, interval: Interval) -> Self {
        let (begin, end) = (interval.begin, interval.end);
        let low = begin.map_or(i64::MIN, |begin| begin.0);
        let high = end.map_or(i64::MAX, |end| end.0);
        let within = Ranges::of(true, [(low.into(), high.into())]);
        let is_open = interval == Interval::default();
        Self {
            asking: Asking::new(context),
            within: (!is_open)
                .then(|| Plan::new(Node::Integers(Whole::Time, Integers::of(&within)))),
            mask: Mask::default(),
            other: Mask::default(),
            times: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// Replaces the mask by the events that all choose.
    fn choose(&mut self, chooser: &Chooser, part: &Part<'_>) {
        let Self { asking, within, mask, other, .. } = self;
        mask.fill(part.len(), true);
        if let Some(within) = within {
            within.select(part, asking, mask);
        }
        if let Some(filter) = &chooser.filter {
            filter.select(part, asking, other);
            mask.intersect(other);
        }
        for script in &chooser.scripts {
            script.select(part, asking, other);
            mask.intersect(other);
        }
    }

    fn show(
        &mut self,
        batch: &dyn ColumnBatch,
        part: &Part<'_>,
        is_whole: bool,
        see: &mut dyn FnMut(Seen<'_>),
    ) {
        if is_whole {
            for event in self.mask.iter() {
                see(Seen::Event(&part.event(event, &mut self.slots)));
            }
            return;
        }
        let (stream, stream_class) = (batch.stream(), batch.stream_class());
        let class = part.class().class;
        self.mask.keep(part.class().times, &mut self.times);
        if self.times.is_empty() {
            return;
        }
        see(Seen::Times { stream, stream_class, class, times: &self.times });
        let runs = part.runs();
        for (index, (from, writer)) in runs.iter().enumerate() {
            let end = runs.get(index + 1).map_or(part.len(), |(next, _)| *next as usize);
            let count = self.mask.count_in(*from as usize..end) as u64;
            if let (Some(writer), 1..) = (*writer, count) {
                see(Seen::Written { stream_class, class, writer, count });
            }
        }
    }
}
