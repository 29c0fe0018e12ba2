// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat run-script`: the activities that a script finds in a trace.

mod lines;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lateralis_analysis::filter::Context;
use lateralis_analysis::{Distribution, Durations};
use lateralis_model::{Damage, Quality, Source};
use lateralis_script::{Activities, Activity, End, Part, Script};
use lateralis_store::{Facts, Recording};
use serde_json::{Value, json};

use crate::colour::Role;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::Page;
use crate::script;
use crate::selection::{self, SelectArgs};
use crate::table::{Align, Table};
use crate::values;
use lines::{Format, Lines};

/// Options of `lat run-script`.
#[derive(Debug, Args)]
#[command(after_help = "A script declares activities and filters for their events:\n  \
    activity(\"Mutex\").begin(\"threads:MUTEX_LOCK\").end(\"threads:MUTEX_UNLOCK\").key(\"mutex\")\n  \
    filter(event => event.cpu === 2)\n\n\
    Examples:\n  \
    lat run-script demo requests.js\n  \
    lat run-script demo requests.js --json | jq '.statistics[]'\n  \
    lat run-script demo requests.js --csv --app warehouse > requests.csv\n\n\
    Exit code 1: the trace is damaged; 2: the script failed.")]
pub struct RunScriptArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// The script
    #[arg(value_name = "SCRIPT.js", required = true)]
    pub script: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Print JSON: the activities, their statistics, how the script ran
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the activities as CSV
    #[arg(long)]
    pub csv: bool,
    /// List at most this many activities; the counts include all
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = values::parse_count)]
    pub limit: Option<u64>,
}

/// What is known of one kind of activity in the end.
struct Statistics {
    name: String,
    durations: Option<Distribution>,
    unfinished: u64,
    orphans: u64,
    quality: Quality,
}

