// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events that filters of scripts keep.

use lateralis_analysis::filter::Context;
use lateralis_lanes::RankedBits;
use lateralis_model::{Interval, Source as _};
use lateralis_script::{End, Script};
use lateralis_store::facts::Facts;
use lateralis_units::Nanos;

use super::beside::Watch;
use super::found::{FOUND_MAX, Finding, NOWHERE};
use super::places::Places;
use super::problem;
use crate::answer::Problem;
use crate::session::Session;

/// Results of the filters of a script.
pub struct Kept {
    /// By lane: number of events before the first one, and for each event whether it is kept.
    pub lanes: Vec<(u64, RankedBits)>,
    /// Time up to which all events were examined.
    pub until: i64,
}

impl Kept {
    /// Whether an event is kept, given by its lane and its index there including evicted events.
    #[must_use]
    pub fn has(&self, lane: u32, number: u64) -> bool {
        self.lanes.get(lane as usize).is_some_and(|(before, bits)| {
            let index = number.checked_sub(*before).and_then(|index| usize::try_from(index).ok());
            index.is_some_and(|index| bits.get(index))
        })
    }

    pub fn count(&self) -> usize {
        self.lanes.iter().map(|(_, bits)| bits.count()).sum()
    }

    /// Appends results for newer events, and drops those of evicted events.
    pub fn after(&self, session: &Session, seen: Vec<Vec<(i64, bool)>>, until: i64) -> Self {
        let lanes = (0u32..).zip(seen).map(|(lane, mut seen)| {
            if !seen.is_sorted_by_key(|(time, _)| *time) {
                // A stable sort keeps the order of events with equal times.
                seen.sort_by_key(|(time, _)| *time);
            }
            let nothing = (0, RankedBits::default());
            let known = self.lanes.get(lane as usize).unwrap_or(&nothing);
            let Some(points) = session.lanes.points(lane) else { return known.clone() };
            let forgotten = points.forgotten();
            let is_new = known.1.is_empty();
            let before = if is_new { forgotten } else { known.0 };
            let forgets = usize::try_from(forgotten.saturating_sub(before)).unwrap_or(usize::MAX);
            let left = known.1.len().saturating_sub(forgets);
            // Events that were read again may begin before the oldest event in the index.
            let wanted = points.len().saturating_sub(left);
            let missing = wanted.saturating_sub(seen.len());
            let fresh = seen[seen.len().saturating_sub(wanted)..].iter().map(|(_, is)| *is);
            let more = std::iter::repeat_n(false, missing).chain(fresh);
            (forgotten, known.1.after(forgotten, forgets, more))
        });
        Self { lanes: lanes.collect(), until }
    }
}

/// Runs a script over the events of a time range, both ends included; collects kept events by lane.
pub fn over(
    session: &Session,
    (begin, end): (i64, i64),
    script: &mut Script,
    seen: &mut Vec<Vec<(i64, bool)>>,
    finding: &mut Option<Finding>,
    watch: &Watch,
) -> Result<(), Problem> {
    let source = session.source_between(begin, end)?;
    let places = Places::new(&session.lanes);
    let mut facts = Facts::new(&source.trace, &source.recording.streams);
    let context = Context { names: &source.names, streams: &source.recording.streams };
    seen.resize(session.lanes.count() as usize, Vec::new());
    let has_filters = script.has_filters();
    let stretch = match session.growth {
        None => Interval::default(),
        Some(_) => Interval { begin: Some(Nanos(begin)), end: Some(Nanos(end)) },
    };
    if let Some(finding) = finding {
        let damage = source.recording.source.damage();
        finding.activities.set_gaps(source.recording.gaps(damage));
    }
    let mut events = source.recording.source.events_in(stretch);
    let mut looked = 0;
    while let Some(event) = events.next_event() {
        let at = facts.at(&event);
        facts.of(&event, |_, _| {});
        if !source.classes.contains_key(&event.class.name) {
            continue;
        }
        let is_kept = !has_filters || script.keeps(&event, &context).map_err(|e| problem(&e))?;
        let lane = places.of(&event, &at, &source.recording.streams);
        looked += u64::from(lane.is_some());
        watch.looked(looked)?;
        if let Some(lane) = lane.filter(|_| has_filters) {
            seen[lane as usize].push((event.time.0, is_kept));
        }
        // Events that are not kept are counted as well, because a tag contains the position among
        // all events.
        let tag = finding.as_mut().map_or(NOWHERE, |finding| finding.places.tag(lane, at.time.0));
        if let Some(Finding { activities, found, .. }) = finding.as_mut().filter(|_| is_kept) {
            let end = End { time: at.time, writer: at.writer, cpu: at.cpu, tag };
            let mut see = |activity| found.push(activity);
            let took = activities.event(script, &event, end, &context, &mut see);
            took.map_err(|error| problem(&error))?;
            if found.len() > FOUND_MAX {
                let advice = "have it find fewer, or filter first";
                return Err(Problem::new("more than 4 million activities", "script", advice));
            }
        }
    }
    Ok(())
}
