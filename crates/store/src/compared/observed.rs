// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measurements of one recording, keyed by name, for comparison: durations, latencies, counts, CPU time.

use std::collections::{BTreeMap, HashMap};

use lateralis_analysis::diff::{Counted, Run};
use lateralis_analysis::{Ended, Joined};
use lateralis_model::{Damage, Event, Quality};
use lateralis_semantics::{CpuInterval, DerivedFlow, DerivedSink, DerivedSpan, Extent, SpanStatus};
use lateralis_units::Nanos;

use super::buckets::Buckets;
use crate::chosen::Chosen;
use crate::facts::{Fact, Facts, Kind, Kinds};

/// Largest number of key classes of a span that are compared individually; the rest is combined.
const MAX_KEY_CLASSES: usize = 64;

/// Kind of measurement of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Of {
    /// Self time of a span; the whole duration if the span has a key, since such spans belong to an
    /// object rather than a thread.
    Own,
    /// Whole duration of a span that has others inside.
    Whole,
    /// Latency of messages.
    Message,
    /// Number of events of a class.
    Count,
    /// Running time of threads with this name.
    Cpu,
}

impl Of {
    /// Name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "span",
            Self::Whole => "whole span",
            Self::Message => "message",
            Self::Count => "events",
            Self::Cpu => "cpu time",
        }
    }
}

/// Durations or latencies of one name.
#[derive(Debug, Default)]
struct Times {
    nanos: Vec<u64>,
    /// Number of values left out because losses or damage affect them.
    touched: u64,
}

/// Measurements of one recording.
#[derive(Debug, Default, PartialEq)]
pub struct Observed {
    /// Durations by kind and name.
    pub durations: BTreeMap<(Of, String), Run>,
    /// Counts by kind and name.
    pub counts: BTreeMap<(Of, String), Counted>,
    /// Number of lost events; `u64::MAX` if unknown.
    pub lost: u64,
    /// Number of recorded events.
    pub events: u64,
    /// Length of the recording in seconds.
    pub seconds: f64,
}

#[derive(Default)]
struct Gathering {
    /// Time of the first selected event.
    begin: Nanos,
    /// Extent of the selection.
    extent: Extent,
    times: HashMap<(Of, u32, u64), Times>,
    key_classes: HashMap<u32, HashMap<u64, String>>,
    ran: HashMap<u32, Buckets>,
}

impl Observed {
    /// Measures the selected events of a recording.
    ///
    /// Cost: one pass in time order, and another one if it finds damage that opening did not: only then
    /// is it known which values are affected. Memory: eight bytes for each span and message.
    #[must_use]
    pub fn of(chosen: &Chosen<'_>) -> Self {
        let known = chosen.source.damage().to_vec();
        let (observed, inside) = Self::pass(chosen, &known);
        if inside.is_empty() {
            return observed;
        }
        let all: Vec<Damage> = known.into_iter().chain(inside).collect();
        Self::pass(chosen, &all).0
    }

    fn pass(chosen: &Chosen<'_>, damage: &[Damage]) -> (Self, Vec<Damage>) {
        let mut facts = chosen.facts();
        let (begin, end) = chosen.ends();
        let is_lossy = chosen.gaps(damage).touch(begin, end);
        let mut deriver = chosen.deriver(&facts, damage, true);
        let mut gathering = Gathering::default();
        let mut counts: Vec<Vec<Buckets>> = chosen
            .trace
            .stream_classes
            .iter()
            .map(|class| vec![Buckets::of_events(); class.event_classes.len()])
            .collect();
        let mut all = 0_u64;
        let mut events = chosen.events();
        while let Some(event) = events.next_event() {
            let is_chosen = (chosen.contains)(&event);
            gathering.begin = gathering.extent.begin().unwrap_or(event.time);
            facts.tell(&event, |kinds, at, fact| {
                // Events that are not selected still map threads to processes.
                if is_chosen || matches!(fact, Fact::Belongs { .. }) {
                    deriver.fact(kinds, at, fact, &mut gathering);
                } else {
                    deriver.see_unchosen(at, &fact);
                }
            });
            if is_chosen {
                gathering.extent.add_events(event.time, event.time);
                count(&mut counts, &event, all);
                all += 1;
            }
        }
        let extent = gathering.extent.until(chosen.interval.end);
        deriver.finish(facts.kinds(), extent.end(), &mut gathering);
        let inside = events.damage();
        let seconds = extent.nanos() as f64 / 1e9;
        let lost = match (is_lossy, damage.is_empty()) {
            (false, _) => 0,
            (true, true) => chosen.lost_count(),
            (true, false) => u64::MAX,
        };
        let mut observed = Self {
            lost,
            events: all,
            seconds: if all > 0 { seconds } else { 0.0 },
            ..Self::default()
        };
        observed.add_counts(&chosen.trace, counts);
        observed.add_threads(gathering.ran, &facts);
        observed.add_durations(gathering.times, &gathering.key_classes, &facts);
        (observed, inside)
    }

