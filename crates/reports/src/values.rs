// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sizes, times and counts as people write and read them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Parses a size in bytes: a number and, optionally, K, M, G or T for powers of
/// 1024 (also `KiB`, `MiB` …).
///
/// Errors: a sentence for the argument parser.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return Err(format!("unknown unit: {unit}: use K, M, G or T")),
    };
    let number: u64 = number.parse().map_err(|_| "expected a size like 64K or 4M".to_string())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "larger than any memory: use a smaller size".to_string())
}

/// Parses a time: a number, decimals allowed, and ns, us, ms, s, m or h; without
/// a unit, seconds.
///
/// Errors: a sentence for the argument parser.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds_each = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("unknown unit: {unit}: use ns, us, ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a time like 10s or 1.5m".to_string())?;
    Duration::try_from_secs_f64(number * seconds_each)
        .map_err(|_| "not a time that passes: use a smaller one".to_string())
}

/// Parses a count, a whole number.
///
/// Errors: a sentence for the argument parser.
pub fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number of events, like 100".to_owned())
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// See [`group_digits`].
static ARE_GROUPED: AtomicBool = AtomicBool::new(false);

/// From now on, [`count`] makes groups of three digits: pages go to a terminal.
pub fn group_digits() {
    ARE_GROUPED.store(true, Ordering::Relaxed);
}

/// A count: digits alone where a program reads them, in groups of three on a terminal.
pub fn count(number: u64) -> String {
    if ARE_GROUPED.load(Ordering::Relaxed) { grouped(number) } else { number.to_string() }
}

/// A count with narrow no-break spaces between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A count and its noun: `1 event`, `2 events`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = match noun {
        "process" | "loss" | "branch" => "es",
        _ => "s",
    };
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { plural })
}

/// A size in the unit that leaves three digits: `12.4 MiB`.
pub fn bytes(number: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{number} B")
    } else {
        format!("{} {}", three_digits(value), units[unit])
    }
}

/// A rate per second: `98.7 k/s`.
pub fn rate(per_second: f64) -> String {
    let units = ["", " k", " M", " G"];
    let mut value = if per_second.is_finite() { per_second.max(0.0) } else { 0.0 };
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{}{}/s", three_digits(value), units[unit])
}

/// A time in the unit that leaves three digits: `1.25 ms`.
pub fn time(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{} µs", three_digits(nanos as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", three_digits(nanos as f64 / 1e6)),
        _ => format!("{} s", three_digits(nanos as f64 / 1e9)),
    }
}

/// A time with its fraction, as means and standard deviations have, in the same units: `10.7 ns`, `1.25 ms`.
pub fn mean_time(nanos: f64) -> String {
    match nanos {
        v if v.fract() == 0.0 || v >= 999.5 => time(v.round() as u64),
        v => format!("{} ns", three_digits(v)),
    }
}

fn three_digits(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1024() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("64K"), Ok(65536));
        assert_eq!(parse_bytes("4MiB"), Ok(4 << 20));
        assert!(parse_bytes("4 parsecs").is_err());
        assert!(parse_bytes("").is_err());
        assert!(parse_bytes("99999999999T").is_err());
        assert_eq!(parse_count("100"), Ok(100));
        assert!(parse_count("x").unwrap_err().contains("whole number"));
        assert!(parse_count("-1").is_err() && parse_count("").is_err());
    }

    #[test]
    fn means_are_shown_with_three_digits() {
        let shown = [0.0, 0.5, 7.0, 32.0 / 3.0, 500.5, 999.4, 999.6, 1250.5, 2.5e9].map(mean_time);
        let expected = [
            "0 ns", "0.50 ns", "7 ns", "10.7 ns", "500 ns", "999 ns", "1.00 µs", "1.25 µs",
            "2.50 s",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn times_are_read_with_and_without_unit() {
        assert_eq!(parse_time("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_time("soon").is_err());
        assert!(parse_time("1 fortnight").is_err());
        assert!(parse_time("1e400").is_err());
    }

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(count(0), "0");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(counted(1, "event"), "1 event");
        assert_eq!(counted(2, "process"), "2 processes");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(13_000_000), "12.4 MiB");
        assert_eq!(rate(98_700.0), "98.7 k/s");
        assert_eq!(time(999), "999 ns");
        assert_eq!(time(1_250_000), "1.25 ms");
        assert_eq!(time(3_000_000_000), "3.00 s");
    }
}
