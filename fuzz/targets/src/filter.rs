// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Expressions that choose events.

use crate::{choice, trace};
use lateralis_analysis::filter::columns::Answer;
use lateralis_analysis::filter::{Context, Filter, matches_pattern};
use lateralis_ctf::Reader;
use lateralis_model::Source;
use std::sync::LazyLock;

/// Events that an expression is asked about; one with every kind of field among them.
const EVENTS_MAX: usize = 50;

static READERS: LazyLock<Vec<Reader>> =
    LazyLock::new(|| trace::good().iter().take(4).map(|input| trace::reader(input)).collect());

/// Besides not panicking: a fault is inside of the text, the opposite of an expression
/// chooses the other events, and columns choose what events do.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let filter = match Filter::parse(text) {
        Ok(filter) => filter,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let opposite = Filter::parse(&format!("!({text})"));
    for reader in READERS.iter() {
        let streams = Source::streams(reader);
        let context = Context { names: Source::names(reader), streams: &streams };
        choice::compare(
            reader,
            &context,
            text,
            &|stream, class| filter.plan(stream, class),
            &|event| Answer::of(Some(filter.matches(event, &context))),
        );
        let mut merge = reader.events();
        for _ in 0..EVENTS_MAX {
            let Some(event) = merge.next_event() else { break };
            let chosen = filter.matches(&event, &context);
            if let Ok(opposite) = &opposite {
                assert_eq!(opposite.matches(&event, &context), !chosen, "{text}");
            }
        }
    }
    let middle = (0..=text.len() / 2).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let (pattern, text) = text.split_at(middle);
    assert!(matches_pattern("*", text) && matches_pattern(text, text), "{text:?}");
    let _ = matches_pattern(pattern, text);
}

/// Every operator and kind of operand.
pub fn good() -> Vec<Vec<u8>> {
    [
        "bytes > 4k && $process == \"redis-server\"",
        "!(prev_comm =~ \"swapper/*\") || latency_ns >= 1.5ms",
        "state == RUNNING && cpus[0] == 3 && addr.port != 0x1f90",
        "$event =~ 'area:*' && number % 2",
        "number < 3 || n <= -7us || text !~ \"a?c\"",
        "$time > 1s && $pid == 100 && $tid && $cpu == 0 && $stream",
        "$thread || $subsystem == area",
        "outer[1].list[0].x == 1 && v.m && tag == two && f != 1.5",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
