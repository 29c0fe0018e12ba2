// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formatting, warnings and tests of `lat-sql`, a workspace of its own.
//!
//! Its engine takes some 25 minutes of two cores to build, and a few more for clippy. It is built
//! once, beside what the workspace has built, and a stamp says of what. Where the stamp is that
//! of these sources the rest takes minutes, and CI does it; elsewhere CI says what to do.

use crate::process;
use crate::rust::{cargo, missing, outcome, simple, tests};
use crate::steps::{Outcome, Step};
use crate::workspace;
use std::fs;
use std::path::{Path, PathBuf};

/// All of it, where the engine is built already or [`WANTED`] is set.
pub const IF_BUILT: Step = Step { name: "sql", run: if_built };
/// All of it, however long it takes.
pub const ALL: Step = Step { name: "sql", run: all };

/// What the engine needs; as crates/sql/Cargo.toml says.
const RUST_MINOR: usize = 94;

/// If this is set, the engine is built, however long it takes.
const WANTED: &str = "LATERALIS_SQL_TESTS";

fn if_built() -> Outcome {
    if std::env::var_os(WANTED).is_some() {
        return all();
    }
    match Engine::of_sources() {
        Ok(engine) if engine.is_built() => all(),
        Ok(_) => Outcome::skip(format!(
            "lat-sql: its engine is not built here, or of other crates: `cargo xtask sql` does \
             that in half an hour, or {WANTED}=1"
        )),
        Err(why) => Outcome::fail(why),
    }
}

fn all() -> Outcome {
    let version = cargo(&["--version"]).output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let minor = version.ok().and_then(|text| minor(&text));
    if minor.is_some_and(|minor| minor < RUST_MINOR) {
        return Outcome::skip(format!("lat-sql: Rust is too old: 1.{RUST_MINOR} is needed"));
    }
    let engine = match Engine::of_sources() {
        Ok(engine) => engine,
        Err(why) => return Outcome::fail(why),
    };
    let there = |arguments: &[&str]| {
        let mut command = cargo(arguments);
        command.current_dir(sources()).env("CARGO_TARGET_DIR", target());
        // Of `lat-sql` itself, and nothing below it: it is compiled in a fraction of the time, for
        // generic code of the engine is then used as the engine has it.
        command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        command
    };
    let check = |arguments: &[&str], log_name: &str, advice: &str| {
        outcome(process::run(&mut there(arguments), log_name), advice)
    };
    let mut sum = match missing("fmt", "rustfmt") {
        Some(skipped) => skipped,
        None => check(&["fmt", "--check"], "sql-fmt", "not formatted: cd crates/sql; cargo fmt"),
    };
    // One run of a program may take 25 minutes; what is built by then stays built.
    let build = ["test", "--locked", "--no-run"];
    let built = (0..3).find_map(|_| {
        let ran = process::run(&mut there(&build), "sql-build");
        (!matches!(&ran, Ok(ran) if ran.status.is_none())).then_some(ran)
    });
    let is_built = match built {
        Some(ran) => {
            let built = outcome(ran, "lat-sql: it cannot be built");
            let is_built = built.failures.is_empty();
            sum.add(built);
            is_built
        }
        None => {
            sum.add(Outcome::fail("lat-sql: it cannot be built in an hour"));
            false
        }
    };
    if !is_built {
        return sum;
    }
    let lints = ["clippy", "--locked", "--all-targets", "--", "-D", "warnings"];
    sum.add(match missing("clippy", "clippy") {
        Some(skipped) => skipped,
        None => check(&lints, "sql-clippy", "clippy found something in crates/sql"),
    });
    if let Err(why) = engine.note_built() {
        sum.add(Outcome::fail(why));
    }
    // Its functions ask `lat`, and its tests compare them with it.
    sum.add(simple(&["build", "--locked", "--bin", "lat"], "sql-lat", "lat cannot be built"));
    let arguments = ["test", "--locked", "--no-fail-fast", "--", "--show-output"];
    let lat = workspace::target().join("debug/lat");
    sum.add(tests(there(&arguments).env("LATERALIS_LAT", lat), "sql"));
    sum
}

fn sources() -> PathBuf {
    workspace::root().join("crates/sql")
}

/// Where it is built: beside the workspace's folder.
fn target() -> PathBuf {
    let mut target = workspace::target().into_os_string();
    target.push("-sql");
    target.into()
}

/// What decides whether crates of others must be built again.
struct Engine {
    stamp: String,
    file: PathBuf,
}

impl Engine {
    /// That of these sources and this compiler.
    ///
    /// Errors: a sentence, if either cannot be read.
    fn of_sources() -> Result<Self, String> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
        let rustc = std::process::Command::new(rustc).arg("-vV").output();
        let rustc = rustc.map_err(|error| format!("rustc: {error}"))?;
        let flags = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"].map(|name| {
            let value = std::env::var_os(name).unwrap_or_default();
            format!("{name}={}\n", value.to_string_lossy())
        });
        let stamp = [
            String::from_utf8_lossy(&rustc.stdout).into_owned(),
            flags.concat(),
            // Features and profiles.
            read(&sources().join("Cargo.toml"))?,
            others(&read(&sources().join("Cargo.lock"))?),
        ];
        Ok(Self { stamp: stamp.concat(), file: target().join("debug/engine-stamp") })
    }

    fn is_built(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|stamp| stamp == self.stamp)
    }

    fn note_built(&self) -> Result<(), String> {
        fs::write(&self.file, &self.stamp)
            .map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

/// The packages of a Cargo.lock that come from elsewhere: ours are built within minutes.
fn others(lock: &str) -> String {
    let packages = lock.split("[[package]]").skip(1);
    let mut kept = String::new();
    for package in packages.filter(|package| package.contains("\nsource = ")) {
        let wanted = |line: &&str| {
            ["name = ", "version = ", "checksum = "].iter().any(|key| line.starts_with(key))
        };
        package.lines().filter(wanted).for_each(|line| {
            kept.push_str(line);
            kept.push('\n');
        });
    }
    kept
}

/// 94 of `cargo 1.94.0 (…)`.
fn minor(version: &str) -> Option<usize> {
    version.split_whitespace().nth(1)?.strip_prefix("1.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_cargo_are_read() {
        assert_eq!(minor("cargo 1.95.0 (f2d3ce0bd 2026-03-21)"), Some(95));
        assert_eq!(minor("cargo 1.96.0-nightly"), Some(96));
        assert_eq!(minor("rustup"), None);
    }

    #[test]
    fn a_stamp_tells_of_what_comes_from_elsewhere_only() {
        let own = "[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let other = "[[package]]\nname = \"engine\"\nversion = \"55.2.0\"\n\
                     source = \"registry+https\"\nchecksum = \"1f\"\ndependencies = [\n \"x\",\n]\n";
        let lock =
            |version: &str| format!("version = 4\n\n{own}\n{}", other.replace("55.2.0", version));
        let stamp = others(&lock("55.2.0"));
        assert_eq!(stamp, "name = \"engine\"\nversion = \"55.2.0\"\nchecksum = \"1f\"\n");
        assert_eq!(stamp, others(&lock("55.2.0").replace("0.1.0", "0.2.0")));
        assert_ne!(stamp, others(&lock("55.3.0")));
    }
}
