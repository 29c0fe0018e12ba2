// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls, from the executed blocks: number of instructions by function and call path, and from each call
//! to its return.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use lateralis_intelpt::flow::Event;
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::time::Time;
use lateralis_intelpt::{Block, Ends};

use super::gather::{Emit, Gather, Gathering, Names, SharedPlaces, Take};
use super::{Follow, Moment, Observe, Recorded, Traced, cause_name, place_of};
use crate::places::{Function, In, Places};
use crate::stacks::{Stacks, Tree};

/// Deepest path; deeper calls count as part of the last one.
const DEPTH_MAX: usize = 1024;
/// Name of the weight.
pub const INSTRUCTIONS: &str = "instructions";

/// Result of decoding.
#[derive(Debug, Clone, Default)]
pub struct Executed {
    /// Call paths weighted by instructions; `samples` are the calls of each.
    pub stacks: Stacks,
    /// Number of instructions.
    pub instructions: u64,
    /// Number of calls, including interrupts and faults.
    pub calls: u64,
    /// Interrupts and faults.
    pub interrupts: u64,
    /// Gaps, by cause.
    pub gaps: BTreeMap<&'static str, u64>,
}

/// One call of a function, from its first instruction to its return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The function, by its number.
    pub function: u32,
    /// The caller; `None` if unknown.
    pub caller: Option<u32>,
    /// Number of its first instruction in the thread.
    pub begin: u64,
    /// Instructions in it and its callees.
    pub instructions: u64,
    /// Number of known enclosing calls.
    pub depth: u32,
    /// Address of its first executed instruction.
    pub address: u64,
    /// Times of its first and last block.
    pub times: (Moment, Moment),
    /// Whether it was seen from its call to its return: without a gap, and with both ends.
    pub is_whole: bool,
    /// Whether it executed code that an address filter excluded: then it had more instructions.
    pub is_filtered: bool,
}

/// A function that was entered and has not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entered {
    node: u32,
    begin: u64,
    is_called: bool,
    is_filtered: bool,
    address: u64,
    time: Moment,
}

/// State of a thread, for continuing later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pid: u32,
    /// Number of instructions of this thread.
    pub(super) count: u64,
    /// From the program to the current function.
    path: Vec<Entered>,
    /// Number of open calls beyond the deepest path.
    beyond: usize,
    /// Whether the next block belongs to a called function.
    is_called: bool,
    /// Whether the caller of the next block is known, which it is not after a gap.
    is_known: bool,
    /// Last instruction of the last block, and its end.
    last: Option<(u64, Ends)>,
    /// Whether untraced code is being executed, after a branch to it.
    is_outside: bool,
    /// Whether the last block was in the kernel, and the length of the path at its entry.
    in_kernel: Option<usize>,
}

impl State {
    /// Whether nothing has been executed yet.
    pub(super) fn is_nowhere(&self) -> bool {
        self.path.is_empty()
    }
}

/// Cached information about code and paths.
#[derive(Debug, Default)]
pub(super) struct Known {
    tree: Tree,
    /// The process of `functions`.
    pid: u32,
    /// Function of each executed block.
    functions: HashMap<u64, u32, RandomState>,
}

pub(super) struct Calls<R> {
    pub(super) known: Known,
    executed: Executed,
    pub(super) state: State,
    /// The current block: its address, and its time.
    pub(super) now: (u64, Moment),
    pub(super) traced: Traced,
    is_enough: bool,
    pub(super) returned: R,
}

