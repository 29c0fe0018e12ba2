// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The spans that somebody asks about.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use lateralis_analysis::{Edge, Pairer, Side, Span, SpanCertainty};
use lateralis_model::{Damage, Quality, StreamIndex, Writer};
use lateralis_units::Nanos;

use crate::ClockErrors;
use crate::chosen::Chosen;
use crate::facts::{At, Doubts, Fact, Facts};

/// Spans that are open at one time, of which no more are told.
const OPEN_MAX: usize = 1 << 16;

/// A span to be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Both ends.
    pub span: Span,
    /// The thread that ended it.
    pub tid: u32,
    /// Whether it is one though events are missing, and by clocks that are sure to be alike enough.
    pub is_certain: bool,
    /// Whether it has not ended: then it lasts at least to its end here, where the trace ends.
    pub is_open: bool,
}

/// Which spans of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// So many, slowest first.
    Slowest(usize),
    /// Those that are open then, slowest first.
    OpenAt(Nanos),
}

/// What there is of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spans {
    /// Those that are wanted, whose thread is known.
    pub found: Vec<Found>,
    /// Whether these would be the wanted ones if missing events were put back.
    pub quality: Quality,
    /// Damage that reading has found.
    pub damage: Vec<Damage>,
}

struct Finding {
    kind: u32,
    wanted: Wanted,
    pairer: Pairer,
    certainty: SpanCertainty,
    doubts: Doubts,
    clock_errors: ClockErrors,
    has_several_clocks: bool,
    /// Whether ends of the kind may be there and are not chosen, or not joined: then which spans have
    /// not ended is unknown.
    has_other_ends: bool,
    /// Streams of the events that began open spans, where clocks differ.
    began: HashMap<Edge, StreamIndex>,
    /// When the last event happened.
    last: Nanos,
    /// The quickest lies on top.
    slowest: BinaryHeap<(Reverse<u64>, Nanos, usize)>,
    kept: Vec<Found>,
}

/// Finds spans of a name, both of whose ends are chosen, and those that have not ended.
///
/// Cost: a pass over the events in the order of time, and another where it finds damage that
/// opening did not. Memory: by open spans and by those wanted.
///
/// Errors: the names of spans that there are, those most alike first, if none has this name.
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
    let mut finding = Finding {
        kind,
        wanted,
        pairer: Pairer::default(),
        certainty: SpanCertainty::new(begin, gaps),
        doubts: Doubts::new(&facts, begin),
        has_several_clocks: chosen.clock_errors.most() != (0, false),
        // The ends may be in a recording whose clock is not related to that of their beginnings.
        has_other_ends: chosen.clock_errors.most().1,
        clock_errors: chosen.clock_errors.clone(),
        began: HashMap::new(),
        last: begin,
        slowest: BinaryHeap::new(),
        kept: Vec::new(),
    };
    let mut events = chosen.events();
    while let Some(event) = events.next_event() {
        let is_chosen = (chosen.contains)(&event);
        finding.last = event.time;
        facts.of(&event, |at, fact| {
            finding.doubts.see(at, &fact, finding.certainty.gaps());
            // Who is who is known from events that are not chosen, too.
            if is_chosen || matches!(fact, Fact::Belongs { .. }) {
                finding.fact(at, fact);
            } else if matches!(fact, Fact::End { span, .. } if span == kind) {
                finding.has_other_ends = true;
            }
        });
    }
    finding.open();
    Spans { found: finding.sorted(), quality, damage: events.damage() }
}

impl Finding {
    fn fact(&mut self, at: &At, fact: Fact) {
        let Some((at, fact)) = self.doubts.fact(at, fact, self.certainty.gaps()) else {
            if let Fact::Begin { span, .. } | Fact::End { span, .. } = fact {
                self.certainty.doubt(span, at.time);
            }
            return;
        };
        let edge = |time, side, key| Edge { time, side, key, writer: at.writer };
        let (span, is_certain) = match fact {
            Fact::Begin { span, key } if span == self.kind => {
                let begin = edge(at.time, Side::Begin, key);
                self.pairer.push(begin);
                if self.has_several_clocks {
                    self.began.insert(begin, at.stream);
                }
                return;
            }
            Fact::End { span, key } if span == self.kind => {
                let Some(found) = self.pairer.push(edge(at.time, Side::End, key)) else {
                    return;
                };
                let began = self.began.remove(&found.begin).unwrap_or(at.stream);
                let error = self.clock_errors.between(began, at.stream);
                let by_clocks = ClockErrors::quality(error, found.nanos(), Quality::Exact);
                let is_certain = self.certainty.is_certain(self.kind, &found);
                (found, is_certain && by_clocks == Quality::Exact)
            }
            // Whoever recorded it has measured it.
            Fact::Whole { span, duration_ns } if span == self.kind => {
                let end = Nanos(at.time.0.saturating_add_unsigned(duration_ns));
                let (begin, end) = (edge(at.time, Side::Begin, None), edge(end, Side::End, None));
                (Span { begin, end }, true)
            }
            Fact::Belongs { tid, pid } => {
                self.pairer.reassign(Writer { pid: tid, tid }, Writer { pid, tid });
                return;
            }
            _ => return,
        };
        let is_known = |writer: &Writer| writer.pid != Doubts::NOBODY;
        if let Some(writer) = span.end.writer.filter(is_known) {
            self.keep(Found { span, tid: writer.tid, is_certain, is_open: false });
        }
    }

    /// What has not ended by the end of the trace: what it waits for is asked of it, too.
    fn open(&mut self) {
        if self.has_other_ends {
            return;
        }
        for begin in self.pairer.unfinished() {
            let end = Edge { time: self.last, side: Side::End, ..begin };
            let span = Span { begin, end };
            let is_known = |writer: &Writer| writer.pid != Doubts::NOBODY;
            let Some(writer) = begin.writer.filter(is_known) else { continue };
            // What is missing before it can have left it open, in place of another one.
            let is_certain = !self.certainty.gaps().between(Nanos(i64::MIN), end.time);
            self.keep(Found { span, tid: writer.tid, is_certain, is_open: true });
        }
    }

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

    /// Forgets spans that are no longer among the slowest.
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
