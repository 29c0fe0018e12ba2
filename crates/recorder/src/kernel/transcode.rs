// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pages of the kernel's ring buffers become records.
//!
//! The process of a thread that was made a moment ago may be told in the buffer of another CPU,
//! in a page that has not been read yet. So pages wait for one turn: when a page is looked at, all
//! buffers have been read at least once since the page was, and whatever happened before its
//! records is here or was lost.

use lateralis_model::ByteOrder;
use lateralis_perfdata::ftrace::{PageLayout, records};
use lateralis_ring::LossCounts;

use super::clock::ClockRelation;
use super::layout::{EventPlan, KernelEvents};
use super::tasks::{NewTask, NewTaskPlan, Tasks};
use crate::source::{Refused, Sink, Thread};

/// What was found in the pages of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuSums {
    /// Records that became records of ours.
    pub events: u64,
    /// Events that were missing before pages, as these say.
    pub missed: u64,
    /// Records that are cut, or of an event that was not described.
    pub unreadable: u64,
    /// Threads whose process nobody told; they were taken for processes.
    pub guessed: u64,
}

#[derive(Debug, Default)]
struct Cpu {
    /// Pages read since the last turn.
    fresh: Vec<u8>,
    /// Pages read before.
    waiting: Vec<u8>,
    last: Option<Thread>,
    sums: CpuSums,
}

/// See the module's description.
#[derive(Debug)]
pub struct Transcoder {
    layout: PageLayout,
    page_bytes: usize,
    plans: Vec<Option<Box<EventPlan>>>,
    new_task: Option<NewTaskPlan>,
    tasks: Tasks,
    cpus: Vec<Cpu>,
    /// All pages that are here were searched for new tasks.
    searched: bool,
}

/// The byte order of this machine.
fn native() -> ByteOrder {
    if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big }
}

impl Transcoder {
    /// For `cpus` buffers with pages of `page_bytes`, laid out as `events/header_page` says.
    pub fn new(
        events: &mut KernelEvents,
        header_page: &str,
        page_bytes: usize,
        cpus: usize,
    ) -> Transcoder {
        let usual = PageLayout::usual(native(), size_of::<usize>() as u32);
        Transcoder {
            layout: PageLayout::parse(header_page, native()).unwrap_or(usual),
            page_bytes: page_bytes.max(1),
            plans: std::mem::take(&mut events.plans),
            new_task: events.new_task,
            tasks: Tasks::default(),
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            searched: false,
        }
    }

    /// Who belongs to which process.
    pub fn tasks(&mut self) -> &mut Tasks {
        &mut self.tasks
    }

    /// What was found so far in the pages of a CPU.
    pub fn sums(&self, cpu: usize) -> CpuSums {
        self.cpus[cpu].sums
    }

    /// Takes over a page of a CPU's buffer; whether it is more than half full. One that is less
    /// was still being written to when it was read: there is nothing behind it. Cost: a copy.
    pub fn add(&mut self, cpu: usize, page: &[u8]) -> bool {
        let fresh = &mut self.cpus[cpu].fresh;
        let bytes = page.len().min(self.page_bytes);
        fresh.extend_from_slice(&page[..bytes]);
        fresh.resize(fresh.len() + self.page_bytes - bytes, 0);
        self.layout.data_bytes(page) > self.page_bytes / 2
    }

    /// Gives the pages that were added before the last turn to the streams, of which there is
    /// one for each CPU. `find` is asked for the process of a thread that no page tells of.
    ///
    /// Cost: one pass over the pages.
    pub fn turn(
        &mut self,
        relation: &ClockRelation,
        sink: &mut dyn Sink,
        find: &mut dyn FnMut(u32) -> Option<u32>,
    ) {
        self.searched = false;
        for cpu in 0..self.cpus.len() {
            let mut pages = std::mem::take(&mut self.cpus[cpu].waiting);
            for page in pages.chunks(self.page_bytes) {
                self.page(cpu, page, relation, sink, find);
            }
            pages.clear();
            let cpu = &mut self.cpus[cpu];
            // Both buffers stay for the next turns.
            cpu.waiting = std::mem::replace(&mut cpu.fresh, pages);
        }
    }