/// Decodes everything; each call is reported when it returns.
///
/// Cost: a lookup for each block. Memory: proportional to blocks and paths.
pub fn executed(
    recorded: &mut Recorded<'_>,
    returned: impl FnMut(&mut Places<'_>, &Traced, Call) -> ControlFlow<()>,
) -> Executed {
    let known = Known { tree: Tree::new(INSTRUCTIONS.to_owned()), ..Known::default() };
    let mut calls = Calls::new(known, State::default(), Traced::default(), returned);
    recorded.follow(&mut calls);
    calls.cut(&mut recorded.places, 1, false);
    let Calls { known, executed, .. } = calls;
    Executed { stacks: known.tree.finish(), ..executed }
}

impl<R: FnMut(&mut Places<'_>, &Traced, Call) -> ControlFlow<()>> Calls<R> {
    /// Continues from a state of a thread.
    pub(super) fn new(known: Known, state: State, traced: Traced, returned: R) -> Self {
        let executed = Executed::default();
        Self { known, executed, state, now: (0, None), traced, is_enough: false, returned }
    }

    /// Functions that have not returned, as open calls; the outermost first.
    pub(super) fn open(&self) -> impl Iterator<Item = Call> + '_ {
        let all = self.state.path.iter().enumerate().skip(1);
        all.filter_map(|(depth, entered)| self.call(depth, entered, false))
    }

    fn call(&self, depth: usize, entered: &Entered, is_whole: bool) -> Option<Call> {
        let of = self.known.tree.node(entered.node)?;
        let before = depth.checked_sub(1).and_then(|before| self.state.path.get(before));
        let caller = before.filter(|_| entered.is_called && depth > 1);
        let caller = caller.and_then(|caller| self.known.tree.node(caller.node));
        Some(Call {
            function: of.function,
            caller: caller.map(|caller| caller.function),
            begin: entered.begin,
            instructions: self.state.count - entered.begin,
            depth: depth.saturating_sub(1) as u32,
            address: entered.address,
            times: (entered.time, self.now.1),
            is_whole: entered.is_called && is_whole,
            is_filtered: entered.is_filtered,
        })
    }

    /// The following items belong to this thread.
    pub(super) fn is_of(&mut self, traced: &Traced) {
        if self.known.pid != traced.pid {
            self.known.functions.clear();
            self.known.pid = traced.pid;
        }
        self.state.pid = traced.pid;
    }

    /// The callers of the next block are unknown.
    fn forget(&mut self, places: &mut Places<'_>) {
        self.cut(places, 1, false);
        self.state.beyond = 0;
        self.state.is_called = true;
        self.state.is_known = false;
        self.state.in_kernel = None;
    }

    /// Ends calls deeper than `depth`: they have returned, or never will.
    fn cut(&mut self, places: &mut Places<'_>, depth: usize, have_returned: bool) {
        while self.state.path.len() > depth.max(1) {
            let Some(entered) = self.state.path.pop() else { return };
            if let Some(caller) = self.state.path.last_mut() {
                caller.is_filtered |= entered.is_filtered;
            }
            let call = self.call(self.state.path.len(), &entered, have_returned);
            let Some(call) = call.filter(|_| !self.is_enough) else { continue };
            self.is_enough = (self.returned)(places, &self.traced, call).is_break();
        }
    }

    /// Blocks of one function were executed; only the last may call or return.
    fn blocks(&mut self, places: &mut Places<'_>, of: &Blocks) {
        let Blocks { function, ip, count, ends, times: (first, last), .. } = *of;
        self.now = (ip, first);
        self.state.last = Some((of.last, ends));
        match (place_of(ip), self.state.in_kernel) {
            (In::Kernel, None) => {
                self.state.in_kernel = Some(self.state.path.len());
                self.state.is_called = true;
            }
            (In::Program, Some(depth)) => {
                self.state.in_kernel = None;
                self.state.beyond = 0;
                self.cut(places, depth, true);
            }
            _ => {}
        }
        self.enter(places, function);
        self.now.1 = last;
        self.state.count += count;
        self.executed.instructions += count;
        self.known.tree.weigh(self.state.path.last().map(|of| of.node), 0, count);
        match ends {
            Ends::Call | Ends::IndirectCall => self.state.is_called = true,
            Ends::Return => self.leave(places),
            Ends::Far | Ends::Through | Ends::Jump | Ends::Conditional => {}
            Ends::IndirectJump | Ends::NoCode => {}
        }
    }

    /// Tracing ended at an instruction: if it is a branch, it leads to addresses that are not traced.
    fn leave_filter(&mut self, at: u64) {
        let Some((_, ends)) = self.state.last.filter(|(last, _)| *last == at) else { return };
        match ends {
            Ends::Through | Ends::Far | Ends::NoCode => return,
            Ends::Call | Ends::IndirectCall => self.state.is_called = false,
            Ends::Jump | Ends::Conditional | Ends::IndirectJump | Ends::Return => {}
        }
        self.state.is_outside = true;
        if let Some(running) = self.state.path.last_mut() {
            running.is_filtered = true;
        }
    }

    fn function_of(&self, entered: &Entered) -> Option<u32> {
        self.known.tree.node(entered.node).map(|node| node.function)
    }

    /// The current function is this one.
    fn enter(&mut self, places: &mut Places<'_>, function: u32) {
        let mut is_called = std::mem::take(&mut self.state.is_called);
        if std::mem::take(&mut self.state.is_outside) && !is_called {
            // Control returned to the function that left, or to one of its callers; otherwise untraced
            // code called it.
            let is_it = |of: &Entered| self.function_of(of) == Some(function);
            if !self.state.path.iter().skip(1).any(is_it) {
                is_called = true;
                self.state.is_known = false;
            }
        }
        if is_called {
            self.executed.calls += 1;
            if self.state.path.len() >= DEPTH_MAX {
                self.state.beyond += 1;
                return;
            }
        } else {
            let running = self.state.path.last().and_then(|of| self.function_of(of));
            if self.state.beyond > 0 || (running == Some(function) && self.state.path.len() > 1) {
                return;
            }
            // Control went back by more than one call, as exceptions and longjmp do; or it jumped on, and
            // the function that was called last never returns.
            let is_it = |of: &Entered| self.function_of(of) == Some(function);
            if let Some(place) = self.state.path.iter().skip(1).rposition(is_it) {
                self.cut(places, place + 2, false);
                return;
            }
            // A tail call returns on behalf of the function that made it.
            is_called =
                self.state.path.last().is_some_and(|of| of.is_called) && self.state.path.len() > 1;
            self.cut(places, self.state.path.len().saturating_sub(1), true);
        }
        let is_known = std::mem::replace(&mut self.state.is_known, true);
        let caller = self.state.path.last().map(|of| of.node);
        if let Some(node) = self.known.tree.below(caller, function) {
            let (address, time) = self.now;
            let is_called = is_called && is_known;
            self.state.path.push(Entered {
                node,
                begin: self.state.count,
                is_called,
                is_filtered: false,
                address,
                time,
            });
            self.known.tree.weigh(Some(node), 1, 0);
        }
    }

    fn leave(&mut self, places: &mut Places<'_>) {
        if self.state.beyond > 0 {
            self.state.beyond -= 1;
            return;
        }
        let depth = self.state.path.len();
        self.cut(places, depth.saturating_sub(1), true);
        if depth <= 2 {
            // It returns to an unknown caller.
            self.state.is_called = true;
            self.state.is_known = false;
        }
    }
}

