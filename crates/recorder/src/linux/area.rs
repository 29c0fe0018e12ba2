// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One area during recording: its mapping, schemas and rings.
//!
//! ```text
//! schemas ─ schemas registered later   sifting ─ what is recorded, and where it is written
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

/// One ring of an area and the file for its packets.
pub(super) struct Ring {
    pub(super) reader: RingReader,
    pub(super) stream: RingStream,
    pub(super) target: StreamTarget,
    sifted: SiftPlace,
    /// A second reader, ahead of `reader`, and its position; only if the names of threads matter.
    ahead: Option<(RingReader, u64)>,
    damage_noted: bool,
}

/// Result of draining the rings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Drained {
    /// Bytes of records.
    pub(super) bytes: u64,
    /// Largest fraction of a ring's memory that had to be read, 0 to 1: 1 is a full ring.
    pub(super) fill: f64,
    /// A program was found recently, and its rings may soon need more memory.
    pub(super) is_young: bool,
}

/// A recorded area.
pub(super) struct LiveArea {
    pub(super) path: PathBuf,
    /// The mapped file; `None` if the area is not a file of its own.
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
    /// Events that are recorded only if their fields match.
    pub(super) filters: AreaFilters,
    /// Drops records when the rings are read.
    pub(super) sieve: Sieve,
    /// When to read the names of its threads again.
    names_due: Instant,
    /// When to check again which owners of rings have ended.
    owners_due: Instant,
    /// The writer of its policy, if the policy has one of its own.
    pub(super) writer: Option<usize>,
    /// Patterns for schemas found later; `None` if the program applies them itself.
    late_patterns: Option<Patterns>,
    /// Patterns that were enabled when the area was paused.
    paused: Option<Patterns>,
    /// Events that were enabled, except in reported gaps.
    pub(super) enabled: Enabled,
    /// Whether this is such a gap: events are enabled only for conditions.
    pub(super) is_gap: bool,
    growth: Growth,
}

impl LiveArea {
    /// Starts reading an area with rings.
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
            // The geometry was checked against this view.
            let Ok((losses, reader)) = made else { continue };
            // If a ring was never read, all its losses belong to this recording.
            let first = reader.sequence() == reader.skipped_at_start();
            let baseline =
                if first || policy == ReadPolicy::Observe { LossCounts::default() } else { losses };
            let mut stream = RingStream::new(ring, baseline, started_at);
            // Packets overwritten before the area was found are lost to this recording if it
            // launched the program, and to any snapshot of a flight recorder.
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

    /// Starts reporting losses. `goes_on`: continues after a recorder that was killed; losses since its last
    /// write have not been reported. Context: before the first packet.
    pub(super) fn begin_telling(&mut self, goes_on: bool) {
        let view = self.mapping.view().with_swapped(self.header.swapped);
        for ring in &mut self.rings {
            if let Some(told) = ring.reader.losses_told(&view).filter(|_| goes_on) {
                ring.stream.lost_before(told);
            }
            // The rings were checked against this view.
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

    /// Reads its process table for new and ended processes.
    pub(super) fn refresh_processes(&mut self) {
        let view = self.mapping.view().with_swapped(self.header.swapped);
        self.processes.refresh(&view, self.file.as_ref());
    }

    fn look_for_namespaces(&mut self) {
        let view = self.mapping.view().with_swapped(self.header.swapped);
        self.processes.look_for_namespaces(&view, self.file.as_ref());
    }

    /// Users of the area. `Nobody`: the kernel reports none, so it will never be written again. `Unknown`: no
    /// known process.
    pub(super) fn users(&mut self) -> Users {
        self.processes.users(self.file.as_ref())
    }

    /// Like `users`, but always asks the kernel.
    pub(super) fn users_now(&self) -> Users {
        self.processes.users_now(self.file.as_ref())
    }

    fn mode(&self) -> RingMode {
        let word = self.view().load_u32(header::RING_MODE, Load::Relaxed);
        RingMode::from_word(word.unwrap_or(self.header.ring_mode))
    }

    /// From now on the packets go to `unreadable/`.
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
        // Events enabled before this recording do not belong to it.
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

    /// Updates patchable sites to match the enable bytes.
    pub(super) fn follow_sites(&self, recording: &mut Recording) {
        let Some(file) = &self.file else { return };
        for (pid, cause) in sites::follow(&self.view(), file).refused {
            recording.problem(format!(
                "Cannot switch the patchable sites of pid={pid}: cause={cause}; \
                 its events stay as they were"
            ));
        }
    }

    /// Disables all events, and remembers the enabled patterns.
    pub(super) fn pause(&mut self, recording: &mut Recording) {
        if self.paused.is_none() {
            let enabled = AreaHeader::read(&self.view()).map(|header| header.enable);
            let text = String::from_utf8_lossy(&enabled.unwrap_or_default()).into_owned();
            self.paused = Patterns::parse(&text).ok();
        }
        self.disable(recording);
    }

    /// Enables the patterns that were enabled before [`LiveArea::pause`].
    pub(super) fn resume(&mut self, recording: &mut Recording) -> Result<(), Error> {
        match self.paused.take() {
            Some(patterns) => self.enable(recording, &patterns),
            None => Ok(()),
        }
    }

    /// Remembers the patterns of currently enabled events, if any.
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

    /// Reads all rings: closed packets, with `open_part` also the contents of open ones.
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
        // Enough for all packets present; a faster writer continues in the next round.
        for _ in 0..self.geometry.packets_per_ring() + 2 {
            let mut buffer = std::mem::take(&mut recording.buffer);
            let view = self.mapping.view().with_swapped(self.header.swapped);
            let ring = &mut self.rings[index];
            let poll = ring.reader.poll(&view, mode, open_part, &mut buffer[PREFIX_BYTES..]);
            let go_on = match poll {
                Poll::Idle => false,
                // Copied from pages that no longer exist: zeros, not the recorded bytes.
                Poll::Chunk(_) if self.mapping.was_cut() => false,
                Poll::Chunk(chunk) => {
                    bytes += chunk.bytes;
                    // The writer of these records registered its schema before.
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

    /// Current losses in the memory, of all rings and causes.
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

    /// The last drain: everything, also of open packets, and packets for losses that no other
    /// packet reported. Losses without a ring are added to the first ring.
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
            // A foreign clock has no current time: the packet ends with the last record.
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

    /// Appends to each file a packet with the number of events that were not written, for readers that
    /// read only packets. If there is no room for it, only the report contains the number.
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

/// Common data of the packets of an area: its header, stream class and layouts.
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
