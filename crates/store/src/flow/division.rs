// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Divides the packets of a CPU among threads, using events about its context switches.
//!
//! Threads are switched in the kernel. So a switch happened at one of the places in a stream where the
//! kernel may have run: where nothing is traced (TIP.PGD to TIP.PGE), in kernel code, or where packets
//! are missing. Clocks give the time bounds of each of these borders, and events give the times of
//! switches. Usually there is a single border at which a switch can have happened. If there are several,
//! the packets between them may belong to either thread; the active page tables (PIP) distinguish
//! programs there. Packets that may still belong to several threads are attributed to none: a gap.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use lateralis_intelpt::packet::{Packet, Packets};
use lateralis_model::{Event, Value};

use super::{Clock, KERNEL_BEGIN, Processor};

/// Largest number of switches of all CPUs; later ones are unknown.
const SWITCHES_MAX: usize = 1 << 24;
/// Rounding error in nanoseconds of packet times [`lateralis_intelpt::time::perf_nanos`].
const ROUNDING: u64 = 1;
/// Number of borders that are filtered at once for possible switches.
const BORDERS_AT_ONCE: usize = 1 << 12;
/// Largest number of candidate threads of uncertain packets; the first ones are kept.
pub const CANDIDATES_MAX: usize = 8;
/// Mask of the page table root: with page-table isolation, programs have different bits below this than
/// the kernel with the same tables [Documentation/arch/x86/pti.rst; arch/x86/mm/tlb.c,
/// PTI_USER_PGTABLE_BIT and the PCID].
const SAME_TABLES: u64 = !0x1fff;

/// A process and one of its threads.
pub type Who = (u32, u32);
/// No thread: the CPU is idle, or runs a thread that is not traced.
const NO_THREAD: Who = (0, 0);

/// A CPU runs another thread from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    nanos: u64,
    /// `None`: unknown.
    to: Option<Who>,
    /// Number of the event among those of all CPUs.
    order: usize,
}

#[derive(Debug, Default)]
struct OfCpu {
    changes: Vec<Change>,
    /// The thread before all changes.
    first: Option<Who>,
    now: Option<Who>,
}

impl OfCpu {
    /// The thread that runs after this number of changes.
    fn who(&self, number: usize) -> Option<Who> {
        match number.checked_sub(1) {
            Some(before) => self.changes.get(before).and_then(|change| change.to),
            None => self.first,
        }
    }

    /// Its stay, from this number of changes until the next one.
    fn stay(&self, number: usize) -> Stay {
        let change = number.checked_sub(1).and_then(|before| self.changes.get(before));
        let (since, order) = change.map_or((0, 0), |change| (change.nanos, change.order));
        let until = self.changes.get(number).map_or(u64::MAX, |change| change.nanos);
        Stay { since, until, order }
    }
}

/// Context switches of each CPU, from events.
#[derive(Debug, Default)]
pub struct Switches {
    cpus: BTreeMap<u32, OfCpu>,
    count: usize,
    is_known: bool,
}

impl Switches {
    /// Processes the next event in time order. `process_of`: returns the process of a thread.
    pub fn see(&mut self, event: &Event<'_>, process_of: impl Fn(u32) -> Option<u32>) {
        let Some(cpu) = event.packet.cpu.map(|cpu| cpu.0) else { return };
        let (Some(payload), Some(ticks)) = (event.payload(), event.ticks) else { return };
        let number = |name: &str| payload.get(name).and_then(|field| field.as_u64());
        // Thread ids are signed in some records; -1 means none.
        let signed = |name: &str| match payload.get(name)?.value() {
            Value::Signed(value) => u32::try_from(value).ok(),
            Value::Unsigned(value) => u32::try_from(value).ok(),
            _ => None,
        };
        // Copied events have the thread in their context.
        let context = |name: &str| match event.common_context()?.get(name)?.value() {
            Value::Signed(value) => u32::try_from(value).ok(),
            Value::Unsigned(value) => u32::try_from(value).ok(),
            _ => None,
        };
        let writer = event.writer.map(|writer| (writer.pid, writer.tid));
        let writer = writer.or_else(|| context("pid").zip(context("tid")));
        let is_out = || number("out").is_some_and(|out| out != 0);
        let name = event.class.name.as_str();
        match name.strip_prefix("perf:").unwrap_or(name) {
            "itrace_start" => {
                let who = signed("pid").zip(signed("tid"));
                self.is(cpu, ticks.0, who);
            }
            "switch_cpu_wide" => {
                let other = signed("next_prev_pid").zip(signed("next_prev_tid"));
                let (from, to) = if is_out() { (writer, other) } else { (other, writer) };
                self.switch(cpu, ticks.0, from, to);
            }
            // If only single threads are traced, other threads generate no packets.
            "switch" if is_out() => self.switch(cpu, ticks.0, writer, Some(NO_THREAD)),
            "switch" => {
                self.is_known = true;
                self.is(cpu, ticks.0, writer);
            }
            "sched:sched_switch" | "sched_switch" => {
                let whose = |tid: u32| {
                    if tid == 0 { NO_THREAD } else { (process_of(tid).unwrap_or(tid), tid) }
                };
                let (from, to) = (signed("prev_pid").map(whose), signed("next_pid").map(whose));
                self.switch(cpu, ticks.0, from, to);
            }
            _ => {}
        }
    }

