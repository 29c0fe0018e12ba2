// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets to events (`process_te_inst`, `follow_execution_path` and `process_support` of the
//! specification's chapter "Decoder").

use super::walk::{Pending, Position, Repetition, Rules, Step, fetch};
use super::{Event, Gap, Image, Mismatch, ReturnStack, Trap};
use crate::isa::{Kind, Xlen};
use crate::packet::{self, Branches, Context, FULL_MAP, Packet, Report, Start, Status};
use crate::parameters::{BadParameters, Options, Parameters};

/// Where the flow is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// Nothing is traced: before the first packet, or after the end.
    Outside,
    /// Nowhere, after a gap: a packet with a complete address must come.
    None,
    /// At the position's instruction, which retired.
    At,
    /// At the position's instruction, but the reported instruction may be the next occurrence of it:
    /// `inferred_address` of the specification.
    AtOrLater,
    /// Before a handler, after a trap that was reported without the handler's address.
    InTrap,
    /// Nowhere, as there was no code. Differences of addresses are still followed.
    NoCode,
}

/// What ends a path.
#[derive(Debug, Clone, Copy)]
enum Goal {
    /// The last reported branch (`stop_at_last_branch`).
    LastBranch,
    /// The instruction of a packet of format 1 or 2.
    Report(Report),
    /// The instruction of a synchronisation packet.
    Start(Context),
}

/// Decodes the flow of one hart.
#[derive(Debug, Clone)]
pub struct Decoder<I> {
    parameters: Parameters,
    image: I,
    xlen: Xlen,
    options_of: fn(u64) -> Options,
    options: Options,
    sync: Sync,
    at: Position,
    /// The address reported last.
    address: u64,
    /// The depth reported with it.
    depth: Option<u64>,
    /// The options are implemented.
    supported: bool,
    context: Option<Context>,
}

impl<I: Image> Decoder<I> {
    /// A decoder that has not seen a packet. Options are read in the order of the reference encoder.
    ///
    /// # Errors
    /// A parameter is out of its range.
    pub fn new(parameters: Parameters, xlen: Xlen, image: I) -> Result<Self, BadParameters> {
        parameters.check()?;
        Ok(Self {
            parameters,
            image,
            xlen,
            options_of: Options::from_bits,
            options: Options::default(),
            sync: Sync::Outside,
            at: Position::new(ReturnStack::new(parameters.depth_max())),
            address: 0,
            depth: None,
            supported: true,
            context: None,
        })
    }

    /// Reads `ioptions` of support packets by `options_of`, for encoders that do not use the order of
    /// the reference encoder.
    #[must_use]
    pub fn with_options(mut self, options_of: fn(u64) -> Options) -> Self {
        self.options_of = options_of;
        self
    }

    /// Processes a packet. Events go to `sink` in the order of execution.
    pub fn packet(&mut self, packet: &Packet, sink: &mut impl FnMut(Event)) {
        if let Err(gap) = self.process(packet, sink) {
            self.gap(gap, sink);
        }
    }

    /// A packet could not be read, or packets are missing.
    pub fn damage(&mut self, sink: &mut impl FnMut(Event)) {
        self.gap(Gap::Malformed, sink);
    }

    fn gap(&mut self, gap: Gap, sink: &mut impl FnMut(Event)) {
        // Without the calls in the missing code, later returns cannot be predicted.
        self.sync = match gap {
            Gap::NoCode(_) if !self.options.implicit_return => Sync::NoCode,
            _ => Sync::None,
        };
        self.at.pending = Pending::default();
        self.at.stack.clear();
        sink(Event::Gap(gap));
    }

    fn process(&mut self, packet: &Packet, sink: &mut impl FnMut(Event)) -> Result<(), Gap> {
        match packet {
            Packet::Support(support) => self.support(support, sink),
            // The gap was reported together with the options.
            _ if !self.supported => Ok(()),
            Packet::Context(context) => {
                self.set_context(*context, sink);
                Ok(())
            }
            Packet::Start(start) => self.start(start, sink),
            Packet::Trap(trap) => self.trap(trap, sink),
            // The gap was reported before.
            _ if self.sync == Sync::None => Ok(()),
            _ if self.sync == Sync::Outside => Err(Gap::NoStart),
            Packet::PredictedBranches { .. } => Err(Gap::Unsupported("branch prediction")),
            Packet::CachedTarget { .. } => Err(Gap::Unsupported("jump target cache")),
            Packet::FullMap(map) => {
                let branches = Branches { count: FULL_MAP, map: *map };
                self.branches(branches, Goal::LastBranch, sink)
            }
            Packet::BranchReport(branches, report) => {
                self.report_address(report);
                self.branches(*branches, Goal::Report(*report), sink)
            }
            Packet::Report(report) => {
                self.report_address(report);
                self.branches(Branches::default(), Goal::Report(*report), sink)
            }
        }
    }

