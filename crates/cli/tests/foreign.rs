// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces of other tools, compared with the results of Perfetto's trace processor.
//!
//! Real traces are not kept here. A generator imitates them: PyTorch's profiler, old and new versions of
//! Chrome, clang's `-ftime-trace`. All are generated from a seed, so that a failure can be reproduced.
//!
//! The generated traces avoid the intended differences:
//!
//! | Perfetto | here |
//! |---|---|
//! | drops a complete event that overlaps another of its thread | keeps both |
//! | of overlapping begins and ends with names, ends the wrong one | matches by name |
//! | keeps negative durations | the span is unfinished |
//! | instants are slices of length zero | instants |

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::exports::TARGETS;
use crate::place::Place;
use serde_json::json;

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../traces/tests/targets/tools.rs"]
mod tools;

pub use tools::TraceProcessor;

/// Pseudo-random numbers, the same for each seed.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

/// Events in the order in which they are generated.
struct Shape {
    random: Random,
    events: Vec<String>,
}

impl Shape {
    fn new(seed: u64) -> Self {
        Self { random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), events: Vec::new() }
    }

    fn add(&mut self, event: String) {
        self.events.push(event);
    }

    /// Shuffles the events, as in traces of tools that write one buffer after the other.
    fn shuffle(&mut self) {
        for last in (1..self.events.len()).rev() {
            let other = self.random.next(last as u64 + 1) as usize;
            self.events.swap(last, other);
        }
    }

    /// Generates nested spans of a thread, starting at `at`; `put` writes one with its end. Times are
    /// distinct, in steps of nanoseconds.
    fn nest(&mut self, at: &mut u64, depth: u64, put: &mut dyn FnMut(&mut Self, u64, u64, u64)) {
        let begin = *at;
        *at += 1 + self.random.next(50_000);
        if depth > 0 {
            for _ in 0..self.random.next(4) {
                self.nest(at, depth - 1, put);
            }
        }
        *at += 1 + self.random.next(50_000);
        let end = *at;
        *at += 1 + self.random.next(1000);
        let name = self.random.next(12);
        put(self, begin, end, name);
    }

    fn array(&self) -> String {
        format!("[{}]", self.events.join(",\n"))
    }
}

/// Formats nanoseconds as microseconds with three decimals.
fn us(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1000, nanos % 1000)
}

/// PyTorch: complete events with invalid JSON in arguments, GPU streams with flows, thread ids as text,
/// missing durations.
fn pytorch(seed: u64) -> String {
    let mut shape = Shape::new(seed);
    for thread in 1..4u64 {
        let mut at = 1_000_000 * thread;
        for _ in 0..6 {
            shape.nest(&mut at, 4, &mut |shape, begin, end, name| {
                let (ts, dur) = (us(begin), us(end - begin));
                let arguments = match shape.random.next(8) {
                    0 => "{\"Fwd thread id\": NaN}",
                    1 => "{\"Call\": \"a \\u0001\x01 b\"}",
                    2 => "{\"stack\": \"\\ud800 half\"}",
                    3 => "{\"bandwidth\": inf, \"x\": 1}",
                    4 => "{\"shape\": [[1,2],[3]]}",
                    _ => "{}",
                };
                let mut event = format!(
                    "{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::op{name}\",\"pid\":7,\
                     \"tid\":{thread},\"ts\":{ts},"
                );
                // Some events lack a duration, which does not affect others.
                if shape.random.next(20) > 0 {
                    let _ = write!(event, "\"dur\":{dur},");
                }
                let _ = write!(event, "\"args\":{arguments}}}");
                shape.add(event);
            });
        }
    }
    let mut at = 5_000_000;
    for id in 0..40 {
        let begin = at + shape.random.next(1000);
        let length = 1 + shape.random.next(90_000);
        at = begin + length + 1;
        let (ts, dur, stream) = (us(begin), us(length), 7);
        shape.add(format!(
            "{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"kernel{}\",\"pid\":0,\"tid\":{stream},\
             \"ts\":{ts},\"dur\":{dur},\"args\":{{\"correlation\":{id}}}}}",
            id % 5
        ));
        shape.add(format!(
            "{{\"ph\":\"f\",\"id\":{id},\"pid\":0,\"tid\":{stream},\"ts\":{ts},\"cat\":\"ac2g\",\
             \"name\":\"ac2g\",\"bp\":\"e\"}}"
        ));
    }
    let metadata = "x".repeat(if seed.is_multiple_of(2) { 9000 } else { 10 });
    format!(
        "{{\"schemaVersion\":1,\"distributedInfo\":{{\"ranks\":\"{metadata}\"}},\n\"traceEvents\":{},\n\
         \"traceName\":\"x.json\"}}",
        shape.array()
    )
}