    fn add_counts(&mut self, trace: &lateralis_model::Trace, counts: Vec<Vec<Buckets>>) {
        let mut by_name: BTreeMap<String, Buckets> = BTreeMap::new();
        for (stream, counts) in trace.stream_classes.iter().zip(counts) {
            for (class, count) in stream.event_classes.iter().zip(counts) {
                // Events of the tracer itself depend on how threads happened to take turns.
                if !class.name.starts_with("lateralis:") && count.total() > 0 {
                    let of = by_name.entry(class.name.clone());
                    of.or_insert_with(Buckets::of_events).merge(count);
                }
            }
        }
        let all = by_name.values().map(Buckets::total).sum();
        for (name, buckets) in by_name {
            let counted = self.counted(&buckets, all, self.events as f64);
            self.counts.insert((Of::Count, name), counted);
        }
    }

    fn add_threads(&mut self, ran: HashMap<u32, Buckets>, facts: &Facts) {
        let mut by_name: BTreeMap<String, Buckets> = BTreeMap::new();
        for (tid, buckets) in ran {
            let name = facts.threads().get(tid).and_then(|thread| thread.name.clone());
            let of = by_name.entry(name.unwrap_or_else(|| "(no name)".into()));
            of.or_insert_with(Buckets::of_time).merge(buckets);
        }
        let all = by_name.values().map(Buckets::total).sum();
        for (name, buckets) in by_name {
            // The running time in gaps is unknown.
            let missing = if self.lost > 0 { u64::MAX } else { 0 };
            let counted = Counted { missing, ..self.counted(&buckets, all, self.seconds * 1e9) };
            self.counts.insert((Of::Cpu, name), counted);
        }
    }

    /// Counts in the parts of a run of this length.
    fn counted(&self, buckets: &Buckets, all: u64, length: f64) -> Counted {
        let (count, seconds) = (buckets.total(), self.seconds);
        Counted { count, all, seconds, stretches: buckets.stretches(length), missing: self.lost }
    }

    fn add_durations(
        &mut self,
        times: HashMap<(Of, u32, u64), Times>,
        key_classes: &HashMap<u32, HashMap<u64, String>>,
        facts: &Facts,
    ) {
        let mut named: BTreeMap<(Of, String), Times> = BTreeMap::new();
        for ((of, kind, key), times) in times {
            let kinds =
                if of == Of::Message { &facts.kinds().channels } else { &facts.kinds().spans };
            let mut name = kinds.get(kind as usize).map_or(String::new(), |kind| kind.name.clone());
            let class = key_classes.get(&kind).and_then(|classes| classes.get(&key));
            if let (Some(class), true) = (class, of != Of::Message) {
                name = format!("{name} {class}");
            }
            named.insert((of, name), times);
        }
        for (place, times) in named {
            let missing = self.lost.saturating_add(times.touched);
            self.durations.insert(place, Run::new(times.nanos, missing));
        }
        // The whole duration adds nothing if nothing is inside.
        let own: Vec<String> = self.durations.keys().map(|(_, name)| name.clone()).collect();
        for name in own {
            let (own, whole) = ((Of::Own, name.clone()), (Of::Whole, name));
            if self.durations.get(&own) == self.durations.get(&whole) {
                self.durations.remove(&whole);
            }
        }
    }
}

