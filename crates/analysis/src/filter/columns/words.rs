// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of values, sixty-four results to a word.
//!
//! The loops are plain ones that the compiler vectorises. Every x86-64 CPU has vectors of two integers
//! but no comparison of them; those of the last ten years have vectors of four integers, with one. So
//! each loop is compiled twice, and selected at run time.

/// Events in a block; their values stay in the L1 cache.
pub(super) const BLOCK: usize = 1024;

/// A bit for each event of a block: bit `n % 64` of word `n / 64`.
pub(super) type Words = [u64; BLOCK / 64];

/// No event.
pub(super) const NONE: Words = [0; BLOCK / 64];

/// The first `len` events.
pub(super) fn first(len: usize) -> Words {
    std::array::from_fn(|word| match len.saturating_sub(64 * word) {
        left @ 0..64 => (1 << left) - 1,
        _ => u64::MAX,
    })
}

/// Whether no event is set.
pub(super) fn is_none(words: &Words) -> bool {
    words.iter().fold(0, |all, word| all | word) == 0
}

/// Set events, in order.
pub(super) fn each(words: &Words) -> impl Iterator<Item = usize> {
    (0..).step_by(64).zip(words).flat_map(|(base, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(base + bit)
        })
    })
}

/// Keeps the events for which `holds` returns true. Its result is not branched on, as that would be
/// mispredicted.
#[inline(always)]
pub(super) fn retain(words: &mut Words, mut holds: impl FnMut(usize) -> bool) {
    for (base, word) in (0..).step_by(64).zip(words) {
        let (mut left, mut kept) = (*word, 0);
        while left != 0 {
            let at = left.trailing_zeros();
            left &= left - 1;
            kept |= u64::from(holds(base + at as usize)) << at;
        }
        *word = kept;
    }
}

/// Replaces `yes` by those events of `care` whose values satisfy `holds`.
///
/// Cost: about one instruction per value for a comparison, none for words without a relevant event.
#[inline(always)]
pub(super) fn test<T: Copy>(
    values: &[T],
    care: &Words,
    yes: &mut Words,
    holds: impl Fn(T) -> bool,
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has the instructions, as checked above.
        return unsafe { test_wide(values, care, yes, holds) };
    }
    test_any(values, care, yes, holds);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn test_wide<T: Copy>(values: &[T], care: &Words, yes: &mut Words, holds: impl Fn(T) -> bool) {
    test_any(values, care, yes, holds);
}

#[inline(always)]
fn test_any<T: Copy>(values: &[T], care: &Words, yes: &mut Words, holds: impl Fn(T) -> bool) {
    *yes = NONE;
    let (whole, rest) = values.as_chunks::<64>();
    for ((yes, care), values) in yes.iter_mut().zip(care).zip(whole) {
        if *care != 0 {
            *yes = word(|at| holds(values[at])) & care;
        }
    }
    if let (Some(yes), Some(care)) = (yes.get_mut(whole.len()), care.get(whole.len())) {
        *yes = short(rest.iter().map(|value| holds(*value))) & care;
    }
}

/// Like `test`, with the values of two slices of equal length.
#[inline(always)]
pub(super) fn test_pairs<T: Copy, U: Copy>(
    (left, right): (&[T], &[U]),
    care: &Words,
    yes: &mut Words,
    holds: impl Fn(T, U) -> bool,
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has the instructions, as checked above.
        return unsafe { test_pairs_wide((left, right), care, yes, holds) };
    }
    test_pairs_any((left, right), care, yes, holds);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn test_pairs_wide<T: Copy, U: Copy>(
    values: (&[T], &[U]),
    care: &Words,
    yes: &mut Words,
    holds: impl Fn(T, U) -> bool,
) {
    test_pairs_any(values, care, yes, holds);
}

#[inline(always)]
fn test_pairs_any<T: Copy, U: Copy>(
    (left, right): (&[T], &[U]),
    care: &Words,
    yes: &mut Words,
    holds: impl Fn(T, U) -> bool,
) {
    *yes = NONE;
    let ((lefts, left), (rights, right)) = (left.as_chunks::<64>(), right.as_chunks::<64>());
    for (((yes, care), left), right) in yes.iter_mut().zip(care).zip(lefts).zip(rights) {
        if *care != 0 {
            *yes = word(|at| holds(left[at], right[at])) & care;
        }
    }
    if let (Some(yes), Some(care)) = (yes.get_mut(lefts.len()), care.get(lefts.len())) {
        *yes = short(left.iter().zip(right).map(|(left, right)| holds(*left, *right))) & care;
    }
}

