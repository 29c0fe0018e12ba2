// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Durations of spans: by name, by key, by thread, and those that stand out.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use lateralis_analysis::{
    Censored, Distribution, Edge, Ended, Gaps, Group, OfThread, PairedSpan, Side, Span, SpanInRun,
    SpanKind, SpanLimits, SpanSink, SpanTable, mean,
};
use lateralis_model::{Quality, Writer};
use lateralis_pleco::schema::{Annotation, Clause, Schema};
use lateralis_semantics::{ClockErrors, DerivedSpan, Deriver, SpanStatus};
use lateralis_store::Recording;
use lateralis_store::facts::{Doubts, Kind, Kinds};
use lateralis_units::Nanos;
use serde_json::{Value, json};

use super::latency;
use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use super::sections::Asked;
use crate::date;
use crate::table::{Align, Table};
use crate::values;

/// Keys that are told of each kind in JSON, those with most time; `keys` says how many there are.
const KEYS_TOLD: usize = 1000;
/// Threads likewise; `threads` says how many.
const THREADS_TOLD: usize = 100;

/// The kinds of spans of a trace with their numbers.
pub struct Spans {
    table: SpanTable,
    /// By kind: which of its key fields are threads.
    threads: Vec<Vec<bool>>,
    /// By kind: those that have not ended, until when each was seen, longest first. Their ends can
    /// only come later.
    open: Vec<Vec<Span>>,
    clocks: Clocks,
    /// Those that have not ended, by the events that began them.
    unfinished: Vec<(u32, Edge)>,
    /// By kind, whether some of its spans may have ended that are unfinished here.
    unmatched: Vec<bool>,
    /// Whether it is known which have not ended.
    has_seen_open: bool,
    /// Whether the recorder left out events of any.
    has_filtered: bool,
    /// Threads by the numbers that the table has for them.
    thread_names: Vec<Option<Writer>>,
}

/// By kind of span, by how much the clocks of both ends may be off; `None`: by any.
#[derive(Default)]
struct Clocks(HashMap<u32, Option<u64>>);

impl Clocks {
    fn ended(&mut self, kind: u32, error: Option<u64>) {
        if error != Some(0) {
            let most = self.0.entry(kind).or_insert(Some(0));
            *most = most.zip(error).map(|(one, other)| one.max(other));
        }
    }

    /// By how much durations of a kind may be off.
    fn error(&self, kind: usize) -> Option<u64> {
        self.0.get(&(kind as u32)).copied().unwrap_or(Some(0))
    }
}

/// Spans of a kind that have not ended and are kept for the list of the slowest.
const OPEN_KEPT: usize = 10;

/// What spans of one key are about: a lock, a request. Threads in a key only keep the
/// spans of a lock apart, they do not make it another lock.
struct Thing<'a> {
    pid: Option<u32>,
    key: Option<String>,
    group: Cow<'a, Group>,
}

impl Spans {
    /// Of these kinds.
    pub fn new(kinds: &Kinds, recording: &Recording, asked: Asked) -> Self {
        let Asked { in_flight, span_threads: threads, .. } = asked;
        let limits = SpanLimits { in_flight, threads, ..SpanLimits::default() };
        let mut table = SpanTable::new(limits);
        // What a processor does is no matter of the process that it interrupts.
        for kind in &kinds.spans {
            let is_per_process = !kind.keys.iter().any(|key| key == "$cpu");
            table.add_kind(is_per_process);
        }
        let meanings = &recording.meanings;
        let is_thread = |kind: &Kind, key: &String| {
            kind.keys.len() > 1 && meanings.schemas().iter().any(|schema| is_tid(schema, kind, key))
        };
        let of_kind = |kind: &Kind| kind.keys.iter().map(|key| is_thread(kind, key)).collect();
        let threads = kinds.spans.iter().map(of_kind).collect();
        Self {
            table,
            threads,
            open: Vec::new(),
            clocks: Clocks::default(),
            unfinished: Vec::new(),
            unmatched: Vec::new(),
            has_seen_open: false,
            has_filtered: kinds.has_filtered_spans(),
            thread_names: Vec::new(),
        }
    }

