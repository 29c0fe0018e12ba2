// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times as people write and read them.

use std::str::FromStr;

use lateralis_model::text as write;
use lateralis_units::{NANOS_PER_SECOND, Nanos};

use crate::date::NO_DATE_BEFORE;

const DAY_NANOS: i64 = 86_400 * NANOS_PER_SECOND;

/// A place on the time line of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// So many nanoseconds after the beginning of the trace.
    After(i64),
    /// So many nanoseconds on its time line.
    At(i64),
    /// So many nanoseconds after midnight, UTC, of the day it begins.
    TimeOfDay(i64),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(seconds) = text.strip_prefix('@') {
            return Ok(Self::At(seconds_nanos(seconds)?));
        }
        let parts: Vec<&str> = text.split(':').collect();
        if let [hours, minutes, seconds] = parts[..] {
            let whole = |text: &str, most: i64| {
                text.parse::<i64>().ok().filter(|number| (0..most).contains(number))
            };
            let (Some(hours), Some(minutes)) = (whole(hours, 24), whole(minutes, 60)) else {
                return Err("expected HH:MM:SS".to_owned());
            };
            let seconds = seconds_nanos(seconds)?;
            let minutes = hours * 60 + minutes;
            return Ok(Self::TimeOfDay(minutes * 60 * NANOS_PER_SECOND + seconds));
        }
        let after = crate::values::parse_time(text.trim_start_matches('+'))?;
        let nanos = i64::try_from(after.as_nanos());
        Ok(Self::After(nanos.map_err(|_| "further away than any trace".to_owned())?))
    }
}

/// Seconds with up to nine decimals, without the rounding of floating point.
fn seconds_nanos(text: &str) -> Result<i64, String> {
    let expected = || "expected seconds like 1795224442.047685452".to_owned();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) || decimals.len() > 9 {
        return Err(expected());
    }
    let whole: i64 = whole.parse().map_err(|_| expected())?;
    let decimals: i64 = format!("{decimals:0<9}").parse().map_err(|_| expected())?;
    let nanos = whole.checked_mul(NANOS_PER_SECOND).and_then(|nanos| nanos.checked_add(decimals));
    nanos.ok_or_else(expected)
}

impl Moment {
    /// The moment in a trace that begins at `beginning`.
    pub fn nanos(self, beginning: Option<Nanos>) -> Nanos {
        let beginning = beginning.unwrap_or_default().0;
        Nanos(match self {
            Self::At(nanos) => nanos,
            Self::After(nanos) => beginning.saturating_add(nanos),
            Self::TimeOfDay(nanos) => {
                beginning.div_euclid(DAY_NANOS).saturating_mul(DAY_NANOS).saturating_add(nanos)
            }
        })
    }
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
    fn moments_are_read_in_three_ways() {
        assert_eq!("1.5s".parse(), Ok(Moment::After(1_500_000_000)));
        assert_eq!("+250ms".parse(), Ok(Moment::After(250_000_000)));
        assert_eq!("@1795224442.047685452".parse(), Ok(Moment::At(1_795_224_442_047_685_452)));
        assert_eq!("00:01:02.5".parse(), Ok(Moment::TimeOfDay(62_500_000_000)));
        for wrong in ["", "soon", "25:00:00", "1:2", "@", "@1.0000000001", "@x", "::"] {
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_are_taken_from_the_beginning_of_the_trace() {
        let beginning = Some(Nanos(3 * DAY_NANOS + 5));
        assert_eq!(Moment::After(7).nanos(beginning), Nanos(3 * DAY_NANOS + 12));
        assert_eq!(Moment::TimeOfDay(7).nanos(beginning), Nanos(3 * DAY_NANOS + 7));
        assert_eq!(Moment::At(7).nanos(beginning), Nanos(7));
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
