// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each format: golden inputs, real ones where they are there, damaged ones.

mod barrelfish;
mod composite;
mod genode;
mod hostile;
mod sel4;

use std::fmt::Write;
use std::path::PathBuf;

use lateralis_model::{Event, Field, Source, Value};

/// A file of the test data, or a word that it is absent.
fn shared(path: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../../../shared/data").join(path);
    let bytes = std::fs::read(&path);
    if bytes.is_err() {
        println!("SKIPPED: {} is absent", path.display());
    }
    bytes.ok()
}

/// All events, a line each: time, stream, class, context, payload.
fn listing(source: &dyn Source) -> Vec<String> {
    let streams = source.streams();
    let mut all = Vec::new();
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        all.push(line(&event, &streams[event.stream.0 as usize].name));
    }
    all
}

fn line(event: &Event<'_>, stream: &str) -> String {
    let time = event.ticks.map_or("-".to_owned(), |_| event.time.0.to_string());
    let mut text = format!("{time} {stream} {}", event.class.name);
    for fields in [event.common_context(), event.payload()].into_iter().flatten() {
        for (member, field) in fields {
            write!(text, " {}={}", member.name, value(field)).unwrap();
        }
    }
    text
}

fn value(field: Field<'_>) -> String {
    match field.value() {
        Value::Bool(value) => value.to_string(),
        Value::Unsigned(value) => value.to_string(),
        Value::Signed(value) => value.to_string(),
        Value::Real(value) => value.to_string(),
        Value::Text(text) => format!("'{}'", text.to_str()),
        Value::Array(elements) => {
            let all: Vec<String> = elements.map(value).collect();
            format!("[{}]", all.join(","))
        }
        _ => "?".to_owned(),
    }
}

/// Roles of a kind of event.
fn roles(source: &dyn Source, class: &str) -> Vec<String> {
    let mut classes = source.trace().stream_classes.iter().flat_map(|class| &class.event_classes);
    let class = classes.find(|of| of.name == class).unwrap();
    lateralis_model::role::Role::of(class).map(|role| role.to_string()).collect()
}
