// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts frames to packets: runs of programs, their schemas, missing packets.
//!
//! A run is the output of a program from one start to the next. Frames of several runs may be mixed: two
//! machines on one line, or one that was reset.

use std::collections::{BTreeMap, VecDeque};

use lateralis_ring::small::{SmallHeader, SmallPacketHeader, SmallSchema, abi};
use lateralis_ring::{LossCounts, RingMode};

use super::frame::{Decoder, Found, Frame, FrameKind};

/// Maximum size of packets that wait for schema texts, in bytes.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// Maximum size of a schema text, and of all texts of a run, in bytes.
const TEXT_BYTES_MAX: u32 = 1 << 20;
const TEXTS_BYTES_MAX: usize = 4 << 20;
/// Maximum number of runs at the same time.
const RUNS_MAX: usize = 8;
/// A run is considered ended after this many frames of other runs.
const SILENT_FRAMES_MAX: u64 = 1000;
/// A sequence number that is larger by this much has gone back: half of the 32-bit range.
const HALF: u32 = 1 << 31;
/// Size of flags, run and clock, which precede the area's header in a hello.
const HELLO_FRONT_BYTES: usize = 16;
const FLAG_TEXTS: u32 = 1;
const FLAG_LAST: u16 = 1;

/// The introduction of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The header of its area.
    pub header: SmallHeader,
    /// Its schemas.
    pub schemas: Vec<SmallSchema>,
    /// The program's number of the run.
    pub run: u32,
    /// The program's clock when it was sent.
    pub clock: u64,
    /// The texts of its schemas will follow.
    pub has_texts: bool,
}

impl Hello {
    fn read(payload: &[u8]) -> Option<Hello> {
        let (front, area) = payload.split_first_chunk::<HELLO_FRONT_BYTES>()?;
        let [flags, run, low, high] = words(front)?;
        let mut orders = [false, true].into_iter();
        let header = orders.find_map(|swapped| SmallHeader::read(area, swapped).ok())?;
        let descriptors = area.get(abi::HEADER_BYTES as usize..)?;
        if descriptors.len() != usize::from(header.schema_count) * abi::SCHEMA_BYTES as usize {
            return None;
        }
        Some(Hello {
            header,
            schemas: header.schemas(descriptors),
            run,
            clock: u64::from(low) | u64::from(high) << 32,
            has_texts: flags & FLAG_TEXTS != 0,
        })
    }

    /// Whether both describe the same area of the same program.
    fn is_same(&self, other: &Hello) -> bool {
        (self.header, &self.schemas, self.run) == (other.header, &other.schemas, other.run)
    }
}

/// Decodes little-endian words.
fn words<const N: usize, const M: usize>(bytes: &[u8; M]) -> Option<[u32; N]> {
    let mut words = [0; N];
    for (word, four) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes(four.try_into().ok()?);
    }
    Some(words)
}

/// Counters of a core, from its latest status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Sequence number of the next packet to be sent, its low 32 bits.
    pub next: u32,
    /// Losses, modulo 2^32 each.
    pub lost: LossCounts,
    /// Number of packets opened at an earlier time than the previous one.
    pub clock_backward: u32,
    /// No more frames of this core follow.
    pub is_last: bool,
}

/// Counts of a line: `sent = before + received + damaged + lost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineCounts {
    /// Frames sent, from their sequence numbers: up to the last that arrived.
    pub sent: u64,
    /// Frames before the first one that arrived, because the receiver started later.
    pub before: u64,
    /// Frames that arrived intact.
    pub received: u64,
    /// Missing frames at positions with damaged bytes.
    pub damaged: u64,
    /// Missing frames at positions without any bytes.
    pub lost: u64,
    /// Packets among those received.
    pub packets: u64,
    /// Missing packets, by their own sequence numbers, including those overwritten in a flight recorder.
    pub missing_packets: u64,
    /// Packets that arrived and were not written, because their schemas are unknown.
    pub unnamed_packets: u64,
    /// Frames that arrived intact and cannot be used: contradictions, kinds of newer senders.
    pub unusable: u64,
    /// Damaged blocks that correspond to no missing frame: text on the same line, noise.
    pub noise: u64,
}

