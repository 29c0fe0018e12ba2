// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts read by columns equal those of a walk over the events, in the same order, for every trace here;
//! classes without meanings are given some.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::given::{give_edges, give_meanings, give_only_edges, traces};
use lateralis_model::{Damage, Place, Source, Trace};
use lateralis_store::Recording;
use lateralis_store::facts::{At, Edges, Fact, Facts, Sink, Visited};
use lateralis_units::Nanos;

#[derive(Default)]
struct Seen {
    facts: Vec<(At, Fact)>,
    /// By CPU, the time of its first event.
    appeared: BTreeMap<u32, Nanos>,
}

impl Sink for Seen {
    fn fact(&mut self, at: &At, fact: Fact) {
        self.facts.push((*at, fact));
    }

    fn appears(&mut self, cpu: u32, time: Nanos) {
        self.appeared.entry(cpu).or_insert(time);
    }
}

type Counts = BTreeMap<(u32, u32), u64>;

fn by_rows(recording: &Recording, trace: &Trace) -> (Seen, Facts, Counts, Vec<Damage>) {
    let mut facts = Facts::new(trace, &recording.streams);
    let (mut seen, mut counts) = (Seen::default(), Counts::new());
    let mut events = recording.source.events();
    while let Some(event) = events.next_event() {
        let at = facts.of(&event, |at, fact| seen.fact(at, fact));
        *counts.entry((event.stream_class_index, event.class_index)).or_default() += 1;
        if let Some(cpu) = at.cpu {
            seen.appears(cpu, at.time);
        }
    }
    let damage = events.damage();
    (seen, facts, counts, damage)
}

/// `None` if it does not work with runs.
fn by_columns(
    recording: &Recording,
    trace: &Trace,
    edges: Edges,
) -> Option<(Seen, Facts, Counts, Vec<Damage>, u64)> {
    let mut facts = Facts::new(trace, &recording.streams);
    let (mut seen, counts) = (Seen::default(), Mutex::new(Counts::new()));
    let in_order = AtomicU64::new(0);
    let see = |batch: &dyn lateralis_model::ColumnBatch, _: Option<u32>| {
        let mut counts = counts.lock().unwrap();
        let mut add = |class, count| {
            *counts.entry((batch.stream_class(), class)).or_default() += count;
        };
        if batch.times_in_order().is_some() {
            assert_eq!((edges, batch.class_count(), batch.row_count()), (Edges::InOrder, 0, 0));
            in_order.fetch_add(batch.order().len() as u64, Ordering::Relaxed);
            for place in batch.order().iter() {
                let (Place::Columns(class) | Place::Row(class)) = place;
                add(class, 1);
            }
        }
        (0..batch.class_count()).for_each(|index| {
            let class = batch.class(index);
            add(class.class, class.times.len() as u64);
        });
        (0..batch.row_count()).for_each(|row| add(batch.row(row).class_index, 1));
        std::ops::ControlFlow::Continue(())
    };
    match facts.visit_columns(&recording.source, trace, &see, &mut seen, edges) {
        Visited::Whole(damage) => {
            Some((seen, facts, counts.into_inner().unwrap(), damage, in_order.into_inner()))
        }
        Visited::Disordered => None,
    }
}

/// Edges in runs are out of order relative to other threads and streams, but not otherwise.
fn compare_runs(path: &Path, trace: &Trace, recording: &Recording, edges: Edges) -> Option<u64> {
    let (rows, row_facts, row_counts, _) = by_rows(recording, trace);
    let (runs, run_facts, run_counts, _, in_order) = by_columns(recording, trace, edges)?;
    let at = path.display();
    let by = |seen: &Seen, key: &dyn Fn(&At) -> (u32, u32)| {
        let mut facts = seen.facts.clone();
        facts.sort_by_key(|(at, _)| key(at));
        facts
    };
    let thread = |at: &At| at.writer.map_or((u32::MAX, 0), |writer| (writer.pid, writer.tid));
    assert!(by(&rows, &thread) == by(&runs, &thread), "{at}: facts of a thread");
    let stream = |at: &At| (at.stream.0, 0);
    assert!(by(&rows, &stream) == by(&runs, &stream), "{at}: facts of a stream");
    let others = |seen: &Seen| -> Vec<(At, Fact)> {
        let is_of_run = |at: &At, fact: &Fact| {
            let is_edge =
                matches!(fact, Fact::Begin { key: None, .. } | Fact::End { key: None, .. });
            is_edge && at.writer.is_some()
        };
        seen.facts.iter().copied().filter(|(at, fact)| !is_of_run(at, fact)).collect()
    };
    assert!(others(&rows) == others(&runs), "{at}: other facts");
    assert_eq!((row_counts, rows.appeared), (run_counts, runs.appeared), "{at}");
    assert_eq!(threads(&row_facts), threads(&run_facts), "{at}");
    Some(in_order)
}

