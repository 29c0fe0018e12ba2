// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stacks of samples by function name: call paths on which the samples of a trace were taken.
//!
//! ```text
//! mmap, fork, comm ─────────► Places ─┐
//! samples with a call chain ─────────┴─► functions ─► tree of calls
//! ```

mod branches;
mod off_cpu;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use lateralis_model::role::{STACK_FUNCTIONS, STACK_IMAGES};
use lateralis_model::{
    Damage, Event, EventClass, Field, FieldClass, FieldKind, Names, Quality, StreamClass, Trace,
    Value,
};

use lateralis_symbols::Registers;

pub(crate) use self::branches::has_branches;
pub use self::branches::{Branch, Branches, Jump, Jumps, Spot, jumps};
pub use self::off_cpu::{OffCpu, off_cpu};
use crate::Chosen;
use crate::places::{Frame, Function, Images, In, Places, thread_of};

/// Context marks in call chains, which apply to the addresses after them [perf_event.h, enum
/// perf_callchain_context]: in the kernel, in the program; all others are of guests and hypervisors.
const CONTEXT_KERNEL: i64 = -128;
const CONTEXT_USER: i64 = -512;
/// Numbers from here on are marks.
const CONTEXT_MAX: i64 = -4095;
/// The numbers of `kernel` and `user` [perf_event.h, PERF_RECORD_MISC_CPUMODE_MASK].
const MODE_KERNEL: u64 = 1;
const MODE_USER: u64 = 2;
/// Largest number of distinct paths; longer ones are cut off beyond it.
const NODES_MAX: usize = 1 << 22;
/// Number of registers of x86-64 [arch/x86/include/uapi/asm/perf_regs.h].
const REGISTERS_X86_64: u32 = 24;
/// The registers are 64-bit [perf_event.h, PERF_SAMPLE_REGS_ABI_64].
const ABI_64: u64 = 2;
/// Deepest path.
const DEPTH_MAX: usize = 1024;

/// A function on a call path; the root is the sampled program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The caller, an index into [`Stacks::nodes`]; for a program itself.
    pub caller: u32,
    /// An index into [`Stacks::functions`].
    pub function: u32,
    /// Samples in it, excluding its callees.
    pub samples: u64,
    /// Their weight.
    pub weight: u64,
}

/// Unit of a weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    /// Number of occurrences of the event that samples represent.
    #[default]
    Periods,
    /// A duration.
    Nanos,
}

/// Samples of one event.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    /// Name of the event.
    pub event: String,
    /// Unit of the weights.
    pub unit: Unit,
    /// Number of samples.
    pub samples: u64,
    /// Total weight: the sum of their periods; the number of samples if they have none.
    pub weight: u64,
    /// Paths.
    pub nodes: Vec<Node>,
}

/// All selected samples.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// By event, those with the most samples first.
    pub stacks: Vec<Stacks>,
    /// Functions of all of them.
    pub functions: Vec<Function>,
    /// Images that could not be read, with the reason and the number of addresses in them.
    pub missing: Vec<(String, String, u64)>,
    /// Samples with stack memory that could not be unwound: only the interrupted function is known.
    pub not_unwound: u64,
    /// Quality, for times off the CPU.
    pub quality: Option<Quality>,
    /// Damage found while reading.
    pub damage: Vec<Damage>,
}

impl Stacks {
    /// Weight of each function by itself, and including its callees; a recursive function counts once.
    #[must_use]
    pub fn by_function(&self) -> BTreeMap<u32, (u64, u64)> {
        let mut all: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut path = Vec::new();
        for (index, node) in (0u32..).zip(&self.nodes).filter(|(_, node)| node.weight > 0) {
            self.path(index, &mut path);
            all.entry(node.function).or_default().0 += node.weight;
            path.sort_unstable();
            path.dedup();
            for function in &path {
                all.entry(*function).or_default().1 += node.weight;
            }
        }
        all
    }