    /// A span begins.
    #[inline]
    pub fn begins(&mut self, kind: u32, is_keyless: bool) {
        SpanSink::<()>::begins(&mut self.table, kind, is_keyless);
    }

    /// A span, or what there is of it.
    pub fn span(&mut self, derived: &DerivedSpan) {
        let DerivedSpan { kind, thread, is_certain, own_ns: own_nanos, .. } = *derived;
        match (derived.status, derived.span()) {
            (SpanStatus::Complete, Some(span)) => {
                self.clocks.ended(kind, derived.clock_error_ns);
                let (tag, end_tag) = ((), ());
                let paired = PairedSpan { kind, span, tag, end_tag, thread, is_certain, own_nanos };
                self.table.pairs(&paired);
            }
            (SpanStatus::Whole, Some(span)) => self.table.add_whole(kind, &span, thread),
            (SpanStatus::Unfinished, _) => {
                self.unfinished.extend(derived.begin.map(|begin| (kind, begin.edge)));
            }
            (SpanStatus::Orphan, _) => self.table.add_orphan(kind),
            _ => {}
        }
    }

    /// One of a run.
    #[inline]
    pub fn span_in_run(&mut self, span: &SpanInRun) {
        SpanSink::<()>::pairs_in_run(&mut self.table, span);
    }

    /// The end of a whole span has come.
    pub fn whole_ended(&mut self, ended: &Ended, is_certain: bool) {
        SpanSink::<()>::whole_ended(&mut self.table, ended, is_certain);
    }

    /// All events have been taken.
    pub fn finish(&mut self, kinds: &Kinds, deriver: &Deriver<()>) {
        self.table.finish();
        let known = |writer: &Option<Writer>| writer.filter(Doubts::is_known);
        self.thread_names = deriver.threads().iter().map(known).collect();
        self.unmatched =
            (0..kinds.spans.len() as u32).map(|kind| deriver.is_unmatched(kind)).collect();
    }

    /// How far numbers of a kind can be trusted.
    fn trust(&self, index: usize, kind: &Kind, of: &SpanKind, trust: Trust) -> Trust {
        let is_unmatched = self.unmatched.get(index).copied().unwrap_or(false);
        of_kind(kind, of, trust.without(u64::from(is_unmatched)))
    }

    /// Processes that have spans which have not ended.
    pub fn processes_with_open_spans(&self) -> HashSet<u32> {
        self.unfinished.iter().filter_map(|(_, edge)| Some(edge.writer?.pid)).collect()
    }

    /// Takes until when each process was seen: what has not ended lasts at least until then. What
    /// may have ended in a gap is left out: an end that is missing before can have left another one open.
    pub fn see_open(&mut self, kinds: &Kinds, gaps: &Gaps, seen: &HashMap<u32, Nanos>) {
        let mut open: Vec<Vec<Span>> = Vec::new();
        for &(kind, begin) in &self.unfinished {
            let Some(&time) = begin.writer.and_then(|writer| seen.get(&writer.pid)) else {
                continue;
            };
            let is_filtered = kinds.spans.get(kind as usize).is_some_and(|kind| kind.is_filtered);
            if is_filtered || time <= begin.time || gaps.between(Nanos(i64::MIN), time) {
                continue;
            }
            let kind = kind as usize;
            if open.len() <= kind {
                open.resize_with(kind + 1, Vec::new);
            }
            open[kind].push(Span { begin, end: Edge { time, side: Side::End, ..begin } });
        }
        for spans in &mut open {
            spans.sort_by_key(|span| (Reverse(span.nanos()), span.begin.time));
            spans.truncate(OPEN_KEPT);
        }
        self.open = open;
        self.has_seen_open = true;
    }

    /// Those of a kind that have not ended, longest first.
    fn open(&self, index: usize) -> &[Span] {
        self.open.get(index).map_or(&[], Vec::as_slice)
    }