fn threads(facts: &Facts) -> BTreeMap<u32, lateralis_store::facts::Thread> {
    facts.threads().iter().map(|(tid, thread)| (tid, thread.clone())).collect()
}

fn compare(path: &Path, trace: &Trace, recording: &Recording) -> usize {
    let (rows, row_facts, row_counts, row_damage) = by_rows(recording, trace);
    let (columns, column_facts, column_counts, column_damage, _) =
        by_columns(recording, trace, Edges::Each).unwrap();
    let at = path.display();
    for (index, (row, column)) in rows.facts.iter().zip(&columns.facts).enumerate() {
        assert_eq!(row, column, "{at}: fact {index}");
    }
    assert_eq!(rows.facts.len(), columns.facts.len(), "{at}");
    assert_eq!(rows.appeared, columns.appeared, "{at}");
    assert_eq!(row_counts, column_counts, "{at}");
    assert_eq!(row_damage.len(), column_damage.len(), "{at}");
    assert_eq!(threads(&row_facts), threads(&column_facts), "{at}");
    let texts = |facts: &Facts| {
        let machines = facts.kinds().machines.iter().map(|machine| machine.states.join("\n"));
        let spans = facts.kinds().spans.iter();
        machines.chain(spans.map(|kind| kind.key_text(1))).collect::<Vec<_>>()
    };
    assert_eq!(texts(&row_facts), texts(&column_facts), "{at}");
    rows.facts.len()
}

#[test]
fn facts_by_columns_are_those_by_rows() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let mut paths = Vec::new();
    traces(&data, &mut paths);
    if paths.is_empty() {
        eprintln!("SKIPPED: no traces at {}", data.display());
        return;
    }
    let (mut compared, mut facts) = (0, 0);
    let (mut with_runs, mut disordered) = (0, 0);
    let (mut with_order, mut in_order) = (0, 0);
    for path in &paths {
        let Ok(recording) = Recording::open(path) else { continue };
        let annotated = recording.annotated().into_owned();
        let mut meant = annotated.clone();
        give_meanings(&mut meant);
        let mut edges = annotated.clone();
        give_edges(&mut edges);
        let mut only_edges = annotated.clone();
        give_only_edges(&mut only_edges);
        for trace in [&annotated, &meant, &edges, &only_edges] {
            let of = Facts::new(trace, &recording.streams);
            if of.has_columns(&recording.source) {
                compared += 1;
                facts += compare(path, trace, &recording);
                if of.has_runs() {
                    with_runs += 1;
                    let runs = compare_runs(path, trace, &recording, Edges::InRuns);
                    disordered += usize::from(runs.is_none());
                    let ordered = compare_runs(path, trace, &recording, Edges::InOrder);
                    assert_eq!(ordered.is_none(), runs.is_none(), "{}", path.display());
                    in_order += ordered.unwrap_or(0);
                    with_order += u64::from(ordered.unwrap_or(0) > 0);
                }
            }
        }
    }
    assert!(compared > 100 && facts > 1_000_000, "{compared} traces, {facts} facts");
    assert!(
        with_runs > 100 && disordered * 20 < with_runs,
        "{with_runs} with runs, {disordered} disordered"
    );
    assert!(
        with_order > 20 && in_order > 10_000,
        "{with_order} of them with batches in order, {in_order} events"
    );
}
