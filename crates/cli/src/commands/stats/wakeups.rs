// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long threads wait for a processor once they are woken, and who woke them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use lateralis_analysis::{Durations, Gaps, ThreadTime, Wakes};
use lateralis_model::Quality;
use lateralis_store::facts::Waker;
use lateralis_units::Nanos;
use serde_json::Value;

use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use crate::table::{Align, Table};
use crate::values;

/// Pairs of threads of which one wakes the other, and threads whose wake-ups are timed:
/// more are not told.
const WOKEN_MAX: usize = 1 << 16;

/// Threads that others woke.
#[derive(Default)]
struct Woken {
    durations: Durations,
    touched: u64,
    /// How many of the durations are too short: they are from the run queue on.
    cut_count: u64,
}

impl Woken {
    /// With all of each wake-up the durations could only be longer.
    fn trust(&self, trust: Trust) -> Trust {
        trust.at_least(self.cut_count > 0)
    }
}

/// Threads by their numbers, and how often a switch to or from each is missing.
#[derive(Clone, Copy)]
pub struct Switched<'a> {
    pub tids: &'a [u32],
    pub times: &'a [ThreadTime],
}

impl Switched<'_> {
    fn tid(self, thread: u32) -> u32 {
        self.tids.get(thread as usize).copied().unwrap_or(0)
    }

    fn missing_of(self, thread: u32) -> u64 {
        self.times.get(thread as usize).map_or(0, |time| time.missing_count)
    }

    fn missing_count(self) -> u64 {
        self.times.iter().map(|time| time.missing_count).sum()
    }
}

/// All wake-ups.
pub struct Wakeups {
    /// Each with its waker, and whether that is when it begins.
    wakes: Wakes<(Waker, bool)>,
    woken: BTreeMap<u32, Woken>,
    /// Who woke which thread how often.
    pairs: HashMap<(Waker, u32), u64>,
    /// Threads that somebody unknown woke at least once.
    of_unknown: HashSet<u32>,
    has_any: bool,
    begin: Nanos,
    gaps: Gaps,
}

impl Wakeups {
    /// From `begin` on.
    pub fn new(begin: Nanos, gaps: Gaps) -> Self {
        let (wakes, woken, pairs) = (Wakes::default(), BTreeMap::new(), HashMap::new());
        Self { wakes, woken, pairs, of_unknown: HashSet::new(), has_any: false, begin, gaps }
    }

    /// A thread is made ready to run: by whom, and whether that is when its wake-up begins.
    pub fn wake(&mut self, time: Nanos, waker: (Waker, bool), thread: u32) {
        self.has_any = true;
        self.wakes.wake(time, waker, thread);
    }

    /// A processor turns from one thread to another.
    pub fn switch(&mut self, time: Nanos, from: Option<u32>, to: Option<u32>) {
        let woken = self.wakes.switch(time, from, to);
        let (Some(woken), Some(to)) = (woken, to) else {
            return;
        };
        let (waker, is_begin) = woken.waker;
        if self.woken.len() < WOKEN_MAX || self.woken.contains_key(&to) {
            let of = self.woken.entry(to).or_default();
            // Whether nobody woke it earlier is known since it fell asleep.
            if self.gaps.touch(woken.asleep.unwrap_or(self.begin), time) {
                of.touched += 1;
            } else {
                of.durations.push(woken.nanos());
                of.cut_count += u64::from(!is_begin);
            }
        }
        if matches!(waker, Waker::Unknown(_)) && self.of_unknown.len() < WOKEN_MAX {
            self.of_unknown.insert(to);
        }
        let pair = (waker, to);
        if self.pairs.len() < WOKEN_MAX || self.pairs.contains_key(&pair) {
            *self.pairs.entry(pair).or_default() += 1;
        }
    }

