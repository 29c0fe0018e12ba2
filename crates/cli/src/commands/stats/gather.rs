// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `lat stats` says, before it is said.

use std::collections::BTreeMap;

use lateralis_analysis::{
    Distribution, Durations, Edge, LossTotal, Pairer, Side, Tally, total_by_stream,
};
use lateralis_model::{Damage, Event, Seen, Source};
use lateralis_pleco::schema::{Clause, Event as SchemaEvent, FieldType, Scalar, Statistic};
use serde_json::{Value, json};

use super::keys::{KeyFields, Keys};
use lateralis_store::Recording;

/// One kind of span.
pub struct SpanStatistics {
    /// Its name.
    pub name: String,
    /// Of the spans that have both ends; `None` if there are none.
    pub durations: Option<Distribution>,
    /// Begun and not ended.
    pub unfinished: u64,
    /// Ended and not begun.
    pub orphans: u64,
}

/// One promise of a schema.
pub struct BudgetCheck {
    /// As the schema says it: `held p99 < 50 us`.
    pub text: String,
    /// What was measured, in nanoseconds; `None` if nothing was.
    pub measured_ns: Option<u64>,
    /// Whether it was kept; `None` if nothing was measured, or the limit is in
    /// cycles of a clock that the trace does not have.
    pub kept: Option<bool>,
}

/// Everything `lat stats` says.
#[derive(Default)]
pub struct Statistics {
    /// All events.
    pub total: Tally,
    /// By name.
    pub classes: BTreeMap<String, Tally>,
    /// By name of the span.
    pub spans: Vec<SpanStatistics>,
    /// Losses by stream and cause.
    pub losses: Vec<LossTotal>,
    /// Promises of the schemas.
    pub budgets: Vec<BudgetCheck>,
    /// What cannot be read.
    pub damage: Vec<Damage>,
}

/// A role of an event class in a kind of span.
struct Role {
    span: usize,
    side: Side,
    key: KeyFields,
}

#[derive(Default)]
struct Gathering {
    names: Vec<String>,
    pairers: Vec<Pairer>,
    keys: Vec<Keys>,
    durations: Vec<Durations>,
}

impl Gathering {
    fn span(&mut self, name: &str) -> usize {
        if let Some(index) = self.names.iter().position(|known| known == name) {
            return index;
        }
        self.names.push(name.to_owned());
        self.pairers.push(Pairer::default());
        self.keys.push(Keys::default());
        self.durations.push(Durations::default());
        self.names.len() - 1
    }

    fn roles(&mut self, event: &SchemaEvent) -> Vec<Role> {
        let mut roles = Vec::new();
        for clause in &event.clauses {
            let (span, keys, side) = match clause {
                Clause::Begin { span, keys } => (span, keys, Side::Begin),
                Clause::End { span, keys } => (span, keys, Side::End),
                _ => continue,
            };
            roles.push(Role { span: self.span(span), side, key: key_fields(event, keys) });
        }
        roles
    }
}

impl Gathering {
    /// An event begins or ends a span.
    fn edge(&mut self, role: &Role, event: &Event<'_>) {
        let key = self.keys[role.span].number(&role.key, event.payload());
        let edge = Edge { time: event.time, side: role.side, key, writer: event.writer };
        if let Some(span) = self.pairers[role.span].push(edge) {
            self.durations[role.span].push(span.nanos());
        }
    }
}

fn key_fields(event: &SchemaEvent, keys: &[usize]) -> KeyFields {
    let is_integer = |index: usize| {
        matches!(
            event.fields.get(index).map(|field| field.ty),
            Some(FieldType::Scalar(Scalar::Integer(_) | Scalar::Bool | Scalar::Enum { .. }))
        )
    };
    match *keys {
        [] => KeyFields::None,
        [index] if is_integer(index) => KeyFields::One(index),
        _ => KeyFields::Many(keys.to_vec()),
    }
}

impl Statistics {
    /// Reads all events, in the order of time if there are spans.
    ///
    /// Cost: one pass; memory by classes, open spans, and eight bytes per span.
    pub fn of(recording: &Recording) -> Self {
        let source = &recording.source;
        let trace = source.trace();
        let mut gathering = Gathering::default();
        let mut roles: Vec<Vec<Vec<Role>>> = Vec::new();
        let mut tallies: Vec<Vec<Tally>> = Vec::new();
        for (stream, class) in trace.stream_classes.iter().enumerate() {
            let of_event = |event| {
                let meaning = recording.meanings.get(stream, event);
                meaning.map_or_else(Vec::new, |meaning| gathering.roles(meaning))
            };
            roles.push((0..class.event_classes.len()).map(of_event).collect());
            tallies.push(vec![Tally::default(); class.event_classes.len()]);
        }
        let inside = if gathering.names.is_empty() {
            // Without spans the order of time says nothing, nor do fields.
            source.survey(&|_, _| false, &mut |seen| match seen {
                Seen::Event(event) => {
                    tallies[event.stream_class_index as usize][event.class_index as usize]
                        .add(event.time);
                }
                Seen::Times { stream_class, class, times, .. } => {
                    tallies[stream_class as usize][class as usize].add_all(times);
                }
                Seen::Written { .. } => {}
            })
        } else {
            let mut events = source.events();
            while let Some(event) = events.next_event() {
                let (stream, class) =
                    (event.stream_class_index as usize, event.class_index as usize);
                tallies[stream][class].add(event.time);
                for role in &roles[stream][class] {
                    gathering.edge(role, &event);
                }
            }
            events.damage()
        };
        let mut statistics = Self {
            losses: total_by_stream(source.losses()),
            damage: recording.all_damage(inside),
            ..Self::default()
        };
        for (stream, of_stream) in trace.stream_classes.iter().zip(&tallies) {
            for (class, tally) in stream.event_classes.iter().zip(of_stream) {
                statistics.class(&class.name, tally);
            }
        }
        let parts = gathering.names.into_iter().zip(gathering.pairers).zip(gathering.durations);
        for ((name, pairer), mut durations) in parts {
            statistics.spans.push(SpanStatistics {
                name,
                durations: durations.distribution(),
                unfinished: pairer.unfinished_count(),
                orphans: pairer.orphan_count(),
            });
        }
        statistics
            .spans
            .retain(|span| span.durations.is_some() || span.unfinished > 0 || span.orphans > 0);
        statistics.check_budgets(recording);
        statistics
    }

