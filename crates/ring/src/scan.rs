// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finding areas in a core dump, a RAM image or any other file.

use crate::abi;

/// A place that begins like an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Offset of the first magic word.
    pub offset: u64,
    /// Written by a machine of the other byte order.
    pub swapped: bool,
}

/// Looks for the pair of magic words at multiples of 8 bytes, in both byte orders.
///
/// An area in a dump is contiguous only where the dump keeps virtual memory together, as core
/// dumps do; in a RAM image its pages are where the kernel put them, so only an area of the
/// first megabyte's tables that happens to be contiguous is complete. What follows the header
/// is checked by [`crate::AreaHeader::read`] and [`crate::Geometry::of`].
///
/// Cost: one comparison per 8 bytes. Bounded: yields at most one place per 16 bytes.
pub fn scan(bytes: &[u8]) -> impl Iterator<Item = Found> + '_ {
    let first = abi::AREA_MAGIC.to_ne_bytes();
    let first_swapped = abi::AREA_MAGIC.swap_bytes().to_ne_bytes();
    let second = (!abi::AREA_MAGIC).to_ne_bytes();
    let second_swapped = (!abi::AREA_MAGIC).swap_bytes().to_ne_bytes();
    bytes.chunks_exact(8).enumerate().filter_map(move |(index, word)| {
        let swapped = match word {
            word if word == first => false,
            word if word == first_swapped => true,
            _ => return None,
        };
        let at = index * 8;
        let next = bytes.get(at + 8..at + 16)?;
        let expected = if swapped { second_swapped } else { second };
        (next == expected).then_some(Found { offset: at as u64, swapped })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_pair_in_both_byte_orders_and_nothing_else() {
        let mut image = vec![0u8; 4096];
        let mut put = |at: usize, word: u64| {
            image[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        };
        put(64, abi::AREA_MAGIC);
        put(72, !abi::AREA_MAGIC);
        put(256, abi::AREA_MAGIC.swap_bytes());
        put(264, !abi::AREA_MAGIC.swap_bytes());
        put(512, abi::AREA_MAGIC); // alone: an immediate in program text
        put(1024, abi::AREA_MAGIC);
        put(1032, !abi::AREA_MAGIC.swap_bytes());
        put(4088, abi::AREA_MAGIC); // cut
        let found: Vec<Found> = scan(&image).collect();
        assert_eq!(
            found,
            [Found { offset: 64, swapped: false }, Found { offset: 256, swapped: true }]
        );
    }
}
