// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the clocks of this machine, and determines the frequency of its tick clock.

use std::fs::File;
use std::os::fd::FromRawFd;
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use lateralis_ring::ClockKind;

use crate::clock::{ClockSample, FrequencySource};

/// The clock used by tracers on this kind of machine.
pub(super) fn native_kind() -> ClockKind {
    if cfg!(target_arch = "x86_64") {
        ClockKind::X86Tsc
    } else if cfg!(target_arch = "aarch64") {
        ClockKind::Aarch64Cntvct
    } else {
        ClockKind::MonotonicNs
    }
}

/// Through the C library, as programs do: a preloaded library that changes the date of a program
/// affects the recorder as well.
fn clock_ns(id: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives during the call. The clocks used here always exist.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// `lat_clock_kind` of [`native_kind`].
pub(super) fn native_word() -> u32 {
    let is_native = |word: &u32| ClockKind::from_word(*word) == Some(native_kind());
    (1..=3).find(is_native).unwrap_or_default()
}

/// Id of this boot, which identifies all its counters.
pub(super) fn boot_uuid() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits = text.trim().replace('-', "");
    u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32).map(u128::to_be_bytes)
}

/// UTC now, nanoseconds since 1970.
pub(super) fn utc_ns() -> i64 {
    clock_ns(libc::CLOCK_REALTIME)
}

#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: every x86-64 has rdtsc, and Linux permits it by default.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reads a register that Linux lets programs read.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC) as u64
}

/// The clock's time now.
pub(super) fn now_ticks(kind: ClockKind) -> u64 {
    if kind == native_kind() {
        counter()
    } else {
        // A foreign clock can be used only for recovery, not for recording.
        clock_ns(libc::CLOCK_MONOTONIC) as u64
    }
}

