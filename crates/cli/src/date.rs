// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dates without a calendar library: UTC has no daylight saving.

use lateralis_units::Nanos;

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
}
