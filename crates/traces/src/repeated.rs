// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that several recordings of one program contain: that of a killed recorder, and the one made
//! from the program's memory afterwards. Each record is read once.
//!
//! ```text
//! ring packet 7   [ records ............................ ]
//! first           [ part ][ part ]                          dropped: the second has more
//! second          [ all ............................... ]
//! ```
//!
//! Packets contain the origin of their records: area, ring, packet, bytes. Each ring packet is read from
//! the recording that has most of it, of equal ones the first. If loss counters count from the creation
//! of the ring, losses counted in one recording are not counted again in the other.

use std::collections::HashMap;

use lateralis_model::{Repeated, RingPlace, StreamIndex};

use crate::joined::Placed;

/// A packet of one of the sources.
#[derive(Debug, Clone, Copy)]
struct Copy {
    place: RingPlace,
    source: usize,
    stream: StreamIndex,
    number: u64,
}

impl Copy {
    fn ring(&self) -> (u64, u32) {
        (self.place.area, self.place.ring)
    }

    fn is_in(&self, begin: u64, end: u64) -> bool {
        (begin..=end).contains(&self.place.begin_bytes) && self.place.end_bytes <= end
    }
}

/// Result of the search.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of dropped packets: another source has their records.
    pub dropped: u64,
    /// Number of packets of which another source has a part of the records, while both have others.
    pub overlapping: u64,
}

/// Drops packets that another source contains as well.
///
/// Cost: a pass over the packets; if two sources belong to one area, their packets are sorted.
pub fn drop_repeated(sources: &mut [Placed]) -> Found {
    if sources.len() < 2 {
        return Found::default();
    }
    // Source of each ring; `None`: several.
    let mut rings: HashMap<(u64, u32), Option<usize>> = HashMap::new();
    for (index, (_, source)) in sources.iter().enumerate() {
        source.ring_places(&mut |_, _, place| {
            let of = rings.entry((place.area, place.ring)).or_insert(Some(index));
            if *of != Some(index) {
                *of = None;
            }
        });
    }
    if rings.values().all(Option::is_some) {
        return Found::default();
    }
    let mut copies = Vec::new();
    for (index, (_, source)) in sources.iter().enumerate() {
        source.ring_places(&mut |stream, number, place| {
            if rings.get(&(place.area, place.ring)) == Some(&None) {
                copies.push(Copy { place: *place, source: index, stream, number });
            }
        });
    }
    let mut repeated = vec![Repeated::default(); sources.len()];
    let found = choose(&mut copies, &mut repeated);
    for ((_, source), mut repeated) in sources.iter_mut().zip(repeated) {
        if repeated != Repeated::default() {
            repeated.packets.sort_unstable();
            repeated.lost_before.sort_unstable();
            repeated.lost_before.dedup_by_key(|one| one.0);
            source.drop_repeated(&repeated);
        }
    }
    found
}

/// Decides which packets are dropped, by source.
fn choose(copies: &mut [Copy], repeated: &mut [Repeated]) -> Found {
    let mut found = Found::default();
    copies.sort_unstable_by_key(|copy| {
        (copy.ring(), copy.place.sequence, copy.source, copy.place.begin_bytes, copy.number)
    });
    for ring in copies.chunk_by(|a, b| a.ring() == b.ring()) {
        // Losses counted so far, if they count from the creation of the ring.
        let mut told = [0u64; 4];
        // Whether the last packet of each source was read.
        let mut last_was_read = vec![false; repeated.len()];
        for same in ring.chunk_by(|a, b| a.place.sequence == b.place.sequence) {
            let of_sources = same.chunk_by(|a, b| a.source == b.source);
            let reach = |copies: &&[Copy]| {
                let begin = copies.iter().map(|copy| copy.place.begin_bytes).min().unwrap_or(0);
                let end = copies.iter().map(|copy| copy.place.end_bytes).max().unwrap_or(0);
                (begin, end)
            };
            let length = |copies: &&[Copy]| {
                let (begin, end) = reach(copies);
                end.saturating_sub(begin)
            };
            let mut chosen: Option<&[Copy]> = None;
            for one in of_sources {
                if chosen.is_none_or(|best| length(&one) > length(&best)) {
                    chosen = Some(one);
                }
            }
            let Some(chosen) = chosen else { continue };
            let (source, (begin, end)) = (chosen[0].source, reach(&chosen));
            for copy in same {
                let own = &mut repeated[copy.source];
                if copy.source != source {
                    if copy.is_in(begin, end) {
                        own.packets.push((copy.stream, copy.number));
                        found.dropped += 1;
                        last_was_read[copy.source] = false;
                        continue;
                    }
                    let overlaps = copy.place.begin_bytes < end && copy.place.end_bytes > begin;
                    found.overlapping += u64::from(overlaps);
                }
                if let Some(lost) = copy.place.lost {
                    if !last_was_read[copy.source] && told != [0; 4] {
                        own.lost_before.push(((copy.stream, copy.number), told));
                    }
                    told.iter_mut().zip(lost).for_each(|(told, lost)| *told = lost.max(*told));
                }
                last_was_read[copy.source] = true;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(source: usize, number: u64, sequence: u32, bytes: (u64, u64), lost: u64) -> Copy {
        let (begin_bytes, end_bytes) = bytes;
        let lost = Some([lost, 0, 0, 0]);
        let place = RingPlace { area: 1, ring: 0, sequence, begin_bytes, end_bytes, lost };
        Copy { place, source, stream: StreamIndex(0), number }
    }

    #[test]
    fn the_recording_with_most_of_a_ring_packet_is_read() {
        // Two parts in the first, everything in the second; a complete packet in both.
        let mut copies = [
            copy(0, 0, 6, (128, 4000), 5),
            copy(0, 1, 7, (128, 400), 5),
            copy(0, 2, 7, (400, 800), 5),
            copy(1, 0, 6, (128, 4000), 5),
            copy(1, 1, 7, (128, 4000), 9),
        ];
        let mut repeated = vec![Repeated::default(); 2];
        let found = choose(&mut copies, &mut repeated);
        assert_eq!(found, Found { dropped: 3, overlapping: 0 });
        assert_eq!(repeated[0].packets, [(StreamIndex(0), 1), (StreamIndex(0), 2)]);
        assert_eq!(repeated[1].packets, [(StreamIndex(0), 0)]);
        // The second counts on from the losses of the first.
        assert_eq!(repeated[1].lost_before, [((StreamIndex(0), 1), [5, 0, 0, 0])]);
    }

    #[test]
    fn where_nothing_is_in_both_only_losses_are_related() {
        let mut copies = [copy(0, 0, 1, (128, 400), 7), copy(1, 0, 2, (128, 400), 9)];
        let mut repeated = vec![Repeated::default(); 2];
        assert_eq!(choose(&mut copies, &mut repeated), Found::default());
        assert!(repeated.iter().all(|one| one.packets.is_empty()));
        assert_eq!(repeated[1].lost_before, [((StreamIndex(0), 0), [7, 0, 0, 0])]);
    }

    #[test]
    fn records_that_neither_has_alone_stay() {
        let mut copies = [copy(0, 0, 1, (128, 400), 0), copy(1, 0, 1, (300, 500), 0)];
        let mut repeated = vec![Repeated::default(); 2];
        let found = choose(&mut copies, &mut repeated);
        assert_eq!(found, Found { dropped: 0, overlapping: 1 });
        assert!(repeated.iter().all(|one| one.packets.is_empty()));
    }
}
