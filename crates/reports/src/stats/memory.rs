// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of the kernel by the thread that allocated or freed it.

use std::cmp::Reverse;
use std::collections::HashMap;

use lateralis_semantics::kernel::memory::{Allocation, Allocator};

use super::document::Member;
use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use crate::table::{Align, Table};
use crate::values;

/// Pairs of a thread and an allocator that are counted separately.
const THREADS_MAX: usize = 1 << 16;

/// How many, and how much: bytes or pages.
#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    count: u64,
    size: u64,
    /// Of how many the size is not known.
    unsized_count: u64,
}

impl Amount {
    fn add(&mut self, size: Option<u64>) {
        self.count += 1;
        self.size = self.size.saturating_add(size.unwrap_or(0));
        self.unsized_count += u64::from(size.is_none());
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct OfThread {
    allocated: Amount,
    freed: Amount,
    /// Of what it allocated, what anybody freed.
    own_freed: Amount,
}

type Key = (Allocator, Option<u32>);

/// All memory.
#[derive(Debug, Default)]
pub struct MemoryTotals {
    threads: HashMap<Key, OfThread>,
    left_out: u64,
}

impl MemoryTotals {
    /// One more.
    pub fn add(&mut self, allocation: &Allocation) {
        let tid = allocation.writer.map(|writer| writer.tid);
        if let Some(of) = self.of((allocation.allocator, tid)) {
            let amount = if allocation.is_free { &mut of.freed } else { &mut of.allocated };
            amount.add(allocation.size);
        }
        let owner = allocation.owner.map(|owner| owner.tid);
        if allocation.is_free
            && owner.is_some()
            && let Some(of) = self.of((allocation.allocator, owner))
        {
            of.own_freed.add(allocation.size);
        }
    }

    fn of(&mut self, key: Key) -> Option<&mut OfThread> {
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&key) {
            self.left_out += 1;
            return None;
        }
        Some(self.threads.entry(key).or_default())
    }

    fn all(&self) -> Vec<(Key, OfThread)> {
        let mut all: Vec<_> = self.threads.iter().map(|(key, of)| (*key, *of)).collect();
        all.sort_by_key(|((allocator, tid), of)| {
            (*allocator, Reverse(of.allocated.size), Reverse(of.freed.count), *tid)
        });
        all
    }

    /// An allocation whose thread is unknown can be of any.
    fn trust(&self, allocator: Allocator, trust: Trust) -> Trust {
        trust.at_least(self.left_out > 0 || self.threads.contains_key(&(allocator, None)))
    }

    /// Allocations and frees that are left out.
    pub fn left_out(&self) -> LeftOut {
        LeftOut {
            member: "memory",
            section: Section::Memory,
            what: "allocations and frees",
            of: "pairs of thread and allocator",
            most: THREADS_MAX as u64,
            count: self.left_out,
        }
    }

    /// The member `memory` of the whole, where there is any.
    pub fn json<'a>(&'a self, trust: Trust, who: Who<'a>) -> Option<Member<'a>> {
        let row = move |((allocator, tid), of): (Key, OfThread)| {
            let trust = self.trust(allocator, trust);
            let unit = unit(allocator);
            let sized = |amount: &Amount| trust.at_least(amount.unsized_count > 0).sum;
            Row::default()
                .plain("allocator", allocator.name())
                .plain("unit", unit)
                .plain("tid", tid)
                .plain("pid", tid.and_then(|tid| who.threads.process(tid)))
                .plain("thread", tid.and_then(|tid| who.name(tid, None)))
                .number("allocations", of.allocated.count, trust.sum)
                .number("allocated", of.allocated.size, sized(&of.allocated))
                .number("frees", of.freed.count, trust.sum)
                .number("freed", of.freed.size, sized(&of.freed))
                .plain("frees_of_unknown_size", of.freed.unsized_count)
                .number("own_frees", of.own_freed.count, trust.sum)
                .number("own_freed", of.own_freed.size, sized(&of.own_freed))
                .value()
        };
        (!self.threads.is_empty()).then(|| Member::rows(self.all().into_iter().map(row)))
    }

    /// The table.
    pub fn page(&self, page: &mut Page<'_>, who: Who<'_>) {
        use Align::{Left, Right};
        let mut table = Table::new(&[
            ("from", Left),
            ("thread", Left),
            ("allocations", Right),
            ("size", Right),
            ("of these freed", Right),
            ("frees by it", Right),
            ("size", Right),
        ]);
        let all = self.all();
        for ((allocator, tid), of) in all.iter().take(page.rows) {
            let trust = self.trust(*allocator, page.trust);
            let some = |amount: &Amount| match amount.count {
                0 => String::new(),
                count => mark(values::count(count), trust.sum),
            };
            let size = |amount: &Amount| match (amount.count, allocator) {
                (0, _) => String::new(),
                (_, Allocator::Slab) => sized(values::bytes(amount.size), amount, trust),
                (_, Allocator::Pages) => sized(values::counted(amount.size, "page"), amount, trust),
            };
            table.row([
                allocator.name().to_owned(),
                tid.map_or("?".to_owned(), |tid| who.thread(tid, None)),
                some(&of.allocated),
                size(&of.allocated),
                size(&of.own_freed),
                some(&of.freed),
                size(&of.freed),
            ]);
        }
        page.table(Section::Memory, "memory of the kernel", &table, all.len());
    }
}

fn sized(text: String, amount: &Amount, trust: Trust) -> String {
    mark(text, trust.at_least(amount.unsized_count > 0).sum)
}

fn unit(allocator: Allocator) -> &'static str {
    match allocator {
        Allocator::Slab => "B",
        Allocator::Pages => "pages",
    }
}