/// Chrome up to version 65: begins, ends without names, in any order; legacy async events.
fn chrome_begin_end(seed: u64) -> String {
    let mut shape = Shape::new(seed);
    for thread in 1..5u64 {
        let mut at = 10_000 * thread;
        for _ in 0..5 {
            shape.nest(&mut at, 4, &mut |shape, begin, end, name| {
                let (begin, end) = (us(begin), us(end));
                let category = if name.is_multiple_of(2) { "toplevel" } else { "cc,benchmark" };
                shape.add(format!(
                    "{{\"ph\":\"B\",\"cat\":\"{category}\",\"name\":\"Task{name}\",\"pid\":1,\
                     \"tid\":{thread},\"ts\":{begin},\"args\":{{}}}}"
                ));
                let name = match shape.random.next(3) {
                    0 => format!("\"name\":\"Task{name}\","),
                    _ => String::new(),
                };
                shape.add(format!(
                    "{{\"ph\":\"E\",\"cat\":\"{category}\",{name}\"pid\":1,\"tid\":{thread},\
                     \"ts\":{end},\"args\":{{\"r\":1}}}}"
                ));
            });
        }
    }
    shape.shuffle();
    shape.array()
}

/// Chrome from version 66: complete events; async events by `id` and `id2` in several processes and
/// categories; ends without names.
pub fn chrome_async(seed: u64) -> String {
    let mut shape = Shape::new(seed);
    for pid in 1..4u64 {
        let mut at = 10_000 * pid;
        for _ in 0..3 {
            shape.nest(&mut at, 3, &mut |shape, begin, end, name| {
                let (ts, dur) = (us(begin), us(end - begin));
                let dur = match shape.random.next(12) {
                    0 => String::new(),
                    _ => format!("\"dur\":{dur},"),
                };
                shape.add(format!(
                    "{{\"ph\":\"X\",\"cat\":\"blink\",\"name\":\"MessageLoop::RunTask{name}\",\
                     \"pid\":{pid},\"tid\":1,\"ts\":{ts},{dur}\"tdur\":1}}"
                ));
            });
        }
        for id in 0..30u64 {
            let begin = shape.random.next(1_000_000);
            let end = begin + 1 + shape.random.next(1_000_000);
            let key = match id % 3 {
                0 => format!("\"id\":\"0x{:x}\"", id / 6),
                1 => format!("\"id2\":{{\"local\":\"0x{:x}\"}}", id / 6),
                _ => format!("\"id2\":{{\"global\":\"0x{:x}{pid}\"}}", id / 6),
            };
            // Only one span per key and category is open at a time.
            let category = format!("c{id}");
            let name = match shape.random.next(2) {
                0 => format!("\"name\":\"Request{}\",", id % 4),
                _ => String::new(),
            };
            shape.add(format!(
                "{{\"ph\":\"b\",\"cat\":\"{category}\",\"name\":\"Request{}\",{key},\"pid\":{pid},\
                 \"tid\":1,\"ts\":{}}}",
                id % 4,
                us(begin)
            ));
            shape.add(format!(
                "{{\"ph\":\"e\",\"cat\":\"{category}\",{name}{key},\"pid\":{pid},\"tid\":2,\"ts\":{}}}",
                us(end)
            ));
        }
    }
    shape.shuffle();
    format!("{{\"traceEvents\":{},\"metadata\":{{\"os\":\"Linux\"}}}}", shape.array())
}

/// clang `-ftime-trace`: children before parents, which may begin or end at the same time; one thread for
/// each total.
fn clang(seed: u64) -> String {
    let mut shape = Shape::new(seed);
    let mut at = 0;
    for _ in 0..10 {
        shape.nest(&mut at, 5, &mut |shape, begin, end, name| {
            // Whole microseconds, so that many begin or end together.
            let (begin, end) = (begin / 1000, end / 1000);
            let dur = end - begin;
            shape.add(format!(
                "{{\"pid\":3,\"tid\":3,\"ph\":\"X\",\"ts\":{begin},\"dur\":{dur},\
                 \"name\":\"Pass{name}\",\"args\":{{\"detail\":\"f<a, \\\"b\\\">\"}}}}"
            ));
        });
    }
    for total in 0..20 {
        shape.add(format!(
            "{{\"pid\":3,\"tid\":{},\"ph\":\"X\",\"ts\":0,\"dur\":{},\"name\":\"Total Pass{total}\",\
             \"args\":{{\"count\":3}}}}",
            100 + total,
            shape.events.len() + total
        ));
    }
    format!("{{\"traceEvents\":{},\"beginningOfTime\":1700000000000000}}", shape.array())
}

