// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where switches contradict each other: the reason why what threads and processors did is unknown there.

use std::ops::ControlFlow;

use lateralis_analysis::Gaps;
use lateralis_model::{ColumnBatch, Damage, Event, Source};
use lateralis_semantics::{Contradiction, Contradictions, DerivedSink, Deriver, Deriving, Known};
use lateralis_store::Recording;
use lateralis_store::facts::{About, At, Edges, Fact, Facts, Kinds, Sink, Threads, Visited};
use lateralis_units::Nanos;
use serde_json::{Value, json};

use crate::date;
use crate::selection::Selection;
use crate::table::{Align, Table};
use crate::values;

/// Contradictions between the chosen switches, and what is known of threads by them.
#[derive(Debug, Default)]
pub struct Found {
    /// The contradictions.
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

/// Finds the contradictions between the chosen switches in a pass over the events that the caller makes.
pub struct Search {
    facts: Facts,
    deriver: Deriver<()>,
    finding: Finding,
}

impl Search {
    /// `None` if the trace has no switches; `gaps` are known from opening it.
    pub fn new(recording: &Recording, selection: &Selection<'_>, gaps: Gaps) -> Option<Self> {
        let mut facts = Facts::new(&recording.annotated(), &recording.streams);
        if !facts.has_switches() || !facts.only(About::Threads) {
            return None;
        }
        let chosen = selection.interval();
        let source = &recording.source;
        let mut events = source.events_in(chosen);
        let begin = if events.advance() { events.time() } else { Nanos::default() };
        drop(events);
        let known = Known {
            window: Some((begin, chosen.end.unwrap_or(Nanos(i64::MAX)))),
            is_cut: recording.is_cut(chosen).0,
            gaps,
            successions: recording.successions(),
            follows_threads: Some(facts.alone_streams(&recording.streams)),
            ..Known::default()
        };
        let deriver = Deriver::new(&facts, known);
        Some(Self { facts, deriver, finding: Finding(Contradictions::default()) })
    }

    /// Whether the trace can be read by columns, if all of it is chosen.
    pub fn has_columns(&self, source: &dyn Source) -> bool {
        self.facts.has_columns(source)
    }

    /// Takes the next event in the order of time.
    pub fn event(&mut self, event: &Event<'_>, is_chosen: bool) {
        let Self { facts, deriver, finding } = self;
        facts.tell(event, |kinds, at, fact| {
            if is_chosen || matches!(fact, Fact::Belongs { .. }) {
                deriver.fact(kinds, at, fact, finding);
            } else {
                deriver.see_unchosen(at, &fact);
            }
        });
    }

    /// Reads all events by columns: `see` gets each once in a batch, in any order and on any thread, and
    /// `kept` those of the classes that `wants` selects, whole.
    pub fn columns(
        &mut self,
        recording: &Recording,
        wants: impl Fn(u32, u32) -> bool,
        see: &(dyn Fn(&dyn ColumnBatch, Option<u32>) + Sync),
        kept: &mut dyn FnMut(&Event<'_>),
    ) -> Vec<Damage> {
        self.facts.keep(wants);
        let Self { facts, deriver, finding } = self;
        let mut reading = Reading { deriving: Deriving { deriver, sink: finding }, kept };
        let source = &recording.source;
        let trace = recording.annotated();
        // Runs, which can be disordered, are not asked for.
        let see = |batch: &dyn ColumnBatch, cpu: Option<u32>| {
            see(batch, cpu);
            ControlFlow::Continue(())
        };
        match facts.visit_columns(source, &trace, &see, &mut reading, Edges::Each) {
            Visited::Whole(damage) => damage,
            Visited::Disordered => Vec::new(),
        }
    }

    /// What was found until the last event.
    pub fn finish(mut self, end: Nanos) -> Found {
        self.deriver.finish(self.facts.kinds(), Some(end), &mut self.finding);
        Found { all: self.finding.0, facts: self.facts }
    }
}

/// Facts for the search, whole events for its caller.
struct Reading<'a> {
    deriving: Deriving<'a, Finding>,
    kept: &'a mut dyn FnMut(&Event<'_>),
}

impl Sink for Reading<'_> {
    fn fact_of(&mut self, kinds: &Kinds, at: &At, fact: Fact) {
        self.deriving.fact_of(kinds, at, fact);
    }

    fn appears(&mut self, cpu: u32, time: Nanos) {
        self.deriving.appears(cpu, time);
    }

    fn kept(&mut self, event: &Event<'_>, _: &At) {
        (self.kept)(event);
    }
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
