// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sections of `lat stats` as tables of the page: the rows and qualities of its JSON, column by column.

use std::collections::HashMap;

use lateralis_model::{Damage, Event, Interval, Quality};
use lateralis_store::explained::has_locks;
use lateralis_units::Nanos;
use lateralis_view::answer::Problem;
use lateralis_view::sections::{Cell, Column, Content, Query, Sections, Table, Tables, Unit};
use serde_json::Value;

use lateralis_reports::selection::EventFilter;
use lateralis_reports::stats::document::{Member, Members};
use lateralis_reports::stats::gather::Statistics;
use lateralis_reports::stats::page::Section;
use lateralis_reports::stats::sections::Asked;

use crate::moment::Moment;
use crate::selection::{SelectArgs, Selection};
use crate::values;

use Unit::{Bytes, Count, Flag, Id, Number, Rate, Share, Text, Time};

/// Rows of a table that are kept, in the order of `lat stats`: for most sections those with most time first.
const ROWS_MAX: usize = 1 << 14;
/// Cells of all tables that are kept.
const CELLS_MAX: usize = 1 << 21;

/// Sections that are computed. Durations by spans in flight are not: they need another way of pairing, and
/// are no table.
const SECTIONS: [Section; 20] = [
    Section::Threads,
    Section::ThreadStates,
    Section::Wakeups,
    Section::Cpus,
    Section::Applications,
    Section::Spans,
    Section::Keys,
    Section::Slowest,
    Section::Budgets,
    Section::Messages,
    Section::Calls,
    Section::States,
    Section::Counters,
    Section::Block,
    Section::Faults,
    Section::Network,
    Section::Idle,
    Section::Memory,
    Section::Events,
    Section::Losses,
];

/// A name of the JSON, a heading and a unit. A name that begins with `^` is one of the row that contains the
/// list.
type Part = (&'static str, &'static str, Unit);

/// Where the rows of a table are in the JSON, and what its columns are.
struct Shape {
    name: &'static str,
    title: &'static str,
    /// Members from the whole down to the list; those after the first list are in each of its rows.
    path: &'static [&'static str],
    parts: &'static [Part],
    /// Which rows of the outer list.
    only: Only,
}

/// Rows of the list of spans that a table is of.
#[derive(Clone, Copy, PartialEq)]
enum Only {
    All,
    /// Spans that wait for locks or hold them.
    Locks,
    /// Spans of processors: interrupts.
    Interrupts,
}

const TOTAL: Part = ("total_ns", "total", Unit::Nanos);
const MIN: Part = ("min_ns", "min", Unit::Nanos);
const MEAN: Part = ("mean_ns", "mean", Unit::Nanos);
const MEDIAN: Part = ("median_ns", "median", Unit::Nanos);
const STDDEV: Part = ("stddev_ns", "stddev", Unit::Nanos);
const P90: Part = ("p90_ns", "p90", Unit::Nanos);
const P99: Part = ("p99_ns", "p99", Unit::Nanos);
const P999: Part = ("p99_9_ns", "p99.9", Unit::Nanos);
const MAX: Part = ("max_ns", "max", Unit::Nanos);
const TOUCHED: Part = ("touched_by_losses", "touched by losses", Count);
const THREAD: Part = ("thread", "thread", Text);
const TID: Part = ("tid", "tid", Id);
const PID: Part = ("pid", "pid", Id);
const CPU: Part = ("cpu", "CPU", Id);
const COUNT: Part = ("count", "count", Count);
const KERNEL: Part = ("kernel_ns", "in kernel", Unit::Nanos);

const OF_KEYS: &[Part] = &[
    ("^name", "span", Text),
    ("key", "key", Text),
    ("process", "process", Text),
    COUNT,
    TOTAL,
    MIN,
    MEAN,
    MEDIAN,
    STDDEV,
    P90,
    P99,
    P999,
    MAX,
    TOUCHED,
];

/// The table of threads: times from one list, states from another.
const THREADS: &str = "threads";
const THREAD_STATES: &str = "thread_states";
const LOSSES: &str = "losses";

/// Pieces of damage that are listed.
const DAMAGES: usize = 10;

