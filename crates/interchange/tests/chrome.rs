// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chrome JSON in both directions.

use lateralis_interchange::chrome;
use lateralis_model::role::Role;
use lateralis_model::{MemoryTrace, Source};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(text: &str) -> MemoryTrace {
    assert!(chrome::sniff(text.as_bytes()), "{text}");
    chrome::read("t.json", text.as_bytes(), 1 << 26).unwrap()
}

fn write(trace: &MemoryTrace) -> Value {
    let mut out = Vec::new();
    chrome::write(trace, &mut out).unwrap();
    serde_json::from_slice(&out).expect("what is written is JSON")
}

/// The events of a document without metadata, sorted by time, with times as numbers.
fn events(document: &Value) -> Vec<Value> {
    let array = document.get("traceEvents").unwrap_or(document).as_array().unwrap();
    let mut events: Vec<Value> =
        array.iter().filter(|event| event["ph"] != "M").cloned().map(plain).collect();
    events.sort_by(|a, b| a["ts"].as_f64().unwrap().total_cmp(&b["ts"].as_f64().unwrap()));
    events
}

/// Whole numbers read the same however they are written.
fn plain(mut value: Value) -> Value {
    match &mut value {
        Value::Number(number) => {
            let real = number.as_f64().unwrap();
            if number.is_f64() && real.fract() == 0.0 && real.abs() < 9e15 {
                return json!(real as i64);
            }
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| *element = plain(element.take()));
        }
        Value::Object(members) => {
            members.values_mut().for_each(|member| *member = plain(member.take()));
            // Empty arguments and none are the same.
            if members.get("args").is_some_and(|args| *args == json!({})) {
                members.remove("args");
            }
        }
        _ => (),
    }
    value
}

/// Every phase of the format, with what is special about each.
fn all_phases() -> Value {
    json!({"displayTimeUnit": "ms", "otherData": {"version": "x"}, "traceEvents": [
        {"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"ui"}},
        {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"main"}},
        {"ph":"M","name":"process_sort_index","pid":1,"tid":0,"args":{"sort_index":-5}},
        {"ph":"B","name":"outer","cat":"a,b","ts":1,"pid":1,"tid":2,"args":{"n":1,"s":"x"}},
        {"ph":"X","name":"draw","cat":"a","ts":2.125,"dur":1.5,"tts":7,"tdur":1,"pid":1,"tid":2,
         "args":{"frame":{"id":7,"list":[1,2,[]]},"ratio":0.5,"big":18446744073709551615u64}},
        {"ph":"X","name":"draw","cat":"a","ts":3,"dur":0,"pid":1,"tid":2,"args":{"ratio":null}},
        {"ph":"E","name":"outer","cat":"a,b","ts":4,"pid":1,"tid":2,"args":{"n":"mixed"}},
        {"ph":"i","name":"tick","ts":5,"pid":1,"tid":2,"s":"g"},
        {"ph":"I","name":"tick","ts":5.5,"pid":1,"tid":2},
        {"ph":"b","name":"load","cat":"net","id":"0x1f","ts":6,"pid":1,"tid":2},
        {"ph":"n","name":"load","cat":"net","id":"0x1f","ts":7,"pid":1,"tid":2},
        {"ph":"e","name":"load","cat":"net","id":"0x1f","ts":8,"pid":1,"tid":2},
        {"ph":"S","name":"old","cat":"net","id":3,"scope":"z","ts":9,"pid":1,"tid":2},
        {"ph":"T","name":"old","cat":"net","id":3,"ts":9.5,"pid":1,"tid":2,"args":{"step":"q"}},
        {"ph":"p","name":"old","cat":"net","id":3,"ts":9.75,"pid":1,"tid":2},
        {"ph":"F","name":"old","cat":"net","id":3,"ts":10,"pid":1,"tid":2},
        {"ph":"s","name":"msg","cat":"ipc","id":1,"ts":11,"pid":1,"tid":2},
        {"ph":"t","name":"msg","cat":"ipc","id":1,"ts":12,"pid":1,"tid":3},
        {"ph":"f","name":"msg","cat":"ipc","id":1,"ts":13,"pid":2,"tid":4,"bp":"e"},
        {"ph":"P","name":"sample","ts":14,"pid":1,"tid":2,"sf":5},
        {"ph":"N","name":"obj","id":"0x5","ts":15,"pid":1,"tid":2},
        {"ph":"O","name":"obj","id":"0x5","ts":16,"pid":1,"tid":2,"args":{"snapshot":{"k":[{}]}}},
        {"ph":"D","name":"obj","id":"0x5","ts":17,"pid":1,"tid":2},
        {"ph":"v","name":"dump","id":"1","ts":18,"pid":1,"tid":-1},
        {"ph":"V","name":"dump","id":"1","ts":18.5},
        {"ph":"R","name":"mark","ts":19,"pid":1,"tid":"worker"},
        {"ph":"c","name":"sync","ts":20,"pid":1,"tid":2,"args":{"sync_id":"q","issue_ts":1}},
        {"ph":"C","name":"mem","ts":21,"pid":1,"tid":2,"id":"k","args":{"used":1.5,"free":2}},
        {"ph":"X","name":"flow","ts":22,"dur":1,"pid":1,"tid":2,"bind_id":"0xf","flow_out":true,
         "args":{"dur":"mine","id":4}},
        {"ph":"i","name":"odd","ts":23,"pid":1,"tid":2,"args":[1,"two"]},
    ]})
}

