// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One area while it is recorded: its mapping, schemas and rings.
//!
//! ```text
//! schemas ─ those that come later      sifting ─ what of it is recorded, and where it goes
//! tending ─ what programs do not ask the kernel for          growth ─ memory for rings
//! ```

mod growth;
mod schemas;
mod sifting;
mod tending;

pub(super) use growth::give_first_memory;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lateralis_ring::abi::{self, header};
use lateralis_ring::{
    AreaHeader, AreaView, ClockKind, Geometry, Load, LossCounts, Poll, ReadPolicy, RingKind,
    RingMode, RingReader,
};

use self::growth::Growth;
use super::area_file::{AreaFile, Users};
use super::enable;
use super::enabled::Enabled;
use super::filters::AreaFilters;
use super::mapping::Mapping;
use super::output::Folder;
use super::recording::{Recording, StreamTarget};
use super::sites;
use super::traced::TracedProcesses;
use crate::classes::RegisteredSchema;
use crate::error::Error;
use crate::pattern::Patterns;
use crate::sieve::{Sieve, SiftPlace};
use crate::stream::{PREFIX_BYTES, RingStream, SealContext, Sealed};
use crate::walk::RecordPlan;

/// One ring of an area and the file it goes to.
pub(super) struct Ring {
    pub(super) reader: RingReader,
    pub(super) stream: RingStream,
    pub(super) target: StreamTarget,
    sifted: SiftPlace,
    /// Reads ahead of `reader` where the names of threads decide, and how far it is.
    ahead: Option<(RingReader, u64)>,
    damage_noted: bool,
}

/// What a look at the rings found.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Drained {
    /// Bytes of records.
    pub(super) bytes: u64,
    /// Greatest part of a ring's memory that had to be read, 0 to 1: 1 is a full ring.
    pub(super) fill: f64,
    /// A program was found a moment ago, and its rings may soon need more memory.
    pub(super) is_young: bool,
}

/// See the module's description.
pub(super) struct LiveArea {
    pub(super) path: PathBuf,
    /// Whose memory `mapping` is; none where the area is no file of its own.
    pub(super) file: Option<AreaFile>,
    pub(super) mapping: Mapping,
    pub(super) header: AreaHeader,
    pub(super) geometry: Geometry,
    pub(super) processes: TracedProcesses,
    pub(super) rings: Vec<Ring>,
    pub(super) registered: Vec<RegisteredSchema>,
    pub(super) unreadable: bool,
    plan: RecordPlan,
    class_id: u32,
    slots_seen: HashSet<u32>,
    covered_ids: u32,
    no_ring_baseline: u64,
    pub(super) lost_no_ring: u64,
    /// Which events are recorded only if their fields say so.
    pub(super) filters: AreaFilters,
    /// What is left out when its rings are read.
    pub(super) sieve: Sieve,
    /// When to ask again for the names of its threads.
    names_due: Instant,
    /// When to ask again which threads are gone.
    owners_due: Instant,
    /// The writer of its policy, if it has one of its own.
    pub(super) writer: Option<usize>,
    /// Patterns for schemas that are found later; none where the program applies them itself.
    late_patterns: Option<Patterns>,
    /// What was enabled when the area was paused.
    paused: Option<Patterns>,
    /// Which events were on, but in gaps that are reported as such.
    pub(super) enabled: Enabled,
    /// Whether it is such a gap now: events are on only because conditions look at them.
    pub(super) is_gap: bool,
    growth: Growth,
}