    /// The longest of a kind, and how far that can be trusted: one that has not ended can be longer.
    fn longest(&self, index: usize, of: &SpanKind, sum: Quality) -> Option<(u64, Quality)> {
        let ended = of.distribution().map(|d| d.max);
        let open = self.open(index).first().map(Span::nanos);
        let sum = if of.unfinished_count() > 0 { sum.and(of_open(of)) } else { sum };
        let longest = ended.max(open)?;
        Some((longest, ClockErrors::quality(self.clocks.error(index), longest, sum)))
    }

    /// By how much durations of the spans of this name may be off, for two clocks measure them; `None`:
    /// by any.
    pub fn clock_error(&self, kinds: &Kinds, name: &str) -> Option<u64> {
        let found = self.all(kinds).find(|(_, kind, _)| kind.name == name);
        found.map_or(Some(0), |(index, ..)| self.clocks.error(index))
    }

    /// The longest of the spans of this name; see `longest`.
    pub fn longest_of(&self, kinds: &Kinds, name: &str, sum: Quality) -> Option<(u64, Quality)> {
        let (index, _, of) = self.all(kinds).find(|(_, kind, _)| kind.name == name)?;
        self.longest(index, of, sum)
    }

    /// Whether of spans of a kind only beginnings or only ends were seen, of some at least.
    pub fn has_halves(&self, kinds: &Kinds, name: &str) -> bool {
        let kind = self.all(kinds).find(|(_, kind, _)| kind.name == name);
        kind.is_some_and(|(_, _, of)| of.unfinished_count() > 0 || of.orphan_count() > 0)
    }

    /// The slowest of a kind, those that have not ended among them: each with whether it has.
    fn outliers(&self, index: usize, of: &SpanKind) -> Vec<(Span, bool)> {
        let ended = of.slowest().into_iter().map(|span| (span, true));
        let mut all: Vec<_> =
            ended.chain(self.open(index).iter().map(|span| (*span, false))).collect();
        all.sort_by_key(|(span, has_ended)| (Reverse(span.nanos()), *has_ended, span.begin.time));
        all.truncate(OPEN_KEPT);
        all
    }

    /// Durations of the spans of this name.
    pub fn distribution(&self, kinds: &Kinds, name: &str) -> Option<Distribution> {
        self.all(kinds).find(|(_, kind, _)| kind.name == name)?.2.distribution()
    }

    /// Where the percentiles of a kind lie with those that have not ended; `None` if all have.
    fn censored(&self, index: usize, of: &SpanKind) -> Option<Censored> {
        let seen: Vec<u64> = self.open(index).iter().map(Span::nanos).collect();
        if of.unfinished_count() > 0 { of.censored(&seen) } else { None }
    }

    /// The same of the spans of this name.
    pub fn censored_of(&self, kinds: &Kinds, name: &str) -> Option<Censored> {
        let (index, _, of) = self.all(kinds).find(|(_, kind, _)| kind.name == name)?;
        self.censored(index, of)
    }

    /// Median, p90, p99 and p99.9 of a kind: those that have not ended are among the durations, each at least
    /// as long as it was seen, unless nobody has looked or it is unknown which have ended.
    fn percentiles(
        &self,
        index: usize,
        of: &SpanKind,
        d: &Distribution,
        trust: Trust,
    ) -> [(u64, Quality); 4] {
        let all = |d: &Distribution| [d.median, d.p90, d.p99, d.p999];
        let rough = if d.is_rough { Quality::LowerBound } else { Quality::Exact };
        let quality = trust.value.and(rough);
        let has_seen = self.has_seen_open && trust.value == Quality::Exact;
        let Some(of) = self.censored(index, of).filter(|_| has_seen) else {
            return all(d).map(|nanos| (nanos, quality));
        };
        let (least, most) = (all(&of.least), all(&of.most));
        std::array::from_fn(|place| {
            let is_known = least[place] == most[place];
            let of_open = if is_known { Quality::Exact } else { Quality::LowerBound };
            (least[place], quality.and(of_open))
        })
    }