    fn page(
        &mut self,
        cpu: usize,
        page: &[u8],
        relation: &ClockRelation,
        sink: &mut dyn Sink,
        find: &mut dyn FnMut(u32) -> Option<u32>,
    ) {
        // What is missing was before the first record.
        let head = records(page, self.layout, |_, _, _| false);
        if let Some(missed) = head.missed {
            // A page with no room for the number leaves it to the counts at the end.
            let missed = missed.unwrap_or(0);
            self.cpus[cpu].sums.missed += missed;
            let lost = LossCounts { full: missed, ..LossCounts::default() };
            sink.lose(cpu, lost, relation.ticks(head.begin));
        }
        let layout = self.layout;
        let end = records(page, layout, |time, record, _| {
            self.record(cpu, (relation.ticks(time), record), sink, find);
            true
        });
        if let Some((at, reason)) = end.damage {
            sink.damage(cpu, format!("a page of the kernel ends at byte {at}: {reason:?}"));
        }
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
        let thread = match plan.tid(record) {
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
        if let Some(new_task) = self.new_task.filter(|new_task| Some(new_task.id) == id)
            && let (Some(task), Some(by)) = (new_task.read(record), thread)
        {
            self.tasks.made(by.tid, task);
            // The number may be one that is used again.
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

    /// Looks for new tasks in all pages that are here.
    fn search(&mut self) {
        let Some(new_task) = self.new_task else { return };
        let Some(Some(plan)) = self.plans.get(usize::from(new_task.id)) else { return };
        let mut made: Vec<(u64, u32, NewTask)> = Vec::new();
        for cpu in &self.cpus {
            for page in cpu.waiting.chunks(self.page_bytes).chain(cpu.fresh.chunks(self.page_bytes))
            {
                records(page, self.layout, |time, record, _| {
                    if record.first_chunk() == Some(&new_task.id.to_ne_bytes())
                        && let (Some(task), Some(by)) = (new_task.read(record), plan.tid(record))
                    {
                        made.push((time, by, task));
                    }
                    true
                });
            }
        }
        made.sort_by_key(|(time, ..)| *time);
        for (_, by, task) in made {
            self.tasks.made(by, task);
        }
    }
}

#[cfg(test)]
mod tests {
    use lateralis_pleco::schema::Event;
    use lateralis_ring::abi;

    use super::*;
    use crate::kernel::samples;
    use crate::source::{MemorySink, StreamPlan};
    use crate::walk::RecordPlan;

    struct Bench {
        transcoder: Transcoder,
        sink: MemorySink,
        plan: RecordPlan,
        schemas: Vec<crate::classes::RegisteredSchema>,
    }

    fn bench(cpus: usize) -> Bench {
        let mut events = KernelEvents::new(&samples::formats());
        let streams = (0..cpus).map(|cpu| StreamPlan {
            name: format!("kernel_cpu{cpu}"),
            number: cpu as u32,
            is_cpu: true,
        });
        let sink = MemorySink::with(streams.collect(), &events.schemas, 4096, 1 << 40);
        let mut plan = RecordPlan::new(false);
        events.schemas.iter().for_each(|entry| plan.add(entry.base_id, &entry.schema));
        let transcoder = Transcoder::new(&mut events, "", 4096, cpus);
        Bench { transcoder, sink, plan, schemas: events.schemas }
    }

    impl Bench {
        fn turn(&mut self) {
            self.transcoder.turn(&ClockRelation::Same, &mut self.sink, &mut |_| None);
        }

        /// Names and payloads of the records of a stream, writers included.
        fn records(&mut self, cpu: usize) -> Vec<(String, Vec<u8>)> {
            self.sink.close(cpu);
            let mut found = Vec::new();
            for packet in &self.sink.packets[cpu] {
                let content = &packet[128..];
                let mut at = 0;
                while at < content.len() {
                    let (id, _) = self.plan.header(content, at).unwrap();
                    let mut end = at + 8;
                    // The next header is where a walk over one more record ends.
                    while end < content.len() {
                        let walked =
                            self.plan.walk(&content[at..end], 0, 0..=u64::MAX, &mut vec![]);
                        if walked.fault.is_none() && walked.good_bytes > 0 {
                            break;
                        }
                        end += 1;
                    }
                    found.push((self.name(id), content[at + 8..end].to_vec()));
                    at = end.next_multiple_of(8);
                }
            }
            found
        }

        fn name(&self, id: u16) -> String {
            let id = u32::from(id);
            let of = |entry: &crate::classes::RegisteredSchema| {
                let event: Option<&Event> =
                    id.checked_sub(entry.base_id).and_then(|n| entry.schema.events.get(n as usize));
                event.map(|event| event.name.clone())
            };
            self.schemas.iter().find_map(of).unwrap_or_else(|| id.to_string())
        }
    }

    fn words(payload: &[u8]) -> Vec<u32> {
        payload.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn records_are_copied_field_by_field() {
        let mut bench = bench(1);
        bench.transcoder.tasks().learn(7, 6);
        let open = samples::openat(7, 0xffff_ffff_ffff_ff9c);
        let page = samples::page(100, &[(100, open), (103, samples::switch(7, 8))], None);
        bench.transcoder.add(0, &page);
        bench.turn();
        assert_eq!(bench.sink.packets[0].len(), 0);
        bench.turn();
        let records = bench.records(0);
        let names: Vec<&str> = records.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["0", "sys_enter_openat", "sched_switch"]);
        assert_eq!(words(&records[0].1), [6, 7]);
        assert_eq!(words(&records[1].1), [-100_i32 as u32, 0, 0x7fff_0000, 0, 0, 0x1a4]);
        let switch = &records[2].1;
        assert_eq!(&switch[..7], b"a name\0");
        assert_eq!(words(&switch[8..16]), [7, 120]);
        assert_eq!(words(&switch[16..24]), [1, 0]);
        assert_eq!(&switch[24..31], b"a name\0");
        assert_eq!(words(&switch[32..]), [8, 120]);
        let sums = CpuSums { events: 2, ..CpuSums::default() };
        assert_eq!(bench.transcoder.sums(0), sums);
    }

    #[test]
    fn a_thread_is_known_although_its_making_was_read_later() {
        let mut bench = bench(2);
        bench.transcoder.tasks().learn(10, 10);
        // CPU 0 was read before its maker's CPU 1.
        bench.transcoder.add(0, &samples::page(50, &[(60, samples::openat(12, 0))], None));
        bench.turn();
        let made =
            [(40, samples::newtask(11, 12, 0x10000)), (45, samples::newtask(12, 13, 0x10000))];
        bench.transcoder.add(0, &samples::page(70, &[(70, samples::openat(13, 0))], None));
        bench
            .transcoder
            .add(1, &samples::page(30, &[(30, samples::newtask(10, 11, 0x10000))], None));
        bench.transcoder.add(1, &samples::page(40, &made, None));
        bench.turn();
        bench.turn();
        let writers: Vec<Vec<u32>> = bench
            .records(0)
            .iter()
            .filter(|(name, _)| name == "0")
            .map(|(_, payload)| words(payload))
            .collect();
        assert_eq!(writers, [[10, 12], [10, 13]]);
        assert_eq!(bench.transcoder.sums(0).guessed, 0);
    }

    #[test]
    fn losses_stand_before_the_page_that_tells_them() {
        let mut bench = bench(1);
        bench.transcoder.add(0, &samples::page(100, &[(110, samples::switch(0, 5))], None));
        bench.transcoder.add(0, &samples::page(500, &[(510, samples::switch(0, 5))], Some(77)));
        bench.turn();
        bench.turn();
        bench.sink.close(0);
        let [interval] = bench.sink.streams[0].ring.intervals() else { panic!() };
        assert_eq!((interval.from, interval.to, interval.lost.full), (110, 500, 77));
        assert_eq!(bench.transcoder.sums(0).missed, 77);
        assert_eq!(bench.sink.packets[0].len(), 3);
    }

    #[test]
    fn what_cannot_be_read_is_counted() {
        let mut bench = bench(1);
        let cut = samples::switch(1, 2)[..40].to_vec();
        let records = [(1, cut), (2, samples::common(999, 1)), (3, samples::switch(1, 2))];
        let mut page = samples::page(0, &records, None);
        bench.transcoder.add(0, &page);
        // The page says that it has more than it has.
        page[8] = 0xff;
        page[9] = 0x0f;
        bench.transcoder.add(0, &page);
        bench.turn();
        bench.turn();
        let sums = bench.transcoder.sums(0);
        assert_eq!((sums.events, sums.unreadable, sums.guessed), (1, 2, 1));
        assert_eq!(bench.sink.streams[0].ring.totals().damaged_packets, 1);
        let header = bench.records(0).first().map(|(name, _)| name.clone());
        assert_eq!(header.as_deref(), Some(abi::ID_WRITER.to_string().as_str()));
    }
}