/// Reads tick clock and wall clocks together: the closest of ten tries.
/// Cost: some microseconds.
pub(super) fn sample(kind: ClockKind) -> ClockSample {
    let once = || {
        let before = now_ticks(kind);
        let realtime_ns = clock_ns(libc::CLOCK_REALTIME);
        let after = now_ticks(kind);
        let monotonic_ns = clock_ns(libc::CLOCK_MONOTONIC);
        let boottime_ns = clock_ns(libc::CLOCK_BOOTTIME);
        let monotonic_raw_ns = clock_ns(libc::CLOCK_MONOTONIC_RAW);
        let all_ticks = now_ticks(kind).saturating_sub(before);
        let window_ticks = after.saturating_sub(before);
        let ticks = before + window_ticks / 2;
        let sample = ClockSample {
            ticks,
            realtime_ns,
            monotonic_raw_ns,
            monotonic_ns,
            boottime_ns,
            window_ticks,
        };
        (all_ticks, sample)
    };
    let mut best = once();
    for _ in 0..9 {
        let next = once();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// `CLOCK_MONOTONIC` in nanoseconds and the tick clock at the same time: the closest of ten
/// tries. Cost: some microseconds.
pub(super) fn monotonic_and_ticks(kind: ClockKind) -> (u64, u64) {
    let (ns, ticks, _) = closest(libc::CLOCK_MONOTONIC, kind);
    (ns, ticks)
}

/// Like [`monotonic_and_ticks`] for `CLOCK_MONOTONIC_RAW`, whose rate is never adjusted, with the error
/// bound in ticks.
pub(super) fn raw_and_ticks(kind: ClockKind) -> (u64, u64, u64) {
    closest(libc::CLOCK_MONOTONIC_RAW, kind)
}

fn closest(id: libc::clockid_t, kind: ClockKind) -> (u64, u64, u64) {
    let once = || {
        let before = now_ticks(kind);
        let ns = clock_ns(id);
        let window = now_ticks(kind).saturating_sub(before);
        (ns as u64, before + window / 2, window.div_ceil(2))
    };
    let tries = std::iter::repeat_with(once).take(10);
    tries.min_by_key(|(.., window)| *window).unwrap_or_default()
}

/// Frequency of [`native_kind`], constant while the machine runs.
static NATIVE_FREQUENCY: OnceLock<(u64, FrequencySource)> = OnceLock::new();

/// The thread that determines it.
static COUNTING: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// Clock readings at the start of the first recording of this process.
static BEGUN: OnceLock<ClockSample> = OnceLock::new();

/// Starts to determine the frequency of [`native_kind`] in a separate thread, while a recording is set
/// up.
pub(super) fn begin_frequency() {
    if NATIVE_FREQUENCY.get().is_some() {
        return;
    }
    BEGUN.get_or_init(|| sample(native_kind()));
    let find = || {
        frequency(native_kind());
    };
    // Without a thread it is determined on demand.
    let thread = std::thread::Builder::new().name("clock-frequency".to_owned()).spawn(find).ok();
    if let Ok(mut counting) = COUNTING.lock() {
        *counting = thread;
    }
}

/// Waits until the thread of [`begin_frequency`] has ended. Context: before the kernel's events are recorded;
/// the end of a thread of this process would appear in them as that of an unknown thread.
pub(super) fn wait_for_frequency() {
    let thread = COUNTING.lock().ok().and_then(|mut counting| counting.take());
    let _ = thread.map(JoinHandle::join);
}

/// Ticks per second, and the source of the value.
/// Cost: microseconds; up to 10 ms if ticks have to be counted, once.
pub(super) fn frequency(kind: ClockKind) -> (u64, FrequencySource) {
    if kind == native_kind() {
        return *NATIVE_FREQUENCY.get_or_init(|| find_frequency(kind));
    }
    find_frequency(kind)
}

/// Whether the frequency of [`native_kind`] is already known.
pub(super) fn is_frequency_known() -> bool {
    NATIVE_FREQUENCY.get().is_some()
}

/// A first estimate of it while the thread of [`begin_frequency`] is running; `None` if it is known.
/// Cost: 1 ms, less the time since the first recording was started.
pub(super) fn frequency_so_far(kind: ClockKind) -> Option<(u64, FrequencySource)> {
    if kind != native_kind() || is_frequency_known() {
        return None;
    }
    let first = *BEGUN.get_or_init(|| sample(kind));
    Some((calibrate_from(&first, kind, FIRST_CALIBRATION), FrequencySource::Calibrated))
}

fn find_frequency(kind: ClockKind) -> (u64, FrequencySource) {
    match kind {
        ClockKind::MonotonicNs => (1_000_000_000, FrequencySource::Defined),
        _ if kind != native_kind() => (1_000_000_000, FrequencySource::Calibrated),
        #[cfg(target_arch = "aarch64")]
        ClockKind::Aarch64Cntvct => {
            let frequency_hz: u64;
            // SAFETY: reads a register that Linux lets programs read.
            unsafe {
                core::arch::asm!("mrs {}, cntfrq_el0", out(reg) frequency_hz, options(nomem, nostack))
            };
            (frequency_hz.max(1), FrequencySource::Defined)
        }
        _ => perf_page_frequency()
            .map(|hz| (hz, FrequencySource::PerfPage))
            .or_else(|| cpuid_frequency().map(|hz| (hz, FrequencySource::Cpuid)))
            .unwrap_or_else(|| (calibrate(kind, CALIBRATION), FrequencySource::Calibrated)),
    }
}

/// The kernel's factors from ticks to nanoseconds, in the page of a perf event that counts
/// nothing [perf_event_open(2), "MMAP layout"].
fn perf_page_frequency() -> Option<u64> {
    const ATTRIBUTE_BYTES: usize = 112;
    const TYPE_SOFTWARE: u32 = 1;
    const COUNT_DUMMY: u64 = 9;
    // disabled, exclude_kernel, exclude_hv
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
    let mut attributes = [0u64; ATTRIBUTE_BYTES / 8];
    let first = [TYPE_SOFTWARE.to_ne_bytes(), (ATTRIBUTE_BYTES as u32).to_ne_bytes()];
    attributes[0] = u64::from_ne_bytes(first.as_flattened().try_into().ok()?);
    attributes[1] = COUNT_DUMMY;
    attributes[5] = FLAGS;
    let (this_process, any_cpu, no_group, close_on_exec) = (0, -1, -1, 8);
    // SAFETY: the attributes have their stated size and live during the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            this_process,
            any_cpu,
            no_group,
            close_on_exec,
        )
    };
    let descriptor = i32::try_from(descriptor).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the descriptor was just created and has no other owner.
    let event = unsafe { File::from_raw_fd(descriptor) };
    let page_bytes = rustix::param::page_size();
    // SAFETY: a fresh address; one page of the event's buffer, read-only.
    let page = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            page_bytes,
            rustix::mm::ProtFlags::READ,
            rustix::mm::MapFlags::SHARED,
            &event,
            0,
        )
        .ok()?
    };
    let page_start = page.cast::<u8>();
    // SAFETY: the page is mapped and longer than the structure; each field is aligned.
    let (capabilities, shift, multiplier) = unsafe {
        (
            page_start.add(40).cast::<u64>().read_volatile(),
            page_start.add(50).cast::<u16>().read_volatile(),
            page_start.add(52).cast::<u32>().read_volatile(),
        )
    };
    // SAFETY: mapped above, not used any more.
    let _ = unsafe { rustix::mm::munmap(page, page_bytes) };
    let has_user_time = capabilities & 1 << 3 != 0;
    if !has_user_time || multiplier == 0 || shift > 63 {
        return None;
    }
    let hz = (1_000_000_000u128 << shift).div_ceil(u128::from(multiplier));
    u64::try_from(hz).ok().filter(|hz| (1_000_000..100_000_000_000).contains(hz))
}

