// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A separate instance of the kernel's tracing: buffers with no other reader, in
//! `instances/lateralis-PID`, removed when the recording ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lateralis_helper::Loan;
use rustix::fs::OFlags;

use crate::kernel::{Choice, CpuStats, KernelFormat};
use crate::linux::processes;

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PREFIX: &str = "lateralis-";
/// A file that identifies tracefs.
const MARK: &str = "available_events";
/// Whether texts written to the kernel's `trace_marker` are copied to an instance as well.
const COPY_MARKS: &str = "options/copy_trace_marker";
/// No process has this id. The list of selected ones must not be empty, which would select all.
const NOBODY: u32 = (1 << 22) - 1;

/// Counts the instances of this process, which may record several times.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Finds a usable tracefs.
///
/// Errors: the missing privilege or mount, and the command to run.
pub(super) fn find(place: Option<&Path>) -> Result<PathBuf, String> {
    let places: Vec<PathBuf> = match place {
        Some(place) => vec![place.to_owned()],
        None => PLACES.iter().map(PathBuf::from).collect(),
    };
    let mut denied = None;
    for place in &places {
        match fs::File::open(place.join(MARK)) {
            Ok(_) => return Ok(place.clone()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                denied.get_or_insert(place.clone());
            }
            Err(_) => {}
        }
    }
    Err(match denied {
        Some(place) => no_right(&place),
        None => format!(
            "cannot record events of the kernel: its tracing file system is not mounted: {}: \
             as root, run `mount -t tracefs nodev /sys/kernel/tracing`",
            places[0].display()
        ),
    })
}

fn no_right(place: &Path) -> String {
    format!(
        "cannot record events of the kernel: no right to use its tracing file system: {}: run \
         `sudo lat record …`; or as root give a group the right, once after each boot: \
         `mount -o remount,mode=770,gid=GROUP {0}`",
        place.display()
    )
}

pub(super) fn told(action: &str, path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => no_right(path),
        _ => {
            let path = path.display();
            format!("cannot record events of the kernel: cannot {action}: {path}: {error}")
        }
    }
}

