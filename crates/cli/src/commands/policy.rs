// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat policy`: the effect of a policy file on this machine, and conversion of other files to policies.

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::table::{Align, Table};
use crate::values;
use clap::{Args, Subcommand};
use lateralis_recorder::linux::discovery::{self, AreaInfo};
use lateralis_recorder::linux::policies::facts_of;
use lateralis_recorder::policy::{
    self, Choice, Diagnostic, Facts, How, Policies, Policy, ThreadCondition,
};
use lateralis_ring::RingMode;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Options of `lat policy`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat policy check web.toml             what it selects among the running programs
  lat policy from-genode config.xml > trace.toml")]
pub struct PolicyArgs {
    /// What to do with policies.
    #[command(subcommand)]
    pub action: Action,
}

/// Subcommands of `lat policy`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Show what a policy file selects among the programs that can be traced now
    Check(CheckArgs),
    /// Translate the configuration of Genode's trace recorder; settings without an equivalent are listed
    FromGenode(FromGenodeArgs),
}

/// Options of `lat policy check`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  lat policy check web.toml && lat record --policy web.toml

Exit code 1: a pattern matches no event of the running programs that the policy selects.")]
pub struct CheckArgs {
    /// The policy file
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `lat policy from-genode`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  lat policy from-genode config.xml > trace.toml")]
pub struct FromGenodeArgs {
    /// The XML configuration of the trace recorder
    pub file: PathBuf,
}

/// Size limit of a file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Runs the subcommand.
pub fn run(args: PolicyArgs) -> Result<ExitStatus, CliError> {
    match args.action {
        Action::Check(args) => check(args),
        Action::FromGenode(args) => from_genode(args),
    }
}

fn text_of(path: &Path) -> Result<String, CliError> {
    let at = |cause: &std::io::Error| CliError::at_path("cannot read", path, cause);
    let file = std::fs::File::open(path).map_err(|cause| at(&cause))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(|cause| at(&cause))?;
    let place = || path.display().to_string();
    String::from_utf8(bytes)
        .map_err(|_| CliError::new("cannot read", place(), "it is no text in UTF-8"))
}

/// Reads a policy file, and prints its errors on standard error.
pub fn read(path: &Path) -> Result<Policies, CliError> {
    let name = path.display().to_string();
    policy::parse(&name, &text_of(path)?).map_err(|faults| {
        faults.iter().for_each(tell_fault);
        let count = values::counted(faults.len() as u64, "fault");
        CliError::new("cannot use the policies", name, format!("{count}; nothing was started"))
    })
}

/// Prints an error with its line of the file.
fn tell_fault(fault: &Diagnostic) {
    let mut page = Page::new();
    page.lines(&fault.to_string());
    page.gap();
    output::tell(&page);
}

fn from_genode(args: FromGenodeArgs) -> Result<ExitStatus, CliError> {
    let name = args.file.display().to_string();
    match policy::from_genode(&name, &text_of(&args.file)?) {
        Ok(said) => {
            for remark in &said.remarks {
                tell!("remark: {name}:{remark}");
            }
            let mut page = Page::new();
            page.lines(&said.toml);
            output::print(&page)?;
            Ok(ExitStatus::Fine)
        }
        Err(fault) => {
            tell_fault(&fault);
            Err(CliError::new("cannot translate", name, "see above"))
        }
    }
}

/// Effect of the policies on one program.
struct Outcome<'a> {
    area: &'a AreaInfo,
    facts: Facts,
    /// The first policy that selects the program.
    policy: Option<&'a Policy>,
    /// All policies that select it: several if threads have policies of their own.
    about: Vec<&'a Policy>,
    is_recorded: bool,
    /// Number of events that would be recorded.
    events: usize,
}

fn outcome<'a>(policies: &'a Policies, area: &'a AreaInfo) -> Outcome<'a> {
    let facts = facts_of(area);
    let about: Vec<&Policy> = policies.about(&facts).map(|(_, policy)| policy).collect();
    let wanted = policies.wanted(&facts);
    let enabled = |choice: &Choice| {
        let names = area.events.iter().filter_map(|event| event.name.split_once(':'));
        names.filter(|(subsystem, event)| choice.enable.matches(subsystem, event)).count()
    };
    let events = wanted.as_ref().map_or(0, |wanted| enabled(&wanted.choice));
    let (policy, is_recorded) = (about.first().copied(), wanted.is_some());
    Outcome { area, facts, policy, about, is_recorded, events }
}