    /// Durations by name, of those that have any.
    pub fn distributions<'a>(
        &'a self,
        kinds: &'a Kinds,
    ) -> impl Iterator<Item = (&'a str, Distribution)> {
        self.all(kinds).filter_map(|(_, kind, of)| Some((kind.name.as_str(), of.distribution()?)))
    }

    /// By kind: name, number and nanoseconds of all certain spans, and their distribution.
    pub fn totals<'a>(
        &'a self,
        kinds: &'a Kinds,
    ) -> impl Iterator<Item = (&'a str, u64, u128, Option<Distribution>)> {
        self.all(kinds).map(|(_, kind, of)| {
            let count = of.paired_count().saturating_sub(of.touched_count());
            (kind.name.as_str(), count, of.total_nanos(), of.distribution())
        })
    }

    /// Kinds that have anything.
    fn all<'a>(
        &'a self,
        kinds: &'a Kinds,
    ) -> impl Iterator<Item = (usize, &'a Kind, &'a SpanKind)> {
        let has_any = |kind: &SpanKind| {
            kind.paired_count() + kind.unfinished_count() + kind.orphan_count() > 0
        };
        let all = kinds.spans.iter().zip(self.table.kinds()).enumerate();
        all.map(|(index, (kind, of))| (index, kind, of)).filter(move |(.., of)| has_any(of))
    }

    /// The same, those with most time first.
    fn most_time<'a>(&'a self, kinds: &'a Kinds) -> Vec<(usize, &'a Kind, &'a SpanKind)> {
        let mut all: Vec<_> = self.all(kinds).collect();
        all.sort_by_cached_key(|(index, _, of)| (Reverse(of.total_nanos()), *index));
        all
    }

    /// All numbers.
    pub fn json<'a>(
        &'a self,
        kinds: &'a Kinds,
        trust: Trust,
        who: Who<'a>,
    ) -> impl Iterator<Item = Value> + 'a {
        self.all(kinds).map(move |(index, kind, of)| self.kind_json(index, kind, of, trust, who))
    }

    fn kind_json(
        &self,
        index: usize,
        kind: &Kind,
        of: &SpanKind,
        trust: Trust,
        who: Who<'_>,
    ) -> Value {
        let of_own = trust.without(u64::from(self.has_filtered));
        let trust = self.trust(index, kind, of, trust);
        let mut row = Row::default()
            .plain("name", kind.name.as_str())
            .plain("key_fields", json!(self.key_fields(index, kind)))
            .number("count", of.paired_count(), trust.sum)
            .number("touched_by_losses", of.touched_count(), trust.value)
            .number("unfinished", of.unfinished_count(), trust.value)
            .number("orphans", of.orphan_count(), trust.value);
        let (summary, histogram) = of.summary();
        if let Some(d) = summary {
            let percentiles = self.percentiles(index, of, &d, trust);
            row = distribution(row, &d, percentiles, trust, self.clocks.error(index));
            row = row.plain("clock_error_ns", self.clocks.error(index));
            let (own, count) = of.own();
            row = row.nanos("self_ns", own, of_own.sum).number("self_count", count, of_own.sum);
            let buckets = histogram.coarse();
            let bucket = |b: &lateralis_analysis::Bucket| json!([b.low, b.high, b.count]);
            let buckets: Vec<Value> = buckets.iter().map(bucket).collect();
            row = row.number("histogram_ns", buckets, trust.value);
            row = row.plain("by_in_flight", latency::json(of, trust));
        }
        if let Some((longest, quality)) = self.longest(index, of, trust.sum) {
            row = row.number("max_ns", longest, quality);
        }
        let slowest: Vec<Value> = self
            .outliers(index, of)
            .iter()
            .map(|(span, has_ended)| {
                let of_end = if *has_ended { Quality::Exact } else { of_open(of) };
                let error = self.clocks.error(index);
                let quality = ClockErrors::quality(error, span.nanos(), of_end);
                span_json(kind, span, *has_ended, quality, who)
            })
            .collect();
        let all_threads = threads(of, &self.thread_names);
        let threads: Vec<Value> = all_threads
            .iter()
            .take(THREADS_TOLD)
            .map(|(writer, thread)| {
                who_row(Row::default(), *writer, who)
                    .number("count", thread.count, trust.sum)
                    .nanos("total_ns", thread.total, trust.sum)
                    .number("max_ns", thread.max, trust.sum)
                    .value()
            })
            .collect();
        row = row.number("slowest", slowest, trust.value).plain("by_thread", threads);
        // Those that nobody knows can be any number of others.
        let known = all_threads.iter().filter(|(writer, _)| writer.is_some()).count();
        let of_known = trust.at_least(known < all_threads.len()).sum;
        row = row.number("threads", known, of_known);
        if has_keys(of) {
            let things = self.things(index, kind, of);
            let told = things.iter().take(KEYS_TOLD);
            let keys: Vec<Value> = told
                .map(|thing| thing_json(kind, thing, trust, self.clocks.error(index), who))
                .collect();
            row = row.plain("by_key", keys).number("keys", things.len(), trust.sum);
            row = row.number("spans_of_other_keys", of.other_keys().count, trust.sum);
        }
        row.value()
    }

    /// The tables.
    pub fn page(&self, page: &mut Page<'_>, who: Who<'_>, kinds: &Kinds) {
        self.names(page, kinds);
        self.keys(page, who, kinds);
        self.slowest(page, who, kinds);
        // Long, and not what is asked first.
        if page.wanted.contains(&Section::Latency) {
            latency::page(&self.most_time(kinds), page);
        }
    }

    /// What the spans of a kind are about, those with most time first.
    fn things<'a>(&'a self, index: usize, kind: &Kind, of: &'a SpanKind) -> Vec<Thing<'a>> {
        let threads = self.threads.get(index).map_or(&[][..], Vec::as_slice);
        let mut places: HashMap<(Option<u32>, Option<String>), usize> = HashMap::new();
        let mut things: Vec<Thing<'a>> = Vec::new();
        for ((pid, key), group) in of.groups() {
            let key = key.map(|key| thing_name(kind.key_text(key), threads));
            let place = (pid, key.clone());
            match places.get(&place) {
                Some(index) => things[*index].group.to_mut().merge(group),
                None => {
                    places.insert(place, things.len());
                    things.push(Thing { pid, key, group: Cow::Borrowed(group) });
                }
            }
        }
        things.sort_by(|a, b| {
            let rank = |thing: &Thing<'_>| (Reverse(thing.group.total), Reverse(thing.group.count));
            rank(a).cmp(&rank(b)).then_with(|| (a.pid, &a.key).cmp(&(b.pid, &b.key)))
        });
        things
    }

    /// The fields of a key that tell things apart.
    fn key_fields<'a>(&self, index: usize, kind: &'a Kind) -> Vec<&'a str> {
        let is_thread = |at: usize| self.threads.get(index).and_then(|of| of.get(at)).copied();
        let fields = kind.keys.iter().enumerate();
        fields.filter(|(at, _)| is_thread(*at) != Some(true)).map(|(_, key)| key.as_str()).collect()
    }

    fn names(&self, page: &mut Page<'_>, kinds: &Kinds) {
        use Align::{Left, Right};
        let mut table = Table::new(&[
            ("span", Left),
            ("count", Right),
            ("total", Right),
            ("self", Right),
            ("min", Right),
            ("mean", Right),
            ("median", Right),
            ("stddev", Right),
            ("p90", Right),
            ("p99", Right),
            ("p99.9", Right),
            ("max", Right),
            ("unfinished", Right),
            ("orphans", Right),
        ]);
        let all = self.most_time(kinds);
        let (mut unpaired, mut touched, mut rough) = (0, 0, false);
        for (index, kind, of) in all.iter().take(page.rows) {
            let of_own = page.trust.without(u64::from(self.has_filtered)).sum;
            let Trust { sum, value } = self.trust(*index, kind, of, page.trust);
            let (unfinished, orphans) = (of.unfinished_count(), of.orphan_count());
            unpaired += unfinished + orphans;
            touched += of.touched_count();
            let mut row = vec![kind.name.clone(), mark(values::count(of.paired_count()), sum)];
            if let Some(d) = of.distribution() {
                rough |= d.is_rough;
                let trust = Trust { sum, value };
                let [median, p90, p99, p999] = self.percentiles(*index, of, &d, trust);
                let (own, count) = of.own();
                let error = self.clocks.error(*index);
                let of = |nanos: u64, quality| ClockErrors::quality(error, nanos, quality);
                row.push(mark(values::time(d.total), of(d.max, sum)));
                row.push(match count {
                    0 => String::new(),
                    _ => mark(values::time(nanos(own)), of_own),
                });
                let cell = |(nanos, quality)| mark(values::time(nanos), of(nanos, quality));
                row.push(cell((d.min, value)));
                let computed = |nanos: f64| mark(values::mean_time(nanos), of(nanos as u64, value));
                row.extend([computed(d.mean), cell(median), computed(d.stddev)]);
                row.extend([p90, p99, p999].map(cell));
            }
            row.resize(11, String::new());
            let longest = self.longest(*index, of, sum);
            row.push(longest.map_or(String::new(), |(max, sum)| mark(values::time(max), sum)));
            row.push(mark(values::count(unfinished), value));
            row.push(mark(values::count(orphans), value));
            table.row(row);
        }
        page.table(Section::Spans, "spans", &table, all.len());
        if unpaired > 0 {
            let line = "unfinished: begun and not ended in the trace; orphans: ended and not begun";
            page.remark(Section::Spans, line);
        }
        if unpaired > 0 && page.trust.value != Quality::Exact {
            let line = "events were lost: their other halves may be among them";
            page.remark(Section::Spans, line);
        }
        if touched > 0 {
            let touched = values::counted(touched, "span");
            let line = format!("{touched} with events missing inside: counted, not timed");
            page.remark(Section::Spans, &line);
        }
        if rough {
            let line = "percentiles marked ≥ are from a histogram, within 0.8 %";
            page.remark(Section::Spans, line);
        }
    }

    fn keys(&self, page: &mut Page<'_>, who: Who<'_>, kinds: &Kinds) {
        use Align::{Left, Right};
        for (index, kind, of) in self.most_time(kinds) {
            let things = if has_keys(of) { self.things(index, kind, of) } else { Vec::new() };
            // Keys that come once are no things that something is done with.
            if things.is_empty() || of.paired_count() < 2 * things.len() as u64 {
                continue;
            }
            let mut table = Table::new(&[
                ("key", Left),
                ("process", Left),
                ("count", Right),
                ("total", Right),
                ("mean", Right),
                ("p99", Right),
                ("max", Right),
                ("longest by", Left),
                ("at", Left),
            ]);
            let Trust { sum, value } = self.trust(index, kind, of, page.trust);
            for Thing { pid, key, group } in things.iter().take(page.rows) {
                let mut row = vec![key.clone().unwrap_or_default()];
                row.push(pid.map_or(String::new(), |pid| who.process(pid)));
                row.push(mark(values::count(group.count + group.touched_count), sum));
                row.push(mark(values::time(nanos(group.total)), sum));
                row.push(match group.count {
                    0 => String::new(),
                    count => mark(values::mean_time(mean(group.total, count)), value),
                });
                let p99 = group.distribution().map(|d| d.p99);
                row.push(p99.map_or(String::new(), |p99| mark(values::time(p99), value)));
                if let Some(span) = group.longest {
                    row.push(mark(values::time(span.nanos()), sum));
                    row.push(who.writer(span.begin.writer));
                    row.push(date::text(span.begin.time));
                }
                table.row(row);
            }
            let title = format!("{} by {}", kind.name, self.key_fields(index, kind).join(", "));
            page.table(Section::Keys, &title, &table, things.len());
        }
    }

    /// Spans by key that are left out.
    pub fn left_out(&self) -> LeftOut {
        let others = self.table.kinds().iter().map(SpanKind::other_keys);
        LeftOut {
            member: "spans",
            section: Section::Keys,
            what: "spans by key",
            of: "keys of a name",
            most: SpanLimits::default().keys as u64,
            count: others.map(|of| of.count.saturating_add(of.touched_count)).sum(),
        }
    }

    fn slowest(&self, page: &mut Page<'_>, who: Who<'_>, kinds: &Kinds) {
        use Align::{Left, Right};
        let mut table = Table::new(&[
            ("slowest", Left),
            ("duration", Right),
            ("key", Left),
            ("by", Left),
            ("at", Left),
        ]);
        let each = if page.wanted.contains(&Section::Slowest) { page.rows } else { 3 };
        let all = self.most_time(kinds);
        let spans = all.iter().flat_map(|(index, kind, of)| {
            let error = self.clocks.error(*index);
            let outliers = self.outliers(*index, of).into_iter().take(each);
            let of_open = of_open(of);
            outliers.map(move |(span, has_ended)| (kind, span, has_ended, (error, of_open)))
        });
        for (kind, span, has_ended, (error, of_open)) in spans.take(page.rows) {
            // One that has not ended lasts at least as long as it was seen.
            let quality = if has_ended { page.trust.sum } else { of_open };
            table.row([
                kind.name.clone(),
                mark(
                    values::time(span.nanos()),
                    ClockErrors::quality(error, span.nanos(), quality),
                ),
                span.begin.key.map_or(String::new(), |key| kind.key_text(key)),
                who.writer(span.begin.writer),
                date::text(span.begin.time),
            ]);
        }
        page.table(Section::Slowest, "slowest spans", &table, 0);
    }
}