    /// Whether there are any such events.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Changes of the CPU, and the number of this event.
    fn of(&mut self, cpu: u32) -> Option<(&mut OfCpu, usize)> {
        if self.count >= SWITCHES_MAX {
            return None;
        }
        self.count += 1;
        Some((self.cpus.entry(cpu).or_default(), self.count))
    }

    fn is(&mut self, cpu: u32, nanos: u64, who: Option<Who>) {
        let Some((of, order)) = self.of(cpu) else { return };
        if of.changes.is_empty() && of.first.is_none() {
            of.first = who;
        } else if of.now != who {
            of.changes.push(Change { nanos, to: who, order });
        }
        of.now = who;
    }

    fn switch(&mut self, cpu: u32, nanos: u64, from: Option<Who>, to: Option<Who>) {
        self.is_known = true;
        let Some((of, order)) = self.of(cpu) else { return };
        // The second record of one switch, from the thread that came.
        if to.is_some() && of.now == to && from != to {
            return;
        }
        if of.changes.is_empty() && of.first.is_none() {
            of.first = from;
        } else if from.is_some() && of.now != from {
            // Records are missing: the thread since the last one is unknown.
            let since = of.changes.last().map_or(0, |change| change.nanos);
            of.changes.push(Change { nanos: since, to: None, order });
        }
        of.changes.push(Change { nanos, to, order });
        of.now = to;
    }
}

/// A position in a stream at which a switch may have happened.
#[derive(Debug, Clone, Copy)]
struct Border {
    /// First byte after it.
    at: usize,
    /// The last PSB before it.
    psb: usize,
    /// Bounds of its time.
    earliest: u64,
    latest: u64,
    /// The page tables after it, if packets contain them.
    tables: Option<u64>,
    /// Whether user code was executed between it and the next border.
    has_program: bool,
}

/// A thread on a CPU, from the switch to it until the next switch. Stays of a thread are in time order:
/// of two that begin at the same time, the one that ends first comes first; of two that also end at the
/// same time, the one whose event comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stay {
    /// Time of the switch to it in nanoseconds; 0: before all switches.
    pub since: u64,
    until: u64,
    /// Number of the event among those of all CPUs.
    order: usize,
}

impl Stay {
    /// The whole recording.
    pub const WHOLE: Self = Self { since: 0, until: u64::MAX, order: 0 };
}

/// A thread to which packets may belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The thread.
    pub who: Who,
    /// The first of its stays to which they may belong.
    pub stay: Stay,
    /// Begin of the last of these stays.
    pub last_since: u64,
}

/// Owner of packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// This thread.
    Thread(Candidate),
    /// One of these threads, or one that no event names.
    Unknown(Vec<Candidate>),
}

/// Contiguous packets of one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// First byte.
    pub begin: usize,
    /// Byte after the last.
    pub end: usize,
    /// The PSB before it, from which decoding can start.
    pub psb: usize,
    /// Owner, and the switch: a thread that left and returned begins another turn, as it may have been on
    /// another CPU meanwhile.
    pub owner: Owner,
    /// The stay that has certainly begun, whichever thread it belongs to.
    pub stay: Stay,
    /// Bounds of the time of its first packet.
    pub bounds: (u64, u64),
}

