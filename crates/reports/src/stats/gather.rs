// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `lat stats` says, before it is said: one pass over the events.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use lateralis_analysis::{
    Distribution, Ended, Gaps, LossTotal, Side, SpanInRun, Tally, ThreadEdge, total_by_stream,
};
use lateralis_model::{
    ColumnBatch, Damage, Interval, Look, Quality, Seen, Source, StreamIndex, Trace,
};
use lateralis_pleco::schema::Statistic;
use lateralis_semantics::kernel::KernelEvents;
use lateralis_semantics::{
    ClockErrors, Contradiction, DerivedFlow, DerivedSink, DerivedSpan, Deriver, Extent, Known,
    ThreadStateInterval,
};
use lateralis_store::facts::{At, Edges, Fact, Facts, Kinds, Owner, Sink, Visited};
use lateralis_store::{Counted, Recording, last_seen};
use lateralis_units::Nanos;
use serde_json::{Value, json};

use super::counted;
use super::document::{self, Member, Members};
use super::kernel::KernelTotals;
use super::left_out;
use super::levels::Levels;
use super::mark::Trust;
use super::messages::Messages;
use super::page::Who;
use super::rates::Rates;
use super::running::{BUCKETS, Running};
use super::sections::Asked;
use super::spans::Spans;
use crate::beyond;
use crate::selection::Selection;
use crate::values;

/// Events of which one is checked whether the result is still wanted.
const CHECK_EVERY: u32 = 4096;

/// One promise of a schema.
pub struct BudgetCheck {
    /// As the schema says it: `held p99 < 50 us`.
    pub text: String,
    /// What was measured, in nanoseconds; `None` if nothing was.
    pub measured_ns: Option<Measured>,
    /// How far that can be trusted.
    pub measured_quality: Quality,
    /// Whether it was kept by what was measured; `None` if nothing was, or the limit is in
    /// cycles of a clock that the trace does not have.
    pub kept: Option<bool>,
    /// How far this can be trusted.
    pub quality: Quality,
}

/// A number that a budget is about, in nanoseconds.
#[derive(Clone, Copy, PartialEq)]
pub enum Measured {
    /// A duration that occurred.
    Whole(u64),
    /// A mean, with its fraction.
    Mean(f64),
}

impl Measured {
    fn of(durations: &Distribution, statistic: Statistic) -> Self {
        Self::Whole(match statistic {
            Statistic::Mean => return Self::Mean(durations.mean),
            Statistic::P50 => durations.median,
            Statistic::P90 => durations.p90,
            Statistic::P99 => durations.p99,
            Statistic::P999 => durations.p999,
            Statistic::Max => durations.max,
            Statistic::Min => durations.min,
        })
    }

    fn nanos(self) -> f64 {
        match self {
            Self::Whole(nanos) => nanos as f64,
            Self::Mean(nanos) => nanos,
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Whole(nanos) => nanos.into(),
            Self::Mean(nanos) => nanos.into(),
        }
    }

    /// In the unit that leaves three digits.
    pub fn text(self) -> String {
        match self {
            Self::Whole(nanos) => values::time(nanos),
            Self::Mean(nanos) => values::mean_time(nanos),
        }
    }
}

/// Everything `lat stats` says.
pub struct Statistics {
    /// Counts and rates.
    pub rates: Rates,
    /// Durations of spans.
    pub spans: Spans,
    /// Who had the processors.
    pub running: Running,
    /// Messages.
    pub messages: Messages,
    /// States and counters.
    pub levels: Levels,
    /// What the kernel did for threads and with devices, and the events that say so.
    pub kernel: KernelTotals,
    /// Those events.
    pub kernel_events: KernelEvents,
    /// Utilisation that the system has counted itself.
    pub counted: Option<Counted>,
    /// What the events meant.
    pub facts: Facts,
    /// Losses by stream and cause.
    pub losses: Vec<LossTotal>,
    /// Promises of the schemas.
    pub budgets: Vec<BudgetCheck>,
    /// What cannot be read.
    pub damage: Vec<Damage>,
    /// Events whose times may be beyond the timeline.
    pub times_beyond: u64,
    /// Where events are missing.
    pub gaps: Gaps,
    /// How far numbers of the whole can be trusted.
    pub trust: Trust,
    /// Whether the trace has events before the time that was chosen.
    is_cut: bool,
    /// When the first event happened.
    begin: Nanos,
    /// From the beginning to the end of what was chosen.
    extent: Extent,
    asked: Asked,
}

