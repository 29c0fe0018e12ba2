// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat record`: records the events of a program.

mod kernel;
mod policy;
pub mod rules;
mod sample;
mod simulated;

use crate::commands::{live, receive, recording_summary, serial};
use crate::embedded;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::peer_args::PeerArgs;
use crate::processes;
use crate::status_line::{self, StatusLine};
use crate::values;
use clap::{ArgGroup, Args, ValueEnum};
use lateralis_recorder::linux::{Capture, Session, ring_bytes};
use lateralis_recorder::{ChunkOptions, CtfVersion, Patterns, Progress, RecordOptions};
use lateralis_ring::RingMode;
use lateralis_simulator::packets::Packets;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

// Headings of `lat record --help`.
const PROGRAMS: &str = "What to record";
const KERNEL: &str = "Kernel and functions of programs";
const STACKS: &str = "Call stacks";
const RINGS: &str = "Rings and files";
const STOP: &str = "When to begin and stop";
const CONDITIONS: &str = "Conditions";
const LIVE: &str = "Live";
const SERIAL: &str = "Machines without an operating system";
const SIM: &str = "Simulated machine";

/// Options of `lat record`.
#[derive(Debug, Args)]
#[command(
    override_usage = "lat record [OPTIONS] [--] [CMD]...",
    group = ArgGroup::new("target").args(["command", "attach", "connect", "serial"]),
    group = ArgGroup::new("sampled").args(["sample", "off_cpu", "stacks"]).multiple(true),
    after_help = "Examples:
  lat record -- ./server --port 80        a program with a schema, its children included
  lat record --with mutex,io -- redis-server
                                          an unmodified program
  lat record --attach 1234 --duration 10s a running program
  lat record --filter 'io:READ: count > 4096' --with io -- ./server
                                          only the events whose fields match
  lat record --program 'nginx,worker*'    all programs of these names, now and later
  lat record --policy web.toml            programs and events chosen by a file
  lat record --mode overwrite -- ./server keep only the newest events
  lat record --shared -- make test        many short programs in one set of rings
  lat record --start-on app:PHASE:number==3 --for 2s -- ./server
                                          starts at an event with this value
  lat record --when 'span(request) > 5ms' --then 'mark slow; run ./notify' -- ./server
                                          acts when a condition becomes true
  sudo lat record --packets lo -- ./server
                                          network packets on the same timeline
  lat record --live -o here -- ./server   others can follow while it is recorded:
  lat record --connect 127.0.0.1:6660 -o there
  lat record --kernel sched,syscalls -- ./server
                                          with kernel events of the program
  sudo lat record --system --duration 5s  the whole machine
  lat record --sample 999 -- ./server     call stacks: see `lat flow stacks`
  sudo lat record --probe redis-server:processCommand -- redis-server
                                          durations of a function of any program
  lat record --sim -- ./program           every instruction, in a simulated machine
  lat record --serial /dev/ttyUSB0 -o here
                                          a bare-metal machine over a serial line

Groups of kernel events: sched, syscalls, irq, softirq, timer, signal, block, net, page-faults.
Other events have their kernel names: --kernel kmem:mm_page_alloc. If permissions are missing, lat
prints which, and records everything else.

With --shared, a program that writes many events can cause losses in the others. A program that
cannot share (another kind of rings, a second copy of the tracer in one process) gets its own
rings. All programs together can register 256 schemas with 32752 events; the report states if
there were more.

