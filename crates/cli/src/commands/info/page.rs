// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat info` as a page for people.

use lateralis_analysis::{LossTotal, Tally};
use lateralis_model::{EnvValue, Interval, LossCause, Source, Trace};
use lateralis_traces::{Relation, Tie};
use lateralis_units::Nanos;

use super::facts::Facts;
use crate::colour::Role;
use crate::contradictions;
use crate::date;
use crate::output::Page;
use crate::table::{Align, Table};
use crate::values;
use lateralis_store::Recording;

/// Rows of a list before it is cut short; `--json` has all.
const ROWS: usize = 40;

/// The whole page.
pub fn render(recording: &Recording, facts: &Facts) -> Page {
    let mut page = head(recording, facts);
    streams(&mut page, recording, facts);
    events(&mut page, facts);
    processes(&mut page, facts);
    losses(&mut page, recording, facts);
    contradicting(&mut page, recording, facts);
    damage(&mut page, recording, facts);
    page
}

fn line(page: &mut Page, name: &str, text: &str) {
    line!(page, "{name:<12}{text}");
}

fn head(recording: &Recording, facts: &Facts) -> Page {
    let trace = recording.source.trace();
    let mut page = Page::new();
    line(&mut page, "trace", &recording.path.display().to_string());
    let text = |name| trace.env(name).and_then(EnvValue::as_text);
    let writer = text("tracer_name").map_or(String::new(), |name| format!(", written by {name}"));
    let format = recording.source.format();
    line(&mut page, "format", &format!("{format}{writer}"));
    let parts = recording.source.parts();
    if parts.len() > 1 {
        let ties = super::facts::ties(recording);
        for (part, tie) in parts.iter().zip(ties).take(ROWS) {
            let (place, format) = (&part.place, part.source.format());
            line(&mut page, "", &format!("{place} ({format}{})", tied(tie)));
        }
        if parts.len() > ROWS {
            line(&mut page, "", &format!("… {} more", parts.len() - ROWS));
        }
    }
    if let Some(host) = text("hostname").or_else(|| text("host")) {
        line(&mut page, "machine", host);
    }
    if let (Some(first), Some(last)) = (facts.extent.begin(), facts.extent.end()) {
        let length = values::time(facts.extent.nanos().unsigned_abs());
        if has_time(recording) {
            line(
                &mut page,
                "time",
                &format!("{} to {}, {length}", date::text(first), date::text(last)),
            );
        }
    }
    clocks(&mut page, trace);
    let bytes: u64 = recording.streams.iter().map(|stream| stream.bytes).sum();
    let packets: u64 = recording.streams.iter().map(|stream| stream.packets).sum();
    // As the summary of the recording and `lat stats` count them.
    let mut parts = vec![values::count(facts.total.count.saturating_sub(facts.internal))];
    if facts.internal > 0 {
        parts[0] += &format!(" and {} of the tracer's own", values::count(facts.internal));
    }
    parts.push(values::counted(recording.streams.len() as u64, "stream"));
    if packets > 0 {
        parts.push(values::counted(packets, "packet"));
        parts.push(values::bytes(bytes));
    }
    line(&mut page, "events", &parts.join(", "));
    recorded(&mut page, recording);
    // Of several traces each has its own.
    let filters = trace.environment.iter().filter(|(name, _)| name == "address_filter");
    for filter in filters.filter_map(|(_, filter)| filter.as_text()).take(ROWS) {
        line(&mut page, "traced", &format!("{filter}: no other instructions are known"));
    }
    if facts.losses.is_empty() {
        line(&mut page, "lost", "none that was counted");
    } else {
        page.part(format_args!("{:<12}", "lost"));
        page.line_as(Role::Problem, format_args!("{}", lost(&facts.losses)));
    }
    line(
        &mut page,
        "damage",
        &match facts.damage.len() {
            0 => "none".to_owned(),
            count => values::counted(count as u64, "place"),
        },
    );
    if facts.contradictions.all.count() > 0 {
        let count = facts.contradictions.all.count();
        line(&mut page, "switches", &values::counted(count, "contradiction"));
    }
    page
}

/// How the clock of a trace relates to that of the first.
fn tied(tie: Option<Tie>) -> String {
    let by = match tie {
        None => return String::new(),
        Some(Tie { relation: Relation::Same, error_ns: Some(0) }) => "the clock of the first",
        Some(Tie { relation: Relation::Same, .. }) => "the clock of the first, read otherwise",
        Some(Tie { relation: Relation::Exchange, .. }) => "related to the first by clock exchanges",
        Some(Tie { relation: Relation::Messages, .. }) => "related to the first by messages",
        Some(Tie { relation: Relation::Epoch, .. }) => "related to the first by the date",
        Some(Tie { relation: Relation::Origin, .. }) => "related to the first by a common origin",
        Some(Tie { relation: Relation::Unrelated, .. }) => "its clock is not related to the first",
    };
    match tie.and_then(|tie| tie.error_ns) {
        Some(0) => format!(", {by}"),
        Some(error) => format!(", {by}: to within {}", values::time(error)),
        None => format!(", {by}: nobody knows how far they are apart"),
    }
}

