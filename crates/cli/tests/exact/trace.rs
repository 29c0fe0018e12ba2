// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes the simulated program as a CTF 2 trace, with defects of a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::program::{APP, Event, KERNEL, Random, Writer, pid};
use crate::ctf2::{self, number};
use crate::place::Place;

/// A packet of a stream: its events, and the number of events discarded before its end.
#[derive(Clone)]
pub struct Packet {
    pub events: Vec<Event>,
    pub discarded: u64,
    /// Damages the first content byte after this number of events.
    pub broken_after: Option<usize>,
}

/// A recording of the simulated program.
#[derive(Clone, Default)]
pub struct Recording {
    pub streams: BTreeMap<Writer, Vec<Packet>>,
    /// The recorder's data about the memory of the program.
    pub area: Option<Value>,
}

impl Recording {
    pub fn new(streams: &BTreeMap<Writer, Vec<Event>>, events_per_packet: usize) -> Self {
        let packets = |events: &Vec<Event>| {
            let chunks = events.chunks(events_per_packet);
            let packet = |events: &[Event]| Packet {
                events: events.to_vec(),
                discarded: 0,
                broken_after: None,
            };
            chunks.map(packet).collect()
        };
        let area = None;
        Self {
            area,
            streams: streams.iter().map(|(writer, all)| (*writer, packets(all))).collect(),
        }
    }

    /// Drops packets as if the ring was full. The next packet counts the lost events.
    pub fn lose(&mut self, random: &mut Random, share: u64) {
        for packets in self.streams.values_mut() {
            let mut discarded = 0;
            let mut kept = Vec::new();
            let count = packets.len();
            for (number, mut packet) in packets.drain(..).enumerate() {
                // The last packet reports the number of lost events.
                if number + 1 < count && number > 0 && random.below(share) == 0 {
                    discarded += packet.events.len() as u64;
                    continue;
                }
                packet.discarded = discarded;
                kept.push(packet);
            }
            *packets = kept;
        }
    }

    /// Keeps only the selected events.
    pub fn retain(&mut self, is_kept: impl Fn(Writer, &Event) -> bool) {
        for (writer, packets) in &mut self.streams {
            packets.iter_mut().for_each(|of| of.events.retain(|event| is_kept(*writer, event)));
            packets.retain(|packet| !packet.events.is_empty());
        }
        self.streams.retain(|_, packets| !packets.is_empty());
    }

    /// Returns the time midway between its first event and its last.
    pub fn middle(&self) -> u64 {
        let packets = self.streams.values().flatten();
        let times: Vec<u64> =
            packets.flat_map(|packet| &packet.events).map(|event| event.time).collect();
        let (first, last) = (times.iter().min(), times.iter().max());
        first.expect("an event").midpoint(*last.expect("an event"))
    }

    /// Overwrites bytes of some packets.
    pub fn damage(&mut self, random: &mut Random, share: u64) {
        for packet in self.streams.values_mut().flatten() {
            if random.below(share) == 0 {
                packet.broken_after = Some(random.below(packet.events.len() as u64) as usize);
            }
        }
    }

    /// Returns the enabled kernel classes; only those are in the metadata.
    fn kernel(&self) -> BTreeSet<usize> {
        let cpus = self.streams.iter().filter(|(writer, _)| matches!(writer, Writer::Cpu(_)));
        let packets = cpus.flat_map(|(_, packets)| packets);
        packets.flat_map(|packet| &packet.events).map(|event| event.class).collect()
    }

    pub fn write(&self, place: &Place, name: &str) {
        let folder = place.0.join(name);
        fs::create_dir(&folder).expect("a new folder");
        fs::write(folder.join("metadata"), metadata(&self.kernel())).expect("its metadata");
        if let Some(area) = &self.area {
            let report = json!({
                "report_version": 1, "complete": true, "trace_uuid": "", "areas": [area],
            });
            fs::write(folder.join("report.json"), report.to_string()).expect("a report");
        }
        for (number, (writer, packets)) in self.streams.iter().enumerate() {
            let mut bytes = Vec::new();
            for (sequence, packet) in packets.iter().enumerate() {
                bytes.extend(packet_bytes(*writer, packet, sequence as u64));
            }
            fs::write(folder.join(format!("s{number}")), bytes).expect("a stream");
        }
    }
}

fn packet_bytes(writer: Writer, packet: &Packet, sequence: u64) -> Vec<u8> {
    let mut events = Vec::new();
    for (number, event) in packet.events.iter().enumerate() {
        let is_broken = packet.broken_after == Some(number);
        let id = if is_broken { 0x7fff_ff00 } else { event.class as u32 };
        events.extend(id.to_le_bytes());
        events.extend(event.time.to_le_bytes());
        if let Writer::Thread(tid) = writer {
            events.extend(pid(tid).to_le_bytes());
            events.extend(tid.to_le_bytes());
        }
        event.fields.iter().for_each(|field| events.extend(field.to_le_bytes()));
    }
    let (first, last) = (packet.events.first(), packet.events.last());
    let (begin, end) = (first.expect("an event").time, last.expect("an event").time);
    let (class, cpu) = match writer {
        Writer::Thread(_) => (0_u32, u32::MAX),
        Writer::Cpu(cpu) => (1, cpu),
    };
    let head = 4 + 4 + 6 * 8 + if class == 1 { 4 } else { 0 };
    let bits = 8 * (head + events.len()) as u64;
    let mut bytes = 0xc1fc_1fc1_u32.to_le_bytes().to_vec();
    bytes.extend(class.to_le_bytes());
    for number in [bits, bits, begin, end, packet.discarded, sequence] {
        bytes.extend(number.to_le_bytes());
    }
    if class == 1 {
        bytes.extend(cpu.to_le_bytes());
    }
    bytes.extend(events);
    bytes
}

fn metadata(kernel: &BTreeSet<usize>) -> String {
    let mut fragments =
        ctf2::beginning(&[("magic", number(32, Some("packet-magic-number"))), ctf2::stream_id()]);
    for (id, classes) in [(0, &APP[..]), (1, &KERNEL[..])] {
        let mut context = vec![
            ("packet_size", number(64, Some("packet-total-length"))),
            ("content_size", number(64, Some("packet-content-length"))),
            ("timestamp_begin", number(64, ctf2::TIME)),
            ("timestamp_end", number(64, Some("packet-end-default-clock-timestamp"))),
            ("events_discarded", number(64, Some("discarded-event-record-counter-snapshot"))),
            ("packet_seq_num", number(64, Some("packet-sequence-number"))),
        ];
        if id == 1 {
            context.push(("cpu_id", number(32, None)));
        }
        let thread = [("vpid", number(32, None)), ("vtid", number(32, None))];
        fragments.push(ctf2::stream(id, &context, if id == 0 { &thread } else { &[] }));
        let classes = classes.iter().enumerate();
        let is_there = |number: usize| id == 0 || kernel.contains(&number);
        let classes = classes.filter(|(number, _)| is_there(*number));
        fragments.extend(
            classes.map(|(number, of)| ctf2::event(id, number, of.name, of.clause, of.fields)),
        );
    }
    ctf2::text(&fragments)
}
