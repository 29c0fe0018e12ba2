// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a compiled filter costs: two comparisons over so many events in columns.
//!
//! ```sh
//! valgrind --tool=callgrind select 10      # passes over a batch of 4096 events
//! valgrind --tool=callgrind select 1010    # the difference is of 4 096 000 events
//! ```

use lateralis_script::expression::{Answer, Column, Columns, Expression};

const BATCH: u64 = 4096;

fn main() {
    let passes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10u64);
    let filter = Expression::parse("event.fields.bytes > 4096 && event.cpu === 2");
    let Ok(filter) = filter else { return };
    let bytes: Vec<u64> = (0..BATCH).map(|n| n * 7919 % 10_000).collect();
    let cpu: Vec<u64> = (0..BATCH).map(|n| n % 4).collect();
    let columns = [Column::Unsigned(&bytes), Column::Unsigned(&cpu)];
    let columns = Columns { columns: &columns, len: BATCH as usize };
    let mut answers = Vec::new();
    let mut kept = 0;
    for _ in 0..passes {
        filter.select(&columns, &mut answers);
        kept += answers.iter().filter(|answer| **answer == Answer::Yes).count();
    }
    println!("{kept} of {}", passes * BATCH);
}
