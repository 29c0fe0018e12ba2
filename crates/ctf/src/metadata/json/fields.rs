// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of CTF 2 objects, and field classes without others inside.

use std::sync::Arc;

use lateralis_model::{Base, ByteOrder, Encoding, Label, Range, Scalar, ScalarKind};
use serde_json::{Map, Value};

use super::super::field::{
    FieldClass, Length, Location, Meaning, PathItem, Role, Roles, ScalarClass, Scope, TextClass,
};
use super::super::{brief, wide};
use super::{Object, Parsed};

pub(super) fn text_of(object: &Object, key: &str) -> Option<String> {
    object.get(key)?.as_str().map(str::to_owned)
}

pub(super) fn number_of(object: &Object, key: &str, default: u64) -> Parsed<u64> {
    match object.get(key) {
        None => Ok(default),
        Some(value) => value
            .as_u64()
            .ok_or_else(|| format!("`{key}` must be a number ≥ 0, found {}", brief(value))),
    }
}

/// The length that a class of static length must have.
pub(super) fn static_length(class: &Object) -> Parsed<u64> {
    match class.get("length") {
        None => Err("`length` is missing".to_owned()),
        Some(_) => number_of(class, "length", 0),
    }
}

pub(super) fn integer(value: &Value) -> Parsed<i128> {
    let number = value.as_u64().map(i128::from).or_else(|| value.as_i64().map(i128::from));
    number.ok_or_else(|| format!("expected an integer, found {}", brief(value)))
}

pub(super) fn object(value: &Value) -> Parsed<&Object> {
    value.as_object().ok_or_else(|| format!("expected an object, found {}", brief(value)))
}

pub(super) fn ranges(value: &Value) -> Parsed<Vec<Range>> {
    let list = value.as_array().ok_or("expected a list of ranges")?;
    let range = |value: &Value| match value.as_array().map(Vec::as_slice) {
        Some([low, high]) => Ok(Range { low: integer(low)?, high: integer(high)? }),
        // A release candidate allowed single numbers.
        _ => integer(value).map(|number| Range { low: number, high: number }),
    };
    list.iter().map(range).collect()
}

pub(super) fn alignment(class: &Object, key: &str, default: u64) -> Parsed<u32> {
    let bits = number_of(class, key, default)?;
    let align = u32::try_from(bits).ok().filter(|bits| bits.is_power_of_two());
    align.ok_or_else(|| format!("`{key}` must be a power of two, found {bits}"))
}

pub(super) fn base(class: &Object) -> Parsed<Base> {
    match number_of(class, "preferred-display-base", 10)? {
        2 => Ok(Base::Binary),
        8 => Ok(Base::Octal),
        10 => Ok(Base::Decimal),
        16 => Ok(Base::Hexadecimal),
        other => Err(format!("unknown display base {other}: 2, 8, 10 or 16")),
    }
}

pub(super) fn labels(class: &Object, key: &str) -> Parsed<Vec<Label>> {
    let Some(mappings) = class.get(key) else {
        return Ok(Vec::new());
    };
    let label =
        |(name, value): (&String, &Value)| Ok(Label { name: name.clone(), ranges: ranges(value)? });
    object(mappings)?.iter().map(label).collect()
}

/// Extensions may change the layout of bits in packets: classes with an unknown extension are not
/// read.
///
/// # Errors
/// If there is any, for none is known here; names up to three.
pub(super) fn no_extensions(of: &Object) -> Parsed<()> {
    let Some(extensions) = of.get("extensions") else {
        return Ok(());
    };
    let extensions = extensions.as_object().ok_or("`extensions` must be an object")?;
    if extensions.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = extensions.keys().take(3).map(String::as_str).collect();
    let names: Vec<String> = names.into_iter().map(brief).collect();
    Err(format!("it needs extensions that are not known here: {}", names.join(", ")))
}