impl LineCounts {
    fn add(&mut self, other: &LineCounts) {
        let sum = |one: &mut u64, other: u64| *one = one.saturating_add(other);
        sum(&mut self.sent, other.sent);
        sum(&mut self.before, other.before);
        sum(&mut self.received, other.received);
        sum(&mut self.damaged, other.damaged);
        sum(&mut self.lost, other.lost);
        sum(&mut self.packets, other.packets);
        sum(&mut self.missing_packets, other.missing_packets);
        sum(&mut self.unnamed_packets, other.unnamed_packets);
        sum(&mut self.unusable, other.unusable);
        sum(&mut self.noise, other.noise);
    }
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// Its introduction; `None`: it never arrived, so its packets cannot be decoded.
    pub hello: Option<Hello>,
    /// The consumer accepted its packets.
    pub has_begun: bool,
    /// The latest status of each core.
    pub counters: BTreeMap<u16, Counters>,
    /// Packets of each core that are missing at the end.
    pub missing_at_end: BTreeMap<u16, u64>,
    /// Counts of its frames.
    pub line: LineCounts,
}

/// Receives the output of a [`Receiver`]. `run` is the receiver's own number of the run.
pub trait Consumer {
    /// A run has introduced itself; called again with each complete text. Returns whether its packets can be
    /// accepted now. `last_chance`: no more texts will arrive.
    fn begin(&mut self, run: u64, hello: &Hello, texts: &[&[u8]], last_chance: bool) -> bool;

    /// The next packet of a core of an accepted run, with `missing` packets since the previous
    /// one. `lost` are the losses counted by its ring when it was closed.
    fn packet(
        &mut self,
        run: u64,
        packet: &SmallPacketHeader,
        records: &[u8],
        lost: LossCounts,
        missing: u64,
    );

    /// A run has ended.
    fn end(&mut self, run: u64, end: &RunEnd);
}

#[derive(Debug, Default)]
struct Core {
    next: Option<u64>,
    lost: LossCounts,
}

/// A text being received.
#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    is_whole: bool,
}

#[derive(Debug)]
struct Run {
    number: u64,
    tag: u16,
    /// Sequence number of the next frame.
    next: u32,
    /// Its first frames were sent before the receiver started.
    is_late: bool,
    hello: Option<Hello>,
    texts: Vec<Text>,
    text_bytes: usize,
    has_begun: bool,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    cores: BTreeMap<u16, Core>,
    counters: BTreeMap<u16, Counters>,
    line: LineCounts,
    /// Number of frames on the line at its last one.
    seen_at: u64,
}

/// Receiver of a line.
#[derive(Debug, Default)]
pub struct Receiver {
    decoder: Decoder,
    runs: Vec<Run>,
    run_count: u64,
    /// Sums of the runs that have ended.
    ended: LineCounts,
    /// Damaged blocks since the last frame that are not yet attributed to a missing frame.
    unplaced: u64,
    bytes: u64,
    frames: u64,
}

impl Receiver {
    /// Processes received bytes of the line.
    pub fn feed(&mut self, bytes: &[u8], consumer: &mut dyn Consumer) {
        self.bytes += bytes.len() as u64;
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.feed(bytes, &mut |found| self.take(found, consumer));
        self.decoder = decoder;
    }

    /// The line was interrupted: the next bytes do not continue the previous ones.
    pub fn interrupt(&mut self, consumer: &mut dyn Consumer) {
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.interrupt(&mut |found| self.take(found, consumer));
        self.decoder = decoder;
    }

    /// Ends the line.
    pub fn end(&mut self, consumer: &mut dyn Consumer) {
        self.interrupt(consumer);
        while let Some(run) = self.runs.pop() {
            self.end_run(run, consumer);
        }
        self.drop_unplaced();
    }

    /// Number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sums over all runs so far.
    pub fn line(&self) -> LineCounts {
        let mut sums = self.ended;
        self.runs.iter().for_each(|run| sums.add(&run.line));
        sums.noise += self.unplaced;
        sums
    }

    /// Whether every known run has announced its end.
    pub fn is_over(&self) -> bool {
        let is_over = |run: &Run| {
            let cores = run.hello.as_ref().map(|hello| usize::from(hello.header.core_count));
            let last = run.counters.values().filter(|counters| counters.is_last).count();
            cores.is_some_and(|cores| last >= cores)
        };
        self.run_count > 0 && self.runs.iter().all(is_over)
    }