impl Statistics {
    /// Reads the chosen events, in the order of time if they mean anything, and computes what is
    /// asked.
    ///
    /// Cost: one pass, and another where it finds damage that opening did not: only then
    /// is it known which numbers to trust. Memory: by classes, threads and open spans, and
    /// eight bytes for each span and message, as long as they are not too many to keep.
    pub fn of(recording: &Recording, selection: &Selection<'_>, asked: Asked) -> Self {
        let known = recording.gaps(recording.source.damage());
        let (mut statistics, inside) = Self::pass(recording, selection, known, asked);
        if !inside.is_empty() {
            let all = recording.all_damage(inside);
            statistics = Self::pass(recording, selection, recording.gaps(&all), asked).0;
            statistics.damage = all;
        } else {
            statistics.damage = recording.all_damage(inside);
        }
        let total = &statistics.rates.total;
        statistics.times_beyond = beyond::count(recording, total.first, total.last);
        // Of events that are chosen, the ends of spans may be left out; of recordings whose clocks are
        // not related, they may be in another one.
        let open = statistics.spans.processes_with_open_spans();
        let (_, is_unrelated) = recording.clock_errors().most();
        let total = &statistics.rates.total;
        if let (Some(first), Some(last)) = (total.first, total.last)
            && !open.is_empty()
            && selection.is_everything()
            && !is_unrelated
        {
            let seen = last_seen(recording, &open, (first, last));
            statistics.spans.see_open(statistics.facts.kinds(), &statistics.gaps, &seen);
        }
        statistics.check_budgets(recording);
        statistics.counted = Counted::of(&recording.source);
        statistics
    }

    fn pass(
        recording: &Recording,
        selection: &Selection<'_>,
        gaps: Gaps,
        asked: Asked,
    ) -> (Self, Vec<Damage>) {
        selection.begin_pass();
        let source = &recording.source;
        let trace = recording.annotated();
        let kernel = || KernelEvents::new(&trace, asked.kernel, recording.successions());
        let facts = Facts::new(&trace, &recording.streams);
        let has_meaning = facts.has_meaning() || kernel().has_any();
        let chosen = selection.interval();
        // Where the trace does not tell when it begins, its first event does.
        let known = chosen.begin.or(source.interval().begin);
        let all_times = chosen == Interval::default();
        let is_whole = all_times && selection.is_everything();
        if let Some(begin) = known.filter(|_| all_times && !has_meaning) {
            let mut statistics =
                Self::new(recording, facts, KernelEvents::default(), gaps, chosen, begin, asked);
            let inside = statistics.survey(recording, selection);
            statistics.set_extent(chosen.end);
            return (statistics, inside);
        }
        let mut events = source.events_in(chosen);
        let first = events.advance();
        let begin = if first { events.time() } else { known.unwrap_or_default() };
        if is_whole && facts.has_columns(source) {
            drop(events);
            return Self::by_columns(recording, (&*trace, selection), facts, gaps, begin, asked);
        }
        let mut statistics = Self::new(recording, facts, kernel(), gaps, chosen, begin, asked);
        let mut deriver = statistics.deriver(recording, chosen.end);
        let mut end = begin;
        let mut more = first;
        let mut until_check = CHECK_EVERY;
        while more {
            until_check -= 1;
            if until_check == 0 {
                until_check = CHECK_EVERY;
                if selection.is_cancelled() {
                    break;
                }
            }
            let event = events.event();
            end = end.max(event.time);
            statistics.event(&mut deriver, &event, selection.contains(&event));
            more = events.advance();
        }
        let end = chosen.end.map_or(end, |chosen| chosen.min(end));
        statistics.finish(&mut deriver, end);
        statistics.set_extent(chosen.end);
        let inside = events.damage();
        drop(events);
        (statistics, inside)
    }

