// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lanes and their rows as entries, with ids below 2^31 as the protocol requires.

use serde_json::Value;

/// Number of ids per lane; half a million lanes fit.
const ROWS: u32 = 1 << 12;

/// A row of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Number of the lane.
    pub lane: u32,
    /// Number of the row. Row 0 represents the lane itself.
    pub row: u32,
}

impl Place {
    /// Id of the entry.
    pub fn entry(self) -> u32 {
        self.lane.saturating_mul(ROWS).saturating_add(self.row.min(ROWS - 1))
    }

    /// Row of an entry.
    pub fn of(entry: u32) -> Self {
        Self { lane: entry / ROWS, row: entry % ROWS }
    }
}

/// Rows of a lane in the response of `open`, without rows of counters, which have no states.
pub fn rows(lane: &Value) -> impl Iterator<Item = (u32, &str, &Value)> {
    let rows = lane["rows"].as_array().map_or(&[][..], Vec::as_slice);
    rows.iter().filter_map(|row| {
        let kind = row["kind"].as_str()?;
        let number = u32::try_from(row["row"].as_u64()?).ok()?;
        (kind != "level").then_some((number, kind, row))
    })
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn an_entry_is_a_row() {
        for place in [(0, 0), (0, 7), (5, 0), (100_000, 4095)] {
            let place = Place { lane: place.0, row: place.1 };
            assert_eq!(Place::of(place.entry()), place);
            assert!(place.entry() < 1 << 31);
        }
    }
}
