// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What comes from elsewhere: from where, with which hash, under which licence.
//!
//! The lists are in `deny.toml`, which cargo-deny reads as well. The checks here need nothing but
//! cargo and always run; cargo-deny runs where it is installed, and its look at known faults where
//! their list can be had.

use crate::licences;
use crate::process;
use crate::rust::cargo;
use crate::steps::{Outcome, Step};
use crate::workspace;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Sources, hashes and licences of everything that is fetched.
pub const STEP: Step = Step { name: "supply", run };

fn run() -> Outcome {
    let rules = match Rules::read() {
        Ok(rules) => rules,
        Err(why) => return Outcome::fail(why),
    };
    let files = match workspace::files() {
        Ok(files) => files,
        Err(why) => return Outcome::fail(why),
    };
    let mut outcome = Outcome::default();
    for path in &files {
        let name = path.to_string_lossy();
        let text = || std::fs::read_to_string(workspace::root().join(path)).unwrap_or_default();
        if path.ends_with("Cargo.lock") {
            outcome.add(Outcome::of(unlocked(&name, &text(), &rules)));
            outcome.add(licences_of(path, &rules));
        } else if path.ends_with("package-lock.json") {
            outcome.add(Outcome::of(without_hash(&name, &text(), &rules)));
        } else if path.ends_with("package.json") {
            let lock = path.with_file_name("package-lock.json");
            let has_lock = files.contains(&lock);
            outcome.add(Outcome::of(match has_lock {
                true => Vec::new(),
                false => vec![format!("{name}: no package-lock.json beside it")],
            }));
        }
    }
    outcome.add(by_cargo_deny());
    outcome
}

/// The lists of `deny.toml`.
pub struct Rules {
    /// Licences that are enough; the first is preferred where a package offers several.
    pub licences: Vec<String>,
    registries: Vec<String>,
    banned: Vec<String>,
}

impl Rules {
    /// Reads them. Errors: a sentence.
    pub fn read() -> Result<Self, String> {
        let path = workspace::root().join("deny.toml");
        let text = std::fs::read_to_string(&path).map_err(|why| format!("deny.toml: {why}"))?;
        Self::parse(&text).ok_or_else(|| "deny.toml: its lists cannot be read".to_string())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut licences = strings(section(text, "licenses")?, "allow")?;
        // It needs one text for all packages; all others name their owners, each in its own.
        licences.sort_by_key(|name| name != "Apache-2.0");
        let sources = section(text, "sources")?;
        let banned = section(text, "bans")?.lines().filter_map(|line| {
            line.trim().strip_prefix("{ crate = \"")?.split('"').next().map(String::from)
        });
        Some(Self {
            licences,
            registries: strings(sources, "allow-registry")?,
            banned: banned.collect(),
        })
    }
}

/// The text from after the heading of a table to the next.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(&format!("\n[{name}]\n"))?;
    Some(behind.split_once("\n[").map_or(behind, |(inside, _)| inside))
}

/// The texts of a list, on one line or several.
fn strings(section: &str, key: &str) -> Option<Vec<String>> {
    let begin = format!("{key} = [");
    let at = section.lines().position(|line| line.starts_with(&begin))?;
    let from: String = section.lines().skip(at).collect::<Vec<_>>().join(" ");
    let (list, _) = from.strip_prefix(&begin)?.split_once(']')?;
    Some(list.split('"').skip(1).step_by(2).map(String::from).collect())
}

/// Packages of a lock file that do not come from an allowed registry, come without a hash, or are
/// not wanted at all.
fn unlocked(name: &str, text: &str, rules: &Rules) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in text.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key));
            line.map(|value| value.trim_matches([' ', '=', '"']))
        };
        let which = value("name").unwrap_or("a package without a name");
        if rules.banned.iter().any(|banned| banned == which) {
            complaints.push(format!("{name}: {which}: deny.toml has why it is not wanted"));
        }
        let Some(source) = value("source") else {
            continue;
        };
        let registry = source.strip_prefix("registry+").unwrap_or("");
        if !rules.registries.iter().any(|allowed| allowed == registry) {
            complaints
                .push(format!("{name}: {which}: comes from {source}: see [sources] in deny.toml"));
        }
        if value("checksum").is_none_or(|sum| sum.len() != 64) {
            complaints.push(format!("{name}: {which}: has no hash: run cargo update -p {which}"));
        }
    }
    complaints
}

