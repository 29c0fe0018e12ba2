// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Branch records of a processor (LBR of Intel, BRS and LBR of AMD, BRBE of Arm), from samples of `perf
//! record -b`: individually, counted by source and target, and, in the mode in which the processor
//! records calls that have not returned (`--call-graph lbr`), as stacks.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_model::{Damage, Event, EventClass, FieldClass, FieldKind, Value};

use super::{Of, Samples};
use crate::Chosen;
use crate::flow::place_of;
use crate::places::{Function, Images, In, Line, thread_of};

const BRANCHES: Of = Of("branches", "perf_branches");
/// Attribute with the type of branches of a class of samples, as provided by readers of perf's files.
const SAMPLE_TYPE: &str = "perf.branch_sample_type";
/// The entries are calls that have not returned [perf_event.h, PERF_SAMPLE_BRANCH_CALL_STACK].
const CALL_STACK: u64 = 1 << 11;
/// Members of `struct perf_branch_entry` after its addresses [perf_event.h].
const MISPREDICTED: u64 = 1;
const PREDICTED: u64 = 1 << 1;
const IN_TRANSACTION: u64 = 1 << 2;
const ABORT: u64 = 1 << 3;
const CYCLES_SHIFT: u32 = 4;
const KIND_SHIFT: u32 = 20;
/// Names by `type` [perf_event.h, enum perf_branch_type, PERF_BR_COND and following], without the first,
/// which is unknown.
const KINDS: [&str; 14] = [
    "conditional",
    "jump",
    "indirect jump",
    "call",
    "indirect call",
    "return",
    "system call",
    "system return",
    "conditional call",
    "conditional return",
    "exception return",
    "interrupt",
    "error",
    "end of transaction",
];
/// Largest number of branches of a sample that are read: processors record up to 64.
const BRANCHES_MAX: usize = 1024;
/// Largest number of distinct jumps.
const JUMPS_MAX: usize = 1 << 20;

/// A taken branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch.
    pub from: u64,
    /// Its target.
    pub to: u64,
    flags: u64,
}

impl Branch {
    /// Whether it was mispredicted; `None` if the processor does not report it.
    #[must_use]
    pub fn is_mispredicted(self) -> Option<bool> {
        match (self.flags & MISPREDICTED != 0, self.flags & PREDICTED != 0) {
            (_, true) => Some(false),
            (true, false) => Some(true),
            (false, false) => None,
        }
    }

    /// Whether it was in a memory transaction (TSX).
    #[must_use]
    pub fn is_in_transaction(self) -> bool {
        self.flags & IN_TRANSACTION != 0
    }

    /// Whether it is the abort of a transaction.
    #[must_use]
    pub fn is_abort(self) -> bool {
        self.flags & ABORT != 0
    }

    /// Cycles since the previous branch; `None` if the processor does not report it.
    #[must_use]
    pub fn cycles(self) -> Option<u16> {
        Some((self.flags >> CYCLES_SHIFT) as u16).filter(|cycles| *cycles > 0)
    }

    /// Kind of branch, if perf determined it (`-j save_type`).
    #[must_use]
    pub fn kind(self) -> Option<&'static str> {
        let number = (self.flags >> KIND_SHIFT & 0xf) as usize;
        number.checked_sub(1).and_then(|index| KINDS.get(index)).copied()
    }
}

/// The branches of a sample, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branches {
    /// The branches.
    pub all: Vec<Branch>,
    /// Whether they are calls that have not returned, rather than the branches that were taken last.
    pub are_calls: bool,
}

/// Whether samples of a class have branches.
pub(crate) fn has_branches(class: &EventClass) -> bool {
    let is_array = |of: &Option<FieldClass>, name: &str| {
        let members = of.as_ref().map_or(&[][..], |of| of.members());
        let of = members.iter().find(|of| of.name == name);
        of.is_some_and(|of| matches!(of.class.kind, FieldKind::Array { .. }))
    };
    is_array(&class.payload, BRANCHES.0) || is_array(&class.context, BRANCHES.1)
}

