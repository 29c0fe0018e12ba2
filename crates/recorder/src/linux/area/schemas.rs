// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Schemas that programs register during recording.

use lateralis_ring::abi::header;
use lateralis_ring::{Load, schema_text, schemas};

use super::super::enable;
use super::super::recording::Recording;
use super::LiveArea;
use crate::classes::RegisteredSchema;

impl LiveArea {
    /// Whether schemas may have been registered since the last check. Cost: one load.
    pub(super) fn schemas_are_due(&self) -> bool {
        let next = self.view().load_u32(header::NEXT_EVENT_ID, Load::Acquire);
        next.is_ok_and(|next| next != self.covered_ids)
    }

    /// Adds the schemas that were registered since the last check (pair R2).
    pub(in super::super) fn refresh_schemas(&mut self, recording: &mut Recording) {
        let view = self.mapping.view().with_swapped(self.header.swapped);
        let Ok(entries) = schemas(&view) else { return };
        let mut grown = false;
        let mut faults = Vec::new();
        for entry in entries {
            if !self.slots_seen.insert(entry.slot) {
                continue;
            }
            let Some(ids) = entry.ids() else {
                faults.push("a schema has impossible event ids".to_owned());
                continue;
            };
            self.covered_ids = self.covered_ids.max(ids.end);
            let compiled = schema_text(&view, &entry).and_then(|text| recording.compile(&text));
            match compiled {
                Some((schema, hash)) if schema.events.len() as u32 == entry.event_count => {
                    self.plan.add(entry.base_id, &schema);
                    let base_id = entry.base_id;
                    if let Some(patterns) = &self.late_patterns {
                        enable::apply(&view, base_id, &schema, patterns);
                    }
                    self.registered.push(RegisteredSchema { base_id, schema, hash });
                    grown = true;
                }
                _ => {
                    let name = String::from_utf8_lossy(&entry.name).into_owned();
                    faults.push(format!("schema {name:?} does not compile"));
                }
            }
        }
        for fault in faults {
            self.give_up(recording, &fault);
        }
        if !grown {
            return;
        }
        self.apply_filters(recording);
        if self.late_patterns.is_some() {
            self.follow_sites(recording);
        }
        let kind = self.geometry.kind();
        let class_id = recording.classes.assign(kind, &self.registered, Some(self.class_id));
        if class_id != self.class_id {
            self.class_id = class_id;
            self.rotate_files(recording);
        }
    }
}
