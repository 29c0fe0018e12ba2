// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Expressions of scripts, compiled.

use std::sync::LazyLock;

use crate::{choice, trace};
use lateralis_analysis::filter::Context;
use lateralis_ctf::Reader;
use lateralis_model::Source;
use lateralis_script::expression::{Answer, Expression};

/// Events that an expression is asked about.
const EVENTS_MAX: usize = 50;

static READERS: LazyLock<Vec<Reader>> =
    LazyLock::new(|| trace::good().iter().take(4).map(|input| trace::reader(input)).collect());

/// Besides not panicking: a fault is inside of the text, a function is what its
/// expression is, the opposite of an expression keeps the other events, and columns keep
/// what events do.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Expression::of_function(text);
    let expression = match Expression::parse(text) {
        Ok(expression) => expression,
        Err(why) => {
            assert!(why.at <= text.len() && !why.what.is_empty(), "{text:?}: {why:?}");
            return;
        }
    };
    let body = text.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    let opposite = Expression::parse(&format!("!(\n{body}\n)"));
    let function = Expression::of_function(&format!("event => (\n{body}\n)"));
    for reader in READERS.iter() {
        let streams = Source::streams(reader);
        let context = Context { names: Source::names(reader), streams: &streams };
        choice::compare(
            reader,
            &context,
            text,
            &|stream, class| expression.plan(stream, class),
            &|event| expression.holds(event, &context),
        );
        let mut events = reader.events();
        for _ in 0..EVENTS_MAX {
            let Some(event) = events.next_event() else { break };
            let answer = expression.holds(&event, &context);
            if let Ok(function) = &function {
                assert_eq!(function.holds(&event, &context), answer, "{text}");
            }
            if let Ok(opposite) = &opposite {
                let expected = match answer {
                    Answer::Yes => Answer::No,
                    Answer::No => Answer::Yes,
                    Answer::Ask => Answer::Ask,
                };
                assert_eq!(opposite.holds(&event, &context), expected, "{text}");
            }
        }
    }
}

/// Every operator and kind of operand.
pub fn good() -> Vec<Vec<u8>> {
    [
        "event.fields.bytes > 4096 && event.cpu === 2",
        "!(event.name.startsWith('area:')) || event.fields.number % 2 == 1",
        "event.fields.outer[1].list[0].x >= 1n && event.labels.tag !== 'two'",
        "event.time - 5n < 1_000n || event.process?.includes(\"redis\") ? 1 : null ?? NaN",
        "typeof event.fields.f === 'number' && ~event.fields.n >>> 3 << 1 != 0x1F",
        "(event.pid & 1) + -event.tid * 2 / 3 ^ 7 | .5e1 /* why */ // not\n",
        "event.fields['odd \\u{e9}\\n'] <= undefined || event.stream != Infinity",
        "1?.5:2",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