    fn take(&mut self, found: Found<'_>, consumer: &mut dyn Consumer) {
        match found {
            Found::Damage => self.unplaced += 1,
            Found::Frame(frame) => self.take_frame(&frame, consumer),
        }
    }

    fn drop_unplaced(&mut self) {
        self.ended.noise += std::mem::take(&mut self.unplaced);
    }

    fn take_frame(&mut self, frame: &Frame<'_>, consumer: &mut dyn Consumer) {
        self.frames += 1;
        let hello = (frame.kind == FrameKind::Hello).then(|| Hello::read(frame.payload)).flatten();
        // A line preserves order: a sequence number that goes back means another run, and so does another
        // area.
        let is_ahead = |run: &Run| frame.sequence.wrapping_sub(run.next) < HALF;
        let continues = |run: &Run| {
            let is_other = hello
                .as_ref()
                .is_some_and(|hello| run.hello.as_ref().is_some_and(|known| !hello.is_same(known)));
            is_ahead(run) && !is_other
        };
        let known = self.runs.iter().position(|run| run.tag == frame.run);
        let mut run = match known.map(|index| self.runs.remove(index)) {
            Some(run) if continues(&run) => run,
            other => {
                // The frames before the first hello of another area belonged to the other run.
                let is_other_area = other.as_ref().is_some_and(is_ahead);
                if let Some(run) = other {
                    self.end_run(run, consumer);
                }
                self.begin_run(frame, if is_other_area { frame.sequence } else { 0 })
            }
        };
        let missing = u64::from(frame.sequence.wrapping_sub(run.next));
        if run.line.received == 0 && run.is_late {
            run.line.before += missing;
        } else {
            let damaged = missing.min(self.unplaced);
            run.line.damaged += damaged;
            run.line.lost += missing - damaged;
            self.unplaced -= damaged;
        }
        run.line.received += 1;
        run.line.sent += missing + 1;
        run.next = frame.sequence.wrapping_add(1);
        run.seen_at = self.frames;
        // With several runs it is unknown which one misses it.
        if self.runs.is_empty() {
            self.drop_unplaced();
        }
        let is_used = match (frame.kind, hello) {
            (FrameKind::Hello, Some(hello)) => {
                run.introduce(hello, consumer);
                true
            }
            (FrameKind::Text, _) => run.take_text(frame.payload, consumer),
            (FrameKind::Packet, _) => {
                run.line.packets += 1;
                run.take_packet(frame.payload, consumer)
            }
            (FrameKind::Status, _) => run.take_status(frame.payload),
            (FrameKind::Hello | FrameKind::Other(_), _) => false,
        };
        run.line.unusable += u64::from(!is_used);
        self.runs.push(run);
        self.end_silent_runs(consumer);
    }

    fn begin_run(&mut self, frame: &Frame<'_>, next: u32) -> Run {
        let number = self.run_count;
        self.run_count += 1;
        Run {
            number,
            tag: frame.run,
            next,
            is_late: number == 0,
            hello: None,
            texts: Vec::new(),
            text_bytes: 0,
            has_begun: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            cores: BTreeMap::new(),
            counters: BTreeMap::new(),
            line: LineCounts::default(),
            seen_at: self.frames,
        }
    }

    /// Ends runs that have been silent for long, and the oldest beyond the limit.
    fn end_silent_runs(&mut self, consumer: &mut dyn Consumer) {
        // The newest is the last.
        while let Some(oldest) = self.runs.first() {
            let is_silent = self.frames - oldest.seen_at > SILENT_FRAMES_MAX;
            if !is_silent && self.runs.len() <= RUNS_MAX {
                return;
            }
            let run = self.runs.remove(0);
            self.end_run(run, consumer);
        }
    }

    fn end_run(&mut self, mut run: Run, consumer: &mut dyn Consumer) {
        run.begin(consumer, true);
        run.line.unnamed_packets += run.waiting.len() as u64;
        let mut missing_at_end = BTreeMap::new();
        for (core, counters) in &run.counters {
            let next = match run.cores.get(core).and_then(|core| core.next) {
                Some(next) => next,
                None if run.is_late && run.line.before > 0 => continue,
                None => 0,
            };
            let missing = counters.next.wrapping_sub(next as u32);
            if run.has_begun && missing != 0 && missing < HALF {
                missing_at_end.insert(*core, u64::from(missing));
                run.line.missing_packets += u64::from(missing);
            }
        }
        self.ended.add(&run.line);
        let end = RunEnd {
            hello: run.hello,
            has_begun: run.has_begun,
            counters: run.counters,
            missing_at_end,
            line: run.line,
        };
        consumer.end(run.number, &end);
    }
}

