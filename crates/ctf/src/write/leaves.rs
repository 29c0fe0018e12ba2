// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The short way for events that have only numbers and texts, as most do.

use lateralis_model::{Encoding, FieldClass, FieldKind, Slot};

use super::encode::{Encoder, Values, raw, real, span};
use super::layout::Node;

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
    /// Text that is UTF-8.
    Text,
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
        Node::Text { encoding: Encoding::Utf8, .. } => Leaf::Text,
        Node::Skip(FieldClass { kind: FieldKind::Unsigned(_) | FieldKind::Signed(_), .. }) => {
            Leaf::Skip
        }
        _ => return None,
    });
    Some(())
}

impl Encoder {
    /// Writes the values of an event that has only leaves.
    #[inline]
    pub fn leaves(&mut self, leaves: &[Leaf], values: &Values<'_>) {
        self.out.reserve(leaves.len() * 8);
        for (index, leaf) in leaves.iter().enumerate() {
            let slot = values.slots.get(index).copied().unwrap_or(Slot::Unsigned(0));
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
                Leaf::Text => self.text(span(slot, values.bytes), Encoding::Utf8),
                Leaf::Skip => {}
            }
        }
    }
}
