// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Small areas, of programs without an operating system, made into what a recording has: where the
//! texts of their schemas lie, and records with times of 48 bits (`spec/small-area.md`, §4 and §6).

use lateralis_ring::abi;
use lateralis_ring::small::{SmallArea, SmallSchema};
use object::read::{Object, ObjectSegment};

use crate::classes::RegisteredSchema;
use crate::walk::RecordPlan;

/// Longest schema text that is believed.
const TEXT_BYTES_MAX: u32 = 1 << 20;

/// Memory of a program by its addresses: parts of its file, or of its memory.
#[derive(Debug, Default)]
pub struct ProgramImage<'a> {
    segments: Vec<(u64, &'a [u8])>,
}

impl<'a> ProgramImage<'a> {
    /// What an ELF file of any machine loads; `None` if it is none.
    pub fn of_elf(bytes: &'a [u8]) -> Option<ProgramImage<'a>> {
        let file = object::File::parse(bytes).ok()?;
        let loaded = |segment: object::read::Segment<'a, '_>| {
            Some((segment.address(), segment.data().ok()?))
        };
        Some(ProgramImage { segments: file.segments().filter_map(loaded).collect() })
    }

    /// Memory as it was, from an address on.
    pub fn of_memory(address: u64, bytes: &'a [u8]) -> ProgramImage<'a> {
        ProgramImage { segments: vec![(address, bytes)] }
    }

    /// The bytes at an address, if all of them are there.
    fn at(&self, address: u64, bytes: u32) -> Option<&'a [u8]> {
        self.segments.iter().find_map(|(start, data)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            data.get(from..from.checked_add(bytes as usize)?)
        })
    }
}

/// The area's memory and what is around it in the file, by the address that the area has.
/// `offset` is where in `file` the area begins.
pub fn memory_of<'a>(area: &SmallArea<'_>, file: &'a [u8], offset: u64) -> ProgramImage<'a> {
    match area.address.checked_sub(offset) {
        Some(start) => ProgramImage::of_memory(start, file),
        // The file begins below address 0: what is in front of the area is something else.
        None => match usize::try_from(offset).ok().and_then(|offset| file.get(offset..)) {
            Some(rest) => ProgramImage::of_memory(area.address, rest),
            None => ProgramImage::default(),
        },
    }
}

/// The schemas of an area, by texts of the images or of `known`, whose hash is the one that the area
/// has; and sentences about those that are not to be had.
///
/// `compile` gives a text's schema and hash.
pub fn schemas_of(
    area: &SmallArea<'_>,
    images: &[ProgramImage<'_>],
    known: &[RegisteredSchema],
    mut compile: impl FnMut(&[u8]) -> Option<(std::sync::Arc<lateralis_pleco::Schema>, u64)>,
) -> (Vec<RegisteredSchema>, Vec<String>) {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let mut next_id = abi::INTERNAL_EVENT_COUNT;
    for entry in area.schemas() {
        if entry.base_id != next_id || entry.event_count == 0 {
            problems.push(format!(
                "The list of schemas is damaged: base_id={}, expected {next_id}",
                entry.base_id
            ));
            break;
        }
        next_id = entry.base_id.saturating_add(entry.event_count);
        let fits = |schema: &lateralis_pleco::Schema, hash: u64| {
            hash == entry.hash && schema.events.len() == entry.event_count as usize
        };
        let of_images = texts(images, &entry).find_map(|text| {
            compile(text).filter(|(schema, hash)| fits(schema, *hash)).map(|(schema, _)| schema)
        });
        let of_files = || {
            let same = known.iter().find(|one| fits(&one.schema, one.hash));
            same.map(|one| one.schema.clone())
        };
        match of_images.or_else(of_files) {
            Some(schema) => {
                let (base_id, hash) = (entry.base_id, entry.hash);
                found.push(RegisteredSchema { base_id, schema, hash });
            }
            None => problems.push(format!(
                "Cannot name the events of a schema: hash={:016x}, events={}: its text is not in the \
                 image; give the program that was running with --elf, or its schema with --schema",
                entry.hash, entry.event_count
            )),
        }
    }
    (found, problems)
}

fn texts<'a>(
    images: &'a [ProgramImage<'_>],
    entry: &SmallSchema,
) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let (address, bytes) = (entry.text_address, entry.text_bytes);
    let is_long = bytes > TEXT_BYTES_MAX;
    images.iter().filter_map(move |image| if is_long { None } else { image.at(address, bytes) })
}

/// Records of a packet with full times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// How many bytes the last record ends before the end; 0 where they cannot be read to the end.
    pub slack: u64,
    /// Time of the last record, or of the beginning.
    pub last_time: u64,
    /// Records whose time was before that of their predecessor, which they got.
    pub backward: u64,
}

/// Gives the records of a packet that began at `begin` the low 48 bits of their full times, in place.
/// `time_bits` is how many bits of the clock they have.
///
/// Cost: one step per record. Ends at the first that is not whole and known: the rest is as it was.
pub fn widen(records: &mut [u8], begin: u64, time_bits: u32, plan: &RecordPlan) -> Widened {
    let mut widened = Widened { slack: 0, last_time: begin, backward: 0 };
    let mask = (1u64 << time_bits) - 1;
    let mut at = 0;
    while at < records.len() {
        let Some((id, low)) = plan.header(records, at) else { break };
        let Some(end) = plan.end(records, at) else { break };
        // A record of 32 bits is less than 2^31 ticks after the beginning; one of 48 less than half
        // a turn after its predecessor.
        let from = if time_bits == 32 { begin } else { widened.last_time };
        let step = low.wrapping_sub(from) & mask;
        let time = from.saturating_add(step);
        if step > mask / 2 || time < widened.last_time {
            widened.backward += 1;
        } else {
            widened.last_time = time;
        }
        plan.set_header(records, at, id, widened.last_time);
        let next = end.next_multiple_of(8);
        widened.slack = if next == records.len() { (next - end) as u64 } else { 0 };
        at = next;
    }
    widened
}
