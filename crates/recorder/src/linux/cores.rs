// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compares the counters of the cores that this process may run on: with a thread on each of two cores,
//! which communicate through a word of memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::clocks::{native_kind, now_ticks};
use crate::core_offsets::{Bounds, CoreOffset};

/// Number of exchanges with a core; the fastest of them count.
const EXCHANGES: u32 = 200;
/// Time limit for a core, and for all: if the cores are busy there are fewer exchanges.
const CORE_TIME: Duration = Duration::from_millis(10);
const ALL_TIME: Duration = Duration::from_millis(20);
/// Number of polls, of about 50 ns, for the other core's write before the waiting thread yields. The other
/// thread may itself be waiting for that core: without yielding, each of the two would take a whole time
/// slice of some milliseconds from the program that is being started.
const LOOKS: u32 = 1000;

/// Shared memory of two cores: one asks with a number, the other answers
/// with its counter.
#[derive(Default)]
struct Table {
    /// Number of the request; `u64::MAX` ends the exchanges.
    question: AtomicU64,
    /// Number of the answered request.
    answer: AtomicU64,
    told: AtomicU64,
}

/// The offsets of this machine.
static FOUND: OnceLock<Vec<CoreOffset>> = OnceLock::new();

/// The thread that measures them.
static COMPARING: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// Starts the comparison while a recording is set up: on busy cores it takes long, and
/// the recorded events do not depend on it.
pub(super) fn begin() {
    let Ok(mut comparing) = COMPARING.lock() else { return };
    if comparing.is_some() || FOUND.get().is_some() {
        return;
    }
    let find = || {
        FOUND.get_or_init(offsets);
    };
    // Without a thread no comparison is possible.
    *comparing = std::thread::Builder::new().name("core-offsets".to_owned()).spawn(find).ok();
}

/// Waits until the threads of [`begin`] have ended. Context: before the kernel's events are recorded; the end
/// of a thread of this process would appear in them as that of an unknown thread.
pub(super) fn wait() {
    let thread = COMPARING.lock().ok().and_then(|mut comparing| comparing.take());
    let _ = thread.map(JoinHandle::join);
}

/// The offsets, or nothing if they are not known yet.
pub(super) fn so_far() -> Vec<CoreOffset> {
    FOUND.get().cloned().unwrap_or_default()
}

/// Offset of each core's counter from the first one's. Empty with one core only,
/// or if threads may not choose their CPU. Cost: 20 ms at most.
fn offsets() -> Vec<CoreOffset> {
    let cpus = allowed();
    let until = Instant::now() + ALL_TIME;
    let Some((&reference, others)) = cpus.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for &cpu in others {
        if Instant::now() >= until {
            break;
        }
        let offset = compare(reference, cpu).and_then(|bounds| bounds.offset());
        found.extend(offset.map(|(offset_ticks, error_ticks)| CoreOffset {
            cpu,
            reference_cpu: reference,
            offset_ticks,
            error_ticks,
        }));
    }
    found
}

/// Waits between two polls for the other core's write.
fn pause(looks: &mut u32) {
    *looks += 1;
    if *looks < LOOKS {
        std::hint::spin_loop();
    } else {
        // Returns at once if no other thread waits for this core.
        std::thread::yield_now();
    }
}

/// Reads the counter, ordered after all preceding and before all following accesses.
fn counter() -> u64 {
    barrier();
    let ticks = now_ticks(native_kind());
    barrier();
    ticks
}

/// Reading a counter is not a memory access: memory fences do not order it.
fn barrier() {
    // SAFETY: waits for the preceding instructions and has no other effect.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("lfence", options(nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
}

/// CPUs of the process's affinity.
fn allowed() -> Vec<u32> {
    // SAFETY: a set of bits may be all zeros; the call writes at most its size.
    let (result, set) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), set)
    };
    // SAFETY: the numbers are below the size of the set.
    let has = |cpu: &u32| result == 0 && unsafe { libc::CPU_ISSET(*cpu as usize, &set) };
    (0..libc::CPU_SETSIZE as u32).filter(has).collect()
}

fn run_on(cpu: u32) -> bool {
    // SAFETY: a set of bits may be all zeros, and CPUs come from `allowed`, below its size. Only
    // the calling thread is moved.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

fn compare(reference: u32, cpu: u32) -> Option<Bounds> {
    let table = Table::default();
    let until = Instant::now() + CORE_TIME;
    std::thread::scope(|scope| {
        let builder = || std::thread::Builder::new().name("core-offsets".to_owned());
        let answering = builder().spawn_scoped(scope, || answer(&table, cpu, until)).ok()?;
        let asking = builder().spawn_scoped(scope, || ask(&table, reference, until));
        let bounds = match asking {
            Ok(asking) => asking.join().ok().flatten(),
            Err(_) => None,
        };
        // Pair: the load in `answer`, which then ends.
        table.question.store(u64::MAX, Ordering::Release);
        answering.join().ok()?.then_some(bounds).flatten()
    })
}

fn ask(table: &Table, cpu: u32, until: Instant) -> Option<Bounds> {
    if !run_on(cpu) {
        return None;
    }
    let mut bounds = Bounds::default();
    for number in 1..=u64::from(EXCHANGES) {
        let asked = counter();
        // Pair: the load in `answer`, which reads its counter after it has seen this.
        table.question.store(number, Ordering::SeqCst);
        let mut looks = 0;
        // Pair: the store in `answer`.
        while table.answer.load(Ordering::SeqCst) != number {
            if Instant::now() >= until {
                return Some(bounds);
            }
            pause(&mut looks);
        }
        let answered = counter();
        bounds.exchange(asked, table.told.load(Ordering::SeqCst), answered);
    }
    Some(bounds)
}

/// Whether it ran on its CPU.
fn answer(table: &Table, cpu: u32, until: Instant) -> bool {
    let is_there = run_on(cpu);
    let (mut last, mut looks) = (0, 0);
    while is_there && Instant::now() < until {
        // Pair: the store in `ask`.
        let number = table.question.load(Ordering::SeqCst);
        if number == u64::MAX {
            break;
        }
        if number != last {
            (last, looks) = (number, 0);
            table.told.store(counter(), Ordering::SeqCst);
            // Pair: the load in `ask`, which reads `told` after it has seen this.
            table.answer.store(number, Ordering::SeqCst);
        }
        pause(&mut looks);
    }
    is_there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_one_machine_are_compared_within_what_is_said() {
        let found = offsets();
        if found.is_empty() {
            eprintln!("SKIPPED: there is one core only, or others need them");
        }
        for core in found {
            assert_ne!(core.cpu, core.reference_cpu);
            // The kernel uses counters as its clock only if they agree; others are far apart.
            assert!(core.offset_ticks.unsigned_abs() <= core.error_ticks + 100_000, "{core:?}");
        }
    }
}