impl Run {
    fn introduce(&mut self, hello: Hello, consumer: &mut dyn Consumer) {
        if self.hello.is_some() {
            return;
        }
        self.texts = hello.schemas.iter().map(|_| Text::default()).collect();
        self.hello = Some(hello);
        self.begin(consumer, false);
    }

    /// Offers the run to the consumer and, if it is accepted, passes on the waiting packets.
    fn begin(&mut self, consumer: &mut dyn Consumer, last_chance: bool) {
        let Some(hello) = self.hello.as_ref().filter(|_| !self.has_begun) else { return };
        let texts: Vec<&[u8]> =
            self.texts.iter().filter(|text| text.is_whole).map(|text| &text.bytes[..]).collect();
        self.has_begun = consumer.begin(self.number, hello, &texts, last_chance);
        if !self.has_begun {
            return;
        }
        for payload in std::mem::take(&mut self.waiting) {
            let is_used = self.give(&payload, consumer);
            self.line.unusable += u64::from(!is_used);
        }
        self.waiting_bytes = 0;
        self.texts.clear();
    }

    fn take_text(&mut self, payload: &[u8], consumer: &mut dyn Consumer) -> bool {
        let Some((front, piece)) = payload.split_first_chunk::<8>() else { return false };
        let Some([index, offset]) = words(front) else { return false };
        let Some(hello) = &self.hello else { return true };
        let Some(schema) = hello.schemas.get(index as usize) else { return false };
        let (most, whole) = (TEXT_BYTES_MAX.min(schema.text_bytes), schema.text_bytes as usize);
        // After the run was accepted texts are not needed; parts that precede or follow a missing one
        // are sent again.
        let Some(text) = self.texts.get_mut(index as usize) else { return true };
        if text.bytes.len() != offset as usize || text.is_whole {
            return true;
        }
        let bytes = text.bytes.len() + piece.len();
        if bytes > most as usize || self.text_bytes + piece.len() > TEXTS_BYTES_MAX {
            return false;
        }
        text.bytes.extend_from_slice(piece);
        self.text_bytes += piece.len();
        if bytes == whole {
            text.is_whole = true;
            self.begin(consumer, false);
        }
        true
    }

    fn take_packet(&mut self, payload: &[u8], consumer: &mut dyn Consumer) -> bool {
        if self.has_begun {
            return self.give(payload, consumer);
        }
        if self.waiting_bytes + payload.len() > WAITING_BYTES_MAX {
            self.begin(consumer, true);
            if self.has_begun {
                return self.give(payload, consumer);
            }
            // While the schemas are unknown the newest packets are kept.
            while let Some(oldest) = self.waiting.pop_front() {
                self.waiting_bytes -= oldest.len();
                self.line.unnamed_packets += 1;
                if self.waiting_bytes + payload.len() <= WAITING_BYTES_MAX {
                    break;
                }
            }
        }
        self.waiting_bytes += payload.len();
        self.waiting.push_back(payload.to_vec());
        true
    }

    /// Passes a packet to the consumer, if it belongs to this area and is newer than the previous ones.
    fn give(&mut self, payload: &[u8], consumer: &mut dyn Consumer) -> bool {
        let Some(header) = self.hello.as_ref().map(|hello| hello.header) else { return false };
        let Some(packet) = SmallPacketHeader::read(payload, header.swapped) else { return false };
        let content = u32::from(packet.content_bytes);
        let is_good = packet.core < header.core_count
            && content as usize == payload.len()
            && SmallPacketHeader::check_content(content, header.packet_bytes).is_ok();
        if !is_good {
            return false;
        }
        let core = self.cores.entry(packet.core).or_default();
        // Packets sent before the receiver started are not missing.
        let is_whole = !self.is_late || self.line.before == 0 || header.mode == RingMode::Overwrite;
        let expected = core.next.unwrap_or(if is_whole { 0 } else { packet.sequence });
        let Some(missing) = packet.sequence.checked_sub(expected) else { return false };
        core.next = Some(packet.sequence + 1);
        self.line.missing_packets = self.line.missing_packets.saturating_add(missing);
        // Extends counters of 32 and 16 bits from those of the previous packet.
        let lost = &mut core.lost;
        lost.full += u64::from(packet.lost_full.wrapping_sub(lost.full as u32));
        lost.too_big += u64::from(packet.lost_too_big.wrapping_sub(lost.too_big as u16));
        lost.contended += u64::from(packet.lost_nested.wrapping_sub(lost.contended as u16));
        let records = payload.get(abi::PACKET_HEADER_BYTES as usize..).unwrap_or_default();
        consumer.packet(self.number, &packet, records, core.lost, missing);
        true
    }

