// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Search for the spans to be explained.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use lateralis_analysis::{Edge, Gaps, Side, Span};
use lateralis_model::{Damage, Interval, Quality, Writer};
use lateralis_semantics::{DerivedSink, DerivedSpan, SpanStatus};
use lateralis_units::Nanos;

use crate::chosen::Chosen;
use crate::facts::{Fact, Facts, Kinds};

/// Largest number of spans open at one time that are reported.
const OPEN_MAX: usize = 1 << 16;

/// A span to be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Both ends.
    pub span: Span,
    /// The thread that ended it.
    pub tid: u32,
    /// Whether it is certain in spite of missing events.
    pub is_certain: bool,
    /// Error between the clocks of its ends, if the span is not longer than that; inner `None`:
    /// unbounded.
    pub unsure_by_clocks: Option<Option<u64>>,
    /// Whether it has not ended: then it lasts at least to its end here, where the trace ends.
    pub is_open: bool,
}

/// Spans of a name to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The slowest ones, slowest first.
    Slowest(usize),
    /// Those open at this time, slowest first.
    OpenAt(Nanos),
}

/// Result of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spans {
    /// The requested spans whose thread is known.
    pub found: Vec<Found>,
    /// Whether the result would be the same if missing events were put back.
    pub quality: Quality,
    /// Damage found while reading.
    pub damage: Vec<Damage>,
}

/// Reason why a thread, or its state, was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFound {
    /// No thread has the name.
    NoThread,
    /// These threads have the name.
    Several(Vec<u32>),
    /// The state of the thread at the time is not in the trace.
    Unknown,
}

/// A thread that is in the trace.
pub(super) struct NamedThread {
    pub(super) tid: u32,
    pub(super) pid: u32,
    first: Nanos,
    last: Nanos,
}

/// Finds a thread by its id, or by its name if that is unique, and returns its whole time in the selected
/// range, from its first event to its last.
///
/// Cost: a pass over the events.
///
/// # Errors
///
/// [`NotFound::NoThread`] if no thread has the name, [`NotFound::Several`] if more than one has.
pub fn find_thread(chosen: &Chosen<'_>, thread: &str) -> Result<Found, NotFound> {
    let NamedThread { tid, pid, first, last } = named_thread(chosen, thread)?;
    let (begin, end) = (chosen.interval.begin, chosen.interval.end);
    let edge = |time, side| Edge { time, side, key: None, writer: Some(Writer { pid, tid }) };
    let span = Span {
        begin: edge(begin.map_or(first, |begin| begin.max(first)), Side::Begin),
        end: edge(end.map_or(last, |end| end.min(last)), Side::End),
    };
    Ok(Found { span, tid, is_certain: true, unsure_by_clocks: None, is_open: false })
}

/// A thread by its number or name.
pub(super) fn named_thread(chosen: &Chosen<'_>, thread: &str) -> Result<NamedThread, NotFound> {
    let mut facts = chosen.facts();
    let number = thread.parse::<u32>().ok();
    let mut seen: BTreeMap<u32, (Nanos, Nanos)> = BTreeMap::new();
    let mut see = |tid: u32, time: Nanos| {
        let last = &mut seen.entry(tid).or_insert((time, time)).1;
        *last = time.max(*last);
    };
    let mut events = chosen.source.events_in(Interval { begin: None, ..chosen.interval });
    while let Some(event) = events.next_event() {
        let at = facts.of(&event, |at, fact| match fact {
            Fact::Whole { .. } => {
                if let Some(writer) = at.writer {
                    see(writer.tid, event.time);
                    see(writer.tid, fact.lasts_until(at));
                }
            }
            Fact::Switch { from, to, .. } => {
                see(from, event.time);
                see(to, event.time);
            }
            Fact::Wake { tid, .. } => see(tid, event.time),
            _ => {}
        });
        if let Some(writer) = at.writer {
            see(writer.tid, event.time);
        }
    }
    let is_it = |tid: &u32| match number {
        Some(number) => *tid == number,
        None => {
            let told = facts.threads().get(*tid).and_then(|of| of.name.as_deref());
            told.or(chosen.names.threads.get(tid).map(String::as_str)) == Some(thread)
        }
    };
    let found: Vec<u32> = seen.keys().copied().filter(|tid| *tid != 0 && is_it(tid)).collect();
    match (found.as_slice(), found.first().and_then(|tid| seen.get(tid))) {
        (&[tid], Some(&(first, last))) => {
            Ok(NamedThread { tid, pid: facts.threads().pid(tid), first, last })
        }
        ([], _) | (_, None) => Err(NotFound::NoThread),
        _ => Err(NotFound::Several(found)),
    }
}

struct Finding {
    wanted: Wanted,
    gaps: Gaps,
    /// Whether ends of the kind may exist that are not selected or not matched: then it is unknown which
    /// spans have not ended.
    has_other_ends: bool,
    /// Time of the last event.
    last: Nanos,
    /// The fastest is on top.
    slowest: BinaryHeap<(Reverse<u64>, Nanos, usize)>,
    kept: Vec<Found>,
}

