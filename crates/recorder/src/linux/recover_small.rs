// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Making a recording from memory of a machine without an operating system (`spec/small-area.md`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_ring::small::{SmallArea, SmallPacket, find};
use lateralis_ring::{Chunk, ClockKind, Found, LossCounts, PacketHeader, RingKind, RingMode, abi};

use super::mapping::Mapping;
use super::recording::{FinishedArea, Recording, StreamTarget};
use super::recover::{AREAS_MAX, map};
use super::stream_report::{count_events, stream_report};
use crate::classes::RegisteredSchema;
use crate::clock::{ClockSample, FrequencySource};
use crate::error::Error;
use crate::report;
use crate::small::{ProgramImage, memory_of, schemas_of, widen};
use crate::stream::{PREFIX_BYTES, RingStream, SealContext};
use crate::walk::RecordPlan;

/// Longest schema file that is read.
const SCHEMA_FILE_BYTES_MAX: u64 = 16 << 20;

/// Files that say what the events of a memory image are called.
#[derive(Debug, Clone, Default)]
pub struct RecoverTexts {
    /// Programs that were running, ELF.
    pub programs: Vec<PathBuf>,
    /// Schemas, pleco.
    pub schemas: Vec<PathBuf>,
}

/// The same, opened.
pub(super) struct TextFiles {
    programs: Vec<Mapping>,
    schemas: Vec<RegisteredSchema>,
}

impl TextFiles {
    pub(super) fn open(texts: &RecoverTexts) -> Result<TextFiles, Error> {
        let mut programs = Vec::new();
        for path in &texts.programs {
            let mapping = map(path)?.ok_or_else(|| Error::NotAProgram(path.clone()))?;
            if ProgramImage::of_elf(mapping.bytes()).is_none() {
                return Err(Error::NotAProgram(path.clone()));
            }
            programs.push(mapping);
        }
        let mut schemas = Vec::new();
        for path in &texts.schemas {
            let file = |cause| Error::file("read", path, cause);
            if std::fs::metadata(path).map_err(file)?.len() > SCHEMA_FILE_BYTES_MAX {
                return Err(file(std::io::ErrorKind::FileTooLarge.into()));
            }
            let text = std::fs::read(path).map_err(file)?;
            let name = path.to_string_lossy();
            let Some(schema) = lateralis_pleco::compile(&name, &text).schema else {
                let cause = std::io::Error::other("it is no valid schema; `pleco check` says why");
                return Err(Error::file("compile", path, cause));
            };
            let hash = schema.hash();
            schemas.push(RegisteredSchema { base_id: 0, schema: Arc::new(schema), hash });
        }
        Ok(TextFiles { programs, schemas })
    }
}

/// Where small areas begin in a file.
pub(super) fn small_areas_in(path: &Path) -> Result<Vec<Found>, Error> {
    let Some(mapping) = map(path)? else { return Ok(Vec::new()) };
    Ok(find(mapping.bytes()).take(AREAS_MAX).collect())
}

/// What all streams of an area have in common.
struct About<'a> {
    area: SmallArea<'a>,
    area_id: u64,
    class_id: u32,
    plan: RecordPlan,
    swapped: bool,
}

impl About<'_> {
    fn context(&self, uuid: [u8; 16], now: u64) -> SealContext<'_> {
        SealContext {
            uuid,
            stream_id: self.class_id,
            area_id: self.area_id,
            plan: Some(&self.plan),
            overwrite: self.area.mode == RingMode::Overwrite,
            swapped: self.swapped,
            now,
        }
    }
}

pub(super) fn recover_small(
    recording: &mut Recording,
    path: &Path,
    found: Found,
    texts: &TextFiles,
) -> Result<(), Error> {
    let mapping = map(path)?.ok_or_else(|| Error::NothingToRecover(path.to_owned()))?;
    let file = mapping.bytes();
    let bytes = file.get(found.offset as usize..).unwrap_or(&[]);
    let area = SmallArea::read(bytes, found.swapped).map_err(|cause| Error::SmallArea {
        path: path.to_owned(),
        offset: found.offset,
        cause,
    })?;
    let first = recording.clock.is_none();
    // No time can be told without: a tick counts as a nanosecond.
    let hz = if area.clock_hz == 0 { 1_000_000_000 } else { area.clock_hz };
    let frequency = (hz, FrequencySource::Defined);
    let clock = recording.use_dead_clock(ClockKind::Port, frequency, ClockSample::default());
    let same = clock.kind == ClockKind::Port && clock.frequency().0 == hz;
    if !same || (!first && recording.swapped != found.swapped) {
        return Err(Error::Clock { path: path.to_owned(), clock_kind: area.time_bits });
    }
    recording.swapped = found.swapped;
    let mut images = vec![memory_of(&area, file, found.offset)];
    images.extend(texts.programs.iter().filter_map(|file| ProgramImage::of_elf(file.bytes())));
    let (registered, problems) =
        schemas_of(&area, &images, &texts.schemas, |text| recording.compile(text));
    if registered.is_empty() && area.schema_count != 0 {
        let reason = problems.into_iter().next().unwrap_or_default();
        return Err(Error::NoSchemaText { path: path.to_owned(), reason });
    }
    problems.into_iter().for_each(|text| recording.problem(text));
    if area.clock_hz == 0 {
        recording.problem(
            "The clock's frequency is not in the area: a tick counts as a nanosecond".to_owned(),
        );
    }
    let mut plan = RecordPlan::new(found.swapped);
    for entry in &registered {
        plan.add(entry.base_id, &entry.schema);
    }
    let about = About {
        // Never 0, and the same each time the same memory is read.
        area_id: u64::from(area.generation) << 32 | (area.address & 0xffff_ffff) | 1,
        class_id: recording.classes.add(RingKind::PerCpu, &registered),
        plan,
        swapped: found.swapped,
        area,
    };
    recording.write_metadata_if_due()?;
    recording.reserve(u64::from(area.packet_bytes) + abi::PACKET_HEADER_BYTES);
    let mut streams = Vec::new();
    for core in 0..area.core_count {
        streams.extend(recover_ring(recording, &about, core));
    }
    finish(recording, &about, registered, streams);
    Ok(())
}

