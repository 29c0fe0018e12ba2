// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the outcomes of a TNT packet lead from a block, found once and then looked up.
//!
//! Programs repeat themselves: nearly every TNT packet meets a block with which it has been seen before.
//! So the blocks that both lead through, how many instructions they have, the calls that are open behind
//! them and the block that comes next are remembered by block and outcomes. A path ends where something is
//! needed that the packet does not say: an indirect branch, a return to a caller from before the path (as
//! its last step), code that is not known. Likewise the way from a block to the indirect branch of which a
//! TIP packet says where it went.

use alloc::vec;
use alloc::vec::Vec;

use crate::code::{Code, Ends, Run};
use crate::image::Image;

/// Calls that a path can leave open.
const CALLS_MAX: usize = 6;
/// Blocks of a path; where more follow each other, one is walked after the other.
const BLOCKS_MAX: usize = 96;
/// Paths are looked for among so many at first, and among so many at most: 4 MiB.
const SIZES: (usize, usize) = (1 << 10, 1 << 18);
/// Blocks of all paths, counted each time, and paths: beyond either, all are forgotten. 16 and 20 MiB.
const POOL_MAX: usize = 1 << 22;
const PATHS_MAX: usize = 1 << 20;
/// Blocks that have a number which fits into a key.
const RUNS_MAX: u32 = 1 << 25;
/// In place of outcomes: the path to an indirect branch.
const TO_INDIRECT: u8 = 1;
/// In place of the next block: the one to which the last call returns that is open before the path.
const TO_CALLER: u32 = u32::MAX;
const NO_KEY: u32 = u32::MAX;

/// What is looked up: 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// The block, and the outcomes below the bit that marks their end.
    key: u32,
    next: u32,
    instructions: u32,
    /// Three bits: how many outcomes it takes; three: how many calls it leaves open; the rest: which of
    /// [`Paths::steps`].
    packed: u32,
}

impl Found {
    /// How many outcomes it takes; 0: it leads nowhere.
    #[inline]
    pub fn used(self) -> u8 {
        (self.packed & 7) as u8
    }

    /// The block behind it; `None`: the one to which the last call returns.
    #[inline]
    pub fn next(self) -> Option<u32> {
        (self.next != TO_CALLER).then_some(self.next)
    }

    /// How many instructions all blocks have.
    #[inline]
    pub fn instructions(self) -> u32 {
        self.instructions
    }

    /// Of a path to an indirect branch: the block that it ends.
    #[inline]
    pub fn branch(self) -> u32 {
        self.next
    }

    /// Whether it leaves calls open.
    #[inline]
    pub fn has_calls(self) -> bool {
        self.packed >> 3 & 7 != 0
    }
}

#[derive(Debug, Clone, Copy)]
struct Steps {
    blocks: (u32, u32),
    calls: (u32, u32),
}

/// Paths by their first blocks and outcomes.
pub(crate) struct Paths {
    found: Vec<Found>,
    steps: Vec<Steps>,
    /// Blocks of all paths.
    blocks: Vec<u32>,
    /// Blocks to which calls return that are open behind paths.
    calls: Vec<u32>,
}

impl Paths {
    pub fn new() -> Self {
        Self { found: Vec::new(), steps: Vec::new(), blocks: Vec::new(), calls: Vec::new() }
    }

    fn clear(&mut self, size: usize) {
        self.found = vec![Found { key: NO_KEY, next: 0, instructions: 0, packed: 0 }; size];
        (self.steps, self.blocks, self.calls) = (Vec::new(), Vec::new(), Vec::new());
    }

    fn steps(&self, found: Found) -> Option<&Steps> {
        self.steps.get((found.packed >> 6) as usize)
    }

    /// Blocks to which calls return that are open behind the path, the last one last.
    pub fn calls(&self, found: Found) -> &[u32] {
        let (begin, end) = self.steps(found).map_or((0, 0), |steps| steps.calls);
        self.calls.get(begin as usize..end as usize).unwrap_or_default()
    }

    /// The blocks of a path, in their order.
    #[inline]
    pub fn blocks(&self, found: Found) -> &[u32] {
        let (begin, end) = self.steps(found).map_or((0, 0), |steps| steps.blocks);
        self.blocks.get(begin as usize..end as usize).unwrap_or_default()
    }

    /// Knuth's multiplicative hashing: 2^32 by the golden ratio, of which the high bits are the best.
    #[inline]
    fn place(&self, key: u32) -> usize {
        (key.wrapping_mul(0x9e37_79b9) >> 12) as usize & self.found.len().wrapping_sub(1)
    }
}

