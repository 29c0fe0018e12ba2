// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times of packets, with bounds.
//!
//! ```text
//! TSC      the time stamp counter, exact
//! TMA      after a TSC: the last tick of the crystal clock, and the time since then
//! MTC      a tick of the crystal clock whose lower bits are 0; the next one comes one period later
//! CYC      cycles of the core since the last CYC; CBR gives the number of cycles per tick of the bus
//! ```
//!
//! TSC and MTC are points in time. A packet between two of them has a time anywhere between theirs, which
//! gives the bounds. Cycles only give the position in between, from the frequency of the core in the last
//! CBR; they never move a bound. A sleeping processor generates no packets; the first one after it wakes
//! is a TSC.
//!
//! [SDM volume 3, "Packet Generation Scenarios", TSC, TMA, MTC, CYC and CBR packets]

use crate::packet::Packet;

/// Bits of the time stamp counter in a TSC packet.
const TSC_BITS: u32 = 56;
/// Bits of the crystal clock in a TMA packet.
const CTC_BITS: u32 = 16;
/// Bits of the fast counter in a TMA packet: it wraps if the crystal clock is slow.
const FAST_BITS: u32 = 9;
/// Bits of the crystal clock in an MTC packet.
const MTC_BITS: u32 = 8;
/// Periods of MTC packets [SDM, IA32_RTIT_CTL.MTCFreq].
const FREQUENCY_MAX: u8 = 15;

/// Properties of a processor and its configuration. Unknown ones make the bounds wider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    /// An MTC packet is generated whenever this number of low bits of the crystal clock are 0
    /// (`MTCFreq`).
    pub mtc_frequency: Option<u8>,
    /// Ticks of the time stamp counter per tick of the crystal clock: numerator and denominator (CPUID
    /// 15H: EBX, EAX).
    pub tsc_per_crystal: Option<(u32, u32)>,
    /// Ticks of the time stamp counter per tick of the bus clock: the maximum non-turbo ratio
    /// (MSR_PLATFORM_INFO bits 15:8).
    pub tsc_per_bus: Option<u8>,
}

/// A time, in ticks of the time stamp counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// The estimate.
    pub ticks: u64,
    /// Lower bound.
    pub earliest: u64,
    /// Upper bound; `None` if packets may be missing, or their distance is unknown.
    pub latest: Option<u64>,
}

impl Time {
    /// Largest error of [`Time::ticks`]; `None`: unbounded.
    #[must_use]
    pub fn error_ticks(&self) -> Option<u64> {
        let latest = self.latest?;
        Some((self.ticks - self.earliest).max(latest.saturating_sub(self.ticks)))
    }
}

/// A tick of the crystal clock with a known time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Crystal {
    /// The clock, as counted since the TMA packet.
    ctc: u64,
    /// Bounds of the time of the tick at the TMA packet.
    anchor: (u64, u64),
    /// The clock at the TMA packet.
    anchor_ctc: u64,
}

/// Follows the time of a stream, packet by packet.
///
/// Cost: some arithmetic for each packet that concerns time. Memory: constant.
#[derive(Debug, Clone)]
pub struct Times {
    settings: Settings,
    now: Option<Time>,
    /// The last TSC packet, until another packet comes: a TMA packet refers to it.
    tsc: Option<u64>,
    crystal: Option<Crystal>,
    /// MTC packets may be missing: the next one is unknown.
    is_torn: bool,
    /// Cycles since the time at which `now` starts, and that time.
    cycles: (u64, u64),
    /// Cycles of the core per tick of the bus clock.
    core_per_bus: Option<u8>,
}

