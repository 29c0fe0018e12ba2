// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions during a session, and their actions.
//!
//! ```text
//! packets ─▶ Watch       every flush: firings ─▶ marks, commands, start, stop, flush
//!                                                └─▶ Keeper: windows
//! ```
//!
//! What fires, and at which time, does not depend on the time of evaluation. Actions are
//! executed after evaluation: at the next flush that is later than the firing by [`Lag`].

mod commands;
mod marks;

pub(super) use commands::Commands;
pub(super) use marks::{MARKS, MarkQueue, MarkSource};

use super::keep::{KeepNotice, KeepObserver, reasons};
use super::recording::Recording;
use crate::action::{Action, Rule};
use crate::classes::{ClassTable, RegisteredSchema};
use crate::condition::{Condition, EventName, Firing, Limits, SpanEnd, Watch};
use crate::keep::split;
use crate::pattern::Patterns;
use crate::report::{Done, Fired, KeptReason, NotJudged, Outcome, TriggerRule, Triggers};
use crate::source::Thread;

/// Maximum delay of a record in its ring after its time; later ones count as late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lag {
    /// Per-CPU rings only: clock and record are one restartable sequence, so older records
    /// are present when a ring is read. Counters of two CPUs may differ by less than 1 ms.
    Processors,
    /// Also per-thread rings, whose threads may be preempted between the two, or sources, which are read
    /// every 100 ms.
    Others,
}

impl Lag {
    const fn ns(self) -> u64 {
        match self {
            Lag::Processors => 1_000_000,
            Lag::Others => 100_000_000,
        }
    }
}

/// Unknown names are reported after this time, in which programs can register their schemas.
const NAMES_NS: u64 = 2_000_000_000;
/// Maximum number of firings in the report.
const LIST_MAX: usize = 10_000;

/// Result of an evaluation.
pub(super) struct Judged {
    /// Everything before it has been evaluated.
    pub(super) watermark: u64,
    pub(super) firings: Vec<(Firing, KeptReason)>,
    pub(super) ends: Vec<SpanEnd>,
    /// Names that no schema contains, when it is time to report them.
    pub(super) unknown: Option<Vec<String>>,
}

/// The conditions and actions of a session.
pub(super) struct Rules {
    rules: Vec<Rule>,
    watch: Watch,
    lost: u64,
    /// Clock at the last evaluation.
    looked: u64,
    /// By [`Lag`].
    lags: [u64; 2],
    /// When to report unknown names; `None` after that.
    names_due: Option<u64>,
    observer: Option<KeepObserver>,
    pub(super) report: Triggers,
}

impl Rules {
    /// Context: the recording has its clock.
    pub(super) fn new(rules: Vec<Rule>, main: &Recording) -> Rules {
        let now = main.now();
        let model = main.clock_model();
        let ticks = |ns: u64| model.as_ref().map_or(ns, |model| model.ticks(ns));
        let conditions: Vec<Condition> = rules.iter().map(|rule| rule.condition.clone()).collect();
        let of_rule = |rule: &Rule| TriggerRule {
            conditions: texts(&rule.condition),
            actions: rule.actions.iter().map(ToString::to_string).collect(),
        };
        let report = Triggers { rules: rules.iter().map(of_rule).collect(), ..Triggers::default() };
        Rules {
            watch: Watch::new(&conditions, now, &ticks),
            rules,
            lost: 0,
            looked: now,
            lags: [ticks(Lag::Processors.ns()), ticks(Lag::Others.ns())],
            names_due: Some(now.saturating_add(ticks(NAMES_NS))),
            observer: None,
            report,
        }
    }

    /// Sets the receiver of notices from now on.
    pub(super) fn observe(&mut self, observer: KeepObserver) {
        self.observer = Some(observer);
    }

    pub(super) fn tell(&mut self, notice: &KeepNotice<'_>) {
        if let Some(observer) = &mut self.observer {
            observer(notice);
        }
    }

    /// Processes a sealed packet.
    pub(super) fn take(&mut self, classes: &ClassTable, name: &str, packet: &[u8]) {
        // Marks result from firings: they must not fire again.
        if name == MARKS {
            return;
        }
        let Some((header, records)) = split(packet) else { return };
        let slack = header.packet_bits.saturating_sub(header.content_bits) / 8;
        let ring = (header.area_id, header.cpu_id);
        let place = (header.stream_id, ring, header.timestamp_begin);
        self.watch.packet(classes, place, records, slack);
    }

    /// Updates the presence of programs, for missing events.
    pub(super) fn expect(&mut self, now: u64, is_present: &dyn Fn(&EventName) -> bool) {
        self.watch.expect(now, is_present);
    }

    /// The name that each thread had at a time.
    pub(super) fn names_at(&self, moment: u64) -> Vec<(Thread, String)> {
        self.watch.names_at(moment)
    }