const SHAPES: &[Shape] = &[
    Shape {
        name: THREADS,
        title: "Threads",
        path: &["threads"],
        parts: &[
            THREAD,
            TID,
            PID,
            ("running_ns", "CPU time", Unit::Nanos),
            ("utilisation", "of the time", Share),
            ("schedules", "switches", Count),
            ("migrations", "migrations", Count),
            KERNEL,
            ("priority", "priority", Id),
        ],
        only: Only::All,
    },
    Shape {
        name: THREAD_STATES,
        title: "Thread states",
        path: &["thread_states"],
        parts: &[
            THREAD,
            TID,
            PID,
            ("runnable_ns", "runnable", Unit::Nanos),
            ("preempted_ns", "preempted", Unit::Nanos),
            ("sleeping_ns", "sleeping", Unit::Nanos),
            ("blocked_ns", "blocked", Unit::Nanos),
            ("stopped_ns", "stopped", Unit::Nanos),
            ("unknown_ns", "unknown", Unit::Nanos),
            ("waits", "waits for a CPU", Count),
            ("wait_ns", "run-queue wait", Unit::Nanos),
            ("median_wait_ns", "median wait", Unit::Nanos),
            ("p99_wait_ns", "p99 wait", Unit::Nanos),
            ("longest_wait_ns", "longest wait", Unit::Nanos),
            ("longest_wait_begin_ns", "longest wait at", Time),
            ("ran_instead", "ran instead", Text),
            ("has_ended", "has ended", Flag),
        ],
        only: Only::All,
    },
    Shape {
        name: "wakeups",
        title: "Wakeups",
        path: &["wakeups", "latencies"],
        parts: &[THREAD, TID, COUNT, MIN, MEAN, MEDIAN, P99, MAX, TOUCHED],
        only: Only::All,
    },
    Shape {
        name: "wakers",
        title: "Wakers",
        path: &["wakeups", "pairs"],
        parts: &[
            ("woken_by", "woken by", Text),
            ("waker", "waker", Text),
            ("waker_tid", "waker tid", Id),
            THREAD,
            TID,
            COUNT,
        ],
        only: Only::All,
    },
    Shape {
        name: "cpus",
        title: "CPUs",
        path: &["cpus"],
        parts: &[
            CPU,
            ("busy_ns", "busy", Unit::Nanos),
            ("idle_ns", "idle", Unit::Nanos),
            ("unknown_ns", "unknown", Unit::Nanos),
            ("utilisation", "of the time", Share),
            ("switches", "switches", Count),
            ("missing_switches", "missing switches", Count),
            KERNEL,
        ],
        only: Only::All,
    },
    Shape {
        name: "processes",
        title: "Processes",
        path: &["applications"],
        parts: &[
            ("application", "process", Text),
            PID,
            ("running_ns", "CPU time", Unit::Nanos),
            ("utilisation", "of the time", Share),
            ("schedules", "switches", Count),
            ("threads", "threads", Count),
            KERNEL,
        ],
        only: Only::All,
    },
    Shape {
        name: "spans",
        title: "Spans",
        path: &["spans"],
        parts: &[
            ("name", "span", Text),
            COUNT,
            TOTAL,
            ("self_ns", "self", Unit::Nanos),
            MIN,
            MEAN,
            MEDIAN,
            STDDEV,
            P90,
            P99,
            P999,
            MAX,
            ("unfinished", "unfinished", Count),
            ("orphans", "orphans", Count),
            TOUCHED,
            ("threads", "threads", Count),
        ],
        only: Only::All,
    },
    Shape {
        name: "spans_by_thread",
        title: "Spans by thread",
        path: &["spans", "by_thread"],
        parts: &[("^name", "span", Text), THREAD, TID, PID, COUNT, TOTAL, MAX],
        only: Only::All,
    },
    Shape {
        name: "keys",
        title: "Spans by key",
        path: &["spans", "by_key"],
        parts: OF_KEYS,
        only: Only::All,
    },
    Shape {
        name: "slowest",
        title: "Slowest spans",
        path: &["spans", "slowest"],
        parts: &[
            ("^name", "span", Text),
            ("key", "key", Text),
            THREAD,
            TID,
            PID,
            ("begin_ns", "begin", Time),
            ("end_ns", "end", Time),
            ("duration_ns", "duration", Unit::Nanos),
        ],
        only: Only::All,
    },
    Shape {
        name: "locks",
        title: "Locks",
        path: &["spans", "by_key"],
        parts: OF_KEYS,
        only: Only::Locks,
    },
    Shape {
        name: "messages",
        title: "Messages",
        path: &["messages"],
        parts: &[
            ("channel", "channel", Text),
            ("matched", "received", Count),
            MIN,
            MEAN,
            MEDIAN,
            STDDEV,
            P90,
            P99,
            P999,
            MAX,
            ("never_received", "never received", Count),
            ("never_sent", "never sent", Count),
            ("received_before_sent", "received before sent", Count),
            TOUCHED,
        ],
        only: Only::All,
    },
    Shape {
        name: "messages_by_cpus",
        title: "Messages by CPUs",
        path: &["messages", "by_cpus"],
        parts: &[
            ("^channel", "channel", Text),
            ("from_cpu", "from CPU", Id),
            ("to_cpu", "to CPU", Id),
            COUNT,
            MIN,
            MEAN,
            MEDIAN,
            STDDEV,
            P90,
            P99,
            P999,
            MAX,
        ],
        only: Only::All,
    },
    Shape {
        name: "calls",
        title: "System calls",
        path: &["calls"],
        parts: &[
            ("call", "call", Text),
            ("layer", "layer", Text),
            ("returned", "returned", Count),
            ("errors", "errors", Count),
            TOTAL,
            MAX,
            ("timed", "timed", Count),
            ("bytes", "bytes", Bytes),
            ("moves", "direction", Text),
            ("not_returned", "not returned", Count),
            ("missing_returns", "missing returns", Count),
            TOUCHED,
        ],
        only: Only::All,
    },
    Shape {
        name: "calls_by_thread",
        title: "System calls by thread",
        path: &["calls", "by_thread"],
        parts: &[
            ("^call", "call", Text),
            ("^layer", "layer", Text),
            THREAD,
            TID,
            PID,
            ("returned", "returned", Count),
            ("errors", "errors", Count),
            ("bytes", "bytes", Bytes),
        ],
        only: Only::All,
    },
    Shape {
        name: "interrupts",
        title: "Interrupts",
        path: &["spans", "by_key"],
        parts: OF_KEYS,
        only: Only::Interrupts,
    },
    Shape {
        name: "counters",
        title: "Counters",
        path: &["counters"],
        parts: &[
            ("counter", "counter", Text),
            ("key", "key", Text),
            ("of", "of", Text),
            COUNT,
            ("min", "min", Number),
            ("mean", "mean over time", Number),
            ("max", "max", Number),
            ("max_at_ns", "max at", Time),
            ("last", "last", Number),
        ],
        only: Only::All,
    },
    Shape {
        name: "states",
        title: "States",
        path: &["states", "states"],
        parts: &[
            ("^machine", "machine", Text),
            ("^key", "key", Text),
            ("^of", "of", Text),
            ("state", "state", Text),
            TOTAL,
            ("entries", "entered", Count),
            ("stays", "stays", Count),
            MIN,
            MEAN,
            STDDEV,
            MEDIAN,
            P90,
            P99,
            ("longest_ns", "longest", Unit::Nanos),
        ],
        only: Only::All,
    },
    Shape {
        name: "budgets",
        title: "Budgets",
        path: &["budgets"],
        parts: &[
            ("budget", "budget", Text),
            ("measured_ns", "measured", Unit::Nanos),
            ("kept", "kept", Flag),
        ],
        only: Only::All,
    },
    Shape {
        name: "block",
        title: "Block devices",
        path: &["block"],
        parts: &[
            ("device", "device", Text),
            ("operation", "operation", Text),
            ("requests", "requests", Count),
            ("bytes", "bytes", Bytes),
            ("errors", "errors", Count),
            ("queue_median_ns", "median in queue", Unit::Nanos),
            ("queue_p99_ns", "p99 in queue", Unit::Nanos),
            ("queue_max_ns", "max in queue", Unit::Nanos),
            ("service_median_ns", "median at device", Unit::Nanos),
            ("service_p99_ns", "p99 at device", Unit::Nanos),
            ("service_max_ns", "max at device", Unit::Nanos),
            ("unfinished", "unfinished", Count),
            TOUCHED,
        ],
        only: Only::All,
    },
    Shape {
        name: "page_faults",
        title: "Page faults",
        path: &["page_faults"],
        parts: &[
            THREAD,
            TID,
            PID,
            ("user", "in user code", Count),
            ("kernel", "in the kernel", Count),
            ("samples", "samples", Count),
        ],
        only: Only::All,
    },
    Shape {
        name: "network",
        title: "Network",
        path: &["network"],
        parts: &[
            ("device", "device", Text),
            ("received", "received", Count),
            ("received_bytes", "bytes received", Bytes),
            ("queued", "queued", Count),
            ("sent", "sent", Count),
            ("sent_bytes", "bytes sent", Bytes),
            ("refused", "refused", Count),
        ],
        only: Only::All,
    },
    Shape {
        name: "cpu_idle",
        title: "Idle states",
        path: &["cpu_idle"],
        parts: &[
            CPU,
            ("state", "state", Id),
            COUNT,
            ("idle_ns", "time", Unit::Nanos),
            MAX,
            TOUCHED,
        ],
        only: Only::All,
    },
    Shape {
        name: "memory",
        title: "Kernel memory",
        path: &["memory"],
        parts: &[
            ("allocator", "allocator", Text),
            THREAD,
            TID,
            PID,
            ("allocations", "allocations", Count),
            ("allocated", "allocated", Count),
            ("frees", "frees", Count),
            ("freed", "freed", Count),
            ("unit", "unit", Text),
        ],
        only: Only::All,
    },
    Shape {
        name: "events",
        title: "Events",
        path: &["events"],
        parts: &[
            ("name", "event", Text),
            COUNT,
            ("rate_per_s", "rate", Rate),
            ("first_ns", "first", Time),
            ("last_ns", "last", Time),
            ("longest_silence_ns", "longest silence", Unit::Nanos),
            ("longest_silence_begin_ns", "longest silence at", Time),
        ],
        only: Only::All,
    },
    Shape {
        name: "events_by_cpu",
        title: "Events by CPU",
        path: &["events_by_cpu"],
        parts: &[
            CPU,
            COUNT,
            ("rate_per_s", "rate", Rate),
            ("first_ns", "first", Time),
            ("last_ns", "last", Time),
            ("longest_silence_ns", "longest silence", Unit::Nanos),
            ("longest_silence_begin_ns", "longest silence at", Time),
        ],
        only: Only::All,
    },
    Shape {
        name: LOSSES,
        title: "Losses",
        path: &["losses"],
        parts: &[
            ("stream", "stream", Text),
            ("cause", "cause", Text),
            COUNT,
            ("from_ns", "from", Time),
            ("to_ns", "to", Time),
        ],
        only: Only::All,
    },
];

