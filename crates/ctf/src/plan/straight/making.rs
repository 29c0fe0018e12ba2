// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Steps out of operations: fields whose distance is known are put together as runs.

use lateralis_model::Scalar;

use super::super::Count;
use super::{Cells, Fixed, Leaf, Load, OneVariable, Op, Step, Straight, What, add_cells};

/// A run longer than this is no run: offsets stay small.
const RUN_BITS_MAX: u64 = 1 << 27;

/// The run being made.
struct Run {
    align: u32,
    bits: u64,
    first_leaf: u32,
    saves: Vec<(Load, u32)>,
}

/// The number read last, which may be saved.
enum Last {
    None,
    Number(Load),
}

/// Straight steps while operations are added one by one.
pub(super) struct Making {
    steps: Vec<Step>,
    saves: Vec<(Load, u32)>,
    leaves: Vec<Leaf>,
    cells: Vec<Cells>,
    marks: u32,
    run: Option<Run>,
    /// Alignment that the next field needs, in bits.
    align: u32,
    last: Last,
}

impl Making {
    pub(super) fn new() -> Self {
        Self {
            steps: Vec::new(),
            saves: Vec::new(),
            leaves: Vec::new(),
            cells: Vec::new(),
            marks: 0,
            run: None,
            align: 8,
            last: Last::None,
        }
    }

    /// Adds one operation; `None` if it does not fit.
    pub(super) fn op(&mut self, op: &Op) -> Option<()> {
        match *op {
            Op::Align(bits) => self.align(bits)?,
            Op::Scalar { ref scalar, .. } => {
                let at_bits = self.run().bits as u32;
                let load = Load::of(scalar, at_bits);
                self.leaf(What::Number(load));
                self.grow(u64::from(scalar.bits))?;
                self.last = Last::Number(load);
            }
            Op::Save(register) => match self.last {
                Last::Number(load) => self.run.as_mut()?.saves.push((load, register)),
                Last::None => return None,
            },
            Op::TextToNull(unit) => {
                self.close()?;
                self.variable(Step::Text { unit }, What::Text);
            }
            Op::Span { length: Count::Fixed(bytes), unit, .. } => {
                self.align(8)?;
                let at = (self.run().bits / 8) as u32;
                let bits = bytes.checked_mul(8).filter(|&bits| bits < RUN_BITS_MAX)?;
                self.leaf(What::FixedSpan { at, bytes: bytes as u32, unit });
                self.grow(bits)?;
            }
            Op::Span { length: Count::Register(register), unit, .. } => {
                self.close()?;
                self.variable(Step::Span { register, unit }, What::Span { unit });
            }
            Op::Packed { count: Count::Fixed(count), ref scalar } => {
                self.align(scalar.align_bits.max(1))?;
                let at_bits = self.run().bits as u32;
                let bits = match count.checked_sub(1) {
                    None => 0,
                    Some(before) => {
                        before.checked_mul(scalar.stride_bits())? + u64::from(scalar.bits)
                    }
                };
                let bits = Some(bits).filter(|&bits| bits < RUN_BITS_MAX)?;
                self.leaf(What::FixedList { at_bits, count: u32::try_from(count).ok()? });
                self.grow(bits)?;
            }
            Op::Packed { count: Count::Register(register), ref scalar } => {
                self.list(register, scalar)?;
            }
            Op::OddReal(_)
            | Op::Role(_)
            | Op::VarInt { .. }
            | Op::Repeat { .. }
            | Op::Next
            | Op::Select { .. }
            | Op::Maybe { .. }
            | Op::Jump(_) => return None,
        }
        Some(())
    }

    fn list(&mut self, register: u32, scalar: &Scalar) -> Option<()> {
        let stride = scalar.stride_bits();
        if !stride.is_multiple_of(8) || !scalar.bits.is_multiple_of(8) {
            return None;
        }
        self.close()?;
        let align = scalar.align_bits.max(std::mem::replace(&mut self.align, 8)).max(8);
        let (mask, last) = (align / 8 - 1, scalar.bits / 8);
        let stride = u32::try_from(stride / 8).ok()?;
        self.variable(Step::List { register, mask, stride, last }, What::List);
        Some(())
    }