/// Runs a script over a trace.
pub fn run(args: RunScriptArgs) -> Result<ExitStatus, CliError> {
    let mut script = script::load(&args.script)?;
    let mut recording = args.inputs.open()?;
    if args.select.needs_names() || script.needs_names() {
        recording.learn_names();
    }
    selection::warn_of_unknown_fields(&args.select, recording.source.trace());
    let format = match (args.json, args.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::Text,
    };
    let names: Vec<String> = script.activity_names().map(str::to_owned).collect();
    let out = lines::out(format);
    let mut lines = Lines::new(out, format, names, &recording, args.limit);
    lines.begin()?;
    let (statistics, damage) = gather(&args, &mut script, &recording, &mut lines)?;
    match format {
        Format::Json => {
            let rest = to_json(&recording, &script, &statistics, &damage, lines.count());
            lines.end_json(&rest)?;
        }
        Format::Csv => lines.finish()?,
        Format::Text => lines.end_text(&page(&script, &statistics, &damage))?,
    }
    if format != Format::Text {
        // The page says it; a list alone would look complete.
        for total in lateralis_analysis::total_by_cause(recording.source.losses()) {
            let least = if total.is_lower_bound { "at least " } else { "" };
            tell!("lost: {least}{} ({})", total.count, total.cause);
        }
    }
    let fine = damage.is_empty() && recording.source.faults().is_empty();
    Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn gather(
    args: &RunScriptArgs,
    script: &mut Script,
    recording: &Recording,
    lines: &mut Lines<'_, impl Write>,
) -> Result<(Vec<Statistics>, Vec<Damage>), CliError> {
    let selection = selection::select(&args.select, recording, true)?;
    let source = &recording.source;
    let context = Context { names: &recording.names, streams: &recording.streams };
    let gaps = |damage: &[Damage]| recording.gaps(damage);
    // Damage inside of packets is found while reading: until then, what opening has found.
    let early = gaps(source.damage());
    let trace = recording.annotated();
    let mut facts = Facts::new(&trace, &recording.streams);
    let mut activities = Activities::new(script);
    activities.set_gaps(early);
    let kinds = script.activity_names().len();
    let mut durations: Vec<Durations> = vec![Durations::default(); kinds];
    let mut events = source.events_in(selection.interval());
    let mut reached: Option<(lateralis_units::Nanos, lateralis_units::Nanos)> = None;
    while let Some(event) = events.next_event() {
        let at = facts.of(&event, |_, _| {});
        if !selection.contains(&event) {
            continue;
        }
        if script.has_filters() && !script.keeps(&event, &context).map_err(script::error)? {
            continue;
        }
        let (first, last) = reached.unwrap_or((event.time, event.time));
        reached = Some((first.min(event.time), last.max(event.time)));
        let at = End { time: at.time, writer: at.writer, cpu: at.cpu, tag: 0 };
        let mut written = Ok(());
        let mut found = |activity: Activity| {
            durations[activity.kind].push(activity.duration_ns());
            if written.is_ok() {
                let quality = match activity.is_certain {
                    true => Quality::Exact,
                    false => Quality::Unknown,
                };
                written = lines.activity(&activity, quality);
            }
        };
        activities.event(script, &event, at, &context, &mut found).map_err(script::error)?;
        written?;
    }
    selection.finish()?;
    let damage = recording.all_damage(events.damage());
    let quality = match reached {
        Some((first, last)) => gaps(&damage).of_count(first, last),
        None if gaps(&damage).is_empty() => Quality::Exact,
        None => Quality::LowerBound,
    };
    let names = script.activity_names().map(str::to_owned);
    let statistics = names.zip(durations).zip(activities.left_over());
    let statistics = statistics.map(|((name, durations), (unfinished, orphans))| {
        let durations = durations.distribution();
        Statistics { name, durations, unfinished, orphans, quality }
    });
    Ok((statistics.collect(), damage))
}

fn part_json(part: &Part) -> Value {
    let (how, why) = match &part.how {
        lateralis_script::How::Compiled => ("compiled", None),
        lateralis_script::How::Interpreted(why) => ("interpreted", Some(why)),
    };
    json!({ "kind": part.what, "name": part.name, "runs": how, "because": why })
}

fn to_json(
    recording: &Recording,
    script: &Script,
    all: &[Statistics],
    damage: &[Damage],
    listed: u64,
) -> Value {
    let statistics = |of: &Statistics| {
        let mut value = json!({
            "name": of.name,
            "count": of.durations.map_or(0, |d| d.count),
            "unfinished": of.unfinished,
            "orphans": of.orphans,
            "quality": of.quality.name(),
        });
        if let (Some(d), Some(object)) = (of.durations, value.as_object_mut()) {
            for (name, nanos) in columns(&d) {
                object.insert(format!("{name}_ns"), json!(nanos));
            }
            object.insert("mean_ns".to_owned(), json!(d.mean));
            object.insert("total_ns".to_owned(), json!(d.total));
        }
        value
    };
    let (seen, kept) = script.kept();
    json!({
        "trace": recording.path.display().to_string(),
        "listed": listed,
        "statistics": all.iter().map(statistics).collect::<Vec<_>>(),
        "filters": kept.iter().map(|(name, kept)| json!({ "name": name, "seen": seen, "kept": kept }))
            .collect::<Vec<_>>(),
        "script": script.parts().iter().map(part_json).collect::<Vec<_>>(),
        "damage": damage.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn columns(d: &Distribution) -> [(&'static str, u64); 6] {
    [
        ("min", d.min),
        ("median", d.median),
        ("p90", d.p90),
        ("p99", d.p99),
        ("p99_9", d.p999),
        ("max", d.max),
    ]
}

fn page(script: &Script, all: &[Statistics], damage: &[Damage]) -> Page {
    use Align::{Left, Right};
    let mut page = Page::new();
    let mut table = Table::new(&[
        ("activity", Left),
        ("count", Right),
        ("min", Right),
        ("mean", Right),
        ("median", Right),
        ("p90", Right),
        ("p99", Right),
        ("p99.9", Right),
        ("max", Right),
        ("unfinished", Right),
        ("orphans", Right),
    ]);
    for of in all {
        let least = if of.quality == Quality::Exact { "" } else { "≥ " };
        let mut row = vec![of.name.clone()];
        row.push(format!("{least}{}", values::count(of.durations.map_or(0, |d| d.count))));
        match &of.durations {
            Some(d) => {
                row.extend(columns(d).map(|(_, nanos)| values::time(nanos)));
                row.insert(3, values::mean_time(d.mean));
            }
            None => row.resize(9, String::new()),
        }
        row.push(values::count(of.unfinished));
        row.push(values::count(of.orphans));
        table.row(row);
    }
    if !table.is_empty() {
        page.page(&table.render());
    }
    if all.iter().any(|of| of.quality != Quality::Exact) {
        line!(
            page,
            "  events are missing: counts are the least there can be, durations may be wrong"
        );
    }
    let (seen, kept) = script.kept();
    for (name, kept) in kept {
        let (kept, seen) = (values::count(kept), values::counted(seen, "event"));
        line!(page, "{name} kept {kept} of {seen}");
    }
    for part in script.parts() {
        line!(page, "{} {}: {}", part.what, part.name, part.how);
    }
    for damage in damage.iter().take(10) {
        page.line_as(Role::Problem, format_args!("damage: {damage}"));
    }
    if damage.len() > 10 {
        line!(page, "damage: {} more, see `lat info`", damage.len() - 10);
    }
    page
}
