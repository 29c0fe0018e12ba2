// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow delta`: how many instructions are executed from one place in the code to another.

use clap::{Args, ValueEnum};
use lateralis_store::flow::{Deltas, Marker, Pairing, deltas};
use serde_json::{Value, json};

use super::code::{CodeArgs, Hardware};
use super::numbers::{histogram, mean, rank};
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
    after_help = "A place is 0xADDRESS, FUNCTION (where it is entered), FUNCTION+0xOFFSET, return:FUNCTION, \
    or insn:MNEMONIC. Counted are the instructions that retired behind FROM, up to and with TO. A beginning \
    whose end a gap may have hidden is void.\n\n\
    Examples:\n  \
    lat flow delta perf.data --from main --to return:main\n  \
    lat flow delta perf.data --from parse --to parse     from call to call\n  \
    lat flow delta packets.pt --raw kernel.bin:0xffffffff81000000 --from insn:cli --to insn:sti\n\n\
    Exit code 1: there is no interval, or gaps hide some."
)]
pub struct DeltaArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Where an interval begins
    #[arg(long, value_name = "PLACE", value_parser = Marker::parse)]
    pub from: Marker,
    /// Where it ends
    #[arg(long, value_name = "PLACE", value_parser = Marker::parse)]
    pub to: Marker,
    /// Which beginning an end belongs to
    #[arg(long, value_enum, default_value_t = Pair::Last)]
    pub pair: Pair,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Print JSON, with every interval
    #[arg(long)]
    pub json: bool,
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
    let (found, is_complete) = args.code.follow(&args.inputs, hardware, |recorded| {
        Ok(deltas(recorded, (&args.from, &args.to), pairing))
    })?;
    match args.json {
        true => output::print_json(&to_json(&found))?,
        false => output::print(&page(args, &found))?,
    }
    let is_fine = !found.intervals.is_empty() && found.void == 0 && is_complete;
    Ok(if is_fine { ExitStatus::Fine } else { ExitStatus::Problems })
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
    let mut all: Vec<_> = found.intervals.iter().collect();
    all.sort_by_key(|of| (std::cmp::Reverse(of.instructions), of.begin));
    line!(page, "longest");
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

fn to_json(found: &Deltas) -> Value {
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
    })
}