/// The clocks; those that read alike, as traces joined into one have them, once.
fn clocks(page: &mut Page, trace: &Trace) {
    let mut shown: Vec<(String, usize)> = Vec::new();
    for clock in &trace.clocks {
        let precision = match clock.precision {
            0 => String::new(),
            ticks => {
                let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(clock.frequency());
                format!(", known to {}", values::time(u64::try_from(nanos).unwrap_or(u64::MAX)))
            }
        };
        let megahertz = clock.frequency() as f64 / 1e6;
        let text = format!("{}, {megahertz:.3} MHz{precision}", clock.name);
        match shown.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => shown.push((text, 1)),
        }
    }
    for (text, count) in shown.iter().take(ROWS) {
        let times = if *count > 1 { format!(" ({count} such clocks)") } else { String::new() };
        line(page, "clock", &format!("{text}{times}"));
    }
}

/// What the recorder itself reported.
fn recorded(page: &mut Page, recording: &Recording) {
    let Some(report) = &recording.report else { return };
    if report["complete"].as_bool() == Some(false) {
        let gaps = report["unrecorded"].as_array().into_iter().flatten();
        let has_ended = report["totals"]["not_written"].as_u64().is_some_and(|count| count > 0)
            || gaps.clone().any(|gap| gap["cause"] == "ended");
        let text = match has_ended {
            true => "not complete: it ended early",
            false => "not complete: it is still going on, or was interrupted",
        };
        line(page, "recording", text);
    }
    let words = |key: &serde_json::Value| -> Vec<String> {
        let words = key.as_array().into_iter().flatten();
        words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let command = words(&report["command"]["arguments"]).join(" ");
    if !command.is_empty() {
        line(page, "command", &command);
    }
    if let Some(text) = cores(&report["clock"]) {
        line(page, "cores", &text);
    }
    for problem in words(&report["problems"]).iter().take(ROWS) {
        line(page, "problem", problem);
    }
}

/// How far the counters of cores may be apart: the one that may be farthest.
fn cores(clock: &serde_json::Value) -> Option<String> {
    let hz = clock["frequency_hz"].as_u64().filter(|hz| *hz > 0)?;
    let nanos = |ticks: i128| ticks.saturating_mul(1_000_000_000) / i128::from(hz);
    let cores = clock["cores"].as_array()?;
    let known = cores.iter().filter_map(|core| {
        let offset = i128::from(core["offset_ticks"].as_i64()?);
        Some((offset, i128::from(core["error_ticks"].as_u64()?), core["cpu"].as_u64()?))
    });
    let (offset, error, cpu) = known.max_by_key(|(offset, error, _)| offset.abs() + error)?;
    Some(format!(
        "the counter of CPU {cpu} was {} ns {} the first one's, ± {} ns; none of the other {} may be \
         farther",
        nanos(offset.abs()),
        if offset < 0 { "behind" } else { "ahead of" },
        nanos(error) + 1,
        cores.len() - 1
    ))
}

fn has_time(recording: &Recording) -> bool {
    recording.source.trace().stream_classes.iter().any(|class| class.clock.is_some())
}

/// `at least 12 (full), 3 packets`.
fn lost(totals: &[LossTotal]) -> String {
    let part = |total: &LossTotal| {
        let least = if total.is_lower_bound { "at least " } else { "" };
        match total.cause {
            LossCause::Packets => {
                let packets = values::counted(total.count, "packet");
                format!("{least}{packets} with an unknown number of events")
            }
            cause if total.is_lower_bound && total.count == 0 => {
                let Interval { begin, end } = total.interval;
                let over = begin.zip(end).filter(|_| cause != LossCause::NoPlace);
                let over = over.map(|(begin, end)| end.since(begin).max(0) as u64);
                let over = over.map_or(String::new(), |over| format!(", {}", values::time(over)));
                format!("an unknown number ({}{over})", cause.described())
            }
            cause => format!("{least}{} ({cause})", values::counted(total.count, "event")),
        }
    };
    totals.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn section(page: &mut Page, title: &str, table: &Table, hidden: usize) {
    if table.is_empty() {
        return;
    }
    page.gap();
    page.line_as(Role::Heading, format_args!("{title}"));
    page.page(&table.render());
    if hidden > 0 {
        line!(page, "  … {} more, all with --json", values::count(hidden as u64));
    }
}

fn streams(page: &mut Page, recording: &Recording, facts: &Facts) {
    use Align::{Left, Right};
    let streams = &recording.streams;
    // Columns that say nothing are left out.
    let has_cpus = streams.iter().any(|stream| stream.cpu.is_some());
    let has_packets = streams.iter().any(|stream| stream.packets > 0);
    let columns = [
        (("name", Left), true),
        (("cpu", Right), has_cpus),
        (("packets", Right), has_packets),
        (("size", Right), has_packets),
        (("events", Right), true),
        (("lost", Right), true),
    ];
    let head: Vec<_> = columns.iter().filter(|(_, shown)| *shown).map(|(head, _)| *head).collect();
    let mut table = Table::new(&head);
    for (index, (stream, events)) in streams.iter().zip(&facts.streams).enumerate().take(ROWS) {
        let of_stream = facts.stream_losses.iter().filter(|total| {
            total.stream.is_some_and(|stream| stream.0 as usize == index)
                && total.cause != LossCause::Packets
        });
        let cells = [
            stream.name.clone(),
            stream.cpu.map_or(String::new(), |cpu| cpu.0.to_string()),
            values::count(stream.packets),
            values::bytes(stream.bytes),
            values::count(events.count),
            values::count(of_stream.fold(0, |sum, total| total.count.saturating_add(sum))),
        ];
        let shown = cells.into_iter().zip(&columns).filter(|(_, (_, shown))| *shown);
        table.row(shown.map(|(cell, _)| cell));
    }
    section(page, "streams", &table, streams.len().saturating_sub(ROWS));
}

fn events(page: &mut Page, facts: &Facts) {
    let mut table =
        Table::new(&[("name", Align::Left), ("count", Align::Right), ("rate", Align::Right)]);
    let over = facts.extent.nanos();
    let mut classes: Vec<(&String, &Tally)> = facts.classes.iter().collect();
    classes.sort_by_key(|(name, tally)| (std::cmp::Reverse(tally.count), name.as_str()));
    for (name, tally) in classes.iter().take(ROWS) {
        let name = if name.is_empty() { "(no name)" } else { name.as_str() };
        let rate = tally.rate(over).map_or(String::new(), values::rate);
        table.row([name.to_owned(), values::count(tally.count), rate]);
    }
    section(page, "events", &table, classes.len().saturating_sub(ROWS));
}

fn processes(page: &mut Page, facts: &Facts) {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("pid", Right),
        ("parent", Right),
        ("name", Left),
        ("threads", Right),
        ("events", Right),
    ]);
    for (pid, process) in facts.processes.iter().take(ROWS) {
        table.row([
            pid.to_string(),
            process.parent_pid.map_or(String::new(), |pid| pid.to_string()),
            process.name.clone(),
            values::count(process.threads.len() as u64),
            values::count(process.threads.values().map(|thread| thread.events).sum()),
        ]);
    }
    section(page, "processes", &table, facts.processes.len().saturating_sub(ROWS));
}

