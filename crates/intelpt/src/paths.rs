// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Paths: where the outcomes of a TNT packet lead from a block, found once and then looked up.
//!
//! Programs are repetitive: nearly every TNT packet meets a block with which it was seen before. So a
//! path is stored by block and outcomes: the blocks that they lead through, the number of instructions,
//! the calls that are open at its end and the next block. A path ends where it needs information that the
//! packet does not contain: an indirect branch, a return to a caller from before the path (as its last
//! step), unknown code. The way from a block to an indirect branch, whose target a TIP packet contains,
//! is stored likewise.
//!
//! For a path that ends in such a return, a longer one is stored as well, through the calls that were
//! open when it was found. It is used if the same calls are open.
//!
//! A block that often begins paths has a row of a table: a step for each packet. A step contains the row
//! of the next block, so that following known packets is one load each. Paths of other blocks are hashed:
//! most code is executed a few times, and a row is large.

use alloc::vec;
use alloc::vec::Vec;

use crate::code::{Code, Ends, Mode, Run};
use crate::image::Image;

/// Largest number of calls that a path leaves open.
const CALLS_MAX: usize = 6;
/// Largest number of blocks in a path; longer sequences are walked block by block.
const BLOCKS_MAX: usize = 96;
/// Largest number of paths through returns. 11 MiB.
const RETURNS_MAX: usize = 1 << 17;
/// Size of the hash table at first, and at most: 4 MiB.
const SIZES: (usize, usize) = (1 << 10, 1 << 18);
/// Largest number of blocks, whose numbers fit into a key.
const RUNS_MAX: u32 = 1 << 25;
/// Largest number of paths: beyond it, all are discarded. 16 MiB.
const PATHS_MAX: usize = 1 << 20;
/// Steps of a row, indexed by the outcomes of a packet, with a bit that marks their end. That leaves two
/// indices: the path to an indirect branch, and the branch at its end.
const ROW: usize = 1 << 7;
pub(crate) const TO_INDIRECT: u8 = 1;
const BRANCH: u8 = 0;
/// Instead of the next block: the one to which the last call opened before the path returns.
const TO_CALLER: u32 = u32::MAX;
/// Flag of the position of a decoder: a block without a row rather than a row.
const HAS_NO_ROW: u32 = 1 << 31;
const NOWHERE: u32 = u32::MAX;

/// Largest number of outcomes of a packet, and so of returns on a path.
pub(crate) const OUTCOMES_MAX: usize = 6;
/// Number of times that another path through returns is searched.
const TRIES_MAX: u8 = 8;
/// Largest trust counter of a path through returns, and its initial value.
const TRUST: (u8, u8) = (16, 2);

/// Memory limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Number of paths that must begin with a block before it gets a row. Otherwise code that is executed
    /// once would cost more than without rows: the memory is cold, and a row is 1.5 KiB.
    pub often: u32,
    /// Largest number of blocks with a row.
    pub rows: usize,
    /// Largest total number of blocks in all paths: beyond it, all paths are discarded.
    pub blocks: usize,
}

/// 24 MiB of rows, and 16 MiB of blocks.
const LIMITS: Limits = Limits { often: 64, rows: 1 << 14, blocks: 1 << 22 };

/// Result of a packet at a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// The next place; for a path that ends in a return: index into [`Paths::returns`].
    next: u32,
    /// The low bits: the number of instructions of all blocks. If any of the others is set, there is more
    /// to do than continuing there and counting.
    packed: u32,
}

/// Larger than the number for a path of the longest blocks.
const INSTRUCTIONS: u32 = (1 << 20) - 1;
const _: () = assert!(BLOCKS_MAX * crate::code::LONGEST as usize <= INSTRUCTIONS as usize);
/// Three bits: the number of outcomes used, if not all; 0: no path.
const USED_SHIFT: u32 = 20;
/// It leaves calls open.
const HAS_CALLS: u32 = 1 << 23;
/// The next block is the one to which the last call returns.
const IS_RETURN: u32 = 1 << 24;
/// For a path to an indirect branch: the branch is a call, or a return.
const ENDS_IN_CALL: u32 = 1 << 25;
const ENDS_IN_RETURN: u32 = 1 << 26;
/// The next block had no row.
const NEXT_HAS_NO_ROW: u32 = 1 << 27;
/// It uses only the given number of outcomes.
const IS_PART: u32 = 1 << 30;
/// It has not been searched yet.
const IS_UNKNOWN: u32 = 1 << 31;
const UNKNOWN: Step = Step { next: NOWHERE, packed: IS_UNKNOWN };

