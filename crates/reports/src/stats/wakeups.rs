// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long threads wait for a processor once they are woken, and who woke them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use lateralis_analysis::{Durations, ThreadState};
use lateralis_model::Quality;
use lateralis_semantics::ThreadStateInterval;
use lateralis_store::facts::{WakeMoment, Waker};

use super::document::{Member, members};
use super::left_out::LeftOut;
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

/// How often a switch to or from each thread is missing.
pub struct Missing {
    of: HashMap<u32, u64>,
    count: u64,
}

impl Missing {
    /// By thread.
    pub fn of(all: impl Iterator<Item = (u32, u64)>) -> Self {
        let of: HashMap<u32, u64> = all.collect();
        Self { count: of.values().sum(), of }
    }

    fn of_thread(&self, tid: u32) -> u64 {
        self.of.get(&tid).copied().unwrap_or(0)
    }
}

/// All wake-ups.
#[derive(Default)]
pub struct Wakeups {
    /// Whether the trace has any.
    pub has_any: bool,
    woken: BTreeMap<u32, Woken>,
    /// Who woke which thread how often.
    pairs: HashMap<(Waker, u32), u64>,
    /// Threads that somebody unknown woke at least once.
    of_unknown: HashSet<u32>,
    /// Wake-ups of threads that have not run since.
    waiting_count: u64,
    /// Wake-ups that are in no latency, and those that are in no pair.
    left_out: [u64; 2],
    /// Whether some threads may be missing among [`Wakeups::of_unknown`].
    has_more_of_unknown: bool,
}

impl Wakeups {
    /// What a thread did: if it waited for a processor because it was woken, that counts where the wake-up
    /// began, and not where one that had begun before was told again.
    pub fn interval(&mut self, of: &ThreadStateInterval) {
        let woken = of.woken.filter(|(_, moment)| *moment != WakeMoment::QueuedAgain);
        let (Some((waker, moment)), tid) = (woken, of.tid) else { return };
        if of.ended_by.is_none() {
            self.waiting_count += 1;
        }
        // Of one that left a processor next it is not known when it had come there.
        if !of.comes_to_cpu {
            return;
        }
        if self.woken.len() < WOKEN_MAX || self.woken.contains_key(&tid) {
            let woken = self.woken.entry(tid).or_default();
            if of.state == Some(ThreadState::Runnable) {
                woken.durations.push(of.end.since(of.begin).max(0) as u64);
                woken.cut_count += u64::from(!moment.is_begin());
            } else {
                woken.touched += 1;
            }
        } else {
            self.left_out[0] += 1;
        }
        if matches!(waker, Waker::Unknown(_)) {
            match self.of_unknown.len() < WOKEN_MAX || self.of_unknown.contains(&tid) {
                true => drop(self.of_unknown.insert(tid)),
                false => self.has_more_of_unknown = true,
            }
        }
        let pair = (waker, tid);
        if self.pairs.len() < WOKEN_MAX || self.pairs.contains_key(&pair) {
            *self.pairs.entry(pair).or_default() += 1;
        } else {
            self.left_out[1] += 1;
        }
    }

    /// Wake-ups that are left out.
    pub fn left_out(&self) -> [LeftOut; 2] {
        let of = |what, of, count| {
            let (member, section, most) = ("wakeups", Section::Wakeups, WOKEN_MAX as u64);
            LeftOut { member, section, what, of, most, count }
        };
        let [latencies, pairs] = self.left_out;
        [
            of("latencies", "threads that are woken", latencies),
            of("wake-ups by pair", "pairs of waker and thread", pairs),
        ]
    }

    /// Latencies by thread, and who woke whom. Where switches are missing, a wake-up of a thread that had
    /// left its processor looks needless.
    pub fn json<'a>(
        &'a self,
        missing: Missing,
        needless: u64,
        trust: Trust,
        who: Who<'a>,
    ) -> Member<'a> {
        // That no wake-up was recorded does not mean that there was none.
        let all_seen = trust.without(missing.count);
        let of_all = if self.has_any { all_seen.value } else { Quality::Unknown };
        let missing = Rc::new(missing);
        let missing_of = Rc::clone(&missing);
        let latencies = self.woken.iter().map(move |(&tid, of)| {
            let trust = trust.without(missing_of.of_thread(tid));
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
        });
        let pairs = self.pairs().into_iter().map(move |((waker, woken), count)| {
            let by = match waker {
                Waker::Thread(waker) | Waker::Unknown(Some(waker)) => Some(waker),
                Waker::Interrupt | Waker::Unknown(None) => None,
            };
            let trust = trust.without(missing.of_thread(woken));
            Row::default()
                .plain("woken_by", kind(waker))
                .plain("waker_tid", by)
                .plain("waker", by.and_then(|tid| who.name(tid, None)))
                .plain("tid", woken)
                .plain("thread", who.name(woken, None))
                .number("count", count, trust.value.and(self.quality((waker, woken))))
                .value()
        });
        let sums = Row::default().number("needless", needless, of_all).number(
            "not_run_yet",
            self.waiting_count,
            of_all,
        );
        let mut members = members(sums.value());
        members.insert("latencies".to_owned(), Member::rows(latencies));
        members.insert("pairs".to_owned(), Member::rows(pairs));
        Member::Object(members)
    }

    /// Of how often one woke another: who is not known to be the waker may be none, and where that is not
    /// known of all wake-ups of a thread, others can have been more of them.
    fn quality(&self, (waker, woken): (Waker, u32)) -> Quality {
        match waker {
            Waker::Unknown(_) => Quality::Unknown,
            _ if self.has_more_of_unknown || self.of_unknown.contains(&woken) => {
                Quality::LowerBound
            }
            Waker::Thread(_) | Waker::Interrupt => Quality::Exact,
        }
    }

    fn pairs(&self) -> Vec<((Waker, u32), u64)> {
        let mut pairs: Vec<_> = self.pairs.iter().map(|(pair, count)| (*pair, *count)).collect();
        pairs.sort_by_key(|(pair, count)| (Reverse(*count), *pair));
        pairs
    }

    /// The table.
    pub fn page(&self, missing: &Missing, page: &mut Page<'_>, who: Who<'_>) {
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
            let trust = page.trust.without(missing.of_thread(**thread));
            let mut row = vec![who.thread(**thread, None)];
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
