// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Outputs of policies: followed by a client, on a full disk of their own, and requested by two policies for
//! the same program.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::faults::{account, committed, found, lost, steps, wait_for};
use crate::place::Place;

/// Prints a line when it is ready, and writes the number of events that it reads from its input.
const ASKED: &str = r#"
    #include <lockio.h>
    #include <stdio.h>
    int main(void) {
        unsigned long count;
        puts("ready");
        fflush(stdout);
        while (scanf("%lu", &count) == 1) {
            for (unsigned long n = 0; n < count; n++) lat_server_request((uint32_t)n);
            printf("%lu\n", count);
            fflush(stdout);
        }
        return 0;
    }
"#;

/// Compiles programs `one` and `two`, which are identical.
fn programs(place: &Place) -> Option<[PathBuf; 2]> {
    let source = place.0.join("asked.c");
    fs::write(&source, ASKED).expect("its source");
    let one = place.compile("one", &source, "lockio")?;
    let two = place.0.join("two-program");
    fs::copy(&one, &two).expect("a copy of another name");
    Some([one, two])
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn clients_follow_what_a_policy_matches_and_nothing_else() {
    let place = Place::new();
    let Some([one, two]) = programs(&place) else { return };
    let text = "[[policy]]\nprogram = \"one-program\"\noutput = \"beside\"\nlive = \"127.0.0.1:0\"\n\
        [[policy]]\n";
    fs::write(place.0.join("p.toml"), text).expect("a policy file");
    let script = format!("{}; echo 300 | {}", one.display(), two.display());
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "-o", "out", "--packet", "4K", "--policy", "p.toml", "--"])
        .args(["sh", "-c", &script])
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lat can be started");
    let mut errors = BufReader::new(recorder.stderr.take().expect("its errors")).lines();
    let mut output = BufReader::new(recorder.stdout.take().expect("its output")).lines();
    let mut input = recorder.stdin.take().expect("its input");
    let mut told = || output.next().expect("a line").expect("text");
    let line = errors.find_map(|line| line.ok()?.strip_prefix("live on ").map(str::to_owned));
    let address = line.expect("an address").split(": ").next().expect("an address").to_owned();
    let client = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "--connect", &address, "-o", "there"])
        .current_dir(&place.0)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lat can be started");
    wait_for("the client", || place.0.join("there/report.json").exists());
    assert_eq!(told(), "ready");
    for _ in 0..5 {
        writeln!(input, "2000").expect("a pipe");
        assert_eq!(told(), "2000");
    }
    drop(input);
    assert_eq!([told(), told()], ["ready", "300"]);
    let client = client.wait_with_output().expect("its status");
    let status = recorder.wait().expect("its status");
    let all: Vec<String> = errors.map_while(Result::ok).collect();
    assert_eq!(status.code(), Some(0), "{all:?}");
    assert_eq!(client.status.code(), Some(0), "{}", String::from_utf8_lossy(&client.stderr));
    let (out, beside, there) = (place.report("out"), place.report("beside"), place.report("there"));
    let account = &beside["live"]["clients"][0];
    let dropped = &account["dropped"];
    for what in ["events", "packets", "bytes"] {
        let both = number(&account["sent"][what]) + number(&dropped[what]);
        assert_eq!(both, number(&beside["totals"][what]), "{what}: {account}");
    }
    assert_eq!(number(&beside["events"]["server:REQUEST"]), 10_000);
    assert_eq!(number(&dropped["events"]), 0, "{account}");
    assert_eq!(there["events"], beside["events"]);
    assert_eq!((&there["complete"], number(&out["totals"]["events"])), (&true.into(), 300));
    let print = |name: &str| place.lat(&["print", name, "--event", "server:REQUEST"]).stdout;
    assert_eq!(String::from_utf8_lossy(&print("there")).lines().count(), 10_000);
    assert_eq!(print("there"), print("beside"));
}

