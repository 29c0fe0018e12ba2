// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of commands. Each command's own options stand with the command.

use crate::colour::{self, When};
use crate::commands::{
    clean, completions, config, control, convert, demo, diff, doctor, flow, info, keep, list, live,
    man, path, pleco, policy, print, record, run_script, sql, stats, table, top, tracepoints, view,
    xml,
};
use crate::config as settings;
use crate::error::CliError;
use crate::inputs::TRACES;
use crate::output::{Page, tell};
use crate::{newest, standard_input};
use clap::{
    Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches as _, Parser, Subcommand,
    ValueEnum as _,
};
use lateralis_model::terminal;
use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;

/// Record what programs do, nearly for free, and look at it.
#[derive(Debug, Parser)]
#[command(
    name = "lat",
    version,
    about,
    long_about = "Lateralis records what programs do, nearly for free, and loses nothing silently.\n\n\
        Exit codes: 0 fine; 1 ran and found problems; 2 could not run. `lat record` returns the \
        exit status of the program it recorded.",
    propagate_version = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do; without a command, `lat` says what it could do here.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Colour text for people
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        env = "LATERALIS_COLOR",
        display_order = 1000
    )]
    pub color: When,
    /// Do not read the file of settings: `lat config` shows it
    #[arg(long, global = true, display_order = 1001)]
    pub no_config: bool,
}

/// One variant per command, in the order in which help shows them.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record a program, or one that runs already
    Record(Box<record::RecordArgs>),
    /// Keep small recordings around the moments at which a condition was true
    Keep(Box<keep::KeepArgs>),
    /// Record for others who follow while it happens: a live stream, or dumps as of bfscope
    Live(Box<live::LiveArgs>),
    /// Show what a program does now: counts, rates and durations of the last seconds, without a recording
    Top(Box<top::TopArgs>),
    /// Show programs that can be traced now, and their events
    List(list::ListArgs),
    /// Remove what ended programs and recorders left in memory
    Clean(clean::CleanArgs),
    /// Find out what can be recorded here, and what to type for the rest
    Doctor(doctor::DoctorArgs),
    /// Show which settings hold, and where each comes from: the file of settings or the environment
    Config(config::ConfigArgs),
    /// Record more events of a program that is being recorded
    Enable(control::SwitchArgs),
    /// Record fewer events of a program that is being recorded
    Disable(control::SwitchArgs),
    /// Go on after `lat stop`, or let a program run as a flight recorder
    Start(control::StartArgs),
    /// Record nothing until `lat start`
    Stop(control::TellArgs),
    /// Write what has been recorded until now
    Flush(control::TellArgs),
    /// Write what the rings of a running program hold now
    Snapshot(control::SnapshotArgs),
    /// Make a recording of what a crash left
    Recover(control::RecoverArgs),
    /// Show what a policy file would do, or translate one of Genode
    Policy(policy::PolicyArgs),
    /// Show what is in a trace: streams, events, processes, clocks, losses, damage
    Info(info::InfoArgs),
    /// Look at a trace in the browser: time line, list, statistics
    View(Box<view::ViewArgs>),
    /// Print events, one line each
    Print(print::PrintArgs),
    /// Count and time: rates, spans, budgets, losses
    Stats(stats::StatsArgs),
    /// Cycles between two points of a program, and what looking costs itself
    Tracepoints(Box<tracepoints::TracepointsArgs>),
    /// Show what processors executed: stacks of samples by the names of their functions
    Flow(flow::FlowArgs),
    /// Run analyses written in XML for Trace Compass: states and latencies
    Xml(Box<xml::XmlArgs>),
    /// Tell what changed between two recordings, or several of each
    Diff(diff::DiffArgs),
    /// Tell why a span took as long as it did
    Path(path::PathArgs),
    /// Find activities by a script: who held which lock, how long each request took
    RunScript(Box<run_script::RunScriptArgs>),
    /// Ask traces in SQL; starts lat-sql
    Sql(sql::SqlArgs),
    /// Write a trace in another format
    Convert(convert::ConvertArgs),
    /// Show the tables of a trace, or write one of them as Parquet, CSV, JSON lines or Arrow
    Table(table::TableArgs),
    /// Record a small program of several processes, and show what it did
    Demo(demo::DemoArgs),
    /// Compile, format or compare schemas
    Pleco(pleco::PlecoArgs),
    /// Print the manual page of `lat` or of one of its commands
    Man(man::ManArgs),
    /// Print shell completions
    Completions(completions::CompletionsArgs),
    /// The server that `lat demo` records
    #[command(hide = true)]
    DemoWarehouse(demo::warehouse::WarehouseArgs),
    /// Print the command reference as Markdown
    #[command(hide = true)]
    Reference,
}

