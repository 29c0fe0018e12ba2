// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules of CTF 2 that the suites of others do not cover, and fields of unusual width;
//! docs/reference/formats/ctf-rules.md has the list.

use crate::maker;

use lateralis_model::Wanted;
use lateralis_model::{Field, Value};
use maker::any_reader;

const PREAMBLE: &str = r#"{"type": "preamble", "version": 2}"#;
const STREAM: &str = r#"{"type": "data-stream-class"}"#;

fn member(name: &str, class: &str) -> String {
    format!(r#"{{"name": "{name}", "field-class": {class}}}"#)
}

fn structure(members: &[String]) -> String {
    format!(r#"{{"type": "structure", "member-classes": [{}]}}"#, members.join(", "))
}

fn number(kind: &str, bits: u32, more: &str) -> String {
    format!(
        r#"{{"type": "fixed-length-{kind}", "length": {bits}, "byte-order": "little-endian"{more}}}"#
    )
}

fn byte() -> String {
    number("unsigned-integer", 8, "")
}

/// `{"path": [...]}` from the place of use.
fn path(items: &str) -> String {
    format!(r#"{{"path": [{items}]}}"#)
}

fn event(members: &[String]) -> String {
    format!(r#"{{"type": "event-record-class", "payload-field-class": {}}}"#, structure(members))
}

/// Faults of the metadata, and the events as lists of values.
fn read_all(fragments: &[&str], bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let reader = any_reader(&fragments.join("\n"), &[bytes]);
    let faults = reader.diagnostics().iter().map(ToString::to_string).collect();
    let mut events = Vec::new();
    let mut merge = reader.events();
    while let Some(event) = merge.next_event() {
        let fields = event.payload().into_iter().flatten();
        events.push(fields.map(|(_, field)| shown(field)).collect::<Vec<_>>().join(" "));
    }
    (faults, events)
}

fn read(members: &[String], bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    read_all(&[PREAMBLE, STREAM, &event(members)], bytes)
}

fn shown(field: Field<'_>) -> String {
    let list = |all: Vec<String>| format!("[{}]", all.join(" "));
    match field.value() {
        Value::Bool(yes) => yes.to_string(),
        Value::Unsigned(number) | Value::Bits(number) => number.to_string(),
        Value::Signed(number) => number.to_string(),
        Value::Real(number) => format!("{number:?}"),
        Value::Text(text) => format!("{:?}", text.to_str()),
        Value::Bytes(bytes) => format!("{bytes:x?}"),
        Value::Struct(fields) => {
            let named = |(member, field): (&lateralis_model::Member, Field<'_>)| {
                format!("{}={}", member.name, shown(field))
            };
            list(fields.into_iter().map(named).collect())
        }
        Value::Array(elements) => list(elements.map(shown).collect()),
        Value::Variant(_, field) | Value::Optional(Some(field)) => shown(field),
        Value::Optional(None) => "-".to_owned(),
    }
}

/// One fault that contains `words`, and this number of events.
fn assert_fault(found: &(Vec<String>, Vec<String>), words: &str, events: usize) {
    assert_eq!((found.0.len(), found.1.len()), (1, events), "{words}: {found:?}");
    assert!(found.0[0].contains(words), "{words}: {found:?}");
}

#[test]
fn the_first_fragment_and_no_other_is_the_preamble() {
    let event = event(&[member("n", &byte())]);
    assert_eq!(read_all(&[PREAMBLE, STREAM, &event], &[7]), (vec![], vec!["7".into()]));
    assert_fault(&read_all(&[STREAM, &event], &[7]), "must be a preamble", 1);
    let twice = read_all(&[PREAMBLE, STREAM, PREAMBLE, &event], &[7]);
    assert_fault(&twice, "must be a preamble", 1);
    let three = PREAMBLE.replace('2', "3");
    assert_fault(&read_all(&[&three, STREAM, &event], &[7]), "version 3", 1);
}

#[test]
fn what_needs_an_unknown_extension_is_not_read_and_all_else_is() {
    let with = |what: &str| what.replacen('{', r#"{"extensions": {"x.org": {"y": 1}}, "#, 1);
    let good = event(&[member("n", &byte())]);
    let second = |event: String| event.replacen('{', r#"{"id": 1, "#, 1);
    let header = structure(&[member(
        "id",
        &number("unsigned-integer", 8, r#", "roles": ["event-record-class-id"]"#),
    )]);
    let stream =
        STREAM.replacen('{', &format!(r#"{{"event-record-header-field-class": {header}, "#), 1);
    let bytes = [0, 7, 0, 8, 1, 9];
    let classes = [
        second(with(&good)),
        second(event(&[member("n", &with(&byte()))])),
        second(event(&[with(&member("n", &byte()))])),
    ];
    for class in classes {
        let found = read_all(&[PREAMBLE, &stream, &good, &class], &bytes);
        assert_fault(&found, "extensions that are not known here: x.org", 2);
        assert_eq!(found.1, ["7", "8"]);
    }
    // That of the preamble is of the whole trace.
    let found = read_all(&[&with(PREAMBLE), &stream, &good], &bytes);
    assert_fault(&found, "extensions that are not known here: x.org", 0);
    let empty = PREAMBLE.replacen('{', r#"{"extensions": {}, "#, 1);
    assert_eq!(read_all(&[&empty, &stream, &good], &bytes[..2]), (vec![], vec!["7".into()]));
    let wrong = PREAMBLE.replacen('{', r#"{"extensions": [1], "#, 1);
    assert_fault(&read_all(&[&wrong, &stream, &good], &bytes), "must be an object", 0);
}

#[test]
fn roles_count_where_they_may_stand_and_nowhere_else() {
    let role = |name: &str| format!(r#", "roles": ["{name}"]"#);
    let stamp = |bits| number("unsigned-integer", bits, &role("default-clock-timestamp"));
    let clock = r#"{"type": "clock-class", "id": "c", "frequency": 1000000000}"#;
    let stream = |header: &str| {
        format!(
            r#"{{"type": "data-stream-class", "default-clock-class-id": "c",
                "event-record-header-field-class": {header}}}"#
        )
    };
    let times = |payload: &str| {
        let header = structure(&[member("t", &stamp(8))]);
        let text = [PREAMBLE, clock, &stream(&header), &event(&[member("n", payload)])].join("\n");
        let reader = any_reader(&text, &[&[10, 200, 11, 1]]);
        let mut events = reader.events();
        let mut times = Vec::new();
        while let Some(event) = events.next_event() {
            times.push(event.time.0);
        }
        (reader.diagnostics().len(), times)
    };
    assert_eq!(times(&byte()), (0, vec![10, 11]));
    assert_eq!(times(&stamp(8)), (1, vec![10, 11]), "a payload sets no clock");
    assert_eq!(times(&number("unsigned-integer", 8, &role("x"))), (0, vec![10, 11]), "not known");
    // The magic number has 32 bits, and no number is a UUID.
    for (class, bytes) in [(8, [1, 5]), (16, [0, 1])] {
        let magic = number("unsigned-integer", class, &role("packet-magic-number"));
        let header = structure(&[member("magic", &magic)]);
        let trace = format!(r#"{{"type": "trace-class", "packet-header-field-class": {header}}}"#);
        let found = read_all(&[PREAMBLE, &trace, STREAM, &event(&[member("n", &byte())])], &bytes);
        assert_fault(&found, "a role that it cannot have", usize::from(class == 8));
    }
    let uuid = r#"{"type": "static-length-blob", "length": 4, "roles": ["metadata-stream-uuid"]}"#;
    let header = structure(&[member("uuid", uuid)]);
    let trace = format!(r#"{{"type": "trace-class", "packet-header-field-class": {header}}}"#);
    let event = event(&[member("n", &byte())]);
    let found = read_all(&[PREAMBLE, &trace, STREAM, &event], &[1, 2, 3, 4, 5]);
    assert_fault(&found, "16 bytes", 1);
}

#[test]
fn what_a_class_cannot_do_without_is_asked_for() {
    let cases = [
        (r#"{"type": "static-length-string"}"#, "`length` is missing"),
        (r#"{"type": "static-length-blob"}"#, "`length` is missing"),
        (
            r#"{"type": "static-length-array", "element-field-class": {"type": "null-terminated-string"}}"#,
            "`length` is missing",
        ),
        (r#"{"type": "dynamic-length-blob"}"#, "`length-field-location` is missing"),
        (
            r#"{"type": "variant", "selector-field-location": {"path": ["s"]}, "options": []}"#,
            "at least one",
        ),
    ];
    for (class, words) in cases {
        assert_fault(&read(&[member("s", &byte()), member("x", class)], &[1, 2]), words, 0);
    }
}

fn variant(selector: &str, options: &[(&str, &str)]) -> String {
    let option = |(range, class): &(&str, &str)| {
        format!(r#"{{"selector-field-ranges": [{range}], "field-class": {class}}}"#)
    };
    let options: Vec<String> = options.iter().map(option).collect();
    let options = options.join(", ");
    let location = path(selector);
    format!(
        r#"{{"type": "variant", "selector-field-location": {location}, "options": [{options}]}}"#
    )
}

#[test]
fn options_are_chosen_by_ranges_of_either_sign_that_do_not_meet() {
    let signed = number("signed-integer", 8, "");
    let halves = variant("\"s\"", &[("[-128, -1]", &byte()), ("[0, 127]", &signed)]);
    let found = read(&[member("s", &signed), member("v", &halves)], &[0x80, 200, 0, 200]);
    assert_eq!(found, (vec![], vec!["-128 200".into(), "0 -56".into()]));
    let meet = variant("\"s\"", &[("[0, 5]", &byte()), ("[5, 9]", &signed)]);
    let found = read(&[member("s", &byte()), member("v", &meet)], &[5, 200]);
    assert_fault(&found, "5 chooses two options", 1);
    assert_eq!(found.1, ["5 200"]);
}

#[test]
fn a_length_is_one_integer_that_is_there() {
    let list = |location: &str| {
        format!(
            r#"{{"type": "dynamic-length-array", "element-field-class": {},
                "length-field-location": {}}}"#,
            byte(),
            path(location)
        )
    };
    // Upwards by null, and inside the option or element that the array is in.
    let inner = structure(&[member("a", &list(r#"null, "n""#))]);
    let found = read(&[member("n", &byte()), member("s", &inner)], &[2, 7, 8]);
    assert_eq!(found, (vec![], vec!["2 [a=[7 8]]".into()]));
    let own = structure(&[member("n", &byte()), member("a", &list("\"n\""))]);
    let lists =
        format!(r#"{{"type": "static-length-array", "length": 2, "element-field-class": {own}}}"#);
    let found = read(&[member("s", &lists)], &[1, 7, 2, 8, 9]);
    assert_eq!(found, (vec![], vec!["[[n=1 a=[7]] [n=2 a=[8 9]]]".into()]));

    let signed = number("signed-integer", 8, "");
    let real = number("floating-point-number", 32, "");
    let optional = format!(
        r#"{{"type": "optional", "selector-field-location": {}, "selector-field-ranges": [[1, 1]],
            "field-class": {}}}"#,
        path("\"s\""),
        byte()
    );
    let bytes_of = |class: &str| {
        format!(r#"{{"type": "static-length-array", "length": 2, "element-field-class": {class}}}"#)
    };
    let text = r#"{"type": "null-terminated-string"}"#;
    let cases = [
        (optional, "may be absent"),
        (bytes_of(&byte()), "elements of an array"),
        (variant("\"s\"", &[("[0, 1]", &byte()), ("[2, 3]", text)]), "in every option"),
        (variant("\"s\"", &[("[0, 1]", &byte()), ("[2, 3]", &signed)]), "signed in one option"),
        (real, "no integer field"),
        (text.to_owned(), "no integer field"),
        (signed.clone(), "must be an unsigned integer"),
    ];
    for (class, words) in cases {
        let members = [member("s", &byte()), member("n", &class), member("a", &list("\"n\""))];
        assert_fault(&read(&members, &[1, 1, 1, 1]), words, 0);
    }
    // In every option there is one: that of the option which was read.
    let wide = number("unsigned-integer", 16, "");
    let either = variant("\"s\"", &[("[0, 1]", &byte()), ("[2, 3]", &wide)]);
    let members = [member("s", &byte()), member("n", &either), member("a", &list("\"n\""))];
    let found = read(&members, &[0, 1, 7, 2, 2, 0, 8, 9]);
    assert_eq!(found, (vec![], vec!["0 1 [7]".into(), "2 2 [8 9]".into()]));
}

#[test]
fn clocks_say_where_they_begin() {
    let clock = |more: &str| {
        let clock = format!(r#"{{"type": "clock-class", "id": "c", "frequency": 1000{more}}}"#);
        let reader = any_reader(&[PREAMBLE, &clock, STREAM].join("\n"), &[]);
        let clocks = &reader.trace().clocks;
        let faults = reader.diagnostics().len();
        clocks.first().map(|c| (c.nanos(lateralis_units::Ticks(2)).0, c.unix_epoch, faults))
    };
    assert_eq!(clock(""), Some((2_000_000, false, 0)));
    let offset = |seconds: i64, cycles: i64| {
        clock(&format!(
            r#", "origin": "unix-epoch", "offset-from-origin": {{"seconds": {seconds}, "cycles": {cycles}}}"#
        ))
    };
    assert_eq!(offset(3, 5), Some((3_007_000_000, true, 0)));
    assert_eq!(offset(-3, 5), Some((-2_993_000_000, true, 0)));
    // Lenient: the specification wants cycles ≥ 0; the sum is meant all the same.
    assert_eq!(offset(1, -5), Some((997_000_000, true, 0)));
    let origin = r#", "origin": {"namespace": "x", "name": "boot", "uid": "1"}, "accuracy": 5"#;
    assert_eq!(clock(origin), Some((2_000_000, false, 0)));
    assert_eq!(clock(r#", "accuracy": "good""#), Some((2_000_000, false, 1)));
    assert_eq!(clock(r#", "frequency": 0"#), None);
    let twice = r#"{"type": "clock-class", "id": "c", "frequency": 1000}"#;
    let found = read_all(&[PREAMBLE, twice, twice, STREAM], &[]);
    assert_fault(&found, "clock class `c` is declared twice", 0);
    let none = r#"{"type": "data-stream-class", "default-clock-class-id": "d"}"#;
    assert_fault(&read_all(&[PREAMBLE, twice, none], &[]), "unknown clock class `d`", 0);
}

#[test]
fn what_there_can_be_one_of_is_not_declared_twice() {
    let trace = r#"{"type": "trace-class", "environment": {"a": 1, "b": "x"}, "uid": "any text"}"#;
    assert_eq!(read_all(&[PREAMBLE, trace, STREAM], &[]).0, [] as [&str; 0]);
    assert_fault(&read_all(&[PREAMBLE, trace, trace, STREAM], &[]), "a trace class already", 0);
    let alias =
        format!(r#"{{"type": "field-class-alias", "name": "u", "field-class": {}}}"#, byte());
    let event = event(&[member("n", "\"u\"")]);
    assert_eq!(read_all(&[PREAMBLE, &alias, STREAM, &event], &[5]), (vec![], vec!["5".into()]));
    let found = read_all(&[PREAMBLE, &alias, &alias, STREAM, &event], &[5]);
    assert_fault(&found, "alias `u` is declared twice", 1);
    let found = read_all(&[PREAMBLE, &alias, STREAM, STREAM, &event], &[5]);
    assert_fault(&found, "stream class 0 is declared twice", 1);
}

#[test]
fn integers_over_64_bits_are_structures_of_words() {
    let wide = |order: &str, kind: &str, bits: u32, align: u32| {
        format!(
            r#"{{"type": "fixed-length-{kind}", "length": {bits}, "byte-order": "{order}",
                "alignment": {align}}}"#
        )
    };
    let mut bytes = vec![1];
    bytes.extend((-2i128).to_le_bytes());
    bytes.push(9);
    let members = |class: String| [member("a", &byte()), member("w", &class), member("z", &byte())];
    let found = read(&members(wide("little-endian", "signed-integer", 128, 8)), &bytes);
    assert_eq!(found.1, [format!("1 [bits_0={} bits_64=-1] 9", u64::MAX - 1)]);
    let mut bytes = vec![1];
    bytes.extend(0x0102_0304_0506_0708_1112_1314_1516_1718u128.to_be_bytes());
    bytes.push(9);
    let found = read(&members(wide("big-endian", "unsigned-integer", 128, 8)), &bytes);
    let (high, low) = (0x0102_0304_0506_0708u64, 0x1112_1314_1516_1718u64);
    assert_eq!(found, (vec![], vec![format!("1 [bits_64={high} bits_0={low}] 9")]));
    // 65 bits and 7: the highest bit is alone, at either end.
    let rest = |order: &str| wide(order, "unsigned-integer", 7, 1);
    let split =
        |order: &str| [member("w", &wide(order, "bit-array", 65, 1)), member("r", &rest(order))];
    let found = read(&split("little-endian"), &[1, 0, 0, 0, 0, 0, 0, 0x80, 0b0000_1011]);
    assert_eq!(found.1, [format!("[bits_0={} bits_64=1] 5", (1u64 << 63) + 1)]);
    let found = read(&split("big-endian"), &[0x80, 0, 0, 0, 0, 0, 0, 0, 0b1000_0101]);
    assert_eq!(found.1, ["[bits_64=1 bits_0=1] 5"]);
    assert_fault(&read(&members(wide("big-endian", "boolean", 65, 1)), &[0; 16]), "boolean", 0);
    assert_fault(&read(&members(wide("big-endian", "bit-array", 4097, 1)), &[0; 999]), "4096", 0);
    // The same in CTF 1.8, where arrays of them keep their alignment.
    let text = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = be; };
        event { name = e; fields := struct {
            integer { size = 72; align = 16; signed = true; } w[2]; }; };";
    let bytes = [0xff, 0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4];
    let found = read_all(&[text], &bytes);
    let expected = "[[bits_64=-1 bits_0=3] [bits_64=1 bits_0=4]]";
    assert_eq!(found, (vec![], vec![expected.to_owned()]));
}

#[test]
fn floats_of_16_80_128_and_more_bits_become_the_nearest_double() {
    let quad = |high: u64, low: u64| (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
    let mut bytes = vec![0x00, 0xc1];
    bytes.extend(quad(0x4000_921f_b544_42d1, 0x8469_898c_c517_01b8));
    bytes.extend([7, 0x00, 0x3c, 0x00, 0x40]);
    let half = number("floating-point-number", 16, "");
    let pair =
        format!(r#"{{"type": "static-length-array", "length": 2, "element-field-class": {half}}}"#);
    let members = [
        member("h", &half),
        member("q", &number("floating-point-number", 128, "")),
        member("n", &byte()),
        member("p", &pair),
    ];
    let expected = "-2.5 3.141592653589793 7 [1.0 2.0]".to_owned();
    assert_eq!(read(&members, &bytes), (vec![], vec![expected.clone()]));
    assert_eq!(read(&members, &bytes[..bytes.len() - 1]), (vec![], vec![]), "beyond the end");
    // Columns say the same; these are events that come as rows of the batch.
    let text = [PREAMBLE, STREAM, &event(&members)].join("\n");
    let reader = any_reader(&text, &[&bytes]);
    let wanted = Wanted::everything(reader.trace());
    let mut rows = Vec::new();
    let mut batches = reader.batches(&wanted);
    while let Some(batch) = batches.next_batch() {
        for event in batch.rows() {
            let fields = event.payload().into_iter().flatten();
            rows.push(fields.map(|(_, field)| shown(field)).collect::<Vec<_>>().join(" "));
        }
    }
    assert_eq!(rows, [expected]);
    for bits in [8, 24, 79, 96, 100, 136, 8192] {
        let class = number("floating-point-number", bits, "");
        let found = read(&[member("x", &class)], &[0; 64]);
        assert_eq!((found.0.len(), found.1.len()), (1, 0), "{bits}: {found:?}");
    }
    let text = |exponent: u32, digits: u32| {
        format!(
            "/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = be; }}; event {{ name = e;
             fields := struct {{ floating_point {{ exp_dig = {exponent}; mant_dig = {digits};
             align = 8; }} x; }}; }};"
        )
    };
    let found = read_all(&[&text(5, 11)], &[0x3e, 0]);
    assert_eq!(found, (vec![], vec!["1.5".to_owned()]));
    let found = read_all(&[&text(16, 64)], &[0xc0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(found, (vec![], vec!["-2.0".to_owned()]));
    assert_fault(&read_all(&[&text(8, 8)], &[0; 16]), "unsupported floating point", 0);
}

#[test]
fn leb128_may_be_longer_than_its_number() {
    let class = r#"{"type": "variable-length-signed-integer"}"#;
    let mut bytes = vec![0xfe];
    bytes.extend([0xff; 11]);
    bytes.extend([0x7f, 5]);
    assert_eq!(read(&[member("n", class)], &bytes), (vec![], vec!["-2".into(), "5".into()]));
    // Values of more than 64 bits are reported, and nothing is invented for them.
    let mut bytes = vec![5];
    bytes.extend([0x80; 10]);
    bytes.push(1);
    assert_eq!(read(&[member("n", class)], &bytes), (vec![], vec!["5".into()]));
}
