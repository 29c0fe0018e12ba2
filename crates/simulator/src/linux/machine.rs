// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One run of a simulated machine, from its files to the recording of its execution.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

use lateralis_files::{TemporaryFolder, create_folder};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::root::Root;
use super::{Error, Kernel, Qemu};
use crate::flow::{Odd, Sums};
use crate::frame::Frames;
use crate::packets::Packets;
use crate::recording::{Counts, Options, Output, Recording, Status};

/// Plugin loaded by QEMU.
const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin.so"));
/// First process of the machine.
const INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));

/// Memory of the machine besides its files, in MiB.
const MEMORY_MIB: usize = 512;
/// Command line of the kernel: fixed addresses, as in its list of symbols; no mitigations of hardware
/// vulnerabilities, which are not part of the examined programs. All CPUs use one clock, although the
/// simulator runs them in turn.
const COMMAND_LINE: &str =
    "console=ttyS0 quiet nokaslr mitigations=off tsc=reliable panic=-1 rdinit=/.lateralis/init";
/// Largest number of CPUs.
const CPUS_MAX: u16 = 16;
/// Bytes that are read from QEMU at once.
const READ_BYTES: usize = 64 << 10;
/// Number of last lines of QEMU's messages that are shown.
const LINES: usize = 3;
const WHAT: &str = "cannot simulate a machine";

/// A program to run, and options of the recording.
#[derive(Debug, Clone)]
pub struct Job {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Files and folders that it needs besides those that it loads.
    pub files: Vec<PathBuf>,
    /// Number of CPUs.
    pub cpus: u16,
    /// Whether to record kernel code as well.
    pub kernel: bool,
    /// Options of the packets.
    pub packets: Packets,
    /// Whether each CPU has a buffer of packets rather than each thread.
    pub per_cpu: bool,
    /// Additional words of the kernel command line.
    pub append: Vec<String>,
    /// Folder for all output; it must not exist.
    pub output: PathBuf,
    /// Whether to keep every instruction as listed by the plugin, for tests.
    pub truth: bool,
}