    fn report_address(&mut self, report: &Report) {
        let start = if self.options.full_address { 0 } else { self.address };
        self.address = self.parameters.address(start.wrapping_add(report.address));
    }

    fn branches(
        &mut self,
        branches: Branches,
        goal: Goal,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), Gap> {
        match (self.sync, goal) {
            (Sync::NoCode, Goal::Report(_)) => self.resume(branches, sink),
            (Sync::NoCode, _) => Ok(()),
            // A packet of format 3 must follow a trap without its handler.
            (Sync::InTrap, _) => Err(Gap::Malformed),
            _ => {
                self.at.pending.append(branches)?;
                self.follow(goal, sink)
            }
        }
    }

    /// After code that is missing: the reported instruction retired, and of the branches the last one is
    /// its own if it is a branch.
    fn resume(&mut self, branches: Branches, sink: &mut impl FnMut(Event)) -> Result<(), Gap> {
        let instruction = fetch(&self.image, self.xlen, self.address)?;
        self.at.jump(self.address, instruction);
        if instruction.is_branch() {
            let last = branches.count.checked_sub(1);
            let last = last.ok_or(Gap::Inconsistent(Mismatch::BranchesMissing))?;
            self.at.pending.append(Branches { count: 1, map: branches.map >> last & 1 })?;
        }
        self.sync = Sync::At;
        self.retired(sink);
        Ok(())
    }

    fn retired(&self, sink: &mut impl FnMut(Event)) {
        sink(Event::Instruction { address: self.at.pc, instruction: self.at.instruction });
    }

    fn set_context(&mut self, context: Context, sink: &mut impl FnMut(Event)) {
        if self.context.replace(context) != Some(context) {
            sink(Event::Context(context));
        }
    }

    fn start(&mut self, start: &Start, sink: &mut impl FnMut(Event)) -> Result<(), Gap> {
        self.address = self.parameters.address(start.address);
        if matches!(self.sync, Sync::At | Sync::AtOrLater) {
            let instruction = fetch(&self.image, self.xlen, self.address)?;
            if instruction.is_branch() {
                self.at.pending.append(outcome(start.not_taken))?;
            }
            // A synchronisation packet directly follows the instruction that was reported before.
            self.sync = Sync::At;
            self.follow(Goal::Start(start.context), sink)?;
        } else {
            self.enter(start.not_taken, start.context, sink)?;
        }
        self.at.stack.clear();
        Ok(())
    }

    /// Continues at the reported address, whatever was executed before.
    fn enter(
        &mut self,
        not_taken: bool,
        context: Context,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), Gap> {
        let instruction = fetch(&self.image, self.xlen, self.address)?;
        self.at.jump(self.address, instruction);
        self.at.pending = Pending::default();
        if instruction.is_branch() {
            self.at.pending.append(outcome(not_taken))?;
        }
        self.sync = Sync::At;
        self.set_context(context, sink);
        self.retired(sink);
        Ok(())
    }

    fn trap(&mut self, trap: &packet::Trap, sink: &mut impl FnMut(Event)) -> Result<(), Gap> {
        let address = if trap.value.is_some() { self.exception_address(trap) } else { None };
        sink(Event::Trap(Trap { cause: trap.cause, value: trap.value, address }));
        self.address = self.parameters.address(trap.address);
        if trap.handler {
            self.enter(trap.not_taken, trap.context, sink)?;
            self.at.stack.clear();
        } else {
            self.sync = Sync::InTrap;
        }
        Ok(())
    }

    /// `exception_address`: where the exception was raised, as the instruction before determines it.
    fn exception_address(&mut self, trap: &packet::Trap) -> Option<u64> {
        match self.sync {
            // At the first traced instruction (specification, "Format 3 *thaddr*, *address* and
            // *privilege* fields").
            Sync::Outside => (!trap.handler).then_some(self.parameters.address(trap.address)),
            Sync::None | Sync::InTrap | Sync::NoCode => None,
            Sync::At | Sync::AtOrLater => match self.at.instruction.kind {
                Kind::Ecall | Kind::Ebreak => Some(self.at.pc),
                _ if self.at.instruction.is_uninferable() && !trap.handler => {
                    Some(self.parameters.address(trap.address))
                }
                _ => {
                    let rules = self.rules(None, None);
                    let next = self.at.next(&self.parameters, &rules).ok()?;
                    Some(next.0)
                }
            },
        }
    }

