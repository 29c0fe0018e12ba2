// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of the meanings of each producer's events, as in the documentation.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// All meanings of events, in the order of the page.
pub const MEANINGS: [&str; 26] = [
    "switch",
    "state of a thread that leaves",
    "waking",
    "wakeup",
    "new task",
    "exit",
    "fork: process of the child",
    "migration",
    "priority",
    "interrupt",
    "soft interrupt",
    "soft interrupt raised",
    "system call",
    "value of a call",
    "page fault",
    "block request",
    "network packet",
    "span",
    "span: self time",
    "async span",
    "flow",
    "counter",
    "state",
    "name of a thread",
    "name of a process",
    "time on a processor",
];

/// The producers, in the order of the page.
pub const PRODUCERS: [&str; 11] = [
    "LTTng kernel",
    "LTTng UST",
    "`lat record`",
    "perf.data",
    "trace.dat",
    "Perfetto",
    "Chrome JSON",
    "Barrelfish",
    "Genode",
    "Zephyr",
    "own schema",
];

/// The trace has no such event.
const ABSENT: &str = "–";
/// The result differs from that of the other program.
const WRONG: &str = "✗";

/// One column of the table.
pub struct Column {
    producer: &'static str,
    cells: BTreeMap<&'static str, String>,
    wrong: Vec<String>,
}

impl Column {
    pub fn new(producer: &'static str) -> Self {
        assert!(PRODUCERS.contains(&producer));
        Self { producer, cells: BTreeMap::new(), wrong: Vec::new() }
    }

    /// Records the result of a comparison with another program. `check` panics on a difference, and returns
    /// false if the trace has nothing to compare. A meaning may be checked with several traces.
    pub fn check(&mut self, meaning: &'static str, judge: &str, check: impl FnOnce() -> bool) {
        assert!(MEANINGS.contains(&meaning), "{meaning}");
        match catch_unwind(AssertUnwindSafe(check)) {
            Ok(false) => {}
            Ok(true) => {
                let cell = self.cells.entry(meaning).or_default();
                if cell.is_empty() {
                    judge.clone_into(cell);
                } else if cell != WRONG && !cell.split(", ").any(|word| word == judge) {
                    *cell = format!("{cell}, {judge}");
                }
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                self.wrong.push(format!("{meaning} by {judge}: {}", text.unwrap_or("?")));
                self.cells.insert(meaning, WRONG.to_owned());
            }
        }
    }

    /// Compares the column with the page, or writes it there if `UPDATE_EXPECT` is set.
    pub fn finish(self) {
        let difference = self.difference();
        assert!(difference.is_none(), "{}", difference.unwrap_or_default());
        println!("{}: {:#?}\n{}", self.producer, self.cells, self.wrong.join("\n"));
    }

    /// Returns the difference to the page, or writes the column there if `UPDATE_EXPECT` is set.
    pub fn difference(&self) -> Option<String> {
        static PAGE: Mutex<()> = Mutex::new(());
        let _one = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = page();
        let text = fs::read_to_string(&path).expect("docs/reference/producers.md");
        let column = 2 + PRODUCERS.iter().position(|name| *name == self.producer).expect("it");
        let cell = |meaning: &str| self.cells.get(meaning).map_or(ABSENT, String::as_str);
        let mut rows = Vec::new();
        let lines = text.lines().map(|line| {
            let meaning = MEANINGS.iter().find(|name| line.starts_with(&format!("| {name} |")));
            let Some(meaning) = meaning else { return line.to_owned() };
            rows.push(*meaning);
            let mut cells: Vec<&str> = line.split('|').map(str::trim).collect();
            cells.resize(PRODUCERS.len() + 3, "");
            cells[column] = cell(meaning);
            format!("| {} |", cells[1..cells.len() - 1].join(" | "))
        });
        let new = lines.collect::<Vec<_>>().join("\n") + "\n";
        assert_eq!(rows, MEANINGS, "rows of {}", path.display());
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, &new).expect("written");
            return None;
        }
        let is_said = |meaning: &&'static str| {
            let line = text.lines().find(|line| line.starts_with(&format!("| {meaning} |")));
            let said = line.and_then(|line| line.split('|').nth(column)).map_or("", str::trim);
            let here = cell(meaning);
            // A live recording may have nothing to compare, or nothing that is certain.
            if here == ABSENT && said != ABSENT {
                println!("SKIPPED: {} {meaning}: nothing to compare", self.producer);
            }
            here == ABSENT || here.split(", ").all(|word| said.split(", ").any(|of| of == word))
        };
        let wrong = self.wrong.join("\n");
        let is_same = MEANINGS.iter().all(is_said);
        (!is_same).then(|| format!("{}: {} is not:\n{new}\n{wrong}", path.display(), self.producer))
    }
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/producers.md")
}