    /// Inside a run that is aligned as much the distance is known; else a new
    /// run begins.
    fn align(&mut self, bits: u32) -> Option<()> {
        match &mut self.run {
            Some(run) if bits <= run.align => {
                run.bits = run.bits.next_multiple_of(u64::from(bits.max(1)));
            }
            Some(_) => {
                self.close()?;
                self.align = bits.max(8);
            }
            None => self.align = self.align.max(bits),
        }
        Some(())
    }

    fn run(&mut self) -> &mut Run {
        let first_leaf = self.leaves.len() as u32;
        let align = &mut self.align;
        self.run.get_or_insert_with(|| Run {
            align: std::mem::replace(align, 8),
            bits: 0,
            first_leaf,
            saves: Vec::new(),
        })
    }

    fn grow(&mut self, bits: u64) -> Option<()> {
        let run = self.run();
        run.bits += bits;
        (run.bits < RUN_BITS_MAX).then_some(())
    }

    fn leaf(&mut self, what: What) {
        self.leaves.push(Leaf { mark: self.marks, what });
        self.last = Last::None;
    }

    /// A step that leaves two marks and is one leaf.
    fn variable(&mut self, step: Step, what: What) {
        // Alignment that nothing fixed followed: a run of nothing.
        if self.align > 8 {
            self.run();
            let _ = self.close();
        }
        self.leaf(what);
        self.marks += 2;
        self.steps.push(step);
    }

    /// Ends the run; `None` if it does not end at a byte.
    fn close(&mut self) -> Option<()> {
        let Some(run) = self.run.take() else {
            return Some(());
        };
        if !run.bits.is_multiple_of(8) {
            return None;
        }
        let bytes = (run.bits / 8) as u32;
        let leaves = run.first_leaf..self.leaves.len() as u32;
        let cells = add_cells(&mut self.cells, &self.leaves, &leaves, bytes);
        self.steps.push(Step::Run { mask: run.align / 8 - 1, bytes, leaves, cells });
        for save in run.saves {
            self.steps.push(Step::Save { back: bytes, save: self.saves.len() as u32 });
            self.saves.push(save);
        }
        self.marks += 1;
        self.last = Last::None;
        Some(())
    }

    /// `None` if the event does not end at a byte.
    pub(super) fn finish(mut self) -> Option<Straight> {
        // An event without fields is a run of nothing.
        if self.align > 8 || self.steps.is_empty() {
            self.run();
        }
        self.close()?;
        let needed: Vec<u32> = self.steps.iter().filter_map(Step::register).collect();
        let saves = &self.saves;
        self.steps.retain(|step| match step {
            Step::Save { save, .. } => needed.contains(&saves[*save as usize].1),
            _ => true,
        });
        let fixed = match self.steps.as_slice() {
            [Step::Run { mask, bytes, .. }] => Some(Fixed { mask: *mask, bytes: *bytes }),
            _ => None,
        };
        let Self { steps, saves, leaves, cells, marks, .. } = self;
        let one_variable = OneVariable::of(&steps, &saves);
        let (steps, saves) = (steps.into_boxed_slice(), saves.into_boxed_slice());
        let (leaves, cells) = (leaves.into_boxed_slice(), cells.into_boxed_slice());
        Some(Straight { steps, saves, leaves, cells, marks, fixed, one_variable })
    }
}

impl Step {
    /// The register it takes its length from.
    fn register(&self) -> Option<u32> {
        match self {
            Self::Span { register, .. } | Self::List { register, .. } => Some(*register),
            Self::Run { .. } | Self::Save { .. } | Self::Text { .. } => None,
        }
    }
}
