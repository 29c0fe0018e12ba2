// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings in the format of Genode's trace recorder.

use super::Place;
use std::fs;

/// Activity of one thread: label, thread, time of both ends of the packet, events.
pub type Thread<'a> = (&'a str, &'a str, (u64, u64), &'a [Vec<u8>]);

/// Returns an event.
pub fn event(id: u8, time: u64, payload: &[u8]) -> Vec<u8> {
    [&[id][..], &time.to_le_bytes(), payload].concat()
}

/// Returns a checkpoint of a kind.
pub fn checkpoint(time: u64, data: u32, kind: u8, name: &str) -> Vec<u8> {
    let name = format!("{name}\0");
    let payload = [&data.to_le_bytes()[..], &0u64.to_le_bytes(), &[kind], name.as_bytes()].concat();
    event(7, time, &payload)
}

/// Returns a packet: the activity of one thread in one period.
fn packet((label, thread, times, events): Thread<'_>) -> Vec<u8> {
    let names = format!("{label}\0{thread}\0");
    let header_bytes = 33 + names.len();
    let events = events.concat();
    let mut bytes = 0xc1fc_1fc1u32.to_le_bytes().to_vec();
    bytes.extend_from_slice(&0u32.to_le_bytes());
    bytes.extend_from_slice(&times.0.to_le_bytes());
    bytes.extend_from_slice(&times.1.to_le_bytes());
    bytes.extend_from_slice(&(((header_bytes + events.len()) * 8) as u32).to_le_bytes());
    bytes.extend_from_slice(&((header_bytes * 8) as u16).to_le_bytes());
    bytes.extend_from_slice(&[0x00, 0x11, 128]);
    bytes.extend_from_slice(names.as_bytes());
    assert_eq!(bytes.len(), header_bytes);
    bytes.extend_from_slice(&events);
    bytes
}

impl Place {
    /// Writes the directory of a recording: a single copy of the metadata in its root, and streams in the
    /// directories of their components. The user need not copy files.
    pub fn genode(&self, run: &str, threads: &[Thread<'_>]) {
        for thread in threads {
            let directory = self.0.join(run).join(thread.0.replace(" -> ", "/"));
            fs::create_dir_all(&directory).expect("a folder");
            fs::write(directory.join(thread.1), packet(*thread)).expect("a stream");
        }
        let metadata = include_str!("../../../seedformats/tests/formats/genode-metadata.txt");
        fs::write(self.0.join(run).join("metadata"), metadata).expect("metadata");
    }
}
