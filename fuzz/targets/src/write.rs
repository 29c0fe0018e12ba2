// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What was read is written: whatever a hostile trace still gives must come out
//! as a whole trace with the same events.

use crate::ctf::{good_metadata, good_stream, good_texts};
use lateralis_ctf::write::{self, Files, Options, Version};
use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::{Damage, DamageReason};

/// Events of a hostile trace that are written; classes of a single bit make
/// millions of them.
const EVENT_LIMIT: usize = 20_000;

/// Metadata if it begins as such, else a stream. Besides not panicking: the copy
/// has no damage but that of its order and no fault, and as many events as were said to be written.
pub fn check(bytes: &[u8]) {
    if bytes.starts_with(b"/* CTF") || bytes.starts_with(b"\x1e{") || bytes.starts_with(b"{") {
        copy(bytes, &good_stream());
    } else {
        good_metadata().iter().for_each(|metadata| copy(metadata.as_bytes(), bytes));
    }
}

fn copy(metadata: &[u8], stream: &[u8]) {
    let file = StreamFile { name: "stream".into(), bytes: Box::new(stream.to_vec()) };
    let reader = Reader::new(metadata, vec![file]);
    let mut merge = reader.events();
    let mut events = 0;
    while merge.next_event().is_some() {
        events += 1;
        if events > EVENT_LIMIT {
            return;
        }
    }
    for version in [Version::V1, Version::V2] {
        let mut files = Files::default();
        let options = Options { version, ..Options::default() };
        let report = write::recover(&reader, &mut files, &options).expect("memory takes all");
        // What cannot be written is said.
        assert!(report.events == events as u64 || !report.dropped.is_empty(), "{version:?}");
        let text = files.metadata.clone();
        let copy = files.into_reader();
        assert!(copy.diagnostics().is_empty(), "{:?} in {text}", copy.diagnostics());
        // Where damaged times agree on no order, packets lie so in the copy, too.
        let is_order = |found: &Damage| found.reason == DamageReason::OutOfOrder;
        assert!(copy.damage().iter().all(is_order), "{:?} in {text}", copy.damage());
        let mut merge = copy.events();
        let mut again = 0;
        while merge.next_event().is_some() {
            again += 1;
        }
        assert_eq!(again, report.events, "{version:?} {:?} {text}", merge.damage().next());
    }
}

/// Metadata and streams.
pub fn good() -> Vec<Vec<u8>> {
    [good_texts(), vec![good_stream()]].concat()
}
