// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Page faults by thread.

use std::cmp::Reverse;
use std::collections::HashMap;

use lateralis_model::Quality;
use lateralis_semantics::kernel::faults::{Fault, FaultKind};

use super::document::Member;
use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use crate::table::{Align, Table};
use crate::values;

/// Threads that are counted separately.
const THREADS_MAX: usize = 1 << 16;

#[derive(Debug, Clone, Copy, Default)]
struct OfThread {
    user: u64,
    kernel: u64,
    samples: u64,
}

/// All faults.
#[derive(Debug, Default)]
pub struct FaultTotals {
    threads: HashMap<Option<u32>, OfThread>,
    left_out: u64,
}

impl FaultTotals {
    /// One more.
    pub fn add(&mut self, fault: &Fault) {
        let tid = fault.writer.map(|writer| writer.tid);
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&tid) {
            self.left_out += 1;
            return;
        }
        let of = self.threads.entry(tid).or_default();
        match fault.kind {
            FaultKind::User => of.user += 1,
            FaultKind::Kernel => of.kernel += 1,
            FaultKind::Sample => of.samples += 1,
        }
    }

    fn all(&self) -> Vec<(Option<u32>, OfThread)> {
        let mut all: Vec<_> = self.threads.iter().map(|(tid, of)| (*tid, *of)).collect();
        all.sort_by_key(|(tid, of)| (Reverse(of.user + of.kernel), Reverse(of.samples), *tid));
        all
    }

    /// A fault whose thread is unknown can be of any.
    fn trust(&self, trust: Trust) -> Trust {
        trust.at_least(self.threads.contains_key(&None) || self.left_out > 0)
    }

    /// Page faults that are left out.
    pub fn left_out(&self) -> LeftOut {
        LeftOut {
            member: "page_faults",
            section: Section::Faults,
            what: "page faults",
            of: "threads",
            most: THREADS_MAX as u64,
            count: self.left_out,
        }
    }

    /// The member `page_faults` of the whole, where there are any.
    pub fn json<'a>(&'a self, trust: Trust, who: Who<'a>) -> Option<Member<'a>> {
        let trust = self.trust(trust);
        let row = move |(tid, of): (Option<u32>, OfThread)| {
            Row::default()
                .plain("tid", tid)
                .plain("pid", tid.and_then(|tid| who.threads.process(tid)))
                .plain("thread", tid.and_then(|tid| who.name(tid, None)))
                .number("user", of.user, trust.sum)
                .number("kernel", of.kernel, trust.sum)
                // The trace does not say how many faults a sample stands for.
                .number("samples", of.samples, trust.sum.and(of_samples(of.samples)))
                .value()
        };
        (!self.threads.is_empty()).then(|| Member::rows(self.all().into_iter().map(row)))
    }

    /// The table.
    pub fn page(&self, page: &mut Page<'_>, who: Who<'_>) {
        use Align::{Left, Right};
        let mut table = Table::new(&[
            ("thread", Left),
            ("in the program", Right),
            ("in the kernel", Right),
            ("samples", Right),
        ]);
        let trust = self.trust(page.trust);
        let all = self.all();
        for (tid, of) in all.iter().take(page.rows) {
            let some = |number: u64, quality: Quality| match number {
                0 => String::new(),
                _ => mark(values::count(number), quality),
            };
            table.row([
                tid.map_or("?".to_owned(), |tid| who.thread(tid, None)),
                some(of.user, trust.sum),
                some(of.kernel, trust.sum),
                some(of.samples, trust.sum.and(of_samples(of.samples))),
            ]);
        }
        page.table(Section::Faults, "page faults", &table, all.len());
    }
}

fn of_samples(count: u64) -> Quality {
    if count > 0 { Quality::LowerBound } else { Quality::Exact }
}
