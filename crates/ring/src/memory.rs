// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checked access to memory that another process changes at will.
//!
//! All accesses are atomic loads and stores of aligned words, so a race with the writer is never
//! undefined behaviour here, only an old or a new value. Bulk copies go word by word with relaxed
//! loads, which is as fast as the memory on current machines.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

/// An access that would leave the mapped memory, or is misaligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutOfArea {
    /// First byte asked for, from the start of the area.
    pub offset: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes mapped.
    pub area_bytes: u64,
}

impl fmt::Display for OutOfArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Cannot access area: offset={:#x}, bytes={}, area-bytes={}",
            self.offset, self.bytes, self.area_bytes
        )
    }
}

impl core::error::Error for OutOfArea {}

/// How a word is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// No ordering.
    Relaxed,
    /// Later reads see what was written before the matching release.
    Acquire,
}

impl From<Load> for Ordering {
    fn from(load: Load) -> Ordering {
        match load {
            Load::Relaxed => Ordering::Relaxed,
            Load::Acquire => Ordering::Acquire,
        }
    }
}

/// What a ring reader needs of memory. Implemented by [`AreaView`] and, in the model of the
/// ring, by the model checker's atomics.
pub trait RingMemory {
    /// Loads the 64-bit word at `offset`, a multiple of 8.
    fn load(&self, offset: u64, load: Load) -> Result<u64, OutOfArea>;
    /// Stores a 64-bit word; what was read before is read before (release).
    fn store_release(&self, offset: u64, value: u64) -> Result<(), OutOfArea>;
    /// Copies `to.len()` bytes from `offset`, a multiple of 8, with relaxed loads.
    fn copy(&self, offset: u64, to: &mut [u8]) -> Result<(), OutOfArea>;
    /// Orders earlier relaxed loads before later loads.
    fn fence_acquire(&self);
    /// Whether words have the other byte order than this machine: [`RingMemory::load`] has
    /// turned them already, bytes from [`RingMemory::copy`] are as in memory.
    fn is_swapped(&self) -> bool {
        false
    }
}

/// A mapped area, or any stretch of memory that may hold one.
///
/// `Copy`: a view is an address and a length. It never owns the mapping.
#[derive(Clone, Copy)]
pub struct AreaView<'m> {
    base: NonNull<u8>,
    bytes: u64,
    writable: bool,
    swapped: bool,
    memory: PhantomData<&'m [AtomicU64]>,
}

// SAFETY: a view is used only for atomic accesses, which any thread may do; the lifetime keeps the
// memory mapped (obligation of the caller of `from_raw`).
unsafe impl Send for AreaView<'_> {}
// SAFETY: as above; no method hands out a reference to the memory.
unsafe impl Sync for AreaView<'_> {}