fn check(args: CheckArgs) -> Result<ExitStatus, CliError> {
    let policies = read(&args.file)?;
    let mut areas = discovery::list(None);
    areas.retain(|area| area.alive);
    let outcomes: Vec<Outcome<'_>> = areas.iter().map(|area| outcome(&policies, area)).collect();
    let idle = |outcome: &&Outcome<'_>| outcome.events == 0 && outcome.is_recorded;
    let nothing: Vec<String> = outcomes.iter().filter(idle).map(no_events).collect();
    if args.json {
        output::print_json(&json!({
            "policies": policies.list.iter().map(policy_json).collect::<Vec<_>>(),
            "programs": outcomes.iter().map(outcome_json).collect::<Vec<_>>(),
            "problems": nothing,
        }))?;
    } else {
        let mut text = Page::new();
        policies_text(&policies, &mut text);
        programs_text(&outcomes, &mut text);
        nothing.iter().for_each(|line| {
            line!(text, "problem: {line}");
        });
        text.gap();
        line!(text, "next: lat record --policy {}", args.file.display());
        output::print(&text)?;
    }
    Ok(if nothing.is_empty() { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// Formats a warning that a policy matches no event, with the available events.
fn no_events(outcome: &Outcome<'_>) -> String {
    let (area, policy) = (outcome.area, outcome.policy);
    let choice = policy.and_then(|policy| policy.choice.as_ref());
    let patterns = choice.map(|choice| choice.enable.to_string()).unwrap_or_default();
    let names = area.events.iter().map(|event| event.name.as_str());
    let likeness = |name: &str| strsim::jaro_winkler(&patterns, name);
    let mut near: Vec<&str> = names.collect();
    near.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    format!(
        "{} of {} enables no event of {} {}; it has {}",
        patterns,
        policy.map_or("", |policy| &policy.name),
        area.pid,
        outcome.facts.program,
        if near.is_empty() { "none".into() } else { near[..near.len().min(4)].join(", ") },
    )
}

fn policies_text(policies: &Policies, text: &mut Page) {
    let mut table = Table::new(&[
        ("policy", Align::Left),
        ("threads", Align::Left),
        ("events", Align::Left),
        ("memory", Align::Left),
        ("output", Align::Left),
    ]);
    for policy in &policies.list {
        let events = match &policy.choice {
            Some(choice) => choice.enable.to_string(),
            None => "not recorded".into(),
        };
        let memory = policy.choice.as_ref().map(memory).unwrap_or_default();
        let output = policy.choice.as_ref().map(place).unwrap_or_default();
        table.row([policy.name.to_string(), threads(policy), events, memory, output]);
    }
    text.page(&table.render());
    text.gap();
}

/// Formats the threads that a policy selects; empty if all.
fn threads(policy: &Policy) -> String {
    let one = |condition: &ThreadCondition| {
        let name = condition.value.to_string();
        match condition.how {
            How::Exact | How::Pattern => name,
            How::Prefix => format!("{name}*"),
            How::Suffix => format!("*{name}"),
        }
    };
    policy.threads.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// Formats the destination of a policy's own recording.
fn place(choice: &Choice) -> String {
    let output = choice.output.as_ref().map(|path| path.display().to_string());
    let live = choice.live.as_ref().map(|address| format!("live {}", address));
    output.into_iter().chain(live).collect::<Vec<_>>().join(", ")
}

fn memory(choice: &Choice) -> String {
    let mut parts = Vec::new();
    parts.extend(choice.buffer_bytes.map(|bytes| format!("rings {}", values::bytes(bytes))));
    parts.extend(choice.packet_bytes.map(|bytes| format!("packets {}", values::bytes(bytes))));
    parts.extend(choice.mode.map(|mode| mode_name(mode).to_owned()));
    parts.join(", ")
}

fn mode_name(mode: RingMode) -> &'static str {
    match mode {
        RingMode::Discard => "discard",
        RingMode::Overwrite => "overwrite",
    }
}

fn programs_text(outcomes: &[Outcome<'_>], text: &mut Page) {
    if outcomes.is_empty() {
        line!(text, "no program that can be traced is running now; those that start are seen");
        return;
    }
    let mut table = Table::new(&[
        ("pid", Align::Right),
        ("policy", Align::Left),
        ("events", Align::Left),
        ("label", Align::Left),
    ]);
    for outcome in outcomes {
        let all = values::count(outcome.area.events.len() as u64);
        let (policy, events) = match outcome.policy {
            None => ("none: not recorded".into(), String::new()),
            Some(policy) if !outcome.is_recorded => {
                (format!("{}: not recorded", policy.name), String::new())
            }
            Some(_) => {
                let names: Vec<String> =
                    outcome.about.iter().map(|policy| policy.name.clone()).collect();
                (names.join(", "), format!("{} of {all}", outcome.events))
            }
        };
        table.row([outcome.area.pid.to_string(), policy, events, outcome.facts.label.to_string()]);
    }
    text.page(&table.render());
}

fn policy_json(policy: &Policy) -> Value {
    json!({
        "name": policy.name,
        "threads": policy.threads.iter().map(thread_json).collect::<Vec<_>>(),
        "record": policy.choice.is_some(),
        "enable": policy.choice.as_ref().map(|choice| choice.enable.to_string()),
        "buffer_bytes": policy.choice.as_ref().and_then(|choice| choice.buffer_bytes),
        "packet_bytes": policy.choice.as_ref().and_then(|choice| choice.packet_bytes),
        "mode": policy.choice.as_ref().and_then(|choice| choice.mode.map(mode_name)),
        "output": policy.choice.as_ref().and_then(|choice| choice.output.clone()),
        "live": policy.choice.as_ref().and_then(|choice| choice.live.clone()),
    })
}

fn thread_json(condition: &ThreadCondition) -> Value {
    let how = match condition.how {
        How::Exact => "exact",
        How::Prefix => "prefix",
        How::Suffix => "suffix",
        How::Pattern => "pattern",
    };
    json!({ "how": how, "name": condition.value })
}

fn outcome_json(outcome: &Outcome<'_>) -> Value {
    let facts = &outcome.facts;
    json!({
        "pid": outcome.area.pid,
        "program": facts.program,
        "command": facts.command,
        "label": facts.label,
        "cgroup": facts.cgroup,
        "user": facts.user,
        "policy": outcome.policy.map(|policy| &policy.name),
        "policies": outcome.about.iter().map(|policy| &policy.name).collect::<Vec<_>>(),
        "recorded": outcome.is_recorded,
        "events_enabled": outcome.events,
        "events": outcome.area.events.len(),
    })
}
