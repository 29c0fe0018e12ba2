// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encodes executed blocks as packets of each thread, or of each CPU.
//!
//! The plugin reports blocks, and the number of their instructions that were begun. Which of them
//! retired, and the targets of branches, follow from the next address of the CPU:
//!
//! * An instruction that raised an exception has not retired: the saved address is its own.
//! * A repeated string instruction is begun for each repetition, and retires once.
//! * Code that is mapped at several addresses is one block, which is relocated to where it is executed.
//! * An instruction across a page boundary may be listed at the end of a block and again as the next one.

use std::collections::BTreeMap;

use lateralis_intelpt::encoder::{Encoder, Settings};
use lateralis_intelpt::{Branch, Ends};

use crate::block::{Block, Blocks};
use crate::sideband::{u32_at, u64_at};

/// Words other than block numbers (`c/protocol.h`).
const PART: u32 = 0xffff_fffe;
const THREAD: u32 = 0xffff_fffd;
const TIME: u32 = 0xffff_fffc;
const EVENT: u32 = 0xffff_fffb;
const LEAVE: u32 = 0xffff_fffa;
const MOVE: u32 = 0xffff_fff9;
const CPU: u32 = 0xffff_fff8;
/// Addresses from here on belong to the kernel.
const KERNEL_BEGIN: u64 = 1 << 63;
/// Largest number of CPUs of a machine.
const CPUS_MAX: usize = 64;
/// Largest number of threads with packets: each has its own buffers.
const THREADS_MAX: usize = 1 << 16;

/// Owner of the packets in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A thread, on any CPU.
    Thread(u32),
    /// A CPU, with any thread.
    Cpu(u32),
}

/// Contiguous packets.
#[derive(Debug)]
pub struct Buffer {
    /// Owner.
    pub owner: Owner,
    /// Its number, from 0.
    pub number: u32,
    /// Number of bytes of packets that were taken.
    pub taken_bytes: u64,
    encoder: Encoder,
}

impl Buffer {
    fn new(owner: Owner, number: u32, settings: Settings) -> Self {
        Self { owner, number, taken_bytes: 0, encoder: Encoder::new(settings) }
    }

    /// Time stamp counter at its last instruction.
    #[must_use]
    pub fn last_tsc(&self) -> u64 {
        self.encoder.tsc()
    }

    /// Takes the packets if there are at least `bytes_min` bytes; returns them with their offset.
    fn take(&mut self, bytes_min: usize) -> Option<(u64, Vec<u8>)> {
        if self.encoder.waiting() < bytes_min.max(1) {
            return None;
        }
        let packets = self.encoder.take();
        let offset = self.taken_bytes;
        // Pieces are aligned to 8 bytes.
        self.taken_bytes += packets.len().next_multiple_of(8) as u64;
        Some((offset, packets))
    }
}

/// A thread that ran.
#[derive(Debug)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Number of retired instructions.
    pub instructions: u64,
    has_begun: bool,
    /// Its own buffer, if threads have buffers.
    buffer: Option<Buffer>,
}

/// State of a CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    thread: Option<u32>,
    /// Page table root of that thread.
    cr3: u64,
    /// Address at which the kernel switched to another thread; whether that one is traced is not known
    /// yet.
    left_at: Option<u64>,
    /// The current block, and its distance from the defined address.
    block: Option<(u32, u64)>,
    /// Distance of the following blocks.
    distance: u64,
    /// Number of its instructions that were begun, if not all.
    begun: Option<u32>,
    /// An external event happened before this address.
    event: Option<u64>,
    tsc: u64,
}

/// Inconsistencies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Odd {
    /// Invalid words, or undefined blocks.
    pub words: u64,
    /// Transfers that no branch explains.
    pub transfers: u64,
    /// Events whose return address could not be read.
    pub events: u64,
}

impl Odd {
    /// Whether there are no inconsistencies.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Balance of begun and retired instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Retired instructions.
    pub retired: u64,
    /// Instructions that were begun and did not retire: exceptions, repetitions, page boundaries.
    pub undone: u64,
    /// Interrupts and exceptions.
    pub events: u64,
}

/// Encodes packets.
///
/// Memory: all blocks, and the packets of each thread that were not taken.
#[derive(Debug)]
pub struct Flow {
    settings: Settings,
    /// Executed code.
    pub blocks: Blocks,
    cpus: Vec<Cpu>,
    /// Buffers by CPU, if CPUs rather than threads have buffers.
    buffers: Option<Vec<Buffer>>,
    /// Whether packets contain the address space of a CPU.
    has_spaces: bool,
    /// The CPU of the following words.
    cpu: usize,
    /// By id.
    pub threads: BTreeMap<u32, Thread>,
    /// Inconsistencies.
    pub odd: Odd,
    /// Instructions of all threads.
    pub sums: Sums,
}

