// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The short way for events that have only numbers, texts and simple arrays, as
//! most do.

use lateralis_model::{ByteOrder, Encoding, FieldClass, FieldKind, Scalar, ScalarKind, Slot};

use super::encode::{Encoder, Values, raw, real, span, width};
use super::layout::{Length, Node};

/// A value of an event whose values are all single slots, in any structures.
#[derive(Debug, Clone, Copy)]
pub(super) enum Leaf {
    /// 64 bits as they are.
    Word,
    /// An integer of whole bytes.
    Number { bits: u32, signed: bool },
    /// Binary32.
    Single,
    /// Binary64.
    Double,
    /// Yes or no.
    Truth,
    /// Bits of whole bytes.
    Bits { bits: u32 },
    /// Text that is UTF-8.
    Text,
    /// Bytes preceded by their number.
    Blob,
    /// Numbers of this number of bytes that are copied unchanged: as many as the class specifies,
    /// or preceded by their number.
    Numbers { bytes: u32, fixed: Option<u64> },
    /// Nothing is written.
    Skip,
}

/// The leaves of nodes, if they have nothing else.
pub(super) fn leaves<'n>(nodes: impl Iterator<Item = &'n Node>) -> Option<Vec<Leaf>> {
    let mut out = Vec::new();
    for node in nodes {
        collect(node, &mut out)?;
    }
    Some(out)
}

fn collect(node: &Node, out: &mut Vec<Leaf>) -> Option<()> {
    out.push(match node {
        Node::Struct { members, refers: false } => {
            return members.iter().try_for_each(|member| collect(&member.node, out));
        }
        Node::Integer { class, signed, managed: None } => match class.bits {
            64 => Leaf::Word,
            bits if bits.is_multiple_of(8) => Leaf::Number { bits, signed: *signed },
            _ => return None,
        },
        Node::Real(32) => Leaf::Single,
        Node::Real(_) => Leaf::Double,
        Node::Bool => Leaf::Truth,
        Node::Bits { bits, .. } if bits.is_multiple_of(8) => Leaf::Bits { bits: *bits },
        Node::Text { encoding: Encoding::Utf8, .. } => Leaf::Text,
        Node::Bytes { length: Length::Own, .. } => Leaf::Blob,
        Node::Array { element, length, packed: Some(scalar) } => {
            let fixed = match length {
                Length::Own => None,
                Length::Fixed(count) => Some(*count),
                Length::Reused { .. } => return None,
            };
            let bits = width(element).filter(|&bits| bits == scalar.bits && copies(scalar))?;
            Leaf::Numbers { bytes: bits / 8, fixed }
        }
        Node::Wrapped(inner) => return collect(inner, out),
        Node::Skip(FieldClass { kind: FieldKind::Unsigned(_) | FieldKind::Signed(_), .. }) => {
            Leaf::Skip
        }
        _ => return None,
    });
    Some(())
}

/// Whether numbers that lie so are written as they lie.
fn copies(scalar: &Scalar) -> bool {
    (scalar.bits == 8 || scalar.order == ByteOrder::Little)
        && !scalar.reversed
        && scalar.kind != ScalarKind::Bool
        && matches!(scalar.bits, 8 | 16 | 32 | 64)
        && scalar.stride_bits() == u64::from(scalar.bits)
}

impl Encoder {
    /// Writes the values of an event that has only leaves. `None` if an array is
    /// not as its class says: what was written so far is to be taken back.
    #[inline]
    pub fn leaves(&mut self, leaves: &[Leaf], values: &Values<'_>) -> Option<()> {
        self.out.reserve(leaves.len() * 8);
        // Side by side, without looking whether each is there; missing ones are not usual.
        for (leaf, &slot) in leaves.iter().zip(values.slots.get(..leaves.len())?) {
            match *leaf {
                Leaf::Word => self.out.extend_from_slice(&raw(slot).to_le_bytes()),
                Leaf::Number { bits, signed } => {
                    let value = raw(slot);
                    self.check(value, bits, signed);
                    match bits {
                        32 => self.out.extend_from_slice(&(value as u32).to_le_bytes()),
                        16 => self.out.extend_from_slice(&(value as u16).to_le_bytes()),
                        8 => self.out.push(value as u8),
                        _ => self.number(value, bits),
                    }
                }
                Leaf::Double => self.out.extend_from_slice(&real(slot).to_le_bytes()),
                Leaf::Single => self.out.extend_from_slice(&(real(slot) as f32).to_le_bytes()),
                Leaf::Truth => self.out.push(u8::from(raw(slot) != 0)),
                Leaf::Bits { bits } => self.number(raw(slot), bits),
                Leaf::Text => self.text(span(slot, values.bytes), Encoding::Utf8),
                Leaf::Blob => {
                    let bytes = span(slot, values.bytes);
                    self.out.extend_from_slice(&u32::try_from(bytes.len()).ok()?.to_le_bytes());
                    self.out.extend_from_slice(bytes);
                }
                Leaf::Numbers { bytes, fixed } => {
                    let Slot::Packed { count, start_bits } = slot else { return None };
                    match fixed {
                        None => self.out.extend_from_slice(&count.to_le_bytes()),
                        Some(fixed) if fixed == u64::from(count) => {}
                        Some(_) => return None,
                    }
                    let start = start_bits.is_multiple_of(8).then_some(start_bits as usize / 8)?;
                    let end = start.checked_add(count as usize * bytes as usize)?;
                    self.out.extend_from_slice(values.bytes.get(start..end)?);
                }
                Leaf::Skip => {}
            }
        }
        Some(())
    }
}