/// Reads a file of tracefs.
pub(super) fn read(tracefs: &Path, name: &str) -> Result<String, String> {
    let path = tracefs.join(name);
    let bytes = fs::read(&path).map_err(|error| told("read", &path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes instances of recorders that have ended.
pub(super) fn remove_abandoned(tracefs: &Path) {
    for entry in fs::read_dir(tracefs.join("instances")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let owner = owner.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !processes::exists(pid)) {
            // Another process may have it open; the next recorder tries again.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// An instance of tracefs.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
    /// Numbers of the CPUs with buffers, ascending, and their page files.
    cpus: Vec<u32>,
    pipes: Vec<File>,
    chosen: Option<File>,
    buffer_bytes: u64,
    number: u32,
    /// The loan, if a helper created the instance.
    loan: Option<Loan>,
}

impl Instance {
    /// Creates it; nothing is recorded yet.
    pub(super) fn make(tracefs: &Path) -> Result<Instance, String> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let name = match number {
            0 => format!("{PREFIX}{pid}"),
            _ => format!("{PREFIX}{pid}-{number}"),
        };
        let path = tracefs.join("instances").join(name);
        // Of a recorder that had the pid of this process.
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path).map_err(|error| told("make an instance", &path, &error))?;
        let instance = Instance::at(path, number, None);
        instance.write("tracing_on", "0")?;
        Ok(instance)
    }

    /// Wraps an instance created by a helper.
    pub(super) fn lent(loan: Loan) -> Instance {
        Instance::at(loan.path(), MADE.fetch_add(1, Ordering::Relaxed), Some(loan))
    }

    fn at(path: PathBuf, number: u32, loan: Option<Loan>) -> Instance {
        Instance {
            path,
            cpus: Vec::new(),
            pipes: Vec::new(),
            chosen: None,
            buffer_bytes: 0,
            number,
            loan,
        }
    }

    /// Reads one of its files.
    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        read(&self.path, name)
    }

    /// Writes one of its files.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(|error| told("write", &path, &error))
    }

    /// Sets the size of the buffers; returns the page size in bytes.
    pub(super) fn prepare(&mut self, buffer_bytes: u64) -> Result<usize, String> {
        let kb = buffer_bytes.div_ceil(1024).max(1);
        match &self.loan {
            None => self.write("buffer_size_kb", &kb.to_string())?,
            Some(loan) => loan.buffer_kb(kb).map_err(|error| {
                format!("cannot record events of the kernel: no buffers of {kb} KiB: {error}")
            })?,
        }
        // Names are recorded by events; saving them at each switch would cost time.
        let _ = self.write("options/record-cmd", "0");
        // A reader of full pages is woken when half of the buffer is full.
        let _ = self.write("buffer_percent", "50");
        let number = |name: &str| {
            let text = read(&self.path, name).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        };
        self.buffer_bytes = number("buffer_size_kb").map_or(buffer_bytes, |kb| kb * 1024);
        let page_bytes =
            number("buffer_subbuf_size_kb").map_or(4096, |kb| kb.clamp(1, 1024) * 1024);
        let folder = self.path.join("per_cpu");
        let entries = fs::read_dir(&folder).map_err(|error| told("read", &folder, &error))?;
        let number = |name: &str| name.strip_prefix("cpu")?.parse::<u32>().ok();
        self.cpus = entries.flatten().filter_map(|e| number(e.file_name().to_str()?)).collect();
        self.cpus.sort_unstable();
        for cpu in &self.cpus {
            let path = folder.join(format!("cpu{cpu}/trace_pipe_raw"));
            let flags = OFlags::NONBLOCK.bits() as i32;
            let pipe = OpenOptions::new().read(true).custom_flags(flags).open(&path);
            self.pipes.push(pipe.map_err(|error| told("open", &path, &error))?);
        }
        Ok(page_bytes as usize)
    }

    /// Whether the kernel supports this clock for it.
    pub(super) fn offers_clock(&self, name: &str) -> bool {
        let text = read(&self.path, "trace_clock").unwrap_or_default();
        text.split_whitespace().any(|word| word.trim_matches(['[', ']']) == name)
    }

    /// The kernel's descriptions of events; unreadable ones are left out.
    pub(super) fn formats(&self, choice: &Choice) -> Vec<KernelFormat> {
        let format = |(system, event): &(String, String)| {
            let text = read(&self.path, &format!("events/{system}/{event}/format")).ok()?;
            Some(KernelFormat { system: system.clone(), text, clause: String::new() })
        };
        choice.events.iter().filter_map(format).collect()
    }

    /// The description of texts that programs write to the kernel's trace, and its number;
    /// `None` if the kernel copies those to no instance (before Linux 6.12).
    pub(super) fn marks(&self) -> Option<(KernelFormat, u16)> {
        // A helper lends no marks: they are those of the whole machine.
        if self.loan.is_some() || !self.path.join(COPY_MARKS).exists() {
            return None;
        }
        let text = read(&self.path, "events/ftrace/print/format").ok()?;
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())?;
        Some((KernelFormat { system: "ftrace".to_owned(), text, clause: String::new() }, id))
    }

    /// Switches the buffer on or off, and marks only while it is on. The kernel copies a mark to one
    /// instance after the other and stops at the first whose buffer is off [kernel/trace/trace.c,
    /// `tracing_mark_write`], so an instance that is off would suppress the marks of all others.
    ///
    /// Errors: the buffer is unchanged. Returns a problem that affects only marks.
    pub(super) fn switch(&self, is_on: bool, has_marks: bool) -> Result<Option<String>, String> {
        let value = if is_on { "1" } else { "0" };
        let marks = || if has_marks { self.write(COPY_MARKS, value).err() } else { None };
        let before = if is_on { None } else { marks() };
        self.write("tracing_on", value)?;
        Ok(before.or_else(|| if is_on { marks() } else { None }))
    }

    /// Enables events; returns the failures as sentences.
    pub(super) fn enable(&self, choice: &Choice) -> Result<Vec<String>, String> {
        let mut refused = Vec::new();
        let mut rest = &choice.events[..];
        while let Some((system, _)) = rest.first() {
            let count = rest.iter().take_while(|(of, _)| of == system).count();
            let (events, others) = rest.split_at(count);
            rest = others;
            // One write for all events of a system instead of hundreds.
            let folder = self.path.join("events").join(system);
            let all = fs::read_dir(&folder).into_iter().flatten().flatten();
            let all = all.filter(|entry| entry.path().is_dir()).count();
            if all == count && self.write(&format!("events/{system}/enable"), "1").is_ok() {
                continue;
            }
            for (_, event) in events {
                if self.write(&format!("events/{system}/{event}/enable"), "1").is_err() {
                    refused.push(format!("{system}:{event}"));
                }
            }
        }
        if refused.len() == choice.events.len() {
            return Err(format!(
                "cannot record events of the kernel: it enables none of them: {}: see its log \
                 (`dmesg`)",
                self.path.display()
            ));
        }
        let sentence =
            |list: Vec<String>| format!("Cannot enable events of the kernel: {}", list.join(", "));
        Ok(if refused.is_empty() { Vec::new() } else { vec![sentence(refused)] })
    }

    /// From now on only selected threads count, and those they create.
    pub(super) fn choose_processes(&mut self) -> Result<(), String> {
        self.write("options/event-fork", "1")?;
        self.write("set_event_pid", &NOBODY.to_string())?;
        let path = self.path.join("set_event_pid");
        let file = OpenOptions::new().append(true).open(&path);
        self.chosen = Some(file.map_err(|error| told("open", &path, &error))?);
        Ok(())
    }

    /// File for the ids of selected threads.
    pub(super) fn chosen_processes(&self) -> Option<&File> {
        self.chosen.as_ref()
    }

    /// Whether a selected thread is alive: the kernel adds threads that they create, and removes those that
    /// end.
    pub(super) fn has_chosen_threads(&self) -> bool {
        let list = self.chosen.as_ref().and_then(|_| self.read("set_event_pid").ok());
        let nobody = NOBODY.to_string();
        list.is_some_and(|list| list.split_ascii_whitespace().any(|number| number != nobody))
    }

    /// Selects a thread.
    pub(super) fn choose_thread(&self, tid: u32) -> io::Result<()> {
        match self.chosen.as_ref() {
            // Writing needs only the descriptor.
            Some(file) => { file }.write_all(tid.to_string().as_bytes()),
            None => Ok(()),
        }
    }

    /// Sequence number of the instance in this process.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Numbers of the CPUs.
    pub(super) fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Size in bytes of each CPU's buffer, as allocated by the kernel.
    pub(super) fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    /// Readable when a buffer is half full.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.pipes.iter().map(AsFd::as_fd).collect()
    }

    /// Reads the next page of a CPU, even if it is not full yet; false if there is none.
    pub(super) fn read_page(&mut self, cpu: usize, page: &mut [u8]) -> bool {
        loop {
            return match self.pipes[cpu].read(page) {
                Ok(bytes) => {
                    page[bytes..].fill(0);
                    bytes > 0
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => false,
            };
        }
    }

    /// The kernel's counters of a CPU.
    pub(super) fn stats(&self, cpu: usize) -> CpuStats {
        let name = format!("per_cpu/cpu{}/stats", self.cpus[cpu]);
        CpuStats::parse(&read(&self.path, &name).unwrap_or_default())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.switch(false, self.loan.is_none() && self.path.join(COPY_MARKS).exists());
        self.pipes.clear();
        self.chosen = None;
        if self.loan.is_some() {
            return;
        }
        // Busy while a process that is being started has a descriptor of it.
        for _ in 0..50 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                _ => return,
            }
        }
    }
}
