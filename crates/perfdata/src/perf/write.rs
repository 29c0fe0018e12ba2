// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A `perf.data` with the output of Intel PT of threads or processors, and with what was mapped in them, as
//! `perf record --per-thread -e intel_pt//` makes it, or `perf record -a`.
//!
//! ```text
//! begin   header, numbers and attributes of two events, what put out the packets, its clock
//! …       records and pieces of packets, as they come: nothing is kept but where the pieces lie
//! finish  where the pieces lie, and the header once more, now with the size of all
//! ```

use super::INTEL_PT;
use super::attr::{read, sample};
use super::records;

/// Bytes of the header [perf.data-file-format.txt].
const HEADER: u64 = 104;
/// Bytes of an attribute, of the version with branches counted in `sample_max_stack`.
const ATTR: u64 = 112;
/// The same with where its numbers lie.
const ATTR_ENTRY: u64 = ATTR + 16;
/// A number of an event each: of packets, and of everything else.
const PACKETS_ID: u64 = 1;
const SIDEBAND_ID: u64 = 2;
/// What each record has at its end, but for the address, which only samples have.
const SAMPLE_TYPE: u64 = sample::IP | sample::TID | sample::TIME | sample::CPU | sample::IDENTIFIER;
/// The number of the event source, which each machine gives anew.
const INTEL_PT_TYPE: u32 = 8;
/// The kind of events that the kernel counts, and the one that never comes.
const SOFTWARE_TYPE: u32 = 1;
const DUMMY_CONFIG: u64 = 9;
/// Records of perf itself [tools/lib/perf/include/perf/event.h].
const FINISHED_ROUND: u32 = 68;
/// The kind of feature that says where pieces of packets lie.
const AUXTRACE_FEATURE: u32 = 18;
/// Bits of the configuration of Intel PT [arch/x86/events/intel/pt.c].
const CONFIG_PT: u64 = 1;
const CONFIG_CYC: u64 = 1 << 1;
const CONFIG_MTC: u64 = 1 << 9;
const CONFIG_TSC: u64 = 1 << 10;
const CONFIG_NORETCOMP: u64 = 1 << 11;
const CONFIG_BRANCH: u64 = 1 << 13;
const CONFIG_MTC_FREQUENCY: u64 = 0xf << 14;
const CONFIG_PSB_FREQUENCY: u64 = 0xf << 24;
/// Bits of `misc`.
const MISC_KERNEL: u16 = 1;
const MISC_USER: u16 = 2;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Of the word that says where switches are found [tools/perf/arch/x86/util/intel-pt.c, have_sched_switch].
const SWITCHES_OF_CPUS: u64 = 3;
/// Bytes of a name that are written.
const NAME_MAX: usize = 4096;

/// How the packets were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntelPt {
    /// An MTC packet comes each time the lower so many bits of the crystal clock are 0.
    pub mtc_frequency: Option<u8>,
    /// Whether packets say how many cycles went by.
    pub cycles: bool,
    /// A PSB comes after 2048 bytes, twice as many for each more.
    pub psb_frequency: u8,
    /// Whether a return to behind the last call is one bit.
    pub return_compression: bool,
    /// Ticks of the time stamp counter in one of the crystal clock: numerator and denominator.
    pub tsc_per_crystal: (u32, u32),
    /// Ticks of the time stamp counter in one of the bus clock.
    pub tsc_per_bus: u8,
    /// Ticks of the time stamp counter to nanoseconds of the recording's clock: zero, shift, multiplier.
    pub nanos: (u64, u16, u32),
    /// Whether code of the kernel was followed, too.
    pub kernel: bool,
    /// Whether there is a buffer for each processor: records say who ran there.
    pub per_cpu: bool,
}

/// Which thread, where and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Nanoseconds of the recording's clock.
    pub nanos: u64,
    /// The processor.
    pub cpu: u32,
}

/// Code that was mapped into a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The first address.
    pub begin: u64,
    /// Bytes.
    pub size: u64,
    /// Byte of the file that is there.
    pub offset: u64,
    /// The device of the file: major and minor number.
    pub device: (u32, u32),
    /// The file on it, and its generation.
    pub inode: (u64, u64),
    /// Rights, as for mmap(2).
    pub protection: u32,
    /// Flags, as for mmap(2).
    pub flags: u32,
    /// The file.
    pub path: Vec<u8>,
    /// Whether it is the kernel's.
    pub kernel: bool,
}