impl fmt::Debug for AreaView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AreaView").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl<'m> AreaView<'m> {
    /// A view over mapped memory.
    ///
    /// # Safety
    /// `base` is aligned to 8 and valid for reads of `bytes` bytes during `'m`, and for writes if
    /// `writable`. The memory may change at any time, but in this process only through atomic
    /// operations. Reading must not fault: a caller that maps a file that other processes can cut
    /// must handle that (`crates/recorder` does).
    pub unsafe fn from_raw(base: NonNull<u8>, bytes: usize, writable: bool) -> AreaView<'m> {
        debug_assert!(base.addr().get().is_multiple_of(8), "an area is aligned to 8 bytes");
        AreaView { base, bytes: bytes as u64, writable, swapped: false, memory: PhantomData }
    }

    /// A writable view over words of this process; for areas built in memory.
    pub fn from_words(words: &'m [AtomicU64]) -> AreaView<'m> {
        let base = NonNull::from(words).cast::<u8>();
        // SAFETY: a slice of atomics is aligned to 8 and valid for shared reads and writes.
        unsafe { AreaView::from_raw(base, size_of_val(words), true) }
    }

    /// A read-only view over bytes, `None` unless they are aligned to 8 bytes.
    pub fn from_bytes(bytes: &'m [u8]) -> Option<AreaView<'m>> {
        let base = NonNull::from(bytes).cast::<u8>();
        if !base.addr().get().is_multiple_of(8) {
            return None;
        }
        // SAFETY: aligned as just checked, valid for reads during 'm, never written because
        // `writable` is false. Atomic loads of at most a word from read-only memory are allowed
        // (std::sync::atomic, "Atomic accesses to read-only memory").
        Some(unsafe { AreaView::from_raw(base, bytes.len(), false) })
    }

    /// The same memory, with words turned into this machine's byte order on loading.
    #[must_use]
    pub fn with_swapped(self, swapped: bool) -> AreaView<'m> {
        AreaView { swapped, ..self }
    }

    /// Bytes that are mapped.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn place(&self, offset: u64, bytes: u64, align: u64) -> Result<*mut u8, OutOfArea> {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if !fits || !offset.is_multiple_of(align) {
            return Err(OutOfArea { offset, bytes, area_bytes: self.bytes });
        }
        // SAFETY: offset + bytes is within the memory that `from_raw` was promised.
        Ok(unsafe { self.base.as_ptr().add(offset as usize) })
    }

    fn place_for_store(&self, offset: u64, bytes: u64) -> Result<*mut u8, OutOfArea> {
        if !self.writable || self.swapped {
            return Err(OutOfArea { offset, bytes, area_bytes: 0 });
        }
        self.place(offset, bytes, bytes)
    }

    /// Loads a byte.
    pub fn load_u8(&self, offset: u64) -> Result<u8, OutOfArea> {
        let place = self.place(offset, 1, 1)?;
        // SAFETY: in bounds; only atomic accesses in this process.
        Ok(unsafe { AtomicU8::from_ptr(place) }.load(Ordering::Relaxed))
    }

    /// Loads a 32-bit word.
    pub fn load_u32(&self, offset: u64, load: Load) -> Result<u32, OutOfArea> {
        let place = self.place(offset, 4, 4)?;
        // SAFETY: in bounds and aligned; only atomic accesses in this process.
        let word = unsafe { AtomicU32::from_ptr(place.cast()) }.load(load.into());
        Ok(if self.swapped { word.swap_bytes() } else { word })
    }

    /// Loads a 64-bit word.
    pub fn load_u64(&self, offset: u64, load: Load) -> Result<u64, OutOfArea> {
        let place = self.place(offset, 8, 8)?;
        // SAFETY: in bounds and aligned; only atomic accesses in this process.
        let word = unsafe { AtomicU64::from_ptr(place.cast()) }.load(load.into());
        Ok(if self.swapped { word.swap_bytes() } else { word })
    }

    /// Stores a byte, relaxed.
    pub fn store_u8(&self, offset: u64, value: u8) -> Result<(), OutOfArea> {
        let place = self.place_for_store(offset, 1)?;
        // SAFETY: in bounds and writable; only atomic accesses in this process.
        unsafe { AtomicU8::from_ptr(place) }.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Stores a 32-bit word, release.
    pub fn store_u32(&self, offset: u64, value: u32) -> Result<(), OutOfArea> {
        let place = self.place_for_store(offset, 4)?;
        // SAFETY: in bounds, aligned and writable; only atomic accesses in this process.
        unsafe { AtomicU32::from_ptr(place.cast()) }.store(value, Ordering::Release);
        Ok(())
    }

    /// Stores a 64-bit word, release.
    pub fn store_u64(&self, offset: u64, value: u64) -> Result<(), OutOfArea> {
        let place = self.place_for_store(offset, 8)?;
        // SAFETY: in bounds, aligned and writable; only atomic accesses in this process.
        unsafe { AtomicU64::from_ptr(place.cast()) }.store(value, Ordering::Release);
        Ok(())
    }

    /// Changes a 32-bit word from `from` to `to` if it is `from`; says whether it did.
    pub fn exchange_u32(&self, offset: u64, from: u32, to: u32) -> Result<bool, OutOfArea> {
        let place = self.place_for_store(offset, 4)?;
        // SAFETY: in bounds, aligned and writable; only atomic accesses in this process.
        let word = unsafe { AtomicU32::from_ptr(place.cast()) };
        Ok(word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok())
    }

    /// The same for a 64-bit word.
    pub fn exchange_u64(&self, offset: u64, from: u64, to: u64) -> Result<bool, OutOfArea> {
        let place = self.place_for_store(offset, 8)?;
        // SAFETY: in bounds, aligned and writable; only atomic accesses in this process.
        let word = unsafe { AtomicU64::from_ptr(place.cast()) };
        Ok(word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok())
    }

    /// Copies bytes out, any offset and length, relaxed.
    /// Cost: one load per aligned word, one per byte before the first and after the last.
    pub fn copy_out(&self, offset: u64, to: &mut [u8]) -> Result<(), OutOfArea> {
        self.place(offset, to.len() as u64, 1)?;
        let head = (offset.wrapping_neg() & 7).min(to.len() as u64) as usize;
        let (first, rest) = to.split_at_mut(head);
        for (index, byte) in first.iter_mut().enumerate() {
            *byte = self.load_u8(offset + index as u64)?;
        }
        let aligned = offset + head as u64;
        let word_count = rest.len() / 8;
        let (middle, last) = rest.split_at_mut(word_count * 8);
        if word_count > 0 {
            let place = self.place(aligned, middle.len() as u64, 8)?.cast::<u64>();
            for (index, word) in middle.chunks_exact_mut(8).enumerate() {
                // SAFETY: `place` is aligned and in bounds for `word_count` words, as just
                // checked; only atomic accesses in this process.
                let atomic = unsafe { AtomicU64::from_ptr(place.add(index)) };
                word.copy_from_slice(&atomic.load(Ordering::Relaxed).to_ne_bytes());
            }
        }
        let behind = aligned + word_count as u64 * 8;
        for (index, byte) in last.iter_mut().enumerate() {
            *byte = self.load_u8(behind + index as u64)?;
        }
        Ok(())
    }

    /// Copies bytes in, byte by byte, relaxed; for patterns and identifiers, not for data.
    pub fn copy_in(&self, offset: u64, from: &[u8]) -> Result<(), OutOfArea> {
        self.place(offset, from.len() as u64, 1)?;
        for (index, byte) in from.iter().enumerate() {
            self.store_u8(offset + index as u64, *byte)?;
        }
        Ok(())
    }
}

