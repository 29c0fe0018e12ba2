// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CTF 2 metadata against the rules of CTF2-SPEC-2.0, by a validator that knows
//! nothing of the generator; and against the CTF 1.8 metadata of the same trace: both
//! must describe the same bytes.
//!
//! Where babeltrace2 2.1 or newer is installed, tests/babeltrace.rs also reads streams with it.

use crate::every_type;

use lateralis_pleco::ctf::{ByteOrder, RingKind, StreamClass, TraceDescription, ctf1, ctf2};
use lateralis_pleco::internal_schema;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

fn description(order: ByteOrder) -> TraceDescription {
    let schema = every_type::schema();
    let mut description = TraceDescription::of_schema(&schema, order);
    description.clock.uuid = Some([7; 16]);
    description.streams.push(StreamClass {
        id: 1,
        ring_kind: RingKind::PerThread,
        schemas: vec![(16, schema)],
    });
    description
}

/// The fragments of a JSON text sequence [RFC 7464].
fn fragments(text: &str) -> Vec<Value> {
    let mut parts = text.split('\u{1e}');
    assert_eq!(parts.next(), Some(""), "a record separator comes first");
    parts
        .map(|part| {
            assert!(part.ends_with('\n'), "a line end comes last");
            serde_json::from_str(part).unwrap()
        })
        .collect()
}

/// Members of an object: all `required`, perhaps `optional`, and no others.
#[track_caller]
fn members<'a>(value: &'a Value, required: &[&str], optional: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().expect("an object");
    for name in required {
        assert!(object.contains_key(*name), "no {name} in {value}");
    }
    for name in object.keys() {
        let is_known = required.contains(&name.as_str()) || optional.contains(&name.as_str());
        assert!(is_known, "{name} is not allowed in {value}");
    }
    object
}

fn attributes(object: &Map<String, Value>) {
    if let Some(value) = object.get("attributes") {
        let namespaces = value.as_object().expect("attributes are an object");
        assert_eq!(namespaces.keys().collect::<Vec<_>>(), ["lateralis"]);
    }
}

/// Names of the integer members in front, for lengths.
type Seen = BTreeSet<String>;

/// A field class [CTF2-SPEC-2.0 §5.3]; returns its alignment in bits.
fn field_class(value: &Value, roles_allowed: &[&str], seen: &Seen) -> u64 {
    let ty = value["type"].as_str().expect("a type");
    let mut roles = Vec::new();
    let alignment = match ty {
        "fixed-length-unsigned-integer" | "fixed-length-signed-integer" => {
            let optional =
                ["alignment", "preferred-display-base", "mappings", "roles", "attributes"];
            let object = members(value, &["type", "length", "byte-order"], &optional);
            attributes(object);
            if let Some(base) = object.get("preferred-display-base") {
                assert!([2, 8, 10, 16].map(Value::from).contains(base));
            }
            if let Some(mappings) = object.get("mappings") {
                check_mappings(mappings, value);
            }
            if let Some(listed) = object.get("roles") {
                assert_eq!(
                    ty, "fixed-length-unsigned-integer",
                    "only unsigned integers have roles"
                );
                roles = listed.as_array().unwrap().clone();
            }
            bit_array(value, 1..=64)
        }
        "fixed-length-boolean" => {
            let optional = ["alignment", "attributes"];
            attributes(members(value, &["type", "length", "byte-order"], &optional));
            bit_array(value, 1..=64)
        }
        "fixed-length-floating-point-number" => {
            let optional = ["alignment", "attributes"];
            attributes(members(value, &["type", "length", "byte-order"], &optional));
            assert!([16, 32, 64, 128].map(Value::from).contains(&value["length"]));
            bit_array(value, 16..=128)
        }
        "null-terminated-string" => {
            attributes(members(value, &["type"], &["encoding", "attributes"]));
            8
        }
        "static-length-blob" => {
            let object =
                members(value, &["type", "length"], &["media-type", "roles", "attributes"]);
            assert!(value["length"].is_u64());
            roles = object.get("roles").map_or(Vec::new(), |r| r.as_array().unwrap().clone());
            if !roles.is_empty() {
                assert_eq!(
                    (&value["length"], roles.as_slice()),
                    (&16.into(), &["metadata-stream-uuid".into()][..])
                );
            }
            8
        }
        "dynamic-length-blob" => {
            let optional = ["media-type", "attributes"];
            attributes(members(value, &["type", "length-field-location"], &optional));
            location(&value["length-field-location"], seen);
            8
        }
        "static-length-array" | "dynamic-length-array" => {
            let length = if ty.starts_with('s') { "length" } else { "length-field-location" };
            let optional = ["minimum-alignment", "attributes"];
            attributes(members(value, &["type", "element-field-class", length], &optional));
            if ty.starts_with('s') {
                assert!(value["length"].is_u64());
            } else {
                location(&value["length-field-location"], seen);
            }
            field_class(&value["element-field-class"], &[], &Seen::new())
        }
        "structure" => structure(value, roles_allowed),
        other => panic!("unknown field class {other}"),
    };
    for role in roles {
        assert!(roles_allowed.contains(&role.as_str().unwrap()), "{role} has no place here");
    }
    alignment
}

