// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where switches contradict each other: the reason why what threads and processors did is unknown there.

use lateralis_analysis::Gaps;
use lateralis_model::{Interval, Source};
use lateralis_semantics::{
    Contradiction, Contradictions, DerivedSink, Deriver, Deriving, Extent, Known,
};
use lateralis_store::Recording;
use lateralis_store::facts::{About, Edges, Fact, Facts, Threads};
use serde_json::{Value, json};

use crate::date;
use crate::selection::Selection;
use crate::table::{Align, Table};
use crate::values;

/// Contradictions between the chosen switches, and what is known of threads by them.
#[derive(Debug, Default)]
pub struct Found {
    pub all: Contradictions,
    facts: Facts,
}

impl Found {
    /// Names of threads, as far as events contain them.
    pub fn threads(&self) -> &Threads {
        self.facts.threads()
    }
}

struct Finding(Contradictions);

impl DerivedSink for Finding {
    type Event = ();

    fn contradiction(&mut self, contradiction: &Contradiction) {
        self.0.push(contradiction);
    }
}

/// Finds the contradictions between the chosen switches.
///
/// Cost: nothing if the trace has no switches; else a pass over the events.
pub fn find(
    recording: &Recording,
    selection: &Selection<'_>,
    gaps: Gaps,
    extent: &Extent,
) -> Found {
    let trace = recording.annotated();
    let mut facts = Facts::new(&trace, &recording.streams);
    if !facts.has_switches() || !facts.only(About::Threads) {
        return Found::default();
    }
    let Some((begin, end)) = extent.begin().zip(extent.end()) else { return Found::default() };
    let chosen = selection.interval();
    let known = Known {
        window: Some((begin, chosen.end.unwrap_or(end))),
        is_cut: recording.is_cut(chosen).0,
        gaps,
        successions: recording.successions(),
        follows_threads: Some(facts.alone_streams(&recording.streams)),
        ..Known::default()
    };
    let mut deriver = Deriver::new(&facts, known);
    let mut finding = Finding(Contradictions::default());
    let source = &recording.source;
    let is_whole = chosen == Interval::default() && selection.is_everything();
    if is_whole && facts.has_columns(source) {
        let deriving = &mut Deriving { deriver: &mut deriver, sink: &mut finding };
        // Damage was found when the events were counted; runs, which can be disordered, are not asked for.
        let _ = facts.visit_columns(source, &trace, &|_, _| (), deriving, Edges::Each);
    } else {
        let mut events = source.events_in(chosen);
        while let Some(event) = events.next_event() {
            let is_chosen = selection.contains(&event);
            facts.tell(&event, |kinds, at, fact| {
                if is_chosen || matches!(fact, Fact::Belongs { .. }) {
                    deriver.fact(kinds, at, fact, &mut finding);
                } else {
                    deriver.see_unchosen(at, &fact);
                }
            });
        }
    }
    deriver.finish(facts.kinds(), Some(end), &mut finding);
    Found { all: finding.0, facts }
}

/// The member `contradictions` of a document; `name` gives the name of a thread, if it has one.
pub fn json<'a>(all: &Contradictions, name: impl Fn(u32) -> Option<&'a str>) -> Value {
    let row = |of: &Contradiction| {
        let (came, left) = (of.kind.came(), of.kind.left());
        json!({
            "kind": of.kind.name(),
            "cpu": of.cpu,
            "begin_ns": of.begin.0,
            "end_ns": of.end.0,
            "tid": came,
            "thread": came.and_then(&name),
            "left_tid": left,
            "left_thread": left.and_then(&name),
        })
    };
    json!({ "count": all.count(), "first": all.kept().iter().map(row).collect::<Vec<_>>() })
}

/// The heading of the table.
pub const TITLE: &str = "contradictions: what was done then is unknown";

/// The first of them; `name` gives name and number of a thread. And the number of all.
pub fn table(all: &Contradictions, rows: usize, name: impl Fn(u32) -> String) -> (Table, usize) {
    use Align::{Left, Right};
    let mut table = Table::new(&[("cpu", Right), ("from", Left), ("for", Right), ("what", Left)]);
    for of in all.kept().iter().take(rows) {
        table.row([
            of.cpu.to_string(),
            date::text(of.begin),
            values::time(of.end.since(of.begin).max(0).unsigned_abs()),
            of.kind.described(&name),
        ]);
    }
    (table, usize::try_from(all.count()).unwrap_or(usize::MAX))
}
