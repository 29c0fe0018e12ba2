// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What fuzzing found, one case each, reduced.

use crate::maker;

use lateralis_ctf::write::{Files, Options, Version, recover};
use lateralis_model::Wanted;
use maker::{any_reader, read};

/// A packet without a single readable event: the writer has no values for its context, which has an
/// array of fixed length.
#[test]
fn a_stream_without_events_has_the_context_of_its_class() {
    let metadata = r#"/* CTF 1.8 */
        typealias integer { size = 8; } := u8;
        trace { major = 1; minor = 8; byte_order = le; };
        stream { id = 0; event.header := struct { u8 id; };
            packet.context := struct { u8 tag[16]; string name; u8 n; u8 list[n];
                struct { u8 x; } s[2]; enum : u8 { none = 7, some = 0 } which;
                variant <which> { u8 none; u8 some; } v; }; };
        event { id = 3; stream_id = 0; name = e; fields := struct { u8 x; }; };"#;
    let mut stream = vec![b'x'; 16];
    stream.extend(b"name\0\x01\x05\x01\x02\x07\x09\xee\xee");
    let reader = any_reader(metadata, &[&stream]);
    assert_eq!(reader.diagnostics(), []);
    let (events, damage) = read(&reader);
    assert_eq!((events.len(), damage.len()), (0, 1), "{damage:?}");
    for version in [Version::V1, Version::V2] {
        let mut files = Files::default();
        let options = Options { version, ..Options::default() };
        recover(&reader, &mut files, &options).unwrap();
        let text = files.metadata.clone();
        let copy = files.into_reader();
        assert_eq!(copy.diagnostics(), [], "{text}");
        let (events, damage) = read(&copy);
        assert!(events.is_empty() && damage.is_empty(), "{version:?}: {damage:?} in {text}");
        assert_eq!(copy.streams().len(), 1);
    }
}

/// Events without a byte: columns gave one after the other for ever.
#[test]
fn columns_of_events_without_a_bit_end() {
    let metadata = "/* CTF 1.8 */ trace { byte_order = le; }; event { name = nothing; };";
    let reader = any_reader(metadata, &[&[0; 8]]);
    for wanted in [Wanted::everything(reader.trace()), Wanted::counts(reader.trace())] {
        let mut batches = reader.batches(&wanted);
        assert!(batches.next_batch().is_none_or(|batch| batch.is_empty()));
        assert!(batches.next_batch().is_none());
        assert_eq!(batches.damage().len(), 1);
    }
}
