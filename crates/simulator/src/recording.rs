// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts the plugin's output to a `perf.data` and accompanying files.

use std::collections::BTreeMap;

use lateralis_perfdata::perf::write::{self as perf, Origin, Sideband, Writer};

use crate::flow::{Buffer, Flow, Owner};
use crate::frame::{Frame, kind};
use crate::packets::Packets;
use crate::sideband::{self, u32_at, u64_at};

/// Bytes of packets of a thread that are written at once.
const PIECE_BYTES: usize = 256 << 10;
/// Largest size of `/proc/kallsyms` that is kept.
const SYMBOLS_MAX: usize = 64 << 20;
/// Largest number of records besides the packets.
const SIDEBAND_MAX: u64 = 4 << 20;
/// Largest number of problems reported by init.
const PROBLEMS_MAX: usize = 16;
/// Addresses from here on belong to the kernel.
const KERNEL_BEGIN: u64 = 1 << 63;
/// Size of a page in bytes.
const PAGE: u64 = 4096;
/// Largest number of unexecuted pages between two executed ones that are in one piece.
const PAGES_BETWEEN: u64 = 4096;

/// Options of a recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether to record kernel code as well.
    pub kernel: bool,
    /// Options of the packets.
    pub packets: Packets,
    /// Whether each CPU has a buffer with the packets of all its threads, rather than each thread.
    pub per_cpu: bool,
    /// Future path of the file that the kernel maps into each program.
    pub vdso_path: Vec<u8>,
    /// Whether to keep every instruction listed by the plugin, to compare packets with in tests.
    pub truth: bool,
}

/// Exit status of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Status as of wait4(2).
    pub wait: u32,
    /// Why it could not be started.
    pub errno: Option<u32>,
}

