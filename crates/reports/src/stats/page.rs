// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat stats` as a page for people.

use lateralis_analysis::{Gaps, LossTotal};
use lateralis_model::{Names, Quality, Source, Writer};
use lateralis_store::Recording;
use lateralis_store::facts::Threads;

use super::counted;
use super::gather::Statistics;
use super::left_out;
use super::mark::{Trust, legend, mark};
use crate::Error;
use crate::date;
use crate::page::{self, Role};
use crate::table::{Align, Table};
use crate::values;

/// Damages that are shown.
const DAMAGES: usize = 10;

/// A part of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Section {
    /// Durations of spans by name
    Spans,
    /// The same by key: each lock, each request
    Keys,
    /// The longest spans, with their times
    Slowest,
    /// How many spans of which duration, and how long they took by how many were open
    Latency,
    /// Promises of the schemas
    Budgets,
    /// What each processor did
    Cpus,
    /// What each thread had
    Threads,
    /// Whether it ran, slept or waited for a processor, and its longest wait
    ThreadStates,
    /// The same by process
    Applications,
    /// What the system counted itself: cycles of threads, kernel entries
    Counted,
    /// From being woken to running, and who woke whom
    Wakeups,
    /// System calls: how often, which errors, how many bytes
    Calls,
    /// Block devices: requests, bytes, time in queues and at the device
    Block,
    /// Page faults by thread
    Faults,
    /// Network devices: packets and bytes
    Network,
    /// Idle states of processors
    Idle,
    /// Memory of the kernel by thread
    Memory,
    /// Messages and how long they took
    Messages,
    /// Time in each state
    States,
    /// Levels: least, greatest, mean
    Counters,
    /// How many events, how often, and when none
    Events,
    /// What was lost
    Losses,
}

impl Section {
    /// All sections by the names that options and callers use.
    pub const ALL: [(&'static str, Self); 22] = [
        ("spans", Self::Spans),
        ("keys", Self::Keys),
        ("slowest", Self::Slowest),
        ("latency", Self::Latency),
        ("budgets", Self::Budgets),
        ("cpus", Self::Cpus),
        ("threads", Self::Threads),
        ("thread-states", Self::ThreadStates),
        ("applications", Self::Applications),
        ("counted", Self::Counted),
        ("wakeups", Self::Wakeups),
        ("calls", Self::Calls),
        ("block", Self::Block),
        ("faults", Self::Faults),
        ("network", Self::Network),
        ("idle", Self::Idle),
        ("memory", Self::Memory),
        ("messages", Self::Messages),
        ("states", Self::States),
        ("counters", Self::Counters),
        ("events", Self::Events),
        ("losses", Self::Losses),
    ];

    /// The section with this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, section)| *section).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            Error::new("no such section", name, format!("known are {}", known.join(", ")))
        })
    }
}

/// A page in the making.
pub struct Page<'a> {
    /// The page so far.
    pub text: page::Page,
    /// Rows of a list before it is cut short.
    pub rows: usize,
    /// How far sums and other numbers of the whole can be trusted.
    pub trust: Trust,
    /// Where events are missing.
    pub gaps: &'a Gaps,
    /// Which sections; all if empty.
    pub wanted: &'a [Section],
}

impl Page<'_> {
    /// Whether a section is asked for.
    pub fn wants(&self, section: Section) -> bool {
        self.wanted.is_empty() || self.wanted.contains(&section)
    }

    /// Adds a table of `total` rows, as many as there is room for, if it is asked for.
    pub fn table(&mut self, section: Section, title: &str, table: &Table, total: usize) {
        if table.is_empty() || !self.wants(section) {
            return;
        }
        self.text.gap();
        self.text.line_as(Role::Heading, format_args!("{title}"));
        self.text.page(&table.render());
        let hidden = total.saturating_sub(self.rows);
        if hidden > 0 {
            let hidden = values::count(hidden as u64);
            line!(self.text, "  … {hidden} more, see --top and --json");
        }
    }

    /// Adds a line below a table.
    pub fn remark(&mut self, section: Section, line: &str) {
        if self.wants(section) {
            line!(self.text, "  {line}");
        }
    }
}

/// How threads are called.
#[derive(Clone, Copy)]
pub struct Who<'a> {
    /// What events have told.
    pub threads: &'a Threads,
    /// What the trace tells.
    pub names: &'a Names,
}

impl Who<'_> {
    /// Name of a thread, else that of its process.
    pub fn name(&self, tid: u32, pid: Option<u32>) -> Option<&str> {
        let told = self.threads.get(tid).and_then(|thread| thread.name.as_ref());
        let pid = pid.unwrap_or_else(|| self.threads.pid(tid));
        told.or_else(|| self.names.threads.get(&tid))
            .or_else(|| self.names.processes.get(&pid))
            .map(String::as_str)
    }

    /// Name and number of a thread.
    pub fn thread(&self, tid: u32, pid: Option<u32>) -> String {
        if tid == 0 {
            return "idle".to_owned();
        }
        match self.name(tid, pid) {
            Some(name) => format!("{name} ({tid})"),
            None => tid.to_string(),
        }
    }

    /// The same of who wrote an event.
    pub fn writer(&self, writer: Option<Writer>) -> String {
        writer.map_or("?".to_owned(), |writer| self.thread(writer.tid, Some(writer.pid)))
    }

    /// Name and number of a process.
    pub fn process(&self, pid: u32) -> String {
        let first = || self.threads.get(pid).and_then(|thread| thread.name.as_ref());
        match self.names.processes.get(&pid).or_else(first) {
            Some(name) => format!("{name} ({pid})"),
            None => pid.to_string(),
        }
    }
}

