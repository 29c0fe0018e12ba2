// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole CTF traces: metadata and up to eight streams, all of them hostile.

use crate::ctf::{good_metadata, good_stream};
use crate::{columns, pieces};
use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::Source;
use std::path::{Path, PathBuf};

/// Stream files of an input; what comes after is left out.
const STREAMS_MAX: usize = 8;

/// The trace of an input: the first piece is metadata, the others are streams.
pub fn reader(input: &[u8]) -> Reader {
    let mut pieces = pieces::split(input);
    let metadata = pieces.next().unwrap_or_default();
    let file = |(index, bytes): (usize, &[u8])| StreamFile {
        name: format!("stream{index}"),
        bytes: Box::new(bytes.to_vec()),
    };
    Reader::new(metadata, pieces.take(STREAMS_MAX).enumerate().map(file).collect())
}

/// Besides not panicking: all ways of reading agree, packets are consecutive in their file, and so
/// is damage, which never overlaps a packet's own bytes.
pub fn check(input: &[u8]) {
    let reader = reader(input);
    assert!(reader.diagnostics().len() <= 128, "{} diagnostics", reader.diagnostics().len());
    let size = |name: &str| {
        let file = reader.files().iter().find(|file| file.name == name).expect("a known file");
        (*file.bytes).as_ref().len() as u64
    };
    for stream in reader.streams() {
        for found in &stream.packets {
            let packet = &found.packet;
            let file = &reader.files()[packet.file as usize];
            assert!(packet.offset_bytes < size(&file.name), "a packet outside of its file");
        }
    }
    columns::compare(&reader);
    for damage in Source::damage(&reader).iter().chain(&reader.visit(&mut |_| {})) {
        let size = size(&damage.file);
        assert!(damage.begin_bytes <= damage.end_bytes, "{damage:?}");
        assert!(damage.begin_bytes <= size, "{damage:?} of {size} bytes");
    }
    // What describes a trace is bounded by its metadata.
    let _ = (reader.interval(), Source::streams(&reader), reader.losses());
}

/// Metadata with every kind of class, in CTF 1.8.
pub const EVERYTHING: &str = r#"/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = be; uuid = "6c617465-7261-6c69-732d-746573747321";
    packet.header := struct { integer { size = 32; align = 8; } magic;
        integer { size = 8; } uuid[16]; integer { size = 8; } stream_id; }; };
env { tracer_name = "t"; n = -3; };
clock { name = c; freq = 1000000000; offset_s = 5; offset = 7; };
typealias integer { size = 8; } := u8;
typealias integer { size = 16; } := bits;
typealias integer { size = 13; align = 1; signed = true; } := odd;
typealias integer { size = 27; align = 1; map = clock.c.value; } := time;
typealias integer { size = 64; align = 8; map = clock.c.value; } := long;
stream { id = 0;
    packet.context := struct { long timestamp_begin; long timestamp_end;
        bits content_size; bits packet_size; u8 events_discarded; u8 cpu_id; };
    event.header := struct {
        enum : integer { size = 5; align = 1; } { short = 0 ... 30, long = 31 } id;
        variant <id> { struct { time timestamp; } short;
            struct { u8 id; long timestamp; } long; } v; };
    event.context := struct { u8 _vtid; }; };
event { id = 0; stream_id = 0; name = all; fields := struct {
    u8 n; odd a[n]; floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f;
    enum : u8 { one, two = 2 ... 9 } tag;
    variant <tag> { string one; struct { u8 m; string s[m]; } two; } v;
    struct { u8 k; struct { u8 x; } list[k]; } outer[2];
    integer { size = 8; encoding = UTF8; } text[n];
}; };
event { id = 1; stream_id = 0; name = straight; context := struct { u8 c; };
    fields := struct { u8 x; string s; integer { size = 32; align = 32; base = 16; } y; }; };"#;

