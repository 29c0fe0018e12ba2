// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Colours: on a terminal only, where something is exceeded, lost or uncertain, and in headings. `sed` takes
//! the codes out again, and `script` is the terminal.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lateralis_pleco::ctf::ctf1;

use crate::place::Place;
use crate::{hostile_text, look};

const HEADING: &str = "\x1b[1m";
const PROBLEM: &str = "\x1b[1m\x1b[31m";
const UNCERTAIN: &str = "\x1b[33m";

/// What `lat` prints into a pipe, on both streams.
fn piped(arguments: &[&str], environment: &[(&str, &str)]) -> (Vec<u8>, Vec<u8>) {
    let output = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("lat can be started");
    (output.stdout, output.stderr)
}

/// What `lat` writes to a terminal of 200 columns.
fn on_terminal(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let quoted = arguments.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let lat = env!("CARGO_BIN_EXE_lat");
    let output = Command::new("script")
        .args(["-qec", &format!("stty cols 200; '{lat}' {quoted}"), "/dev/null"])
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("script, of util-linux, can be started");
    String::from_utf8(output.stdout).expect("text").replace("\r\n", "\n")
}

fn without_codes(text: &[u8]) -> Vec<u8> {
    let mut sed = Command::new("sed")
        .args(["-E", r"s/\x1b\[[0-9;]*m//g"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sed");
    let mut input = sed.stdin.take().expect("a pipe");
    let text = text.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&text));
    let output = sed.wait_with_output().expect("sed");
    writer.join().expect("a thread").expect("sed reads");
    output.stdout
}

/// Whether a text has codes of colours. The line of progress has others.
fn is_coloured(text: &str) -> bool {
    without_codes(text.as_bytes()) != text.as_bytes()
}

/// Three traces: one with losses and a budget, one with hostile names, one with damage.
fn traces(place: &Place) -> [PathBuf; 3] {
    let name = place.0.file_name().expect("a name").to_string_lossy().into_owned();
    let lossy = look::recording(&name, ctf1);
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(&lossy.directory).arg(place.0.join("lossy"));
    assert!(copy.status().expect("cp").success());
    fs::write(place.0.join("c.json"), hostile_text::chrome()).expect("a trace");
    [place.0.join("lossy"), place.0.join("c.json"), hostile_text::ctf(place)]
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn colours_add_codes_and_nothing_else() {
    let place = Place::new();
    let mut coloured = 0;
    for trace in traces(&place) {
        let trace = text(&trace);
        let calls: [&[&str]; 6] = [
            &["stats", trace],
            &["info", trace],
            &["print", trace],
            &["tracepoints", trace],
            &["diff", trace, trace],
            &["table", trace],
        ];
        for call in calls {
            let plain = piped(call, &[]);
            assert!(!plain.0.contains(&0x1b) && !plain.1.contains(&0x1b), "{call:?}");
            let always = piped(&[call, &["--color", "always"]].concat(), &[]);
            assert_eq!(without_codes(&always.0), plain.0, "{call:?}");
            assert_eq!(without_codes(&always.1), plain.1, "{call:?}");
            coloured += usize::from(always != plain);
            for (more, environment) in [
                (&["--color=never"][..], &[("CLICOLOR_FORCE", "1")][..]),
                (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]),
                (&[], &[("LATERALIS_COLOR", "auto"), ("CLICOLOR", "1")]),
            ] {
                let same = piped(&[call, more].concat(), environment);
                assert_eq!(same, plain, "{call:?} {more:?} {environment:?}");
            }
            for (before, environment) in [
                (&["--color", "always"][..], &[("NO_COLOR", "1"), ("TERM", "dumb")][..]),
                (&[], &[("CLICOLOR_FORCE", "1")]),
                (&[], &[("LATERALIS_COLOR", "always"), ("NO_COLOR", "1")]),
            ] {
                let same = piped(&[before, call].concat(), environment);
                assert_eq!(same, always, "{call:?} {before:?} {environment:?}");
            }
        }
        for data in [
            &["stats", trace, "--json"][..],
            &["info", trace, "--json"],
            &["print", trace, "--format", "json"],
            &["table", trace, "--name", "events", "--format", "csv", "-o", "-"],
        ] {
            let plain = piped(data, &[]);
            let always = piped(&[data, &["--color", "always"]].concat(), &[]);
            assert_eq!(always.0, plain.0, "{data:?}");
        }
    }
    assert!(coloured >= 9, "{coloured}");
}