impl LiveArea {
    /// Begins to read an area whose rings are there.
    pub(super) fn new(
        recording: &mut Recording,
        path: &Path,
        (file, mapping): (Option<AreaFile>, Mapping),
        policy: ReadPolicy,
    ) -> Result<LiveArea, Error> {
        let view = mapping.view();
        let header = AreaHeader::read(&view)
            .map_err(|cause| Error::Area { path: path.to_owned(), cause })?;
        let view = view.with_swapped(header.swapped);
        let rings_error = |cause| Error::Rings { path: path.to_owned(), cause };
        let geometry = Geometry::of(&header, view.bytes()).map_err(rings_error)?;
        recording.reserve(geometry.packet_bytes());
        let mode = RingMode::from_word(header.ring_mode);
        let now = recording.now();
        let started_at = if now == u64::MAX { header.clock_at_start } else { now };
        let mut rings = Vec::new();
        for ring in 0..geometry.ring_count() {
            let made = RingReader::new(&view, geometry, ring, policy, mode)
                .and_then(|reader| Ok((reader.losses(&view)?, reader)));
            // The geometry was checked against this very view.
            let Ok((losses, reader)) = made else { continue };
            // A ring that nobody read yet has lost what it lost in this recording.
            let first = reader.sequence() == reader.skipped_at_start();
            let baseline =
                if first || policy == ReadPolicy::Observe { LossCounts::default() } else { losses };
            let mut stream = RingStream::new(ring, baseline, started_at);
            // Packets overwritten before the area was found are lost to this recording if it
            // launched the program, and to whoever looks at a flight recorder.
            stream.skip_packets(match policy {
                ReadPolicy::Consume if header.session != 0 => reader.skipped_at_start(),
                ReadPolicy::Observe if mode == RingMode::Overwrite => reader.sequence(),
                _ => 0,
            });
            let target = StreamTarget::new(stream_name(&header, geometry.kind(), ring));
            let sifted = SiftPlace::default();
            let ahead = None;
            rings.push(Ring { reader, stream, target, sifted, ahead, damage_noted: false });
        }
        let plan = RecordPlan::new(header.swapped);
        let class_id = recording.classes.assign(geometry.kind(), &[], None);
        let processes = TracedProcesses::new(&header, file.as_ref().filter(|_| now != u64::MAX));
        let fresh = header.session != 0 || policy == ReadPolicy::Observe;
        let mut area = LiveArea {
            path: path.to_owned(),
            file,
            no_ring_baseline: if fresh { 0 } else { header.lost_no_ring },
            mapping,
            geometry,
            processes,
            rings,
            registered: Vec::new(),
            unreadable: false,
            plan,
            class_id,
            slots_seen: HashSet::new(),
            covered_ids: abi::INTERNAL_EVENT_COUNT,
            lost_no_ring: 0,
            filters: AreaFilters::default(),
            sieve: Sieve::default(),
            names_due: Instant::now(),
            owners_due: Instant::now(),
            writer: None,
            late_patterns: None,
            enabled: Enabled::default(),
            is_gap: false,
            paused: None,
            growth: Growth::none(),
            header,
        };
        area.refresh_schemas(recording);
        Ok(area)
    }

    /// Begins to tell losses. `goes_on`: where a recorder was killed; what was lost since it last
    /// wrote was told by nobody. Context: before the first packet.
    pub(super) fn begin_telling(&mut self, goes_on: bool) {
        let view = self.mapping.view().with_swapped(self.header.swapped);
        for ring in &mut self.rings {
            if let Some(told) = ring.reader.losses_told(&view).filter(|_| goes_on) {
                ring.stream.lost_before(told);
            }
            // The rings were checked against this very view.
            let _ = ring.reader.begin_telling(&view, &ring.stream.lost_at_start());
        }
    }