    fn new(
        recording: &Recording,
        facts: Facts,
        kernel_events: KernelEvents,
        gaps: Gaps,
        chosen: Interval,
        begin: Nanos,
        asked: Asked,
    ) -> Self {
        let kinds = facts.kinds();
        let alone = facts.alone_streams(&recording.streams);
        Self {
            rates: Rates::new(&recording.annotated(), begin),
            spans: Spans::new(kinds, recording, asked),
            running: Running::new(&facts, begin, &gaps, alone),
            messages: Messages::new(kinds, recording.is_cut(chosen)),
            levels: Levels::new(begin),
            kernel: KernelTotals::new(gaps.clone(), recording.source.trace()),
            kernel_events,
            facts,
            losses: total_by_stream(recording.source.losses()),
            budgets: Vec::new(),
            counted: None,
            damage: Vec::new(),
            times_beyond: 0,
            trust: Trust::new(&gaps, chosen),
            is_cut: recording.is_cut(chosen).0,
            gaps,
            begin,
            extent: Extent::default(),
            asked,
        }
    }

    /// Who tells what events say together, up to `end` at most.
    fn deriver(&self, recording: &Recording, end: Option<Nanos>) -> Deriver<()> {
        let known = Known {
            window: Some((self.begin, end.unwrap_or(Nanos(i64::MAX)))),
            is_cut: self.is_cut,
            gaps: self.gaps.clone(),
            clock_errors: recording.clock_errors(),
            successions: recording.successions(),
            has_own: true,
            follows_threads: self
                .asked
                .running
                .then(|| self.facts.alone_streams(&recording.streams)),
            sum_buckets: self.asked.running.then_some(BUCKETS),
        };
        Deriver::new(&self.facts, known)
    }

    /// All events have been counted, of this time at most.
    fn set_extent(&mut self, chosen_end: Option<Nanos>) {
        let total = &self.rates.total;
        if let (Some(first), Some(last)) = (total.first, total.last) {
            self.extent.add_events(first, last);
        }
        self.extent = self.extent.until(chosen_end);
        self.rates.finish(&self.extent);
    }

    /// The last event happened then.
    fn finish(&mut self, deriver: &mut Deriver<()>, last: Nanos) {
        let end = deriver.ended(Some(last)).unwrap_or(last);
        let facts = std::mem::take(&mut self.facts);
        deriver.finish(facts.kinds(), Some(end), self);
        self.facts = facts;
        let Self { kernel, kernel_events, .. } = self;
        kernel_events.finish(Some(end), &mut |activity| kernel.add(activity));
        self.spans.finish(self.facts.kinds(), deriver);
        self.running.finish(end, deriver.take_schedule());
        self.levels.finish(end);
    }

    /// Without meanings the order of time says nothing, nor do fields.
    fn survey(&mut self, recording: &Recording, selection: &Selection<'_>) -> Vec<Damage> {
        let rates = &mut self.rates;
        let cpu =
            |stream: StreamIndex| recording.streams.get(stream.0 as usize)?.cpu.map(|cpu| cpu.0);
        let look = if self.asked.events { Look::Times } else { Look::Ends };
        selection.survey(&recording.source, &|_, _| look, &mut |seen| match seen {
            Seen::Event(event) => {
                let cpu = event.packet.cpu.map(|cpu| cpu.0).or_else(|| cpu(event.stream));
                rates.add(event.stream_class_index, event.class_index, cpu, event.time);
            }
            Seen::Times { stream, stream_class, class, times } => {
                rates.add_all(stream_class, class, cpu(stream), times);
            }
            Seen::Ends { stream_class, class, count, first, last, .. } => {
                rates.count_own(stream_class, class, count);
                rates.total.merge(&Tally { count, first: Some(first), last: Some(last) });
            }
            Seen::Written { .. } => {}
        })
    }

