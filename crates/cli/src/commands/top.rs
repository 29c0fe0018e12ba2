// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat top`: what happens now, again and again, without a recording.

mod metrics;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Arg, Args};
use lateralis_files::TemporaryFolder;
use lateralis_recorder::{ChunkOptions, RecordOptions};
use lateralis_reports::stats::gather::Statistics;
use lateralis_reports::stats::page::{self, Section};
use lateralis_reports::stats::sections::{self, Asked};
use lateralis_store::Recording;
use lateralis_traces::OpenOptions;
use lateralis_units::Nanos;
use lateralis_view::MetricsServer;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;

use metrics::{Counts, Metrics};

use crate::commands::record::{self, Mode, RecordArgs};
use crate::date;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::following::is_complete;
use crate::memory;
use crate::output::{self, Page};
use crate::selection::{self, SelectArgs};
use crate::values;

/// Disk for the events of one `--every`.
const CHUNK_BYTES: u64 = 64 << 20;
/// Chunks that are kept behind those that are counted, so that none goes away while it is read.
const SPARE_CHUNKS: u64 = 2;
/// Chunks that are counted at most: each is a folder.
const CHUNKS_MAX: u64 = 1000;
/// The shortest `--every`: below, `lat` itself is most of what is seen.
const EVERY_MIN: Duration = Duration::from_millis(100);

/// What is shown where nothing is chosen: the sections that change, those of the tracer's own events first.
const SECTIONS: [Section; 8] = [
    Section::Spans,
    Section::Messages,
    Section::States,
    Section::Counters,
    Section::Threads,
    Section::Calls,
    Section::Events,
    Section::Losses,
];

/// Options of `lat record` that choose where and how a recording is kept, or come from elsewhere.
const NOT_HERE: [&str; 33] = [
    "output",
    "mode",
    "ctf2",
    "max_size",
    "chunk_size",
    "chunk_time",
    "keep_chunks",
    "policy",
    "live",
    "connect",
    "serial",
    "baud",
    "elf",
    "schema",
    "fingerprint",
    "tls_ca",
    "tls",
    "tls_cert",
    "tls_key",
    "live_window",
    "retry",
    "sim",
    "sim_cpus",
    "sim_kernel",
    "sim_per_cpu",
    "sim_file",
    "sim_append",
    "sim_packets",
    "flush_every",
    "when",
    "then",
    "run_time",
    "quiet",
];

fn as_here(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "json" => argument.help("Print one line of JSON per update, as lat stats --json"),
        "token" => argument.help("Token that programs of other users need for --prometheus"),
        id if NOT_HERE.contains(&id) => argument.hide(true),
        _ => argument,
    }
}

/// Options of `lat top`.
#[derive(Debug, Args)]
#[command(
    override_usage = "lat top [OPTIONS] [--] [CMD]...",
    mut_args(as_here),
    after_help = "Examples:
  lat top --attach redis-server           counts, rates and durations of a running program
  lat top --with mutex,io -- ./server     of an unmodified program
  sudo lat top --system --section threads,calls,wakeups
                                          the whole machine
  lat top --every 200ms --over 2s --attach 1234
  lat top --json --duration 10s --attach 1234 | jq '.spans[] | {name, p99_ns}'
  lat top --prometheus 9464 --attach redis-server
                                          counters at http://127.0.0.1:9464/metrics

The numbers are those of lat stats over the last --over. No recording is kept: recent events are in
a temporary directory, at most 64 MiB per --every. A span that lasts longer than --over is
incomplete. --prometheus serves counters since the start and percentiles of about the last --over
to programs of this user and of root; others need the token. With CMD the numbers go to standard
error, and the program's output is unchanged."
)]
pub struct TopArgs {
    /// Interval between updates
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::parse_time)]
    pub every: Duration,
    /// Length of the time window that the numbers cover
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::parse_time)]
    pub over: Duration,
    /// Print only these sections
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub section: Vec<Section>,
    /// Print at most this many rows per table
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,
    /// Serve the numbers to Prometheus on this port of 127.0.0.1 or on this address, instead of printing
    /// them
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::parse_address,
        conflicts_with_all = ["json", "section"])]
    pub prometheus: Option<SocketAddr>,
    #[command(flatten)]
    pub record: RecordArgs,
}