/// Writes the packets of a core.
fn recover_ring(
    recording: &mut Recording,
    about: &About<'_>,
    core: u16,
) -> Option<(RingStream, StreamTarget)> {
    let area = about.area;
    let ring = area.ring(core)?;
    let number = u32::from(core);
    let mut stream = RingStream::new(number, LossCounts::default(), 0);
    let name = format!("core{core}-{:x}", about.area_id);
    let mut target = StreamTarget::new(name);
    for (slot, reason) in &ring.damages {
        stream.note_damage(format!("packet in slot {slot}: {reason}"));
    }
    if ring.clock_backward != 0 {
        recording.problem(format!(
            "The clock ran backwards {} times between packets: core={core}",
            ring.clock_backward
        ));
    }
    // In discard mode a reader in the program had those below: they are elsewhere.
    let taken = |packet: &SmallPacket| {
        let ahead = (packet.sequence as u32).wrapping_sub(ring.consumed);
        area.mode == RingMode::Discard && ahead >= area.packets_per_ring
    };
    let mut next = if area.mode == RingMode::Overwrite { Some(0) } else { None };
    let (mut backward, mut last_time) = (0, 0);
    for packet in ring.packets.iter().filter(|packet| !taken(packet)) {
        let expected = next.unwrap_or(packet.sequence);
        stream.skip_packets(packet.sequence.saturating_sub(expected));
        next = Some(packet.sequence + 1);
        let Some(records) = area.bytes().get(packet.records.clone()) else { continue };
        let mut buffer = std::mem::take(&mut recording.buffer);
        let place = PREFIX_BYTES..PREFIX_BYTES + records.len();
        buffer[place.clone()].copy_from_slice(records);
        let begin = packet.begin.max(last_time);
        let widened =
            widen(&mut buffer[place], packet.begin, last_time, area.time_bits, &about.plan);
        backward += widened.backward;
        last_time = widened.last_time;
        let chunk = Chunk {
            sequence: packet.sequence,
            from: abi::PACKET_HEADER_BYTES,
            bytes: records.len() as u64,
            slack: widened.slack,
            closed: !packet.is_open,
            header: PacketHeader {
                timestamp_begin: begin,
                timestamp_end: widened.last_time,
                lost: packet.lost,
                ..PacketHeader::default()
            },
        };
        let context = about.context(recording.uuid, u64::MAX);
        if let Some(sealed) = stream.seal(&context, &chunk, &mut buffer) {
            let bytes = &buffer[sealed.bytes.clone()];
            if !recording.write_packet(&mut target, bytes, &sealed) {
                stream.not_written(&context, &sealed, &buffer);
            }
        }
        recording.buffer = buffer;
    }
    if backward != 0 {
        recording.problem(format!(
            "The clock ran backwards before {backward} records, which got the time of the record in \
             front of them: core={core}"
        ));
    }
    // A clock that does not run here has no now: the packet ends with the last one.
    let context = about.context(recording.uuid, last_time);
    let mut buffer = std::mem::take(&mut recording.buffer);
    if let Some(sealed) = stream.seal_losses(&context, &ring.lost, &mut buffer) {
        let bytes = &buffer[sealed.bytes.clone()];
        if !recording.write_packet(&mut target, bytes, &sealed) {
            stream.not_written(&context, &sealed, &buffer);
        }
    }
    recording.buffer = buffer;
    recording.count_not_written(&mut stream, &mut target, &context);
    recording.close_stream(&mut target);
    stream.take_introductions();
    Some((stream, target))
}

/// Leaves in the report what is known of the area.
fn finish(
    recording: &mut Recording,
    about: &About<'_>,
    registered: Vec<RegisteredSchema>,
    streams: Vec<(RingStream, StreamTarget)>,
) {
    let area = &about.area;
    let mode = if area.mode == RingMode::Overwrite { "overwrite" } else { "discard" };
    let details = [
        ("address", format!("{:#x}", area.address)),
        ("mode", mode.to_owned()),
        ("cores", area.core_count.to_string()),
        ("packet_bytes", area.packet_bytes.to_string()),
        ("packets_per_ring", area.packets_per_ring.to_string()),
        ("generation", area.generation.to_string()),
        ("clock_hz", area.clock_hz.to_string()),
    ];
    let details: BTreeMap<String, String> =
        details.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    let area_id = format!("{:016x}", about.area_id);
    recording.finish_area(Box::new(move |clock| {
        let mut finished = FinishedArea {
            source: Some(report::Source {
                name: "small-area".to_owned(),
                area_id: area_id.clone(),
                schemas: registered.iter().map(|entry| entry.schema.name.clone()).collect(),
                details,
                lost: BTreeMap::new(),
            }),
            ..FinishedArea::default()
        };
        let names = count_events::names(&registered);
        for (core, (stream, target)) in (0u32..).zip(streams) {
            let place = (area_id.as_str(), core);
            let Some(one) = stream_report(clock, &stream, place, Some(core)) else { continue };
            count_events::add(&mut finished.events, stream.counts(), &names);
            finished.streams.push(report::Stream { files: target.paths, ..one });
        }
        finished
    }));
}
