// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of sampled recordings, beside each other.

use std::collections::BTreeMap;

use lateralis_analysis::diff::{Options, SampledCount, compare_samples};
use lateralis_store::stacks::{Gathered, Stacks};
use serde_json::{Value, json};

use crate::page::Page;
use crate::table::{Align, Table};
use crate::values;

/// Rows before the table is cut short; `--json` has all.
const ROWS: usize = 40;
/// The name of a function that has none.
const UNKNOWN: &str = "[unknown]";
/// Events whose periods are nanoseconds.
const OF_TIME: [&str; 4] = ["cpu-clock", "task-clock", "cpu_clock", "task_clock"];

/// A function, by its name: two versions of a program are two files. Where it has none, the file says which.
type Name = String;

/// What differs between functions.
pub struct Functions {
    event: String,
    /// Samples in a run of each side.
    samples: (f64, f64),
    /// Functions that were compared.
    compared: usize,
    /// What a sample stands for, in nanoseconds; of other events than time none.
    period_ns: Option<f64>,
    pub differences: Vec<Difference>,
}

/// A function that differs.
pub struct Difference {
    name: Name,
    before: f64,
    after: f64,
    probability: f64,
}

impl Difference {
    pub fn is_worse(&self) -> bool {
        self.after > self.before
    }

    fn more(&self) -> f64 {
        self.after - self.before
    }
}

/// The samples of an event in each function alone, in all recordings.
fn counted(all: &[Gathered], event: &str) -> (BTreeMap<Name, u64>, u64, u64) {
    let (mut counts, mut samples, mut weight) = (BTreeMap::new(), 0, 0_u64);
    for gathered in all {
        for stacks in gathered.stacks.iter().filter(|stacks| stacks.event == event) {
            samples += stacks.samples;
            weight = weight.saturating_add(stacks.weight);
            for node in stacks.nodes.iter().filter(|node| node.samples > 0) {
                let Some(of) = gathered.functions.get(node.function as usize) else { continue };
                let image = of.image.rsplit('/').next().unwrap_or_default();
                let name = match of.name.as_str() {
                    UNKNOWN if !image.is_empty() => format!("{UNKNOWN} in {image}"),
                    name => name.to_owned(),
                };
                *counts.entry(name).or_default() += node.samples;
            }
        }
    }
    (counts, samples, weight)
}

impl Functions {
    /// Of the event that the good ones have most samples of, if the bad ones have any.
    pub fn compare(
        good: &[Gathered],
        bad: &[Gathered],
        by_shares: bool,
        options: &Options,
    ) -> Option<Self> {
        let samples = |stacks: &&Stacks| stacks.samples;
        let event = good.iter().flat_map(|of| &of.stacks).max_by_key(samples)?.event.clone();
        let (before, samples_before, weight_before) = counted(good, &event);
        let (after, samples_after, weight_after) = counted(bad, &event);
        if samples_before == 0 || samples_after == 0 {
            return None;
        }
        let runs = (good.len(), bad.len());
        let in_run = |samples: u64, runs: usize| samples as f64 / runs.max(1) as f64;
        let samples = (in_run(samples_before, runs.0), in_run(samples_after, runs.1));
        let pace = if by_shares { samples.1 / samples.0 } else { 1.0 };
        let names: Vec<&Name> = before.keys().chain(after.keys()).collect();
        let mut names: Vec<&Name> = names;
        names.sort_unstable();
        names.dedup();
        let of = |counts: &BTreeMap<Name, u64>, name: &Name| counts.get(name).copied().unwrap_or(0);
        let count =
            |name: &&Name| SampledCount { before: of(&before, name), after: of(&after, name) };
        let counts: Vec<SampledCount> = names.iter().map(count).collect();
        let found = compare_samples(&counts, runs, pace, options);
        let weight = weight_before.saturating_add(weight_after) as f64;
        let period = weight / (samples_before + samples_after) as f64;
        let is_time = OF_TIME.iter().any(|name| event.ends_with(name));
        let difference = |of: lateralis_analysis::diff::SampledShift| Difference {
            name: names[of.index].clone(),
            before: of.before,
            after: of.after,
            probability: of.probability,
        };
        Some(Self {
            event,
            samples,
            compared: names.len(),
            period_ns: is_time.then_some(period),
            differences: found.into_iter().map(difference).collect(),
        })
    }

    pub fn show(&self, page: &mut Page) {
        use Align::{Left, Right};
        page.gap();
        line!(
            page,
            "functions by samples of {}: {} in a run before, {} after",
            self.event,
            values::count(self.samples.0.round() as u64),
            values::count(self.samples.1.round() as u64),
        );
        if self.differences.is_empty() {
            let compared = values::counted(self.compared as u64, "function");
            line!(page, "no difference that chance would not make: {compared} compared");
            return;
        }
        let mut table = Table::new(&[
            ("function", Left),
            ("before", Right),
            ("after", Right),
            ("shift", Right),
            ("time", Right),
            ("wrong", Right),
        ]);
        for of in self.differences.iter().take(ROWS) {
            let samples = |of: f64| values::count(of.round() as u64);
            let shift = match (of.before > 0.0, of.after > 0.0) {
                (false, _) => "new".to_owned(),
                (_, false) => "gone".to_owned(),
                _ => format!("{:+.0} %", (of.after / of.before - 1.0) * 100.0),
            };
            let time = self.period_ns.map_or_else(String::new, |period| {
                let sign = if of.more() < 0.0 { "-" } else { "+" };
                format!("{sign}{}", values::time((of.more().abs() * period) as u64))
            });
            let wrong = match of.probability {
                little if little < 0.001 => "< 0.1 %".to_owned(),
                much => format!("{:.1} %", much * 100.0),
            };
            let (before, after) = (samples(of.before), samples(of.after));
            table.row([of.name.clone(), before, after, shift, time, wrong]);
        }
        page.page(&table.render());
        if self.differences.len() > ROWS {
            let more = (self.differences.len() - ROWS) as u64;
            line!(page, "  … {} more, all with --json", values::count(more));
        }
    }

    pub fn json(&self) -> Value {
        let differences = self.differences.iter().map(|of| {
            json!({
                "function": of.name,
                "before_samples": of.before,
                "after_samples": of.after,
                "explained_ns": self.period_ns.map(|period| of.more() * period),
                "probability": of.probability,
            })
        });
        json!({
            "event": self.event,
            "before_samples": self.samples.0,
            "after_samples": self.samples.1,
            "compared": self.compared,
            "differences": differences.collect::<Vec<_>>(),
        })
    }
}
