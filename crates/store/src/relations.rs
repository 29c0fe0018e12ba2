// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Aligns recordings of several machines on one timeline, from their mutual observations.
//!
//! ```text
//! report.json: exchanges ─┐
//! messages in both ───────┴─► Observed ─► Lines ─► a conversion of their clock, and its error
//! ```
//!
//! A trace converts its ticks by a frequency and an offset. So the line in the middle of all possible
//! ones is used, and its error is the largest distance of the possible ones from it at the ends of the
//! trace: in between none is further away.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lateralis_analysis::relate::{Crossings, Lines, Observed, Unknown};
use lateralis_model::{Clock, Interval, Source, Uuid};
use lateralis_traces::{Joined, PutOn, Relation, TimeBase};
use lateralis_units::{Nanos, Ticks};
use serde_json::Value;

use crate::Recording;
use crate::facts::{About, Fact, Facts};

/// Largest number of exchanges of one recording that are used.
const EXCHANGES_MAX: usize = 4096;
/// Error of times that are rounded down here.
const ROUNDING_NS: u32 = 2;
/// Clocks that do not run evenly contradict every straight line after a while. Then observations are
/// allowed to be wrong by this, twice this, and so on, and the error grows by the same amount.
const SLACK_NS: u32 = 500;
const SLACK_MAX_NS: u32 = 1_000_000_000;
/// Largest number of traces whose clocks are compared in pairs.
const CLOCKS_MAX: usize = 64;
/// Length for which the clock of a trace without duration is converted.
const LEAST_NS: i64 = 1_000_000_000;

/// Readings of two counters, from the report of a received recording.
struct Exchanges {
    their_clock: String,
    ours: Clock,
    /// Sent (ours), received (theirs), answered (theirs), answer received (ours).
    listed: Vec<[u64; 4]>,
}

impl Exchanges {
    /// `None` if the report has none, or they are invalid.
    fn of(report: &Value) -> Option<Self> {
        let said = &report["received"]["exchanges"];
        let text = |name: &str| said[name].as_str();
        let digits = text("our_clock_uuid")?.replace('-', "");
        let uuid = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
        let frequency = said["our_frequency_hz"].as_u64().filter(|hz| *hz > 0)?;
        let offset_ticks = i64::try_from(said["our_offset_ticks"].as_u64()?).ok()?;
        let offset_s = said["our_offset_s"].as_i64()?;
        let mut ours = Clock::new(text("our_clock")?, frequency, offset_s, offset_ticks);
        (ours.uuid, ours.unix_epoch) = (Some(Uuid(uuid.to_be_bytes())), true);
        let four = |one: &Value| {
            let ticks: Vec<u64> = one.as_array()?.iter().map_while(Value::as_u64).collect();
            <[u64; 4]>::try_from(ticks).ok()
        };
        let listed = said["listed"].as_array()?.iter().take(EXCHANGES_MAX);
        let listed = listed.map(four).collect::<Option<Vec<_>>>()?;
        Some(Self { their_clock: text("their_clock")?.to_owned(), ours, listed })
    }

    /// Observations, converted by both clocks.
    fn observed(&self, theirs: &Clock, ours: &Clock) -> Observed {
        let mut observed = Observed::default();
        for &[asked, received, sent, answered] in &self.listed {
            let (theirs, ours) = (|t| theirs.nanos(Ticks(t)).0, |t| ours.nanos(Ticks(t)).0);
            observed.not_before(theirs(received), ours(asked));
            observed.not_after(theirs(sent), ours(answered));
        }
        observed
    }
}

/// Puts received recordings on the timeline of the receiving machine, if there is another recording of it
/// or another one that it received. `reports` are those of the paths.
pub fn by_exchanges(source: &mut Joined, reports: &[(PathBuf, Option<Value>)]) {
    let of_path = |(path, report): &(PathBuf, Option<Value>)| {
        Some((path.clone(), Exchanges::of(report.as_ref()?)?))
    };
    let all: Vec<(PathBuf, Exchanges)> = reports.iter().filter_map(of_path).collect();
    for (path, exchanges) in &all {
        let ours = TimeBase::of_clock(exchanges.ours.clone(), "");
        let bases = || source.bases().iter().flatten();
        let reference = bases().find(|base| base.is_same(&ours)).cloned();
        let others = all.iter().filter(|(other, _)| other != path);
        let is_needed = reference.is_some() || { others }
            .any(|(_, other)| other.ours.uuid == exchanges.ours.uuid);
        let Some(their) = base_under(source, path, &exchanges.their_clock).cloned() else {
            continue;
        };
        // The clock is the same already.
        if !is_needed || their.placed().is_some() || their.line() == ours.line() {
            continue;
        }
        // If there are several received recordings and none of this machine, the first one's conversion
        // of our clock is used for all.
        let reference = reference.unwrap_or_else(|| {
            let first = all.iter().find(|(_, other)| other.ours.uuid == exchanges.ours.uuid);
            TimeBase::of_clock(first.map_or(&exchanges.ours, |(_, f)| &f.ours).clone(), "")
        });
        let observed = exchanges.observed(&their.clock, &reference.clock);
        if let Some((lines, slack)) = lines_of(&observed) {
            put(source, &their, &reference, &lines, (Relation::Exchange, slack));
        }
    }
}

