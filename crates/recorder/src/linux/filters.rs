// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters in the area of a program: compiled when their event is known, written to the area, and kept
//! enabled with the event [ring-abi §11]. For records written before, and for filters the program cannot
//! apply, the sieve applies the same steps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lateralis_ring::abi::{self, filter, header};
use lateralis_ring::{
    AreaView, FilterStep, Load, enable_byte, event_ids_in_use, filter_of, filter_offset,
    has_filters, set_enable_byte, set_filter_of, write_filter,
};
use rustix::fs::FallocateFlags;

use super::mapping::open_area;
use crate::classes::RegisteredSchema;
use crate::filter::{Filter, compile};
use crate::sieve::Sieve;

/// The filters of one area.
#[derive(Debug, Default)]
pub(super) struct AreaFilters {
    filters: Vec<Filter>,
    /// Number of the filter by event id.
    installed: BTreeMap<u32, u16>,
    /// Filters that apply to an event.
    used: BTreeSet<usize>,
    /// Filters whose event was found, or whose failure was reported.
    settled: BTreeSet<usize>,
    /// Number of schemas examined.
    known_schemas: usize,
}

/// The bits of an enabled event with a filter.
const FILTERED: u8 = abi::ENABLE_RECORD | abi::ENABLE_WATCH | abi::ENABLE_FILTER;

/// Whether there are filters. Checked before their table is read: its pages may not exist.
fn are_there(view: &AreaView<'_>) -> bool {
    view.load_u32(header::FILTER_COUNT, Load::Relaxed).is_ok_and(|count| count != 0)
}

/// The enable byte for an event with its filter, if it has one; otherwise `byte`.
pub(super) fn with_filter(view: &AreaView<'_>, id: u32, byte: u8) -> u8 {
    let is_filtered = byte & abi::ENABLE_RECORD != 0
        && are_there(view)
        && filter_of(view, id).is_ok_and(|number| number != 0);
    if is_filtered { byte | FILTERED } else { byte }
}

impl AreaFilters {
    /// Prepares filters for the events of an area.
    pub(super) fn new(view: &AreaView<'_>, filters: &[Filter]) -> AreaFilters {
        // Filters left by a killed recorder must not apply to events of this recording.
        if are_there(view) {
            for id in abi::INTERNAL_EVENT_COUNT..event_ids_in_use(view).unwrap_or(0) {
                let _ = set_filter_of(view, id, 0);
            }
            let _ = view.store_u32(header::FILTER_COUNT, 0);
        }
        AreaFilters { filters: filters.to_vec(), ..AreaFilters::default() }
    }

    /// Applies filters to the events of new schemas, and restores the bits of those that
    /// were enabled again. Returns the failures, one sentence each.
    pub(super) fn apply(
        &mut self,
        path: &Path,
        view: &AreaView<'_>,
        registered: &[RegisteredSchema],
        sieve: &mut Sieve,
    ) -> Vec<String> {
        let mut faults = Vec::new();
        if self.filters.is_empty() {
            return faults;
        }
        for entry in &registered[self.known_schemas.min(registered.len())..] {
            for event in &entry.schema.events {
                let name = entry.schema.full_name(event);
                let own = self.filters.iter().position(|filter| filter.event == name);
                let Some(own) = own else { continue };
                self.settled.insert(own);
                match compile(&self.filters[own], &entry.schema, event) {
                    Ok(steps) => {
                        self.install(path, view, entry.base_id + event.index, &steps);
                        sieve.add_filter(entry.base_id + event.index, steps);
                        self.used.insert(own);
                    }
                    Err(reason) => faults.push(format!("{reason}; all of {name} is recorded")),
                }
            }
        }
        self.known_schemas = registered.len();
        for id in self.installed.keys() {
            let before = enable_byte(view, *id).unwrap_or(0);
            let after = with_filter(view, *id, before);
            if after != before {
                let _ = set_enable_byte(view, *id, after);
            }
        }
        faults
    }

    /// Writes a filter to the area. Its pages are allocated first: the program must never
    /// access a missing one. If that fails, or the tracer has no filters, the
    /// events take space in its rings, and are dropped when those are read.
    fn install(&mut self, path: &Path, view: &AreaView<'_>, id: u32, steps: &[FilterStep]) {
        let write = || -> Option<u16> {
            let number = u16::try_from(self.installed.len()).ok()?.checked_add(1)?;
            let place = filter_offset(number).filter(|_| has_filters(view))?;
            let (file, _) = open_area(path).ok()?;
            let index_bytes = 2 * u64::from(abi::EVENT_COUNT);
            for (at, bytes) in [(abi::FILTER_INDEX_OFFSET, index_bytes), (place, filter::BYTES)] {
                rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, at, bytes).ok()?;
            }
            write_filter(view, number, steps).ok()?;
            view.store_u32(header::FILTER_COUNT, u32::from(number)).ok()?;
            set_filter_of(view, id, number).ok()?;
            Some(number)
        };
        if let Some(number) = write() {
            self.installed.insert(id, number);
        }
    }

    /// Filters that apply to an event of the area.
    pub(super) fn used(&self) -> impl Iterator<Item = &Filter> {
        self.used.iter().filter_map(|number| self.filters.get(*number))
    }

    /// Removes the filters, at the end of the program's recording.
    pub(super) fn remove(&mut self, view: &AreaView<'_>) {
        for id in std::mem::take(&mut self.installed).into_keys() {
            let _ = set_filter_of(view, id, 0);
            let _ = view.store_u32(header::FILTER_COUNT, 0);
        }
    }

    /// Filters whose event is in no schema of the area.
    pub(super) fn unused(&self) -> impl Iterator<Item = &Filter> {
        let filters = self.filters.iter().enumerate();
        filters.filter(|(number, _)| !self.settled.contains(number)).map(|(_, filter)| filter)
    }
}
