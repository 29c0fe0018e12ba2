// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rust declarations of the C core: `tracer/c/include/lat/lat.h`, compared with it by `tests/layout.rs`.

use crate::Schema;
use core::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU64};

/// `LAT_ENABLE_RECORD`: record the event.
pub(crate) const ENABLE_RECORD: u8 = 1;
/// `LAT_ENABLE_WATCH`: pass the event to its filter and the triggers first.
pub(crate) const ENABLE_WATCH: u8 = 2;
/// `LAT_AREA_EVENT_COUNT`: enable bytes in an area, a power of two.
pub(crate) const AREA_EVENT_COUNT: usize = 32768;
/// `LAT_ID_MARK`: the event of a remark.
pub(crate) const ID_MARK: u32 = 3;

/// `struct lat_i_state`: the rings that the sites of this object write to.
#[repr(C)]
pub struct State {
    /// Control page of ring 0, or of a dummy that is always full.
    pub rings: AtomicPtr<u8>,
    /// 0 for the dummy.
    pub ring_stride: AtomicU64,
    /// Of `struct rseq` from the thread pointer.
    pub rseq_offset: AtomicIsize,
    /// Mask that turns a position into an offset in the ring; no other process writes it.
    pub mask: AtomicU64,
}

/// `struct lat_i_piece`: a part of a payload.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub data: *const u8,
    pub bytes: usize,
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Piece, Schema, State};

    #[link(name = "lateralis_core", kind = "static")]
    unsafe extern "C" {
        #[allow(dead_code, reason = "machines without a fast path leave it to the core")]
        pub(crate) static lat_i_state: State;
        /// `struct lat_i_thread` of the calling thread, which Rust cannot name: its address is used
        /// in assembly only.
        #[allow(dead_code, reason = "as above")]
        pub(crate) static lat_i_thread: u8;
        pub(crate) fn lat_register(schema: *const Schema);
        pub(crate) fn lat_i_emit_words(id: u32, payload_bytes: u32, words: *const u64);
        pub(crate) fn lat_i_emit_pieces(
            id: u32,
            pieces: *const Piece,
            count: u32,
            payload_bytes: usize,
        );
        pub(crate) fn lat_i_look(id: u32, on: u32, pieces: *const Piece, count: u32) -> i32;
        pub(crate) safe fn lat_i_payload_most() -> usize;
        pub(crate) safe fn lat_recording() -> i32;
    }

    // From libc, which the core needs anyway.
    unsafe extern "C" {
        pub(crate) safe fn getpid() -> i32;
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::*;

/// Systems without a port: nothing registers, so no event is ever enabled and no other function is called.
#[cfg(not(target_os = "linux"))]
mod absent {
    use super::{Piece, Schema};

    pub(crate) unsafe fn lat_register(_schema: *const Schema) {}
    pub(crate) unsafe fn lat_i_emit_words(_id: u32, _payload_bytes: u32, _words: *const u64) {}
    pub(crate) unsafe fn lat_i_emit_pieces(
        _id: u32,
        _pieces: *const Piece,
        _count: u32,
        _payload_bytes: usize,
    ) {
    }
    pub(crate) unsafe fn lat_i_look(_id: u32, _on: u32, _pieces: *const Piece, _count: u32) -> i32 {
        0
    }
    pub(crate) fn lat_i_payload_most() -> usize {
        0
    }
    pub(crate) fn lat_recording() -> i32 {
        0
    }
    pub(crate) fn getpid() -> i32 {
        1
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use absent::*;

/// Layout of State and Piece, for the comparison with C.
#[doc(hidden)]
pub const CORE_LAYOUT: [usize; 7] = [
    core::mem::offset_of!(State, rings),
    core::mem::offset_of!(State, ring_stride),
    core::mem::offset_of!(State, rseq_offset),
    core::mem::offset_of!(State, mask),
    size_of::<State>(),
    core::mem::offset_of!(Piece, bytes),
    size_of::<Piece>(),
];

/// The constants above, for the same comparison.
#[doc(hidden)]
pub const CORE_CONSTANTS: [usize; 4] =
    [ENABLE_RECORD as usize, ENABLE_WATCH as usize, AREA_EVENT_COUNT, ID_MARK as usize];