    /// Subtrees of some functions: each outermost occurrence as if the program itself had called it.
    #[must_use]
    pub fn below(&self, is_root: impl Fn(u32) -> bool) -> Self {
        let mut tree = Tree::new(self.event.clone());
        // Callers come before callees.
        let mut places: Vec<Option<u32>> = Vec::with_capacity(self.nodes.len());
        for (index, node) in (0u32..).zip(&self.nodes) {
            let caller = if node.caller == index { None } else { places[node.caller as usize] };
            let place = match caller {
                Some(caller) => tree.below(Some(caller), node.function),
                None if node.caller != index && is_root(node.function) => {
                    let program = tree.below(None, self.program(index));
                    program.and_then(|program| tree.below(Some(program), node.function))
                }
                None => None,
            };
            places.push(place);
            if place.is_some() {
                tree.weigh(place, node.samples, node.weight);
            }
        }
        tree.finish()
    }

    /// Functions on the way to a node, innermost first, without the program.
    pub fn path(&self, node: u32, path: &mut Vec<u32>) {
        path.clear();
        let mut at = node;
        while let Some(of) = self.nodes.get(at as usize).filter(|of| of.caller != at) {
            path.push(of.function);
            at = of.caller;
        }
    }

    /// The sampled program of a node.
    #[must_use]
    pub fn program(&self, node: u32) -> u32 {
        let mut at = node;
        while let Some(of) = self.nodes.get(at as usize).filter(|of| of.caller != at) {
            at = of.caller;
        }
        self.nodes.get(at as usize).map_or(0, |of| of.function)
    }

    /// Weight of each node including its callees.
    #[must_use]
    pub fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.weight).collect();
        // Callees come after callers.
        for index in (0..self.nodes.len()).rev() {
            let caller = self.nodes[index].caller as usize;
            if caller != index {
                totals[caller] = totals[caller].saturating_add(totals[index]);
            }
        }
        totals
    }
}

/// Nodes by caller and function.
type Ids = HashMap<(u32, u32), u32, RandomState>;

/// Builds a call tree for weights on paths of functions.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    stacks: Stacks,
    ids: Ids,
}

impl Tree {
    pub(crate) fn new(event: String) -> Self {
        Self { stacks: Stacks { event, ..Stacks::default() }, ids: HashMap::default() }
    }

    /// The child node for a function; `caller` is `None` for a program. Returns `None` if there is no
    /// more room.
    pub(crate) fn below(&mut self, caller: Option<u32>, function: u32) -> Option<u32> {
        let next = self.stacks.nodes.len() as u32;
        // Programs have no parent.
        let place = (caller.unwrap_or(u32::MAX), function);
        if let Some(id) = self.ids.get(&place) {
            return Some(*id);
        }
        if self.stacks.nodes.len() >= NODES_MAX {
            return None;
        }
        self.ids.insert(place, next);
        let caller = caller.unwrap_or(next);
        self.stacks.nodes.push(Node { caller, function, samples: 0, weight: 0 });
        Some(next)
    }

    pub(crate) fn node(&self, node: u32) -> Option<&Node> {
        self.stacks.nodes.get(node as usize)
    }

    pub(crate) fn weigh(&mut self, node: Option<u32>, samples: u64, weight: u64) {
        let stacks = &mut self.stacks;
        stacks.samples += samples;
        stacks.weight = stacks.weight.saturating_add(weight);
        if let Some(node) = node.and_then(|node| stacks.nodes.get_mut(node as usize)) {
            node.samples += samples;
            node.weight = node.weight.saturating_add(weight);
        }
    }

    pub(crate) fn finish(self) -> Stacks {
        self.stacks
    }
}

/// A field of a sample: its name in the payload, and in the context of a kernel event with a payload of
/// its own, as readers of perf's files provide it.
#[derive(Clone, Copy)]
struct Of(&'static str, &'static str);

const CALLCHAIN: Of = Of("callchain", "perf_callchain");
const CPU_MODE: Of = Of("cpu_mode", "perf_cpu_mode");
const IP: Of = Of("ip", "perf_ip");
const PERIOD: Of = Of("period", "perf_period");
const USER_STACK: Of = Of("user_stack", "perf_user_stack");
const USER_REGS: Of = Of("user_regs", "perf_user_regs");

