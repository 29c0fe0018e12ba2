// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is mapped where in each process, as events say it in the order of time.

use std::collections::{BTreeMap, HashMap};

/// Processes, and mappings of one, that are remembered.
const SPACES_MAX: usize = 1 << 20;
const MAPPINGS_MAX: usize = 1 << 16;

/// A part of a file in the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub begin: u64,
    /// The first address after it.
    pub end: u64,
    /// Which byte of the file is at its begin.
    pub offset: u64,
    /// The file, by a number of the caller's.
    pub file: u32,
}

impl Mapping {
    /// The byte of the file that is at an address of it.
    #[must_use]
    pub fn offset_of(&self, address: u64) -> u64 {
        self.offset.wrapping_add(address.wrapping_sub(self.begin))
    }
}

/// By process, and in the order of addresses: what is mapped there now.
///
/// Memory is bounded: of more than a million processes, and of more than 65,536 mappings of one, those that
/// come later are not remembered.
#[derive(Debug, Clone, Default)]
pub struct AddressSpaces {
    spaces: HashMap<u32, BTreeMap<u64, Mapping>>,
    /// What processes had before they became another program; where two were at one place, the later.
    former: HashMap<u32, BTreeMap<u64, Mapping>>,
}

impl AddressSpaces {
    /// A process maps a file; what was there before is not any more.
    pub fn map(&mut self, pid: u32, new: Mapping) {
        if new.end <= new.begin
            || (self.spaces.len() >= SPACES_MAX && !self.spaces.contains_key(&pid))
        {
            return;
        }
        insert(self.spaces.entry(pid).or_default(), new, MAPPINGS_MAX);
    }

    /// A process becomes two.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if parent == child || self.spaces.len() >= SPACES_MAX {
            return;
        }
        if let Some(space) = self.spaces.get(&parent).cloned() {
            self.spaces.insert(child, space);
        }
    }

    /// A process becomes another program.
    pub fn exec(&mut self, pid: u32) {
        let Some(space) = self.spaces.remove(&pid) else { return };
        if self.former.len() < SPACES_MAX {
            let former = self.former.entry(pid).or_default();
            space.into_values().for_each(|mapping| insert(former, mapping, MAPPINGS_MAX));
        }
    }

    /// All that a process has, in the order of addresses.
    pub fn all_of(&self, pid: u32) -> impl Iterator<Item = Mapping> + '_ {
        self.spaces.get(&pid).into_iter().flat_map(|space| space.values().copied())
    }

    /// The same with what it had as another program, where nothing else is now.
    #[must_use]
    pub fn ever_of(&self, pid: u32) -> Vec<Mapping> {
        let mut all = self.former.get(&pid).cloned().unwrap_or_default();
        self.all_of(pid).for_each(|mapping| insert(&mut all, mapping, MAPPINGS_MAX));
        all.into_values().collect()
    }

    /// What a process has at an address, or had there as another program.
    #[must_use]
    pub fn ever_at(&self, pid: u32, address: u64) -> Option<Mapping> {
        self.at(pid, address).or_else(|| at(self.former.get(&pid)?, address))
    }

    /// What a process has at an address.
    #[must_use]
    pub fn at(&self, pid: u32, address: u64) -> Option<Mapping> {
        at(self.spaces.get(&pid)?, address)
    }
}

fn at(space: &BTreeMap<u64, Mapping>, address: u64) -> Option<Mapping> {
    let (_, mapping) = space.range(..=address).next_back()?;
    (address < mapping.end).then_some(*mapping)
}

/// What was where the new one is, is not any more. More than `most` are not added.
pub(crate) fn insert(space: &mut BTreeMap<u64, Mapping>, new: Mapping, most: usize) {
    // The previous mapping may overlap it, and even extend beyond it.
    let before = space.range(..new.begin).next_back().map(|(_, before)| *before);
    if let Some(before) = before.filter(|before| before.end > new.begin) {
        space.insert(before.begin, Mapping { end: new.begin, ..before });
        rest(space, &before, new.end, most);
    }
    let covered: Vec<u64> = space.range(new.begin..new.end).map(|(begin, _)| *begin).collect();
    for begin in covered {
        if let Some(of) = space.remove(&begin) {
            rest(space, &of, new.end, most);
        }
    }
    if space.len() < most {
        space.insert(new.begin, new);
    }
}

/// The rest of a mapping after an address.
fn rest(space: &mut BTreeMap<u64, Mapping>, of: &Mapping, from: u64, most: usize) {
    if of.end > from && space.len() < most {
        space.insert(from, Mapping { begin: from, offset: of.offset_of(from), ..*of });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn children_have_what_their_parents_had_until_they_become_another_program() {
        let mut spaces = AddressSpaces::default();
        let mapping = Mapping { begin: 100, end: 200, offset: 4, file: 7 };
        spaces.map(1, mapping);
        spaces.fork(1, 2);
        spaces.exec(1);
        assert_eq!((spaces.at(1, 150), spaces.at(2, 150)), (None, Some(mapping)));
        assert_eq!((spaces.ever_at(1, 150), spaces.ever_of(1)), (Some(mapping), vec![mapping]));
        spaces.map(1, Mapping { begin: 120, end: 130, offset: 0, file: 8 });
        let files: Vec<u32> = spaces.ever_of(1).iter().map(|of| of.file).collect();
        assert_eq!((files, spaces.at(1, 150)), (vec![7, 8, 7], None));
        assert_eq!(mapping.offset_of(150), 54);
        spaces.fork(9, 9);
        assert_eq!(spaces.at(2, 200), None);
    }

    proptest! {
        /// Beside an array with a cell for each address.
        #[test]
        fn the_last_mapping_of_an_address_counts(
            all in prop::collection::vec((0u64..60, 0u64..30, 0u64..9), 0..40),
        ) {
            let mut spaces = AddressSpaces::default();
            let mut cells = [None; 100];
            for (file, (begin, bytes, offset)) in (0u32..).zip(all) {
                let end = begin + bytes;
                spaces.map(1, Mapping { begin, end, offset, file });
                for address in begin..end {
                    cells[address as usize] = Some((file, offset + address - begin));
                }
            }
            for (address, cell) in (0u64..).zip(cells) {
                let found = spaces.at(1, address).map(|of| (of.file, of.offset_of(address)));
                prop_assert_eq!(found, cell);
            }
        }
    }
}