/// Something that happened beside the packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sideband {
    /// A thread has a name; with `exec`, of another program than before.
    Comm {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// By an exec.
        exec: bool,
        /// The name.
        name: Vec<u8>,
    },
    /// Code was mapped.
    Mmap2(Mapping),
    /// A thread was made.
    Fork(Task),
    /// A thread has ended.
    Exit(Task),
    /// The trace of a thread begins.
    TraceStarts {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// A processor began to run another thread, or stopped running one.
    Switch {
        /// Whether the thread of the record stopped; else it began.
        out: bool,
        /// Whether it would have gone on.
        preempted: bool,
        /// The process that comes next, or was before.
        pid: u32,
        /// Its thread.
        tid: u32,
    },
    /// Records of this machine were lost.
    Lost {
        /// How many.
        count: u64,
    },
}

/// A thread and who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The process.
    pub pid: u32,
    /// The process that made it.
    pub parent: u32,
    /// The thread.
    pub tid: u32,
    /// The thread that made it.
    pub parent_tid: u32,
    /// When.
    pub nanos: u64,
}

/// Which packets a piece holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The thread, where it is of one.
    pub tid: Option<u32>,
    /// The processor, where it is of one.
    pub cpu: Option<u32>,
    /// Another number for each of them.
    pub buffer: u32,
    /// Bytes of it before them, each piece rounded up to a multiple of 8.
    pub offset_bytes: u64,
    /// The time stamp counter when they were fetched, about.
    pub tsc: u64,
}

/// Writes a file from front to back; its bytes are handed back to be written.
#[derive(Debug, Clone)]
pub struct Writer {
    how: IntelPt,
    /// Bytes handed back so far.
    at: u64,
    /// Where pieces of packets lie: the record, and its size without the packets.
    pieces: Vec<(u64, u64)>,
}

impl Writer {
    /// @return the writer, and how the file begins.
    #[must_use]
    pub fn begin(how: IntelPt) -> (Self, Vec<u8>) {
        Self::begin_filtered(how, "")
    }

    /// The same of a tracer with filters of addresses, as [`super::address_filters`] reads them.
    #[must_use]
    pub fn begin_filtered(how: IntelPt, filter: &str) -> (Self, Vec<u8>) {
        let mut writer = Self { how, at: 0, pieces: Vec::new() };
        let mut out = writer.header(0);
        [PACKETS_ID, SIDEBAND_ID].iter().for_each(|id| put64(&mut out, *id));
        for (index, attr) in [writer.packets_attr(), sideband_attr(&how)].iter().enumerate() {
            out.extend_from_slice(attr);
            put64(&mut out, HEADER + 8 * index as u64);
            put64(&mut out, 8);
        }
        let (zero, shift, multiplier) = how.nanos;
        let numbers = [u64::from(shift), u64::from(multiplier), zero];
        let mut info = Vec::new();
        put32(&mut info, INTEL_PT);
        put32(&mut info, 0);
        let words = [
            u64::from(INTEL_PT_TYPE),
            numbers[0],
            numbers[1],
            numbers[2],
            1, // the clock has a zero
            CONFIG_TSC,
            CONFIG_NORETCOMP,
            // What says which thread was switched to: records of each processor, or nothing where each
            // thread has a buffer.
            if how.per_cpu { SWITCHES_OF_CPUS } else { 0 },
            0, // no snapshots
            u64::from(how.per_cpu),
            CONFIG_MTC,
            CONFIG_MTC_FREQUENCY,
            u64::from(how.tsc_per_crystal.0),
            u64::from(how.tsc_per_crystal.1),
            CONFIG_CYC,
            u64::from(how.tsc_per_bus),
            filter.len().min(NAME_MAX) as u64,
        ];
        words.iter().for_each(|word| put64(&mut info, *word));
        if !filter.is_empty() {
            put_name(&mut info, filter.as_bytes());
        }
        out.extend(record(records::AUXTRACE_INFO, 0, &info));
        let mut conversion = Vec::new();
        numbers.iter().for_each(|word| put64(&mut conversion, *word));
        // A reading of a counter that is cut to fewer bits, and these: it is not.
        put64(&mut conversion, 0);
        put64(&mut conversion, u64::MAX);
        conversion.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        out.extend(record(records::TIME_CONV, 0, &conversion));
        writer.at = out.len() as u64;
        (writer, out)
    }