/// Shows until the program has ended, or Ctrl-C.
pub fn run(mut args: TopArgs) -> Result<ExitStatus, CliError> {
    let is_json = std::mem::take(&mut args.record.json);
    let options = options(&args)?;
    let folder = TemporaryFolder::new("lat-top-").map_err(|cause| {
        CliError::at_path("cannot make a folder", &std::env::temp_dir(), &cause)
    })?;
    let output = folder.path().join("now");
    args.record.quiet = true;
    let form = match (is_json, args.record.command.is_empty()) {
        _ if args.prometheus.is_some() => Form::Prometheus(Arc::default()),
        (true, _) => Form::Json,
        (false, true) => Form::Screen,
        (false, false) => Form::BesideOutput,
    };
    if let (Form::Prometheus(counted), Some(address)) = (&form, args.prometheus) {
        serve(address, args.record.peer.token.clone(), Arc::clone(counted))?;
    }
    let (sections, every) = (args.section, args.every);
    let shown = Shown { root: output.clone(), over: args.over, sections, rows: args.top, form };
    let options = RecordOptions { output, ..options };
    let mut looking = None;
    let status = record::run_with(&args.record, options, &mut |record, session| {
        record::rules::observe(record, session);
        looking = Some(Looking::begin(shown.clone(), every));
        Ok(())
    });
    let looked = looking.map_or(Ok(()), Looking::end);
    let status = status?;
    looked?;
    // Events since the last update, also of a program that ended before the first one.
    shown.look()?;
    Ok(status)
}

fn options(args: &TopArgs) -> Result<RecordOptions, CliError> {
    let record = &args.record;
    let is_in_chunks = record.chunk_size.is_some() || record.chunk_time.is_some();
    let nothing_kept = "nothing is kept: use lat record";
    let not_here = [
        (record.output.is_some(), "--output", nothing_kept),
        (is_in_chunks || record.keep_chunks.is_some(), "--chunk-size, --chunk-time", nothing_kept),
        (record.max_size.is_some(), "--max-size", nothing_kept),
        (record.connect.is_some(), "--connect", "run lat top where the program is"),
        (record.serial.is_some(), "--serial", "use lat record --serial, and lat stats"),
        (record.sim, "--sim", "use lat record --sim"),
        (record.live.is_some(), "--live", "use lat live"),
        (record.policy.is_some(), "--policy", "its recordings are elsewhere: use --program"),
        (
            record.mode == Mode::Overwrite,
            "--mode overwrite",
            "such rings are read at the end only: leave it out",
        ),
    ];
    if let Some((_, option, advice)) = not_here.into_iter().find(|(is_given, ..)| *is_given) {
        return Err(CliError::new("cannot show live numbers with this option", option, advice));
    }
    if args.every < EVERY_MIN {
        let advice = format!("give at least {}", values::time(EVERY_MIN.as_nanos() as u64));
        return Err(CliError::new("cannot update this often", "--every", advice));
    }
    let counted = args.over.as_nanos().div_ceil(args.every.as_nanos());
    if counted == 0 || counted > u128::from(CHUNKS_MAX) {
        let advice = format!("give at least --every, and at most {CHUNKS_MAX} times that");
        return Err(CliError::new("cannot count over this time", "--over", advice));
    }
    let mut options = record::options(record)?;
    options.flush_period = options.flush_period.min(args.every);
    options.chunks = Some(ChunkOptions {
        bytes: Some(CHUNK_BYTES),
        // So that the flush after --every ends it, however exactly that comes.
        time: Some(args.every.mul_f64(0.75)),
        chunks_max: Some(counted as u64 + SPARE_CHUNKS),
    });
    Ok(options)
}