    /// Evaluates up to `lag` before `now`. Context: all rings were read after `now`; without a lag, at the
    /// end, all written records were read.
    pub(super) fn judge(
        &mut self,
        main: &mut Recording,
        (now, lost): (u64, u64),
        lag: Option<Lag>,
    ) -> Judged {
        let is_last = lag.is_none();
        if lost > self.lost {
            self.watch.lost(self.looked, now);
            self.lost = lost;
        }
        self.looked = now;
        let lag = lag.map_or(0, |lag| self.lags[usize::from(lag == Lag::Others)]);
        let watermark = now.saturating_sub(lag);
        let (firings, ends) = self.watch.advance(watermark);
        for end in &ends {
            let mut all = self.report.firings.iter_mut().rev();
            if let Some(fired) = all.find(|fired| fired.reason.number == end.number) {
                fired.reason.duration_ns = Some(reasons::ns(main, end.ticks));
                fired.reason.is_over = true;
            }
        }
        let firings: Vec<_> = firings
            .into_iter()
            .map(|firing| {
                let reason = reasons::reason(main, &firing);
                (firing, reason)
            })
            .collect();
        for (_, reason) in &firings {
            if self.report.firings.len() < LIST_MAX {
                let fired = Fired { reason: reason.clone(), done: Vec::new() };
                self.report.firings.push(fired);
            } else {
                self.report.not_listed += 1;
            }
        }
        self.report.fired = self.watch.fired();
        self.report.not_judged = not_judged(self.watch.limits());
        let is_due = is_last || self.names_due.is_some_and(|due| now > due);
        let unknown = is_due.then(|| self.tell_unknown_names(main, is_last));
        Judged { watermark, firings, ends, unknown }
    }

    /// Reports conditions that cannot fire as written. While programs may still register schemas it is
    /// only a warning.
    fn tell_unknown_names(&mut self, main: &mut Recording, is_last: bool) -> Vec<String> {
        self.names_due = None;
        let unknown = self.watch.unknown(&main.classes);
        for text in &unknown {
            if is_last {
                main.problem(format!("Cannot watch: {text}"));
            } else {
                self.tell(&KeepNotice::Warning(text));
            }
        }
        unknown
    }

    /// Actions of a firing.
    pub(super) fn actions(&self, firing: &Firing) -> Vec<Action> {
        self.rules.get(firing.condition).map_or(Vec::new(), |rule| rule.actions.clone())
    }

    /// Whether a firing saves a window.
    pub(super) fn snaps(&self, firing: &Firing) -> bool {
        let rule = self.rules.get(firing.condition);
        let is_snapshot = |action: &Action| matches!(action, Action::Snapshot(_));
        rule.is_some_and(|rule| rule.actions.iter().any(is_snapshot))
    }

    /// Conditions that save windows.
    pub(super) fn snapping(&self) -> impl Iterator<Item = &Condition> {
        let is_snapshot = |action: &Action| matches!(action, Action::Snapshot(_));
        let rules = self.rules.iter().filter(move |rule| rule.actions.iter().any(is_snapshot));
        rules.map(|rule| &rule.condition)
    }

    /// Stores the result of an action.
    pub(super) fn note(&mut self, number: u64, done: Done) {
        self.report.commands_skipped += u64::from(done.outcome == Outcome::Skipped);
        let mut all = self.report.firings.iter_mut().rev();
        if let Some(fired) = all.find(|fired| fired.reason.number == number) {
            match fired
                .done
                .iter_mut()
                .find(|one| one.outcome == Outcome::Running && one.action == done.action)
            {
                Some(running) => *running = Done { begun_ns: running.begun_ns, ..done },
                None => fired.done.push(done),
            }
        }
    }

    /// Whether a condition uses one of their events.
    pub(super) fn looks_into(&self, registered: &[RegisteredSchema]) -> bool {
        registered.iter().any(|entry| {
            entry.schema.events.iter().any(|event| self.watch.looks_at(&entry.schema, event))
        })
    }

    /// Clock at the start.
    pub(super) fn start(&self) -> u64 {
        self.watch.start()
    }

    /// The events used by conditions, of known schemas.
    pub(super) fn patterns(&self, registered: &[RegisteredSchema]) -> Patterns {
        let events = registered
            .iter()
            .flat_map(|entry| entry.schema.events.iter().map(move |event| (&*entry.schema, event)));
        let looked_at = events.filter(|(schema, event)| self.watch.looks_at(schema, event));
        let names: Vec<String> = looked_at.map(|(schema, event)| schema.full_name(event)).collect();
        let mut patterns = patterns(&self.rules);
        patterns.extend(&Patterns::parse(&names.join(",")).unwrap_or_default());
        patterns
    }
}

/// The events named in conditions, independent of schemas.
pub(super) fn patterns(rules: &[Rule]) -> Patterns {
    let names = rules.iter().flat_map(|rule| rule.condition.event_names());
    let names = names.map(|name| match &name.subsystem {
        Some(_) => name.to_string(),
        None => format!("*:{name}"),
    });
    let list: Vec<String> = names.collect();
    // An invalid pattern cannot be the name of an event.
    Patterns::parse(&list.join(",")).unwrap_or_default()
}

/// The operands of `or` in a condition.
pub(super) fn texts(condition: &Condition) -> Vec<String> {
    condition.alternatives.iter().map(|(text, _)| text.clone()).collect()
}

fn not_judged(limits: &Limits) -> NotJudged {
    NotJudged {
        events: limits.facts_dropped,
        spans: limits.spans_not_watched,
        values: limits.keys_not_watched,
        late_events: limits.late_events,
        firings: limits.firings_not_told,
    }
}

/// An action that was executed at once.
pub(super) fn done(action: &Action, begun_ns: i64) -> Done {
    Done {
        action: action.to_string(),
        outcome: Outcome::Done,
        begun_ns,
        took_ns: None,
        exit_status: None,
        cause: None,
    }
}
