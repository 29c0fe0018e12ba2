// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads a perf.data or trace.dat and prints its events, or with `--count` only their number and the time
//! that reading took.

use std::io::Write as _;

use lateralis_model::{Field, Value};

fn show(field: Field<'_>) -> String {
    match field.value() {
        Value::Text(text) => format!("{:?}", text.to_str()),
        Value::Signed(value) => value.to_string(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Array(all) => format!("[{}]", all.map(show).collect::<Vec<_>>().join(" ")),
        Value::Struct(fields) => {
            let fields: Vec<_> =
                fields.into_iter().map(|(m, f)| format!("{}={}", m.name, show(f))).collect();
            format!("{{{}}}", fields.join(" "))
        }
        _ => field.as_u64().map_or_else(|| "?".to_owned(), |value| value.to_string()),
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let Some(path) = arguments.last() else {
        eprintln!("error: no file: events: name a perf.data or trace.dat");
        std::process::exit(2);
    };
    let bytes = std::fs::read(path).expect("the file can be read");
    let begin = std::time::Instant::now();
    let trace = match lateralis_perfdata::open(path, std::sync::Arc::new(bytes), 16 << 30) {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(2);
        }
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut events = trace.events();
    let mut count = 0u64;
    while let Some(event) = events.next_event() {
        count += 1;
        if arguments[0] == "--count" {
            continue;
        }
        let parts = [event.common_context(), event.context(), event.payload()];
        let fields = parts.into_iter().flatten().flatten();
        let fields: Vec<_> = fields.map(|(m, f)| format!("{}={}", m.name, show(f))).collect();
        let time = event.ticks.map_or(0, |ticks| ticks.0);
        if writeln!(out, "{time} {} {}", event.class.name, fields.join(" ")).is_err() {
            return;
        }
    }
    drop(out);
    let taken = begin.elapsed().as_secs_f64();
    let rate = count as f64 / taken / 1e6;
    eprintln!("{count} events in {taken:.3} s: {rate:.2} million/s");
    let lost: u64 = trace.losses().iter().filter_map(|loss| loss.count).sum();
    eprintln!("{} losses, {lost} events", trace.losses().len());
    let damage = trace.damage().iter().cloned().chain(events.damage());
    damage.for_each(|damage| eprintln!("damage: {damage}"));
    trace.remarks().iter().for_each(|remark| eprintln!("remark: {remark}"));
    for (name, value) in &trace.trace().environment {
        eprintln!("{name}: {value:?}");
    }
}
