// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interactive shell: history, completion, multi-line statements, and commands that begin with a dot.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::complete::{DOT_COMMANDS, Words, complete, is_complete};
use crate::describe;
use crate::fault::{nearest, quoted};
use crate::output::Format;
use crate::session::{Place, Session, Stop};

const HELP: &str = "\
Statements end with ; and may take several lines. Tab completes, the arrows walk the history,
Ctrl-C ends a query, Ctrl-D the shell.

  .tables [WORD]   the tables whose name holds the word
  .schema TABLE    columns of a table, with their types and units
  .functions       functions for time lines
  .describe        all tables with their columns, and functions
  .format FORMAT   table, json, jsonl or csv
  .help            this
  .quit            ends the shell

Who knows psql may write \\d, \\d TABLE, \\df, \\? and \\q.
";

/// Next action for a line.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Go,
    Quit,
}

/// Reads and runs statements until the end. `columns` returns the current width of the terminal; `notes`
/// is called after each statement.
///
/// Errors: reading from or writing to the terminal fails.
pub fn run(
    session: &Session,
    mut format: Format,
    columns: fn() -> Option<usize>,
    notes: &mut dyn FnMut(),
) -> io::Result<()> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .auto_add_history(false)
        .max_history_size(10_000)
        .and_then(|config| config.history_ignore_dups(true));
    let config = config.map_err(io::Error::other)?.build();
    let mut editor: Editor<Typing<'_>, DefaultHistory> =
        Editor::with_config(config).map_err(io::Error::other)?;
    editor.set_helper(Some(Typing { session }));
    let history = history_file();
    if let Some(path) = &history {
        // A missing history is not an error.
        let _ = editor.load_history(path);
    }
    println!("{} tables; .help tells more", session.engine.table_names().len());
    loop {
        let line = match editor.readline("lat> ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(io::Error::other(error)),
        };
        if line.trim().is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(line.trim());
        if let Some(path) = &history {
            // Immediately: another shell, or a crash, must not lose it.
            let _ = path.parent().map(fs::create_dir_all);
            let _ = editor.append_history(path);
        }
        session.cancel.reset();
        match dot(session, line.trim(), &mut format, &mut io::stdout()) {
            Ok(Some(Next::Quit)) => break,
            Ok(Some(Next::Go)) => continue,
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => return Err(error),
        }
        let mut open = || Ok(Box::new(io::stdout()) as Box<dyn Write + Send>);
        let mut place = Place { format, columns: columns(), is_file: false, open: &mut open };
        match session.run(&line, &mut place) {
            Ok(_) => {}
            Err(Stop::Fault(fault)) => {
                eprint!("{}", crate::fault::lines("error: ", &fault.show(&line)))
            }
            Err(Stop::Cancelled) => eprintln!("cancelled"),
            Err(Stop::NobodyReads) => break,
            Err(Stop::Output(error)) => eprintln!("error: cannot write the result: {error}"),
        }
        notes();
    }
    Ok(())
}

/// Executes a command with a dot; `None` for any other line.
fn dot(
    session: &Session,
    line: &str,
    format: &mut Format,
    out: &mut dyn Write,
) -> io::Result<Option<Next>> {
    let Some(command) = line.strip_prefix(['.', '\\']) else {
        return Ok(None);
    };
    let (command, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let command = command.trim_end_matches(';');
    let argument = argument.trim().trim_end_matches(';').trim_matches('"');
    let command = if line.starts_with('.') { command } else { of_psql(command, argument) };
    match command {
        "tables" => {
            let wanted = argument.to_lowercase();
            for table in session.engine.described() {
                if table.name.to_lowercase().contains(&wanted) {
                    writeln!(out, "{}", describe::heading(&table))?;
                }
            }
        }
        "schema" => schema(session, argument, out)?,
        "functions" => out.write_all(describe::functions().as_bytes())?,
        "describe" => out.write_all(describe::text(&session.engine).as_bytes())?,
        "format" => match Format::from_str(argument, true) {
            Ok(chosen) if !chosen.is_binary() => *format = chosen,
            _ => writeln!(out, "error: no format for a terminal: table, json, jsonl or csv")?,
        },
        "help" => out.write_all(HELP.as_bytes())?,
        "quit" | "exit" => return Ok(Some(Next::Quit)),
        other => {
            let near = nearest(other, DOT_COMMANDS.iter().map(|command| &command[1..]));
            let advice = match near.first() {
                Some(near) => format!("did you mean .{near}?"),
                None => ".help lists them".to_owned(),
            };
            writeln!(out, "error: no such command: .{other}: {advice}")?;
        }
    }
    Ok(Some(Next::Go))
}

/// The equivalent of a psql command.
fn of_psql<'a>(command: &'a str, argument: &str) -> &'a str {
    match command.trim_end_matches('+') {
        "d" if !argument.is_empty() => "schema",
        "d" | "dt" | "dv" => "tables",
        "df" => "functions",
        "?" | "h" => "help",
        "q" => "quit",
        other => other,
    }
}

fn schema(session: &Session, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let Some(schema) = session.engine.columns(name) else {
        let known = session.engine.table_names();
        let near = nearest(name, known.iter().map(String::as_str));
        let near: Vec<String> = near.into_iter().map(quoted).collect();
        let advice = match near.as_slice() {
            [] => ".tables lists them".to_owned(),
            near => format!("did you mean {}?", near.join(", ")),
        };
        return writeln!(out, "error: no such table: {name}: {advice}");
    };
    out.write_all(describe::columns(&schema, "").as_bytes())
}

/// `$XDG_STATE_HOME/lateralis/sql-history`, else under `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let folder =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("lateralis/sql-history"))
}

/// Helper of the line editor.
struct Typing<'a> {
    session: &'a Session,
}

impl Words for Typing<'_> {
    fn tables(&self) -> Vec<String> {
        self.session.engine.table_names()
    }

    fn columns(&self, table: &str) -> Vec<String> {
        let schema = self.session.engine.columns(table);
        schema.iter().flat_map(|s| s.fields()).map(|field| field.name().clone()).collect()
    }

    fn functions(&self) -> Vec<String> {
        self.session.engine.function_names()
    }
}

impl Completer for Typing<'_> {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = complete(self, line, position);
        let pair = |text: String| Pair { display: text.clone(), replacement: text };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Validator for Typing<'_> {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_complete(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

impl Hinter for Typing<'_> {
    type Hint = String;
}

impl Highlighter for Typing<'_> {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Helper for Typing<'_> {}
