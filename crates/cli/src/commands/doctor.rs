// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat doctor`: what can be recorded on this machine by this user, and what to type for the rest.
//!
//! Each answer comes from trying it: a program is recorded, the kernel is asked for buffers. Nothing stays.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;
use lateralis_files::TemporaryFolder;
use lateralis_recorder::linux::area_dir;
use lateralis_recorder::linux::kernel::{
    KernelBy, KernelError, KernelOptions, KernelSource, PerfSource, SampleOptions, SampleSource,
    SampleStack,
};
use lateralis_simulator::linux::{Kernel, Qemu};
use serde_json::{Value, json};

use super::sql;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::values;

/// Smaller folders of shared memory make short rings: containers have 64 MB.
const SHARED_MEMORY_MIN: u64 = 256 << 20;
/// What is asked of the kernel per CPU, only to see whether it gives any.
const BUFFER_BYTES: u64 = 64 << 10;

/// Options of `lat doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Records a program that ends at once, and opens each kernel source without recording \
    from it. Leaves \
nothing behind.

Examples:
  lat doctor
  sudo lat doctor       what root can record
  lat doctor --json

Exit code 1: programs cannot be recorded here."
)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How much of it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Works {
    Yes,
    Partly,
    No,
}

impl Works {
    fn word(self) -> &'static str {
        match self {
            Works::Yes => "yes",
            Works::Partly => "partly",
            Works::No => "no",
        }
    }
}

/// One thing that can be recorded or used, and the option or command that does.
#[derive(Debug)]
struct Check {
    what: &'static str,
    by: &'static str,
    works: Works,
    /// How it works here, or why not.
    detail: String,
    /// What to do about it.
    advice: Option<String>,
}

impl Check {
    fn new(what: &'static str, by: &'static str, works: Works, detail: impl Into<String>) -> Self {
        Check { what, by, works, detail: detail.into(), advice: None }
    }

    fn advice(self, advice: impl Into<String>) -> Self {
        Check { advice: Some(advice.into()), ..self }
    }
}