impl Of {
    fn in_event<'e>(self, event: &Event<'e>) -> Option<Field<'e>> {
        let of_payload = event.payload().and_then(|payload| payload.get(self.0));
        of_payload.or_else(|| event.context()?.get(self.1))
    }
}

/// Whether events of a class are samples of program locations.
fn are_samples(class: &EventClass) -> bool {
    let kind = |of: &Option<FieldClass>, name: &str| {
        let members = of.as_ref().map_or(&[][..], |of| of.members());
        members.iter().find(|of| of.name == name).map(|of| of.class.kind.clone())
    };
    let has = |name: &str| kind(&class.payload, name).is_some();
    let is_array = |of: &_, name| matches!(kind(of, name), Some(FieldKind::Array { .. }));
    is_array(&class.payload, CALLCHAIN.0)
        || is_array(&class.context, CALLCHAIN.1)
        || is_array(&class.payload, STACK_FUNCTIONS)
        || (has(CPU_MODE.0) && has(IP.0))
}

/// Reads samples one by one, in time order.
pub struct Samples<'i> {
    places: Places<'i>,
    /// By stream class and class.
    are_samples: Vec<Vec<bool>>,
    /// Whether inlined functions are frames of their own.
    shows_inlined: bool,
    not_unwound: u64,
}

/// One sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The process; 0 if unknown.
    pub pid: u32,
    /// The thread; 0 if unknown.
    pub tid: u32,
    /// Its weight: the period, or 1.
    pub weight: u64,
    /// Functions with their lines, outermost first.
    pub frames: Vec<Frame>,
}

impl<'i> Samples<'i> {
    /// For a trace with these event classes.
    pub fn new(images: impl Images + 'i, trace: &Trace) -> Self {
        let places = Places::new(images, trace);
        let mut samples =
            Self { places, are_samples: Vec::new(), shows_inlined: true, not_unwound: 0 };
        samples.learn(trace);
        samples
    }

    /// Adds names of threads and processes that no event names.
    pub fn call(&mut self, names: &Names) {
        self.places.call(names);
    }

    /// Adopts event classes that were added to the trace.
    pub fn learn(&mut self, trace: &Trace) {
        self.places.learn(trace);
        let of = |stream: &StreamClass| stream.event_classes.iter().map(are_samples).collect();
        self.are_samples = trace.stream_classes.iter().map(of).collect();
    }

    /// With or without frames of inlined functions.
    #[must_use]
    pub fn with_inlined(self, shows_inlined: bool) -> Self {
        Self { shows_inlined, ..self }
    }

    /// Whether any event of the trace can be a sample.
    #[must_use]
    pub fn are_any(&self) -> bool {
        self.are_samples.iter().flatten().any(|is_sample| *is_sample)
    }

    /// Whether an event is a sample.
    #[must_use]
    pub fn is_sample(&self, event: &Event<'_>) -> bool {
        let of_stream = self.are_samples.get(event.stream_class_index as usize);
        of_stream.and_then(|classes| classes.get(event.class_index as usize)) == Some(&true)
    }

    /// Processes an event about mappings; returns whether it was one.
    pub fn see(&mut self, event: &Event<'_>) -> bool {
        self.places.see(event)
    }

    /// Ends the events: later samples have no particular time.
    pub fn at_any_time(&mut self) {
        self.places.at_any_time();
    }

    /// Names for the numbers in frames.
    #[must_use]
    pub fn places(&self) -> &Places<'i> {
        &self.places
    }

    /// Mutable access, to look up more addresses.
    pub(crate) fn places_mut(&mut self) -> &mut Places<'i> {
        &mut self.places
    }

    /// Weight of a sample: its period, or 1.
    pub(crate) fn weight(event: &Event<'_>) -> u64 {
        PERIOD.in_event(event).and_then(|field| field.as_u64()).unwrap_or(1)
    }
}

struct Gathering<'i> {
    samples: Samples<'i>,
    stacks: BTreeMap<String, Tree>,
}