/// By the code of `lat stats`.
pub struct StatsSections;

impl Sections for StatsSections {
    /// Cost: that of `lat stats --from --until`: one pass over the events of the range, two if it finds
    /// damage that was not known.
    fn tables(&self, query: &Query<'_>) -> Result<Tables, Problem> {
        let Query { recording, interval, filter, is_cancelled } = *query;
        let filter = filter.map(PageFilter);
        let selection = Selection::within(&SelectArgs::default(), recording, true, interval)
            .map_err(|error| Problem::new("cannot select events", "section", error.to_string()))?
            .of_page(filter.as_ref().map(|filter| filter as &dyn EventFilter), is_cancelled);
        let statistics = Statistics::of(recording, &selection, Asked::of(&SECTIONS, true));
        if is_cancelled() {
            return Ok(Tables::default());
        }
        let kinds = &statistics.facts.kinds().spans;
        let locks = has_locks(statistics.facts.kinds());
        let of_locks = kinds.iter().zip(locks).filter(|(_, has)| *has);
        let locks: Vec<&str> = of_locks.map(|(kind, _)| kind.name.as_str()).collect();
        let mut making = Making::new(&locks);
        let mut members = statistics.members(recording);
        let left_out = members.remove("left_out");
        let is_wanted = |member: &str| SHAPES.iter().any(|shape| shape.path[0] == member);
        members.retain(|member, _| is_wanted(member));
        making.members(&mut Vec::new(), members);
        if let Some(Member::Value(left_out)) = left_out {
            making.left_out(&left_out);
        }
        making.damage(&statistics.damage);
        let trust = statistics.rates.trust(None, statistics.trust);
        Ok(Tables {
            tables: making.tables(),
            events: statistics.rates.total.count,
            over_ns: statistics.rates.span_nanos(),
            sums: trust.sum,
            values: trust.value,
        })
    }

