// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lanes and their rows as entries, whose numbers are below 2^31 as the protocol has them.

use serde_json::Value;

/// Rows of a lane that can be told apart: half a million lanes are left.
const ROWS: u32 = 1 << 12;

/// A row of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The lane.
    pub lane: u32,
    /// Its row. The first one stands for the lane itself.
    pub row: u32,
}

impl Place {
    /// Its entry.
    pub fn entry(self) -> u32 {
        self.lane.saturating_mul(ROWS).saturating_add(self.row.min(ROWS - 1))
    }

    /// Of an entry.
    pub fn of(entry: u32) -> Self {
        Self { lane: entry / ROWS, row: entry % ROWS }
    }
}

/// What a row shows, as `open` says it; those of counters have no states.
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
