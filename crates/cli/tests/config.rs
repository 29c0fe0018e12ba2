// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file of settings: what it sets, what comes before it, and when it is refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::hostile_text;
use crate::place::Place;

/// A place with a folder for the file.
struct Home(Place);

impl Home {
    fn new() -> Self {
        let home = Self(Place::new());
        fs::create_dir_all(home.folder()).expect("a folder");
        home
    }

    fn folder(&self) -> PathBuf {
        self.0.0.join("config/lateralis")
    }

    fn file(&self) -> PathBuf {
        self.folder().join("config.toml")
    }

    fn with(text: &str) -> Self {
        let home = Self::new();
        fs::write(home.file(), text).expect("a file");
        home
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lat"));
        command
            .args(arguments)
            .current_dir(&self.0.0)
            .env("LATERALIS_DIR", self.0.0.join("areas"))
            .env("XDG_CACHE_HOME", self.0.0.join("cache"))
            .env("XDG_CONFIG_HOME", self.0.0.join("config"))
            .stdin(Stdio::null());
        command
    }

    fn lat(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("lat can be started")
    }

    /// Exit code, standard output and standard error.
    fn said(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.lat(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn settings(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.lat(&[&["config", "--json"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
        document["settings"].as_array().expect("a list").clone()
    }
}

#[test]
fn an_option_comes_before_the_environment_that_before_the_file_that_before_what_is_built_in() {
    let home = Home::with("[record]\noutput = \"from-file\"\nquiet = true\n");
    let made = |path: &str| home.0.0.join(path).join("report.json").is_file();
    let record = |words: &[&str], variable: Option<&str>, program: &str| {
        let all = [&["record"][..], words, &["--", program]].concat();
        let output = home.command(&all).envs(variable.map(|v| ("LATERALIS_OUTPUT", v))).output();
        let output = output.expect("lat can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stderr
    };
    let _ = record(&["-o", "from-option"], Some("from-environment"), "true");
    assert_eq!(
        (made("from-option"), made("from-environment"), made("from-file")),
        (true, false, false)
    );
    let _ = record(&[], Some("from-environment"), "true");
    assert_eq!((made("from-environment"), made("from-file")), (true, false));
    // A flag of the file.
    assert_eq!(record(&[], None, "true"), b"");
    assert!(made("from-file") && !made("lateralis-true"));
    assert_ne!(record(&["--no-config"], None, "true"), b"");
    assert!(made("lateralis-true"));
    // One of another command is not this one's.
    let _ = home.lat(&["top", "--every", "100ms", "--", "true"]);
    assert_eq!(home.settings(&[]).len(), 2);
}

#[test]
fn values_are_those_of_the_command_line() {
    let place = Home::with(
        "color = \"always\"\n[info]\njson = true\n[stats]\nsection = \"losses,events\"\n\
         [print]\nevent = [\"*span*\", \"*async*\"]\n[flow.stacks]\nat-least = 2.5\n\
         [run-script]\n",
    );
    fs::write(place.0.0.join("c.json"), hostile_text::chrome()).expect("a trace");
    let (code, info, _) = place.said(&["info", "c.json"]);
    assert_eq!(code, Some(0));
    assert!(serde_json::from_str::<Value>(&info).is_ok(), "{info}");
    let (_, stats, _) = place.said(&["stats", "c.json"]);
    let (_, chosen, _) = place.said(&[
        "--no-config",
        "stats",
        "c.json",
        "--section",
        "losses,events",
        "--color=always",
    ]);
    assert_eq!(stats, chosen);
    assert!(stats.contains('\x1b'));
    let (_, printed, _) = place.said(&["print", "c.json"]);
    let (_, spans, _) =
        place.said(&["--no-config", "print", "c.json", "--event", "*span*", "--event", "*async*"]);
    let (_, all, _) = place.said(&["--no-config", "print", "c.json"]);
    assert_eq!(printed, spans);
    assert!(printed.lines().count() >= 3 && printed.lines().count() < all.lines().count());
    // The option is in place of the list, not added to it.
    let (_, one, _) = place.said(&["print", "c.json", "--event", "*span*"]);
    let (_, alone, _) = place.said(&["--no-config", "print", "c.json", "--event", "*span*"]);
    assert_eq!(one, alone);
    let rows = place.settings(&[]);
    let row = |option: &str| rows.iter().find(|row| row["option"] == option).cloned();
    let stacks = row("at-least").expect("a row");
    assert_eq!((&stacks["command"], &stacks["line"]), (&"flow stacks".into(), &9.into()));
    assert_eq!((&stacks["values"][0], &stacks["origin"]), (&"2.5".into(), &"file".into()));
    let (_, page, _) = place.said(&["--color=never", "config"]);
    let line = page.lines().find(|line| line.contains("--at-least")).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["flow", "stacks", "--at-least", "2.5", "line", "9"], "{page}");
    let output = place.command(&["config"]).env("LATERALIS_BUFFER", "8M").output().expect("lat");
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = page.lines().find(|line| line.contains("record ")).unwrap_or_default();
    assert!(line.contains("--buffer") && line.ends_with("LATERALIS_BUFFER"), "{page}");
}

#[test]
fn every_option_of_every_command_can_be_set() {
    let home = Home::new();
    let all = home.settings(&["--all"]);
    assert!(all.len() > 250, "{}", all.len());
    let mut text = String::new();
    let mut count = 0;
    for row in &all {
        let (command, option) = (row["command"].as_str().unwrap(), row["option"].as_str().unwrap());
        let value = row["values"][0].as_str();
        let Some(value) = value else { continue };
        let value = if ["true", "false"].contains(&value) {
            value.to_owned()
        } else {
            format!("{value:?}")
        };
        let dotted = command.split(' ').filter(|name| !name.is_empty());
        let key: Vec<&str> = dotted.chain([option]).collect();
        text += &format!("{} = {value}\n", key.join("."));
        count += 1;
    }
    assert!(count > 100, "{text}");
    fs::write(home.file(), &text).expect("a file");
    let (code, _, said) = home.said(&["config"]);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{text}");
    let set = home.settings(&[]);
    assert_eq!(set.len(), count);
    for (row, before) in set.iter().zip(all.iter().filter(|row| row["values"][0].is_string())) {
        assert_eq!((&row["option"], &row["origin"]), (&before["option"], &"file".into()));
        assert_eq!(row["values"], before["values"], "{row}");
    }
}

#[test]
fn unknown_keys_are_warnings_with_their_line_and_the_nearest_name() {
    let home = Home::with(
        "[record]\nbuffer = \"1M\"\nbufer = \"2M\"\n\n[recrod]\nx = 1\n[stats]\nqqq = 1\n",
    );
    let (code, _, said) = home.said(&["record", "--", "true"]);
    assert_eq!(code, Some(0), "{said}");
    let path = home.file().display().to_string();
    for line in [
        format!("warning: unknown key: {path}:3: [record] bufer: did you mean buffer?\n"),
        format!("warning: unknown key: {path}:5: recrod: did you mean record?\n"),
        format!(
            "warning: unknown key: {path}:8: [stats] qqq: lat stats --help lists the options\n"
        ),
    ] {
        assert!(said.contains(&line), "{said}");
    }
    assert_eq!(said.matches("warning: unknown key").count(), 3, "{said}");
    let (code, ..) = home.said(&["config"]);
    assert_eq!(code, Some(1));
    let (_, _, said) = home.said(&["--no-config", "info", "/none"]);
    assert!(!said.contains("warning"), "{said}");
    // Positions, hidden options and those that only make sense on the command line are none.
    let home = Home::with("no-config = true\n[top]\nwhen = \"x\"\n[info]\ntraces = \"x\"\n");
    let (_, _, said) = home.said(&["man"]);
    assert_eq!(said.matches("warning: unknown key").count(), 3, "{said}");
}

#[test]
fn what_is_no_value_is_an_error_with_its_line() {
    for (text, line, part) in [
        (
            "[record]\nbuffer = \"4 parsecs\"\n",
            2,
            "[record] buffer: 4 parsecs: unknown unit: parsecs",
        ),
        ("color = \"pink\"\n", 1, "color: pink: expected one of auto, always, never"),
        ("[info]\n\njson = \"yes\"\n", 3, "[info] json: expected true or false"),
        ("[record]\nbuffer = true\n", 2, "[record] buffer: expected a text or a number"),
        ("[record]\nbuffer = [\"1M\", \"2M\"]\n", 2, "expected one value"),
        ("[record]\nbuffer = { a = 1 }\n", 2, "unknown key"),
        ("[record]\nbuffer = 1979-05-27\n", 2, "expected a text or a number"),
        ("[[record]]\nbuffer = 1\n", 1, "unknown key"),
        ("[record]\nbuffer = \"1M\nx\"\n", 3, "cannot read settings"),
        ("a = 1\na = 2\n", 2, "cannot read settings"),
        ("\u{0}", 1, "cannot read settings"),
        ("[record", 1, "cannot read settings"),
    ] {
        let home = Home::with(text);
        let (code, out, said) = home.said(&["man"]);
        assert!(
            said.contains(part) && said.contains(&format!("config.toml:{line}: ")),
            "{text}: {said}"
        );
        let is_warning = part == "unknown key";
        assert_eq!(code, Some(if is_warning { 0 } else { 2 }), "{text}: {said}");
        assert_eq!(out.is_empty(), !is_warning, "{text}");
        assert!(said.lines().count() == 1 && !said.contains("panicked"), "{said}");
        assert_eq!(home.said(&["man", "--no-config"]).0, Some(0));
    }
    let deep = format!("a = {}", "[".repeat(60_000));
    for bytes in [&b"[record]\n\xff"[..], deep.as_bytes(), &vec![b'#'; 65 << 10]] {
        let home = Home::new();
        fs::write(home.file(), bytes).expect("a file");
        let (code, _, said) = home.said(&["man"]);
        assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.starts_with("error: cannot read settings: "), "{said}");
    }
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let refused = |home: &Home, part: &str| {
        let (code, out, said) = home.said(&["man"]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{said}");
        assert!(
            said.starts_with("error: cannot trust settings: ") && said.contains(part),
            "{said}"
        );
        assert_eq!(home.said(&["--no-config", "man"]).0, Some(0));
    };
    let taken = |home: &Home| {
        let (code, _, said) = home.said(&["man"]);
        assert_eq!((code, said.as_str()), (Some(0), ""));
        assert_eq!(home.settings(&[]).len(), 1);
    };
    let mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    };
    let home = Home::with("[record]\nbuffer = \"1M\"\n");
    taken(&home);
    for bits in [0o620, 0o602, 0o666] {
        mode(&home.file(), bits);
        refused(&home, &format!("config.toml: other users can write to it (mode {bits:o}"));
    }
    mode(&home.file(), 0o600);
    taken(&home);
    mode(&home.folder(), 0o777);
    refused(&home, "lateralis: other users can write to it");
    // As in /tmp, other users cannot replace the file.
    mode(&home.folder(), 0o1777);
    taken(&home);
    mode(&home.folder(), 0o755);
    // A link is as good as what it leads to, and where that is.
    let elsewhere = home.0.0.join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    fs::rename(home.file(), elsewhere.join("x")).expect("a file");
    symlink(elsewhere.join("x"), home.file()).expect("a link");
    taken(&home);
    mode(&elsewhere, 0o777);
    refused(&home, "elsewhere: other users can write to it");
    mode(&elsewhere, 0o700);
    if chown(elsewhere.join("x"), Some(65534), None).is_ok() {
        refused(&home, "it belongs to user 65534");
    }
    // What is no file is not waited for.
    fs::remove_file(home.file()).expect("a link");
    rustix::fs::mkfifoat(rustix::fs::CWD, home.file(), rustix::fs::Mode::RUSR).expect("a FIFO");
    let (code, _, said) = home.said(&["man"]);
    assert!(code == Some(2) && said.contains("it is no regular file"), "{said}");
}

#[test]
fn without_a_file_or_a_home_nothing_is_said() {
    let home = Home::new();
    let (code, page, said) = home.said(&["config"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(page.contains("config.toml (there is none)"), "{page}");
    let mut command = home.command(&["config"]);
    let output = command.env_remove("XDG_CONFIG_HOME").env_remove("HOME").output().expect("lat");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    // A path that is not absolute is none; then it is in the home.
    fs::create_dir_all(home.0.0.join(".config/lateralis")).expect("a folder");
    fs::write(home.0.0.join(".config/lateralis/config.toml"), "color = \"always\"\n")
        .expect("a file");
    let mut command = home.command(&["config"]);
    let output =
        command.env("XDG_CONFIG_HOME", "config").env("HOME", &home.0.0).output().expect("lat");
    assert!(output.stdout.contains(&0x1b), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn options_of_all_commands_come_before_or_after_the_command() {
    let home = Home::with("");
    fs::write(home.0.0.join("s.js"), "activity('x').begin('*LOCK').end('*UNLOCK');")
        .expect("a file");
    let record =
        home.said(&["--color", "never", "record", "-q", "-o", "lateralis-r", "true", "--color"]);
    assert_eq!(record.0, Some(0), "{record:?}");
    // The recording that is not named is put before the script, and after all for others.
    for command in [&["run-script", "s.js"][..], &["info"]] {
        let plain = home.said(command);
        assert!(plain.2.contains("reading lateralis-r"), "{plain:?}");
        for before in
            [&["--color", "never"][..], &["--no-config"], &["--color=auto", "--no-config"]]
        {
            assert_eq!(home.said(&[before, command].concat()), plain, "{before:?} {command:?}");
            assert_eq!(home.said(&[command, before].concat()), plain, "{before:?} {command:?}");
        }
    }
}