/// What in an object breaks a rule without which it can be read all the same.
///
/// Properties that the specification does not know are passed over: writers of
/// release candidates have some.
pub(super) fn faults(of: &Object, report: &mut dyn FnMut(String)) {
    let is_kind = |key: &str, is: fn(&Value) -> bool| of.get(key).is_none_or(is);
    if !is_kind("attributes", Value::is_object) {
        report("`attributes` must be an object".to_owned());
    }
    if !is_kind("media-type", Value::is_string) {
        report("`media-type` must be a text".to_owned());
    }
    let kind = of.get("type").and_then(Value::as_str).unwrap_or_default();
    if !is_kind("roles", |roles| {
        roles.as_array().is_some_and(|list| list.iter().all(Value::is_string))
    }) {
        report("`roles` must be a list of texts".to_owned());
    }
    let of_flags = kind == "fixed-length-bit-map";
    let labels = of.get(if of_flags { "flags" } else { "mappings" }).and_then(Value::as_object);
    if of_flags && labels.is_none_or(Map::is_empty) {
        report("a bit map needs `flags`".to_owned());
    }
    if labels.is_some() && number_of(of, "length", 0).is_ok_and(|bits| bits > 64) {
        report("names of values and bits are not shown for more than 64 bits".to_owned());
    }
    for (name, value) in labels.into_iter().flatten() {
        // What is no list of ranges at all is a fault of the class.
        let Ok(ranges) = ranges(value) else { continue };
        if ranges.is_empty() {
            report(format!("`{}` has no range", brief(name)));
        }
        for range in ranges {
            if range.low > range.high {
                report(format!("a range of `{}` ends before it begins", brief(name)));
            }
        }
    }
}

/// Bytes of the smallest part of a character.
pub(super) fn unit_bytes(encoding: &str) -> u64 {
    match encoding {
        "utf-16be" | "utf-16le" => 2,
        "utf-32be" | "utf-32le" => 4,
        _ => 1,
    }
}

pub(super) fn field_roles(class: &Object) -> Roles {
    let mut roles = Roles::default();
    for role in class.get("roles").and_then(Value::as_array).into_iter().flatten() {
        roles.insert(match role.as_str() {
            Some("packet-magic-number") => Role::Magic,
            Some("metadata-stream-uuid" | "trace-class-uuid") => Role::Uuid,
            Some("data-stream-class-id") => Role::StreamClassId,
            Some("data-stream-id") => Role::StreamId,
            Some("packet-total-length") => Role::PacketSize,
            Some("packet-content-length") => Role::ContentSize,
            Some("default-clock-timestamp") => Role::Clock,
            Some("packet-end-default-clock-timestamp") => Role::PacketEnd,
            Some("discarded-event-record-counter-snapshot") => Role::Discarded,
            Some("packet-sequence-number") => Role::Sequence,
            Some("event-record-class-id") => Role::EventClassId,
            _ => continue,
        });
    }
    roles
}

pub(super) fn scalar(class: &Object, kind: &str) -> Parsed<FieldClass> {
    let size = number_of(class, "length", 0)?;
    let bits = u32::try_from(size).ok().filter(|bits| (1..=wide::WIDEST).contains(bits));
    let bits = bits
        .ok_or_else(|| format!("a length of {size} bits cannot be read: 1 to {}", wide::WIDEST))?;
    let order = match text_of(class, "byte-order").as_deref() {
        Some("big-endian" | "be") => ByteOrder::Big,
        Some("little-endian" | "le") => ByteOrder::Little,
        other => return Err(format!("unknown byte order {}", brief(other.unwrap_or("(none)")))),
    };
    let reversed = match (text_of(class, "bit-order").as_deref(), order) {
        (None, _) => false,
        (Some("first-to-last"), order) => order == ByteOrder::Big,
        (Some("last-to-first"), order) => order == ByteOrder::Little,
        (Some(other), _) => return Err(format!("unknown bit order {}", brief(other))),
    };
    let (kind, meaning) = match kind {
        "fixed-length-boolean" => (ScalarKind::Bool, Meaning::Bool),
        "fixed-length-bit-array" => (ScalarKind::Unsigned, Meaning::Bits { flags: Arc::default() }),
        "fixed-length-bit-map" => {
            (ScalarKind::Unsigned, Meaning::Bits { flags: labels(class, "flags")?.into() })
        }
        "fixed-length-floating-point-number" if !wide::is_known_real(bits) => {
            return Err(format!(
                "a floating point number of {bits} bits cannot be read: 16, 32, 64, 80, or from \
                 128 on a multiple of 32"
            ));
        }
        "fixed-length-floating-point-number" => (ScalarKind::Real, Meaning::Real),
        kind => {
            let signed = kind.contains("-signed-");
            let kind = if signed { ScalarKind::Signed } else { ScalarKind::Unsigned };
            (
                kind,
                Meaning::Integer { base: base(class)?, labels: labels(class, "mappings")?.into() },
            )
        }
    };
    let align_bits = alignment(class, "alignment", 1)?;
    let scalar = Scalar { bits, align_bits, order, reversed, kind };
    if bits > 64 && meaning != Meaning::Real {
        return match meaning {
            Meaning::Bool => Err(format!("a boolean of {bits} bits cannot be read: 1 to 64")),
            _ => Ok(wide::integer(scalar)),
        };
    }
    Ok(FieldClass::Scalar(Arc::new(ScalarClass {
        scalar,
        meaning,
        roles: field_roles(class),
        clock: None,
        character: false,
    })))
}

