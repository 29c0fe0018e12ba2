// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow delta`: how many instructions are executed from one place in the code to another.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lateralis_store::flow::{
    Deltas, Interval, Marker, Pairing, Recorded, Stretch, deltas, stretches,
};
use serde_json::{Value, json};

use super::chart;
use super::code::{CodeArgs, Hardware};
use super::numbers::{histogram, mean, rank};
use crate::colour::Role;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::table::{Align, Table};
use crate::values;

/// The longest intervals that are listed.
const LONGEST: usize = 10;

/// Options of `lat flow delta`.
#[derive(Debug, Args)]
#[command(
    after_help = "A point is 0xADDRESS, FUNCTION (its entry), FUNCTION+0xOFFSET, return:FUNCTION or \
    insn:MNEMONIC. \
    Instructions are counted after FROM, up to and including TO. An interval that contains a gap is void.\n\n\
    Examples:\n  \
    lat flow delta perf.data --from main --to return:main\n  \
    lat flow delta perf.data --from parse --to parse     from call to call\n  \
    lat flow delta packets.pt --raw kernel.bin:0xffffffff81000000 --from insn:cli --to insn:sti\n  \
    lat flow delta perf.data --from irq_off --to irq_on --svg off.svg --flow 3\n\n\
    Exit code 1: there is no interval, or gaps hide some."
)]
pub struct DeltaArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Where an interval begins
    #[arg(long, value_name = "PLACE", value_parser = Marker::parse)]
    pub from: Marker,
    /// Where the interval ends
    #[arg(long, value_name = "PLACE", value_parser = Marker::parse)]
    pub to: Marker,
    /// Which beginning is paired with an end
    #[arg(long, value_enum, default_value_t = Pair::Last)]
    pub pair: Pair,
    /// Print the functions executed by the N longest intervals, in order
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub flow: usize,
    /// Write a histogram of the lengths as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Unit of the histogram: instructions, or time where the packets contain it
    #[arg(long, value_enum, default_value_t = By::Instructions)]
    pub by: By,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Print JSON with every interval
    #[arg(long)]
    pub json: bool,
}

/// What of intervals is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// How many were executed
    Instructions,
    /// How long they took
    Time,
}

/// As of [`Pairing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pair {
    /// The first since the last end
    First,
    /// The last one
    Last,
    /// The last one that no other end belongs to: pairs inside each other
    Innermost,
}