The program's output is unchanged. lat exits with the program's exit status, with 128 + N if
signal N ended it, and with 2 and an error message if it could not be started. With --json the
last line on standard output is a JSON object with the exit status and the summary of the
recording."
)]
pub struct RecordArgs {
    /// Directory for the recording [default: lateralis-PROGRAM, with a number if that exists]
    #[arg(short, long, value_name = "DIR", env = "LATERALIS_OUTPUT")]
    pub output: Option<PathBuf>,
    /// Also record library calls of an unmodified program
    #[arg(help_heading = PROGRAMS, long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub with: Vec<With>,
    /// Record only these events: SUBSYSTEM:EVENT or SUBSYSTEM, with * and ?. Events of --with stay enabled
    /// unless one of them is named here
    #[arg(help_heading = PROGRAMS, long, value_name = "PATTERN", value_delimiter = ',')]
    pub enable: Vec<String>,
    /// Do not record these events
    #[arg(help_heading = PROGRAMS, long, value_name = "PATTERN", value_delimiter = ',')]
    pub disable: Vec<String>,
    /// Record an event only if its fields match: 'SUBSYSTEM:EVENT: FIELD > NUMBER and …'
    #[arg(help_heading = PROGRAMS, long, value_name = "FILTER", conflicts_with = "policy")]
    pub filter: Vec<String>,
    /// Choose programs and their events by a policy file; without CMD, among all programs that run or start
    #[arg(help_heading = PROGRAMS, long, value_name = "FILE",
        conflicts_with_all = ["enable", "disable", "with", "shared", "connect", "program"])]
    pub policy: Option<PathBuf>,
    /// Record every program with one of these names, running or started later; * and ? match
    #[arg(help_heading = PROGRAMS, long, value_name = "PATTERN", value_delimiter = ',',
        conflicts_with_all = ["with", "shared", "connect", "attach", "command"])]
    pub program: Vec<String>,
    /// Record kernel events of the program: groups, or SUBSYSTEM:EVENT with * and ?
    #[arg(help_heading = KERNEL, long, value_name = "EVENTS", value_delimiter = ',')]
    pub kernel: Vec<String>,
    /// Source of kernel events [default: tracefs, or perf where tracefs is not available]
    #[arg(help_heading = KERNEL, long, value_enum, value_name = "WAY")]
    pub kernel_by: Option<kernel::KernelWay>,
    /// Record calls of a function as spans (PROGRAM:FUNCTION), or a USDT probe (PROGRAM:PROVIDER:NAME), in
    /// unmodified programs
    #[arg(help_heading = KERNEL, long, value_name = "PROBE", value_delimiter = ',')]
    pub probe: Vec<String>,
    /// Record kernel events of the whole machine [default of --kernel: sched,syscalls,irq,signal]
    #[arg(help_heading = KERNEL, long)]
    pub system: bool,
    /// Sample call stacks HZ times per second, of the program or, with --system, of the whole machine; see
    /// `lat flow stacks`
    #[arg(help_heading = STACKS,
        long, value_name = "HZ", value_parser = values::parse_count, conflicts_with = "connect")]
    pub sample: Option<u64>,
    /// Record the call stack each time a thread leaves its CPU, and when it returns; see `lat flow stacks
    /// --off-cpu`
    #[arg(help_heading = STACKS, long, conflicts_with_all = ["connect", "serial"])]
    pub off_cpu: bool,
    /// Record the call stack at each of these kernel events, named as for --kernel
    #[arg(help_heading = STACKS,
        long, value_name = "EVENTS", value_delimiter = ',', conflicts_with = "connect")]
    pub stacks: Vec<String>,
    /// How to unwind the stack
    #[arg(help_heading = STACKS, long, value_name = "HOW", value_enum, default_value_t = sample::Stack::Fp,
        requires = "sampled")]
    pub sample_stack: sample::Stack,
    /// Memory of each ring; there is one per CPU
    #[arg(help_heading = RINGS,
        long, value_name = "SIZE", default_value = "4M", value_parser = values::parse_bytes,
        env = "LATERALIS_BUFFER")]
    pub buffer: u64,
    /// Size of a packet, the unit in which rings are written to files
    #[arg(help_heading = RINGS,
        long, value_name = "SIZE", default_value = "64K", value_parser = values::parse_bytes,
        env = "LATERALIS_PACKET")]
    pub packet: u64,
    /// What to do when a ring is full
    #[arg(help_heading = RINGS, long, value_enum, default_value_t = Mode::Discard, env = "LATERALIS_MODE")]
    pub mode: Mode,
    /// Write CTF 2 metadata instead of CTF 1.8
    #[arg(help_heading = RINGS, long)]
    pub ctf2: bool,
    /// Stop after this time
    #[arg(help_heading = STOP, long, value_name = "TIME", value_parser = values::parse_time)]
    pub duration: Option<Duration>,
    /// Stop when the recording reaches this size
    #[arg(help_heading = STOP, long, value_name = "SIZE", value_parser = values::parse_bytes)]
    pub max_size: Option<u64>,
    /// Start a new chunk at this size; each chunk is a complete recording in its own directory
    #[arg(help_heading = RINGS, long, value_name = "SIZE", value_parser = values::parse_bytes,
        conflicts_with_all = ["max_size", "live", "connect"])]
    pub chunk_size: Option<u64>,
    /// Start a new chunk after this time
    #[arg(help_heading = RINGS, long, value_name = "TIME", value_parser = values::parse_time,
        conflicts_with_all = ["max_size", "live", "connect"])]
    pub chunk_time: Option<Duration>,
    /// Keep at most N chunks and remove the oldest; with --chunk-size this bounds the disk space
    #[arg(help_heading = RINGS, long, value_name = "N", value_parser = values::parse_count)]
    pub keep_chunks: Option<u64>,
    /// Start recording at this event: SUBSYSTEM:EVENT or SUBSYSTEM:EVENT:FIELD==VALUE. The event itself is
    /// recorded, enabled or not; a program without this event records nothing
    #[arg(help_heading = STOP, long, value_name = "EVENT",
        conflicts_with_all = ["connect", "policy", "program", "filter"])]
    pub start_on: Option<String>,
    /// Stop recording after this event
    #[arg(help_heading = STOP, long, value_name = "EVENT",
        conflicts_with_all = ["connect", "policy", "program", "filter"])]
    pub stop_on: Option<String>,
    /// Stop recording this long after --start-on
    #[arg(help_heading = STOP, long = "for", value_name = "TIME", value_parser = values::parse_time,
        requires = "start_on")]
    pub for_time: Option<Duration>,
    /// Stop after N events of each program, including that of --start-on
    #[arg(help_heading = STOP, long, value_name = "N", value_parser = values::parse_count,
        conflicts_with_all = ["connect", "policy", "program", "filter"])]
    pub count: Option<u64>,
    /// Run an action when this condition becomes true; `lat keep --help` lists conditions
    #[arg(help_heading = CONDITIONS, long, value_name = "CONDITION", conflicts_with = "connect")]
    pub when: Vec<String>,
    /// The action: start, stop, flush, snapshot BEFORE AFTER, mark NAME or run COMMAND; separate several by
    /// `;`. Give one for all --when, or one for each
    #[arg(help_heading = CONDITIONS, long, value_name = "ACTION", conflicts_with = "connect")]
    pub then: Vec<String>,
    /// Time limit of a command started by `run`
    #[arg(help_heading = CONDITIONS,
        long, value_name = "TIME", default_value = "60s", value_parser = values::parse_time)]
    pub run_time: Duration,
    /// Interval at which partly filled packets are written [default: 1s; with --when and in lat keep:
    /// 100ms]
    #[arg(help_heading = RINGS, long, value_name = "TIME", value_parser = values::parse_time)]
    pub flush_every: Option<Duration>,
    /// Exit with status 1 instead of 0 if events were lost
    #[arg(help_heading = STOP, long, conflicts_with_all = ["connect", "serial", "sim"])]
    pub fail_on_loss: bool,
    /// Continue until all processes that the program started have ended
    #[arg(help_heading = PROGRAMS, long)]
    pub follow: bool,
    /// Use one set of rings for all programs of the command instead of one per program
    #[arg(help_heading = PROGRAMS, long, conflicts_with = "attach")]
    pub shared: bool,
    /// Record a running program, by process id or by a name that only one process has
    #[arg(help_heading = PROGRAMS,
        long, value_name = "PID|NAME", conflicts_with = "with", value_parser = processes::named)]
    pub attach: Option<u32>,
    /// Also capture the packets of these network interfaces; `any` means all
    #[arg(help_heading = PROGRAMS, long, value_name = "INTERFACE", value_delimiter = ',')]
    pub packets: Vec<String>,
    /// Keep at most this many bytes of each captured packet [default: all]
    #[arg(help_heading = PROGRAMS,
        long, value_name = "SIZE", value_parser = values::parse_bytes, requires = "packets")]
    pub snap: Option<u64>,
    /// Serve the recording live at HOST:PORT [default: 127.0.0.1:6660]
    #[arg(help_heading = LIVE, long, value_name = "ADDRESS", num_args = 0..=1,
        default_missing_value = crate::commands::live::ADDRESS)]
    pub live: Option<String>,
    /// Receive a live recording from HOST:PORT, bfscope://HOST:PORT, or - for standard input
    #[arg(help_heading = LIVE, long, value_name = "ADDRESS", conflicts_with_all = ["live", "attach"])]
    pub connect: Option<String>,
    /// Record a bare-metal machine over a serial line: DEVICE, tcp:HOST:PORT or unix:PATH
    #[arg(help_heading = SERIAL, long, value_name = "LINE", conflicts_with_all = [
        "with", "enable", "disable", "filter", "policy", "program", "kernel", "kernel_by", "probe", "system",
        "sample", "stacks", "start_on", "stop_on", "count", "when", "then", "follow", "shared", "packets",
        "live", "chunk_size", "chunk_time", "sim"
    ])]
    pub serial: Option<String>,
    /// Bits per second of a serial device
    #[arg(help_heading = SERIAL, long, value_name = "N", default_value_t = 115_200, requires = "serial",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub baud: u32,
    /// Program that runs on that machine: supplies event names if the machine does not send them
    #[arg(help_heading = SERIAL, long, value_name = "FILE", requires = "serial")]
    pub elf: Vec<PathBuf>,
    /// Schema of that program, if its ELF file is not available
    #[arg(help_heading = SERIAL, long, value_name = "FILE", requires = "serial")]
    pub schema: Vec<PathBuf>,
    #[command(flatten)]
    pub peer: PeerArgs,
    /// Encrypt the live stream on loopback as well; on other addresses it always is
    #[arg(help_heading = LIVE, long)]
    pub tls: bool,
    /// Certificate of the live stream (PEM) [default: generated; its fingerprint is printed for clients]
    #[arg(help_heading = LIVE, long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert (PEM)
    #[arg(help_heading = LIVE, long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Memory for packets that live clients have not received yet; slower clients lose packets
    #[arg(help_heading = LIVE,
        long, value_name = "SIZE", default_value = "64M", value_parser = values::parse_bytes)]
    pub live_window: u64,
    /// With --connect or --serial: how long to retry after the connection is lost
    #[arg(help_heading = LIVE,
        long, value_name = "TIME", default_value = "10s", value_parser = values::parse_time)]
    pub retry: Duration,
    /// Run the program in a simulated machine and record every instruction for `lat flow`, instead of
    /// events
    #[arg(help_heading = SIM, long, requires = "command", conflicts_with_all = [
        "with", "enable", "disable", "filter", "policy", "program", "kernel", "kernel_by", "probe", "system",
        "duration", "max_size", "start_on", "stop_on", "count", "when", "then", "follow", "shared", "attach",
        "packets", "live", "connect"
    ])]
    pub sim: bool,
    /// CPUs of the simulated machine
    #[arg(help_heading = SIM, long, value_name = "N", default_value_t = 1, requires = "sim")]
    pub sim_cpus: u16,
    /// Also record the instructions of its kernel
    #[arg(help_heading = SIM, long, requires = "sim")]
    pub sim_kernel: bool,
    /// Use one packet buffer per simulated CPU, as `perf record -a` does, instead of one per thread
    #[arg(help_heading = SIM, long, requires = "sim")]
    pub sim_per_cpu: bool,
    /// A file or directory that the program needs there, in addition to its shared libraries
    #[arg(help_heading = SIM, long, value_name = "PATH", requires = "sim")]
    pub sim_file: Vec<PathBuf>,
    /// Additional parameter for the kernel's command line
    #[arg(help_heading = SIM, long, value_name = "WORD", requires = "sim")]
    pub sim_append: Vec<String>,
    /// Packets to generate, in the terms of perf's `intel_pt/…/`: cyc, cyc_thresh=N, mtc=0, mtc_period=N,
    /// psb_period=N, noretcomp
    #[arg(help_heading = SIM, long, value_name = "TERMS", requires = "sim")]
    pub sim_packets: Option<Packets>,
    /// Print the summary as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Print only errors
    #[arg(short, long)]
    pub quiet: bool,
    /// The program and its arguments: everything from the first word that is not an option, or everything
    /// after `--`
    #[arg(last = true, value_name = "CMD", required_unless_present_any = [
        "attach", "connect", "system", "policy", "program", "serial"
    ])]
    pub command: Vec<OsString>,
}

