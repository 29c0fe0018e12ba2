// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters in the area of a program: compiled when their event is known, written down, and kept
//! on while the event is enabled [ring-abi §11].

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

/// The filters of one area.
#[derive(Debug, Default)]
pub(super) struct AreaFilters {
    filters: Vec<Filter>,
    /// Number by event id.
    installed: BTreeMap<u32, u16>,
    /// Filters that hold for an event.
    used: BTreeSet<usize>,
    /// Filters whose event was found, or about which it was said why not.
    settled: BTreeSet<usize>,
    /// Schemas that were looked at.
    known_schemas: usize,
    /// Nothing works here; it was said why.
    given_up: bool,
}

/// The bits of an enabled event that has a filter.
const FILTERED: u8 = abi::ENABLE_RECORD | abi::ENABLE_WATCH | abi::ENABLE_FILTER;

/// Whether there are filters. Their table is not looked at before: its pages may not be there.
fn are_there(view: &AreaView<'_>) -> bool {
    view.load_u32(header::FILTER_COUNT, Load::Relaxed).is_ok_and(|count| count != 0)
}

/// The enable byte of an event that has a filter if it has one, `byte` otherwise.
pub(super) fn with_filter(view: &AreaView<'_>, id: u32, byte: u8) -> u8 {
    let is_filtered = byte & abi::ENABLE_RECORD != 0
        && are_there(view)
        && filter_of(view, id).is_ok_and(|number| number != 0);
    if is_filtered { byte | FILTERED } else { byte }
}

impl AreaFilters {
    /// Filters that will be applied to the events of an area.
    pub(super) fn new(view: &AreaView<'_>, filters: &[Filter]) -> AreaFilters {
        // What a recorder left that was killed must not hold for events of this recording.
        if are_there(view) {
            for id in abi::INTERNAL_EVENT_COUNT..event_ids_in_use(view).unwrap_or(0) {
                let _ = set_filter_of(view, id, 0);
            }
            let _ = view.store_u32(header::FILTER_COUNT, 0);
        }
        AreaFilters { filters: filters.to_vec(), ..AreaFilters::default() }
    }

    /// Applies filters to the events of schemas that are new, and keeps the bits of those that
    /// were enabled anew. Returns what could not be done, a sentence each.
    pub(super) fn apply(
        &mut self,
        path: &Path,
        view: &AreaView<'_>,
        registered: &[RegisteredSchema],
    ) -> Vec<String> {
        let mut faults = Vec::new();
        if self.filters.is_empty() || self.given_up {
            return faults;
        }
        if !has_filters(view) {
            self.given_up = true;
            return vec!["its tracer cannot evaluate filters: all events are recorded".to_owned()];
        }
        for entry in &registered[self.known_schemas.min(registered.len())..] {
            for event in &entry.schema.events {
                let name = entry.schema.full_name(event);
                let own = self.filters.iter().position(|filter| filter.event == name);
                let Some(own) = own else { continue };
                self.settled.insert(own);
                let done = compile(&self.filters[own], &entry.schema, event)
                    .map_err(|error| error.to_string())
                    .and_then(|steps| self.install(path, view, &steps));
                match done {
                    Ok(number) => {
                        let id = entry.base_id + event.index;
                        if set_filter_of(view, id, number).is_ok() {
                            self.installed.insert(id, number);
                            self.used.insert(own);
                        }
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

    /// Writes a filter into the area. Its pages are made sure of first: the program must never
    /// meet one that is not there.
    fn install(
        &self,
        path: &Path,
        view: &AreaView<'_>,
        steps: &[FilterStep],
    ) -> Result<u16, String> {
        let refused = |cause: &dyn std::fmt::Display| {
            format!("Cannot write filter: path={}, cause={cause}", path.display())
        };
        let number = self.installed.len() as u16 + 1;
        let place = filter_offset(number).ok_or_else(|| refused(&"too many filters"))?;
        let file = open_area(path).map_err(|cause| refused(&cause))?;
        let index_bytes = 2 * u64::from(abi::EVENT_COUNT);
        for (at, bytes) in [(abi::FILTER_INDEX_OFFSET, index_bytes), (place, filter::BYTES)] {
            rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, at, bytes)
                .map_err(|cause| refused(&cause))?;
        }
        write_filter(view, number, steps).map_err(|cause| refused(&cause))?;
        let _ = view.store_u32(header::FILTER_COUNT, u32::from(number));
        Ok(number)
    }

    /// Filters that hold for an event of the area.
    pub(super) fn used(&self) -> impl Iterator<Item = &Filter> {
        self.used.iter().filter_map(|number| self.filters.get(*number))
    }

    /// Takes the filters away, when the recording of the program ends.
    pub(super) fn remove(&mut self, view: &AreaView<'_>) {
        for id in std::mem::take(&mut self.installed).into_keys() {
            let _ = set_filter_of(view, id, 0);
            let _ = view.store_u32(header::FILTER_COUNT, 0);
        }
    }

    /// Filters whose event no schema of the area has.
    pub(super) fn unused(&self) -> impl Iterator<Item = &Filter> {
        let filters = self.filters.iter().enumerate();
        filters.filter(|(number, _)| !self.settled.contains(number)).map(|(_, filter)| filter)
    }
}