    fn time(&self, extent: Interval, text: &str) -> Option<Nanos> {
        text.parse::<Moment>().ok().map(|moment| moment.nanos(extent))
    }
}

/// A filter of the page as one of a selection.
struct PageFilter<'a>(&'a dyn lateralis_view::sections::EventFilter);

impl EventFilter for PageFilter<'_> {
    fn begin(&self) {
        self.0.begin();
    }

    fn keeps(&self, event: &Event<'_>) -> bool {
        self.0.keeps(event)
    }
}

/// Tables that are being filled.
struct Making<'a> {
    tables: Vec<Table>,
    cells: usize,
    /// Names of spans of locks.
    locks: &'a [&'a str],
}

impl<'a> Making<'a> {
    fn new(locks: &'a [&'a str]) -> Self {
        let column = |&(name, title, unit): &Part| Column {
            name: name.trim_start_matches('^'),
            title,
            unit,
        };
        let table = |shape: &Shape| Table {
            name: shape.name,
            title: shape.title,
            columns: shape.parts.iter().map(column).collect(),
            rows: Vec::new(),
            more: 0,
            remarks: Vec::new(),
        };
        Self { tables: SHAPES.iter().map(table).collect(), cells: 0, locks }
    }

    /// Takes lists out of members, each row once for all tables that are made of it.
    fn members(&mut self, path: &mut Vec<String>, members: Members<'_>) {
        for (name, member) in members {
            path.push(name);
            match member {
                Member::Object(inner) => self.members(path, inner),
                list => {
                    for row in list.into_rows() {
                        self.row(path, &row);
                    }
                }
            }
            path.pop();
        }
    }

    fn row(&mut self, path: &[String], row: &Value) {
        for (at, shape) in SHAPES.iter().enumerate() {
            let Some(inner) = after(shape.path, path) else { continue };
            if !self.is_of(shape.only, row) {
                continue;
            }
            match inner {
                [] => self.add(at, row, &Value::Null),
                [list, ..] => {
                    for inner in row.get(list).and_then(Value::as_array).into_iter().flatten() {
                        self.add(at, inner, row);
                    }
                }
            }
        }
    }

    fn is_of(&self, only: Only, row: &Value) -> bool {
        let name = || row.get("name").and_then(Value::as_str).unwrap_or_default();
        match only {
            Only::All => true,
            Only::Locks => self.locks.contains(&name()),
            Only::Interrupts => {
                let fields = row.get("key_fields").and_then(Value::as_array);
                fields.is_some_and(|fields| fields.iter().any(|field| field == "$cpu"))
            }
        }
    }

    fn add(&mut self, at: usize, row: &Value, outer: &Value) {
        let parts = SHAPES[at].parts;
        let Some(table) = self.tables.get_mut(at) else { return };
        if table.rows.len() >= ROWS_MAX || self.cells + parts.len() > CELLS_MAX {
            table.more += 1;
            return;
        }
        self.cells += parts.len();
        table.rows.push(parts.iter().map(|(name, ..)| cell(name, row, outer)).collect());
    }

    fn left_out(&mut self, left_out: &Value) {
        for (shape, table) in SHAPES.iter().zip(&mut self.tables) {
            let all = left_out.get(shape.path[0]).and_then(Value::as_array);
            for of in all.into_iter().flatten() {
                let text = |name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default();
                let number = |name: &str| {
                    values::count(of.get(name).and_then(Value::as_u64).unwrap_or_default())
                };
                let (what, of) = (text("what"), text("of"));
                let (count, most) = (number("count"), number("most"));
                table
                    .remarks
                    .push(format!("{count} {what} are left out, of {of} beyond the first {most}"));
            }
        }
    }

    /// What could not be read, below the losses.
    fn damage(&mut self, damage: &[Damage]) {
        let Some(losses) = self.tables.iter_mut().find(|table| table.name == LOSSES) else {
            return;
        };
        let listed = damage.iter().take(DAMAGES).map(|of| format!("damage: {of}"));
        losses.remarks.extend(listed);
        if damage.len() > DAMAGES {
            let more = values::count((damage.len() - DAMAGES) as u64);
            losses.remarks.push(format!("{more} more are damaged, see `lat info`"));
        }
    }

    /// All tables; states of threads are columns of the threads.
    fn tables(mut self) -> Vec<Table> {
        let place = |tables: &[Table], name| tables.iter().position(|table| table.name == name);
        if let Some(at) = place(&self.tables, THREAD_STATES) {
            let states = self.tables.remove(at);
            if let Some(threads) = place(&self.tables, THREADS) {
                join(&mut self.tables[threads], states);
            }
        }
        self.tables
    }
}

