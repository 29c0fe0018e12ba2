// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Defaults of options from a file of the user: `$XDG_CONFIG_HOME/lateralis/config.toml`.
//!
//! A key is the long name of an option, in a table with the name of its command. The table of commands
//! ([`crate::args`]) is the only list of keys: values of the file become its defaults. So for all of them an
//! option comes before the environment, that before the file, and that before what is built in.

use crate::error::CliError;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};
use lateralis_files::open_regular;
use rustix::process::geteuid;
use std::env;
use std::error::Error as _;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use toml_edit::{Document, Item, TableLike, Value};

/// Longer files are refused.
const BYTES_MAX: u64 = 64 << 10;
/// Unknown keys that are named.
const WARNINGS_MAX: usize = 20;
/// What to do about a file that cannot be used.
const WITHOUT: &str = "--no-config does without it";

/// A default from the file.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Names of the command; none for an option of all commands.
    pub command: Vec<String>,
    /// Long name of the option.
    pub option: String,
    /// Values, as on the command line.
    pub values: Vec<String>,
    /// Line of the file, from 1.
    pub line: usize,
}

/// What the file holds.
#[derive(Debug, Default)]
pub struct Settings {
    /// Path of the file.
    pub path: PathBuf,
    /// Its settings, in its order.
    pub settings: Vec<Setting>,
    /// Sentences about keys that are no option.
    pub unknown: Vec<String>,
}

static HELD: OnceLock<Settings> = OnceLock::new();

/// Settings of the file of this process, if there is one and it was read.
pub fn held() -> Option<&'static Settings> {
    HELD.get()
}

/// Path of the file, whether it is there or not; `None` without a home.
pub fn path() -> Option<PathBuf> {
    // A path that is not absolute is to be ignored, as the specification of these folders has it.
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("lateralis/config.toml"))
}

/// Makes the values of the user's file the defaults of the table of commands. Unknown keys are warnings.
///
/// Errors: the file cannot be read, other users can write to it, it is no TOML, or a value is none of its
/// option.
pub fn apply_file(table: &mut Command) -> Result<(), CliError> {
    let Some(path) = path() else { return Ok(()) };
    let Some(text) = read(&path)? else { return Ok(()) };
    let settings = apply(&path, &text, table)?;
    for sentence in settings.unknown.iter().take(WARNINGS_MAX) {
        tell!("warning: {sentence}");
    }
    if settings.unknown.len() > WARNINGS_MAX {
        tell!("warning: {} more unknown keys", settings.unknown.len() - WARNINGS_MAX);
    }
    // Called once.
    let _ = HELD.set(settings);
    Ok(())
}

/// Text of the file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, CliError> {
    let cannot = |cause: &dyn std::fmt::Display| {
        CliError::new(
            "cannot read settings",
            path.display().to_string(),
            format!("{cause}: {WITHOUT}"),
        )
    };
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        // The home of another user, from which this one was started, is none to look into.
        Err(cause) if is_absent(&cause) || cause.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(None);
        }
        Err(cause) => return Err(cannot(&cause)),
    };
    let file = match open_regular(&real) {
        Ok(file) => file,
        Err(cause) if is_absent(&cause) => return Ok(None),
        Err(cause) => return Err(cannot(&cause)),
    };
    let about = file.metadata().map_err(|cause| cannot(&cause))?;
    let folders = [path, real.as_path()].into_iter().filter_map(Path::parent);
    let folders = folders.filter_map(|folder| Some((folder, fs::metadata(folder).ok()?)));
    let file_and_folders = std::iter::once((real.as_path(), about)).chain(folders);
    for (place, about) in file_and_folders {
        if let Some(reason) = others(&about) {
            let place = place.display().to_string();
            let advice = format!("{reason}, and settings can start commands: {WITHOUT}");
            return Err(CliError::new("cannot trust settings", place, advice));
        }
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|cause| cannot(&cause))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(cannot(&format!("it is longer than {} KiB", BYTES_MAX >> 10)));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        cannot(&format!("line {line} is not UTF-8"))
    })
}