impl<R: FnMut(&mut Places<'_>, &Traced, Call) -> ControlFlow<()>> Follow for Calls<R> {
    fn begins(&mut self, places: &mut Places<'_>, traced: &Traced) {
        self.forget(places);
        let name = traced.program.clone();
        let program = places.function(Function { name, image: String::new() });
        self.state.count = 0;
        self.is_of(traced);
        self.state.path.clear();
        let node = self.known.tree.below(None, program);
        let program = |node| Entered {
            node,
            begin: 0,
            is_called: false,
            is_filtered: false,
            address: 0,
            time: None,
        };
        self.state.path.extend(node.map(program));
        self.traced = traced.clone();
    }

    fn goes_on(&mut self, cpu: u32) {
        self.traced.cpu = Some(cpu);
    }

    fn block(&mut self, places: &mut Places<'_>, _: &Sections<'_>, block: &Block, time: Moment) {
        let pid = self.state.pid;
        let function = *self
            .known
            .functions
            .entry(block.ip)
            .or_insert_with(|| places.function_at(pid, block.ip, place_of(block.ip)));
        let Block { ip, last, count, ends, .. } = *block;
        let (count, times) = (count.into(), (time, time));
        self.blocks(places, &Blocks { function, ip, last, count, ends, times });
    }

    fn is_enough(&self) -> bool {
        self.is_enough
    }

    fn event(&mut self, places: &mut Places<'_>, _: u64, event: Event, _: Moment) {
        match event {
            Event::Interrupted { .. } => {
                self.executed.interrupts += 1;
                self.state.is_called = true;
            }
            Event::Gap(gap) => {
                *self.executed.gaps.entry(cause_name(&gap.cause)).or_default() += 1;
                self.forget(places);
            }
            Event::Synced(_) => self.forget(places),
            // After a system call into an untraced kernel, a program continues where it was. A branch to
            // untraced code stays there until tracing begins again.
            Event::Disabled(Some(at)) => self.leave_filter(at),
            Event::Enabled(_) | Event::Disabled(None) | Event::Here(_) | Event::Packet(_) => {}
        }
    }
}