impl Branches {
    /// The branches of a sample; `None` if it has none.
    #[must_use]
    pub fn of(event: &Event<'_>) -> Option<Self> {
        let Value::Array(branches) = BRANCHES.in_event(event)?.value() else { return None };
        let mut all = Vec::new();
        for branch in branches.take(BRANCHES_MAX) {
            let Value::Struct(branch) = branch.value() else { return None };
            let number = |name: &str| branch.get(name)?.as_u64();
            let (from, to, flags) = (number("from")?, number("to")?, number("flags")?);
            all.push(Branch { from, to, flags });
        }
        Some(Self { all, are_calls: are_calls(event.class) })
    }
}

fn are_calls(class: &EventClass) -> bool {
    let bits = class.attribute(SAMPLE_TYPE).and_then(|text| text.strip_prefix("0x"));
    let bits = bits.and_then(|text| u64::from_str_radix(text, 16).ok());
    bits.is_some_and(|bits| bits & CALL_STACK != 0)
}

/// Calls of a program that have not returned, innermost first.
pub(super) struct Calls {
    calls: Vec<Branch>,
    /// Whether the interrupted instruction is in the function that was called last.
    has_interrupted: bool,
}

impl Calls {
    /// Addresses on the stack, innermost first. `interrupted`: the instruction at which the sample was
    /// taken.
    pub fn addresses(&self, interrupted: Option<u64>) -> impl Iterator<Item = u64> {
        let last = self.calls.first().map(|call| call.to);
        let innermost = interrupted.filter(|_| self.has_interrupted).or(last);
        innermost.into_iter().chain(self.calls.iter().map(|call| call.from))
    }
}

impl Samples<'_> {
    /// Calls recorded by the processor, for a sample that has them.
    pub(super) fn remembered_calls(&mut self, pid: u32, event: &Event<'_>) -> Option<Calls> {
        if !are_calls(event.class) {
            return None;
        }
        let calls = Branches::of(event)?.all;
        let last = calls.first()?.to;
        // A jump out of the called function, as compilers make of a tail call, is not recorded: the chain
        // of perf then has the target of the call.
        let ip = super::IP.in_event(event).and_then(|field| field.as_u64())?;
        let mut function = |address| self.places.function_at(pid, address, In::Program);
        Some(Calls { has_interrupted: function(ip) == function(last), calls })
    }
}

/// A location in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The function, an index into [`Jumps::functions`].
    pub function: u32,
    /// Offset from its start; `None` if the function is unknown.
    pub offset: Option<u64>,
    /// Address in the first process that was seen there.
    pub address: u64,
    /// Source line; its file is an index into [`Jumps::sources`].
    pub line: Option<Line>,
}

/// Statistics of a branch from one location to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jump {
    /// The branch.
    pub from: Spot,
    /// Its target.
    pub to: Spot,
    /// Number of times it was taken.
    pub count: u64,
    /// Number of mispredictions.
    pub mispredicted: u64,
    /// Number of correct predictions.
    pub predicted: u64,
    /// Number of times in a memory transaction.
    pub in_transaction: u64,
    /// Number of times it aborted one.
    pub aborted: u64,
    /// Number of times with a known number of cycles since the previous branch.
    pub timed: u64,
    /// Sum of these cycles.
    pub cycles: u64,
}

/// Branches of samples, counted.
#[derive(Debug, Clone, Default)]
pub struct Jumps {
    /// Number of samples with branches.
    pub samples: u64,
    /// Number of samples with unreturned calls instead: they are not counted.
    pub call_stacks: u64,
    /// Number of branches.
    pub branches: u64,
    /// Number of branches beyond the limit of distinct ones.
    pub not_kept: u64,
    /// Most frequent first.
    pub jumps: Vec<Jump>,
    /// Functions of all of them.
    pub functions: Vec<Function>,
    /// Files of source.
    pub sources: Vec<String>,
    /// Images that could not be read, with the reason and the number of addresses in them.
    pub missing: Vec<(String, String, u64)>,
    /// Damage found while reading.
    pub damage: Vec<Damage>,
}

/// Process-independent location: the function and offset, or the address.
type Key = (u32, Option<u64>, u64);

/// Finds the jump of a branch.
#[derive(Default)]
struct Ids {
    /// By process and addresses, until mappings change.
    known: HashMap<(u32, u64, u64), usize, RandomState>,
    by_place: HashMap<(Key, Key), usize, RandomState>,
}

