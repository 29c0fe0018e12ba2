// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Survives a program that truncates its area file while it is mapped here.
//!
//! A read beyond the new end of a mapped file raises SIGBUS. For addresses inside a registered
//! mapping the handler maps a page of zeros there and marks the mapping: reading continues,
//! and the area is treated as damaged. Every other SIGBUS has its usual effect.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::signals;

/// Maximum number of mappings guarded at the same time; others are read unguarded.
const SLOTS: usize = 1024;

struct Slot {
    /// First address; 0 = free. Stored last when a slot is taken (pair: the handler's load).
    start: AtomicUsize,
    bytes: AtomicUsize,
    hit: AtomicBool,
}

static TABLE: [Slot; SLOTS] = [const {
    Slot { start: AtomicUsize::new(0), bytes: AtomicUsize::new(0), hit: AtomicBool::new(false) }
}; SLOTS];
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);
static INSTALL: Once = Once::new();

/// A guarded range of addresses.
#[derive(Debug)]
pub(super) struct Guard {
    slot: Option<usize>,
}

impl Guard {
    /// Guards `bytes` bytes from `start`.
    pub(super) fn new(start: usize, bytes: usize) -> Guard {
        INSTALL.call_once(|| {
            PAGE_BYTES.store(rustix::param::page_size(), Ordering::Relaxed);
            signals::install_with_info(libc::SIGBUS, handle);
        });
        let slot = TABLE.iter().position(|slot| {
            // Claims the slot with an address that contains no memory.
            slot.start.compare_exchange(0, usize::MAX, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        if let Some(index) = slot {
            let slot = &TABLE[index];
            slot.hit.store(false, Ordering::Relaxed);
            slot.bytes.store(bytes, Ordering::Relaxed);
            slot.start.store(start, Ordering::Release);
        }
        Guard { slot }
    }

    /// Whether memory was missing at a read.
    pub(super) fn was_hit(&self) -> bool {
        // Set by the handler on the reading thread itself.
        self.slot.is_some_and(|index| TABLE[index].hit.load(Ordering::Relaxed))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(index) = self.slot {
            TABLE[index].bytes.store(0, Ordering::Relaxed);
            TABLE[index].start.store(0, Ordering::Release);
        }
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t, and SIGBUS sets its address.
    let address = unsafe { (*info).si_addr() } as usize;
    let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
    for slot in &TABLE {
        let start = slot.start.load(Ordering::Acquire);
        if start == 0 || address < start {
            continue;
        }
        if address - start < slot.bytes.load(Ordering::Relaxed) {
            slot.hit.store(true, Ordering::Relaxed);
            let page = address & !(page_bytes - 1);
            // SAFETY: replaces one page of a mapping that this process owns and accesses only
            // through views that allow any content; mmap is one system call and takes no lock.
            let made = unsafe {
                libc::mmap(
                    page as *mut libc::c_void,
                    page_bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
            if made != libc::MAP_FAILED {
                return;
            }
        }
    }
    // Not guarded: the access is repeated and ends the process as usual.
    signals::reset_in_handler(signal);
}
