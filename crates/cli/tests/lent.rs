// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernel events for a user other than root, through `lat-helper`. Needs root, to become another user.

use crate::kernel::usable;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The user `nobody`, which has this number in every distribution.
const NOBODY: u32 = 65534;

/// A folder that another user can reach, with `lat` and a running helper.
struct Lent {
    folder: PathBuf,
    helper: Child,
}

impl Lent {
    fn start(name: &str) -> Option<Self> {
        if !usable(&["setpriv", "babeltrace2"]) {
            return None;
        }
        let lat = Path::new(env!("CARGO_BIN_EXE_lat"));
        let helper = lat.with_file_name("lat-helper");
        if !helper.exists() {
            println!("SKIPPED: no lat-helper beside lat: cargo build -p lateralis-helper");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("lateralis-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("home")).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(lat, folder.join("lat")).unwrap();
        chown(folder.join("home"), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut command = Command::new(helper);
        command.args(["--group", &NOBODY.to_string(), "--socket"]).arg(folder.join("socket"));
        let mut helper = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(helper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening: "), "{line}");
        Some(Self { folder, helper })
    }

    /// Runs `lat` as a user with this group.
    fn lat_of(&self, group: u32, arguments: &[&str]) -> Output {
        let home = self.folder.join("home");
        Command::new("setpriv")
            .args([format!("--reuid={NOBODY}"), format!("--regid={group}")])
            .arg("--clear-groups")
            .arg(self.folder.join("lat"))
            .args(arguments)
            .current_dir(&home)
            .env("HOME", &home)
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("LATERALIS_DIR", home.join("areas"))
            .env("LATERALIS_HELPER", self.folder.join("socket"))
            .output()
            .unwrap()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = self.helper.kill();
        let _ = self.helper.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn members_of_a_group_see_what_the_kernel_does_and_others_do_not() {
    let Some(lent) = Lent::start("lent") else { return };
    let workload = ["--", "sh", "-c", "for n in 1 2 3 4 5; do sleep 0.02; done"];
    let words = ["record", "--kernel", "sched,syscalls", "--quiet", "-o"];
    let output = lent.lat_of(NOBODY, &[&words[..], &["mine"], &workload].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    let recording = lent.folder.join("home/mine");
    let report = fs::read(recording.join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{}", report["problems"]);
    let text = crate::kernel::babeltrace(&recording.join("ctf"));
    let sleeps = text.lines().filter(|line| line.contains("sys_enter_clock_nanosleep"));
    assert!(sleeps.count() >= 5, "five sleeps were slept");
    assert!(text.contains("sched_switch"), "and the processor was given to others");

    let output = lent.lat_of(NOBODY - 1, &[&words[..], &["others"], &workload].concat());
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let report = fs::read_to_string(lent.folder.join("home/others/report.json")).unwrap();
    assert!(report.contains("nor lends lat-helper"), "{said} {report}");
}

#[test]
fn a_killed_helper_changes_no_recording_and_the_next_one_lends_again() {
    for round in 0..crate::faults::rounds(3) {
        let Some(mut lent) = Lent::start(&format!("killed-{round}")) else { return };
        let home = lent.folder.join("home");
        let script = "for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.03; done";
        let recorder = Command::new("setpriv")
            .args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")])
            .arg("--clear-groups")
            .arg(lent.folder.join("lat"))
            .args(["record", "--kernel", "sched,syscalls:*nanosleep", "--quiet", "-o", "out"])
            .args(["--", "sh", "-c", script])
            .current_dir(&home)
            .env("HOME", &home)
            .env("LATERALIS_DIR", home.join("areas"))
            .env("LATERALIS_HELPER", lent.folder.join("socket"))
            .stderr(Stdio::piped())
            .spawn();
        let mut recorder = recorder.unwrap();
        // Once its report is written, it has everything that it needs from the helper.
        crate::faults::wait_for("the recording", || {
            home.join("out/ctf/metadata").exists() || recorder.try_wait().unwrap().is_some()
        });
        crate::faults::any_moment(round);
        lent.helper.kill().unwrap();
        lent.helper.wait().unwrap();
        crate::faults::killed("helper");
        let output = recorder.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "round {round}: {said}");
        let report = fs::read(home.join("out/report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{}", report["problems"]);
        let sleeps = report["events"]["syscalls:sys_enter_clock_nanosleep"].as_u64();
        assert_eq!(sleeps, Some(10), "round {round}: {}", report["events"]);
    }
}
