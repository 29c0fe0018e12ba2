// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages: how long they took, by channel and by pair of processors.

use std::collections::BTreeMap;

use lateralis_analysis::{Distribution, Durations, End, Joined, Message};
use lateralis_model::Quality;
use lateralis_semantics::{ClockErrors, DerivedFlow};
use lateralis_store::facts::{Kind, Kinds};
use serde_json::{Value, json};

use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use crate::date;
use crate::table::{Align, Table};
use crate::values;

/// Durations of a channel kept one by one.
const KEPT: usize = 1 << 24;
/// Pairs of processors that are told apart; beyond, only the channel counts.
const PAIRS_MAX: usize = 1 << 14;

/// Two processors, where they are known.
type Pair = (Option<u32>, Option<u32>);

/// How long messages took.
struct Latencies {
    durations: Durations,
    /// By how much any of them may be off, for two clocks tell it; `None`: by any. No number of
    /// them, mean or percentile, is off by more.
    clock_error_ns: Option<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { durations: Durations::with_limit(KEPT), clock_error_ns: Some(0) }
    }
}

impl Latencies {
    fn push(&mut self, nanos: u64, clock_error_ns: Option<u64>) {
        self.durations.push(nanos);
        let errors = self.clock_error_ns.zip(clock_error_ns);
        self.clock_error_ns = errors.map(|(one, other)| one.max(other));
    }

    fn quality(&self, nanos: u64, trust: Trust) -> Quality {
        ClockErrors::quality(self.clock_error_ns, nanos, trust.value)
    }
}

/// One channel.
#[derive(Default)]
struct Channel {
    latencies: Latencies,
    pairs: BTreeMap<Pair, Latencies>,
    /// Those of pairs beyond the first [`PAIRS_MAX`].
    left_out: u64,
    /// Those with events missing on the way.
    touched: u64,
    /// Those that seem to arrive before they left.
    reversed: u64,
    slowest: Option<(Message, Option<u64>)>,
    never_received: u64,
    never_sent: u64,
}

/// How many messages a channel has seen.
pub struct Count<'a> {
    /// Its name.
    pub name: &'a str,
    /// Those that left.
    pub sent: u64,
    /// Those that arrived.
    pub received: u64,
    /// How long they took; `None` where none has both ends.
    pub durations: Option<Distribution>,
}

/// All channels.
pub struct Messages {
    channels: Vec<Channel>,
    /// Whether the trace has events before the time that was chosen, and behind it.
    is_cut: (bool, bool),
}

impl Messages {
    /// Of these channels; `is_cut`: whether the trace has events before the time that was chosen, and
    /// behind it.
    pub fn new(kinds: &Kinds, is_cut: (bool, bool)) -> Self {
        let channels = kinds.channels.iter().map(|_| Channel::default()).collect();
        Self { channels, is_cut }
    }

    /// Messages of pairs of CPUs that are left out.
    pub fn left_out(&self) -> LeftOut {
        LeftOut {
            member: "messages",
            section: Section::Messages,
            what: "messages by pair of CPUs",
            of: "pairs of a channel",
            most: PAIRS_MAX as u64,
            count: self.channels.iter().map(|channel| channel.left_out).sum(),
        }
    }

    /// How far numbers of a channel can be trusted: all of them, messages that were not received, and those
    /// that were not sent. What was on its way where the time begins was sent before, and where it ends is
    /// received behind it; without keys it is not known which ones these were.
    fn trust(&self, kind: &Kind, trust: Trust) -> (Trust, Quality, Quality) {
        let trust = trust.without(u64::from(kind.is_filtered));
        let of = |is_cut: bool| if is_cut { Quality::Unknown } else { trust.value };
        let is_guessed = self.is_cut.0 && kind.keys.is_empty();
        let unknown = Trust { sum: Quality::Unknown, value: Quality::Unknown };
        let all = if is_guessed { unknown } else { trust };
        (all, of(self.is_cut.1 || is_guessed), of(self.is_cut.0))
    }

