// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Repairs a recording whose recorder was killed, or whose files were damaged.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};

use lateralis_ring::abi;
use lateralis_ring::{LossCounts, PacketHeader, RingKind};

use super::mapping::{Access, Mapping};
use super::output::{Folder, Output};
use super::recording::{FinishedArea, Recording};
use super::session::Summary;
use crate::classes::RegisteredSchema;
use crate::clock::ClockModel;
use crate::error::Error;
use crate::index::IndexEntry;
use crate::options::CtfVersion;
use crate::report::{self, Origin, Report};
use crate::stream::{DAMAGES_MAX, INTERVALS_MAX, checksum_holds};
use crate::walk::RecordPlan;

/// Maximum number of stream files.
const FILES_MAX: usize = 65536;

/// Layouts and event names of the stream classes.
type Plans = HashMap<u32, (RecordPlan, BTreeMap<u32, String>)>;

pub(super) fn recover_recording(
    path: &Path,
    output: &Path,
    ctf_version: CtfVersion,
) -> Result<Summary, Error> {
    let report_path = path.join("report.json");
    let text = std::fs::read_to_string(&report_path)
        .map_err(|cause| Error::file("read", &report_path, cause))?;
    let old = Report::from_json(&text).map_err(|cause| {
        Error::file("understand", &report_path, std::io::Error::other(cause.to_string()))
    })?;
    let uuid =
        parse_uuid(&old.trace_uuid).ok_or_else(|| Error::NothingToRecover(report_path.clone()))?;
    let output = Output::create(output, None)?;
    let root = output.root().to_owned();
    let mut recording = Recording::new(output, ctf_version, Origin::Recovered);
    recording.uuid = uuid;
    recording.command = old.command.clone();
    recording.swapped = (old.byte_order == report::ByteOrder::Big) != cfg!(target_endian = "big");
    restore_clock(&mut recording, old.clock.as_ref())
        .ok_or_else(|| Error::NothingToRecover(report_path.clone()))?;
    let plans = restore_classes(&mut recording, &old);
    recording.write_metadata_if_due()?;
    for (folder, file) in stream_files(path) {
        recover_stream(&mut recording, &plans, folder, &file)?;
    }
    let mut finished = FinishedArea { processes: old.processes, ..FinishedArea::default() };
    finished.area = None;
    for area in old.areas {
        let one = FinishedArea { area: Some(area), ..FinishedArea::default() };
        recording.finish_area(Box::new(move |_| one));
    }
    for source in old.sources {
        let one = FinishedArea { source: Some(source), ..FinishedArea::default() };
        recording.finish_area(Box::new(move |_| one));
    }
    recording.finish_area(Box::new(move |_| finished));
    let report = recording.end()?;
    Ok(Summary { output: root, report, exit_status: None })
}

pub(super) fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    let mut uuid = [0; 16];
    for (index, byte) in uuid.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(uuid)
}

fn restore_clock(recording: &mut Recording, clock: Option<&report::Clock>) -> Option<()> {
    let clock = clock?;
    let kind = [
        lateralis_ring::ClockKind::X86Tsc,
        lateralis_ring::ClockKind::Aarch64Cntvct,
        lateralis_ring::ClockKind::MonotonicNs,
        lateralis_ring::ClockKind::Port,
    ]
    .into_iter()
    .find(|kind| crate::metadata::clock_name(*kind) == clock.kind)?;
    let frequency = (clock.frequency_hz, clock.frequency_source);
    recording.use_dead_clock(kind, frequency, clock.start?);
    Some(())
}

