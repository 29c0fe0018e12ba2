// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The literate suite: every Markdown file in `suite/` is a set of tests.
//! `suite/README.md` says how they are written; `UPDATE_EXPECT=1` rewrites the
//! expected texts.

use lateralis_pleco::{Code, Severity, compile};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn crate_path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn suite_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(crate_path("suite"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md") && !path.ends_with("README.md"))
        .collect();
    files.sort();
    files
}

/// A fenced block: its language, its lines, and where they are in the file.
struct Block {
    language: String,
    text: String,
    first_line: usize,
    line_count: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let language = language.trim().to_owned();
                let text = String::new();
                open = Some(Block { language, text, first_line: number + 1, line_count: 0 });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
                block.line_count += 1;
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// `// error: [P0020] part of the message` at the end of a line.
fn assertions(text: &str) -> Vec<(u32, String, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let marks = ["// error: [", "// warning: ["];
        for part in marks.iter().flat_map(|mark| line.split(mark).skip(1)) {
            let (code, rest) = part.split_once(']').expect("a code ends with `]`");
            let message = rest.split("//").next().unwrap_or("").trim().to_owned();
            found.push((number as u32 + 1, code.to_owned(), message));
        }
    }
    found
}

/// What a block that follows a schema should hold.
fn actual(language: &str, schema: &str) -> Option<String> {
    let compiled = compile("test.pleco", schema.as_bytes());
    Some(match language {
        "diagnostics" => compiled.render(),
        "canonical" => match compiled.schema {
            Some(schema) => schema.canonical_text().to_owned(),
            None => compiled.render(),
        },
        "fmt" => lateralis_pleco::format("test.pleco", schema.as_bytes())
            .unwrap_or_else(|_| compiled.render()),
        _ => return None,
    })
}

#[test]
fn suite_pages() {
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut failures = String::new();
    let mut count = 0;
    for path in suite_files() {
        let page = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
        let all = blocks(&page);
        // From the end, so that replaced lines do not move the others.
        for (index, block) in all.iter().enumerate().rev() {
            let at = format!("{}:{}", path.file_name().unwrap().display(), block.first_line);
            if block.language == "pleco" {
                count += 1;
                check_assertions(&at, block, &all[index + 1..], &mut failures);
                continue;
            }
            let schema = all[..index].iter().rev().find(|other| other.language == "pleco");
            let Some(schema) = schema else { panic!("{at}: no schema in front of this") };
            let Some(actual) = actual(&block.language, &schema.text) else {
                panic!("{at}: unknown kind of block `{}`", block.language);
            };
            if actual == block.text {
                continue;
            }
            if is_update {
                let range = block.first_line..block.first_line + block.line_count;
                lines.splice(range, actual.lines().map(str::to_owned));
            } else {
                failures.push_str(&format!("{at}: expected\n{}\nfound\n{actual}\n", block.text));
            }
        }
        if is_update {
            fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(count > 40, "the suite was found: {count} schemas");
}

fn check_assertions(at: &str, block: &Block, following: &[Block], failures: &mut String) {
    let wanted = assertions(&block.text);
    let has_snapshot = following.iter().take_while(|other| other.language != "pleco");
    let has_snapshot = has_snapshot.into_iter().any(|other| other.language == "diagnostics");
    let compiled = compile("test.pleco", block.text.as_bytes());
    let mut unmatched = wanted.clone();
    for found in &compiled.diagnostics {
        let position = unmatched.iter().position(|(line, code, message)| {
            *line == found.place.line
                && *code == found.code.to_string()
                && found.message.contains(message.as_str())
        });
        match position {
            Some(position) => {
                unmatched.remove(position);
            }
            None if has_snapshot && wanted.is_empty() => {}
            None => failures.push_str(&format!("{at}: unexpected\n{}\n", found.render())),
        }
    }
    for (line, code, message) in unmatched {
        failures.push_str(&format!("{at}: line {line} should give [{code}] {message}\n"));
    }
    let has_errors = compiled.diagnostics.iter().any(|d| d.severity() == Severity::Error);
    assert_eq!(has_errors, compiled.schema.is_none(), "{at}: a schema if and only if no error");
}

/// Codes that a page cannot hold are in tests/hostile.rs; all others are here.
const NOT_IN_PAGES: [Code; 6] = [
    Code::NotUtf8,
    Code::FileTooLarge,
    Code::TooManyErrors,
    Code::TooManyWarnings,
    Code::TooManyEvents,
    Code::NameTooLong,
];

#[test]
fn every_code_has_a_test_and_a_section() {
    let mut shown = BTreeSet::new();
    for path in suite_files() {
        for block in blocks(&fs::read_to_string(path).unwrap()) {
            if block.language == "pleco" {
                let compiled = compile("test.pleco", block.text.as_bytes());
                shown.extend(compiled.diagnostics.iter().map(|found| found.code));
            }
        }
    }
    let hostile = include_str!("hostile.rs");
    let reference = crate_path("../../docs/reference/pleco-diagnostics.md");
    let reference = fs::read_to_string(reference).unwrap();
    for code in Code::ALL {
        let is_shown = shown.contains(code)
            || NOT_IN_PAGES.contains(code) && hostile.contains(&format!("Code::{code:?}"));
        assert!(is_shown, "no test shows {code} ({code:?})");
        let severity = code.severity();
        let section = format!("\n## {code} {severity}: {}\n", code.title());
        assert!(reference.contains(&section), "the reference has no section{section}");
    }
    let sections = reference.lines().filter(|line| line.starts_with("## P0")).count();
    assert_eq!(sections, Code::ALL.len(), "the reference has sections for codes that are no more");
}

/// Numbers are stable and in order: no code is defined twice.
#[test]
fn codes_are_in_order() {
    let numbers: Vec<u16> = Code::ALL.iter().map(|code| code.number()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(Code::UnknownType.to_string(), "P0020");
}
