// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes sealed packets to a recording of their own, as they arrive.

use std::collections::HashMap;

use lateralis_ring::LossCounts;

use super::part::Part;
use crate::classes::ClassTable;
use crate::keep::{Held, Plans, split};

/// Maximum number of streams kept for their loss counts.
const STREAMS_MAX: usize = 65_536;

#[derive(Debug, Clone, Copy)]
struct Stream {
    number: u64,
    lost: LossCounts,
}

/// State of the streams.
#[derive(Debug, Default)]
pub(super) struct Feed {
    plans: Plans,
    streams: HashMap<(String, u32), Stream>,
    next_stream: u64,
    next_serial: u64,
}

impl Feed {
    /// Writes a packet of the stream with this name to `part`.
    pub(super) fn give(
        &mut self,
        part: &mut Part,
        classes: &ClassTable,
        name: &str,
        packet: &[u8],
    ) {
        let Some((header, records)) = split(packet) else { return };
        let key = (name.to_owned(), header.stream_id);
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&key) {
            self.streams.clear();
        }
        let stream = self.streams.entry(key).or_insert_with(|| {
            self.next_stream += 1;
            Stream { number: self.next_stream, lost: LossCounts::default() }
        });
        let lost_before = std::mem::replace(&mut stream.lost, header.lost);
        let serial = self.next_serial;
        self.next_serial += 1;
        let held = Held { serial, stream: stream.number, header, records: records.into() };
        part.write_packet(&held, name, lost_before, classes, &mut self.plans);
    }
}
