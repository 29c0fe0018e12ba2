// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The helper as a process of its own, and recorders that borrow from it. Needs root and tracefs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lateralis_helper::{EVENTS_MAX, LOANS_OF_USER_MAX, Loan};

const TRACEFS: &str = "/sys/kernel/tracing";

struct Helper {
    child: Child,
    folder: PathBuf,
}

impl Helper {
    /// `None` where it cannot run; says so.
    fn start(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: lat-helper: only root can run it");
            return None;
        }
        if !Path::new(TRACEFS).join("available_events").exists() {
            println!("SKIPPED: lat-helper: tracefs is not mounted at {TRACEFS}");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("helper-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Some(Self { child: Self::spawn(&folder), folder })
    }

    fn spawn(folder: &Path) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lat-helper"));
        command.args(["--group", "0", "--socket"]).arg(folder.join("socket"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening: "), "{line}");
        child
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    fn instances(&self) -> Vec<String> {
        let mine = format!("lateralis-{}-", self.child.id());
        let names = fs::read_dir(Path::new(TRACEFS).join("instances")).unwrap().flatten();
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(&mine)).collect()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_is_lent_can_be_used_and_is_taken_away() {
    let Some(helper) = Helper::start("use") else { return };
    let loan = Loan::ask(&helper.socket()).unwrap();
    let path = loan.path();
    loan.buffer_kb(256).unwrap();
    loan.events([("sched", "sched_switch")]).unwrap();
    let format = fs::read_to_string(path.join("events/sched/sched_switch/format")).unwrap();
    assert!(format.contains("prev_pid"), "{format}");
    fs::write(path.join("events/sched/sched_switch/enable"), "1").unwrap();
    fs::write(path.join("tracing_on"), "1").unwrap();
    wait_until("no event came", || {
        let cpus = fs::read_dir(path.join("per_cpu")).unwrap().flatten();
        cpus.map(|cpu| fs::read_to_string(cpu.path().join("stats")).unwrap())
            .any(|stats| !stats.starts_with("entries: 0\n"))
    });
    assert_eq!(helper.instances().len(), 1);
    drop(loan);
    wait_until("it is still there", || helper.instances().is_empty());
}

#[test]
fn recordings_go_on_when_the_helper_is_killed() {
    let Some(mut helper) = Helper::start("kill") else { return };
    let loan = Loan::ask(&helper.socket()).unwrap();
    let left = helper.instances();
    helper.child.kill().unwrap();
    helper.child.wait().unwrap();
    fs::write(loan.path().join("tracing_on"), "1").unwrap();
    assert!(loan.buffer_kb(64).is_err(), "nobody is there to be asked");
    drop(loan);
    let path = Path::new(TRACEFS).join("instances").join(&left[0]);
    assert!(path.exists());
    helper.child = Helper::spawn(&helper.folder);
    assert!(!path.exists(), "the next one takes away what is left");
}

#[test]
fn whatever_is_sent_only_its_sender_suffers() {
    let Some(helper) = Helper::start("hostile") else { return };
    let try_connect = || {
        let client = UnixStream::connect(helper.socket()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut reader = BufReader::new(client.try_clone().unwrap());
        let mut greeting = String::new();
        // The directory that comes along is closed by being passed over.
        reader.read_line(&mut greeting).unwrap();
        (greeting, client, reader)
    };
    // A loan is counted a moment longer than its instance is there.
    let connect = || loop {
        let (greeting, client, reader) = try_connect();
        if greeting == "lateralis-helper 1\n" {
            return (client, reader);
        }
        assert!(greeting.starts_with("error: too many recordings of one user"), "{greeting}");
    };
    let (mut client, mut reader) = connect();
    for (line, said) in [
        ("events ../../..:enable", "error: not SUBSYSTEM:EVENT: ../../..:enable\n"),
        ("events no:such", "ok\n"),
        ("buffer_kb 99999999", "error: not 1 to 65536 KiB: 99999999\n"),
        ("\u{7}", "error: unknown request: \u{7}\n"),
    ] {
        writeln!(client, "{line}").unwrap();
        let mut answer = String::new();
        reader.read_line(&mut answer).unwrap();
        assert_eq!(answer, said);
    }
    drop((client, reader));
    let (mut client, mut reader) = connect();
    client.write_all(&[0xff, 0xfe, b'\n']).unwrap();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with("error: "), "{rest}");
    drop((client, reader));
    wait_until("instances are left", || helper.instances().is_empty());

    let mut held: Vec<_> = (0..LOANS_OF_USER_MAX).map(|_| connect()).collect();
    let mut refused = String::new();
    UnixStream::connect(helper.socket()).unwrap().read_to_string(&mut refused).unwrap();
    assert_eq!(refused, "error: too many recordings of one user at a time (4)\n");
    // Who asks before reading the greeting reads the reason all the same.
    let mut early = UnixStream::connect(helper.socket()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    early.write_all(b"buffer_kb 64\n").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    early.write_all(b"events sched:sched_switch\n").unwrap();
    let mut reason = String::new();
    early.read_to_string(&mut reason).unwrap();
    assert_eq!(reason, refused);
    drop(early);
    held.clear();
    wait_until("instances are left", || helper.instances().is_empty());
    wait_until("nothing is lent", || Loan::ask(&helper.socket()).is_ok());
}

#[test]
fn an_instance_whose_files_stay_open_counts_until_they_are_closed() {
    let Some(helper) = Helper::start("kept") else { return };
    let events = [("sched", "sched_switch")];
    let loan = Loan::ask(&helper.socket()).unwrap();
    loan.events(events).unwrap();
    let open = |name: &str| fs::File::options().write(true).open(loan.path().join(name)).unwrap();
    let mut switches = ["events/sched/sched_switch/enable", "tracing_on"].map(open);
    let pipe = fs::File::open(loan.path().join("per_cpu/cpu0/trace_pipe_raw")).unwrap();
    let directory = fs::File::open(loan.path()).unwrap();
    drop(loan);
    wait_until("it is not refused as still open", || {
        // Until the helper gives up removing it, others are lent, and these are too many for a moment.
        let refused = Loan::ask(&helper.socket()).map(drop);
        refused.is_err_and(|error| error.to_string().contains("still open"))
    });
    wait_until("others are left", || helper.instances().len() == 1);
    // A switch that was kept open is switched back.
    for switch in &mut switches {
        switch.write_all(b"1").unwrap();
    }
    let path = Path::new(TRACEFS).join("instances").join(&helper.instances()[0]);
    wait_until("it stays on", || fs::read_to_string(path.join("tracing_on")).unwrap() == "0\n");
    let about = fs::metadata(path.join("tracing_on")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&about), 0);
    drop((switches, pipe, directory));
    wait_until("it is still there", || helper.instances().is_empty());
    // A loan is counted a moment longer than its instance is there.
    wait_until("nothing is lent", || Loan::ask(&helper.socket()).is_ok());
}

#[test]
fn lines_cost_what_their_events_cost() {
    let Some(helper) = Helper::start("lines") else { return };
    let loan = Loan::ask(&helper.socket()).unwrap();
    let names: Vec<String> = (0..2 * EVENTS_MAX).map(|number| format!("n{number}")).collect();
    // Longer than a line may be: it comes in two.
    loan.events(names.iter().map(|name| ("no", name.as_str()))).unwrap();
    let many: Vec<_> =
        (0..40).flat_map(|_| names.iter().map(|name| ("no", name.as_str()))).collect();
    assert!(loan.events(many).is_err(), "that is more than there can be");
}
