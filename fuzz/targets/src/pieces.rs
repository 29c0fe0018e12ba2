// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One input as several: a trace is metadata and streams, a directory is files.

/// Separates two pieces; unlikely inside one.
pub const MARK: &[u8] = b"\n=8<=\n";

/// The pieces of an input, with the marks taken out.
pub fn split(mut input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut more = true;
    std::iter::from_fn(move || {
        let at = input.windows(MARK.len()).position(|window| window == MARK);
        let piece = &input[..at.unwrap_or(input.len())];
        let was_more = std::mem::replace(&mut more, at.is_some());
        input = at.map_or(&[], |at| &input[at + MARK.len()..]);
        was_more.then_some(piece)
    })
}

/// The input that has these pieces.
pub fn join<P: AsRef<[u8]>>(pieces: &[P]) -> Vec<u8> {
    let pieces: Vec<&[u8]> = pieces.iter().map(AsRef::as_ref).collect();
    pieces.join(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_joined_is_split_again() {
        for pieces in [&[""][..], &["a"], &["a", "", "b"], &["", ""]] {
            let again: Vec<_> = split(&join(pieces)).map(<[u8]>::to_vec).collect();
            assert_eq!(again, pieces.iter().map(|p| p.as_bytes().to_vec()).collect::<Vec<_>>());
        }
    }
}