    fn take_status(&mut self, payload: &[u8]) -> bool {
        let Some(payload) = payload.first_chunk::<24>().filter(|all| all.len() == payload.len())
        else {
            return false;
        };
        let Some([which, next, full, too_big, nested, clock_backward]) = words(payload) else {
            return false;
        };
        let (core, flags) = (which as u16, (which >> 16) as u16);
        if self.hello.as_ref().is_none_or(|hello| core >= hello.header.core_count) {
            return self.hello.is_none();
        }
        let lost = LossCounts {
            full: full.into(),
            too_big: too_big.into(),
            contended: nested.into(),
            no_ring: 0,
        };
        let is_last = flags & FLAG_LAST != 0;
        self.counters.insert(core, Counters { next, lost, clock_backward, is_last });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::encode;
    use lateralis_ring::small::reference::{SmallBuilder, TEXT};
    use proptest::prelude::*;

    /// A sender in Rust: a small area of two cores, one packet after the other.
    struct Sender {
        made: SmallBuilder,
        tag: u16,
        sequence: u32,
        next: [u64; 2],
    }

    impl Sender {
        fn new(swapped: bool, tag: u16, hash: u64) -> Sender {
            let made = SmallBuilder::new(swapped, 32, 0, hash);
            Sender { made, tag, sequence: 0, next: [0; 2] }
        }

        fn frame(&mut self, kind: FrameKind, payload: &[u8]) -> Vec<u8> {
            let frame = Frame { kind, run: self.tag, sequence: self.sequence, payload };
            self.sequence += 1;
            encode(&frame)
        }

        fn hello(&mut self) -> Vec<u8> {
            let mut payload = vec![0; HELLO_FRONT_BYTES];
            payload[0] = 1;
            payload.extend(&self.made.bytes[..abi::HEADER_BYTES as usize]);
            let text_at = self.made.bytes.len() - TEXT.len();
            let descriptors = text_at - abi::SCHEMA_BYTES as usize..text_at;
            payload.extend(&self.made.bytes[descriptors]);
            self.frame(FrameKind::Hello, &payload)
        }

        fn text(&mut self, from: usize, to: usize) -> Vec<u8> {
            let mut payload = vec![0; 4];
            payload.extend((from as u32).to_le_bytes());
            payload.extend(&TEXT.as_bytes()[from..to]);
            self.frame(FrameKind::Text, &payload)
        }

        fn packet(&mut self, core: usize, lost: [u32; 3]) -> Vec<u8> {
            let sequence = self.next[core];
            self.next[core] += 1;
            self.made.packet(
                core,
                sequence,
                1000 * sequence,
                lost,
                &[(16, 5, &[1, 2, 3, 4])],
                false,
            );
            let at = SmallBuilder::packet_at(core, sequence);
            let payload = self.made.bytes[at..at + 48].to_vec();
            self.frame(FrameKind::Packet, &payload)
        }

        fn status(&mut self, core: u16) -> Vec<u8> {
            let mut payload = core.to_le_bytes().to_vec();
            payload.extend(FLAG_LAST.to_le_bytes());
            payload.extend((self.next[usize::from(core)] as u32).to_le_bytes());
            payload.extend([7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0]);
            self.frame(FrameKind::Status, &payload)
        }
    }

    /// The packets that a consumer received of each run.
    #[derive(Default)]
    struct Got {
        needs_text: bool,
        packets: BTreeMap<u64, Vec<(u16, u64)>>,
        losses: Vec<LossCounts>,
        missing: u64,
        ends: Vec<(u64, RunEnd)>,
    }

    impl Consumer for Got {
        fn begin(&mut self, _run: u64, hello: &Hello, texts: &[&[u8]], _last: bool) -> bool {
            assert_eq!(hello.header.core_count, 2);
            !self.needs_text || texts == [TEXT.as_bytes()]
        }

        fn packet(
            &mut self,
            run: u64,
            packet: &SmallPacketHeader,
            records: &[u8],
            lost: LossCounts,
            missing: u64,
        ) {
            assert_eq!(records.len(), 16);
            self.packets.entry(run).or_default().push((packet.core, packet.sequence));
            self.losses.push(lost);
            self.missing += missing;
        }

        fn end(&mut self, run: u64, end: &RunEnd) {
            self.missing += end.missing_at_end.values().sum::<u64>();
            self.ends.push((run, end.clone()));
        }
    }

    fn received(line: &[u8], needs_text: bool) -> (Receiver, Got) {
        let (mut receiver, mut got) = (Receiver::default(), Got { needs_text, ..Got::default() });
        line.chunks(61).for_each(|piece| receiver.feed(piece, &mut got));
        receiver.end(&mut got);
        let line = receiver.line();
        assert_eq!(line.sent, line.before + line.received + line.damaged + line.lost, "{line:?}");
        (receiver, got)
    }

    #[test]
    fn packets_wait_for_the_texts_of_their_schemas() {
        for swapped in [false, true] {
            let mut sender = Sender::new(swapped, 3, 1);
            let mut line = sender.packet(0, [0; 3]);
            line.extend(sender.text(0, 10)); // before the hello: ignored
            line.extend(sender.hello());
            line.extend(sender.text(0, 20));
            line.extend(sender.packet(1, [0; 3]));
            line.extend(sender.text(30, TEXT.len())); // a part is missing, and is sent again
            line.extend(sender.text(20, 30));
            let (_, got) = received(&line, true);
            assert!(got.packets.is_empty());
            assert!(!got.ends[0].1.has_begun);
            assert_eq!(got.ends[0].1.line.unnamed_packets, 2);
            line.extend(sender.text(0, 30));
            line.extend(sender.text(30, TEXT.len()));
            line.extend(sender.packet(0, [0; 3]));
            let (_, got) = received(&line, true);
            assert_eq!(got.packets[&0], [(0, 0), (1, 0), (0, 1)]);
            let sums = got.ends[0].1.line;
            assert_eq!((sums.sent, sums.received, sums.unusable, got.missing), (10, 10, 0, 0));
        }
    }

    #[test]
    fn counters_go_round_and_the_end_says_what_is_missing() {
        let mut sender = Sender::new(false, 0, 1);
        let mut line = sender.hello();
        line.extend(sender.packet(0, [u32::MAX, 0xfffe, 5]));
        line.extend(sender.packet(0, [3, 0x1_0001, 6]));
        sender.packet(0, [3, 0x1_0001, 6]); // lost on the line
        line.extend(sender.status(0));
        line.extend(sender.status(1));
        let (receiver, got) = received(&line, false);
        let counts = |full, too_big, contended| LossCounts { full, too_big, contended, no_ring: 0 };
        let wrapped = counts(0x1_0000_0003, 0x1_0001, 6);
        assert_eq!(got.losses, [counts(0xffff_ffff, 0xfffe, 5), wrapped]);
        let end = &got.ends[0].1;
        assert_eq!(end.missing_at_end, [(0, 1)].into());
        assert_eq!((end.line.lost, end.line.missing_packets), (1, 1));
        assert_eq!((end.counters[&1].lost, end.counters[&1].clock_backward), (counts(7, 8, 9), 10));
        assert!(receiver.is_over());
    }

    #[test]
    fn a_reset_is_another_run_and_so_is_another_image() {
        let mut line = Vec::new();
        let mut sender = Sender::new(false, 1, 1);
        line.extend(sender.hello());
        (0..5).for_each(|_| line.extend(sender.packet(0, [0; 3])));
        // The same image restarted, with the same number; its first hello is damaged.
        let mut sender = Sender::new(false, 1, 1);
        let mut hello = sender.hello();
        hello[30] ^= 0x40;
        line.extend(hello);
        line.extend(sender.hello());
        (0..3).for_each(|_| line.extend(sender.packet(0, [0; 3])));
        // Another image whose sequence numbers continue the previous ones.
        let mut other = Sender::new(true, 1, 2);
        other.sequence = 77;
        line.extend(other.hello());
        line.extend(other.packet(1, [0; 3]));
        let (_, got) = received(&line, false);
        let counts: Vec<usize> = got.packets.values().map(Vec::len).collect();
        assert_eq!(counts, [5, 3, 1]);
        assert_eq!(got.ends.iter().map(|end| end.1.line.damaged).sum::<u64>(), 1);
        assert_eq!(got.ends[1].1.line.sent, 5);
        assert_eq!(got.ends[2].1.line.sent, 2);
    }

    #[test]
    fn two_machines_on_one_line_are_two_runs_and_text_is_noise() {
        let (mut one, mut two) = (Sender::new(false, 1, 1), Sender::new(true, 2, 2));
        let mut line = [one.hello(), b"boot\r\n".to_vec(), two.hello()].concat();
        for n in 0..50u32 {
            line.extend(one.packet(0, [0; 3]));
            line.extend(b"text of a program\r\n");
            let packet = two.packet(1, [0; 3]);
            line.extend(if n == 20 { Vec::new() } else { packet });
        }
        let (receiver, got) = received(&line, false);
        assert_eq!((got.packets[&0].len(), got.packets[&1].len()), (50, 49));
        let sums = receiver.line();
        assert_eq!((sums.sent, sums.received), (102, 101));
        // With several senders missing frames are attributed to damaged bytes.
        assert_eq!((sums.damaged + sums.lost, sums.damaged + sums.noise), (1, 51));
    }

    #[test]
    fn memory_is_bounded_without_a_hello() {
        let (mut receiver, mut got) = (Receiver::default(), Got::default());
        let payload = vec![1; 32 << 10];
        for sequence in 0..1000 {
            let frame = Frame { kind: FrameKind::Packet, run: 0, sequence, payload: &payload };
            receiver.feed(&encode(&frame), &mut got);
            assert!(receiver.runs[0].waiting_bytes <= WAITING_BYTES_MAX);
        }
        receiver.end(&mut got);
        assert_eq!(receiver.line().unnamed_packets, 1000);
    }

    proptest! {
        #[test]
        fn any_frames_are_taken(
            frames in proptest::collection::vec(
                (0u8..6, 0u16..3, 0u32..9, proptest::collection::vec(any::<u8>(), 0..60)), 0..60),
        ) {
            let mut sender = Sender::new(false, 0, 1);
            let mut line = sender.hello();
            for (kind, run, sequence, payload) in &frames {
                let kind = [FrameKind::Hello, FrameKind::Text, FrameKind::Packet, FrameKind::Status,
                    FrameKind::Other(9), FrameKind::Packet][usize::from(*kind)];
                line.extend(encode(&Frame { kind, run: *run, sequence: *sequence, payload }));
            }
            received(&line, false);
        }

        /// With dropped or damaged frames, the sent ones are the sum of received and missing ones, by frames
        /// and by packets.
        #[test]
        fn sent_is_received_and_damaged_and_lost(
            fates in proptest::collection::vec((0usize..2, 0u8..8, any::<prop::sample::Index>()), 1..150),
        ) {
            let mut sender = Sender::new(true, 9, 1);
            let mut line = sender.hello();
            let (mut dropped, mut damaged, mut expected) = (0, 0, Vec::new());
            for (core, fate, place) in fates {
                let mut packet = sender.packet(core, [0; 3]);
                match fate {
                    0 => dropped += 1,
                    1 => {
                        let at = 1 + place.index(packet.len() - 2);
                        packet[at] ^= 1 << place.index(8);
                        // A code that becomes zero splits the frame.
                        damaged += 1;
                        line.extend(packet);
                    }
                    _ => {
                        expected.push((core as u16, sender.next[core] - 1));
                        line.extend(packet);
                    }
                }
            }
            line.extend([sender.status(0), sender.status(1)].concat());
            let (receiver, got) = received(&line, false);
            let sums = receiver.line();
            prop_assert_eq!(got.packets.get(&0).cloned().unwrap_or_default(), expected);
            prop_assert_eq!(sums.sent, u64::from(sender.sequence));
            prop_assert_eq!(sums.damaged + sums.lost, dropped + damaged);
            prop_assert_eq!(got.missing, dropped + damaged);
            prop_assert_eq!(sums.packets + sums.missing_packets, sender.next.iter().sum::<u64>());
            // The two are distinguished except where a split frame and a dropped one are adjacent.
            prop_assert!(sums.damaged >= damaged && sums.lost <= dropped);
        }
    }
}
