// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message `TrackEvent`, taken apart.

use super::state::{
    ANNOTATION_NAMES, CATEGORIES, EVENT_NAMES, LOG_BODIES, SOURCE_LOCATIONS, STRING_VALUES,
    Sequence,
};
use super::wire::{Message, Wire};
use crate::dynamic::{Dyn, Named, make_unique};

/// Deeper annotations are cut.
const MAX_DEPTH: u32 = 24;

/// Values of the field `type`.
pub const BEGIN: u64 = 1;
pub const END: u64 = 2;
pub const INSTANT: u64 = 3;
pub const COUNTER: u64 = 4;

/// What the event says, names looked up.
#[derive(Debug, Default)]
pub struct TrackEvent<'a> {
    pub kind: u64,
    pub name: String,
    pub categories: Vec<String>,
    pub track: Option<u64>,
    pub annotations: Named<'a>,
    pub context: Named<'a>,
    pub value: Option<Dyn<'a>>,
    pub extra_tracks: Vec<u64>,
    pub extra_values: Vec<Dyn<'a>>,
    pub flows: Vec<u64>,
    pub ending_flows: Vec<u64>,
    pub delta_us: Option<i64>,
    pub absolute_us: Option<i64>,
    pub legacy: Option<Legacy>,
    /// Numbers of fields that were not understood.
    pub unread: Vec<u32>,
}

/// A message `LegacyEvent`.
#[derive(Debug, Default)]
pub struct Legacy {
    pub phase: Option<char>,
    pub duration_us: Option<i64>,
    /// Name of the kind of id, and the id.
    pub id: Option<(&'static str, u64)>,
    pub scope: String,
    pub bind_id: Option<u64>,
    /// 1 in, 2 out, 3 both.
    pub direction: u64,
    pub pid: Option<u32>,
    pub tid: Option<u32>,
}

/// Takes a message apart; its annotations only if they are wanted.
pub fn parse<'a>(message: Message<'a>, sequence: &Sequence, is_all: bool) -> TrackEvent<'a> {
    let mut event = TrackEvent::default();
    for (number, value) in message {
        match number {
            1 => event.delta_us = Some(value.number() as i64),
            16 => event.absolute_us = Some(value.number() as i64),
            3 => event.categories.push(sequence.text(CATEGORIES, value.number())),
            22 => event.categories.push(value.text().into_owned()),
            4 if !is_all => (),
            4 => event.annotations.push(annotation(value.message(), sequence, 0)),
            6 => event.legacy = Some(legacy(value.message(), sequence, &mut event.name)),
            9 => event.kind = value.number(),
            10 => event.name = sequence.text(EVENT_NAMES, value.number()),
            23 => event.name = value.text().into_owned(),
            11 => event.track = Some(value.number()),
            30 => event.value = Some(Dyn::Signed(value.number() as i64)),
            44 => event.value = Some(Dyn::Real(value.real())),
            31 | 45 => each(value, |number| event.extra_tracks.push(number)),
            12 => each(value, |number| event.extra_values.push(Dyn::Signed(number as i64))),
            46 => event.extra_values.push(Dyn::Real(value.real())),
            36 | 47 => flows(value, number == 47, &mut event.flows),
            42 | 48 => flows(value, number == 48, &mut event.ending_flows),
            2 | 17 => event.context.push(signed("thread_time_us", value)),
            8 | 20 => event.context.push(signed("thread_instructions", value)),
            21 => event.annotations.extend(log(value.message(), sequence)),
            33 => event.context.push(("source".into(), Dyn::Text(source(value.message()).into()))),
            34 => {
                let text = sequence.text(SOURCE_LOCATIONS, value.number());
                event.context.push(("source".into(), Dyn::Text(text.into())));
            }
            other => event.unread.push(other),
        }
    }
    make_unique(&mut event.annotations);
    make_unique(&mut event.context);
    event
}

fn signed<'a>(name: &'static str, value: Wire<'_>) -> (std::borrow::Cow<'a, str>, Dyn<'a>) {
    (name.into(), Dyn::Signed(value.number() as i64))
}

/// A repeated number, packed or not.
fn each(value: Wire<'_>, mut see: impl FnMut(u64)) {
    match value {
        Wire::Bytes(bytes) => super::wire::packed(bytes).for_each(see),
        other => see(other.number()),
    }
}

fn flows(value: Wire<'_>, fixed: bool, out: &mut Vec<u64>) {
    match value {
        Wire::Bytes(bytes) if fixed => {
            out.extend(bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk)));
        }
        other => each(other, |number| out.push(number)),
    }
}

