// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times as people write and read them.

use std::str::FromStr;

use lateralis_model::{Interval, Source as _, text as write};
use lateralis_store::Recording;
use lateralis_units::{NANOS_PER_SECOND, Nanos};

use crate::Error;
use crate::date::{self, NO_DATE_BEFORE};

const DAY_NANOS: i64 = 86_400 * NANOS_PER_SECOND;

/// A moment of a trace, in every form in which a command prints one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds after the beginning of the trace.
    After(i64),
    /// Nanoseconds before its end.
    BeforeEnd(i64),
    /// Nanoseconds on its timeline.
    At(i64),
    /// Nanoseconds after midnight, UTC, of the day on which it begins.
    TimeOfDay(i64),
}

/// What is said to somebody whose time is in none of the forms.
const FORMS: &str = "expected a time like 1.5s (after the beginning), -1s (before the end), 12:34:56.789, \
    2026-11-21T12:34:56Z, @1795224442.047685452 or 1795224442047685452 (nanoseconds)";

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(before) = text.strip_prefix('-')
            && let Ok(before) = duration_nanos(before)
            && !before.is_printed_time
        {
            return Ok(Self::BeforeEnd(before.nanos));
        }
        if let Some(after) = text.strip_prefix('+') {
            // As it is printed, to the nanosecond.
            if let Some(nanos) = seconds_nanos(after).filter(|nanos| *nanos >= 0) {
                return Ok(Self::After(nanos));
            }
            return Ok(Self::After(duration_nanos(after)?.nanos));
        }
        if let Some(seconds) = text.strip_prefix('@') {
            return Ok(Self::At(seconds_nanos(seconds).ok_or(FORMS)?));
        }
        // As text prints times that have no date: seconds with nine decimals, with or without their unit.
        let seconds = text.strip_suffix(" s").unwrap_or(text);
        if seconds.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 9)
            && let Some(nanos) = seconds_nanos(seconds)
        {
            return Ok(Self::At(nanos));
        }
        // As tables print times: nanoseconds. A number that small is one of seconds.
        if let Ok(nanos) = text.parse::<i64>()
            && nanos.unsigned_abs() >= SMALLEST_OF_TABLES
        {
            return Ok(Self::At(nanos));
        }
        if let Some(nanos) = date::parse(text) {
            return Ok(Self::At(nanos.0));
        }
        if text.contains(':') {
            return date::time_of_day(text).map(Self::TimeOfDay).ok_or_else(|| FORMS.to_owned());
        }
        Ok(Self::After(duration_nanos(text)?.nanos))
    }
}

/// A whole number from here on is a time of a table, below it is seconds: nobody counts 31 years from a
/// beginning, and a table whose machine started less than a second ago has times in microseconds.
const SMALLEST_OF_TABLES: u64 = 1_000_000_000;

/// A time that passes.
struct Passed {
    nanos: i64,
    /// It has the nine decimals that times of a timeline are printed with.
    is_printed_time: bool,
}

fn duration_nanos(text: &str) -> Result<Passed, String> {
    // A word, or a date that is none, is not a number with a wrong unit.
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if unit == text || unit.contains(|c: char| c.is_ascii_digit()) {
        return Err(FORMS.to_owned());
    }
    let duration = crate::values::parse_time(text)
        .map_err(|cause| if cause.starts_with("expected") { FORMS.to_owned() } else { cause })?;
    let nanos = i64::try_from(duration.as_nanos());
    Ok(Passed {
        nanos: nanos.map_err(|_| "further away than any trace".to_owned())?,
        is_printed_time: text
            .trim_end_matches([' ', 's'])
            .split_once('.')
            .is_some_and(|(_, d)| d.len() == 9),
    })
}

