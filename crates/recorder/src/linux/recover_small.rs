// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes a recording from the memory of a machine without an operating system (`spec/small-area.md`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_ring::small::{SmallArea, SmallPacket, SmallRing, find};
use lateralis_ring::{Found, RingMode};

use super::mapping::Mapping;
use super::recording::Recording;
use super::recover::{AREAS_MAX, map};
use super::small_part::{PartPacket, SmallPart};
use crate::classes::RegisteredSchema;
use crate::clock::ClockSample;
use crate::error::Error;
use crate::small::{ProgramImage, memory_of};

/// Maximum size of a schema file.
const SCHEMA_FILE_BYTES_MAX: u64 = 16 << 20;

/// Files with the schemas of a memory image.
#[derive(Debug, Clone, Default)]
pub struct RecoverTexts {
    /// Programs that were running, ELF.
    pub programs: Vec<PathBuf>,
    /// Schemas, pleco.
    pub schemas: Vec<PathBuf>,
}

/// The files, opened.
pub(super) struct TextFiles {
    programs: Vec<Mapping>,
    pub(super) schemas: Vec<RegisteredSchema>,
}

impl TextFiles {
    /// The memory of the programs.
    pub(super) fn programs(&self) -> impl Iterator<Item = ProgramImage<'_>> {
        self.programs.iter().filter_map(|file| ProgramImage::of_elf(file.bytes()))
    }

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

/// Offsets of small areas in a file.
pub(super) fn small_areas_in(path: &Path) -> Result<Vec<Found>, Error> {
    let Some(mapping) = map(path)? else { return Ok(Vec::new()) };
    Ok(find(mapping.bytes()).take(AREAS_MAX).collect())
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
    let mut images = vec![memory_of(&area, file, found.offset)];
    images.extend(texts.programs());
    let about = (&area.header, &area.schemas()[..]);
    let names = (&images[..], &texts.schemas[..]);
    let mut part = SmallPart::begin(recording, about, names, ClockSample::default(), path)?;
    part.relate_cores(recording, |clocks, plan| {
        for core in 0..area.header.core_count {
            for packet in area.ring(core).map(|ring| ring.packets).unwrap_or_default() {
                let records = area.bytes().get(packet.records).unwrap_or(&[]);
                clocks.read(records, core.into(), plan);
            }
        }
    });
    let mut lost = BTreeMap::new();
    for core in 0..area.header.core_count {
        let Some(ring) = area.ring(core) else { continue };
        recover_ring(recording, &mut part, &area, core, &ring);
        lost.insert(core, ring.lost);
    }
    part.finish(recording, &lost, ("small-area", Vec::new()));
    Ok(())
}

/// Writes the packets of a core.
fn recover_ring(
    recording: &mut Recording,
    part: &mut SmallPart,
    area: &SmallArea<'_>,
    core: u16,
    ring: &SmallRing,
) {
    for (slot, reason) in &ring.damages {
        part.ring(core).note_damage(format!("packet in slot {slot}: {reason}"));
    }
    if ring.clock_backward != 0 {
        recording.problem(format!(
            "The clock ran backwards {} times between packets: core={core}",
            ring.clock_backward
        ));
    }
    let mode = area.header.mode;
    // In discard mode, a reader in the program has taken packets below this: they are elsewhere.
    let taken = |packet: &SmallPacket| {
        let ahead = (packet.sequence as u32).wrapping_sub(ring.consumed);
        mode == RingMode::Discard && ahead >= area.header.packets_per_ring
    };
    let mut next = if mode == RingMode::Overwrite { Some(0) } else { None };
    for packet in ring.packets.iter().filter(|packet| !taken(packet)) {
        let expected = next.unwrap_or(packet.sequence);
        part.ring(core).skip_packets(packet.sequence.saturating_sub(expected));
        next = Some(packet.sequence + 1);
        let Some(records) = area.bytes().get(packet.records.clone()) else { continue };
        let SmallPacket { sequence, begin, lost, is_open, .. } = *packet;
        part.packet(recording, core, &PartPacket { sequence, begin, lost, is_open }, records);
    }
}
