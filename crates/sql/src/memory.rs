// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits the memory of the whole program.
//!
//! The engine accounts for sorting, grouping and joining; beyond its limit they use the disk or are
//! rejected. It does not account for values made by a statement: long texts, lists, results of functions.
//! So the allocator counts everything, with two limits:
//!
//! * above the first, a query is ended, and the shell continues;
//! * above the second, which only a single huge value can reach before the first is noticed, the program
//!   exits with a message and exit code 2. An allocator may not unwind, so there is no gentler way in
//!   time.
//!
//! The counts of threads are collected in steps, so both limits are accurate to a megabyte.

#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::time::Duration;

/// Memory of a query besides its limit: decoded packets, results in transit, and cached information about
/// traces.
const BESIDE_BYTES: usize = 1 << 30;
/// Distance from the first limit to the second.
const BETWEEN_BYTES: usize = 1 << 30;
/// Change of a thread's count at which it is added to the total.
const TOLD_BYTES: isize = 64 << 10;
/// Size from which an allocation is checked before it is made.
const LARGE_BYTES: usize = 1 << 20;

// No ordering with other memory is needed: these are independent counts and limits.
static HELD: AtomicIsize = AtomicIsize::new(0);
static FIRST_MARK: AtomicUsize = AtomicUsize::new(usize::MAX);
static SECOND_MARK: AtomicUsize = AtomicUsize::new(usize::MAX);
static IS_ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Count of this thread that has not been added to the total yet.
    static UNTOLD: Cell<isize> = const { Cell::new(0) };
    /// Whether this thread ends the program.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// The system allocator, with counting.
pub struct Counted;

// SAFETY: all calls are forwarded to the system allocator with their arguments unchanged, and so are its
// results. Counting allocates nothing and does not unwind.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller upholds the same contract.
        told(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller upholds the same contract.
        told(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(memory, layout) };
        count(-(layout.size() as isize));
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size.saturating_sub(layout.size()));
        // SAFETY: the caller upholds the same contract.
        let moved = unsafe { System.realloc(memory, layout, size) };
        if !moved.is_null() {
            count(size as isize - layout.size() as isize);
        }
        moved
    }
}

fn told(memory: *mut u8, bytes: usize) -> *mut u8 {
    if !memory.is_null() {
        count(bytes as isize);
    }
    memory
}

fn count(bytes: isize) {
    // The thread-local count is gone when a thread is ending.
    let _ = UNTOLD.try_with(|untold| {
        let sum = untold.get() + bytes;
        if sum.abs() < TOLD_BYTES {
            untold.set(sum);
            return;
        }
        untold.set(0);
        let held = HELD.fetch_add(sum, Ordering::Relaxed) + sum;
        if sum > 0 && usize::try_from(held).unwrap_or(0) > SECOND_MARK.load(Ordering::Relaxed) {
            end(0);
        }
    });
}

/// Checks whether there is room for an allocation before it is made: afterwards the system may kill the
/// program without a message.
fn check(bytes: usize) {
    if bytes >= LARGE_BYTES
        && held_bytes().saturating_add(bytes) > SECOND_MARK.load(Ordering::Relaxed)
    {
        end(bytes);
    }
}

/// Ends the program. Nothing here allocates much, waits for a lock or unwinds.
#[cold]
fn end(wanted: usize) {
    if ENDS.try_with(Cell::get).unwrap_or(true) {
        return;
    }
    if IS_ENDING.swap(true, Ordering::Relaxed) {
        // Another thread prints the message.
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    let _ = ENDS.try_with(|ends| ends.set(true));
    let mut text = [0_u8; 256];
    let room = text.len();
    let mut rest = &mut text[..];
    let held = (held_bytes() >> 20) + (wanted >> 20);
    let _ = writeln!(
        rest,
        "error: out of memory: {held} MiB for values of this query: ask for shorter texts and \
         lists, or give more with --memory"
    );
    let length = room - rest.len();
    // Not through the standard library's handle: the thread that allocates may hold its lock.
    let _ = rustix::io::write(io::stderr(), &text[..length]);
    std::process::exit(2);
}

/// Bytes allocated by the program, if it uses this allocator.
pub fn held_bytes() -> usize {
    usize::try_from(HELD.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Sets the limits for queries with this limit, relative to the current memory.
pub fn limit(query_bytes: usize) {
    let first = held_bytes().saturating_add(query_bytes).saturating_add(BESIDE_BYTES);
    FIRST_MARK.store(first, Ordering::Relaxed);
    SECOND_MARK.store(first.saturating_add(BETWEEN_BYTES), Ordering::Relaxed);
}

/// Whether the memory exceeds the limit of a query.
pub fn is_over() -> bool {
    held_bytes() > FIRST_MARK.load(Ordering::Relaxed)
}