/// Divides a stream of packets, from its first PSB on, among the threads that ran on a CPU.
///
/// Cost: proportional to packets. Memory: proportional to switches, and to borders at which one may have
/// happened.
pub fn divide(switches: &Switches, cpu: u32, packets: &[u8], processor: &Processor) -> Vec<Turn> {
    let nothing = OfCpu::default();
    let of = switches.cpus.get(&cpu).unwrap_or(&nothing);
    let borders = borders(packets, processor, &of.changes);
    let owners = owners(&borders, of);
    let mut all: Vec<Turn> = Vec::new();
    for (index, (border, (owner, stay))) in borders.iter().zip(owners).enumerate() {
        let end = borders.get(index + 1).map_or(packets.len(), |next| next.at);
        match all.last_mut() {
            Some(last) if last.owner == owner => last.end = end,
            _ => all.push(Turn {
                begin: border.at,
                end,
                psb: border.psb,
                owner,
                stay,
                bounds: (border.earliest, border.latest),
            }),
        }
    }
    all.retain(|turn| turn.begin < turn.end);
    all
}

/// Finds borders in a sequence of packets.
struct Finder<'c> {
    changes: &'c [Change],
    clock: Clock,
    all: Vec<Border>,
    /// Borders before this one have been filtered.
    done: usize,
    /// Borders from this one on have no upper time bound yet.
    open: usize,
    psb: usize,
    tables: Option<u64>,
    in_kernel: bool,
    /// Start of an untraced part: its position, the PSB before, and its earliest time.
    left: Option<(usize, usize, u64)>,
}

fn borders(packets: &[u8], processor: &Processor, changes: &[Change]) -> Vec<Border> {
    let begin = lateralis_intelpt::packet::synced(packets);
    let mut finder = Finder {
        changes,
        clock: Clock::new(processor),
        all: Vec::new(),
        done: 1,
        open: 0,
        psb: begin,
        tables: None,
        in_kernel: false,
        left: None,
    };
    if begin == packets.len() {
        return Vec::new();
    }
    finder.leave(begin);
    let (mut last_ip, mut in_psb, mut is_lost) = (0, false, true);
    for found in Packets::synced(packets).with_errata(processor.errata) {
        let (start, end, packet) = match found {
            Ok(found) => (found.start, found.end, found.packet),
            Err(error) => {
                finder.leave(error.start);
                finder.clock.gap();
                (in_psb, is_lost) = (false, true);
                continue;
            }
        };
        match packet {
            Packet::Psb => {
                (last_ip, in_psb) = (0, true);
                finder.psb = start;
            }
            Packet::PsbEnd => in_psb = false,
            Packet::Ovf => {
                finder.leave(start);
                (in_psb, is_lost) = (false, true);
            }
            Packet::Tip(bytes) | Packet::TipPge(bytes) | Packet::Fup(bytes) => {
                let Some(ip) = bytes.apply(last_ip) else { continue };
                last_ip = ip;
                let is_kernel = ip >= KERNEL_BEGIN;
                let is_tip = matches!(packet, Packet::Tip(_));
                if matches!(packet, Packet::TipPge(_)) || (is_lost && !is_tip) {
                    finder.goes_on();
                    (finder.in_kernel, is_lost) = (is_kernel, false);
                    finder.is_program(!is_kernel);
                } else if !is_lost && is_tip {
                    if is_kernel != finder.in_kernel {
                        // Into the kernel, or back.
                        finder.border(end, finder.clock.bounds());
                        finder.in_kernel = is_kernel;
                    }
                    finder.is_program(!is_kernel);
                }
            }
            Packet::TipPgd(bytes) => {
                if let Some(ip) = bytes.apply(last_ip) {
                    last_ip = ip;
                }
                finder.leave(end);
            }
            Packet::Pip { cr3, .. } => {
                let before = finder.tables.replace(cr3 & SAME_TABLES);
                if !in_psb && before.is_some() && before != finder.tables {
                    finder.border(start, finder.clock.bounds());
                } else if let Some(last) = finder.all.last_mut() {
                    last.tables = last.tables.or(finder.tables);
                }
            }
            Packet::Tsc(_)
            | Packet::Mtc(_)
            | Packet::Tma { .. }
            | Packet::Cyc(_)
            | Packet::Cbr(_)
            | Packet::Pwre { .. } => {
                finder.clock(&packet);
                let is_moment = matches!(packet, Packet::Tsc(_) | Packet::Mtc(_));
                if is_moment && finder.in_kernel && !in_psb && finder.left.is_none() {
                    let (earliest, _) = finder.clock.bounds();
                    finder.border(end, (earliest, Some(earliest)));
                }
            }
            _ => {}
        }
        if let Packet::Ovf = packet {
            finder.clock(&packet);
        }
    }
    finder.goes_on();
    finder.sift();
    // An earlier border is not later.
    let mut latest = u64::MAX;
    for border in finder.all.iter_mut().rev() {
        latest = latest.min(border.latest);
        border.latest = latest;
    }
    finder.all
}