/// Events of calls that any program makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum With {
    /// Mutexes, read-write locks, condition variables
    Mutex,
    /// Allocations and frees of memory
    Malloc,
    /// Reads and writes of files and sockets, except through io_uring
    Io,
    /// Start and end of threads
    Thread,
}

/// What to do when a ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Drop new events and count them
    Discard,
    /// Overwrite the oldest events; the rings are read at the end
    Overwrite,
}

impl With {
    /// The subsystem of the library's schema (`tracer/preload/preload.pleco`).
    fn subsystem(self) -> &'static str {
        match self {
            With::Mutex => "mutex",
            With::Malloc => "malloc",
            With::Io => "io",
            With::Thread => "thread",
        }
    }
}

/// Records until the program has ended, or receives a recording.
pub fn run(args: RecordArgs) -> Result<ExitStatus, CliError> {
    if let Some(from) = &args.connect {
        return receive::run(&args, from);
    }
    if let Some(line) = &args.serial {
        return serial::run(&args, line);
    }
    if !args.elf.is_empty() || !args.schema.is_empty() {
        let advice = "they name events of a machine without an operating system: add --serial LINE";
        return Err(CliError::new("cannot use this option here", "--elf, --schema", advice));
    }
    if args.sim {
        return simulated::run(&args);
    }
    let mut options = options(&args)?;
    rules::add_snapshots(&args, &mut options)?;
    run_with(&args, options, &mut |args, session| {
        rules::observe(args, session);
        live::announce(args, session)
    })
}

