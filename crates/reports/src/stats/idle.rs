// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Idle states of processors.

use std::collections::BTreeMap;

use lateralis_analysis::Gaps;
use lateralis_semantics::kernel::idle::IdleStay;
use serde_json::{Value, json};

use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section};
use crate::table::{Align, Table};
use crate::values;

/// Pairs of a CPU and an idle state that are counted separately.
const STATES_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
struct OfState {
    count: u64,
    nanos: u64,
    longest_nanos: u64,
    touched: u64,
    /// Those whose end was not seen.
    open: u64,
}

/// All stays, by processor and state; those of an unknown state apart.
#[derive(Debug, Default)]
pub struct IdleTotals {
    states: BTreeMap<(u32, Option<u32>), OfState>,
    left_out: u64,
}

impl IdleTotals {
    /// One more.
    pub fn add(&mut self, stay: &IdleStay, gaps: &Gaps) {
        let key = (stay.cpu, stay.state);
        if self.states.len() >= STATES_MAX && !self.states.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let of = self.states.entry(key).or_default();
        match (stay.begin, stay.end) {
            (Some(begin), Some(end)) if gaps.touch(begin, end) => of.touched += 1,
            (Some(begin), Some(end)) => {
                let nanos = end.since(begin).max(0).unsigned_abs();
                of.count += 1;
                of.nanos = of.nanos.saturating_add(nanos);
                of.longest_nanos = of.longest_nanos.max(nanos);
            }
            _ => of.open += 1,
        }
    }

    /// Of a processor of which a stay has no known state or length, any could have been more.
    fn trust(&self, cpu: u32, trust: Trust) -> Trust {
        let of_cpu = self.states.range((cpu, None)..=(cpu, Some(u32::MAX)));
        let mut open = of_cpu.map(|((_, state), of)| of.open + u64::from(state.is_none()));
        trust.at_least(open.any(|open| open > 0))
    }

    /// Stays that are left out.
    pub fn left_out(&self) -> LeftOut {
        LeftOut {
            member: "cpu_idle",
            section: Section::Idle,
            what: "stays",
            of: "pairs of CPU and state",
            most: STATES_MAX as u64,
            count: self.left_out,
        }
    }

    /// The member `cpu_idle` of the whole, where there is any.
    pub fn json(&self, trust: Trust) -> Option<Value> {
        let row = |((cpu, state), of): (&(u32, Option<u32>), &OfState)| {
            let of_cpu = self.trust(*cpu, trust);
            Row::default()
                .plain("cpu", *cpu)
                .plain("state", *state)
                .number("count", of.count, of_cpu.sum)
                .number("idle_ns", of.nanos, of_cpu.sum)
                .number("max_ns", of.longest_nanos, of_cpu.sum)
                .number("touched_by_losses", of.touched, trust.value)
                .plain("without_both_ends", of.open)
                .value()
        };
        (!self.states.is_empty()).then(|| json!(self.states.iter().map(row).collect::<Vec<_>>()))
    }

    /// The table.
    pub fn page(&self, page: &mut Page<'_>) {
        use Align::Right;
        let mut table = Table::new(&[
            ("cpu", Right),
            ("idle state", Right),
            ("count", Right),
            ("together", Right),
            ("longest", Right),
            ("without both ends", Right),
        ]);
        for ((cpu, state), of) in self.states.iter().take(page.rows) {
            let trust = self.trust(*cpu, page.trust);
            let some = |number: u64, text: String| match number {
                0 => String::new(),
                _ => mark(text, trust.sum),
            };
            table.row([
                cpu.to_string(),
                state.map_or("?".to_owned(), |state| state.to_string()),
                some(of.count, values::count(of.count)),
                some(of.count, values::time(of.nanos)),
                some(of.count, values::time(of.longest_nanos)),
                match of.open {
                    0 => String::new(),
                    open => values::count(open),
                },
            ]);
        }
        page.table(Section::Idle, "idle states", &table, self.states.len());
    }
}