/// Seconds with up to nine decimals, without the rounding of floating point.
fn seconds_nanos(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(decimals) || decimals.len() > 9 {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let decimals: i64 = format!("{decimals:0<9}").parse().ok()?;
    whole.checked_mul(NANOS_PER_SECOND)?.checked_add(decimals)?.checked_mul(sign)
}

impl Moment {
    /// The moment in a trace that lasts from the beginning to the end of `extent`.
    pub fn nanos(self, extent: Interval) -> Nanos {
        let beginning = extent.begin.unwrap_or_default().0;
        Nanos(match self {
            Self::At(nanos) => nanos,
            Self::After(nanos) => beginning.saturating_add(nanos),
            Self::BeforeEnd(nanos) => {
                extent.end.unwrap_or(Nanos(beginning)).0.saturating_sub(nanos)
            }
            Self::TimeOfDay(nanos) => {
                beginning.div_euclid(DAY_NANOS).saturating_mul(DAY_NANOS).saturating_add(nanos)
            }
        })
    }
}

/// From when to when a recording lasts, for moments that count from there. `None` in both where no
/// moment is given: nothing is read then.
///
/// Cost: of [`Recording::beginning`].
pub fn extent(recording: &Recording, moments: [Option<Moment>; 2]) -> Interval {
    if moments == [None, None] {
        return Interval { begin: None, end: None };
    }
    Interval { begin: recording.beginning(), end: recording.source.interval().end }
}

/// The time from one moment to another, and a warning if a recording has nothing of it.
pub fn between(
    extent: Interval,
    from: Option<Moment>,
    until: Option<Moment>,
) -> (Interval, Option<String>) {
    let chosen = Interval {
        begin: from.map(|moment| moment.nanos(extent)),
        end: until.map(|moment| moment.nanos(extent)),
    };
    (chosen, outside(extent, chosen))
}

/// The time from one moment to another of a recording that is still being written, as far as it is known
/// when it began.
///
/// Errors: a moment is counted from the end, which is not known.
pub fn between_while_written(
    begin: Option<Nanos>,
    from: Option<Moment>,
    until: Option<Moment>,
) -> Result<Interval, Error> {
    if [from, until].iter().flatten().any(|moment| matches!(moment, Moment::BeforeEnd(_))) {
        return Err(Error::new(
            "no such time",
            "--from, --until",
            "the end is not known while a recording is followed: count from the beginning",
        ));
    }
    let so_far = Interval { begin, end: None };
    let moment = |moment: Option<Moment>| moment.map(|moment| moment.nanos(so_far));
    Ok(Interval { begin: moment(from), end: moment(until) })
}

/// Why no event can be in the chosen time.
fn outside(extent: Interval, chosen: Interval) -> Option<String> {
    if let (Some(from), Some(until)) = (chosen.begin, chosen.end)
        && until < from
    {
        return Some(format!(
            "--until {} is before --from {}",
            date::text(until),
            date::text(from)
        ));
    }
    let (Some(begin), Some(end)) = (extent.begin, extent.end) else { return None };
    let trace = || format!("the recording is from {} to {}", date::text(begin), date::text(end));
    if let Some(from) = chosen.begin.filter(|from| *from > end) {
        return Some(format!("--from {} is after its end: {}", date::text(from), trace()));
    }
    let until = chosen.end.filter(|until| *until < begin)?;
    Some(format!("--until {} is before its beginning: {}", date::text(until), trace()))
}

/// Appends `HH:MM:SS.nnnnnnnnn` in UTC, or seconds where there is no date.
pub fn clock_time(out: &mut Vec<u8>, time: Nanos) {
    if time < NO_DATE_BEFORE {
        if time.0 < 0 {
            out.push(b'-');
        }
        let magnitude = time.0.unsigned_abs();
        write::decimal(out, magnitude / 1_000_000_000);
        out.push(b'.');
        write::padded(out, magnitude % 1_000_000_000, 9);
        return;
    }
    let of_day = (time.0 % DAY_NANOS) as u64;
    let seconds = of_day / 1_000_000_000;
    for (part, end) in [(seconds / 3600, b':'), (seconds / 60 % 60, b':'), (seconds % 60, b'.')] {
        write::padded(out, part, 2);
        out.push(end);
    }
    write::padded(out, of_day % 1_000_000_000, 9);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_every_way() {
        assert_eq!("1.5s".parse(), Ok(Moment::After(1_500_000_000)));
        assert_eq!("1.5".parse(), Ok(Moment::After(1_500_000_000)));
        assert_eq!("1.5 s".parse(), Ok(Moment::After(1_500_000_000)));
        assert_eq!("+250ms".parse(), Ok(Moment::After(250_000_000)));
        assert_eq!("-1s".parse(), Ok(Moment::BeforeEnd(1_000_000_000)));
        assert_eq!("@1795224442.047685452".parse(), Ok(Moment::At(1_795_224_442_047_685_452)));
        assert_eq!("00:01:02.5".parse(), Ok(Moment::TimeOfDay(62_500_000_000)));
        assert_eq!("6105.584997989".parse(), Ok(Moment::At(6_105_584_997_989)));
        assert_eq!("6105.584997989 s".parse(), Ok(Moment::At(6_105_584_997_989)));
        assert_eq!("-0.000000001".parse(), Ok(Moment::At(-1)));
        assert_eq!("1795224442047685452".parse(), Ok(Moment::At(1_795_224_442_047_685_452)));
        for wrong in
            ["", "soon", "25:00:00", "1:2", "@", "@1.0000000001", "@x", "::", "-", "--1s", "1e9"]
        {
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_printed_time_is_read_back() {
        // Times before 1970 have no date, and print a sign.
        for nanos in
            [0, 1, -1, 1_500_000_000, 6_105_584_997_989, 1_795_224_442_047_685_452, -77_000_000_001]
        {
            let time = Nanos(nanos);
            let day = Interval { begin: Some(time), end: Some(time) };
            let mut short = Vec::new();
            clock_time(&mut short, time);
            let of_table = if nanos.unsigned_abs() < SMALLEST_OF_TABLES {
                None
            } else {
                Some(nanos.to_string())
            };
            let printed = [Some(date::text(time)), String::from_utf8(short).ok(), of_table];
            for text in printed.into_iter().flatten() {
                let read: Moment = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
                assert_eq!(read.nanos(day), time, "{text}");
            }
        }
    }

    #[test]
    fn moments_are_taken_from_the_beginning_and_the_end_of_the_trace() {
        let (begin, end) = (Nanos(3 * DAY_NANOS + 5), Nanos(3 * DAY_NANOS + 905));
        let trace = Interval { begin: Some(begin), end: Some(end) };
        assert_eq!(Moment::After(7).nanos(trace), Nanos(3 * DAY_NANOS + 12));
        assert_eq!(Moment::BeforeEnd(7).nanos(trace), Nanos(3 * DAY_NANOS + 898));
        assert_eq!(Moment::TimeOfDay(7).nanos(trace), Nanos(3 * DAY_NANOS + 7));
        assert_eq!(Moment::At(7).nanos(trace), Nanos(7));
    }

    #[test]
    fn a_time_that_the_trace_does_not_have_is_named() {
        let trace = Interval { begin: Some(Nanos(1_000)), end: Some(Nanos(9_000)) };
        let chosen = |begin: Option<i64>, end: Option<i64>| {
            outside(trace, Interval { begin: begin.map(Nanos), end: end.map(Nanos) })
                .unwrap_or_default()
        };
        assert!(
            chosen(Some(9_001), None)
                .contains("after its end: the recording is from 0.000001000 s")
        );
        assert!(chosen(None, Some(999)).contains("before its beginning"));
        assert!(chosen(Some(5_000), Some(4_000)).contains("is before --from"));
        for inside in
            [(None, None), (Some(9_000), None), (None, Some(1_000)), (Some(0), Some(10_000))]
        {
            assert_eq!(chosen(inside.0, inside.1), "");
        }
    }

    #[test]
    fn times_are_of_the_day_or_seconds() {
        let text = |nanos| {
            let mut out = Vec::new();
            clock_time(&mut out, Nanos(nanos));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(1_795_224_442_047_685_452), "01:27:22.047685452");
        assert_eq!(text(6_105_584_997_989), "6105.584997989");
        assert_eq!(text(-1), "-0.000000001");
    }
}