/// Collects the stacks of all selected samples.
///
/// With `shows_inlined`, inlined functions are frames of their own.
///
/// Cost: a pass over all events, and one read of each image. Memory: proportional to paths and functions.
pub fn gather(chosen: &Chosen<'_>, images: &mut dyn Images, shows_inlined: bool) -> Gathered {
    let mut samples = Samples::new(images, &chosen.trace).with_inlined(shows_inlined);
    samples.call(chosen.source.names());
    let mut gathering = Gathering { samples, stacks: BTreeMap::new() };
    (chosen.begins)();
    let (begin, end) = chosen.ends();
    // Mappings from before the selected time range matter.
    let mut events = chosen.source.events();
    while let Some(event) = events.next_event() {
        if event.time > end {
            break;
        }
        if gathering.samples.see(&event) || !gathering.samples.is_sample(&event) {
            continue;
        }
        if event.time >= begin && (chosen.contains)(&event) {
            gathering.sample(&event);
        }
    }
    let mut damage = chosen.source.damage().to_vec();
    damage.extend(events.damage());
    gathering.finish(damage)
}

impl Gathering<'_> {
    fn finish(self, damage: Vec<Damage>) -> Gathered {
        let mut stacks: Vec<Stacks> = self.stacks.into_values().map(Tree::finish).collect();
        stacks.sort_by(|one, other| {
            other.samples.cmp(&one.samples).then_with(|| one.event.cmp(&other.event))
        });
        let (functions, mut missing) = self.samples.places.finish();
        // Images needed only for unwinding have no effect on what is shown.
        missing.retain(|(_, _, count)| *count > 0);
        let not_unwound = self.samples.not_unwound;
        Gathered { stacks, functions, missing, not_unwound, quality: None, damage }
    }

    fn sample(&mut self, event: &Event<'_>) {
        if let Some(sample) = self.samples.read(event) {
            self.add(&event.class.name, &sample);
        }
    }

    /// Adds a sample to those of an event.
    fn add(&mut self, event: &str, sample: &Sample) {
        let places = &mut self.samples.places;
        let name = places.program((sample.pid, sample.tid));
        let program = places.function(Function { name, image: String::new() });
        let new = || Tree::new(event.to_owned());
        let tree = self.stacks.entry(event.to_owned()).or_insert_with(new);
        let mut at = None;
        let functions = sample.frames.iter().map(|frame| frame.function);
        for function in std::iter::once(program).chain(functions) {
            let Some(node) = tree.below(at, function) else { break };
            at = Some(node);
        }
        tree.weigh(at, 1, sample.weight);
    }
}

