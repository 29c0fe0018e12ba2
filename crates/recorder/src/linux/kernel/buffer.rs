// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of `perf_event_open`: descriptors, and the buffer shared by those of a CPU
//! [perf_event_open(2)].

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const ATTRIBUTE_BYTES: usize = 112;
pub(super) const TYPE_TRACEPOINT: u32 = 2;
pub(super) const SAMPLE_TIME: u64 = 1 << 2;
pub(super) const SAMPLE_RAW: u64 = 1 << 10;
/// After the count: the number of lost samples; since Linux 6.0.
const READ_LOST: u64 = 1 << 4;
/// disabled, watermark, sample_id_all, use_clockid.
pub(super) const FLAGS: u64 = 1 | 1 << 14 | 1 << 18 | 1 << 25;
const OPEN_CLOSE_ON_EXEC: u64 = 8;
/// `_IO('$', 0)`, `1`, `5`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_OUTPUT: libc::c_ulong = 0x2405;
/// `_IOR('$', 7, u64 *)`.
const ID: libc::c_ulong = 0x8008_2407;
/// Offsets of `data_head` and `data_tail` in the first page of a buffer.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// Parameters of an event [perf_event_open(2), "struct perf_event_attr"]. Times are those of
/// `CLOCK_MONOTONIC_RAW`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attributes {
    pub(super) kind: u32,
    pub(super) config: u64,
    /// Events between two samples, or samples per second, depending on the flags.
    pub(super) period: u64,
    pub(super) sample_type: u64,
    pub(super) flags: u64,
    /// Number of bytes in the buffer that wakes up its reader.
    pub(super) wakeup_bytes: u32,
    /// Registers of the program in each sample.
    pub(super) user_registers: u64,
    /// Bytes of the program's stack in each sample.
    pub(super) user_stack_bytes: u32,
}

impl Attributes {
    fn of_tracepoint(id: u32, wakeup_bytes: u32) -> Attributes {
        Attributes {
            kind: TYPE_TRACEPOINT,
            config: u64::from(id),
            // Every occurrence.
            period: 1,
            sample_type: SAMPLE_TIME | SAMPLE_RAW,
            flags: FLAGS,
            wakeup_bytes,
            ..Attributes::default()
        }
    }
}

/// Whose events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Everybody,
    /// A thread by its id; 0 is the calling one.
    Thread(u32),
}

/// An event on a CPU.
#[derive(Debug)]
pub(super) struct PerfEvent {
    file: File,
    tells_losses: bool,
}

/// Counts of an event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) happened: u64,
    /// `None` if the kernel does not support it.
    pub(super) lost: Option<u64>,
}

