// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Event bodies whose shape does not depend on a selector, as few steps.
//!
//! Most events are fixed runs of numbers, perhaps with a text or a sequence
//! between them. Neighbouring fields whose distance is known become one run:
//! one check of the bounds, then loads at constant offsets. Walking such an
//! event leaves *marks* (where runs and variable parts begin); fields are read
//! from the marks later, column by column, or at once, as a row. What does not
//! fit (variants, optional fields, elements of variable size, bits that do not
//! end at a byte) stays with the [`Machine`](super::Machine).

mod making;

use std::ops::Range;

use lateralis_model::Slot;

use super::cell::{CELL_MARGIN, Cells, add_cells, push_cells};
use super::load::Load;
use super::one_variable::{MARKS, OneVariable};
use super::zeros::{first_zero, text_length};
use super::{Op, Program};
use making::Making;

/// A body as steps. Tens of thousands of them may be kept, so each is as small as it can be.
#[derive(Debug)]
pub struct Straight {
    steps: Box<[Step]>,
    /// Numbers that later steps need, and their registers.
    saves: Box<[(Load, u32)]>,
    /// One per slot of a row, in their order.
    pub leaves: Box<[Leaf]>,
    /// The same of leaves in runs, made for rows; those of each run begin anew.
    cells: Box<[Cells]>,
    /// Numbers that walking an event leaves.
    pub marks: u32,
    /// Set if the event is a single run.
    pub fixed: Option<Fixed>,
    /// Set if only one part of the event is of variable size.
    one_variable: Option<OneVariable>,
}

/// A body of one run.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    /// Alignment in bytes, less one.
    pub mask: u32,
    /// Length in bytes.
    pub bytes: u32,
}

impl Fixed {
    /// Start and end of a body after byte `at`; `None` if the end is after `end`.
    #[inline]
    pub fn walk(&self, at: usize, end: usize) -> Option<(usize, usize)> {
        let start = (at + self.mask as usize) & !(self.mask as usize);
        let after = start + self.bytes as usize;
        (after <= end).then_some((start, after))
    }
}

/// One step of the way through an event. Positions are bytes of the packet.
#[derive(Debug)]
pub(super) enum Step {
    /// Fields at constant distances. Leaves its position.
    Run { mask: u32, bytes: u32, leaves: Range<u32>, cells: Range<u32> },
    /// A number of the previous run, whose base is this number of bytes before, goes to a register.
    Save { back: u32, save: u32 },
    /// Text up to its terminator. Leaves its position and length.
    Text { unit: u8 },
    /// As many bytes as a register says. Leaves position and number.
    Span { register: u32, unit: u8 },
    /// As many scalars as a register says. Leaves position and number.
    List { register: u32, mask: u32, stride: u32, last: u32 },
}

/// A leaf of an event: from which mark on to read what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Leaf {
    /// Index of its (first) mark.
    pub mark: u32,
    /// What it is.
    pub what: What,
}

/// What a leaf is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
    /// A number in a run.
    Number(Load),
    /// This number of bytes in a run; text ends at the first unit of zero (0: no text).
    FixedSpan {
        /// From the base of the run.
        at: u32,
        /// Number of bytes.
        bytes: u32,
        /// Bytes of a unit.
        unit: u8,
    },
    /// This number of scalars in a run.
    FixedList {
        /// Bits from the base of the run.
        at_bits: u32,
        /// Number of elements.
        count: u32,
    },
    /// Text, whose two marks are position and length.
    Text,
    /// Bytes, whose two marks are position and number; text as above.
    Span {
        /// Bytes of a unit.
        unit: u8,
    },
    /// Scalars, whose two marks are position and number.
    List,
}

impl Straight {
    /// The steps of `program`; `None` if it takes more than steps. Events begin
    /// at a byte if `at_byte`, else anywhere.
    pub fn of(program: &Program, at_byte: bool) -> Option<Self> {
        let aligned = matches!(program.ops.first(), Some(Op::Align(8..)));
        if !(at_byte || aligned) {
            return None;
        }
        let mut making = Making::new();
        for op in &program.ops {
            making.op(op)?;
        }
        making.finish()
    }

    /// Walks one event that begins at byte `at`, and sets its marks, of which there
    /// must be [`Straight::marks`] and room for [`MARKS`]. Returns where it ends; `None` if it
    /// does not fit before `end`.
    #[inline(never)]
    pub fn walk(
        &self,
        bytes: &[u8],
        at: usize,
        end: usize,
        registers: &mut [u64],
        marks: &mut [u32],
    ) -> Option<usize> {
        match &self.one_variable {
            Some(body) => body.walk(bytes, at, end, marks.first_chunk_mut()?),
            None => self.walk_steps(bytes, at, end, registers, marks),
        }
    }

    #[inline(never)]
    fn walk_steps(
        &self,
        bytes: &[u8],
        at: usize,
        end: usize,
        registers: &mut [u64],
        marks: &mut [u32],
    ) -> Option<usize> {
        let mut marks = marks.iter_mut();
        self.steps(bytes, at, end, registers, |_, position, length| {
            *marks.next()? = position as u32;
            if let Some(length) = length {
                *marks.next()? = length as u32;
            }
            Some(())
        })
    }

    /// [`Straight::walk`] without marks.
    #[inline]
    pub fn skip(
        &self,
        bytes: &[u8],
        at: usize,
        end: usize,
        registers: &mut [u64],
    ) -> Option<usize> {
        if let Some(body) = &self.one_variable {
            return body.walk(bytes, at, end, &mut [0; MARKS]);
        }
        self.steps(bytes, at, end, registers, |_, _, _| Some(()))
    }