impl Step {
    /// Whether it uses all outcomes, and nothing is to be done but continue there.
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        self.packed <= INSTRUCTIONS
    }

    #[inline(always)]
    pub fn next(self) -> u32 {
        self.next
    }

    /// Number of instructions of all blocks.
    #[inline(always)]
    pub fn instructions(self) -> u32 {
        self.packed & INSTRUCTIONS
    }

    /// Number of these outcomes that it uses; 0: no path.
    #[inline(always)]
    pub fn used(self, marked: u8) -> u8 {
        match self.packed & IS_PART {
            0 => marked.ilog2() as u8,
            _ => (self.packed >> USED_SHIFT & 7) as u8,
        }
    }

    #[inline(always)]
    pub fn is_unknown(self) -> bool {
        self.packed & IS_UNKNOWN != 0
    }

    #[inline(always)]
    pub fn has_calls(self) -> bool {
        self.packed & HAS_CALLS != 0
    }

    #[inline(always)]
    pub fn next_has_no_row(self) -> bool {
        self.packed & NEXT_HAS_NO_ROW != 0
    }

    #[inline(always)]
    pub fn is_return(self) -> bool {
        self.packed & IS_RETURN != 0
    }

    /// Only for a path to an indirect branch.
    #[inline(always)]
    pub fn ends_in_call(self) -> bool {
        self.packed & ENDS_IN_CALL != 0
    }

    /// Only for a path to an indirect branch.
    #[inline(always)]
    pub fn ends_in_return(self) -> bool {
        self.packed & ENDS_IN_RETURN != 0
    }

    /// Only for a path to an indirect branch: there is none.
    #[inline(always)]
    pub fn is_nowhere(self) -> bool {
        self.packed & (IS_UNKNOWN | IS_PART) != 0
    }
}

/// The block of a row.
#[derive(Debug, Clone, Copy)]
struct Node {
    ip: u64,
    space: u32,
    mode: Mode,
    run: u32,
}

/// Rarely needed parts of a path, in [`Paths::blocks`] and [`Paths::calls`].
#[derive(Debug, Clone, Copy)]
struct Parts {
    blocks: (u32, u32),
    calls: (u32, u32),
}

/// A path through returns to calls that were open before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Returns {
    /// Blocks to which they return, in order.
    callers: [u32; OUTCOMES_MAX],
    caller_count: u8,
    /// Number of outcomes that it uses; 0: no path.
    pub used: u8,
    trust: u8,
    tries: u8,
    /// The next block.
    pub next: u32,
    pub instructions: u32,
    calls: [u32; CALLS_MAX],
    call_count: u8,
    blocks: (u32, u32),
}

impl Returns {
    const NONE: Self = Self {
        callers: [0; OUTCOMES_MAX],
        caller_count: 0,
        used: 0,
        trust: 0,
        tries: 0,
        next: NOWHERE,
        instructions: 0,
        calls: [0; CALLS_MAX],
        call_count: 0,
        blocks: (0, 0),
    };

    /// Blocks to which it returns, in order.
    #[inline(always)]
    pub fn callers(&self) -> &[u32] {
        self.callers.get(..usize::from(self.caller_count)).unwrap_or_default()
    }

    /// Blocks to which the calls open at its end return, the last one last.
    #[inline(always)]
    pub fn calls(&self) -> &[u32] {
        self.calls.get(..usize::from(self.call_count)).unwrap_or_default()
    }
}

