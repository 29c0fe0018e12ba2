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
//! count.

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
        let total = threads.total(&mut builder, bytes);
        total.and_then(|()| {
            elements(bytes, list, &mut damages, |thread| threads.thread(&mut builder, thread))
        })
    } else {
        let results = Results::new(&mut builder, stream_class, stream);
        elements(bytes, list, &mut damages, |benchmark| results.benchmark(&mut builder, benchmark))
    };
    if added.is_err() {
        builder.remark(damages::full(name, list.unwrap_or(0)));
    }
    damages.finish(&mut builder);
    Some(builder.finish())
}

/// Calls `element` for each element of the list that begins at `at`.
fn elements(
    bytes: &[u8],
    at: Option<usize>,
    damages: &mut Damages,
    mut element: impl FnMut(&Value) -> Result<(), Full>,
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
            Some(Ok(value)) => element(&value)?,
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

    fn total(&self, builder: &mut Builder, bytes: &[u8]) -> Result<(), Full> {
        let values = TOTALS.map(|(key, _)| total(bytes, key));
        if values.iter().all(Option::is_none) {
            return Ok(());
        }
        let pending = builder.event(self.stream, self.total, 0, None);
        values.iter().fold(pending, |pending, value| pending.u64(value.unwrap_or(0))).end()
    }

    fn thread(&mut self, builder: &mut Builder, thread: &Value) -> Result<(), Full> {
        let name = thread.get("NAME").and_then(Value::as_str).unwrap_or("");
        self.count += 1;
        let writer = Writer { pid: 0, tid: self.count };
        let pending = builder.event(self.stream, self.thread, 0, Some(writer)).text(name);
        let number = |key: &str| thread.get(key).and_then(Value::as_u64).unwrap_or(0);
        OF_THREAD.iter().fold(pending, |pending, key| pending.u64(number(key))).end()?;
        builder.names().threads.insert(self.count, name.to_owned());
        Ok(())
    }
}

/// The number behind a key.
fn total(bytes: &[u8], key: &str) -> Option<u64> {
    let quoted = format!("\"{key}\"");
    let rest = &bytes[position(bytes, &quoted)? + quoted.len()..];
    let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// Results of benchmarks, and their samples.
struct Results {
    stream: StreamIndex,
    result: u32,
    sample: u32,
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
        let numbers = ["index", "value"].map(|name| (name, FieldClass::u64()));
        let sample = builder.event_class(
            stream_class,
            EventClass {
                name: "sel4bench:sample".to_owned(),
                payload: Some(FieldClass::structure(texts().into_iter().chain(numbers))),
                attributes: counters(["value"]),
                ..EventClass::default()
            },
        );
        Self { stream, result, sample }
    }

    fn benchmark(&self, builder: &mut Builder, benchmark: &Value) -> Result<(), Full> {
        let name = benchmark.get("Benchmark").and_then(Value::as_str).unwrap_or("");
        let results = benchmark.get("Results").and_then(Value::as_array);
        for result in results.into_iter().flatten().filter_map(Value::as_object) {
            let columns = columns(result);
            let pending = builder.event(self.stream, self.result, 0, None);
            let pending = pending.text(name).text(&columns);
            // What is not there is not a number.
            let number = |key: &str| result.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
            STATISTICS.iter().fold(pending, |pending, (key, _)| pending.real(number(key))).end()?;
            let samples = result.get("Raw results").and_then(Value::as_array);
            for (index, value) in samples.into_iter().flatten().enumerate() {
                let whole = value.as_u64().or_else(|| value.as_f64().map(|value| value as u64));
                let pending = builder.event(self.stream, self.sample, 0, None);
                let pending = pending.text(name).text(&columns).u64(index as u64);
                pending.u64(whole.unwrap_or(0)).end()?;
            }
        }
        Ok(())
    }
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
