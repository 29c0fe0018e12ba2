// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A small area (`spec/small-area.md`) in a recording: its schemas, a stream for each core. Packets come from
//! a memory image or from a line.

use std::collections::BTreeMap;
use std::path::Path;

use lateralis_ring::small::{SmallHeader, SmallSchema};
use lateralis_ring::{Chunk, ClockKind, LossCounts, PacketHeader, RingKind, RingMode, abi};

use super::recording::{FinishedArea, Recording, StreamTarget};
use super::stream_report::{count_events, stream_report};
use crate::classes::RegisteredSchema;
use crate::clock::{ClockSample, FrequencySource};
use crate::core_clocks::{CoreClocks, CoreOffsets, shift_times};
use crate::error::Error;
use crate::report;
use crate::small::{ProgramImage, schemas_of, widen};
use crate::stream::{PREFIX_BYTES, RingStream, SealContext};
use crate::walk::{Introduction, RecordPlan};

/// Maximum number of processes in the report, more than a machine of kilobytes can have.
const PROCESSES_MAX: usize = 4096;

/// Common data of all streams of an area.
struct About {
    header: SmallHeader,
    area_id: u64,
    class_id: u32,
    plan: RecordPlan,
    /// Offsets of the cores' clocks, from exchanges recorded by the program.
    offsets: CoreOffsets,
    exchanges: u64,
}

impl About {
    fn context(&self, uuid: [u8; 16], now: u64) -> SealContext<'_> {
        SealContext {
            uuid,
            stream_id: self.class_id,
            area_id: self.area_id,
            plan: Some(&self.plan),
            overwrite: self.header.mode == RingMode::Overwrite,
            swapped: self.header.swapped,
            now,
        }
    }
}

/// The packets of a core so far.
struct CoreStream {
    ring: RingStream,
    target: StreamTarget,
    last_time: u64,
    /// Number of records whose time was before that of the previous record.
    backward: u64,
}

/// Data of a packet besides its records.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartPacket {
    pub(super) sequence: u64,
    pub(super) begin: u64,
    pub(super) lost: LossCounts,
    pub(super) is_open: bool,
}

/// A small area being recorded.
pub(super) struct SmallPart {
    about: About,
    registered: Vec<RegisteredSchema>,
    cores: BTreeMap<u16, CoreStream>,
    /// By process id, with the time of the first introduction.
    processes: BTreeMap<u32, (u64, Introduction)>,
}

