// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `rows.h` for programs in Rust: rows take turns, every batch is written out.

use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::hint::black_box;

/// A row.
pub struct Row {
    name: &'static str,
    body: fn(u64),
    iterations: u64,
    events_per_iteration: u64,
}

/// The clock, read in the same way as by the tracer.
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: reads a counter, without other effects.
    unsafe { _rdtsc() }
}

fn ticks_ordered() -> u64 {
    // SAFETY: a fence and reading a counter.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

#[inline(never)]
fn clock_alone(iterations: u64) {
    for _ in 0..iterations {
        black_box(ticks());
        black_box(ticks());
        black_box(ticks());
        black_box(ticks());
    }
}

#[inline(never)]
fn empty_loop(iterations: u64) {
    for i in 0..iterations {
        black_box(i);
    }
}

/// All rows of a program, the references first.
pub struct Rows {
    rows: Vec<Row>,
    rounds: usize,
}

impl Rows {
    /// Takes `--rounds N` from the command line.
    pub fn new() -> Self {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--rounds").skip(1);
        let rounds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(400);
        let mut rows = Self { rows: Vec::new(), rounds };
        rows.add("empty loop", empty_loop, 4000, 1);
        rows.add("clock alone (rdtsc)", clock_alone, 1000, 4);
        rows
    }

    /// A row whose body executes `events_per_iteration` events in each of its iterations.
    pub fn add(
        &mut self,
        name: &'static str,
        body: fn(u64),
        iterations: u64,
        events_per_iteration: u64,
    ) {
        self.rows.push(Row { name, body, iterations, events_per_iteration });
    }

    /// Runs the rows and prints the results, in the format of `rows.h`.
    pub fn run(&self) {
        const WARM_ROUNDS: usize = 3;
        let mut batches = vec![Vec::with_capacity(self.rounds); self.rows.len()];
        for round in 0..self.rounds + WARM_ROUNDS {
            for (row, batches) in self.rows.iter().zip(&mut batches) {
                (row.body)(row.iterations / 16 + 1);
                let begin = ticks_ordered();
                (row.body)(row.iterations);
                let end = ticks_ordered();
                if round >= WARM_ROUNDS {
                    batches.push((end - begin).to_string());
                }
            }
        }
        println!("row,events_per_batch,expected,found,batch_ticks");
        for (row, batches) in self.rows.iter().zip(&batches) {
            let events = row.iterations * row.events_per_iteration;
            println!("\"{}\",{events},-,-,{}", row.name, batches.join(" "));
        }
    }
}