/// Number of steps that are passed on together, if all calls are needed, and if few are.
const STEPS: usize = 4096;
const STEPS_OF_FEW: usize = 64;

/// Blocks executed consecutively in one function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    function: u32,
    /// Addresses of the first and of the last instruction.
    ip: u64,
    last: u64,
    /// Number of instructions.
    count: u64,
    /// End of the last block.
    ends: Ends,
    /// Times of the first and the last block.
    times: (Moment, Moment),
}

/// Steps of the flow that matter for calls.
#[derive(Debug, Clone)]
pub(crate) enum CallStep {
    Begins(Box<Traced>),
    GoesOn(u32),
    /// The next block was executed after the previous one, by the time of its packets.
    IsFirst(Time),
    Blocks(Blocks),
    Event(Event),
}

/// Collects the steps that matter for calls.
pub(crate) struct CallSteps {
    steps: usize,
}

impl CallSteps {
    /// `few`: only some calls are needed.
    pub fn new(few: bool) -> Self {
        Self { steps: if few { STEPS_OF_FEW } else { STEPS } }
    }
}

pub(crate) struct GatherSteps<'g> {
    names: Names<'g>,
    emit: &'g Emit<'g, Vec<CallStep>>,
    most: usize,
    pid: u32,
    steps: Vec<CallStep>,
    /// Whether blocks can be added to the last step.
    is_open: bool,
    is_enough: bool,
}

impl Gathering for CallSteps {
    type Item = Vec<CallStep>;
    type Gather<'g> = GatherSteps<'g>;

    fn gather<'g>(
        &'g self,
        names: Names<'g>,
        emit: &'g Emit<'g, Vec<CallStep>>,
    ) -> GatherSteps<'g> {
        let (most, steps) = (self.steps, Vec::new());
        GatherSteps { names, emit, most, pid: 0, steps, is_open: false, is_enough: false }
    }
}

impl GatherSteps<'_> {
    fn push(&mut self, step: CallStep) {
        if self.steps.len() >= self.most {
            self.flush();
        }
        self.steps.push(step);
        self.is_open = false;
    }
}

