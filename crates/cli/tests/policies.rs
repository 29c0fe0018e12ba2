// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat policy check`, `lat record --policy`, `lat record --filter`, from the command line.

mod writers;

use crate::place::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const POLICY: &str = "[[policy]]\nname = \"spikes\"\nprogram_prefix = \"spikes\"\n\
    enable = [\"spikes:TICK\"]\n";

/// Starts a program as a separate process, and waits until its events are listed.
fn running(place: &Place, program: &Path, arguments: &[&str]) -> Child {
    let running = Command::new(program)
        .args(arguments)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .stdin(Stdio::null())
        .spawn()
        .expect("the program starts");
    let has_events = || {
        let text = place.lat(&["list", &running.id().to_string()]).stdout;
        String::from_utf8_lossy(&text).contains("TICK")
    };
    while !has_events() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running
}

#[test]
fn a_wrong_policy_file_is_refused_with_line_place_and_what_would_be_right() {
    let place = Place::new();
    let wrong = "[[policy]]\nname = \"x\"\nprogram_sufix = \"x\"\n";
    fs::write(place.0.join("wrong.toml"), wrong).expect("a policy file");
    let record = ["record", "-o", "no", "--policy", "wrong.toml", "--", "touch", "started"];
    for command in [&["policy", "check", "wrong.toml"][..], &record] {
        let output = place.lat(command);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("wrong.toml:3:1") && text.contains("program_suffix"), "{text}");
        assert!(text.contains("nothing was started"), "{text}");
    }
    assert!(!place.0.join("started").exists() && !place.0.join("no").exists());
    let output = place.lat(&["policy", "check", "missing.toml"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn check_shows_what_would_be_done_with_programs_that_run() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    fs::write(place.0.join("good.toml"), POLICY).expect("a policy file");
    let none = POLICY.replace("spikes:TICK", "spikes:TACK");
    fs::write(place.0.join("none.toml"), none).expect("a policy file");
    let mut running = running(&place, &program, &["0", "600000"]);
    let pid = running.id();
    let good = place.lat(&["policy", "check", "good.toml", "--json"]);
    let bad = place.lat(&["policy", "check", "none.toml"]);
    running.kill().expect("it runs");
    running.wait().expect("it ends");
    let said: Value = serde_json::from_slice(&good.stdout).expect("JSON");
    assert_eq!(good.status.code(), Some(0), "{said}");
    assert_eq!(said["policies"][0]["enable"], "spikes:TICK");
    let programs = said["programs"].as_array().expect("programs");
    let own = programs.iter().find(|one| one["pid"] == pid).expect("the program");
    assert_eq!((&own["policy"], &own["recorded"]), (&"spikes".into(), &true.into()));
    assert_eq!((&own["events_enabled"], &own["events"]), (&1.into(), &3.into()));
    // A pattern that matches no event is a problem; the available events are listed.
    let text = String::from_utf8_lossy(&bad.stdout);
    assert_eq!(bad.status.code(), Some(1), "{text}");
    assert!(text.contains("enables no event") && text.contains("spikes:TICK"), "{text}");
}

#[test]
fn a_recording_by_a_policy_has_what_it_says_of_the_programs_that_it_says() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    fs::write(place.0.join("p.toml"), POLICY).expect("a policy file");
    let other = place.0.join("other");
    fs::copy(&program, &other).expect("a copy of another name");
    let script = format!("{} 0 50; {} 0 50", program.display(), other.display());
    let words = ["record", "-q", "-o", "out", "--policy", "p.toml", "--", "sh", "-c", &script];
    let output = place.lat(&words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = place.report("out");
    let events = report["events"].as_object().expect("events");
    let own: Vec<_> = events.keys().filter(|name| name.starts_with("spikes:")).collect();
    assert_eq!(own, ["spikes:TICK"]);
    let processes = report["processes"].as_array().expect("processes");
    let programs: Vec<_> = processes.iter().filter_map(|one| one["exe"].as_str()).collect();
    assert!(matches!(programs[..], [one] if one.ends_with("/spikes-program")), "{programs:?}");
}

#[test]
fn a_filter_keeps_out_what_does_not_match_and_wrong_ones_are_refused() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    // Slow requests continue for the whole recording. A running program is filtered from its first recorded
    // event on.
    let mut running = running(&place, &program, &["6000", "20", "1"]);
    let filter = ["--filter", "spikes:ANSWERED: id >= 1000000 and not id & 1 == 1"];
    let attach = ["-q", "-o", "out", "--duration", "1s", "--attach"];
    let pid = running.id().to_string();
    let output = place.lat(&[&["record"], &filter[..], &attach, &[&pid]].concat());
    running.kill().expect("it runs");
    running.wait().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let printed =
        place.lat(&["print", "out", "--event", "spikes:ANSWERED", "--format", "json"]).stdout;
    let ids: Vec<u64> = String::from_utf8_lossy(&printed)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["fields"]["id"].as_u64())
        .collect();
    assert!(!ids.is_empty() && ids.iter().all(|id| *id >= 1_000_000 && id & 1 == 0), "{ids:?}");
    let report = place.report("out");
    assert!(report["events"]["spikes:REQUEST"].as_u64() > Some(ids.len() as u64));
    let filters = report["areas"][0]["filters"].as_array().expect("filters");
    assert!(filters[0].as_str().is_some_and(|text| text.contains("spikes:ANSWERED: id >=")));
    for (filter, told) in [
        ("spikes:*: id == 1", "one event"),
        ("spikes:TICK: number ==", "error: "),
        ("spikes:TICK", "SUBSYSTEM:EVENT: CONDITION"),
    ] {
        let words = ["record", "-o", "no", "--filter", filter, "--", "touch", "started"];
        let output = place.lat(&words);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with("error: ") && text.contains(told), "{filter}: {text}");
        assert!(!place.0.join("started").exists());
    }
    // An unknown field is detected when the program has registered its schema.
    let words = ["record", "-o", "far", "--filter", "spikes:TICK: numbr == 1", "--"];
    let program = program.to_str().expect("a path of letters");
    let output = place.lat(&[&words[..], &[program, "0", "50"]].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("numbr") && text.contains("number"), "{text}");
}