    fn rules(&self, target: Option<u64>, depth: Option<u64>) -> Rules {
        Rules {
            target,
            depth: depth.and_then(|depth| usize::try_from(depth).ok()),
            implicit_return: self.options.implicit_return,
        }
    }

    fn support(
        &mut self,
        support: &packet::Support,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), Gap> {
        if support.status == Status::EndedAnyway && self.sync == Sync::AtOrLater {
            self.follow_again(sink)?;
        }
        let was_traced = self.sync != Sync::Outside;
        self.options = (self.options_of)(support.options);
        self.supported = support.mode == 0 && self.options.unsupported().is_none();
        match support.status {
            Status::NoChange => {}
            Status::Lost => return Err(Gap::Lost),
            Status::EndedReported | Status::EndedAnyway => {
                self.sync = Sync::Outside;
                self.at.pending = Pending::default();
                self.at.stack.clear();
                if was_traced {
                    sink(Event::End);
                }
            }
        }
        if support.mode != 0 {
            return Err(Gap::Unsupported("encoder mode"));
        }
        match self.options.unsupported() {
            Some(option) => Err(Gap::Unsupported(option)),
            None => Ok(()),
        }
    }

    /// To the second occurrence of the instruction that was reported before. It follows an
    /// uninferable discontinuity.
    fn follow_again(&mut self, sink: &mut impl FnMut(Event)) -> Result<(), Gap> {
        self.sync = Sync::At;
        let rules = self.rules(Some(self.at.pc), self.depth);
        let mut repetition = Repetition::new(&self.at);
        loop {
            let step = self.at.step(&self.parameters, (&self.image, self.xlen), &rules)?;
            self.retired(sink);
            if step == Step::Reported {
                return Ok(());
            }
            if repetition.repeats(&self.at, &rules) {
                return Err(Gap::Inconsistent(Mismatch::Endless));
            }
        }
    }

    /// `follow_execution_path`.
    fn follow(&mut self, goal: Goal, sink: &mut impl FnMut(Event)) -> Result<(), Gap> {
        let (target, depth) = match goal {
            Goal::LastBranch => (None, None),
            Goal::Report(report) => (Some(self.address), report.depth),
            Goal::Start(_) => (Some(self.address), None),
        };
        if self.sync == Sync::AtOrLater {
            self.follow_again(sink)?;
        }
        self.depth = depth;
        let rules = self.rules(target, depth);
        let mut repetition = Repetition::new(&self.at);
        loop {
            let before = self.at.instruction.kind;
            let step = self.at.step(&self.parameters, (&self.image, self.xlen), &rules)?;
            let arrived = self.arrived(goal, step, before)?;
            if let (Goal::Start(context), Some(_)) = (goal, arrived) {
                self.set_context(context, sink);
            }
            self.retired(sink);
            if let Some(sync) = arrived {
                self.sync = sync;
                return Ok(());
            }
            if repetition.repeats(&self.at, &rules) {
                return Err(Gap::Inconsistent(Mismatch::Endless));
            }
        }
    }

    /// Whether the path ends here; if so, how certain the position is.
    fn arrived(&self, goal: Goal, step: Step, before: Kind) -> Result<Option<Sync>, Gap> {
        let at = &self.at;
        if matches!(goal, Goal::LastBranch) {
            // Not followed further: it is not yet known whether the next instruction retires.
            let is_last = at.pending.count == 1 && at.instruction.is_branch();
            return Ok(is_last.then_some(Sync::At));
        }
        if step == Step::Reported {
            return match at.has_unprocessed() {
                true => Err(Gap::Inconsistent(Mismatch::BranchesLeft)),
                false => Ok(Some(Sync::At)),
            };
        }
        if at.pc != self.address || at.has_unprocessed() {
            return Ok(None);
        }
        Ok(match goal {
            Goal::Report(report) if report.notify => Some(Sync::At),
            Goal::Report(report) => {
                let depth_fits = report.depth.is_none_or(|depth| depth == at.stack.depth() as u64);
                (!report.updiscon && depth_fits).then_some(Sync::AtOrLater)
            }
            // A change of privilege needs a return from a trap.
            Goal::Start(context) => {
                let same = self.context.is_some_and(|old| old.privilege == context.privilege);
                (same || before == Kind::TrapReturn).then_some(Sync::At)
            }
            Goal::LastBranch => None,
        })
    }
}

/// The outcome of a single branch.
fn outcome(not_taken: bool) -> Branches {
    Branches { count: 1, map: u32::from(not_taken) }
}
