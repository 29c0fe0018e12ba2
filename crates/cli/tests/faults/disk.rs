// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A full disk: everything written before is a recording, and the program is not affected.

use std::process::Command;

use super::writer::{account, committed, found, lost, steps};
use crate::place::Place;

/// Script of a shell in a mount namespace of its own: it mounts a file system of this size at `full`, records
/// to it, and then copies the recording elsewhere. The program continues until the recorder has found the
/// disk full and uses its reserve, at most one minute.
const SCRIPT: &str = r#"
    mkdir full && mount -t tmpfs -o size="$SIZE" tmpfs full || exit 77
    wait_for_the_end() {
        until [ -e full/out/.reserve ]; do sleep 0.05; done
        n=0
        while [ -e full/out/.reserve ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done
        sleep 0.2
    }
    wait_for_the_end | "$LAT" record --quiet --packet 4K -o full/out \
        -- "$PROGRAM" ledger 20 >said 2>errors
    echo $? >status
    cp -r full/out out
    umount full
"#;

#[test]
fn a_full_disk_ends_the_recording_cleanly_and_not_the_program() {
    let place = Place::new();
    let Some(program) = steps(&place) else { return };
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", SCRIPT])
        .current_dir(&place.0)
        .env("LAT", env!("CARGO_BIN_EXE_lat"))
        .env("PROGRAM", &program)
        .env("SIZE", "2m")
        .env("LATERALIS_DIR", place.0.join("areas"))
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        _ => return println!("SKIPPED: a file system of its own needs unshare and root"),
    }
    let text = |name: &str| std::fs::read_to_string(place.0.join(name)).expect("a file");
    let errors = text("errors");
    // The exit status is that of the program; problems of the recording are printed even with --quiet.
    assert_eq!(text("status").trim(), "0", "{errors}");
    assert!(errors.contains("No space left") && errors.contains("full/out"), "{errors}");
    let report = place.report("out");
    assert_eq!(report["complete"], false);
    let bytes = report["totals"]["bytes"].as_u64().expect("bytes");
    assert!(bytes > 1 << 20, "{bytes}");
    let problems = report["problems"].to_string();
    assert!(problems.contains("No space left"), "{problems}");
    let found = found(&place, "out");
    let account = account(&[found], committed(&place, "ledger"));
    // Events written after the end of the recording are not its losses: they were not recorded.
    assert!(account.missing > 0 && account.twice == 0, "{account:?}");
    assert!(lost(&place, "out") > 0 && lost(&place, "out") <= account.missing, "{account:?}");
    let info = place.json(&["info", "out", "--json"]);
    assert!(info.to_string().contains("events"), "{info}");
    let stats = place.lat(&["stats", "out"]);
    assert!(matches!(stats.status.code(), Some(0 | 1)));
    assert!(place.0.join("out/ctf/index").read_dir().expect("an index").next().is_some());
}