/// Serves counts from now on, until the process ends.
fn serve(
    address: SocketAddr,
    token: Option<String>,
    counted: Arc<Mutex<Counted>>,
) -> Result<(), CliError> {
    let cannot = |cause: std::io::Error| {
        let advice = format!("{cause}: choose another with --prometheus");
        CliError::new("cannot serve", address.to_string(), advice)
    };
    let is_secret = token.is_some();
    let text = move || counted.lock().unwrap_or_else(PoisonError::into_inner).metrics.text();
    let server = MetricsServer::bind(address, token, Box::new(text)).map_err(cannot)?;
    tell!("metrics    {}", server.url());
    match is_secret {
        true => tell!("other users and machines add ?token=SECRET"),
        false => tell!("other users and machines add ?token={}", server.token()),
    }
    let run = move || {
        // Without its socket it serves nothing; the recording is not concerned.
        let _ = server.run();
    };
    std::thread::Builder::new().name("metrics".to_owned()).spawn(run).map_err(cannot)?;
    Ok(())
}

/// What has been counted for Prometheus.
#[derive(Debug, Default)]
struct Counted {
    metrics: Metrics,
    /// Number of the last part of the recording that is in them.
    last: u64,
}

/// How it is shown.
#[derive(Debug, Clone)]
enum Form {
    /// On the whole screen of a terminal, else page by page.
    Screen,
    /// On standard error: standard output is the program's.
    BesideOutput,
    /// One line per update.
    Json,
    /// By a server.
    Prometheus(Arc<Mutex<Counted>>),
}

/// What is shown.
#[derive(Debug, Clone)]
struct Shown {
    /// Where the chunks are.
    root: PathBuf,
    over: Duration,
    sections: Vec<Section>,
    rows: usize,
    form: Form,
}

impl Shown {
    /// Shows the last events.
    ///
    /// Errors: standard output is closed.
    fn look(&self) -> Result<(), CliError> {
        if let Form::Prometheus(counted) = &self.form {
            if let Err(error) = self.count(counted) {
                tell!("warning: not counted yet: {error}");
            }
            return Ok(());
        }
        let chunks = self.chunks();
        let options = OpenOptions { memory_bytes: memory::share(), ..OpenOptions::default() };
        let opened = (!chunks.is_empty()).then(|| Recording::open_all(&chunks, &options));
        match (opened.transpose(), &self.form) {
            (Ok(Some(recording)), Form::Json) => self.json(&recording),
            (Ok(Some(recording)), _) => self.page(&recording),
            (Ok(None), Form::Json) => output::print_json_line(&json!({
                "version": output::JSON_VERSION,
                "at_ns": now().0,
                "events_total": 0,
            })),
            (Ok(None), _) => {
                let mut page = self.title();
                line!(page, "no events");
                self.print(&page)
            }
            (Err(error), _) => {
                tell!("warning: {error}");
                Ok(())
            }
        }
    }

