// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Extracts the output of a processor's tracer from the files that contain it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use lateralis_model::{Source, Value};
use lateralis_perfdata::perf::{self, AuxArea, AuxInfo, INTEL_PT};
pub use lateralis_perfdata::perf::{AddressFilter, FilterAction};

use crate::Error;
use crate::joined::Joined;
use crate::open::{OpenOptions, map, open};
use crate::packed::Packing;

/// The sixteen bytes of a PSB packet [SDM volume 3, Packet Stream Boundary], which every Intel PT stream
/// contains.
const PSB: [u8; 16] = [2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82];

/// Intel PT packets of a thread or a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Buffer {
    /// The CPU, for a buffer of a CPU.
    pub cpu: Option<u32>,
    /// The thread, for a buffer of a thread.
    pub tid: Option<u32>,
    /// Contiguous bytes. Packets are missing between two runs.
    pub runs: Vec<Vec<u8>>,
    /// Offset of each run in the whole output into this buffer; empty if there is a single run.
    pub offsets: Vec<u64>,
}

/// Known clocks of the processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clocks {
    /// An MTC packet is generated whenever this number of low bits of the crystal clock are 0.
    pub mtc_frequency: Option<u8>,
    /// Ticks of the time stamp counter per tick of the crystal clock: numerator and denominator.
    pub tsc_per_crystal: Option<(u32, u32)>,
    /// Ticks of the time stamp counter per tick of the bus clock.
    pub tsc_per_bus: Option<u8>,
    /// Conversion of the time stamp counter to nanoseconds of the recording's clock: zero, shift,
    /// multiplier [include/uapi/linux/perf_event.h, time_zero].
    pub nanos: Option<(u64, u16, u32)>,
}

/// Hardware trace data in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hardware {
    /// By thread and CPU.
    pub buffers: Vec<Buffer>,
    /// Another tracer, by its number [tools/perf/util/auxtrace.h, enum auxtrace_type]: its output is not
    /// read.
    pub unknown: Option<u32>,
    /// Number of recorded bytes of packets that are missing because the file ends early.
    pub missing_bytes: u64,
    /// Clocks of the processors.
    pub clocks: Clocks,
    /// Code that is recorded with the packets: bytes by address.
    pub code: Vec<(u64, Vec<u8>)>,
    /// Whether the packets have no accompanying events.
    pub is_raw: bool,
    /// Address filters of the tracer; empty: everything was traced.
    pub filters: Vec<AddressFilter>,
}

/// First bytes of a file of GRIFFIN [Ge, Cui, Jaeger: GRIFFIN, ASPLOS 2017; the files of its authors].
const GRIFFIN: [u8; 4] = 0x51c0_ffee_u32.to_le_bytes();
/// Number of bytes that identify a compressed file.
const FIRST_BYTES: u64 = 16;
/// Name of the event with a piece of packets.
const PIECE: &str = "auxtrace";
/// Size of a page in bytes.
const PAGE: usize = 4096;

/// Reads hardware traces from a `perf.data`, a copy of one in CTF, a recording of GRIFFIN (plain or
/// compressed), a folder of kAFL (the stream beside `NAME.addr` and `NAME.dump`), or a file of Intel PT
/// packets only; other files have none.
///
/// Memory: all of them; for compressed files at most `limit_bytes`.
///
/// # Errors
/// If a file cannot be read.
pub fn read(path: &Path, limit_bytes: u64) -> Result<Hardware, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let kind = fs::metadata(path).map_err(io)?;
    if kind.is_dir() {
        let found = kafl(path).map_err(io)?;
        return Ok(if found.buffers.is_empty() { of_folder(path) } else { found });
    }
    if !kind.is_file() || kind.len() == 0 {
        return Ok(Hardware::default());
    }
    let bytes = map(&File::open(path).map_err(io)?).map_err(io)?;
    if let Some(packing) = Packing::of(&bytes) {
        let first = packing.begin(&bytes, FIRST_BYTES);
        if first.starts_with(&GRIFFIN) || perf::sniff(&first) {
            let (bytes, _) = packing.unpack(&bytes, limit_bytes).map_err(io)?;
            return Ok(of_bytes((*bytes).as_ref()));
        }
        return Ok(Hardware::default());
    }
    Ok(of_bytes(&bytes))
}

/// Like [`read`], from the bytes of an uncompressed file.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> Hardware {
    if perf::sniff(bytes) {
        return of_perf(bytes);
    }
    if bytes.starts_with(&GRIFFIN) {
        return griffin(bytes);
    }
    let mut all = Hardware::default();
    if has_packets(bytes) {
        all.is_raw = true;
        all.buffers.push(Buffer { runs: vec![bytes.to_vec()], ..Buffer::default() });
    }
    all
}