/// A block at the address at which it is executed.
#[derive(Clone, Copy)]
struct Placed<'b> {
    block: &'b Block,
    distance: u64,
}

impl Placed<'_> {
    fn address(self, index: u32) -> u64 {
        self.block.address(index).wrapping_add(self.distance)
    }

    fn branch(self) -> Branch {
        let Branch { ends, next, target } = self.block.branch;
        let moved = |address: u64| address.wrapping_add(self.distance);
        Branch { ends, next: moved(next), target: moved(target) }
    }
}

/// End of a block.
struct Settled {
    /// Number of its instructions that retired.
    retired: u32,
    /// Whether its last instruction was among them, and control continued from it.
    is_whole: bool,
}

impl Flow {
    /// Initial state.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            blocks: Blocks::default(),
            cpus: vec![Cpu::default(); CPUS_MAX],
            buffers: None,
            has_spaces: false,
            cpu: 0,
            threads: BTreeMap::new(),
            odd: Odd::default(),
            sums: Sums::default(),
        }
    }

    /// With a buffer for each CPU; with `kernel`, packets contain its address space.
    #[must_use]
    pub fn by_cpu(settings: Settings, kernel: bool) -> Self {
        let buffer = |cpu| Buffer::new(Owner::Cpu(cpu), cpu, settings);
        let buffers = (0..CPUS_MAX as u32).map(buffer).collect();
        Self { buffers: Some(buffers), has_spaces: kernel, ..Self::new(settings) }
    }

    /// Sets the CPU of the following words.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.cpu as u32
    }

    /// Processes the plugin's words about executed blocks. `begins` is called for each new thread with
    /// its id, its process and the time stamp counter.
    pub fn follow(&mut self, words: &[u8], mut begins: impl FnMut(u32, u32, u64)) {
        let mut state = self.cpus[self.cpu];
        let mut at = 0;
        while at + 4 <= words.len() {
            let word = u32_at(words, at);
            at += 4;
            match word {
                PART => {
                    state.begun = Some(u32_at(words, at));
                    at += 4;
                }
                THREAD => {
                    if state.block.is_some() {
                        self.odd.words += 1;
                        self.leave(&mut state);
                    }
                    let tid = u32_at(words, at);
                    let pid = u32_at(words, at + 4);
                    state.cr3 = u64_at(words, at + 8);
                    at += 16;
                    state.thread = self.begin(tid, pid).then_some(tid);
                }
                TIME => {
                    state.tsc = u64_at(words, at);
                    at += 8;
                }
                EVENT => {
                    state.event = Some(u64_at(words, at));
                    at += 8;
                }
                LEAVE => self.leave(&mut state),
                CPU => {
                    let cpu = u32_at(words, at) as usize;
                    at += 4;
                    if cpu < CPUS_MAX {
                        self.cpus[self.cpu] = state;
                        self.cpu = cpu;
                        state = self.cpus[cpu];
                    } else {
                        self.odd.words += 1;
                    }
                }
                MOVE => {
                    state.distance = u64_at(words, at);
                    at += 8;
                }
                id => self.block(&mut state, id, &mut begins),
            }
        }
        self.cpus[self.cpu] = state;
    }

    /// Takes packets of buffers that have at least `bytes_min` bytes: offset in the buffer, bytes.
    pub fn take(&mut self, bytes_min: usize, mut each: impl FnMut(&Buffer, u64, &[u8])) {
        let of_threads = self.threads.values_mut().filter_map(|thread| thread.buffer.as_mut());
        for buffer in of_threads.chain(self.buffers.iter_mut().flatten()) {
            if let Some((offset, packets)) = buffer.take(bytes_min) {
                each(buffer, offset, &packets);
            }
        }
    }

    /// Ends the machine: running threads end with the block before the last.
    pub fn finish(&mut self) {
        for index in 0..self.cpus.len() {
            self.cpu = index;
            let mut state = core::mem::take(&mut self.cpus[index]);
            let block = state.block.take();
            let ip = block.map(|(id, distance)| {
                self.blocks.get(id).map_or(0, |block| block.ip.wrapping_add(distance))
            });
            if let Some(ip) = state.left_at.or(ip)
                && let Some(encoder) = self.encoder(state.thread)
            {
                encoder.disable_at(ip);
            }
        }
    }

    /// The encoder for a thread on this CPU.
    fn encoder(&mut self, tid: Option<u32>) -> Option<&mut Encoder> {
        let thread = self.threads.get_mut(&tid?)?;
        let buffer = match &mut self.buffers {
            Some(buffers) => buffers.get_mut(self.cpu),
            None => thread.buffer.as_mut(),
        };
        buffer.map(|buffer| &mut buffer.encoder)
    }

    /// @return whether there is room for the thread.
    fn begin(&mut self, tid: u32, pid: u32) -> bool {
        let number = self.threads.len();
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.pid = pid;
            return true;
        }
        if number >= THREADS_MAX {
            return false;
        }
        let is_own = self.buffers.is_none();
        let buffer = Buffer::new(Owner::Thread(tid), number as u32, self.settings);
        let buffer = is_own.then_some(buffer);
        self.threads.insert(tid, Thread { pid, instructions: 0, has_begun: false, buffer });
        true
    }

    fn block(&mut self, state: &mut Cpu, id: u32, begins: &mut impl FnMut(u32, u32, u64)) {
        let distance = state.distance;
        let Some(to) = self.blocks.get(id).map(|block| block.ip.wrapping_add(distance)) else {
            self.odd.words += 1;
            return;
        };
        let is_first = state.block.is_none();
        let event = state.event;
        let was_branch = self.settle(state, Some(to));
        let has_spaces = self.has_spaces;
        let Some(encoder) = self.encoder(state.thread) else {
            self.odd.words += 1;
            return;
        };
        let left_at = state.left_at.take();
        let goes_on = left_at == Some(to);
        if let Some(ip) = left_at.filter(|_| !goes_on) {
            encoder.disable_at(ip);
        }
        encoder.set_tsc(core::mem::take(&mut state.tsc));
        let tsc = encoder.tsc();
        if has_spaces && (goes_on || is_first) {
            encoder.address_space(state.cr3);
        }
        if goes_on {
            encoder.at(to);
        } else if is_first {
            encoder.enable(to);
        } else if let Some(from) = event {
            encoder.interrupt(from, to);
        } else if was_branch {
            encoder.at(to);
        }
        if let Some((tid, thread)) =
            state.thread.and_then(|tid| Some((tid, self.threads.get_mut(&tid)?)))
            && !core::mem::replace(&mut thread.has_begun, true)
        {
            begins(tid, thread.pid, tsc);
        }
        state.block = Some((id, distance));
    }

    fn leave(&mut self, state: &mut Cpu) {
        let event = state.event;
        self.settle(state, None);
        state.block = None;
        let is_switch = self.buffers.is_some() && event.is_some_and(|ip| ip >= KERNEL_BEGIN);
        let Some(encoder) = self.encoder(state.thread) else { return };
        match event {
            // The address at which execution would have continued is unknown.
            Some(0) => {
                encoder.lose();
                self.odd.events += 1;
            }
            // The kernel continues with another thread there, which may or may not be traced.
            Some(ip) if is_switch => state.left_at = Some(ip),
            Some(ip) => encoder.disable_at(ip),
            None => encoder.disable(),
        }
    }

    /// Ends the current block. `to`: the next one; `None`: it is not traced.
    ///
    /// @return whether its last instruction was an executed branch.
    fn settle(&mut self, state: &mut Cpu, to: Option<u64>) -> bool {
        let (begun, event) = (state.begun.take(), state.event.take());
        let Some((id, distance)) = state.block else { return false };
        let Some(block) = self.blocks.get(id).map(|block| Placed { block, distance }) else {
            return false;
        };
        let next = event.filter(|ip| *ip != 0).or(to);
        let (count, branch) = (block.block.count(), block.branch());
        let begun = begun.map_or(count, |begun| begun.min(count));
        let settled = settle(block, begun, next, event.is_some());
        let address = block.address(settled.retired);
        let retired = u64::from(settled.retired);
        let is_whole = settled.is_whole;
        let thread = state.thread.and_then(|tid| self.threads.get_mut(&tid));
        let Some(thread) = thread else { return false };
        thread.instructions += retired;
        let Some(encoder) = self.encoder(state.thread) else { return false };
        encoder.advance(retired);
        let fits = match next {
            Some(next) if is_whole => encoder.branch(&branch, next).is_ok(),
            Some(next) => next == address,
            // A system call or similar.
            None => branch.ends == Ends::Far,
        };
        self.sums.retired += retired;
        self.sums.undone += u64::from(begun.saturating_sub(settled.retired));
        self.sums.events += u64::from(event.is_some());
        self.odd.transfers += u64::from(!fits);
        is_whole && branch.ends != Ends::Through
    }
}

