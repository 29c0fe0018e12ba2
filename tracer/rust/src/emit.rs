// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recording an event: the fast path of this machine, else the slow path of the C core.

#[cfg(all(target_os = "linux", target_arch = "aarch64", target_endian = "little"))]
#[path = "emit/aarch64.rs"]
mod fast;
#[cfg(not(all(
    target_os = "linux",
    any(
        all(target_arch = "x86_64", target_pointer_width = "64"),
        all(target_arch = "aarch64", target_endian = "little")
    )
)))]
#[path = "emit/slow_only.rs"]
mod fast;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
#[path = "emit/x86_64.rs"]
mod fast;

use crate::c_core::{
    ENABLE_RECORD, ENABLE_WATCH, Piece, lat_i_emit_pieces, lat_i_emit_words, lat_i_look,
};
use crate::record::{PIECES_MAX, Record};
use crate::schema::{Schema, UNREGISTERED};
use core::mem::MaybeUninit;

impl Schema {
    /// Records event `index`: its payload of `payload_bytes`, packed into words in memory
    /// order. `on` is the result of [`on`](Schema::on), and not 0.
    ///
    /// `payload_bytes` must be more than `8 * N - 8` and at most `8 * N`; otherwise only its
    /// remainder modulo 8 counts. The bytes after the payload must be 0: they pad the record.
    ///
    /// Context: anywhere. Cost: the clock, about ten instructions, a store for each word.
    #[inline(always)]
    pub fn emit<const N: usize>(
        &'static self,
        on: u8,
        index: u32,
        payload_bytes: u32,
        words: [u64; N],
    ) {
        // Never more than the size of the words, never 8 or more less, so cursor and slack stay valid.
        let slack = (8 * N as u32).wrapping_sub(payload_bytes) % 8;
        // Copied where a call takes the address, so that the words may stay in registers otherwise.
        if on & !ENABLE_RECORD != 0 {
            let copy = words;
            self.emit_specially(on, index, slack, &copy);
        } else if !fast::write(self.event_id(index), u64::from(slack), &words) {
            let copy = words;
            emit_slowly(self.event_id(index), slack, &copy);
        }
    }

    /// Records event `index` with fields of any length. `on` is the result of
    /// [`on`](Schema::on), and not 0.
    ///
    /// Context: anywhere. Cost: about 30 cycles more than [`emit`](Schema::emit), and the copy. Stack:
    /// 600 bytes.
    pub fn emit_record(&'static self, on: u8, index: u32, record: &Record<'_>) {
        let mut pieces = [const { MaybeUninit::uninit() }; PIECES_MAX];
        let count = record.place(&mut pieces);
        let bytes = record.payload_bytes();
        if on & !ENABLE_RECORD != 0 {
            // SAFETY: `place` has filled the first `count` pieces, which point to live memory.
            if !unsafe { self.passes(on, index, pieces.as_ptr().cast(), count) } {
                return;
            }
        }
        let id = u32::from(self.event_id(index));
        // SAFETY: as above; `record`, which owns or borrows that memory, outlives the call.
        unsafe {
            lat_i_emit_pieces(id, pieces.as_ptr().cast(), count as u32, bytes);
        }
    }

    /// Records an event whose schema may have to register, or to which a filter or a trigger applies.
    #[cold]
    #[inline(never)]
    fn emit_specially(&'static self, on: u8, index: u32, slack: u32, words: &[u64]) {
        let bytes = size_of_val(words).saturating_sub(slack as usize);
        let piece = Piece { data: words.as_ptr().cast(), bytes };
        // SAFETY: the piece is not longer than `words`.
        if unsafe { self.passes(on, index, &raw const piece, 1) } {
            emit_slowly(self.event_id(index), slack, words);
        }
    }

    /// Registers if needed, and applies filter and triggers if needed. Returns whether to record the
    /// event.
    ///
    /// # Safety
    ///
    /// The first `count` pieces are initialised and point to readable memory.
    #[cold]
    unsafe fn passes(
        &'static self,
        on: u8,
        index: u32,
        pieces: *const Piece,
        count: usize,
    ) -> bool {
        let on = if on & UNREGISTERED != 0 { self.on_after_registration(index) } else { on };
        if on & ENABLE_WATCH == 0 {
            return on & ENABLE_RECORD != 0;
        }
        let id = u32::from(self.event_id(index));
        // SAFETY: the core accepts any numbers, in any context; the caller guarantees the pieces.
        unsafe { lat_i_look(id, u32::from(on), pieces, count as u32) != 0 }
    }
}

/// The cases that the fast path leaves out: another writer, a full packet, a restart, a thread's first event.
#[cold]
#[inline(never)]
fn emit_slowly(id: u16, slack: u32, words: &[u64]) {
    let payload_bytes = (size_of_val(words) as u32).saturating_sub(slack);
    // SAFETY: payload_bytes is not more than `words` has.
    unsafe { lat_i_emit_words(u32::from(id), payload_bytes, words.as_ptr()) };
}

/// Records an event of the internal schema.
pub(crate) fn emit_internal(id: u32, record: &Record<'_>) {
    let mut pieces = [const { MaybeUninit::uninit() }; PIECES_MAX];
    let count = record.place(&mut pieces);
    // SAFETY: as in Schema::emit_record.
    unsafe { lat_i_emit_pieces(id, pieces.as_ptr().cast(), count as u32, record.payload_bytes()) };
}