impl RingMemory for AreaView<'_> {
    fn load(&self, offset: u64, load: Load) -> Result<u64, OutOfArea> {
        self.load_u64(offset, load)
    }

    fn store_release(&self, offset: u64, value: u64) -> Result<(), OutOfArea> {
        self.store_u64(offset, value)
    }

    fn copy(&self, offset: u64, to: &mut [u8]) -> Result<(), OutOfArea> {
        self.copy_out(offset, to)
    }

    fn fence_acquire(&self) {
        fence(Ordering::Acquire);
    }

    fn is_swapped(&self) -> bool {
        self.swapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count as u64).map(|i| AtomicU64::new(i * 0x0101_0101_0101_0101)).collect()
    }

    #[test]
    fn copies_any_stretch() {
        let words = words(6);
        let view = AreaView::from_words(&words);
        let all: Vec<u8> =
            words.iter().flat_map(|w| w.load(Ordering::Relaxed).to_ne_bytes()).collect();
        for start in 0..=48usize {
            for end in start..=48 {
                let mut copy = vec![0xee; end - start];
                view.copy_out(start as u64, &mut copy).unwrap();
                assert_eq!(copy, all[start..end], "{start}..{end}");
            }
        }
    }

    #[test]
    fn refuses_what_is_outside_or_misaligned() {
        let words = words(2);
        let view = AreaView::from_words(&words);
        assert!(view.load_u64(16, Load::Relaxed).is_err());
        assert!(view.load_u64(12, Load::Relaxed).is_err());
        assert!(view.load_u64(4, Load::Relaxed).is_err());
        assert!(view.load_u32(u64::MAX - 3, Load::Relaxed).is_err());
        assert!(view.copy_out(u64::MAX, &mut [0; 2]).is_err());
        assert!(view.copy_in(15, &[1, 2]).is_err());
        assert!(view.copy_out(16, &mut []).is_ok());
    }

    #[test]
    fn a_view_of_bytes_cannot_be_written_and_turns_words_when_asked() {
        let words = [1u64.to_ne_bytes(), 2u64.to_ne_bytes()];
        let view = AreaView::from_bytes(words.as_flattened());
        let Some(view) = view else { return assert!(!words.as_ptr().addr().is_multiple_of(8)) };
        assert!(view.store_u64(0, 9).is_err());
        assert_eq!(view.with_swapped(true).load_u64(8, Load::Acquire), Ok(2u64.swap_bytes()));
    }
}
