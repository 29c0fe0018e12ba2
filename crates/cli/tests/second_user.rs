// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two users of one machine: the second cannot read, stop, enlarge or delay anything of the first.

mod attack;
mod machine;
mod servers;

use std::fs::{self, File, OpenOptions};
use std::io::BufReader;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use crate::live::{Running, ready, write};
use machine::{Machine, SECOND, second};

/// Time limit of a recording on the busiest machine; no step here waits for a time limit.
const PROMPT: Duration = Duration::from_secs(180);

/// Returns all files and folders below a path, and the path itself.
fn all_below(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    let mut at = 0;
    while at < all.len() {
        if is_folder(&all[at]) {
            let entries = fs::read_dir(&all[at]).expect("a folder").flatten();
            all.extend(entries.map(|entry| entry.path()));
        }
        at += 1;
    }
    all
}

/// Returns the operations that the second user can perform on these paths.
fn possible(paths: &[PathBuf]) -> Vec<String> {
    let tries = |path: &PathBuf| {
        let open = |write: bool| {
            let mut options = OpenOptions::new();
            options
                .read(!write)
                .append(write)
                .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
            options.open(path).is_ok_and(|file| file.metadata().is_ok_and(|about| about.is_file()))
        };
        let asks = || {
            let socket = UnixDatagram::unbound().expect("a socket");
            ["stop", "end", ""].iter().any(|word| socket.send_to(word.as_bytes(), path).is_ok())
        };
        let done = [
            ("reads", open(false)),
            ("writes", open(true)),
            ("lists", fs::read_dir(path).is_ok()),
            (
                "locks",
                File::open(path).is_ok_and(|file| {
                    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockShared)
                        .is_ok()
                }),
            ),
            ("adds to", File::create_new(path.join("planted")).is_ok()),
            ("asks", asks()),
            ("removes", fs::rename(path, path.with_extension("gone")).is_ok()),
        ];
        let done = done.into_iter().filter(|(_, is_done)| *is_done);
        done.map(|(what, _)| format!("{what} {}", path.display())).collect::<Vec<_>>()
    };
    second(|| paths.iter().flat_map(tries).collect())
}

/// Starts a recording of the writer by the first user, and writes a thousand events.
fn begin(
    machine: &Machine,
    options: &[&str],
    environment: &[(&str, &Path)],
) -> Option<(Running, BufReader<std::process::ChildStdout>)> {
    let program = machine.writer()?;
    let mut command = machine.lat(machine.first, &[options, &["--", &program]].concat());
    command.envs(environment.iter().copied());
    let mut recorder = Machine::start(command);
    let mut output = BufReader::new(recorder.0.stdout.take().expect("its output"));
    ready(&mut output);
    write(&mut recorder, &mut output, 1000);
    Some((recorder, output))
}

/// Ends it, and checks that none of `events` was lost and no problem was reported.
fn ends_whole(machine: &Machine, mut recorder: Running, recording: &str, events: u64) {
    drop(recorder.0.stdin.take());
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    let report = machine.report(recording);
    assert_eq!(report["events"]["server:REQUEST"], events, "{}", report["events"]);
    assert_eq!(report["totals"]["lost"]["total"], 0, "{}", report["totals"]);
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{}", report["problems"]);
    let paused = &report["paused"];
    assert!(paused.is_null() || paused.as_array().is_some_and(Vec::is_empty), "{paused}");
}

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

/// Runs commands that act on recordings as the second user.
fn commands_of_the_second(machine: &Machine, areas: &Path) {
    let pid = first_pid(areas);
    for target in [None, Some(areas)] {
        for arguments in [
            &["stop", "writer-program"][..],
            &["stop", &pid],
            &["start", &pid],
            &["snapshot", &pid, "-o", "/tmp/taken"],
            &["clean"],
            &["list", "--all"],
            &["recover", areas.to_str().expect("letters"), "-o", "/tmp/taken"],
        ] {
            let mut command = machine.lat(SECOND, arguments);
            if let Some(areas) = target {
                command.env("LATERALIS_DIR", areas);
            }
            let output = command.output().expect("lat can be started");
            let said = text(&output);
            assert!(output.status.code().is_some_and(|code| code <= 2), "{arguments:?}: {said}");
            let names = said.matches("writer-program").count();
            let own = arguments.iter().filter(|word| **word == "writer-program").count();
            assert!(names <= own, "{arguments:?}: {said}");
        }
    }
    assert!(!Path::new("/tmp/taken").exists());
}

/// Returns the process id of a program that has an area there.
fn first_pid(areas: &Path) -> String {
    let names = fs::read_dir(areas).expect("areas").flatten().map(|entry| entry.file_name());
    let area =
        names.filter_map(|name| name.into_string().ok()).find(|name| name.ends_with(".area"));
    area.expect("an area").split('-').next().expect("a number").to_owned()
}

#[test]
fn a_recording_is_read_stopped_and_changed_by_its_user_alone() {
    let Some(machine) = Machine::new() else { return };
    let Some((mut recorder, mut output)) = begin(&machine, &["record", "-o", "out"], &[]) else {
        return;
    };
    let mut mine = all_below(&machine.home().join("out"));
    assert!(mine.len() > 4, "{mine:?}");
    mine.extend(all_below(&machine.areas()));
    let is = |ending: &str| mine.iter().any(|path| path.to_string_lossy().ends_with(ending));
    assert!(is(".area") && is(".sock") && is(".lock") && is("metadata"), "{mine:?}");
    assert_eq!(possible(&mine), Vec::<String>::new());
    commands_of_the_second(&machine, &machine.areas());
    write(&mut recorder, &mut output, 1000);
    ends_whole(&machine, recorder, "out", 2000);
}

