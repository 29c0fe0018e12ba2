// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encodes executed instructions as the packets that a processor would generate.
//!
//! The caller, an emulator for instance, reports branches in their order, and the time that has passed:
//!
//! ```
//! use lateralis_intelpt::encoder::{Encoder, Settings};
//! use lateralis_intelpt::{Mode, branch};
//!
//! let mut encoder = Encoder::new(Settings::default());
//! encoder.enable(0x1000);
//! // call 0x1010, at 0x1000
//! let call = branch(&[0xe8, 0x0b, 0, 0, 0], 0x1000, Mode::Bits64).expect("an instruction");
//! encoder.advance(1);
//! encoder.branch(&call, 0x1010);
//! encoder.disable_at(0x1010);
//! assert!(encoder.take().len() > 16);
//! ```

use alloc::vec::Vec;

use crate::code::{Branch, Ends};
use crate::packet::{IpBytes, Packet, Tnt, encode};

/// Return addresses that the processor keeps [SDM volume 3, RET compression].
const CALLS: usize = 64;
/// Outcomes of branches in a short TNT packet.
const SHORT_TNT: u8 = 6;
/// Outcomes of branches in a long TNT packet.
const LONG_TNT: u8 = 47;
/// Targets of indirect branches that may wait for earlier outcomes, if deferred TIPs are enabled.
const DEFERRED_TIPS: usize = 8;
/// Largest number of MTC packets in a row, with a margin below what MTC can express: beyond it, the full
/// time is written.
const MTC_PERIODS_MAX: u64 = 200;
/// Bits of CR3 in a PIP packet [SDM volume 3, Paging Information Packet].
const PIP_CR3: u64 = (1 << 52) - (1 << 5);
/// MODE.Exec: 64-bit code [SDM volume 3, MODE.Exec packet].
const LONG_MODE: u8 = 1;

/// Clocks of the processor, and the packets that contain the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// An MTC packet is generated whenever this number of low bits of the crystal clock are 0; `None`:
    /// never.
    pub mtc_frequency: Option<u8>,
    /// Ticks of the time stamp counter per tick of the crystal clock: numerator and denominator, not 0.
    pub tsc_per_crystal: (u32, u32),
    /// Ticks of the time stamp counter per tick of the bus clock, at which the core runs.
    pub tsc_per_bus: u8,
    /// CYC packets are generated once this number of cycles has passed since the last one; `None`: never
    /// [SDM volume 3, IA32_RTIT_CTL.CycThresh].
    pub cycle_threshold: Option<u64>,
}

/// Kinds of packets to generate, as configured in the registers of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A return to the address after the matching call is one bit.
    pub return_compression: bool,
    /// Up to 47 outcomes in a packet instead of 6.
    pub long_tnt: bool,
    /// Targets may follow outcomes of later branches.
    pub deferred_tips: bool,
    /// Number of bytes after which a PSB is generated.
    pub psb_bytes: usize,
    /// Clock, if packets contain the time.
    pub clock: Option<Clock>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            return_compression: true,
            long_tnt: false,
            deferred_tips: false,
            psb_bytes: 2048,
            clock: None,
        }
    }
}

/// Packet stream of a processor, or of a thread.
#[derive(Debug, Clone)]
pub struct Encoder {
    settings: Settings,
    out: Vec<u8>,
    /// Bytes since the last PSB; `None`: there was none.
    since_psb: Option<usize>,
    last_ip: u64,
    tnt: Tnt,
    deferred: Vec<u64>,
    calls: Calls,
    /// The time stamp counter.
    tsc: u64,
    /// Time stamp counter at the last CYC packet.
    cycles_told_at: u64,
    /// Crystal clock at the last packet that contained it.
    crystal: u64,
    /// Whether tracing is enabled now.
    is_enabled: bool,
    /// The root of the page tables, as in the last packet with it.
    cr3: Option<u64>,
}

/// The reported target of a branch does not match the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    /// The reported target.
    pub to: u64,
}

impl core::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "no branch leads to {:#x}", self.to)
    }
}

impl core::error::Error for Contradiction {}

