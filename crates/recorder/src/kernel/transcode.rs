// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts pages of the kernel's ring buffers, and the contents of perf's buffers, to records.
//!
//! The process of a newly created thread may be recorded in the buffer of another CPU,
//! in a page that has not been read yet. So pages wait for one turn: when a page is converted, all
//! buffers have been read at least once since the page was, and everything that happened before its
//! records has been read or was lost.

use lateralis_model::ByteOrder;
use lateralis_perfdata::ftrace::{PageLayout, records};
use lateralis_ring::LossCounts;

use super::chosen::{Chosen, OtherThread};
use super::clock::ClockRelation;
use super::layout::{EventPlan, KernelEvents};
use super::perf::{self, Found};
use super::tasks::{NewTask, NewTaskPlan, Tasks};
use crate::source::{Refused, Sink, Thread};

/// Counts of the records in the pages of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuSums {
    /// Records converted.
    pub events: u64,
    /// Events missing before pages, as reported by them.
    pub missed: u64,
    /// Records that are truncated, or of an event that was not described.
    pub unreadable: u64,
    /// Records of threads that are not selected.
    pub others: u64,
    /// Threads of unknown process, which were taken for processes.
    pub guessed: u64,
}

#[derive(Debug, Default)]
struct Cpu {
    /// Pages read since the last turn.
    fresh: Vec<u8>,
    /// Pages read before.
    waiting: Vec<u8>,
    /// Whether the last page since the last turn was less than half full.
    was_short: bool,
    last: Option<Thread>,
    sums: CpuSums,
}

/// Converts buffers to records.
#[derive(Debug)]
pub struct Transcoder {
    framing: Framing,
    plans: Vec<Option<Box<EventPlan>>>,
    new_task: Option<NewTaskPlan>,
    tasks: Tasks,
    cpus: Vec<Cpu>,
    /// All pages present have been searched for new tasks.
    searched: bool,
    /// The selected threads; `None` selects all.
    chosen: Option<Chosen>,
    /// The only event that [`Transcoder::chosen`] applies to, if the kernel selects threads for the others.
    chosen_event: Option<u16>,
    others: OtherThread,
}

/// The framing of records in the input.
#[derive(Debug, Clone, Copy)]
enum Framing {
    /// In pages of tracefs, of this size in bytes.
    Pages(PageLayout, usize),
    /// Consecutive, as in the buffers of perf.
    Samples,
}

/// An item in the bytes of a buffer.
enum Step<'a> {
    Record(u64, &'a [u8]),
    /// Number of events missing before this time of the kernel's clock; 0 if the time is unknown.
    Missed(u64, u64),
    Cut,
    Damage(String),
}

impl Framing {
    /// Size of the unit to which damage is confined, in bytes.
    fn piece_bytes(self) -> usize {
        match self {
            Framing::Pages(_, bytes) => bytes,
            Framing::Samples => usize::MAX,
        }
    }

    /// Visits the items of a unit.
    #[inline]
    fn walk(self, piece: &[u8], mut see: impl FnMut(Step<'_>)) {
        match self {
            Framing::Pages(layout, _) => {
                // The missing events were before the first record.
                let head = records(piece, layout, |_, _, _| false);
                if let Some(missed) = head.missed {
                    // A page without room for the number leaves it to the counts at the end.
                    see(Step::Missed(missed.unwrap_or(0), head.begin));
                }
                let end = records(piece, layout, |time, record, _| {
                    see(Step::Record(time, record));
                    true
                });
                if let Some((at, reason)) = end.damage {
                    let what = format!("a page of the kernel ends at byte {at}: {reason:?}");
                    see(Step::Damage(what));
                }
            }
            Framing::Samples => {
                let end = perf::records(piece, |found| match found {
                    Found::Event(time, record) => see(Step::Record(time, record)),
                    Found::Lost(count, until) => see(Step::Missed(count, until.unwrap_or(0))),
                    Found::Cut => see(Step::Cut),
                });
                if let Some(at) = end {
                    see(Step::Damage(format!("a buffer of the kernel ends at byte {at}: no size")));
                }
            }
        }
    }
}

/// The byte order of this machine.
fn native() -> ByteOrder {
    if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big }
}

