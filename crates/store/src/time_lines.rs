// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Timelines of recordings, and remarks on those that have a timeline of their own.

use std::path::{Path, PathBuf};

use lateralis_traces::{Joined, Relation, Tie, TimeBase};

/// Timelines of traces that are read as one.
///
/// Recordings under different paths whose clocks are unrelated (see [`lateralis_traces::Relation`]) have
/// different timelines: nothing that begins in one ends in the other. Traces under one path belong
/// together, whatever their clocks are.
#[derive(Debug, Default)]
pub struct TimeLines {
    /// Name of the timeline of each trace; `None`: the first.
    pub of_parts: Vec<Option<String>>,
    /// Remarks for the user, a sentence each.
    pub told: Vec<String>,
}

impl TimeLines {
    /// For traces that were opened by these paths.
    ///
    /// Cost: each path against each.
    pub fn of(source: &Joined, paths: &[PathBuf]) -> Self {
        let parts = source.parts();
        if paths.len() < 2 || parts.len() < 2 {
            return Self { of_parts: vec![None; parts.len()], told: Vec::new() };
        }
        let path_of = |place: &str| {
            paths.iter().position(|path| Path::new(place).starts_with(path)).unwrap_or(0)
        };
        let of_parts: Vec<usize> = parts.iter().map(|part| path_of(&part.place)).collect();
        // The clock of a path is that of its first trace that has one.
        let base = |path: usize| -> Option<&TimeBase> {
            let mut own = of_parts.iter().zip(source.bases()).filter(|(of, _)| **of == path);
            own.find_map(|(_, base)| base.as_ref())
        };
        let tie = |a: usize, b: usize| Some(base(a)?.tie(base(b)?));
        let name = |path: usize| paths[path].display().to_string();
        // The first path to which each path is related.
        let mut first: Vec<usize> = Vec::with_capacity(paths.len());
        let mut told = Vec::new();
        for path in 0..paths.len() {
            let related = |other: &usize| {
                first[*other] == *other
                    && tie(*other, path).is_none_or(|tie| tie.relation != Relation::Unrelated)
            };
            let found = (0..path).find(related);
            told.extend(match found {
                Some(other) => loose(&name(path), &name(other), tie(other, path)),
                None if path > 0 => Some(format!(
                    "{}: its clock is not related to that of {}: nothing is joined between them, and \
                     its spans and channels carry its name",
                    name(path),
                    name(0)
                )),
                None => None,
            });
            first.push(found.unwrap_or(path));
        }
        let line = |path: &usize| (first[*path] > 0).then(|| name(first[*path]));
        Self { of_parts: of_parts.iter().map(line).collect(), told }
    }
}

/// Remark on recordings that are only related by date. The largest error of their clocks is in the
/// tables, for each span and message.
fn loose(path: &str, other: &str, tie: Option<Tie>) -> Option<String> {
    let is_loose = |tie: &Tie| {
        matches!(tie.relation, Relation::Epoch | Relation::Origin) && tie.error_ns.is_none()
    };
    tie.filter(is_loose).map(|tie| {
        let by = match tie.relation {
            Relation::Origin => "a common origin",
            _ => "the date",
        };
        format!(
            "{path}: only {by} relates its clock to that of {other}, and nobody knows how far \
             apart they are: what is joined between them has no certain length"
        )
    })
}
