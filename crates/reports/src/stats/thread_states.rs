// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each thread did with its time, and its waits for a processor.

use std::cmp::Reverse;

use lateralis_analysis::{ThreadState, ThreadTimes};
use lateralis_semantics::Schedule;

use super::document::Member;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use crate::date;
use crate::table::{Align, Table};
use crate::values;

/// The states of all threads.
#[derive(Clone, Copy)]
pub struct States<'a> {
    /// Their times.
    pub schedule: &'a Schedule,
    /// Whether the trace has wake-ups.
    pub has_wakes: bool,
}

impl<'a> States<'a> {
    /// Those of which anything is known, the longest waits first.
    fn all(&self) -> Vec<(u32, &'a ThreadTimes)> {
        let mut all: Vec<_> = self.schedule.states().filter(|(_, of)| of.is_known()).collect();
        all.sort_by_key(|(tid, of)| {
            (Reverse(of.longest_wait.map(|wait| wait.nanos)), Reverse(waited(of)), *tid)
        });
        all
    }

    /// The member `thread_states` of the whole.
    pub fn json(self, trust: Trust, who: Who<'a>) -> Member<'a> {
        let rows =
            self.all().into_iter().map(move |(tid, of)| {
                let of_times = trust.at_least(of.is_open);
                let mut row = Row::default()
                    .plain("tid", tid)
                    .plain("pid", who.threads.process(tid))
                    .plain("thread", who.name(tid, None))
                    .plain("has_ended", of.has_ended);
                for (state, name) in ThreadState::ALL.into_iter().zip(NAMES) {
                    row = row
                        .number(&format!("{name}_ns"), of.of(state).nanos, of_times.sum)
                        .number(&format!("{name}_count"), of.of(state).count, of_times.sum);
                }
                row = row.number("unknown_ns", of.unknown_nanos, trust.value);
                let of_waits = trust.without(u64::from(of.may_wait_more)).value;
                if let Some(waits) = of.waits.distribution() {
                    row = row
                        .number("waits", of.waits.len() as u64, of_times.sum)
                        .number("wait_ns", waited(of), of_times.sum)
                        .number("median_wait_ns", waits.median, of_waits)
                        .number("p99_wait_ns", waits.p99, of_waits);
                }
                if let Some(wait) = of.longest_wait {
                    let instead = wait.instead.and_then(|thread| self.schedule.tid(thread));
                    row = row
                        .number("longest_wait_ns", wait.nanos, of_times.sum)
                        .plain("longest_wait_begin_ns", wait.begin.0)
                        .plain("longest_wait_cpu", self.schedule.cpu(wait.cpu))
                        .plain("longest_wait_was_preempted", wait.was_preempted)
                        .plain("ran_instead_tid", instead)
                        .plain("ran_instead", instead.and_then(|tid| who.name(tid, None)));
                }
                row.value()
            });
        Member::rows(rows)
    }

    /// The tables.
    pub fn page(&self, page: &mut Page<'_>, who: Who<'_>) {
        use Align::{Left, Right};
        let all = self.all();
        let columns = NAMES.map(|name| (name, Right));
        let mut table =
            Table::new(&[&[("thread", Left)], &columns[..], &[("unknown", Right)]].concat());
        for (tid, of) in all.iter().take(page.rows) {
            let trust = page.trust.at_least(of.is_open);
            let mut row = vec![who.thread(*tid, None)];
            row.extend(ThreadState::ALL.map(|state| match of.of(state) {
                time if time.count == 0 => String::new(),
                time => mark(values::time(time.nanos), trust.sum),
            }));
            row.push(match of.unknown_nanos {
                0 => String::new(),
                nanos => mark(values::time(nanos), page.trust.value),
            });
            table.row(row);
        }
        page.table(Section::ThreadStates, "what threads did", &table, all.len());
        if !self.has_wakes && !all.is_empty() {
            page.remark(
                Section::ThreadStates,
                "no wake-ups are in the trace: who slept and who waited for a processor is unknown",
            );
        }
        let mut table = Table::new(&[
            ("thread", Left),
            ("waits", Right),
            ("together", Right),
            ("median", Right),
            ("p99", Right),
            ("longest", Right),
            ("cpu", Right),
            ("after", Left),
            ("ran instead", Left),
            ("at", Left),
        ]);
        let waiting: Vec<_> = all.iter().filter(|(_, of)| of.longest_wait.is_some()).collect();
        for (tid, of) in waiting.iter().take(page.rows) {
            let (Some(wait), Some(waits)) = (of.longest_wait, of.waits.distribution()) else {
                continue;
            };
            let trust = page.trust.at_least(of.is_open);
            let of_waits = page.trust.without(u64::from(of.may_wait_more)).value;
            let cpu = self.schedule.cpu(wait.cpu);
            let instead = wait.instead.and_then(|thread| self.schedule.tid(thread));
            table.row([
                who.thread(*tid, None),
                mark(values::count(of.waits.len() as u64), trust.sum),
                mark(values::time(waited(of)), trust.sum),
                mark(values::time(waits.median), of_waits),
                mark(values::time(waits.p99), of_waits),
                mark(values::time(wait.nanos), trust.sum),
                cpu.map_or(String::new(), |cpu| cpu.to_string()),
                if wait.was_preempted { "running".into() } else { "sleeping".to_owned() },
                instead.map_or("(idle)".to_owned(), |tid| who.thread(tid, None)),
                date::text(wait.begin),
            ]);
        }
        page.table(Section::ThreadStates, "waits for a processor", &table, waiting.len());
    }
}

/// Words for the states, in the order of [`ThreadState::ALL`].
const NAMES: [&str; 6] = ["running", "runnable", "preempted", "sleeping", "blocked", "stopped"];

/// Nanoseconds of all waits for a processor.
fn waited(of: &ThreadTimes) -> u64 {
    let waits = ThreadState::ALL.into_iter().filter(|state| state.is_waiting_for_cpu());
    waits.map(|state| of.of(state).nanos).fold(0, u64::saturating_add)
}