/// What follows a path in the path of a shape; `None` if it leads elsewhere.
fn after(shape: &'static [&'static str], path: &[String]) -> Option<&'static [&'static str]> {
    let is_same = shape.len() >= path.len() && shape.iter().zip(path).all(|(a, b)| a == b);
    // Lists in an object have no row of their own around them.
    is_same.then(|| &shape[path.len()..])
}

/// A number of a row with its quality, as the row says it.
fn cell(name: &str, row: &Value, outer: &Value) -> Cell {
    let (name, row) = match name.strip_prefix('^') {
        Some(name) => (name, outer),
        None => (name, row),
    };
    let quality = match row.get("not_exact").and_then(|marks| marks.get(name)) {
        Some(word) => quality(word),
        // Losses and budgets have marks of their own.
        None => match name {
            "count" if row.get("is_lower_bound") == Some(&Value::Bool(true)) => Quality::LowerBound,
            "measured_ns" => row.get("measured_quality").map_or(Quality::Exact, quality),
            "kept" => row.get("quality").map_or(Quality::Exact, quality),
            _ => Quality::Exact,
        },
    };
    Cell { content: row.get(name).map_or(Content::None, Content::of), quality }
}

fn quality(word: &Value) -> Quality {
    match word.as_str() {
        Some("exact") => Quality::Exact,
        Some("lower_bound") => Quality::LowerBound,
        _ => Quality::Unknown,
    }
}