/// Profiles the instructions between two places.
pub fn run(args: &DeltaArgs) -> Result<ExitStatus, CliError> {
    let hardware = Hardware::read(&args.inputs.traces)?;
    let pairing = match args.pair {
        Pair::First => Pairing::First,
        Pair::Last => Pairing::Last,
        Pair::Innermost => Pairing::Innermost,
    };
    let ((found, flows), is_complete) = args.code.follow(&args.inputs, hardware, |recorded| {
        let found = deltas(recorded, (&args.from, &args.to), pairing);
        let flows = flows(recorded, &found, args.flow);
        Ok((found, flows))
    })?;
    if let Some(path) = &args.svg {
        let picture = picture(args, &found)?;
        std::fs::write(path, picture)
            .map_err(|error| CliError::at_path("cannot write the picture", path, &error))?;
    }
    match args.json {
        true => output::print_json(&to_json(&found, &flows))?,
        false => {
            let mut page = page(args, &found);
            flows.iter().for_each(|of| of.show(&mut page));
            output::print(&page)?;
        }
    }
    let is_fine = !found.intervals.is_empty() && found.void == 0 && is_complete;
    Ok(if is_fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// One of the longest intervals, with the functions that it executed.
struct Outlier {
    of: Interval,
    /// Name, line, instructions.
    stretches: Vec<(String, Option<String>, u64)>,
}

/// Lines of an outlier; `--json` has all.
const STRETCHES: usize = 60;

fn flows(recorded: &mut Recorded<'_>, found: &Deltas, count: usize) -> Vec<Outlier> {
    let wanted: Vec<Interval> = by_length(found).into_iter().take(count).copied().collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let all = stretches(recorded, &wanted);
    let places = recorded.places();
    let named = |of: &Stretch| {
        let name = places.name_of(of.function).unwrap_or_default().to_owned();
        (name, of.line.map(|line| places.line_text(line)), of.instructions)
    };
    let outlier = |(of, stretches): (Interval, Vec<Stretch>)| Outlier {
        of,
        stretches: stretches.iter().map(named).collect(),
    };
    wanted.into_iter().zip(all).map(outlier).collect()
}

impl Outlier {
    fn show(&self, page: &mut Page) {
        page.gap();
        let instructions = values::counted(self.of.instructions, "instruction");
        line!(page, "{instructions}, begun by instruction {}", values::count(self.of.begin));
        let head =
            [("instructions", Align::Right), ("function", Align::Left), ("source", Align::Left)];
        let mut table = Table::new(&head);
        for (name, line, count) in self.stretches.iter().take(STRETCHES) {
            let line = line.as_deref().unwrap_or_default();
            let line = line.rsplit('/').next().unwrap_or_default();
            table.row([values::count(*count), name.clone(), line.to_owned()]);
        }
        page.page(&table.render());
        if self.stretches.len() > STRETCHES {
            let more = (self.stretches.len() - STRETCHES) as u64;
            line!(page, "  … {} more: --json has all", values::count(more));
        }
    }

    fn json(&self) -> Value {
        let stretches = self.stretches.iter().map(|(name, line, count)| {
            json!({ "function": name, "source": line, "instructions": count })
        });
        json!({
            "instructions": self.of.instructions,
            "begin": self.of.begin,
            "flow": stretches.collect::<Vec<_>>(),
        })
    }
}

/// The longest first.
fn by_length(found: &Deltas) -> Vec<&Interval> {
    let mut all: Vec<_> = found.intervals.iter().collect();
    all.sort_by_key(|of| (std::cmp::Reverse(of.instructions), of.begin));
    all
}

/// How often each length came.
fn picture(args: &DeltaArgs, found: &Deltas) -> Result<String, CliError> {
    let title = format!("from {} to {}", args.from.text, args.to.text);
    if args.by == By::Instructions {
        return Ok(chart::histogram(&title, "instructions", &sorted(found), values::count));
    }
    let mut all: Vec<u64> = found.intervals.iter().filter_map(|of| of.nanos).collect();
    if all.is_empty() && !found.intervals.is_empty() {
        return Err(CliError::new(
            "no times",
            "packets do not say when anything was",
            "draw --by instructions",
        ));
    }
    all.sort_unstable();
    Ok(chart::histogram(&title, "time", &all, values::time))
}

/// Lengths in their order.
fn sorted(found: &Deltas) -> Vec<u64> {
    let mut all: Vec<u64> = found.intervals.iter().map(|of| of.instructions).collect();
    all.sort_unstable();
    all
}

fn page(args: &DeltaArgs, found: &Deltas) -> Page {
    let mut page = Page::new();
    let all = sorted(found);
    line!(page, "instructions from {} to {}", args.from.text, args.to.text);
    page.gap();
    if let (Some(least), Some(most)) = (all.first(), all.last()) {
        let mut table = Table::new(
            &["count", "mean", "min", "p50", "p90", "p99", "max"].map(|name| (name, Align::Right)),
        );
        let ranks = [500, 900, 990].map(|of| values::count(rank(&all, of)));
        let [p50, p90, p99] = ranks;
        let (count, mean) = (values::count(all.len() as u64), format!("{:.1}", mean(&all)));
        let (least, most) = (values::count(*least), values::count(*most));
        table.row([count, mean, least, p50, p90, p99, most]);
        page.page(&table.render());
        times(&mut page, found);
        page.gap();
        histogram(&mut page, &all);
        page.gap();
        longest(&mut page, found);
    } else {
        line!(
            page,
            "no interval: {} begins {}, {} ends {}",
            args.from.text,
            values::counted(found.hits.0, "time"),
            args.to.text,
            values::counted(found.hits.1, "time")
        );
    }
    let left = found.intervals.iter().filter(|of| of.left).count() as u64;
    for (number, what) in [
        (
            left,
            "left the traced code meanwhile, as into the kernel: what is executed there is not counted",
        ),
        (found.void, "cut off by a gap: void"),
        (found.open, "begun and not ended"),
        (found.orphans, "ended and not begun"),
        (found.not_kept, "more than are kept"),
    ] {
        if number > 0 {
            page.gap();
            line!(page, "{}: {what}", values::counted(number, "interval"));
        }
    }
    page
}

/// How long they took, where the packets say when.
fn times(page: &mut Page, found: &Deltas) {
    let mut all: Vec<u64> = found.intervals.iter().filter_map(|of| of.nanos).collect();
    all.sort_unstable();
    let (Some(least), Some(most)) = (all.first(), all.last()) else { return };
    let error =
        found.intervals.iter().map(|of| of.error_nanos).try_fold(0, |all, of| Some(of?.max(all)));
    let error =
        error.map_or("unknown".to_owned(), |error| format!("at most {}", values::time(error)));
    let of = |thousand| values::time(rank(&all, thousand));
    page.gap();
    line!(
        page,
        "time  mean {}, min {}, p50 {}, p90 {}, p99 {}, max {}; error {error}",
        values::mean_time(mean(&all)),
        values::time(*least),
        of(500),
        of(900),
        of(990),
        values::time(*most),
    );
}

fn longest(page: &mut Page, found: &Deltas) {
    let all = by_length(found);
    page.line_as(Role::Heading, format_args!("longest"));
    let head = [
        ("instructions", Align::Right),
        ("begun by instruction", Align::Right),
        ("from", Align::Left),
        ("to", Align::Left),
    ];
    let mut table = Table::new(&head);
    for of in all.iter().take(LONGEST) {
        let (begin, end) = (format!("{:#x}", of.begin_address), format!("{:#x}", of.end_address));
        table.row([values::count(of.instructions), values::count(of.begin), begin, end]);
    }
    page.page(&table.render());
}

fn to_json(found: &Deltas, flows: &[Outlier]) -> Value {
    let all = sorted(found);
    let intervals = found.intervals.iter().map(|of| {
        json!({
            "instructions": of.instructions,
            "begin": of.begin,
            "begin_address": of.begin_address,
            "end_address": of.end_address,
            "left_traced_code": of.left,
            "time_ns": of.nanos,
            "time_error_ns": of.error_nanos,
        })
    });
    json!({
        "count": all.len(),
        "mean": (!all.is_empty()).then(|| mean(&all)),
        "min": all.first(),
        "p50": (!all.is_empty()).then(|| rank(&all, 500)),
        "p90": (!all.is_empty()).then(|| rank(&all, 900)),
        "p99": (!all.is_empty()).then(|| rank(&all, 990)),
        "max": all.last(),
        "void": found.void,
        "not_ended": found.open,
        "not_begun": found.orphans,
        "not_kept": found.not_kept,
        "from_count": found.hits.0,
        "to_count": found.hits.1,
        "intervals": intervals.collect::<Vec<_>>(),
        "longest": flows.iter().map(Outlier::json).collect::<Vec<_>>(),
    })
}