/// Files that cannot be opened cause an error when their events are read.
fn of_folder(path: &Path) -> Hardware {
    let opened = open(&[path.to_owned()], &OpenOptions::default());
    opened.map_or_else(|_| Hardware::default(), |trace| together(of_parts(&trace)))
}

/// Hardware traces of each of the traces that were opened together, in order.
///
/// Cost and memory: those of [`of_source`] for each.
#[must_use]
pub fn of_parts(joined: &Joined) -> Vec<Hardware> {
    joined.parts().iter().map(|part| of_source(part.source.as_ref())).collect()
}

/// All buffers of several traces. The clocks are those of the last.
fn together(parts: Vec<Hardware>) -> Hardware {
    let mut all = Hardware::default();
    for of in parts {
        all.buffers.extend(of.buffers);
        all.code.extend(of.code);
        all.filters.extend(of.filters);
        all.missing_bytes = all.missing_bytes.saturating_add(of.missing_bytes);
        all.unknown = all.unknown.or(of.unknown);
        all.clocks = of.clocks;
    }
    all
}

/// Hardware traces of a trace that contains a `perf.data` as events, like a copy in CTF.
///
/// Cost: a pass over its events, if it has any of a hardware tracer. Memory: all packets.
#[must_use]
pub fn of_source(source: &dyn Source) -> Hardware {
    let classes = source.trace().stream_classes.iter().flat_map(|of| &of.event_classes);
    let mut all = Hardware::default();
    if !classes.clone().any(|class| class.name == PIECE) {
        return all;
    }
    let (mut pieces, mut info) = (Vec::new(), None);
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        let Some(payload) = event.payload() else { continue };
        let number = |name: &str| payload.get(name).and_then(|field| field.as_u64());
        match event.class.name.as_str() {
            "auxtrace_info" => {
                let words = payload.get("private").map(|field| field.value());
                let Some(Value::Array(words)) = words else { continue };
                let words = words.filter_map(|word| word.as_u64()).collect();
                let kind = number("type").unwrap_or(0) as u32;
                info = Some(AuxInfo { kind, words, config: number("config") });
            }
            PIECE => {
                let data = payload.get("data");
                let Some(data) = data.as_ref().and_then(|field| field.as_bytes()) else { continue };
                let small = |name: &str| number(name).unwrap_or(0) as u32;
                let area = AuxArea {
                    begin_bytes: 0,
                    size_bytes: data.len() as u64,
                    missing_bytes: 0,
                    offset_bytes: number("offset").unwrap_or(0),
                    reference: number("reference").unwrap_or(0),
                    index: small("idx"),
                    tid: small("tid").cast_signed(),
                    cpu: small("cpu").cast_signed(),
                };
                pieces.push((area, data.into_owned()));
            }
            _ => {}
        }
    }
    if !all.know(info) {
        return all;
    }
    all.buffers = buffers(pieces);
    all
}

fn has_packets(bytes: &[u8]) -> bool {
    bytes.windows(PSB.len()).any(|window| window == PSB)
}

/// Records of a type, a size and words: type 0 contains packets of a thread, type 4 bytes of code at an
/// address. An invalid record ends the file.
fn griffin(bytes: &[u8]) -> Hardware {
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let mut all = Hardware { is_raw: true, ..Hardware::default() };
    let mut threads: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let content = |at: usize, count: Option<u64>, end: usize| {
        let count = usize::try_from(count?).ok()?;
        bytes.get(at..at.checked_add(count).filter(|behind| *behind <= end)?)
    };
    let mut at = 2 * GRIFFIN.len();
    while let (Some(kind), Some(size)) = (half(at), half(at + 4)) {
        let Some(end) = at.checked_add(size as usize).filter(|end| *end > at) else { break };
        match kind {
            0 => {
                let Some(thread) = word(at + 16) else { break };
                let Some(packets) = content(at + 40, word(at + 32), end) else { break };
                threads.entry(thread).or_default().extend(packets);
            }
            4 => {
                let Some(address) = word(at + 16) else { break };
                let Some(code) = content(at + 32, word(at + 24), end) else { break };
                all.code.push((address, code.to_vec()));
            }
            _ => {}
        }
        at = end;
    }
    let buffer = |(thread, packets)| Buffer {
        tid: u32::try_from(thread).ok(),
        runs: vec![packets],
        ..Buffer::default()
    };
    all.buffers = threads.into_iter().map(buffer).collect();
    all
}

