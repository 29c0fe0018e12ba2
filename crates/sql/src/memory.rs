// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much memory the whole program has, and where that ends.
//!
//! The engine counts what it sorts, groups and joins, and what that needs beyond its limit
//! goes to disk or is refused. Nobody counts what a statement makes of values: long texts,
//! lists, results of functions. So the allocator counts everything, at two marks:
//!
//! * beyond the first a query is ended, and the shell goes on;
//! * beyond the second, which only a single huge value reaches before the first is seen, the
//!   program ends, in words and with exit code 2. An allocator may not unwind, so nothing
//!   gentler can be done in time.
//!
//! The counts of threads are gathered in steps, so both marks are exact to a megabyte.

#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::time::Duration;

/// What a query may have beside its limit: decoded packets, results on their way, and what
/// was found out about traces.
const BESIDE_BYTES: usize = 1 << 30;
/// From the first mark to the second.
const BETWEEN_BYTES: usize = 1 << 30;
/// A thread tells when its count has changed by so much.
const TOLD_BYTES: isize = 64 << 10;
/// From this size on an allocation is looked at before it is made.
const LARGE_BYTES: usize = 1 << 20;

// None of these orders anything else: they are counts and marks, read for themselves.
static HELD: AtomicIsize = AtomicIsize::new(0);
static FIRST_MARK: AtomicUsize = AtomicUsize::new(usize::MAX);
static SECOND_MARK: AtomicUsize = AtomicUsize::new(usize::MAX);
static IS_ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What this thread has not told yet.
    static UNTOLD: Cell<isize> = const { Cell::new(0) };
    /// Whether this thread ends the program.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// The allocator of the system, counted.
pub struct Counted;

// SAFETY: all calls go to the system's allocator with the arguments they came with, and its
// answers go back as they are. Counting allocates nothing and does not unwind.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: what the caller promises is what is needed.
        told(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: what the caller promises is what is needed.
        told(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: what the caller promises is what is needed.
        unsafe { System.dealloc(memory, layout) };
        count(-(layout.size() as isize));
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size.saturating_sub(layout.size()));
        // SAFETY: what the caller promises is what is needed.
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
    // A thread that ends has nothing left to tell with.
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

/// Looks whether there is room for an allocation before it is made: afterwards the system
/// may have ended the program without a word.
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
        // Another thread says it.
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
    // Not by the handle of the library: its lock may be held by whoever asked for memory.
    let _ = rustix::io::write(io::stderr(), &text[..length]);
    std::process::exit(2);
}

/// Bytes that the program holds, where this allocator is the one of the program.
pub fn held_bytes() -> usize {
    usize::try_from(HELD.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Sets the marks for queries that have this limit, above what is held now.
pub fn limit(query_bytes: usize) {
    let first = held_bytes().saturating_add(query_bytes).saturating_add(BESIDE_BYTES);
    FIRST_MARK.store(first, Ordering::Relaxed);
    SECOND_MARK.store(first.saturating_add(BETWEEN_BYTES), Ordering::Relaxed);
}

/// Whether more is held than a query may have.
pub fn is_over() -> bool {
    held_bytes() > FIRST_MARK.load(Ordering::Relaxed)
}
