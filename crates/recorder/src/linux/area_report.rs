// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of a finished area.

use lateralis_ring::abi::header;
use lateralis_ring::{Load, RingKind, RingMode, abi, schemas};

use super::area::LiveArea;
use super::recording::{FinishedArea, Recording};
use super::stream_report::{count_events, stream_report};
use crate::filter::Filter;
use crate::report;

impl LiveArea {
    /// Problem text for schemas or format strings that had no room in the area's
    /// tables. Events of such a schema or format string were never enabled, so they were not counted.
    fn full_tables(&self, missing: u64) -> String {
        let view = self.view();
        let word = |offset| view.load_u64(offset, Load::Relaxed).unwrap_or(0);
        let ids = view.load_u32(header::NEXT_EVENT_ID, Load::Relaxed).unwrap_or(0);
        let mut full = Vec::new();
        if self.processes.table_was_full {
            full.push(format!("processes={}", abi::PROCESS_COUNT));
        }
        if schemas(&view).is_ok_and(|entries| entries.len() >= abi::SCHEMA_COUNT as usize) {
            full.push(format!("schemas={}", abi::SCHEMA_COUNT));
        }
        full.push(format!("event-ids={ids} of {}", abi::EVENT_COUNT));
        full.push(format!("text-bytes={} of {}", word(header::HEAP_USED), abi::HEAP_BYTES));
        format!(
            "Cannot record everything of pid={}: {missing} schemas or format strings found no place \
             in its tables: their events were not recorded: {}",
            self.header.creator_pid,
            full.join(", ")
        )
    }

    /// Its current report; enabled events are those that [`LiveArea::note_enabled`] has
    /// seen.
    pub(super) fn describe(&self) -> report::Area {
        let view = self.view();
        let mode = view.load_u32(header::RING_MODE, Load::Relaxed).unwrap_or(0);
        let off = self.registered.iter().map(|entry| self.enabled.off(&entry.schema));
        let (mut disabled, mut disabled_in_part) = (Vec::new(), Vec::new());
        for [whole, part] in off {
            disabled.extend(whole);
            disabled_in_part.extend(part);
        }
        report::Area {
            area_id: format!("{:016x}", self.header.area_id),
            ring_kind: match self.geometry.kind() {
                RingKind::PerCpu => "per-cpu".to_owned(),
                RingKind::PerThread => "per-thread".to_owned(),
            },
            mode: match RingMode::from_word(mode) {
                RingMode::Discard => "discard".to_owned(),
                RingMode::Overwrite => "overwrite".to_owned(),
            },
            packet_bytes: self.geometry.packet_bytes(),
            packets_per_ring: self.geometry.packets_per_ring(),
            lost_no_ring: self.lost_no_ring,
            lost_schemas: view.load_u64(header::LOST_SCHEMAS, Load::Relaxed).unwrap_or(0),
            schemas: self.registered.iter().map(|entry| entry.schema.name.clone()).collect(),
            filters: self.filters.used().map(Filter::to_string).collect(),
            left_out: self.sieve.left_out(),
            left_out_of_threads: self.sieve.left_out_of_threads(),
            disabled,
            disabled_in_part,
            output: None,
        }
    }

    /// Adds the area's sums to the recording and unmaps it.
    pub(super) fn finish(mut self, recording: &mut Recording) {
        self.note_enabled();
        let mut area = self.describe();
        if area.lost_schemas != 0 {
            recording.problem(self.full_tables(area.lost_schemas));
        }
        let lost_processes =
            self.view().load_u32(header::LOST_PROCESSES, Load::Relaxed).unwrap_or(0);
        if lost_processes != 0 {
            recording.problem(format!(
                "The names of {lost_processes} processes that pid={} forked are missing where they \
                 wrote nothing: more than {} at a time; their events are here",
                self.header.creator_pid,
                abi::PROCESS_COUNT
            ));
        }
        area.output = self.writer.and_then(|writer| recording.writer_path(writer));
        let area_id = area.area_id.clone();
        let per_cpu = self.geometry.kind() == RingKind::PerCpu;
        let (rings, processes, unreadable) = (self.rings, self.processes, self.unreadable);
        let registered = self.registered;
        let processes = processes.into_report();
        if let Some(writer) = self.writer {
            recording.leave_to_writer(writer, &area, &processes);
        }
        let is_elsewhere = self.writer.is_some();
        recording.finish_area(Box::new(move |clock| {
            let mut finished =
                FinishedArea { area: Some(area), processes, ..FinishedArea::default() };
            if is_elsewhere && !unreadable {
                // Its streams belong to the writer.
                return finished;
            }
            // Created only when there is something to name: most short-lived programs record nothing.
            let mut names = None;
            for (index, ring) in rings.into_iter().enumerate() {
                let place = (area_id.as_str(), index as u32);
                let cpu = per_cpu.then_some(index as u32);
                let Some(one) = stream_report(clock, &ring.stream, place, cpu) else { continue };
                let names = names.get_or_insert_with(|| count_events::names(&registered));
                count_events::add(&mut finished.events, ring.stream.counts(), names);
                let files = ring.target.paths;
                finished.streams.push(report::Stream { files, unreadable, ..one });
            }
            finished
        }));
    }
}
