// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow syscalls`: instructions of a kernel for each system call; `lat flow impact`: how many more they
//! became, for instance where a tracer watches them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use lateralis_store::flow::{Recorded, SystemCalls, system_calls};
use serde_json::{Value, json};

use super::code::{CodeArgs, Hardware};
use super::numbers::{mean, rank};
use crate::colour::Role;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::table::{Align, Table};
use crate::values;

/// Options of `lat flow syscalls`.
#[derive(Debug, Args)]
#[command(
    after_help = "Instructions are counted after the system-call instruction, up to and including the \
    return. The \
    kernel must have been traced as well (intel_pt//, not intel_pt//u).\n\n\
    Exit code 1: there are no system calls, or gaps hide some."
)]
pub struct SyscallsArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Print JSON with every call
    #[arg(long)]
    pub json: bool,
}

/// Options of `lat flow impact`.
#[derive(Debug, Args)]
#[command(
    after_help = "Takes two traces of the same system calls, before and after a change such as enabling \
    a tracer, and \
    compares the medians of the calls that are in both.\n\n\
    Exit code 1: no call is in both traces, or gaps hide some calls."
)]
pub struct ImpactArgs {
    /// The trace before the change
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    #[command(flatten)]
    pub after: InputArgs,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Code of the trace before the change, if it differs: as --raw
    #[arg(long, value_name = "FILE:ADDRESS", value_parser = super::code::raw)]
    pub raw_before: Vec<(PathBuf, u64)>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The system calls of a trace, and whether none are hidden by gaps or missing packets.
fn of(code: &CodeArgs, inputs: &InputArgs) -> Result<(SystemCalls, bool), CliError> {
    let hardware = Hardware::read(&inputs.traces)?;
    let follow = |recorded: &mut Recorded<'_>| Ok(system_calls(recorded));
    let (mut found, is_complete) = code.follow(inputs, hardware, follow)?;
    found.calls.values_mut().for_each(|lengths| lengths.sort_unstable());
    let is_whole = is_complete && found.void == 0;
    Ok((found, is_whole))
}

/// Shows the system calls of a trace.
pub fn syscalls(args: &SyscallsArgs) -> Result<ExitStatus, CliError> {
    let (found, is_whole) = of(&args.code, &args.inputs)?;
    match args.json {
        true => output::print_json(&to_json(&found))?,
        false => output::print(&page(&found))?,
    }
    let is_fine = !found.calls.is_empty() && is_whole;
    Ok(if is_fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn page(found: &SystemCalls) -> Page {
    let mut page = Page::new();
    if found.calls.is_empty() {
        line!(page, "no system call: trace the kernel, too (perf record -e intel_pt//)");
    } else {
        page.line_as(Role::Heading, format_args!("instructions of the kernel"));
        let mut head = vec![("call", Align::Left)];
        head.extend(["calls", "mean", "min", "p50", "p90", "max"].map(|of| (of, Align::Right)));
        let mut table = Table::new(&head);
        for (name, lengths) in &found.calls {
            let of = |thousand| values::count(rank(lengths, thousand));
            let mut cells = vec![name.clone(), values::count(lengths.len() as u64)];
            cells.push(format!("{:.1}", mean(lengths)));
            cells.push(lengths.first().map_or_else(String::new, |least| values::count(*least)));
            cells.extend([500, 900, 1000].map(of));
            table.row(cells);
        }
        page.page(&table.render());
    }
    for (number, what) in [
        (found.void, "cut off by a gap"),
        (found.open, "not returned"),
        (found.not_kept, "not kept"),
    ] {
        if number > 0 {
            line!(page, "{}: {what}", values::counted(number, "call"));
        }
    }
    page
}

fn to_json(found: &SystemCalls) -> Value {
    let calls: BTreeMap<&str, Value> = found
        .calls
        .iter()
        .map(|(name, lengths)| {
            let of =
                json!({ "count": lengths.len(), "p50": rank(lengths, 500), "sorted": lengths });
            (name.as_str(), of)
        })
        .collect();
    json!({
        "instructions": calls,
        "void": found.void,
        "not_returned": found.open,
        "not_kept": found.not_kept,
    })
}

/// Compares the system calls of two traces.
pub fn impact(args: &ImpactArgs) -> Result<ExitStatus, CliError> {
    let inputs = InputArgs { traces: vec![args.before.clone()], ..args.after.clone() };
    let code = match args.raw_before.is_empty() {
        true => &args.code,
        false => &CodeArgs { raw: args.raw_before.clone(), ..args.code.clone() },
    };
    let (before, before_is_whole) = of(code, &inputs)?;
    let (after, after_is_whole) = of(&args.code, &args.after)?;
    let names: BTreeSet<&String> =
        before.calls.keys().filter(|name| after.calls.contains_key(*name)).collect();
    let rows: Vec<(&str, [usize; 2], [u64; 2])> = names
        .into_iter()
        .map(|name| {
            let both = [&before.calls[name], &after.calls[name]];
            (name.as_str(), both.map(Vec::len), both.map(|of| rank(of, 500)))
        })
        .collect();
    if args.json {
        let rows = rows.iter().map(|(name, counts, medians)| {
            json!({
                "call": name,
                "counts": counts,
                "p50": medians,
                "difference": i128::from(medians[1]) - i128::from(medians[0]),
            })
        });
        output::print_json(&json!({
            "calls": rows.collect::<Vec<_>>(),
            "void": [before.void, after.void],
        }))?;
    } else {
        output::print(&difference(&rows))?;
    }
    let is_fine = !rows.is_empty() && before_is_whole && after_is_whole;
    Ok(if is_fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn difference(rows: &[(&str, [usize; 2], [u64; 2])]) -> Page {
    let mut page = Page::new();
    if rows.is_empty() {
        line!(page, "no system call that both have");
        return page;
    }
    page.line_as(Role::Heading, format_args!("instructions of the kernel, medians"));
    let mut head = vec![("call", Align::Left)];
    head.extend(["calls", "before", "after", "more", ""].map(|of| (of, Align::Right)));
    let mut table = Table::new(&head);
    for (name, counts, [before, after]) in rows {
        let more = i128::from(*after) - i128::from(*before);
        let sign = if more < 0 { "−" } else { "+" };
        let more = format!("{sign}{}", values::count(more.unsigned_abs() as u64));
        let times = format!("{:.2} ×", *after as f64 / (*before).max(1) as f64);
        let counts = format!("{} / {}", counts[0], counts[1]);
        let (before, after) = (values::count(*before), values::count(*after));
        table.row([(*name).to_owned(), counts, before, after, more, times]);
    }
    page.page(&table.render());
    page
}