    /// The area's memory.
    pub(super) fn view(&self) -> AreaView<'_> {
        self.mapping.view().with_swapped(self.header.swapped)
    }

    /// Kind of its clock.
    pub(super) fn clock_kind(header: &AreaHeader) -> Option<ClockKind> {
        ClockKind::from_word(header.clock_kind)
    }

    /// Looks at its process table: who is new, who has ended.
    pub(super) fn refresh_processes(&mut self) {
        let view = self.mapping.view().with_swapped(self.header.swapped);
        self.processes.refresh(&view, self.file.as_ref());
    }

    fn look_for_namespaces(&mut self) {
        let view = self.mapping.view().with_swapped(self.header.swapped);
        self.processes.look_for_namespaces(&view, self.file.as_ref());
    }

    /// Who has it. Nobody: the kernel says so, and nobody will ever write into it. Unknown: no process that
    /// is known.
    pub(super) fn users(&mut self) -> Users {
        self.processes.users(self.file.as_ref())
    }

    /// The same, asked of the kernel whatever was known.
    pub(super) fn users_now(&self) -> Users {
        self.processes.users_now(self.file.as_ref())
    }

    fn mode(&self) -> RingMode {
        let word = self.view().load_u32(header::RING_MODE, Load::Relaxed);
        RingMode::from_word(word.unwrap_or(self.header.ring_mode))
    }

    /// From here on the packets go to `unreadable/`.
    fn give_up(&mut self, recording: &mut Recording, reason: &str) {
        recording.problem(format!(
            "Cannot describe the events of pid={}: {reason}; its packets are kept under unreadable/",
            self.header.creator_pid
        ));
        if !self.unreadable {
            self.unreadable = true;
            self.rotate_files(recording);
            for ring in &mut self.rings {
                ring.target.folder = Folder::Unreadable;
            }
        }
    }

    fn rotate_files(&mut self, recording: &mut Recording) {
        for ring in &mut self.rings {
            recording.close_stream(&mut ring.target);
        }
    }

    /// Sets enable bytes by patterns, now and for schemas that register later.
    pub(super) fn enable(
        &mut self,
        recording: &mut Recording,
        patterns: &Patterns,
    ) -> Result<(), Error> {
        // What was on before this recording says nothing of it.
        if !self.enabled.is_empty() {
            self.note_enabled();
        }
        enable::write_patterns(&self.view(), patterns)?;
        if !self.is_gap {
            self.enabled.are(patterns);
        }
        self.late_patterns = None;
        self.refresh_schemas(recording);
        let view = self.view();
        for entry in &self.registered {
            enable::apply(&view, entry.base_id, &entry.schema, patterns);
        }
        self.late_patterns = Some(patterns.clone());
        self.apply_filters(recording);
        self.follow_sites(recording);
        Ok(())
    }

    /// Makes patchable sites follow the enable bytes.
    pub(super) fn follow_sites(&self, recording: &mut Recording) {
        let Some(file) = &self.file else { return };
        for (pid, cause) in sites::follow(&self.view(), file).refused {
            recording.problem(format!(
                "Cannot switch the patchable sites of pid={pid}: cause={cause}; \
                 its events stay as they were"
            ));
        }
    }

    /// Disables all events, and remembers what the program was asked to enable.
    pub(super) fn pause(&mut self, recording: &mut Recording) {
        if self.paused.is_none() {
            let enabled = AreaHeader::read(&self.view()).map(|header| header.enable);
            let text = String::from_utf8_lossy(&enabled.unwrap_or_default()).into_owned();
            self.paused = Patterns::parse(&text).ok();
        }
        self.disable(recording);
    }

    /// Enables what was enabled before [`LiveArea::pause`].
    pub(super) fn resume(&mut self, recording: &mut Recording) -> Result<(), Error> {
        match self.paused.take() {
            Some(patterns) => self.enable(recording, &patterns),
            None => Ok(()),
        }
    }

    /// Remembers by which patterns events are on now, if any are.
    pub(super) fn note_enabled(&mut self) {
        if self.is_gap {
            return;
        }
        let enabled = AreaHeader::read(&self.view()).map(|header| header.enable);
        let text = String::from_utf8_lossy(&enabled.unwrap_or_default()).into_owned();
        if let Ok(patterns) = Patterns::parse(&text) {
            self.enabled.are(&patterns);
        }
    }

    /// Disables all events, also of schemas that register later.
    pub(super) fn disable(&mut self, recording: &mut Recording) {
        self.note_enabled();
        self.late_patterns = None;
        enable::disable(&self.view());
        self.follow_sites(recording);
    }

    /// Reads all rings: closed packets, with `open_part` also what the open ones hold so far.
    pub(super) fn drain(&mut self, recording: &mut Recording, open_part: bool) -> Drained {
        let mode = self.mode();
        let mut drained = Drained::default();
        if self.enabled.is_empty() {
            self.note_enabled();
        }
        self.give_memory(recording, false);
        drained.is_young = self.growth.is_young();
        self.look_for_namespaces();
        self.free_rings_of_the_dead();
        self.listen(recording, mode);
        for index in 0..self.rings.len() {
            let bytes = self.drain_ring(recording, index, mode, open_part);
            drained.bytes += bytes;
            let room = self.growth.backed_bytes(index, self.geometry.ring_bytes());
            drained.fill = drained.fill.max(bytes as f64 / room as f64);
        }
        if self.mapping.was_cut() {
            recording.problem(format!(
                "Cannot trust area of pid={}: its file was cut while it was read",
                self.header.creator_pid
            ));
        }
        drained
    }

    fn drain_ring(
        &mut self,
        recording: &mut Recording,
        index: usize,
        mode: RingMode,
        open_part: bool,
    ) -> u64 {
        let mut bytes = 0;
        // Enough for all packets there are; a writer that is faster gets its turn next time.
        for _ in 0..self.geometry.packets_per_ring() + 2 {
            let mut buffer = std::mem::take(&mut recording.buffer);
            let view = self.mapping.view().with_swapped(self.header.swapped);
            let ring = &mut self.rings[index];
            let poll = ring.reader.poll(&view, mode, open_part, &mut buffer[PREFIX_BYTES..]);
            let go_on = match poll {
                Poll::Idle => false,
                // Copied from pages that are no longer there: zeros, and not what was recorded.
                Poll::Chunk(_) if self.mapping.was_cut() => false,
                Poll::Chunk(chunk) => {
                    bytes += chunk.bytes;
                    // Whatever wrote these records had its schema registered before.
                    if self.schemas_are_due() {
                        self.refresh_schemas(recording);
                    }
                    if !self.unreadable {
                        let records = PREFIX_BYTES..PREFIX_BYTES + chunk.bytes as usize;
                        let (records, area) = (&mut buffer[records], self.file.as_ref());
                        self.processes.translate(&self.plan, records, chunk.slack, area);
                    }
                    let found = chunk;
                    let chunk = self.sift(index, &found, &mut buffer);
                    if chunk.bytes == found.bytes {
                        self.rings[index].stream.locate(found.sequence, found.from);
                    }
                    let plan = (!self.unreadable).then_some(&self.plan);
                    let parts = (&self.header, self.class_id, plan);
                    let context = context(recording, parts, mode, recording.now());
                    let sealed = self.rings[index].stream.seal(&context, &chunk, &mut buffer);
                    for (time, process) in self.rings[index].stream.take_introductions() {
                        self.processes.introduce(&process, time, self.file.as_ref());
                    }
                    if let Some(sealed) = sealed {
                        self.write(recording, index, mode, &sealed, &buffer);
                    }
                    true
                }
                Poll::LostPackets { count, .. } => {
                    ring.stream.skip_packets(count);
                    true
                }
                Poll::Damaged(damage) => {
                    if !ring.damage_noted {
                        ring.damage_noted = true;
                        ring.stream.note_damage(damage.to_string());
                        recording.problem(format!(
                            "{damage}, pid={}, ring={index}: this ring is given up",
                            self.header.creator_pid
                        ));
                    }
                    false
                }
            };
            recording.buffer = buffer;
            if !go_on {
                break;
            }
        }
        bytes
    }

    fn write(
        &mut self,
        recording: &mut Recording,
        index: usize,
        mode: RingMode,
        sealed: &Sealed,
        buffer: &[u8],
    ) {
        let packet = &buffer[sealed.bytes.clone()];
        let ring = &mut self.rings[index];
        if !recording.write_packet(&mut ring.target, packet, sealed) {
            let plan = (!self.unreadable).then_some(&self.plan);
            let context = context(recording, (&self.header, self.class_id, plan), mode, 0);
            ring.stream.not_written(&context, sealed, buffer);
        }
    }

    /// Losses so far as the memory has them now, all rings and causes.
    pub(super) fn live_losses(&self) -> u64 {
        let view = self.view();
        let rings = self.rings.iter().map(|ring| {
            let live = ring.reader.losses(&view).unwrap_or_default();
            ring.stream.losses_of(&live).total()
        });
        rings.fold(self.no_ring_losses(), u64::saturating_add)
    }

    fn no_ring_losses(&self) -> u64 {
        let lost = self.view().load_u64(header::LOST_NO_RING, Load::Relaxed).unwrap_or(0);
        lost.saturating_sub(self.no_ring_baseline)
    }

    /// The last look: everything, also of open packets, and packets for losses that no other
    /// packet told. Losses without a ring go with the first ring.
    pub(super) fn drain_to_the_end(&mut self, recording: &mut Recording) {
        self.drain(recording, true);
        self.lost_no_ring = self.no_ring_losses();
        let mode = self.mode();
        for index in 0..self.rings.len() {
            let view = self.view();
            let mut live = self.rings[index].reader.losses(&view).unwrap_or_default();
            if index == 0 {
                live.no_ring = live.no_ring.saturating_add(self.lost_no_ring);
            }
            let mut buffer = std::mem::take(&mut recording.buffer);
            // A clock that does not run here has no now: the packet ends with the last one.
            let now = Some(recording.now()).filter(|now| *now != u64::MAX).unwrap_or(0);
            let plan = (!self.unreadable).then_some(&self.plan);
            let context = context(recording, (&self.header, self.class_id, plan), mode, now);
            let sealed = self.rings[index].stream.seal_losses(&context, &live, &mut buffer);
            if let Some(sealed) = sealed {
                self.write(recording, index, mode, &sealed, &buffer);
            }
            recording.buffer = buffer;
        }
        self.count_not_written(recording, mode);
        self.rotate_files(recording);
    }

    /// Adds to each file a packet that carries how many events were not written, for readers that
    /// know nothing but packets. Where there is no room for it only the report has the number.
    fn count_not_written(&mut self, recording: &mut Recording, mode: RingMode) {
        let now = Some(recording.now()).filter(|now| *now != u64::MAX).unwrap_or(0);
        let plan = (!self.unreadable).then_some(&self.plan);
        let context = context(recording, (&self.header, self.class_id, plan), mode, now);
        for ring in &mut self.rings {
            recording.count_not_written(&mut ring.stream, &mut ring.target, &context);
        }
    }
}

/// Name of the stream file of a ring.
fn stream_name(header: &AreaHeader, kind: RingKind, ring: u32) -> String {
    let (pid, id) = (header.creator_pid, header.area_id);
    match kind {
        RingKind::PerCpu => format!("{pid}_{id:016x}_cpu{ring}"),
        RingKind::PerThread => format!("{pid}_{id:016x}_ring{ring}"),
    }
}

/// What packets of an area have in common: its header, stream class and layouts.
fn context<'a>(
    recording: &Recording,
    (header, stream_id, plan): (&AreaHeader, u32, Option<&'a RecordPlan>),
    mode: RingMode,
    now: u64,
) -> SealContext<'a> {
    SealContext {
        uuid: recording.uuid,
        stream_id,
        area_id: header.area_id,
        plan,
        overwrite: mode == RingMode::Overwrite,
        swapped: header.swapped,
        now,
    }
}
