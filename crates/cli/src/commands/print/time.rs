// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time formats of `lat print`. `--from` accepts every format except the difference.

use chrono::{DateTime, Local};
use clap::ValueEnum;
use lateralis_model::text as write;
use lateralis_store::Recording;
use lateralis_units::Nanos;

use crate::date::NO_DATE_BEFORE;
use crate::moment::clock_time;

/// Format of the time on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TimeForm {
    /// Time of day in UTC
    #[default]
    Utc,
    /// Date and time in the time zone of this machine (TZ), with its offset
    Local,
    /// Seconds after the beginning of the recording
    Relative,
    /// Seconds after the line before
    Delta,
    /// Seconds since 1970, or by the clock of the trace where it has no date
    Epoch,
}

/// Formats times.
#[derive(Debug)]
pub struct Times {
    form: TimeForm,
    /// Time that is subtracted: the start of the recording, or the time of the previous line.
    from: Option<Nanos>,
}

impl Times {
    /// For the events of a recording.
    pub fn new(recording: &Recording, form: TimeForm) -> Self {
        let from = match form {
            TimeForm::Relative => recording.beginning(),
            _ => None,
        };
        Self { form, from }
    }

    /// Appends the time of an event.
    pub fn push(&mut self, out: &mut Vec<u8>, time: Nanos) {
        match self.form {
            TimeForm::Utc => clock_time(out, time),
            TimeForm::Local => local(out, time),
            TimeForm::Epoch => seconds(out, i128::from(time.0)),
            TimeForm::Relative => passed(out, *self.from.get_or_insert(time), time),
            TimeForm::Delta => passed(out, self.from.replace(time).unwrap_or(time), time),
        }
    }
}

fn passed(out: &mut Vec<u8>, from: Nanos, to: Nanos) {
    let nanos = i128::from(to.0) - i128::from(from.0);
    if nanos >= 0 {
        out.push(b'+');
    }
    seconds(out, nanos);
}

fn seconds(out: &mut Vec<u8>, nanos: i128) {
    if nanos < 0 {
        out.push(b'-');
    }
    // The difference of two signed 64-bit numbers has a magnitude of at most 64 bits.
    let magnitude = u64::try_from(nanos.unsigned_abs()).unwrap_or(u64::MAX);
    write::decimal(out, magnitude / 1_000_000_000);
    out.push(b'.');
    write::padded(out, magnitude % 1_000_000_000, 9);
}

fn local(out: &mut Vec<u8>, time: Nanos) {
    if time < NO_DATE_BEFORE {
        return clock_time(out, time);
    }
    let here = DateTime::from_timestamp_nanos(time.0).with_timezone(&Local);
    out.extend_from_slice(here.format("%Y-%m-%d %H:%M:%S%.9f%:z").to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;
    use lateralis_model::Interval;

    fn printed(form: TimeForm, from: Option<i64>, times: &[i64]) -> Vec<String> {
        let mut to = Times { form, from: from.map(Nanos) };
        let each = |time: &i64| {
            let mut out = Vec::new();
            to.push(&mut out, Nanos(*time));
            String::from_utf8(out).unwrap()
        };
        times.iter().map(each).collect()
    }

    #[test]
    fn differences_are_from_the_beginning_or_the_line_before() {
        let times = [1_000_000_000, 2_500_000_001, 2_400_000_000];
        assert_eq!(
            printed(TimeForm::Relative, Some(1_000_000_000), &times),
            ["+0.000000000", "+1.500000001", "+1.400000000"]
        );
        assert_eq!(
            printed(TimeForm::Delta, None, &times),
            ["+0.000000000", "+1.500000001", "-0.100000001"]
        );
        assert_eq!(
            printed(TimeForm::Relative, Some(i64::MIN), &[i64::MAX]),
            ["+18446744073.709551615"]
        );
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let begin = 1_795_224_442_047_685_452;
        let extent = Interval { begin: Some(Nanos(begin)), end: None };
        for form in [TimeForm::Local, TimeForm::Relative, TimeForm::Epoch] {
            for time in [begin, begin + 1, begin + 8_640_000_123_456_789] {
                let text = &printed(form, Some(begin), &[time])[0];
                let read: Moment = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
                assert_eq!(read.nanos(extent), Nanos(time), "{text}");
            }
        }
    }
}