/// Packages of npm without the hash of their content, under a licence that is not allowed, or named
/// by an address.
fn without_hash(name: &str, text: &str, rules: &Rules) -> Vec<String> {
    let Ok(lock) = serde_json::from_str::<Value>(text) else {
        return vec![format!("{name}: cannot be read")];
    };
    let Some(packages) = lock["packages"].as_object().filter(|packages| !packages.is_empty())
    else {
        return vec![format!("{name}: has no packages: npm 7 or newer writes it anew")];
    };
    let mut complaints = Vec::new();
    for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
        if !package["integrity"].as_str().is_some_and(|hash| hash.starts_with("sha512-")) {
            complaints.push(format!("{name}: {path}: has no hash of its content: npm takes any"));
        }
        if package.get("resolved").is_some_and(|address| {
            !address.as_str().unwrap_or("").starts_with("https://registry.npmjs.org/")
        }) {
            complaints.push(format!("{name}: {path}: names another place than npm's registry"));
        }
        let licence = package["license"].as_str().unwrap_or("");
        // What only builds or tests is neither linked nor passed on.
        if package["dev"] != true && licences::chosen(licence, &rules.licences).is_none() {
            complaints.push(format!("{name}: {path}: licence {licence:?}: see deny.toml"));
        }
    }
    complaints
}

/// Licences of what a lock file names. Packages that are not fetched have none to look at.
fn licences_of(lock: &Path, rules: &Rules) -> Outcome {
    let name = lock.to_string_lossy();
    match metadata(&lock.with_file_name("Cargo.toml")) {
        Ok(metadata) => Outcome::of(refused(&name, &metadata, rules)),
        // The workspace itself is what is built here: all of it is there. Of others, what is fetched
        // or not says nothing of a lock file that was not changed with the manifests.
        Err(why) if lock == Path::new("Cargo.lock") || why.contains("--locked was passed") => {
            Outcome::fail(format!("{name}: {why}"))
        }
        Err(_) => Outcome::skip(format!(
            "licences of {name}: its packages are not fetched: cargo fetch --manifest-path {}",
            lock.with_file_name("Cargo.toml").display()
        )),
    }
}

fn refused(name: &str, metadata: &Value, rules: &Rules) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let licence = package["license"].as_str().unwrap_or("");
        let is_ours = package["source"].is_null();
        let is_fine = match is_ours {
            true => licence == "Apache-2.0 OR MIT",
            false => licences::chosen(licence, &rules.licences).is_some(),
        };
        if !is_fine {
            let which = package["name"].as_str().unwrap_or("");
            complaints.push(format!("{name}: {which}: licence {licence:?}: see deny.toml"));
        }
    }
    complaints
}

/// What cargo knows of the packages of a manifest, for the system that is built for. Packages of the
/// workspace are fetched, which its next build does anyway; of others nothing is.
///
/// Errors: a sentence, where packages are not there.
pub fn metadata(manifest: &Path) -> Result<Value, String> {
    let offline = (manifest != Path::new("Cargo.toml")).then_some("--offline");
    let manifest: PathBuf = workspace::root().join(manifest);
    let output = cargo(&["metadata", "--format-version", "1", "--locked"])
        .args(offline)
        .args(["--filter-platform", "x86_64-unknown-linux-gnu", "--manifest-path"])
        .arg(&manifest)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)))
}