impl Times {
    /// For a stream from its start.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let is_ratio = |of: &(u32, u32)| of.0 > 0 && of.1 > 0;
        let settings = Settings {
            mtc_frequency: settings.mtc_frequency.filter(|of| *of <= FREQUENCY_MAX),
            tsc_per_crystal: settings.tsc_per_crystal.filter(is_ratio),
            tsc_per_bus: settings.tsc_per_bus.filter(|of| *of > 0),
        };
        Self {
            settings,
            now: None,
            tsc: None,
            crystal: None,
            is_torn: false,
            cycles: (0, 0),
            core_per_bus: None,
        }
    }

    /// Time of the next packet in the stream; `None` before the first TSC packet.
    #[must_use]
    pub fn now(&self) -> Option<Time> {
        self.now
    }

    /// Whether both give the same times for all possible later packets.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let of = |times: &Self| {
            (times.now, times.tsc, times.crystal, times.is_torn, times.cycles, times.core_per_bus)
        };
        // Before the first TSC packet, only the ratio has an effect beyond it.
        let is_timeless = self.now.is_none() && other.now.is_none();
        self.settings == other.settings
            && (of(self) == of(other) || is_timeless && self.core_per_bus == other.core_per_bus)
    }

    /// Packets are missing, or bytes were not packets.
    pub fn gap(&mut self) {
        self.is_torn = true;
        self.tsc = None;
        if let Some(now) = &mut self.now {
            now.latest = None;
        }
    }

    /// Processes the next packet, and returns its time. Times never go back.
    pub fn packet(&mut self, packet: &Packet) -> Option<Time> {
        let tsc = self.tsc.take();
        match *packet {
            Packet::Tsc(low) => return Some(self.stamp(low)),
            Packet::Mtc(payload) => return self.crystal_tick(payload),
            Packet::Tma { ctc, fast } => self.anchor(tsc, ctc, fast),
            Packet::Cyc(cycles) => self.advance(cycles),
            Packet::Cbr(ratio) => self.core_per_bus = Some(ratio).filter(|of| *of > 0),
            // No MTC packets come while the processor sleeps; when it wakes, a TSC packet comes.
            Packet::Ovf | Packet::Pwre { .. } => self.gap(),
            // Between a TSC packet and its TMA packet there are no other time packets.
            _ => self.tsc = tsc,
        }
        self.now
    }

    fn stamp(&mut self, low: u64) -> Time {
        let mask = (1 << TSC_BITS) - 1;
        let low = low & mask;
        let before = self.now.map_or(0, |now| now.earliest);
        let mut ticks = before & !mask | low;
        // More than half of the range back, the counter has wrapped.
        if ticks < before && before - ticks > 1 << (TSC_BITS - 1) {
            ticks = ticks.saturating_add(1 << TSC_BITS);
        }
        // If the counter goes back, it was set, or the packet is damaged: then nothing is certain.
        let is_behind = ticks < before;
        let earliest = ticks.max(before);
        self.crystal = None;
        self.is_torn = false;
        self.cycles = (0, earliest);
        self.tsc = Some(ticks).filter(|_| !is_behind);
        // Later packets have any later time, until a TMA packet gives the time of the next tick.
        self.now = Some(Time { ticks: earliest, earliest, latest: None });
        Time { ticks: earliest, earliest, latest: self.tsc }
    }

    fn anchor(&mut self, tsc: Option<u64>, ctc: u16, fast: u16) {
        let Some(((numerator, denominator), tsc)) = self.settings.tsc_per_crystal.zip(tsc) else {
            return;
        };
        // The fast counter runs from one tick to the next; if it can wrap, any lap is possible.
        let period = u64::from(numerator.div_ceil(denominator));
        let since = u64::from(fast & ((1 << FAST_BITS) - 1));
        let most = if period > 1 << FAST_BITS { period } else { since };
        let anchor = (tsc.saturating_sub(most), tsc.saturating_sub(since.min(most)));
        let ctc = u64::from(ctc);
        self.crystal = Some(Crystal { ctc, anchor, anchor_ctc: ctc });
        self.bound();
    }

    /// Bounds of the time of a tick of the crystal clock.
    fn time_of(&self, crystal: &Crystal, ctc: u64) -> Option<(u64, u64)> {
        let (numerator, denominator) = self.settings.tsc_per_crystal?;
        let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
        let ticks = u128::from(ctc.checked_sub(crystal.anchor_ctc)?) * numerator;
        let to = |ticks: u128| u64::try_from(ticks).unwrap_or(u64::MAX);
        let (down, up) = (to(ticks / denominator), to(ticks.div_ceil(denominator)));
        Some((crystal.anchor.0.saturating_add(down), crystal.anchor.1.saturating_add(up)))
    }

    /// Sets the latest time of the next packet if no tick precedes it.
    fn bound(&mut self) {
        let next =
            self.crystal.zip(self.settings.mtc_frequency).and_then(|(crystal, frequency)| {
                let next = (crystal.ctc >> frequency).checked_add(1)? << frequency;
                self.time_of(&crystal, next)
            });
        let is_torn = self.is_torn;
        if let Some(now) = &mut self.now {
            now.latest = next.filter(|_| !is_torn).map(|(_, latest)| latest.max(now.earliest));
            now.ticks = now.ticks.clamp(now.earliest, now.latest.unwrap_or(u64::MAX));
        }
    }

    fn crystal_tick(&mut self, payload: u8) -> Option<Time> {
        let Some((mut crystal, frequency)) = self.crystal.zip(self.settings.mtc_frequency) else {
            return self.now;
        };
        let bits = MTC_BITS + u32::from(frequency);
        let low = u64::from(payload) << frequency;
        // The next tick or a later one: only a gap makes the number of skipped laps of these bits
        // unknown.
        let next = ((crystal.ctc >> frequency) + 1) << frequency;
        let skipped = low.wrapping_sub(next) & ((1 << bits) - 1);
        // The first MTC packet contains the bits that a TMA packet does not have.
        if crystal.ctc == crystal.anchor_ctc {
            crystal.anchor_ctc += skipped & !((1 << CTC_BITS) - 1);
        }
        crystal.ctc = next + skipped;
        let (earliest, latest) = self.time_of(&crystal, crystal.ctc)?;
        self.crystal = Some(crystal);
        let earliest = earliest.max(self.now.map_or(0, |now| now.earliest));
        let latest = Some(latest.max(earliest)).filter(|_| !self.is_torn);
        let time = Time { ticks: earliest, earliest, latest };
        self.cycles = (0, earliest);
        self.now = Some(time);
        self.bound();
        Some(time)
    }

    /// Cycles only move the estimate between the bounds.
    fn advance(&mut self, cycles: u64) {
        self.cycles.0 = self.cycles.0.saturating_add(cycles);
        let ratio = self.settings.tsc_per_bus.zip(self.core_per_bus);
        let (Some((tsc, core)), Some(now)) = (ratio, &mut self.now) else { return };
        let ticks = u128::from(self.cycles.0) * u128::from(tsc) / u128::from(core);
        let ticks = self.cycles.1.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX));
        now.ticks = ticks.clamp(now.ticks, now.latest.unwrap_or(u64::MAX).max(now.ticks));
    }
}