fn open(asked: &Attributes, target: Target, cpu: u32, read_format: u64) -> io::Result<File> {
    let pair = |low: u32, high: u32| {
        let (low, high) = if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
        u64::from(low) | u64::from(high) << 32
    };
    let mut attributes = [0u64; ATTRIBUTE_BYTES / 8];
    attributes[0] = pair(asked.kind, ATTRIBUTE_BYTES as u32);
    attributes[1] = asked.config;
    attributes[2] = asked.period;
    attributes[3] = asked.sample_type;
    attributes[4] = read_format;
    attributes[5] = asked.flags;
    attributes[6] = pair(asked.wakeup_bytes, 0);
    attributes[10] = asked.user_registers;
    attributes[11] = pair(asked.user_stack_bytes, libc::CLOCK_MONOTONIC_RAW as u32);
    let no_group = -1;
    let thread = match target {
        Target::Everybody => -1,
        // No thread id is greater (PID_MAX_LIMIT of Linux).
        Target::Thread(tid) => i32::try_from(tid).map_err(|_| io::ErrorKind::NotFound)?,
    };
    // SAFETY: the attributes have their stated size and live during the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            thread,
            cpu as i32,
            no_group,
            OPEN_CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(descriptor) {
        // SAFETY: the descriptor was just created and has no other owner.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { File::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

impl PerfEvent {
    /// Opens the tracepoint of this number on a CPU, disabled.
    pub(super) fn open(id: u32, cpu: u32, wakeup_bytes: u32) -> io::Result<PerfEvent> {
        let attributes = Attributes::of_tracepoint(id, wakeup_bytes);
        PerfEvent::of(&attributes, Target::Everybody, cpu)
    }

    /// Opens an event of a target on a CPU.
    pub(super) fn of(attributes: &Attributes, target: Target, cpu: u32) -> io::Result<PerfEvent> {
        match open(attributes, target, cpu, READ_LOST) {
            Ok(file) => Ok(PerfEvent { file, tells_losses: true }),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                let file = open(attributes, target, cpu, 0)?;
                Ok(PerfEvent { file, tells_losses: false })
            }
            Err(error) => Err(error),
        }
    }

    /// Readable when its buffer is half full; hung up when its thread and all descendants have ended.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_int) -> io::Result<()> {
        // SAFETY: none of the requests takes a pointer.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, argument) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Enables or disables it.
    pub(super) fn enable(&self, enabled: bool) -> io::Result<()> {
        self.control(if enabled { ENABLE } else { DISABLE }, 0)
    }

    /// Redirects it to the buffer of another event on the same CPU.
    pub(super) fn write_to(&self, buffer: &PerfBuffer) -> io::Result<()> {
        self.control(SET_OUTPUT, buffer.event.file.as_raw_fd())
    }

    /// The id in its samples, and in those of threads that inherited it.
    pub(super) fn id(&self) -> io::Result<u64> {
        let mut id = 0u64;
        // SAFETY: the kernel writes one word, which lives during the call.
        let result =
            unsafe { libc::ioctl(self.file.as_raw_fd(), ID as _, std::ptr::from_mut(&mut id)) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
    }

    pub(super) fn counted(&self) -> Counted {
        let mut words = [0; 16];
        let read = { &self.file }.read(&mut words).unwrap_or(0);
        let word = |at: usize| words[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let lost = (self.tells_losses && read == 16).then(|| word(8));
        Counted { happened: if read >= 8 { word(0) } else { 0 }, lost }
    }
}

/// The buffer of a CPU, and the event it was created with.
#[derive(Debug)]
pub(super) struct PerfBuffer {
    pub(super) event: PerfEvent,
    start: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    tail: u64,
}

// SAFETY: the mapping belongs to this value alone, and is only used through it.
unsafe impl Send for PerfBuffer {}

impl PerfBuffer {
    /// Creates a buffer of `data_bytes`, a power of two of pages.
    pub(super) fn new(event: PerfEvent, data_bytes: usize) -> Result<PerfBuffer, io::Error> {
        let page_bytes = rustix::param::page_size();
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        let all = page_bytes + data_bytes;
        // SAFETY: a fresh address; the kernel creates a buffer of exactly this length or none.
        let start =
            unsafe { mmap(std::ptr::null_mut(), all, flags, MapFlags::SHARED, &event.file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(PerfBuffer { event, start, page_bytes, data_bytes, tail: 0 })
    }

    pub(super) fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Readable when it is half full.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.descriptor()
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the word is in the first page, which is mapped as long as this value lives, is
        // aligned, and both sides access it atomically.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Passes complete records to `take`, in at most two contiguous parts, and releases their
    /// space. Errors: the positions are invalid; all content is discarded.
    pub(super) fn read(&mut self, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize, u64> {
        // Pairs with the kernel's barrier before it moves the head: the records are complete.
        let head = self.position(HEAD_AT).load(Ordering::Acquire);
        let used = head.wrapping_sub(self.tail);
        let (bytes, size) = (usize::try_from(used).unwrap_or(usize::MAX), self.data_bytes);
        if bytes <= size {
            // Its length is a power of two, so positions may wrap.
            let from = (self.tail % size as u64) as usize;
            let first = bytes.min(size - from);
            // SAFETY: the data follow the first page, and both parts are inside of them; the
            // kernel does not write between tail and head before the tail is moved.
            let (one, two) = unsafe {
                let data = self.start.as_ptr().add(self.page_bytes);
                (
                    std::slice::from_raw_parts(data.add(from), first),
                    std::slice::from_raw_parts(data, bytes - first),
                )
            };
            take(one, two);
        }
        self.tail = head;
        // Pairs with the kernel's read of it before it writes there again.
        self.position(TAIL_AT).store(head, Ordering::Release);
        if bytes <= size { Ok(bytes) } else { Err(used) }
    }
}

impl Drop for PerfBuffer {
    fn drop(&mut self) {
        let all = self.page_bytes + self.data_bytes;
        // SAFETY: mapped in `new` with this length; no borrow of it remains.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), all) };
    }
}