/// The parsed command line. Help and usage errors are printed here and end the
/// process, with 0 and 2.
pub fn parse() -> Result<Cli, CliError> {
    let mut words = with_separator(env::args_os().collect());
    let mut command = Cli::command();
    let given = color_of(&words);
    if let Some(when) = given {
        colour::choose(when);
    }
    if !own_words(&words).any(|word| word == "--no-config") {
        settings::apply_file(&mut command)?;
    }
    let when = given.or_else(color_of_file).unwrap_or_default();
    colour::choose(when);
    if words.get(1).is_some_and(|word| word == "version") && words.len() == 2 {
        words[1] = "--version".into();
    }
    command = command.color(colour::of_help(when));
    let parsed = command.try_get_matches_from_mut(&words).and_then(|matches| {
        let missing = missing_traces(&command, &matches);
        Ok((Cli::from_arg_matches(&matches)?, missing))
    });
    if let Ok((_, Some(place))) = parsed {
        let newest = newest::recording()?;
        tell!("reading {}: the newest recording in this folder", newest.display());
        match place {
            Missing::First(at) => {
                // Options of all commands may come before the command.
                let before = command_place(&words).map_or(0, |place| place - 1);
                words.insert(at + before, newest.into());
            }
            Missing::Last => {
                words.extend((!words.iter().any(|word| word == "--")).then(|| "--".into()));
                words.push(newest.into());
            }
        }
        let parsed = command.try_get_matches_from_mut(&words);
        let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
        return parsed.map_err(|error| end(&words, error));
    }
    parsed.map(|(cli, _)| cli).map_err(|error| end(&words, error))
}

/// Words in front of those of a program.
fn own_words(words: &[OsString]) -> impl Iterator<Item = Cow<'_, str>> {
    words.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--")
}

/// `--color` or its variable, before anything else is understood: errors about the words have colours, too.
fn color_of(words: &[OsString]) -> Option<When> {
    let mut own = own_words(words);
    let mut given = None;
    while let Some(word) = own.next() {
        if word == "--color" {
            given = own.next();
        } else if let Some(value) = word.strip_prefix("--color=") {
            given = Some(value.to_owned().into());
        }
    }
    let variable = || env::var("LATERALIS_COLOR").ok().map(Into::into);
    // What is no choice is an error of usage soon.
    given.or_else(variable).and_then(|text| When::from_str(&text, false).ok())
}

fn color_of_file() -> Option<When> {
    let all = &settings::held()?.settings;
    let color = all.iter().find(|of| of.command.is_empty() && of.option == "color")?;
    When::from_str(color.values.first()?, false).ok()
}

/// Where the trace is to be named that is not.
enum Missing {
    /// In front of other arguments, as the word of this index if the command is the first word.
    First(usize),
    /// After all others.
    Last,
}

/// Where the command wants a trace, if it reads traces and none is named.
fn missing_traces(command: &clap::Command, matches: &ArgMatches) -> Option<Missing> {
    let (mut command, mut matches, mut commands) = (command, matches, 1);
    while let Some((name, below)) = matches.subcommand() {
        (command, matches, commands) = (command.find_subcommand(name)?, below, commands + 1);
    }
    let traces = command.get_positionals().find(|argument| argument.get_id() == TRACES)?;
    if matches.contains_id(TRACES) {
        return None;
    }
    let is_last =
        command.get_positionals().all(|argument| argument.get_index() <= traces.get_index());
    Some(if is_last { Missing::Last } else { Missing::First(commands) })
}