fn check_mappings(mappings: &Value, class: &Value) {
    let bits = class["length"].as_u64().unwrap();
    let is_signed = class["type"] == "fixed-length-signed-integer";
    for (label, ranges) in mappings.as_object().unwrap() {
        assert!(!label.is_empty());
        for range in ranges.as_array().unwrap() {
            let [low, high] = range.as_array().unwrap().as_slice() else { panic!("{range}") };
            assert!(low.is_i64() || low.is_u64());
            assert_eq!(low, high);
            let value = low.as_i64().map_or_else(|| low.as_u64().unwrap().into(), i128::from);
            let limit = 1_i128 << if is_signed { bits - 1 } else { bits };
            assert!(
                value < limit && value >= if is_signed { -limit } else { 0 },
                "{label} {value}"
            );
        }
    }
}

fn bit_array(value: &Value, lengths: std::ops::RangeInclusive<u64>) -> u64 {
    assert!(lengths.contains(&value["length"].as_u64().unwrap()), "{value}");
    assert!(["little-endian", "big-endian"].map(Value::from).contains(&value["byte-order"]));
    let alignment = value.get("alignment").map_or(1, |a| a.as_u64().unwrap());
    assert!(alignment.is_power_of_two());
    alignment
}

/// A location from the root of the payload: one step, to an integer in front.
fn location(value: &Value, seen: &Seen) {
    members(value, &["origin", "path"], &[]);
    assert_eq!(value["origin"], "event-record-payload");
    let path = value["path"].as_array().unwrap();
    assert_eq!(path.len(), 1);
    assert!(seen.contains(path[0].as_str().unwrap()), "{value}: {seen:?}");
}

fn structure(value: &Value, roles_allowed: &[&str]) -> u64 {
    members(value, &["type"], &["member-classes", "minimum-alignment", "attributes"]);
    let mut seen = Seen::new();
    let mut names = BTreeSet::new();
    let minimum = value.get("minimum-alignment").map_or(1, |a| a.as_u64().unwrap());
    assert!(minimum.is_power_of_two());
    let mut alignment = minimum;
    for member in value.get("member-classes").and_then(Value::as_array).into_iter().flatten() {
        attributes(members(member, &["name", "field-class"], &["attributes"]));
        let name = member["name"].as_str().unwrap();
        assert!(names.insert(name), "two members {name}");
        let class = &member["field-class"];
        alignment = alignment.max(field_class(class, roles_allowed, &seen));
        if class["type"] == "fixed-length-unsigned-integer" {
            seen.insert(name.to_owned());
        }
    }
    alignment
}

