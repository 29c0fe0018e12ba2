// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans of every shape, written as Chrome JSON, Perfetto and FXT: in Perfetto's own trace processor each
//! has the duration with which it was generated, by name. Reading them with our own readers would not
//! suffice: ours match by name, others by the innermost span.

use std::path::{Path, PathBuf};

use lateralis_traces::{OpenOptions, Options, Target, convert, open};
use serde_json::{Value, json};

use crate::tools::TraceProcessor;

/// Name and duration in nanoseconds; -1 if it never ended.
type Spans = Vec<(String, i64)>;

/// Chrome JSON events, and their spans.
#[derive(Default)]
struct Shapes {
    events: Vec<Value>,
    spans: Spans,
    state: u64,
}

impl Shapes {
    fn random(&mut self, below: u64) -> u64 {
        // Generator of Numerical Recipes: a test must have the same shapes each time.
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 33) % below
    }

    fn event(&mut self, phase: &str, name: &str, ts: u64, (pid, tid): (u32, u32)) -> &mut Value {
        let event =
            json!({"ph": phase, "name": name, "ts": ts, "pid": pid, "tid": tid, "cat": "c"});
        self.events.push(event);
        self.events.last_mut().unwrap()
    }

    fn whole(&mut self, name: &str, ts: u64, dur: u64, thread: (u32, u32)) {
        self.event("X", name, ts, thread)["dur"] = json!(dur);
        self.spans.push((name.to_owned(), dur as i64 * 1000));
    }

    fn edges(&mut self, name: &str, ts: u64, dur: u64, thread: (u32, u32)) {
        self.event("B", name, ts, thread);
        self.event("E", name, ts + dur, thread);
        self.spans.push((name.to_owned(), dur as i64 * 1000));
    }

    fn keyed(&mut self, name: &str, id: &str, ts: u64, dur: u64, thread: (u32, u32)) {
        self.event("b", name, ts, thread)["id"] = json!(id);
        self.event("e", name, ts + dur, thread)["id"] = json!(id);
        self.spans.push((name.to_owned(), dur as i64 * 1000));
    }

    /// A tree of complete spans as written by clang -ftime-trace: inner before outer, many at one time
    /// and with equal ends.
    fn tree(&mut self, begin: u64, end: u64, depth: u32, thread: (u32, u32)) {
        let mut at = begin;
        while depth > 0 && at < end && self.random(5) > 0 {
            let inner_end = (at + self.random(end - at + 1)).max(at);
            self.tree(at, inner_end, depth - 1, thread);
            at = inner_end + self.random(2) * self.random(3);
        }
        let name = format!("s{}", self.random(6));
        self.whole(&name, begin, end - begin, thread);
    }
}

fn equal_times() -> Shapes {
    let mut shapes = Shapes::default();
    shapes.whole("s child", 10, 5, (1, 1));
    shapes.whole("s parent", 10, 50, (1, 1));
    shapes.whole("s zero", 10, 0, (1, 1));
    shapes.whole("s g", 10, 2, (1, 1));
    shapes.whole("s zero at the end", 60, 0, (1, 1));
    shapes.whole("s next", 60, 5, (1, 1));
    shapes
}

fn overlaps() -> Shapes {
    let mut shapes = Shapes::default();
    shapes.whole("s a", 10, 10, (1, 1));
    shapes.whole("s b", 15, 10, (1, 1));
    shapes.whole("s in both", 16, 2, (1, 1));
    shapes.whole("s c", 19, 30, (1, 1));
    // Begins and ends, in file order but not nested.
    shapes.event("B", "s p", 100, (1, 2));
    shapes.event("B", "s q", 103, (1, 2));
    shapes.event("E", "s p", 105, (1, 2));
    shapes.event("B", "s r", 105, (1, 2));
    shapes.event("E", "s q", 107, (1, 2));
    shapes.event("E", "s r", 109, (1, 2));
    shapes.spans.extend([("s p", 5000), ("s q", 4000), ("s r", 4000)].map(|(n, d)| (n.into(), d)));
    shapes
}

fn asynchronous() -> Shapes {
    let mut shapes = Shapes::default();
    // One id in two processes, and reused.
    shapes.event("b", "s load", 0, (1, 1))["id"] = json!("0x1");
    shapes.event("b", "s load", 2, (2, 1))["id"] = json!("0x1");
    shapes.event("e", "s load", 10, (1, 1))["id"] = json!("0x1");
    shapes.event("e", "s load", 20, (2, 1))["id"] = json!("0x1");
    shapes.spans.extend([("s load", 10_000), ("s load", 18_000)].map(|(n, d)| (n.into(), d)));
    shapes.keyed("s again", "0x7", 30, 5, (1, 1));
    shapes.keyed("s again", "0x7", 36, 9, (1, 1));
    shapes.keyed("s other", "0x8", 31, 40, (1, 1));
    shapes
}

fn unfinished() -> Shapes {
    let mut shapes = Shapes::default();
    shapes.whole("s before", 1, 5, (1, 1));
    shapes.event("B", "s never", 3, (1, 1));
    shapes.whole("s in it", 4, 50, (1, 1));
    shapes.edges("s behind", 60, 10, (1, 1));
    shapes.event("b", "s open", 5, (1, 1))["id"] = json!(4);
    shapes.spans.extend([("s never", -1), ("s open", -1)].map(|(n, d)| (n.to_owned(), d)));
    shapes
}