#[test]
fn headings_losses_and_uncertain_numbers_are_coloured() {
    let place = Place::new();
    let [lossy, hostile, damaged] = traces(&place);
    let coloured = |call: &[&str]| {
        let (out, errors) = piped(&[&["--color", "always"], call].concat(), &[]);
        String::from_utf8(out).expect("text") + &String::from_utf8(errors).expect("text")
    };
    let stats = coloured(&["stats", text(&lossy)]);
    let info = coloured(&["info", text(&lossy)]);
    let reset = "\x1b[0m";
    for (page, part) in [
        (&stats, format!("\n{HEADING}spans{reset}\n")),
        (&stats, format!("{HEADING}median{reset}")),
        (&stats, format!("{UNCERTAIN}≥ 20 ns{reset}")),
        (&stats, format!("{UNCERTAIN}20 ns ?{reset}")),
        (&stats, format!("{PROBLEM}3{reset}")),
        (&info, format!("lost        {PROBLEM}3 events (full){reset}\n")),
        (&info, format!("\n{HEADING}streams{reset}\n")),
        (&coloured(&["print", text(&lossy)]), format!("{PROBLEM}lost{reset}: 3 (full)\n")),
        (&coloured(&["info", "/none"]), format!("{PROBLEM}error{reset}: cannot read")),
    ] {
        assert!(page.contains(&part), "{part:?} is not in {page:?}");
    }
    // A name that is one of our marks, or a code, has no colour.
    let hostile = coloured(&["stats", text(&hostile)]);
    assert!(hostile.contains("\\x1b[31m") && !hostile.contains("\x1b]"), "{hostile:?}");
    let damaged = coloured(&["stats", text(&damaged)]);
    assert!(damaged.contains(&format!("{PROBLEM}damage: ")), "{damaged:?}");
}

#[test]
fn an_exceeded_budget_is_a_problem() {
    let place = Place::new();
    let [lossy, ..] = traces(&place);
    // The same recording, with a limit below the 20 ns that it has.
    let metadata = lossy.join("ctf/metadata");
    let before = fs::read_to_string(&metadata).expect("metadata");
    let after = before.replace("held max < 25 ns", "held max < 15 ns");
    assert_ne!(before, after);
    fs::write(&metadata, after).expect("metadata");
    let (page, _) = piped(&["--color=always", "stats", text(&lossy)], &[]);
    let page = String::from_utf8(page).expect("text");
    assert!(page.contains(&format!("{PROBLEM}EXCEEDED")), "{page:?}");
}

#[test]
fn a_terminal_has_colours_unless_the_environment_is_against_it() {
    let place = Place::new();
    let [lossy, ..] = traces(&place);
    let call = ["stats", text(&lossy)];
    let shown = on_terminal(&call, &[]);
    assert!(shown.contains(&format!("{HEADING}spans\x1b[0m")), "{shown:?}");
    for environment in
        [("NO_COLOR", "1"), ("TERM", "dumb"), ("CLICOLOR", "0"), ("LATERALIS_COLOR", "never")]
    {
        let shown = on_terminal(&call, &[environment]);
        assert!(shown.contains("spans\n") && !is_coloured(&shown), "{environment:?} {shown:?}");
    }
    let never = on_terminal(&["--color", "never", "stats", text(&lossy)], &[]);
    assert!(!is_coloured(&never), "{never:?}");
    // Errors of usage are of the library; they go by the same choice.
    assert!(is_coloured(&on_terminal(&["stats", "--wrong"], &[])));
    assert!(!is_coloured(&on_terminal(&["stats", "--wrong", "--color=never"], &[])));
}

#[test]
fn sentences_that_lat_doctor_reads_have_no_codes() {
    let place = Place::new();
    // Rings cannot be in a file: the first check quotes the error of another `lat`.
    fs::write(place.0.join("file"), "").expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["doctor", "--json"])
        .env("LATERALIS_DIR", place.0.join("file"))
        .env("CLICOLOR_FORCE", "1")
        .stdin(Stdio::null())
        .output()
        .expect("lat can be started");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let detail = document["checks"][0]["detail"].as_str().expect("a sentence");
    assert!(detail.starts_with("cannot trust area directory: "), "{detail:?}");
}
