// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Malformed bytes: no panic, no endless loop, no unbounded memory.

use crate::maker;

use maker::{METADATA, PacketMaker, any_reader, read, reader};
use proptest::prelude::*;

fn packets() -> Vec<u8> {
    let one = PacketMaker::new(0, 1000).writer(1, 2).number(5).text("hello", &[1, 2, 3]);
    let two = PacketMaker::new(1, 2000).text("", &[]).number(6);
    // Without checksums damage reaches the decoder.
    [one.finish_without_checksum(), two.finish_without_checksum()].concat()
}

/// Metadata with every kind of class, in both versions.
const EVERYTHING: &str = r#"/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = be; };
typealias integer { size = 8; } := u8;
typealias integer { size = 13; align = 1; signed = true; } := odd;
event { name = all; fields := struct {
    u8 n; odd a[n]; floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f;
    enum : u8 { one, two = 2 ... 9 } tag;
    variant <tag> { string one; struct { u8 m; string s[m]; } two; } v;
    struct { u8 k; struct { u8 x; } list[k]; } outer[2];
    integer { size = 8; encoding = UTF8; } text[n];
}; };"#;

const EVERYTHING_2: &str = r#"
{"type": "preamble", "version": 2}
{"type": "data-stream-class"}
{"type": "event-record-class", "name": "all", "payload-field-class": {"type": "structure",
 "member-classes": [
  {"name": "n", "field-class": {"type": "variable-length-unsigned-integer"}},
  {"name": "s", "field-class": {"type": "variable-length-signed-integer"}},
  {"name": "b", "field-class": {"type": "fixed-length-boolean", "length": 3,
   "byte-order": "big-endian"}},
  {"name": "w", "field-class": {"type": "null-terminated-string", "encoding": "utf-16le"}},
  {"name": "d", "field-class": {"type": "dynamic-length-string", "length-field-location":
   {"origin": "event-record-payload", "path": ["n"]}, "encoding": "utf-32be"}},
  {"name": "o", "field-class": {"type": "optional", "selector-field-location": {"path": ["b"]},
   "field-class": {"type": "static-length-blob", "length": 2}}},
  {"name": "l", "field-class": {"type": "dynamic-length-array", "length-field-location":
   {"path": ["n"]}, "element-field-class": {"type": "structure"}}}
 ]}}
"#;

#[test]
fn the_two_metadata_texts_are_valid() {
    for metadata in [EVERYTHING, EVERYTHING_2] {
        let reader = any_reader(metadata, &[&[0; 64]]);
        assert_eq!(reader.diagnostics(), []);
    }
    let (events, _) = read(&any_reader(EVERYTHING, &[&[0; 20]]));
    assert!(!events.is_empty());
    let (events, _) = read(&any_reader(EVERYTHING_2, &[&[1, 5, 0x80, 0, 0, 0, 7, 8]]));
    assert_eq!(
        events,
        [
            "? all { n = 1, s = 5, b = true, w = \"\", d = \"\", o = { { 07 08 } }, l = [ [0] = { } ] }"
        ]
    );
}

#[test]
fn types_that_multiply_are_refused_in_time() {
    let mut text = String::from(
        "/* CTF 1.8 */ trace { byte_order = le; };\n\
         typealias integer { size = 8; } := t0;\n",
    );
    for level in 1..60 {
        let before = level - 1;
        text.push_str(&format!("typealias struct {{ t{before} a; t{before} b; }} := t{level};\n"));
    }
    text.push_str("event { name = e; fields := struct { t59 x; }; };");
    let reader = any_reader(&text, &[&[0; 8]]);
    assert!(!reader.diagnostics().is_empty());
}

#[test]
fn types_without_end_are_refused() {
    let mut text = String::from("/* CTF 1.8 */ typealias integer { size = 8; } := t0;\n");
    for level in 1..20_000 {
        let before = level - 1;
        text.push_str(&format!("typealias struct {{ t{before} a; }} := t{level};\n"));
    }
    assert!(!any_reader(&text, &[]).diagnostics().is_empty());
    let braces = format!("/* CTF 1.8 */ {}", "struct { ".repeat(100_000));
    assert!(!any_reader(&braces, &[]).diagnostics().is_empty());
    let json = format!("{{\"type\": {}", "[".repeat(100_000));
    assert!(!any_reader(&json, &[]).diagnostics().is_empty());
}

#[test]
fn arrays_without_elements_to_speak_of_end() {
    // 2⁶⁴ - 1 empty structures, and as many structures as the file has bits.
    let metadata = r#"/* CTF 1.8 */ trace { byte_order = le; };
        typealias integer { size = 64; } := u64;
        event { name = e; fields := struct { u64 n; struct { } a[n]; }; };"#;
    let reader = any_reader(metadata, &[&[0xff; 4096]]);
    let (events, damage) = read(&reader);
    assert_eq!((events.len(), damage.len()), (0, 1));
    let metadata = metadata.replace("struct { }", "struct { integer { size = 1; align = 1; } b; }");
    let mut stream = (1u64 << 22).to_le_bytes().to_vec();
    stream.resize(1 << 20, 0);
    let (events, damage) = read(&any_reader(&metadata, &[&stream]));
    assert_eq!((events.len(), damage.len()), (0, 1), "four million values in one event");
}

#[test]
fn events_without_a_bit_end() {
    let metadata = "/* CTF 1.8 */ trace { byte_order = le; }; event { name = nothing; };";
    let (events, damage) = read(&any_reader(metadata, &[&[0; 8]]));
    assert_eq!((events.len(), damage.len()), (0, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cut_anywhere_never_invents_events(cut in 0usize..400) {
        let whole = packets();
        let cut = cut.min(whole.len());
        let (all, _) = read(&reader(&whole));
        let (some, _) = read(&reader(&whole[..cut]));
        prop_assert_eq!(&some[..], &all[..some.len()]);
    }

    #[test]
    fn changed_bytes_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = packets();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        read(&reader(&bytes));
    }

    #[test]
    fn any_stream_of_any_class_is_read_to_its_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(&any_reader(EVERYTHING, &[&bytes]));
        read(&any_reader(EVERYTHING_2, &[&bytes]));
        read(&reader(&bytes));
    }

    #[test]
    fn small_numbers_reach_deeper(bytes in prop::collection::vec(0u8..4, 0..200)) {
        read(&any_reader(EVERYTHING, &[&bytes]));
        read(&any_reader(EVERYTHING_2, &[&bytes]));
    }

    #[test]
    fn changed_metadata_never_panics(
        which in 0usize..3,
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..12),
            1..6,
        ),
    ) {
        let mut text = [METADATA, EVERYTHING, EVERYTHING_2][which].to_owned();
        for (from, to, length) in changes {
            // Moves a piece of the text somewhere else: likelier to mean
            // something than noise.
            let from = from.index(text.len());
            let piece: String = text.chars().skip(from).take(length).collect();
            let to = to.index(text.len() + 1);
            let to = (to..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.insert_str(to, &piece);
            if length % 3 == 0 {
                let end = (to + length).min(text.len());
                if text.is_char_boundary(end) {
                    text.replace_range(to..end, "");
                }
            }
        }
        read(&any_reader(&text, &[&packets()]));
    }

    #[test]
    fn any_text_is_metadata_or_not(text in "[ -~\\n]{0,200}") {
        any_reader(&format!("/* CTF 1.8 */ {text}"), &[]);
        any_reader(&format!("{{{text}"), &[]);
    }
}