impl Encoder {
    /// A processor that is not being traced yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            out: Vec::new(),
            since_psb: None,
            last_ip: 0,
            tnt: Tnt { bits: 0, len: 0 },
            deferred: Vec::new(),
            calls: Calls { addresses: [0; CALLS], top: 0, depth: 0 },
            tsc: 0,
            cycles_told_at: 0,
            crystal: 0,
            is_enabled: false,
            cr3: None,
        }
    }

    /// Takes the packets since the last call. Outcomes that do not fill a packet yet are held back.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }

    /// Number of bytes that are ready.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.out.len()
    }

    /// The time stamp counter.
    #[must_use]
    pub fn tsc(&self) -> u64 {
        self.tsc
    }

    /// Sets the time stamp counter; it never goes back.
    pub fn set_tsc(&mut self, tsc: u64) {
        self.tsc = self.tsc.max(tsc);
    }

    /// Advances the time by a number of cycles.
    pub fn advance(&mut self, cycles: u64) {
        self.tsc = self.tsc.saturating_add(cycles);
    }

    /// Tracing is enabled at an address.
    pub fn enable(&mut self, ip: u64) {
        if self.since_psb.is_none_or(|bytes| bytes >= self.settings.psb_bytes) {
            self.psb(None);
        }
        self.tell_time();
        self.put(Packet::ModeExec { bits: LONG_MODE });
        let ip = self.ip_bytes(ip);
        self.put_timed(Packet::TipPge(ip));
        self.calls.depth = 0;
        self.is_enabled = true;
    }

    /// The last reported instruction left the traced code: a system call, for instance.
    pub fn disable(&mut self) {
        if core::mem::take(&mut self.is_enabled) {
            self.flush();
            self.put_timed(Packet::TipPgd(IpBytes::Suppressed));
        }
    }

    /// An external event transferred control to code that is not traced, before the instruction at an
    /// address.
    pub fn disable_at(&mut self, ip: u64) {
        if self.is_enabled {
            self.flush();
            let ip = self.ip_bytes(ip);
            self.put_timed(Packet::Fup(ip));
            self.disable();
        }
    }

    /// An external event transferred control to a handler that is traced as well.
    pub fn interrupt(&mut self, from: u64, to: u64) {
        self.flush();
        let from = self.ip_bytes(from);
        self.put_timed(Packet::Fup(from));
        let to = self.ip_bytes(to);
        self.put_timed(Packet::Tip(to));
    }

    /// Execution is unknown from here on, until tracing is enabled again.
    pub fn lose(&mut self) {
        if core::mem::take(&mut self.is_enabled) {
            self.flush();
            self.put(Packet::Ovf);
            self.calls.depth = 0;
        }
    }

    /// Reports that control went from the end of a block to an address.
    ///
    /// # Errors
    /// If the branch does not lead there. The packets then claim that it did; a decoder goes elsewhere.
    pub fn branch(&mut self, branch: &Branch, to: u64) -> Result<(), Contradiction> {
        let fits = match branch.ends {
            Ends::Through | Ends::NoCode => to == branch.next,
            Ends::Jump => to == branch.target,
            Ends::Conditional => {
                let is_taken = to == branch.target && branch.target != branch.next;
                self.outcome(is_taken);
                is_taken || to == branch.next
            }
            Ends::Call => {
                // A call of the next instruction is used to obtain the current address, and is not kept.
                if branch.target != branch.next {
                    self.calls.push(branch.next);
                }
                to == branch.target
            }
            Ends::IndirectJump => {
                self.target(to);
                true
            }
            Ends::IndirectCall => {
                self.target(to);
                self.calls.push(branch.next);
                true
            }
            Ends::Return => {
                let caller = self.calls.pop();
                if self.settings.return_compression && caller == Some(to) {
                    self.outcome(true);
                } else {
                    // The processor discards its return addresses when a return went elsewhere.
                    self.flush();
                    self.target(to);
                    self.calls.depth = 0;
                }
                true
            }
            Ends::Far => {
                self.flush();
                self.target(to);
                true
            }
        };
        if fits { Ok(()) } else { Err(Contradiction { to }) }
    }

    /// The processor uses page tables with this root from now on (CR3). Only when the kernel is traced as
    /// well are these packets generated.
    pub fn address_space(&mut self, cr3: u64) {
        let cr3 = cr3 & PIP_CR3;
        if self.cr3.replace(cr3) != Some(cr3) && self.since_psb.is_some() {
            self.flush();
            self.put_timed(Packet::Pip { cr3, non_root: false });
        }
    }

    /// The processor is at an address after a branch: periodic packets are generated here.
    pub fn at(&mut self, ip: u64) {
        if !self.is_enabled {
            return;
        }
        if self.since_psb.is_none_or(|bytes| bytes >= self.settings.psb_bytes) {
            self.psb(Some(ip));
        } else {
            self.tell_time();
        }
    }

    /// Writes the MTC packets that are due, or the full time if there are too many.
    fn tell_time(&mut self) {
        let Some(clock) = self.settings.clock else { return };
        let Some(frequency) = clock.mtc_frequency else { return };
        let (now, _) = crystal(self.tsc, clock);
        let (last, due) = (self.crystal >> frequency, now >> frequency);
        if due.saturating_sub(last) > MTC_PERIODS_MAX {
            return self.whole_time(clock);
        }
        for period in last + 1..=due {
            self.put(Packet::Mtc(period as u8));
            self.crystal = now;
        }
    }

    fn whole_time(&mut self, clock: Clock) {
        const TSC_BITS: u64 = (1 << 56) - 1;
        self.put(Packet::Tsc(self.tsc & TSC_BITS));
        if clock.mtc_frequency.is_some() {
            let (now, fast) = crystal(self.tsc, clock);
            self.put(Packet::Tma { ctc: now as u16, fast: (fast & 0x1ff) as u16 });
            self.crystal = now;
        }
        self.cycles_told_at = self.tsc;
    }

    fn psb(&mut self, ip: Option<u64>) {
        self.flush();
        self.put(Packet::Psb);
        self.last_ip = 0;
        if let Some(clock) = self.settings.clock {
            self.whole_time(clock);
            self.put(Packet::Cbr(clock.tsc_per_bus));
        }
        if let Some(cr3) = self.cr3 {
            self.put(Packet::Pip { cr3, non_root: false });
        }
        if let Some(ip) = ip {
            self.put(Packet::ModeExec { bits: LONG_MODE });
            let ip = self.ip_bytes(ip);
            self.put(Packet::Fup(ip));
        }
        self.put(Packet::PsbEnd);
        self.calls.depth = 0;
        self.since_psb = Some(0);
    }

    fn outcome(&mut self, is_taken: bool) {
        self.tnt.bits = self.tnt.bits << 1 | u64::from(is_taken);
        self.tnt.len += 1;
        if self.tnt.len == if self.settings.long_tnt { LONG_TNT } else { SHORT_TNT } {
            self.flush();
        }
    }

    fn target(&mut self, ip: u64) {
        if self.settings.deferred_tips && self.tnt.len > 0 {
            self.deferred.push(ip);
            if self.deferred.len() >= DEFERRED_TIPS {
                self.flush();
            }
            return;
        }
        self.flush();
        let ip = self.ip_bytes(ip);
        self.put_timed(Packet::Tip(ip));
    }

    /// Writes pending outcomes, and the targets that wait for them.
    fn flush(&mut self) {
        let tnt = core::mem::replace(&mut self.tnt, Tnt { bits: 0, len: 0 });
        match tnt.len {
            0 => {}
            1..=SHORT_TNT => self.put_timed(Packet::TntShort(tnt)),
            _ => self.put_timed(Packet::TntLong(tnt)),
        }
        for ip in core::mem::take(&mut self.deferred) {
            let ip = self.ip_bytes(ip);
            self.put_timed(Packet::Tip(ip));
        }
    }

    /// The shortest encoding of an address relative to the last one.
    fn ip_bytes(&mut self, ip: u64) -> IpBytes {
        const LOW48: u64 = (1 << 48) - 1;
        let last = core::mem::replace(&mut self.last_ip, ip);
        if ip >> 16 == last >> 16 {
            IpBytes::Update16(ip as u16)
        } else if ip >> 32 == last >> 32 {
            IpBytes::Update32(ip as u32)
        } else if (ip << 16) as i64 >> 16 == ip as i64 {
            IpBytes::Signed48(ip & LOW48)
        } else if ip >> 48 == last >> 48 {
            IpBytes::Update48(ip & LOW48)
        } else {
            IpBytes::Full(ip)
        }
    }

    /// Writes a packet that is accompanied by the cycles since the last one.
    fn put_timed(&mut self, packet: Packet) {
        let cycles = self.tsc - self.cycles_told_at;
        let threshold = self.settings.clock.and_then(|clock| clock.cycle_threshold);
        if threshold.is_some_and(|least| cycles >= least) {
            self.put(Packet::Cyc(cycles));
            self.cycles_told_at = self.tsc;
        }
        self.put(packet);
    }

    fn put(&mut self, packet: Packet) {
        let before = self.out.len();
        // All fields are set here, to values that fit.
        let is_encoded = encode(&packet, &mut self.out).is_ok();
        debug_assert!(is_encoded, "{packet:?}");
        let bytes = self.out.len() - before;
        self.since_psb = self.since_psb.map(|since| since.saturating_add(bytes));
    }
}

/// Crystal clock at a value of the time stamp counter, and ticks of the latter since.
fn crystal(tsc: u64, clock: Clock) -> (u64, u64) {
    let (numerator, denominator) =
        (u128::from(clock.tsc_per_crystal.0.max(1)), clock.tsc_per_crystal.1);
    let denominator = u128::from(denominator.max(1));
    let now = u128::from(tsc) * denominator / numerator;
    let at = now * numerator / denominator;
    (now as u64, (u128::from(tsc) - at) as u64)
}

/// Return addresses, the last on top; beyond the capacity of the processor the oldest are discarded.
#[derive(Debug, Clone)]
struct Calls {
    addresses: [u64; CALLS],
    top: usize,
    depth: usize,
}

impl Calls {
    fn push(&mut self, address: u64) {
        self.addresses[self.top] = address;
        self.top = (self.top + 1) % CALLS;
        self.depth = (self.depth + 1).min(CALLS);
    }

    fn pop(&mut self) -> Option<u64> {
        self.depth = self.depth.checked_sub(1)?;
        self.top = (self.top + CALLS - 1) % CALLS;
        Some(self.addresses[self.top])
    }
}
