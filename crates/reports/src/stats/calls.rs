// SPDX-License-Identifier: Apache-2.0 OR MIT
//! System calls by name and by thread: how often, which errors, how many bytes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use lateralis_analysis::Gaps;
use lateralis_model::Quality;
use lateralis_semantics::kernel::calls::{Call, CallName, Calls, Layer, Moves};
use serde_json::{Value, json};

use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use crate::table::{Align, Table};
use crate::values;

/// Pairs of a call and a thread that are counted separately; the rest is left out.
const PAIRS_MAX: usize = 1 << 16;

/// What calls of one name, or of one thread, came to.
#[derive(Debug, Clone, Default)]
struct Returned {
    count: u64,
    errors: u64,
    bytes: u64,
}

impl Returned {
    fn add(&mut self, call: &Call) {
        self.count += 1;
        self.errors += u64::from(call.error().is_some());
        self.bytes = self.bytes.saturating_add(call.bytes().unwrap_or(0));
    }
}

/// Calls of one name.
#[derive(Debug, Default)]
struct OfName {
    returned: Returned,
    errors: BTreeMap<String, u64>,
    /// Nanoseconds of those whose beginning is known, how many those are, and the longest.
    total_nanos: u64,
    timed: u64,
    longest_nanos: u64,
    touched: u64,
    /// Those that had not returned when the trace ended, and those whose return is missing.
    not_returned: u64,
    missing: u64,
}

/// All calls.
#[derive(Debug, Default)]
pub struct CallTotals {
    names: Vec<OfName>,
    /// By name and thread.
    threads: HashMap<(u32, Option<u32>), Returned>,
    /// Calls of more pairs of them.
    left_out: u64,
    /// Whether whose a call is was not known of any.
    has_unknown: bool,
}

impl CallTotals {
    /// One more.
    pub fn add(&mut self, call: &Call, gaps: &Gaps) {
        let index = call.name as usize;
        if self.names.len() <= index {
            self.names.resize_with(index + 1, OfName::default);
        }
        let of = &mut self.names[index];
        let Some(end) = call.end else {
            *if call.is_overtaken { &mut of.missing } else { &mut of.not_returned } += 1;
            return;
        };
        of.returned.add(call);
        if let Some(error) = call.error_name() {
            *of.errors.entry(error).or_default() += 1;
        }
        match call.begin {
            Some(begin) if gaps.touch(begin, end) => of.touched += 1,
            Some(begin) => {
                let nanos = end.since(begin).max(0).unsigned_abs();
                of.total_nanos = of.total_nanos.saturating_add(nanos);
                of.longest_nanos = of.longest_nanos.max(nanos);
                of.timed += 1;
            }
            None => {}
        }
        let key = (call.name, call.writer.map(|writer| writer.tid));
        self.has_unknown |= key.1.is_none();
        if self.threads.len() < PAIRS_MAX || self.threads.contains_key(&key) {
            self.threads.entry(key).or_default().add(call);
        } else {
            self.left_out += 1;
        }
    }
}

impl CallTotals {
    /// Calls that are left out: of threads, and those whose names are.
    pub fn left_out(&self, calls: &Calls) -> [LeftOut; 2] {
        let of = |what, of, most: usize, count| {
            let (member, section, most) = ("calls", Section::Calls, most as u64);
            LeftOut { member, section, what, of, most, count }
        };
        let others = calls.others().iter().filter_map(|name| self.names.get(*name as usize));
        let others = others.map(|of| of.returned.count + of.not_returned + of.missing).sum();
        [
            of("calls by thread", "pairs of call and thread", PAIRS_MAX, self.left_out),
            of("calls by name", "names", Calls::NAMES_MAX, others),
        ]
    }
}

impl OfName {
    /// Where a return is missing there are more of them, and perhaps more errors.
    fn trust(&self, trust: Trust) -> Trust {
        trust.at_least(self.missing > 0)
    }

    /// How long they took is not known of all.
    fn trust_of_times(&self, trust: Trust) -> Trust {
        self.trust(trust).at_least(self.timed < self.returned.count || self.not_returned > 0)
    }