impl Samples<'_> {
    /// Registers and stack of the program, if a sample has them.
    fn memory_of<'e>(&self, event: &'e Event<'_>) -> Option<(Registers, Cow<'e, [u8]>)> {
        let payload = event.payload()?;
        let stack = USER_STACK.in_event(event)?.as_bytes()?;
        let number = |name: &str| payload.get(name)?.as_u64();
        // Our recordings have them as separate fields, a file of perf as a structure.
        let (mask, abi, values) = match USER_REGS.in_event(event)?.value() {
            Value::Struct(registers) => {
                let mask = event.class.attribute("perf.user_regs")?.strip_prefix("0x")?;
                let mask = u64::from_str_radix(mask, 16).ok()?;
                let Value::Array(values) = registers.get("regs")?.value() else { return None };
                (mask, registers.get("abi")?.as_u64()?, values)
            }
            Value::Array(values) => (number("user_regs_mask")?, number("user_regs_abi")?, values),
            _ => return None,
        };
        // Other architectures have more of them, with other numbers; so do 32-bit programs [perf_event.h,
        // PERF_SAMPLE_REGS_ABI_64].
        let values = values.filter_map(|value| value.as_u64());
        let is_known = abi == ABI_64 && mask >> REGISTERS_X86_64 == 0;
        is_known.then(|| (Registers::of_mask(mask, values), stack))
    }

    /// Functions that a sample names itself, outermost first.
    fn named(&mut self, event: &Event<'_>) -> Option<Vec<Frame>> {
        let payload = event.payload()?;
        let Value::Array(functions) = payload.get(STACK_FUNCTIONS)?.value() else { return None };
        let mut images = match payload.get(STACK_IMAGES).map(|of| of.value()) {
            Some(Value::Array(images)) => Some(images),
            _ => None,
        };
        let mut frames = Vec::new();
        for function in functions.take(DEPTH_MAX) {
            let image = images.as_mut().and_then(Iterator::next);
            let image = image.as_ref().and_then(|of| of.as_text()).unwrap_or_default().into_owned();
            let name = function.as_text().unwrap_or_default().into_owned();
            let function = self.places.function(Function { name, image });
            frames.push(Frame { function, line: None, is_inlined: false });
        }
        frames.reverse();
        Some(frames)
    }

    /// The stack of a sample; `None` for an event without one.
    pub fn read(&mut self, event: &Event<'_>) -> Option<Sample> {
        let number = |of: Of| of.in_event(event).and_then(|field| field.as_u64());
        let (pid, tid) = thread_of(event).unwrap_or((0, 0));
        let weight = Self::weight(event);
        if let Some(frames) = self.named(event) {
            return Some(Sample { pid, tid, weight, frames });
        }
        self.places.at_time_of(event);
        let interrupted = match number(CPU_MODE) {
            Some(MODE_KERNEL) => In::Kernel,
            Some(MODE_USER) => In::Program,
            _ => In::Elsewhere,
        };
        // Innermost first.
        let mut frames: Vec<(u64, In)> = Vec::new();
        let mut place = interrupted;
        let mut is_innermost = true;
        // Index of the first frame of the program.
        let mut user_from = None;
        if let Some(Value::Array(chain)) = CALLCHAIN.in_event(event).map(|of| of.value()) {
            for word in chain.filter_map(|of| of.as_u64()).take(2 * DEPTH_MAX) {
                let mark = word as i64;
                if (CONTEXT_MAX..0).contains(&mark) {
                    place = match mark {
                        CONTEXT_KERNEL => In::Kernel,
                        CONTEXT_USER => In::Program,
                        _ => In::Elsewhere,
                    };
                    is_innermost = true;
                    user_from = user_from.or((mark == CONTEXT_USER).then_some(frames.len()));
                    continue;
                }
                // Others contain the return address: the call is the instruction before it.
                let address = if is_innermost { word } else { word.saturating_sub(1) };
                frames.push((address, place));
                is_innermost = false;
            }
        }
        // Call records of the processor replace the program's part of a call chain if that is a single
        // address.
        if let (Some(begin), Some(calls)) = (user_from, self.remembered_calls(pid, event)) {
            let ip = frames.get(begin).map(|(address, _)| *address);
            frames.truncate(begin);
            frames.extend(calls.addresses(ip).map(|address| (address, In::Program)));
        }
        // Stack memory copied by perf: its call chain has only the kernel's part.
        let mut is_unwound = false;
        if let Some((registers, stack)) = self.memory_of(event) {
            frames.retain(|(_, place)| *place == In::Kernel);
            let user = self.places.unwind(pid, &registers, &stack);
            is_unwound = user.len() > 1;
            let call =
                |(index, address): (usize, u64)| address.saturating_sub(u64::from(index > 0));
            frames.extend(user.into_iter().enumerate().map(|of| (call(of), In::Program)));
        }
        if frames.is_empty()
            && let Some(ip) = number(IP)
        {
            frames.push((ip, interrupted));
        }
        self.not_unwound += u64::from(USER_STACK.in_event(event).is_some() && !is_unwound);
        frames.truncate(DEPTH_MAX);
        let mut all = Vec::with_capacity(frames.len());
        for (address, place) in frames.into_iter().rev() {
            if self.shows_inlined {
                all.extend_from_slice(&self.places.frames_at(pid, address, place));
            } else {
                let function = self.places.function_at(pid, address, place);
                all.push(Frame { function, line: None, is_inlined: false });
            }
        }
        all.truncate(DEPTH_MAX);
        Some(Sample { pid, tid, weight, frames: all })
    }
}