    /// A record of something beside the packets.
    #[must_use]
    pub fn sideband(&mut self, what: &Sideband, origin: Origin) -> Vec<u8> {
        let mut body = Vec::new();
        let mut misc = MISC_USER;
        let kind = match what {
            Sideband::Comm { pid, tid, exec, name } => {
                misc |= if *exec { MISC_COMM_EXEC } else { 0 };
                put32(&mut body, *pid);
                put32(&mut body, *tid);
                put_name(&mut body, name);
                records::COMM
            }
            Sideband::Mmap2(of) => {
                misc = if of.kernel { MISC_KERNEL } else { MISC_USER };
                put32(&mut body, of.pid);
                put32(&mut body, of.tid);
                [of.begin, of.size, of.offset].iter().for_each(|word| put64(&mut body, *word));
                put32(&mut body, of.device.0);
                put32(&mut body, of.device.1);
                put64(&mut body, of.inode.0);
                put64(&mut body, of.inode.1);
                put32(&mut body, of.protection);
                put32(&mut body, of.flags);
                put_name(&mut body, &of.path);
                records::MMAP2
            }
            Sideband::Fork(task) => {
                put_task(&mut body, task);
                records::FORK
            }
            Sideband::Exit(task) => {
                put_task(&mut body, task);
                records::EXIT
            }
            Sideband::TraceStarts { pid, tid } => {
                put32(&mut body, *pid);
                put32(&mut body, *tid);
                records::ITRACE_START
            }
            Sideband::Switch { out, preempted, pid, tid } => {
                misc = if *out { MISC_SWITCH_OUT } else { 0 };
                misc |= if *preempted { MISC_SWITCH_OUT_PREEMPT } else { 0 };
                put32(&mut body, *pid);
                put32(&mut body, *tid);
                records::SWITCH_CPU_WIDE
            }
            Sideband::Lost { count } => {
                put64(&mut body, SIDEBAND_ID);
                put64(&mut body, *count);
                records::LOST
            }
        };
        let id = match what {
            Sideband::TraceStarts { .. } => PACKETS_ID,
            _ => SIDEBAND_ID,
        };
        put32(&mut body, origin.pid);
        put32(&mut body, origin.tid);
        put64(&mut body, origin.nanos);
        put32(&mut body, origin.cpu);
        put32(&mut body, 0);
        put64(&mut body, id);
        let bytes = record(kind, misc, &body);
        self.at += bytes.len() as u64;
        bytes
    }

    /// A piece of the packets of a thread: what stands in the file, the packets included.
    #[must_use]
    pub fn packets(&mut self, piece: Piece, packets: &[u8]) -> Vec<u8> {
        let padded = packets.len().next_multiple_of(8);
        let mut body = Vec::new();
        // Without a time, perf takes no time from packets either.
        let words = [padded as u64, piece.offset_bytes, piece.tsc.max(1)];
        words.iter().for_each(|word| put64(&mut body, *word));
        let none = u32::MAX;
        let (tid, cpu) = (piece.tid.unwrap_or(none), piece.cpu.unwrap_or(none));
        [piece.buffer, tid, cpu, 0].iter().for_each(|word| put32(&mut body, *word));
        let mut bytes = record(records::AUXTRACE, 0, &body);
        self.pieces.push((self.at, bytes.len() as u64));
        bytes.extend_from_slice(packets);
        // PAD packets.
        bytes.resize(bytes.len() + padded - packets.len(), 0);
        self.at += bytes.len() as u64;
        bytes
    }

    /// @return how the file ends, and what its first bytes are instead of those of `begin`.
    #[must_use]
    pub fn finish(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mut end = record(FINISHED_ROUND, 0, &[]);
        self.at += end.len() as u64;
        let header = self.header(self.at);
        // Where the list of pieces is, and how long; then the list.
        put64(&mut end, self.at + 16);
        put64(&mut end, 8 + 16 * self.pieces.len() as u64);
        put64(&mut end, self.pieces.len() as u64);
        for (at, size) in &self.pieces {
            put64(&mut end, *at);
            put64(&mut end, *size);
        }
        (end, header)
    }

    /// `end`: behind the last record; 0 where that is not known yet.
    fn header(&self, end: u64) -> Vec<u8> {
        let ids = 2 * 8;
        let attributes = HEADER + ids;
        let data = attributes + 2 * ATTR_ENTRY;
        let mut out = b"PERFILE2".to_vec();
        let is_whole = end > data;
        let data_size = if is_whole { end - data } else { 0 };
        let sections = [attributes, 2 * ATTR_ENTRY, data, data_size, 0, 0];
        [HEADER, ATTR_ENTRY].iter().chain(&sections).for_each(|word| put64(&mut out, *word));
        let features = if is_whole { 1 << AUXTRACE_FEATURE } else { 0 };
        [features, 0, 0, 0].iter().for_each(|word| put64(&mut out, *word));
        out
    }

    fn packets_attr(&self) -> Vec<u8> {
        let mut config = CONFIG_PT | CONFIG_BRANCH | CONFIG_TSC;
        if let Some(frequency) = self.how.mtc_frequency {
            config |=
                CONFIG_MTC | u64::from(frequency & 0xf) << CONFIG_MTC_FREQUENCY.trailing_zeros();
        }
        config |= u64::from(self.how.psb_frequency & 0xf) << CONFIG_PSB_FREQUENCY.trailing_zeros();
        config |= if self.how.cycles { CONFIG_CYC } else { 0 };
        config |= if self.how.return_compression { 0 } else { CONFIG_NORETCOMP };
        const FLAGS: u64 = flag::DISABLED | flag::EXCLUDE_HV | flag::ENABLE_ON_EXEC;
        attr(INTEL_PT_TYPE, config, FLAGS | exclude_kernel(self.how.kernel))
    }
}

