// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Event headers as constant layouts.
//!
//! A header is a run of numbers, or, as LTTng writes it, a number that chooses
//! between a short layout and a long one. Either is known when the metadata
//! are: what is left for every event is to load an id and a time.

use super::load::{Form, Load};
use super::{Choice, Op, Program};
use crate::metadata::Role;

/// More layouts than this are no header that anybody writes.
const LAYOUTS_MAX: usize = 16;

/// A header whose layouts are constant.
#[derive(Debug)]
pub struct Header {
    /// Alignment in bytes, less one.
    mask: usize,
    /// Whether events may begin at any bit and this header aligns nothing.
    pub any_bit: bool,
    /// Whether [`Header::read`] may be told that all numbers are simple ones.
    pub simple: bool,
    selector: Option<(Load, usize)>,
    /// Layouts with the values of the selector that choose them.
    layouts: Vec<(u64, u64, Layout)>,
}

/// Where things are in a header.
#[derive(Debug, Clone, Copy)]
struct Layout {
    bytes: usize,
    id: Option<Load>,
    /// Whether the selector is the id.
    id_selects: bool,
    clock: Option<Load>,
    /// The bits of the clock that the header tells.
    clock_mask: u64,
}

/// What a header says.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    /// Id of the event class, if it says.
    pub id: Option<u64>,
    /// Byte behind the header.
    pub after: usize,
}

impl Header {
    /// The layouts of a header program; `None` if they are not constant or
    /// mean more than id and clock. `kept` are the registers that something
    /// behind the header needs.
    pub fn of(program: &Program, kept: &[u32]) -> Option<Self> {
        let align = match program.ops.first() {
            Some(Op::Align(bits)) => (*bits).max(8),
            _ => 8,
        };
        let mut header = Self {
            mask: align as usize / 8 - 1,
            any_bit: !matches!(program.ops.first(), Some(Op::Align(8..))),
            simple: false,
            selector: None,
            layouts: Vec::new(),
        };
        if header.any_bit && !program.ops.is_empty() {
            return None;
        }
        let walk = Walk { program, kept, align, bits: 0, last: None, saved: Vec::new() };
        let first = Found::default();
        match walk.run(0, first)? {
            End::Done(layout) => header.layouts.push((0, u64::MAX, layout)),
            End::Select { walk, next: found, selector, choices } => {
                let bytes = (walk.bits as usize).div_ceil(8);
                header.selector = Some((selector, bytes));
                if choices.len() > LAYOUTS_MAX {
                    return None;
                }
                for choice in choices {
                    // Values below zero cannot be: the selector is unsigned.
                    let low = u64::try_from(choice.low.max(0)).ok()?;
                    let Ok(high) = u64::try_from(choice.high.min(i128::from(u64::MAX))) else {
                        continue;
                    };
                    match walk.clone().run(choice.target as usize, found)? {
                        End::Done(layout) => header.layouts.push((low, high, layout)),
                        End::Select { .. } => return None,
                    }
                }
            }
        }
        let selector = header.selector.map(|(load, _)| load);
        for (_, _, layout) in &mut header.layouts {
            layout.id_selects =
                layout.id.zip(selector).is_some_and(|(id, selector)| id.is_same(&selector));
        }
        let of_layouts = header.layouts.iter().flat_map(|(_, _, layout)| [layout.id, layout.clock]);
        header.simple = of_layouts.chain([selector]).flatten().all(|load| load.is_simple());
        Some(header)
    }

    /// Reads the header at the first possible byte from `at` on, and moves the
    /// clock. `None` if it does not fit before `end` or no layout is chosen; the
    /// clock is then as before. `SIMPLE` only where [`Header::simple`].
    #[inline(always)]
    pub fn read<const SIMPLE: bool>(
        &self,
        bytes: &[u8],
        at: usize,
        end: usize,
        clock: &mut u64,
    ) -> Option<Read> {
        let value = |load: &Load, base| match SIMPLE {
            true => load.simple_value(bytes, base),
            false => load.value(bytes, base),
        };
        let base = (at + self.mask) & !self.mask;
        let mut selected = 0;
        let layout = match &self.selector {
            None => &self.layouts.first()?.2,
            Some((selector, size)) => {
                if base + size > end {
                    return None;
                }
                selected = value(selector, base);
                let chosen =
                    |(low, high, _): &&(u64, u64, Layout)| *low <= selected && selected <= *high;
                &self.layouts.iter().find(chosen)?.2
            }
        };
        let after = base + layout.bytes;
        if after > end {
            return None;
        }
        if let Some(load) = &layout.clock {
            // The difference modulo the bits that are told: a clock that runs
            // over them once is put right [CTF 1.8.3 §8].
            let told = value(load, base);
            *clock = clock.wrapping_add(told.wrapping_sub(*clock) & layout.clock_mask);
        }
        let id = match &layout.id {
            Some(_) if layout.id_selects => Some(selected),
            Some(load) => Some(value(load, base)),
            None => None,
        };
        Some(Read { id, after })
    }
}

/// What has been found on the way.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    id: Option<Load>,
    clock: Option<Load>,
}

/// A walk over the operations with known distances.
#[derive(Clone)]
struct Walk<'p> {
    program: &'p Program,
    kept: &'p [u32],
    align: u32,
    bits: u32,
    last: Option<Load>,
    saved: Vec<(u32, Load)>,
}

enum End<'p> {
    Done(Layout),
    Select { walk: Walk<'p>, next: Found, selector: Load, choices: &'p [Choice] },
}

impl<'p> Walk<'p> {
    fn run(mut self, first: usize, mut found: Found) -> Option<End<'p>> {
        let program = self.program;
        let mut next = first;
        while let Some(op) = program.ops.get(next) {
            next += 1;
            match *op {
                Op::Align(bits) if bits <= self.align => {
                    self.bits = self.bits.next_multiple_of(bits.max(1));
                }
                Op::Scalar { ref scalar, .. } => {
                    self.last = Some(Load::of(scalar, self.bits));
                    self.bits += scalar.bits;
                    if self.bits > 1 << 20 {
                        return None;
                    }
                }
                Op::Role(roles) => {
                    let load = self.last?;
                    if roles.contains(Role::EventClassId) {
                        found.id = Some(load);
                    }
                    if roles.contains(Role::Clock) {
                        let plain = load.form == Form::Unsigned && found.clock.is_none();
                        found.clock = Some(load).filter(|_| plain);
                        found.clock?;
                    }
                }
                Op::Save(register) => {
                    if self.kept.contains(&register) {
                        return None;
                    }
                    self.saved.push((register, self.last?));
                }
                Op::Select { register, signed: false, table } => {
                    let of_register = |(saved, _): &&(u32, Load)| *saved == register;
                    let selector = self.saved.iter().rev().find(of_register)?.1;
                    let choices = program.choices.get(table as usize)?;
                    return Some(End::Select { walk: self, next: found, selector, choices });
                }
                // Forwards only: jumps lead behind a variant.
                Op::Jump(target) if target as usize >= next => next = target as usize,
                _ => return None,
            }
        }
        if !self.bits.is_multiple_of(8) {
            return None;
        }
        let clock_mask = match found.clock.map_or(64, |load| load.bits()) {
            bits @ 0..64 => (1 << bits) - 1,
            _ => u64::MAX,
        };
        let bytes = self.bits as usize / 8;
        Some(End::Done(Layout {
            bytes,
            id: found.id,
            id_selects: false,
            clock: found.clock,
            clock_mask,
        }))
    }
}
