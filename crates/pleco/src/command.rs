// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands `pleco` and `lat pleco`. The only place of this crate that
//! touches files.
//!
//! Exit status: 0 fine, 1 the schema has errors (or `fmt --check` and `check`
//! found something), 2 the command could not run.

mod files;

use crate::compat::{self, Effect, Version};
use crate::ctf::{self, ByteOrder, TraceDescription};
use crate::diagnostic::printable;
use crate::generate;
use crate::json::Json;
use crate::schema::Schema;
use crate::{Compilation, Diagnostic, compile};
use files::{print, read, stem, write_all};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Why a command ended early.
enum Failure {
    /// It could not run: one sentence. Status 2.
    CannotRun(String),
    /// It ran, found problems and said so. Status 1.
    Found,
}

impl From<String> for Failure {
    fn from(sentence: String) -> Failure {
        Failure::CannotRun(sentence)
    }
}

type Outcome = Result<(), Failure>;

/// Runs the command with the arguments after its name. `program` is its name as typed by the user
/// (`pleco`, `lat pleco`), for messages.
///
/// Context: reads and writes files, standard input and outputs. A reader that
/// closes standard output early is no failure.
pub fn main(program: &str, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    let outcome = match arguments.first().and_then(|first| first.to_str()) {
        None if arguments.is_empty() => print(&help(program)),
        Some("help" | "--help" | "-h") => print(&help(program)),
        Some("--version" | "-V") => print(&format!("pleco {}\n", env!("CARGO_PKG_VERSION"))),
        Some("gen") => generate_command(program, &arguments[1..]),
        Some("fmt") => format_command(program, &arguments[1..]),
        Some("check") => check_command(program, &arguments[1..]),
        _ => original_call(program, &arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Found) => ExitCode::from(1),
        Err(Failure::CannotRun(sentence)) => {
            eprintln!("error: {}", printable(&sentence));
            ExitCode::from(2)
        }
    }
}

fn help(program: &str) -> String {
    format!(
        "\
Compiles schemas: which events a program can record, and what they mean.

usage:
  {program} gen FILE.pleco [outputs]       without outputs: the C header to standard output
      -o OUT                    the output that the ending asks for: .h, .rs, .json or .md
      --c OUT.h                 header for C11 and C++17
      --rust OUT.rs             module for Rust
      --rust-by-hand OUT.rs     the same; the program calls SCHEMA.register() itself
      --ctf OUT                 CTF 1.8 metadata
      --ctf2 OUT                CTF 2 metadata
      --byte-order le|be        of the metadata (default: le)
      --json OUT.json           the whole schema as JSON
      --docs OUT.md             a page of documentation
      --legacy OUT.h OUT.json   what the original tool makes
      --legacy-header OUT.h     only its header
      --legacy-json OUT.json    only its JSON
      --legacy-json-note OUT    its JSON in the form of the tech note
      --diagnostics text|json   form of errors and warnings (default: text)
  {program} fmt [--check] FILE.pleco …     format in place; --check only says which differ
  {program} check [--json] OLD NEW         is the new schema compatible?
  {program} IN OUT.h OUT.json OUT.c        the call of the original tool

OUT or FILE can be `-` for standard output or input.
exit status: 0 fine, 1 errors or differences found, 2 could not run

examples:
  {program} gen app.pleco --c app.h
  {program} gen app.pleco --rust src/app.rs --docs app.md
  {program} check old/app.pleco app.pleco
"
    )
}

/// Reads and compiles; prints the diagnostics.
fn compile_file(path: &OsString, as_json: bool) -> Result<Schema, Failure> {
    let text = read(path)?;
    let Compilation { schema, diagnostics } = compile(&path.to_string_lossy(), &text);
    show(&diagnostics, as_json)?;
    schema.ok_or(Failure::Found)
}