    /// Latencies by thread, and who woke whom. Where switches are missing, a wake-up of a thread that had
    /// left its processor looks needless.
    pub fn json(&self, switched: Switched<'_>, trust: Trust, who: Who<'_>) -> Value {
        let tid = |thread: u32| switched.tid(thread);
        // That no wake-up was recorded does not mean that there was none.
        let all_seen = trust.without(switched.missing_count());
        let of_all = if self.has_any { all_seen.value } else { Quality::Unknown };
        let latencies: Vec<Value> = self
            .woken
            .iter()
            .map(|(thread, of)| {
                let tid = tid(*thread);
                let trust = trust.without(switched.missing_of(*thread));
                let cut = of.trust(trust);
                let mut row = Row::default()
                    .plain("tid", tid)
                    .plain("thread", who.name(tid, None))
                    .number("count", of.durations.len() as u64, trust.sum)
                    .number("touched_by_losses", of.touched, trust.value);
                if let Some(d) = of.durations.distribution() {
                    row = row
                        .number("min_ns", d.min, cut.value)
                        .number("mean_ns", d.mean, cut.value)
                        .number("median_ns", d.median, cut.value)
                        .number("p99_ns", d.p99, cut.value)
                        .number("max_ns", d.max, cut.sum);
                }
                row.value()
            })
            .collect();
        let pairs: Vec<Value> = self
            .pairs()
            .into_iter()
            .map(|((waker, woken), count)| {
                let by = match waker {
                    Waker::Thread(waker) | Waker::Unknown(Some(waker)) => Some(waker),
                    Waker::Interrupt | Waker::Unknown(None) => None,
                };
                let trust = trust.without(switched.missing_of(woken));
                Row::default()
                    .plain("woken_by", kind(waker))
                    .plain("waker_tid", by)
                    .plain("waker", by.and_then(|tid| who.name(tid, None)))
                    .plain("tid", tid(woken))
                    .plain("thread", who.name(tid(woken), None))
                    .number("count", count, trust.value.and(self.quality((waker, woken))))
                    .value()
            })
            .collect();
        Row::default()
            .plain("latencies", latencies)
            .plain("pairs", pairs)
            .number("needless", self.wakes.needless_count(), of_all)
            .number("not_run_yet", self.wakes.waiting_count(), of_all)
            .value()
    }

    /// Of how often one woke another: who is not known to be the waker may be none, and where that is not
    /// known of all wake-ups of a thread, others can have been more of them.
    fn quality(&self, (waker, woken): (Waker, u32)) -> Quality {
        match waker {
            Waker::Unknown(_) => Quality::Unknown,
            _ if self.of_unknown.contains(&woken) => Quality::LowerBound,
            Waker::Thread(_) | Waker::Interrupt => Quality::Exact,
        }
    }

    fn pairs(&self) -> Vec<((Waker, u32), u64)> {
        let mut pairs: Vec<_> = self.pairs.iter().map(|(pair, count)| (*pair, *count)).collect();
        pairs.sort_by_key(|(pair, count)| (Reverse(*count), *pair));
        pairs
    }

    /// The table.
    pub fn page(&self, switched: Switched<'_>, page: &mut Page<'_>, who: Who<'_>) {
        use Align::{Left, Right};
        let mut rows: Vec<_> = self.woken.iter().collect();
        rows.sort_by_key(|(thread, of)| (Reverse(of.durations.total()), **thread));
        let mut table = Table::new(&[
            ("woken", Left),
            ("count", Right),
            ("median", Right),
            ("p99", Right),
            ("max", Right),
            ("most often by", Left),
        ]);
        let pairs = self.pairs();
        for (thread, of) in rows.iter().take(page.rows) {
            let trust = page.trust.without(switched.missing_of(**thread));
            let mut row = vec![who.thread(switched.tid(**thread), None)];
            row.push(mark(values::count(of.durations.len() as u64), trust.sum));
            let Trust { sum, value } = of.trust(trust);
            if let Some(d) = of.durations.distribution() {
                let numbers = [(d.median, value), (d.p99, value), (d.max, sum)];
                row.extend(numbers.map(|(nanos, quality)| mark(values::time(nanos), quality)));
            }
            row.resize(5, String::new());
            let most = pairs.iter().find(|((_, woken), _)| woken == *thread);
            row.push(most.map_or(String::new(), |((waker, _), count)| {
                let by = match *waker {
                    Waker::Thread(waker) | Waker::Unknown(Some(waker)) => who.thread(waker, None),
                    Waker::Interrupt | Waker::Unknown(None) => kind(*waker).to_owned(),
                };
                let quality = trust.value.and(self.quality((*waker, **thread)));
                format!("{by}, {}", mark(format!("{}×", values::count(*count)), quality))
            }));
            table.row(row);
        }
        page.table(Section::Wakeups, "from being woken to running", &table, rows.len());
    }
}

/// What woke a thread, in one word.
fn kind(waker: Waker) -> &'static str {
    match waker {
        Waker::Thread(_) => "thread",
        Waker::Interrupt => "interrupt",
        Waker::Unknown(_) => "unknown",
    }
}
