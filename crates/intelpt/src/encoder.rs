// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the instructions that were executed to the packets a processor would have made of them.
//!
//! Whoever follows a processor tells of its branches, in their order, and of the time that went by:
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

/// Return addresses that the processor remembers [SDM volume 3, RET compression].
const CALLS: usize = 64;
/// Outcomes of branches in a short packet.
const SHORT_TNT: u8 = 6;
/// The same in a long one.
const LONG_TNT: u8 = 47;
/// Targets of indirect branches that wait for the outcomes before them, where that is asked for.
const DEFERRED_TIPS: usize = 8;
/// More ticks of the crystal clock than an MTC packet can say, with room: then the time is told in whole.
const MTC_PERIODS_MAX: u64 = 200;
/// Bits of CR3 that a PIP packet has [SDM volume 3, Paging Information Packet].
const PIP_CR3: u64 = (1 << 52) - (1 << 5);
/// Of MODE.Exec: code of 64 bits [SDM volume 3, MODE.Exec packet].
const LONG_MODE: u8 = 1;

/// What the clocks of the processor are, and which packets say the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// An MTC packet comes each time the lower so many bits of the crystal clock are 0; `None`: never.
    pub mtc_frequency: Option<u8>,
    /// Ticks of the time stamp counter in one of the crystal clock: numerator and denominator, not 0.
    pub tsc_per_crystal: (u32, u32),
    /// Ticks of the time stamp counter in one of the bus clock, at which the core runs.
    pub tsc_per_bus: u8,
    /// Packets say how many cycles went by, once there are so many since they last did; `None`: never
    /// [SDM volume 3, IA32_RTIT_CTL.CycThresh].
    pub cycle_threshold: Option<u64>,
}

/// What packets are made, as the registers of a processor say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A return to behind the last call is one bit.
    pub return_compression: bool,
    /// Up to 47 outcomes in a packet instead of 6.
    pub long_tnt: bool,
    /// Targets may come behind outcomes of later branches.
    pub deferred_tips: bool,
    /// A PSB comes after so many bytes.
    pub psb_bytes: usize,
    /// The time, where packets say it.
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

/// Packets of a processor, or of a thread.
#[derive(Debug, Clone)]
pub struct Encoder {
    settings: Settings,
    out: Vec<u8>,
    /// Bytes since the last PSB; `None`: there is none.
    since_psb: Option<usize>,
    last_ip: u64,
    tnt: Tnt,
    deferred: Vec<u64>,
    calls: Calls,
    /// The time stamp counter.
    tsc: u64,
    /// What the last CYC packet said.
    cycles_told_at: u64,
    /// The crystal clock when packets last said it.
    crystal: u64,
    /// Whether code is followed now.
    is_enabled: bool,
    /// The root of the page tables, where packets have said it.
    cr3: Option<u64>,
}

/// What was told of a branch does not fit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    /// Where the processor went.
    pub to: u64,
}

impl core::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "no branch leads to {:#x}", self.to)
    }
}

impl core::error::Error for Contradiction {}

impl Encoder {
    /// A processor that follows no code yet.
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

    /// The packets since the last time. Outcomes of branches that fill no packet yet are kept back.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }

    /// Bytes that wait to be taken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.out.len()
    }

    /// The time stamp counter.
    #[must_use]
    pub fn tsc(&self) -> u64 {
        self.tsc
    }

    /// The time stamp counter is this; it never goes back.
    pub fn set_tsc(&mut self, tsc: u64) {
        self.tsc = self.tsc.max(tsc);
    }

    /// So many cycles went by.
    pub fn advance(&mut self, cycles: u64) {
        self.tsc = self.tsc.saturating_add(cycles);
    }

    /// Code is followed from an address on.
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

    /// The last instruction told of left what is followed: a system call, for instance.
    pub fn disable(&mut self) {
        if core::mem::take(&mut self.is_enabled) {
            self.flush();
            self.put_timed(Packet::TipPgd(IpBytes::Suppressed));
        }
    }

    /// Something from outside turned the processor to what is not followed, before the instruction at an
    /// address.
    pub fn disable_at(&mut self, ip: u64) {
        if self.is_enabled {
            self.flush();
            let ip = self.ip_bytes(ip);
            self.put_timed(Packet::Fup(ip));
            self.disable();
        }
    }

    /// Something from outside turned the processor to a handler that is followed, too.
    pub fn interrupt(&mut self, from: u64, to: u64) {
        self.flush();
        let from = self.ip_bytes(from);
        self.put_timed(Packet::Fup(from));
        let to = self.ip_bytes(to);
        self.put_timed(Packet::Tip(to));
    }

    /// What was executed from here on is not known, until code is followed again.
    pub fn lose(&mut self) {
        if core::mem::take(&mut self.is_enabled) {
            self.flush();
            self.put(Packet::Ovf);
            self.calls.depth = 0;
        }
    }

    /// The processor went from the end of a block to an address.
    ///
    /// # Errors
    /// The branch does not lead there. Packets then are as if it did; whoever decodes them goes elsewhere.
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
                // A call of what follows it is how code finds out where it is, and is not remembered.
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
                    // The processor forgets what it remembered when a return went elsewhere.
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

    /// The processor uses page tables with this root from now on (CR3), and follows the kernel, too: who does
    /// not sees none of these packets.
    pub fn address_space(&mut self, cr3: u64) {
        let cr3 = cr3 & PIP_CR3;
        if self.cr3.replace(cr3) != Some(cr3) && self.since_psb.is_some() {
            self.flush();
            self.put_timed(Packet::Pip { cr3, non_root: false });
        }
    }

    /// The processor is at an address behind a branch: packets that come from time to time come here.
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

    /// The MTC packets that are due; where too many are, the time in whole.
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

    /// Outcomes that wait for more, and targets that wait for them.
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

    /// The fewest bytes that lead from the last address to this one.
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

    /// A packet that comes with the cycles since the last one.
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
        // All fields are made here, of values that fit.
        let is_encoded = encode(&packet, &mut self.out).is_ok();
        debug_assert!(is_encoded, "{packet:?}");
        let bytes = self.out.len() - before;
        self.since_psb = self.since_psb.map(|since| since.saturating_add(bytes));
    }
}

/// The crystal clock at a reading of the time stamp counter, and the ticks of the latter since.
fn crystal(tsc: u64, clock: Clock) -> (u64, u64) {
    let (numerator, denominator) =
        (u128::from(clock.tsc_per_crystal.0.max(1)), clock.tsc_per_crystal.1);
    let denominator = u128::from(denominator.max(1));
    let now = u128::from(tsc) * denominator / numerator;
    let at = now * numerator / denominator;
    (now as u64, (u128::from(tsc) - at) as u64)
}

/// Addresses behind calls, the last on top; of more than the processor has, the oldest are forgotten.
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
