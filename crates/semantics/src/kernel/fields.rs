// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Payload fields of events by index.

use lateralis_model::{Event, EventClass, Field, FieldKind, Member, Value};

/// Index of the first of these names.
pub fn place(class: &EventClass, names: &[&str]) -> Option<usize> {
    let members: &[Member] = class.payload.as_ref().map_or(&[], |payload| payload.members());
    // CTF 1.8 prefixes reserved words with an underscore.
    let is = |member: &Member, name: &str| {
        member.name == name || member.name.strip_prefix('_') == Some(name)
    };
    names.iter().find_map(|name| members.iter().position(|member| is(member, name)))
}

/// A field by its index.
pub fn field<'a>(event: &Event<'a>, place: usize) -> Option<Field<'a>> {
    event.payload()?.into_iter().nth(place).map(|(_, field)| field)
}

/// A field as an unsigned number.
pub fn number(event: &Event<'_>, place: Option<usize>) -> Option<u64> {
    field(event, place?)?.as_u64()
}

/// A field as a signed number: an unsigned 32-bit error number is sign-extended.
pub fn signed(event: &Event<'_>, place: usize) -> Option<i64> {
    let field = field(event, place)?;
    match (field.value(), &field.class().kind) {
        (Value::Unsigned(value), FieldKind::Unsigned(class)) if class.bits == 32 => {
            let number = value as u32;
            let is_error = number > u32::MAX - 4095;
            Some(if is_error { i64::from(number.cast_signed()) } else { i64::from(number) })
        }
        _ => field.as_u64().map(u64::cast_signed),
    }
}