fn source(message: Message<'_>) -> String {
    let mut parts = Vec::new();
    for (number, value) in message {
        match number {
            2 | 3 => parts.push(value.text().into_owned()),
            4 => parts.push(value.number().to_string()),
            _ => (),
        }
    }
    parts.join(":")
}

fn log<'a>(
    message: Message<'a>,
    sequence: &Sequence,
) -> Option<(std::borrow::Cow<'a, str>, Dyn<'a>)> {
    let body = message.into_iter().find(|(number, _)| *number == 2)?.1.number();
    Some(("log_message".into(), Dyn::Text(sequence.text(LOG_BODIES, body).into())))
}

fn legacy(message: Message<'_>, sequence: &Sequence, name: &mut String) -> Legacy {
    let mut legacy = Legacy::default();
    for (number, value) in message {
        let word = value.number();
        match number {
            1 => *name = sequence.text(EVENT_NAMES, word),
            2 => {
                legacy.phase = u8::try_from(word).ok().filter(u8::is_ascii_graphic).map(char::from)
            }
            3 => legacy.duration_us = Some(word as i64),
            6 => legacy.id = Some(("id", word)),
            10 => legacy.id = Some(("local_id", word)),
            11 => legacy.id = Some(("global_id", word)),
            7 => legacy.scope = value.text().into_owned(),
            8 => legacy.bind_id = Some(word),
            13 => legacy.direction = word,
            18 => legacy.pid = Some(word as u32),
            19 => legacy.tid = Some(word as u32),
            _ => (),
        }
    }
    legacy
}

/// A message `DebugAnnotation`.
fn annotation<'a>(
    message: Message<'a>,
    sequence: &Sequence,
    depth: u32,
) -> (std::borrow::Cow<'a, str>, Dyn<'a>) {
    let mut name = std::borrow::Cow::Borrowed("");
    let mut single = None;
    let mut dict: Named<'a> = Vec::new();
    let mut array = Vec::new();
    for (number, value) in message {
        match number {
            1 => name = sequence.text(ANNOTATION_NAMES, value.number()).into(),
            10 => name = value.text(),
            2 => single = Some(Dyn::Bool(value.number() != 0)),
            3 => single = Some(Dyn::Unsigned(value.number())),
            4 => single = Some(Dyn::Signed(value.number() as i64)),
            5 => single = Some(Dyn::Real(value.real())),
            7 => single = Some(Dyn::Hex(value.number())),
            6 | 9 => single = Some(Dyn::Text(value.text())),
            17 => single = Some(Dyn::Text(sequence.text(STRING_VALUES, value.number()).into())),
            14 => single = Some(Dyn::Bytes(value.bytes().into())),
            8 if depth < MAX_DEPTH => single = Some(nested(value.message(), depth + 1)),
            11 if depth < MAX_DEPTH => dict.push(annotation(value.message(), sequence, depth + 1)),
            12 if depth < MAX_DEPTH => {
                array.push(annotation(value.message(), sequence, depth + 1).1);
            }
            _ => (),
        }
    }
    let value = match single {
        Some(value) => value,
        None if !dict.is_empty() => {
            make_unique(&mut dict);
            Dyn::Dict(dict)
        }
        None if !array.is_empty() => Dyn::List(array),
        None => Dyn::Null,
    };
    (name, value)
}

/// A message `NestedValue`, the older form of nested annotations.
fn nested<'a>(message: Message<'a>, depth: u32) -> Dyn<'a> {
    let (mut kind, mut keys, mut values, mut array) = (0, Vec::new(), Vec::new(), Vec::new());
    let mut single = Dyn::Null;
    for (number, value) in message {
        match number {
            1 => kind = value.number(),
            2 => keys.push(value.text()),
            3 if depth < MAX_DEPTH => values.push(nested(value.message(), depth + 1)),
            4 if depth < MAX_DEPTH => array.push(nested(value.message(), depth + 1)),
            5 => single = Dyn::Signed(value.number() as i64),
            6 => single = Dyn::Real(value.real()),
            7 => single = Dyn::Bool(value.number() != 0),
            8 => single = Dyn::Text(value.text()),
            _ => (),
        }
    }
    match kind {
        1 => {
            let mut dict: Named<'a> = keys.into_iter().zip(values).collect();
            make_unique(&mut dict);
            Dyn::Dict(dict)
        }
        2 => Dyn::List(array),
        _ => single,
    }
}
