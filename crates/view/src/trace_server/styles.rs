// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Colours of the page (`aquarium/src/logic/colour.ts`), which colour-blind users can distinguish.

use serde_json::{Map, Value, json};

use super::Asked;

const PALETTE: [&str; 16] = [
    "#5c9ece", "#ecac4a", "#54b292", "#d886ac", "#d8c858", "#8476ce", "#de7c5e", "#74c2ca",
    "#a6b858", "#bc94c8", "#c6a486", "#6e94b6", "#f2c496", "#68a47a", "#f0a8b2", "#a8b2c2",
];
/// Colour of an idle CPU.
const IDLE: &str = "#d8dde3";
/// Maximum number of styles per list; further items have no style of their own.
const STYLES_MAX: usize = 10_000;

/// The list whose ids are used by rows of a kind.
pub fn list_of(kind: &str) -> &'static str {
    match kind {
        "running" | "seen" => "applications",
        "events" => "classes",
        _ => "names",
    }
}

/// Name of an item of a list; for a class, with its subsystem.
pub fn name(asked: &Asked<'_>, list: &str, id: usize) -> String {
    let told = &asked.open[list][id];
    let name = told.as_str().or_else(|| told["name"].as_str()).unwrap_or_default();
    match told["subsystem"].as_str().filter(|subsystem| !subsystem.is_empty()) {
        Some(subsystem) => format!("{subsystem}:{name}"),
        None => name.to_owned(),
    }
}

/// Key of the style of an item.
pub fn key(list: &str, id: usize) -> String {
    format!("{list}-{id}")
}

/// Style of a state; its height shows how much of the time is covered.
pub fn of(list: &str, id: usize, cover: f64) -> Value {
    let values = if cover < 1.0 { json!({ "height": 0.35 + 0.65 * cover }) } else { json!({}) };
    json!({ "parentKey": key(list, id), "values": values })
}

fn is_idle(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let words =
        ["idle", "swapper", "<idle>", "unknown", "(unknown)", "unknown application", "ready"];
    words.contains(&name.as_str()) || name.starts_with("swapper/")
}

/// All styles.
pub fn all(asked: &Asked<'_>) -> Value {
    let mut styles = Map::new();
    for list in ["applications", "classes", "names"] {
        let mut next = 0;
        for id in 0..asked.list(list).len().min(STYLES_MAX) {
            let name = name(asked, list, id);
            let colour = if is_idle(&name) {
                IDLE
            } else {
                next += 1;
                PALETTE[(next - 1) % PALETTE.len()]
            };
            let values = json!({ "background-color": colour, "style-name": name });
            styles.insert(key(list, id), json!({ "values": values }));
        }
    }
    json!({ "styles": styles })
}
