// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers with their quality, on a page and in JSON.

use lateralis_analysis::Gaps;
use lateralis_model::{Interval, Quality};
use lateralis_units::Nanos;
use serde_json::{Map, Value, json};

use crate::page::Page;

/// Behind the page where any number is not exact.
pub fn legend(page: &mut Page) {
    page.gap();
    line!(page, "≥ at least: with what was not recorded it could only be more");
    line!(page, "? of what was recorded: with what was not recorded it could be anything");
}

/// A number for people: `≥ 5` is at least 5, `5 ?` could be anything.
pub fn mark(text: String, quality: Quality) -> String {
    match quality {
        Quality::Exact => text,
        Quality::LowerBound => format!("≥ {text}"),
        Quality::Unknown => format!("{text} ?"),
    }
}

/// A JSON object whose member `not_exact` names the numbers in it that cannot be trusted
/// as they are.
#[derive(Debug, Default)]
pub struct Row {
    members: Map<String, Value>,
    not_exact: Map<String, Value>,
}

impl Row {
    /// A name, a time, a remark: what has no quality.
    pub fn plain(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// A number.
    pub fn number(mut self, name: &str, value: impl Into<Value>, quality: Quality) -> Self {
        if quality != Quality::Exact {
            self.not_exact.insert(name.to_owned(), json!(quality.name()));
        }
        self.plain(name, value)
    }

    /// Nanoseconds of sums beyond 64 bits saturate.
    pub fn nanos(self, name: &str, nanos: u128, quality: Quality) -> Self {
        self.number(name, u64::try_from(nanos).unwrap_or(u64::MAX), quality)
    }

    /// The object.
    pub fn value(self) -> Value {
        let mut members = self.members;
        members.insert("not_exact".to_owned(), Value::Object(self.not_exact));
        Value::Object(members)
    }
}

/// How far numbers about a stretch of time can be trusted.
#[derive(Debug, Clone, Copy)]
pub struct Trust {
    /// Counts and sums.
    pub sum: Quality,
    /// Everything else.
    pub value: Quality,
}

impl Trust {
    /// Of a chosen stretch; an open end is the end of time.
    pub fn new(gaps: &Gaps, chosen: Interval) -> Self {
        let begin = chosen.begin.unwrap_or(Nanos(i64::MIN));
        let end = chosen.end.unwrap_or(Nanos(i64::MAX));
        Self { sum: gaps.of_count(begin, end), value: gaps.of_value(begin, end) }
    }

    /// The same of something that can have gone on where nothing of it is known.
    pub fn at_least(self, is_open: bool) -> Self {
        let least = if is_open { Quality::LowerBound } else { Quality::Exact };
        Self { sum: self.sum.and(least), value: self.value.and(least) }
    }

    /// The same of something of which events are known to be missing besides.
    pub fn without(self, missing_count: u64) -> Self {
        match missing_count {
            0 => self,
            _ => Self { sum: self.sum.and(Quality::LowerBound), value: Quality::Unknown },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_stays_with_the_number() {
        let row = Row::default().plain("name", "a").number("n", 5, Quality::Unknown);
        let row = row.number("m", 6, Quality::Exact).nanos("t", 1 << 70, Quality::LowerBound);
        let expected = json!({
            "name": "a", "n": 5, "m": 6, "t": u64::MAX,
            "not_exact": { "n": "unknown", "t": "lower_bound" },
        });
        assert_eq!(row.value(), expected);
        assert_eq!(mark("5".into(), Quality::LowerBound), "≥ 5");
        assert_eq!(mark("5".into(), Quality::Unknown), "5 ?");
    }
}