    /// All events of a trace that has columns. Runs say nothing of how many spans are open, and
    /// are no help where events are missing.
    fn by_columns(
        recording: &Recording,
        (trace, selection): (&Trace, &Selection<'_>),
        facts: Facts,
        gaps: Gaps,
        begin: Nanos,
        asked: Asked,
    ) -> (Self, Vec<Damage>) {
        let has_runs = !asked.in_flight
            && gaps.is_empty()
            && facts.has_runs()
            && !facts.kinds().has_filtered_spans();
        let edges = match (has_runs, asked.events) {
            (false, _) => Edges::Each,
            (true, true) => Edges::InRuns,
            (true, false) => Edges::InOrder,
        };
        let new = |mut facts: Facts| {
            let kernel = KernelEvents::new(trace, asked.kernel, recording.successions());
            facts.keep(|stream_class, class| kernel.wants(stream_class, class));
            Self::new(recording, facts, kernel, gaps.clone(), Interval::default(), begin, asked)
        };
        let mut statistics = new(facts);
        if let Some(inside) = statistics.visit(recording, (trace, selection), edges) {
            return (statistics, inside);
        }
        let mut statistics = new(Facts::new(trace, &recording.streams));
        let inside =
            statistics.visit(recording, (trace, selection), Edges::Each).unwrap_or_default();
        (statistics, inside)
    }

    /// `None` if that does not work with runs.
    fn visit(
        &mut self,
        recording: &Recording,
        (trace, selection): (&Trace, &Selection<'_>),
        edges: Edges,
    ) -> Option<Vec<Damage>> {
        let (begin, asked) = (self.begin, self.asked);
        let rates = std::mem::replace(&mut self.rates, Rates::new(trace, begin));
        let rates = Mutex::new(rates);
        let see = |batch: &dyn ColumnBatch, cpu: Option<u32>| {
            let mut rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
            if !asked.events {
                let stream_class = batch.stream_class();
                batch.counts(&mut |class, count| rates.count_own(stream_class, class, count));
            }
            let go_on = match selection.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            if let Some(times) = batch.times_in_order() {
                rates.count_all(times);
                return go_on;
            }
            for class in (0..batch.class_count()).map(|index| batch.class(index)) {
                match asked.events {
                    true => rates.add_all(batch.stream_class(), class.class, cpu, class.times),
                    false => rates.count_all(class.times),
                }
            }
            for event in (0..batch.row_count()).map(|index| batch.row(index)) {
                match asked.events {
                    true => rates.add(event.stream_class_index, event.class_index, cpu, event.time),
                    false => rates.count_all(&[event.time]),
                }
            }
            go_on
        };
        let mut facts = std::mem::take(&mut self.facts);
        self.facts = facts;
        let mut deriver = self.deriver(recording, None);
        facts = std::mem::take(&mut self.facts);
        let gathering = &mut Gathering { deriver: &mut deriver, statistics: self };
        let visited = facts.visit_columns(&recording.source, trace, &see, gathering, edges);
        self.facts = facts;
        self.rates = rates.into_inner().unwrap_or_else(PoisonError::into_inner);
        let end = self.rates.total.last.map_or(begin, |last| last.max(begin));
        self.finish(&mut deriver, end);
        self.set_extent(None);
        match visited {
            Visited::Whole(inside) if !deriver.is_disordered() => Some(inside),
            Visited::Whole(_) | Visited::Disordered => None,
        }
    }

    /// Who runs is known from events that are not chosen, too.
    fn event(
        &mut self,
        deriver: &mut Deriver<()>,
        event: &lateralis_model::Event<'_>,
        is_chosen: bool,
    ) {
        let mut facts = std::mem::take(&mut self.facts);
        let at = facts.tell(event, |kinds, at, fact| {
            if is_chosen || matches!(fact, Fact::Belongs { .. }) {
                Gathering { deriver, statistics: self }.fact_of(kinds, at, fact);
            } else {
                deriver.see_unchosen(at, &fact);
            }
        });
        self.facts = facts;
        if is_chosen {
            self.kernel_event(deriver, event, &at);
            self.rates.add(event.stream_class_index, event.class_index, at.cpu, at.time);
            if let Some(cpu) = at.cpu {
                deriver.appears(cpu, at.time);
            }
        }
    }

    /// What the kernel did, from the event classes that say so.
    #[inline]
    fn kernel_event(&mut self, deriver: &Deriver<()>, event: &lateralis_model::Event<'_>, at: &At) {
        let Self { kernel, kernel_events, .. } = self;
        if !kernel_events.wants(event.stream_class_index, event.class_index) {
            return;
        }
        let writer = at.writer.filter(|_| !deriver.is_in_doubt(at));
        kernel_events.event(event, &At { writer, ..*at }, &mut |activity| kernel.add(activity));
    }

    fn check_budgets(&mut self, recording: &Recording) {
        let hertz = recording.source.trace().clocks.first().map(|clock| clock.frequency());
        for schema in recording.meanings.schemas() {
            for budget in &schema.budgets {
                let durations = self.spans.distribution(self.facts.kinds(), &budget.span);
                let longest =
                    self.spans.longest_of(self.facts.kinds(), &budget.span, self.trust.sum);
                // Those that have not ended can be the longest of all.
                let between = is_rank(budget.statistic)
                    .then(|| self.spans.censored_of(self.facts.kinds(), &budget.span))
                    .flatten()
                    .map(|of| [of.least, of.most].map(|d| Measured::of(&d, budget.statistic)));
                let measured = match (budget.statistic, between) {
                    (Statistic::Max, _) => longest.map(|(nanos, _)| Measured::Whole(nanos)),
                    (_, Some([least, _])) => Some(least),
                    _ => durations.map(|d| Measured::of(&d, budget.statistic)),
                };
                let rough = durations.is_some_and(|d| d.is_rough && is_rank(budget.statistic));
                let cycles = || Some(budget.limit_cycles()? * 1e9 / hertz? as f64);
                let limit = budget.limit_ns().or_else(cycles);
                let nanos = measured.map(Measured::nanos);
                let kept = nanos.zip(limit).map(|(measured, limit)| {
                    if budget.is_inclusive { measured <= limit } else { measured < limit }
                });
                let sign = if budget.is_inclusive { "<=" } else { "<" };
                let trust = self.trust;
                let rough = if rough { Quality::LowerBound } else { Quality::Exact };
                let error = self.spans.clock_error(self.facts.kinds(), &budget.span);
                let whole = nanos.unwrap_or(0.0) as u64;
                let by_clocks = ClockErrors::quality(error, whole, Quality::Exact);
                let measured_quality = match budget.statistic {
                    // That nothing was measured is certain only where there was nothing.
                    _ if measured.is_none()
                        && self.spans.has_halves(self.facts.kinds(), &budget.span) =>
                    {
                        Quality::Unknown
                    }
                    Statistic::Max => longest.map_or(trust.sum, |(_, quality)| quality),
                    _ if between.is_some_and(|[least, most]| least != most) => {
                        trust.value.and(Quality::LowerBound)
                    }
                    _ => trust.value.and(rough),
                };
                let measured_quality = measured_quality.and(by_clocks);
                // By two clocks it is as certain as the limit is far from what was measured.
                let is_near = nanos.zip(limit).is_some_and(|(measured, limit)| {
                    error.is_none_or(|error| error > 0 && (measured - limit).abs() <= error as f64)
                });
                // However long those last that have not ended.
                let is_kept_anyway = between
                    .map(|[_, most]| most)
                    .zip(limit)
                    .is_some_and(|(most, limit)| most.nanos() < limit);
                // What is too long already does not get shorter.
                let quality = match measured_quality {
                    _ if is_near => Quality::Unknown,
                    Quality::LowerBound if is_kept_anyway => trust.value,
                    Quality::LowerBound if kept == Some(false) => Quality::Exact,
                    Quality::LowerBound => Quality::Unknown,
                    other => other,
                };
                let text = format!(
                    "{} {} {sign} {} {}",
                    budget.span,
                    budget.statistic.word(),
                    budget.limit_text(),
                    budget.unit.word()
                );
                // Of recordings that share a time line each may have the schema.
                if self.budgets.iter().any(|before| before.text == text) {
                    continue;
                }
                self.budgets.push(BudgetCheck {
                    text,
                    measured_ns: measured,
                    measured_quality,
                    kept,
                    quality,
                });
            }
        }
    }

    /// The same as JSON; times in nanoseconds.
    pub fn members<'a>(&'a self, recording: &'a Recording) -> Members<'a> {
        let Self { trust, gaps, .. } = self;
        let (over, kinds) = (self.rates.span_nanos(), self.facts.kinds());
        let of_all = self.rates.trust(None, *trust);
        let who = Who { threads: self.facts.threads(), names: &recording.names };
        let mut all = document::members(json!({
            "trace": recording.path.display().to_string(),
            "events_total": self.rates.total.count,
            "first_ns": self.rates.total.first.map(|time| time.0),
            "times_beyond": self.times_beyond,
            "duration_ns": over,
            "quality": { "sums": of_all.sum.name(), "values": of_all.value.name() },
            "events": self.rates.json(*trust, gaps),
            "events_by_cpu": self.rates.cpus_json(*trust, gaps),
            "messages": self.messages.json(kinds, *trust, who),
            "counted": counted::to_json(self.counted.as_ref()),
            "losses": self.losses.iter().map(|loss| loss_json(loss, recording)).collect::<Vec<_>>(),
            "budgets": self.budgets.iter().map(budget_json).collect::<Vec<_>>(),
            "faults": recording.source.faults(),
            "damage": self.damage.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "left_out": left_out::to_json(self),
        }));
        let lists = [
            ("spans", Member::rows(self.spans.json(kinds, *trust, who))),
            ("states", Member::rows(self.levels.states_json(kinds, *trust, who))),
            ("counters", Member::rows(self.levels.counters_json(kinds, *trust, who))),
        ];
        let of_kernel = self.kernel.json(&self.kernel_events, *trust, who);
        let running = self.running.json(*trust, who, over).into_iter().flatten();
        let lists = lists.into_iter().chain(of_kernel).chain(running);
        all.extend(lists.map(|(name, member)| (name.to_owned(), member)));
        all
    }
}

/// Statistics with who derives what they are of.
struct Gathering<'a> {
    deriver: &'a mut Deriver<()>,
    statistics: &'a mut Statistics,
}

impl Sink for Gathering<'_> {
    #[inline]
    fn fact_of(&mut self, kinds: &Kinds, at: &At, fact: Fact) {
        let asked = self.statistics.asked;
        let is_asked = match fact {
            Fact::Send { .. } | Fact::Receive { .. } => asked.messages,
            Fact::State { .. } | Fact::Level { .. } => asked.levels,
            Fact::Switch { .. } | Fact::Wake { .. } => asked.running,
            _ => true,
        };
        if is_asked {
            self.deriver.fact(kinds, at, fact, self.statistics);
        } else {
            self.deriver.see_unchosen(at, &fact);
        }
    }

