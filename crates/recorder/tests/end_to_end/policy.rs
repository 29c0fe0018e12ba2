// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Policies on real programs: of a command and its children, and of every program of a user.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use lateralis_recorder::linux::{Request, Session, Summary, ask, discovery};
use lateralis_recorder::policy;
use lateralis_ring::RingMode;

use crate::program::{Workshop, command};
use crate::{SCHEMA, check, options};

/// Writes a hundred ticks and as many pairs as soon as it runs, and ends.
const BRIEF: &str = r#"
    int main(void) {
        for (uint32_t n = 0; n < 100; n++) { lat_app_tick(n); lat_app_pair(n, n); }
        return 0;
    }
"#;

/// Ends without the C library.
const LEAVING: &str = r#"
    #include <unistd.h>
    int main(void) { lat_app_tick(1); _exit(0); }
"#;

/// Writes a tick for each byte that it reads.
const ASKED: &str = r#"
    #include <stdio.h>
    int main(void) {
        while (getchar() != EOF) lat_app_tick(1);
        return 0;
    }
"#;

fn policies(text: &str) -> policy::Policies {
    policy::parse("test.toml", text).unwrap_or_else(|faults| panic!("{}", faults[0]))
}

/// Counts of the processes of each program that wrote an event.
fn programs(summary: &Summary) -> Vec<String> {
    let exe = |one: &lateralis_recorder::report::Process| {
        one.exe.rsplit('/').next().unwrap_or_default().to_owned()
    };
    let mut names: Vec<String> = summary.report.processes.iter().map(exe).collect();
    names.sort();
    names
}

#[test]
fn each_program_of_a_command_has_its_own_policy_from_its_first_event() {
    let Some(workshop) = Workshop::new("policy-command") else { return };
    // Only the recorder removes the area of the third.
    let programs_of = [("one", BRIEF), ("two", BRIEF), ("three", LEAVING)];
    let paths = programs_of.map(|(name, main)| workshop.compile(name, SCHEMA, main));
    let [one, two, three] = paths.each_ref().map(|path| path.to_str().unwrap());
    let mut options = options(&workshop, "out");
    options.policies = Some(policies(
        "[[policy]]\nprogram = \"one\"\nenable = \"app:TICK\"\n\
         [[policy]]\nprogram_prefix = \"tw\"\nenable = \"app:PAIR\"\nmode = \"overwrite\"\n\
         buffer = \"64K\"\npacket = \"16K\"\n\
         [[policy]]\nrecord = false\n",
    ));
    let mut session = Session::new(options).unwrap();
    let script = format!("{one}; {two}; {three}; {one}");
    session.launch(&command(&["sh", "-c", &script]), &[]).unwrap();
    let summary = session.run(&mut |_| {}).unwrap();
    check(&summary);
    assert_eq!(summary.report.problems, Vec::<String>::new());
    assert_eq!(programs(&summary), ["one", "one", "two"]);
    assert_eq!(summary.report.events["app:TICK"], 200);
    assert_eq!(summary.report.events["app:PAIR"], 100);
    let two = summary.report.areas.iter().find(|area| area.packet_bytes == 16 << 10);
    assert_eq!(two.map(|area| area.packets_per_ring), Some(4));
    assert!(workshop.areas_left().is_empty(), "{:?}", workshop.areas_left());
}

/// A session that watches in a thread, until it is requested to end.
fn watch(workshop: &Workshop, name: &str, text: &str) -> JoinHandle<Summary> {
    let mut options = options(workshop, name);
    options.policies = Some(policies(text));
    let thread = std::thread::spawn(move || {
        let mut session = Session::new(options).unwrap();
        session.watch().unwrap();
        session.run(&mut |_| {}).unwrap()
    });
    until("the request stands", || workshop.areas().join("record.request").exists());
    thread
}

fn end(workshop: &Workshop, watching: JoinHandle<Summary>) -> Summary {
    ask(&workshop.areas(), std::process::id(), Request::End).unwrap();
    watching.join().unwrap()
}

/// Waits for a condition, at most a minute.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

