// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kinds of records in a file, which determine its classes and streams.

use std::collections::BTreeSet;

use lateralis_model::ByteOrder;

use super::content::{Content, Ids, Merge};
use super::file::Attrs;
use super::origin::Origin;
use super::records::{self, Record};
use super::sideband;
use crate::wire::Wire;

/// CPUs below this number are found without a search.
pub const SMALL_CPU: usize = 1024;
/// Largest number of CPUs with a stream of their own; further ones share one: a damaged file could
/// contain a new CPU in each record.
pub const STREAMS_MAX: usize = 4096;

/// Kinds of records in a file.
#[derive(Debug, Default)]
pub struct Seen {
    /// By attribute, without and with CPU.
    pub samples: Vec<[bool; 2]>,
    /// Type, variant, and whether with CPU.
    pub others: BTreeSet<(u32, bool, bool)>,
    /// The last of these, as a cache.
    last: Option<(u32, bool, bool)>,
    small_cpus: Vec<bool>,
    large_cpus: BTreeSet<u32>,
    /// Whether some records have no CPU.
    pub no_cpu: bool,
    /// Times and places of records that rename threads.
    pub names: Vec<(u64, u64)>,
    /// Whether records report losses.
    pub lost: bool,
    /// Sum of the counts in LOST_SAMPLES.
    pub lost_samples: u64,
    /// Whether the output of hardware tracers is incomplete.
    pub incomplete_aux: bool,
}

impl Seen {
    /// Whether nothing was seen yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.others.is_empty()
    }

    /// Examines all records once more.
    pub fn again(&mut self, content: &Content) {
        *self = Self::default();
        let mut all = Merge::new(content, |_| true);
        while let Some(found) = all.next() {
            let (record, attrs, cpus) = (&found.record, &content.attrs, &content.cpus);
            self.take(record, found.attr, found.time, found.place, attrs, cpus, content.order);
        }
    }

    /// The CPUs in order, at most as many as there may be streams.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        let small = self.small_cpus.iter().zip(0..).filter(|(seen, _)| **seen);
        small.map(|(_, cpu)| cpu).chain(self.large_cpus.iter().copied())
    }

    /// Whether there are more CPUs than streams.
    pub fn is_crowded(&self) -> bool {
        self.large_cpus.len() >= STREAMS_MAX
    }

    #[inline]
    fn cpu(&mut self, cpu: Option<u32>) {
        let Some(cpu) = cpu else {
            self.no_cpu = true;
            return;
        };
        match self.small_cpus.get_mut(cpu as usize) {
            Some(seen) => *seen = true,
            None if (cpu as usize) < SMALL_CPU => {
                self.small_cpus.resize(cpu as usize + 1, false);
                self.small_cpus[cpu as usize] = true;
            }
            None if self.large_cpus.len() < STREAMS_MAX => drop(self.large_cpus.insert(cpu)),
            None => {}
        }
    }

    /// Adds a record.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub fn take(
        &mut self,
        record: &Record<'_>,
        attr: Result<usize, u64>,
        time: u64,
        place: u64,
        attrs: &Attrs,
        cpus: &Ids,
        order: ByteOrder,
    ) {
        if record.kind == records::SAMPLE {
            let Ok(attr) = attr else { return };
            let Some(places) = attrs.places.get(attr) else { return };
            let cpu = Origin::of_sample(places, record.body, cpus, order).cpu;
            if self.samples.len() <= attr {
                self.samples.resize(attr + 1, [false; 2]);
            }
            self.samples[attr][usize::from(cpu.is_some())] = true;
            self.cpu(cpu);
            return;
        }
        self.other(record, attr, time, place, attrs, order);
    }

    fn other(
        &mut self,
        record: &Record<'_>,
        attr: Result<usize, u64>,
        time: u64,
        place: u64,
        attrs: &Attrs,
        order: ByteOrder,
    ) {
        let places = attr.ok().and_then(|attr| attrs.places.get(attr));
        match record.kind {
            records::LOST_SAMPLES => {
                let count = Wire::new(record.body, order).u64().unwrap_or(0);
                self.lost_samples = self.lost_samples.saturating_add(count);
                return;
            }
            records::LOST => {
                self.lost = true;
                self.cpu(Origin::at_end(record, places, order).and_then(|origin| origin.cpu));
                return;
            }
            records::COMM | records::FORK => self.names.push((time, place)),
            records::AUX => {
                let flags = Wire::at(record.body, 16, order).u64().unwrap_or(0);
                self.incomplete_aux |= flags & records::AUX_INCOMPLETE != 0;
            }
            _ => {}
        }
        let cpu = Origin::of_other(record, places, order).cpu;
        self.cpu(cpu);
        let key = (record.kind, sideband::variant(record.kind, record.misc), cpu.is_some());
        if self.last != Some(key) {
            self.last = Some(key);
            self.others.insert(key);
        }
    }
}