#[test]
fn every_phase_keeps_its_members_and_arguments() {
    let original = all_phases();
    let trace = read(&original.to_string());
    assert!(trace.damage().is_empty() && trace.remarks().is_empty(), "{:?}", trace.remarks());
    let written = write(&trace);
    let mut expected = events(&original);
    let odd = expected.last_mut().unwrap();
    // Arguments that are no object become one.
    odd["args"] = json!({"args": [1, "two"]});
    assert_eq!(events(&written), expected);
    assert_eq!(written["otherData"], original["otherData"]);
    let metadata = |name: &str| {
        let array = written["traceEvents"].as_array().unwrap();
        array.iter().find(|event| event["name"] == name).unwrap_or(&Value::Null)["args"].clone()
    };
    assert_eq!(metadata("process_name"), json!({"name": "ui"}));
    assert_eq!(metadata("process_sort_index"), json!({"sort_index": -5}));
    assert_eq!(trace.names().threads[&2], "main");
}

#[test]
fn phases_have_roles_whose_fields_exist() {
    let trace = read(&all_phases().to_string());
    let mut seen = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        for role in Role::of(event.class) {
            let fields = match &role {
                Role::Begin(of) | Role::End(of) | Role::Send(of) | Role::Receive(of) => {
                    of.keys.clone()
                }
                Role::Span { duration, .. } => vec![duration.clone()],
                Role::State { field, .. } | Role::Counter { field } => vec![field.clone()],
            };
            for field in fields {
                let found = [event.payload(), event.context()]
                    .into_iter()
                    .flatten()
                    .any(|fields| fields.get(&field).is_some());
                assert!(found, "{role}: {field}");
            }
            seen.push(role.to_string());
        }
    }
    for clause in [
        "begin outer",
        "end outer",
        "span draw for dur",
        "begin load key id",
        "end load key id",
        "send msg key id",
        "recv msg key id",
        "counter used",
        "span flow for event.dur",
        "send flow key bind_id",
    ] {
        assert!(seen.iter().any(|role| role == clause), "{clause}: {seen:?}");
    }
}

#[test]
fn an_end_without_a_name_gets_that_of_its_beginning() {
    let trace = read(
        r#"[{"ph":"B","name":"a","ts":1,"pid":1,"tid":1},
           {"ph":"B","name":"b","ts":2,"pid":1,"tid":1},
           {"ph":"E","ts":3,"pid":1,"tid":1},{"ph":"E","ts":4,"pid":1,"tid":1}"#,
    );
    let mut events = trace.events();
    let mut names = Vec::new();
    while let Some(event) = events.next_event() {
        names.push(event.class.name.clone());
    }
    assert_eq!(names, ["a", "b", "b", "a"]);
}

