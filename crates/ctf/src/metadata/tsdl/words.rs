// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words after `=` in TSDL [CTF 1.8.3 §4.1, §7.3.2, §8].

use std::sync::Arc;

use lateralis_model::{Base, ByteOrder, Encoding};

use super::super::brief;
use super::super::field::{Location, PathItem, Scope};
use super::Parsed;

pub(super) fn alignment(bits: i128) -> Parsed<u32> {
    let align = u32::try_from(bits).ok().filter(|bits| bits.is_power_of_two());
    align.ok_or_else(|| format!("an alignment must be a power of two: {bits}"))
}

pub(super) fn truth(word: &str) -> Parsed<bool> {
    match word {
        "true" | "TRUE" | "1" => Ok(true),
        "false" | "FALSE" | "0" => Ok(false),
        _ => Err(format!("expected true or false, found `{}`", brief(word))),
    }
}

pub(super) fn byte_order(word: &str, native: ByteOrder) -> Parsed<ByteOrder> {
    match word {
        "native" => Ok(native),
        "network" | "be" => Ok(ByteOrder::Big),
        "le" => Ok(ByteOrder::Little),
        _ => Err(format!("unknown byte order `{}`: native, network, be or le", brief(word))),
    }
}

pub(super) fn integer_base(word: &str) -> Parsed<Base> {
    match word {
        "decimal" | "dec" | "d" | "i" | "u" | "10" => Ok(Base::Decimal),
        "hexadecimal" | "hex" | "x" | "X" | "p" | "16" => Ok(Base::Hexadecimal),
        "octal" | "oct" | "o" | "8" => Ok(Base::Octal),
        "binary" | "bin" | "b" | "2" => Ok(Base::Binary),
        _ => Err(format!("unknown base `{}`", brief(word))),
    }
}

pub(super) fn encoding(word: &str) -> Parsed<Option<Encoding>> {
    match word {
        "none" => Ok(None),
        "UTF8" | "utf8" | "utf-8" | "UTF-8" | "ASCII" | "ascii" => Ok(Some(Encoding::Utf8)),
        _ => Err(format!("unknown encoding `{}`: none, UTF8 or ASCII", brief(word))),
    }
}

/// `clock.NAME.value` is a reading of the clock NAME [§8].
pub(super) fn clock_name(path: &str) -> Parsed<Arc<str>> {
    let name = path.strip_prefix("clock.").and_then(|rest| rest.strip_suffix(".value"));
    let name = name.ok_or_else(|| format!("expected clock.NAME.value, found `{}`", brief(path)))?;
    Ok(Arc::from(name))
}

/// Absolute paths begin with the name of a scope; all others are searched for
/// [§7.3.2].
pub(super) fn location(path: &str) -> Location {
    const SCOPES: [(&str, Scope); 6] = [
        ("trace.packet.header.", Scope::PacketHeader),
        ("stream.packet.context.", Scope::PacketContext),
        ("stream.event.header.", Scope::EventHeader),
        ("stream.event.context.", Scope::CommonContext),
        ("event.context.", Scope::EventContext),
        ("event.fields.", Scope::Payload),
    ];
    let absolute = SCOPES
        .iter()
        .find_map(|(prefix, scope)| path.strip_prefix(prefix).map(|rest| (Some(*scope), rest)));
    let (scope, rest) = absolute.unwrap_or((None, path));
    let name = |word: &str| PathItem::Name(Arc::from(word.strip_prefix('_').unwrap_or(word)));
    Location { scope, path: rest.split('.').map(name).collect(), searched: scope.is_none() }
}