impl Gather for GatherSteps<'_> {
    fn begins(&mut self, traced: &Traced) {
        self.resumes(traced);
        self.push(CallStep::Begins(Box::new(traced.clone())));
    }

    fn goes_on(&mut self, cpu: u32) {
        self.push(CallStep::GoesOn(cpu));
    }

    fn resumes(&mut self, traced: &Traced) {
        (self.pid, self.is_open, self.is_enough) = (traced.pid, false, false);
    }

    fn flush(&mut self) {
        let steps = std::mem::take(&mut self.steps);
        self.is_open = false;
        let bytes = size_of::<CallStep>() * steps.len();
        if !steps.is_empty() && !self.is_enough {
            self.is_enough = (self.emit)(steps, bytes).is_break();
        }
    }
}

impl Observe for GatherSteps<'_> {
    fn is_first(&mut self, time: Time) {
        self.push(CallStep::IsFirst(time));
    }

    fn block(&mut self, _: &Sections<'_>, block: &Block, time: Moment) {
        let Block { ip, last: at, count, ends, .. } = *block;
        let function = self.names.at(self.pid, ip, false).function;
        let count = u64::from(count);
        if self.is_open
            && let Some(CallStep::Blocks(last)) = self.steps.last_mut()
            && last.function == function
            && place_of(last.ip) == place_of(ip)
        {
            last.count = last.count.saturating_add(count);
            (last.last, last.ends, last.times.1) = (at, ends, time);
        } else {
            // The time of a first block is not known yet.
            let is_first = matches!(self.steps.last(), Some(CallStep::IsFirst(_)));
            let times = (time, time);
            self.push(CallStep::Blocks(Blocks { function, ip, last: at, count, ends, times }));
            self.is_open = !is_first;
        }
        self.is_open &= !matches!(ends, Ends::Call | Ends::IndirectCall | Ends::Return);
    }

    fn event(&mut self, _: u64, event: Event, _: Moment) {
        match event {
            Event::Interrupted { .. }
            | Event::Gap(_)
            | Event::Synced(_)
            | Event::Disabled(Some(_)) => self.push(CallStep::Event(event)),
            Event::Enabled(_) | Event::Disabled(None) | Event::Here(_) | Event::Packet(_) => {}
        }
    }

    fn is_enough(&self) -> bool {
        self.is_enough
    }
}

/// Finds calls in steps.
pub(crate) struct TakeCalls<R> {
    calls: Calls<R>,
    first: Option<Time>,
}

impl<R: FnMut(&mut Places<'_>, &Traced, Call) -> ControlFlow<()>> TakeCalls<R> {
    /// Each call is reported when it returns.
    pub fn new(returned: R) -> Self {
        let known = Known { tree: Tree::new(INSTRUCTIONS.to_owned()), ..Known::default() };
        let calls = Calls::new(known, State::default(), Traced::default(), returned);
        Self { calls, first: None }
    }

    /// Ends the flow.
    pub fn finish(mut self, recorded: &mut Recorded<'_>) {
        self.calls.cut(&mut recorded.places, 1, false);
    }
}

impl<R> Take<Vec<CallStep>> for TakeCalls<R>
where
    R: FnMut(&mut Places<'_>, &Traced, Call) -> ControlFlow<()>,
{
    fn take(
        &mut self,
        places: &SharedPlaces<'_, '_>,
        steps: Vec<CallStep>,
        moment: &dyn Fn(Time) -> Moment,
    ) -> ControlFlow<()> {
        let mut places = places.lock();
        for step in steps {
            match step {
                CallStep::Begins(traced) => self.calls.begins(&mut places, &traced),
                CallStep::GoesOn(cpu) => self.calls.goes_on(cpu),
                CallStep::IsFirst(time) => self.first = Some(time),
                CallStep::Blocks(mut blocks) => {
                    if let Some(time) = self.first.take() {
                        let time = moment(time);
                        blocks.times = (time, time);
                    }
                    self.calls.blocks(&mut places, &blocks);
                }
                CallStep::Event(event) => self.calls.event(&mut places, 0, event, None),
            }
            if self.calls.is_enough {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
