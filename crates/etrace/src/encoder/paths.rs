// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The path that a decoder will follow, so that it stops at the right instruction.
//!
//! A decoder stops at the first occurrence of a reported address at which no branches are left. That is
//! the wrong one if the path since the last packet or branch passes the address twice: in a loop without
//! branches, or, in implicit return mode, in a function that is called twice. For the latter the
//! specification has `irdepth`, but a depth does not distinguish two calls from the same function
//! (issue 254 of the specification). Therefore an instruction is reported by a notification before the
//! path comes to an address for the second time; then each address occurs once, and no depth is needed.
//!
//! A return that was not predicted is recognised by its depth. A decoder takes the first return at that
//! depth for it, so such a return is reported itself if there was another one at its depth.

use super::{Action, Retired};
use crate::flow::{ReturnStack, sequential_target};
use crate::isa::Kind;
use crate::parameters::Parameters;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// How a decoder gets from an instruction to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By the code and the outcome of the branch.
    Inferred,
    /// By the return stack.
    Predicted,
    /// By a packet, as the return stack has another address.
    Mispredicted,
    /// By a packet.
    Uninferable,
}

impl Way {
    /// The next instruction must be reported.
    pub(super) fn is_reported(self) -> bool {
        matches!(self, Self::Mispredicted | Self::Uninferable)
    }
}

/// What a decoder knows and passed.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    parameters: Parameters,
    stack: ReturnStack,
    /// Implicit return mode.
    implicit: bool,
    /// Addresses passed since the last packet or branch, as runs of their first and last instruction.
    passed: Vec<(u64, u64)>,
    /// Depths of the returns passed since the last packet.
    returns: BTreeSet<usize>,
}

/// Runs after which an instruction is reported in any case, so that searching them stays cheap.
const RUNS_MAX: usize = 64;

impl Paths {
    pub(super) fn new(parameters: Parameters, implicit: bool) -> Self {
        let stack = ReturnStack::new(if implicit { parameters.depth_max() } else { 0 });
        Self { parameters, stack, implicit, passed: Vec::new(), returns: BTreeSet::new() }
    }

    /// A synchronisation packet was sent.
    pub(super) fn synchronised(&mut self) {
        self.stack.clear();
        self.sent();
    }

    /// A packet was sent.
    pub(super) fn sent(&mut self) {
        self.passed.clear();
        self.returns.clear();
    }

    pub(super) fn depth(&self) -> usize {
        self.stack.depth()
    }

    /// The target of a sequentially inferable jump.
    pub(super) fn sequential(&self, before: Option<Retired>, now: Retired) -> Option<u64> {
        let before = before.filter(|_| self.parameters.sequential_jumps)?;
        let target = sequential_target(before.address, before.instruction, now.instruction)?;
        Some(self.parameters.address(target))
    }

    /// The next address, if only code and branches determine it.
    pub(super) fn successor(&self, before: Option<Retired>, now: Retired) -> Option<u64> {
        let after = now.address.wrapping_add(u64::from(now.instruction.length));
        let relative = |offset: i32| now.address.wrapping_add_signed(i64::from(offset));
        let next = match now.instruction.kind {
            Kind::Jump { offset, .. } => relative(offset),
            Kind::Branch { offset } if now.taken => relative(offset),
            Kind::Indirect { base: 0, offset, .. } => i64::from(offset) as u64 & !1,
            Kind::Indirect { .. } | Kind::TrapReturn => return self.sequential(before, now),
            _ => after,
        };
        Some(self.parameters.address(next))
    }

    pub(super) fn way(&self, before: Option<Retired>, now: Retired, next: Option<Action>) -> Way {
        if !now.instruction.is_uninferable() || self.sequential(before, now).is_some() {
            return Way::Inferred;
        }
        let top = self.stack.top().filter(|_| now.instruction.is_return());
        let actual = match next {
            Some(Action::Retired(next)) => Some(next.address),
            // The target of the return raised it.
            Some(Action::Trap(trap)) => Some(trap.address),
            None => top,
        };
        match top {
            None => Way::Uninferable,
            Some(_) if top == actual => Way::Predicted,
            Some(_) => Way::Mispredicted,
        }
    }

    /// Whether the instruction must be reported so that the following path is found. `changes`: the next one
    /// is where the context changes.
    pub(super) fn must_report(
        &self,
        now: Retired,
        (way, changes): (Way, bool),
        next: Option<Action>,
        depth: usize,
    ) -> bool {
        let Some(Action::Retired(next)) = next else { return false };
        let has_passed = |(first, last): &(u64, u64)| (*first..=*last).contains(&next.address);
        let again = next.address == now.address || self.passed.iter().any(has_passed);
        match way {
            // The packet with the context comes before that of the next one.
            Way::Mispredicted => again || changes || self.returns.contains(&depth),
            // A decoder that stops too early continues with the next packet. That packet's depth is then
            // compared on a path to which it does not belong. Of a synchronisation packet it does not know
            // that it stopped too early.
            Way::Uninferable => again && (self.implicit || changes),
            // The number of branches left distinguishes occurrences before and after a branch.
            _ if now.instruction.is_branch() => false,
            _ => again || self.passed.len() >= RUNS_MAX,
        }
    }

    /// Extends the path by an instruction, with or without a packet.
    pub(super) fn passed(&mut self, now: Retired, way: Way, sent: bool) {
        if way == Way::Predicted {
            self.returns.insert(self.stack.depth());
            self.stack.pop();
        }
        let after = now.address.wrapping_add(u64::from(now.instruction.length));
        if now.instruction.is_call() {
            self.stack.push(self.parameters.address(after));
        }
        if sent {
            return;
        }
        // The branch itself is distinguished by the branches left, too.
        if now.instruction.is_branch() {
            self.passed.clear();
            return;
        }
        match self.passed.last_mut() {
            Some((_, last)) if now.address.wrapping_sub(*last) <= 8 && *last < now.address => {
                *last = now.address;
            }
            _ => self.passed.push((now.address, now.address)),
        }
    }
}