/// A hashed path: 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// The block, and the outcomes below a bit that marks their end.
    key: u32,
    /// The next block; for a path to an indirect branch: the block that ends with it.
    next: u32,
    instructions: u32,
    /// Three bits: number of outcomes used; three: number of calls left open; the rest: index into
    /// [`Paths::parts`].
    packed: u32,
}

const NO_KEY: u32 = u32::MAX;

impl Found {
    /// Number of outcomes that it uses; 0: no path.
    #[inline]
    pub fn used(self) -> u8 {
        (self.packed & 7) as u8
    }

    /// The next block; `None`: the one to which the last call returns.
    #[inline]
    pub fn next(self) -> Option<u32> {
        (self.next != TO_CALLER).then_some(self.next)
    }

    /// Number of instructions of all blocks.
    #[inline]
    pub fn instructions(self) -> u32 {
        self.instructions
    }

    fn part(self) -> u32 {
        self.packed >> 6
    }
}

/// Paths by their first blocks and outcomes.
pub(crate) struct Paths {
    pub limits: Limits,
    /// Steps of the rows.
    steps: Vec<Step>,
    /// Index into `parts` of each step.
    parts_of: Vec<u32>,
    nodes: Vec<Node>,
    /// By block: its row, or the number of paths that began there, with [`HAS_NO_ROW`].
    rows: Vec<u32>,
    /// Paths of blocks without a row, hashed.
    found: Vec<Found>,
    found_count: usize,
    parts: Vec<Parts>,
    /// Blocks of all paths.
    blocks: Vec<u32>,
    /// Blocks to which the calls open at the ends of paths return.
    calls: Vec<u32>,
    returns: Vec<Returns>,
}

impl Paths {
    pub fn new() -> Self {
        Self {
            limits: LIMITS,
            steps: Vec::new(),
            parts_of: Vec::new(),
            nodes: Vec::new(),
            rows: Vec::new(),
            found: Vec::new(),
            found_count: 0,
            parts: Vec::new(),
            blocks: Vec::new(),
            calls: Vec::new(),
            returns: Vec::new(),
        }
    }