/// Pages by address, whose low bits contain how they were found, and a stream of packets.
fn kafl(folder: &Path) -> std::io::Result<Hardware> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let has = |path: &Path, extension| path.extension().is_some_and(|of| of == extension);
    let mut all = Hardware::default();
    let Some(addresses) = paths.iter().find(|path| has(path, "addr")) else { return Ok(all) };
    let dump = addresses.with_extension("dump");
    if !dump.is_file() {
        return Ok(all);
    }
    let (addresses_of, pages) = (fs::read(addresses)?, fs::read(&dump)?);
    let (addresses_of, _) = addresses_of.as_chunks::<8>();
    let addresses_of = addresses_of.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let pages = addresses_of.zip(pages.chunks(PAGE));
    all.code = pages.map(|(at, page)| (at & !(PAGE as u64 - 1), page.to_vec())).collect();
    let beside = [addresses.clone(), dump, addresses.with_extension("")];
    for path in paths.iter().filter(|path| !beside.contains(path)) {
        let bytes = fs::read(path)?;
        if has_packets(&bytes) {
            all.is_raw = true;
            all.buffers.push(Buffer { runs: vec![bytes], ..Buffer::default() });
        }
    }
    Ok(all)
}

fn of_perf(bytes: &[u8]) -> Hardware {
    let (info, areas) = perf::aux_output(bytes);
    let mut all = Hardware::default();
    if !all.know(info) {
        return all;
    }
    all.missing_bytes = areas.iter().fold(0, |sum: u64, of| sum.saturating_add(of.missing_bytes));
    let piece = |area: AuxArea| {
        let range = area.begin_bytes..area.begin_bytes.saturating_add(area.size_bytes);
        Some((area, slice(bytes, range)?))
    };
    all.buffers = buffers(areas.into_iter().filter_map(piece));
    all
}

impl Hardware {
    /// Processes the description of the tracer. @return whether it is supported.
    fn know(&mut self, info: Option<AuxInfo>) -> bool {
        match info {
            Some(info) if info.kind != INTEL_PT => self.unknown = Some(info.kind),
            Some(info) => {
                self.clocks = clocks(&info);
                let filters = info.filter_text().and_then(|text| perf::address_filters(&text));
                self.filters = filters.unwrap_or_default();
            }
            None => {}
        }
        self.unknown.is_none()
    }
}

/// Joins contiguous pieces.
fn buffers(pieces: impl IntoIterator<Item = (AuxArea, impl AsRef<[u8]>)>) -> Vec<Buffer> {
    let mut all = Vec::new();
    let mut by_buffer: BTreeMap<(i32, i32, u32), Vec<_>> = BTreeMap::new();
    for (area, piece) in pieces {
        by_buffer.entry((area.cpu, area.tid, area.index)).or_default().push((area, piece));
    }
    for ((cpu, tid, _), mut areas) in by_buffer {
        areas.sort_by_key(|(area, _)| area.offset_bytes);
        let mut buffer = Buffer { runs: Vec::new(), ..Buffer::default() };
        (buffer.cpu, buffer.tid) = (u32::try_from(cpu).ok(), u32::try_from(tid).ok());
        let mut end = None;
        for (area, piece) in areas {
            let piece = piece.as_ref();
            // With snapshots of a buffer, a later one may begin with the contents of the earlier one.
            let known = end.map_or(0, |end: u64| end.saturating_sub(area.offset_bytes));
            let new = usize::try_from(known).ok().and_then(|known| piece.get(known..));
            let Some(new) = new.filter(|new| !new.is_empty()) else { continue };
            match buffer.runs.last_mut().filter(|_| end >= Some(area.offset_bytes)) {
                Some(run) => run.extend_from_slice(new),
                None => {
                    buffer.runs.push(new.to_vec());
                    buffer.offsets.push(area.offset_bytes.saturating_add(known));
                }
            }
            end = Some(area.offset_bytes.saturating_add(area.size_bytes));
        }
        if !buffer.runs.is_empty() {
            all.push(buffer);
        }
    }
    all
}

