// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts small areas, of programs without an operating system, to the data of a recording: finds
//! the texts of their schemas, and extends record times of 48 bits (`spec/small-area.md`, §4 and §6).

use lateralis_ring::abi;
use lateralis_ring::small::{SmallArea, SmallSchema};
use object::read::{Object, ObjectSegment};

use crate::classes::RegisteredSchema;
use crate::walk::RecordPlan;

/// Maximum accepted size of a schema text in bytes.
const TEXT_BYTES_MAX: u32 = 1 << 20;

/// Memory of a program by address: parts of its file, or of its memory.
#[derive(Debug, Default)]
pub struct ProgramImage<'a> {
    segments: Vec<(u64, &'a [u8])>,
}

impl<'a> ProgramImage<'a> {
    /// The loaded segments of an ELF file of any machine; `None` if it is not one.
    pub fn of_elf(bytes: &'a [u8]) -> Option<ProgramImage<'a>> {
        let file = object::File::parse(bytes).ok()?;
        let loaded = |segment: object::read::Segment<'a, '_>| {
            Some((segment.address(), segment.data().ok()?))
        };
        Some(ProgramImage { segments: file.segments().filter_map(loaded).collect() })
    }

    /// A memory image that starts at an address.
    pub fn of_memory(address: u64, bytes: &'a [u8]) -> ProgramImage<'a> {
        ProgramImage { segments: vec![(address, bytes)] }
    }

    /// The bytes at an address, if all of them are present.
    fn at(&self, address: u64, bytes: u32) -> Option<&'a [u8]> {
        self.segments.iter().find_map(|(start, data)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            data.get(from..from.checked_add(bytes as usize)?)
        })
    }
}

/// The area's memory and its surroundings in the file, by the address of the area.
/// `offset` is the offset of the area in `file`.
pub fn memory_of<'a>(area: &SmallArea<'_>, file: &'a [u8], offset: u64) -> ProgramImage<'a> {
    match area.header.address.checked_sub(offset) {
        Some(start) => ProgramImage::of_memory(start, file),
        // The file would begin below address 0: the bytes before the area are something else.
        None => match usize::try_from(offset).ok().and_then(|offset| file.get(offset..)) {
            Some(rest) => ProgramImage::of_memory(area.header.address, rest),
            None => ProgramImage::default(),
        },
    }
}