/// Replaces each value by the result of a function.
#[inline(always)]
pub(super) fn change(values: &mut [f64], of: impl Fn(f64) -> f64) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has the instructions, as checked above.
        return unsafe { change_wide(values, of) };
    }
    change_any(values, of);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn change_wide(values: &mut [f64], of: impl Fn(f64) -> f64) {
    change_any(values, of);
}

#[inline(always)]
fn change_any(values: &mut [f64], of: impl Fn(f64) -> f64) {
    values.iter_mut().for_each(|value| *value = of(*value));
}

/// Replaces each value by the result of a function of it and another value.
#[inline(always)]
pub(super) fn change_both(values: &mut [f64], others: &[f64], of: impl Fn(f64, f64) -> f64) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has the instructions, as checked above.
        return unsafe { change_both_wide(values, others, of) };
    }
    change_both_any(values, others, of);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn change_both_wide(values: &mut [f64], others: &[f64], of: impl Fn(f64, f64) -> f64) {
    change_both_any(values, others, of);
}

#[inline(always)]
fn change_both_any(values: &mut [f64], others: &[f64], of: impl Fn(f64, f64) -> f64) {
    values.iter_mut().zip(others).for_each(|(value, other)| *value = of(*value, *other));
}

/// Writes the result of a function of each value.
#[inline(always)]
pub(super) fn copy<T: Copy>(values: &[T], to: &mut [f64], of: impl Fn(T) -> f64) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has the instructions, as checked above.
        return unsafe { copy_wide(values, to, of) };
    }
    copy_any(values, to, of);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn copy_wide<T: Copy>(values: &[T], to: &mut [f64], of: impl Fn(T) -> f64) {
    copy_any(values, to, of);
}

#[inline(always)]
fn copy_any<T: Copy>(values: &[T], to: &mut [f64], of: impl Fn(T) -> f64) {
    to.iter_mut().zip(values).for_each(|(to, value)| *to = of(*value));
}

/// Bit by bit, so that vectors of results are combined with vectors of bits.
const BITS: [u64; 64] = {
    let (mut bits, mut at) = ([0; 64], 0);
    while at < 64 {
        bits[at] = 1 << at;
        at += 1;
    }
    bits
};

#[inline(always)]
fn word(holds: impl Fn(usize) -> bool) -> u64 {
    let mut word = 0;
    for (at, bit) in BITS.iter().enumerate() {
        word |= if holds(at) { *bit } else { 0 };
    }
    word
}

/// For less than 64 values.
#[inline(always)]
fn short(answers: impl Iterator<Item = bool>) -> u64 {
    answers.enumerate().fold(0, |word, (at, holds)| word | u64::from(holds) << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_values() {
        for len in [0, 1, 63, 64, 65, 700, 1023, 1024] {
            let values: Vec<u64> = (0..len as u64).map(|n| n * n % 97).collect();
            let others: Vec<i64> = (0..len as i64).map(|n| n * 31 % 89).collect();
            let every_third = std::array::from_fn(|word| 0x9249_2492_4924_9249 << (word % 3));
            for care in [NONE, first(len), every_third, [u64::MAX; BLOCK / 64]] {
                let of = |holds: &dyn Fn(usize) -> bool| -> Vec<usize> {
                    (0..len)
                        .filter(|at| care[at / 64] >> (at % 64) & 1 == 1 && holds(*at))
                        .collect()
                };
                let (mut any, mut best) = ([7; BLOCK / 64], [7; BLOCK / 64]);
                test_any(&values, &care, &mut any, |value| value > 40);
                test(&values, &care, &mut best, |value| value > 40);
                assert_eq!(each(&any).collect::<Vec<_>>(), of(&|at| values[at] > 40), "{len}");
                assert_eq!(any, best);
                let pairs = (values.as_slice(), others.as_slice());
                test_pairs_any(pairs, &care, &mut any, |l, r| l as i64 > r);
                test_pairs(pairs, &care, &mut best, |l, r| l as i64 > r);
                let expected = of(&|at| values[at] as i64 > others[at]);
                assert_eq!(each(&any).collect::<Vec<_>>(), expected, "{len}");
                assert_eq!(any, best);
                retain(&mut best, |at| at % 2 == 0);
                let even: Vec<usize> = expected.into_iter().filter(|at| at % 2 == 0).collect();
                assert_eq!(each(&best).collect::<Vec<_>>(), even);
            }
            assert_eq!(is_none(&first(len)), len == 0);
            assert_eq!(each(&first(len)).count(), len);
        }
    }
}