/// Restores the stream classes with their previous ids.
fn restore_classes(recording: &mut Recording, old: &Report) -> Plans {
    let mut plans = Plans::new();
    for class in &old.stream_classes {
        let kind =
            if class.ring_kind == "per-thread" { RingKind::PerThread } else { RingKind::PerCpu };
        let mut plan = RecordPlan::new(recording.swapped);
        let mut names = BTreeMap::new();
        let internal = lateralis_pleco::internal_schema();
        for event in &internal.events {
            names.insert(event.index, internal.full_name(event));
        }
        let mut registered = Vec::new();
        for entry in &class.schemas {
            let Some((schema, hash)) = recording.compile(entry.text.as_bytes()) else {
                recording.problem(format!(
                    "Cannot describe the events of stream-id={}: a schema does not compile",
                    class.id
                ));
                continue;
            };
            plan.add(entry.base_id, &schema);
            for event in &schema.events {
                names.insert(entry.base_id.saturating_add(event.index), schema.full_name(event));
            }
            registered.push(RegisteredSchema { base_id: entry.base_id, schema, hash });
        }
        let id = recording.classes.add(kind, &registered);
        if id == class.id {
            plans.insert(id, (plan, names));
        }
    }
    plans
}

fn stream_files(path: &Path) -> Vec<(Folder, PathBuf)> {
    let mut found = Vec::new();
    for (folder, name) in [(Folder::Ctf, "ctf"), (Folder::Unreadable, "unreadable")] {
        let entries = std::fs::read_dir(path.join(name)).into_iter().flatten().flatten();
        for entry in entries.take(FILES_MAX) {
            let name = entry.file_name();
            let is_text = name.to_string_lossy().starts_with("metadata");
            if !is_text && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                found.push((folder, entry.path()));
            }
        }
    }
    found.sort_by(|(_, a), (_, b)| a.cmp(b));
    found
}

/// Copies the valid packets of a stream file and counts their events.
fn recover_stream(
    recording: &mut Recording,
    plans: &Plans,
    folder: Folder,
    path: &Path,
) -> Result<(), Error> {
    let file = File::open(path).map_err(|cause| Error::file("open", path, cause))?;
    let mapping = Mapping::of_file(&file, Access::Private)
        .map_err(|cause| Error::file("map", path, cause))?;
    let Some(mapping) = mapping else { return Ok(()) };
    let bytes = mapping.bytes();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let handle = recording.output.add_stream(folder, &name);
    let mut sums = Sums::default();
    let mut at = 0usize;
    while at < bytes.len() {
        let Some((header, packet)) = packet_at(recording, bytes, at) else {
            let next = next_packet(recording, bytes, at + 8).unwrap_or(bytes.len());
            sums.damage(next - at, "no whole packet, or its checksum is wrong");
            at = next;
            continue;
        };
        at += packet.len();
        sums.take(plans, &header, &packet);
        let entry = IndexEntry::from(&header);
        if let Err(error) = recording.output.append(handle, &packet, entry) {
            recording.problem(format!("Cannot write: file={name}, cause={error:?}"));
            recording.output_ended = true;
            break;
        }
    }
    let path = recording.output.stream_path(handle);
    recording.output.close(handle)?;
    let unreadable = folder == Folder::Unreadable;
    recording.finish_area(Box::new(move |clock| sums.into_report(path, unreadable, clock)));
    Ok(())
}

/// The packet at `at`, if it is complete and valid.
fn packet_at(recording: &Recording, bytes: &[u8], at: usize) -> Option<(PacketHeader, Vec<u8>)> {
    let rest = bytes.get(at..)?;
    let (first, _) = rest.split_first_chunk::<{ abi::PACKET_HEADER_BYTES as usize }>()?;
    let header = PacketHeader::decode(first, recording.swapped);
    let packet_bytes = usize::try_from(header.packet_bits / 8).ok()?;
    let good = header.magic == abi::PACKET_MAGIC
        && header.uuid == recording.uuid
        && header.packet_bits.is_multiple_of(64)
        && header.content_bits <= header.packet_bits
        && header.content_bits >= abi::PACKET_HEADER_BYTES * 8
        && packet_bytes as u64 <= *abi::PACKET_BYTES_RANGE.end() + abi::WRITER_RECORD_BYTES;
    if !good {
        return None;
    }
    let mut packet = rest.get(..packet_bytes)?.to_vec();
    checksum_holds(&mut packet, recording.swapped).then_some((header, packet))
}

