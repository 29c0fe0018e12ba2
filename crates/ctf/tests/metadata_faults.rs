// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of metadata are reported with their position, and cost only themselves.

use lateralis_ctf::{Reader, StreamFile};

/// The faults, and the number of events of a stream file with bytes 1 and 2.
fn read(metadata: &str) -> (Vec<String>, u64) {
    let file = StreamFile { name: "s".into(), bytes: Box::new(vec![1, 2]) };
    let reader = Reader::new(metadata.as_bytes(), vec![file]);
    let mut events = reader.events();
    let mut count = 0;
    while events.next_event().is_some() {
        count += 1;
    }
    (reader.diagnostics().iter().map(ToString::to_string).collect(), count)
}

const TRACE: &str = "trace { major = 1; minor = 8; byte_order = le; };";
const STREAM: &str = "stream { }; event { name = e; fields := struct {
    integer { size = 8; } n; }; };";

#[test]
fn a_wrong_value_in_a_block_is_told_and_the_block_stays() {
    let faulty = [
        ("trace { major = 1; byte_order = middle; };", "1:33: unknown byte order `middle`"),
        ("trace { major = 2; byte_order = le; };", "1:17: this is version 2"),
        ("trace { major = 1; byte_order = le; uuid = \"x\"; };", "1:44: not a UUID: x"),
        ("", "there is no `trace` block"),
    ];
    for (trace, fault) in faulty {
        let (faults, events) = read(&format!("{trace}\n{STREAM}"));
        assert_eq!((faults.len(), events), (1, 2), "{trace}: {faults:?}");
        assert!(faults[0].contains(fault), "{fault}: {faults:?}");
    }
    let clocks = [
        ("freq = fast;", "`freq` of a clock must be a number"),
        ("offset_s = \"5\";", "`offset_s` of a clock must be a number"),
        ("uuid = \"5\";", "not a UUID: 5"),
        ("absolute = perhaps;", "expected true or false"),
    ];
    for (attribute, fault) in clocks {
        let text = format!("{TRACE}\nclock {{ name = c; {attribute} }};\n{STREAM}");
        let (faults, events) = read(&text);
        assert_eq!((faults.len(), events), (1, 2), "{attribute}: {faults:?}");
        assert!(faults[0].starts_with("2:") && faults[0].contains(fault), "{faults:?}");
    }
}

#[test]
fn an_id_that_is_no_number_costs_its_own_declaration() {
    let text = format!("{TRACE}\n{STREAM}\nevent {{ name = f; id = second; }};");
    let (faults, events) = read(&text);
    assert_eq!(events, 2);
    assert!(faults[0].contains("`id` of an event must be a number"), "{faults:?}");
    let text = format!("{TRACE}\nstream {{ id = \"first\"; }};\n{STREAM}");
    let (faults, events) = read(&text);
    assert_eq!(events, 2);
    assert!(faults[0].contains("the id of a stream must be a number"), "{faults:?}");
}

#[test]
fn what_breaks_a_rule_of_ctf_2_is_told_and_read_all_the_same() {
    let class = |properties: &str| {
        format!(
            "{{\"type\": \"preamble\", \"version\": 2}}
{{\"type\": \"data-stream-class\"}}
{{\"type\": \"event-record-class\", \"payload-field-class\": {{\"type\": \"structure\",
  \"member-classes\": [{{\"name\": \"n\", \"field-class\": {{{properties}}}}}]}}}}"
        )
    };
    let number = "\"type\": \"fixed-length-unsigned-integer\", \"length\": 8, \
                  \"byte-order\": \"little-endian\"";
    assert_eq!(read(&class(number)), (vec![], 2));
    let faulty = [
        ("\"attributes\": []", "`attributes` must be an object"),
        ("\"roles\": \"packet-magic-number\"", "`roles` must be a list of texts"),
        ("\"mappings\": {\"a\": []}", "`a` has no range"),
        ("\"mappings\": {\"a\": [[5, 3]]}", "a range of `a` ends before it begins"),
    ];
    for (property, fault) in faulty {
        let (faults, events) = read(&class(&format!("{number}, {property}")));
        assert_eq!((faults.len(), events), (1, 2), "{property}: {faults:?}");
        assert!(faults[0].starts_with("3:") && faults[0].contains(fault), "{faults:?}");
    }
    assert_eq!(read(&class(&format!("{number}, \"extensions\": {{}}"))), (vec![], 2));
    let others = [
        (
            "\"type\": \"fixed-length-bit-map\", \"length\": 8, \"byte-order\": \"big-endian\"",
            "a bit map needs `flags`",
            2,
        ),
        (
            "\"type\": \"static-length-string\", \"length\": 1, \"encoding\": \"utf-16le\"",
            "1 bytes end inside a character",
            2,
        ),
        (
            "\"type\": \"static-length-blob\", \"length\": 2, \"media-type\": 5",
            "`media-type` must be a text",
            1,
        ),
    ];
    for (properties, fault, count) in others {
        let (faults, events) = read(&class(properties));
        assert_eq!((faults.len(), events), (1, count), "{properties}: {faults:?}");
        assert!(faults[0].contains(fault), "{faults:?}");
    }
}
