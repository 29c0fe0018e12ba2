// SPDX-License-Identifier: Apache-2.0 OR MIT
//! "Did you mean …?": the nearest known name by edit distance.

/// Longer names are not compared: the cost is the product of both lengths.
const NAME_CHARS_MAX: usize = 64;
/// Later candidates are not looked at, so that an error costs a bounded time.
const CANDIDATES_MAX: usize = 2000;

/// The candidate nearest to `wrong`, if it is near enough to be a slip: at most
/// one change in three letters, and never all of them. Case does not count.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong: Vec<char> = wrong.to_lowercase().chars().take(NAME_CHARS_MAX + 1).collect();
    if wrong.len() > NAME_CHARS_MAX {
        return None;
    }
    let limit = (wrong.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.into_iter().take(CANDIDATES_MAX) {
        let letters: Vec<char> =
            candidate.to_lowercase().chars().take(NAME_CHARS_MAX + 1).collect();
        if letters.len() > NAME_CHARS_MAX || letters.len().abs_diff(wrong.len()) > limit {
            continue;
        }
        let distance = edit_distance(&wrong, &letters);
        let is_near = distance <= limit && distance < wrong.len().max(letters.len());
        if is_near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance: insertions, deletions, substitutions and
/// swaps of neighbours cost one each.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            let is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if is_swap {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let types = ["u8", "u16", "u32", "u64", "string", "bytes"];
        assert_eq!(nearest("u23", types), Some("u32"));
        assert_eq!(nearest("strng", types), Some("string"));
        assert_eq!(nearest("String", types), Some("string"));
        assert_eq!(nearest("float", types), None);
        assert_eq!(nearest("", types), None);
    }
}
