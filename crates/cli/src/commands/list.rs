// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat list`: programs that can be traced now, their events, and which are enabled.

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::table::{Align, Table};
use crate::values;
use clap::Args;
use lateralis_recorder::linux::discovery::{self, AreaInfo, EventInfo, Target};
use serde_json::{Value, json};

/// Options of `lat list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat list                      programs that can be traced now
  lat list 1234                 the events of one of them
  lat list redis-server --json")]
pub struct ListArgs {
    /// Show the events of this process id or program name
    pub target: Option<String>,
    /// Also show areas left by programs that have ended
    #[arg(long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the programs; an empty list is not an error.
pub fn run(args: ListArgs) -> Result<ExitStatus, CliError> {
    let mut areas = discovery::list(None);
    let left: Vec<u64> = areas.iter().filter(|area| !area.alive).map(|area| area.bytes).collect();
    areas.retain(|area| area.alive || args.all);
    if let Some(target) = &args.target {
        let wanted = discovery::find(None, &Target::parse(target))?;
        areas.retain(|area| wanted.iter().any(|found| found.path == area.path));
    }
    if args.json {
        output::print_json(&json!({ "programs": areas.iter().map(to_json).collect::<Vec<_>>() }))?;
        return Ok(ExitStatus::Fine);
    }
    let mut text = Page::new();
    match &args.target {
        None => {
            programs(&areas, &mut text);
            if !left.is_empty() {
                let areas = values::counted(left.len() as u64, "area");
                let size = values::bytes(left.iter().sum());
                line!(
                    text,
                    "{areas} of ended programs, {size}: lat list --all shows them, lat recover reads \
                     them, lat clean removes them"
                );
            }
        }
        Some(_) => areas.iter().for_each(|area| events(area, &mut text)),
    }
    output::print(&text)?;
    Ok(ExitStatus::Fine)
}

fn programs(areas: &[AreaInfo], text: &mut Page) {
    if areas.is_empty() {
        line!(text, "no program that can be traced is running");
        text.gap();
        line!(
            text,
            "next: start one by lat record -- CMD, any program by lat record --with mutex,io -- CMD"
        );
        return;
    }
    let mut table = Table::new(&[
        ("pid", Align::Right),
        ("state", Align::Left),
        ("events", Align::Left),
        ("program", Align::Left),
    ]);
    for area in areas {
        table.row([area.pid.to_string(), state(area), enabled(area), words(area)]);
    }
    text.page(&table.render());
    let next = match areas.iter().find(|area| area.alive) {
        Some(area) => format!("lat list {} shows its events", area.pid),
        None => format!("lat recover {} -o DIR", areas[0].path.display()),
    };
    text.gap();
    line!(text, "next: {next}");
}

fn events(area: &AreaInfo, text: &mut Page) {
    line!(text, "{} {}: {}", area.pid, state(area), words(area));
    let width = area.events.iter().map(|event| event.name.chars().count()).max().unwrap_or(0);
    for event in &area.events {
        line!(text, "  {} {:<width$}  {}", mark(event), event.name, event.description);
    }
    for schema in &area.unreadable_schemas {
        line!(text, "  ! {schema}: its schema cannot be read");
    }
    line!(text, "  (+ recorded, ? watched by a trigger, - not recorded)");
}

fn mark(event: &EventInfo) -> char {
    match event {
        EventInfo { enabled: true, .. } => '+',
        EventInfo { watched: true, .. } => '?',
        _ => '-',
    }
}

fn state(area: &AreaInfo) -> String {
    match (area.alive, area.recorder_pid) {
        (false, _) => "ended".into(),
        (true, Some(recorder)) => format!("recorded by {recorder}"),
        (true, None) if area.overwrite && area.has_rings => "flight recorder".into(),
        (true, None) => "idle".into(),
    }
}

fn enabled(area: &AreaInfo) -> String {
    let enabled = area.events.iter().filter(|event| event.enabled).count();
    format!("{enabled} of {}", values::count(area.events.len() as u64))
}

/// Formats the command line.
fn words(area: &AreaInfo) -> String {
    if area.command.is_empty() { area.exe.clone() } else { area.command.join(" ") }
}

fn to_json(area: &AreaInfo) -> Value {
    json!({
        "pid": area.pid,
        "pids": area.pids,
        "area": area.path,
        "area_id": format!("{:x}", area.area_id),
        "program": area.exe,
        "command": area.command,
        "alive": area.alive,
        "recorder_pid": area.recorder_pid,
        "has_rings": area.has_rings,
        "overwrite": area.overwrite,
        "lost_no_ring": area.lost_no_ring,
        "unreadable_schemas": area.unreadable_schemas,
        "events": area.events.iter().map(|event| json!({
            "id": event.id,
            "name": event.name,
            "description": event.description,
            "enabled": event.enabled,
            "watched": event.watched,
        })).collect::<Vec<_>>(),
    })
}
