// SPDX-License-Identifier: Apache-2.0 OR MIT
//! JSON that kernel and benchmarks print on the console.
//!
//! ```text
//! {"BENCHMARK_TOTAL_UTILISATION": 9, ...,
//!  "BENCHMARK_TCB_": [{"NAME": "a", "UTILISATION": 5, ...}]}
//! [{"Benchmark": "ipc",
//!   "Results": [{"Function": "call", "Min": 1, ..., "Raw results": [1, 2]}]}]
//! ```
//!
//! Elements of lists are read one by one: of a text that was cut, the whole ones
//! count. An element of another shape is damage: no number is made up for it.

use lateralis_model::role::ATTRIBUTE;
use lateralis_model::{
    Attribute, Builder, DamageReason, EventClass, FieldClass, Full, MemoryTrace, StreamClass,
    StreamIndex, Writer,
};
use serde_json::{Map, Value};

use crate::damages::{self, Damages};

const TOTALS: [(&str, &str); 4] = [
    ("BENCHMARK_TOTAL_UTILISATION", "cycles"),
    ("BENCHMARK_TOTAL_KERNEL_UTILISATION", "kernel_cycles"),
    ("BENCHMARK_TOTAL_NUMBER_KERNEL_ENTRIES", "kernel_entries"),
    ("BENCHMARK_TOTAL_NUMBER_SCHEDULES", "schedules"),
];

/// Keys of a thread, in the order of the fields of [`TOTALS`].
const OF_THREAD: [&str; 4] =
    ["UTILISATION", "KERNEL_UTILISATION", "NUMBER_KERNEL_ENTRIES", "NUMBER_SCHEDULES"];

const STATISTICS: [(&str, &str); 10] = [
    ("Min", "min"),
    ("Max", "max"),
    ("Mean", "mean"),
    ("Stddev", "stddev"),
    ("Variance", "variance"),
    ("Mode", "mode"),
    ("Median", "median"),
    ("1st quantile", "quantile_1"),
    ("3rd quantile", "quantile_3"),
    ("Samples", "samples"),
];

/// Description of elements of lists, as used in damage.
const THREAD_RULE: &str = "a thread has a name and four whole numbers";
const TOTALS_RULE: &str = "the totals are four whole numbers";
const BENCHMARK_RULE: &str = "a benchmark has a name, and results with statistics or samples";

/// A value of JSON takes some ten times the bytes of its text.
const GROWTH: u64 = 16;

fn position(bytes: &[u8], what: &str) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what.as_bytes())
}

fn is_utilisation(bytes: &[u8]) -> bool {
    position(bytes, "\"BENCHMARK_TOTAL_").is_some() || position(bytes, "\"BENCHMARK_TCB_").is_some()
}

/// Where the list of benchmarks begins.
fn benchmarks_at(bytes: &[u8]) -> Option<usize> {
    let key = position(bytes, "\"Benchmark\"")?;
    bytes[..key].iter().rposition(|byte| *byte == b'[')
}

pub(super) fn sniff(first: &[u8]) -> bool {
    is_utilisation(first) || benchmarks_at(first).is_some()
}

pub(super) fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Option<MemoryTrace> {
    let utilisation = is_utilisation(bytes);
    let list = if utilisation {
        position(bytes, "\"BENCHMARK_TCB_")
            .and_then(|at| Some(at + bytes[at..].iter().position(|byte| *byte == b'[')?))
    } else {
        Some(benchmarks_at(bytes)?)
    };
    let format = if utilisation { "seL4 utilisation" } else { "sel4bench JSON" };
    let mut builder = MemoryTrace::builder(format, limit_bytes);
    if bytes.len() as u64 > limit_bytes / GROWTH {
        builder.remark(damages::full(name, 0));
        return Some(builder.finish());
    }
    let stream_class = builder.stream_class(StreamClass::default());
    let stream = builder.stream(stream_class, format, None);
    let mut damages = Damages::new(name);
    let added = if utilisation {
        let mut threads = Threads::new(&mut builder, stream_class, stream);
        let total = threads.total(&mut builder, bytes, &mut damages);
        total.and_then(|()| {
            let thread = |thread: &Value| threads.thread(&mut builder, thread);
            elements(bytes, list, &mut damages, THREAD_RULE, thread)
        })
    } else {
        let mut results = Results::new(&mut builder, stream_class, stream);
        let benchmark = |benchmark: &Value| results.benchmark(&mut builder, benchmark);
        let added = elements(bytes, list, &mut damages, BENCHMARK_RULE, benchmark);
        if results.left_out > 0 {
            let count = results.left_out;
            builder.remark(format!("{name}: {count} samples are no whole numbers and left out"));
        }
        if results.count == 0 {
            builder.remark(format!("{name}: its benchmarks have no results"));
        }
        added
    };
    if added.is_err() {
        builder.remark(damages::full(name, list.unwrap_or(0)));
    }
    damages.finish(&mut builder);
    Some(builder.finish())
}

