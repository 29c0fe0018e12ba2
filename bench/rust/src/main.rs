// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rows of `cost/cost.c` for the Rust tracer.
//!
//! ```text
//! bench-rust [--rounds N]      measures
//! bench-rust count N           writes N events of each kind, for the recorder's report to count
//! ```

// Unsafe code is not forbidden here: `register_at_start!` makes `unsafe(link_section)`, which counts
// as such. There is none besides.

// Made by pleco from cost/cost.pleco before this is compiled.
include!(concat!(env!("BENCH_BUILD"), "/cost.rs"));

#[path = "../../harness/rows.rs"]
mod rows;

use std::hint::black_box;

::lateralis::register_at_start!(SCHEMA);

macro_rules! body {
    ($name:ident, $i:ident, $event:expr) => {
        #[inline(never)]
        fn $name(iterations: u64) {
            for $i in 0..iterations {
                let _ = $i;
                $event;
                $event;
                $event;
                $event;
            }
        }
    };
}

const TEXT: &str = "twenty characters ..";

body!(body_0, i, cost::e0());
body!(body_1, i, cost::e1(i));
body!(body_2, i, cost::e2(i, 1));
body!(body_4, i, cost::e4(i, 1, 2, 3));
body!(body_8, i, cost::e8(i, 1, 2, 3, 4, 5, 6, 7));
body!(body_16, i, cost::e16(i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
body!(body_u32, i, cost::barrelfish(i as u32));
body!(body_text, i, cost::text(black_box(TEXT)));
body!(body_log, i, lateralis::log!("took {} us for {}", i, TEXT));
body!(body_off, i, off::e4(i, i, i, i));

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, count, events] = arguments.as_slice()
        && count == "count"
    {
        let iterations = events.parse::<u64>().unwrap_or(0) / 4;
        for body in [body_0, body_1, body_2, body_4, body_8, body_16, body_u32, body_text] {
            body(iterations);
        }
        return;
    }
    let mut rows = rows::Rows::new();
    rows.add("disabled", body_off, 2000, 4);
    rows.add("0 u64", body_0, 1000, 4);
    rows.add("1 u64", body_1, 1000, 4);
    rows.add("2 u64", body_2, 1000, 4);
    rows.add("4 u64", body_4, 1000, 4);
    rows.add("8 u64", body_8, 1000, 4);
    rows.add("16 u64", body_16, 1000, 4);
    rows.add("u32 (Barrelfish)", body_u32, 1000, 4);
    rows.add("string of 20", body_text, 500, 4);
    rows.add("log!, u64 and string of 20", body_log, 250, 4);
    rows.run();
}
