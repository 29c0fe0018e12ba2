// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chrome JSON in both directions.

use lateralis_interchange::{chrome, jsonl};
use lateralis_model::role::Role;
use lateralis_model::{MemoryTrace, Source, Value as FieldValue};
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
                Role::State { field, .. } | Role::Counter { field, .. } => vec![field.clone()],
            };
            for field in fields {
                let found = field.starts_with('$')
                    || [event.payload(), event.context()]
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
        "begin load key id $category $pid",
        "end load key id $category $pid",
        "begin old key id scope $category $pid",
        "end old key id $category $pid",
        "send msg key id $category",
        "recv msg fanout key id $category",
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

/// The spans and messages of a file, by pairing its events as every reader of clauses does.
fn count_of(trace: &MemoryTrace, wanted: &str) -> usize {
    let mut count = 0;
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        count += Role::of(event.class).filter(|role| role.to_string().starts_with(wanted)).count();
    }
    count
}

fn event_names(trace: &MemoryTrace) -> Vec<(i64, String)> {
    let mut names = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        names.push((event.time.0, event.class.name.clone()));
    }
    names
}

#[test]
fn an_event_without_its_duration_costs_no_other() {
    let trace = read(
        r#"[{"name":"f","ph":"X","ts":1,"dur":5,"pid":1,"tid":1},
            {"name":"f","ph":"X","ts":10,"pid":1,"tid":1},
            {"name":"f","ph":"X","ts":20,"dur":-3,"pid":1,"tid":1},
            {"name":"f","ph":"X","ts":30,"dur":null,"pid":1,"tid":1},
            {"name":"f","ph":"X","ts":40,"dur":"x","pid":1,"tid":1},
            {"name":"f","ph":"X","ts":50,"dur":1e30,"pid":1,"tid":1},
            {"name":"f","ph":"X","ts":60,"dur":9223372036854775,"pid":1,"tid":1},
            {"name":"f","ph":"X","ts":70,"dur":"5","pid":1,"tid":1}]"#,
    );
    assert_eq!((count_of(&trace, "span f for dur"), count_of(&trace, "begin f")), (2, 6));
    assert!(trace.remarks()[0].starts_with("6 complete events (X)"), "{:?}", trace.remarks());
}

#[test]
fn an_event_without_its_time_stands_where_it_is_written_and_begins_nothing() {
    let trace = read(
        r#"[{"name":"a","ph":"X","ts":null,"dur":5,"pid":1,"tid":1},
            {"name":"b","ph":"X","ts":1700000000000000,"dur":5,"pid":1,"tid":1},
            {"name":"a","ph":"B","ts":NaN,"pid":1,"tid":1},
            {"name":"a","ph":"X","ts":1e30,"dur":5,"pid":1,"tid":1},
            {"name":"a","ph":"X","dur":5,"pid":1,"tid":1},
            {"name":"a","ph":"X","ts":"soon","dur":5,"pid":1,"tid":1}]"#,
    );
    assert_eq!((trace.len(), count_of(&trace, "")), (6, 1));
    assert!(event_names(&trace).iter().all(|(time, _)| *time == 1_700_000_000_000_000_000));
    assert!(trace.damage().is_empty());
    assert!(trace.remarks().iter().any(|remark| remark.starts_with("5 events tell no time")));
}

#[test]
fn samples_that_are_no_numbers_cost_themselves() {
    let trace = read(
        r#"[{"name":"q","ph":"C","ts":1,"pid":1,"args":{"v":1}},
            {"name":"q","ph":"C","ts":2,"pid":1,"args":{"v":"2.5"}},
            {"name":"q","ph":"C","ts":3,"pid":1,"args":{"v":null}},
            {"name":"q","ph":"C","ts":4,"pid":1,"args":{"v":NaN}},
            {"name":"q","ph":"C","ts":5,"pid":1,"args":{"v":"high"}},
            {"name":"q","ph":"C","ts":6,"pid":1,"id":"0x1","args":{"v":true}},
            {"name":"q","ph":"C","ts":7,"pid":1,"id":"0x1","args":{"v":-3}}]"#,
    );
    let mut levels = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        let field = event.payload().unwrap().get("v");
        if field.is_some_and(|field| !matches!(field.value(), FieldValue::Optional(None))) {
            levels.push((event.time.0 / 1000, event.class.name.clone()));
        }
    }
    assert_eq!(levels, [(1, "q".to_owned()), (2, "q".to_owned()), (7, "q[0x1]".to_owned())]);
    assert_eq!(count_of(&trace, "counter v"), 7, "the class is a counter whatever samples say");
    assert!(trace.remarks().iter().any(|remark| remark.starts_with("4 samples of counters")));
}