/// Calls `element` for each element of the list that begins at `at`; one for which it
/// returns false breaks the rule.
fn elements(
    bytes: &[u8],
    at: Option<usize>,
    damages: &mut Damages,
    rule: &'static str,
    mut element: impl FnMut(&Value) -> Result<bool, Full>,
) -> Result<(), Full> {
    let Some(mut at) = at.map(|at| at + 1) else { return Ok(()) };
    loop {
        let between = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
        at += bytes[at..].iter().take_while(between).count();
        if bytes.get(at) == Some(&b']') {
            return Ok(());
        }
        let mut values = serde_json::Deserializer::from_slice(&bytes[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                if !element(&value)? {
                    damages.add(at, at + values.byte_offset(), DamageReason::BadValue { rule });
                }
            }
            Some(Err(error)) if !error.is_eof() => {
                let rule = "an element of a list is JSON";
                damages.add(at, bytes.len(), DamageReason::BadValue { rule });
                return Ok(());
            }
            _ => {
                damages.add(at, bytes.len(), DamageReason::Truncated { missing_bytes: None });
                return Ok(());
            }
        }
        at += values.byte_offset();
    }
}

fn counters<'a>(fields: impl IntoIterator<Item = &'a str>) -> Vec<Attribute> {
    let attribute = |field| {
        let (name, value) = (ATTRIBUTE.to_owned(), format!("counter {field}"));
        Attribute { name, value }
    };
    fields.into_iter().map(attribute).collect()
}

/// Utilisation of the system and of each thread.
struct Threads {
    stream: StreamIndex,
    total: u32,
    thread: u32,
    count: u32,
}

impl Threads {
    fn new(builder: &mut Builder, stream_class: u32, stream: StreamIndex) -> Self {
        let numbers = || TOTALS.map(|(_, field)| (field, FieldClass::u64()));
        let total = builder.event_class(
            stream_class,
            EventClass {
                name: "utilisation:total".to_owned(),
                payload: Some(FieldClass::structure(numbers())),
                attributes: counters(TOTALS.map(|(_, field)| field)),
                ..EventClass::default()
            },
        );
        let fields = [("thread", FieldClass::text())].into_iter().chain(numbers());
        let thread = builder.event_class(
            stream_class,
            EventClass {
                name: "utilisation:thread".to_owned(),
                payload: Some(FieldClass::structure(fields)),
                attributes: counters(TOTALS.map(|(_, field)| field)),
                ..EventClass::default()
            },
        );
        Self { stream, total, thread, count: 0 }
    }

    fn total(
        &self,
        builder: &mut Builder,
        bytes: &[u8],
        damages: &mut Damages,
    ) -> Result<(), Full> {
        let values: Option<Vec<u64>> = TOTALS.iter().map(|(key, _)| total(bytes, key)).collect();
        if let Some(values) = values {
            let pending = builder.event(self.stream, self.total, 0, None);
            return values.into_iter().fold(pending, |pending, value| pending.u64(value)).end();
        }
        // Threads alone are fine; some of the totals are not.
        let place = |(key, _): &(&str, _)| position(bytes, &format!("\"{key}\""));
        let first = TOTALS.iter().filter_map(place).min();
        if let Some(begin) = first {
            let list = position(bytes, "\"BENCHMARK_TCB_\"").filter(|list| *list > begin);
            let reason = DamageReason::BadValue { rule: TOTALS_RULE };
            damages.add(begin, list.unwrap_or(bytes.len()), reason);
        }
        Ok(())
    }