fn nanos(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

/// How far numbers of a kind can be trusted: not where events of it were left out, or it is not known
/// of which thread they are, nor where only its beginnings or only its ends were seen: the others may not
/// be recorded. A single beginning is one that hangs.
fn of_kind(kind: &Kind, of: &SpanKind, trust: Trust) -> Trust {
    let (open, orphans) = (of.unfinished_count(), of.orphan_count());
    let has_both =
        of.paired_count() > 0 || (open > 0) == (orphans > 0) || (open, orphans) == (1, 0);
    trust.without(u64::from(kind.is_filtered || of.touched_count() > 0 || !has_both))
}

/// How far it can be trusted that spans that have not ended last at least as long as they were seen.
fn of_open(of: &SpanKind) -> Quality {
    let has_ends = of.paired_count() + of.orphan_count() > 0;
    if has_ends || of.unfinished_count() == 1 { Quality::LowerBound } else { Quality::Unknown }
}

fn has_keys(of: &SpanKind) -> bool {
    of.groups().any(|((_, key), _)| key.is_some())
}

/// Whether a schema says that this key field of a span is a thread.
fn is_tid(schema: &Schema, kind: &Kind, key: &str) -> bool {
    schema.events.iter().any(|event| {
        event.clauses.iter().any(|clause| match clause {
            Clause::Begin { span, keys } if *span == kind.name => keys.iter().any(|index| {
                let field = event.fields.get(*index);
                field.is_some_and(|field| field.name == key && field.has(Annotation::Tid))
            }),
            _ => false,
        })
    })
}

/// A key without its threads; the whole where its parts cannot be told.
fn thing_name(text: String, threads: &[bool]) -> String {
    let parts: Vec<&str> = text.split(' ').collect();
    if parts.len() != threads.len() || !threads.contains(&true) {
        return text;
    }
    let rest = parts.iter().zip(threads).filter(|(_, is_thread)| !**is_thread);
    rest.map(|(part, _)| *part).collect::<Vec<_>>().join(" ")
}

/// Threads that began any, those with most time first.
fn threads(of: &SpanKind, writers: &[Option<Writer>]) -> Vec<(Option<Writer>, OfThread)> {
    let writer = |thread: u32| writers.get(thread as usize).copied().flatten();
    // Of several that nobody knows, what they did together.
    let mut by_writer: BTreeMap<Option<Writer>, OfThread> = BTreeMap::new();
    for (thread, of) in of.threads() {
        by_writer.entry(writer(*thread)).or_default().merge(of);
    }
    let mut threads: Vec<_> = by_writer.into_iter().collect();
    threads.sort_by_key(|(writer, thread)| (Reverse(thread.total), *writer));
    threads
}

fn who_row(row: Row, writer: Option<Writer>, who: Who<'_>) -> Row {
    let name = writer.and_then(|writer| who.name(writer.tid, Some(writer.pid)));
    row.plain("pid", writer.map(|writer| writer.pid))
        .plain("tid", writer.map(|writer| writer.tid))
        .plain("thread", name)
}

/// One span that is certain: losses put in doubt that no other is longer, not how long it is.
fn span_json(kind: &Kind, span: &Span, has_ended: bool, quality: Quality, who: Who<'_>) -> Value {
    who_row(Row::default(), span.begin.writer, who)
        .plain("key", span.begin.key.map(|key| kind.key_text(key)))
        .plain("begin_ns", span.begin.time.0)
        .plain("end_ns", has_ended.then_some(span.end.time.0))
        .number("duration_ns", span.nanos(), quality)
        .value()
}

fn thing_json(
    kind: &Kind,
    thing: &Thing<'_>,
    trust: Trust,
    error: Option<u64>,
    who: Who<'_>,
) -> Value {
    let Thing { pid, key, group } = thing;
    let mut row = Row::default()
        .plain("key", key.as_deref())
        .plain("pid", *pid)
        .plain("process", pid.map(|pid| who.process(pid)))
        .number("count", group.count + group.touched_count, trust.sum)
        .number("touched_by_losses", group.touched_count, trust.value);
    match group.distribution() {
        Some(d) => {
            let rough = if d.is_rough { Quality::LowerBound } else { Quality::Exact };
            let percentiles = [d.median, d.p90, d.p99, d.p999];
            let percentiles = percentiles.map(|nanos| (nanos, trust.value.and(rough)));
            row = distribution(row, &d, percentiles, trust, error);
        }
        None if group.count > 0 => {
            row = row
                .nanos("total_ns", group.total, trust.sum)
                .number("min_ns", group.min, trust.value)
                .number("max_ns", group.longest.map(|span| span.nanos()), trust.sum);
        }
        None => {}
    }
    if let Some(span) = group.longest {
        let of_clocks = ClockErrors::quality(error, span.nanos(), Quality::Exact);
        row = row.number("longest", span_json(kind, &span, true, of_clocks, who), trust.value);
    }
    row.value()
}

/// `error`: by how much any of the durations may be off, for two clocks measure it; no number of
/// them is off by more.
fn distribution(
    row: Row,
    d: &Distribution,
    percentiles: [(u64, Quality); 4],
    trust: Trust,
    error: Option<u64>,
) -> Row {
    let [median, p90, p99, p999] = percentiles;
    let of = |nanos: u64, quality: Quality| ClockErrors::quality(error, nanos, quality);
    row.number("min_ns", d.min, of(d.min, trust.value))
        .number("mean_ns", d.mean, of(d.mean as u64, trust.value))
        .number("stddev_ns", d.stddev, of(d.stddev as u64, trust.value))
        .number("median_ns", median.0, of(median.0, median.1))
        .number("p90_ns", p90.0, of(p90.0, p90.1))
        .number("p99_ns", p99.0, of(p99.0, p99.1))
        .number("p99_9_ns", p999.0, of(p999.0, p999.1))
        .number("max_ns", d.max, of(d.max, trust.sum))
        .number("total_ns", d.total, of(d.max, trust.sum))
}