pub(super) fn text(class: &Object, length: Length) -> Parsed<FieldClass> {
    let encoding = match text_of(class, "encoding").as_deref() {
        None | Some("utf-8") => Encoding::Utf8,
        Some("utf-16be") => Encoding::Utf16Be,
        Some("utf-16le") => Encoding::Utf16Le,
        Some("utf-32be") => Encoding::Utf32Be,
        Some("utf-32le") => Encoding::Utf32Le,
        Some(other) => return Err(format!("unknown encoding `{}`", brief(other))),
    };
    Ok(FieldClass::Text(Arc::new(TextClass {
        length,
        encoding: Some(encoding),
        media_type: Arc::default(),
        roles: Roles::default(),
    })))
}

pub(super) fn blob(class: &Object, length: Length) -> Parsed<FieldClass> {
    let media_type = text_of(class, "media-type");
    Ok(FieldClass::Text(Arc::new(TextClass {
        length,
        encoding: None,
        media_type: media_type.as_deref().unwrap_or("application/octet-stream").into(),
        roles: field_roles(class),
    })))
}

pub(super) fn length_field(class: &Object) -> Parsed<Length> {
    Ok(Length::Field(location(class, "length-field-location")?))
}

pub(super) fn scope(name: &str) -> Option<Scope> {
    Some(match name {
        "packet-header" => Scope::PacketHeader,
        "packet-context" => Scope::PacketContext,
        "event-record-header" => Scope::EventHeader,
        "event-record-common-context" => Scope::CommonContext,
        "event-record-specific-context" => Scope::EventContext,
        "event-record-payload" => Scope::Payload,
        _ => return None,
    })
}

/// `{"origin": …, "path": […]}`; a release candidate had the list alone, with
/// the origin as its first element.
pub(super) fn location(class: &Object, key: &str) -> Parsed<Location> {
    let value = class.get(key).ok_or_else(|| format!("`{key}` is missing"))?;
    let (origin, items) = match value {
        Value::Array(items) => match items.split_first() {
            Some((first, rest)) if first.as_str().is_some_and(|name| scope(name).is_some()) => {
                (first.as_str(), rest)
            }
            _ => (None, items.as_slice()),
        },
        value => {
            let value = object(value)?;
            let items = value.get("path").and_then(Value::as_array);
            let items = items.ok_or_else(|| format!("`{key}` needs a path"))?;
            (value.get("origin").and_then(Value::as_str), items.as_slice())
        }
    };
    let origin = match origin {
        Some(name) => Some(scope(name).ok_or_else(|| format!("unknown origin `{name}`"))?),
        None => None,
    };
    let item = |value: &Value| match value {
        Value::Null => Ok(PathItem::Up),
        Value::String(name) => Ok(PathItem::Name(name.as_str().into())),
        other => Err(format!("a path holds names and nulls, found {other}")),
    };
    let path = items.iter().map(item).collect::<Parsed<Vec<_>>>()?;
    if path.is_empty() {
        return Err(format!("the path of `{key}` is empty"));
    }
    Ok(Location { scope: origin, path, searched: false })
}