    fn class(&mut self, name: &str, tally: &Tally) {
        if tally.count == 0 {
            return;
        }
        for sum in [&mut self.total, self.classes.entry(name.to_owned()).or_default()] {
            sum.count += tally.count;
            sum.first = sum.first.into_iter().chain(tally.first).min();
            sum.last = sum.last.max(tally.last);
        }
    }

    fn check_budgets(&mut self, recording: &Recording) {
        let hertz = recording.source.trace().clocks.first().map(|clock| clock.frequency());
        for schema in recording.meanings.schemas() {
            for budget in &schema.budgets {
                let span = self.spans.iter().find(|span| span.name == budget.span);
                let measured =
                    span.and_then(|span| span.durations).map(|d| pick(&d, budget.statistic));
                let cycles = || Some(budget.limit_cycles()? * 1e9 / hertz? as f64);
                let limit = budget.limit_ns().or_else(cycles);
                let kept = measured.zip(limit).map(|(measured, limit)| {
                    let measured = measured as f64;
                    if budget.is_inclusive { measured <= limit } else { measured < limit }
                });
                let sign = if budget.is_inclusive { "<=" } else { "<" };
                self.budgets.push(BudgetCheck {
                    text: format!(
                        "{} {} {sign} {} {}",
                        budget.span,
                        budget.statistic.word(),
                        budget.limit_text(),
                        budget.unit.word()
                    ),
                    measured_ns: measured,
                    kept,
                });
            }
        }
    }

    /// The same as JSON; times in nanoseconds.
    pub fn to_json(&self, recording: &Recording) -> Value {
        let over = self.total.span_nanos();
        let events: Vec<Value> = self
            .classes
            .iter()
            .map(|(name, tally)| {
                json!({ "name": name, "count": tally.count, "rate_per_s": tally.rate(over) })
            })
            .collect();
        let spans: Vec<Value> = self.spans.iter().map(span_json).collect();
        let losses: Vec<Value> = self
            .losses
            .iter()
            .map(|total| {
                let streams = &recording.streams;
                let stream = total.stream.and_then(|index| streams.get(index.0 as usize));
                json!({
                    "stream": stream.map(|stream| stream.name.as_str()),
                    "cause": total.cause.name(),
                    "count": total.count,
                    "is_lower_bound": total.is_lower_bound,
                    "from_ns": total.interval.begin.map(|time| time.0),
                    "to_ns": total.interval.end.map(|time| time.0),
                })
            })
            .collect();
        let budgets: Vec<Value> = self
            .budgets
            .iter()
            .map(|budget| {
                json!({
                    "budget": budget.text,
                    "measured_ns": budget.measured_ns,
                    "kept": budget.kept,
                })
            })
            .collect();
        json!({
            "trace": recording.path.display().to_string(),
            "events_total": self.total.count,
            "duration_ns": over,
            "events": events,
            "spans": spans,
            "losses": losses,
            "budgets": budgets,
            "damage": self.damage.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

fn span_json(span: &SpanStatistics) -> Value {
    let mut value = json!({
        "name": span.name,
        "count": span.durations.map_or(0, |d| d.count),
        "unfinished": span.unfinished,
        "orphans": span.orphans,
    });
    if let (Some(d), Some(object)) = (span.durations, value.as_object_mut()) {
        for (name, nanos) in [
            ("min_ns", d.min),
            ("mean_ns", d.mean),
            ("median_ns", d.median),
            ("p90_ns", d.p90),
            ("p99_ns", d.p99),
            ("p99_9_ns", d.p999),
            ("max_ns", d.max),
            ("total_ns", d.total),
        ] {
            object.insert(name.to_owned(), json!(nanos));
        }
    }
    value
}

fn pick(durations: &Distribution, statistic: Statistic) -> u64 {
    match statistic {
        Statistic::P50 => durations.median,
        Statistic::P90 => durations.p90,
        Statistic::P99 => durations.p99,
        Statistic::P999 => durations.p999,
        Statistic::Mean => durations.mean,
        Statistic::Max => durations.max,
        Statistic::Min => durations.min,
    }
}