    /// Counts the chunks that are new. A span may have begun in one before: new is what all chunks together
    /// have, and those before do not.
    ///
    /// Errors: a chunk cannot be read; it is tried again.
    fn count(&self, counted: &Mutex<Counted>) -> Result<(), CliError> {
        // Not held while counting: an answer does not wait for that.
        let counted = || counted.lock().unwrap_or_else(PoisonError::into_inner);
        let last = counted().last;
        let mut chunks: Vec<(u64, PathBuf)> = fs::read_dir(&self.root)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| Some((chunk_number(&entry.path())?, entry.path())))
            .filter(|(_, path)| is_complete(path) == Some(true))
            .collect();
        chunks.sort_unstable();
        let Some(newest) = chunks.last().map(|(number, _)| *number) else { return Ok(()) };
        let first_new = chunks.partition_point(|(number, _)| *number <= last);
        let new = (chunks.len() - first_new) as u64;
        if new == 0 {
            return Ok(());
        }
        let paths: Vec<PathBuf> = chunks.into_iter().map(|(_, path)| path).collect();
        let counts = |paths: &[PathBuf]| -> Result<Counts, CliError> {
            if paths.is_empty() {
                return Ok(Counts::default());
            }
            let options = OpenOptions { memory_bytes: memory::share(), ..OpenOptions::default() };
            let recording = Recording::open_all(paths, &options)?;
            let sections = [Section::Spans, Section::Events, Section::Losses];
            Ok(Counts::of(&self.statistics(&recording, &sections)?))
        };
        let (all, before) = (counts(&paths)?, counts(&paths[..first_new])?);
        let missed = newest.saturating_sub(last).saturating_sub(new);
        let mut counted = counted();
        counted.metrics.add(all, &before, missed);
        counted.last = newest;
        Ok(())
    }

    /// The chunks of the last [`Shown::over`], oldest first; not the one that is being written.
    fn chunks(&self) -> Vec<PathBuf> {
        let since = SystemTime::now().checked_sub(self.over).unwrap_or(UNIX_EPOCH);
        let is_recent = |path: &PathBuf| {
            let ended = path.join("report.json").metadata().and_then(|about| about.modified());
            ended.is_ok_and(|ended| ended >= since) && is_complete(path) == Some(true)
        };
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut chunks: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(is_recent).collect();
        chunks.sort_unstable();
        chunks
    }

    fn statistics(
        &self,
        recording: &Recording,
        sections: &[Section],
    ) -> Result<Statistics, CliError> {
        let selection = selection::select(&SelectArgs::default(), recording, true)?;
        let asked = Asked::of(sections, matches!(self.form, Form::Json));
        Ok(Statistics::of(recording, &selection, asked))
    }

    fn json(&self, recording: &Recording) -> Result<(), CliError> {
        let statistics = self.statistics(recording, &self.sections)?;
        let mut members = sections::keep(statistics.members(recording), &self.sections);
        // That of a folder that is gone soon.
        members.remove("trace");
        members.insert("at_ns".to_owned(), json!(now().0).into());
        output::print_json_members_line(&members)
    }

    fn page(&self, recording: &Recording) -> Result<(), CliError> {
        let sections = if self.sections.is_empty() { &SECTIONS[..] } else { &self.sections };
        let statistics = self.statistics(recording, sections)?;
        let mut page = self.title();
        page.page(&page::render(recording, &statistics, sections, self.rows));
        self.print(&page)
    }

    fn title(&self) -> Page {
        let over = values::time(u64::try_from(self.over.as_nanos()).unwrap_or(u64::MAX));
        let now = date::text(now());
        // Whole seconds are enough to see that it goes on.
        let now = now.split('.').next().unwrap_or_default();
        Page::of_line(format_args!("{now} UTC, the last {over}"))
    }

    fn print(&self, page: &Page) -> Result<(), CliError> {
        match self.form {
            Form::BesideOutput | Form::Prometheus(_) => output::tell(page),
            _ => output::replace_screen(page)?,
        }
        Ok(())
    }
}

/// Number of a chunk, from 1.
fn chunk_number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix("chunk-")?.parse().ok()
}

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// The thread that updates the numbers while this thread records.
struct Looking {
    stop: Sender<()>,
    thread: JoinHandle<Result<(), CliError>>,
}

impl Looking {
    fn begin(shown: Shown, every: Duration) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = shown.look() {
                    // Nobody reads it any more: as if that one had pressed Ctrl-C.
                    let _ = kill_process(getpid(), Signal::INT);
                    return Err(error);
                }
            }
            Ok(())
        });
        Self { stop, thread }
    }

    /// Errors: nobody reads what it shows.
    fn end(self) -> Result<(), CliError> {
        drop(self.stop);
        self.thread.join().unwrap_or(Ok(()))
    }
}
