// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A machine with two users: both are unprivileged processes; the second one also has threads of the test.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::process::{Gid, Uid};

use crate::live::{Running, writer};
use crate::place::Place;

/// The user `nobody`, which has this number in every distribution.
pub const SECOND: u32 = 65534;

/// A folder that both users can reach, with `lat` and the home of the first.
pub struct Machine {
    /// The folder. It is not below the build folder, which may be in the home of the superuser.
    pub place: Place,
    /// User id of the first user, for this test only.
    pub first: u32,
}

impl Machine {
    /// Prints a message and returns `None` if the test cannot become another user.
    pub fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: two users of the machine: only root can be both");
            return None;
        }
        // Partner: none; the numbers only need to differ, also from those of other test processes.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let first = 40_000 + std::process::id() % 2_000 * 8 + number % 8;
        let name = format!("lateralis-second-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder for the test");
        open_to_all(&folder);
        fs::copy(env!("CARGO_BIN_EXE_lat"), folder.join("lat")).expect("a copy of lat");
        let machine = Self { place: Place(folder), first };
        fs::create_dir(machine.home()).expect("a home");
        open_to_all(&machine.home());
        chown(machine.home(), Some(first), Some(first)).expect("its owner");
        let can = Command::new("true").uid(first).gid(first).status();
        if !can.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: two users of the machine: there is no user {first} here");
            return None;
        }
        Some(machine)
    }

    /// Home of the first user, which all users can read.
    pub fn home(&self) -> PathBuf {
        self.place.0.join("home")
    }

    /// Default folder for areas of the first user's programs.
    pub fn areas(&self) -> PathBuf {
        PathBuf::from(format!("/dev/shm/lateralis-{}", self.first))
    }

    /// Returns a command of one of the users with an empty umask: the worst case.
    pub fn command(&self, user: u32, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "umask 0; exec \"$0\" \"$@\""])
            .arg(program)
            .args(arguments)
            .uid(user)
            .gid(user)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home())
            .current_dir(self.home())
            .stdin(Stdio::null());
        command
    }

    /// Returns a `lat` command of one of the users.
    pub fn lat(&self, user: u32, arguments: &[&str]) -> Command {
        self.command(user, &self.place.0.join("lat"), arguments)
    }

    /// Starts a process of the first user, with pipes.
    pub fn start(mut command: Command) -> Running {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::of(command.spawn().expect("it can be started"))
    }

    /// Compiles the program of [`writer`], which all users may run; `None` if there is no compiler.
    pub fn writer(&self) -> Option<String> {
        let program = writer(&self.place)?;
        Some(program.to_str().expect("a path of letters").to_owned())
    }

    /// Returns the report of a recording in the home of the first user.
    pub fn report(&self, recording: &str) -> serde_json::Value {
        let text = fs::read(self.home().join(recording).join("report.json")).expect("a report");
        serde_json::from_slice(&text).expect("the report is JSON")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Folders with random names, made because the usual names were taken, are found by their prefix.
        for (folder, name) in
            [("/dev/shm", "lateralis"), ("/tmp", "lateralis"), ("/tmp", "lateralis-cache")]
        {
            let stem = format!("{name}-{}", self.first);
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(&stem) {
                    let _ = fs::remove_dir_all(entry.path());
                }
            }
        }
    }
}

fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("mode 0755");
}

/// Runs `work` as the second user: on a separate thread that has only the rights of that user.
pub fn second<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let user = || {
        let (uid, gid) = (Uid::from_raw(SECOND), Gid::from_raw(SECOND));
        rustix::thread::set_thread_groups(&[]).expect("no groups");
        rustix::thread::set_thread_res_gid(gid, gid, gid).expect("its group");
        rustix::thread::set_thread_res_uid(uid, uid, uid).expect("its user");
        work()
    };
    thread::scope(|scope| scope.spawn(user).join().expect("what the second user does ends"))
}