/// Records until the program has ended. `begun` is called before the program starts.
pub fn run_with(
    args: &RecordArgs,
    options: RecordOptions,
    begun: &mut dyn FnMut(&RecordArgs, &mut Session) -> Result<(), CliError>,
) -> Result<ExitStatus, CliError> {
    let keeps_streams = options.keep_streams;
    let to_pipe = live::is_pipe(&options);
    let output = options.output.clone();
    let mut environment = Vec::new();
    let has_library = policy::needs_library(args, &options)?;
    let mut loaded = None;
    if has_library {
        loaded = policy::check_patterns(args)?;
        environment
            .push(("LD_PRELOAD".into(), embedded::PRELOAD.install_library()?.into_os_string()));
    }
    let capture = capture(args)?;
    let kernel = kernel::open(args)?;
    let samples = sample::open(args)?;
    let buffer = ring_bytes(&options);
    if buffer < options.buffer_bytes && !args.quiet {
        let (most, asked) = (values::bytes(buffer), values::bytes(options.buffer_bytes));
        tell!("warning: --buffer {asked} is more than a program may have: each ring gets {most}");
    }
    let mut session = Session::new(options)?;
    if let Some(loaded) = loaded {
        session.expect_schema(loaded);
    }
    if let Some(capture) = capture {
        // Without the privilege to capture packets, everything else is recorded. The report also states this.
        if let Err(problem) = session.add_source(Box::new(capture)) {
            tell!("warning: {problem}");
        }
    }
    if let Some(kernel) = kernel {
        kernel::add(&mut session, kernel, args);
    }
    if let Some(samples) = samples
        && let Err(error) = sample::add(&mut session, samples)
    {
        drop(session);
        remove_unused(&output);
        return Err(error);
    }
    begun(args, &mut session)?;
    let begun = match args.attach {
        Some(pid) => session.attach(pid),
        None if policy::watches(args) => session.watch(),
        None if args.command.is_empty() => Ok(()),
        None => session.launch(&args.command, &environment).map(drop),
    };
    if let Err(error) = begun {
        drop(session);
        remove_unused(&output);
        return Err(error.into());
    }
    if let (Some(pid), None, false) = (args.attach, args.duration, args.quiet) {
        tell!("recording {pid}; Ctrl-C ends it");
    } else if let (None, true, false) = (args.duration, args.command.is_empty(), args.quiet) {
        tell!("recording {}; Ctrl-C ends it", policy::what(args));
    }
    // A program started here shares the terminal, and may have written to the current line.
    let shares_terminal = args.attach.is_none() && !args.command.is_empty();
    let mut line = StatusLine::new(args.quiet || args.json || shares_terminal);
    let summary = session.run(&mut |now: &Progress| {
        line.show(&status_line::progress(now));
    })?;
    line.clear();
    if shares_terminal && !args.quiet && !args.json {
        status_line::begin_line();
    }
    if keeps_streams && !to_pipe {
        let (json, quiet) = (args.json, args.quiet);
        recording_summary::print(&output, &summary.report, json, quiet, has_library)?;
    } else {
        live::print(&output, &summary.report, args, to_pipe)?;
    }
    if !keeps_streams {
        remove_unused(&output);
    } else if args.quiet {
        let ended = recording_summary::incomplete(&output, &summary.report);
        ended.iter().for_each(|text| tell!("{text}"));
    }
    let has_failed = args.fail_on_loss && summary.report.totals.lost.total > 0;
    Ok(match summary.exit_status {
        Some(0) if has_failed => ExitStatus::Problems,
        // The exit status of a shell fits in a byte, and so does 128 + signal.
        Some(status) => ExitStatus::Program(status as u8),
        None if summary.report.problems.is_empty() && !has_failed => ExitStatus::Fine,
        None => ExitStatus::Problems,
    })
}

