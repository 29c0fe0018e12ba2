// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CTF metadata and streams.
//!
//! The good trace is made by the rest of the project: metadata by the schema
//! compiler, packets by the model of the writer. So the smoke test also says
//! that ring, compiler and reader agree on the layout.

use crate::{area, columns, trace};
use lateralis_ctf::{Reader, StreamFile, metadata};
use lateralis_pleco::ctf::{ByteOrder, TraceDescription, ctf1, ctf2};
use std::sync::OnceLock;

/// Metadata of either version. Besides not panicking: with any number of faults, the messages stay
/// readable, and the part that was understood can be used for reading.
pub fn check_metadata(text: &[u8]) {
    let (_, diagnostics) = metadata::parse(text);
    assert!(diagnostics.len() <= 128, "{} diagnostics", diagnostics.len());
    read_all(text, &good_stream());
}

/// A stream with good metadata of both versions: both read it alike.
pub fn check_stream(stream: &[u8]) {
    let [first, second] = good_metadata();
    let events = read_all(first.as_bytes(), stream);
    assert_eq!(events, read_all(second.as_bytes(), stream), "CTF 1.8 and CTF 2 disagree");
    let file = StreamFile { name: "stream".into(), bytes: Box::new(stream.to_vec()) };
    columns::compare(&Reader::new(first.as_bytes(), vec![file]));
    // Every record of the schema takes at least its header.
    assert!(events <= stream.len() / 8, "{events} events out of {} bytes", stream.len());
}

/// Reads every event with every field; returns how many there were.
fn read_all(metadata: &[u8], stream: &[u8]) -> usize {
    let file = StreamFile { name: "stream".into(), bytes: Box::new(stream.to_vec()) };
    let reader = Reader::new(metadata, vec![file]);
    let mut merge = reader.events();
    let mut events = 0;
    // Classes without any field take no bytes, so a stream may hold any number.
    while let Some(event) = merge.next_event() {
        if let Some(payload) = event.payload() {
            for (_, field) in payload {
                // Decoding is lazy: a value is looked at when it is asked for.
                let _ = (field.as_u64(), field.as_text());
            }
        }
        events += 1;
        if events > 100_000 {
            break;
        }
    }
    events
}

/// Metadata of one schema, as CTF 1.8 and CTF 2.
pub fn good_metadata() -> &'static [String; 2] {
    static TEXTS: OnceLock<[String; 2]> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let text = b"subsystem area { event RECORD (number: u32), event TEXT (text: string), };";
        let compiled = lateralis_pleco::compile("area.pleco", text);
        let schema = compiled.schema.expect("a good schema");
        let order = if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big };
        let mut trace = TraceDescription::of_schema(&schema, order);
        trace.uuid = [0; 16];
        for stream in &mut trace.streams {
            stream.id = 0;
        }
        [ctf1(&trace), ctf2(&trace)]
    })
}

/// Metadata with everything, in both versions, and what the compiler writes.
pub fn good_texts() -> Vec<Vec<u8>> {
    let [first, second] = good_metadata();
    let all = [first, second, trace::EVERYTHING, trace::EVERYTHING_2];
    all.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// A stream as the recorder would write it: the closed packets of the good area.
pub fn good_stream() -> Vec<u8> {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| area::closed_packets().concat()).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_good_trace_is_read_completely() {
        let [first, second] = good_metadata();
        for metadata in [first, second] {
            let (_, diagnostics) = metadata::parse(metadata.as_bytes());
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            let packets = area::closed_packets().len();
            let events = read_all(metadata.as_bytes(), &good_stream());
            assert!(packets >= 2 && events > 100 * packets, "{events} events, {packets} packets");
        }
    }
}