impl<I: Image> Code<'_, I> {
    /// Where outcomes lead from a block; `marked`: below a bit that marks their end, up to six.
    #[inline(always)]
    pub fn find_path(&mut self, run: u32, marked: u8) -> Option<Found> {
        self.look_up(run, marked).filter(|found| found.used() > 0)
    }

    /// The way from a block to the indirect branch, return or far transfer that follows without a packet;
    /// with the block that it ends.
    #[inline(always)]
    pub fn find_indirect(&mut self, run: u32) -> Option<Found> {
        self.look_up(run, TO_INDIRECT).filter(|found| found.branch() != TO_CALLER)
    }

    #[inline(always)]
    fn look_up(&mut self, run: u32, marked: u8) -> Option<Found> {
        let key = run << 7 | u32::from(marked);
        let found = self.paths.found.get(self.paths.place(key));
        if found.is_none_or(|found| found.key != key) && !self.make_path(run, marked) {
            return None;
        }
        self.paths.found.get(self.paths.place(key)).copied()
    }

    #[cold]
    #[inline(never)]
    fn make_path(&mut self, run: u32, marked: u8) -> bool {
        if run >= RUNS_MAX || !(TO_INDIRECT..128).contains(&marked) {
            return false;
        }
        let size = self.paths.found.len();
        if self.paths.blocks.len() > POOL_MAX || self.paths.steps.len() >= PATHS_MAX {
            self.paths.clear(size);
        } else if size < SIZES.1 && self.paths.steps.len() >= size / 2 {
            self.paths.clear((4 * size).max(SIZES.0));
        }
        let walked = match marked {
            TO_INDIRECT => self.walk_to_indirect(run),
            _ => self.walk_path(run, marked),
        };
        let paths = &mut self.paths;
        let (begin, first_call) = (paths.blocks.len() as u32, paths.calls.len() as u32);
        paths.blocks.extend_from_slice(&walked.blocks[..walked.block_count]);
        paths.calls.extend_from_slice(&walked.calls[..walked.call_count]);
        let found = Found {
            key: run << 7 | u32::from(marked),
            next: walked.next,
            instructions: walked.instructions,
            packed: u32::from(walked.used)
                | (walked.call_count as u32) << 3
                | (paths.steps.len() as u32) << 6,
        };
        paths.steps.push(Steps {
            blocks: (begin, paths.blocks.len() as u32),
            calls: (first_call, paths.calls.len() as u32),
        });
        let place = paths.place(found.key);
        paths.found[place] = found;
        true
    }

    fn walk_to_indirect(&mut self, from: u32) -> Walked {
        let nowhere = Walked::new(TO_CALLER);
        let (mut walked, mut run) = (nowhere, from);
        loop {
            match self.walk_block(&mut walked, run) {
                Some(next) => run = next,
                None if self.run(run).block.ends.is_indirect() && walked.ends_with(run) => {
                    return Walked { next: run, ..walked };
                }
                None => return nowhere,
            }
        }
    }

    /// Adds a block, if there is room. @return the block that follows it without a packet.
    fn walk_block(&mut self, walked: &mut Walked, run: u32) -> Option<u32> {
        let Run { block, next, target, .. } = *self.run(run);
        *walked.blocks.get_mut(walked.block_count)? = run;
        walked.block_count += 1;
        walked.instructions += block.count;
        match block.ends {
            Ends::Through => Some(self.next(run)),
            Ends::Jump => Some(self.target(run)),
            Ends::Call => {
                // As in [`crate::flow`]: a call of what follows it is not remembered.
                if target != next {
                    let caller = self.next(run);
                    *walked.calls.get_mut(walked.call_count)? = caller;
                    walked.call_count += 1;
                }
                Some(self.target(run))
            }
            _ => None,
        }
    }

    fn walk_path(&mut self, from: u32, marked: u8) -> Walked {
        let mut walked = Walked::new(from);
        let outcomes = marked.ilog2() as u8;
        let mut run = from;
        // What was walked since the last outcome, where that is not to be kept.
        let mut now = walked;
        while now.used < outcomes {
            if let Some(next) = self.walk_block(&mut now, run) {
                run = next;
                continue;
            }
            if !now.ends_with(run) {
                return walked;
            }
            let is_taken = marked >> (outcomes - 1 - now.used) & 1 == 1;
            match self.run(run).block.ends {
                Ends::Conditional => {
                    run = if is_taken { self.target(run) } else { self.next(run) };
                    now.used += 1;
                    now.next = run;
                    walked = now;
                }
                Ends::Return if is_taken => {
                    now.used += 1;
                    if now.call_count == 0 {
                        now.next = TO_CALLER;
                        return now;
                    }
                    now.call_count -= 1;
                    run = now.calls[now.call_count];
                    now.next = run;
                    walked = now;
                }
                _ => return walked,
            }
        }
        walked
    }
}

#[derive(Clone, Copy)]
struct Walked {
    blocks: [u32; BLOCKS_MAX],
    block_count: usize,
    calls: [u32; CALLS_MAX],
    call_count: usize,
    instructions: u32,
    used: u8,
    next: u32,
}

impl Walked {
    fn new(next: u32) -> Self {
        Self {
            blocks: [0; BLOCKS_MAX],
            block_count: 0,
            calls: [0; CALLS_MAX],
            call_count: 0,
            instructions: 0,
            used: 0,
            next,
        }
    }

    fn ends_with(&self, run: u32) -> bool {
        self.block_count.checked_sub(1).and_then(|last| self.blocks.get(last)) == Some(&run)
    }
}