/// Opens the packet capture, if requested.
fn capture(args: &RecordArgs) -> Result<Option<Capture>, CliError> {
    if args.packets.is_empty() {
        return Ok(None);
    }
    if args.mode == Mode::Overwrite {
        return Err(CliError::new(
            "cannot capture packets into a flight recorder",
            "--mode overwrite",
            "the kernel keeps the oldest packets, not the newest: leave one of both out",
        ));
    }
    Ok(Some(Capture::new(&args.packets, args.snap.unwrap_or(u64::MAX), args.buffer)?))
}

/// Removes the recording of a program that never ran: only the files of a recording, and the folder only if
/// it is then empty.
fn remove_unused(output: &Path) {
    // A recording that cannot be removed has `"complete": false` in its report.
    let _ = std::fs::remove_dir_all(output.join("ctf"));
    let _ = std::fs::remove_file(output.join("report.json"));
    // Folder of the windows.
    let _ = std::fs::remove_dir(output.join("kept"));
    let _ = std::fs::remove_dir(output);
}

/// Returns the patterns of the events to record. Without `--enable`, these are all events of the program, and
/// those events of the library that `--with` names.
pub fn patterns(
    enable: &[String],
    disable: &[String],
    with: &[With],
) -> Result<Patterns, CliError> {
    let with: Vec<&str> = with.iter().map(|part| part.subsystem()).collect();
    let with = (!with.is_empty()).then_some(&with[..]);
    let patterns = lateralis_recorder::policy::patterns(enable, disable, with);
    Ok(patterns.map_err(lateralis_recorder::Error::from)?)
}

