// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mutations of good inputs, the same on every machine and in every run.

/// A small generator of numbers (xorshift64*); quality matters little here, being
/// the same everywhere does.
pub struct Numbers(u64);

impl Numbers {
    /// Starts a sequence; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// The next number below `end`, or 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16;
        (number as usize).checked_rem(end).unwrap_or(0)
    }
}

/// A copy of `input` with one to eight faults of the kinds that real damage and
/// attackers make: bits, bytes of special value, cuts, repeats, pieces of another
/// input.
pub fn mutate(input: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=numbers.below(8) {
        if bytes.is_empty() {
            bytes.push(numbers.below(256) as u8);
        }
        let at = numbers.below(bytes.len());
        let end = at + numbers.below((bytes.len() - at).min(64) + 1);
        match numbers.below(7) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = [0, 0xff, 0x7f, 0x80, b'"', b'{', b'\\', b'\n'][numbers.below(8)],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let from = numbers.below(other.len());
                let to = from + numbers.below((other.len() - from).min(64) + 1);
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            5 => bytes[at..end].iter_mut().for_each(|byte| *byte = 0xff),
            _ if numbers.below(8) == 0 => bytes.truncate(at),
            _ => bytes[at] = numbers.below(256) as u8,
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_mutations_and_most_differ_from_the_input() {
        let input = b"subsystem a { event B };".as_slice();
        let run = |seed| mutate(input, b"other", &mut Numbers::new(seed));
        assert_eq!(run(7), run(7));
        assert!((0..100).filter(|&seed| run(seed) != input).count() > 80);
    }
}
