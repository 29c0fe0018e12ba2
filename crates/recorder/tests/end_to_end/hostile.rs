// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Misbehaving programs affect only themselves, not the recording.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use lateralis_recorder::CtfVersion;
use lateralis_recorder::linux::{Request, Session, ask, recover};
use lateralis_ring::abi::{self, header, ring};

use crate::program::{Workshop, babeltrace, command};
use crate::{SCHEMA, check, options};

/// Leaves an area that is then damaged by `spoil`, and recovers it.
fn spoiled(name: &str, spoil: impl Fn(&File)) {
    let Some(workshop) = Workshop::new(name) else { return };
    let binary = workshop.compile("killed", SCHEMA, KILLED);
    let mut session = Session::new(options(&workshop, "out")).unwrap();
    session.launch(&command(&[binary.to_str().unwrap()]), &[]).unwrap();
    // The recorder dies before it reads anything.
    let start = std::time::Instant::now();
    while workshop.areas_left().is_empty() || start.elapsed().as_millis() < 300 {
        assert!(start.elapsed().as_secs() < 30);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(session);
    let area = workshop.areas_left().remove(0);
    let file = OpenOptions::new().read(true).write(true).open(&area).unwrap();
    spoil(&file);
    match recover(&area, &workshop.path("again"), CtfVersion::Ctf1) {
        Ok(summary) => {
            check(&summary);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

const KILLED: &str = r#"
    #include <signal.h>
    int main(void) {
        for (uint64_t n = 0; n < 3000; n++) lat_app_tick(n);
        raise(SIGKILL);
        return 0;
    }
"#;

#[test]
fn nonsense_in_an_area_is_survived() {
    spoiled("cursor", |file| {
        for (offset, value) in [(ring::CURSOR, u64::MAX), (ring::LOST_FULL, u64::MAX)] {
            file.write_all_at(&value.to_ne_bytes(), abi::RINGS_OFFSET + offset).unwrap();
        }
    });
    spoiled("geometry", |file| {
        file.write_all_at(&u64::MAX.to_ne_bytes(), header::RING_STRIDE).unwrap();
    });
    spoiled("packet", |file| {
        let packet = abi::RINGS_OFFSET + abi::RING_CONTROL_BYTES;
        file.write_all_at(&[0xff; 4000], packet + 200).unwrap();
    });
    spoiled("schema", |file| {
        file.write_all_at(&[0xff; 64], abi::HEAP_OFFSET).unwrap();
    });
    spoiled("short", |file| file.set_len(abi::RINGS_OFFSET + 5000).unwrap());
}

/// Writes until its memory is truncated, or for five seconds.
const CUT: &str = r#"
    #include <signal.h>
    #include <unistd.h>
    static void gone(int signal) { (void)signal; _exit(0); }
    int main(void) {
        signal(SIGBUS, gone);
        alarm(30);
        for (uint64_t n = 0;; n++) {
            lat_app_tick(n);
            if (n % 64 == 0) usleep(100);
        }
    }
"#;

#[test]
fn an_area_that_is_cut_while_it_is_recorded_ends_only_itself() {
    let Some(workshop) = Workshop::new("cut") else { return };
    let binary = workshop.compile("cut", SCHEMA, CUT);
    // Truncation inside a page leaves zeros up to its end, without a signal.
    let inside_ring = abi::RINGS_OFFSET + abi::RING_CONTROL_BYTES + 10_000;
    for (name, bytes) in [("ring", inside_ring), ("control", abi::RINGS_OFFSET + 8), ("all", 0)] {
        let mut session = Session::new(options(&workshop, name)).unwrap();
        session.launch(&command(&[binary.to_str().unwrap()]), &[]).unwrap();
        let recorder = std::thread::spawn(move || session.run(&mut |_| {}).unwrap());
        let start = std::time::Instant::now();
        let own = std::process::id();
        loop {
            assert!(start.elapsed().as_secs() < 30, "{name}: nothing was recorded");
            let _ = ask(&workshop.areas(), own, Request::Flush);
            let status = ask(&workshop.areas(), own, Request::Status);
            if status.is_ok_and(|status| status.events > 1000) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let area = workshop.areas_left().remove(0);
        OpenOptions::new().write(true).open(&area).unwrap().set_len(bytes).unwrap();
        let summary = recorder.join().unwrap();
        let report = &summary.report;
        assert!(report.totals.events > 1000, "{name}");
        assert!(!report.problems.is_empty(), "{name}: the cut went unnoticed");
        // The written part is a valid trace, and every time in it is from this recording.
        if let Some(read) = babeltrace(&summary.output) {
            let clock = report.clock.as_ref().unwrap();
            let (first, last) = (clock.start.unwrap().ticks, clock.end.unwrap().ticks);
            for line in &read.lines {
                let ticks = line.trim_start_matches('[').split(']').next().unwrap();
                let ticks: u64 = ticks.trim().parse().unwrap();
                assert!((first..=last).contains(&ticks), "{name}: {first} {last}: {line}");
            }
        }
        let _ = std::fs::remove_file(&area);
    }
}