/// Converts the command-line options to options of the recorder.
pub fn options(args: &RecordArgs) -> Result<RecordOptions, CliError> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None if args.system && args.command.is_empty() && args.attach.is_none() => {
            free_name("system")
        }
        None if policy::watches(args) => free_name("programs"),
        None => free_name(&program_name(args.command.first())),
    };
    let mut options = RecordOptions::new(output);
    options.buffer_bytes = args.buffer;
    options.packet_bytes = args.packet;
    options.mode = match args.mode {
        Mode::Discard => RingMode::Discard,
        Mode::Overwrite => RingMode::Overwrite,
    };
    options.enable = patterns(&args.enable, &args.disable, &args.with)?;
    options.filters = policy::filters(args)?;
    options.policies = policy::policies(args, &options)?;
    options.ctf_version = if args.ctf2 { CtfVersion::Ctf2 } else { CtfVersion::Ctf1 };
    options.duration = args.duration;
    options.max_disk_bytes = args.max_size;
    options.flush_period = args.flush_every.unwrap_or(options.flush_period);
    options.chunks = chunks(args)?;
    options.trigger = rules::trigger(args)?;
    rules::add(args, &mut options)?;
    options.follow = args.follow;
    options.shared = args.shared;
    if args.live.is_some() {
        live::refuse_overwriting(args)?;
    }
    options.live = args.live.as_deref().map(|address| live::options(args, Some(address)));
    Ok(options)
}