    /// Reads one event that begins at byte `at` as a row. Returns its end; `None` if it does not
    /// fit before `end`, and the slots are then meaningless.
    #[inline(always)]
    pub fn row(
        &self,
        bytes: &[u8],
        at: usize,
        end: usize,
        registers: &mut [u64],
        slots: &mut Vec<Slot>,
    ) -> Option<usize> {
        if let Some(fixed) = self.fixed {
            let (base, after) = fixed.walk(at, end)?;
            if after + CELL_MARGIN <= bytes.len() {
                // SAFETY: this is their run, and its margin was just looked at.
                unsafe {
                    push_cells(bytes, base, &self.cells, self.leaves.len(), &self.leaves, slots)
                };
                return Some(after);
            }
        }
        self.row_by_steps(bytes, at, end, registers, slots)
    }

    #[inline(never)]
    fn row_by_steps(
        &self,
        bytes: &[u8],
        at: usize,
        end: usize,
        registers: &mut [u64],
        slots: &mut Vec<Slot>,
    ) -> Option<usize> {
        self.steps(bytes, at, end, registers, |step, position, length| {
            let length = length.unwrap_or(0);
            match step {
                Step::Save { .. } => {}
                Step::Run { bytes: size, leaves, cells, .. } => {
                    let leaves = leaves.start as usize..leaves.end as usize;
                    if position + *size as usize + CELL_MARGIN <= bytes.len() {
                        let cells = self.cells.get(cells.start as usize..cells.end as usize)?;
                        let count = leaves.len();
                        // SAFETY: they were made for this run, whose margin is there.
                        unsafe { push_cells(bytes, position, cells, count, &self.leaves, slots) };
                    } else {
                        // The last run of a packet.
                        let leaves = self.leaves.get(leaves)?;
                        slots.extend(leaves.iter().map(|leaf| leaf.slot(bytes, position)));
                    }
                }
                Step::Text { .. } => {
                    slots.push(Slot::Span { len: length as u32, start: position as u64 });
                }
                Step::Span { unit, .. } => {
                    let content = bytes.get(position..position + length)?;
                    let len = text_length(content, *unit) as u32;
                    slots.push(Slot::Span { len, start: position as u64 });
                }
                Step::List { .. } => {
                    let start_bits = position as u64 * 8;
                    slots.push(Slot::Packed { count: length as u32, start_bits });
                }
            }
            Some(())
        })
    }

    /// Both of the above: `see` gets each step with its position and length.
    #[inline(always)]
    fn steps(
        &self,
        bytes: &[u8],
        mut at: usize,
        end: usize,
        registers: &mut [u64],
        mut see: impl FnMut(&Step, usize, Option<usize>) -> Option<()>,
    ) -> Option<usize> {
        for step in &*self.steps {
            match step {
                Step::Run { mask, bytes: size, .. } => {
                    let mask = *mask as usize;
                    at = (at + mask) & !mask;
                    let after = at + *size as usize;
                    if after > end {
                        return None;
                    }
                    see(step, at, None)?;
                    at = after;
                }
                Step::Save { back, save } => {
                    let (load, register) = &self.saves[*save as usize];
                    registers[*register as usize] = load.value(bytes, at - *back as usize);
                }
                Step::Text { unit } => {
                    let length = text_end(bytes.get(at..end)?, *unit)?;
                    see(step, at, Some(length))?;
                    at += length + usize::from(*unit);
                }
                Step::Span { register, .. } => {
                    let length = usize::try_from(registers[*register as usize]).ok()?;
                    if length > end.checked_sub(at)? {
                        return None;
                    }
                    see(step, at, Some(length))?;
                    at += length;
                }
                Step::List { register, mask, stride, last } => {
                    let (count, mask) = (registers[*register as usize], *mask as usize);
                    at = (at + mask) & !mask;
                    let room = end.checked_sub(at)?;
                    let (stride, last) = (u64::from(*stride), u64::from(*last));
                    let size = match count.checked_sub(1) {
                        None => 0,
                        Some(before) => before.checked_mul(stride)?.checked_add(last)?,
                    };
                    // Every element has at least a byte, so the count is small too.
                    if size > room as u64 {
                        return None;
                    }
                    see(step, at, Some(count as usize))?;
                    at += size as usize;
                }
            }
        }
        Some(at)
    }
}

impl Leaf {
    /// A leaf of a run at `base`, as a row holds it.
    pub fn slot(&self, bytes: &[u8], base: usize) -> Slot {
        match self.what {
            What::Number(ref load) => load.slot(bytes, base),
            What::FixedSpan { at, bytes: size, unit } => {
                let start = base + at as usize;
                let content = bytes.get(start..start + size as usize).unwrap_or(&[]);
                let len = text_length(content, unit) as u32;
                Slot::Span { len, start: start as u64 }
            }
            What::FixedList { at_bits, count } => {
                Slot::Packed { count, start_bits: base as u64 * 8 + u64::from(at_bits) }
            }
            // These have steps of their own.
            What::Text | What::Span { .. } | What::List => Slot::Unsigned(0),
        }
    }
}

/// Bytes before the first unit of zero; `None` if there is none.
#[inline]
fn text_end(content: &[u8], unit: u8) -> Option<usize> {
    if unit == 1 {
        return first_zero(content);
    }
    let unit = usize::from(unit);
    let zero = content.chunks_exact(unit).position(|unit| unit.iter().all(|&b| b == 0));
    Some(zero? * unit)
}
