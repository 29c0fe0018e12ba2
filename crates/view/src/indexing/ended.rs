// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts of the index that are known only after all events were read: recordings, losses and damage.

use std::collections::HashMap;

use lateralis_lanes::{Builder, Contradictory, Lost, Meta, Missing, Recorded};
use lateralis_model::{Clock, Damage, Interval, LossCause, Source};
use lateralis_semantics::{Contradiction, Contradictions};
use lateralis_store::Recording;
use lateralis_units::Nanos;

use super::is_real;
use super::lists::Lists;

/// Maximum number of listed reasons why a recording is incomplete.
const FAULTS_MAX: usize = 100;

/// The recordings of a session. The number of events is known only for all recordings together.
pub fn recordings(recording: &Recording, meta: &Meta) -> Vec<Recorded> {
    let events: u64 = meta.classes.iter().map(|class| class.count).sum();
    let losses = recording.source.losses();
    let is_lossy = losses.iter().any(is_real)
        || !recording.source.damage().is_empty()
        || !left_out(recording).is_empty();
    let quality = if is_lossy { "lower_bound" } else { "exact" };
    let mut clocks = recording.source.trace().clocks.iter().map(Clock::frequency);
    let ticks_hz = clocks.next().filter(|hz| clocks.all(|other| other == *hz));
    let of = |path: &std::path::PathBuf| Recorded {
        path: path.display().to_string(),
        format: recording.source.format().to_owned(),
        events,
        quality: quality.to_owned(),
        ticks_hz,
    };
    recording.paths.iter().map(of).collect()
}

/// Event classes that were filtered or disabled completely or partly, in order, as used by `lat
/// stats` and the tables.
pub fn left_out(recording: &Recording) -> Vec<String> {
    recording.filtered.union(&recording.disabled).cloned().collect()
}

/// Adds losses and damage to the lists and to their lanes.
pub fn missing(
    recording: &Recording,
    damage: &[Damage],
    lane_of: &dyn Fn(u32) -> Option<u32>,
    meta: &mut Meta,
    builder: &mut Builder,
) {
    meta.filtered = left_out(recording);
    let (origin, end) = (meta.origin, meta.end);
    let since =
        |time: i64| u64::try_from(i128::from(time) - i128::from(origin)).unwrap_or(0).min(end);
    let ends = |interval: Interval| {
        let begin = interval.begin.map_or(0, |time| since(time.0));
        (begin, interval.end.map_or(end, |time| since(time.0)).max(begin))
    };
    for class in &mut meta.classes {
        class.first = class.first.map(|time| since(time as i64));
        class.last = class.last.map(|time| since(time as i64));
    }
    let mut lost: Vec<(Option<u32>, (u64, u64))> = Vec::new();
    for loss in recording.source.losses().iter().filter(|loss| is_real(loss)) {
        let lane = lane_of(loss.stream.0);
        let (begin, end) = match loss.cause {
            // These losses belong to a thread, which may have lost the events at any earlier time.
            LossCause::NoRing => ends(Interval { begin: None, ..loss.interval }),
            _ => ends(loss.interval),
        };
        lost.push((lane, (begin, end)));
        let cause = loss.cause.name().to_owned();
        meta.losses.push(Lost { lane, begin, end, count: loss.count, cause });
    }
    let mut damaged: Vec<(Option<u32>, (u64, u64))> = Vec::new();
    for damage in damage {
        let is_it =
            |name: &str| !name.is_empty() && std::path::Path::new(&damage.file).ends_with(name);
        let stream = recording.streams.iter().position(|stream| is_it(&stream.name));
        let lane = stream.and_then(|stream| lane_of(stream as u32));
        let (begin, end) = ends(damage.interval);
        damaged.push((lane, (begin, end)));
        meta.damage.push(Missing {
            lane,
            file: damage.file.clone(),
            begin_bytes: damage.begin_bytes,
            end_bytes: damage.end_bytes,
            reason: damage.reason.to_string(),
            begin: damage.interval.begin.map(|_| begin),
            end: damage.interval.end.map(|_| end),
        });
    }
    // Reasons for the incompleteness of the whole recording have no lane and no bytes.
    for reason in recording.source.faults().into_iter().take(FAULTS_MAX) {
        let file = "the whole recording".to_owned();
        meta.damage.push(Missing { file, reason, ..Missing::default() });
    }
    for lane in 0..builder.lane_count() {
        let on = |all: &[(Option<u32>, (u64, u64))]| {
            let of = all.iter().filter(|(of, _)| of.is_none_or(|of| of == lane));
            merged(of.map(|(_, stretch)| *stretch).collect())
        };
        let (lost, damaged) = (on(&lost), on(&damaged));
        if let Some(lane) = builder.lane_mut(lane) {
            (lane.lost, lane.damaged) = (lost, damaged);
        }
    }
}

/// Adds contradictions between context switches to the list of problems. They do not affect the
/// number of events.
pub fn contradictions(found: &Contradictions, lists: &Lists, origin: i64, meta: &mut Meta) {
    let since = |time: Nanos| u64::try_from(i128::from(time.0) - i128::from(origin)).unwrap_or(0);
    let names: HashMap<u32, &str> =
        meta.threads.iter().filter_map(|of| Some((of.tid?, of.name.as_str()))).collect();
    let name = |tid: u32| {
        names.get(&tid).map_or_else(|| tid.to_string(), |name| format!("{name} ({tid})"))
    };
    let of = |of: &Contradiction| Contradictory {
        lane: lists.known_cpu_lane(of.cpu),
        begin: since(of.begin),
        end: since(of.end),
        reason: of.kind.described(name),
    };
    meta.contradictions = found.kept().iter().map(of).collect();
    meta.contradiction_count = found.count();
}

/// Merges an interval into disjoint ascending ones; usually it is the last.
pub fn merge_into(all: &mut Vec<(u64, u64)>, (begin, end): (u64, u64)) {
    let from = all.partition_point(|(_, until)| *until < begin);
    let to = from + all[from..].partition_point(|(since, _)| *since <= end);
    let touched = all[from..to].iter();
    let whole = touched.fold((begin, end), |(b, e), (since, until)| (b.min(*since), e.max(*until)));
    all.splice(from..to, [whole]);
}

/// Merges intervals to disjoint ascending ones.
fn merged(mut all: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    all.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(all.len());
    for (begin, end) in all {
        match merged.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((begin, end)),
        }
    }
    merged
}
