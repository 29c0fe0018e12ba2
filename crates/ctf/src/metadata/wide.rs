// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Widths of numbers: supported widths, and integers wider than any register.

use std::sync::Arc;

use lateralis_model::{Base, ByteOrder, Scalar, ScalarKind};

use super::field::{FieldClass, Meaning, MemberClass, Roles, ScalarClass, StructClass};

/// The widest integer that is read, in bits.
pub(super) const WIDEST: u32 = 4096;

/// Bits of the floating point format of the x87, whose leading digit is stored.
pub(crate) const X87_BITS: u32 = 80;

/// Whether floating point numbers of this number of bits can be read: those of IEEE 754-2008 table
/// 3.5, and of the x87.
pub(super) fn is_known_real(bits: u32) -> bool {
    match bits {
        16 | 32 | 64 | X87_BITS => true,
        128..=WIDEST => bits.is_multiple_of(32),
        _ => false,
    }
}

/// Whether it is a floating point number that no register holds.
pub(crate) fn is_odd_real(scalar: &Scalar) -> bool {
    scalar.kind == ScalarKind::Real && scalar.bits != 32 && scalar.bits != 64
}

/// Bits of a word.
const WORD: u32 = 64;

/// An integer over 64 bits as its words, each named after its first bit: the number is the sum of
/// `bits_N · 2^N`. The highest word has the sign.
///
/// So it is exact, takes the same bits, and needs nothing of the reader that a structure
/// does not.
pub(super) fn integer(scalar: Scalar) -> FieldClass {
    let word = |low: u32| {
        let bits = (scalar.bits - low).min(WORD);
        let highest = low + bits == scalar.bits;
        let kind = if highest { scalar.kind } else { ScalarKind::Unsigned };
        let class = ScalarClass {
            scalar: Scalar { bits, align_bits: 1, kind, ..scalar },
            meaning: Meaning::Integer { base: Base::Hexadecimal, labels: Arc::default() },
            roles: Roles::default(),
            clock: None,
            character: false,
        };
        let name = Arc::from(format!("bits_{low}"));
        MemberClass { name, class: FieldClass::Scalar(Arc::new(class)) }
    };
    let mut members: Vec<MemberClass> = (0..scalar.bits).step_by(WORD as usize).map(word).collect();
    let low_first = (scalar.order == ByteOrder::Little) != scalar.reversed;
    if !low_first {
        members.reverse();
    }
    FieldClass::Struct(Arc::new(StructClass { members, min_align_bits: scalar.align_bits }))
}