/// Converts ticks of the time stamp counter to nanoseconds of perf's clock: `time_zero`, `time_shift` and
/// `time_mult` of `perf_event_mmap_page` [include/uapi/linux/perf_event.h].
#[must_use]
pub fn perf_nanos(ticks: u64, (zero, shift, mult): (u64, u16, u32)) -> u64 {
    let shift = u32::from(shift).min(63);
    let (whole, rest) = (ticks >> shift, ticks & ((1 << shift) - 1));
    let whole = whole.wrapping_mul(u64::from(mult));
    let rest = (u128::from(rest) * u128::from(mult)) >> shift;
    zero.wrapping_add(whole).wrapping_add(rest as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// A client processor with a crystal of 24 MHz, a counter of 1.2 GHz and a bus of 100 MHz.
    const SETTINGS: Settings =
        Settings { mtc_frequency: Some(3), tsc_per_crystal: Some((100, 2)), tsc_per_bus: Some(12) };

    #[test]
    fn moments_are_exact_and_what_is_between_them_is_bounded() {
        let mut times = Times::new(SETTINGS);
        assert_eq!(times.packet(&Packet::Mtc(7)), None);
        let exact = |ticks| Some(Time { ticks, earliest: ticks, latest: Some(ticks) });
        assert_eq!(times.packet(&Packet::Tsc(10_000)), exact(10_000));
        // Any time after it.
        assert_eq!(times.now().and_then(|now| now.latest), None);
        // The crystal's tick 0x1234 was 20 ticks ago; MTC packets come at multiples of 8: next at 0x1238.
        times.packet(&Packet::Tma { ctc: 0x1234, fast: 20 });
        let now = times.now().expect("a time");
        assert_eq!((now.earliest, now.latest), (10_000, Some(10_000 - 20 + 4 * 50)));
        let tick = times.packet(&Packet::Mtc((0x1238 >> 3) as u8));
        assert_eq!(tick, exact(10_180));
        assert_eq!(times.now().and_then(|now| now.latest), Some(10_180 + 8 * 50));
        // Cycles of a core at twice the frequency of the counter.
        times.packet(&Packet::Cbr(24));
        assert_eq!(times.packet(&Packet::Cyc(100)).map(|now| now.ticks), Some(10_230));
        assert_eq!(times.now().and_then(|now| now.error_ticks()), Some(350));
        times.packet(&Packet::Ovf);
        assert_eq!(times.now().and_then(|now| now.error_ticks()), None);
        assert_eq!(times.packet(&Packet::Tsc(20_000)), exact(20_000));
    }

    #[test]
    fn the_counter_comes_round_and_never_goes_back() {
        let mut times = Times::new(SETTINGS);
        let last = (1 << TSC_BITS) - 5;
        times.packet(&Packet::Tsc(last));
        let round = times.packet(&Packet::Tsc(3)).expect("a time");
        assert_eq!((round.ticks, round.latest), (last + 8, Some(last + 8)));
        let back = times.packet(&Packet::Tsc(1)).expect("a time");
        assert_eq!((back.ticks, back.latest), (last + 8, None));
    }

    #[test]
    fn nanoseconds_are_those_of_perf() {
        // The recording pt/quipper: 1789569706 / 2^31 of a nanosecond per tick, from a zero before 0.
        let scale = (0xffff_fff8_6343_cb91, 31, 0x6aaa_aaaa);
        assert_eq!(perf_nanos(0xbc_4cd2_cfe8, scale), 641_257_928_663);
        assert_eq!(perf_nanos(u64::MAX, (0, 0, 1)), u64::MAX);
    }

    /// The next packet, and the ticks before it.
    #[derive(Debug, Clone, Copy)]
    enum Happens {
        Event,
        Frequency(u8),
        Stamp,
        Lost(u16),
    }

    fn happens() -> impl Strategy<Value = (u64, Happens)> {
        let what = prop_oneof![
            8 => Just(Happens::Event),
            1 => (4u8..40).prop_map(Happens::Frequency),
            1 => Just(Happens::Stamp),
            1 => (1u16..2000).prop_map(Happens::Lost),
        ];
        (1u64..400, what)
    }

    proptest! {
        /// A processor with known times generates packets: each time is within the bounds.
        #[test]
        fn the_time_of_a_simulated_processor_is_within_the_bounds(
            (numerator, denominator) in (30u32..600, 1u32..4),
            frequency in 0u8..12,
            begin in 0u64..1 << 40,
            steps in prop::collection::vec(happens(), 1..200),
        ) {
            let settings = Settings {
                mtc_frequency: Some(frequency),
                tsc_per_crystal: Some((numerator, denominator)),
                tsc_per_bus: Some(12),
            };
            let crystal = |tsc: u64| {
                (u128::from(tsc) * u128::from(denominator) / u128::from(numerator)) as u64
            };
            // The first tick of the counter at or after a tick of the crystal.
            let tick = |ctc: u64| {
                (u128::from(ctc) * u128::from(numerator)).div_ceil(u128::from(denominator)) as u64
            };
            let mut made: Vec<(u64, Packet)> = Vec::new();
            let stamp = |now: u64, made: &mut Vec<(u64, Packet)>| {
                let ctc = crystal(now);
                let fast = (now - tick(ctc)) & 0x1ff;
                made.push((now, Packet::Tsc(now & ((1 << TSC_BITS) - 1))));
                made.push((now, Packet::Tma { ctc: ctc as u16, fast: fast as u16 }));
            };
            let (mut now, mut ratio, mut cycles) = (begin, 12u8, 0u64);
            stamp(now, &mut made);
            made.push((now, Packet::Cbr(ratio)));
            for (later, what) in steps {
                let then = now + later;
                let mut next = (crystal(now) >> frequency) + 1;
                while tick(next << frequency) <= then {
                    let at = tick(next << frequency);
                    made.push((at, Packet::Mtc(next as u8)));
                    next += 1;
                }
                cycles += later * u64::from(ratio) / 12;
                now = then;
                match what {
                    Happens::Event => {
                        made.push((now, Packet::Cyc(core::mem::take(&mut cycles))));
                        made.push((now, Packet::TraceStop));
                    }
                    Happens::Frequency(new) => {
                        ratio = new;
                        made.push((now, Packet::Cbr(new)));
                    }
                    Happens::Stamp => stamp(now, &mut made),
                    Happens::Lost(ticks) => {
                        made.push((now, Packet::Ovf));
                        now += u64::from(ticks);
                    }
                }
            }
            let mut times = Times::new(settings);
            let mut last = 0;
            for (truth, packet) in made {
                let found = times.packet(&packet).expect("a time");
                // The exact tick of the crystal may be a fraction of a tick before the next of the counter.
                let in_bounds = found.earliest <= truth + 1
                    && found.latest.is_none_or(|latest| truth <= latest + 1);
                prop_assert!(in_bounds, "{truth} is {found:?} at {packet}");
                prop_assert!((found.earliest..=found.latest.unwrap_or(u64::MAX)).contains(&found.ticks));
                prop_assert!(found.earliest >= last);
                last = found.earliest;
            }
        }
    }
}
