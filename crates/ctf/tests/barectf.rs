// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tracers that barectf generates are compiled and run, and their traces read: the text
//! is that of babeltrace2. Packets of either byte order, fields at any bit, several
//! streams, short clocks. Where one of these programs is absent the test says so.

use std::fs;
use std::path::Path;
use std::process::Command;

use lateralis_ctf::open;
use lateralis_model::text::Babeltrace;

/// Runs a program in a directory; its output.
fn run(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let out = Command::new(program).args(arguments).current_dir(directory).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn traces_of_generated_tracers_read_as_babeltrace_reads_them() {
    for program in ["barectf", "cc", "babeltrace2"] {
        if Command::new(program).arg("--version").output().is_err() {
            println!("SKIPPED: no {program} here");
            return;
        }
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/barectf");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("b{}", std::process::id()));
    for name in ["one", "two"] {
        fs::create_dir_all(scratch.join(name)).unwrap();
        let config = fs::read_to_string(source.join(format!("{name}.yaml"))).unwrap();
        fs::write(scratch.join("config.yaml"), &config).unwrap();
        let generate = ["generate", "config.yaml", "-c", ".", "-H", ".", "-m", name];
        run(&scratch, "barectf", &generate);
        if name == "two" {
            // Another byte order than that of the machine came with 3.1.2.
            let big = config.replace("native-byte-order: little", "trace-byte-order: big");
            fs::write(scratch.join("config.yaml"), big).unwrap();
            let mut barectf = Command::new("barectf");
            let out = barectf.args(generate).current_dir(&scratch).output().unwrap();
            if !out.status.success() {
                println!("SKIPPED: big-endian packets: this barectf makes none");
            }
        }
    }
    let driver = source.join("drive.c");
    let driver = driver.to_str().unwrap();
    run(&scratch, "cc", &["-O1", "-I.", "-o", "drive", driver, "one.c", "two.c"]);
    run(&scratch, "./drive", &[]);
    for (name, count) in [("one", 675), ("two", 700)] {
        let arguments = ["--names=all", "--clock-seconds", "--clock-gmt", "--no-delta", name];
        let expected = run(&scratch, "babeltrace2", &arguments);
        let reader = open::open(&scratch.join(name)).unwrap();
        let printer = Babeltrace::new(reader.trace());
        let mut events = reader.events();
        let mut text = Vec::new();
        while let Some(event) = events.next_event() {
            printer.line(&mut text, &event);
        }
        let text = String::from_utf8(text).unwrap();
        for (ours, theirs) in text.lines().zip(expected.lines()) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!((text.lines().count(), expected.lines().count()), (count, count), "{name}");
        assert_eq!(reader.diagnostics(), [], "{name}");
        assert_eq!((reader.damage(), events.damage().count()), (&[][..], 0), "{name}");
    }
    let _ = fs::remove_dir_all(&scratch);
}
