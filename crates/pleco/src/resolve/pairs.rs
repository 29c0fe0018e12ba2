// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two ends of spans and channels: each has the other, and their keys agree.

use crate::diagnostic::{Code, Reporter};
use crate::schema::{Clause, Event, Field, FieldType, Pairing, Schema};
use crate::source::Span;
use crate::syntax::{ClauseKind, File};
use std::collections::HashMap;

/// How the findings about one kind of pair are called and worded.
struct Wording {
    opening: ClauseKind,
    closing: ClauseKind,
    noun: &'static str,
    without_closing: Code,
    without_opening: Code,
    keys: Code,
}

const SPANS: Wording = Wording {
    opening: ClauseKind::Begin,
    closing: ClauseKind::End,
    noun: "span",
    without_closing: Code::BeginWithoutEnd,
    without_opening: Code::EndWithoutBegin,
    keys: Code::SpanKeys,
};

const CHANNELS: Wording = Wording {
    opening: ClauseKind::Send,
    closing: ClauseKind::Recv,
    noun: "channel",
    without_closing: Code::SendWithoutReceive,
    without_opening: Code::ReceiveWithoutSend,
    keys: Code::ChannelKeys,
};

/// The place of a clause: event, kind, and name of the span or channel.
type Places<'a> = HashMap<(usize, ClauseKind, &'a str), Span>;

pub(super) fn check(file: &File, schema: &Schema, reporter: &mut Reporter<'_>) {
    let definitions = file.subsystems.iter().flat_map(|subsystem| &subsystem.events);
    let mut places: Places<'_> = HashMap::new();
    for (index, definition) in definitions.enumerate() {
        for clause in &definition.clauses {
            if let Some(name) = &clause.subject {
                places.entry((index, clause.kind, &name.text)).or_insert(clause.span);
            }
        }
    }
    for span in schema.spans() {
        pair(&span, &SPANS, schema, &places, reporter);
    }
    for channel in schema.channels() {
        pair(&channel, &CHANNELS, schema, &places, reporter);
    }
}

fn pair(
    pairing: &Pairing<'_>,
    wording: &Wording,
    schema: &Schema,
    places: &Places<'_>,
    reporter: &mut Reporter<'_>,
) {
    if reporter.is_full() {
        return;
    }
    let name = pairing.name;
    let place = |event: usize, kind: ClauseKind| {
        places.get(&(event, kind, name)).copied().unwrap_or_default()
    };
    let (opening, closing) = (wording.opening.word(), wording.closing.word());
    let noun = wording.noun;
    let (Some(first), Some(_)) = (pairing.openings.first(), pairing.closings.first()) else {
        let (code, span, missing) = match pairing.openings.first() {
            Some(event) => (wording.without_closing, place(*event, wording.opening), closing),
            None => {
                let event = pairing.closings.first().copied().unwrap_or_default();
                (wording.without_opening, place(event, wording.closing), opening)
            }
        };
        reporter
            .report(code, span, format!("no event has `{missing} {name}`"))
            .label(format!("expected an event at the other end of this {noun}"));
        return;
    };
    let expected = keys_of(&schema.events[*first], name, wording.opening);
    let others = pairing.openings[1..].iter().map(|event| (*event, wording.opening));
    let others = others.chain(pairing.closings.iter().map(|event| (*event, wording.closing)));
    for (event, kind) in others {
        let keys = keys_of(&schema.events[event], name, kind);
        let is_same_count = keys.len() == expected.len();
        if is_same_count && keys.iter().zip(&expected).all(|(a, b)| is_comparable(a, b)) {
            continue;
        }
        let first_place = reporter.at(place(*first, wording.opening));
        let message = if is_same_count {
            format!("the keys of {noun} `{name}` have different types at its ends")
        } else {
            format!("{noun} `{name}` has {} keys here and {} there", keys.len(), expected.len())
        };
        reporter
            .report(wording.keys, place(event, kind), message)
            .label("expected the same number and kind of keys at both ends")
            .note(format!("the other end is at {first_place}"));
    }
}

fn keys_of<'a>(event: &'a Event, name: &str, kind: ClauseKind) -> Vec<&'a Field> {
    let keys = event.clauses.iter().find_map(|clause| match clause {
        Clause::Begin { span, keys } if kind == ClauseKind::Begin && span == name => Some(keys),
        Clause::End { span, keys } if kind == ClauseKind::End && span == name => Some(keys),
        Clause::Send { channel, keys } if kind == ClauseKind::Send && channel == name => Some(keys),
        Clause::Recv { channel, keys } if kind == ClauseKind::Recv && channel == name => Some(keys),
        _ => None,
    });
    keys.map_or_else(Vec::new, |keys| keys.iter().map(|key| &event.fields[*key]).collect())
}

/// Numbers match numbers of any width; text matches only text.
fn is_comparable(a: &Field, b: &Field) -> bool {
    let is_text = |field: &Field| field.ty == FieldType::String;
    is_text(a) == is_text(b)
}
