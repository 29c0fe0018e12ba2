// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Relations of the clocks of a session's recordings to that of the first.

use std::ops::Range;

use lateralis_model::{Source, StreamSummary};
use lateralis_traces::{Relation, Tie, TimeBase};
use lateralis_units::Ticks;

use crate::Recording;

/// The traces under one of the paths that were opened as one recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name in tables.
    pub label: String,
    /// Its traces.
    pub traces: Range<usize>,
    /// Its streams.
    pub streams: Range<u32>,
    /// Its clock.
    pub clock: ClockFacts,
}

/// Clock of some traces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClockFacts {
    /// Its name; several names in sequence; `None` if there is none.
    pub name: Option<String>,
    /// Whether it is the first of the session.
    pub is_first: bool,
    /// Relation to the first.
    pub tie: Option<Tie>,
    /// Its zero in nanoseconds since 1970; `None` if unknown, or if there are several.
    pub offset_ns: Option<i64>,
}

impl ClockFacts {
    /// `reference`, or the name of the relation; `None` if there is no clock.
    pub fn relation(&self) -> Option<&'static str> {
        match self.tie? {
            Tie { relation: Relation::Same, .. } if self.is_first => Some("reference"),
            tie => Some(tie.relation.name()),
        }
    }

    /// Error of times relative to the first clock.
    pub fn error_ns(&self) -> Option<u64> {
        self.tie?.error_ns
    }
}

/// Makes recordings of one counter use the same conversion, and returns the relations of the traces of
/// each path.
///
/// Cost: proportional to the traces; if a conversion changes, also to packets.
pub fn relate(recordings: &mut [Recording]) -> Vec<Vec<Group>> {
    let mut known: Vec<TimeBase> = Vec::new();
    for recording in recordings.iter_mut() {
        recording.source.align_to(&known);
        for base in recording.source.bases().iter().flatten() {
            // The first conversion of each counter is used for all.
            if !known.iter().any(|known| known.is_same(base)) {
                known.push(base.clone());
            }
        }
    }
    let mut is_first = true;
    let mut groups = |recording: &Recording| {
        let groups = paths(recording).into_iter().map(|(label, traces, streams)| {
            let mut clock = facts(recording, traces.clone(), known.first());
            clock.is_first = clock.name.is_some() && std::mem::take(&mut is_first);
            Group { label, traces, streams, clock }
        });
        groups.collect()
    };
    recordings.iter().map(&mut groups).collect()
}

/// Traces and streams under each of the paths; all together if there is one path.
fn paths(recording: &Recording) -> Vec<(String, Range<usize>, Range<u32>)> {
    let parts = recording.source.parts();
    let label = recording.path.display().to_string();
    let streams = recording.streams.len() as u32;
    if recording.paths.len() < 2 || parts.len() < 2 {
        return vec![(label, 0..parts.len(), 0..streams)];
    }
    let path_of = |place: &str| {
        let under = |path: &&std::path::PathBuf| std::path::Path::new(place).starts_with(path);
        recording.paths.iter().find(under).unwrap_or(&recording.path)
    };
    let mut found: Vec<(String, Range<usize>, Range<u32>)> = Vec::new();
    let mut stream = 0;
    for (index, part) in parts.iter().enumerate() {
        let label = path_of(&part.place).display().to_string();
        let end = stream + Source::streams(part.source.as_ref()).len() as u32;
        match found.last_mut() {
            Some((known, traces, streams)) if *known == label => {
                (traces.end, streams.end) = (index + 1, end);
            }
            _ => found.push((label, index..index + 1, stream..end)),
        }
        stream = end;
    }
    found
}

fn facts(recording: &Recording, traces: Range<usize>, first: Option<&TimeBase>) -> ClockFacts {
    let mut names: Vec<&str> = Vec::new();
    let parts = recording.source.parts().get(traces.clone()).unwrap_or_default();
    for clock in parts.iter().flat_map(|part| &part.source.trace().clocks) {
        if !names.contains(&clock.name.as_str()) {
            names.push(&clock.name);
        }
    }
    let bases = recording.source.bases().get(traces).unwrap_or_default();
    let unrelated = Tie { relation: Relation::Unrelated, error_ns: None };
    let tie = bases.iter().map(|base| match (base, first) {
        (Some(base), Some(first)) => first.tie(base),
        _ => unrelated,
    });
    let tie = tie.reduce(Tie::and).filter(|_| !names.is_empty());
    let offset_ns = match bases {
        [Some(base)] if base.clock.unix_epoch => Some(base.clock.nanos(Ticks(0)).0),
        _ => None,
    };
    let name = (!names.is_empty()).then(|| names.join(", "));
    ClockFacts { name, is_first: false, tie, offset_ns }
}

impl Group {
    /// Streams of the group among those of its recording, with their numbers.
    pub fn summaries<'s>(
        &self,
        streams: &'s [StreamSummary],
    ) -> impl Iterator<Item = (u32, &'s StreamSummary)> + use<'s> {
        let range = self.streams.clone();
        (0..).zip(streams).filter(move |(index, _)| range.contains(index))
    }
}