/// Output of the machine while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed<'a> {
    /// Standard output of the program.
    Stdout(&'a [u8]),
    /// Standard error of the program.
    Stderr(&'a [u8]),
}

/// A machine that can be started.
#[derive(Debug)]
pub struct Machine {
    job: Job,
    qemu: Qemu,
    kernel: Kernel,
    archive: Vec<u8>,
}

/// Result of a run.
#[derive(Debug)]
pub struct Report {
    /// Exit status of the program; `None` if the machine ended before it.
    pub status: Option<Status>,
    /// The signal that ended the recording.
    pub signal: Option<i32>,
    /// Recorded instructions.
    pub sums: Sums,
    /// Instructions counted by the CPUs.
    pub counts: Vec<Counts>,
    /// Recorded threads, with their instructions.
    pub threads: Vec<(u32, u64)>,
    /// Inconsistencies.
    pub odd: Odd,
    /// Path of the recording.
    pub data: PathBuf,
    /// Kernel code by address.
    pub kernel_code: Vec<(u64, PathBuf)>,
    /// Kernel symbols.
    pub symbols: Option<PathBuf>,
    /// Failures.
    pub problems: Vec<String>,
    /// The plugin's list of instructions, if requested.
    pub truth: Vec<u8>,
}

impl Machine {
    /// Prepares a run. `fetches` is called when the kernel is downloaded.
    ///
    /// # Errors
    /// If the program or the machine needs something that is missing.
    pub fn prepare(job: Job, fetches: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        if INIT.is_empty() {
            let advice = "the simulator runs on machines of x86-64 only";
            return Err(Error::new(WHAT, "", advice));
        }
        if job.cpus == 0 || job.cpus > CPUS_MAX {
            let advice = format!("give 1 to {CPUS_MAX}");
            return Err(Error::new(WHAT, format!("{} processors", job.cpus), advice));
        }
        let qemu = Qemu::find()?;
        let archive = archive(&job)?;
        let kernel = Kernel::of_distribution(fetches)?;
        Ok(Self { job, qemu, kernel, archive })
    }

    /// Runs the program to its end, or until this process gets a signal. Everything up to then is kept.
    ///
    /// # Errors
    /// If the machine could not be started, nothing was recorded, or writing failed.
    pub fn run(
        self,
        print: &mut dyn FnMut(Printed<'_>) -> io::Result<()>,
    ) -> Result<Report, Error> {
        let signals = Stopper::new()?;
        let io = |path: &Path| {
            let path = path.to_owned();
            move |cause: io::Error| Error::io(WHAT, &path, &cause)
        };
        let folder =
            TemporaryFolder::new("lateralis-simulator-").map_err(io(&std::env::temp_dir()))?;
        let plugin = write(folder.path(), "plugin.so", PLUGIN)?;
        let archive = write(folder.path(), "initrd", &self.archive)?;
        let console = folder.path().join("console");
        let messages = folder.path().join("messages");
        let output = std::path::absolute(&self.job.output).map_err(io(&self.job.output))?;
        let was_there = output.is_dir();
        create_folder(&output).map_err(io(&output))?;
        let data = output.join("perf.data");
        let mut file = File::create_new(&data).map_err(io(&data))?;
        let vdso = output.join("vdso.so");
        let mut recording = Recording::new(Options {
            kernel: self.job.kernel,
            packets: self.job.packets,
            per_cpu: self.job.per_cpu,
            vdso_path: vdso.as_os_str().as_bytes().to_vec(),
            truth: self.job.truth,
        });
        let mut qemu = self.start(&plugin, &archive, &console, &messages)?;
        signals.watch(&qemu);
        let result = follow(&mut qemu, &mut recording, &mut file, print);
        signals.forget();
        let _ = qemu.kill();
        let _ = qemu.wait();
        let mut problems = result.err().into_iter().collect::<Vec<_>>();
        let mut write_data = |what: Output<'_>| match what {
            Output::Data(bytes) => file.write_all(bytes),
            Output::Stdout(_) | Output::Stderr(_) => Ok(()),
        };
        let header = recording.finish(&mut write_data).map_err(io(&data))?;
        if header.is_none() || recording.flow.threads.is_empty() && recording.status.is_none() {
            let _ = fs::remove_file(&data);
            if !was_there {
                let _ = fs::remove_dir(&output);
            }
            problems.extend(recording.problems);
            return Err(nothing(&problems, signals.signal(), &console, &messages));
        }
        if let Some(header) = header {
            file.seek(SeekFrom::Start(0)).map_err(io(&data))?;
            file.write_all(&header).map_err(io(&data))?;
        }
        problems.append(&mut recording.problems);
        if recording.has_lost_blocks {
            problems.push("code that was executed is missing: there was too much of it".to_owned());
        }
        if recording.status.is_none() && signals.signal().is_none() && problems.is_empty() {
            let last = [last_lines(&messages), last_lines(&console)].concat().join("; ");
            let more = if last.is_empty() { String::new() } else { format!(": {last}") };
            problems.push(format!("the machine ended before the program did{more}"));
        }
        if !recording.vdso.is_empty() {
            write(&output, "vdso.so", &recording.vdso)?;
        }
        let (mut kernel_code, mut symbols) = (Vec::new(), None);
        if self.job.kernel {
            for (address, code) in recording.kernel_code() {
                let name = format!("kernel-{address:x}");
                write(&output, &name, &code)?;
                kernel_code.push((address, self.job.output.join(name)));
            }
            write(&output, "kallsyms", &recording.symbols)?;
            symbols = Some(self.job.output.join("kallsyms"));
        }
        let threads = recording.flow.threads.iter().map(|(tid, of)| (*tid, of.instructions));
        Ok(Report {
            status: recording.status,
            signal: signals.signal(),
            sums: recording.flow.sums,
            counts: recording.counts.values().copied().collect(),
            threads: threads.collect(),
            odd: recording.flow.odd,
            data: self.job.output.join("perf.data"),
            kernel_code,
            symbols,
            problems,
            truth: recording.truth,
        })
    }

    fn start(
        &self,
        plugin: &Path,
        archive: &Path,
        console: &Path,
        messages: &Path,
    ) -> Result<Child, Error> {
        let memory = MEMORY_MIB + 3 * (self.archive.len() >> 20);
        let switch = |is_on: bool| if is_on { "on" } else { "off" };
        let mut options = OsString::from(escaped(plugin));
        options.push(format!(",out=1,kernel={}", switch(self.job.kernel)));
        options.push(format!(",truth={}", switch(self.job.truth)));
        let mut serial = OsString::from("file:");
        serial.push(console);
        let messages = File::create(messages).map_err(|cause| Error::io(WHAT, messages, &cause))?;
        let mut command = Command::new(&self.qemu.path);
        command
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"])
            .args(["-machine", "pc", "-accel", "tcg"])
            // Time is the number of instructions, and advances without waiting when there are none.
            .args(["-icount", "shift=0,sleep=off"])
            .args(["-cpu", "max,la57=off", "-m", &memory.to_string()])
            .args(["-smp", &self.job.cpus.to_string()])
            .arg("-serial")
            .arg(serial)
            .arg("-kernel")
            .arg(&self.kernel.path)
            .arg("-initrd")
            .arg(archive)
            .arg("-append")
            .arg([&[COMMAND_LINE.to_owned()], &self.job.append[..]].concat().join(" "))
            .arg("-plugin")
            .arg(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(messages)
            // Signals of the terminal go to this process only.
            .process_group(0);
        command.spawn().map_err(|cause| Error::io(WHAT, &self.qemu.path, &cause))
    }
}

/// Commas separate options of QEMU.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn write(folder: &Path, name: &str, content: &[u8]) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    fs::write(&path, content).map_err(|cause| Error::io("cannot write", &path, &cause))?;
    Ok(path)
}

/// Archive with the files of the machine.
fn archive(job: &Job) -> Result<Vec<u8>, Error> {
    // Libraries preloaded here need not exist there.
    let environment: Vec<_> =
        std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD").collect();
    let mut root = Root::new(&environment);
    let Some(name) = job.command.first() else {
        return Err(Error::new(WHAT, "", "name a program: lat record --sim -- ls"));
    };
    let program = root.program(name)?;
    for file in &job.files {
        root.add(file)?;
    }
    let folder = std::env::current_dir()
        .map_err(|cause| Error::new(WHAT, "the current folder", cause.to_string()))?;
    root.folder(&folder)?;
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut strings: Vec<Vec<u8>> = vec![user.to_string().into(), group.to_string().into()];
    strings.push(folder.as_os_str().as_bytes().to_vec());
    strings.push(program.as_os_str().as_bytes().to_vec());
    strings.push(u8::from(job.per_cpu).to_string().into());
    strings.push(job.command.len().to_string().into());
    strings.extend(job.command.iter().map(|word| word.as_bytes().to_vec()));
    let variables =
        environment.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
    strings.extend(variables);
    strings.iter_mut().for_each(|string| string.push(0));
    root.put("/.lateralis/init", 0o755, INIT);
    root.put("/.lateralis/job", 0o644, &strings.concat());
    Ok(root.finish())
}

/// Processes the plugin's output until the program has ended. @return failures.
fn follow(
    qemu: &mut Child,
    recording: &mut Recording,
    file: &mut File,
    print: &mut dyn FnMut(Printed<'_>) -> io::Result<()>,
) -> Result<(), String> {
    let Some(mut pipe) = qemu.stdout.take() else { return Ok(()) };
    let mut frames = Frames::default();
    let mut buffer = vec![0; READ_BYTES];
    let mut is_heard = true;
    let mut output = |what: Output<'_>| {
        let printed = match what {
            Output::Data(bytes) => {
                return file
                    .write_all(bytes)
                    .map_err(|cause| format!("the recording cannot be written: {cause}"));
            }
            Output::Stdout(bytes) => Printed::Stdout(bytes),
            Output::Stderr(bytes) => Printed::Stderr(bytes),
        };
        // If output can no longer be printed, the recording continues.
        is_heard = is_heard && print(printed).is_ok();
        Ok(())
    };
    while recording.status.is_none() {
        let count = match pipe.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
            Err(cause) => return Err(format!("QEMU cannot be read from: {cause}")),
        };
        let pushed = frames.push(&buffer[..count], |frame| recording.take(frame, &mut output));
        pushed.map_err(|malformed| malformed.to_string())??;
    }
    Ok(())
}

