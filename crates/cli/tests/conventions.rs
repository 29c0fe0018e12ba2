// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conventions of every command: exit codes, closed pipes, plain text if the output is not a terminal.

use std::process::{Command, Output, Stdio};

fn lat(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat"));
    command.args(arguments).stdin(Stdio::null()).output().expect("lat can be started")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the names of all visible commands, from the overview.
fn commands() -> Vec<String> {
    let overview = stdout(&lat(&[]));
    let lines = overview.lines().filter_map(|line| line.strip_prefix("  lat "));
    lines.filter_map(|line| line.split_whitespace().next()).map(ToString::to_string).collect()
}

#[test]
fn without_a_command_lat_shows_the_commands_and_succeeds() {
    let output = lat(&[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(commands().contains(&"completions".to_string()), "{}", stdout(&output));
}

#[test]
fn every_command_explains_itself() {
    for command in commands() {
        let output = lat(&[&command, "--help"]);
        assert_eq!(output.status.code(), Some(0), "lat {command} --help");
        assert!(stdout(&output).to_lowercase().contains("usage:"), "lat {command} --help");
        let output = lat(&["man", &command]);
        assert!(stdout(&output).contains(".SH SYNOPSIS"), "lat man {command}");
    }
}

#[test]
fn wrong_usage_is_exit_code_2_and_names_what_was_wrong() {
    for arguments in [&["no-such-command"][..], &["man", "no-such-command"], &["--no-such-option"]]
    {
        let output = lat(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
        assert!(stderr(&output).contains("no-such-"), "{}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_closed_pipe_is_success() {
    for arguments in [&[][..], &["completions", "bash"], &["man"], &["reference"], &["--help"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_lat"))
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("lat can be started");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        assert!(output.stderr.is_empty(), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn no_colour_where_there_is_no_terminal() {
    for arguments in [&[][..], &["--help"], &["no-such-command"], &["man", "man"]] {
        let output = lat(arguments);
        let text = stdout(&output) + &stderr(&output);
        assert!(!text.contains('\x1b'), "{arguments:?}: {text:?}");
    }
}

#[test]
fn version_is_that_of_the_package() {
    let expected = format!("lat {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&lat(&["--version"])), expected);
}
