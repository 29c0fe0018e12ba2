// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes small traces in the layout of spec/trace-layout.md, and reads any trace
//! as one line an event.

#![allow(dead_code, reason = "each test uses its part")]

use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::text::Babeltrace;

/// UUID of the traces made here.
pub const UUID: [u8; 16] = *b"lateralis-tests!";

/// Metadata of the traces made here: two events beside the writer record.
pub const METADATA: &str = r#"/* CTF 1.8 */
trace {
    major = 1; minor = 8; byte_order = le;
    uuid = "6c617465-7261-6c69-732d-746573747321";
    packet.header := struct {
        integer { size = 32; align = 32; } magic;
        integer { size = 8; align = 8; } uuid[16];
        integer { size = 32; align = 32; } stream_id;
    };
};
env { tracer_name = "lateralis"; hostname = "h"; };
clock { name = tsc; freq = 1000000000; };
typealias integer { size = 64; align = 64; } := u64;
typealias integer { size = 32; align = 32; } := u32;
typealias integer { size = 64; align = 64; map = clock.tsc.value; } := time;
stream {
    id = 7;
    event.header := struct {
        integer { size = 16; align = 64; } id;
        integer { size = 48; align = 8; map = clock.tsc.value; } timestamp;
    } align(64);
    packet.context := struct {
        time timestamp_begin; time timestamp_end; u64 content_size; u64 packet_size;
        u64 packet_seq_num; u64 events_discarded;
        u64 lost_full; u64 lost_too_big; u64 lost_contended; u64 lost_no_ring;
        u64 area_id; u32 cpu_id; u32 checksum; u32 ring_flags; u32 reserved;
    };
};
event { id = 0; name = "lateralis:WRITER"; stream_id = 7; fields := struct { u32 _pid; u32 _tid; }; };
event { id = 16; name = "t:NUMBER"; stream_id = 7; fields := struct { u64 _value; }; };
event { id = 17; name = "t:TEXT"; stream_id = 7; fields := struct { string _text; u32 _n; u32 _list[_n]; }; };
"#;

/// A packet being filled.
pub struct PacketMaker {
    bytes: Vec<u8>,
    time: u64,
    begin: u64,
    sequence: u64,
    lost: [u64; 4],
    cpu: u32,
}

impl PacketMaker {
    /// Packet number `sequence`, beginning at `time`.
    pub fn new(sequence: u64, time: u64) -> Self {
        Self { bytes: vec![0; 128], time, begin: time, sequence, lost: [0; 4], cpu: 3 }
    }

    /// Cumulative losses: full, too big, contended, no ring.
    pub fn lost(mut self, lost: [u64; 4]) -> Self {
        self.lost = lost;
        self
    }

    fn record(&mut self, id: u16) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.time += 10;
        self.bytes.extend(id.to_le_bytes());
        self.bytes.extend(&self.time.to_le_bytes()[..6]);
    }

    /// A writer record.
    pub fn writer(mut self, pid: u32, tid: u32) -> Self {
        self.record(0);
        self.bytes.extend(pid.to_le_bytes());
        self.bytes.extend(tid.to_le_bytes());
        self
    }

    /// `t:NUMBER`
    pub fn number(mut self, value: u64) -> Self {
        self.record(16);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    /// `t:TEXT`
    pub fn text(mut self, text: &str, list: &[u32]) -> Self {
        self.record(17);
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.bytes.extend((list.len() as u32).to_le_bytes());
        list.iter().for_each(|element| self.bytes.extend(element.to_le_bytes()));
        self
    }

    /// The packet, with its checksum.
    pub fn finish(self) -> Vec<u8> {
        let mut packet = self.finish_without_checksum();
        let sum = crc32c::crc32c(&packet);
        packet[116..120].copy_from_slice(&sum.to_le_bytes());
        packet
    }

    /// The packet, with 0 for a checksum.
    pub fn finish_without_checksum(self) -> Vec<u8> {
        let mut packet = self.bytes;
        let content_bits = packet.len() as u64 * 8;
        packet.resize(packet.len().next_multiple_of(8), 0);
        let size_bits = packet.len() as u64 * 8;
        packet[0..4].copy_from_slice(&0xc1fc_1fc1u32.to_le_bytes());
        packet[4..20].copy_from_slice(&UUID);
        packet[20..24].copy_from_slice(&7u32.to_le_bytes());
        let words = [
            self.begin,
            self.time,
            content_bits,
            size_bits,
            self.sequence,
            self.lost.iter().sum(),
            self.lost[0],
            self.lost[1],
            self.lost[2],
            self.lost[3],
            0xabcd,
        ];
        for (word, place) in words.iter().zip(packet[24..112].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        packet[112..116].copy_from_slice(&self.cpu.to_le_bytes());
        packet
    }
}

/// A reader of one stream file with the metadata above.
pub fn reader(bytes: &[u8]) -> Reader {
    any_reader(METADATA, &[bytes])
}

/// A reader of any metadata and streams.
pub fn any_reader(metadata: &str, streams: &[&[u8]]) -> Reader {
    let file = |(index, bytes): (usize, &&[u8])| StreamFile {
        name: format!("stream{index}"),
        bytes: Box::new(bytes.to_vec()),
    };
    Reader::new(metadata.as_bytes(), streams.iter().enumerate().map(file).collect())
}

/// All events as `NAME { fields }` with the writer in front, and all damage.
pub fn read(reader: &Reader) -> (Vec<String>, Vec<String>) {
    let mut events = Vec::new();
    let mut merge = reader.events();
    let printer = Babeltrace::new(reader.trace());
    while let Some(event) = merge.next_event() {
        let mut line = Vec::new();
        printer.line(&mut line, &event);
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        let fields = line.find("event.fields = ").map_or("", |at| &line[at + 15..]);
        let name = &event.class.name;
        let writer = match event.writer {
            Some(writer) => format!("{}/{} ", writer.pid, writer.tid),
            None => "? ".to_owned(),
        };
        events.push(format!("{writer}{name} {fields}"));
    }
    let all = reader.damage().iter().chain(merge.damage());
    (events, all.map(ToString::to_string).collect())
}