impl Transcoder {
    /// For `cpus` buffers with pages of `page_bytes`, with the layout of `events/header_page`.
    pub fn new(
        events: &mut KernelEvents,
        header_page: &str,
        page_bytes: usize,
        cpus: usize,
    ) -> Transcoder {
        let usual = PageLayout::usual(native(), size_of::<usize>() as u32);
        let layout = PageLayout::parse(header_page, native()).unwrap_or(usual);
        Transcoder::with(events, Framing::Pages(layout, page_bytes.max(1)), cpus)
    }

    /// For `cpus` buffers of perf.
    pub fn of_samples(events: &mut KernelEvents, cpus: usize) -> Transcoder {
        Transcoder::with(events, Framing::Samples, cpus)
    }

    fn with(events: &mut KernelEvents, framing: Framing, cpus: usize) -> Transcoder {
        Transcoder {
            framing,
            plans: std::mem::take(&mut events.plans),
            new_task: events.new_task,
            tasks: Tasks::default(),
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            searched: false,
            chosen: None,
            chosen_event: None,
            others: std::mem::take(&mut events.others),
        }
    }

    /// From now on only selected threads count, and threads they create. None is selected yet.
    pub fn choose(&mut self) -> &mut Chosen {
        let others = &mut self.others;
        self.chosen.get_or_insert_with(|| Chosen::new(std::mem::take(others)))
    }

    /// Like `choose` for a single event, by its number, if the kernel selects threads for all others.
    pub fn choose_of(&mut self, event: u16) -> &mut Chosen {
        self.chosen_event = Some(event);
        self.choose()
    }

    /// The process of each thread.
    pub fn tasks(&mut self) -> &mut Tasks {
        &mut self.tasks
    }

    /// Counts so far for the pages of a CPU.
    pub fn sums(&self, cpu: usize) -> CpuSums {
        self.cpus[cpu].sums
    }

    /// Adds a page of a CPU's buffer; returns whether more may follow. A page that is less
    /// than half full was still being written when it was read, or is the rest of one that was
    /// at the last turn: after two of them in succession the buffer is empty. Samples must be
    /// complete. Cost: a copy.
    pub fn add(&mut self, cpu: usize, page: &[u8]) -> bool {
        let Cpu { fresh, was_short, .. } = &mut self.cpus[cpu];
        let Framing::Pages(layout, page_bytes) = self.framing else {
            fresh.extend_from_slice(page);
            return true;
        };
        let bytes = page.len().min(page_bytes);
        fresh.extend_from_slice(&page[..bytes]);
        fresh.resize(fresh.len() + page_bytes - bytes, 0);
        let is_short = layout.data_bytes(page) <= page_bytes / 2;
        let was_short = std::mem::replace(was_short, is_short);
        !(is_short && was_short)
    }

    /// Converts the pages that were added before the last turn to the streams, one
    /// for each CPU. `find` returns the process of a thread that no page contains.
    ///
    /// Cost: one pass over the pages.
    pub fn turn(
        &mut self,
        relation: &ClockRelation,
        sink: &mut dyn Sink,
        find: &mut dyn FnMut(u32) -> Option<u32>,
    ) {
        self.searched = false;
        if self.chosen.is_some() {
            // A thread that was just created, perhaps on another CPU, is selected like its creator.
            self.search();
        }
        for cpu in 0..self.cpus.len() {
            let mut pages = std::mem::take(&mut self.cpus[cpu].waiting);
            for page in pages.chunks(self.framing.piece_bytes()) {
                self.piece(cpu, page, relation, sink, find);
            }
            pages.clear();
            let cpu = &mut self.cpus[cpu];
            // Both buffers are reused in the next turns.
            cpu.waiting = std::mem::replace(&mut cpu.fresh, pages);
            cpu.was_short = false;
        }
        if let Some(chosen) = &mut self.chosen {
            chosen.turned();
        }
    }

    fn piece(
        &mut self,
        cpu: usize,
        piece: &[u8],
        relation: &ClockRelation,
        sink: &mut dyn Sink,
        find: &mut dyn FnMut(u32) -> Option<u32>,
    ) {
        self.framing.walk(piece, |step| match step {
            Step::Record(time, record) => {
                self.record(cpu, (relation.ticks(time), record), sink, find);
            }
            Step::Missed(missed, until) => {
                let sums = &mut self.cpus[cpu].sums;
                sums.missed = sums.missed.saturating_add(missed);
                let lost = LossCounts { full: missed, ..LossCounts::default() };
                let until = if until == 0 { sink.now() } else { relation.ticks(until) };
                sink.lose(cpu, lost, until);
            }
            Step::Cut => self.cpus[cpu].sums.unreadable += 1,
            Step::Damage(what) => sink.damage(cpu, what),
        });
    }