#[test]
fn damage_costs_only_what_is_damaged() {
    let event = |n: u32| format!(r#"{{"ph":"i","name":"e{n}","ts":{n},"pid":1,"tid":1}}"#);
    let good: Vec<String> = (0..10).map(event).collect();
    let count = |text: &str| {
        let trace = chrome::read("t", text.as_bytes(), 1 << 20).unwrap();
        (trace.len(), trace.damage().len())
    };
    assert_eq!(count(&format!("[{}", good.join(",\n"))), (10, 0), "no end");
    assert_eq!(count(&format!("[{},", good.join(","))), (10, 0), "comma at the end");
    let whole = format!("[{}]", good.join(",\n"));
    assert_eq!(count(&whole[..whole.len() - 10]), (9, 1), "cut");
    let quote = whole.replacen("\"e4\"", "\"e4", 1);
    assert_eq!(count(&quote), (9, 1), "a quote is missing");
    let brace = whole.replacen("\"e4\",\"ts\":4,\"pid\":1,\"tid\":1}", "\"e4\",\"ts\":4,", 1);
    assert_eq!(count(&brace), (9, 1), "a brace is missing");
    assert_eq!(count(&whole.replacen("\"ph\":\"i\",\"name\":\"e4\"", "\"x\":1", 1)), (9, 1));
}

#[test]
fn what_is_no_trace_is_an_error_in_one_sentence() {
    for text in ["", "[", "{}", "nonsense", "{\"traceEvents\":3}", "[1,2]"] {
        if text == "[" {
            // An array that has just begun is an empty trace.
            assert!(chrome::read("x", text.as_bytes(), 100).unwrap().is_empty());
            continue;
        }
        let error = chrome::read("x", text.as_bytes(), 100).unwrap_err();
        assert_eq!(error.to_string().matches(": ").count(), 2, "{error}");
    }
}

#[test]
fn the_memory_limit_holds_and_is_told() {
    let events: Vec<String> =
        (0..1000).map(|n| format!(r#"{{"ph":"i","name":"e","ts":{n},"pid":1,"tid":1}}"#)).collect();
    let text = format!("[{}]", events.join(","));
    let trace = chrome::read("t", text.as_bytes(), 10_000).unwrap();
    assert!((50..150).contains(&trace.len()), "{}", trace.len());
    let missing = format!("{} events are not shown", 1000 - trace.len());
    assert!(trace.remarks().iter().any(|remark| remark.starts_with(&missing)));
}

#[test]
fn many_names_share_a_class_and_come_back() {
    let events: Vec<String> = (0..10_050)
        .map(|n| format!(r#"{{"ph":"i","name":"e{n}","ts":{n},"pid":1,"tid":1}}"#))
        .collect();
    let text = format!("[{}]", events.join(","));
    let trace = read(&text);
    assert!(trace.trace().stream_classes[0].event_classes.len() <= 10_001);
    let original: Value = serde_json::from_str(&text).unwrap();
    let original: Vec<Value> = events_of(&original);
    assert_eq!(events_of(&write(&trace)), original);
}

fn events_of(document: &Value) -> Vec<Value> {
    events(document)
}

/// JSON of any shape.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|real: f64| json!(real)),
        "[a-z\"\\\\é\n]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[a-d]{1,2}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Reading and writing keeps every event: values, ids, order.
    #[test]
    fn any_arguments_come_back(
        arguments in prop::collection::vec(
            (prop::collection::hash_map("[a-d]{1,3}", any_json(), 0..4), "[xy]", 0u64..50), 1..20)
    ) {
        let events: Vec<Value> = arguments
            .into_iter()
            .map(|(args, name, time)| {
                let args: serde_json::Map<_, _> = args.into_iter().collect();
                json!({"ph": "i", "name": name, "ts": time, "pid": 1, "tid": 2, "args": args})
            })
            .collect();
        let original = Value::from(events);
        let trace = read(&original.to_string());
        prop_assert_eq!(self::events(&write(&trace)), self::events(&original));
    }

    /// Cut anywhere, all whole events are there.
    #[test]
    fn a_cut_costs_at_most_one_event(cut in 0usize..3000) {
        let events: Vec<String> = (0..50)
            .map(|n| json!({"ph":"X","name":"e","ts":n,"dur":1,"pid":1,"tid":1,"args":{"n":n}}))
            .map(|event| event.to_string())
            .collect();
        let text = format!("[{}]", events.join(","));
        let cut = cut.min(text.len());
        let whole = text[..cut].matches("\"ts\":").count();
        if let Ok(trace) = chrome::read("t", &text.as_bytes()[..cut], 1 << 20) {
            prop_assert!(trace.len() == whole || trace.len() + 1 == whole);
        } else {
            prop_assert!(whole <= 1);
        }
    }
}
