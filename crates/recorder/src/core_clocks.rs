// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clocks of the cores of a machine without an operating system, which may differ: their offsets,
//! from exchanges recorded by the program (`spec/small-area.md`, §6), and conversion of records to the
//! clock of the first core.

use std::collections::BTreeMap;

use lateralis_pleco::Schema;
use lateralis_pleco::schema::{Event, FieldType, Integer, Scalar};
use lateralis_ring::abi;

use crate::classes::RegisteredSchema;
use crate::core_offsets::{Bounds, CoreOffset};
use crate::walk::RecordPlan;

/// The fields of an exchange, in their order: `cpu` is a u32, the others are u64.
const FIELDS: [&str; 5] = ["cpu", "asked", "received", "sent", "answered"];
/// Offset of the readings after the record header: each at its alignment.
const READINGS_AT: usize = 8;

fn is_exchange(schema: &Schema, event: &Event) -> bool {
    let subsystem = schema.subsystems.get(event.subsystem).map(|of| of.name.as_str());
    let is_named = event.name == "EXCHANGE" && subsystem == Some("clocks");
    let types = [Integer::U32, Integer::U64, Integer::U64, Integer::U64, Integer::U64];
    let wanted = FIELDS.iter().zip(types);
    is_named
        && event.fields.len() == FIELDS.len()
        && event.fields.iter().zip(wanted).all(|(field, (name, integer))| {
            field.name == *name && field.ty == FieldType::Scalar(Scalar::Integer(integer))
        })
}

/// Exchanges of clocks between the cores of an area.
#[derive(Debug, Default)]
pub struct CoreClocks {
    /// Ids of the exchange events.
    ids: Vec<u32>,
    core_count: u32,
    /// Bounds for the second core against the first, which has the lower number.
    pairs: BTreeMap<(u32, u32), Bounds>,
    count: u64,
}

/// Offsets of the cores' clocks from that of the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoreOffsets {
    /// Every core with a known offset except the first.
    pub known: Vec<CoreOffset>,
    /// One sentence for each other core.
    pub problems: Vec<String>,
}

impl CoreOffsets {
    /// Ticks by which a core's clock is ahead of the first one's; 0 if unknown.
    #[must_use]
    pub fn of(&self, core: u32) -> i64 {
        let known = self.known.iter().find(|offset| offset.cpu == core);
        known.map_or(0, |offset| offset.offset_ticks)
    }
}

impl CoreClocks {
    /// Creates the state for an area with these schemas and this many cores.
    #[must_use]
    pub fn new(schemas: &[RegisteredSchema], core_count: u32) -> Self {
        let ids = schemas.iter().flat_map(|entry| {
            let events = entry.schema.events.iter();
            let exchanges = events.filter(|event| is_exchange(&entry.schema, event));
            exchanges.filter_map(|event| entry.base_id.checked_add(event.index))
        });
        Self { ids: ids.collect(), core_count, ..Self::default() }
    }

    /// Number of exchanges.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Reads the exchanges among the records of a packet of `core`. Those with invalid core numbers are
    /// ignored.
    ///
    /// Cost: one step per record, none if no schema has such an event.
    pub fn read(&mut self, records: &[u8], core: u32, plan: &RecordPlan) {
        if self.ids.is_empty() {
            return;
        }
        let mut at = 0;
        while let (Some((id, _)), Some(end)) = (plan.header(records, at), plan.end(records, at)) {
            if self.ids.contains(&u32::from(id)) {
                self.exchange(&records[at..end], core, plan);
            }
            at = end.next_multiple_of(8);
        }
    }