/// Count and nanoseconds of the complete spans of each name.
pub type Spans = BTreeMap<String, (u64, u64)>;

/// Returns the spans with a duration of at least `least` nanoseconds.
pub fn spans(place: &Place, file: &str, least: u64) -> Spans {
    let mut spans = Spans::new();
    for row in table(place, file, "spans") {
        if row["status"] != "complete" {
            continue;
        }
        let nanos = row["duration"].parse::<u64>().unwrap();
        if nanos >= least {
            let of = spans.entry(row["span"].clone()).or_default();
            of.0 += 1;
            of.1 += nanos;
        }
    }
    spans
}

/// Returns the rows of a table.
pub fn table(place: &Place, file: &str, name: &str) -> Vec<BTreeMap<String, String>> {
    let output = place.lat(&["table", file, "--name", name]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut rows = csv(&text).into_iter();
    let columns = rows.next().unwrap_or_default();
    rows.map(|row| columns.iter().cloned().zip(row).collect()).collect()
}

/// Parses CSV. Quoted cells may contain commas, line feeds, and doubled quotes [RFC 4180].
fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    for (at, character) in text.char_indices() {
        match character {
            '"' => {
                is_quoted = !is_quoted;
                if is_quoted && text[..at].ends_with('"') {
                    cell.push('"');
                }
            }
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            // Lines end with CR LF.
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            other => cell.push(other),
        }
    }
    rows
}

/// Returns the same from Perfetto's trace processor.
pub fn perfetto(tool: &TraceProcessor, place: &Place, file: &str, least: u64) -> Spans {
    let query =
        format!("select name, count(*), sum(dur) from slice where dur >= {least} group by name");
    let answers = tool.ask(&place.0.join(file), &[&query]);
    let number = |value: &serde_json::Value| {
        value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap()
    };
    let rows = answers[0].as_array().unwrap().iter();
    rows.map(|row| {
        (row[0].as_str().unwrap_or_default().to_owned(), (number(&row[1]), number(&row[2])))
    })
    .collect()
}

#[test]
fn spans_are_those_of_the_trace_processor() {
    let Some(tool) = TraceProcessor::find() else { return };
    let place = Place::new();
    type Shape = fn(u64) -> String;
    let shapes: [(&str, Shape); 4] = [
        ("pytorch", pytorch),
        ("chrome-begin-end", chrome_begin_end),
        ("chrome-async", chrome_async),
        ("clang", clang),
    ];
    for (name, make) in shapes {
        for seed in 1..9 {
            let file = format!("{name}-{seed}.json");
            std::fs::write(place.0.join(&file), make(seed)).unwrap();
            let (own, other) = (spans(&place, &file, 0), perfetto(&tool, &place, &file, 0));
            assert!(own.len() > 3, "{file}: {own:?}");
            assert_eq!(own, other, "{file}");
            // Conversions of it have the same spans.
            if seed == 1 {
                let found = crate::exports::exported(&tool, &place, &file, &TARGETS);
                assert_eq!(found, [""; 0], "{file}");
            }
            let printed = place.lat(&["print", &file]);
            assert!(
                printed.status.success(),
                "{file}: {}",
                String::from_utf8_lossy(&printed.stderr)
            );
        }
    }
}