fn check_metadata(text: &str) {
    let all = fragments(text);
    members(&all[0], &["type", "version"], &["uuid", "attributes", "extensions"]);
    assert_eq!((&all[0]["type"], &all[0]["version"]), (&"preamble".into(), &2.into()));
    assert_eq!(all[0]["uuid"].as_array().unwrap().len(), 16);
    assert!(all[0]["uuid"].as_array().unwrap().iter().all(|byte| byte.as_u64().unwrap() < 256));
    let mut clocks = BTreeSet::new();
    let mut streams = BTreeSet::new();
    let mut events = BTreeSet::new();
    let mut traces = 0;
    for fragment in &all[1..] {
        match fragment["type"].as_str().unwrap() {
            "trace-class" => {
                traces += 1;
                assert!(streams.is_empty(), "the trace class comes before the streams");
                let optional = [
                    "uid",
                    "name",
                    "namespace",
                    "environment",
                    "packet-header-field-class",
                    "attributes",
                ];
                members(fragment, &["type"], &optional);
                for (_, value) in fragment["environment"].as_object().unwrap() {
                    assert!(value.is_string() || value.is_i64());
                }
                let roles = ["packet-magic-number", "metadata-stream-uuid", "data-stream-class-id"];
                field_class(&fragment["packet-header-field-class"], &roles, &Seen::new());
            }
            "clock-class" => {
                let optional = [
                    "name",
                    "namespace",
                    "uid",
                    "description",
                    "precision",
                    "accuracy",
                    "offset-from-origin",
                    "origin",
                    "attributes",
                ];
                members(fragment, &["type", "id", "frequency"], &optional);
                assert!(fragment["frequency"].as_u64().unwrap() > 0);
                let offset = &fragment["offset-from-origin"];
                members(offset, &[], &["seconds", "cycles"]);
                assert!(
                    offset["cycles"].as_u64().unwrap() < fragment["frequency"].as_u64().unwrap()
                );
                assert!(offset["seconds"].is_i64());
                assert_eq!(fragment["origin"], "unix-epoch");
                assert!(clocks.insert(fragment["id"].as_str().unwrap().to_owned()));
            }
            "data-stream-class" => {
                let optional = [
                    "id",
                    "name",
                    "namespace",
                    "uid",
                    "default-clock-class-id",
                    "event-record-header-field-class",
                    "packet-context-field-class",
                    "event-record-common-context-field-class",
                    "attributes",
                ];
                members(fragment, &["type"], &optional);
                let clock = fragment["default-clock-class-id"].as_str().unwrap();
                assert!(clocks.contains(clock), "the clock {clock} comes first");
                assert!(streams.insert(fragment["id"].as_u64().unwrap()));
                let roles = ["event-record-class-id", "default-clock-timestamp"];
                let header = &fragment["event-record-header-field-class"];
                assert_eq!(field_class(header, &roles, &Seen::new()), 64);
                let roles = [
                    "default-clock-timestamp",
                    "packet-end-default-clock-timestamp",
                    "packet-total-length",
                    "packet-content-length",
                    "packet-sequence-number",
                    "discarded-event-record-counter-snapshot",
                ];
                field_class(&fragment["packet-context-field-class"], &roles, &Seen::new());
            }
            "event-record-class" => {
                let optional = [
                    "id",
                    "data-stream-class-id",
                    "name",
                    "namespace",
                    "uid",
                    "specific-context-field-class",
                    "payload-field-class",
                    "attributes",
                ];
                attributes(members(fragment, &["type"], &optional));
                let stream = fragment["data-stream-class-id"].as_u64().unwrap();
                assert!(streams.contains(&stream), "the stream class {stream} comes first");
                assert!(events.insert((stream, fragment["id"].as_u64().unwrap())), "two ids");
                field_class(&fragment["payload-field-class"], &[], &Seen::new());
            }
            other => panic!("unknown fragment {other}"),
        }
    }
    assert_eq!(traces, 1);
    assert!(!events.is_empty());
}

#[test]
fn follows_the_specification() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        check_metadata(&ctf2(&description(order)));
        check_metadata(&ctf2(&TraceDescription::of_schema(internal_schema(), order)));
    }
}

/// What one field is, in words both formats can say.
type Shape = (String, String);