fn by_cargo_deny() -> Outcome {
    let is_here = cargo(&["deny", "--version"]).output().is_ok_and(|out| out.status.success());
    if !is_here {
        return Outcome::skip("cargo-deny is not installed: cargo install cargo-deny --locked");
    }
    let mut outcome = Outcome::default();
    for manifest in ["Cargo.toml", "crates/python/Cargo.toml", "crates/sql/Cargo.toml"] {
        let name = format!("deny-{}", manifest.replace('/', "-"));
        let deny = |offline: bool, what: &[&str]| {
            let mut command = cargo(&["deny", "--manifest-path", manifest, "--color", "never"]);
            command.args(offline.then_some("--offline"));
            // It finds deny.toml in a folder above the manifest.
            command.arg("check").args(what);
            process::run(&mut command, &name)
        };
        outcome.add(match deny(true, &["licenses", "sources", "bans"]) {
            Ok(ran) if ran.success() => Outcome::pass(),
            Ok(ran) if manifest != "Cargo.toml" && ran.output.contains("--offline") => {
                Outcome::skip(format!("cargo deny: packages of {manifest} are not fetched"))
            }
            Ok(ran) => Outcome::fail(format!("cargo deny: {manifest}\n{}", ran.tail(40))),
            Err(why) => Outcome::fail(why),
        });
        outcome.add(match deny(false, &["advisories"]) {
            Ok(ran) if ran.success() => Outcome::pass(),
            Ok(ran) if ran.output.contains("advisories FAILED") => {
                Outcome::fail(format!("cargo deny: {manifest}\n{}", ran.tail(60)))
            }
            Ok(_) => Outcome::skip(format!(
                "known faults of packages of {manifest}: the list of RustSec cannot be had here"
            )),
            Err(why) => Outcome::fail(why),
        });
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules::parse(
            "\n[licenses]\nallow = [\n    \"ISC\",\n    \"Apache-2.0\",\n]\n\n[sources]\n\
             allow-registry = [\"https://a/index\"]\nallow-git = []\n\n[bans]\ndeny = [\n    \
             { crate = \"bad\", reason = \"x\" },\n]\n\n[advisories]\n",
        )
        .expect("they are all there")
    }

    #[test]
    fn lists_are_read_and_the_licence_with_one_text_comes_first() {
        let rules = rules();
        assert_eq!(rules.licences, ["Apache-2.0", "ISC"]);
        assert_eq!(rules.registries, ["https://a/index"]);
        assert_eq!(rules.banned, ["bad"]);
        assert!(Rules::parse("[bans]\n").is_none());
    }

    #[test]
    fn a_package_from_elsewhere_or_without_hash_is_found() {
        let sum = "0".repeat(64);
        let package = |name: &str, source: &str, sum: &str| {
            format!(
                "[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\n\
                 source = \"{source}\"\n{sum}\n\n"
            )
        };
        let sum = format!("checksum = \"{sum}\"");
        let good = package("a", "registry+https://a/index", &sum);
        let ours = "[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n\n";
        let found = |text: &str| unlocked("l", text, &rules()).len();
        assert_eq!(found(&format!("{good}{ours}")), 0);
        assert_eq!(found(&package("a", "git+https://b/c#12", &sum)), 1);
        assert_eq!(found(&package("a", "registry+https://b/index", &sum)), 1);
        assert_eq!(found(&package("a", "registry+https://a/index", "")), 1);
        assert_eq!(found(&package("bad", "registry+https://a/index", &sum)), 1);
    }

    #[test]
    fn a_package_of_npm_needs_hash_and_licence() {
        let found = |entry: &str| {
            let text = format!("{{\"packages\": {{\"\": {{}}, \"node_modules/a\": {entry}}}}}");
            without_hash("l", &text, &rules()).len()
        };
        assert_eq!(found(r#"{"integrity": "sha512-x", "license": "ISC"}"#), 0);
        assert_eq!(found(r#"{"license": "ISC"}"#), 1);
        assert_eq!(found(r#"{"integrity": "sha1-x", "license": "ISC"}"#), 1);
        assert_eq!(found(r#"{"integrity": "sha512-x", "license": "GPL-3.0-only"}"#), 1);
        assert_eq!(found(r#"{"integrity": "sha512-x", "license": "X", "dev": true}"#), 0);
        let elsewhere = r#"{"integrity": "sha512-x", "license": "ISC", "resolved": "http://a/b"}"#;
        assert_eq!(found(elsewhere), 1);
        assert_eq!(without_hash("l", "{}", &rules()).len(), 1);
        assert_eq!(without_hash("l", "[", &rules()).len(), 1);
    }

    #[test]
    fn a_licence_that_is_not_allowed_is_found() {
        let of = |licence: &str, source: &str| {
            let text = format!(
                r#"{{"packages": [{{"name": "a", "license": "{licence}", "source": {source}}}]}}"#
            );
            refused("l", &serde_json::from_str(&text).expect("it is JSON"), &rules()).len()
        };
        assert_eq!(of("ISC", "\"x\""), 0);
        assert_eq!(of("GPL-3.0-only", "\"x\""), 1);
        assert_eq!(of("", "\"x\""), 1);
        assert_eq!(of("Apache-2.0 OR MIT", "null"), 0);
        assert_eq!(of("MIT", "null"), 1);
    }
}