fn losses(page: &mut Page, recording: &Recording, facts: &Facts) {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("stream", Left),
        ("cause", Left),
        ("count", Right),
        ("from", Left),
        ("to", Left),
    ])
    .with_problems("count", |_| true);
    let time = |time: Option<Nanos>| time.map_or("?".to_owned(), date::text);
    for total in facts.stream_losses.iter().take(ROWS) {
        let streams = &recording.streams;
        let stream = total.stream.and_then(|index| streams.get(index.0 as usize));
        table.row([
            stream.map_or(String::new(), |stream| stream.name.clone()),
            total.cause.to_string(),
            match total.count {
                0 if total.is_lower_bound => "?".to_owned(),
                count => values::count(count),
            },
            time(total.interval.begin),
            time(total.interval.end),
        ]);
    }
    section(page, "losses", &table, facts.stream_losses.len().saturating_sub(ROWS));
}

fn contradicting(page: &mut Page, recording: &Recording, facts: &Facts) {
    let found = &facts.contradictions;
    let name = |tid: u32| match super::facts::thread_name(recording, found.threads(), tid) {
        Some(name) => format!("{name} ({tid})"),
        None => tid.to_string(),
    };
    let (table, count) = contradictions::table(&found.all, ROWS, name);
    section(page, contradictions::TITLE, &table, count.saturating_sub(ROWS));
}

fn damage(page: &mut Page, recording: &Recording, facts: &Facts) {
    use Align::Left;
    let columns = [("file", Left), ("bytes", Left), ("from", Left), ("to", Left), ("what", Left)];
    let mut table = Table::new(&columns);
    let time = |time: Option<Nanos>| time.map_or("?".to_owned(), date::text);
    for damage in facts.damage.iter().take(ROWS) {
        table.row([
            damage.file.clone(),
            format!("{}..{}", damage.begin_bytes, damage.end_bytes),
            time(damage.interval.begin),
            time(damage.interval.end),
            damage.reason.to_string(),
        ]);
    }
    section(page, "damage", &table, facts.damage.len().saturating_sub(ROWS));
    let sentences =
        [("faults", recording.source.faults()), ("remarks", recording.source.remarks())];
    for (title, sentences) in sentences {
        if !sentences.is_empty() {
            page.gap();
            line!(page, "{title}");
        }
        for sentence in sentences.iter().take(ROWS) {
            line!(page, "  {sentence}");
        }
        if sentences.len() > ROWS {
            line!(page, "  … {} more, all with --json", sentences.len() - ROWS);
        }
    }
    for name in &recording.meanings.unreadable {
        page.gap();
        line!(page, "the schema in {name} does not compile: its events have no meaning");
    }
}