impl SmallPart {
    /// Starts writing the packets of an area. `place` is its name in errors.
    ///
    /// Errors: its clock cannot be related to that of the recording, or none of its events can be named.
    pub(super) fn begin(
        recording: &mut Recording,
        (header, descriptors): (&SmallHeader, &[SmallSchema]),
        (images, known): (&[ProgramImage<'_>], &[RegisteredSchema]),
        start: ClockSample,
        place: &Path,
    ) -> Result<SmallPart, Error> {
        let first = recording.clock.is_none();
        // Without a frequency times are unknown: a tick counts as a nanosecond.
        let hz = if header.clock_hz == 0 { 1_000_000_000 } else { header.clock_hz };
        let (registered, problems) =
            schemas_of(descriptors, images, known, |text| recording.compile(text));
        if registered.is_empty() && header.schema_count != 0 {
            let reason = problems.into_iter().next().unwrap_or_default();
            return Err(Error::NoSchemaText { path: place.to_owned(), reason });
        }
        let frequency = (hz, FrequencySource::Defined);
        let clock = recording.use_dead_clock(ClockKind::Port, frequency, start);
        let same = clock.kind == ClockKind::Port && clock.frequency().0 == hz;
        if !same || (!first && recording.swapped != header.swapped) {
            return Err(Error::Clock { path: place.to_owned(), clock_kind: header.time_bits });
        }
        recording.swapped = header.swapped;
        problems.into_iter().for_each(|text| recording.problem(text));
        if header.clock_hz == 0 {
            recording.problem(
                "The clock's frequency is not in the area: a tick counts as a nanosecond"
                    .to_owned(),
            );
        }
        let mut plan = RecordPlan::new(header.swapped);
        for entry in &registered {
            plan.add(entry.base_id, &entry.schema);
        }
        let about = About {
            // Never 0, and the same each time the same memory is read.
            area_id: u64::from(header.generation) << 32 | (header.address & 0xffff_ffff) | 1,
            class_id: recording.classes.add(RingKind::PerCpu, &registered),
            plan,
            header: *header,
            offsets: CoreOffsets::default(),
            exchanges: 0,
        };
        recording.write_metadata_if_due()?;
        recording.reserve(u64::from(header.packet_bytes) + abi::PACKET_HEADER_BYTES);
        Ok(SmallPart { about, registered, cores: BTreeMap::new(), processes: BTreeMap::new() })
    }

    /// Converts all later packets to the clock of core 0. `read` returns the records of all of
    /// them, whose exchanges determine the offsets of the other cores' clocks.
    pub(super) fn relate_cores(
        &mut self,
        recording: &mut Recording,
        read: impl FnOnce(&mut CoreClocks, &RecordPlan),
    ) {
        let mut clocks = CoreClocks::new(&self.registered, self.about.header.core_count.into());
        read(&mut clocks, &self.about.plan);
        let mut offsets = clocks.offsets();
        // The upper bits of such clocks count from the program's start, separately for each core.
        if self.about.header.time_bits == 32 && clocks.count() > 0 {
            let text = "Exchanges of clocks with 32 bits are not used: times are as recorded";
            offsets = CoreOffsets { known: Vec::new(), problems: vec![text.to_owned()] };
        }
        offsets.problems.iter().for_each(|text| recording.problem(text.clone()));
        recording.core_offsets.extend(offsets.known.iter().copied());
        self.about.exchanges = clocks.count();
        self.about.offsets = offsets;
    }

    fn core(&mut self, core: u16) -> &mut CoreStream {
        let area_id = self.about.area_id;
        self.cores.entry(core).or_insert_with(|| CoreStream {
            ring: RingStream::new(u32::from(core), LossCounts::default(), 0),
            target: StreamTarget::new(format!("core{core}-{area_id:x}")),
            last_time: 0,
            backward: 0,
        })
    }

    /// The sums of a core, for adding to them.
    pub(super) fn ring(&mut self, core: u16) -> &mut RingStream {
        &mut self.core(core).ring
    }

    /// Number of events so far.
    pub(super) fn events(&self) -> u64 {
        self.cores.values().map(|core| core.ring.totals().events).sum()
    }

    /// Writes a packet with these records after those of the core that were written before.
    pub(super) fn packet(
        &mut self,
        recording: &mut Recording,
        core: u16,
        packet: &PartPacket,
        records: &[u8],
    ) {
        self.core(core);
        let (about, Some(stream)) = (&self.about, self.cores.get_mut(&core)) else { return };
        let mut buffer = std::mem::take(&mut recording.buffer);
        let place = PREFIX_BYTES..PREFIX_BYTES + records.len();
        buffer[place.clone()].copy_from_slice(records);
        // Another core's clock may be before the zero of core 0's.
        let offset = about.offsets.of(core.into());
        let packet_begin = packet.begin.wrapping_sub(offset.cast_unsigned());
        if offset != 0 {
            shift_times(&mut buffer[place.clone()], offset, &about.plan);
        }
        let begin = packet_begin.max(stream.last_time);
        let widened = widen(
            &mut buffer[place],
            packet_begin,
            stream.last_time,
            about.header.time_bits,
            &about.plan,
        );
        stream.backward += widened.backward;
        stream.last_time = widened.last_time;
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
        if let Some(sealed) = stream.ring.seal(&context, &chunk, &mut buffer) {
            let bytes = &buffer[sealed.bytes.clone()];
            if !recording.write_packet(&mut stream.target, bytes, &sealed) {
                stream.ring.not_written(&context, &sealed, &buffer);
            }
        }
        for (time, said) in stream.ring.take_introductions() {
            if self.processes.len() < PROCESSES_MAX {
                self.processes.entry(said.pid).or_insert((time, said));
            }
        }
        recording.buffer = buffer;
    }

    /// Ends a core with the final loss counts of its ring.
    fn end_core(&mut self, recording: &mut Recording, core: u16, lost: &LossCounts) {
        self.core(core);
        let (about, Some(stream)) = (&self.about, self.cores.get_mut(&core)) else { return };
        if stream.backward != 0 {
            recording.problem(format!(
                "The clock ran backwards before {} records, which got the time of the record in front of \
                 them: core={core}",
                stream.backward
            ));
        }
        // A foreign clock has no current time: the packet ends with the last record.
        let context = about.context(recording.uuid, stream.last_time);
        let mut buffer = std::mem::take(&mut recording.buffer);
        if let Some(sealed) = stream.ring.seal_losses(&context, lost, &mut buffer) {
            let bytes = &buffer[sealed.bytes.clone()];
            if !recording.write_packet(&mut stream.target, bytes, &sealed) {
                stream.ring.not_written(&context, &sealed, &buffer);
            }
        }
        recording.buffer = buffer;
        recording.count_not_written(&mut stream.ring, &mut stream.target, &context);
        recording.close_stream(&mut stream.target);
    }

    /// Ends all streams; `lost` contains the counters of each core, modulo 2^32 or more. Adds
    /// the area to the report, as the source `name` with more details.
    pub(super) fn finish(
        mut self,
        recording: &mut Recording,
        lost: &BTreeMap<u16, LossCounts>,
        (name, more): (&str, Vec<(&str, String)>),
    ) {
        let cores: Vec<u16> = self.cores.keys().chain(lost.keys()).copied().collect();
        for core in cores {
            self.end_core(recording, core, lost.get(&core).unwrap_or(&LossCounts::default()));
        }
        let SmallPart { about, registered, cores, processes } = self;
        let About { header, area_id, exchanges, .. } = about;
        let mode = if header.mode == RingMode::Overwrite { "overwrite" } else { "discard" };
        let details = [
            ("address", format!("{:#x}", header.address)),
            ("mode", mode.to_owned()),
            ("cores", header.core_count.to_string()),
            ("packet_bytes", header.packet_bytes.to_string()),
            ("packets_per_ring", header.packets_per_ring.to_string()),
            ("generation", header.generation.to_string()),
            ("clock_hz", header.clock_hz.to_string()),
            ("clock_exchanges", exchanges.to_string()),
        ];
        let details = details.into_iter().chain(more);
        let details: BTreeMap<String, String> =
            details.map(|(name, text)| (name.to_owned(), text)).collect();
        let area_id = format!("{area_id:016x}");
        let name = name.to_owned();
        recording.finish_area(Box::new(move |clock| {
            let mut finished = FinishedArea {
                source: Some(report::Source {
                    name,
                    area_id: area_id.clone(),
                    schemas: registered.iter().map(|entry| entry.schema.name.clone()).collect(),
                    details,
                    lost: BTreeMap::new(),
                }),
                ..FinishedArea::default()
            };
            finished.processes.extend(
                processes
                    .into_values()
                    .map(|(time, said)| process(&said, area_id.clone(), clock.utc_ns(time))),
            );
            let names = count_events::names(&registered);
            for (core, CoreStream { ring, target, .. }) in cores {
                let place = (area_id.as_str(), u32::from(core));
                let Some(one) = stream_report(clock, &ring, place, Some(u32::from(core))) else {
                    continue;
                };
                count_events::add(&mut finished.events, ring.counts(), &names);
                finished.streams.push(report::Stream { files: target.paths, ..one });
            }
            finished
        }));
    }
}

/// A process as recorded by the program: nothing else is known of it.
fn process(said: &Introduction, area_id: String, seen_ns: i64) -> report::Process {
    report::Process {
        pid: said.pid,
        parent_pid: said.parent_pid,
        pid_in_namespace: None,
        area_id,
        exe: String::new(),
        name: String::from_utf8_lossy(&said.name).into_owned(),
        arguments: Vec::new(),
        build_id: None,
        seen_ns,
        ended_ns: None,
    }
}
