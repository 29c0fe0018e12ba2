// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Header and context of packets as constant layouts.
//!
//! Of most traces every field of them lies at the same place in all packets. An index of many
//! packets is then made of a load each, without the machine.

use super::load::{Form, Load};
use super::{Count, Op, Program};
use crate::metadata::{Role, Roles};

/// No writer makes longer ones.
const HEAD_BITS_MAX: u64 = 1 << 16;

/// Fields at constant offsets from the first byte of a packet.
#[derive(Debug)]
pub struct Head {
    /// Numbers that mean something to the format, in their order.
    numbers: Vec<(Roles, Load)>,
    /// First byte of the UUID.
    uuid: Option<usize>,
    /// One for each field, `None` of those that are no numbers ≥ 0.
    pub fields: Vec<Option<Load>>,
    /// Where it ends.
    pub bits: u64,
}

impl Head {
    /// The layout of a program; `None` if it is not constant.
    pub fn of(program: &Program) -> Option<Self> {
        let mut head = Self { numbers: Vec::new(), uuid: None, fields: Vec::new(), bits: 0 };
        let mut last = None;
        for op in &program.ops {
            match *op {
                // Of metadata that ask for very much: left to the machine.
                _ if head.bits > HEAD_BITS_MAX => return None,
                Op::Align(bits) => head.bits = head.bits.next_multiple_of(u64::from(bits.max(1))),
                Op::Scalar { ref scalar, .. } => {
                    let load = Load::of(scalar, u32::try_from(head.bits).ok()?);
                    last = Some(load).filter(|load| load.form == Form::Unsigned);
                    head.fields.push(last);
                    head.bits += u64::from(scalar.bits);
                }
                Op::Role(roles) => head.numbers.push((roles, last?)),
                Op::Span { length: Count::Fixed(length), uuid, .. } => {
                    if uuid {
                        let is_one = length == 16 && head.bits.is_multiple_of(8);
                        head.uuid = Some(usize::try_from(head.bits / 8).ok().filter(|_| is_one)?);
                    }
                    head.fields.push(None);
                    head.bits = head.bits.checked_add(length.checked_mul(8)?)?;
                }
                // Nothing in a constant layout reads what is kept.
                Op::Save(_) => {}
                _ => return None,
            }
        }
        Some(head)
    }

    /// Whether all of it is within this number of bytes.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.bits <= bytes.len() as u64 * 8
    }

    /// The last number with a role; 0 where it is not inside `bytes`.
    pub fn role(&self, role: Role, bytes: &[u8]) -> Option<u64> {
        let has = |(roles, _): &&(Roles, Load)| roles.contains(role);
        self.numbers.iter().rev().find(has).map(|(_, load)| load.value(bytes, 0))
    }

    /// Whether a number has a role.
    pub fn has(&self, role: Role) -> bool {
        self.numbers.iter().any(|(roles, _)| roles.contains(role))
    }

    /// Whether more than one number contains the clock: then the machine has to follow it.
    pub fn tells_clocks(&self) -> bool {
        self.numbers.iter().filter(|(roles, _)| roles.contains(Role::Clock)).count() > 1
    }

    /// The UUID, if there is one.
    pub fn uuid(&self, bytes: &[u8]) -> Option<[u8; 16]> {
        bytes.get(self.uuid?..)?.first_chunk().copied()
    }
}
