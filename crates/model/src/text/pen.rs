// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Appending to a vector in pieces of a fixed size.
//!
//! To copy the few bytes of a literal or a number costs less than to find out how
//! many they are and to ask for room for just these. So every piece is written
//! whole, 2 to 64 bytes, and the next one begins where the wanted bytes end.

use std::ptr;

/// Bytes of a literal that are copied in any case: most literals are no longer.
const BEGIN: usize = 64;

/// Room that is asked for at least, so that it is not asked for often.
const LEAST: usize = 256;

/// A text that is copied completely, including zeros after its end.
#[derive(Debug)]
pub(super) struct Literal {
    /// Its first bytes.
    begin: [u8; BEGIN],
    /// Its length.
    bytes: usize,
    /// What does not fit.
    rest: Box<[u8]>,
}

impl Literal {
    pub fn new(text: &[u8]) -> Self {
        let (first, rest) = text.split_at(text.len().min(BEGIN));
        let mut begin = [0; BEGIN];
        begin[..first.len()].copy_from_slice(first);
        Self { begin, bytes: text.len(), rest: rest.into() }
    }
}

/// Writes after the end of a vector.
///
/// What was written belongs to the vector from [`Pen::finish`] on.
pub(super) struct Pen<'o> {
    out: &'o mut Vec<u8>,
    /// Position of the next byte. All bytes of the vector's memory before it are initialised.
    at: *mut u8,
    /// The last position in that memory with `BEGIN` bytes after it. `at` may be further on, but
    /// never beyond the memory.
    last: *mut u8,
}

impl<'o> Pen<'o> {
    #[inline(always)]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        if out.capacity() - out.len() < BEGIN {
            out.reserve(LEAST);
        }
        let (at, last) = ends(out);
        Self { out, at, last }
    }

    /// Gives the vector what was written.
    #[inline(always)]
    pub fn finish(self) {
        commit(self.out, self.at);
    }

    /// Appends with the means of the vector.
    #[inline(always)]
    pub fn with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        commit(self.out, self.at);
        write(self.out);
        if self.out.capacity() - self.out.len() < BEGIN {
            self.out.reserve(LEAST);
        }
        (self.at, self.last) = ends(self.out);
    }

    /// Lends out another pen for the same vector: for functions that are not part
    /// of the caller, so that this one can stay in registers.
    #[inline(always)]
    pub fn lend(&mut self, write: impl FnOnce(&mut Pen<'_>)) {
        self.with(|out| {
            let mut pen = Pen::new(out);
            write(&mut pen);
            pen.finish();
        });
    }

    /// Appends any number of bytes.
    #[inline(always)]
    pub fn slice(&mut self, bytes: &[u8]) {
        self.with(|out| out.extend_from_slice(bytes));
    }

    /// Makes room for `BEGIN` bytes after the written ones.
    #[inline(always)]
    fn room(&mut self) {
        if self.at > self.last {
            // Pointers go in and out by value: so they can stay in registers.
            (self.at, self.last) = grow(self.out, self.at);
        }
    }

    /// Appends the first `used` of these bytes. Writes all of them.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, bytes: &[u8; N], used: usize) {
        const { assert!(N <= BEGIN) }
        self.room();
        // SAFETY: the source has N bytes; `room` left at least N from `at` on in the
        // memory of the vector, which nothing else borrows. At most those N are then
        // passed over, all of them initialised.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, N);
            self.at = self.at.add(used.min(N));
        }
    }

    /// Appends all of these bytes.
    #[inline(always)]
    pub fn all<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.put(bytes, N);
    }

    #[inline(always)]
    pub fn literal(&mut self, literal: &Literal) {
        self.room();
        // SAFETY: as in `put`.
        unsafe { ptr::copy_nonoverlapping(literal.begin.as_ptr(), self.at, BEGIN) }
        if literal.bytes <= BEGIN {
            // SAFETY: as in `put`.
            unsafe { self.at = self.at.add(literal.bytes) }
        } else {
            // SAFETY: as in `put`.
            unsafe { self.at = self.at.add(BEGIN) }
            self.slice(&literal.rest);
        }
    }
}

/// End of the bytes of a vector, and the last position with `BEGIN` bytes of memory after it. There
/// must be that many.
#[inline(always)]
fn ends(out: &mut Vec<u8>) -> (*mut u8, *mut u8) {
    let spare = out.spare_capacity_mut();
    let last = spare.len() - BEGIN;
    (spare.as_mut_ptr().cast(), spare[last..].as_mut_ptr().cast())
}

/// Sets the length of the vector so that it ends at `at`.
#[inline(always)]
fn commit(out: &mut Vec<u8>, at: *mut u8) {
    let length = at.addr() - out.as_ptr().addr();
    debug_assert!(length <= out.capacity());
    // SAFETY: the bytes before `at` are initialised memory of the vector.
    unsafe { out.set_len(length) }
}

#[cold]
#[inline(never)]
fn grow(out: &mut Vec<u8>, at: *mut u8) -> (*mut u8, *mut u8) {
    commit(out, at);
    out.reserve(LEAST);
    ends(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_pieces_are_appended_whatever_the_room() {
        let text: Vec<u8> = (0..100).collect();
        for length in 0..text.len() {
            let literal = Literal::new(&text[..length]);
            for room in [0, 1, 63, 64, 65, 128, 200] {
                let mut out = Vec::with_capacity(room + 1);
                out.push(7);
                let mut pen = Pen::new(&mut out);
                pen.literal(&literal);
                pen.put(&[1, 2, 3, 4, 5, 6, 7, 8], 3);
                pen.with(|out| out.extend_from_slice(&[9; 300]));
                pen.lend(|pen| pen.all(&[4; 16]));
                pen.put(&[5; 2], 2);
                pen.literal(&literal);
                pen.finish();
                let parts = [&[7][..], &text[..length], &[1, 2, 3], &[9; 300], &[4; 16], &[5; 2]];
                assert_eq!(out, [&parts.concat(), &text[..length]].concat());
            }
        }
    }

    #[test]
    fn what_is_not_finished_is_not_there() {
        let mut out = vec![1, 2];
        Pen::new(&mut out).all(&[3; 32]);
        assert_eq!(out, [1, 2]);
    }
}