fn show(diagnostics: &[Diagnostic], as_json: bool) -> Outcome {
    if as_json {
        // One object a line, on standard error like the text form.
        for found in diagnostics {
            eprintln!("{}", found.to_json().compact());
        }
        return Ok(());
    }
    for found in diagnostics {
        eprintln!("{}", found.render());
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Output {
    C,
    Rust,
    RustByHand,
    Ctf1,
    Ctf2,
    Json,
    Docs,
    LegacyHeader,
    LegacyJson,
    LegacyNote,
}

impl Output {
    fn make(self, schema: &Schema, path: &OsString, byte_order: ByteOrder) -> String {
        match self {
            Output::C => generate::c_header(schema),
            Output::Rust => generate::rust_module(schema),
            Output::RustByHand => generate::rust_module_by_hand(schema),
            Output::Ctf1 => ctf::ctf1(&TraceDescription::of_schema(schema, byte_order)),
            Output::Ctf2 => ctf::ctf2(&TraceDescription::of_schema(schema, byte_order)),
            Output::Json => generate::json(schema),
            Output::Docs => generate::markdown(schema),
            Output::LegacyHeader => {
                let stem = stem(path).unwrap_or_else(|| schema.name.clone());
                generate::legacy_header(schema, &stem)
            }
            Output::LegacyJson => generate::legacy_json(schema),
            Output::LegacyNote => generate::legacy_note_json(schema),
        }
    }
}

fn generate_command(program: &str, arguments: &[OsString]) -> Outcome {
    let mut input: Option<OsString> = None;
    let mut outputs: Vec<(Output, OsString)> = Vec::new();
    let mut byte_order = ByteOrder::Little;
    let mut as_json = false;
    let mut rest = arguments.iter().cloned();
    while let Some(argument) = rest.next() {
        let mut value = |what: &str| {
            rest.next().ok_or_else(|| format!("gen: {what} is missing; see `{program} --help`"))
        };
        let output = match argument.to_string_lossy().as_ref() {
            "--help" | "-h" => return print(&help(program)),
            "-o" => {
                let path = value("the output after -o")?;
                outputs.push((output_by_ending(&path)?, path));
                continue;
            }
            "--c" => Output::C,
            "--rust" => Output::Rust,
            "--rust-by-hand" => Output::RustByHand,
            "--ctf" => Output::Ctf1,
            "--ctf2" => Output::Ctf2,
            "--json" => Output::Json,
            "--docs" => Output::Docs,
            "--legacy-header" => Output::LegacyHeader,
            "--legacy-json" => Output::LegacyJson,
            "--legacy-json-note" => Output::LegacyNote,
            "--legacy" => {
                outputs.push((Output::LegacyHeader, value("the header behind --legacy")?));
                outputs.push((Output::LegacyJson, value("the JSON behind --legacy")?));
                continue;
            }
            "--byte-order" => {
                byte_order = match value("`le` or `be` behind --byte-order")?.to_str() {
                    Some("le") => ByteOrder::Little,
                    Some("be") => ByteOrder::Big,
                    _ => return Err("gen: --byte-order is `le` or `be`".to_owned().into()),
                };
                continue;
            }
            "--diagnostics" => {
                as_json = match value("`text` or `json` behind --diagnostics")?.to_str() {
                    Some("text") => false,
                    Some("json") => true,
                    _ => return Err("gen: --diagnostics is `text` or `json`".to_owned().into()),
                };
                continue;
            }
            text if is_option(text) => return Err(unknown_option("gen", text, program)),
            _ if input.is_none() => {
                input = Some(argument);
                continue;
            }
            text => {
                return Err(format!("gen: one schema at a time: what is `{text}`?").into());
            }
        };
        let path = value(&format!("the output behind {}", argument.to_string_lossy()))?;
        outputs.push((output, path));
    }
    let Some(input) = input else {
        return Err(format!("gen: which schema? Try `{program} gen app.pleco --c app.h`").into());
    };
    let schema = compile_file(&input, as_json)?;
    if outputs.is_empty() {
        outputs.push((Output::C, OsString::from("-")));
    }
    // Everything is made before anything is written.
    let made: Vec<(OsString, String)> = outputs
        .into_iter()
        .map(|(output, path)| {
            let text = output.make(&schema, &path, byte_order);
            (path, text)
        })
        .collect();
    write_all(&made)
}

/// Whether a word is meant as an option; `-` alone is standard input or output.
fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn output_by_ending(path: &OsString) -> Result<Output, String> {
    let path = PathBuf::from(path);
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("h") => Ok(Output::C),
        Some("rs") => Ok(Output::Rust),
        Some("json") => Ok(Output::Json),
        Some("md") => Ok(Output::Docs),
        _ => Err(format!(
            "gen: {}: no output is known by this ending: use --c, --rust, --ctf, …",
            path.display()
        )),
    }
}

fn unknown_option(command: &str, option: &str, program: &str) -> Failure {
    Failure::CannotRun(format!("{command}: unknown option `{option}`; see `{program} --help`"))
}

/// `pleco IN OUT.h OUT.json OUT.c`; the last one stays empty, as it always was.
fn original_call(program: &str, arguments: &[OsString]) -> Outcome {
    let [input, header, json, c] = arguments else {
        let first =
            arguments.first().map_or_else(String::new, |a| a.to_string_lossy().into_owned());
        let known = crate::suggest::nearest(&first, ["gen", "fmt", "check", "help"]);
        let known = known.map_or_else(String::new, |known| format!(" did you mean `{known}`?"));
        let sentence = format!("unknown command `{first}`;{known} see `{program} --help`");
        return Err(sentence.into());
    };
    // An option is never meant as the name of a file.
    if let Some(option) =
        arguments.iter().map(|word| word.to_string_lossy()).find(|word| is_option(word))
    {
        return Err(format!(
            "`{option}` is no output: options belong to `{program} gen`, see `{program} --help`"
        )
        .into());
    }
    let schema = compile_file(input, false)?;
    let made = [
        (header.clone(), Output::LegacyHeader.make(&schema, header, ByteOrder::Little)),
        (json.clone(), Output::LegacyJson.make(&schema, json, ByteOrder::Little)),
        (c.clone(), String::new()),
    ];
    write_all(&made)
}

fn format_command(program: &str, arguments: &[OsString]) -> Outcome {
    let mut is_check = false;
    let mut paths: Vec<&OsString> = Vec::new();
    for argument in arguments {
        match argument.to_string_lossy().as_ref() {
            "--help" | "-h" => return print(&help(program)),
            "--check" => is_check = true,
            text if is_option(text) => return Err(unknown_option("fmt", text, program)),
            _ => paths.push(argument),
        }
    }
    if paths.is_empty() {
        return Err(format!("fmt: which schema? Try `{program} fmt app.pleco`").into());
    }
    let mut has_found = false;
    for path in paths {
        let text = read(path)?;
        match crate::format(&path.to_string_lossy(), &text) {
            Err(diagnostics) => {
                show(&diagnostics, false)?;
                has_found = true;
            }
            Ok(formatted) if is_check => {
                if formatted.as_bytes() != text {
                    print(&format!("{} is not formatted\n", path.to_string_lossy()))?;
                    has_found = true;
                }
            }
            Ok(formatted) => {
                let is_stream = path == "-";
                if is_stream || formatted.as_bytes() != text {
                    write_all(&[(path.clone(), formatted)])?;
                }
            }
        }
    }
    if has_found { Err(Failure::Found) } else { Ok(()) }
}

fn check_command(program: &str, arguments: &[OsString]) -> Outcome {
    let mut as_json = false;
    let mut paths: Vec<PathBuf> = Vec::new();
    for argument in arguments {
        match argument.to_string_lossy().as_ref() {
            "--help" | "-h" => return print(&help(program)),
            "--json" => as_json = true,
            text if is_option(text) => return Err(unknown_option("check", text, program)),
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    let [old_path, new_path] = paths.as_slice() else {
        return Err(format!("check: two schemas, please: `{program} check OLD NEW`").into());
    };
    let old = compile_file(&old_path.clone().into_os_string(), as_json)?;
    let new = compile_file(&new_path.clone().into_os_string(), as_json)?;
    let changes = compat::check(&old, &new);
    let count = |effect| changes.iter().filter(|change| change.effect == effect).count();
    let broken = count(Effect::Incompatible);
    let file_of = |version| match version {
        Version::Old => old_path.display(),
        Version::New => new_path.display(),
    };
    if as_json {
        let listed = changes.iter().map(|change| {
            Json::object([
                ("effect", Json::string(change.effect.to_string())),
                ("message", Json::string(&change.message)),
                ("file", Json::String(file_of(change.version).to_string())),
                ("line", Json::Integer(change.place.line.into())),
                ("column", Json::Integer(change.place.column.into())),
            ])
        });
        let report = Json::object([
            ("is_compatible", Json::Bool(broken == 0)),
            ("old_hash", Json::String(format!("{:016x}", old.hash()))),
            ("new_hash", Json::String(format!("{:016x}", new.hash()))),
            ("changes", Json::Array(listed.collect())),
        ]);
        print(&report.pretty())?;
    } else {
        let mut out = String::new();
        for change in &changes {
            let (file, place) = (file_of(change.version), change.place);
            let place = if place.line == 0 {
                String::new()
            } else {
                format!(":{}:{}", place.line, place.column)
            };
            out.push_str(&format!("{}: {}\n  --> {file}{place}\n", change.effect, change.message));
        }
        let verdict = match (changes.len(), broken) {
            (0, _) => "the schemas say the same",
            (_, 0) => "the new schema is compatible with the old one",
            _ => "the new schema is not compatible with the old one",
        };
        out.push_str(&format!(
            "{verdict}: {broken} incompatible, {} noteworthy, {} compatible changes\n",
            count(Effect::Note),
            count(Effect::Compatible)
        ));
        print(&out)?;
    }
    if broken > 0 { Err(Failure::Found) } else { Ok(()) }
}
