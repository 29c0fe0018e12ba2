// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat top --prometheus`: counters of events, losses and spans in the text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use lateralis_model::{LossCause, terminal};
use lateralis_reports::stats::gather::Statistics;

/// Series of one metric. A hostile program can have more names; the rest is counted together.
const SERIES_MAX: usize = 2000;
/// Characters of a name.
const NAME_MAX: usize = 200;
/// The name of events and spans that have no series of their own.
const OTHERS: &str = "(others)";
/// Causes of losses that every recording can have.
const OF_RINGS: [LossCause; 4] =
    [LossCause::Full, LossCause::TooBig, LossCause::Contended, LossCause::NoRing];
/// Percentiles of durations, as Prometheus writes them.
const QUANTILES: [&str; 4] = ["0.5", "0.9", "0.99", "0.999"];

/// An address to listen at: `9464` or `127.0.0.1:9464`.
///
/// Errors: a sentence for the argument parser.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = || Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), text.parse().ok()?));
    text.parse().ok().or_else(port).ok_or_else(|| {
        "expected a port like 9464, or an address and a port like 127.0.0.1:9464".to_owned()
    })
}

/// Counts of some events.
#[derive(Debug, Default)]
pub struct Counts {
    events: BTreeMap<String, u64>,
    /// By cause.
    lost: BTreeMap<&'static str, u64>,
    /// Causes of which an unknown number was lost besides.
    at_least: Vec<&'static str>,
    /// Number, nanoseconds, and percentiles.
    spans: BTreeMap<String, (u64, u128, Option<[u64; 4]>)>,
}

impl Counts {
    /// Those of a recording.
    pub fn of(statistics: &Statistics) -> Self {
        let mut counts = Self::default();
        for (name, count) in statistics.rates.by_class() {
            *counts.events.entry(shown(name)).or_default() += count;
        }
        for total in &statistics.losses {
            let of_cause = counts.lost.entry(total.cause.name()).or_default();
            *of_cause = of_cause.saturating_add(total.count);
            if total.is_lower_bound {
                counts.at_least.push(total.cause.name());
            }
        }
        for (name, count, nanos, durations) in statistics.spans.totals(statistics.facts.kinds()) {
            let of_name = counts.spans.entry(shown(name)).or_default();
            of_name.0 += count;
            of_name.1 += nanos;
            let all = durations.map(|d| [d.median, d.p90, d.p99, d.p999]);
            of_name.2 = of_name.2.or(all);
        }
        counts
    }
}

/// Counts since the beginning.
#[derive(Debug, Default)]
pub struct Metrics {
    events: BTreeMap<String, u64>,
    lost: BTreeMap<&'static str, u64>,
    at_least: BTreeMap<&'static str, bool>,
    spans: BTreeMap<String, (u64, u128, Option<[u64; 4]>)>,
    /// Parts of the recording that were removed before they were counted.
    missed: u64,
}

impl Metrics {
    /// Adds what is in the counts of `all` and was in those of a part of it `before`.
    pub fn add(&mut self, all: Counts, before: &Counts, missed: u64) {
        self.missed = self.missed.saturating_add(missed);
        for (name, count) in all.events {
            let old = before.events.get(&name).copied().unwrap_or(0);
            let new = count.saturating_sub(old);
            let of_name = series(&mut self.events, name);
            *of_name = of_name.saturating_add(new);
        }
        // From 0 on: the first loss is an increase, too.
        for cause in OF_RINGS {
            self.lost.entry(cause.name()).or_default();
            self.at_least.entry(cause.name()).or_default();
        }
        for (cause, count) in all.lost {
            let old = before.lost.get(cause).copied().unwrap_or(0);
            let of_cause = self.lost.entry(cause).or_default();
            *of_cause = of_cause.saturating_add(count.saturating_sub(old));
            *self.at_least.entry(cause).or_default() |= all.at_least.contains(&cause);
        }
        // Percentiles are those of the last time only.
        self.spans.values_mut().for_each(|of| of.2 = None);
        for (name, (count, nanos, quantiles)) in all.spans {
            let (old, old_nanos, _) = before.spans.get(&name).copied().unwrap_or_default();
            let of_name = series(&mut self.spans, name);
            of_name.0 = of_name.0.saturating_add(count.saturating_sub(old));
            of_name.1 = of_name.1.saturating_add(nanos.saturating_sub(old_nanos));
            of_name.2 = quantiles;
        }
        // What is not one kind has no percentiles.
        if let Some(others) = self.spans.get_mut(OTHERS) {
            others.2 = None;
        }
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        head(&mut text, "lateralis_events_total", "counter", "Recorded events by class.");
        for (name, count) in &self.events {
            let _ = writeln!(text, "lateralis_events_total{{event=\"{}\"}} {count}", label(name));
        }
        let help = "Lost events by cause; lost packets of cause packets.";
        head(&mut text, "lateralis_lost_events_total", "counter", help);
        for (cause, count) in &self.lost {
            let _ = writeln!(text, "lateralis_lost_events_total{{cause=\"{cause}\"}} {count}");
        }
        let help = "1 if an unknown number was lost besides those of lateralis_lost_events_total.";
        head(&mut text, "lateralis_lost_events_unknown", "gauge", help);
        for (cause, is_unknown) in &self.at_least {
            let value = u8::from(*is_unknown);
            let _ = writeln!(text, "lateralis_lost_events_unknown{{cause=\"{cause}\"}} {value}");
        }
        let help = "Parts of the recording that were removed before they were counted.";
        head(&mut text, "lateralis_missed_parts_total", "counter", help);
        let _ = writeln!(text, "lateralis_missed_parts_total {}", self.missed);
        let name = "lateralis_span_duration_seconds";
        head(&mut text, name, "summary", "Durations of spans by name.");
        for (span, (count, nanos, quantiles)) in &self.spans {
            let span = label(span);
            for (quantile, nanos) in QUANTILES.iter().zip(quantiles.iter().flatten()) {
                let value = seconds(u128::from(*nanos));
                let _ = writeln!(text, "{name}{{span=\"{span}\",quantile=\"{quantile}\"}} {value}");
            }
            let _ = writeln!(text, "{name}_sum{{span=\"{span}\"}} {}", seconds(*nanos));
            let _ = writeln!(text, "{name}_count{{span=\"{span}\"}} {count}");
        }
        text
    }
}