/// From the words of Intel PT [tools/perf/util/intel-pt.h].
fn clocks(info: &AuxInfo) -> Clocks {
    const SHIFT: usize = 1;
    const MULTIPLIER: usize = 2;
    const ZERO: usize = 3;
    const HAS_ZERO: usize = 4;
    const MTC: usize = 10;
    const MTC_FREQUENCY: usize = 11;
    const NUMERATOR: usize = 12;
    const DENOMINATOR: usize = 13;
    const RATIO: usize = 15;
    let word = |at: usize| info.words.get(at).copied().unwrap_or(0);
    let small = |at: usize| u32::try_from(word(at)).unwrap_or(0);
    let config = info.config.filter(|config| config & word(MTC) != 0);
    let bits = word(MTC_FREQUENCY);
    let frequency = config.filter(|_| bits != 0).map(|of| (of & bits) >> bits.trailing_zeros());
    let scale = (word(ZERO), word(SHIFT) as u16, small(MULTIPLIER));
    Clocks {
        mtc_frequency: frequency.and_then(|of| u8::try_from(of).ok()),
        tsc_per_crystal: Some((small(NUMERATOR), small(DENOMINATOR)))
            .filter(|of| of.0 > 0 && of.1 > 0),
        tsc_per_bus: u8::try_from(word(RATIO)).ok().filter(|of| *of > 0),
        nanos: Some(scale).filter(|_| word(HAS_ZERO) != 0),
    }
}

fn slice(bytes: &[u8], range: std::ops::Range<u64>) -> Option<&[u8]> {
    let (begin, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
    bytes.get(begin..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = (body.len() as u16 + 8).to_le_bytes();
        [&kind.to_le_bytes()[..], &[0, 0], &size, body].concat()
    }

    /// A `perf.data` in pipe format: a header, then records, each followed by its piece.
    fn pipe(kind: u32, areas: &[(u64, i32, &[u8])]) -> Vec<u8> {
        let mut bytes = [&b"PERFILE2"[..], &16u64.to_le_bytes()].concat();
        bytes.extend(record(70, &[kind.to_le_bytes(), [0; 4], [7, 0, 0, 0], [0; 4]].concat()));
        for (offset, tid, content) in areas {
            let words = [content.len() as u64, *offset, 1].map(u64::to_le_bytes).concat();
            let rest = [0, *tid, -1, 0].map(i32::to_le_bytes).concat();
            bytes.extend(record(71, &[words, rest].concat()));
            bytes.extend(*content);
        }
        bytes
    }

    #[test]
    fn pieces_of_a_buffer_are_put_together_and_what_is_missing_between_them_is_known() {
        let all: &[(u64, i32, &[u8])] = &[
            (0, 7, b"abcdefgh"),
            (0, 8, b"other th"),
            // The same bytes again, and more.
            (4, 7, b"efghijkl"),
            (40, 7, b"later on"),
        ];
        let found = of_perf(&pipe(INTEL_PT, all)).buffers;
        let runs = |runs: &[&[u8]]| runs.iter().map(|run| run.to_vec()).collect::<Vec<_>>();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].tid, found[0].cpu), (Some(7), None));
        assert_eq!(found[0].runs, runs(&[&b"abcdefghijkl"[..], b"later on"]));
        assert_eq!(found[0].offsets, [0, 40]);
        assert_eq!(found[1].runs, runs(&[&b"other th"[..]]));
    }

    #[test]
    fn recordings_of_griffin_hold_their_code() {
        let record = |kind: u32, words: &[u64], content: &[u8]| {
            let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let size = (8 + words.len() + content.len()) as u32;
            [&kind.to_le_bytes(), &size.to_le_bytes(), &words[..], content].concat()
        };
        let code = record(4, &[1, 0x1000, 3], b"xyz");
        let packets =
            |thread, content: &[u8]| record(0, &[1, thread, 0, content.len() as u64], content);
        let head = [GRIFFIN, [0; 4]].concat();
        let all = [&head, &code, &packets(7, b"ab"), &packets(9, b"c"), &packets(7, b"de")];
        let all = all.map(|part| &part[..]).concat();
        let found = of_bytes(&all);
        assert_eq!(found.code, [(0x1000, b"xyz".to_vec())]);
        let threads: Vec<_> = found.buffers.iter().map(|of| (of.tid, of.runs.concat())).collect();
        assert_eq!(threads, [(Some(7), b"abde".to_vec()), (Some(9), b"c".to_vec())]);
        // Truncated anywhere, everything before that is there.
        for cut in 0..all.len() {
            assert!(of_bytes(&all[..cut]).buffers.len() <= 2, "{cut}");
        }
    }

    #[test]
    fn of_a_tracer_that_is_not_known_nothing_is_read() {
        let found = of_perf(&pipe(3, &[(0, 7, b"abcdefgh")]));
        assert_eq!((found.unknown, found.buffers.len()), (Some(3), 0));
        assert_eq!(of_perf(b"PERFILE2"), Hardware::default());
    }
}
