// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stream classes: the events that each id represents in each stream file.
//!
//! All packets of a CTF stream have one stream class, but an area's schemas grow while it
//! records (a library is loaded). So a class grows with them as long as there is no conflict:
//! metadata is rewritten and existing packets stay valid. Areas with equal
//! schemas share a class. Only if two areas of a class assign different events to one
//! id does one of them move to another class, and to new stream files.

use std::collections::BTreeMap;
use std::sync::Arc;

use lateralis_pleco::Schema;
use lateralis_ring::RingKind;

/// A schema as an area registered it.
#[derive(Debug, Clone)]
pub struct RegisteredSchema {
    /// Id of its first event.
    pub base_id: u32,
    /// The compiled schema.
    pub schema: Arc<Schema>,
    /// Its hash, computed from the text instead of read from the area.
    pub hash: u64,
}

/// One stream class.
#[derive(Debug, Clone)]
pub struct StreamClassEntry {
    /// `stream_id` of its packets.
    pub id: u32,
    /// Kind of its rings.
    pub kind: RingKind,
    /// Its schemas by base id.
    pub schemas: BTreeMap<u32, RegisteredSchema>,
}

impl StreamClassEntry {
    /// Number of schemas of `wanted` that are missing here; `None` if one conflicts.
    fn missing(&self, wanted: &[RegisteredSchema]) -> Option<usize> {
        let mut missing = 0;
        for schema in wanted {
            match self.schemas.get(&schema.base_id) {
                Some(here) if here.hash == schema.hash => {}
                Some(_) => return None,
                None => {
                    let first = schema.base_id;
                    let end = first.saturating_add(schema.schema.events.len() as u32);
                    let before = self.schemas.range(..first).next_back();
                    let overlaps = before.is_some_and(|(base, here)| {
                        base.saturating_add(here.schema.events.len() as u32) > first
                    });
                    if overlaps || self.schemas.range(first..end).next().is_some() {
                        return None;
                    }
                    missing += 1;
                }
            }
        }
        Some(missing)
    }
}

/// All stream classes of a recording.
#[derive(Debug, Clone, Default)]
pub struct ClassTable {
    classes: Vec<StreamClassEntry>,
    version: u64,
}

impl ClassTable {
    /// The classes; `classes()[i].id == i`.
    pub fn classes(&self) -> &[StreamClassEntry] {
        &self.classes
    }

    /// Increases whenever metadata has to be rewritten.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Adds a new class regardless of existing ones, and returns its id.
    pub fn add(&mut self, kind: RingKind, schemas: &[RegisteredSchema]) -> u32 {
        let id = self.classes.len() as u32;
        let schemas = schemas.iter().map(|entry| (entry.base_id, entry.clone())).collect();
        self.classes.push(StreamClassEntry { id, kind, schemas });
        self.version += 1;
        id
    }

    /// The class for an area with these schemas: `current` if it fits, else the class that
    /// has most of them, else a new one.
    pub fn assign(
        &mut self,
        kind: RingKind,
        wanted: &[RegisteredSchema],
        current: Option<u32>,
    ) -> u32 {
        let fits = |class: &StreamClassEntry| {
            if class.kind == kind { class.missing(wanted) } else { None }
        };
        let stays = current
            .filter(|id| self.classes.get(*id as usize).is_some_and(|class| fits(class).is_some()));
        let chosen = stays.or_else(|| {
            self.classes
                .iter()
                .filter_map(|class| Some((fits(class)?, class.id)))
                // Sharing a class without a common schema would only be confusing.
                .filter(|(missing, _)| *missing < wanted.len().max(1))
                .min()
                .map(|(_, id)| id)
        });
        let id = chosen.unwrap_or_else(|| self.add(kind, &[]));
        let class = &mut self.classes[id as usize];
        for schema in wanted {
            class.schemas.entry(schema.base_id).or_insert_with(|| {
                self.version += 1;
                schema.clone()
            });
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(base_id: u32, text: &str) -> RegisteredSchema {
        let schema = lateralis_pleco::compile("t.pleco", text.as_bytes()).schema.unwrap();
        let hash = schema.hash();
        RegisteredSchema { base_id, schema: Arc::new(schema), hash }
    }

    const A: &str = "subsystem a { event X, event Y, };";
    const B: &str = "subsystem b { event Z, };";
    const C: &str = "subsystem c { event Z, };";

    #[test]
    fn a_class_is_shared_grows_and_splits() {
        let mut table = ClassTable::default();
        let kind = RingKind::PerCpu;
        let first = table.assign(kind, &[schema(16, A)], None);
        assert_eq!(table.assign(kind, &[schema(16, A)], None), first);
        let version = table.version();
        // One area loads a library: the class grows for both.
        assert_eq!(table.assign(kind, &[schema(16, A), schema(18, B)], Some(first)), first);
        assert!(table.version() > version);
        // The other area loads a different library: it has to move.
        let other = table.assign(kind, &[schema(16, A), schema(18, C)], Some(first));
        assert_ne!(other, first);
        // Overlapping id ranges conflict.
        assert_ne!(table.assign(kind, &[schema(17, B)], None), first);
        // Another kind of ring needs another class.
        assert_ne!(table.assign(RingKind::PerThread, &[schema(16, A)], None), first);
        assert_eq!(table.classes().len(), 4);
    }

    #[test]
    fn an_area_without_schemas_has_a_class_too() {
        let mut table = ClassTable::default();
        let id = table.assign(RingKind::PerCpu, &[], None);
        assert_eq!(table.assign(RingKind::PerCpu, &[schema(16, A)], Some(id)), id);
    }
}
