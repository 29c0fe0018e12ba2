// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No memory remains after programs and recorders have ended, in any PID namespace; `lat clean` removes what
//! a killed recorder could not.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::place::Place;

fn files(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.0.join("areas")).expect("areas").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether `lat record --with` works here (it needs a C compiler once).
fn records(place: &Place, words: &[&str]) -> bool {
    let arguments = [&["record", "-q", "--with", "io", "-o", "out", "--"], words].concat();
    let output = place.lat(&arguments);
    if output.status.code() == Some(2) {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&output.stderr));
        return false;
    }
    true
}

#[test]
fn what_a_daemon_starts_after_its_recording_leaves_nothing() {
    let place = Place::new();
    let daemon = "(setsid sh -c 'sleep 1; for i in 1 2 3 4 5 6 7 8 9 10; do ls; done; touch done' \
                  >/dev/null 2>&1 &)";
    if !records(&place, &["sh", "-c", daemon]) {
        return;
    }
    let began = Instant::now();
    while !place.0.join("done").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "the daemon goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(files(&place), Vec::<String>::new());
}

#[test]
fn processes_of_two_pid_namespaces_are_kept_apart_and_leave_nothing() {
    let place = Place::new();
    let can = Command::new("unshare").args(["-p", "-f", "true"]).status();
    if !can.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: PID namespaces cannot be made here");
        return;
    }
    // Each process reads a pipe filled by its own child all the time. Spans of the two pairs would be mixed
    // up if only process ids distinguished them.
    let reader = |pause: &str| {
        format!("unshare -p -f sh -c '(for i in 1 2 3 4; do sleep {pause}; echo; done) | cat' & ")
    };
    let script = format!("{}{}wait", reader("0.2"), reader("0.13"));
    if !records(&place, &["sh", "-c", &script]) {
        return;
    }
    assert_eq!(files(&place), Vec::<String>::new());
    let report = place.report("out");
    let processes = report["processes"].as_array().expect("processes");
    let inside = |number: u64| {
        let is_it = |one: &&serde_json::Value| one["pid_in_namespace"] == number;
        let mut pids: Vec<u64> =
            processes.iter().filter(is_it).map(|one| one["pid"].as_u64().expect("a pid")).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    };
    assert!(inside(1).len() >= 2, "{processes:?}");
    assert!(processes.iter().all(|one| one["pid"].as_u64().is_some_and(|pid| pid > 2)));
    let stats = place.json(&["stats", "--json", "out"]);
    let spans = stats["spans"].as_array().expect("spans");
    let read = spans.iter().find(|span| span["name"] == "io_read").expect("reads");
    let most = read["max_ns"].as_f64().or(read["max"].as_f64()).expect("the longest");
    assert!(most < 190e6 * 2.0, "a span goes from one namespace to the other: {read}");
}

/// Returns the inodes of the visible areas, and of the prepared ones, in a directory of areas.
fn inodes(areas: &Path) -> [BTreeSet<u64>; 2] {
    let mut found = [BTreeSet::new(), BTreeSet::new()];
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let inode = |entry: fs::DirEntry| entry.metadata().map(|metadata| metadata.ino());
    for entry in entries(areas) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("prepared-") {
            found[1].extend(entries(&entry.path()).flat_map(inode));
        } else if name.ends_with(".area") && !name.starts_with('.') {
            found[0].extend(inode(entry));
        }
    }
    found
}

#[test]
fn many_short_programs_take_prepared_areas_each_its_own_and_leave_nothing() {
    let place = Place::new();
    if !records(&place, &["true"]) {
        return;
    }
    fs::write(place.0.join("one"), "1").expect("written");
    let script = "i=0; while [ $i -lt 300 ]; do /bin/cat one > /dev/null; i=$((i+1)); done";
    let areas = place.0.join("areas");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "-q", "--with", "io", "-o", "many", "--", "sh", "-c", script])
        .current_dir(&place.0)
        .env("LATERALIS_DIR", &areas)
        .env("XDG_CACHE_HOME", place.0.join("cache"))
        .spawn()
        .expect("lat can be started");
    let (mut used, mut prepared) = (BTreeSet::new(), BTreeSet::new());
    let mut most = 0;
    while recorder.try_wait().expect("its status").is_none() {
        let [now_used, now_prepared] = inodes(&areas);
        most = most.max(now_prepared.len());
        used.extend(now_used);
        prepared.extend(now_prepared);
    }
    assert!(used.intersection(&prepared).next().is_some(), "none was taken: {}", prepared.len());
    assert!(most <= 16, "{most} at a time");
    assert_eq!(files(&place), Vec::<String>::new());
    let report = place.report("many");
    assert_eq!(report["complete"], true);
    let processes = report["processes"].as_array().expect("processes");
    let cat = fs::canonicalize("/bin/cat").expect("cat");
    let is_cat = |one: &&serde_json::Value| one["exe"].as_str().map(Path::new) == Some(&*cat);
    assert_eq!(processes.iter().filter(is_cat).count(), 300);
    let writes = report["events"]["io:WRITE"].as_u64().unwrap_or(0);
    assert!(writes >= 300 && writes.is_multiple_of(300), "all do the same: {writes}");
    assert_eq!(report["totals"]["lost"]["total"], 0);
}

