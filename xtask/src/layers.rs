// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who may depend on whom, and who may touch the system.
//!
//! `layers.toml` beside this crate's manifest is the list of allowed edges; a
//! new edge is a line there, with its reason. What `cargo metadata` says is
//! compared with it. The same file names the sources that may open files, read
//! clocks or start threads; all others get bytes and times as arguments.

use crate::rust;
use crate::steps::{Outcome, Step};
use crate::workspace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Edges and system access are as allowed.
pub const STEP: Step = Step { name: "layers", run };

type Lists = BTreeMap<String, Vec<String>>;

fn run() -> Outcome {
    let allowed = match read() {
        Ok(sections) => sections,
        Err(error) => return Outcome::fail(error),
    };
    let mut outcome = match metadata() {
        Ok(metadata) => Outcome::of(edges(&metadata, &allowed)),
        Err(error) => Outcome::fail(error),
    };
    outcome.add(match system_access(&allowed) {
        Ok(complaints) => Outcome::of(complaints),
        Err(error) => Outcome::fail(error),
    });
    outcome.add(match built_twice() {
        Ok(complaints) => Outcome::of(complaints),
        Err(error) => Outcome::fail(error),
    });
    outcome
}

/// Libraries that `lat` and the tests want with other features. Each of them, and all that is above it,
/// would be compiled once for `lat` and once more for the tests.
fn built_twice() -> Result<Vec<String>, String> {
    let of_lat = chosen_features(&["--package", "lateralis-cli", "--edges", "normal,build"])?;
    let of_tests = chosen_features(&["--workspace", "--edges", "normal,build,dev"])?;
    Ok(of_lat
        .difference(&of_tests)
        .map(|library| {
            format!(
                "layers: {library}: `lat` takes other features than tests do, so it is compiled twice: \
                 choose theirs in crates/cli/Cargo.toml"
            )
        })
        .collect())
}

/// Packages of a tree of dependencies, each with the features chosen for it.
fn chosen_features(of: &[&str]) -> Result<BTreeSet<String>, String> {
    let output = rust::cargo(&["tree", "--locked", "--prefix", "none", "--format", "{p} {f}"])
        .args(of)
        .current_dir(workspace::root())
        .output()
        .map_err(|error| format!("cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    // A package that was listed before ends with ` (*)`.
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.trim_end_matches(" (*)").trim().to_string())
        .filter(|line| !line.is_empty())
        .collect())
}

fn read() -> Result<BTreeMap<String, Lists>, String> {
    let path = workspace::root().join("xtask/layers.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&text)
}

/// Reads the part of TOML that the file uses: `[section]`, `name = ["a", "b"]`
/// on one line, comments.
fn parse(text: &str) -> Result<BTreeMap<String, Lists>, String> {
    let mut sections: BTreeMap<String, Lists> = BTreeMap::new();
    let mut section = String::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        let wrong = || format!("xtask/layers.toml:{}: cannot read: {line}", index + 1);
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.to_string();
            continue;
        }
        let (name, list) = line.split_once('=').ok_or_else(wrong)?;
        let list = list.trim().strip_prefix('[').and_then(|l| l.strip_suffix(']'));
        let values = list
            .ok_or_else(wrong)?
            .split(',')
            .map(|value| value.trim().trim_matches('"').to_string())
            .filter(|value| !value.is_empty())
            .collect();
        let name = name.trim().trim_matches('"').to_string();
        sections.entry(section.clone()).or_default().insert(name, values);
    }
    Ok(sections)
}

