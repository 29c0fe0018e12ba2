// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that are equal, kept once: events of many classes have the same layout.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem::discriminant;
use std::sync::Arc;

use super::{Count, Op, Program};

/// Programs by their digest.
#[derive(Default)]
pub(super) struct Same(HashMap<u64, Vec<Arc<Program>>>);

/// Programs of one digest that are compared; beyond that they are not shared.
const SAME_DIGEST: usize = 4;

impl Same {
    /// The program, shared with one that is equal.
    pub fn one_of(&mut self, mut program: Program) -> Arc<Program> {
        let known = self.0.entry(program.digest()).or_default();
        if let Some(same) = known.iter().find(|known| ***known == program) {
            return Arc::clone(same);
        }
        program.ops.shrink_to_fit();
        program.choices.shrink_to_fit();
        let program = Arc::new(program);
        if known.len() < SAME_DIGEST {
            known.push(Arc::clone(&program));
        }
        program
    }
}

impl Program {
    /// A number that equal programs share, and most others do not.
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.choices.len().hash(&mut hasher);
        for op in &self.ops {
            discriminant(op).hash(&mut hasher);
            match op {
                Op::Scalar { scalar, .. } | Op::OddReal(scalar) | Op::Packed { scalar, .. } => {
                    (scalar.bits, scalar.align_bits, scalar.kind as u8).hash(&mut hasher);
                }
                Op::Span { length: Count::Fixed(number), .. } => number.hash(&mut hasher),
                _ => {}
            }
        }
        hasher.finish()
    }
}