/// Script with a file system of this size at `full` for the output of a policy; the rest is recorded outside
/// of it. Both programs continue until the recorder has found it full and uses its reserve, and a little
/// longer: at most one minute.
const SCRIPT: &str = r#"
    mkdir full && mount -t tmpfs -o size=2m tmpfs full || exit 77
    wait_for_the_end() {
        until [ -e full/beside/.reserve ]; do sleep 0.05; done
        n=0
        while [ -e full/beside/.reserve ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done
        sleep 0.5
    }
    wait_for_the_end | "$LAT" record --quiet --packet 4K -o out --policy p.toml -- \
        sh -c 'exec 3<&0; "$0" first 20 <&3 & "$1" second 2000 <&3 & wait' "$ONE" "$TWO" \
        >said 2>errors
    echo $? >status
    cp -r full/beside beside
    umount full
"#;

#[test]
fn a_writer_on_a_full_disk_ends_cleanly_and_alone() {
    let place = Place::new();
    let Some(one) = steps(&place) else { return };
    let two = place.0.join("others");
    fs::copy(&one, &two).expect("a copy of another name");
    let text = "[[policy]]\nprogram = \"steps-program\"\noutput = \"full/beside\"\n[[policy]]\n";
    fs::write(place.0.join("p.toml"), text).expect("a policy file");
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", SCRIPT])
        .current_dir(&place.0)
        .env("LAT", env!("CARGO_BIN_EXE_lat"))
        .env("ONE", &one)
        .env("TWO", &two)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        _ => return println!("SKIPPED: a file system of its own needs unshare and root"),
    }
    let text = |name: &str| fs::read_to_string(place.0.join(name)).expect("a file");
    let errors = text("errors");
    assert_eq!(text("status").trim(), "0", "{errors}");
    assert!(errors.contains("full/beside"), "{errors}");
    let (out, beside) = (place.report("out"), place.report("beside"));
    // The output on the full disk is a recording up to that time, and events that could not be written are
    // counted.
    assert_eq!(
        (&beside["complete"], &out["outputs"][0]["complete"]),
        (&false.into(), &false.into())
    );
    assert!(beside["problems"].to_string().contains("No space left"), "{beside}");
    assert!(number(&beside["totals"]["bytes"]) > 1 << 20, "{beside}");
    let first = account(&[found(&place, "beside")], committed(&place, "first"));
    assert!(first.missing > 0 && first.twice == 0, "{first:?}");
    assert!(lost(&place, "beside") > 0 && lost(&place, "beside") <= first.missing, "{first:?}");
    let index = place.0.join("beside/ctf/index").read_dir();
    assert!(index.expect("an index").next().is_some());
    // The other output is complete.
    assert!(out["problems"].to_string().contains("full/beside"), "{out}");
    let second = account(&[found(&place, "out")], committed(&place, "second"));
    assert_eq!((second.missing, second.twice, lost(&place, "out")), (0, 0, 0), "{second:?}");
    let steps = committed(&place, "second").iter().sum::<u64>();
    assert_eq!(number(&out["events"]["faults:STEP"]), steps);
}

#[test]
fn two_policies_that_want_two_writers_of_one_program_are_refused() {
    let place = Place::new();
    let first = "[[policy]]\nname = \"entry\"\nprogram = \"nic_router\"\nthread = \"ep\"\n\
        output = \"a\"\n";
    let check = |second: &str, said: &[&str]| {
        fs::write(place.0.join("p.toml"), format!("{first}{second}")).expect("a policy file");
        for command in [
            &["policy", "check", "p.toml"][..],
            &["record", "-o", "no", "--policy", "p.toml", "--", "touch", "started"],
        ] {
            let output = place.lat(command);
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code() == Some(2), !said.is_empty(), "{second}: {text}");
            assert!(said.iter().all(|part| text.contains(part)), "{text}");
        }
        assert_eq!(place.0.join("started").exists(), said.is_empty());
    };
    let said = ["p.toml:8:", "share its `output`", "`entry` can be about the same program"];
    check("[[policy]]\nprogram_pattern = \"nic_*\"\noutput = \"b\"\n", &said);
    let said = ["p.toml:8:", "no `thread`"];
    check("[[policy]]\nlabel_suffix = \"-> nic_router\"\nbuffer = \"64K\"\n", &said);
    check("[[policy]]\nprogram_pattern = \"nic_?\"\noutput = \"b\"\n", &[]);
}