/// Integer as `u32 align 32 base 10 little-endian`.
fn shape2(class: &Value) -> String {
    let number = |name: &str| class.get(name).and_then(Value::as_u64);
    let (length, align) = (number("length").unwrap_or(0), number("alignment").unwrap_or(1));
    let base = number("preferred-display-base").unwrap_or(10);
    let order = class.get("byte-order").and_then(Value::as_str).unwrap_or("");
    match class["type"].as_str().unwrap() {
        // CTF 1.8 has neither truth values nor blobs.
        "fixed-length-boolean" => format!("unsigned {length} align {align} base 10 {order}"),
        "dynamic-length-blob" => {
            let length = class["length-field-location"]["path"][0].as_str().unwrap();
            format!("[unsigned 8 align 8 base 16 ; {length}]")
        }
        "static-length-blob" => format!("[unsigned 8 align 8 base 10 ; {length}]"),
        "fixed-length-floating-point-number" => format!("float {length} align {align} {order}"),
        "null-terminated-string" => "string".to_owned(),
        "static-length-array" => format!("[{} ; {length}]", shape2(&class["element-field-class"])),
        "dynamic-length-array" => {
            let length = class["length-field-location"]["path"][0].as_str().unwrap();
            format!("[{} ; {length}]", shape2(&class["element-field-class"]))
        }
        ty => {
            let sign = if ty.contains("unsigned") { "unsigned" } else { "signed" };
            let mut out = format!("{sign} {length} align {align} base {base} {order}");
            if let Some(mappings) = class.get("mappings") {
                let mut labels: Vec<String> = mappings
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(label, ranges)| format!("{label}={}", ranges[0][0]))
                    .collect();
                labels.sort();
                out.push_str(&format!(" {{{}}}", labels.join(",")));
            }
            out
        }
    }
}

fn shapes2(structure: &Value) -> Vec<Shape> {
    let members = structure["member-classes"].as_array().unwrap().iter();
    members
        .map(|member| (member["name"].as_str().unwrap().to_owned(), shape2(&member["field-class"])))
        .collect()
}

/// A declaration in our TSDL: `TYPE NAME;` or `TYPE NAME[LENGTH];`.
fn shape1(line: &str, order: &str) -> Shape {
    let line = line.trim().strip_suffix(';').unwrap();
    let at = line.rfind("} ").unwrap() + 2;
    let (ty, declarator) = (line[..at].trim(), &line[at..]);
    let (name, length) = match declarator.split_once('[') {
        Some((name, length)) => (name, Some(length.trim_end_matches(']'))),
        None => (declarator, None),
    };
    // Readers take one underscore away.
    let plain = |name: &str| name.strip_prefix('_').unwrap_or(name).to_owned();
    let property = |name: &str| {
        let rest = ty.split_once(&format!("{name} = "))?.1;
        Some(rest.split(';').next().unwrap().trim().to_owned())
    };
    let number = |name: &str| property(name).unwrap_or_default();
    let base = property("base").unwrap_or("10".to_owned());
    let element = if ty.starts_with("string") {
        "string".to_owned()
    } else if ty.starts_with("floating_point") {
        let bits: u32 =
            number("exp_dig").parse::<u32>().unwrap() + number("mant_dig").parse::<u32>().unwrap();
        format!("float {bits} align {} {order}", number("align"))
    } else {
        let sign = if number("signed") == "true" { "signed" } else { "unsigned" };
        let (size, align) = (number("size"), number("align"));
        // CTF 2 has no byte order without bytes to order, nor has this test.
        let mut out = format!("{sign} {size} align {align} base {base} {order}");
        if let Some(rest) = ty.strip_prefix("enum : ") {
            let list = rest.split_once("} {").unwrap().1.trim_end_matches('}');
            let mut labels: Vec<String> = list
                .split(',')
                .map(|label| label.trim().replace('"', "").replace(" = ", "="))
                .collect();
            labels.sort();
            out.push_str(&format!(" {{{}}}", labels.join(",")));
        }
        out
    };
    let shape = match length {
        None => element,
        Some(length) => {
            let element = element.replace(" align 8 base 16 little-endian", " align 8 base 16 ");
            let element = element.replace(" align 8 base 16 big-endian", " align 8 base 16 ");
            let is_uuid = name == "uuid";
            let element = if is_uuid { "unsigned 8 align 8 base 10 ".to_owned() } else { element };
            format!("[{element} ; {}]", plain(length)).replace("  ;", " ;")
        }
    };
    (plain(name), shape)
}