    /// Whether no more paths are stored.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.blocks.len() > self.limits.blocks || self.parts.len() >= PATHS_MAX
    }

    /// Discards all paths; rows change.
    fn clear(&mut self) {
        for node in &self.nodes {
            if let Some(row) = self.rows.get_mut(node.run as usize) {
                *row = HAS_NO_ROW;
            }
        }
        self.steps.clear();
        self.parts_of.clear();
        self.nodes.clear();
        self.clear_found(self.found.len());
        self.parts.clear();
        self.blocks.clear();
        self.calls.clear();
        self.returns.clear();
    }

    fn clear_found(&mut self, size: usize) {
        self.found = vec![Found { key: NO_KEY, next: 0, instructions: 0, packed: 0 }; size];
        self.found_count = 0;
    }

    /// Knuth's multiplicative hashing: 2^32 divided by the golden ratio; the high bits are mixed best.
    #[inline(always)]
    fn hash(&self, key: u32) -> usize {
        (key.wrapping_mul(0x9e37_79b9) >> 12) as usize & self.found.len().wrapping_sub(1)
    }

    /// Place of a block.
    #[inline(always)]
    pub fn place_of(&self, run: u32) -> u32 {
        match self.rows.get(run as usize) {
            Some(row) if *row < HAS_NO_ROW => *row,
            _ => run | HAS_NO_ROW,
        }
    }

    /// The block of a place, if it has no row.
    #[inline(always)]
    pub fn without_row(&self, place: u32) -> Option<u32> {
        (place >= HAS_NO_ROW).then_some(place & !HAS_NO_ROW)
    }

    /// The block of a place.
    #[inline]
    pub fn run_of(&self, place: u32) -> Option<u32> {
        match self.without_row(place) {
            Some(run) => Some(run),
            None => self.nodes.get(place as usize / ROW).map(|node| node.run),
        }
    }

    /// Result of outcomes at a row; `marked`: up to six outcomes below a bit that marks their end.
    #[inline(always)]
    pub fn step(&self, row: u32, marked: u8) -> Step {
        self.steps.get((row | u32::from(marked)) as usize).copied().unwrap_or(UNKNOWN)
    }

    /// The way from a row to the indirect branch, return or far transfer that follows without a packet.
    #[inline(always)]
    pub fn indirect(&self, row: u32) -> Step {
        self.step(row, TO_INDIRECT)
    }

    /// The block to which the call at its end returns.
    #[inline(always)]
    pub fn caller(&self, row: u32) -> u32 {
        self.step(row, BRANCH).next
    }

    /// The next block of a step has a row now.
    #[inline]
    pub fn set_next(&mut self, row: u32, marked: u8, next: u32) {
        if let Some(step) = self.steps.get_mut((row | u32::from(marked)) as usize) {
            *step = Step { next, packed: step.packed & !NEXT_HAS_NO_ROW };
        }
    }

    /// Parts of a hashed path: its blocks, and those to which the calls open at its end return.
    #[inline]
    pub fn parts_of_found(&self, found: Found) -> (&[u32], &[u32]) {
        let Some(parts) = self.parts.get(found.part() as usize) else { return (&[], &[]) };
        let blocks = self.blocks.get(parts.blocks.0 as usize..parts.blocks.1 as usize);
        let calls = self.calls.get(parts.calls.0 as usize..parts.calls.1 as usize);
        (blocks.unwrap_or_default(), calls.unwrap_or_default())
    }

    #[inline]
    fn parts(&self, row: u32, marked: u8) -> Option<&Parts> {
        let parts = self.parts_of.get((row | u32::from(marked)) as usize)?;
        self.parts.get(*parts as usize)
    }

    /// Blocks to which the calls open at the end of the path return, the last one last.
    pub fn calls(&self, row: u32, marked: u8) -> &[u32] {
        let (begin, end) = self.parts(row, marked).map_or((0, 0), |parts| parts.calls);
        self.calls.get(begin as usize..end as usize).unwrap_or_default()
    }

    fn keep_parts(&mut self, walked: &Walked) -> u32 {
        let (begin, first_call) = (self.blocks.len() as u32, self.calls.len() as u32);
        self.blocks.extend_from_slice(walked.blocks());
        self.calls.extend_from_slice(walked.calls());
        self.parts.push(Parts {
            blocks: (begin, self.blocks.len() as u32),
            calls: (first_call, self.calls.len() as u32),
        });
        self.parts.len() as u32 - 1
    }

    fn keep_path(&mut self, row: u32, marked: u8, walked: &Walked, step: Step) {
        let part = self.keep_parts(walked);
        let place = (row | u32::from(marked)) as usize;
        let has_calls = if walked.calls().is_empty() { 0 } else { HAS_CALLS };
        if let Some((of, known)) = self.parts_of.get_mut(place).zip(self.steps.get_mut(place)) {
            *of = part;
            *known = Step { packed: step.packed | has_calls, ..step };
        }
    }

    /// The longer path of a step that ends in a return, if these calls are open.
    #[inline(always)]
    pub fn returns(&mut self, step: Step, is_open: impl Fn(&[u32]) -> bool) -> Option<&Returns> {
        let found = self.returns.get_mut(step.next as usize)?;
        if found.used == 0 || !is_open(found.callers()) {
            return None;
        }
        found.trust = (found.trust + 1).min(TRUST.0);
        Some(found)
    }

    /// The blocks of a path through returns, in order.
    pub fn blocks_of(&self, returns: &Returns) -> &[u32] {
        let (begin, end) = returns.blocks;
        self.blocks.get(begin as usize..end as usize).unwrap_or_default()
    }

    /// The blocks of a path, in order.
    #[inline]
    pub fn blocks(&self, row: u32, marked: u8) -> &[u32] {
        let (begin, end) = self.parts(row, marked).map_or((0, 0), |parts| parts.blocks);
        self.blocks.get(begin as usize..end as usize).unwrap_or_default()
    }
}