fn start(workshop: &Workshop, path: &std::path::Path) -> Child {
    let mut command = Command::new(path);
    command.env("LATERALIS_DIR", workshop.areas()).stdin(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn programs_that_appear_later_are_recorded_from_their_first_event() {
    let Some(workshop) = Workshop::new("policy-later") else { return };
    let [brief, other] = ["brief", "other"].map(|name| workshop.compile(name, SCHEMA, BRIEF));
    std::fs::create_dir_all(workshop.areas()).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(workshop.areas(), private).unwrap();
    // Before the session watches: not recorded, and leaves nothing.
    assert!(start(&workshop, &brief).wait().unwrap().success());
    let watching = watch(&workshop, "out", "[[policy]]\nprogram = \"brief\"\n");
    for path in [&brief, &other, &brief, &brief] {
        assert!(start(&workshop, path).wait().unwrap().success());
    }
    let summary = end(&workshop, watching);
    check(&summary);
    assert_eq!(summary.report.problems, Vec::<String>::new());
    assert_eq!(programs(&summary), ["brief"; 3]);
    assert_eq!(summary.report.events["app:TICK"], 300);
    assert_eq!(summary.report.totals.lost.total, 0);
    assert!(workshop.areas_left().is_empty(), "{:?}", workshop.areas_left());
    assert!(!workshop.areas().join("record.request").exists());
}

#[test]
fn programs_that_run_already_are_recorded_from_then_on() {
    let Some(workshop) = Workshop::new("policy-running") else { return };
    let asked = workshop.compile("asked", SCHEMA, ASKED);
    let mut running = start(&workshop, &asked);
    let is_there = |enabled: bool| {
        let areas = discovery::list(Some(&workshop.areas()));
        let tick = |one: &discovery::EventInfo| one.name == "app:TICK" && one.enabled == enabled;
        areas.iter().any(|area| area.events.iter().any(tick))
    };
    until("the program can be traced", || is_there(false));
    // By properties that only the recorder sees.
    let label = "[[policy]]\nlabel_suffix = \"-> asked\"\nuser = 4294967294\nrecord = false\n\
        [[policy]]\nlabel_suffix = \"-> asked\"\nmode = \"overwrite\"\n";
    let watching = watch(&workshop, "out", label);
    until("it is recorded", || is_there(true));
    let mut late = start(&workshop, &asked);
    until("the late one is, too", || {
        let areas = discovery::list(Some(&workshop.areas()));
        areas.iter().filter(|area| area.overwrite && area.recorder_pid.is_some()).count() == 2
    });
    for child in [&mut running, &mut late] {
        until("its events are enabled", || {
            let areas = discovery::list(Some(&workshop.areas()));
            let own = areas.iter().find(|area| area.pid == child.id());
            own.is_some_and(|area| area.events.iter().any(|event| event.enabled))
        });
        child.stdin.take().unwrap().write_all(b"four").unwrap();
        assert!(child.wait().unwrap().success());
    }
    let summary = end(&workshop, watching);
    check(&summary);
    assert_eq!(summary.report.events["app:TICK"], 8);
    assert_eq!(programs(&summary), ["asked"; 2]);
}

#[test]
fn a_policy_that_does_not_fit_a_running_program_changes_nothing_in_it() {
    let Some(workshop) = Workshop::new("policy-refused") else { return };
    let asked = workshop.compile("asked", SCHEMA, ASKED);
    let mut running = start(&workshop, &asked);
    let areas = || discovery::list(Some(&workshop.areas()));
    until("the program can be traced", || !areas().is_empty());
    let mut options = options(&workshop, "out");
    options.mode = RingMode::Discard;
    options.policies = Some(policies("[[policy]]\nprogram = \"another\"\n"));
    let refused = Session::new(options).unwrap().attach(running.id()).unwrap_err();
    assert!(refused.to_string().contains("no policy"), "{refused}");
    assert!(!areas()[0].has_rings && areas()[0].recorder_pid.is_none());
    drop(running.stdin.take());
    assert!(running.wait().unwrap().success());
}