fn count(counts: &mut [Vec<Buckets>], event: &Event<'_>, place: u64) {
    let class = counts
        .get_mut(event.stream_class_index as usize)
        .and_then(|classes| classes.get_mut(event.class_index as usize));
    if let Some(buckets) = class {
        buckets.add(place.cast_signed(), 1);
    }
}

impl DerivedSink for Gathering {
    type Event = ();

    fn span(&mut self, kinds: &Kinds, span: &DerivedSpan) {
        self.extent.add_span(span);
        let (kind, duration_ns) = (span.kind, span.duration_ns().unwrap_or(0));
        match (span.status, span.begin.and_then(|begin| begin.edge.key)) {
            (SpanStatus::Unfinished | SpanStatus::Orphan, _) => {}
            // Its thread is in doubt: one span fewer is counted.
            (SpanStatus::Doubtful, _) => {
                for of in [Of::Own, Of::Whole] {
                    self.time((of, kind, 0), false, 0);
                }
            }
            // The duration measured by the producer is certain; its self time is not.
            (SpanStatus::Whole, _) => self.time((Of::Whole, kind, 0), true, duration_ns),
            (SpanStatus::Complete, Some(key)) => {
                let class = self.key_class(kind, key, kinds);
                self.time((Of::Own, kind, class), span.is_certain, duration_ns);
            }
            (SpanStatus::Complete, None) => {
                let own = span.own_ns.filter(|_| span.is_certain);
                self.time((Of::Own, kind, 0), own.is_some(), own.unwrap_or(duration_ns));
                self.time((Of::Whole, kind, 0), span.is_certain, duration_ns);
            }
        }
    }

    fn whole_ended(&mut self, ended: &Ended, is_certain: bool) {
        self.time((Of::Own, ended.kind, 0), is_certain, ended.own_nanos);
    }

    fn flow(&mut self, _: &Kinds, channel: u32, flow: &DerivedFlow) {
        if let DerivedFlow::Complete { message, joined, .. } = flow {
            let is_one = *joined != Joined::Doubtful;
            self.time((Of::Message, channel, 0), is_one, message.nanos());
        }
    }

    fn cpu_interval(&mut self, _: &Kinds, interval: &CpuInterval) {
        let (Some(tid), Some(end)) = (interval.tid, interval.end) else { return };
        if interval.quality == Quality::Exact {
            let micros = end.since(interval.begin).max(0) as u64 / 1000;
            let ran = self.ran.entry(tid).or_insert_with(Buckets::of_time);
            ran.add(interval.begin.since(self.begin), micros);
        }
    }
}

impl Gathering {
    /// Class of a key: spans with a textual key get a class of their own, as the text means the same in
    /// the next recording. Numbers and addresses do not.
    fn key_class(&mut self, span: u32, key: u64, kinds: &Kinds) -> u64 {
        let classes = self.key_classes.entry(span).or_default();
        if classes.contains_key(&key) {
            return key;
        }
        let text = kinds.spans.get(span as usize).map(|kind: &Kind| kind.key_text(key));
        match text.filter(|text| classes.len() < MAX_KEY_CLASSES && is_words(text)) {
            Some(text) => {
                classes.insert(key, text);
                key
            }
            // Not a class number of any key: those are counted from 0.
            None => u64::MAX,
        }
    }

    fn time(&mut self, place: (Of, u32, u64), is_certain: bool, nanos: u64) {
        let times = self.times.entry(place).or_default();
        if is_certain {
            times.nanos.push(nanos);
        } else {
            times.touched += 1;
        }
    }
}

fn is_words(text: &str) -> bool {
    let is_word = |part: &str| part.chars().next().is_some_and(char::is_alphabetic);
    !text.is_empty() && text.split_whitespace().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::is_words;

    #[test]
    fn words_mean_something_in_the_next_recording_and_numbers_do_not() {
        for text in ["GET", "vda read", "größe"] {
            assert!(is_words(text), "{text}");
        }
        for text in ["7", "0x7f00", "vda 2048", "", "-3"] {
            assert!(!is_words(text), "{text}");
        }
    }
}