#[cfg(target_arch = "x86_64")]
fn cpuid_frequency() -> Option<u64> {
    use core::arch::x86_64::__cpuid;
    let plausible = |hz: u64| (1_000_000..100_000_000_000).contains(&hz).then_some(hz);
    let highest = __cpuid(0).eax;
    let is_guest = __cpuid(1).ecx & 1 << 31 != 0;
    if is_guest && __cpuid(0x4000_0000).eax >= 0x4000_0010 {
        // Kilohertz, a convention of hypervisors.
        let khz = u64::from(__cpuid(0x4000_0010).eax);
        if let Some(hz) = plausible(khz * 1000) {
            return Some(hz);
        }
    }
    if highest >= 0x15 {
        let leaf = __cpuid(0x15);
        let (denominator, numerator, crystal_hz) = (leaf.eax, leaf.ebx, leaf.ecx);
        if denominator != 0 && numerator != 0 && crystal_hz != 0 {
            let hz = u64::from(crystal_hz) * u64::from(numerator) / u64::from(denominator);
            return plausible(hz);
        }
    }
    None
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid_frequency() -> Option<u64> {
    None
}

/// Two readings of both clocks, about 100 ns of uncertainty each, are 20 ppm of it; a recording of a tenth of
/// a second is measured again at its end.
const CALIBRATION: Duration = Duration::from_millis(10);
/// And for the value in a file until the frequency is measured.
const FIRST_CALIBRATION: Duration = Duration::from_millis(1);

/// Counts ticks against `CLOCK_MONOTONIC_RAW` for this time.
fn calibrate(kind: ClockKind, time: Duration) -> u64 {
    calibrate_from(&sample(kind), kind, time)
}

/// Continues counting from a sample until this time has passed since it.
fn calibrate_from(first: &ClockSample, kind: ClockKind, time: Duration) -> u64 {
    let passed_ns = clock_ns(libc::CLOCK_MONOTONIC_RAW).saturating_sub(first.monotonic_raw_ns);
    let passed = Duration::from_nanos(u64::try_from(passed_ns).unwrap_or(0));
    std::thread::sleep(time.saturating_sub(passed));
    let last = sample(kind);
    let ticks = u128::from(last.ticks.saturating_sub(first.ticks));
    let ns = (last.monotonic_raw_ns - first.monotonic_raw_ns).max(1) as u128;
    u64::try_from(ticks * 1_000_000_000 / ns).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_the_frequency_agree() {
        let kind = native_kind();
        let (hz, source) = frequency(kind);
        let counted = calibrate(kind, CALIBRATION);
        let off = hz.abs_diff(counted) as f64 / counted as f64;
        // Counting for 10 ms on a busy machine is inexact; a wrong unit would be far off.
        assert!(off < 0.02, "{hz} from {source:?}, counted {counted}");
    }

    #[test]
    fn time_goes_forward() {
        let kind = native_kind();
        let first = sample(kind);
        let second = sample(kind);
        assert!(second.ticks > first.ticks);
    }
}
