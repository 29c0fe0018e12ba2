// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Executed instructions to packets.
//!
//! [`Encoder`] implements the specification's chapter "Reference Compressed Branch Trace Algorithm",
//! for one retired instruction at a time, with the implicit return mode. What it sends determines the
//! executed instructions exactly: the module `paths` describes the packets that ensure this.

mod paths;

use crate::isa::{Instruction, Kind};
use crate::packet::{self, Branches, Context, FULL_MAP, Packet, Report, Start, Status, Support};
use crate::parameters::{BadParameters, Options, Parameters, low_bits};
use alloc::vec::Vec;
use core::fmt;
use paths::{Paths, Way};

/// An instruction that retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retired {
    /// Its address.
    pub address: u64,
    /// Its length and control flow.
    pub instruction: Instruction,
    /// It is a branch that was taken.
    pub taken: bool,
    /// Privilege, time and context in which it was executed.
    pub context: Context,
    /// Report this instruction (`trigger[2]` of the specification's section "Trigger outputs").
    pub notify: bool,
}

/// An exception or interrupt that is taken after the instruction before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trap {
    /// Cause, as in the `cause` register without its interrupt bit.
    pub cause: u64,
    /// Trap value of an exception; `None` for an interrupt.
    pub value: Option<u64>,
    /// Address to which the trap returns: the content of the `epc` register.
    pub address: u64,
}

/// What a hart does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// An instruction retires. `ecall` and `ebreak` are passed as retired, before their trap.
    Retired(Retired),
    /// A trap is taken.
    Trap(Trap),
}

/// How an encoder works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config {
    /// Modes; implicit return and full address are implemented.
    pub options: Options,
    /// Number of packets after which a synchronisation packet is due; 0 for never.
    pub resync: u32,
    /// A change of the context is reported without the address at which it happened (`ctype` 1).
    pub imprecise_context: bool,
}

/// A configuration that is not implemented or contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadConfig {
    /// A parameter is out of its range.
    Parameters(BadParameters),
    /// An option that is not implemented.
    Unsupported(&'static str),
    /// Implicit returns need a return stack. A call counter alone cannot be encoded: its depth does not
    /// always fit into `irdepth`.
    NoReturnStack,
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameters(bad) => bad.fmt(f),
            Self::Unsupported(option) => write!(f, "the option {option} is not implemented"),
            Self::NoReturnStack => f.write_str("implicit returns need a return stack"),
        }
    }
}

impl core::error::Error for BadConfig {}

/// The step before the current one.
#[derive(Debug, Clone, Copy)]
enum Previous {
    /// None that was traced.
    Nothing,
    Trap {
        trap: Trap,
        reported: bool,
    },
    Retired {
        retired: Retired,
        way: Way,
    },
}

/// Encodes the flow of one hart.
#[derive(Debug, Clone)]
pub struct Encoder {
    parameters: Parameters,
    config: Config,
    previous: Previous,
    current: Option<Action>,
    branches: Branches,
    /// The address reported last.
    address: u64,
    context: Context,
    /// Number of packets since the last synchronisation packet.
    count: u32,
    /// The next instruction is to be a synchronisation packet.
    resync: bool,
    /// The decoder may be at an earlier occurrence of the instruction reported last.
    unsettled: bool,
    paths: Paths,
}

impl Encoder {
    /// An encoder that has not traced an instruction.
    ///
    /// # Errors
    /// The configuration is not implemented, or a parameter is out of its range.
    pub fn new(parameters: Parameters, config: Config) -> Result<Self, BadConfig> {
        parameters.check().map_err(BadConfig::Parameters)?;
        if let Some(option) = config.options.unsupported() {
            return Err(BadConfig::Unsupported(option));
        }
        let implicit = config.options.implicit_return;
        if implicit && parameters.return_stack_size == 0 {
            return Err(BadConfig::NoReturnStack);
        }
        Ok(Self {
            parameters,
            config,
            previous: Previous::Nothing,
            current: None,
            branches: Branches::default(),
            address: 0,
            context: Context::default(),
            count: 0,
            resync: false,
            unsettled: false,
            paths: Paths::new(parameters, implicit),
        })
    }

    /// The next action. Packets about the action before are appended to `out`.
    pub fn step(&mut self, action: Action, out: &mut Vec<Packet>) {
        if self.current.is_some_and(|current| !self.continues(current, action)) {
            self.end(out);
        }
        match self.current.replace(action) {
            Some(current) => {
                self.encode(current, Some(action), out);
            }
            None => self.support(true, Status::NoChange, out),
        }
    }

