// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Call stacks as packets intern them [protos/perfetto/trace/profiling/profile_common.proto: `Mapping`,
//! `Frame`, `Callstack`].

use std::collections::HashMap;

use super::wire::{Message, Wire, varint};

/// Field numbers in `InternedData`.
pub const FRAMES: u32 = 6;
pub const CALLSTACKS: u32 = 7;
pub const MAPPINGS: u32 = 19;
/// Frames of a stack that are kept, the innermost.
const DEPTH_MAX: usize = 1024;

/// The return location of a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame {
    /// The number of the function's name; 0: it has none.
    pub function: u64,
    /// The mapping; 0: none.
    pub mapping: u64,
    /// Its address from the beginning of the mapped file.
    pub relative_address: u64,
}

/// Tables of a sequence.
#[derive(Debug, Default)]
pub struct Stacks {
    frames: HashMap<u64, Frame>,
    /// Frames, the outermost first.
    callstacks: HashMap<u64, Vec<u64>>,
    /// Parts of the path of a file.
    mappings: HashMap<u64, Vec<u64>>,
}

/// Adds the numbers of a repeated field, packed or not.
pub fn numbers(value: Wire<'_>, to: &mut Vec<u64>) {
    match value {
        Wire::Bytes(mut packed) => to.extend(std::iter::from_fn(|| varint(&mut packed))),
        other => to.push(other.number()),
    }
}

impl Stacks {
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes a member of `InternedData`, if it is one of a stack.
    pub fn intern(&mut self, table: u32, message: Message<'_>) {
        let mut iid = 0;
        match table {
            FRAMES => {
                let mut frame = Frame::default();
                for (number, value) in message {
                    match number {
                        1 => iid = value.number(),
                        2 => frame.function = value.number(),
                        3 => frame.mapping = value.number(),
                        4 => frame.relative_address = value.number(),
                        _ => (),
                    }
                }
                self.frames.insert(iid, frame);
            }
            CALLSTACKS | MAPPINGS => {
                let list = if table == CALLSTACKS { 2 } else { 7 };
                let mut found = Vec::new();
                for (number, value) in message {
                    match number {
                        1 => iid = value.number(),
                        of if of == list => numbers(value, &mut found),
                        _ => (),
                    }
                }
                let into =
                    if table == CALLSTACKS { &mut self.callstacks } else { &mut self.mappings };
                into.insert(iid, found);
            }
            _ => (),
        }
    }

    /// Frames of a stack, the innermost first; none where nothing was said of it.
    pub fn frames(&self, callstack: u64) -> impl Iterator<Item = Frame> + '_ {
        let frames = self.callstacks.get(&callstack).into_iter().flatten().rev().take(DEPTH_MAX);
        frames.map(|frame| self.frames.get(frame).copied().unwrap_or_default())
    }

    /// Numbers of the parts of the path of a mapped file.
    pub fn path(&self, mapping: u64) -> &[u64] {
        self.mappings.get(&mapping).map_or(&[], Vec::as_slice)
    }
}
