// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bodies with one part of variable size: what most events with a text or a sequence are.
//!
//! Steps may follow each other in any order, so each must be asked what it is. Here that is
//! known, for a third of the instructions.

use super::load::Load;
use super::straight::{Fixed, Step};
use super::zeros::first_zero;

/// Marks of such a body at most: of both runs, and two of the part between them.
pub const MARKS: usize = 4;

/// A run, a part of variable size and another run; either run may be absent.
#[derive(Debug, Clone, Copy)]
pub(super) struct OneVariable {
    before: Option<Fixed>,
    part: Part,
    after: Option<Fixed>,
}

/// The part of variable size. Numbers are loaded from the run before it.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// Bytes up to the first zero.
    Text,
    /// This number of elements: alignment in bytes, less one, and the size of each.
    Elements { count: Load, mask: u32, bytes: u32 },
}

impl OneVariable {
    /// What these steps are; `None` if they are something else. `saves` are those that the
    /// steps name.
    pub fn of(steps: &[Step], saves: &[(Load, u32)]) -> Option<Self> {
        let run = |step: &Step| match *step {
            Step::Run { mask, bytes, .. } => Some(Fixed { mask, bytes }),
            _ => None,
        };
        let before = steps.first().and_then(run);
        let steps = &steps[usize::from(before.is_some())..];
        let (part, rest) = match (before, steps) {
            (_, [Step::Text { unit: 1 }, rest @ ..]) => (Part::Text, rest),
            (Some(before), [Step::Save { back, save }, step, rest @ ..]) => {
                let (count, register) = *saves.get(*save as usize)?;
                let (from, mask, bytes) = match *step {
                    Step::Span { register, .. } => (register, 0, 1),
                    Step::List { register, mask, stride, last } if stride == last => {
                        (register, mask, stride)
                    }
                    _ => return None,
                };
                if from != register || *back != before.bytes {
                    return None;
                }
                (Part::Elements { count, mask, bytes }, rest)
            }
            _ => return None,
        };
        let after = match rest {
            [] => None,
            [step] => Some(run(step)?),
            _ => return None,
        };
        Some(Self { before, part, after })
    }

    /// As [`Straight::walk`](super::Straight::walk).
    #[inline(always)]
    pub fn walk(
        &self,
        bytes: &[u8],
        at: usize,
        end: usize,
        marks: &mut [u32; MARKS],
    ) -> Option<usize> {
        let (mut base, mut at, mut mark) = (at, at, 0);
        if let Some(run) = self.before {
            (base, at) = run.walk(at, end)?;
            marks[0] = base as u32;
            mark = 1;
        }
        let (length, after) = match self.part {
            Part::Text => {
                let length = first_zero(bytes.get(at..end)?)?;
                (length, at + length + 1)
            }
            Part::Elements { ref count, mask, bytes: each } => {
                let count = count.value(bytes, base);
                at = (at + mask as usize) & !(mask as usize);
                let size = count.checked_mul(u64::from(each))?;
                // Every element has a byte at least, so the count is small, too.
                if size > end.checked_sub(at)? as u64 {
                    return None;
                }
                (count as usize, at + size as usize)
            }
        };
        marks[mark] = at as u32;
        marks[mark + 1] = length as u32;
        match self.after {
            Some(run) => {
                let (start, after) = run.walk(after, end)?;
                marks[mark + 2] = start as u32;
                Some(after)
            }
            None => (after <= end).then_some(after),
        }
    }
}