/// The series of a name, or that of all others if there are too many.
fn series<T: Default>(all: &mut BTreeMap<String, T>, name: String) -> &mut T {
    let is_known = all.len() < SERIES_MAX || all.contains_key(&name);
    all.entry(if is_known { name } else { OTHERS.to_owned() }).or_default()
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A name as people see it, hostile characters as escapes. Two names may be shown alike: they are counted
/// together.
fn shown(name: &str) -> String {
    match name {
        "" => "(no name)".to_owned(),
        name => terminal::shown(name).chars().take(NAME_MAX).collect(),
    }
}

/// The value of a label between its quotes.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Exact decimals.
fn seconds(nanos: u128) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(events: u64, spans: u64) -> Counts {
        let mut counts = Counts::default();
        counts.events.insert("a:B".to_owned(), events);
        counts.spans.insert("s".to_owned(), (spans, u128::from(spans) * 7, Some([7; 4])));
        counts
    }

    #[test]
    fn a_port_alone_is_of_this_machine() {
        assert_eq!(parse_address("9464").unwrap().to_string(), "127.0.0.1:9464");
        assert_eq!(parse_address("[::]:1").unwrap().to_string(), "[::]:1");
        for wrong in ["", "localhost", "70000", ":9464"] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_new_is_added() {
        let mut metrics = Metrics::default();
        metrics.add(counts(10, 2), &Counts::default(), 0);
        metrics.add(counts(15, 3), &counts(10, 2), 0);
        // The oldest part has gone from both.
        metrics.add(counts(9, 3), &counts(5, 1), 4);
        let text = metrics.text();
        for line in [
            "lateralis_events_total{event=\"a:B\"} 19\n",
            "lateralis_span_duration_seconds{span=\"s\",quantile=\"0.99\"} 0.000000007\n",
            "lateralis_span_duration_seconds_sum{span=\"s\"} 0.000000035\n",
            "lateralis_span_duration_seconds_count{span=\"s\"} 5\n",
            "lateralis_missed_parts_total 4\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }

    #[test]
    fn names_cannot_leave_their_quotes_and_are_bounded_in_number() {
        let mut all = Counts::default();
        let hostile = "x\"} 1\nforged{a=\"\\\u{1b}[31m";
        all.events.insert(shown(hostile), 1);
        for number in 0..2 * SERIES_MAX {
            all.events.insert(format!("y{number}"), 1);
        }
        let mut metrics = Metrics::default();
        metrics.add(all, &Counts::default(), 0);
        let text = metrics.text();
        let line =
            "lateralis_events_total{event=\"x\\\"} 1\\\\nforged{a=\\\"\\\\\\\\x1b[31m\"} 1\n";
        assert!(text.contains(line), "{line}");
        let lines = text.lines().filter(|line| line.starts_with("lateralis_events_total{"));
        assert_eq!(lines.count(), SERIES_MAX + 1);
        assert!(text.contains(&format!("{{event=\"{OTHERS}\"}} {}\n", SERIES_MAX + 1)), "{text}");
    }
}
