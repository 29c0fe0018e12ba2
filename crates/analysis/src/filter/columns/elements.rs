// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of array elements, which are contiguous in the packet.

use lateralis_model::{
    FieldClass, FieldKind, IntegerClass, Label, Lists, Scalar, ScalarKind, Slot,
};

use super::words::{Words, each};
use super::{Answer, Integers};

/// An integer element of the arrays in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// The column.
    pub column: usize,
    /// Index of the element.
    index: u32,
    scalar: Scalar,
}

impl Element {
    /// The element with this index of the arrays of a class. `None` if it is no integer, or not at a
    /// fixed offset.
    #[must_use]
    pub fn of(column: usize, array: &FieldClass, index: usize) -> Option<Self> {
        let FieldKind::Array { element, packed: Some(scalar), .. } = &array.kind else {
            return None;
        };
        let kind = match &element.kind {
            FieldKind::Unsigned(_) => ScalarKind::Unsigned,
            FieldKind::Signed(_) => ScalarKind::Signed,
            _ => return None,
        };
        let index = u32::try_from(index).ok()?;
        (scalar.kind == kind).then_some(Self { column, index, scalar: *scalar })
    }

    /// The bits of the element; `None` if the array is shorter.
    fn bits(&self, lists: &Lists<'_>, event: usize, bytes: &[u8]) -> Option<u64> {
        let (start, count) = (lists.starts_bits().get(event)?, lists.counts().get(event)?);
        if self.index >= *count {
            return None;
        }
        let at = start.checked_add(u64::from(self.index) * self.scalar.stride_bits());
        // Elements outside of the packet are read as 0.
        let raw = at.and_then(|at| self.scalar.raw(bytes, at)).unwrap_or(0);
        Some(match Slot::from_raw(raw, self.scalar.bits, self.scalar.kind) {
            Slot::Signed(value) => value as u64,
            _ => raw,
        })
    }
}

/// Labels of the elements of an integer array, and whether they are signed.
#[must_use]
pub fn element_labels(array: &FieldClass) -> (bool, &[Label]) {
    match &array.kind {
        FieldKind::Array { element, .. } => match &element.kind {
            FieldKind::Unsigned(IntegerClass { labels, .. }) => (false, labels),
            FieldKind::Signed(IntegerClass { labels, .. }) => (true, labels),
            _ => (false, &[]),
        },
        _ => (false, &[]),
    }
}

/// A test of an element.
#[derive(Debug, Clone)]
pub struct ElementTest {
    /// The element.
    pub element: Element,
    /// The set that it is tested against.
    pub set: Integers,
    /// Result if the array is too short.
    pub absent: Answer,
    /// Result if the array is empty.
    pub empty: Answer,
}

impl ElementTest {
    /// Replaces the results for the events of `care`: first those with yes, then those to ask. The first
    /// event of the block is `from`.
    ///
    /// Cost: a number read from the packet for each relevant event.
    pub(super) fn test(
        &self,
        (lists, bytes): (&Lists<'_>, &[u8]),
        from: usize,
        care: &Words,
        values: &mut Vec<u64>,
        (yes, ask): (&mut Words, &mut Words),
    ) {
        let mut there = *care;
        let mut missing: [(Answer, Words); 2] =
            [(self.absent, Words::default()), (self.empty, Words::default())];
        values.clear();
        for at in each(care) {
            values.resize(at, 0);
            match self.element.bits(lists, from + at, bytes) {
                Some(bits) => values.push(bits),
                None => {
                    let is_empty = lists.counts().get(from + at) == Some(&0);
                    there[at / 64] ^= 1 << (at % 64);
                    missing[usize::from(is_empty)].1[at / 64] |= 1 << (at % 64);
                }
            }
        }
        self.set.test(values, &there, yes);
        *ask = Words::default();
        for (answer, words) in missing {
            let target = match answer {
                Answer::No => continue,
                Answer::Yes => &mut *yes,
                Answer::Ask => &mut *ask,
            };
            target.iter_mut().zip(words).for_each(|(all, more)| *all |= more);
        }
    }
}
