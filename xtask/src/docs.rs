// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the commands in the documents, so that none of them is wrong.
//!
//! A block marked `sh` is run as one shell script, in an empty folder that the
//! blocks of a page share, with `lat` on the path; a block that must be run
//! from a clone (`./x …`) is marked `console` and not run here: the first of
//! those commands is the one that leads here. The block marked `text demo` shows what
//! `lat demo` prints; all but its numbers is compared with what it prints now.

use crate::generate;
use crate::process;
use crate::steps::{Outcome, Step};
use crate::workspace;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Every `sh` block of the pages for users runs and ends with 0.
pub const STEP: Step = Step { name: "docs", run };

const PAGES: [&str; 5] =
    ["README.md", "docs/start.md", "docs/tutorial.md", "docs/cookbook.md", "docs/faq.md"];

fn run() -> Outcome {
    let lat = match generate::lat() {
        Ok(lat) => lat,
        Err(error) => return Outcome::fail(error),
    };
    let mut outcome = Outcome::default();
    for page in PAGES {
        let Ok(text) = std::fs::read_to_string(workspace::root().join(page)) else {
            outcome.add(Outcome::fail(format!("{page}: missing")));
            continue;
        };
        let name = format!("docs-{}", page.replace(['/', '.'], "-"));
        match workspace::fresh_folder(&name) {
            Ok(folder) => {
                for (line, script) in blocks(&text, "sh") {
                    outcome.add(run_block(&format!("{page}:{line}"), &script, &folder, &lat));
                }
                for (line, shown) in blocks(&text, "text demo") {
                    outcome.add(compare_demo(&format!("{page}:{line}"), &shown, &folder, &lat));
                }
            }
            Err(error) => outcome.add(Outcome::fail(error)),
        }
    }
    outcome
}

fn run_block(place: &str, script: &str, folder: &Path, lat: &Path) -> Outcome {
    let missing: Vec<&str> = ["babeltrace2", "redis-server", "sysbench", "zstd", "python3", "cc"]
        .into_iter()
        .filter(|tool| script.contains(tool) && !workspace::have(tool))
        .collect();
    if !missing.is_empty() {
        return Outcome::skip(format!("{place}: no {} here", missing.join(", ")));
    }
    let mut shell = Command::new("bash");
    shell
        .args(["-e", "-u", "-o", "pipefail", "-c", script])
        .current_dir(folder)
        .env("PATH", path_with(lat))
        .env("LATERALIS_SOURCE", workspace::root());
    match process::run(&mut shell, "docs") {
        Ok(finished) if finished.success() => Outcome::pass(),
        Ok(finished) => Outcome::fail(format!("{place}: it fails\n{}", finished.tail(20))),
        Err(error) => Outcome::fail(format!("{place}: {error}")),
    }
}

/// The PATH of a user who has installed this `lat`.
fn path_with(lat: &Path) -> OsString {
    let mut path = lat.parent().unwrap_or(Path::new("")).as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Compares a block of output with what `lat demo` prints, numbers left out.
fn compare_demo(place: &str, shown: &str, folder: &Path, lat: &Path) -> Outcome {
    let mut demo = Command::new(lat);
    demo.arg("demo").current_dir(folder).env("PATH", path_with(lat));
    match process::run(&mut demo, "docs-demo") {
        Ok(finished) if skeleton(&finished.output) == skeleton(shown) => Outcome::pass(),
        Ok(finished) => Outcome::fail(format!(
            "{place}: lat demo prints something else; paste this:\n{}",
            finished.output
        )),
        Err(error) => Outcome::fail(format!("{place}: {error}")),
    }
}

/// The words of a text; numbers and other values that vary between runs are `#`.
fn skeleton(text: &str) -> String {
    let units = ["ns", "µs", "ms", "s", "B", "KiB", "MiB", "k", "kept", "NOT", "KEPT"];
    let words = text.split_whitespace().map(|word| {
        let bare = word.trim_end_matches([',', ':']);
        let varies = units.contains(&bare) || bare.chars().all(|c| c.is_ascii_digit() || c == '.');
        if varies { "#" } else { word }
    });
    let mut words: Vec<&str> = words.collect();
    words.dedup_by(|next, previous| *next == "#" && *previous == "#");
    words.join(" ")
}

/// The blocks of a page with a mark, and the line at which each begins.
fn blocks(text: &str, mark: &str) -> Vec<(usize, String)> {
    let begin = format!("```{mark}");
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        match &mut open {
            None if line == begin => open = Some((index + 2, String::new())),
            None => {}
            Some(_) if line == "```" => found.extend(open.take()),
            Some((_, script)) => {
                script.push_str(line);
                script.push('\n');
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{blocks, skeleton};

    #[test]
    fn only_shell_blocks_are_run() {
        let page = "text\n```console\n./x demo\n```\n```sh\nlat info\nlat stats\n```\n";
        assert_eq!(blocks(page, "sh"), [(6, "lat info\nlat stats\n".to_string())]);
    }
    #[test]
    fn numbers_and_units_do_not_count_but_words_do() {
        assert_eq!(skeleton("work  4 000  1.25 ms  kept"), skeleton("work 9 3 µs NOT kept"));
        assert_ne!(skeleton("work 4"), skeleton("wait 4"));
    }
}
