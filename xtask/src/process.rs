// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running other programs with their output in a log and an end in time.

use crate::workspace;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A hung program must not hang CI. One that neither prints nor computes for this long is hung; how long
/// the whole takes depends on the machine and its load, and is no fault.
const IDLE_LIMIT: Duration = Duration::from_secs(10 * 60);

/// One that computes without printing anything for this long is in an endless loop: the slowest program
/// here, a linker after a clean start, was quiet for three minutes at load 20.
const SILENT_LIMIT: Duration = Duration::from_secs(45 * 60);

/// Progress is looked for this often, as it reads a file of every process.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Variables that cargo sets for the program that it runs.
const OF_XTASK: [&[u8]; 2] = [b"CARGO_PKG_", b"CARGO_MANIFEST_"];

/// What a finished program printed and returned.
pub struct Finished {
    /// Standard output and error together, in the order in which they came.
    pub output: String,
    /// How it ended; none if it was stopped because it made no progress.
    pub status: Option<ExitStatus>,
}

impl Finished {
    /// Whether it ended by itself with 0.
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The end of the output, where compilers and tests say what is wrong.
    pub fn tail(&self, lines: usize) -> String {
        let all: Vec<&str> = self.output.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// Runs a command from the root of the sources; its output goes to a log file
/// in the target folder and into the result.
///
/// Errors: a sentence if it cannot be started.
pub fn run(command: &mut Command, log_name: &str) -> Result<Finished, String> {
    let logs = workspace::target().join("xtask").join("logs");
    let log = logs.join(format!("{log_name}.log"));
    let describe = |error: std::io::Error| format!("{}: {error}", log.display());
    fs::create_dir_all(&logs).map_err(describe)?;
    let file = File::create(&log).map_err(describe)?;
    let twin = file.try_clone().map_err(describe)?;
    let name = command.get_program().to_string_lossy().into_owned();
    // What cargo says of xtask itself. The build script of a library that reads it would run again, and
    // everything above it be built again, after each command that is not run by xtask.
    for (variable, _) in std::env::vars_os() {
        if OF_XTASK.iter().any(|prefix| variable.as_encoded_bytes().starts_with(prefix)) {
            command.env_remove(variable);
        }
    }
    command.stdin(Stdio::null()).stdout(file).stderr(twin).process_group(0);
    if command.get_current_dir().is_none() {
        command.current_dir(workspace::root());
    }
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let mut progress = Progress::new(child.id());
    let mut stopped = None;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) => {}
            Err(error) => return Err(format!("{name}: {error}")),
        }
        stopped = progress.hung(&log);
        if stopped.is_some() {
            // The group, because test harnesses have children of their own.
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let output = fs::read(&log).map_err(describe)?;
    let mut output = String::from_utf8_lossy(&output).into_owned();
    if let Some(why) = stopped {
        output.push_str(&format!("\nstopped: {why}\n"));
    }
    Ok(Finished { output, status })
}

/// What a process group has done so far, to find one that is hung.
struct Progress {
    ancestor: u32,
    looked: Instant,
    log_bytes: u64,
    printed: Instant,
    cpu_ticks: u64,
    computed: Instant,
}

impl Progress {
    fn new(ancestor: u32) -> Self {
        let now = Instant::now();
        Self { ancestor, looked: now, log_bytes: 0, printed: now, cpu_ticks: 0, computed: now }
    }

    /// Why the group counts as hung, if it does.
    fn hung(&mut self, log: &Path) -> Option<String> {
        let now = Instant::now();
        if now.duration_since(self.looked) < PROGRESS_INTERVAL {
            return None;
        }
        self.looked = now;
        let cpu_ticks = cpu_ticks_below(self.ancestor);
        self.observe(now, fs::metadata(log).map_or(0, |log| log.len()), cpu_ticks)
    }