impl<I: Image> Code<'_, I> {
    /// Counts a path that begins with a block without a row; returns its row if there were enough of
    /// them.
    #[inline]
    pub fn warm(&mut self, run: u32) -> Option<u32> {
        let often = self.paths.limits.often;
        let rows = &mut self.paths.rows;
        if rows.len() <= run as usize {
            rows.resize(run as usize + 1, HAS_NO_ROW);
        }
        let row = rows.get_mut(run as usize)?;
        if *row < HAS_NO_ROW {
            return Some(*row);
        }
        if *row < HAS_NO_ROW + often {
            *row += 1;
            return None;
        }
        self.make_row(run)
    }

    #[cold]
    #[inline(never)]
    fn make_row(&mut self, run: u32) -> Option<u32> {
        if self.paths.nodes.len() >= self.paths.limits.rows {
            return None;
        }
        let &Run { block, space, .. } = self.run(run);
        let paths = &mut self.paths;
        let row = (paths.nodes.len() * ROW) as u32;
        paths.nodes.push(Node { ip: block.ip, space, mode: block.mode, run });
        paths.steps.resize(paths.nodes.len() * ROW, UNKNOWN);
        paths.parts_of.resize(paths.nodes.len() * ROW, 0);
        *paths.rows.get_mut(run as usize)? = row;
        Some(row)
    }

    /// Result of outcomes at a block without a row; `marked`: up to six outcomes below a bit that marks
    /// their end.
    #[inline]
    pub fn find_path(&mut self, run: u32, marked: u8) -> Option<Found> {
        self.look_up(run, marked).filter(|found| found.used() > 0)
    }

    /// The way from a block without a row to the indirect branch, return or far transfer that follows
    /// without a packet; with the block that ends with it.
    #[inline]
    pub fn find_indirect(&mut self, run: u32) -> Option<(Found, u32)> {
        let found = self.look_up(run, TO_INDIRECT)?;
        Some((found, found.next()?))
    }

    #[inline]
    fn look_up(&mut self, run: u32, marked: u8) -> Option<Found> {
        if run >= RUNS_MAX {
            return None;
        }
        let key = run << 7 | u32::from(marked);
        let found = self.paths.found.get(self.paths.hash(key));
        if found.is_none_or(|found| found.key != key) && !self.make_found(run, marked) {
            return None;
        }
        self.paths.found.get(self.paths.hash(key)).copied()
    }

    #[cold]
    #[inline(never)]
    fn make_found(&mut self, run: u32, marked: u8) -> bool {
        if !(TO_INDIRECT..128).contains(&marked) || self.paths.is_full() {
            return false;
        }
        let size = self.paths.found.len();
        if size < SIZES.1 && self.paths.found_count >= size / 2 {
            self.paths.clear_found((4 * size).max(SIZES.0));
        }
        let walked = match marked {
            TO_INDIRECT => self.walk_to_indirect(run),
            _ => self.walk_path(run, marked, &[]),
        };
        let part = self.paths.keep_parts(&walked);
        let paths = &mut self.paths;
        let found = Found {
            key: run << 7 | u32::from(marked),
            next: walked.ends.next,
            instructions: walked.ends.instructions,
            packed: u32::from(walked.ends.used) | (walked.calls().len() as u32) << 3 | part << 6,
        };
        let place = paths.hash(found.key);
        let Some(old) = paths.found.get_mut(place) else { return false };
        *old = found;
        paths.found_count += 1;
        true
    }

    /// Discards all paths: the rows of blocks change.
    #[cold]
    #[inline(never)]
    pub fn forget_paths(&mut self) {
        self.paths.clear();
        self.long_paths.clear();
    }

    /// Finds the result of outcomes at a row, which is unknown, if there is room.
    #[cold]
    #[inline(never)]
    pub fn make_path(&mut self, row: u32, marked: u8) {
        let Some(run) = self.paths.run_of(row).filter(|_| !self.paths.is_full()) else { return };
        let walked = self.walk_path(run, marked, &[]);
        let mut packed = walked.ends.instructions;
        if walked.ends.used != marked.ilog2() as u8 {
            packed |= IS_PART | u32::from(walked.ends.used) << USED_SHIFT;
        }
        let next = match walked.ends.next {
            TO_CALLER => {
                packed |= IS_RETURN;
                let returns = &mut self.paths.returns;
                if returns.len() < RETURNS_MAX {
                    returns.push(Returns::NONE);
                    returns.len() as u32 - 1
                } else {
                    NOWHERE
                }
            }
            run => {
                let next = self.paths.place_of(run);
                if next >= HAS_NO_ROW {
                    packed |= NEXT_HAS_NO_ROW;
                }
                next
            }
        };
        self.paths.keep_path(row, marked, &walked, Step { next, packed });
    }

    /// The longer path of a step that ends in a return is for other calls than the open ones (latest
    /// first): finds one for these if that is worthwhile.
    #[inline(never)]
    pub fn make_returns(&mut self, row: u32, marked: u8, open: &[u32]) {
        let step = self.paths.step(row, marked);
        let Some(run) = self.paths.run_of(row) else { return };
        let Some(known) = self.paths.returns.get_mut(step.next as usize) else { return };
        if known.trust > 0 || known.tries >= TRIES_MAX {
            known.trust = known.trust.saturating_sub(1);
            return;
        }
        known.tries += 1;
        if self.paths.is_full() {
            return;
        }
        let walked = self.walk_path(run, marked, open);
        if walked.ends.used == 0 || walked.ends.next == TO_CALLER {
            return;
        }
        let paths = &mut self.paths;
        let Some(known) = paths.returns.get_mut(step.next as usize) else { return };
        let begin = paths.blocks.len() as u32;
        paths.blocks.extend_from_slice(walked.blocks());
        *known = Returns {
            callers: walked.ends.callers,
            caller_count: walked.ends.caller_count as u8,
            used: walked.ends.used,
            trust: TRUST.1,
            tries: known.tries,
            next: walked.ends.next,
            instructions: walked.ends.instructions,
            calls: walked.ends.calls,
            call_count: walked.ends.call_count as u8,
            blocks: (begin, paths.blocks.len() as u32),
        };
    }

    /// Finds the unknown way from a row to an indirect branch, if there is room.
    #[cold]
    #[inline(never)]
    pub fn make_indirect(&mut self, row: u32) {
        let Some(run) = self.paths.run_of(row).filter(|_| !self.paths.is_full()) else { return };
        let walked = self.walk_to_indirect(run);
        let mut packed = walked.ends.instructions;
        let mut caller = NOWHERE;
        if walked.ends.next == TO_CALLER {
            packed = IS_PART;
        } else {
            match self.run(walked.ends.next).block.ends {
                Ends::Return => packed |= ENDS_IN_RETURN,
                Ends::IndirectCall => {
                    packed |= ENDS_IN_CALL;
                    caller = self.next(walked.ends.next);
                }
                _ => {}
            }
        }
        self.paths.keep_path(row, TO_INDIRECT, &walked, Step { next: NOWHERE, packed });
        if let Some(branch) = self.paths.steps.get_mut((row | u32::from(BRANCH)) as usize) {
            *branch = Step { next: caller, packed: 0 };
        }
    }

    /// Whether a row belongs to the block that begins at an address.
    #[inline(always)]
    pub fn is_row_of(&self, row: u32, ip: u64, mode: Mode) -> bool {
        let node = self.paths.nodes.get(row as usize / ROW);
        let space = self.space_of(ip);
        node.is_some_and(|node| (node.ip, node.space, node.mode) == (ip, space, mode))
    }

    /// Updates the target of the indirect branch at the end of the way from a row, which has changed.
    #[inline(never)]
    pub fn learn_target(&mut self, row: u32, to: u64, mode: Mode) -> u32 {
        let run = self.at(to, mode);
        let target = self.paths.place_of(run);
        if target < HAS_NO_ROW
            && let Some(step) = self.paths.steps.get_mut((row | u32::from(TO_INDIRECT)) as usize)
        {
            step.next = target;
        }
        target
    }

    fn walk_to_indirect(&mut self, from: u32) -> Walked {
        let (mut walked, mut run) = (Walked::new(TO_CALLER), from);
        loop {
            match self.walk_block(&mut walked, run) {
                Some(next) => run = next,
                None if self.run(run).block.ends.is_indirect() && walked.ends_with(run) => {
                    walked.ends.next = run;
                    return walked;
                }
                None => return Walked::new(TO_CALLER),
            }
        }
    }

    /// Adds a block, if there is room. @return the block that follows it without a packet.
    fn walk_block(&mut self, walked: &mut Walked, run: u32) -> Option<u32> {
        let Run { block, next, target, .. } = *self.run(run);
        let ends = &mut walked.ends;
        *walked.blocks.get_mut(ends.block_count)? = run;
        ends.block_count += 1;
        ends.instructions += block.count;
        match block.ends {
            Ends::Through => Some(self.next(run)),
            Ends::Jump => Some(self.target(run)),
            Ends::Call => {
                // As in [`crate::flow`]: a call of the next instruction is not kept.
                if target != next {
                    let caller = self.next(run);
                    *ends.calls.get_mut(ends.call_count)? = caller;
                    ends.call_count += 1;
                }
                Some(self.target(run))
            }
            _ => None,
        }
    }

    /// `open`: blocks to which the calls open before it return, the last one first.
    fn walk_path(&mut self, from: u32, marked: u8, open: &[u32]) -> Walked {
        let mut now = Walked::new(from);
        let outcomes = marked.ilog2() as u8;
        let mut run = from;
        // State after the last outcome.
        let mut kept = now.ends;
        while now.ends.used < outcomes {
            if let Some(next) = self.walk_block(&mut now, run) {
                run = next;
                continue;
            }
            if !now.ends_with(run) {
                break;
            }
            let ends = &mut now.ends;
            let is_taken = marked >> (outcomes - 1 - ends.used) & 1 == 1;
            match self.run(run).block.ends {
                Ends::Conditional => {
                    run = if is_taken { self.target(run) } else { self.next(run) };
                }
                Ends::Return if is_taken && ends.call_count > 0 => {
                    ends.call_count -= 1;
                    run = ends.calls[ends.call_count];
                }
                Ends::Return if is_taken => match open.get(ends.caller_count) {
                    Some(caller) => {
                        ends.callers[ends.caller_count] = *caller;
                        ends.caller_count += 1;
                        run = *caller;
                    }
                    None if ends.caller_count == 0 => {
                        ends.used += 1;
                        ends.next = TO_CALLER;
                        return now;
                    }
                    None => break,
                },
                _ => break,
            }
            ends.used += 1;
            ends.next = run;
            kept = *ends;
        }
        now.ends = kept;
        now
    }
}

/// A path while it is being walked.
struct Walked {
    blocks: [u32; BLOCKS_MAX],
    ends: PathEnd,
}

/// End of a path.
#[derive(Clone, Copy)]
struct PathEnd {
    block_count: usize,
    calls: [u32; CALLS_MAX],
    call_count: usize,
    callers: [u32; OUTCOMES_MAX],
    caller_count: usize,
    instructions: u32,
    used: u8,
    next: u32,
}

impl Walked {
    fn new(next: u32) -> Self {
        let ends = PathEnd {
            block_count: 0,
            calls: [0; CALLS_MAX],
            call_count: 0,
            callers: [0; OUTCOMES_MAX],
            caller_count: 0,
            instructions: 0,
            used: 0,
            next,
        };
        Self { blocks: [0; BLOCKS_MAX], ends }
    }

    /// The blocks.
    fn blocks(&self) -> &[u32] {
        self.blocks.get(..self.ends.block_count).unwrap_or_default()
    }

    /// Blocks to which the calls open at its end return.
    fn calls(&self) -> &[u32] {
        self.ends.calls.get(..self.ends.call_count).unwrap_or_default()
    }

    fn ends_with(&self, run: u32) -> bool {
        self.blocks().last() == Some(&run)
    }
}
