// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SIGKILL at arbitrary times. Together with those of live clients (`live.rs`) and of the helper (`lent.rs`)
//! these are 29 kills in a usual run, 121 with LATERALIS_SLOW_TESTS=1; the tests print the count (`killed so
//! far`, with --nocapture).

use std::fs;
use std::path::PathBuf;

use super::writer::{
    Running, account, any_moment, committed, found, lost, record, signal, start, steps, wait_for,
};
use super::{killed, rounds};
use crate::place::Place;

/// Small packets and rings, so that a large part of the events is in flight.
const OPTIONS: [&str; 4] = ["--packet", "4K", "--buffer", "64K"];

#[test]
fn a_program_killed_at_any_moment_leaves_every_event_it_committed() {
    let place = Place::new();
    let Some(program) = steps(&place) else { return };
    for round in 0..rounds(4) {
        let (output, ledger) = (format!("out-{round}"), format!("ledger-{round}"));
        let options = [&OPTIONS[..], &["-o", &output]].concat();
        let (mut recorder, pid) = record(&place, &options, &program, &ledger);
        any_moment(round);
        signal(pid, "KILL");
        killed("program");
        let status = recorder.0.wait().expect("its status");
        assert_eq!(status.code(), Some(128 + 9));
        assert_eq!(place.report(&output)["complete"], true);
        let account = account(&[found(&place, &output)], committed(&place, &ledger));
        assert_eq!((account.missing, account.twice), (lost(&place, &output), 0), "round {round}");
        fs::remove_dir_all(place.0.join(&output)).expect("a recording");
    }
    assert_eq!(areas(&place), Vec::<PathBuf>::new());
}

fn areas(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.0.join("areas")).expect("areas").flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "area")).collect()
}

/// Checks a killed recording: readable as it is, complete after `lat recover`.
fn recover(place: &Place, from: &str, to: &str) {
    let info = place.lat(&["info", from]);
    let text = String::from_utf8_lossy(&info.stderr);
    assert!(matches!(info.status.code(), Some(0 | 1)), "{text}");
    let output = place.lat(&["recover", from, "-o", to]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
    assert_eq!(place.report(to)["origin"], "recovered");
}

/// Largest number of events of this program that two recordings may share: one packet of each ring.
fn twice_at_most() -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    // An event has 8 bytes before its payload of 4, then 4 bytes of padding, and 8.
    (4096 / 24) * cpus as u64
}

#[test]
fn a_killed_recorder_loses_nothing_that_the_next_does_not_find() {
    let place = Place::new();
    let Some(program) = steps(&place) else { return };
    for round in 0..rounds(3) {
        let names = ["out", "whole", "next", "ledger"].map(|name| format!("{name}-{round}"));
        let [out, whole, next, ledger] = names.each_ref().map(String::as_str);
        let options = [&OPTIONS[..], &["-o", out]].concat();
        let (mut recorder, pid) = record(&place, &options, &program, ledger);
        let input = recorder.0.stdin.take();
        any_moment(round);
        recorder.kill();
        killed("recorder");
        // Every second time, long enough for the rings to become full.
        if round % 2 == 0 {
            let before = committed(&place, ledger);
            wait_for("full rings", || committed(&place, ledger)[0] > before[0] + 20_000);
        }
        let options = ["--attach", &pid.to_string(), "-o", next, "--quiet"];
        let mut recorder = start(&place, &[&["record"][..], &OPTIONS, &options].concat());
        wait_for("the next recorder", || place.0.join(next).join("ctf/metadata").exists());
        any_moment(round);
        // The program ends first, then its recorder.
        drop(input);
        let status = recorder.0.wait().expect("its status");
        assert_eq!(status.code(), Some(0), "round {round}");
        recover(&place, out, whole);
        let both = [found(&place, whole), found(&place, next)];
        let account = account(&both, committed(&place, ledger));
        let told = lost(&place, whole) + lost(&place, next);
        assert!(account.twice <= twice_at_most(), "round {round}: {account:?}");
        // A packet contained in both recordings reports its losses in both.
        let is_exact = account.missing == told || account.twice > 0 && account.missing < told;
        assert!(is_exact, "round {round}: {account:?}, told {told}");
    }
}