    fn observe(&mut self, now: Instant, log_bytes: u64, cpu_ticks: u64) -> Option<String> {
        if log_bytes != self.log_bytes {
            (self.log_bytes, self.printed) = (log_bytes, now);
        }
        // A sum over those alive can also fall, when one of them ends: that is progress, too. A harness
        // that waits in a loop uses a tick now and then, which is none.
        if cpu_ticks.abs_diff(self.cpu_ticks) > TICKS_OF_WAITING {
            (self.cpu_ticks, self.computed) = (cpu_ticks, now);
        }
        let silent = now.duration_since(self.printed);
        if silent > SILENT_LIMIT {
            return Some(format!("no output for {} minutes", SILENT_LIMIT.as_secs() / 60));
        }
        let idle = silent.min(now.duration_since(self.computed));
        (idle > IDLE_LIMIT)
            .then(|| format!("neither output nor work for {} minutes", IDLE_LIMIT.as_secs() / 60))
    }
}

/// `sysconf(_SC_CLK_TCK)` on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time that a group which only waits may use in [`IDLE_LIMIT`]: 2 s.
const TICKS_OF_WAITING: u64 = 200;

/// Processor time of all descendants of a process that are alive, with that of their children that have
/// ended, in ticks: utime, stime, cutime, cstime of proc_pid_stat(5).
fn cpu_ticks_below(ancestor: u32) -> u64 {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let mut parents = std::collections::HashMap::new();
    for entry in entries.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        if let Some(found) =
            fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(of_stat)
        {
            parents.insert(process, found);
        }
    }
    let is_below = |mut process: u32| {
        // As many steps as there are processes: what was read while it changed can form a circle.
        for _ in 0..=parents.len() {
            if process == ancestor {
                return true;
            }
            match parents.get(&process) {
                Some((parent, _)) => process = *parent,
                None => return false,
            }
        }
        false
    };
    parents.iter().filter(|(process, _)| is_below(**process)).map(|(_, (_, ticks))| ticks).sum()
}

/// Processor time of this process and of its children that have ended, in seconds.
pub fn cpu_time_s() -> f64 {
    let ticks = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(of_stat);
    ticks.map_or(0, |(_, ticks)| ticks) as f64 / TICKS_PER_SECOND
}

/// Parent and processor time of a line of proc_pid_stat(5); the name, in parentheses, may hold anything.
fn of_stat(line: &str) -> Option<(u32, u64)> {
    let mut fields = line.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    // utime is the 14th field of the line, the 10th after the parent.
    let ticks = fields.skip(9).take(4).map(|ticks| ticks.parse::<u64>().unwrap_or(0)).sum();
    Some((parent, ticks))
}

/// Hands over to the measurements in `bench/`, with the terminal as it is.
pub fn bench(arguments: &[&str]) -> ExitCode {
    let script = workspace::root().join("bench/run");
    if !Path::new(&script).is_file() {
        eprintln!("error: no measurements here: bench/run: this version has none");
        return ExitCode::from(2);
    }
    let status = Command::new(script).args(arguments).current_dir(workspace::root()).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: cannot run measurements: bench/run: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_prints_or_computes_is_not_hung() {
        let mut progress = Progress::new(1);
        let begin = progress.printed;
        let minutes = |count: u64| begin + Duration::from_secs(count * 60);
        assert_eq!(progress.observe(minutes(9), 0, 0), None);
        assert_eq!(progress.observe(minutes(18), 1, 0), None, "it printed");
        assert_eq!(progress.observe(minutes(27), 1, 10_000), None, "it computed");
        assert_eq!(progress.observe(minutes(36), 1, 10_100), None);
        assert!(
            progress.observe(minutes(38), 1, 10_150).is_some(),
            "10 minutes with 1.5 s of work"
        );
    }

    #[test]
    fn who_only_computes_is_hung_in_the_end() {
        let mut progress = Progress::new(1);
        let begin = progress.printed;
        let found = (1..=50).find(|minute| {
            progress.observe(begin + Duration::from_secs(minute * 60), 0, minute * 6000).is_some()
        });
        assert_eq!(found, Some(46));
    }

    #[test]
    fn processor_time_of_a_child_is_seen() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let own = std::process::id();
        let begin = cpu_ticks_below(own);
        while cpu_ticks_below(own) < begin + 20 {
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_name_may_hold_parentheses() {
        let line = "7 (a) b) S 3 7 7 0 -1 4194304 100 0 0 0 11 22 33 44 20 0 1 0 5 0 0";
        assert_eq!(of_stat(line), Some((3, 110)));
        assert_eq!(of_stat("7 (a"), None);
    }
}