/// The narrowest possible lines, and the error that observations had to be allowed.
fn lines_of(observed: &Observed) -> Option<(Lines, u64)> {
    let mut slack = 0;
    loop {
        match observed.lines(slack + ROUNDING_NS) {
            Ok(lines) => return Some((lines, slack.into())),
            Err(Unknown::OneWay) => return None,
            Err(Unknown::Contradiction) if slack >= SLACK_MAX_NS => return None,
            Err(Unknown::Contradiction) => slack = (slack * 2).max(SLACK_NS),
        }
    }
}

fn base_under<'s>(source: &'s Joined, path: &Path, clock: &str) -> Option<&'s TimeBase> {
    let several = source.parts().len() > 1;
    let is_under = |place: &str| !several || Path::new(place).starts_with(path);
    let parts = source.parts().iter().zip(source.bases());
    let mut bases = parts.filter(|(part, _)| is_under(&part.place)).filter_map(|(_, b)| b.as_ref());
    bases.find(|base| base.clock.name == clock)
}

/// Puts the times of a clock on the timeline of another. Returns whether that was possible.
fn put(
    source: &mut Joined,
    their: &TimeBase,
    reference: &TimeBase,
    lines: &Lines,
    (by, slack_ns): (Relation, u64),
) -> bool {
    let same = source.bases().iter().flatten().filter(|base| base.line() == their.line());
    let covered = same.fold(Interval::default(), |all, base| {
        let (own, least) =
            (base.interval(), |a: Option<Nanos>, b: Option<Nanos>| a.into_iter().chain(b).min());
        Interval { begin: least(all.begin, own.begin), end: all.end.max(own.end) }
    });
    let Some((clock, error)) = fitted(lines, &their.clock, covered) else { return false };
    let on = reference.placed();
    let error_ns = error.saturating_add(slack_ns).saturating_add(on.map_or(0, |on| on.error_ns));
    let mut clock = clock;
    clock.precision = reference.clock.precision_ns().map_or(0, |nanos| {
        let nanos = u128::from(nanos.saturating_add(error_ns));
        let ticks = (nanos * u128::from(clock.frequency())).div_ceil(1_000_000_000);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    });
    clock.unix_epoch = reference.clock.unix_epoch;
    clock.origin.clone_from(&reference.clock.origin);
    // The least precise relation on the way to that line counts.
    let by = on.map_or(by, |on| on.by.max(by));
    let placed = PutOn { line: reference.line().to_owned(), by, error_ns };
    source.place(their, &clock, &placed);
    true
}

/// Conversion of their ticks in the middle of all possible ones during the trace, and its largest
/// distance from them.
fn fitted(lines: &Lines, theirs: &Clock, covered: Interval) -> Option<(Clock, u64)> {
    let begin = covered.begin?.0;
    let end = covered.end?.0.max(begin.checked_add(LEAST_NS)?);
    let middle = |at: i64| {
        let (least, most) = lines.at(at);
        i128::from(least) + (i128::from(most) - i128::from(least)) / 2
    };
    let (from, to) = (middle(begin), middle(end));
    let (length, ours) = (i128::from(end) - i128::from(begin), to - from);
    // The same number of ticks in another length of time.
    let ticks = i128::from(theirs.frequency()).checked_mul(length)?;
    let frequency = ticks.checked_add(ours / 2)?.checked_div(ours)?;
    let frequency = u64::try_from(frequency).ok().filter(|hz| *hz > 0)?;
    let at = i64::try_from(i128::from(begin) + length / 2).ok()?;
    let ticks = i128::from(theirs.ticks(Nanos(at)).0);
    let zero = (from + to) / 2 - ticks * 1_000_000_000 / i128::from(frequency);
    let offset_s = i64::try_from(zero.div_euclid(1_000_000_000)).ok()?;
    let offset_ticks = zero.rem_euclid(1_000_000_000) * i128::from(frequency) / 1_000_000_000;
    let mut clock =
        Clock::new(&theirs.name, frequency, offset_s, i64::try_from(offset_ticks).ok()?);
    (clock.uuid, clock.description) = (theirs.uuid, theirs.description.clone());
    (clock.uid, clock.namespace) = (theirs.uid.clone(), theirs.namespace.clone());
    let off = |at: i64| {
        let (least, most) = lines.at(at);
        let taken = clock.nanos(theirs.ticks(Nanos(at))).0;
        taken.abs_diff(least).max(taken.abs_diff(most))
    };
    // A time identifies its tick only to the resolution of the coarser clock.
    let tick_ns = 1_000_000_000 / theirs.frequency().min(frequency) + 1;
    let error = off(begin).max(off(end)).saturating_add(u64::from(ROUNDING_NS) + tick_ns);
    Some((clock, error))
}