fn flows_and_counters() -> Shapes {
    let mut shapes = Shapes::default();
    shapes.whole("s sends", 10, 10, (1, 1));
    shapes.whole("s receives", 30, 10, (1, 2));
    shapes.event("s", "arrow", 12, (1, 1))["id"] = json!(9);
    let end = shapes.event("f", "arrow", 32, (1, 2));
    (end["id"], end["bp"]) = (json!(9), json!("e"));
    for (ts, value) in [(5, 1), (15, 2)] {
        shapes.event("C", "level", ts, (1, 1))["args"] = json!({"value": value});
    }
    shapes
}

/// Random ones: trees, and spans anywhere.
fn random(seed: u64) -> Shapes {
    let mut shapes = Shapes { state: seed, ..Shapes::default() };
    for thread in [(1, 1), (1, 2), (2, 3)] {
        shapes.tree(0, 400, 4, thread);
        for number in 0..30 {
            // Spans of one name do not overlap here: the assignment of their ends would be ambiguous.
            let (ts, dur) = (500 + shapes.random(60), shapes.random(30));
            match shapes.random(3) {
                0 => shapes.whole(&format!("s{}", number % 5), ts, dur, thread),
                1 => shapes.edges(&format!("s{number} of {}", thread.1), ts, dur.max(1), thread),
                _ => shapes.keyed(
                    &format!("s{}", number % 5),
                    &format!("{:#x}", seed * 1000 + number + u64::from(thread.1) * 100_000),
                    ts,
                    dur.max(1),
                    thread,
                ),
            }
        }
    }
    shapes
}

fn sorted(mut spans: Spans) -> Spans {
    spans.sort();
    spans
}

fn spans_of(processor: &TraceProcessor, path: &Path) -> (Spans, Value) {
    let queries = [
        "select name, dur from slice where name like 's%'",
        "select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
    ];
    let answers = processor.ask(path, &queries);
    let rows = answers[0].as_array().unwrap();
    let span = |row: &Value| {
        let duration: i64 = row[1].as_str().unwrap().parse().unwrap();
        (row[0].as_str().unwrap().to_owned(), duration)
    };
    (sorted(rows.iter().map(span).collect()), answers[1].clone())
}

#[test]
fn durations_by_name_are_those_of_the_trace_processor() {
    let Some(processor) = TraceProcessor::find() else { return };
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut all = vec![
        ("equal", equal_times()),
        ("overlaps", overlaps()),
        ("asynchronous", asynchronous()),
        ("unfinished", unfinished()),
        ("flows", flows_and_counters()),
    ];
    all.extend((1..=6).map(|seed| ("random", random(seed))));
    let mut wrong = Vec::new();
    for (number, (name, shapes)) in all.into_iter().enumerate() {
        let from = directory.join(format!("nested-{number}.json"));
        std::fs::write(&from, json!({ "traceEvents": shapes.events }).to_string()).unwrap();
        let trace = open(std::slice::from_ref(&from), &OpenOptions::default()).unwrap();
        let wanted = sorted(shapes.spans);
        let targets =
            [(Target::Perfetto, "pftrace"), (Target::Fxt, "fxt"), (Target::Chrome, "out.json")];
        for (target, ending) in targets {
            let path = from.with_extension(ending);
            let options = Options { replace: true, ..Options::default() };
            let converted = convert(&trace, target, &path, &options).unwrap();
            let (found, problems) = spans_of(&processor, &path);
            // Chrome's own events are reproduced, with ids that are valid for all processes.
            let of_file = (target == Target::Chrome && name == "asynchronous")
                .then(|| spans_of(&processor, &from).0);
            let wanted = of_file.unwrap_or_else(|| wanted.clone());
            if found != wanted || problems != json!([]) {
                let missing: Vec<_> = wanted.iter().filter(|span| !found.contains(span)).collect();
                let more: Vec<_> = found.iter().filter(|span| !wanted.contains(span)).collect();
                wrong.push(format!(
                    "{name} {target:?}: {} of {}, missing {missing:?}, instead {more:?}, {problems}",
                    found.len(),
                    wanted.len()
                ));
            }
            // Overlapping spans get a line of their own, which is reported with its number.
            let told = converted.dropped.iter().find(|(what, _)| what.contains("overlap"));
            assert_eq!(
                told.map(|(_, count)| count).is_some(),
                matches!(name, "overlaps" | "random" | "unfinished"),
                "{name}"
            );
        }
        if name == "flows" {
            for (_, ending) in targets {
                let rows = processor.ask(
                    &from.with_extension(ending),
                    &[
                        "select o.name, i.name from flow f join slice o on f.slice_out = o.id \
                         join slice i on f.slice_in = i.id",
                        "select value from counter order by ts",
                    ],
                );
                println!("{ending} {} {}", rows[0], rows[1]);
                assert_eq!(rows[1].as_array().unwrap().len(), 2, "{ending}");
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