/// All scopes of CTF 1.8 metadata by name: `header`, `context 0`, `0/17 name`.
fn scopes1(text: &str, order: &str) -> BTreeMap<String, Vec<Shape>> {
    let mut scopes = BTreeMap::new();
    let (mut id, mut name, mut stream) = (String::new(), String::new(), String::new());
    let mut open: Option<(String, Vec<Shape>)> = None;
    let mut pending_stream = 0;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some((_, shapes)) = &mut open {
            if trimmed.starts_with('}') {
                let (name, shapes) = open.take().unwrap();
                scopes.insert(name, shapes);
            } else {
                shapes.push(shape1(trimmed, order));
            }
            continue;
        }
        let value = |prefix: &str| {
            trimmed.strip_prefix(prefix).map(|v| v.trim_end_matches(';').replace('"', ""))
        };
        if let Some(v) = value("id = ") {
            id = v;
        } else if let Some(v) = value("name = ") {
            name = v;
        } else if let Some(v) = value("stream_id = ") {
            stream = v;
        }
        let scope = match trimmed {
            "packet.header := struct {" => "packet header".to_owned(),
            "event.header := struct {" => {
                pending_stream = id.parse::<i32>().unwrap();
                format!("event header {pending_stream}")
            }
            "packet.context := struct {" => format!("packet context {pending_stream}"),
            "fields := struct {" => format!("event {stream}/{id} {name}"),
            _ => continue,
        };
        open = Some((scope, Vec::new()));
    }
    scopes
}

fn scopes2(text: &str) -> BTreeMap<String, Vec<Shape>> {
    let mut scopes = BTreeMap::new();
    for fragment in fragments(text) {
        let id = &fragment["id"];
        let mut add = |name: String, class: &str| {
            scopes.insert(name, shapes2(&fragment[class]));
        };
        match fragment["type"].as_str().unwrap() {
            "trace-class" => add("packet header".to_owned(), "packet-header-field-class"),
            "data-stream-class" => {
                add(format!("event header {id}"), "event-record-header-field-class");
                add(format!("packet context {id}"), "packet-context-field-class");
            }
            "event-record-class" => {
                let (stream, name) =
                    (&fragment["data-stream-class-id"], fragment["name"].as_str().unwrap());
                add(format!("event {stream}/{id} {name}"), "payload-field-class");
            }
            _ => {}
        }
    }
    scopes
}

#[test]
fn twins_describe_the_same_bytes() {
    for (order, word) in [(ByteOrder::Little, "little-endian"), (ByteOrder::Big, "big-endian")] {
        let description = description(order);
        let (old, new) = (scopes1(&ctf1(&description), word), scopes2(&ctf2(&description)));
        let events = every_type::schema().events.len() + internal_schema().events.len();
        assert_eq!(old.len(), 1 + 2 * (2 + events), "every scope was found");
        assert_eq!(old.keys().collect::<Vec<_>>(), new.keys().collect::<Vec<_>>());
        for (name, shapes) in &old {
            assert_eq!(shapes, &new[name], "{name}");
        }
    }
}

/// The packet in front of the records has the size of spec/trace-layout.md.
#[test]
fn packet_header_and_context_have_128_bytes() {
    let scopes = scopes1(&ctf1(&description(ByteOrder::Little)), "little-endian");
    let bits = |scope: &str| -> u64 {
        let shapes = &scopes[scope];
        let sizes = shapes.iter().map(|(name, shape)| {
            if name == "uuid" {
                return 128;
            }
            shape.split(' ').nth(1).unwrap().parse().unwrap()
        });
        sizes.sum()
    };
    assert_eq!(bits("packet header") / 8, 24);
    assert_eq!(bits("packet context 0") / 8, 104);
    assert_eq!(scopes["packet context 0"][11].0, "cpu_id");
    assert_eq!(scopes["packet context 1"][11].0, "ring_id");
    assert_eq!(bits("event header 0") / 8, 8);
}
