// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands run when a condition fires: one at a time, each with a time limit.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::report::{Done, Outcome};

/// Time between two checks of a command that the end of the recording waits for.
const LOOK: Duration = Duration::from_millis(5);

struct Running {
    child: Child,
    /// Number of the firing.
    number: u64,
    action: String,
    begun: Instant,
    is_killed: bool,
}

/// Runs the commands.
pub(in super::super) struct Commands {
    running: Option<Running>,
    time_max: Duration,
}

fn with(action: &str, outcome: Outcome, begun_ns: i64) -> Done {
    let action = action.to_owned();
    Done { action, outcome, begun_ns, took_ns: None, exit_status: None, cause: None }
}

impl Commands {
    pub(in super::super) fn new(time_max: Duration) -> Commands {
        Commands { running: None, time_max }
    }

    /// Runs a command, unless one is already running.
    pub(in super::super) fn run(
        &mut self,
        (number, action, begun_ns): (u64, &str, i64),
        words: &[String],
        environment: &[(&str, OsString)],
    ) -> Done {
        if self.running.is_some() {
            return with(action, Outcome::Skipped, begun_ns);
        }
        match spawn(words, environment) {
            Ok(child) => {
                let (action_text, begun) = (action.to_owned(), Instant::now());
                let running =
                    Running { child, number, action: action_text, begun, is_killed: false };
                self.running = Some(running);
                with(action, Outcome::Running, begun_ns)
            }
            Err(cause) => {
                let failed = with(action, Outcome::Failed, begun_ns);
                Done { cause: Some(cause.to_string()), ..failed }
            }
        }
    }

    /// The command that has ended since the last call, with the number of its firing. A command that
    /// takes too long is killed, with the processes it started.
    pub(in super::super) fn look(&mut self) -> Option<(u64, Done)> {
        let running = self.running.as_mut()?;
        let status = running.child.try_wait();
        let took = running.begun.elapsed();
        if matches!(status, Ok(None)) {
            if took >= self.time_max && !running.is_killed {
                running.is_killed = true;
                let pid = i32::try_from(running.child.id()).ok().and_then(Pid::from_raw);
                // It leads a process group, and has not been waited for yet, so its pid has not been reused.
                let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
            }
            return None;
        }
        let running = self.running.take()?;
        let outcome = if running.is_killed { Outcome::TimedOut } else { Outcome::Done };
        let mut done = with(&running.action, outcome, 0);
        done.took_ns = u64::try_from(took.as_nanos()).ok();
        match status {
            Ok(status) => done.exit_status = status.and_then(exit_status),
            Err(cause) => done.cause = Some(cause.to_string()),
        }
        Some((running.number, done))
    }

    /// Waits for the running command, within its time limit.
    pub(in super::super) fn end(&mut self) -> Option<(u64, Done)> {
        while self.running.is_some() {
            if let Some(done) = self.look() {
                return Some(done);
            }
            std::thread::sleep(LOOK);
        }
        None
    }
}

fn exit_status(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| status.signal().map(|number| 128 + number))
}

/// Its output goes to this process's standard error, because standard output is the traced program's.
fn spawn(words: &[String], environment: &[(&str, OsString)]) -> io::Result<Child> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::from(output)).process_group(0);
    for (name, value) in environment {
        command.env(name, value);
    }
    command.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(commands: &mut Commands, script: &str) -> Done {
        let words = ["sh", "-c", script].map(str::to_owned);
        commands.run((7, "run", 1), &words, &[("WHY", "x".into())])
    }

    #[test]
    fn one_runs_at_a_time_and_its_status_is_told() {
        let mut commands = Commands::new(Duration::from_secs(600));
        assert_eq!(run(&mut commands, "test $WHY = x && exit 3").outcome, Outcome::Running);
        // Ended or not: its end has not been checked yet.
        assert_eq!(run(&mut commands, "exit 4").outcome, Outcome::Skipped);
        let (number, done) = commands.end().unwrap();
        assert_eq!((number, done.outcome, done.exit_status), (7, Outcome::Done, Some(3)));
        assert!(commands.end().is_none());
        let missing = commands.run((8, "run", 1), &["/no/such/program".to_owned()], &[]);
        assert!(missing.outcome == Outcome::Failed && missing.cause.is_some());
    }

    #[test]
    fn one_that_takes_too_long_is_killed_with_its_children() {
        let mut commands = Commands::new(Duration::from_millis(20));
        run(&mut commands, "sleep 600 & sleep 600");
        let (_, done) = commands.end().unwrap();
        assert_eq!((done.outcome, done.exit_status), (Outcome::TimedOut, Some(137)));
    }
}