    fn appears(&mut self, cpu: u32, time: Nanos) {
        self.deriver.appears(cpu, time);
    }

    fn kept(&mut self, event: &lateralis_model::Event<'_>, at: &At) {
        self.statistics.kernel_event(self.deriver, event, at);
    }

    /// Comes only where nothing is missing, so that nobody is in doubt.
    fn run(&mut self, kinds: &Kinds, at: &At, edges: &[ThreadEdge]) {
        self.deriver.run(kinds, at, edges, self.statistics);
        if self.statistics.asked.running {
            for &ThreadEdge { time, kind, side } in edges {
                self.statistics.running.span(kind, side, at, time);
            }
        }
    }
}

impl DerivedSink for Statistics {
    type Event = ();

    #[inline]
    fn event(&mut self, _: &Kinds, at: &At, fact: &Fact) {
        let (span, side) = match *fact {
            Fact::Begin { span, .. } => (span, Side::Begin),
            Fact::End { span, .. } => (span, Side::End),
            _ => return,
        };
        if self.asked.running {
            self.running.span(span, side, at, at.time);
        }
    }

    #[inline]
    fn span_begins(&mut self, kind: u32, is_keyless: bool) {
        self.spans.begins(kind, is_keyless);
    }

    fn span(&mut self, _: &Kinds, span: &DerivedSpan) {
        self.extent.add_span(span);
        self.spans.span(span);
    }

