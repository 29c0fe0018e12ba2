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
    Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand,
    ValueEnum as _,
};
use lateralis_model::terminal;
use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;

/// Record what programs do, and analyse it.
#[derive(Debug, Parser)]
#[command(
    name = "lat",
    version,
    about,
    long_about = "Lateralis records what programs do, at the cost of little more than reading the clock, and \
        counts every event that is lost.\n\n\
        Exit codes: 0 success; 1 problems found; 2 could not run. `lat record` exits with the status of \
        the program it recorded.",
    propagate_version = true,
    max_term_width = 100
)]
pub struct Cli {
    /// The command; without one, `lat` lists the commands.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// When to colour output
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
    /// Ignore the settings file, which `lat config` shows
    #[arg(long, global = true, display_order = 1001)]
    pub no_config: bool,
}

/// One variant per command, in the order in which help shows them.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record a program that lat starts, or one that is already running
    Record(Deferred<record::RecordArgs>),
    /// Keep short recordings around the moments at which a condition is met
    Keep(Deferred<keep::KeepArgs>),
    /// Stream a recording to other machines while it is made, or send dumps as Barrelfish's bfscope does
    Live(Deferred<live::LiveArgs>),
    /// Show counts, rates and durations of the last seconds of a running program; keeps no recording
    Top(Deferred<top::TopArgs>),
    /// List the programs that can be traced now, and their events
    List(Deferred<list::ListArgs>),
    /// Free the shared memory that killed programs and recorders left behind
    Clean(Deferred<clean::CleanArgs>),
    /// Check what can be recorded on this machine, and how to enable the rest
    Doctor(Deferred<doctor::DoctorArgs>),
    /// List the settings that apply, and where each comes from: the settings file or the environment
    Config(Deferred<config::ConfigArgs>),
    /// Enable events of a program that is being recorded
    Enable(Deferred<control::SwitchArgs>),
    /// Disable events of a program that is being recorded
    Disable(Deferred<control::SwitchArgs>),
    /// Resume after `lat stop`, or start a flight recorder in a running program
    Start(Deferred<control::StartArgs>),
    /// Pause recording until `lat start`
    Stop(Deferred<control::TellArgs>),
    /// Write all events recorded so far to the files
    Flush(Deferred<control::TellArgs>),
    /// Save the current contents of a running program's rings
    Snapshot(Deferred<control::SnapshotArgs>),
    /// Recover a recording after a crash
    Recover(Deferred<control::RecoverArgs>),
    /// Check a policy file, or translate one from Genode
    Policy(Deferred<policy::PolicyArgs>),
    /// Summarize a trace: streams, events, processes, clocks, losses, damage
    Info(Deferred<info::InfoArgs>),
    /// Show a trace in the browser: timeline, event list, statistics
    View(Deferred<view::ViewArgs>),
    /// Print events, one per line
    Print(Deferred<print::PrintArgs>),
    /// Print statistics: event rates, span durations, budgets, losses
    Stats(Deferred<stats::StatsArgs>),
    /// Measure cycles between two points of a program, less the cost of measuring
    Tracepoints(Deferred<tracepoints::TracepointsArgs>),
    /// Show what the CPUs executed: call stacks from samples, instructions from Intel PT
    Flow(Deferred<flow::FlowArgs>),
    /// Run XML analyses of Trace Compass: states and latencies
    Xml(Deferred<xml::XmlArgs>),
    /// Compare recordings: what became slower, longer or more frequent
    Diff(Deferred<diff::DiffArgs>),
    /// Explain why a span took as long as it did: its critical path
    Path(Deferred<path::PathArgs>),
    /// Find activities with a script: who held which lock, how long each request took
    RunScript(Deferred<run_script::RunScriptArgs>),
    /// Query traces in SQL; runs lat-sql
    Sql(Deferred<sql::SqlArgs>),
    /// Convert a trace to another format
    Convert(Deferred<convert::ConvertArgs>),
    /// List the tables of a trace, or export one as Parquet, CSV, JSON lines or Arrow
    Table(Deferred<table::TableArgs>),
    /// Record a small demonstration program and show what it did
    Demo(Deferred<demo::DemoArgs>),
    /// Compile, format or compare schemas
    Pleco(Deferred<pleco::PlecoArgs>),
    /// Print the manual page of `lat` or of one of its commands
    Man(Deferred<man::ManArgs>),
    /// Print shell completions
    Completions(Deferred<completions::CompletionsArgs>),
    /// The server that `lat demo` records
    #[command(hide = true)]
    DemoWarehouse(Deferred<demo::warehouse::WarehouseArgs>),
    /// Print the command reference as Markdown
    #[command(hide = true)]
    Reference,
}

/// Options of a command. Their table is made once this command is asked for: to make those of all commands
/// takes longer than the start of a program.
#[derive(Debug)]
pub struct Deferred<T>(pub Box<T>);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.defer(with_options::<T>)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command.defer(with_options::<T>)
    }
}

/// Adds a command's own options; what its line in the list of commands says stays.
fn with_options<T: Args>(command: clap::Command) -> clap::Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let long_about = command.get_long_about().cloned();
    let command = T::augment_args(command).about(about);
    match long_about {
        Some(text) => command.long_about(text),
        None => command.long_about(None),
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(|options| Deferred(Box::new(options)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
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

/// The options of a command that starts a program: all words from the program's name on are its own.
fn launcher(name: &str) -> Option<clap::Command> {
    let command = clap::Command::default();
    Some(match name {
        "record" => record::RecordArgs::augment_args(command),
        "keep" => keep::KeepArgs::augment_args(command),
        "live" => live::LiveArgs::augment_args(command),
        "top" => top::TopArgs::augment_args(command),
        _ => return None,
    })
}

/// Puts `--` in front of the program's name where it was left out.
fn with_separator(mut words: Vec<OsString>) -> Vec<OsString> {
    let at = command_place(&words);
    let name = at.and_then(|at| words[at].to_str()).unwrap_or_default();
    if let (Some(at), Some(command)) = (at, launcher(name))
        && let Some(place) = program_place(&command, name == "live", at + 1, &words)
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
fn program_place(
    command: &clap::Command,
    mut takes_address: bool,
    begin: usize,
    words: &[OsString],
) -> Option<usize> {
    // What stands in front of the `--` is meant to be an address, whatever it looks like.
    if takes_address && words.iter().any(|word| word == "--") {
        return None;
    }
    let cli = Cli::command();
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
        let mut table = Cli::command();
        table.build();
        // The library's own command has no example.
        let is_ours = |c: &&clap::Command| !c.is_hide_set() && c.get_name() != "help";
        for command in table.get_subcommands().filter(is_ours) {
            assert!(command.get_about().is_some(), "{} has no description", command.get_name());
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Example"), "{} shows no example", command.get_name());
        }
    }
}
