// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words that prose and comments of this project avoid, because readers of its field do not
//! expect them (CONTRIBUTING.md). Each folder has an allowance, which only shrinks.

use std::collections::BTreeMap;

/// A word counts if it stands alone: `told`, but not `untold`.
const WORDS: [&str; 15] = [
    "tell",
    "tells",
    "told",
    "telling",
    "nobody",
    "somebody",
    "everybody",
    "anybody",
    "whoever",
    "stands",
    "behind",
    "so many",
    "so much",
    "goes on",
    "went on",
];

/// Number of such words allowed below a path; the longest matching path applies, and 0 elsewhere.
const ALLOWED: &[(&str, usize)] = &[
    ("aquarium/", 1),
    ("bench/", 8),
    ("crates/analysis/", 190),
    ("crates/cli/", 311),
    ("crates/etrace/", 4),
    ("crates/intelpt/", 70),
    ("crates/lanes/", 100),
    ("crates/perfdata/", 70),
    ("crates/recorder/", 450),
    ("crates/reports/", 49),
    ("crates/semantics/", 180),
    ("crates/simulator/", 50),
    ("crates/sql/", 90),
    ("crates/store/", 190),
    ("crates/traces/", 40),
    ("crates/view/", 250),
    ("docs/reference/", 26),
    ("examples/", 2),
    ("tests/", 2),
    ("tracer/c/", 130),
    ("tracer/preload/", 33),
    ("tracer/rust/", 45),
];

/// At most this many places of a folder are listed.
const LISTED: usize = 20;

/// Counts words by folder.
#[derive(Default)]
pub struct Words {
    places: BTreeMap<&'static str, Vec<String>>,
}

impl Words {
    /// Adds the prose of a file: all of Markdown but code, comments of Rust and C.
    pub fn add(&mut self, name: &str, text: &str) {
        if !is_checked(name) {
            return;
        }
        let folder = allowance(name).0;
        let mut is_block = false;
        for (index, line) in text.lines().enumerate() {
            let prose = if name.ends_with(".md") {
                if line.trim_start().starts_with("```") {
                    is_block = !is_block;
                    continue;
                }
                if is_block { None } else { Some(line) }
            } else {
                comment(line)
            };
            for word in prose.map(without_code).iter().flat_map(|prose| found(prose)) {
                let place = format!("{name}:{}: {word}", index + 1);
                self.places.entry(folder).or_default().push(place);
            }
        }
    }

    /// A complaint for each folder above its allowance.
    pub fn complaints(&self) -> Vec<String> {
        let above = self.places.iter().filter_map(|(folder, places)| {
            let allowed = ALLOWED.iter().find(|(path, _)| path == folder).map_or(0, |rule| rule.1);
            let listed = places[..places.len().min(LISTED)].join("\n  ");
            (places.len() > allowed).then(|| {
                let of = if folder.is_empty() { "all other folders" } else { folder };
                format!(
                    "{of}: {} words of the list in xtask/src/words.rs, allowed {allowed}:\n  {listed}",
                    places.len()
                )
            })
        });
        above.collect()
    }
}

fn is_checked(name: &str) -> bool {
    let is_prose = [".md", ".rs", ".c", ".h"].iter().any(|ending| name.ends_with(ending));
    // The changelog is history; the list itself contains the words; generated pages follow their sources.
    let left_out = [
        "CHANGELOG.md",
        "xtask/src/words.rs",
        "docs/third-party.md",
        "docs/reference/cli.md",
        "aquarium/dist/",
        "crates/pleco/suite/",
    ];
    is_prose
        && !left_out.iter().any(|path| name.starts_with(path))
        && !["golden", "fixtures", "seeds"].iter().any(|folder| name.contains(folder))
}

fn allowance(name: &str) -> (&'static str, usize) {
    let matching = ALLOWED.iter().filter(|(path, _)| name.starts_with(path));
    matching.max_by_key(|(path, _)| path.len()).copied().unwrap_or(("", 0))
}

/// The comment of a line of Rust or C.
fn comment(line: &str) -> Option<&str> {
    let trimmed = line.trim_start();
    if trimmed.starts_with("* ") {
        return Some(trimmed);
    }
    ["//", "/*"].iter().filter_map(|mark| line.find(mark)).min().map(|at| &line[at..])
}

/// The line without code in backquotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

fn found(prose: &str) -> Vec<&'static str> {
    let lower = prose.to_lowercase();
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    for word in WORDS {
        for (at, _) in lower.match_indices(word) {
            let before = lower[..at].chars().next_back();
            let after = lower[at + word.len()..].chars().next();
            if !before.is_some_and(is_letter) && !after.is_some_and(is_letter) {
                words.push(word);
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{Words, comment, found, without_code};

    #[test]
    fn finds_whole_words_outside_code() {
        assert_eq!(found("It told whoever stands there"), ["told", "whoever", "stands"]);
        assert_eq!(found("untold, retell, standstill, told_below"), [""; 0]);
        assert_eq!(found(&without_code("reads `told` and tells")), ["tells"]);
        assert_eq!(comment("let x = 1; // nobody"), Some("// nobody"));
        assert_eq!(comment("let told = 1;"), None);
    }

    #[test]
    fn complains_about_folders_above_their_allowance() {
        let mut words = Words::default();
        words.add("README.md", "plain\n```\ntold\n```\n`told`\n");
        words.add("a/b.rs", "let told = \"told\";\n");
        words.add("CHANGELOG.md", "told\n");
        assert_eq!(words.complaints(), [""; 0]);
        words.add("README.md", "It goes on.\n");
        assert_eq!(words.complaints().len(), 1);
        assert!(words.complaints()[0].contains("README.md:1: goes on"), "{:?}", words.complaints());
    }
}