#[test]
fn keys_are_whatever_tells_a_span_from_others() {
    let trace = read(
        r#"[{"ph":"b","name":"f","cat":"c","id2":{"local":"0x1"},"ts":1,"pid":1,"tid":1},
            {"ph":"b","name":"f","cat":"c","id2":{"global":"0x1"},"ts":1,"pid":1,"tid":1},
            {"ph":"b","name":"f","cat":"c","id":1,"ts":1,"pid":1,"tid":1},
            {"ph":"b","name":"f","cat":"c","id":"1","scope":"s","ts":1,"pid":1,"tid":1},
            {"ph":"b","name":"f","cat":"c","id":null,"ts":1,"pid":1,"tid":1},
            {"ph":"X","name":"f","ts":1,"dur":1,"pid":1,"tid":1,"bind_id":"1","flow_in":false},
            {"ph":"X","name":"g","ts":1,"dur":1,"pid":1,"tid":1,"bind_id":"1","flow_in":true},
            {"ph":"E","name":"g","ts":1,"pid":1,"tid":1,"bind_id":"1","flow_in":true}]"#,
    );
    let mut clauses = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        clauses.push(Role::of(event.class).map(|role| role.to_string()).collect::<Vec<_>>());
    }
    let clauses: Vec<_> = clauses.iter().map(|clauses| clauses.join("; ")).collect();
    assert_eq!(
        clauses,
        [
            "begin f key id2 $category $pid",
            "begin f key id2 $category",
            "begin f key id $category $pid",
            "begin f key id scope $category $pid",
            "begin f key $category $pid",
            "span f for dur",
            "span g for dur; recv flow fanout key bind_id",
            "end g"
        ]
    );
}

#[test]
fn ends_are_named_in_the_order_of_time() {
    let trace = read(
        r#"[{"ph":"E","ts":20,"pid":1,"tid":7},
            {"name":"a","ph":"B","ts":0,"pid":1,"tid":7},
            {"ph":"e","cat":"c","id":1,"ts":9,"pid":1,"tid":8},
            {"ph":"E","ts":10,"pid":1,"tid":7,"args":{"r":1}},
            {"name":"b","ph":"B","ts":5,"pid":1,"tid":7},
            {"ph":"e","cat":"c","id":1,"ts":9,"pid":2,"tid":8},
            {"ph":"b","name":"n","cat":"c","id":1,"ts":3,"pid":1,"tid":7}]"#,
    );
    let names: Vec<_> =
        event_names(&trace).into_iter().map(|(time, name)| (time / 1000, name)).collect();
    let expected = [(0, "a"), (3, "n"), (5, "b"), (9, "n"), (9, ""), (10, "b"), (20, "a")];
    assert_eq!(names, expected.map(|(time, name)| (time, name.to_owned())));
}

