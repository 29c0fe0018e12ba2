// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow stacks`: where samples were taken, as tables, as JSON, and as lines that drawers of flame graphs
//! read.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use clap::{Args, ValueEnum};
use lateralis_analysis::filter::matches_pattern;
use lateralis_model::{Event, Quality, Source};
use lateralis_store::Chosen;
use lateralis_store::flow::{Executed, INSTRUCTIONS, executed};
use lateralis_store::places::{Function, Images};
use lateralis_store::stacks::{Gathered, Stacks, Unit, gather, off_cpu};
use serde_json::{Value, json};

use super::code::{CodeArgs, Hardware};
use crate::colour::Role;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::selection::{self, SelectArgs};
use crate::table::{Align, Table};
use crate::values;

/// Functions of the table before it is cut short; `--format json` has all.
const ROWS: usize = 40;
/// Lines of the tree.
const LINES: usize = 120;

/// Options of `lat flow stacks`.
#[derive(Debug, Args)]
#[command(
    after_help = "Samples come from lat record --sample or perf record, with or without -g; with Intel \
    PT, every \
    instruction counts. Function names come from the mapped files, their debug files in \
    /usr/lib/debug/.build-id, this kernel, and the /tmp/perf-PID.map and jit-PID.dump of just-in-time \
    compilers. Files with another build id are not used.\n\n\
    Examples:\n  \
    lat record --sample 999 -o here -- ./program; lat flow stacks here\n  \
    lat flow stacks perf.data\n  \
    lat flow stacks perf.data --app redis-server --at-least 5\n  \
    lat flow stacks perf.data --format svg > flame.svg\n  \
    lat record --off-cpu -o here -- ./program; lat flow stacks here --off-cpu\n  \
    lat flow stacks perf.data --root do_syscall_64 --format sunburst > calls.svg\n\n\
    Exit code 1: the trace is damaged."
)]
pub struct StacksArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Print only paths with at least this share of all samples
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub at_least: f64,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Output format; folded is one line per path: PROGRAM;FUNCTION;… WEIGHT
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Show off-CPU time by the call stack at which threads left the CPU; needs lat record --off-cpu, or
    /// perf record -e context-switches -c 1 --switch-events -g
    #[arg(long)]
    pub off_cpu: bool,
    /// Show only functions of this name and what they called, as roots of the tree; * and ? match
    #[arg(long, value_name = "FUNCTION")]
    pub root: Option<String>,
    /// Attribute inlined functions to the functions that contain them
    #[arg(long)]
    pub no_inline: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// All functions and paths
    Json,
    /// For flamegraph.pl, speedscope and others
    Folded,
    /// A picture, of the event with the most samples
    Svg,
    /// The same with who is called around who called
    Sunburst,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "a number from 0 to 100".to_owned())
}

