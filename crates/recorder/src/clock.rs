// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conversion of clock ticks to UTC: frequency and offset, measured at both ends of a recording, and
//! their error.

use lateralis_ring::ClockKind;
use serde::{Deserialize, Serialize};

/// A simultaneous reading of the tick clock and the wall clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSample {
    /// The tick clock, in the middle of the reading.
    pub ticks: u64,
    /// UTC, nanoseconds since 1970.
    pub realtime_ns: i64,
    /// `CLOCK_MONOTONIC_RAW`, nanoseconds.
    pub monotonic_raw_ns: i64,
    /// `CLOCK_MONOTONIC`, nanoseconds; 0 if it was not read.
    #[serde(default)]
    pub monotonic_ns: i64,
    /// `CLOCK_BOOTTIME`, nanoseconds: `CLOCK_MONOTONIC` plus time in suspend.
    #[serde(default)]
    pub boottime_ns: i64,
    /// Ticks between the readings of the tick clock before and after the wall clock, which was
    /// read in between.
    pub window_ticks: u64,
}

/// Source of the frequency, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrequencySource {
    /// The clock counts nanoseconds, or the area specifies its frequency.
    Defined,
    /// The kernel's conversion factors in a perf_event page.
    PerfPage,
    /// CPUID leaf 15h or 16h, or the hypervisor's leaf 40000010h.
    Cpuid,
    /// Measured against `CLOCK_MONOTONIC_RAW`.
    Calibrated,
    /// Only from the times at the start of the traced program.
    AreaStart,
}

/// A clock as described in CTF, with its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockModel {
    /// Kind of the clock.
    pub kind: ClockKind,
    /// Ticks per second.
    pub frequency_hz: u64,
    /// Source of the frequency.
    pub source: FrequencySource,
    /// UTC of tick 0: whole seconds since 1970, possibly negative.
    pub offset_s: i64,
    /// Additional ticks, below `frequency_hz`.
    pub offset_ticks: u64,
    /// Error bound against the system's UTC, in nanoseconds: reading windows
    /// plus the drift of the two clocks between the measurements.
    pub error_ns: u64,
}

const NS: i128 = 1_000_000_000;

fn ns_of_ticks(ticks: u64, frequency_hz: u64) -> i128 {
    i128::from(ticks) * NS / i128::from(frequency_hz.max(1))
}

/// Ticks per second between two samples of a recording, against `CLOCK_MONOTONIC_RAW`; `short`
/// if they are less than a tenth of a second apart, as an earlier measurement is as good.
pub fn counted_hz(start: &ClockSample, end: &ClockSample, short: u64) -> u64 {
    let ns = i128::from(end.monotonic_raw_ns) - i128::from(start.monotonic_raw_ns);
    let ticks = i128::from(end.ticks) - i128::from(start.ticks);
    if ns < NS / 10 || ticks <= 0 {
        return short;
    }
    u64::try_from((ticks * NS + ns / 2) / ns).unwrap_or(short).max(1)
}

/// Differences up to this are attributed to reading the clocks one after the other.
const READ_APART_NS: i64 = 1_000_000;