    /// A message, or what there is of it.
    pub fn flow(&mut self, channel: u32, flow: &DerivedFlow) {
        let Some(channel) = self.channels.get_mut(channel as usize) else { return };
        match *flow {
            DerivedFlow::NotReceived(..) => channel.never_received += 1,
            DerivedFlow::NotSent(..) => channel.never_sent += 1,
            DerivedFlow::Complete { joined: Joined::Doubtful, .. } => channel.touched += 1,
            DerivedFlow::Complete { message, clock_error_ns, .. } => {
                channel.joined(message, clock_error_ns);
            }
        }
    }

    fn has_any(&self, channel: &Channel) -> bool {
        channel.matched() + channel.never_received + channel.never_sent > 0
    }

    fn all<'a>(&'a self, kinds: &'a Kinds) -> impl Iterator<Item = (&'a Kind, &'a Channel)> {
        kinds.channels.iter().zip(&self.channels).filter(|(_, channel)| self.has_any(channel))
    }

    /// How many by channel.
    pub fn counts<'a>(&'a self, kinds: &'a Kinds) -> impl Iterator<Item = Count<'a>> {
        self.all(kinds).map(|(kind, channel)| Count {
            name: &kind.name,
            sent: channel.matched() + channel.never_received,
            received: channel.matched() + channel.never_sent,
            durations: channel.latencies.durations.distribution(),
        })
    }

    /// All numbers.
    pub fn json(&self, kinds: &Kinds, trust: Trust, who: Who<'_>) -> Vec<Value> {
        let end = |end: &End| {
            json!({
                "time_ns": end.time.0,
                "cpu": end.cpu,
                "tid": end.writer.map(|writer| writer.tid),
                "thread": end.writer.and_then(|w| who.name(w.tid, Some(w.pid))),
            })
        };
        let channel = |(kind, channel): (&Kind, &Channel)| {
            let (trust, of_not_received, of_not_sent) = self.trust(kind, trust);
            let pairs: Vec<Value> = channel
                .pairs
                .iter()
                .map(|((from, to), latencies)| {
                    let row = Row::default().plain("from_cpu", *from).plain("to_cpu", *to);
                    distribution(row, latencies, trust).value()
                })
                .collect();
            let of_slowest = channel.slowest.map_or(trust.value, |(message, error)| {
                ClockErrors::quality(error, message.nanos(), trust.value)
            });
            let slowest = channel.slowest.map(|(message, error)| {
                json!({
                    "key": message.key.map(|key| kind.key_text(key)),
                    "duration_ns": message.nanos(),
                    "clock_error_ns": error,
                    "send": end(&message.send),
                    "receive": end(&message.receive),
                })
            });
            let row = Row::default()
                .plain("channel", kind.name.as_str())
                .plain("key_fields", json!(kind.keys))
                .number("matched", channel.matched(), trust.sum)
                .number("touched_by_losses", channel.touched, trust.value)
                .number("never_received", channel.never_received, of_not_received)
                .number("never_sent", channel.never_sent, of_not_sent)
                .number("received_before_sent", channel.reversed, trust.value)
                .number("slowest", slowest, of_slowest)
                .plain("by_cpus", pairs);
            distribution(row, &channel.latencies, trust).value()
        };
        self.all(kinds).map(channel).collect()
    }

    /// The tables.
    pub fn page(&self, page: &mut Page<'_>, who: Who<'_>, kinds: &Kinds) {
        use Align::{Left, Right};
        // Only between recordings are there two clocks.
        let has_errors =
            self.all(kinds).any(|(_, channel)| channel.latencies.clock_error_ns != Some(0));
        let error = if has_errors { "clocks ±" } else { "" };
        let mut table = Table::new(&[
            ("channel", Left),
            ("matched", Right),
            ("mean", Right),
            ("median", Right),
            ("p90", Right),
            ("p99", Right),
            ("max", Right),
            (error, Right),
            ("slowest from", Left),
            ("to", Left),
            ("sent at", Left),
            ("never received", Right),
            ("never sent", Right),
        ]);
        let mut pairs = Table::new(&[
            ("channel", Left),
            ("from cpu", Right),
            ("to cpu", Right),
            ("count", Right),
            ("mean", Right),
            ("median", Right),
            ("p90", Right),
            ("p99", Right),
            ("max", Right),
            (error, Right),
        ]);
        let (mut shown, mut pair_count) = (0, 0);
        for (kind, channel) in self.all(kinds) {
            let (trust, of_not_received, of_not_sent) = self.trust(kind, page.trust);
            let Trust { sum, value } = trust;
            shown += 1;
            for ((from, to), latencies) in &channel.pairs {
                pair_count += 1;
                if pair_count > page.rows || (from.is_none() && to.is_none()) {
                    continue;
                }
                let cpu = |cpu: &Option<u32>| cpu.map_or("?".to_owned(), |cpu| cpu.to_string());
                let mut row = vec![kind.name.clone(), cpu(from), cpu(to)];
                row.push(mark(values::count(latencies.durations.len() as u64), value));
                row.extend(cells(latencies, trust));
                pairs.row(row);
            }
            if shown > page.rows {
                continue;
            }
            let mut row = vec![kind.name.clone(), mark(values::count(channel.matched()), sum)];
            row.extend(cells(&channel.latencies, trust));
            row.resize(8, String::new());
            if let Some((message, _)) = channel.slowest {
                row.push(who.writer(message.send.writer));
                row.push(who.writer(message.receive.writer));
                row.push(date::text(message.send.time));
            }
            row.resize(11, String::new());
            row.push(mark(values::count(channel.never_received), of_not_received));
            row.push(mark(values::count(channel.never_sent), of_not_sent));
            table.row(row);
        }
        page.table(Section::Messages, "messages", &table, shown);
        let reversed: u64 = self.channels.iter().map(|channel| channel.reversed).sum();
        if reversed > 0 {
            let messages = values::counted(reversed, "message");
            let line = format!("{messages} arrived before leaving, by the clocks: taken as 0 ns");
            page.remark(Section::Messages, &line);
        }
        if has_errors {
            let line = "± what the clocks of two recordings may be off by: a time that is no longer \
                is marked ?";
            page.remark(Section::Messages, line);
        }
        page.table(Section::Messages, "messages by processors", &pairs, pair_count);
    }
}