#[test]
fn areas_where_everybody_may_look_are_still_their_users_alone() {
    let Some(machine) = Machine::new() else { return };
    let areas = machine.home().join("areas");
    let make = machine.command(machine.first, Path::new("mkdir"), &["-m", "755", "areas"]).status();
    assert!(make.expect("mkdir").success());
    let environment = [("LATERALIS_DIR", &*areas)];
    let begun = begin(&machine, &["record", "-o", "out"], &environment);
    let Some((mut recorder, mut output)) = begun else { return };
    let mine: Vec<_> = all_below(&areas).into_iter().filter(|path| *path != areas).collect();
    assert!(mine.iter().any(|path| path.extension().is_some_and(|it| it == "sock")), "{mine:?}");
    assert_eq!(possible(&mine), Vec::<String>::new());
    commands_of_the_second(&machine, &areas);
    write(&mut recorder, &mut output, 1000);
    ends_whole(&machine, recorder, "out", 2000);
}

/// Names taken by the second user, removed on drop.
struct Taken(Vec<PathBuf>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.iter().for_each(|path| drop(fs::remove_dir_all(path)));
    }
}

/// The second user takes every predictable name that `lat` of the first user would use.
fn take_names(machine: &Machine) -> Taken {
    let uid = machine.first;
    let numbered = |stem: &str| {
        let others = (1..10).map(|number| format!("{stem}-{number}")).collect::<Vec<_>>();
        std::iter::once(stem.to_owned()).chain(others).map(PathBuf::from).collect::<Vec<_>>()
    };
    let stems = ["/dev/shm/lateralis", "/tmp/lateralis", "/tmp/lateralis-cache"];
    let names: Vec<_> = stems.iter().flat_map(|stem| numbered(&format!("{stem}-{uid}"))).collect();
    // Many more of the same kind, so that a search through them takes time.
    let more = ["/dev/shm", "/tmp"].iter().flat_map(|folder| {
        (0..2000)
            .map(move |number| PathBuf::from(format!("{folder}/lateralis-{uid}-{number:016x}")))
    });
    let all: Vec<_> = names.into_iter().chain(more).collect();
    second(|| all.iter().for_each(|name| fs::create_dir(name).expect("a name")));
    Taken(all)
}

/// Makes a folder like `/tmp`.
fn folder_for_all(machine: &Machine, name: &str) -> PathBuf {
    let folder = machine.place.0.join(name);
    fs::create_dir(&folder).expect("a folder for all");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).expect("its mode");
    folder
}

#[test]
fn names_that_another_user_has_taken_stop_and_delay_nothing() {
    let Some(machine) = Machine::new() else { return };
    let _taken = take_names(&machine);
    let runtime = folder_for_all(&machine, "runtime");
    second(|| fs::create_dir(runtime.join("lateralis")).expect("a name"));
    let began = Instant::now();
    // No home folder, and therefore no cache either.
    let nowhere = [("HOME", Path::new("")), ("XDG_RUNTIME_DIR", &*runtime)];
    let begun = begin(&machine, &["record", "-o", "out"], &nowhere);
    let Some((mut recorder, mut output)) = begun else { return };
    let list = |environment: &[(&str, &Path)]| {
        let mut command = machine.lat(machine.first, &["list"]);
        text(&command.envs(environment.iter().copied()).output().expect("lat can be started"))
    };
    let listed = list(&nowhere);
    assert!(listed.contains("writer-program"), "its own user finds it: {listed}");
    for word in ["stop", "start"] {
        let mut command = machine.lat(machine.first, &[word, "writer-program"]);
        let output = command.envs(nowhere).output().expect("lat can be started");
        assert!(output.status.success(), "{word}: {}", text(&output));
    }
    write(&mut recorder, &mut output, 1000);
    drop(recorder.0.stdin.take());
    let (status, said) = recorder.wait();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(machine.report("out")["events"]["server:REQUEST"], 2000);
    // An uninstrumented program: its library must be in a folder in which other users cannot replace it.
    let words = ["record", "-q", "--with", "io", "-o", "io", "--", "cat", "/etc/passwd"];
    let with = machine.lat(machine.first, &words).envs(nowhere).output().expect("lat");
    assert!(with.status.success(), "{}", text(&with));
    let events = &machine.report("io")["events"];
    assert!(events["io:READ_BEGIN"].as_u64().or(events["io:READ"].as_u64()) > Some(0), "{events}");
    assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
}

#[test]
fn a_folder_that_another_user_put_under_the_name_takes_no_recording() {
    let Some(machine) = Machine::new() else { return };
    let shared = folder_for_all(&machine, "shared");
    let planted = shared.join("out");
    second(|| {
        fs::create_dir(&planted).expect("a folder under the name of the recording");
        fs::set_permissions(&planted, fs::Permissions::from_mode(0o777)).expect("its mode");
    });
    let name = planted.to_str().expect("letters");
    let output = machine.lat(machine.first, &["record", "-o", name, "--", "true"]).output();
    let output = output.expect("lat can be started");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("belongs to another user"), "{}", text(&output));
    assert_eq!(fs::read_dir(&planted).expect("the folder").count(), 0);
}
