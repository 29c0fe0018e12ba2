// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat demo`: something to look at within a second, and how to look at it.
//!
//! What is recorded is declared in `examples/demo/demo.pleco`; the table that is
//! printed follows from the clauses there, as it would for anybody's schema.

#[rustfmt::skip]
mod events;
pub mod warehouse;

use crate::commands::record::free_name;
use crate::commands::recording_summary;
use crate::embedded::DEMO_CLIENT;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::selection::{self, SelectArgs};
use crate::status_line::{self, StatusLine};
use crate::suggestion::{own_command, quoted};
use crate::table::{Align, Table};
use crate::values;
use clap::Args;
use lateralis_recorder::RecordOptions;
use lateralis_recorder::linux::{Session, Summary};
use lateralis_reports::stats::gather::Statistics;
use lateralis_reports::stats::sections::Asked;
use lateralis_store::Recording;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use warehouse::Size;

/// Options of `lat demo`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat demo
  lat demo --clients 4 --threads 8 --orders 10000 -o crowd && lat stats crowd")]
pub struct DemoArgs {
    /// Directory for the recording [default: lateralis-demo, with a number if that exists]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub size: Size,
    /// Print the summary as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Records the demonstration and shows what it did.
pub fn run(args: DemoArgs) -> Result<ExitStatus, CliError> {
    let output = args.output.unwrap_or_else(|| free_name("demo"));
    let summary = record(&output, args.size, args.json)?;
    if args.json {
        recording_summary::print(&output, &summary.report, true, false, false)?;
    } else {
        let recording = Recording::open(&output)?;
        let selection = selection::select(&SelectArgs::default(), &recording, true)?;
        let statistics = Statistics::of(&recording, &selection, Asked::of(&[], false));
        output::print(&page(&output, args.size, &summary, &statistics))?;
    }
    let well = summary.exit_status == Some(0) && summary.report.problems.is_empty();
    Ok(if well { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn record(output: &Path, size: Size, quiet: bool) -> Result<Summary, CliError> {
    let client = DEMO_CLIENT.install()?;
    let own = std::env::current_exe().map_err(|cause| {
        CliError::new("cannot find the program file of lat", "", cause.to_string())
    })?;
    let mut command: Vec<OsString> =
        vec![own.into(), "--no-config".into(), "demo-warehouse".into(), client.into()];
    let sizes = [
        ("--clients", size.clients),
        ("--threads", size.threads),
        ("--orders", size.orders),
        ("--workers", size.workers),
    ];
    for (option, value) in sizes {
        command.extend([option.into(), value.to_string().into()]);
    }
    let mut session = Session::new(RecordOptions::new(output))?;
    session.launch(&command, &[])?;
    let mut line = StatusLine::new(quiet);
    Ok(session.run(&mut |now| line.show(&status_line::progress(now)))?)
}

/// The page: what ran, what it did, where to go from here.
fn page(folder: &Path, size: Size, summary: &Summary, statistics: &Statistics) -> Page {
    let report = &summary.report;
    let orders = u64::from(size.clients) * u64::from(size.threads) * u64::from(size.orders);
    let mut text = Page::new();
    line!(
        text,
        "A warehouse (Rust) with {} answers {} from {} (C) with {} each.",
        values::counted(size.workers.into(), "worker"),
        values::counted(orders, "order"),
        values::counted(size.clients.into(), "client"),
        values::counted(size.threads.into(), "thread"),
    );
    text.gap();
    text.page(&recording_summary::facts(folder, report));
    for (title, part) in [
        ("how long", spans(statistics)),
        ("what went from process to process", messages(statistics)),
        ("promises of the schema", budgets(statistics)),
    ] {
        text.gap();
        line!(text, "{title}");
        text.page(&part);
    }
    let ctf = folder.join("ctf");
    let (lat, folder) = (own_command(), quoted(&folder.to_string_lossy()));
    text.gap();
    line!(text, "next");
    let rows = [
        (format!("{lat} view {folder}"), "the timeline in the browser"),
        (format!("{lat} stats {folder}"), "everything counted and timed"),
        (format!("{lat} print {folder}"), "every event, one line each"),
        (
            format!("babeltrace2 {}", quoted(&ctf.to_string_lossy())),
            "the same trace in another reader",
        ),
    ];
    let width = rows.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    for (command, what) in rows {
        line!(text, "  {command:<width$}  {what}");
    }
    text
}

fn spans(statistics: &Statistics) -> Page {
    let mut table = Table::new(&[
        ("span", Align::Left),
        ("count", Align::Right),
        ("median", Align::Right),
        ("p99", Align::Right),
        ("longest", Align::Right),
    ]);
    for (name, durations) in statistics.spans.distributions(statistics.facts.kinds()) {
        table.row([
            name.to_owned(),
            values::count(durations.count),
            values::time(durations.median),
            values::time(durations.p99),
            values::time(durations.max),
        ]);
    }
    table.render()
}

/// Sent and received, and how long between.
fn messages(statistics: &Statistics) -> Page {
    let mut table = Table::new(&[
        ("message", Align::Left),
        ("sent", Align::Right),
        ("received", Align::Right),
        ("median", Align::Right),
        ("p99", Align::Right),
    ]);
    for channel in statistics.messages.counts(statistics.facts.kinds()) {
        let time = |nanos: Option<u64>| nanos.map(values::time).unwrap_or_default();
        table.row([
            channel.name.to_owned(),
            values::count(channel.sent),
            values::count(channel.received),
            time(channel.durations.map(|d| d.median)),
            time(channel.durations.map(|d| d.p99)),
        ]);
    }
    table.render()
}

fn budgets(statistics: &Statistics) -> Page {
    let mut text = Page::new();
    for budget in &statistics.budgets {
        let verdict = match budget.kept {
            Some(true) => "kept",
            Some(false) => "NOT KEPT",
            None => "not measured",
        };
        let measured = budget.measured_ns.map(|of| of.text()).unwrap_or_default();
        line!(text, "  {:<24} {measured:>8}  {verdict}", budget.text);
    }
    text
}