/// Counts the branches of all selected samples.
///
/// Cost: a pass over all events, and one read of each image. Memory: proportional to distinct branches,
/// which are limited.
pub fn jumps(chosen: &Chosen<'_>, images: &mut dyn Images) -> Jumps {
    let mut samples = Samples::new(images, &chosen.trace);
    let (mut found, mut ids) = (Jumps::default(), Ids::default());
    (chosen.begins)();
    let (begin, end) = chosen.ends();
    let mut events = chosen.source.events();
    while let Some(event) = events.next_event() {
        if event.time > end {
            break;
        }
        if samples.see(&event) {
            ids.known = HashMap::default();
            continue;
        }
        if event.time < begin || !has_branches(event.class) || !(chosen.contains)(&event) {
            continue;
        }
        let Some(branches) = Branches::of(&event) else { continue };
        if branches.are_calls {
            found.call_stacks += 1;
            continue;
        }
        found.samples += 1;
        let (pid, _) = thread_of(&event).unwrap_or((0, 0));
        for branch in branches.all {
            found.branches += 1;
            match ids.jump(&mut samples, pid, branch, &mut found.jumps) {
                Some(jump) => jump.count(branch),
                None => found.not_kept += 1,
            }
        }
    }
    found.damage = chosen.source.damage().to_vec();
    found.damage.extend(events.damage());
    found.jumps.sort_by_key(|jump| (u64::MAX - jump.count, jump.from.address, jump.to.address));
    found.sources = samples.places().sources().to_vec();
    (found.functions, found.missing) = samples.places.finish();
    found.missing.retain(|(_, _, count)| *count > 0);
    found
}

impl Ids {
    /// The jump of a branch; `None` if there are too many.
    fn jump<'j>(
        &mut self,
        samples: &mut Samples<'_>,
        pid: u32,
        branch: Branch,
        jumps: &'j mut Vec<Jump>,
    ) -> Option<&'j mut Jump> {
        let known = (pid, branch.from, branch.to);
        if let Some(index) = self.known.get(&known) {
            return jumps.get_mut(*index);
        }
        let (from, to) = (samples.spot(pid, branch.from), samples.spot(pid, branch.to));
        let place = (from.key(), to.key());
        let index = match self.by_place.get(&place) {
            Some(index) => *index,
            None if jumps.len() >= JUMPS_MAX => return None,
            None => {
                jumps.push(Jump {
                    from,
                    to,
                    count: 0,
                    mispredicted: 0,
                    predicted: 0,
                    in_transaction: 0,
                    aborted: 0,
                    timed: 0,
                    cycles: 0,
                });
                self.by_place.insert(place, jumps.len() - 1);
                jumps.len() - 1
            }
        };
        if self.known.len() < JUMPS_MAX {
            self.known.insert(known, index);
        }
        jumps.get_mut(index)
    }
}

impl Spot {
    fn key(&self) -> Key {
        match self.offset {
            Some(_) => (self.function, self.offset, 0),
            None => (self.function, None, self.address),
        }
    }
}

impl Jump {
    fn count(&mut self, branch: Branch) {
        self.count += 1;
        self.mispredicted += u64::from(branch.is_mispredicted() == Some(true));
        self.predicted += u64::from(branch.is_mispredicted() == Some(false));
        self.in_transaction += u64::from(branch.is_in_transaction());
        self.aborted += u64::from(branch.is_abort());
        if let Some(cycles) = branch.cycles() {
            self.timed += 1;
            self.cycles += u64::from(cycles);
        }
    }
}

impl Samples<'_> {
    fn spot(&mut self, pid: u32, address: u64) -> Spot {
        let place = place_of(address);
        let offset = self.places.offset_at(pid, address, place);
        let function = self.places.function_at(pid, address, place);
        let line = self.places.frames_at(pid, address, place).last().and_then(|frame| frame.line);
        Spot { function, offset, address, line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_perf() {
        let of = |flags| Branch { from: 1, to: 2, flags };
        assert_eq!(of(0).is_mispredicted(), None);
        assert_eq!(of(1).is_mispredicted(), Some(true));
        assert_eq!((of(2).is_mispredicted(), of(3).is_mispredicted()), (Some(false), Some(false)));
        assert!(of(4).is_in_transaction() && of(8).is_abort() && !of(4).is_abort());
        assert_eq!((of(0).cycles(), of(0xabcd << 4 | 1).cycles()), (None, Some(0xabcd)));
        assert_eq!((of(0).kind(), of(4 << 20).kind()), (None, Some("call")));
        assert_eq!(of(15 << 20).kind(), None);
    }
}