/// Tries everything and says what came of it.
pub fn run(args: DoctorArgs) -> Result<ExitStatus, CliError> {
    let checks = [
        programs(),
        shared_memory(),
        kernel_events(),
        call_stacks(),
        off_cpu(),
        packets(),
        hardware_flow(),
        simulator(),
        sql_engine(),
    ];
    if args.json {
        let one = |check: &Check| {
            json!({
                "what": check.what,
                "by": check.by,
                "works": check.works.word(),
                "detail": check.detail,
                "advice": check.advice,
            })
        };
        output::print_json(&json!({ "checks": checks.iter().map(one).collect::<Vec<_>>() }))?;
    } else {
        output::print(&page(&checks))?;
    }
    // Without the first nothing else is worth much.
    let is_fine = checks[0].works != Works::No;
    Ok(if is_fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn page(checks: &[Check]) -> Page {
    let mut page = Page::new();
    let width = checks.iter().map(|check| check.what.len()).max().unwrap_or(0);
    let by = checks.iter().map(|check| check.by.len()).max().unwrap_or(0);
    for check in checks {
        let (what, word) = (check.what, check.works.word());
        line!(page, "{what:<width$}  {word:<6}  {:<by$}  {}", check.by, check.detail);
    }
    let advised: Vec<_> = checks.iter().filter(|check| check.advice.is_some()).collect();
    if !advised.is_empty() {
        page.gap();
        line!(page, "for the rest");
        for check in advised {
            line!(page, "  {}: {}", check.what, check.advice.as_deref().unwrap_or_default());
        }
    }
    page
}

/// Records `program` with `options`; the report of the recording, or what was said instead.
fn record(options: &[&str], program: &[&str]) -> Result<Value, String> {
    let folder = TemporaryFolder::new("lateralis-doctor-").map_err(|error| {
        format!("no temporary folder in {}: {error}", std::env::temp_dir().display())
    })?;
    let output = folder.path().join("recording");
    let lat = std::env::current_exe().map_err(|error| format!("lat itself: {error}"))?;
    let ran = Command::new(lat)
        // Settings and colours of the user do not apply.
        .args(["--no-config", "--color=never", "record", "-q", "-o"])
        .arg(&output)
        .args(options)
        .arg("--")
        .args(program)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(|error| format!("lat itself: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let sentence = said.lines().next_back().unwrap_or("no reason given");
    let sentence = sentence.strip_prefix("error: ").unwrap_or(sentence).to_owned();
    if !ran.status.success() {
        return Err(sentence);
    }
    let report = fs::read(output.join("report.json")).map_err(|_| sentence)?;
    serde_json::from_slice(&report).map_err(|error| format!("report.json: {error}"))
}

/// Records a program that calls the C library.
fn programs() -> Check {
    let (what, by) = ("programs", "lat record --with io -- CMD");
    let report = match record(&["--with", "io"], &["cat", "/proc/version"]) {
        Ok(report) => report,
        Err(sentence) => return Check::new(what, by, Works::No, sentence),
    };
    let streams = report["streams"].as_array().map_or(&[][..], Vec::as_slice);
    let events: u64 = streams.iter().filter_map(|stream| stream["events"].as_u64()).sum();
    let clock = report["clock"]["kind"].as_str().unwrap_or("unknown clock");
    let rings = report["areas"][0]["ring_kind"].as_str().unwrap_or("no");
    if events == 0 {
        let detail = "a recorded program had no events";
        return Check::new(what, by, Works::No, detail)
            .advice("lat record --with io -- cat /proc/version names the reason");
    }
    let detail =
        format!("{} recorded; clock {clock}; {rings} rings", values::counted(events, "event"));
    match rings {
        "per-cpu" => Check::new(what, by, Works::Yes, detail),
        // Each thread takes memory then, and threads of one program are not one stream per CPU.
        _ => Check::new(what, by, Works::Partly, detail).advice(
            "restartable sequences are missing (Linux 4.18 and glibc 2.35, or GLIBC_TUNABLES switches them \
             off): rings are per thread and take more memory",
        ),
    }
}

/// Where rings are, and how much fits.
fn shared_memory() -> Check {
    let (what, by) = ("shared memory", "rings of programs");
    let folder = area_dir(None);
    let existing = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(existing) {
        Ok(system) => {
            let free = system.f_bavail.saturating_mul(system.f_frsize);
            let detail = format!("{} free in {}", values::bytes(free), existing.display());
            match free < SHARED_MEMORY_MIN {
                false => Check::new(what, by, Works::Yes, detail),
                true => Check::new(what, by, Works::Partly, detail).advice(
                    "rings stay short: give the container more (--shm-size 1g), or name another folder by \
                     LATERALIS_DIR for lat and the program",
                ),
            }
        }
        Err(error) => Check::new(what, by, Works::No, format!("{}: {error}", existing.display())),
    }
}

fn kernel_events() -> Check {
    let (what, by) = ("kernel events", "lat record --kernel sched,syscalls");
    let options = |by| KernelOptions {
        events: vec!["sched".into()],
        probes: Vec::new(),
        whole_machine: false,
        buffer_bytes: BUFFER_BYTES,
        tracefs: None,
        by,
        relate_clocks: false,
    };
    let sentence = match KernelSource::open(&options(KernelBy::Tracefs)) {
        Ok(_) => return Check::new(what, by, Works::Yes, "by tracefs"),
        Err(KernelError::Unavailable(sentence)) => sentence,
        Err(other) => other.to_string(),
    };
    // A sentence of what, where and what to do: the last part is the advice.
    let (detail, advice) = parts(&sentence);
    match PerfSource::open(&options(KernelBy::Perf)) {
        Ok(_) => {
            Check::new(what, by, Works::Partly, "by perf_event_open, without a choice of processes")
        }
        Err(_) => Check::new(what, by, Works::No, detail),
    }
    .advice(advice)
}

/// Divides `what: where: what to do` before what to do, which may have colons of its own.
fn parts(sentence: &str) -> (String, String) {
    let divided = sentence
        .split_once(": run `")
        .map(|(detail, advice)| (detail, format!("run `{advice}")))
        .or_else(|| sentence.rsplit_once(": ").map(|(detail, advice)| (detail, advice.to_owned())));
    match divided {
        Some((detail, advice)) => (detail.to_owned(), advice),
        None => (sentence.to_owned(), String::from("see docs/guides/kernel-events.md")),
    }
}

fn sampled(what: &'static str, by: &'static str, off_cpu: bool) -> Check {
    let options = SampleOptions {
        hz: (!off_cpu).then_some(999),
        events: Vec::new(),
        off_cpu,
        stack: SampleStack::FramePointers,
        whole_machine: false,
        buffer_bytes: BUFFER_BYTES,
    };
    match SampleSource::open(&options) {
        Ok(source) => match source.left_out() {
            None => Check::new(what, by, Works::Yes, "by perf_event_open"),
            Some(left_out) => {
                let (detail, advice) = parts(&left_out);
                Check::new(what, by, Works::Partly, detail).advice(advice)
            }
        },
        Err(error) => Check::new(what, by, Works::No, error.place).advice(error.advice),
    }
}

fn call_stacks() -> Check {
    sampled("call stacks", "lat record --sample 999", false)
}

fn off_cpu() -> Check {
    sampled("off-CPU stacks", "lat record --off-cpu", true)
}

fn packets() -> Check {
    let (what, by) = ("network packets", "lat record --packets any");
    // A recording goes on without what cannot be captured, and reports it.
    let problem = record(&["--packets", "lo"], &["true"])
        .map(|report| report["problems"][0].as_str().map(str::to_owned));
    match problem {
        Ok(None) => Check::new(what, by, Works::Yes, "of all interfaces"),
        Ok(Some(sentence)) | Err(sentence) => {
            let (detail, advice) = parts(&sentence);
            Check::new(what, by, Works::No, detail).advice(advice)
        }
    }
}

fn hardware_flow() -> Check {
    let (what, by) = ("processor trace", "perf record -e intel_pt//u");
    let device = Path::new("/sys/bus/event_source/devices/intel_pt");
    match device.is_dir() {
        true => Check::new(what, by, Works::Yes, "Intel PT; lat flow reads the perf.data"),
        false => Check::new(what, by, Works::No, format!("no {}", device.display()))
            .advice("lat record --sim -- CMD records executed instructions in an emulated machine"),
    }
}

fn simulator() -> Check {
    let (what, by) = ("simulator", "lat record --sim -- CMD");
    match (Qemu::find(), Kernel::kept()) {
        (Ok(_), Some(kernel)) => Check::new(what, by, Works::Yes, format!("with {}", kernel.name)),
        (Ok(_), None) => {
            Check::new(what, by, Works::Yes, "the kernel of the distribution is fetched once")
        }
        (Err(error), _) => Check::new(what, by, Works::No, error.place).advice(error.advice),
    }
}

fn sql_engine() -> Check {
    let (what, by) = ("SQL", "lat sql TRACE");
    match sql::engine() {
        Some(path) => Check::new(what, by, Works::Yes, path.display().to_string()),
        None => Check::new(what, by, Works::No, sql::NOT_FOUND).advice(sql::INSTALL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_divided_before_what_to_do() {
        let (detail, advice) = parts("cannot read: /sys/kernel/tracing: run `sudo lat record …`");
        assert_eq!(detail, "cannot read: /sys/kernel/tracing");
        assert_eq!(advice, "run `sudo lat record …`");
        let (detail, advice) = parts("no right: /sys: run `sudo lat`; or as root: `mount`");
        assert_eq!(
            (detail.as_str(), advice.as_str()),
            ("no right: /sys", "run `sudo lat`; or as root: `mount`")
        );
    }

    #[test]
    fn advice_is_listed_below_the_table() {
        let checks = [
            Check::new("programs", "lat record", Works::Yes, "3 events"),
            Check::new("SQL", "lat sql", Works::No, "absent").advice("install it"),
        ];
        let text = String::from(page(&checks));
        assert_eq!(
            text,
            "programs  yes     lat record  3 events\nSQL       no      lat sql     absent\n\n\
             for the rest\n  SQL: install it\n"
        );
    }
}