fn is_absent(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Why other users decide what is in a file or folder.
fn others(about: &fs::Metadata) -> Option<String> {
    let (owner, own) = (about.uid(), geteuid().as_raw());
    if owner != own && owner != 0 {
        return Some(format!("it belongs to user {owner}, this is user {own}"));
    }
    // In a folder like /tmp only their owners can replace files.
    let is_shared = about.is_dir() && about.mode() & 0o1000 != 0;
    (about.mode() & 0o022 != 0 && !is_shared).then(|| {
        let mode = about.mode() & 0o7777;
        format!("other users can write to it (mode {mode:03o}, chmod go-w changes it)")
    })
}

/// Makes the values of a text in TOML the defaults of a table of commands that is not built yet.
///
/// Errors: it is no TOML, or a value is none of its option.
fn apply(path: &Path, text: &str, table: &mut Command) -> Result<Settings, CliError> {
    let line_of = |at: usize| {
        1 + text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count()
    };
    let document = Document::parse(text).map_err(|error| {
        let line = line_of(error.span().map_or(0, |span| span.start));
        let place = format!("{}:{line}", path.display());
        // The library's sentence may have lines of its own.
        let message = error.message().trim().replace('\n', ", ");
        CliError::new("cannot read settings", place, format!("{message}: {WITHOUT}"))
    })?;
    // Only a table that is built has all options of all commands; one that is not is built for one of them.
    table.build();
    let mut reading = Reading {
        path,
        line_of: &line_of,
        settings: Settings { path: path.to_owned(), ..Settings::default() },
    };
    reading.table(table, &mut Vec::new(), document.as_table())?;
    Ok(reading.settings)
}

/// Options that a file can have: those with a long name that help shows.
pub fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_option = |of: &&Arg| {
        let name = of.get_long();
        name.is_some_and(|name| !["help", "version", "no-config"].contains(&name))
            && !of.is_hide_set()
    };
    command.get_arguments().filter(is_option)
}

struct Reading<'a> {
    path: &'a Path,
    line_of: &'a dyn Fn(usize) -> usize,
    settings: Settings,
}

impl Reading<'_> {
    /// Reads a table of the file for a command; `names` are those of the command.
    fn table(
        &mut self,
        command: &mut Command,
        names: &mut Vec<String>,
        table: &dyn TableLike,
    ) -> Result<(), CliError> {
        for (name, item) in table.iter() {
            let span = table.get_key_value(name).and_then(|(key, _)| key.span());
            let line = (self.line_of)(span.map_or(0, |span| span.start));
            let below =
                command.get_subcommands().any(|of| of.get_name() == name && !of.is_hide_set());
            let inner = item.as_table_like();
            if let Some(inner) = inner.filter(|_| below) {
                if let Some(command) = command.find_subcommand_mut(name) {
                    names.push(name.to_owned());
                    self.table(command, names, inner)?;
                    names.pop();
                }
            } else if inner.is_some() || !self.option(command, names, name, item, line)? {
                self.unknown(command, names, name, line);
            }
        }
        Ok(())
    }

    /// Takes an option, unless the command has none of this name.
    fn option(
        &mut self,
        command: &mut Command,
        names: &[String],
        name: &str,
        item: &Item,
        line: usize,
    ) -> Result<bool, CliError> {
        // Options of all commands are in no table.
        let is_here =
            |of: &&Arg| of.get_long() == Some(name) && (of.is_global_set() == names.is_empty());
        let Some(argument) = options(command).find(is_here) else { return Ok(false) };
        let values = values(argument, item).and_then(|values| match values.is_empty() {
            true => Ok(values),
            false => check(argument, &values).map(|()| values),
        });
        let values = values.map_err(|reason| {
            let place = format!("{}:{line}", self.path.display());
            let advice = format!("{}: {reason}", key(names, name));
            CliError::new("cannot use a setting", place, advice)
        })?;
        if !values.is_empty() {
            let id = argument.get_id().clone();
            set_default(command, &id, &values);
        }
        let option = name.to_owned();
        self.settings.settings.push(Setting { command: names.to_vec(), option, values, line });
        Ok(true)
    }

    fn unknown(&mut self, command: &Command, names: &[String], name: &str, line: usize) {
        let of_all = names.is_empty();
        let known = options(command).filter(|of| of.is_global_set() == of_all);
        let known = known
            .filter_map(Arg::get_long)
            .chain(command.get_subcommands().filter(|of| !of.is_hide_set()).map(Command::get_name));
        let nearest = known
            .map(|known| (strsim::damerau_levenshtein(name, known), known))
            .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
            .min();
        let advice = match nearest {
            Some((0, nearest)) => match command.find_subcommand(nearest) {
                Some(_) => format!("expected one table, [{nearest}]"),
                None => "expected a value, not a table".to_owned(),
            },
            Some((_, nearest)) => format!("did you mean {nearest}?"),
            None if of_all => "options are in a table with the name of their command".to_owned(),
            None => format!("lat {} --help lists the options", names.join(" ")),
        };
        let place = self.path.display();
        let key = key(names, name);
        self.settings.unknown.push(format!("unknown key: {place}:{line}: {key}: {advice}"));
    }
}