impl Finder<'_> {
    fn clock(&mut self, packet: &Packet) {
        let Some(latest) = self.clock.latest_of(packet) else { return };
        let open = self.all.iter_mut().skip(self.open);
        open.for_each(|border| border.latest = border.latest.min(latest));
        self.open = self.all.len();
        if self.all.len().saturating_sub(self.done) > BORDERS_AT_ONCE {
            self.sift();
        }
    }

    /// Nothing is traced from this byte on, or packets are missing: a switch may happen until tracing
    /// continues.
    fn leave(&mut self, at: usize) {
        if self.left.is_none() {
            self.left = Some((at, self.psb, self.clock.bounds().0));
        }
    }

    fn goes_on(&mut self) {
        let Some((at, psb, earliest)) = self.left.take() else { return };
        let (_, latest) = self.clock.bounds();
        let earliest = if self.all.is_empty() { 0 } else { earliest };
        self.border(at, (earliest, latest));
        if let Some(last) = self.all.last_mut() {
            last.psb = psb;
        }
    }

    fn border(&mut self, at: usize, (earliest, latest): (u64, Option<u64>)) {
        // An untraced part is one border.
        if self.left.is_some() {
            return;
        }
        if self.open == self.all.len() && latest.is_some() {
            self.open += 1;
        }
        let latest = latest.unwrap_or(u64::MAX);
        let (psb, tables) = (self.psb, self.tables);
        self.all.push(Border { at, psb, earliest, latest, tables, has_program: false });
    }

    fn is_program(&mut self, is_it: bool) {
        if let Some(last) = self.all.last_mut() {
            last.has_program |= is_it;
        }
    }

    /// Removes borders at which no switch can have happened. The last ones are not decided yet.
    fn sift(&mut self) {
        let end = self.open.min(self.all.len().saturating_sub(1));
        let (mut kept, mut before) = (self.done.min(end).max(1), 0);
        for index in self.done.min(end).max(1)..self.all.len() {
            let border = self.all[index];
            let earliest = std::mem::replace(&mut before, border.earliest).min(border.earliest);
            let latest = self.all.get(index + 1).map_or(u64::MAX, |next| next.latest);
            let latest = latest.max(border.latest).saturating_add(ROUNDING);
            let is_before = |change: &Change| change.nanos.saturating_add(ROUNDING) < earliest;
            let next = self.changes.get(self.changes.partition_point(is_before));
            if next.is_some_and(|change| change.nanos <= latest) || index >= end {
                self.all[kept] = border;
                kept += 1;
            } else if let Some(before) = self.all.get_mut(kept - 1) {
                before.tables = border.tables.or(before.tables);
                before.has_program |= border.has_program;
            }
        }
        let left = self.all.len() - kept;
        self.all.truncate(kept);
        self.open -= left.min(self.open);
        self.done = self.open.max(1);
    }
}

/// Owner of the packets after each border, and the stay that has certainly begun.
fn owners(borders: &[Border], of: &OfCpu) -> Vec<(Owner, Stay)> {
    let count = borders.len();
    // First and last border at which each change may have happened.
    let range = |change: &Change| {
        let nanos = change.nanos;
        let first = borders.partition_point(|at| at.latest.saturating_add(ROUNDING) < nanos);
        let behind = borders.partition_point(|at| at.earliest <= nanos.saturating_add(ROUNDING));
        let last = behind.saturating_sub(1);
        match first {
            // After all borders: not part of the recorded packets.
            first if first == count => (count, count),
            // Between two: times of events and packets are inconsistent.
            first if first > last => (last, first),
            first => (first, last),
        }
    };
    let ranges: Vec<(usize, usize)> = of.changes.iter().map(range).collect();
    // Number of changes certainly before the packets after a border, and possibly before.
    let numbers = |border: usize| {
        let certain = ranges.partition_point(|(_, last)| *last <= border);
        (certain, ranges.partition_point(|(first, _)| *first <= border).max(certain))
    };
    let tables = tables(borders, |border| {
        let (certain, possible) = numbers(border);
        of.who(certain).filter(|_| certain == possible)
    });
    let owner = |(index, border): (usize, &Border)| {
        let (certain, possible) = numbers(index);
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut is_known = true;
        for number in certain..=possible {
            let Some(who) = of.who(number) else {
                is_known = false;
                continue;
            };
            // An idle CPU executes no user code, and no process has the page tables of another.
            let is_possible = !(border.has_program && who.0 == 0) && tables.allow(who.0, border);
            if !is_possible {
                continue;
            }
            let stay = of.stay(number);
            if let Some(known) = candidates.iter_mut().find(|known| known.who == who) {
                known.last_since = stay.since;
            } else if candidates.len() < CANDIDATES_MAX {
                candidates.push(Candidate { who, stay, last_since: stay.since });
            }
        }
        let owner = match candidates.as_slice() {
            [thread] if is_known => Owner::Thread(*thread),
            _ => Owner::Unknown(candidates),
        };
        (owner, of.stay(certain))
    };
    borders.iter().enumerate().map(owner).collect()
}

