// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules of CTF 2 about whole classes: permitted positions of roles, and that no value selects two
//! options.

use std::sync::Arc;

use lateralis_model::ScalarKind;

use super::super::field::{
    FieldClass, Length, OptionClass, Role, Roles, Scope, Selection, chosen_twice,
};

/// Bits of a magic number.
const MAGIC_BITS: u32 = 32;

/// Bytes of a UUID.
const UUID_BYTES: u64 = 16;

/// The roles that fields of a scope may have [CTF2-SPEC-2.0, roles].
fn allowed(scope: Scope) -> &'static [Role] {
    match scope {
        Scope::PacketHeader => &[Role::Magic, Role::Uuid, Role::StreamClassId, Role::StreamId],
        Scope::PacketContext => &[
            Role::PacketSize,
            Role::ContentSize,
            Role::Clock,
            Role::PacketEnd,
            Role::Discarded,
            Role::Sequence,
        ],
        Scope::EventHeader => &[Role::Clock, Role::EventClassId],
        Scope::CommonContext | Scope::EventContext | Scope::Payload => &[],
    }
}

/// Removes roles at positions where they have no meaning, with a diagnostic: a time stamp in a
/// payload must not set the clock of the stream.
pub(super) fn keep_roles(class: &mut FieldClass, scope: Scope, faults: &mut Vec<String>) {
    // A class without such roles stays shared.
    if may_stay(class, scope) {
        return;
    }
    match class {
        FieldClass::Scalar(inner) => {
            let integer = inner.scalar.kind == ScalarKind::Unsigned;
            let bits = inner.scalar.bits;
            let roles = &mut Arc::make_mut(inner).roles;
            *roles = kept(*roles, scope, integer.then_some(bits), faults);
        }
        FieldClass::VarInt(inner) => {
            let integer = !inner.signed;
            let roles = &mut Arc::make_mut(inner).roles;
            *roles = kept(*roles, scope, integer.then_some(0), faults);
        }
        FieldClass::Text(inner) => {
            faults.push(format!("only a BLOB of {UUID_BYTES} bytes in the header is a UUID"));
            Arc::make_mut(inner).roles = Roles::default();
        }
        FieldClass::Struct(inner) => {
            for member in &mut Arc::make_mut(inner).members {
                keep_roles(&mut member.class, scope, faults);
            }
        }
        FieldClass::Array(inner) => keep_roles(&mut Arc::make_mut(inner).element, scope, faults),
        FieldClass::Variant(inner) => {
            for option in &mut Arc::make_mut(inner).options {
                keep_roles(&mut option.class, scope, faults);
            }
        }
        FieldClass::Optional(inner) => {
            keep_roles(&mut Arc::make_mut(inner).class, scope, faults);
        }
    }
}

fn may_stay(class: &FieldClass, scope: Scope) -> bool {
    match class {
        FieldClass::Scalar(class) => {
            let integer = class.scalar.kind == ScalarKind::Unsigned;
            let bits = integer.then_some(class.scalar.bits);
            kept(class.roles, scope, bits, &mut Vec::new()) == class.roles
        }
        FieldClass::VarInt(class) => {
            let bits = (!class.signed).then_some(0);
            kept(class.roles, scope, bits, &mut Vec::new()) == class.roles
        }
        FieldClass::Text(class) => {
            class.roles == Roles::default()
                || scope == Scope::PacketHeader
                    && class.length == Length::Fixed(UUID_BYTES)
                    && class.encoding.is_none()
        }
        FieldClass::Struct(class) => class.members.iter().all(|m| may_stay(&m.class, scope)),
        FieldClass::Array(class) => may_stay(&class.element, scope),
        FieldClass::Variant(class) => class.options.iter().all(|o| may_stay(&o.class, scope)),
        FieldClass::Optional(inner) => may_stay(&inner.class, scope),
    }
}

/// Those of `roles` that an integer of this number of bits may have; `None` for anything but an
/// integer ≥ 0, 0 bits for any number of them.
fn kept(roles: Roles, scope: Scope, bits: Option<u32>, faults: &mut Vec<String>) -> Roles {
    let mut out = Roles::default();
    for &role in allowed(scope) {
        let fits = match role {
            Role::Uuid => false,
            Role::Magic => bits == Some(MAGIC_BITS),
            _ => bits.is_some(),
        };
        if roles.contains(role) && fits {
            out.insert(role);
        }
    }
    if out != roles {
        faults.push("a field has a role that it cannot have".to_owned());
    }
    out
}

/// Reports options that one value would select.
///
/// Cost: sorts the ranges.
pub(super) fn options_apart(options: &[OptionClass], report: &mut dyn FnMut(String)) {
    let ranges = options.iter().enumerate().filter_map(|(index, option)| match &option.selection {
        Selection::Ranges(ranges) => Some((index, ranges.as_slice())),
        Selection::Label(_) => None,
    });
    if let Some(value) = chosen_twice(ranges) {
        report(format!("{value} chooses two options of a variant; the first one counts"));
    }
}
