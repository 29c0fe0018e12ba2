// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Event numbers in a dump, as defined by the schemas of the recorded programs.

use std::collections::BTreeSet;

use lateralis_recorder::Report;
use serde_json::{Map, Value};

/// Returns the definitions as JSON in the form of Barrelfish's pleco compiler. If two schemas give a
/// subsystem the same number, the later subsystem gets the next free one.
pub fn of_report(report: &Report) -> Vec<u8> {
    let mut all: Map<String, Value> = Map::new();
    let mut texts = BTreeSet::new();
    let classes = report.stream_classes.iter();
    for entry in classes.flat_map(|class| &class.schemas) {
        if !texts.insert(&entry.text) {
            continue;
        }
        let compiled = lateralis_pleco::compile("schema.pleco", entry.text.as_bytes());
        let Some(schema) = compiled.schema else { continue };
        let json = lateralis_pleco::generate::legacy_json(&schema);
        let Ok(Value::Object(subsystems)) = serde_json::from_str(&json) else { continue };
        for (id, subsystem) in subsystems {
            // The pseudo subsystems have negative numbers.
            let Ok(id) = id.parse::<u16>() else { continue };
            if all.values().any(|known| known == &subsystem) {
                continue;
            }
            let free = (id..=u16::MAX).find(|id| !all.contains_key(&id.to_string()));
            if let Some(free) = free {
                all.insert(free.to_string(), subsystem);
            }
        }
    }
    Value::Object(all).to_string().into_bytes()
}