/// Output besides the accompanying files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output<'a> {
    /// Bytes to append to the `perf.data`.
    Data(&'a [u8]),
    /// Standard output of the program.
    Stdout(&'a [u8]),
    /// Standard error of the program.
    Stderr(&'a [u8]),
}

/// Instructions of a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions begun since the program was started.
    pub instructions: u64,
    /// Those in recorded blocks.
    pub recorded: u64,
}

/// A recording in progress.
#[derive(Debug)]
pub struct Recording {
    options: Options,
    /// Encoder of the executed blocks.
    pub flow: Flow,
    writer: Option<Writer>,
    /// Conversion of the time stamp counter to nanoseconds: zero, shift, multiplier.
    nanos: (u64, u16, u32),
    sideband_count: u64,
    sideband_lost: u64,
    /// The text of `/proc/kallsyms`.
    pub symbols: Vec<u8>,
    /// The file that the kernel maps into each program.
    pub vdso: Vec<u8>,
    /// Exit status of the program.
    pub status: Option<Status>,
    /// By CPU.
    pub counts: BTreeMap<u16, Counts>,
    /// Failures reported by init.
    pub problems: Vec<String>,
    /// Words of [`kind::TRUTH`], if requested.
    pub truth: Vec<u8>,
    /// Whether definitions of blocks were damaged, or too many.
    pub has_lost_blocks: bool,
}

/// Code at an address.
pub type Piece = (u64, Vec<u8>);

impl Recording {
    /// Initial state.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let settings = options.packets.settings();
        let flow = match options.per_cpu {
            true => Flow::by_cpu(settings, options.kernel),
            false => Flow::new(settings),
        };
        Self {
            options,
            flow,
            writer: None,
            nanos: (0, 0, 1),
            sideband_count: 0,
            sideband_lost: 0,
            symbols: Vec::new(),
            vdso: Vec::new(),
            status: None,
            counts: BTreeMap::new(),
            problems: Vec::new(),
            truth: Vec::new(),
            has_lost_blocks: false,
        }
    }

    /// Whether the program was about to be started.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Processes a frame.
    ///
    /// # Errors
    /// Errors of `output`.
    pub fn take<E>(
        &mut self,
        frame: Frame<'_>,
        output: &mut impl FnMut(Output<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let content = frame.content;
        match frame.kind {
            kind::STDOUT => output(Output::Stdout(content))?,
            kind::STDERR => output(Output::Stderr(content))?,
            kind::SIDEBAND => self.sideband(content, output)?,
            kind::KALLSYMS if self.symbols.len() + content.len() <= SYMBOLS_MAX => {
                self.symbols.extend_from_slice(content);
            }
            kind::VDSO => self.vdso = content.to_vec(),
            kind::STATUS => {
                let errno = Some(u32_at(content, 4)).filter(|errno| *errno != 0);
                self.status = Some(Status { wait: u32_at(content, 0), errno });
            }
            kind::PROBLEM if self.problems.len() < PROBLEMS_MAX => {
                self.problems.push(String::from_utf8_lossy(content).into_owned());
            }
            kind::BEGIN if self.writer.is_none() => self.begin(content, output)?,
            kind::BLOCKS => self.has_lost_blocks |= !self.flow.blocks.define(content),
            kind::FLOW => {
                self.follow(content, output)?;
                self.write_packets(PIECE_BYTES, output)?;
            }
            kind::COUNTS => {
                let counts =
                    Counts { instructions: u64_at(content, 0), recorded: u64_at(content, 8) };
                self.counts.insert(frame.cpu, counts);
            }
            kind::TRUTH if self.options.truth => {
                self.truth.extend_from_slice(content);
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes everything that was not written yet. @return the first bytes of the file, which replace
    /// those that were written; `None` if there is no file.
    ///
    /// # Errors
    /// Errors of `output`.
    pub fn finish<E>(
        &mut self,
        output: &mut impl FnMut(Output<'_>) -> Result<(), E>,
    ) -> Result<Option<Vec<u8>>, E> {
        self.flow.finish();
        self.write_packets(0, output)?;
        let Some(mut writer) = self.writer.take() else { return Ok(None) };
        if self.sideband_lost > 0 {
            let origin = Origin { pid: 0, tid: 0, nanos: 0, cpu: 0 };
            output(Output::Data(
                &writer.sideband(&Sideband::Lost { count: self.sideband_lost }, origin),
            ))?;
        }
        let (end, header) = writer.finish();
        output(Output::Data(&end))?;
        Ok(Some(header))
    }

    /// Executed kernel code, by page; its last contents if it changed.
    #[must_use]
    pub fn kernel_code(&self) -> Vec<Piece> {
        let mut pages: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for block in self.flow.blocks.iter().filter(|block| block.ip >= KERNEL_BEGIN) {
            for (at, byte) in block.code.iter().enumerate() {
                let address = block.ip.wrapping_add(at as u64);
                let page = pages.entry(address / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
                page[(address % PAGE) as usize] = *byte;
            }
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for (number, page) in pages {
            let begin = number * PAGE;
            match pieces.last_mut() {
                Some((first, bytes))
                    if begin - *first <= bytes.len() as u64 + PAGES_BETWEEN * PAGE =>
                {
                    bytes.resize((begin - *first) as usize, 0);
                    bytes.extend(page);
                }
                _ => pieces.push((begin, page)),
            }
        }
        pieces
    }

    fn begin<E>(
        &mut self,
        content: &[u8],
        output: &mut impl FnMut(Output<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // struct lat_begin
        let (zero, multiplier) = (u64_at(content, 40), u32_at(content, 48));
        let shift = u16::try_from(u32_at(content, 52).min(63)).unwrap_or(0);
        // A kernel that does not trust the counter does not report how its clock is derived from it.
        let is_known = multiplier != 0;
        self.nanos = if is_known { (zero, shift, multiplier) } else { (0, 0, 1) };
        let Options { kernel, per_cpu, packets, .. } = self.options;
        let (writer, bytes) = Writer::begin(packets.description(self.nanos, kernel, per_cpu));
        self.writer = Some(writer);
        output(Output::Data(&bytes))
    }

    fn follow<E>(
        &mut self,
        words: &[u8],
        output: &mut impl FnMut(Output<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut begun = Vec::new();
        self.flow.follow(words, |tid, pid, tsc| begun.push((tid, pid, tsc)));
        let cpu = self.flow.cpu();
        // If each CPU has a buffer, its switches give the running threads.
        for (tid, pid, tsc) in begun.into_iter().filter(|_| !self.options.per_cpu) {
            let nanos = nanos(tsc, self.nanos);
            let origin = Origin { pid, tid, nanos, cpu };
            if let Some(writer) = &mut self.writer {
                let bytes = writer.sideband(&Sideband::TraceStarts { pid, tid }, origin);
                output(Output::Data(&bytes))?;
            }
        }
        Ok(())
    }

    fn write_packets<E>(
        &mut self,
        bytes_min: usize,
        output: &mut impl FnMut(Output<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut result = Ok(());
        self.flow.take(bytes_min, |of: &Buffer, offset, packets| {
            if result.is_ok() {
                let (tid, cpu) = match of.owner {
                    Owner::Thread(tid) => (Some(tid), None),
                    Owner::Cpu(cpu) => (None, Some(cpu)),
                };
                let (buffer, tsc) = (of.number, of.last_tsc());
                let place = perf::Piece { tid, cpu, buffer, offset_bytes: offset, tsc };
                result = output(Output::Data(&writer.packets(place, packets)));
            }
        });
        result
    }

    fn sideband<E>(
        &mut self,
        content: &[u8],
        output: &mut impl FnMut(Output<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut result = Ok(());
        sideband::read(content, |mut what, origin| {
            if !is_of_program(&what) || result.is_err() {
                return;
            }
            if self.sideband_count >= SIDEBAND_MAX {
                self.sideband_lost += 1;
                return;
            }
            self.sideband_count += 1;
            if let Sideband::Mmap2(mapping) = &mut what
                && mapping.path == b"[vdso]"
            {
                mapping.path.clone_from(&self.options.vdso_path);
            }
            result = output(Output::Data(&writer.sideband(&what, origin)));
        });
        result
    }
}

/// Excludes records of the machine's init and of its kernel threads.
fn is_of_program(what: &Sideband) -> bool {
    const INIT: u32 = 1;
    const KERNEL_THREADS: u32 = 2;
    match what {
        Sideband::Comm { pid, .. } | Sideband::TraceStarts { pid, .. } => *pid > KERNEL_THREADS,
        Sideband::Mmap2(mapping) => mapping.pid > INIT,
        Sideband::Fork(task) | Sideband::Exit(task) => {
            task.pid > KERNEL_THREADS && task.parent != KERNEL_THREADS
        }
        // Every switch matters, as another thread stops running.
        Sideband::Switch { .. } => true,
        Sideband::Lost { .. } => true,
    }
}

/// As perf computes it [tools/perf/util/tsc.c].
fn nanos(tsc: u64, (zero, shift, multiplier): (u64, u16, u32)) -> u64 {
    let scaled = (u128::from(tsc) * u128::from(multiplier)) >> shift;
    zero.wrapping_add(scaled as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tests::definition;

    fn all(recording: &mut Recording, frames: &[(u16, Vec<u8>)]) -> (Vec<u8>, Vec<u8>) {
        let (mut data, mut printed) = (Vec::new(), Vec::new());
        let mut output = |what: Output<'_>| {
            match what {
                Output::Data(bytes) => data.extend_from_slice(bytes),
                Output::Stdout(bytes) | Output::Stderr(bytes) => printed.extend_from_slice(bytes),
            }
            Ok::<(), ()>(())
        };
        for (kind, content) in frames {
            let frame = Frame { kind: *kind, cpu: 0, content };
            assert_eq!(recording.take(frame, &mut output), Ok(()));
        }
        let header = recording.finish(&mut output).expect("it is taken");
        if let Some(header) = header {
            data[..header.len()].copy_from_slice(&header);
        }
        (data, printed)
    }

    fn options() -> Options {
        Options {
            kernel: true,
            per_cpu: false,
            packets: Packets::default(),
            vdso_path: b"/x/vdso.so".to_vec(),
            truth: false,
        }
    }

    #[test]
    fn what_is_sent_is_in_the_file() {
        let mut begin = vec![0; 56];
        begin[48..52].copy_from_slice(&1u32.to_le_bytes());
        let words = [0xffff_fffd, 7, 6, 0, 0, 0xffff_fffc, 99, 0, 0, 0xffff_fffa];
        let words: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let frames = [
            (kind::STDOUT, b"hello ".to_vec()),
            (kind::BEGIN, begin),
            (kind::BLOCKS, definition(0, 0x1000, &[&[0x0f, 0x05]])),
            (kind::FLOW, words),
            (kind::STATUS, [[0, 3, 0, 0], [0; 4]].concat()),
            (kind::STDERR, b"world".to_vec()),
        ];
        let mut recording = Recording::new(options());
        let (data, printed) = all(&mut recording, &frames);
        assert_eq!(printed, b"hello world");
        assert_eq!(recording.status, Some(Status { wait: 0x300, errno: None }));
        let (info, areas) = lateralis_perfdata::perf::aux_output(&data);
        assert_eq!(info.expect("who put it out").words[3], 0);
        assert_eq!(areas.len(), 1);
        assert_eq!((areas[0].tid, recording.flow.sums.retired), (7, 1));
    }

    #[test]
    fn without_a_beginning_there_is_no_file() {
        let mut recording = Recording::new(options());
        let (data, _) = all(&mut recording, &[(kind::SIDEBAND, vec![1; 99]), (77, vec![])]);
        assert!(data.is_empty() && !recording.has_begun());
    }

    #[test]
    fn pages_of_the_kernel_that_are_near_each_other_are_one_piece() {
        let mut recording = Recording::new(options());
        let at = [0x1000, u64::MAX << 20, (u64::MAX << 20) + 0x3ffe, (u64::MAX << 30) + 5];
        for (id, ip) in at.into_iter().enumerate() {
            let is_good =
                recording.flow.blocks.define(&definition(id as u32, ip, &[&[0x0f, 0x05]]));
            assert!(is_good);
        }
        let pieces = recording.kernel_code();
        let found: Vec<_> = pieces.iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        assert_eq!(found, [(u64::MAX << 30, 4096), (u64::MAX << 20, 4 * 4096)]);
        assert_eq!(pieces[0].1[5..8], [0x0f, 0x05, 0]);
    }
}