/// Describes changes of the clocks between two samples that a linear fit hides, one
/// sentence each.
pub fn incidents(start: &ClockSample, end: &ClockSample, frequency_hz: u64) -> Vec<String> {
    let mut told = Vec::new();
    let is_read = |sample: &ClockSample| sample.monotonic_ns != 0 && sample.boottime_ns != 0;
    if !is_read(start) || !is_read(end) {
        return told;
    }
    let seconds = |ns: i64| format!("{:.3} s", ns as f64 / 1e9);
    // Clock discipline affects both clocks alike; only a step moves one against the other.
    let date = |sample: &ClockSample| sample.realtime_ns.saturating_sub(sample.monotonic_ns);
    let step = date(end).saturating_sub(date(start));
    if step.unsigned_abs() > READ_APART_NS.unsigned_abs() {
        let way = if step > 0 { "forward" } else { "back" };
        told.push(format!(
            "the date was set {way} by {} meanwhile: times of day here are off by up to that, \
             lengths of time are not",
            seconds(step.saturating_abs())
        ));
    }
    let asleep = |sample: &ClockSample| sample.boottime_ns.saturating_sub(sample.monotonic_ns);
    let slept = asleep(end).saturating_sub(asleep(start));
    if slept > READ_APART_NS {
        told.push(format!(
            "the machine was suspended for {} meanwhile: the counter may have stood still",
            seconds(slept)
        ));
    }
    let ticks = i128::from(end.ticks) - i128::from(start.ticks);
    let raw_ns = i128::from(end.monotonic_raw_ns) - i128::from(start.monotonic_raw_ns);
    let expected = raw_ns * i128::from(frequency_hz) / NS;
    // Below a second the reading windows dominate.
    if raw_ns >= NS && slept <= READ_APART_NS && (ticks - expected).abs() > expected / 1000 {
        told.push(format!(
            "the counter made {ticks} ticks in {} at {frequency_hz} Hz: it changed its pace, or the \
             frequency is wrong",
            seconds(raw_ns as i64)
        ));
    }
    told
}

impl ClockModel {
    /// Fits the offset to one or two samples; with two, the error is split between the ends.
    pub fn fit(
        kind: ClockKind,
        frequency_hz: u64,
        source: FrequencySource,
        start: &ClockSample,
        end: Option<&ClockSample>,
    ) -> ClockModel {
        let frequency_hz = frequency_hz.max(1);
        // UTC of tick 0 in nanoseconds, by each sample.
        let origin = |sample: &ClockSample| {
            i128::from(sample.realtime_ns) - ns_of_ticks(sample.ticks, frequency_hz)
        };
        let window_ns = |sample: &ClockSample| ns_of_ticks(sample.window_ticks, frequency_hz);
        let first = origin(start);
        let last = end.map_or(first, origin);
        let middle = first + (last - first) / 2;
        let window = window_ns(start).max(end.map_or(0, window_ns));
        // Half of the reading window, half of the drift, one for rounding.
        let error_ns = (last - first).abs() / 2 + window / 2 + 1;
        let offset_s = middle.div_euclid(NS);
        let offset_ticks = middle.rem_euclid(NS) * i128::from(frequency_hz) / NS;
        ClockModel {
            kind,
            frequency_hz,
            source,
            offset_s: offset_s as i64,
            offset_ticks: offset_ticks as u64,
            error_ns: u64::try_from(error_ns).unwrap_or(u64::MAX),
        }
    }

