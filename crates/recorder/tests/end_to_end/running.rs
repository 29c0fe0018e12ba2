// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running programs: attaching, controlling, snapshots, triggers, remains of crashes.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lateralis_recorder::linux::discovery::{self, Target};
use lateralis_recorder::linux::{Request, Session, ask, recover, snapshot, targets};
use lateralis_recorder::report::{Origin, Report};
use lateralis_recorder::{
    CtfVersion, Error, EventMatch, MatchValue, Patterns, RecordOptions, TriggerOptions,
};
use lateralis_ring::RingMode;

use crate::program::{Workshop, babeltrace, command};
use crate::{FAST, SCHEMA, check, options, record};

/// Ticks every 100 us until its standard input ends.
const TICKER: &str = r#"
    #include <poll.h>
    #include <unistd.h>
    int main(void) {
        struct pollfd input = {0, POLLIN, 0};
        for (uint64_t n = 0;; n++) {
            lat_app_tick(n);
            if (n % 8 == 0) lat_app_pair(1, (uint32_t)n);
            if (poll(&input, 1, 0) != 0) return 3;
            usleep(100);
        }
    }
"#;

/// A running program; ended by closing its input, killed if the test fails.
struct Running(Child);

impl Running {
    fn start(workshop: &Workshop, source: &str) -> Running {
        Running::start_with(workshop, source, &[])
    }

