// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decodes a file of packets several times and prints the time of each round; for bench/decode.
//!
//!     decode counter|blocks|counter-N ROUNDS PACKETS [FILE:ADDRESS]...
//!
//! Prints the number of instructions, the number of gaps, then the seconds of each round. `counter`:
//! instructions are only counted; `blocks`: each block is passed on; `counter-N`: counted by N threads,
//! each of which takes segments of the stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use lateralis_intelpt::Block;
use lateralis_intelpt::errata::Errata;
use lateralis_intelpt::flow::{Event, Flow, Sink};
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::segments::{Segment, segments};

/// Bytes of packets that a thread takes at once.
const SEGMENT_BYTES: usize = 256 << 10;

#[derive(Default)]
struct Counter {
    instructions: u64,
    gaps: u64,
}

impl Sink for Counter {
    const IS_COUNTER: bool = true;

    fn block(&mut self, block: &Block) {
        self.instructions += u64::from(block.count);
    }

    fn instructions(&mut self, count: u32) {
        self.instructions += u64::from(count);
    }

    fn event(&mut self, _: usize, event: Event) {
        self.gaps += u64::from(matches!(event, Event::Gap(_)));
    }
}

/// Receives each block.
#[derive(Default)]
struct Blocks {
    counter: Counter,
    /// Hash of the addresses of all blocks, so that none can be left out.
    hash: u64,
}

impl Sink for Blocks {
    fn block(&mut self, block: &Block) {
        self.counter.block(block);
        self.hash = (self.hash ^ block.ip).wrapping_mul(0x0100_0000_01b3);
    }

    fn event(&mut self, position: usize, event: Event) {
        self.counter.event(position, event);
    }
}

/// Counts with several threads, each with its own cache of code.
fn in_parallel(image: &Sections<'_>, packets: &[u8], threads: usize) -> Counter {
    let all: Vec<Segment> = segments(packets, SEGMENT_BYTES, Errata::NONE);
    // Only distributes numbers: no data is published through it.
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut flow, mut counter, mut is_whole) = (Flow::new(image), Counter::default(), true);
        while let Some(segment) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut state = flow.enter_segment(packets, segment, &mut Counter::default());
            let of_all = (segment, packets.len());
            is_whole &= flow.decode_segment(&mut state, packets, of_all, &mut counter);
        }
        (counter, is_whole)
    };
    let counters: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let mut sum = Counter::default();
    for (counter, is_whole) in counters {
        assert!(is_whole, "a PSB is inside of another packet");
        sum.instructions += counter.instructions;
        sum.gaps += counter.gaps;
    }
    sum
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, rounds, packets, code @ ..] = arguments.as_slice() else {
        return Err("decode counter|blocks|counter-N ROUNDS PACKETS [FILE:ADDRESS]...".into());
    };
    let mut pieces = Vec::new();
    for piece in code {
        let (file, address) = piece.rsplit_once(':').ok_or("FILE:ADDRESS")?;
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
        pieces.push((address, std::fs::read(file)?));
    }
    let mut image = Sections::default();
    for (address, bytes) in &pieces {
        image.add(*address, bytes);
    }
    let packets = std::fs::read(packets)?;
    let mut seconds = Vec::new();
    let mut counter = Counter::default();
    for _ in 0..rounds.parse()? {
        // A new flow for each round, so that nothing is cached.
        let mut flow = Flow::new(&image);
        let begin = Instant::now();
        let threads = how.strip_prefix("counter-").and_then(|count| count.parse().ok());
        counter = match how.as_str() {
            _ if threads.is_some() => in_parallel(&image, &packets, threads.unwrap_or(1)),
            "counter" => {
                let mut counter = Counter::default();
                flow.decode(&packets, &mut counter);
                counter
            }
            _ => {
                let mut blocks = Blocks::default();
                flow.decode(&packets, &mut blocks);
                std::hint::black_box(blocks.hash);
                blocks.counter
            }
        };
        seconds.push(begin.elapsed().as_secs_f64().to_string());
    }
    println!("{} {} {}", counter.instructions, counter.gaps, seconds.join(" "));
    Ok(())
}