/// The same for CTF 2.
pub const EVERYTHING_2: &str = r#"{"type": "preamble", "version": 2}
{"type": "clock-class", "id": "c", "frequency": 1000, "offset-from-origin": {"seconds": 1}}
{"type": "trace-class", "packet-header-field-class": {"type": "structure", "member-classes": [
  {"name": "m", "field-class": {"type": "fixed-length-unsigned-integer", "length": 32,
   "byte-order": "little-endian", "roles": ["packet-magic-number"]}},
  {"name": "i", "field-class": {"type": "variable-length-unsigned-integer",
   "roles": ["data-stream-class-id"]}}]}}
{"type": "data-stream-class", "id": 0, "default-clock-class-id": "c",
 "packet-context-field-class": {"type": "structure", "member-classes": [
  {"name": "size", "field-class": {"type": "variable-length-unsigned-integer",
   "roles": ["packet-total-length"]}}]},
 "event-record-header-field-class": {"type": "structure", "member-classes": [
  {"name": "t", "field-class": {"type": "fixed-length-unsigned-integer", "length": 8,
   "byte-order": "big-endian", "roles": ["default-clock-timestamp"]}}]}}
{"type": "event-record-class", "id": 0, "data-stream-class-id": 0, "name": "all",
 "payload-field-class": {"type": "structure", "member-classes": [
  {"name": "n", "field-class": {"type": "variable-length-unsigned-integer"}},
  {"name": "s", "field-class": {"type": "variable-length-signed-integer"}},
  {"name": "b", "field-class": {"type": "fixed-length-boolean", "length": 3,
   "byte-order": "big-endian"}},
  {"name": "w", "field-class": {"type": "null-terminated-string", "encoding": "utf-16le"}},
  {"name": "d", "field-class": {"type": "dynamic-length-string", "length-field-location":
   {"origin": "event-record-payload", "path": ["n"]}, "encoding": "utf-32be"}},
  {"name": "o", "field-class": {"type": "optional", "selector-field-location": {"path": ["b"]},
   "field-class": {"type": "static-length-blob", "length": 2}}},
  {"name": "v", "field-class": {"type": "variant", "selector-field-location": {"path": ["n"]},
   "options": [{"selector-field-ranges": [[0, 3]], "field-class": {"type": "structure"}},
    {"selector-field-ranges": [[4, 9]], "field-class": {"type": "fixed-length-bit-map",
     "length": 9, "byte-order": "little-endian", "flags": {"f": [[0, 1]]}}}]}},
  {"name": "l", "field-class": {"type": "dynamic-length-array", "length-field-location":
   {"path": ["n"]}, "element-field-class": {"type": "structure"}}}
 ]}}
"#;

/// Bytes of a stream of [`EVERYTHING`], with two packets.
fn everything_stream() -> Vec<u8> {
    let mut packet = [&[0xc1, 0xfc, 0x1f, 0xc1][..], b"lateralis-tests!\0"].concat();
    packet.extend_from_slice(&7u64.to_be_bytes());
    packet.extend_from_slice(&9000u64.to_be_bytes());
    packet.extend_from_slice(&[3, 0, 3, 0, 0, 1]);
    // Id 1 in 5 bits, time in 27, then event.context, context, x, s, y.
    packet.extend_from_slice(b"\x08\0\0\x09\x01\x02\x03text\0\0\0\0\0\0\x01\x02\x03");
    packet.resize(96, 0);
    packet.repeat(2)
}

/// Own traces, and the small ones among the test data where that is there.
pub fn good() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = good_metadata()
        .iter()
        .map(|text| pieces::join(&[text.as_bytes(), &good_stream(), &good_stream()]))
        .collect();
    all.push(pieces::join(&[EVERYTHING.as_bytes(), &everything_stream(), &[]]));
    let event = [3, 1, 5, 0x80, 0, 0, 0, 7, 8];
    let packet = [&[0xc1, 0x1f, 0xfc, 0xc1, 0, 0xc8, 1][..], &event, &event].concat();
    all.push(pieces::join(&[EVERYTHING_2.as_bytes(), &packet]));
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    small_traces(&real, &mut all);
    all
}

/// Traces under a directory that make an input of less than 16 KiB.
fn small_traces(directory: &Path, all: &mut Vec<Vec<u8>>) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    if let Ok(metadata) = std::fs::read(directory.join("metadata")) {
        let streams = paths.iter().filter(|path| path.is_file() && !path.ends_with("metadata"));
        let streams = streams.filter_map(|path| std::fs::read(path).ok());
        let input = pieces::join(&std::iter::once(metadata).chain(streams).collect::<Vec<_>>());
        if input.len() < 16 << 10 {
            all.push(input);
        }
    }
    paths.iter().filter(|path| path.is_dir()).for_each(|path| small_traces(path, all));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_traces_have_events_and_no_fault() {
        for input in &good()[..4] {
            let reader = reader(input);
            assert_eq!(reader.diagnostics(), []);
            assert!(columns::compare(&reader) > Some(0));
        }
    }
}
