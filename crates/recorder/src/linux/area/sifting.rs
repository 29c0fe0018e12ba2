// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selects what is recorded of an area, and where it is written: filters in the program, and the sieve
//! for selections that the program cannot make.

use std::time::{Duration, Instant};

use lateralis_ring::abi;
use lateralis_ring::{Chunk, Poll, ReadPolicy, RingMode, RingReader};

use super::super::filters::AreaFilters;
use super::super::policies::Wanted;
use super::super::recording::Recording;
use super::LiveArea;
use crate::sieve::Sieve;
use crate::stream::PREFIX_BYTES;

/// Time between two readings of the names of threads.
const NAMES_PERIOD: Duration = Duration::from_millis(500);

impl LiveArea {
    /// Sets filters and sieve, before anything is enabled and for
    /// already enabled events; and the destination of the records.
    pub(in super::super) fn choose(&mut self, recording: &mut Recording, wanted: &Wanted) {
        self.begin_growth(recording, wanted);
        self.filters = AreaFilters::new(&self.view(), &wanted.filters);
        self.sieve = match &wanted.threads[..] {
            [] => Sieve::default(),
            rules => Sieve::of_threads(rules.to_vec()),
        };
        self.writer = wanted.output.as_ref().and_then(|output| recording.writer_of(output));
        let mode = self.mode();
        let view = self.mapping.view().with_swapped(self.header.swapped);
        for (number, ring) in (0..).zip(&mut self.rings) {
            ring.target.writer = self.writer;
            if self.sieve.threads().is_some() {
                let (geometry, policy) = (self.geometry, ReadPolicy::Observe);
                // The rings were checked against this view.
                let reader = RingReader::new(&view, geometry, number, policy, mode).ok();
                ring.ahead = reader.map(|reader| (reader, 0));
            }
        }
        self.apply_filters(recording);
    }

    /// Reads the names of threads from the records that will be read next: a thread that recorded its name in
    /// one ring may have continued in another one, which is read first.
    pub(super) fn listen(&mut self, recording: &mut Recording, mode: RingMode) {
        if self.unreadable || self.sieve.threads().is_none() {
            return;
        }
        for index in 0..self.rings.len() {
            let mut buffer = std::mem::take(&mut recording.buffer);
            for _ in 0..self.geometry.packets_per_ring() + 2 {
                let view = self.mapping.view().with_swapped(self.header.swapped);
                let Some((reader, time)) = &mut self.rings[index].ahead else { break };
                match reader.poll(&view, mode, true, &mut buffer) {
                    Poll::Chunk(chunk) => {
                        let begin = match chunk.from {
                            abi::PACKET_HEADER_BYTES => chunk.header.timestamp_begin,
                            _ => *time,
                        };
                        if self.schemas_are_due() {
                            self.refresh_schemas(recording);
                        }
                        let records = &mut buffer[..chunk.bytes as usize];
                        let area = self.file.as_ref();
                        self.processes.translate(&self.plan, records, chunk.slack, area);
                        let records = &*records;
                        let until = self.sieve.listen(&self.plan, records, (chunk.slack, begin));
                        if let Some((_, time)) = &mut self.rings[index].ahead {
                            *time = until;
                        }
                    }
                    Poll::LostPackets { .. } => {}
                    // Reported by the reader of the ring.
                    Poll::Idle | Poll::Damaged(_) => break,
                }
            }
            recording.buffer = buffer;
        }
    }

    pub(super) fn apply_filters(&mut self, recording: &mut Recording) {
        let view = self.mapping.view().with_swapped(self.header.swapped);
        let mut faults = self.filters.apply(&self.path, &view, &self.registered, &mut self.sieve);
        faults.extend(self.sieve.bind(&self.registered));
        for fault in faults {
            recording.problem(format!("{fault}, pid={}", self.header.creator_pid));
        }
    }

    /// Reads the names of threads again, if the selection depends on them: renaming a thread from outside
    /// is not recorded.
    pub(in super::super) fn refresh_names(&mut self) {
        let now = Instant::now();
        if let Some(threads) = self.sieve.threads()
            && now >= self.names_due
        {
            self.names_due = now + NAMES_PERIOD;
            let (processes, area) = (&mut self.processes, self.file.as_ref());
            threads.refresh(&mut |pid, tid| processes.thread_name((pid, tid), area));
        }
    }

    /// Drops unwanted records of a chunk.
    pub(super) fn sift(&mut self, index: usize, chunk: &Chunk, buffer: &mut [u8]) -> Chunk {
        if self.sieve.is_idle() || self.unreadable {
            return *chunk;
        }
        let ring = &mut self.rings[index];
        let records = (chunk, &mut buffer[PREFIX_BYTES..]);
        let (processes, area) = (&mut self.processes, self.file.as_ref());
        let thread_name = &mut |pid, tid| processes.thread_name((pid, tid), area);
        let sifted = self.sieve.sift(&self.plan, records, &mut ring.sifted, thread_name);
        if chunk.from != abi::PACKET_HEADER_BYTES {
            let (time, writer) = sifted.begins;
            ring.stream.continue_at(time, writer);
        }
        sifted.chunk
    }
}
