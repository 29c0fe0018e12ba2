// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dates without a calendar library: UTC has no daylight saving.

use lateralis_units::{NANOS_PER_SECOND, Nanos};

/// A time line that begins before 1973 has not begun in 1970: its times are
/// seconds since something else, usually the start of the machine.
pub const NO_DATE_BEFORE: Nanos = Nanos(100_000_000 * 1_000_000_000);

/// `2026-11-21 04:25:12.000000001` in UTC, or seconds where there is no date.
pub fn text(time: Nanos) -> String {
    if time < NO_DATE_BEFORE {
        return format!("{time} s");
    }
    let seconds = time.0.div_euclid(1_000_000_000);
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hours, minutes, seconds) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let nanos = time.0.rem_euclid(1_000_000_000);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{nanos:09}")
}

/// Year, month and day of a number of days since 1970-01-01, by counting 400
/// years of 146,097 days from 1 March of the year 0, so that the leap day is the
/// last day of a year.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March have 31, 30, 31, 30, 31 days, twice and a bit: 153 in 5.
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// A date with a time as [`text`] prints it, or as RFC 3339 §5.6 has it; without a zone UTC.
pub fn parse(text: &str) -> Option<Nanos> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts =
        date.splitn(3, '-').map(|part| number(part, if part.len() == 4 { 4 } else { 2 }));
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let days = days_since_1970(year, month, day);
    if civil(days) != (year, month, day) {
        return None;
    }
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let (time, zone_minutes) = split_zone(time)?;
    let of_day = time_of_day(time)?;
    let seconds = days.checked_mul(86_400)?.checked_sub(zone_minutes * 60)?;
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(of_day).map(Nanos)
}

/// Nanoseconds of `HH:MM:SS` with up to nine decimals.
pub fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let hours = number(hours, 2).filter(|hours| *hours < 24)?;
    let minutes = number(minutes, 2).filter(|minutes| *minutes < 60)?;
    let (seconds, decimals) = seconds.split_once('.').unwrap_or((seconds, ""));
    let seconds = number(seconds, 2).filter(|seconds| *seconds < 60)?;
    let nanos = if decimals.is_empty() { 0 } else { number(&format!("{decimals:0<9}"), 9)? };
    Some(((hours * 60 + minutes) * 60 + seconds) * NANOS_PER_SECOND + nanos)
}

/// A number of exactly so many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// The time without its zone, and how many minutes the zone is ahead of UTC.
fn split_zone(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (time, zone) = text.split_at(at);
    let (hours, minutes) = zone[1..].split_once(':')?;
    let hours = number(hours, 2).filter(|hours| *hours < 24)?;
    let minutes = number(minutes, 2).filter(|minutes| *minutes < 60)?;
    let ahead = hours * 60 + minutes;
    Some((time, if zone.starts_with('-') { -ahead } else { ahead }))
}

/// The inverse of [`civil`], which has the arithmetic.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let year_of_era = year.rem_euclid(400);
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    year.div_euclid(400) * 146_097 + of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_778), (2026, 11, 21));
        assert_eq!(civil(-1), (1969, 12, 31));
    }

    #[test]
    fn every_day_of_four_hundred_years_follows_the_one_before() {
        let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(civil(days), (year, month, day));
            assert_eq!(days_since_1970(year, month, day), days);
            let lengths = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            day += 1;
            if day > lengths[month as usize - 1] {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn times_are_dates_or_seconds() {
        assert_eq!(text(Nanos(1_795_235_112_000_000_001)), "2026-11-21 04:25:12.000000001");
        assert_eq!(text(Nanos(6_105_584_997_989)), "6105.584997989 s");
    }

    #[test]
    fn dates_are_read_as_they_are_printed_and_as_rfc_3339_has_them() {
        let at = |text: &str| parse(text).map(|time| time.0);
        let expected = Some(1_795_235_112_000_000_001);
        assert_eq!(at("2026-11-21 04:25:12.000000001"), expected);
        assert_eq!(at("2026-11-21T04:25:12.000000001Z"), expected);
        assert_eq!(at("2026-11-21T05:55:12.000000001+01:30"), expected);
        assert_eq!(at("2026-11-20t23:25:12.000000001-05:00"), expected);
        assert_eq!(at("1970-01-01T00:00:00z"), Some(0));
        for wrong in [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-21",
            "2026-11-21T24:00:00Z",
            "é026-11-21T",
            "2026-11-21T00:00:00.0000000001Z",
            "2026-11-21T00:00Z",
            "2026-11-21T00:00:00+25:00",
            "9999-01-01T00:00:00Z",
            "2026-11-21T00:00:00+é",
            "26-11-21T00:00:00Z",
            "",
        ] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