    /// Tracing ends after the last action, and can begin again.
    pub fn end(&mut self, out: &mut Vec<Packet>) {
        let Some(current) = self.current.take() else { return };
        let by_discontinuity = self.encode(current, None, out);
        let status = if by_discontinuity { Status::EndedAnyway } else { Status::EndedReported };
        self.support(false, status, out);
        self.forget();
    }

    /// Packets were lost after they left the encoder. Tracing begins again with the next action.
    pub fn lost(&mut self, out: &mut Vec<Packet>) {
        self.support(true, Status::Lost, out);
        self.current = None;
        self.forget();
    }

    fn forget(&mut self) {
        self.previous = Previous::Nothing;
        self.branches = Branches::default();
        (self.count, self.resync, self.unsettled) = (0, false, false);
        self.paths.synchronised();
    }

    fn support(&mut self, enabled: bool, status: Status, out: &mut Vec<Packet>) {
        out.push(Packet::Support(Support {
            enabled,
            mode: 0,
            status,
            options: self.config.options.to_bits(),
            data_enabled: false,
            data_lost: false,
            data_options: 0,
        }));
    }

    /// Whether a decoder could follow from one action to the next. If not, something happened that the
    /// encoder was not given, such as a halt by a debugger.
    fn continues(&self, from: Action, to: Action) -> bool {
        let (Action::Retired(from), Action::Retired(to)) = (from, to) else { return true };
        let before = match self.previous {
            Previous::Retired { retired, .. } => Some(retired),
            _ => None,
        };
        let same_privilege = from.context.privilege == to.context.privilege;
        let leads = self.paths.successor(before, from).is_none_or(|next| next == to.address);
        leads && (same_privilege || from.instruction.kind == Kind::TrapReturn)
    }

    /// Sends what the current action needs. Returns whether it was sent because of an uninferable
    /// discontinuity before.
    fn encode(&mut self, current: Action, next: Option<Action>, out: &mut Vec<Packet>) -> bool {
        match current {
            Action::Trap(trap) => {
                self.trap(trap, out);
                false
            }
            Action::Retired(retired) => self.retired(retired, next, out),
        }
    }

    fn trap(&mut self, trap: Trap, out: &mut Vec<Packet>) {
        let mut reported = false;
        match self.previous {
            // A second trap before the handler of the first one retired an instruction.
            Previous::Trap { trap: first, reported: false } => {
                self.report_trap(first, first.address, false, true, out);
            }
            Previous::Trap { .. } => {}
            // Where it happened cannot be inferred.
            Previous::Nothing => {
                self.report_trap(trap, trap.address, false, true, out);
                reported = true;
            }
            Previous::Retired { way, .. } if way.is_reported() => {
                self.report_trap(trap, trap.address, false, true, out);
                reported = true;
            }
            Previous::Retired { .. } => {}
        }
        self.previous = Previous::Trap { trap, reported };
    }

    fn report_trap(
        &mut self,
        trap: Trap,
        address: u64,
        handler: bool,
        not_taken: bool,
        out: &mut Vec<Packet>,
    ) {
        let address = self.parameters.address(address);
        self.send_sync(address, out, |context| {
            Packet::Trap(packet::Trap {
                not_taken,
                context,
                cause: trap.cause,
                handler,
                address,
                value: trap.value,
            })
        });
    }

    fn send_sync(
        &mut self,
        address: u64,
        out: &mut Vec<Packet>,
        packet: impl FnOnce(Context) -> Packet,
    ) {
        out.push(packet(self.context));
        self.address = address;
        self.branches = Branches::default();
        (self.count, self.resync, self.unsettled) = (0, false, false);
        self.paths.synchronised();
    }

    /// The diagram "Instruction delta trace algorithm", for an instruction that retired.
    fn retired(&mut self, now: Retired, next: Option<Action>, out: &mut Vec<Packet>) -> bool {
        if now.instruction.is_branch() {
            self.branches.map |= u32::from(!now.taken) << self.branches.count;
            self.branches.count += 1;
        }
        let old = core::mem::replace(&mut self.context, now.context);
        let (packets, due) =
            (out.len(), self.config.resync > 0 && self.count >= self.config.resync);
        let mut by_discontinuity = false;
        let synchronised = self.synchronise(now, old, out);
        let before = match self.previous {
            Previous::Retired { retired, way } => Some((retired, way)),
            _ => None,
        };
        let depth = self.paths.depth();
        let way = self.paths.way(before.map(|before| before.0), now, next);
        let has_new_context = !synchronised && old.context != now.context.context;
        // There is no synchronisation packet after a return that was not predicted. That return was
        // reported, so that only this instruction follows the change.
        let is_behind_return = matches!(before, Some((_, Way::Mispredicted)));
        let is_exact = is_behind_return && !self.config.imprecise_context;
        if has_new_context && is_exact {
            out.push(Packet::Context(now.context));
        }
        if !synchronised {
            // A synchronisation packet does not say that a return was not predicted, and a decoder that
            // begins at it does not know the register of a sequentially inferable jump.
            let may_resync = way != Way::Mispredicted && !self.is_sequential(now, next);
            let due = due && may_resync;
            by_discontinuity = self.report_if_needed(now, next, (before, way), due, depth, out);
            self.resync = due && out.len() > packets;
        }
        let sent = out.len() > packets;
        if sent {
            self.paths.sent();
        }
        self.paths.passed(now, way, sent);
        if has_new_context && !is_exact {
            out.push(Packet::Context(now.context));
        }
        self.previous = Previous::Retired { retired: now, way };
        by_discontinuity
    }