/// Puts recordings with other clocks than the first on its timeline, using messages that were exchanged
/// in both directions. Returns remarks about those for which that was not possible.
///
/// Cost: each event is examined. Memory: proportional to messages, see [`Crossings`].
pub fn by_messages(recording: &mut Recording) -> Vec<String> {
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut names = Vec::new();
    let parts = recording.source.parts().iter().zip(recording.source.bases());
    let clocks: Vec<Option<u32>> = parts
        .map(|(part, base)| {
            let line = base.as_ref()?.line().to_owned();
            let next = numbers.len() as u32;
            Some(*numbers.entry(line).or_insert_with(|| {
                names.push(part.place.clone());
                next
            }))
        })
        .collect();
    if names.len() < 2 || names.len() > CLOCKS_MAX {
        return Vec::new();
    }
    let before: Vec<Option<TimeBase>> = recording.source.bases().to_vec();
    let crossings = Found { crossings: crossings(recording, &clocks), clocks, before };
    let mut told = Vec::new();
    let mut known = vec![0u32];
    let mut left: Vec<u32> = (1..names.len() as u32).collect();
    // Repeatedly takes a recording that has messages with an aligned one, until there is none.
    loop {
        let found = left.iter().position(|theirs| {
            known.iter().any(|ours| crossings.tie(&mut recording.source, *theirs, *ours).is_ok())
        });
        let Some(found) = found else { break };
        known.push(left.remove(found));
    }
    for theirs in left {
        let why = known.iter().filter_map(|ours| {
            let observed = crossings.observed(&recording.source, theirs, *ours)?;
            observed.lines(ROUNDING_NS).err().map(|why| (why, observed.counts()))
        });
        let contradicts = { why.clone() }.any(|(why, _)| why == Unknown::Contradiction);
        let seen = why.fold(0, |sum, (_, counts)| sum + counts[0] + counts[1]);
        let why = match (contradicts, seen) {
            (true, _) => "no two clocks explain the messages between them",
            (_, 0) => "no message with a key that both have was sent once and received",
            _ => "messages went one way only",
        };
        told.push(format!(
            "{}: not related by messages: {why}: it is related as without --relate",
            names[theirs as usize]
        ));
    }
    if crossings.crossings.left_out() > 0 {
        let ends = crossings.crossings.left_out();
        told.push(format!(
            "messages: there was no room for {ends} ends of them: not used to relate"
        ));
    }
    told
}

fn crossings(recording: &Recording, clocks: &[Option<u32>]) -> Crossings {
    let trace = recording.annotated();
    let mut facts = Facts::new(&trace, &recording.streams);
    let mut crossings = Crossings::default();
    if !facts.only(About::Messages) {
        return crossings;
    }
    let mut of_streams: Vec<Option<u32>> = Vec::new();
    for (part, clock) in recording.source.parts().iter().zip(clocks) {
        of_streams.extend(part.source.streams().iter().map(|_| *clock));
    }
    // In any order: threads are not needed.
    recording.source.visit(&mut |event| {
        if !facts.means(event.stream_class_index, event.class_index) {
            return;
        }
        let Some(Some(clock)) = of_streams.get(event.stream.0 as usize) else { return };
        facts.of(event, |at, fact| match fact {
            Fact::Send { channel, key: Some(key) } => {
                crossings.send(channel, key, *clock, at.time);
            }
            Fact::Receive { channel, key: Some(key) } => {
                crossings.receive(channel, key, *clock, at.time);
            }
            _ => {}
        });
    });
    crossings
}

/// Messages between clocks.
struct Found {
    crossings: Crossings,
    /// Number of the clock of each trace.
    clocks: Vec<Option<u32>>,
    /// Original clock of each trace, which the times of the messages use.
    before: Vec<Option<TimeBase>>,
}

