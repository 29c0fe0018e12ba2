// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Code coverage: executed blocks, functions and source lines, with counts.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use lateralis_intelpt::flow::Event;
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::{Block, instructions};

use super::{Follow, Moment, Recorded, Traced, cause_name, place_of};
use crate::places::Places;

/// Largest number of distinct blocks that are counted.
const BLOCKS_MAX: usize = 1 << 24;

/// Executed code.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// By number of the function.
    pub functions: BTreeMap<u32, Covered>,
    /// By numbers of source file and line: count of its first instruction, the one at the lowest address.
    pub lines: BTreeMap<(u32, u32), u64>,
    /// Names of these files.
    pub sources: Vec<String>,
    /// Number of blocks: instructions up to a branch.
    pub blocks: u64,
    /// Number of executions of blocks that are not counted, as there were too many.
    pub not_kept: u64,
    /// Gaps, by cause.
    pub gaps: BTreeMap<&'static str, u64>,
}

/// Executed part of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Covered {
    /// Number of entries at its first byte.
    pub entered: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of distinct instructions.
    pub places: u64,
    /// Number of executed instructions.
    pub instructions: u64,
    /// Source line of its lowest executed address.
    pub line: Option<(u32, u32)>,
}

/// Count of each block of a process, by address, mode and length.
type Blocks = HashMap<(u64, u8, u32), (Block, u64), RandomState>;

#[derive(Default)]
struct Counting {
    pid: u32,
    blocks: Blocks,
    not_kept: u64,
    gaps: BTreeMap<&'static str, u64>,
}

/// Count of each instruction by address.
type Counts = BTreeMap<u64, u64>;

/// Decodes everything that was recorded.
///
/// Cost: a lookup for each block; one line lookup for each address. Memory: proportional to distinct
/// blocks.
pub fn coverage(recorded: &mut Recorded<'_>) -> Coverage {
    let mut all = Coverage::default();
    for part in 0..recorded.parts.len() {
        let mut counting = Counting::default();
        recorded.follow_part(part, &mut counting);
        all.not_kept += counting.not_kept;
        all.blocks += counting.blocks.len() as u64;
        for (cause, count) in counting.gaps {
            *all.gaps.entry(cause).or_default() += count;
        }
        let Recorded { places, parts, spaces, .. } = &mut *recorded;
        let mut sections = Sections::default();
        let code = spaces.get(parts[part].space).into_iter().flatten();
        code.for_each(|(address, bytes)| sections.add(*address, bytes));
        let mut counts = Counts::new();
        for (block, count) in counting.blocks.into_values() {
            let function = places.function_at(counting.pid, block.ip, place_of(block.ip));
            all.functions.entry(function).or_default().blocks += 1;
            instructions(&sections, &block, |address, _| {
                *counts.entry(address).or_default() += count
            });
        }
        all.add(places, counting.pid, &counts);
    }
    all.sources = recorded.places.sources().to_vec();
    all
}

impl Coverage {
    fn add(&mut self, places: &mut Places<'_>, pid: u32, counts: &Counts) {
        let mut lines: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut holding: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (address, count) in counts {
            let place = place_of(*address);
            let frames = places.frames_at(pid, *address, place);
            let Some(outermost) = frames.first() else { continue };
            let is_first = places.offset_at(pid, *address, place) == Some(0);
            let covered = self.functions.entry(outermost.function).or_default();
            covered.places += 1;
            covered.instructions = covered.instructions.saturating_add(*count);
            covered.entered += if is_first { *count } else { 0 };
            let line = |frame: &crate::places::Frame| frame.line.map(|of| (of.file, of.number));
            if covered.line.is_none() {
                covered.line = line(outermost);
            }
            if let Some(line) = frames.last().and_then(line) {
                let known = lines.entry(line).or_default();
                *known = (*known).max(*count);
            }
            // The location of an inlined call was reached as well: as often as the least frequently
            // executed part of the inlined code.
            for line in frames.iter().rev().skip(1).filter_map(line) {
                let known = holding.entry(line).or_insert(*count);
                *known = (*known).min(*count);
            }
        }
        for (line, count) in holding {
            lines.entry(line).or_insert(count);
        }
        for (line, count) in lines {
            let known = self.lines.entry(line).or_default();
            *known = known.saturating_add(count);
        }
    }
}

impl Follow for Counting {
    fn begins(&mut self, _: &mut Places<'_>, traced: &Traced) {
        self.pid = traced.pid;
    }

    fn block(&mut self, _: &mut Places<'_>, _: &Sections<'_>, block: &Block, _: Moment) {
        let key = (block.ip, block.mode as u8, block.count);
        if let Some((_, count)) = self.blocks.get_mut(&key) {
            *count += 1;
        } else if self.blocks.len() < BLOCKS_MAX {
            self.blocks.insert(key, (*block, 1));
        } else {
            self.not_kept += 1;
        }
    }

    fn event(&mut self, _: &mut Places<'_>, _: u64, event: Event, _: Moment) {
        if let Event::Gap(gap) = event {
            *self.gaps.entry(cause_name(&gap.cause)).or_default() += 1;
        }
    }
}