#[test]
fn begins_and_ends_are_told_apart() {
    let place = Place::new();
    let text =
        r#"[{"ph":"B","name":"x","ts":3,"pid":1,"tid":1},{"ph":"E","ts":9,"pid":1,"tid":1}]"#;
    std::fs::write(place.0.join("t.json"), text).unwrap();
    let printed =
        |arguments: &[&str]| String::from_utf8_lossy(&place.lat(arguments).stdout).into_owned();
    let lines = printed(&["print", "t.json"]);
    assert!(lines.contains("x (begin)\n") && lines.contains("x (end)\n"), "{lines}");
    for phase in ["begin", "end"] {
        let lines = printed(&["print", "t.json", "--where", &format!("$phase == \"{phase}\"")]);
        assert!(lines.lines().count() == 1 && lines.contains(phase), "{lines}");
    }
    let lines = printed(&["print", "t.json", "--format", "json"]);
    assert!(lines.contains(r#""phase":"begin""#) && lines.contains(r#""phase":"end""#), "{lines}");
    let phases = |name: &str| -> Vec<String> {
        table(&place, "t.json", name).iter().map(|row| row["phase"].clone()).collect()
    };
    assert_eq!(phases("events"), ["begin", "end"]);
    assert_eq!(phases("classes"), ["begin", "end"]);
}

#[test]
fn arrows_go_by_their_ids_and_may_fan_out() {
    let place = Place::new();
    let text = r#"[
        {"pid":1,"tid":1,"name":"A","ph":"X","ts":0,"dur":0.1,"bind_id":"0x1","flow_out":true},
        {"pid":2,"tid":2,"name":"B","ph":"X","ts":0.2,"dur":0.1,"bind_id":"0x1","flow_in":true,
         "flow_out":true},
        {"pid":2,"tid":3,"name":"C","ph":"X","ts":0.4,"dur":0.1,"bind_id":"0x1","flow_in":true},
        {"pid":2,"tid":4,"name":"C","ph":"X","ts":0.5,"dur":0.1,"bind_id":"0x1","flow_in":false},
        {"pid":1,"tid":1,"name":"m","ph":"s","ts":2,"id":5,"cat":"k"},
        {"pid":1,"tid":7,"name":"m","ph":"f","ts":20,"id":5,"cat":"k"},
        {"pid":1,"tid":8,"name":"m","ph":"f","ts":30,"id":5,"cat":"k"},
        {"pid":1,"tid":9,"name":"m","ph":"f","ts":40,"id":5,"cat":"other"}]"#;
    std::fs::write(place.0.join("t.json"), text).unwrap();
    let mut found: Vec<_> = table(&place, "t.json", "messages")
        .into_iter()
        .map(|row| (row["ts"].clone(), row["end_ts"].clone(), row["status"].clone()))
        .collect();
    found.sort();
    let expected = [
        ("0", "200", "complete"),
        ("200", "400", "complete"),
        ("2000", "20000", "complete"),
        ("2000", "30000", "complete"),
        ("40000", "40000", "not_sent"),
    ];
    assert_eq!(found, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
}

#[test]
fn what_cannot_be_told_by_its_beginning_is_told() {
    let place = Place::new();
    let filler = "x".repeat(20_000);
    let late = format!(
        r#"{{"rank":"{filler}","traceEvents":[{{"ph":"i","name":"late","ts":1,"pid":1,"tid":1}}]}}"#
    );
    std::fs::write(place.0.join("late.json"), late).unwrap();
    let printed = place.lat(&["print", "late.json"]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("late"));
    std::fs::write(place.0.join("other.json"), format!(r#"{{"rank":"{filler}"}}"#)).unwrap();
    let refused = place.lat(&["print", "other.json"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(error.contains("unknown format") && error.contains("--as FORMAT"), "{error}");
}

/// Asynchronous spans are separate from those of their threads: they are identified by (category, id), and
/// take no time from slices.
#[test]
fn asynchronous_spans_of_chrome_take_no_time_from_slices() {
    let place = Place::new();
    let event = |ph: &str, name: &str, ts: u64, rest: serde_json::Value| {
        let mut event = json!({ "ph": ph, "name": name, "ts": ts, "pid": 1, "tid": 1 });
        event.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        event
    };
    let of = |category: &str| json!({ "cat": category, "id": "1" });
    let events = json!({ "traceEvents": [
        event("X", "alpha", 0, json!({ "dur": 100 })),
        event("X", "inner", 10, json!({ "dur": 5 })),
        event("b", "z", 20, of("A")),
        event("b", "z", 30, of("B")),
        event("e", "z", 80, of("A")),
        event("B", "beta", 200, json!({})),
        event("e", "z", 250, of("B")),
        event("E", "beta", 300, json!({})),
    ] });
    fs::write(place.0.join("trace.json"), events.to_string()).unwrap();
    let stats = place.json(&["stats", "trace.json", "--json"]);
    let mut told: Vec<(String, u64, u64, u64)> = Vec::new();
    for span in stats["spans"].as_array().unwrap() {
        let number = |name: &str| span[name].as_u64().unwrap() / 1000;
        let name = span["span"].as_str().or(span["name"].as_str()).unwrap().to_owned();
        told.push((name, number("self_ns"), number("min_ns"), number("max_ns")));
    }
    told.sort();
    let expected =
        [("alpha", 95, 100, 100), ("beta", 100, 100, 100), ("inner", 5, 5, 5), ("z", 280, 60, 220)];
    assert_eq!(told, expected.map(|(name, own, min, max)| (name.to_owned(), own, min, max)));
}
