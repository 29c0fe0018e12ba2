// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fields of a run as a row wants them.
//!
//! Rows of many streams in the order of time come in no order of classes, so that
//! nothing about a field can be guessed: numbers of all usual layouts are read by the
//! same few instructions, without a branch for each.

use std::mem::MaybeUninit;
use std::ops::Range;

use lateralis_model::{NumberKind, Slot};

use super::load::{Form, Load};
use super::straight::{Leaf, What};
use super::zeros::{ZEROS_BLOCK, first_zero_of, text_length};

/// Cells are read in groups of this number. The exact number is unpredictable for events in no
/// order, but it is at most this for most events. Discarding a few takes less time than a wrong
/// prediction.
const TOGETHER: usize = 2;

/// Cells that are read together.
pub type Cells = [Cell; TOGETHER];

/// Bytes after a run that reading its cells may access.
pub const CELL_MARGIN: usize = ZEROS_BLOCK;

/// How to read one leaf of a run.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// Of the word of 8 bytes that begins at `at`, after shifting.
    mask: u64,
    /// The highest bit of a signed number.
    sign: u64,
    /// First byte, from the base of the run.
    at: u32,
    /// Number of bytes of a text; index of a leaf that is no cell.
    size: u32,
    number: NumberKind,
    shift: u8,
    kind: Kind,
}

/// What a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// Text of fixed size in units of a byte.
    Text,
    /// Whatever else a leaf may be.
    Other,
}

impl Cell {
    /// The cell of a leaf with its index, in a run of this number of bytes.
    fn of(leaf: &Leaf, index: u32, run_bytes: u32) -> Self {
        let other = Self { size: index, kind: Kind::Other, ..NOTHING };
        let cell = match leaf.what {
            What::Number(ref load) => Self::number(load, other),
            What::FixedSpan { at, bytes, unit: 1 } => {
                Some(Self { kind: Kind::Text, at, size: bytes, ..other })
            }
            _ => None,
        };
        cell.filter(|cell| cell.at <= run_bytes).unwrap_or(other)
    }

    fn number(load: &Load, other: Self) -> Option<Self> {
        let (shift, mask, swap) = load.as_shift()?;
        let (number, sign) = match load.form {
            Form::Unsigned => (NumberKind::Unsigned, 0),
            Form::Signed => (NumberKind::Signed, mask ^ mask >> 1),
            Form::Double => (NumberKind::Real, 0),
            Form::Single => return None,
        };
        let at = load.at;
        (!swap).then_some(Self { kind: Kind::Number, mask, sign, at, number, shift, ..other })
    }
}

/// A number that says nothing.
const NOTHING: Cell = Cell {
    mask: 0,
    sign: 0,
    at: 0,
    size: 0,
    number: NumberKind::Unsigned,
    shift: 0,
    kind: Kind::Number,
};

/// Appends the cells of a run of this number of bytes, which contains these of the event's leaves.
/// Returns their positions.
pub fn add_cells(
    all: &mut Vec<Cells>,
    leaves: &[Leaf],
    inside: &Range<u32>,
    run_bytes: u32,
) -> Range<u32> {
    let first = all.len() as u32;
    let cell = |index: u32| Cell::of(&leaves[index as usize], index, run_bytes);
    let mut cells = inside.clone().map(cell).peekable();
    while cells.peek().is_some() {
        all.push(std::array::from_fn(|_| cells.next().unwrap_or(NOTHING)));
    }
    first..all.len() as u32
}

/// Appends the `count` slots that the cells of a run say that begins at byte `base`; `leaves`
/// are those of the event.
///
/// # Safety
/// The run for which the cells were made ends at least [`CELL_MARGIN`] bytes before the
/// end of `bytes`.
#[inline(never)]
pub unsafe fn push_cells(
    bytes: &[u8],
    base: usize,
    cells: &[Cells],
    count: usize,
    leaves: &[Leaf],
    slots: &mut Vec<Slot>,
) {
    let run = &bytes[base..];
    slots.reserve(cells.len() * TOGETHER);
    debug_assert!(count <= cells.len() * TOGETHER);
    let len = slots.len();
    let mut next = slots.spare_capacity_mut().as_mut_ptr();
    for cells in cells {
        for cell in cells {
            // SAFETY: room for all cells was reserved, and each takes one slot of it.
            let slot = unsafe { &mut *next };
            next = next.wrapping_add(1);
            // SAFETY: a cell begins at most where its run ends [`Cell::of`], and the caller
            // guarantees CELL_MARGIN bytes after it.
            unsafe { push_cell(run, base, cell, slot) };
            if cell.kind == Kind::Other {
                *slot = other(&leaves[cell.size as usize], bytes, base);
            }
        }
    }
    // SAFETY: as many as there are cells have been written after the first `len`, and `count` is
    // the number of those that are not padding.
    unsafe { slots.set_len(len + count.min(cells.len() * TOGETHER)) };
}

/// Reads one cell of a run, which begins at byte `base` of its packet and of `run`.
///
/// # Safety
/// There are [`CELL_MARGIN`] bytes of `run` from the cell's first byte on.
#[inline(always)]
unsafe fn push_cell(run: &[u8], base: usize, cell: &Cell, slot: &mut MaybeUninit<Slot>) {
    let at = cell.at as usize;
    debug_assert!(at + CELL_MARGIN <= run.len());
    // Written where it is known: put together first and copied then, a slot would
    // wait for its own parts to be stored.
    if cell.kind == Kind::Number {
        // SAFETY: these are the first 8 of the bytes that the caller promises.
        let word = unsafe { run.as_ptr().add(at).cast::<[u8; 8]>().read() };
        let value = (u64::from_le_bytes(word) >> (cell.shift & 63)) & cell.mask;
        // The bits above the highest become what it is.
        let value = (value ^ cell.sign).wrapping_sub(cell.sign);
        slot.write(Slot::number(cell.number, value));
    } else if cell.kind == Kind::Text {
        // SAFETY: these are the bytes that the caller promises.
        let head = unsafe { &*run.as_ptr().add(at).cast::<[u8; ZEROS_BLOCK]>() };
        let size = cell.size as usize;
        let len = match first_zero_of(head) {
            ZEROS_BLOCK.. => long_text(&run[at..at + size]),
            zero => zero.min(size),
        };
        slot.write(Slot::Span { len: len as u32, start: (base + at) as u64 });
    }
}

#[cold]
#[inline(never)]
fn long_text(content: &[u8]) -> usize {
    text_length(content, 1)
}

#[cold]
#[inline(never)]
fn other(leaf: &Leaf, bytes: &[u8], base: usize) -> MaybeUninit<Slot> {
    MaybeUninit::new(leaf.slot(bytes, base))
}