/// Offset of the next possible packet: magic and UUID.
fn next_packet(recording: &Recording, bytes: &[u8], from: usize) -> Option<usize> {
    let magic = abi::PACKET_MAGIC;
    let magic = if recording.swapped { magic.swap_bytes() } else { magic }.to_ne_bytes();
    let mut at = from;
    while at + 20 <= bytes.len() {
        if bytes[at..at + 4] == magic && bytes[at + 4..at + 20] == recording.uuid {
            return Some(at);
        }
        at += 8;
    }
    None
}

/// Sums over the packets of a stream.
#[derive(Default)]
struct Sums {
    first: Option<PacketHeader>,
    packets: u64,
    bytes: u64,
    events: u64,
    internal_events: u64,
    names: BTreeMap<String, u64>,
    told: LossCounts,
    intervals: Vec<(u64, u64, LossCounts)>,
    last_end: u64,
    next_sequence: u64,
    lost_packets: u64,
    damages: Vec<report::Damage>,
    damaged: u64,
}

impl Sums {
    fn damage(&mut self, dropped_bytes: usize, reason: &str) {
        self.damaged += 1;
        if self.damages.len() < DAMAGES_MAX {
            self.damages.push(report::Damage {
                packet_sequence: self.next_sequence,
                dropped_bytes: dropped_bytes as u64,
                reason: reason.to_owned(),
            });
        }
    }

    fn take(&mut self, plans: &Plans, header: &PacketHeader, packet: &[u8]) {
        if self.first.is_none() {
            self.first = Some(*header);
            self.last_end = header.timestamp_begin;
            self.next_sequence = header.sequence;
        }
        self.lost_packets += header.sequence.saturating_sub(self.next_sequence);
        self.next_sequence = header.sequence.saturating_add(1);
        self.packets += 1;
        self.bytes += packet.len() as u64;
        let lost = header.lost.since(&self.told);
        if lost.total() != 0 {
            self.told = header.lost.max(&self.told);
            if self.intervals.len() < INTERVALS_MAX {
                self.intervals.push((self.last_end, header.timestamp_end, lost));
            } else if let Some(last) = self.intervals.last_mut() {
                last.1 = header.timestamp_end;
                last.2 = last.2.plus(&lost);
            }
        }
        self.last_end = header.timestamp_end;
        let Some((plan, names)) = plans.get(&header.stream_id) else { return };
        let slack = (header.packet_bits - header.content_bits) / 8;
        let mut counts = Vec::new();
        let records = &packet[abi::PACKET_HEADER_BYTES as usize..];
        let walked =
            plan.walk(records, slack, header.timestamp_begin..=header.timestamp_end, &mut counts);
        self.events += walked.events;
        self.internal_events += walked.internal_events;
        for (id, count) in counts.into_iter().enumerate().filter(|(_, count)| *count != 0) {
            if let Some(name) = names.get(&(id as u32)) {
                *self.names.entry(name.clone()).or_insert(0) += count;
            }
        }
        if let Some(fault) = walked.fault {
            let dropped = records.len() - walked.good_bytes as usize;
            self.damage(dropped, &fault.to_string());
        }
    }

    fn into_report(self, path: String, unreadable: bool, clock: &ClockModel) -> FinishedArea {
        let first = self.first.unwrap_or_default();
        let stream = report::Stream {
            files: vec![path],
            area_id: format!("{:016x}", first.area_id),
            ring: first.cpu_id,
            cpu: None,
            packets: self.packets,
            bytes: self.bytes,
            events: self.events,
            internal_events: self.internal_events,
            lost: self.told.into(),
            intervals: self
                .intervals
                .into_iter()
                .map(|(from, to, lost)| report::LossInterval {
                    from_ns: clock.utc_ns(from),
                    to_ns: clock.utc_ns(to),
                    lost: lost.into(),
                })
                .collect(),
            lost_packets: self.lost_packets,
            not_written: 0,
            damaged_packets: self.damaged,
            damages: self.damages,
            backward_steps: 0,
            unreadable,
        };
        FinishedArea { streams: vec![stream], events: self.names, ..FinishedArea::default() }
    }
}