/// Retired part of a block. `next`: the next address, or that without the event.
fn settle(block: Placed<'_>, begun: u32, next: Option<u64>, is_event: bool) -> Settled {
    let count = block.block.count();
    let is_all = begun == count;
    let ends = block.branch().ends;
    let part = |retired| Settled { retired, is_whole: false };
    let is_begun_again = begun > 0 && next == Some(block.address(begun - 1));
    // A jump or a conditional branch raises no exception, and may lead to itself.
    let is_to_itself = is_all && matches!(ends, Ends::Jump | Ends::Conditional);
    if is_begun_again && !is_to_itself && (is_event || !is_all || ends == Ends::Through) {
        return part(begun - 1);
    }
    if is_all { Settled { retired: count, is_whole: true } } else { part(begun) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tests::definition;

    fn words(all: &[u32]) -> Vec<u8> {
        all.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// nop; jz 0x1005 | 0x1003: nop | 0x1004: syscall | 0x1005: rep movsb
    fn flow() -> Flow {
        let mut flow = Flow::new(Settings::default());
        let all: [(u64, &[&[u8]]); 4] = [
            (0x1000, &[&[0x90], &[0x74, 2]]),
            (0x1003, &[&[0x90]]),
            (0x1004, &[&[0x0f, 0x05]]),
            (0x1005, &[&[0xf3, 0xa4]]),
        ];
        for (id, (ip, code)) in all.iter().enumerate() {
            assert!(flow.blocks.define(&definition(id as u32, *ip, code)));
        }
        flow
    }

    #[test]
    fn what_was_begun_and_did_not_retire_is_not_counted() {
        let mut flow = flow();
        let mut begun = Vec::new();
        let thread = [THREAD, 7, 6, 0, 0];
        // Through the conditional branch to the system call.
        let first = [&thread[..], &[TIME, 5, 0, 0, 1, 2, LEAVE]].concat();
        flow.follow(&words(&first), |tid, pid, tsc| begun.push((tid, pid, tsc)));
        assert_eq!(begun, [(7, 6, 5)]);
        assert_eq!((flow.sums.retired, flow.sums.undone), (4, 0));
        // A fault at the first instruction, then the whole block, taken, and three repetitions.
        let second = [0, PART, 1, EVENT, 0x1000, 0, LEAVE, 0, 3, 3, 3, EVENT, 0x1005, 0, LEAVE];
        flow.follow(&words(&second), |_, _, _| ());
        assert_eq!((flow.sums.retired, flow.sums.undone, flow.sums.events), (6, 4, 2));
        assert!(flow.odd.is_nothing(), "{:?}", flow.odd);
        assert_eq!(flow.threads[&7].instructions, 6);
        assert_eq!(flow.encoder(Some(7)).map(|of| of.tsc()), Some(11));
    }

    #[test]
    fn code_that_is_mapped_elsewhere_is_executed_there() {
        let mut flow = flow();
        let words =
            words(&[THREAD, 7, 6, 0, 0, MOVE, 0x7000, 0, 0, 1, 2, LEAVE, MOVE, 0, 0, 1, 2, LEAVE]);
        flow.follow(&words, |_, _, _| ());
        assert!(flow.odd.is_nothing(), "{:?}", flow.odd);
        assert_eq!(flow.sums.retired, 6);
        let mut packets = Vec::new();
        flow.take(0, |_, _, bytes| packets.extend_from_slice(bytes));
        // TIP.PGE with the low two bytes of the address, which are all that changes.
        let enabled = |ip: u16| {
            let [low, high] = ip.to_le_bytes();
            packets.windows(3).any(|bytes| *bytes == [0x31, low, high])
        };
        assert!(enabled(0x8000) && enabled(0x1003), "{packets:x?}");
    }

    #[test]
    fn words_that_mean_nothing_are_counted() {
        let mut flow = flow();
        flow.follow(&words(&[0, 77]), |_, _, _| ());
        flow.follow(&words(&[CPU, 99]), |_, _, _| ());
        let thread = [THREAD, 7, 6, 0, 0];
        // 0x1000 does not lead to 0x1004, and only a system call ends tracing.
        let words_of = [&[CPU, 1][..], &thread, &[0, 2, LEAVE, 1, LEAVE]].concat();
        flow.follow(&words(&words_of), |_, _, _| ());
        assert_eq!(flow.odd, Odd { words: 3, transfers: 2, events: 0 });
        // Truncated anywhere.
        flow.follow(&[1, 2, 3], |_, _, _| ());
        flow.follow(&words(&[EVENT]), |_, _, _| ());
    }
}