/// Adds the states of threads to their rows, and rows for threads that have only states.
fn join(threads: &mut Table, states: Table) {
    const NAMING: usize = 3;
    let (wide, more) = (threads.columns.len(), states.columns.len().saturating_sub(NAMING));
    threads.columns.extend_from_slice(&states.columns[NAMING.min(states.columns.len())..]);
    let number = |row: &[Cell]| match row.get(1).map(|cell| &cell.content) {
        Some(Content::Whole(tid)) => Some(*tid),
        _ => None,
    };
    let rows = threads.rows.iter().enumerate();
    let places: HashMap<i64, usize> =
        rows.filter_map(|(at, row)| Some((number(row)?, at))).collect();
    for row in &mut threads.rows {
        row.resize_with(wide + more, Cell::default);
    }
    for mut row in states.rows {
        let known = number(&row).and_then(|tid| places.get(&tid).copied());
        let cells = row.split_off(NAMING.min(row.len()));
        let at = known.unwrap_or_else(|| {
            row.resize_with(wide + more, Cell::default);
            threads.rows.push(row);
            threads.rows.len() - 1
        });
        threads.rows[at].truncate(wide);
        threads.rows[at].extend(cells);
    }
    threads.more = threads.more.max(states.more);
    threads.remarks.extend(states.remarks);
}