/// Shows the stacks of a trace.
pub fn run(args: &StacksArgs) -> Result<ExitStatus, CliError> {
    let hardware = Hardware::read(&args.inputs.traces)?;
    let (mut gathered, mut is_fine) = match hardware.is_raw() {
        true => (Gathered::default(), true),
        false => of_samples(args)?,
    };
    if !hardware.is_empty() && !args.off_cpu {
        let ((executed, functions), is_complete) =
            args.code.follow(&args.inputs, hardware, |recorded| {
                let executed = executed(recorded, |_, _, _| ControlFlow::Continue(()));
                Ok((executed, recorded.functions().to_vec()))
            })?;
        is_fine &= executed.gaps.is_empty() && is_complete;
        add(&mut gathered, executed, functions);
    }
    if let Some(root) = &args.root {
        let functions = &gathered.functions;
        let is_it = |function: u32| {
            functions.get(function as usize).is_some_and(|of| matches_pattern(root, &of.name))
        };
        let cut = gathered.stacks.iter().map(|stacks| stacks.below(is_it));
        gathered.stacks = cut.filter(|stacks| stacks.weight > 0).collect();
    }
    match (args.json, args.format) {
        (true, _) | (_, Format::Json) => output::print_json(&to_json(&gathered))?,
        (_, Format::Folded) => output::print(&folded(&gathered))?,
        (_, Format::Svg | Format::Sunburst) => {
            let most = gathered.stacks.first().ok_or_else(|| {
                CliError::new(
                    "no picture",
                    "no samples in it",
                    "record them by lat record --sample 999 or perf record -g",
                )
            })?;
            let picture = match args.format {
                Format::Sunburst => super::sunburst::svg(most, &gathered.functions),
                _ => super::flame::svg(most, &gathered.functions),
            };
            output::print_bytes(picture.as_bytes())?;
        }
        (_, Format::Text) => output::print(&page(&gathered, args.at_least))?,
    }
    if matches!(args.format, Format::Folded | Format::Svg | Format::Sunburst) && !args.json {
        for (image, why, _) in &gathered.missing {
            tell!("warning: no names of functions: {image}: {why}");
        }
    }
    Ok(if is_fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn of_samples(args: &StacksArgs) -> Result<(Gathered, bool), CliError> {
    let mut recording = args.inputs.open()?;
    if args.select.needs_names() {
        recording.learn_names();
    }
    let selection = selection::select(&args.select, &recording, true)?;
    let contains = |event: &Event<'_>| selection.contains(event);
    let chosen = selection.chosen(&recording, &contains);
    selection::warn_of_unknown_fields(&args.select, &chosen.trace);
    let mut files = args.code.files();
    let gathered = match args.off_cpu {
        true => waits(args, &chosen, &mut files)?,
        false => gather(&chosen, &mut files, !args.no_inline),
    };
    selection.finish()?;
    let is_fine = gathered.damage.is_empty() && recording.source.faults().is_empty();
    Ok((gathered, is_fine))
}

/// Where threads left a processor, and for how long.
fn waits(
    args: &StacksArgs,
    chosen: &Chosen<'_>,
    files: &mut dyn Images,
) -> Result<Gathered, CliError> {
    let found = off_cpu(chosen, files, !args.no_inline);
    if !found.says_who_is_back {
        return Err(CliError::new(
            "cannot say how long threads were off the processor",
            "no event says when a thread is back",
            "record with lat record --off-cpu, or perf record -e context-switches -c 1 --switch-events -g",
        ));
    }
    if found.still > 0 {
        tell!(
            "warning: {} had not come back when the recording ended: at least so long",
            values::counted(found.still, "thread")
        );
    }
    if found.unknown > 0 {
        tell!(
            "warning: of {} no event says the end: left out",
            values::counted(found.unknown, "time")
        );
    }
    if found.is_by_perf_tracepoint || found.missing_switches > 0 {
        let known = match found.missing_switches {
            0 => String::new(),
            count => format!(" (known to be missing: {})", values::count(count)),
        };
        tell!(
            "warning: perf misses switches while it writes an event, without a record of a loss{known}: \
             times may be too long or too short; perf record -e context-switches -c 1 --switch-events \
             misses none"
        );
    }
    if found.is_partly {
        tell!(
            "warning: samples stand for several switches each: record each one (perf record -c 1)"
        );
    }
    Ok(found.gathered)
}

/// Puts what was executed before the samples: its functions have numbers of their own.
fn add(gathered: &mut Gathered, executed: Executed, functions: Vec<Function>) {
    for (cause, count) in &executed.gaps {
        tell!("warning: {}: {cause}", values::counted(*count, "gap"));
    }
    let mut stacks = executed.stacks;
    let known = gathered.functions.len() as u32;
    stacks.nodes.iter_mut().for_each(|node| node.function += known);
    gathered.functions.extend(functions);
    gathered.stacks.insert(0, stacks);
}

/// Functions in the order of what they weigh themselves, then with what they call.
fn ranked(stacks: &Stacks) -> Vec<(u32, u64, u64)> {
    let all = stacks.by_function().into_iter();
    let mut all: Vec<_> = all.map(|(function, (own, whole))| (function, own, whole)).collect();
    all.sort_by(|one, other| (other.1, other.2, one.0).cmp(&(one.1, one.2, other.0)));
    all
}

pub fn share(weight: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { weight as f64 * 100.0 / of as f64 }
}

/// The last part of the path of an image.
fn short(image: &str) -> &str {
    image.rsplit('/').next().unwrap_or(image)
}

/// What there is of an event.
pub fn title(stacks: &Stacks) -> String {
    if stacks.event == INSTRUCTIONS {
        let calls = values::counted(stacks.samples, "call");
        return format!("{}, {calls}", values::counted(stacks.weight, "instruction"));
    }
    if stacks.unit == Unit::Nanos {
        let time = values::time(stacks.weight);
        return format!("{}: {time} in {}", stacks.event, values::counted(stacks.samples, "time"));
    }
    format!("{}: {}", stacks.event, values::counted(stacks.samples, "sample"))
}

fn page(gathered: &Gathered, at_least: f64) -> Page {
    let mut page = Page::new();
    if gathered.stacks.is_empty() {
        line!(
            page,
            "no samples: record them by lat record --sample 999 or --off-cpu, or perf record -g"
        );
    }
    for stacks in &gathered.stacks {
        page.gap();
        line!(page, "{}", title(stacks));
        page.gap();
        functions(&mut page, stacks, &gathered.functions);
        page.gap();
        tree(&mut page, stacks, &gathered.functions, at_least);
    }
    if !gathered.missing.is_empty() {
        page.gap();
        line!(page, "no names of functions");
        for (image, why, count) in &gathered.missing {
            line!(page, "  {image}: {why} ({})", values::counted(*count, "place"));
        }
    }
    if gathered.not_unwound > 0 {
        page.gap();
        line!(
            page,
            "of {} only the function that was interrupted is known: they hold the memory of a stack \
             (--sample-stack dwarf, perf record --call-graph dwarf), which could not be unwound",
            values::counted(gathered.not_unwound, "sample"),
        );
    }
    page
}

fn functions(page: &mut Page, stacks: &Stacks, functions: &[Function]) {
    use Align::{Left, Right};
    let head = [("self", Right), ("with calls", Right), ("function", Left), ("in", Left)];
    let mut table = Table::new(&head);
    let ranked = ranked(stacks);
    for (function, own, whole) in ranked.iter().take(ROWS) {
        let Some(of) = functions.get(*function as usize) else { continue };
        let percent = |weight: u64| format!("{:.1} %", share(weight, stacks.weight));
        table.row([percent(*own), percent(*whole), of.name.clone(), short(&of.image).to_owned()]);
    }
    page.line_as(Role::Heading, format_args!("functions"));
    page.page(&table.render());
    if ranked.len() > ROWS {
        line!(page, "  … {} more: --json has all", values::count((ranked.len() - ROWS) as u64));
    }
}

/// Nodes below each node, those that weigh most first; the first list is of programs.
pub fn below(stacks: &Stacks, totals: &[u64]) -> (Vec<u32>, BTreeMap<u32, Vec<u32>>) {
    let mut programs = Vec::new();
    let mut below: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (index, node) in (0u32..).zip(&stacks.nodes) {
        match node.caller == index {
            true => programs.push(index),
            false => below.entry(node.caller).or_default().push(index),
        }
    }
    let weight = |index: &u32| std::cmp::Reverse(totals[*index as usize]);
    programs.sort_by_key(weight);
    below.values_mut().for_each(|nodes| nodes.sort_by_key(weight));
    (programs, below)
}

fn tree(page: &mut Page, stacks: &Stacks, functions: &[Function], at_least: f64) {
    let totals = stacks.totals();
    let (programs, below) = below(stacks, &totals);
    line!(page, "calls with at least {at_least} %");
    let mut open: Vec<(u32, usize)> = programs.into_iter().rev().map(|node| (node, 0)).collect();
    let mut lines = 0;
    while let Some((node, depth)) = open.pop() {
        let total = totals[node as usize];
        if share(total, stacks.weight) < at_least {
            continue;
        }
        if lines == LINES {
            line!(page, "  … more: choose a larger --at-least, or --json");
            return;
        }
        let of = stacks.nodes[node as usize].function as usize;
        let name = functions.get(of).map_or("", |function| function.name.as_str());
        line!(page, "{:>8.1} %  {:depth$}{name}", share(total, stacks.weight), "");
        lines += 1;
        let called = below.get(&node).into_iter().flatten().rev();
        open.extend(called.map(|node| (*node, depth + 1)));
    }
}

/// What stands between the functions of a line, or ends it, cannot be in a name.
fn folded_name(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}

fn folded(gathered: &Gathered) -> Page {
    let mut page = Page::new();
    let name = |function: u32| {
        let of = gathered.functions.get(function as usize);
        of.map_or_else(String::new, |of| folded_name(&of.name))
    };
    for stacks in &gathered.stacks {
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        let mut path = Vec::new();
        for (index, node) in (0u32..).zip(&stacks.nodes).filter(|(_, node)| node.samples > 0) {
            stacks.path(index, &mut path);
            let mut words = vec![name(stacks.program(index))];
            words.extend(path.iter().rev().map(|function| name(*function)));
            *lines.entry(words.join(";")).or_default() += node.weight;
        }
        for (line, weight) in lines {
            line!(page, "{line} {weight}");
        }
    }
    page
}

fn to_json(gathered: &Gathered) -> Value {
    let functions = gathered.functions.iter();
    let functions: Vec<Value> = functions
        .map(|of| json!({ "name": of.name, "image": (!of.image.is_empty()).then_some(&of.image) }))
        .collect();
    let events: Vec<Value> = gathered
        .stacks
        .iter()
        .map(|stacks| {
            let totals = stacks.totals();
            let of = |(function, own, whole): (u32, u64, u64)| {
                json!({ "function": function, "self_weight": own, "weight": whole })
            };
            let paths = (0u32..).zip(&stacks.nodes).map(|(index, node)| {
                json!({
                    "caller": (node.caller != index).then_some(node.caller),
                    "function": node.function,
                    "self_samples": node.samples,
                    "self_weight": node.weight,
                    "weight": totals[index as usize],
                })
            });
            json!({
                "event": stacks.event,
                "unit": match stacks.unit { Unit::Nanos => "ns", Unit::Periods => "periods" },
                "samples": stacks.samples,
                "weight": stacks.weight,
                "functions": ranked(stacks).into_iter().map(of).collect::<Vec<_>>(),
                "paths": paths.collect::<Vec<_>>(),
            })
        })
        .collect();
    let missing: Vec<Value> = gathered
        .missing
        .iter()
        .map(|(image, why, places)| json!({ "image": image, "why": why, "places": places }))
        .collect();
    json!({
        "functions": functions,
        "events": events,
        "missing_images": missing,
        "samples_not_unwound": gathered.not_unwound,
        "quality": gathered.quality.map(Quality::name),
        "damage_count": gathered.damage.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_a_line_or_begin_another_function() {
        assert_eq!(folded_name("a;b\nc"), "a:b c");
    }

    #[test]
    fn percents_are_numbers_up_to_a_hundred() {
        assert_eq!(percent("5"), Ok(5.0));
        assert_eq!(percent("0.5 %"), Ok(0.5));
        for wrong in ["-1", "101", "nan", "x", ""] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