#[test]
fn a_file_may_be_several_values() {
    let count = |text: &str| {
        assert!(chrome::sniff(text.as_bytes()), "{text}");
        let trace = chrome::read("t", text.as_bytes(), 1 << 20).unwrap();
        (trace.len(), trace.damage().len())
    };
    let (a, b) = (
        r#"{"ph":"i","name":"a","ts":1,"pid":1}"#,
        r#"{"ph":"i","name":"b","ts":2,"pid":1,"args":{"x":1}}"#,
    );
    assert_eq!(count(&format!("[{a},{b}]")), (2, 0));
    assert_eq!(count(&format!("[{a}]\n[{b}]")), (2, 0));
    assert_eq!(count(&format!(r#"{{"traceEvents":[{a}]}}{{"traceEvents":[{b}]}}"#)), (2, 0));
    assert_eq!(count(&format!("{a}\n{b}\n")), (2, 0), "one a line");
    assert_eq!(count(&format!("{a},\n{b},\n")), (2, 0));
    assert_eq!(count(&format!("[,{a},,{b},]")), (2, 0), "commas");
    assert_eq!(count(&format!("[ , {a}")), (2 - 1, 0));
    assert_eq!(count(&format!("[[{a}],[{b}]]")), (2, 0), "arrays in an array");
    assert_eq!(count(&format!(r#"[{{"traceEvents":[{a}]}},{{"traceEvents":[{b}]}}]"#)), (2, 0));
    assert_eq!(count(&format!("[{a}]]\0\0\n[{b}]")), (2, 0), "closed twice, and padded");
    assert_eq!(count(&format!("[{a}] and then [{b}]")), (2, 1), "what lies between is damage");
    assert_eq!(count("[]"), (0, 0));
}

#[test]
fn documents_with_times_of_their_own_are_put_on_one_line() {
    let document = |base: i64| {
        format!(
            r#"{{"baseTimeNanoseconds":{base},"traceEvents":[{{"ph":"i","name":"a","ts":1,"pid":1}}]}}"#
        )
    };
    let text =
        format!("{}{}", document(1_700_000_000_000_000_000), document(1_700_000_005_000_000_000));
    let times: Vec<_> = event_names(&read(&text)).iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [1_700_000_000_000_001_000, 1_700_000_005_000_001_000]);
    // Times since 1970 beside a base are not moved again.
    let text = r#"{"beginningOfTime":1700000000000000,"traceEvents":[
        {"ph":"i","name":"a","ts":1700000000000001,"pid":1}]}"#;
    assert_eq!(event_names(&read(text))[0].0, 1_700_000_000_000_001_000);
}

#[test]
fn events_are_found_wherever_they_begin() {
    let (filler, tab) = ("x".repeat(10_000), '\t');
    let text = format!(
        r#"{{"distributedInfo":{{"ranks":["{filler}"]}},"note":"tab{tab}and
 line","traceEvents":[{{"ph":"i","name":"a","ts":1,"pid":1}}],"after":1}}"#
    );
    let bytes = text.as_bytes();
    assert!(!chrome::sniff(&bytes[..4096]) && chrome::may_have_events(&bytes[..4096]));
    assert!(chrome::has_events(bytes));
    let trace = chrome::read("t", bytes, 1 << 20).unwrap();
    assert_eq!((trace.len(), trace.damage().len()), (1, 0));
    assert!(trace.trace().env("chrome.object.after").is_some());
    assert!(!chrome::has_events(br#"{"a":{"traceEvents":[]}}"#), "of another object");
    assert!(!chrome::has_events(br#"{"ph":1}"#));
}

#[test]
fn arguments_that_are_no_json_cost_themselves() {
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let arguments: [&[u8]; 10] = [
        b"NaN",
        b"-inf",
        b"1e400",
        b"\"\x01\x1b[0m\"",
        b"\"line\nfeed\"",
        b"\"\xff\xc3\"",
        b"\"\\ud800\"",
        b"\"an \"unescaped\" quote\"",
        b"\"an \" odd one\"",
        deep.as_bytes(),
    ];
    for argument in arguments {
        let text = [
            b"[{\"ph\":\"B\",\"name\":\"good\",\"ts\":1,\"pid\":1,\"tid\":1},\n\
              {\"ph\":\"X\",\"name\":\"f\",\"args\":{\"a\":"
                .as_slice(),
            argument,
            b",\"b\":2},\"ts\":2,\"dur\":3,\"pid\":1,\"tid\":1},\n\
              {\"ph\":\"E\",\"name\":\"good\",\"ts\":9,\"pid\":1,\"tid\":1}]",
        ]
        .concat();
        let trace = chrome::read("t", &text, 1 << 20).unwrap();
        let place = String::from_utf8_lossy(argument).into_owned();
        assert_eq!((trace.len(), trace.damage().len()), (3, 0), "{place}");
        assert_eq!(count_of(&trace, "span f for dur"), 1, "{place}");
        assert!(trace.remarks()[0].starts_with("1 events are not strict"), "{place}");
        let mut events = trace.events_in(lateralis_model::Interval {
            begin: Some(lateralis_units::Nanos(2000)),
            end: Some(lateralis_units::Nanos(2001)),
        });
        let event = events.next_event().unwrap();
        assert_eq!(event.payload().unwrap().get("b").unwrap().as_u64(), Some(2), "{place}");
    }
}

/// The example of the format's document, with a frame that calls itself, and what cannot be read.
#[test]
fn samples_of_stacks_are_events() {
    let text = r#"{"traceEvents":[{"ph":"X","name":"run","ts":1,"dur":9,"pid":7,"tid":8}],
        "samples":[
            {"cpu":0,"tid":8,"ts":1000.25,"name":"cycles:HG","sf":3,"weight":5},
            {"cpu":1,"tid":9,"ts":"2000","name":"cycles:HG","sf":"2","weight":1},
            {"tid":8,"ts":3000,"name":"cycles:HG"},
            {"tid":8,"ts":null,"name":"cycles:HG"}],
        "stackFrames":{"1":{"category":"libc.so","name":"main"},
            "2":{"category":"prog","name":"work","parent":1},
            "3":{"category":"prog","name":"leaf","parent":"2"},
            "4":{"name":"itself","parent":4}}}"#;
    let trace = read(text);
    let mut lines = Vec::new();
    jsonl::write(&trace, &mut lines).unwrap();
    let lines: Vec<serde_json::Value> = String::from_utf8(lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &serde_json::Value| line["name"] == "cycles:HG")
        .collect();
    let stacks: Vec<_> = lines.iter().map(|line| &line["fields"]["stack_functions"]).collect();
    let expected = [json!(["leaf", "work", "main"]), json!(["work", "main"]), json!([])];
    assert_eq!(stacks, expected.iter().collect::<Vec<_>>());
    assert_eq!(lines[0]["fields"]["stack_images"], json!(["prog", "prog", "libc.so"]));
    assert_eq!(lines[0]["fields"]["period"], 5);
    assert_eq!(
        (&lines[0]["time_ns"], &lines[0]["pid"], &lines[0]["tid"]),
        (&json!(1_000_250), &json!(7), &json!(8))
    );
    let remark = "1 samples of stacks, or lists of them, cannot be read";
    assert_eq!(trace.remarks(), [remark]);
    let endless = r#"{"traceEvents":[],"samples":[{"ts":1,"sf":4}],
        "stackFrames":{"4":{"name":"x","parent":4}}}"#;
    assert_eq!(read(endless).len(), 1);
    let wrong = r#"{"traceEvents":[],"samples":{"a":1}}"#;
    assert_eq!(read(wrong).remarks(), [remark]);
}