    /// Sends a packet of format 3 if the instruction must be one.
    fn synchronise(&mut self, now: Retired, old: Context, out: &mut Vec<Packet>) -> bool {
        let not_taken = !now.instruction.is_branch() || !now.taken;
        let address = self.parameters.address(now.address);
        match self.previous {
            Previous::Trap { trap, reported: false } => {
                self.report_trap(trap, address, true, not_taken, out);
                return true;
            }
            Previous::Nothing | Previous::Trap { .. } => {}
            Previous::Retired { way: Way::Mispredicted, .. } => return false,
            Previous::Retired { .. } if self.resync || self.is_precise(old, now.context) => {}
            Previous::Retired { .. } => return false,
        }
        self.send_sync(address, out, |context| {
            Packet::Start(Start { not_taken, context, address })
        });
        true
    }

    /// Whether a synchronisation packet reports the change of the context (`ppccd`).
    fn is_precise(&self, old: Context, new: Context) -> bool {
        let changed = old.context != new.context && !self.config.imprecise_context;
        old.privilege != new.privilege || changed
    }

    fn is_sequential(&self, now: Retired, next: Option<Action>) -> bool {
        match next {
            Some(Action::Retired(next)) => self.paths.sequential(Some(now), next).is_some(),
            _ => false,
        }
    }

    /// The part of the diagram after the synchronisation packets. Returns whether the instruction was
    /// reported because of an uninferable discontinuity before.
    fn report_if_needed(
        &mut self,
        now: Retired,
        next: Option<Action>,
        (before, way): (Option<(Retired, Way)>, Way),
        due: bool,
        depth: usize,
        out: &mut Vec<Packet>,
    ) -> bool {
        let next_is_precise = match next {
            Some(Action::Retired(next)) => self.is_precise(now.context, next.context),
            _ => false,
        };
        let changes = way != Way::Mispredicted && next_is_precise;
        let trap_next = matches!(next, Some(Action::Trap(_)));
        let has_branches = self.branches.count > 0;
        let way_before = before.map_or(Way::Inferred, |before| before.1);
        if way_before.is_reported() {
            let updiscon = trap_next || changes || due;
            let depth = (way_before == Way::Mispredicted).then_some(depth as u64);
            self.report(now.address, false, updiscon, depth, out);
            self.unsettled = !updiscon;
        } else if now.notify {
            self.report(now.address, true, false, None, out);
        } else if has_branches && due
            || trap_next
            || changes && (has_branches || self.unsettled)
            || next.is_none()
        {
            // After a jump that is uninferable by itself, a decoder expects another occurrence of the
            // address, unless it is a notification. After a predicted return, the specification has
            // `irdepth` for that, which does not always determine the instruction (its issue 254).
            let jumped = before.is_some_and(|before| before.0.instruction.is_uninferable());
            self.report(now.address, jumped, false, None, out);
        } else if self.paths.must_report(now, (way, next_is_precise), next, depth) {
            self.report(now.address, true, false, None, out);
        } else if self.branches.count == FULL_MAP {
            out.push(Packet::FullMap(core::mem::take(&mut self.branches).map));
            self.count += 1;
            self.unsettled = false;
        }
        way_before.is_reported()
    }

    fn report(
        &mut self,
        address: u64,
        notify: bool,
        updiscon: bool,
        depth: Option<u64>,
        out: &mut Vec<Packet>,
    ) {
        let base = if self.config.options.full_address { 0 } else { self.address };
        let unused = 64 - u32::from(self.parameters.address_width);
        let difference = address.wrapping_sub(base) & low_bits(self.parameters.address_width);
        let address_field = ((difference << unused) as i64 >> unused) as u64;
        self.address = self.parameters.address(address);
        let report = Report { address: address_field, notify, updiscon, depth };
        let branches = core::mem::take(&mut self.branches);
        out.push(match branches.count {
            0 => Packet::Report(report),
            _ => Packet::BranchReport(branches, report),
        });
        self.count += 1;
        self.unsettled = false;
    }
}