    fn exchange(&mut self, record: &[u8], core: u32, plan: &RecordPlan) {
        let fields = abi::RECORD_HEADER_BYTES as usize;
        let Some(cpu) = plan.word(record, fields) else { return };
        let reading = |index: usize| plan.double_word(record, fields + READINGS_AT + 8 * index);
        let [Some(asked), Some(received), Some(sent), Some(answered)] = [0, 1, 2, 3].map(reading)
        else {
            return;
        };
        if cpu == core || cpu >= self.core_count {
            return;
        }
        self.count += 1;
        let mut bounds = Bounds::default();
        bounds.readings([asked, received, sent, answered]);
        let pair = (core.min(cpu), core.max(cpu));
        let bounds = if core < cpu { bounds } else { bounds.reversed() };
        self.pairs.entry(pair).or_default().meet(&bounds);
    }

    /// Offsets of the clocks from that of core 0, each by the exchanges with the smallest error, also via
    /// other cores.
    ///
    /// Cost: pairs times cores at most.
    #[must_use]
    pub fn offsets(&self) -> CoreOffsets {
        let mut best = BTreeMap::from([(0u32, (0i64, 0u64))]);
        let mut offsets = CoreOffsets::default();
        let mut edges = Vec::new();
        for ((one, other), bounds) in &self.pairs {
            match bounds.offset() {
                Some((offset, error)) => {
                    edges.push((*one, *other, offset, error));
                    edges.push((*other, *one, offset.wrapping_neg(), error));
                }
                None => offsets.problems.push(format!(
                    "The exchanges of clocks contradict each other, so the clocks do not run evenly and \
                     nothing is known of them: cores={one},{other}"
                )),
            }
        }
        for _ in 0..self.core_count {
            let mut has_changed = false;
            for (from, to, offset, error) in &edges {
                let Some((known, known_error)) = best.get(from).copied() else { continue };
                let sum = (known.wrapping_add(*offset), known_error.saturating_add(*error));
                if best.get(to).is_none_or(|(_, before)| sum.1 < *before) {
                    best.insert(*to, sum);
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
        if !self.pairs.is_empty() {
            let unknown = (0..self.core_count).filter(|core| !best.contains_key(core));
            offsets.problems.extend(unknown.map(|core| {
                format!("No exchange of clocks leads to core 0: times are as recorded: core={core}")
            }));
        }
        let others = best.into_iter().filter(|(core, _)| *core != 0);
        offsets.known = others
            .map(|(cpu, (offset_ticks, error_ticks))| CoreOffset {
                cpu,
                reference_cpu: 0,
                offset_ticks,
                error_ticks,
            })
            .collect();
        offsets
    }
}

/// Converts the times of records in place to a clock that is `offset` ticks less than
/// theirs. Stops at the first record that is incomplete or unknown.
pub fn shift_times(records: &mut [u8], offset: i64, plan: &RecordPlan) {
    let mut at = 0;
    while let (Some((id, low)), Some(end)) = (plan.header(records, at), plan.end(records, at)) {
        // 48 bits of the difference are stored.
        plan.set_header(records, at, id, low.wrapping_sub(offset.cast_unsigned()));
        at = end.next_multiple_of(8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const TEXT: &str = "schema s; subsystem clocks { event OTHER (), event EXCHANGE (cpu: u32, asked: u64, \
                        received: u64, sent: u64, answered: u64) };";

    fn schemas(text: &str) -> Vec<RegisteredSchema> {
        let schema = lateralis_pleco::compile("s.pleco", text.as_bytes()).schema.unwrap();
        let hash = schema.hash();
        vec![RegisteredSchema { base_id: 16, schema: Arc::new(schema), hash }]
    }

    fn plan(swapped: bool) -> RecordPlan {
        let mut plan = RecordPlan::new(swapped);
        plan.add(16, &schemas(TEXT)[0].schema);
        plan
    }

    /// A record without payload, and an exchange.
    fn records(plan: &RecordPlan, swapped: bool, cpu: u32, ticks: [u64; 4]) -> Vec<u8> {
        let mut bytes = vec![0; 8 + 48];
        plan.set_header(&mut bytes, 0, 16, 5);
        plan.set_header(&mut bytes, 8, 17, 6);
        let cpu = if swapped { cpu.swap_bytes() } else { cpu };
        bytes[16..20].copy_from_slice(&cpu.to_ne_bytes());
        for (at, tick) in (24..).step_by(8).zip(ticks) {
            let tick = if swapped { tick.swap_bytes() } else { tick };
            bytes[at..at + 8].copy_from_slice(&tick.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn offsets_go_over_other_cores_and_are_within_their_errors() {
        // Core 2 exchanged only with core 1, which asked it; core 1 asked core 0. Both byte orders.
        let of = [0i64, -5_000_000_000, 77];
        for swapped in [false, true] {
            let plan = plan(swapped);
            let mut clocks = CoreClocks::new(&schemas(TEXT), 4);
            for n in 0..10 {
                let now = 1_000_000 + 1_000 * n;
                let read = |core: usize, time: u64| time.wrapping_add_signed(of[core]);
                for (asker, other) in [(1usize, 0usize), (1, 2)] {
                    let ticks = [
                        read(asker, now),
                        read(other, now + 30 + n),
                        read(other, now + 100),
                        read(asker, now + 140 - n),
                    ];
                    clocks.read(&records(&plan, swapped, other as u32, ticks), 1, &plan);
                }
            }
            assert_eq!(clocks.count(), 20);
            let offsets = clocks.offsets();
            assert_eq!(offsets.known.len(), 2);
            for known in &offsets.known {
                let wrong = known.offset_ticks.abs_diff(of[known.cpu as usize]);
                assert!(wrong <= known.error_ticks && known.error_ticks < 100, "{known:?}");
            }
            assert_eq!(offsets.problems.len(), 1, "{:?}", offsets.problems);
            assert!(offsets.problems[0].ends_with("core=3"));
            assert_eq!((offsets.of(0), offsets.of(3)), (0, 0));
        }
    }

    #[test]
    fn what_contradicts_itself_or_is_no_exchange_changes_nothing() {
        let plan = plan(false);
        let mut clocks = CoreClocks::new(&schemas(TEXT), 2);
        clocks.read(&records(&plan, false, 1, [100, 1_000, 1_000, 200]), 0, &plan);
        // A core that does not exist, and the core itself.
        clocks.read(&records(&plan, false, 2, [0; 4]), 0, &plan);
        clocks.read(&records(&plan, false, 0, [0; 4]), 0, &plan);
        assert_eq!((clocks.count(), clocks.offsets().known.len()), (1, 1));
        clocks.read(&records(&plan, false, 1, [300, 5_000, 5_000, 400]), 0, &plan);
        let offsets = clocks.offsets();
        assert_eq!((offsets.known.len(), offsets.problems.len()), (0, 2), "{offsets:?}");
        // Truncated, and other fields of this name.
        let cut = &records(&plan, false, 1, [0; 4])[..50];
        clocks.read(cut, 0, &plan);
        assert_eq!(clocks.count(), 2);
        let other = TEXT.replace("cpu: u32", "cpu: u64");
        let mut clocks = CoreClocks::new(&schemas(&other), 2);
        clocks.read(&records(&plan, false, 1, [0; 4]), 0, &plan);
        assert_eq!((clocks.count(), clocks.offsets()), (0, CoreOffsets::default()));
    }

    #[test]
    fn times_are_shifted_modulo_what_is_stored() {
        let plan = plan(false);
        for offset in [5i64, -5, i64::MIN, i64::MAX, 6] {
            let mut bytes = records(&plan, false, 1, [0; 4]);
            shift_times(&mut bytes, offset, &plan);
            let time = |at: usize| plan.header(&bytes, at).unwrap();
            let moved = |time: u64| time.wrapping_sub(offset.cast_unsigned()) & ((1 << 48) - 1);
            assert_eq!((time(0), time(8)), ((16, moved(5)), (17, moved(6))), "{offset}");
        }
    }
}