impl Channel {
    fn joined(&mut self, message: Message, error: Option<u64>) {
        let nanos = message.nanos();
        self.reversed += u64::from(message.receive.time < message.send.time);
        self.latencies.push(nanos, error);
        let pair = (message.send.cpu, message.receive.cpu);
        if self.pairs.len() < PAIRS_MAX || self.pairs.contains_key(&pair) {
            self.pairs.entry(pair).or_default().push(nanos, error);
        } else {
            self.left_out += 1;
        }
        if self.slowest.is_none_or(|(slowest, _)| slowest.nanos() < nanos) {
            self.slowest = Some((message, error));
        }
    }

    fn matched(&self) -> u64 {
        self.latencies.durations.len() as u64 + self.touched
    }
}

fn cells(latencies: &Latencies, trust: Trust) -> Vec<String> {
    let Some(d) = latencies.durations.distribution() else {
        return Vec::new();
    };
    // A message that was lost may have been joined with another's arrival.
    let cell = |nanos| mark(values::time(nanos), latencies.quality(nanos, trust));
    let mean = mark(values::mean_time(d.mean), latencies.quality(d.mean as u64, trust));
    let mut cells = vec![mean];
    cells.extend([d.median, d.p90, d.p99, d.max].map(cell));
    cells.push(match latencies.clock_error_ns {
        Some(0) => String::new(),
        Some(error) => format!("± {}", values::time(error)),
        None => "± any".to_owned(),
    });
    cells
}

fn distribution(row: Row, latencies: &Latencies, trust: Trust) -> Row {
    let row = row
        .number("count", latencies.durations.len() as u64, trust.value)
        .plain("clock_error_ns", latencies.clock_error_ns);
    let Some(d) = latencies.durations.distribution() else {
        return row;
    };
    let numbers = [
        ("min_ns", d.min),
        ("median_ns", d.median),
        ("p90_ns", d.p90),
        ("p99_ns", d.p99),
        ("p99_9_ns", d.p999),
        ("max_ns", d.max),
    ];
    let row = [("mean_ns", d.mean), ("stddev_ns", d.stddev)]
        .into_iter()
        .fold(row, |row, (name, nanos)| {
            row.number(name, nanos, latencies.quality(nanos as u64, trust))
        });
    numbers
        .into_iter()
        .fold(row, |row, (name, nanos)| row.number(name, nanos, latencies.quality(nanos, trust)))
}