/// The last lines of a file of messages.
fn last_lines(path: &Path) -> Vec<String> {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter().map(|line| (*line).to_owned()).collect()
}

/// Error with the reason why nothing was recorded.
fn nothing(problems: &[String], signal: Option<i32>, console: &Path, messages: &Path) -> Error {
    if signal.is_some() {
        return Error::new("nothing was recorded", "", "it was ended before the program began");
    }
    let mut causes = problems.to_vec();
    causes.extend([last_lines(messages), last_lines(console)].concat());
    let cause = if causes.is_empty() { "QEMU has ended".to_owned() } else { causes.join("; ") };
    Error::new(WHAT, "the program was not started", cause)
}

/// Ends QEMU when this process gets a signal, and remembers the signal.
struct Stopper {
    pid: Arc<AtomicI32>,
    signal: Arc<AtomicI32>,
    is_over: Arc<AtomicBool>,
    handle: signal_hook::iterator::Handle,
}

impl Stopper {
    fn new() -> Result<Self, Error> {
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
        let mut signals =
            signals.map_err(|cause| Error::new(WHAT, "signals", cause.to_string()))?;
        let this = Self {
            pid: Arc::default(),
            signal: Arc::default(),
            is_over: Arc::default(),
            handle: signals.handle(),
        };
        let (pid, signal, is_over) = (this.pid.clone(), this.signal.clone(), this.is_over.clone());
        thread::spawn(move || {
            for number in signals.forever() {
                // Pairs with the load in `signal`.
                signal.store(number, Ordering::Release);
                if !is_over.load(Ordering::Acquire)
                    && let Some(pid) = Pid::from_raw(pid.load(Ordering::Acquire))
                {
                    // It flushes its data, and exits.
                    let _ = kill_process(pid, Signal::TERM);
                }
            }
        });
        Ok(this)
    }

    /// Sets the process to be ended.
    fn watch(&self, qemu: &Child) {
        let pid = Pid::from_child(qemu);
        // Pairs with the loads of the thread.
        self.pid.store(pid.as_raw_nonzero().get(), Ordering::Release);
        if self.signal().is_some() {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// It has exited: its process id is no longer used.
    fn forget(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// The signal, if one came.
    fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::Acquire)).filter(|signal| *signal != 0)
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.handle.close();
    }
}
