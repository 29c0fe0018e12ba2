// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes a large trace, and measures the minimum time that the machine needs for as many events.
//!
//! ```text
//! bench-analyse make DIR EVENTS     a CTF 1.8 trace of 32 processors
//! bench-analyse floor DIR EVENTS    memcpy of its bytes; a scan of two columns; one line each
//! bench-analyse filters DIR EVENTS  filters over columns in memory, written to DIR as well
//! ```
//!
//! The trace contains threads making system calls, nested two deep at most, with other events in between:
//! 60 kinds of system calls, 12 of other events, 4,000 threads, each bound to one processor.
//! A record is 22 bytes: `u16 id; u64 timestamp; u32 tid; u64 arg`, without padding.

#![forbid(unsafe_code)]

mod filters;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

const CPUS: u32 = 32;
const THREADS: u32 = 125;
const CALLS: u16 = 60;
const POINTS: u16 = 12;
const RECORD_BYTES: usize = 22;
/// magic, stream; begin, end, content size, packet size; processor.
const HEADER_BYTES: usize = 4 + 4 + 8 * 4 + 4;
const RECORDS: usize = (65_536 - HEADER_BYTES) / RECORD_BYTES;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let usage = || io::Error::other("usage: bench-analyse make|floor|filters DIR EVENTS");
    let [_, verb, directory, events] = arguments.as_slice() else {
        return Err(usage());
    };
    let events: u64 = events.parse().map_err(io::Error::other)?;
    match verb.as_str() {
        "make" => make(Path::new(directory), events),
        "floor" => floor(Path::new(directory), events),
        "filters" => filters::filters(Path::new(directory), events),
        _ => Err(usage()),
    }
}

/// xorshift64*, so that every run has the same events.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn metadata() -> String {
    let mut text = String::from(
        "/* CTF 1.8 */
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le;
    packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = monotonic; freq = 1000000000; offset_s = 1700000000; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := stamp;
stream { id = 0;
    packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u64 content_size;
        u64 packet_size; u32 cpu_id; };
    event.header := struct { u16 id; stamp timestamp; };
    event.context := struct { u32 tid; }; };
",
    );
    for id in 0..2 * CALLS + POINTS {
        let name = match id {
            id if id < CALLS => format!("syscall_entry_call{id:02}"),
            id if id < 2 * CALLS => format!("syscall_exit_call{:02}", id - CALLS),
            id => format!("app:point{:02}", id - 2 * CALLS),
        };
        text += &format!(
            "event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{ u64 arg; }}; }};\n"
        );
    }
    text
}

#[derive(Clone, Copy, Default)]
struct Thread {
    open: [u16; 2],
    depth: usize,
}

struct Stream {
    file: BufWriter<File>,
    cpu: u32,
    records: Vec<u8>,
    first: u64,
    last: u64,
}

impl Stream {
    fn push(&mut self, id: u16, time: u64, tid: u32, arg: u64) -> io::Result<()> {
        if self.records.is_empty() {
            self.first = time;
        }
        self.last = time;
        self.records.extend(id.to_le_bytes());
        self.records.extend(time.to_le_bytes());
        self.records.extend(tid.to_le_bytes());
        self.records.extend(arg.to_le_bytes());
        if self.records.len() == RECORDS * RECORD_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let bits = 8 * (HEADER_BYTES + self.records.len()) as u64;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend(0xc1fc_1fc1_u32.to_le_bytes());
        header.extend(0_u32.to_le_bytes());
        for number in [self.first, self.last, bits, bits] {
            header.extend(number.to_le_bytes());
        }
        header.extend(self.cpu.to_le_bytes());
        self.file.write_all(&header)?;
        self.file.write_all(&self.records)?;
        self.records.clear();
        Ok(())
    }
}

fn make(directory: &Path, events: u64) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::write(directory.join("metadata"), metadata())?;
    for cpu in 0..CPUS {
        let file = BufWriter::new(File::create(directory.join(format!("cpu{cpu}")))?);
        let mut stream = Stream { file, cpu, records: Vec::new(), first: 0, last: 0 };
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ u64::from(cpu + 1));
        let mut threads = [Thread::default(); THREADS as usize];
        let (mut current, mut time) = (0, u64::from(cpu));
        let share = events / u64::from(CPUS) + u64::from(u64::from(cpu) < events % u64::from(CPUS));
        for _ in 0..share {
            // No two events of different processors at the same time, so that every program sees the same
            // order.
            time += u64::from(CPUS) * (1 + random.below(600));
            if random.below(50) == 0 {
                current = random.below(u64::from(THREADS)) as u32;
            }
            let thread = &mut threads[current as usize];
            let dice = random.below(100);
            let id = if thread.depth == 0 && dice < 90 || thread.depth == 1 && dice < 25 {
                let call = random.below(u64::from(CALLS)) as u16;
                thread.open[thread.depth] = call;
                thread.depth += 1;
                call
            } else if thread.depth > 0 && dice < 90 {
                thread.depth -= 1;
                CALLS + thread.open[thread.depth]
            } else {
                2 * CALLS + random.below(u64::from(POINTS)) as u16
            };
            let tid = 1000 + cpu * THREADS + current;
            stream.push(id, time, tid, random.below(1 << 20))?;
        }
        stream.flush()?;
        stream.file.flush()?;
    }
    Ok(())
}

/// Prints `row,nanoseconds`, the best of five.
fn floor(directory: &Path, events: u64) -> io::Result<()> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cpu")) {
            bytes.extend(fs::read(path)?);
        }
    }
    let mut copy = vec![0_u8; bytes.len()];
    let best = |work: &mut dyn FnMut() -> u64| {
        let mut best = u128::MAX;
        for _ in 0..5 {
            let begin = Instant::now();
            std::hint::black_box(work());
            best = best.min(begin.elapsed().as_nanos());
        }
        best
    };
    let memcpy = best(&mut || {
        copy.copy_from_slice(&bytes);
        u64::from(copy[copy.len() / 2])
    });
    println!("memcpy,{memcpy}");
    drop((bytes, copy));
    let mut random = Random(1);
    let ids: Vec<u16> = (0..events).map(|_| random.below(132) as u16).collect();
    let values: Vec<u64> = (0..events).map(|_| random.next()).collect();
    let scan = best(&mut || {
        let mut counts = [0_u64; 256];
        ids.iter().for_each(|&id| counts[usize::from(id & 0xff)] += 1);
        counts[0] + values.iter().fold(0_u64, |sum, &value| sum.wrapping_add(value))
    });
    println!("scan,{scan}");
    Ok(())
}