    /// UTC of a tick, nanoseconds since 1970.
    pub fn utc_ns(&self, ticks: u64) -> i64 {
        let ns = i128::from(self.offset_s) * NS
            + (i128::from(ticks) + i128::from(self.offset_ticks)) * NS
                / i128::from(self.frequency_hz.max(1));
        ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Converts a duration in ticks to nanoseconds.
    pub fn ns(&self, ticks: u64) -> u64 {
        u64::try_from(ns_of_ticks(ticks, self.frequency_hz)).unwrap_or(u64::MAX)
    }

    /// Converts a duration in nanoseconds to ticks.
    pub fn ticks(&self, ns: u64) -> u64 {
        let ticks = u128::from(ns) * u128::from(self.frequency_hz) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ticks: u64, realtime_ns: i64) -> ClockSample {
        ClockSample { ticks, realtime_ns, window_ticks: 100, ..ClockSample::default() }
    }

    #[test]
    fn steps_sleep_and_another_pace_are_told() {
        let hz = 1_000_000_000;
        let after = |ns: i64| ClockSample {
            ticks: (5_000 + ns) as u64,
            realtime_ns: 1_700_000_000_000_000_000 + ns,
            monotonic_raw_ns: 70 + ns,
            monotonic_ns: 90 + ns,
            boottime_ns: 190 + ns,
            window_ticks: 100,
        };
        let (start, end) = (after(0), after(10_000_000_000));
        assert_eq!(incidents(&start, &end, hz), Vec::<String>::new());
        let only = |end: ClockSample, hz, word: &str| {
            let told = incidents(&start, &end, hz);
            assert!(told.len() == 1 && told[0].contains(word), "{told:?}");
        };
        only(
            ClockSample { realtime_ns: end.realtime_ns + 2_000_000, ..end },
            hz,
            "forward by 0.002 s",
        );
        only(
            ClockSample { realtime_ns: end.realtime_ns - 5_000_000_000, ..end },
            hz,
            "back by 5.000 s",
        );
        let slept = end.boottime_ns + 3_000_000_000;
        only(ClockSample { boottime_ns: slept, ticks: 6_000, ..end }, hz, "suspended for 3.000 s");
        only(end, hz + hz / 500, "its pace");
        // Clocks that were not read cause no sentence.
        let unread = ClockSample { monotonic_ns: 0, boottime_ns: 0, realtime_ns: 7, ..end };
        assert!(incidents(&start, &unread, hz).is_empty());
        let extreme = ClockSample { realtime_ns: i64::MIN, boottime_ns: i64::MAX, ticks: 0, ..end };
        incidents(&start, &extreme, u64::MAX);
    }

    #[test]
    fn one_sample_maps_onto_itself() {
        for hz in [1_000_000_000, 2_300_000_000, 24_000_000, 1] {
            let start = sample(77_000_000_123, 1_700_000_000_123_456_789);
            let clock =
                ClockModel::fit(ClockKind::X86Tsc, hz, FrequencySource::Cpuid, &start, None);
            let off = clock.utc_ns(start.ticks) - start.realtime_ns;
            assert!(off.unsigned_abs() <= 1_000_000_000 / hz + 1, "{hz}: {off}");
            assert!(clock.offset_ticks < hz);
        }
    }

    #[test]
    fn the_error_covers_both_ends() {
        let hz = 2_300_000_000;
        let start = sample(0, 1_000_000_000);
        let end = sample(hz * 10, 11_000_004_000);
        let clock =
            ClockModel::fit(ClockKind::X86Tsc, hz, FrequencySource::Cpuid, &start, Some(&end));
        for sample in [start, end] {
            let off = (clock.utc_ns(sample.ticks) - sample.realtime_ns).unsigned_abs();
            assert!(off <= clock.error_ns, "{off} > {}", clock.error_ns);
        }
        assert!(clock.error_ns < 2_100);
    }

    #[test]
    fn a_step_of_the_wall_clock_changes_no_duration_and_is_within_the_bound() {
        let hz = 2_000_000_000;
        let at =
            |seconds: i64, step_ns| sample(hz * seconds as u64, seconds * 1_000_000_000 + step_ns);
        let (start, hour) = (at(1000, 0), 3_600_000_000_000);
        for step in [hour, -hour, 20_100_000] {
            let end = at(1010, step);
            let source = FrequencySource::PerfPage;
            let clock = ClockModel::fit(ClockKind::X86Tsc, hz, source, &start, Some(&end));
            // Half of it at either end, which the bound includes.
            let bound = step.unsigned_abs() / 2;
            assert!((bound..bound + 1000).contains(&clock.error_ns), "{}", clock.error_ns);
            let (first, last) = (clock.utc_ns(start.ticks), clock.utc_ns(end.ticks));
            assert_eq!(last - first, 10_000_000_000);
            assert!(first.abs_diff(start.realtime_ns) <= clock.error_ns);
            assert!(last.abs_diff(end.realtime_ns) <= clock.error_ns);
        }
    }

    #[test]
    fn before_1970_and_extremes_do_not_overflow() {
        let start = sample(u64::MAX, i64::MIN);
        let clock =
            ClockModel::fit(ClockKind::MonotonicNs, 1, FrequencySource::Defined, &start, None);
        clock.utc_ns(0);
        clock.utc_ns(u64::MAX);
        assert_eq!(clock.ticks(u64::MAX), u64::MAX / 1_000_000_000);
    }
}
