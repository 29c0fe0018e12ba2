// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The spans that `lat path` is asked about.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lateralis_analysis::{Edge, Pairer, Side, Span};
use lateralis_model::Source;
use lateralis_store::Recording;
use lateralis_store::facts::{Fact, Facts};

use super::PathArgs;
use crate::error::CliError;

/// A span to be explained.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// Both ends.
    pub span: Span,
    /// The thread that ended it.
    pub tid: u32,
}

/// The slowest spans of the name, or the one at the time.
///
/// Errors: no span of the name; none that is wanted; none with a thread.
pub fn spans(recording: &Recording, args: &PathArgs) -> Result<Vec<Found>, CliError> {
    let source = &recording.source;
    let trace = recording.annotated();
    let mut facts = Facts::new(&trace, &recording.streams);
    let Some(kind) = facts.kinds().spans.iter().position(|kind| kind.name == args.span) else {
        return Err(no_such_span(&facts, &args.span));
    };
    let mut pairer = Pairer::default();
    let mut slowest: BinaryHeap<(Reverse<u64>, i64, usize)> = BinaryHeap::new();
    let mut kept: Vec<Span> = Vec::new();
    let most = if args.at.is_some() { usize::MAX } else { args.slowest as usize };
    let mut first = None;
    let mut edges = Vec::new();
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        first.get_or_insert(event.time);
        facts.of(&event, |at, fact| {
            let (span, side, key) = match fact {
                Fact::Begin { span, key } => (span, Side::Begin, key),
                Fact::End { span, key } => (span, Side::End, key),
                _ => return,
            };
            if span as usize == kind {
                edges.push(Edge { time: at.time, side, key, writer: at.writer });
            }
        });
        for edge in edges.drain(..) {
            let Some(span) = pairer.push(edge).filter(|span| span.end.writer.is_some()) else {
                continue;
            };
            if let (Some(moment), Some(first)) = (args.at, first) {
                let at = moment.nanos(Some(first));
                if span.begin.time > at || span.end.time < at {
                    continue;
                }
            }
            // The slowest are kept: the quickest of them lies on top.
            slowest.push((Reverse(span.nanos()), span.begin.time.0, kept.len()));
            kept.push(span);
            if slowest.len() > most {
                slowest.pop();
            }
            if kept.len() > 2 * most.min(1 << 20) + 64 {
                kept = compact(&mut slowest, &kept);
            }
        }
    }
    let mut places: Vec<_> = slowest.into_vec();
    places.sort_unstable();
    let found: Vec<Found> = places
        .into_iter()
        .filter_map(|(_, _, index)| {
            let span = kept[index];
            Some(Found { span, tid: span.end.writer?.tid })
        })
        .collect();
    if found.is_empty() {
        let (place, advice) = match args.at {
            Some(_) => ("none is open at this time", "look at `lat print` for when it begins"),
            None => ("none has both ends and a thread", "see `lat stats` for unfinished ones"),
        };
        return Err(CliError::new(format!("no span {}", args.span), place, advice));
    }
    Ok(found)
}

/// Forgets spans that are no longer among the slowest.
fn compact(slowest: &mut BinaryHeap<(Reverse<u64>, i64, usize)>, kept: &[Span]) -> Vec<Span> {
    let places = std::mem::take(slowest).into_vec();
    let spans = places.iter().map(|(_, _, index)| kept[*index]).collect();
    *slowest = places.into_iter().enumerate().map(|(new, (n, t, _))| (n, t, new)).collect();
    spans
}

fn no_such_span(facts: &Facts, name: &str) -> CliError {
    let mut names: Vec<&str> = facts.kinds().spans.iter().map(|kind| kind.name.as_str()).collect();
    names.sort_by(|a, b| strsim::jaro_winkler(name, b).total_cmp(&strsim::jaro_winkler(name, a)));
    let advice = match names.as_slice() {
        [] => "the trace has no spans at all".to_owned(),
        names => format!("there are {}", names[..names.len().min(8)].join(", ")),
    };
    CliError::new("no such span", name, advice)
}