/// The schemas of an area from its descriptors, with texts of the images or of `known` whose hashes match
/// those in the area; and sentences about those that were not found.
///
/// `compile` returns a text's schema and hash.
pub fn schemas_of(
    descriptors: &[SmallSchema],
    images: &[ProgramImage<'_>],
    known: &[RegisteredSchema],
    mut compile: impl FnMut(&[u8]) -> Option<(std::sync::Arc<lateralis_pleco::Schema>, u64)>,
) -> (Vec<RegisteredSchema>, Vec<String>) {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let mut next_id = abi::INTERNAL_EVENT_COUNT;
    for entry in descriptors {
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
        let of_images = texts(images, entry).find_map(|text| {
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

/// Records of a packet with extended times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// Number of bytes by which the last record ends before the end; 0 if they are not readable to the end.
    pub slack: u64,
    /// Time of the last record, or of the start.
    pub last_time: u64,
    /// Number of records whose time was before that of the previous record; they got its time.
    pub backward: u64,
}

/// Replaces the times of the records of a packet that began at `begin` by the low 48 bits of their full
/// times, in place. `time_bits` is the number of clock bits in them; no time becomes earlier than `earliest`,
/// the last one of the previous packet.
///
/// Cost: one step per record. Stops at the first that is incomplete or unknown: the rest is unchanged.
pub fn widen(
    records: &mut [u8],
    begin: u64,
    earliest: u64,
    time_bits: u32,
    plan: &RecordPlan,
) -> Widened {
    let mut widened = Widened { slack: 0, last_time: begin.max(earliest), backward: 0 };
    let mask = (1u64 << time_bits) - 1;
    let mut at = 0;
    while at < records.len() {
        let Some((id, low)) = plan.header(records, at) else { break };
        let Some(end) = plan.end(records, at) else { break };
        // A record with 32 bits is less than 2^31 ticks after the start; one with 48 bits less than half
        // a wrap after the previous one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_ring::small::reference::{SmallBuilder, TEXT, TEXT_ADDRESS};
    use std::sync::Arc;

    fn plan(swapped: bool) -> RecordPlan {
        let schema = lateralis_pleco::compile("s.pleco", TEXT.as_bytes()).schema.unwrap();
        let mut plan = RecordPlan::new(swapped);
        plan.add(16, &schema);
        plan
    }

    /// Records of event A at these times, in the byte order of `swapped` machines.
    fn records(plan: &RecordPlan, times: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0x77; times.len() * 16];
        for (index, time) in times.iter().enumerate() {
            plan.set_header(&mut bytes, index * 16, 16, *time);
        }
        bytes
    }

    fn times(plan: &RecordPlan, bytes: &[u8]) -> Vec<u64> {
        bytes.chunks(16).map(|record| plan.header(record, 0).unwrap().1).collect()
    }

    #[test]
    fn times_of_32_bits_count_from_the_packet() {
        for swapped in [false, true] {
            let plan = plan(swapped);
            // The clock wraps within the packet; the program paused for 2^31 - 1 ticks.
            let begin = 0x7_ffff_fff0;
            let after = [0, 5, 0x10, 0x20, 0x7fff_ffff];
            let full: Vec<u64> = after.iter().map(|ticks| begin + ticks).collect();
            let low: Vec<u64> = full.iter().map(|time| time & 0xffff_ffff).collect();
            let mut bytes = records(&plan, &low);
            let widened = widen(&mut bytes, begin, 0, 32, &plan);
            assert_eq!(times(&plan, &bytes), full, "swapped {swapped}");
            let last_time = begin + 0x7fff_ffff;
            assert_eq!(widened, Widened { slack: 4, last_time, backward: 0 });
            // Bytes without a field are unchanged.
            assert!(bytes.chunks(16).all(|record| record[8..] == [0x77; 8]));
        }
    }

    #[test]
    fn a_clock_that_runs_backwards_is_counted_and_time_is_not() {
        let plan = plan(false);
        let mut bytes = records(&plan, &[1000, 990, 1010, 400, 1010]);
        let widened = widen(&mut bytes, 500, 0, 32, &plan);
        assert_eq!(times(&plan, &bytes), [1000, 1000, 1010, 1010, 1010]);
        assert_eq!((widened.backward, widened.last_time), (2, 1010));
        let begin = (5 << 48) + 500;
        let mut bytes = records(&plan, &[begin + 10, begin + 5, begin + 11]);
        let widened = widen(&mut bytes, begin, 0, 48, &plan);
        assert_eq!((widened.backward, widened.last_time), (1, begin + 11));
        assert_eq!(times(&plan, &bytes), [510, 510, 511]);
        // The previous packet ended later than this one began.
        for bits in [32, 48] {
            let mut bytes = records(&plan, &[510, 520, 530]);
            let widened = widen(&mut bytes, 505, 525, bits, &plan);
            assert_eq!(times(&plan, &bytes), [525, 525, 530]);
            assert_eq!((widened.backward, widened.last_time), (2, 530));
        }
    }

    #[test]
    fn what_is_unknown_or_cut_stays_as_it_is() {
        let plan = plan(false);
        let good = records(&plan, &[7, 8]);
        let mut unknown = [0xff; 16];
        plan.set_header(&mut unknown, 0, 999, 9);
        let mut text = vec![b'x'; 16];
        plan.set_header(&mut text, 0, 17, 9);
        for bad in [unknown.to_vec(), text, vec![1; 7]] {
            let mut bytes = [good.clone(), bad.clone()].concat();
            let widened = widen(&mut bytes, 5, 0, 32, &plan);
            assert_eq!(bytes[32..], bad);
            assert_eq!((widened.slack, widened.last_time), (0, 8));
        }
    }

    #[test]
    fn a_text_counts_only_with_the_hash_that_the_area_has() {
        let compile = |text: &[u8]| {
            let schema = lateralis_pleco::compile("s.pleco", text).schema?;
            let hash = schema.hash();
            Some((Arc::new(schema), hash))
        };
        let (schema, hash) = compile(TEXT.as_bytes()).unwrap();
        let made = SmallBuilder::new(false, 32, 0, hash);
        let area = SmallArea::read(&made.bytes, false).unwrap();
        let memory = memory_of(&area, &made.bytes, 0);
        let (found, problems) = schemas_of(&area.schemas(), &[memory], &[], compile);
        assert_eq!((found.len(), problems.len(), found[0].base_id), (1, 0, 16));
        // Not in the dumped memory, but in a part of the program; or only in a file.
        let elsewhere = ProgramImage::of_memory(TEXT_ADDRESS - 1, b"\0");
        let (found, problems) = schemas_of(&area.schemas(), &[elsewhere], &[], compile);
        assert!(found.is_empty() && problems[0].contains("--elf"), "{problems:?}");
        let file = RegisteredSchema { base_id: 0, schema, hash };
        let (found, _) = schemas_of(&area.schemas(), &[], &[file], compile);
        assert_eq!((found.len(), found[0].base_id), (1, 16));
        // The address contains the text of another build.
        let mut other = SmallBuilder::new(false, 32, 0, hash ^ 1);
        other.bytes.extend([0; 8]);
        let area = SmallArea::read(&other.bytes, false).unwrap();
        let (found, problems) =
            schemas_of(&area.schemas(), &[memory_of(&area, &other.bytes, 0)], &[], compile);
        assert_eq!((found.len(), problems.len()), (0, 1));
    }

    #[test]
    fn memory_is_found_where_addresses_end() {
        let made = SmallBuilder::new(false, 32, 0, 1);
        let mut area = SmallArea::read(&made.bytes, false).unwrap();
        area.header.address = 8;
        let file = [vec![1; 16], made.bytes.clone()].concat();
        let memory = memory_of(&area, &file, 16);
        assert_eq!(memory.at(8, 4), Some(&made.bytes[..4]));
        assert_eq!(memory.at(7, 4), None);
        area.header.address = u64::MAX;
        let memory = memory_of(&area, &file, 16);
        assert_eq!(memory.at(u64::MAX, 1), Some(&made.bytes[..1]));
        assert_eq!(memory.at(0, u32::MAX), None);
    }
}