/// Prints help, or what is wrong with the words, and ends the process.
fn end(words: &[OsString], error: clap::Error) -> ! {
    let mut code = error.exit_code();
    // What was typed may have come from elsewhere, by a script or a shell's pattern: it is shown, but
    // not as it is. The library leaves parts of such words out, so it gets words without them.
    let is_hostile = |word: &OsString| word.to_string_lossy().contains(terminal::is_hostile);
    if words.iter().any(is_hostile) {
        let shown = words.iter().map(|word| terminal::shown(&word.to_string_lossy()).into_owned());
        let error = Cli::try_parse_from(shown).err().unwrap_or(error);
        let mut page = Page::new();
        page.lines(&error.render().to_string());
        tell(&page);
    } else {
        match error.print() {
            Ok(()) => {}
            // `lat --help | head` has what it wants.
            Err(cause) if cause.kind() == ErrorKind::BrokenPipe => {}
            Err(_) => code = code.max(2),
        }
    }
    standard_input::remove_copy();
    std::process::exit(code)
}

/// Commands that start a program: all words from its name on are its own.
const LAUNCHERS: [&str; 4] = ["record", "keep", "live", "top"];

/// Puts `--` in front of the program's name where it was left out.
fn with_separator(mut words: Vec<OsString>) -> Vec<OsString> {
    let at = command_place(&words);
    let launcher = at.and_then(|at| Some((at, words[at].to_str()?)));
    if let Some((at, launcher)) = launcher.filter(|(_, word)| LAUNCHERS.contains(word))
        && let Some(place) = program_place(launcher, at + 1, &words)
    {
        words.insert(place, "--".into());
    }
    words
}

/// Index of the word that names the command: the first after the options of all commands.
fn command_place(words: &[OsString]) -> Option<usize> {
    let first = words.get(1)?.as_encoded_bytes();
    if !first.starts_with(b"-") {
        return Some(1);
    }
    let cli = Cli::command();
    let mut at = 1;
    loop {
        let word = words.get(at)?.to_str()?;
        let Some(option) = word.strip_prefix('-') else { return Some(at) };
        let long = option.strip_prefix('-')?;
        let name = long.split('=').next()?;
        let option = cli.get_arguments().find(|of| of.get_long() == Some(name))?;
        at += match value_of(option) {
            Value::Follows if name.len() == long.len() => 2,
            _ => 1,
        };
    }
}

/// Where the program's name is among the words from `begin`; `None` if there is a `--` already, or what is
/// not understood, about which the parser will say more.
fn program_place(launcher: &str, begin: usize, words: &[OsString]) -> Option<usize> {
    // Not built: to build the help of all commands takes a millisecond.
    let cli = Cli::command();
    let command = cli.find_subcommand(launcher)?;
    let mut takes_address = launcher == "live";
    // What stands in front of the `--` is meant to be an address, whatever it looks like.
    if takes_address && words.iter().any(|word| word == "--") {
        return None;
    }
    let options = || cli.get_arguments().chain(command.get_arguments());
    let mut at = begin;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        let value = match text.strip_prefix("--") {
            Some("") => return None,
            Some(long) if long.contains('=') => Value::Here,
            Some(long) => value_of(options().find(|arg| arg.get_long() == Some(long))?),
            None if text.len() > 1 && text.starts_with('-') => {
                value_of_shorts(&text[1..], command)?
            }
            None if takes_address && is_address(&text) => {
                takes_address = false;
                Value::Here
            }
            None => return Some(at),
        };
        let next_is_option =
            words.get(at + 1).is_some_and(|next| next.as_encoded_bytes().starts_with(b"-"));
        at += match value {
            Value::MayFollow if next_is_option => 1,
            Value::Here => 1,
            Value::MayFollow | Value::Follows => 2,
        };
    }
    None
}