#[test]
fn when_both_are_killed_the_files_and_the_memory_have_everything() {
    let place = Place::new();
    let Some(program) = steps(&place) else { return };
    for round in 0..rounds(3) {
        let names = ["out", "whole", "rest", "ledger"].map(|name| format!("{name}-{round}"));
        let [out, whole, rest, ledger] = names.each_ref().map(String::as_str);
        let options = [&OPTIONS[..], &["-o", out]].concat();
        let (mut recorder, pid) = record(&place, &options, &program, ledger);
        any_moment(round);
        recorder.kill();
        killed("recorder");
        any_moment(round + 1);
        signal(pid, "KILL");
        killed("program");
        wait_for("its end", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
        recover(&place, out, whole);
        let left = areas(&place);
        assert_eq!(left.len(), 1, "{left:?}");
        let output = place.lat(&["recover", left[0].to_str().expect("letters"), "-o", rest]);
        assert_eq!(output.status.code(), Some(1), "it says that a recorder had a part");
        let both = [found(&place, whole), found(&place, rest)];
        let account = account(&both, committed(&place, ledger));
        // The memory keeps packets that were read until it is reused: both recordings contain all of them,
        // and all losses, which the memory counts from its start.
        assert_eq!(account.missing, lost(&place, rest), "round {round}: {account:?}");
        // If both are read together, each event and each loss counts once.
        let info = place.json(&["info", whole, rest, "--json"]);
        let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
        let classes = info["events"].as_array().expect("classes").iter();
        let events: u64 = classes
            .filter(|class| class["name"] == "faults:STEP")
            .map(|class| number(&class["count"]))
            .sum();
        let losses = info["losses"].as_array().expect("losses").iter();
        let lost_once: u64 = losses.map(|loss| number(&loss["count"])).sum();
        let committed: u64 = committed(&place, ledger).iter().sum();
        assert_eq!(events + lost_once, committed, "round {round}: {info:#}");
        assert_eq!(lost_once, account.missing, "round {round}: {info:#}");
        fs::remove_file(&left[0]).expect("an area");
    }
}

#[test]
fn recorders_come_and_go_while_a_program_runs() {
    let place = Place::new();
    let Some(program) = steps(&place) else { return };
    let ledger = place.0.join("ledger");
    let mut child = std::process::Command::new(&program);
    child.arg(&ledger).arg("1000").env("LATERALIS_DIR", place.0.join("areas"));
    child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut program = Running(child.spawn().expect("the program"));
    let pid = super::writer::pid_of(&mut program).to_string();
    wait_for("its area", || !areas(&place).is_empty());
    // Rings that hold several seconds of output, so that no recorder is late.
    let options = ["--packet", "4K", "--buffer", "4M"];
    let mut recordings = Vec::new();
    let mut first = [u64::MAX; super::writer::THREADS];
    for round in 0..rounds(2) {
        let name = format!("out-{round}");
        let words = ["record", "--attach", &pid, "-o", &name, "--quiet"];
        let mut recorder = start(&place, &[&words[..], &options].concat());
        wait_for("packets", || {
            let streams = fs::read_dir(place.0.join(&name).join("ctf")).into_iter().flatten();
            streams.flatten().any(|one| one.file_name() != "metadata" && one.path().is_file())
                || recorder.0.try_wait().is_ok_and(|ended| ended.is_some())
        });
        any_moment(round);
        recorder.kill();
        killed("recorder");
        recover(&place, &name, &format!("whole-{round}"));
        recordings.push(format!("whole-{round}"));
    }
    let mut recorder =
        start(&place, &[&["record", "--attach", &pid, "-o", "last"][..], &options].concat());
    wait_for("the last recorder", || place.0.join("last/ctf/metadata").exists());
    any_moment(0);
    drop(program.0.stdin.take());
    assert_eq!(recorder.0.wait().expect("its status").code(), Some(0));
    recordings.push("last".to_owned());
    let all: Vec<_> = recordings.iter().map(|name| found(&place, name)).collect();
    let told: u64 = recordings.iter().map(|name| lost(&place, name)).sum();
    for (thread, list) in all.iter().flatten() {
        first[*thread as usize] = first[*thread as usize].min(list[0]);
    }
    let account = account(&all, committed(&place, "ledger"));
    // Events before the first recorder belong to no recording.
    let missing = account.missing - first.iter().sum::<u64>();
    let most = twice_at_most() * rounds(2);
    assert!(account.twice <= most, "{account:?}");
    assert!(missing == told || account.twice > 0 && missing < told, "{missing}, told {told}");
}

/// Writes the requested number of events on one CPU, and confirms it.
const ON_COMMAND: &str = r#"
    #include <sched.h>
    #include <stdio.h>
    #include <unistd.h>
    #include <faults.h>
    int main(void) {
        unsigned long count;
        uint64_t n = 0;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
        printf("%d\n", (int)getpid());
        fflush(stdout);
        while (scanf("%lu", &count) == 1) {
            while (count--) lat_faults_step(0, n++);
            printf("%lu\n", (unsigned long)n);
            fflush(stdout);
        }
        return 0;
    }
"#;

#[test]
fn losses_that_a_killed_recorder_did_not_come_to_tell_are_told_by_the_next() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let place = Place::new();
    let Some(program) = super::writer::program(&place, "on_command", ON_COMMAND) else { return };
    let program = program.to_str().expect("letters");
    let mut recorder = start(
        &place,
        &[&["record", "--quiet", "-o", "first"], &OPTIONS[..], &["--", program]].concat(),
    );
    let mut input = recorder.0.stdin.take().expect("its input");
    let mut output = BufReader::new(recorder.0.stdout.take().expect("its output"));
    let mut line = || {
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        line.trim().parse::<u64>().unwrap_or_else(|_| panic!("no number: {line:?}"))
    };
    let pid = line().to_string();
    let mut write = |count: u64| {
        writeln!(input, "{count}").expect("a pipe");
        line()
    };
    write(100);
    recorder.kill();
    // Without a recorder the ring fills up, and further events are lost.
    write(20_000);
    let attach = |name: &str| {
        let options = ["record", "--attach", &pid, "-o", name, "--quiet"];
        start(&place, &[&options[..], &OPTIONS].concat())
    };
    // The next recorder empties it. The packet in which the ring became full is still open: the program is
    // idle, so the losses are not reported yet.
    let mut second = attach("second");
    let stream_bytes = |name: &str| {
        let folder = place.0.join(name).join("ctf");
        let streams = fs::read_dir(folder).into_iter().flatten().flatten();
        streams.filter_map(|one| Some(one.metadata().ok()?.len())).max().unwrap_or(0)
    };
    wait_for("the packets of a full ring", || stream_bytes("second") > 14 * 4000);
    second.kill();
    // Again without a recorder; the packets that reported the earlier losses are reused.
    let all = write(20_000);
    let mut third = attach("third");
    // The recorder has attached to the area and not only made a folder: the program may end.
    wait_for("the same packets again", || stream_bytes("third") > 14 * 4000);
    drop(input);
    assert_eq!(third.0.wait().expect("its status").code(), Some(0));
    recover(&place, "first", "first-whole");
    recover(&place, "second", "second-whole");
    let recordings = ["first-whole", "second-whole", "third"];
    let account = account(&recordings.map(|name| found(&place, name)), [all, 0]);
    let told: u64 = recordings.iter().map(|name| lost(&place, name)).sum();
    assert!(account.missing > 20_000, "{account:?}");
    assert_eq!(told, account.missing, "{account:?}");
}