    #[inline]
    fn span_in_run(&mut self, span: &SpanInRun) {
        self.spans.span_in_run(span);
    }

    fn whole_ended(&mut self, ended: &Ended, is_certain: bool) {
        self.spans.whole_ended(ended, is_certain);
    }

    fn flow(&mut self, _: &Kinds, channel: u32, flow: &DerivedFlow) {
        self.messages.flow(channel, flow);
    }

    fn state_reported(&mut self, place: (u32, Owner), time: Nanos, state: u32, is_whole: bool) {
        self.levels.state(place, time, state, is_whole);
    }

    fn state_ends(&mut self, place: (u32, Owner), time: Nanos, is_whole: bool) {
        self.levels.state_ends(place, time, is_whole);
    }

    #[inline]
    fn thread_state(&mut self, _: &Kinds, interval: &ThreadStateInterval) {
        self.running.thread_state(interval);
    }

    fn contradiction(&mut self, contradiction: &Contradiction) {
        self.running.contradiction(contradiction);
    }

    fn fact(&mut self, kinds: &Kinds, at: &At, fact: &Fact) {
        match *fact {
            Fact::Level { counter, value } => self.levels.level(kinds, at, counter, value),
            Fact::Switch { to, .. } => {
                if let Some(cpu) = at.cpu {
                    self.running.switch(cpu, at, to);
                }
            }
            Fact::Wake { tid, is_whole, .. } if tid != 0 => self.running.wake(is_whole),
            _ => {}
        }
    }
}

fn loss_json(total: &LossTotal, recording: &Recording) -> Value {
    let stream = total.stream.and_then(|index| recording.streams.get(index.0 as usize));
    json!({
        "stream": stream.map(|stream| stream.name.as_str()),
        "cause": total.cause.name(),
        "count": total.count,
        "is_lower_bound": total.is_lower_bound,
        "from_ns": total.interval.begin.map(|time| time.0),
        "to_ns": total.interval.end.map(|time| time.0),
    })
}

fn budget_json(budget: &BudgetCheck) -> Value {
    json!({
        "budget": budget.text,
        "measured_ns": budget.measured_ns.map(Measured::json),
        "measured_quality": budget.measured_quality.name(),
        "kept": budget.kept,
        "quality": budget.quality.name(),
    })
}

fn is_rank(statistic: Statistic) -> bool {
    matches!(statistic, Statistic::P50 | Statistic::P90 | Statistic::P99 | Statistic::P999)
}