/// Chunk options, if any were given.
fn chunks(args: &RecordArgs) -> Result<Option<ChunkOptions>, CliError> {
    let (bytes, time, chunks_max) = (args.chunk_size, args.chunk_time, args.keep_chunks);
    if bytes.is_none() && time.is_none() && chunks_max.is_none() {
        return Ok(None);
    }
    let wrong =
        |place: &str, advice: &str| Err(CliError::new("cannot record in pieces", place, advice));
    if bytes.is_none() && time.is_none() {
        return wrong("--keep-chunks", "say how long a piece is: --chunk-size 64M");
    }
    if args.mode == Mode::Overwrite {
        return wrong("--mode overwrite", "its rings are read once, at the end: leave one out");
    }
    if bytes == Some(0) || time.is_some_and(|time| time.is_zero()) || chunks_max == Some(0) {
        return wrong("0", "give at least 1");
    }
    Ok(Some(ChunkOptions { bytes, time, chunks_max }))
}

/// File name of the program, from which the name of the recording is made.
pub fn program_name(program: Option<&OsString>) -> String {
    let name = program.and_then(|path| Path::new(path).file_name());
    name.map_or("attached".into(), |name| name.to_string_lossy().into_owned())
}

/// Prefix of generated recording names.
pub const NAME_PREFIX: &str = "lateralis-";

/// `lateralis-NAME` in the current folder, or with the first free number.
pub fn free_name(name: &str) -> PathBuf {
    let name = format!("{NAME_PREFIX}{name}");
    let numbered = (2..).map(|number| PathBuf::from(format!("{name}-{number}")));
    let mut names = std::iter::once(PathBuf::from(&name)).chain(numbered);
    names.find(|name| name.symlink_metadata().is_err()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(enable: &[&str], disable: &[&str], with: &[With]) -> String {
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        patterns(&own(enable), &own(disable), with).expect("good patterns").to_string()
    }

    #[test]
    fn everything_is_recorded_unless_something_is_named() {
        assert_eq!(list(&[], &[], &[]), "*");
        assert_eq!(list(&["a:B"], &[], &[]), "a:B");
        assert_eq!(list(&[], &["a:B"], &[]), "*,!a:B");
    }

    #[test]
    fn of_the_library_only_what_was_asked_for_is_recorded() {
        assert_eq!(list(&[], &[], &[With::Mutex, With::Io]), "*,!malloc,!thread");
        assert_eq!(list(&["a"], &[], &[With::Io]), "a,io");
        assert_eq!(list(&["io:WRITE"], &[], &[With::Io]), "io:WRITE");
        assert_eq!(list(&["io:WRITE"], &[], &[With::Io, With::Mutex]), "io:WRITE");
        assert_eq!(list(&["*:WRITE"], &[], &[With::Io]), "*:WRITE,!mutex,!malloc,!thread");
        assert_eq!(list(&["io:READ", "mutex"], &["io:READ"], &[]), "io:READ,mutex,!io:READ");
    }

    #[test]
    fn default_names_come_from_the_program() {
        let name = program_name(Some(&OsString::from("/usr/bin/no such program")));
        assert_eq!(free_name(&name), PathBuf::from("lateralis-no such program"));
        assert_eq!(program_name(None), "attached");
    }
}
