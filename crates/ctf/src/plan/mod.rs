// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The decode plan: metadata compiled to short straight programs.
//!
//! A program is a list of [`Op`]s that a [`Machine`] runs over the bits of a
//! packet; it writes the values of one event into one vector of slots. Lengths
//! and selectors are found while compiling: the field they come from saves its
//! value in a register, the field that needs them reads the register. So at run
//! time there are no names and no trees.

mod cell;
mod compile;
mod fetch;
mod head;
mod header;
mod load;
mod machine;
mod one_variable;
mod real;
mod resolve;
mod same;
mod straight;
mod zeros;

use std::sync::Arc;

use lateralis_model::{ByteOrder, Scalar};

pub use compile::compile;
pub use fetch::fetch_ahead;
pub use head::Head;
pub use header::{Header, Usual};
pub use load::{Form, Load};
pub use machine::{Fault, Machine};
pub use one_variable::MARKS as MARKS_TOGETHER;
pub use straight::{Leaf, Straight, What};
pub use zeros::{ZEROS_BLOCK, first_zero_of, text_length};

use crate::metadata::Roles;

/// Everything needed to read the packets of a trace.
#[derive(Debug, Default)]
pub struct Plan {
    /// Reads a packet header as far as needed to determine its stream class.
    pub packet_header: Program,
    /// One per stream class, in the same order.
    pub streams: Vec<StreamPlan>,
    /// Registers a machine needs.
    pub registers: usize,
}

/// How to read the packets of one stream class.
#[derive(Debug, Default)]
pub struct StreamPlan {
    /// Header and context of a packet.
    pub packet: Program,
    /// Header of an event.
    pub event_header: Program,
    /// One per event class, in the same order; `None` where the class cannot be
    /// read.
    pub events: Vec<Option<EventPlan>>,
    /// The event header, where its layouts are constant.
    pub header: Option<Header>,
    /// Event class index by id: `(id, index)`, ascending.
    ids: Vec<(u64, u32)>,
    /// The same for small ids as a table, `u32::MAX` where there is none.
    table: Vec<u32>,
    /// Whether some of the events name the writer of the following ones.
    pub names_writers: bool,
    /// Whether packets of this class can be read at all.
    pub readable: bool,
}

/// How to read the body of an event.
#[derive(Debug, Default)]
pub struct EventPlan {
    /// Common context, own context, payload.
    pub program: Arc<Program>,
    /// The same as steps, where its shape allows.
    pub straight: Option<Straight>,
    /// Whether this is the record that names the writer of the following events
    /// (Lateralis traces).
    pub names_writer: bool,
}

impl StreamPlan {
    /// Index of the event class with this id.
    #[inline]
    #[must_use]
    pub fn class_index(&self, id: u64) -> Option<u32> {
        if let Some(&index) = self.table.get(usize::try_from(id).ok()?) {
            return (index != u32::MAX).then_some(index);
        }
        let found = self.ids.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some(self.ids[found].1)
    }

    /// Event class index by id for small ids, `u32::MAX` where there is none.
    #[must_use]
    pub fn small_ids(&self) -> &[u32] {
        &self.table
    }

    /// Makes the faster forms of header and events, once all programs are there.
    fn fuse(&mut self) {
        let below = TABLE_IDS.min(self.ids.len() as u64 * TABLE_ENTRIES_PER_ID);
        let small = self.ids.iter().rev().find(|(id, _)| *id < below);
        let mut table = vec![u32::MAX; small.map_or(0, |(id, _)| *id as usize + 1)];
        for (id, index) in &self.ids {
            if let Some(entry) = table.get_mut(*id as usize) {
                *entry = *index;
            }
        }
        self.table = table;
        let events = self.events.iter().flatten();
        let mut read: Vec<u32> = events.flat_map(|event| event.program.reads()).collect();
        read.sort_unstable();
        read.dedup();
        self.names_writers = self.events.iter().flatten().any(|event| event.names_writer);
        self.header = Header::of(&self.event_header, &read);
        let at_byte = self.header.as_ref().is_some_and(|header| !header.any_bit);
        for event in self.events.iter_mut().flatten() {
            event.straight = Straight::of(&event.program, at_byte);
        }
    }

    /// Id of the only event class; events without an id are of it.
    #[must_use]
    pub fn only_id(&self) -> Option<u64> {
        match self.ids.as_slice() {
            [(id, _)] => Some(*id),
            _ => None,
        }
    }
}

/// Ids below this, and below a multiple of their number, are looked up in a table: it stays small
/// for any metadata.
const TABLE_IDS: u64 = 1 << 16;
const TABLE_ENTRIES_PER_ID: u64 = 16;

/// A list of operations with their tables.
#[derive(Debug, Default, PartialEq)]
pub struct Program {
    ops: Vec<Op>,
    choices: Vec<Vec<Choice>>,
}

impl Program {
    /// The registers it reads.
    fn reads(&self) -> impl Iterator<Item = u32> + '_ {
        self.ops.iter().filter_map(|op| match *op {
            Op::Span { length: Count::Register(register), .. }
            | Op::Packed { count: Count::Register(register), .. }
            | Op::Repeat { count: Count::Register(register), .. }
            | Op::Select { register, .. }
            | Op::Maybe { register, .. } => Some(register),
            _ => None,
        })
    }
}

/// One step of a program. Positions are bits from the start of the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    /// Move to a multiple of this number of bits.
    Align(u32),
    /// A number of fixed width.
    Scalar { scalar: Scalar, fast: Fast },
    /// A floating point number of another width than 32 or 64.
    OddReal(Scalar),
    /// A number in LEB128.
    VarInt { signed: bool },
    /// The last number means something to the format.
    Role(Roles),
    /// Keep the last number.
    Save(u32),
    /// Text up to its terminator, in units of this number of bytes.
    TextToNull(u8),
    /// This number of bytes; text ends at the first unit of zero (0: no text).
    Span { length: Count, unit: u8, uuid: bool },
    /// This number of scalars, left in place.
    Packed { count: Count, scalar: Scalar },
    /// Repeats the following steps up to the matching [`Op::Next`], which is
    /// just before `end`.
    Repeat { count: Count, end: u32 },
    /// End of one element.
    Next,
    /// Go on at the option that a register chooses.
    Select { register: u32, signed: bool, table: u32 },
    /// Skip to `end` unless a register is one of the values of a table.
    Maybe { register: u32, signed: bool, table: u32, end: u32 },
    /// Go on elsewhere.
    Jump(u32),
}

/// How many.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Count {
    Fixed(u64),
    Register(u32),
}

/// What a value of a selector leads to.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Choice {
    low: i128,
    high: i128,
    option: u32,
    target: u32,
}

/// Layouts of scalars that need no shifting where they begin at a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fast {
    U8,
    U16,
    U32,
    U64,
    /// Any width, order and place.
    No,
}

impl Fast {
    fn of(scalar: &Scalar) -> Self {
        if scalar.reversed || scalar.order != ByteOrder::Little && scalar.bits != 8 {
            return Self::No;
        }
        match scalar.bits {
            8 => Self::U8,
            16 => Self::U16,
            32 => Self::U32,
            64 => Self::U64,
            _ => Self::No,
        }
    }
}
