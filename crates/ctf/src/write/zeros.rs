// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values for fields without a known value: a packet without an event in the source still has a
//! context.

use lateralis_model::{Encoding, Slot};

use super::encode::{Encoder, Values};
use super::layout::{Length, Node, Tag, tag_bytes};

/// Elements that a hostile description may ask for.
const ELEMENTS_MAX: u64 = 1 << 16;

impl Encoder {
    /// Writes zeros, empty texts and as few elements as `node` allows.
    pub(super) fn zeros(&mut self, node: &Node) {
        match node {
            Node::Struct { members, .. } => {
                members.iter().for_each(|member| self.zeros(&member.node));
            }
            Node::Bytes { length, .. } => {
                let count = self.fewest(length) as usize;
                self.begin_at_byte();
                self.out.resize(self.out.len() + count, 0);
            }
            Node::Array { element, length, .. } => {
                let count = self.fewest(length);
                if element.begins_at_byte() {
                    self.begin_at_byte();
                }
                (0..count).for_each(|_| self.zeros(element));
            }
            Node::Variant { options, tag } => {
                let index = match tag {
                    Tag::Own => {
                        self.number(0, tag_bytes(options.len()) as u32 * 8);
                        0
                    }
                    Tag::Reused { values, .. } => values
                        .iter()
                        .position(|ranges| ranges.iter().any(|range| range.contains(0)))
                        .unwrap_or(0),
                };
                if let Some(option) = options.get(index) {
                    self.zeros(&option.node);
                }
            }
            Node::Optional(_) => self.out.push(0),
            Node::Wrapped(inner) => self.zeros(inner),
            Node::Skip(_) => {}
            Node::Text { convert: true, .. } => self.text(&[], Encoding::Utf8),
            Node::Text { encoding, .. } => self.text(&[], *encoding),
            Node::Integer { .. } | Node::Bool | Node::Bits { .. } | Node::Real(_) => {
                let mut zero = Values { slots: &[Slot::Unsigned(0)], bytes: &[] };
                // A number always fits.
                let _ = self.value(node, &mut zero, 0);
            }
        }
    }

    fn fewest(&mut self, length: &Length) -> u64 {
        match length {
            Length::Fixed(count) => (*count).min(ELEMENTS_MAX),
            Length::Own => {
                self.out.extend_from_slice(&0u32.to_le_bytes());
                0
            }
            // The selector field is zero as well.
            Length::Reused { .. } => 0,
        }
    }
}