/// Page tables of processes, as far as they are certain.
struct Tables {
    /// `None`: several processes had them, one after the other.
    owners: HashMap<u64, Option<u32>, RandomState>,
    /// Processes with known page tables.
    known: HashMap<u32, (), RandomState>,
}

fn tables(borders: &[Border], owner: impl Fn(usize) -> Option<Who>) -> Tables {
    let mut found = Tables { owners: HashMap::default(), known: HashMap::default() };
    for (index, border) in borders.iter().enumerate().filter(|(_, border)| border.has_program) {
        // Kernel threads run with the page tables of the previous process.
        let (Some(tables), Some((pid, _))) = (border.tables, owner(index)) else { continue };
        let of = found.owners.entry(tables).or_insert(Some(pid));
        if *of != Some(pid) {
            *of = None;
        }
        found.known.insert(pid, ());
    }
    found
}

impl Tables {
    fn allow(&self, pid: u32, border: &Border) -> bool {
        let Some(owner) = border.tables.and_then(|tables| self.owners.get(&tables)) else {
            return true;
        };
        match owner {
            Some(owner) if border.has_program => *owner == pid,
            Some(owner) => *owner == pid || !self.known.contains_key(&pid),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Piece, Recorded, Timed, joined};
    use super::*;
    use crate::places::{Images, Places};
    use lateralis_intelpt::encoder::{self, Encoder, Settings};
    use lateralis_intelpt::errata::Errata;
    use lateralis_intelpt::{Branch, Ends};
    use lateralis_symbols::{Functions, Image};
    use lateralis_traces::hardware::Clocks;
    use proptest::prelude::*;
    use std::ops::Range;

    /// A clock with ticks of one nanosecond and MTC packets every 320.
    const PROCESSOR: Processor = Processor { clocks: CLOCKS, errata: Errata::NONE };
    const CLOCKS: Clocks = Clocks {
        mtc_frequency: Some(3),
        tsc_per_crystal: Some((40, 1)),
        tsc_per_bus: Some(10),
        nanos: Some((0, 0, 1)),
    };
    const PERIOD: u64 = 320;
    const ENTRY: u64 = 0xffff_ffff_8100_0000;

    fn encoder() -> Encoder {
        let clock = encoder::Clock {
            mtc_frequency: Some(3),
            tsc_per_crystal: (40, 1),
            tsc_per_bus: 10,
            cycle_threshold: None,
        };
        Encoder::new(Settings { clock: Some(clock), psb_bytes: 256, ..Settings::default() })
    }

    /// A thread runs for some branches, then the kernel for some time, during which it switches.
    #[derive(Debug, Clone)]
    struct Stint {
        thread: u32,
        branches: u8,
        kernel: u64,
        switch: u64,
    }

    fn turn(kernel: Range<u64>, branches: Range<u8>) -> impl Strategy<Value = Stint> {
        (1u32..5, branches, kernel, any::<u64>()).prop_map(|(thread, branches, kernel, switch)| {
            Stint { thread, branches, kernel, switch: switch % kernel }
        })
    }

    /// Two threads each of two processes.
    fn who(thread: u32) -> Who {
        (thread / 2 * 2 + 100, thread + 100)
    }

    /// Packets of a CPU for these turns, events of its switches, and the true owner of the code by byte.
    fn recorded(turns: &[Stint], kernel: bool) -> (Vec<u8>, Switches, Vec<(usize, Who)>) {
        let (mut encoder, mut switches) = (encoder(), Switches::default());
        let (mut bytes, mut truth, mut runs) = (Vec::new(), Vec::new(), None);
        encoder.set_tsc(1000);
        let far = Branch { ends: Ends::Far, next: 0x2000, target: 0 };
        for (index, turn) in turns.iter().enumerate() {
            let who = who(turn.thread);
            if kernel {
                encoder.address_space(u64::from(who.0) << 13);
            }
            match index > 0 && kernel {
                true => drop(encoder.branch(&far, 0x2000)),
                false => encoder.enable(0x1000),
            }
            bytes.extend(encoder.take());
            for branch in 0..turn.branches {
                encoder.advance(10);
                encoder.at(0x1000);
                let loops = Branch { ends: Ends::IndirectJump, next: 0x1002, target: 0 };
                encoder.branch(&loops, 0x1000 + u64::from(branch % 7)).expect("it leads anywhere");
                let new = encoder.take();
                // The last byte of each packet.
                bytes.extend(new);
                truth.push((bytes.len() - 1, who));
            }
            match kernel {
                true => drop(encoder.branch(&far, ENTRY)),
                false => encoder.disable(),
            }
            bytes.extend(encoder.take());
            let next = turns.get(index + 1).map(|turn| super::tests::who(turn.thread));
            if let Some(next) = next.filter(|next| *next != who) {
                switches.switch(0, encoder.tsc() + turn.switch, Some(who), Some(next));
            }
            runs = Some(who);
            // The kernel's own branches, which show that it runs.
            let until = encoder.tsc() + turn.kernel;
            while kernel && encoder.tsc() + 100 < until {
                encoder.advance(100);
                encoder.at(ENTRY);
                let jump = Branch { ends: Ends::IndirectJump, next: ENTRY, target: 0 };
                encoder.branch(&jump, ENTRY + 64).expect("it leads anywhere");
            }
            encoder.set_tsc(until);
            if kernel {
                encoder.at(ENTRY);
            }
        }
        bytes.extend(encoder.take());
        if let (Some(who), true) = (runs, switches.cpus.is_empty()) {
            switches.is(0, 0, Some(who));
        }
        (bytes, switches, truth)
    }

    fn owner_of(turns: &[Turn], byte: usize) -> &Owner {
        let of = turns.iter().find(|of| (of.begin..of.end).contains(&byte));
        &of.expect("each byte is of a turn").owner
    }

    /// Asserts that nothing is attributed to a wrong thread. @return the amount without an owner.
    fn check(turns: &[Stint], kernel: bool) -> usize {
        let (bytes, switches, truth) = recorded(turns, kernel);
        let turns = divide(&switches, 0, &bytes, &PROCESSOR);
        assert_eq!(turns.first().map(|of| of.begin), Some(0));
        assert_eq!(turns.last().map(|of| of.end), Some(bytes.len()));
        assert!(turns.windows(2).all(|of| of[0].end == of[1].begin));
        let mut unknown = 0;
        for (byte, who) in truth {
            match owner_of(&turns, byte) {
                Owner::Thread(found) => assert_eq!(found.who, who, "{turns:?}"),
                Owner::Unknown(candidates) => {
                    assert!(candidates.iter().any(|of| of.who == who), "{candidates:?} {who:?}");
                    unknown += 1;
                }
            }
        }
        unknown
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]
        #[test]
        fn where_switches_are_slower_than_the_clock_everything_is_of_its_thread(
            turns in prop::collection::vec(turn(3 * PERIOD..4000, 40..200), 1..60),
        ) {
            prop_assert_eq!(check(&turns, false), 0);
        }

        #[test]
        fn where_they_are_faster_nothing_is_of_another(
            turns in prop::collection::vec(turn(1..2 * PERIOD, 1..200), 1..60),
            kernel: bool,
        ) {
            check(&turns, kernel);
        }

        #[test]
        fn page_tables_say_which_process_it_is(
            turns in prop::collection::vec(turn(3 * PERIOD..4000, 40..200), 1..60),
        ) {
            prop_assert_eq!(check(&turns, true), 0);
        }

        // For arbitrary bytes.
        #[test]
        fn of_damaged_packets_each_byte_is_of_one_turn(
            turns in prop::collection::vec(turn(1..2000, 1..200), 1..20),
            kernel: bool,
            damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..20),
        ) {
            let (mut bytes, switches, _) = recorded(&turns, kernel);
            for (at, value) in damage {
                let at = at % bytes.len();
                bytes[at] ^= value;
            }
            let turns = divide(&switches, 0, &bytes, &PROCESSOR);
            prop_assert!(turns.windows(2).all(|of| of[0].end == of[1].begin));
            prop_assert!(turns.iter().all(|of| of.psb <= of.begin && of.begin < of.end));
        }
    }

    /// A thread runs, alone, on one CPU after the other: CPU, duration, and idle time after it. `by_cpu`:
    /// events of equal time are ordered by CPU, not as they happened.
    fn switches_of(stays: &[(u32, u64, u64)], by_cpu: bool) -> Switches {
        let (thread, mut now) = (who(1), 1000);
        let mut events: Vec<(u64, u32, Who, Who)> = Vec::new();
        for (cpu, runs, pause) in stays {
            events.push((now, *cpu, NO_THREAD, thread));
            now += runs;
            events.push((now, *cpu, thread, NO_THREAD));
            now += pause;
        }
        if by_cpu {
            events.sort_by_key(|(nanos, cpu, ..)| (*nanos, *cpu));
        }
        let mut switches = Switches::default();
        for (nanos, cpu, from, to) in events {
            switches.switch(cpu, nanos, Some(from), Some(to));
        }
        switches
    }

    /// A turn for each stay, ordered by CPU.
    fn turns_of(switches: &Switches) -> Vec<Timed> {
        let mut all = Vec::new();
        for (cpu, of) in &switches.cpus {
            let numbers = (0..=of.changes.len()).filter(|number| of.who(*number) == Some(who(1)));
            for (turn, number) in numbers.enumerate() {
                let (packed, stay) = (*cpu as usize, of.stay(number));
                let piece = Piece { packed, run: 0, turn, last_turn: turn, is_gap: false };
                all.push(Timed { stay, last_since: stay.since, piece });
            }
        }
        all
    }

    /// The CPU, the first turn there and the last one.
    fn places(pieces: &[Piece]) -> Vec<(usize, usize, usize)> {
        pieces.iter().map(|of| (of.packed, of.turn, of.last_turn)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]
        /// Many of them at the same time.
        #[test]
        fn turns_of_a_thread_are_in_the_order_in_which_it_ran(
            stays in prop::collection::vec((0u32..3, 0u64..3, 0u64..2), 1..40),
        ) {
            let mut expected: Vec<(usize, usize, usize)> = Vec::new();
            let mut numbers = [0; 3];
            for (cpu, ..) in &stays {
                let cpu = *cpu as usize;
                let number = numbers[cpu];
                numbers[cpu] += 1;
                match expected.last_mut().filter(|last| last.0 == cpu) {
                    Some(last) => last.2 = number,
                    None => expected.push((cpu, number, number)),
                }
            }
            let found = joined(turns_of(&switches_of(&stays, false)));
            prop_assert_eq!(places(&found), expected);
        }
    }

    #[test]
    fn of_two_turns_that_begin_at_the_same_time_the_one_that_ends_first_comes_first() {
        // Nothing on CPU 1 takes any time; events of equal time are ordered by CPU.
        let found = joined(turns_of(&switches_of(&[(1, 0, 0), (0, 5, 0), (1, 5, 0)], true)));
        assert_eq!(places(&found), [(1, 0, 0), (0, 0, 0), (1, 1, 1)]);
        // Each CPU only reports when the thread left.
        let mut switches = Switches::default();
        switches.switch(0, 900, Some(who(1)), Some(NO_THREAD));
        switches.switch(1, 500, Some(who(1)), Some(NO_THREAD));
        assert_eq!(places(&joined(turns_of(&switches))), [(1, 0, 0), (0, 0, 0)]);
    }

    #[test]
    fn a_turn_of_one_of_two_stays_is_a_gap_if_the_thread_was_elsewhere_between_them() {
        let pieces = |stays: &[(u32, u64, u64)]| {
            let mut turns = turns_of(&switches_of(stays, false));
            let last = turns.iter().rfind(|of| of.piece.packed == 0).expect("a turn").stay.since;
            turns[0].last_since = last;
            let pieces = joined(turns);
            pieces.iter().map(|of| (of.packed, of.is_gap)).collect::<Vec<_>>()
        };
        assert_eq!(pieces(&[(0, 5, 5), (1, 5, 5), (0, 5, 5)]), [(0, true), (1, false), (0, false)]);
        assert_eq!(pieces(&[(0, 5, 5), (0, 5, 5), (1, 5, 5)]), [(0, false), (1, false)]);
    }

    struct NoFiles;

    impl Images for NoFiles {
        fn image(&mut self, _: &str, _: Option<&[u8]>) -> Result<Image, String> {
            Err("no files".to_owned())
        }

        fn code(&mut self, _: &str, _: Option<&[u8]>, _: (u64, u64)) -> Result<Vec<u8>, String> {
            Err("no files".to_owned())
        }

        fn kernel(&mut self, _: Option<&[u8]>) -> Result<Functions, String> {
            Err("no kernel".to_owned())
        }

        fn generated(&mut self, _: u32) -> Option<(Functions, String)> {
            None
        }
    }

    /// Packets of a CPU that executes ten jumps in each interval.
    fn stream(times: &[(u64, u64)]) -> Vec<u8> {
        let mut encoder = encoder();
        encoder.set_tsc(1000);
        for (index, (begin, end)) in times.iter().enumerate() {
            encoder.set_tsc(*begin);
            encoder.enable(0x1000 + index as u64);
            for jump in 0..10 {
                encoder.set_tsc(begin + (end - begin) * jump / 10);
                encoder.at(0x1000);
                let jumps = Branch { ends: Ends::IndirectJump, next: 0x1002, target: 0 };
                encoder.branch(&jumps, 0x1000 + jump).expect("it leads anywhere");
            }
            encoder.set_tsc(*end);
            encoder.disable();
        }
        encoder.take()
    }

    /// A CPU that executes nothing while the thread is elsewhere shows that only in events.
    #[test]
    fn packets_before_and_after_a_time_elsewhere_are_not_one_piece() {
        let mut switches = Switches::default();
        let (thread, times) = (who(1), [(2000, 6000), (11_000, 15_000)]);
        let elsewhere = [(7000, 10_000)];
        let mut run = |cpu, (begin, end): (u64, u64)| {
            switches.switch(cpu, begin - 500, Some(NO_THREAD), Some(thread));
            switches.switch(cpu, end + 100, Some(thread), Some(NO_THREAD));
        };
        run(0, times[0]);
        run(1, elsewhere[0]);
        run(0, times[1]);
        let mut recorded = Recorded::new(Places::without_events(NoFiles), PROCESSOR);
        recorded.divided(0, vec![(stream(&times), None)], &switches);
        recorded.divided(1, vec![(stream(&elsewhere), None)], &switches);
        recorded.gather(0, &mut Default::default(), &[]);
        let part = recorded.parts.iter().find(|part| part.traced.tid == thread.1);
        let pieces = &part.expect("the thread").pieces;
        let found: Vec<_> = pieces.iter().map(|of| (of.packed, of.is_gap)).collect();
        assert_eq!(found, [(0, false), (1, false), (0, false)]);
        let bytes = pieces.iter().map(|of| of.packets(&recorded.packed).expect("packets"));
        let bytes: Vec<_> = bytes.map(|(_, turn, end)| turn.begin..end).collect();
        assert_eq!(bytes[0].end, bytes[2].start);
        // Without time elsewhere it is a single piece.
        let mut recorded = Recorded::new(Places::without_events(NoFiles), PROCESSOR);
        recorded.divided(0, vec![(stream(&times), None)], &switches);
        recorded.gather(0, &mut Default::default(), &[]);
        let part = recorded.parts.iter().find(|part| part.traced.tid == thread.1);
        assert_eq!(part.expect("the thread").pieces.len(), 1);
    }

    #[test]
    fn where_records_of_switches_are_missing_it_is_not_known_who_ran() {
        let mut switches = Switches::default();
        let (one, two, three) = (who(1), who(2), who(3));
        switches.switch(0, 100, Some(one), Some(two));
        switches.switch(0, 110, Some(one), Some(two));
        switches.switch(0, 500, Some(three), Some(one));
        let of = &switches.cpus[&0];
        let changes: Vec<_> = of.changes.iter().map(|of| (of.nanos, of.to)).collect();
        assert_eq!(of.first, Some(one));
        assert_eq!(changes, [(100, Some(two)), (100, None), (500, Some(one))]);
    }
}