    #[inline]
    fn record(
        &mut self,
        cpu: usize,
        (time, record): (u64, &[u8]),
        sink: &mut dyn Sink,
        find: &mut dyn FnMut(u32) -> Option<u32>,
    ) {
        let id = record.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes));
        let plan = id.and_then(|id| self.plans.get(usize::from(id))).and_then(|plan| plan.as_ref());
        let Some(plan) = plan.filter(|plan| plan.fits(record)) else {
            self.cpus[cpu].sums.unreadable += 1;
            return;
        };
        let tid = plan.tid(record);
        let new_task = self.new_task.filter(|new_task| Some(new_task.id) == id);
        let new_task = new_task.and_then(|new_task| new_task.read(record)).zip(tid);
        if let Some(chosen) = &mut self.chosen {
            if let Some((task, by)) = new_task {
                chosen.forget(by, task.tid);
                chosen.made(by, task.tid);
            }
            let is_asked = self.chosen_event.is_none_or(|event| Some(event) == id);
            if is_asked && !chosen.wants(id.unwrap_or(0), tid, record) {
                self.cpus[cpu].sums.others += 1;
                return;
            }
        }
        let thread = match tid {
            None => None,
            Some(tid) => match self.cpus[cpu].last {
                Some(last) if last.tid == tid => Some(last),
                _ => Some(self.thread(cpu, tid, find)),
            },
        };
        // `thread` needed all of `self`.
        let Some(Some(plan)) = self.plans.get(usize::from(id.unwrap_or(0))) else { return };
        loop {
            let added = sink
                .packet(cpu)
                .record(time, thread, plan.id, |payload| plan.copy(record, payload));
            match added {
                Ok(()) => break,
                Err(Refused::Full) => sink.close(cpu),
                Err(Refused::TooBig) => {
                    let lost = LossCounts { too_big: 1, ..LossCounts::default() };
                    sink.lose(cpu, lost, time);
                    return;
                }
            }
        }
        self.cpus[cpu].sums.events += 1;
        if let Some((task, by)) = new_task {
            self.tasks.made(by, task);
            // The id may have been reused.
            for cpu in &mut self.cpus {
                cpu.last = cpu.last.filter(|last| last.tid != task.tid);
            }
        }
    }

    #[cold]
    fn thread(&mut self, cpu: usize, tid: u32, find: &mut dyn FnMut(u32) -> Option<u32>) -> Thread {
        if self.tasks.process(tid).is_none() && !self.searched {
            self.searched = true;
            self.search();
        }
        let pid = match self.tasks.process(tid) {
            Some(pid) => pid,
            None => {
                let found = find(tid);
                self.cpus[cpu].sums.guessed += u64::from(found.is_none());
                let pid = found.unwrap_or(tid);
                self.tasks.learn(tid, pid);
                pid
            }
        };
        let thread = Thread { pid, tid };
        self.cpus[cpu].last = Some(thread);
        thread
    }

    /// Searches all pages present for new tasks.
    fn search(&mut self) {
        let Some(new_task) = self.new_task else { return };
        let Some(Some(plan)) = self.plans.get(usize::from(new_task.id)) else { return };
        let mut made: Vec<(u64, u32, NewTask)> = Vec::new();
        for bytes in self.cpus.iter().flat_map(|cpu| [&cpu.waiting, &cpu.fresh]) {
            for piece in bytes.chunks(self.framing.piece_bytes()) {
                self.framing.walk(piece, |step| {
                    if let Step::Record(time, record) = step
                        && record.first_chunk() == Some(&new_task.id.to_ne_bytes())
                        && let (Some(task), Some(by)) = (new_task.read(record), plan.tid(record))
                    {
                        made.push((time, by, task));
                    }
                });
            }
        }
        made.sort_by_key(|(time, ..)| *time);
        for (_, by, task) in made {
            self.tasks.made(by, task);
            if let Some(chosen) = &mut self.chosen {
                chosen.made(by, task.tid);
            }
        }
    }
}

#[cfg(test)]
mod tests;