#[test]
fn areas_that_a_killed_recorder_had_prepared_are_removed_by_the_next_command() {
    let place = Place::new();
    if !records(&place, &["true"]) {
        return;
    }
    let areas = place.0.join("areas");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "-q", "--with", "io", "-o", "killed", "--", "sh", "-c"])
        .arg("i=0; while [ $i -lt 30000 ]; do /bin/true; [ -e stop ] && break; i=$((i+1)); done")
        .current_dir(&place.0)
        .env("LATERALIS_DIR", &areas)
        .env("XDG_CACHE_HOME", place.0.join("cache"))
        .spawn()
        .expect("lat can be started");
    let began = Instant::now();
    while inodes(&areas)[1].is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing is prepared");
        std::thread::sleep(Duration::from_millis(1));
    }
    recorder.kill().expect("killed");
    recorder.wait().expect("its status");
    // Programs continue, and none takes an area of an ended session.
    std::thread::sleep(Duration::from_millis(50));
    let [_, before] = inodes(&areas);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(inodes(&areas)[1], before);
    place.lat(&["list"]);
    assert!(inodes(&areas)[1].is_empty());
    fs::write(place.0.join("stop"), "").expect("stopped");
}

#[test]
fn areas_of_a_killed_recorder_stay_until_they_are_cleaned_away() {
    let place = Place::new();
    if !records(&place, &["true"]) {
        return;
    }
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "-q", "--with", "io", "-o", "killed", "--", "sleep", "600"])
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .env("XDG_CACHE_HOME", place.0.join("cache"))
        .spawn()
        .expect("lat can be started");
    let began = Instant::now();
    while !files(&place).iter().any(|name| name.ends_with(".area") && !name.starts_with('.')) {
        assert!(began.elapsed() < Duration::from_secs(30), "no area");
        std::thread::sleep(Duration::from_millis(5));
    }
    recorder.kill().expect("killed");
    recorder.wait().expect("its status");
    let area = |place: &Place| files(place).iter().filter(|name| name.ends_with(".area")).count();
    let used = place.json(&["clean", "--json"]);
    assert!(used["leftovers"].as_array().expect("a list").iter().all(|one| one["kind"] != "area"));
    assert_eq!(area(&place), 1, "it is in use: {used}");
    let list = place.json(&["list", "--json"]);
    let pid = list["programs"][0]["pid"].as_u64().unwrap_or_else(|| panic!("no pid: {list}"));
    let ended = Command::new("kill").arg(pid.to_string()).status().expect("kill can be started");
    assert!(ended.success(), "{list}");
    while place.json(&["list", "--json"])["programs"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
    {
        assert!(began.elapsed() < Duration::from_secs(60), "the program goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(area(&place), 1, "what was not recorded yet stays");
    assert_eq!(
        place.json(&["list", "--all", "--json"])["programs"].as_array().map(Vec::len),
        Some(1)
    );
    let shown = place.json(&["clean", "--dry-run", "--json"]);
    assert!(shown["bytes"].as_u64().expect("bytes") > 1 << 16 && area(&place) == 1);
    let removed = place.json(&["clean", "--json"]);
    assert_eq!((removed["removed"].as_bool(), area(&place)), (Some(true), 0));
    assert_eq!(files(&place), Vec::<String>::new());
}

#[test]
fn a_short_program_takes_little_memory_and_rings_grow_as_they_are_used() {
    let place = Place::new();
    let script = "du -sk \"$LATERALIS_DIR\" > kib; \
                  dd if=/dev/zero of=/dev/null bs=1 count=200000 2> copied";
    if !records(&place, &["sh", "-c", script]) {
        return;
    }
    // Two of the first three programs, the shell and du, have areas for all possible CPUs: 120 KiB of tables,
    // and 1 MiB for each CPU, at most 4 MiB. Rings of 4 MiB per CPU would exceed this. The recorder has a
    // table of 128 KiB.
    let text = fs::read_to_string(place.0.join("kib")).expect("what du said");
    let kib: u64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).expect("KiB");
    let possible = fs::read_to_string("/sys/devices/system/cpu/possible").expect("CPUs");
    let last = possible.trim().rsplit(['-', ',']).next().and_then(|word| word.parse().ok());
    let cpus: u64 = last.unwrap_or(0) + 1;
    let one = 120 + (cpus * (1024 + 4)).min(4096 + 4 * cpus);
    assert!(kib <= 2 * one + 192, "{kib} KiB on {cpus} CPUs");
    assert_eq!(files(&place), Vec::<String>::new());

    // In a ring that does not grow, not even the first lap would be complete.
    let report = place.report("out");
    let totals = &report["totals"];
    let (events, lost) = (totals["events"].as_u64(), totals["lost"]["full"].as_u64());
    assert!(events.unwrap_or(0) > 100_000, "{totals}");
    // Each byte is read and written: four events, plus the other events of dd.
    let all = events.unwrap_or(0) + lost.unwrap_or(0);
    assert!((800_000..802_000).contains(&all), "{totals}");
}