fn metadata() -> Result<Value, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .current_dir(workspace::root())
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Compares dependencies between our own packages with the allowed ones. Both
/// directions: an allowance that nothing uses is stale.
fn edges(metadata: &Value, allowed: &BTreeMap<String, Lists>) -> Vec<String> {
    let empty = Lists::new();
    let mut complaints = Vec::new();
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut used: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        if !allowed.get("uses").unwrap_or(&empty).contains_key(name) {
            complaints.push(format!("layers: {name} is not in xtask/layers.toml [uses]"));
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if dependency["path"].is_null() {
                continue;
            }
            let section = if dependency["kind"] == "dev" { "tests-use" } else { "uses" };
            let target = dependency["name"].as_str().unwrap_or_default();
            if target == name {
                // A crate's tests may use it with more features.
                continue;
            }
            used.entry(section).or_default().push((name.to_string(), target.to_string()));
        }
    }
    for section in ["uses", "tests-use"] {
        let used = used.remove(section).unwrap_or_default();
        let lists = allowed.get(section).unwrap_or(&empty);
        for (from, to) in &used {
            if !lists.get(from).is_some_and(|list| list.contains(to)) {
                complaints.push(format!(
                    "layers: {from} uses {to}, which xtask/layers.toml [{section}] does not allow"
                ));
            }
        }
        for (from, list) in lists {
            for to in list {
                if !used.iter().any(|(f, t)| f == from && t == to) {
                    complaints.push(format!(
                        "layers: xtask/layers.toml [{section}] lets {from} use {to}, but it does not"
                    ));
                }
            }
        }
    }
    complaints
}

/// Paths that reach the operating system.
const SYSTEM: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::env::",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
    "println!",
    "libc::",
];

fn system_access(allowed: &BTreeMap<String, Lists>) -> Result<Vec<String>, String> {
    let empty = Lists::new();
    let lists = allowed.get("system").unwrap_or(&empty);
    let mut complaints = Vec::new();
    for path in workspace::files()? {
        let name = path.to_string_lossy().into_owned();
        let Some((package, rest)) =
            name.strip_prefix("crates/").and_then(|n| n.split_once("/src/"))
        else {
            continue;
        };
        let exempt = |pattern: &String| {
            let file = rest.strip_suffix(".rs").unwrap_or(rest);
            pattern == "*" || file == pattern || rest.starts_with(&format!("{pattern}/"))
        };
        if !name.ends_with(".rs") || lists.get(package).is_some_and(|l| l.iter().any(exempt)) {
            continue;
        }
        let text = std::fs::read_to_string(workspace::root().join(&path))
            .map_err(|error| format!("{name}: {error}"))?;
        complaints.extend(system_words(&text).into_iter().map(|(line, word)| {
            format!("{name}:{line}: {word} in a part that does no I/O (xtask/layers.toml [system])")
        }));
    }
    Ok(complaints)
}

/// Lines of non-test code that name something of [`SYSTEM`].
fn system_words(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        let code = line.split("//").next().unwrap_or("");
        for word in SYSTEM {
            if code.contains(word) {
                found.push((index + 1, word));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn complaints(list: &str) -> Vec<String> {
        let metadata = json!({"packages": [
            {"name": "a", "dependencies": []},
            {"name": "b", "dependencies": [
                {"name": "a", "path": "/x/a", "kind": null},
                {"name": "serde", "path": null, "kind": null}]},
        ]});
        edges(&metadata, &parse(list).expect("list is readable"))
    }

    #[test]
    fn listed_edges_are_accepted() {
        assert!(complaints("[uses]\na = []\nb = [\"a\"] # why").is_empty());
    }

    #[test]
    fn unlisted_edges_unused_allowances_and_unknown_packages_are_reported() {
        assert_eq!(complaints("[uses]\na = []\nb = []").len(), 1);
        assert_eq!(complaints("[uses]\na = [\"b\"]\nb = [\"a\"]").len(), 1);
        assert_eq!(complaints("[uses]\nb = [\"a\"]").len(), 1);
    }

    #[test]
    fn system_access_is_seen_in_code_but_not_in_comments_or_tests() {
        let text = "// std::fs\nuse std::fs;\n#[cfg(test)]\nmod t { use std::fs; }\n";
        assert_eq!(system_words(text), [(2, "std::fs")]);
    }
}