    fn start_with(workshop: &Workshop, source: &str, flags: &[&str]) -> Running {
        let binary = workshop.compile_with("running", SCHEMA, source, flags);
        std::fs::create_dir_all(workshop.areas()).unwrap();
        private(workshop);
        let child = Command::new(binary)
            .env("LATERALIS_DIR", workshop.areas())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let running = Running(child);
        wait_for(|| discovery::list(Some(&workshop.areas())).len() == 1);
        running
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn end(mut self) -> i32 {
        drop(self.0.stdin.take());
        self.0.wait().unwrap().code().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn private(workshop: &Workshop) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(workshop.areas(), mode).unwrap();
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < end, "waited for 30 s in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn attach_control_and_leave() {
    let Some(workshop) = Workshop::new("attach") else { return };
    let running = Running::start(&workshop, TICKER);
    let (pid, areas) = (running.pid(), workshop.areas());
    let target = Target::Pid(pid);
    let list = discovery::list(Some(&areas));
    assert_eq!(list[0].pid, pid);
    assert!(list[0].alive && !list[0].has_rings && list[0].recorder_pid.is_none());
    assert_eq!(list[0].events.len(), 3);
    assert!(list[0].events.iter().all(|event| !event.enabled));
    let enable = Patterns::parse("app:TICK").unwrap();
    let early = discovery::set_enabled(Some(&areas), &target, &enable, true);
    assert!(matches!(early, Err(Error::NotRecorded { .. })), "{early:?}");

    let mut options = options(&workshop, "out");
    options.enable = enable.clone();
    let mut session = Session::new(options.clone()).unwrap();
    session.attach(pid).unwrap();
    let recorder = std::thread::spawn(move || session.run(&mut |_| {}).unwrap());
    let own = std::process::id();
    let events = || ask(&areas, own, Request::Status).unwrap().events;
    let flush = || ask(&areas, own, Request::Flush).unwrap();
    wait_for(|| {
        flush();
        events() > 100
    });
    // A recording in progress is readable.
    if let Some(read) = babeltrace(&workshop.path("out")) {
        assert!(read.lines.len() > 100, "{}", read.warnings);
    }
    // A second recorder is rejected.
    let mut second = Session::new(RecordOptions::new(workshop.path("second"))).unwrap();
    let refused = second.attach(pid);
    assert!(
        matches!(refused, Err(Error::AlreadyRecorded { .. } | Error::NotTraceable { .. })),
        "{refused:?}"
    );
    drop(second);
    let pair = Patterns::parse("app:PAIR").unwrap();
    assert_eq!(discovery::set_enabled(Some(&areas), &target, &pair, true).unwrap(), 1);
    let nothing = Patterns::parse("other").unwrap();
    let error = discovery::set_enabled(Some(&areas), &target, &nothing, true).unwrap_err();
    assert!(matches!(error, Error::NoSuchEvent(_)), "{error}");
    let list = discovery::list(Some(&areas));
    assert_eq!(list[0].recorder_pid, Some(own));
    let enabled: Vec<bool> = list[0].events.iter().map(|event| event.enabled).collect();
    assert_eq!(enabled, [true, false, true]);
    let before = events();
    wait_for(|| {
        flush();
        events() > before + 20
    });
    // While it is stopped nothing is recorded; then it continues.
    targets::stop(Some(&areas), &target).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    flush();
    std::thread::sleep(Duration::from_millis(20));
    let stopped_at = events();
    std::thread::sleep(Duration::from_millis(50));
    flush();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(events(), stopped_at);
    targets::start(Some(&areas), &target, &options).unwrap();
    wait_for(|| {
        flush();
        events() > stopped_at
    });
    // A snapshot of the rings' contents while the recorder is running.
    let shot = snapshot(Some(&areas), &target, &workshop.path("shot"), CtfVersion::Ctf1).unwrap();
    assert_eq!(shot.report.origin, Origin::Snapshot);
    assert!(shot.report.totals.events > 0);
    check(&shot);
    ask(&areas, own, Request::End).unwrap();
    let summary = recorder.join().unwrap();
    assert!(summary.exit_status.is_none());
    assert_eq!(summary.report.totals.lost.total, 0);
    assert!(summary.report.events["app:PAIR"] > 0);
    check(&summary);
    // The program continues, unrecorded. It only marks its end: a scan of the areas removes its own.
    let list = discovery::list(Some(&areas));
    assert!(list[0].recorder_pid.is_none());
    assert!(list[0].events.iter().all(|event| !event.enabled));
    assert_eq!(running.end(), 3);
    assert!(discovery::list(Some(&areas)).iter().all(|area| !area.alive));
    assert!(workshop.areas_left().is_empty());
}

#[test]
fn patchable_sites_follow_from_outside() {
    let Some(workshop) = Workshop::new("patchable") else { return };
    if !cfg!(target_arch = "x86_64") {
        eprintln!("SKIPPED: patchable sites: x86-64 only");
        return;
    }
    let running = Running::start_with(&workshop, TICKER, &["-DLAT_PATCHABLE"]);
    let mut options = options(&workshop, "out");
    options.enable = Patterns::parse("app:TICK").unwrap();
    options.duration = Some(Duration::from_millis(300));
    let mut session = Session::new(options.clone()).unwrap();
    session.attach(running.pid()).unwrap();
    let summary = session.run(&mut |_| {}).unwrap();
    let ticks = |report: &Report| report.events.get("app:TICK").copied().unwrap_or(0);
    assert!(ticks(&summary.report) > 0, "{:?}", summary.report.problems);
    assert!(!summary.report.events.contains_key("app:PAIR"));
    check(&summary);
    // Disabled again, and enabled again.
    options.output = workshop.path("again");
    let mut session = Session::new(options).unwrap();
    session.attach(running.pid()).unwrap();
    let again = session.run(&mut |_| {}).unwrap();
    assert!(ticks(&again.report) > 0, "{:?}", again.report.problems);
    assert_eq!(running.end(), 3);
}

#[test]
fn a_flight_recorder_needs_no_recorder() {
    let Some(workshop) = Workshop::new("flight") else { return };
    let running = Running::start(&workshop, TICKER);
    let (areas, target) = (workshop.areas(), Target::Pid(running.pid()));
    let mut options = options(&workshop, "unused");
    options.buffer_bytes = 16384;
    options.packet_bytes = 4096;
    targets::start(Some(&areas), &target, &options).unwrap();
    let mut first = None;
    wait_for(|| {
        let name = format!("shot-{}", first.is_some());
        let _ = std::fs::remove_dir_all(workshop.path(&name));
        let shot = snapshot(Some(&areas), &target, &workshop.path(&name), CtfVersion::Ctf1);
        let shot = shot.unwrap();
        check(&shot);
        let newest = shot.report.totals;
        first.get_or_insert(newest);
        // Older packets have been overwritten, as intended.
        newest.events > 300 && shot.report.totals.bytes <= 16384 * 64
    });
    targets::stop(Some(&areas), &target).unwrap();
    drop(running);
    // Killed: its area still exists, and contains its last events.
    let left = workshop.areas_left();
    assert_eq!(left.len(), 1);
    let recovered = recover(&left[0], &workshop.path("recovered"), CtfVersion::Ctf1).unwrap();
    assert_eq!(recovered.report.origin, Origin::Recovered);
    assert!(recovered.report.totals.events > 100);
    check(&recovered);
    // The same area at an offset in a file.
    let mut image = vec![0x5a; 12_296];
    image.extend(std::fs::read(&left[0]).unwrap());
    std::fs::write(workshop.path("image"), &image).unwrap();
    let image = workshop.path("image");
    let scanned = recover(&image, &workshop.path("scanned"), CtfVersion::Ctf1).unwrap();
    assert_eq!(scanned.report.events, recovered.report.events);
    let nothing = recover(&workshop.path("running.c"), &workshop.path("no"), CtfVersion::Ctf1);
    assert!(matches!(nothing, Err(Error::NothingToRecover(_))));
    assert!(!workshop.path("no").exists());
}

#[test]
fn overwrite_mode_keeps_the_newest() {
    let Some(workshop) = Workshop::new("overwrite") else { return };
    let binary = workshop.compile("fast", SCHEMA, FAST);
    let mut options = options(&workshop, "out");
    options.mode = RingMode::Overwrite;
    options.buffer_bytes = 65536;
    options.packet_bytes = 4096;
    let summary = record(options, &command(&[binary.to_str().unwrap(), "50000"]));
    let totals = summary.report.totals;
    assert_eq!(totals.lost.total, 0);
    assert!(totals.lost_packets > 0, "{totals:?}");
    assert!(totals.events > 1000 && totals.events < 100_000, "{totals:?}");
    if let Some(read) = check(&summary) {
        assert!(read.lines.iter().any(|line| line.contains("49999")), "{:?}", read.lines.last());
    }
}

#[test]
fn a_trigger_records_from_the_start_event_to_the_count() {
    let Some(workshop) = Workshop::new("trigger") else { return };
    let running = Running::start(&workshop, TICKER);
    let mut options = options(&workshop, "out");
    options.enable = Patterns::parse("app:TICK").unwrap();
    options.trigger = Some(TriggerOptions {
        start: Some(EventMatch {
            event: "app:TICK".to_owned(),
            value: MatchValue::Word(0x40, 0xff),
        }),
        stop: None,
        duration: None,
        count: Some(100),
    });
    let mut session = Session::new(options).unwrap();
    session.attach(running.pid()).unwrap();
    let summary = session.run(&mut |_| {}).unwrap();
    assert_eq!(summary.report.events["app:TICK"], 100);
    if let Some(read) = check(&summary) {
        let ticks: Vec<u64> = read
            .lines
            .iter()
            .filter(|line| line.contains("app:TICK"))
            .filter_map(|line| line.rsplit(['{', '}', ' ']).find_map(|word| word.parse().ok()))
            .collect();
        assert_eq!(ticks[0] & 0xff, 0x40);
        assert!(ticks.windows(2).all(|pair| pair[1] == pair[0] + 1), "{ticks:?}");
    }
    assert_eq!(running.end(), 3);
}

#[test]
fn the_cap_ends_the_recording_and_not_the_program() {
    let Some(workshop) = Workshop::new("cap") else { return };
    let binary = workshop.compile("fast", SCHEMA, FAST);
    let mut options = options(&workshop, "out");
    options.max_disk_bytes = Some(200_000);
    let summary = record(options, &command(&[binary.to_str().unwrap(), "50000"]));
    assert_eq!(summary.exit_status, Some(0));
    let report = &summary.report;
    assert!(!report.complete);
    assert!(report.problems.iter().any(|text| text.contains("cap")), "{:?}", report.problems);
    assert!(report.totals.bytes <= 200_000 && report.totals.not_written > 0);
    if let Some(read) = babeltrace(&summary.output) {
        let events = report.totals.events + report.totals.internal_events;
        assert_eq!(read.lines.len() as u64, events);
    }
}

#[test]
fn what_a_killed_recorder_left_is_made_whole_again() {
    let Some(workshop) = Workshop::new("torn") else { return };
    let binary = workshop.compile("fast", SCHEMA, FAST);
    let mut options = options(&workshop, "out");
    options.packet_bytes = 4096;
    options.buffer_bytes = 1 << 20;
    options.ctf_version = CtfVersion::Ctf1;
    let summary = record(options, &command(&[binary.to_str().unwrap(), "5000"]));
    assert_eq!(summary.report.totals.events, 10_000);
    // In the state left by a killed recorder: the initial report, a partly written packet, no
    // index; and one packet with a flipped bit.
    let mut report = summary.report.clone();
    report.complete = false;
    report.streams.clear();
    report.events.clear();
    std::fs::write(summary.output.join("report.json"), report.to_json()).unwrap();
    std::fs::remove_dir_all(summary.output.join("ctf/index")).unwrap();
    let stream = summary.output.join(&summary.report.streams[0].files[0]);
    let mut bytes = std::fs::read(&stream).unwrap();
    let whole = bytes.len();
    bytes.truncate(whole - 100);
    bytes[1000] ^= 4;
    std::fs::write(&stream, &bytes).unwrap();
    let again = recover(&summary.output, &workshop.path("again"), CtfVersion::Ctf1).unwrap();
    let damages = &again.report.streams[0].damages;
    assert_eq!(damages.len(), 2, "{damages:?}");
    let totals = again.report.totals;
    assert!(totals.events < 10_000 && totals.events > 9_000, "{totals:?}");
    check(&again);
    let text = std::fs::read_to_string(again.output.join("report.json")).unwrap();
    assert_eq!(Report::from_json(&text).unwrap().origin, Origin::Recovered);
    assert!(again.output.join("ctf/index").read_dir().unwrap().next().is_some());
}