/// Where the value of an option stands.
#[derive(Clone, Copy)]
enum Value {
    /// In the same word, or it has none.
    Here,
    /// In the next word.
    Follows,
    /// In the next word, unless that is an option.
    MayFollow,
}

fn value_of(option: &Arg) -> Value {
    let may_be_left_out = option.get_num_args().is_some_and(|range| range.min_values() == 0);
    match option.get_action() {
        ArgAction::Set | ArgAction::Append if may_be_left_out => Value::MayFollow,
        ArgAction::Set | ArgAction::Append => Value::Follows,
        _ => Value::Here,
    }
}

/// Of several options in one word, as `-qo DIR`.
fn value_of_shorts(letters: &str, command: &clap::Command) -> Option<Value> {
    for (at, letter) in letters.char_indices() {
        let option = command.get_arguments().find(|arg| arg.get_short() == Some(letter))?;
        let value = value_of(option);
        if !matches!(value, Value::Here) {
            let is_last = at + letter.len_utf8() == letters.len();
            return Some(if is_last { value } else { Value::Here });
        }
    }
    Some(Value::Here)
}

/// Whether a word says where to listen, and is no program.
fn is_address(word: &str) -> bool {
    word == "-" || word.contains(':') && !word.contains('/')
}

#[cfg(test)]
mod tests {
    use super::{Cli, with_separator};
    use clap::CommandFactory;
    use std::ffi::OsString;

    fn separated(words: &str) -> String {
        let words = with_separator(words.split(' ').map(OsString::from).collect());
        words.join(std::ffi::OsStr::new(" ")).into_string().expect("text")
    }

    #[test]
    fn the_first_word_that_is_no_option_begins_the_program() {
        for (given, expected) in [
            ("lat record ls", "lat record -- ls"),
            ("lat record ls -l -- x", "lat record -- ls -l -- x"),
            ("lat record --with io ls -l", "lat record --with io -- ls -l"),
            ("lat record --with=io ls --with", "lat record --with=io -- ls --with"),
            ("lat record -qo out ls -q", "lat record -qo out -- ls -q"),
            ("lat record -oout -q ls", "lat record -oout -q -- ls"),
            ("lat record --live --quiet ls", "lat record --live --quiet -- ls"),
            ("lat record --live 127.0.0.1:0 ls", "lat record --live 127.0.0.1:0 -- ls"),
            ("lat record --attach 12", "lat record --attach 12"),
            ("lat record -- ls -l", "lat record -- ls -l"),
            ("lat record --wiht io ls", "lat record --wiht io ls"),
            ("lat keep --when c ls -a", "lat keep --when c -- ls -a"),
            ("lat live ls -a", "lat live -- ls -a"),
            ("lat live 127.0.0.1:0 ls -a", "lat live 127.0.0.1:0 -- ls -a"),
            ("lat live - --bfscope 6666 ls", "lat live - --bfscope 6666 -- ls"),
            ("lat live 127.0.0.1:0 -- ls", "lat live 127.0.0.1:0 -- ls"),
            ("lat top --every 1s ls -a", "lat top --every 1s -- ls -a"),
            ("lat live nonsense -- ls", "lat live nonsense -- ls"),
            ("lat print x", "lat print x"),
            ("lat record --color always ls -l", "lat record --color always -- ls -l"),
            ("lat --color always record ls -l", "lat --color always record -- ls -l"),
            ("lat --color=never top ls", "lat --color=never top -- ls"),
            ("lat record ls --color always", "lat record -- ls --color always"),
            ("lat --colour always record ls", "lat --colour always record ls"),
            ("lat", "lat"),
        ] {
            assert_eq!(separated(given), expected);
        }
    }

    #[test]
    fn table_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_visible_command_says_what_it_does_and_shows_an_example() {
        for command in Cli::command().get_subcommands().filter(|c| !c.is_hide_set()) {
            assert!(command.get_about().is_some(), "{} has no description", command.get_name());
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Example"), "{} shows no example", command.get_name());
        }
    }
}