    fn thread(&mut self, builder: &mut Builder, thread: &Value) -> Result<bool, Full> {
        let name = thread.get("NAME").and_then(Value::as_str);
        let number = |key: &&str| thread.get(*key).and_then(Value::as_u64);
        let numbers: Option<Vec<u64>> = OF_THREAD.iter().map(number).collect();
        let (Some(name), Some(numbers)) = (name, numbers) else { return Ok(false) };
        self.count += 1;
        let writer = Writer { pid: 0, tid: self.count };
        let pending = builder.event(self.stream, self.thread, 0, Some(writer)).text(name);
        numbers.into_iter().fold(pending, |pending, number| pending.u64(number)).end()?;
        builder.names().threads.insert(self.count, name.to_owned());
        Ok(true)
    }
}

/// The number after a key; it is complete if another character follows.
fn total(bytes: &[u8], key: &str) -> Option<u64> {
    let quoted = format!("\"{key}\"");
    let rest = &bytes[position(bytes, &quoted)? + quoted.len()..];
    let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ended = rest.get(digits).is_some_and(|next| !matches!(next, b'.' | b'e' | b'E'));
    std::str::from_utf8(&rest[..digits]).ok().filter(|_| ended)?.parse().ok()
}

/// Results of benchmarks, and their samples.
struct Results {
    stream: StreamIndex,
    result: u32,
    sample: u32,
    /// Results that were read.
    count: u64,
    /// Samples that are no whole numbers.
    left_out: u64,
}

impl Results {
    fn new(builder: &mut Builder, stream_class: u32, stream: StreamIndex) -> Self {
        let texts = || ["benchmark", "columns"].map(|name| (name, FieldClass::text()));
        let numbers = STATISTICS.map(|(_, field)| (field, FieldClass::real()));
        let result = builder.event_class(
            stream_class,
            EventClass {
                name: "sel4bench:result".to_owned(),
                payload: Some(FieldClass::structure(texts().into_iter().chain(numbers))),
                ..EventClass::default()
            },
        );
        // Samples less the cost of measuring may be negative.
        let numbers = [("index", FieldClass::u64()), ("value", FieldClass::i64())];
        let sample = builder.event_class(
            stream_class,
            EventClass {
                name: "sel4bench:sample".to_owned(),
                payload: Some(FieldClass::structure(texts().into_iter().chain(numbers))),
                attributes: counters(["value"]),
                ..EventClass::default()
            },
        );
        Self { stream, result, sample, count: 0, left_out: 0 }
    }

    fn benchmark(&mut self, builder: &mut Builder, benchmark: &Value) -> Result<bool, Full> {
        let name = benchmark.get("Benchmark").and_then(Value::as_str);
        let results = benchmark.get("Results").and_then(Value::as_array);
        let (Some(name), Some(results)) = (name, results) else { return Ok(false) };
        let mut known = true;
        for result in results {
            let result = result.as_object().filter(|result| is_result(result));
            let Some(result) = result else {
                known = false;
                continue;
            };
            self.count += 1;
            let columns = columns(result);
            let pending = builder.event(self.stream, self.result, 0, None);
            let pending = pending.text(name).text(&columns);
            // What is not there is not a number.
            let number = |key: &str| result.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
            STATISTICS.iter().fold(pending, |pending, (key, _)| pending.real(number(key))).end()?;
            let samples = result.get("Raw results").and_then(Value::as_array);
            for (index, value) in samples.into_iter().flatten().enumerate() {
                let Some(value) = value.as_i64() else {
                    self.left_out += 1;
                    continue;
                };
                let pending = builder.event(self.stream, self.sample, 0, None);
                let pending = pending.text(name).text(&columns);
                pending.u64(index as u64).i64(value).end()?;
            }
        }
        Ok(known)
    }
}

/// Whether there is anything in a result that is known.
fn is_result(result: &Map<String, Value>) -> bool {
    let number = |(key, _): &(&str, _)| result.get(*key).is_some_and(Value::is_number);
    STATISTICS.iter().any(number) || result.get("Raw results").is_some_and(Value::is_array)
}

/// The columns of a result that are no statistics: `Function: call, Cores: 1`.
fn columns(result: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (key, value) in result {
        if key == "Raw results" || STATISTICS.iter().any(|(known, _)| known == key) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        match value {
            Value::String(value) => text.push_str(&format!("{key}: {value}")),
            value => text.push_str(&format!("{key}: {value}")),
        }
    }
    text
}
