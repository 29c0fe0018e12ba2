// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat config`: which settings hold, and where each comes from.

use crate::args::Cli;
use crate::config::{self, Setting};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::table::{Align, Table};
use clap::{Arg, Args, Command, CommandFactory as _};
use serde_json::{Value, json};
use std::env;

/// Options of `lat config`.
#[derive(Debug, Args)]
#[command(
    after_help = "The file is $XDG_CONFIG_HOME/lateralis/config.toml, or ~/.config/lateralis/config.toml. \
Its keys are the long names of options, in a table named like the command:

    color = \"always\"

    [record]
    buffer = \"16M\"
    kernel = \"sched,syscalls\"

    [flow.stacks]
    at-least = 2

Options take precedence over the environment, the environment over the file, and the file over built-in \
defaults. A file that other users can write to is refused.

Examples:
  lat config            settings of the file and the environment
  lat config --all      all options with their defaults
  lat --no-config record -- ./program"
)]
pub struct ConfigArgs {
    /// Also list options that have their built-in default
    #[arg(long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Where a value comes from.
enum Origin<'a> {
    Environment(String),
    File(&'a Setting),
    BuiltIn,
}

/// An option and what holds for it.
struct Held<'a> {
    command: Vec<String>,
    option: String,
    values: Vec<String>,
    origin: Origin<'a>,
}

/// Lists the settings.
pub fn run(args: ConfigArgs) -> Result<ExitStatus, CliError> {
    let mut table = Cli::command();
    table.build();
    let mut all = Vec::new();
    of_command(&table, &mut Vec::new(), &mut all);
    if !args.all {
        all.retain(|held| !matches!(held.origin, Origin::BuiltIn));
    }
    let unknown = config::held().map_or(&[][..], |held| &held.unknown);
    match args.json {
        true => output::print_json(&document(&all, unknown))?,
        false => output::print(&page(&all))?,
    }
    Ok(if unknown.is_empty() { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn of_command<'a>(command: &Command, names: &mut Vec<String>, all: &mut Vec<Held<'a>>) {
    for argument in config::options(command) {
        if argument.is_global_set() != names.is_empty() {
            continue;
        }
        let option = argument.get_long().unwrap_or_default().to_owned();
        let (values, origin) = held(argument, names, &option);
        all.push(Held { command: names.clone(), option, values, origin });
    }
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            names.push(below.get_name().to_owned());
            of_command(below, names, all);
            names.pop();
        }
    }
}

fn held<'a>(argument: &Arg, names: &[String], option: &str) -> (Vec<String>, Origin<'a>) {
    let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned());
    let in_environment = variable.and_then(|name| Some((env::var_os(&name)?, name)));
    if let Some((value, name)) = in_environment {
        let shown = match argument.is_hide_env_values_set() {
            true => "(not shown)".to_owned(),
            false => value.to_string_lossy().into_owned(),
        };
        return (vec![shown], Origin::Environment(name));
    }
    // The last one holds, as on the command line; the file cannot have one twice.
    let in_file = config::held().into_iter().flat_map(|held| &held.settings);
    let mut in_file = in_file.filter(|of| of.command == names && of.option == option);
    if let Some(setting) = in_file.next() {
        let values = match argument.is_hide_env_values_set() {
            true => vec!["(not shown)".to_owned()],
            false if setting.values.is_empty() => vec!["false".to_owned()],
            false => setting.values.clone(),
        };
        return (values, Origin::File(setting));
    }
    let defaults = argument.get_default_values().iter();
    (defaults.map(|value| value.to_string_lossy().into_owned()).collect(), Origin::BuiltIn)
}

fn page(all: &[Held<'_>]) -> Page {
    let mut page = Page::new();
    match (config::held(), config::path()) {
        (Some(held), _) => line!(page, "file  {}", held.path.display()),
        (None, Some(path)) if !path.exists() => {
            line!(page, "file  {} (there is none)", path.display())
        }
        (None, Some(path)) => line!(page, "file  {} (not read)", path.display()),
        (None, None) => line!(page, "file  none: neither XDG_CONFIG_HOME nor HOME is a path"),
    }
    let mut table = Table::new(&[
        ("command", Align::Left),
        ("option", Align::Left),
        ("value", Align::Left),
        ("from", Align::Left),
    ]);
    for held in all {
        let command = match held.command.is_empty() {
            true => "(all)".to_owned(),
            false => held.command.join(" "),
        };
        let from = match &held.origin {
            Origin::Environment(name) => name.clone(),
            Origin::File(setting) => format!("line {}", setting.line),
            Origin::BuiltIn => "built in".to_owned(),
        };
        table.row([command, format!("--{}", held.option), held.values.join(","), from]);
    }
    if !table.is_empty() {
        page.gap();
        page.page(&table.render());
    }
    page
}

fn document(all: &[Held<'_>], unknown: &[String]) -> Value {
    let one = |held: &Held<'_>| {
        let mut row = json!({
            "command": held.command.join(" "),
            "option": held.option,
            "values": held.values,
        });
        let (origin, more) = match &held.origin {
            Origin::Environment(name) => ("environment", Some(("variable", json!(name)))),
            Origin::File(setting) => ("file", Some(("line", json!(setting.line)))),
            Origin::BuiltIn => ("built_in", None),
        };
        row["origin"] = json!(origin);
        if let Some((name, value)) = more {
            row[name] = value;
        }
        row
    };
    json!({
        "file": config::held().map(|held| held.path.display().to_string()),
        "settings": all.iter().map(one).collect::<Vec<_>>(),
        "warnings": unknown,
    })
}