/// Names its two threads before they write.
const NAMED: &str = r#"
    #define _GNU_SOURCE
    #include <lockio.h>
    #include <pthread.h>
    static void *work(void *name) {
        pthread_setname_np(pthread_self(), name);
        for (uint32_t n = 0; n < 100; n++) lat_server_request(n);
        return 0;
    }
    int main(void) {
        pthread_t threads[2];
        pthread_create(&threads[0], 0, work, "ep");
        pthread_create(&threads[1], 0, work, "other");
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
        return 0;
    }
"#;

#[test]
fn a_policy_about_a_thread_with_a_writer_of_its_own() {
    let place = Place::new();
    let source = place.0.join("named.c");
    fs::write(&source, NAMED).expect("its source");
    let Some(program) = place.compile("named", &source, "lockio") else { return };
    let text = "[[policy]]\nname = \"entry\"\nprogram = \"named-program\"\nthread = \"ep\"\n\
        filter = \"server:REQUEST: id < 40\"\noutput = \"beside\"\n";
    fs::write(place.0.join("p.toml"), text).expect("a policy file");
    let said = place.json(&["policy", "check", "p.toml", "--json"]);
    let policy = &said["policies"][0];
    assert_eq!(
        (&policy["output"], &policy["threads"][0]["name"]),
        (&"beside".into(), &"ep".into())
    );
    let page = place.lat(&["policy", "check", "p.toml"]);
    assert!(String::from_utf8_lossy(&page.stdout).contains("beside"));
    let program = program.to_str().expect("a path of letters");
    let words = ["record", "-o", "out", "--policy", "p.toml", "--", program];
    let output = place.lat(&words);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("beside    40 events") && told.contains("/beside"), "{told}");
    let (report, beside) = (place.report("out"), place.report("beside"));
    assert_eq!((&report["totals"]["events"], &beside["totals"]["events"]), (&0.into(), &40.into()));
    assert_eq!(report["outputs"][0]["totals"], beside["totals"]);
    // The recorder leaves out fewer events if the program received its filter before it wrote.
    let left_out = beside["areas"][0]["left_out"].as_u64();
    assert!(beside["complete"] == true && left_out.is_some_and(|n| n <= 160), "{beside}");
    let printed = place.lat(&["print", "beside", "--thread", "ep"]).stdout;
    assert_eq!(String::from_utf8_lossy(&printed).matches("server:REQUEST").count(), 40);
    // An existing recording is not overwritten, and the program is not started.
    let again = ["record", "-o", "no", "--policy", "p.toml", "--", "touch", "started"];
    let output = place.lat(&again);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!place.0.join("started").exists());
}