/// Finds spans of a name with both ends selected, and those that have not ended.
///
/// Cost: a pass over the events in time order, and another one if it finds damage that opening did not.
/// Memory: proportional to open spans and to the result.
///
/// Errors: the existing span names, most similar first, if none has this name.
pub fn find(chosen: &Chosen<'_>, name: &str, wanted: Wanted) -> Result<Spans, Vec<String>> {
    let facts = chosen.facts();
    let Some(kind) = facts.kinds().spans.iter().position(|kind| kind.name == name) else {
        let mut names: Vec<String> =
            facts.kinds().spans.iter().map(|kind| kind.name.clone()).collect();
        let likeness = |other: &String| strsim::jaro_winkler(name, other);
        names.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
        return Err(names);
    };
    let known = chosen.source.damage().to_vec();
    let mut spans = pass(chosen, facts, kind as u32, wanted, &known);
    if !spans.damage.is_empty() {
        let all: Vec<Damage> = known.into_iter().chain(spans.damage).collect();
        spans = pass(chosen, chosen.facts(), kind as u32, wanted, &all);
    }
    Ok(spans)
}

fn pass(
    chosen: &Chosen<'_>,
    mut facts: Facts,
    kind: u32,
    wanted: Wanted,
    damage: &[Damage],
) -> Spans {
    let (begin, end) = chosen.ends();
    let gaps = chosen.gaps(damage);
    let quality = gaps.of_value(begin, end);
    let mut deriver = chosen.deriver(&facts, damage, false);
    let mut finding = Finding {
        wanted,
        gaps,
        // The ends may be in a recording whose clock has no relation to that of their begins.
        has_other_ends: chosen.clock_errors.most().1,
        last: begin,
        slowest: BinaryHeap::new(),
        kept: Vec::new(),
    };
    let mut events = chosen.events();
    while let Some(event) = events.next_event() {
        let is_chosen = (chosen.contains)(&event);
        finding.last = event.time;
        facts.tell(&event, |kinds, at, fact| match fact {
            // Events that are not selected still map threads to processes.
            Fact::Belongs { .. } => deriver.fact(kinds, at, fact, &mut finding),
            Fact::Begin { span, .. } | Fact::End { span, .. } | Fact::Whole { span, .. }
                if span == kind && is_chosen =>
            {
                deriver.fact(kinds, at, fact, &mut finding);
            }
            _ => {
                let is_end = matches!(fact, Fact::End { span, .. } if span == kind);
                finding.has_other_ends |= is_end;
                deriver.see_unchosen(at, &fact);
            }
        });
    }
    let ended = deriver.ended(Some(finding.last));
    deriver.finish(facts.kinds(), ended, &mut finding);
    Spans { found: finding.sorted(), quality, damage: events.damage() }
}

impl DerivedSink for Finding {
    type Event = ();

    fn span(&mut self, _: &Kinds, found: &DerivedSpan) {
        if let Some(span) = found.span() {
            if let Some(writer) = span.end.writer {
                let is_sure = found.quality == Quality::Exact || !found.is_certain;
                let unsure_by_clocks = (!is_sure).then_some(found.clock_error_ns);
                let (tid, is_certain) = (writer.tid, found.is_certain);
                self.keep(Found { span, tid, is_certain, unsure_by_clocks, is_open: false });
            }
            return;
        }
        // Spans that have not ended by the end of the trace are reported as well: their waits are of
        // interest.
        let (SpanStatus::Unfinished, Some(begin)) = (found.status, found.begin) else { return };
        let begin = begin.edge;
        if let (Some(writer), false) = (begin.writer, self.has_other_ends) {
            let time = found.seen_until.unwrap_or(self.last);
            let end = Edge { time, side: Side::End, ..begin };
            // An event missing before it may have left it open in place of another one.
            let is_certain = !self.gaps.between(Nanos(i64::MIN), end.time);
            let span = Span { begin, end };
            let (tid, unsure_by_clocks) = (writer.tid, None);
            self.keep(Found { span, tid, is_certain, unsure_by_clocks, is_open: true });
        }
    }
}

impl Finding {
    fn keep(&mut self, found: Found) {
        let span = &found.span;
        let most = match self.wanted {
            Wanted::Slowest(most) => most,
            Wanted::OpenAt(at) if span.begin.time > at || span.end.time < at => return,
            Wanted::OpenAt(_) => OPEN_MAX,
        };
        self.slowest.push((Reverse(span.nanos()), span.begin.time, self.kept.len()));
        self.kept.push(found);
        if self.slowest.len() > most {
            self.slowest.pop();
        }
        if self.kept.len() > 2 * most + 64 {
            self.compact();
        }
    }

    /// Discards spans that are no longer among the slowest.
    fn compact(&mut self) {
        let places = std::mem::take(&mut self.slowest).into_vec();
        self.kept = places.iter().map(|(_, _, index)| self.kept[*index]).collect();
        let renumbered = places.into_iter().enumerate();
        self.slowest = renumbered.map(|(new, (nanos, time, _))| (nanos, time, new)).collect();
    }

    fn sorted(self) -> Vec<Found> {
        let mut places = self.slowest.into_vec();
        places.sort_unstable_by_key(|(nanos, begin, index)| (*nanos, *begin, *index));
        places.into_iter().map(|(_, _, index)| self.kept[index]).collect()
    }
}
