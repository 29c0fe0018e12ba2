// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records whose length is known only at run time: strings, bytes, sequences.

use crate::c_core::Piece;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr;

/// A schema allows 16 fields.
const PUTS_MAX: usize = 16;
/// A put adds at most one piece of scratch and one of external data; a NUL follows a string.
pub(crate) const PIECES_MAX: usize = 2 * PUTS_MAX + 1;
/// A put needs at most 7 bytes of padding and 8 of number, or 3 of padding, 4 of count and 4 of
/// padding again.
const SCRATCH_BYTES: usize = 16 * PUTS_MAX;

/// The fields of one record, in order, each put at its natural alignment [ring-abi §3].
///
/// Numbers and padding are gathered in a small scratch buffer; strings, bytes and sequences are borrowed
/// and copied once, straight into the ring, by [`Schema::emit_record`](crate::Schema::emit_record).
/// A record of more than 16 fields is counted as too big.
///
/// Context: anywhere. Cost: a few cycles per field. Stack: about 800 bytes, not cleared.
pub struct Record<'a> {
    /// Payload so far; [`TOO_BIG`] once something did not fit.
    bytes: usize,
    piece_count: usize,
    scratch_used: usize,
    /// `data` is null for the next `bytes` of scratch, because the record may move.
    pieces: [MaybeUninit<Piece>; PIECES_MAX],
    scratch: [MaybeUninit<u8>; SCRATCH_BYTES],
    borrowed: PhantomData<&'a [u8]>,
}

/// Longer than any packet, and small enough for additions without overflow.
const TOO_BIG: usize = 1 << 30;

macro_rules! numbers {
    ($($number:ident $bytes:literal $doc:literal;)*) => {$(
        #[doc = concat!("Puts ", $doc, ".")]
        #[inline]
        pub fn $number(&mut self, value: $number) {
            self.align($bytes);
            self.put_scratch(&value.to_ne_bytes());
        }
    )*};
}

macro_rules! elements {
    ($($element:ident $slice:ident $array:ident;)*) => {$(
        /// Appends a sequence: a count of 32 bits, then the elements.
        #[inline]
        pub fn $slice(&mut self, values: &'a [$element]) {
            // A longer one does not fit in a packet, and is too big in any case.
            self.u32(u32::try_from(values.len()).unwrap_or(u32::MAX));
            self.$array(values);
        }

        /// Appends elements without a count: an array whose length the schema defines.
        #[inline]
        pub fn $array(&mut self, values: &'a [$element]) {
            self.align(size_of::<$element>());
            self.put_foreign(values.as_ptr().cast(), size_of_val(values));
        }
    )*};
}

impl<'a> Record<'a> {
    /// An empty record.
    #[inline]
    pub const fn new() -> Record<'a> {
        Record {
            bytes: 0,
            piece_count: 0,
            scratch_used: 0,
            pieces: [const { MaybeUninit::uninit() }; PIECES_MAX],
            scratch: [const { MaybeUninit::uninit() }; SCRATCH_BYTES],
            borrowed: PhantomData,
        }
    }

    numbers! {
        u8 1 "a number of 8 bits, a truth value or a small enum";
        u16 2 "a number of 16 bits";
        u32 4 "a number of 32 bits, or the bits of an `f32`";
        u64 8 "a number of 64 bits, or the bits of an `f64`";
    }

    /// Appends a string. It ends at its first NUL, if it has one: a NUL marks the end in the record.
    #[inline]
    pub fn str(&mut self, text: &'a str) {
        let text = text.as_bytes();
        let end = if text.contains(&0) {
            text.iter().position(|byte| *byte == 0).unwrap_or(text.len())
        } else {
            text.len()
        };
        self.put_foreign(text.as_ptr(), end);
        self.u8(0);
    }

    /// Appends a string of one character.
    #[inline]
    pub fn char(&mut self, value: char) {
        let mut utf8 = [0; 4];
        let length = if value == '\0' { 0 } else { value.encode_utf8(&mut utf8).len() };
        if let Some(utf8) = utf8.get(..length) {
            self.put_scratch(utf8);
        }
        self.u8(0);
    }

    /// Appends bytes: a count of 32 bits, then the bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &'a [u8]) {
        self.slice_u8(bytes);
    }

    elements! {
        u8 slice_u8 array_u8;
        u16 slice_u16 array_u16;
        u32 slice_u32 array_u32;
        u64 slice_u64 array_u64;
        i8 slice_i8 array_i8;
        i16 slice_i16 array_i16;
        i32 slice_i32 array_i32;
        i64 slice_i64 array_i64;
        f32 slice_f32 array_f32;
        f64 slice_f64 array_f64;
        bool slice_bool array_bool;
    }

    /// Bytes of payload so far.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.bytes
    }

    /// Pads to a multiple of `alignment`, a power of two of at most 8.
    #[inline]
    fn align(&mut self, alignment: usize) {
        let padding = self.bytes.wrapping_neg() & (alignment - 1);
        if let Some(padding) = [0; 7].get(..padding) {
            self.put_scratch(padding);
        }
    }

    #[inline]
    fn put_scratch(&mut self, data: &[u8]) {
        let Some(place) = self.scratch.get_mut(self.scratch_used..self.scratch_used + data.len())
        else {
            self.bytes = TOO_BIG;
            return;
        };
        // SAFETY: `place` has as many bytes as `data` and lies in `self`, which `data` does not.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), place.as_mut_ptr().cast(), data.len()) };
        self.scratch_used += data.len();
        if let Some(last) = self.pieces.get_mut(self.piece_count.wrapping_sub(1)) {
            // SAFETY: the pieces below piece_count are initialised.
            let last = unsafe { last.assume_init_mut() };
            if last.data.is_null() {
                last.bytes += data.len();
                self.add(data.len());
                return;
            }
        }
        self.put_foreign(ptr::null(), data.len());
    }

    #[inline]
    fn put_foreign(&mut self, data: *const u8, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let Some(piece) = self.pieces.get_mut(self.piece_count) else {
            self.bytes = TOO_BIG;
            return;
        };
        piece.write(Piece { data, bytes });
        self.piece_count += 1;
        self.add(bytes);
    }

    #[inline]
    fn add(&mut self, bytes: usize) {
        // TOO_BIG is a multiple of every alignment and is never changed.
        self.bytes = if bytes < TOO_BIG - self.bytes { self.bytes + bytes } else { TOO_BIG };
    }

    /// The pieces with their addresses, valid until `self` moves, and their number.
    pub(crate) fn place(&self, placed: &mut [MaybeUninit<Piece>; PIECES_MAX]) -> usize {
        let mut scratch = self.scratch.as_ptr().cast::<u8>();
        for (from, to) in self.pieces.iter().zip(placed.iter_mut()).take(self.piece_count) {
            // SAFETY: the pieces below piece_count are initialised.
            let mut piece = unsafe { from.assume_init() };
            if piece.data.is_null() {
                piece.data = scratch;
                // SAFETY: the pieces of scratch follow each other and end at scratch_used.
                scratch = unsafe { scratch.add(piece.bytes) };
            }
            to.write(piece);
        }
        self.piece_count
    }
}

impl Default for Record<'_> {
    fn default() -> Self {
        Record::new()
    }
}