/// `[record] buffer`, as it is in the file.
pub fn key(command: &[String], name: &str) -> String {
    match command.is_empty() {
        true => name.to_owned(),
        false => format!("[{}] {name}", command.join(".")),
    }
}

/// Values as on the command line; none for a flag that is off.
///
/// Errors: a sentence.
fn values(argument: &Arg, item: &Item) -> Result<Vec<String>, String> {
    let value = item.as_value().ok_or("expected a value, not a table")?;
    if !argument.get_action().takes_values() {
        let is_on = value.as_bool().filter(|_| matches!(argument.get_action(), ArgAction::SetTrue));
        let is_on = is_on.ok_or("expected true or false")?;
        return Ok(if is_on { vec!["true".to_owned()] } else { Vec::new() });
    }
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.value().clone()),
        Value::Integer(number) => Ok(number.value().to_string()),
        Value::Float(number) => Ok(number.value().to_string()),
        _ => Err("expected a text or a number".to_owned()),
    };
    let is_list = matches!(argument.get_action(), ArgAction::Append);
    match value {
        Value::Array(all) if is_list => {
            all.iter().map(one).collect::<Result<_, _>>().and_then(|all: Vec<_>| {
                match all.is_empty() {
                    true => Err("expected at least one value".to_owned()),
                    false => Ok(all),
                }
            })
        }
        Value::Array(_) => Err("expected one value: the option is given once".to_owned()),
        // One text has several values where the option's has.
        value => Ok(match argument.get_value_delimiter() {
            Some(delimiter) => one(value)?.split(delimiter).map(str::to_owned).collect(),
            None => vec![one(value)?],
        }),
    }
}

/// Whether the option takes these values.
///
/// Errors: a sentence.
fn check(argument: &Arg, values: &[String]) -> Result<(), String> {
    if !argument.get_action().takes_values() {
        return Ok(());
    }
    // By itself, so that nothing else about the command is an error.
    let alone = Arg::new("value").long("value").action(ArgAction::Append);
    let alone = alone.value_parser(argument.get_value_parser().clone());
    let words = values.iter().map(|value| format!("--value={value}"));
    let command = Command::new("lat").no_binary_name(true).arg(alone);
    let Err(error) = command.try_get_matches_from(words) else { return Ok(()) };
    let given = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(given)) => given.clone(),
        _ => values.join(", "),
    };
    Err(match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(valid))) if !valid.is_empty() => {
            format!("{given}: expected one of {}", valid.join(", "))
        }
        _ => match error.source() {
            Some(reason) => format!("{given}: {reason}"),
            None => format!("{given}: it is no value of this option"),
        },
    })
}

/// Gives an option of a command, and of those below it, a default. The table is built: only this way of a
/// change leaves its places as they are.
fn set_default(command: &mut Command, id: &clap::Id, values: &[String]) {
    // The library keeps defaults for as long as the program runs, and the file has few.
    let values: Vec<&'static str> = values.iter().map(|value| &*value.clone().leak()).collect();
    set_leaked(command, id, &values, true);
}

fn set_leaked(command: &mut Command, id: &clap::Id, values: &[&'static str], is_here: bool) {
    let mut is_global = false;
    *command = std::mem::take(command).mut_args(|argument| {
        if argument.get_id() != id || !(is_here || argument.is_global_set()) {
            return argument;
        }
        is_global = argument.is_global_set();
        argument.default_values(values.iter().copied()).required(false)
    });
    if is_global {
        command.get_subcommands_mut().for_each(|below| set_leaked(below, id, values, false));
    }
}