/// The whole page.
pub fn render(
    recording: &Recording,
    statistics: &Statistics,
    wanted: &[Section],
    rows: usize,
) -> page::Page {
    let Statistics { trust, gaps, .. } = statistics;
    let mut page = Page { text: page::Page::new(), rows, trust: *trust, gaps, wanted };
    let who = Who { threads: statistics.facts.threads(), names: &recording.names };
    // As `lat info` and the summary of the recording count them: the tracer's own beside.
    let mut total = statistics.rates.total;
    let internal = statistics.rates.own_count();
    total.count = total.count.saturating_sub(internal);
    let own = match internal {
        0 => String::new(),
        count => format!(" and {} of the tracer's own", values::count(count)),
    };
    let over = statistics.rates.span_nanos();
    // Of all events, those of classes with a filter among them.
    let of_all = statistics.rates.trust(None, *trust);
    let rate = total.rate(over).map(|rate| mark(values::rate(rate), of_all.value));
    let count = mark(values::counted(total.count, "event"), of_all.sum);
    let over_text = mark(values::time(over.max(0) as u64), trust.sum);
    page.text.number(&count);
    page.text.part(format_args!("{own} in "));
    page.text.number(&over_text);
    if let Some(rate) = rate {
        page.text.part(format_args!(", "));
        page.text.number(&rate);
    }
    line!(page.text);
    let faults = recording.source.faults();
    for sentence in faults.iter().take(DAMAGES) {
        page.text.line_as(Role::Problem, format_args!("incomplete: {sentence}"));
    }
    if faults.len() > DAMAGES {
        line!(page.text, "incomplete: {} more, see `lat info`", faults.len() - DAMAGES);
    }
    statistics.spans.page(&mut page, who, statistics.facts.kinds());
    budgets(&mut page, statistics);
    statistics.running.page(&mut page, who, over);
    counted::page(statistics.counted.as_ref(), &mut page);
    statistics.kernel.page(&statistics.kernel_events, &mut page, who);
    statistics.messages.page(&mut page, who, statistics.facts.kinds());
    statistics.levels.page(&mut page, who, statistics.facts.kinds());
    statistics.rates.page(&mut page);
    left_out::page(statistics, &mut page);
    losses(&mut page, recording, statistics);
    if !statistics.damage.is_empty() && page.wants(Section::Losses) {
        page.text.gap();
        let title = format_args!("damage: the numbers above are of what could be read");
        page.text.line_as(Role::Problem, title);
        for damage in statistics.damage.iter().take(DAMAGES) {
            line!(page.text, "  {damage}");
        }
        let more = statistics.damage.len().saturating_sub(DAMAGES);
        if more > 0 {
            line!(page.text, "  … {more} more, see `lat info`");
        }
    }
    if of_all.value != Quality::Exact || statistics.running.missing_count() > 0 {
        legend(&mut page.text);
    }
    page.text
}

fn budgets(page: &mut Page<'_>, statistics: &Statistics) {
    let mut table =
        Table::new(&[("budget", Align::Left), ("measured", Align::Right), ("", Align::Left)])
            .with_problems("", |cell| cell.contains("EXCEEDED"));
    for budget in &statistics.budgets {
        let kept = match budget.kept {
            Some(true) => "kept",
            Some(false) => "EXCEEDED",
            None => "not measured",
        };
        table.row([
            budget.text.clone(),
            budget.measured_ns.map_or("nothing".to_owned(), |measured| {
                mark(measured.text(), budget.measured_quality)
            }),
            mark(kept.to_owned(), budget.quality),
        ]);
    }
    page.table(Section::Budgets, "budgets", &table, 0);
}

fn losses(page: &mut Page<'_>, recording: &Recording, statistics: &Statistics) {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("stream", Left),
        ("cause", Left),
        ("count", Right),
        ("from", Left),
        ("to", Left),
    ])
    .with_problems("count", |_| true);
    let streams = &recording.streams;
    let name = |total: &LossTotal| {
        let stream = total.stream.and_then(|index| streams.get(index.0 as usize));
        stream.map_or(String::new(), |stream| stream.name.clone())
    };
    for total in statistics.losses.iter().take(page.rows) {
        let least = if total.is_lower_bound { "≥ " } else { "" };
        table.row([
            name(total),
            total.cause.to_string(),
            match total.count {
                0 if total.is_lower_bound => "?".to_owned(),
                count => format!("{least}{}", values::count(count)),
            },
            total.interval.begin.map_or("?".to_owned(), date::text),
            total.interval.end.map_or("?".to_owned(), date::text),
        ]);
    }
    page.table(Section::Losses, "losses", &table, statistics.losses.len());
}

#[cfg(all(test, feature = "clap"))]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn sections_have_the_names_of_the_command_line() {
        for (section, (name, named)) in Section::value_variants().iter().zip(Section::ALL) {
            let value = section.to_possible_value().expect("no section is hidden");
            assert_eq!((value.get_name(), *section), (name, named));
        }
        assert_eq!(Section::value_variants().len(), Section::ALL.len());
        assert!(Section::named("nothing").is_err_and(|error| error.to_string().contains("spans")));
    }
}