impl Found {
    fn base<'b>(&self, bases: &'b [Option<TimeBase>], clock: u32) -> Option<&'b TimeBase> {
        let at = self.clocks.iter().position(|of| *of == Some(clock))?;
        bases.get(at)?.as_ref()
    }

    /// Observations in our current times.
    fn observed(&self, source: &Joined, theirs: u32, ours: u32) -> Option<Observed> {
        let before = &self.base(&self.before, ours)?.clock;
        let now = &self.base(source.bases(), ours)?.clock;
        let our_time = |time: Nanos| now.nanos(before.ticks(time));
        Some(self.crossings.observed(theirs, ours, our_time))
    }

    /// Puts one clock on the timeline of another that has been aligned with the first.
    fn tie(&self, source: &mut Joined, theirs: u32, ours: u32) -> Result<(), Unknown> {
        let observed = self.observed(source, theirs, ours).ok_or(Unknown::OneWay)?;
        let bases = self.base(source.bases(), theirs).zip(self.base(source.bases(), ours));
        let (their, reference) =
            bases.map(|(a, b)| (a.clone(), b.clone())).ok_or(Unknown::OneWay)?;
        // Our times were rounded to ticks on the way.
        let tick_ns = 1_000_000_000 / reference.clock.frequency() + 1;
        let rounding = ROUNDING_NS.saturating_add(u32::try_from(tick_ns).unwrap_or(u32::MAX));
        let lines = observed.lines(rounding)?;
        match put(source, &their, &reference, &lines, (Relation::Messages, 0)) {
            true => Ok(()),
            false => Err(Unknown::OneWay),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(listed: Value, hz: u64) -> Value {
        json!({ "received": { "exchanges": {
            "their_clock": "tsc", "our_clock": "tsc",
            "our_clock_uuid": "01234567-89ab-cdef-0123-456789abcdef",
            "our_frequency_hz": hz, "our_offset_s": 1_700_000_000, "our_offset_ticks": 5,
            "made": 3, "listed": listed,
        }}})
    }

    #[test]
    fn what_is_fitted_is_no_further_from_the_truth_than_it_says() {
        let (theirs_hz, ours_hz) = (2_100_000_000u64, 3_000_000_000u64);
        // Theirs began a day earlier and runs 50 parts per million faster than declared.
        let theirs = |ours: u64| {
            let ticks = u128::from(ours) * 2_100_105_000 / 3_000_000_000;
            ticks as u64 + theirs_hz * 86_400
        };
        let listed: Vec<[u64; 4]> = (0..60u64)
            .map(|n| {
                let asked = (n + 5) * ours_hz;
                let (there, back) = (20_000 + n * n % 17 * 9_000, 30_000 + n * n % 13 * 7_000);
                let (came, went) = (asked + there, asked + there + 6_000);
                [asked, theirs(came), theirs(went), went + back]
            })
            .collect();
        let exchanges = Exchanges::of(&report(json!(listed), ours_hz)).expect("a good report");
        let clock = Clock::new("tsc", theirs_hz, 900, 0);
        let observed = exchanges.observed(&clock, &exchanges.ours);
        let (lines, slack) = lines_of(&observed).expect("a line");
        assert_eq!(slack, 0);
        let at = |seconds: u64| clock.nanos(Ticks(theirs(seconds * ours_hz)));
        let covered = Interval { begin: Some(at(1)), end: Some(at(100)) };
        let (fitted, error) = fitted(&lines, &clock, covered).expect("a clock");
        assert!(error < 60_000, "{error}");
        for seconds in 1..=100 {
            let truth = exchanges.ours.nanos(Ticks(seconds * ours_hz)).0;
            let said = fitted.nanos(Ticks(theirs(seconds * ours_hz))).0;
            assert!(said.abs_diff(truth) <= error, "{seconds} s: {said} {truth} {error}");
        }
    }

    #[test]
    fn reports_that_make_no_sense_relate_nothing() {
        let good = [[1u64, 2, 3, 4]];
        assert!(Exchanges::of(&report(json!(good), 1)).is_some());
        for listed in
            [json!([[1, 2, 3]]), json!([[1, 2, 3, -4]]), json!(7), json!([["a", 2, 3, 4]])]
        {
            assert!(Exchanges::of(&report(listed, 1)).is_none());
        }
        assert!(Exchanges::of(&report(json!(good), 0)).is_none());
        assert!(Exchanges::of(&json!({})).is_none());
        // Extreme numbers: no panic, and no result.
        for hz in [1, 1_000_000_000, u64::MAX] {
            let ends = [[0, u64::MAX, 0, u64::MAX], [u64::MAX; 4], [u64::MAX, 0, 0, 0]];
            let exchanges = Exchanges::of(&report(json!(ends), hz)).expect("numbers");
            for frequency in [1, u64::MAX] {
                let clock = Clock::new("tsc", frequency, i64::MIN, i64::MAX);
                let observed = exchanges.observed(&clock, &exchanges.ours);
                if let Some((lines, _)) = lines_of(&observed) {
                    let ends = [Nanos(i64::MIN), Nanos(i64::MAX)];
                    let [begin, end] = ends.map(Some);
                    fitted(&lines, &clock, Interval { begin, end });
                }
            }
        }
    }
}