    /// How many have not returned is not known where returns are missing, or no beginning was seen.
    fn quality_of_unreturned(&self, trust: Trust) -> Quality {
        let begun = self.timed + self.touched + self.not_returned;
        trust.without(if begun == 0 { 1 } else { self.missing }).value
    }

    fn errors(&self) -> Vec<(&str, u64)> {
        let mut errors: Vec<_> =
            self.errors.iter().map(|(name, of)| (name.as_str(), *of)).collect();
        errors.sort_by_key(|(name, count)| (Reverse(*count), *name));
        errors
    }
}

/// What a thread called, all together.
#[derive(Default)]
struct OfThread {
    returned: Returned,
    bytes_in: u64,
    bytes_out: u64,
    most: Option<(u32, u64)>,
}

impl CallTotals {
    /// The names that have any, those that were called most first.
    fn all<'a>(&'a self, names: &'a [CallName]) -> Vec<(u32, &'a CallName, &'a OfName)> {
        let all = (0..).zip(names).zip(&self.names).map(|((index, name), of)| (index, name, of));
        let is_any = |of: &OfName| of.returned.count + of.not_returned + of.missing > 0;
        let mut all: Vec<_> = all.filter(|(.., of)| is_any(of)).collect();
        all.sort_by_key(|(_, name, of)| (Reverse(of.returned.count), name.layer, &name.name));
        all
    }

    /// Of single threads: a call whose thread is unknown can be of any, and some may be left out.
    fn trust_of_threads(&self, trust: Trust) -> Trust {
        trust.at_least(self.has_unknown || self.left_out > 0)
    }

    /// The member `calls` of the whole, where there are any.
    pub fn json(&self, names: &[CallName], trust: Trust, who: Who<'_>) -> Option<Value> {
        let all = self.all(names);
        let mut threads: HashMap<u32, Vec<(Option<u32>, &Returned)>> = HashMap::new();
        for ((name, tid), of) in &self.threads {
            threads.entry(*name).or_default().push((*tid, of));
        }
        let row = |(index, name, of): (u32, &CallName, &OfName)| {
            let of_name = of.trust(trust);
            let errors = of.errors().into_iter().map(|(error, count)| {
                Row::default().plain("error", error).number("count", count, of_name.sum).value()
            });
            let mut by_thread = threads.remove(&index).unwrap_or_default();
            by_thread.sort_by_key(|(tid, of)| (Reverse(of.count), *tid));
            let by_thread = by_thread.into_iter().map(|(tid, of)| {
                // Calls of an unknown thread belong to threads that have rows of their own.
                let sum = match tid {
                    Some(_) => self.trust_of_threads(of_name).sum,
                    None => Quality::Unknown,
                };
                let row = Row::default()
                    .plain("tid", tid)
                    .plain("pid", tid.and_then(|tid| who.threads.process(tid)))
                    .plain("thread", tid.and_then(|tid| who.name(tid, None)))
                    .number("returned", of.count, sum)
                    .number("errors", of.errors, sum);
                let moves = name.moves.is_some();
                let row = if moves { row.number("bytes", of.bytes, sum) } else { row };
                row.value()
            });
            let (times, by_thread) = (of.trust_of_times(trust), by_thread.collect::<Vec<_>>());
            let row = Row::default()
                .plain("call", name.name.as_str())
                .plain("layer", name.layer.name())
                .plain("moves", name.moves.map(Moves::name))
                .number("returned", of.returned.count, of_name.sum)
                .number("errors", of.returned.errors, of_name.sum)
                .plain("errors_by_name", errors.collect::<Vec<_>>())
                .number("total_ns", of.total_nanos, times.sum)
                .number("max_ns", of.longest_nanos, times.sum)
                .number("timed", of.timed, times.sum)
                .number("touched_by_losses", of.touched, trust.value)
                .number("not_returned", of.not_returned, of.quality_of_unreturned(trust))
                .plain("missing_returns", of.missing)
                .plain("by_thread", by_thread);
            let bytes = |row: Row| row.number("bytes", of.returned.bytes, of_name.sum);
            if name.moves.is_some() { bytes(row).value() } else { row.value() }
        };
        (!all.is_empty()).then(|| json!(all.into_iter().map(row).collect::<Vec<_>>()))
    }

    /// The tables.
    pub fn page(&self, names: &[CallName], page: &mut Page<'_>, who: Who<'_>) {
        use Align::{Left, Right};
        let all = self.all(names);
        let mut table = Table::new(&[
            ("call", Left),
            ("returned", Right),
            ("together", Right),
            ("longest", Right),
            ("bytes", Right),
            ("errors", Right),
            ("which", Left),
        ]);
        for (_, name, of) in all.iter().take(page.rows) {
            let (trust, times) = (of.trust(page.trust), of.trust_of_times(page.trust));
            let time = |nanos| match of.timed {
                0 => String::new(),
                _ => mark(values::time(nanos), times.sum),
            };
            let some = |number: u64, text: String| match number {
                0 => String::new(),
                _ => mark(text, trust.sum),
            };
            let errors: Vec<String> = of
                .errors()
                .into_iter()
                .map(|(error, count)| format!("{error} {}×", values::count(count)))
                .collect();
            let Returned { count, errors: failed, bytes } = of.returned;
            table.row([
                shown(name),
                mark(values::count(count), trust.sum),
                time(of.total_nanos),
                time(of.longest_nanos),
                some(bytes, values::bytes(bytes)),
                some(failed, values::count(failed)),
                errors.join(", "),
            ]);
        }
        page.table(Section::Calls, "calls of the system", &table, all.len());
        self.threads_page(names, page, who);
    }

    fn threads_page(&self, names: &[CallName], page: &mut Page<'_>, who: Who<'_>) {
        use Align::{Left, Right};
        let mut threads: BTreeMap<Option<u32>, OfThread> = BTreeMap::new();
        let mut pairs: Vec<_> = self.threads.iter().collect();
        pairs.sort_by_key(|(pair, _)| **pair);
        for ((call, tid), of) in pairs {
            let thread = threads.entry(*tid).or_default();
            thread.returned.count += of.count;
            thread.returned.errors += of.errors;
            let bytes = match names.get(*call as usize).and_then(|name| name.moves) {
                Some(Moves::In) => Some(&mut thread.bytes_in),
                Some(Moves::Out) => Some(&mut thread.bytes_out),
                Some(Moves::Through) | None => None,
            };
            if let Some(bytes) = bytes {
                *bytes = bytes.saturating_add(of.bytes);
            }
            if thread.most.is_none_or(|(_, count)| count < of.count) {
                thread.most = Some((*call, of.count));
            }
        }
        let mut threads: Vec<_> = threads.into_iter().collect();
        threads.sort_by_key(|(tid, of)| (Reverse(of.returned.count), *tid));
        let mut table = Table::new(&[
            ("thread", Left),
            ("returned", Right),
            ("errors", Right),
            ("bytes read", Right),
            ("bytes written", Right),
            ("most often", Left),
        ]);
        let is_missing = self.names.iter().any(|of| of.missing > 0);
        let trust = self.trust_of_threads(page.trust.at_least(is_missing));
        for (tid, of) in threads.iter().take(page.rows) {
            let some = |number: u64, text: fn(u64) -> String| match number {
                0 => String::new(),
                _ => mark(text(number), trust.sum),
            };
            let most = of.most.and_then(|(call, count)| Some((names.get(call as usize)?, count)));
            table.row([
                tid.map_or("?".to_owned(), |tid| who.thread(tid, None)),
                mark(values::count(of.returned.count), trust.sum),
                some(of.returned.errors, values::count),
                some(of.bytes_in, values::bytes),
                some(of.bytes_out, values::bytes),
                most.map_or(String::new(), |(name, count)| {
                    format!(
                        "{}, {}",
                        shown(name),
                        mark(format!("{}×", values::count(count)), trust.sum)
                    )
                }),
            ]);
        }
        page.table(Section::Calls, "calls of the system by thread", &table, threads.len());
    }
}

/// What the page calls it.
fn shown(name: &CallName) -> String {
    match name.layer {
        Layer::Kernel => name.name.clone(),
        Layer::Library => format!("{} (library)", name.name),
    }
}