/// Bits of `perf_event_attr`, counted from `disabled` on.
mod flag {
    pub const DISABLED: u64 = 1;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HV: u64 = 1 << 6;
    pub const MMAP: u64 = 1 << 8;
    pub const COMM: u64 = 1 << 9;
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub const TASK: u64 = 1 << 13;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const MMAP2: u64 = 1 << 23;
    pub const COMM_EXEC: u64 = 1 << 24;
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
}

fn exclude_kernel(is_kernel: bool) -> u64 {
    if is_kernel { 0 } else { flag::EXCLUDE_KERNEL }
}

fn sideband_attr(how: &IntelPt) -> Vec<u8> {
    const FLAGS: u64 = flag::MMAP | flag::COMM | flag::TASK | flag::MMAP2 | flag::COMM_EXEC;
    let switches = if how.per_cpu { flag::CONTEXT_SWITCH } else { 0 };
    let flags = FLAGS | switches | flag::EXCLUDE_HV | exclude_kernel(how.kernel);
    attr(SOFTWARE_TYPE, DUMMY_CONFIG, flags)
}

fn attr(kind: u32, config: u64, flags: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put32(&mut out, kind);
    put32(&mut out, ATTR as u32);
    [config, 1, SAMPLE_TYPE, read::ID, flags | flag::SAMPLE_ID_ALL]
        .iter()
        .for_each(|word| put64(&mut out, *word));
    out.resize(ATTR as usize, 0);
    out
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(records::HEADER_BYTES + body.len());
    put32(&mut out, kind);
    out.extend(misc.to_le_bytes());
    // Names are cut: no body is near the limit.
    out.extend(((records::HEADER_BYTES + body.len()) as u16).to_le_bytes());
    out.extend_from_slice(body);
    out
}

/// With at least one zero byte, up to the next multiple of 8.
fn put_name(out: &mut Vec<u8>, name: &[u8]) {
    let name = &name[..name.len().min(NAME_MAX)];
    out.extend_from_slice(name);
    let padded = (name.len() + 1).next_multiple_of(8);
    out.resize(out.len() + padded - name.len(), 0);
}

fn put_task(out: &mut Vec<u8>, task: &Task) {
    [task.pid, task.parent, task.tid, task.parent_tid].iter().for_each(|word| put32(out, *word));
    put64(out, task.nanos);
}

fn put32(out: &mut Vec<u8>, word: u32) {
    out.extend(word.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, word: u64) {
    out.extend(word.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::aux_output;
    use super::*;

    #[test]
    fn packets_are_found_where_they_were_written() {
        let how = IntelPt {
            mtc_frequency: Some(3),
            cycles: false,
            psb_frequency: 0,
            return_compression: true,
            tsc_per_crystal: (40, 1),
            tsc_per_bus: 10,
            nanos: (5, 20, 1 << 20),
            kernel: false,
            per_cpu: false,
        };
        let (mut writer, mut file) = Writer::begin(how);
        let origin = Origin { pid: 7, tid: 8, nanos: 100, cpu: 0 };
        file.extend(writer.sideband(&Sideband::TraceStarts { pid: 7, tid: 8 }, origin));
        let piece = |tid, buffer, offset_bytes| Piece {
            tid: Some(tid),
            cpu: None,
            buffer,
            offset_bytes,
            tsc: 0,
        };
        file.extend(writer.packets(piece(8, 0, 0), b"abcdefghi"));
        file.extend(writer.packets(piece(9, 1, 0), b"12345678"));
        file.extend(writer.packets(piece(8, 0, 16), b"jkl"));
        // What is there when the writer is ended early can be read, too.
        assert_eq!(aux_output(&file).1.len(), 3);
        let (end, header) = writer.finish();
        file[..header.len()].copy_from_slice(&header);
        file.extend(end);
        let (info, areas) = aux_output(&file);
        let info = info.expect("who put them out");
        assert_eq!((info.kind, info.words.len()), (INTEL_PT, 17));
        assert_eq!(info.config.map(|config| config & CONFIG_MTC_FREQUENCY), Some(3 << 14));
        let found: Vec<_> = areas.iter().map(|of| (of.tid, of.index, of.offset_bytes)).collect();
        assert_eq!(found, [(8, 0, 0), (9, 1, 0), (8, 0, 16)]);
        assert!(areas.iter().all(|area| area.reference == 1));
        let begin = areas[0].begin_bytes as usize;
        assert_eq!(&file[begin..begin + areas[0].size_bytes as usize], b"abcdefghi\0\0\0\0\0\0\0");
    }
}
