// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stacks of samples, by the names of their functions: which paths of calls the samples of a trace were
//! taken on.
//!
//! ```text
//! mmap, fork, comm ──► AddressSpaces ─┐
//! samples with a call chain ──────────┴─► image and offset ─ Images ─► function ─► tree of calls
//! ```

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use lateralis_model::{Damage, Event, EventClass, FieldKind, Value};
use lateralis_symbols::{AddressSpaces, Functions, Image, Mapping, demangled};

use crate::Chosen;

/// Call chains hold marks of where the addresses behind them are [perf_event.h, enum perf_callchain_context]:
/// in the kernel, in the program; all others are of guests and hypervisors.
const CONTEXT_KERNEL: i64 = -128;
const CONTEXT_USER: i64 = -512;
/// Numbers from here on are marks.
const CONTEXT_MAX: i64 = -4095;
/// The numbers of `kernel` and `user` [perf_event.h, PERF_RECORD_MISC_CPUMODE_MASK].
const MODE_KERNEL: u64 = 1;
const MODE_USER: u64 = 2;
/// The process that mappings of the kernel are of.
const KERNEL: u32 = u32::MAX;
/// Functions and paths that are told apart; what is beyond is one that has no name.
const NODES_MAX: usize = 1 << 22;
/// Deepest path.
const DEPTH_MAX: usize = 1024;
/// Threads whose names are remembered.
const THREADS_MAX: usize = 1 << 20;

/// Gives what stands in files, of which this module knows none.
pub trait Images {
    /// The image that a file has, or its debug file.
    ///
    /// # Errors
    /// Why it cannot be had: not there, another build id.
    fn image(&mut self, path: &str, build_id: Option<&[u8]>) -> Result<Image, String>;

    /// Functions of the kernel with this build id.
    ///
    /// # Errors
    /// Why they cannot be had.
    fn kernel(&mut self, build_id: Option<&[u8]>) -> Result<Functions, String>;

    /// Functions that a just-in-time compiler made in a process, and the file that says so; `None` where
    /// there is none.
    fn generated(&mut self, pid: u32) -> Option<(Functions, String)>;
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// As it stands in the source; `[unknown]` where nothing says it.
    pub name: String,
    /// The file that it is in; `[kernel]`; empty where nothing says it.
    pub image: String,
}

/// What was called on a path; the first is the program that was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Who called it, an index into [`Stacks::nodes`]; itself of a program.
    pub caller: u32,
    /// An index into [`Stacks::functions`].
    pub function: u32,
    /// Samples in it and in nothing it called.
    pub samples: u64,
    /// What these weigh.
    pub weight: u64,
}

/// Samples of one event.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    /// Its name.
    pub event: String,
    /// How many samples.
    pub samples: u64,
    /// What they weigh: the sum of their periods; samples where they have none.
    pub weight: u64,
    /// Paths.
    pub nodes: Vec<Node>,
}

/// All samples that were chosen.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// By event, those with the most samples first.
    pub stacks: Vec<Stacks>,
    /// Functions of all of them.
    pub functions: Vec<Function>,
    /// Images of which nothing could be read, with why and how many addresses are in them.
    pub missing: Vec<(String, String, u64)>,
    /// Samples that hold the memory of a stack and no call chain: only the function that was interrupted is
    /// known of them.
    pub not_unwound: u64,
    /// What could not be read.
    pub damage: Vec<Damage>,
}

impl Stacks {
    /// Of each function, what samples weigh that were in it, and in it or in what it called; a function that
    /// calls itself counts once.
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

    /// The functions on the way to a node, the innermost first, without the program.
    pub fn path(&self, node: u32, path: &mut Vec<u32>) {
        path.clear();
        let mut at = node;
        while let Some(of) = self.nodes.get(at as usize).filter(|of| of.caller != at) {
            path.push(of.function);
            at = of.caller;
        }
    }

    /// The program that was sampled on the way to a node.
    #[must_use]
    pub fn program(&self, node: u32) -> u32 {
        let mut at = node;
        while let Some(of) = self.nodes.get(at as usize).filter(|of| of.caller != at) {
            at = of.caller;
        }
        self.nodes.get(at as usize).map_or(0, |of| of.function)
    }

    /// Of each node, what weighs in it and in what it called.
    #[must_use]
    pub fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.weight).collect();
        // Who is called comes behind who calls.
        for index in (0..self.nodes.len()).rev() {
            let caller = self.nodes[index].caller as usize;
            if caller != index {
                totals[caller] = totals[caller].saturating_add(totals[index]);
            }
        }
        totals
    }
}

/// What events of a class say here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    Maps,
    Forks,
    Named,
    BuildId,
    Sample,
}

fn says(class: &EventClass) -> Says {
    let members = class.payload.as_ref().map_or(&[][..], |payload| payload.members());
    let kind = |name: &str| members.iter().find(|of| of.name == name).map(|of| &of.class.kind);
    let has = |names: &[&str]| names.iter().all(|name| kind(name).is_some());
    match class.name.as_str() {
        "mmap" | "mmap2" | "mmap2_build_id"
            if has(&["pid", "addr", "len", "pgoff", "filename"]) =>
        {
            Says::Maps
        }
        "fork" if has(&["pid", "ppid", "tid", "ptid"]) => Says::Forks,
        "comm" if has(&["pid", "tid", "comm"]) => Says::Named,
        "build_id" if has(&["build_id", "filename"]) => Says::BuildId,
        _ if matches!(kind("callchain"), Some(FieldKind::Array { .. }))
            || has(&["cpu_mode", "ip"]) =>
        {
            Says::Sample
        }
        _ => Says::Nothing,
    }
}

/// Where an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum In {
    Kernel,
    Program,
    Elsewhere,
}

/// Nodes by who called, and the function.
type Ids = HashMap<(u32, u32), u32, RandomState>;

struct Gathering<'i> {
    images: &'i mut dyn Images,
    spaces: AddressSpaces,
    files: Vec<String>,
    file_ids: HashMap<String, u32>,
    build_ids: HashMap<String, Vec<u8>>,
    /// By file, as far as they were asked for.
    read: HashMap<u32, Image>,
    kernel: Option<Functions>,
    generated: HashMap<u32, Option<(Functions, String)>>,
    names: HashMap<u32, String>,
    missing: BTreeMap<String, (String, u64)>,
    functions: Vec<Function>,
    function_ids: HashMap<Function, u32>,
    /// By file and byte of it; of the kernel by address.
    known: HashMap<(u32, u64), u32, RandomState>,
    stacks: BTreeMap<String, (Stacks, Ids)>,
    not_unwound: u64,
}

/// Gathers the stacks of all samples that are chosen.
///
/// Cost: a pass over all events, and the reading of each image once. Memory: by paths and functions.
pub fn gather(chosen: &Chosen<'_>, images: &mut dyn Images) -> Gathered {
    let mut gathering = Gathering::new(images);
    let streams = chosen.trace.stream_classes.iter();
    let says: Vec<Vec<Says>> =
        streams.map(|stream| stream.event_classes.iter().map(says).collect()).collect();
    (chosen.begins)();
    let (begin, end) = chosen.ends();
    // What was mapped before the time that is asked for matters.
    let mut events = chosen.source.events();
    while let Some(event) = events.next_event() {
        if event.time > end {
            break;
        }
        let of_stream = says.get(event.stream_class_index as usize);
        let what = of_stream.and_then(|classes| classes.get(event.class_index as usize));
        match what.copied().unwrap_or(Says::Nothing) {
            Says::Nothing => {}
            Says::Sample => {
                if event.time >= begin && (chosen.contains)(&event) {
                    gathering.sample(&event);
                }
            }
            said => gathering.side(said, &event),
        }
    }
    let mut damage = chosen.source.damage().to_vec();
    damage.extend(events.damage());
    gathering.finish(damage)
}

impl<'i> Gathering<'i> {
    fn new(images: &'i mut dyn Images) -> Self {
        Self {
            images,
            spaces: AddressSpaces::default(),
            files: Vec::new(),
            file_ids: HashMap::new(),
            build_ids: HashMap::new(),
            read: HashMap::new(),
            kernel: None,
            generated: HashMap::new(),
            names: HashMap::new(),
            missing: BTreeMap::new(),
            functions: Vec::new(),
            function_ids: HashMap::new(),
            known: HashMap::default(),
            stacks: BTreeMap::new(),
            not_unwound: 0,
        }
    }

    fn finish(self, damage: Vec<Damage>) -> Gathered {
        let mut stacks: Vec<Stacks> = self.stacks.into_values().map(|(stacks, _)| stacks).collect();
        stacks.sort_by(|one, other| {
            other.samples.cmp(&one.samples).then_with(|| one.event.cmp(&other.event))
        });
        let missing = self.missing.into_iter().map(|(image, (why, count))| (image, why, count));
        Gathered {
            stacks,
            functions: self.functions,
            missing: missing.collect(),
            not_unwound: self.not_unwound,
            damage,
        }
    }

    /// An event that says what is where.
    fn side(&mut self, said: Says, event: &Event<'_>) {
        let Some(payload) = event.payload() else { return };
        let number = |name: &str| payload.get(name).and_then(|field| field.as_u64());
        let text = |name: &str| Some(payload.get(name)?.as_text()?.into_owned());
        let id = |name: &str| number(name).map(|number| number as u32);
        match said {
            Says::Maps => {
                let parts = (id("pid"), number("addr"), number("len"), number("pgoff"));
                let (Some(pid), Some(begin), Some(bytes), Some(offset)) = parts else { return };
                let name = text("filename").unwrap_or_default();
                if let Some(Value::Bytes(build_id)) = payload.get("build_id").map(|of| of.value()) {
                    self.build_ids.insert(name.clone(), build_id.to_vec());
                }
                let file = self.file(name);
                let end = begin.saturating_add(bytes);
                self.spaces.map(pid, Mapping { begin, end, offset, file });
            }
            Says::Forks => {
                let (Some(pid), Some(parent)) = (id("pid"), id("ppid")) else { return };
                self.spaces.fork(parent, pid);
                if let (Some(tid), Some(of)) = (id("tid"), id("ptid"))
                    && let Some(name) = self.names.get(&of).cloned()
                {
                    self.name(tid, name);
                }
            }
            Says::Named => {
                let (Some(pid), Some(tid), Some(name)) = (id("pid"), id("tid"), text("comm"))
                else {
                    return;
                };
                if number("exec").is_some_and(|exec| exec != 0) {
                    self.spaces.exec(pid);
                }
                self.name(tid, name);
            }
            Says::BuildId => {
                if let (Some(name), Some(Value::Bytes(build_id))) =
                    (text("filename"), payload.get("build_id").map(|of| of.value()))
                {
                    self.build_ids.entry(name).or_insert_with(|| build_id.to_vec());
                }
            }
            Says::Nothing | Says::Sample => {}
        }
    }

    fn name(&mut self, tid: u32, name: String) {
        if self.names.len() < THREADS_MAX || self.names.contains_key(&tid) {
            self.names.insert(tid, name);
        }
    }

    fn file(&mut self, name: String) -> u32 {
        if let Some(id) = self.file_ids.get(&name) {
            return *id;
        }
        let id = self.files.len() as u32;
        self.files.push(name.clone());
        self.file_ids.insert(name, id);
        id
    }

    fn sample(&mut self, event: &Event<'_>) {
        let Some(payload) = event.payload() else { return };
        let number = |name: &str| payload.get(name).and_then(|field| field.as_u64());
        let (pid, tid) = event.writer.map_or((0, 0), |writer| (writer.pid, writer.tid));
        let interrupted = match number("cpu_mode") {
            Some(MODE_KERNEL) => In::Kernel,
            Some(MODE_USER) => In::Program,
            _ => In::Elsewhere,
        };
        // From the innermost out.
        let mut frames: Vec<(u64, In)> = Vec::new();
        let mut place = interrupted;
        let mut is_innermost = true;
        if let Some(Value::Array(chain)) = payload.get("callchain").map(|of| of.value()) {
            for word in chain.filter_map(|of| of.as_u64()).take(2 * DEPTH_MAX) {
                let mark = word as i64;
                if (CONTEXT_MAX..0).contains(&mark) {
                    place = match mark {
                        CONTEXT_KERNEL => In::Kernel,
                        CONTEXT_USER => In::Program,
                        _ => In::Elsewhere,
                    };
                    is_innermost = true;
                    continue;
                }
                // Others hold where they go on: the call is the instruction before.
                let address = if is_innermost { word } else { word.saturating_sub(1) };
                frames.push((address, place));
                is_innermost = false;
            }
        }
        if frames.is_empty()
            && let Some(ip) = number("ip")
        {
            frames.push((ip, interrupted));
        }
        self.not_unwound += u64::from(payload.get("user_stack").is_some());
        frames.truncate(DEPTH_MAX);
        let weight = number("period").unwrap_or(1);
        let functions: Vec<u32> = frames
            .iter()
            .rev()
            .map(|(address, place)| self.function_at(pid, *address, *place))
            .collect();
        let program = match self.names.get(&tid).or_else(|| self.names.get(&pid)) {
            Some(name) => name.clone(),
            // What Linux calls its idle threads.
            None if pid == 0 => "swapper".to_owned(),
            None => format!("process {pid}"),
        };
        let program = self.function(Function { name: program, image: String::new() });
        let new = || {
            (Stacks { event: event.class.name.clone(), ..Stacks::default() }, HashMap::default())
        };
        let (stacks, ids) = self.stacks.entry(event.class.name.clone()).or_insert_with(new);
        let mut at = None;
        for function in std::iter::once(program).chain(functions) {
            let next = stacks.nodes.len() as u32;
            // Programs are below none.
            let place = (at.unwrap_or(u32::MAX), function);
            let has_room = stacks.nodes.len() < NODES_MAX;
            let id = match ids.get(&place) {
                Some(id) => *id,
                None if !has_room => break,
                None => {
                    ids.insert(place, next);
                    let caller = at.unwrap_or(next);
                    stacks.nodes.push(Node { caller, function, samples: 0, weight: 0 });
                    next
                }
            };
            at = Some(id);
        }
        stacks.samples += 1;
        stacks.weight = stacks.weight.saturating_add(weight);
        if let Some(node) = at.and_then(|at| stacks.nodes.get_mut(at as usize)) {
            node.samples += 1;
            node.weight = node.weight.saturating_add(weight);
        }
    }

    fn function(&mut self, function: Function) -> u32 {
        if let Some(id) = self.function_ids.get(&function) {
            return *id;
        }
        if self.functions.len() >= NODES_MAX {
            return 0;
        }
        let id = self.functions.len() as u32;
        self.functions.push(function.clone());
        self.function_ids.insert(function, id);
        id
    }

    fn function_at(&mut self, pid: u32, address: u64, place: In) -> u32 {
        let mapping = match place {
            In::Kernel => self.spaces.at(KERNEL, address),
            In::Program => self.spaces.at(pid, address),
            In::Elsewhere => {
                return self.function(Function { name: unknown(), image: "[guest]".to_owned() });
            }
        };
        let key = match mapping {
            _ if place == In::Kernel => (KERNEL, address),
            Some(mapping) if !is_generated(&self.files[mapping.file as usize]) => {
                (mapping.file, mapping.offset_of(address))
            }
            // Code that was made while the program ran is another in each process.
            _ => return self.generated_at(pid, address),
        };
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let function = match place {
            In::Kernel => self.kernel_at(address, mapping),
            _ => self.image_at(key.0, key.1),
        };
        let id = self.function(function);
        if self.known.len() < NODES_MAX {
            self.known.insert(key, id);
        }
        id
    }

    fn kernel_at(&mut self, address: u64, mapping: Option<Mapping>) -> Function {
        if self.kernel.is_none() {
            let build_id = self.build_ids.get("[kernel.kallsyms]").cloned();
            let read = self.images.kernel(build_id.as_deref()).unwrap_or_else(|why| {
                self.missing.insert("[kernel]".to_owned(), (why, 0));
                Functions::default()
            });
            self.kernel = Some(read);
        }
        let name = self.kernel.as_ref().and_then(|kernel| kernel.at(address)).map(demangled);
        if name.is_none()
            && let Some((_, count)) = self.missing.get_mut("[kernel]")
        {
            *count += 1;
        }
        // Of a module the file, of the kernel itself a name that says so.
        let file = mapping.and_then(|of| self.files.get(of.file as usize));
        let is_module = file.is_some_and(|file| !file.starts_with("[kernel"));
        let image = file.filter(|_| is_module).cloned().unwrap_or_else(|| "[kernel]".to_owned());
        Function { name: name.unwrap_or_else(unknown), image }
    }

    fn image_at(&mut self, file: u32, offset: u64) -> Function {
        let path = self.files[file as usize].clone();
        if !self.read.contains_key(&file) {
            let build_id = self.build_ids.get(&path).map(Vec::as_slice);
            let image = self.images.image(&path, build_id).unwrap_or_else(|why| {
                self.missing.insert(path.clone(), (why, 0));
                Image::default()
            });
            self.read.insert(file, image);
        }
        let name = self.read.get(&file).and_then(|image| image.function_at(offset)).map(demangled);
        if name.is_none()
            && let Some((_, count)) = self.missing.get_mut(&path)
        {
            *count += 1;
        }
        Function { name: name.unwrap_or_else(unknown), image: path }
    }

    fn generated_at(&mut self, pid: u32, address: u64) -> u32 {
        let Self { generated, images, .. } = self;
        let of = generated.entry(pid).or_insert_with(|| images.generated(pid));
        let found = of.as_ref().and_then(|(functions, file)| Some((functions.at(address)?, file)));
        let function = match found {
            Some((name, file)) => Function { name: name.to_owned(), image: file.clone() },
            None => Function { name: unknown(), image: String::new() },
        };
        self.function(function)
    }
}

fn unknown() -> String {
    "[unknown]".to_owned()
}

/// Whether a mapping is of no file: memory that a program made code in.
fn is_generated(name: &str) -> bool {
    ["//anon", "[anon", "/memfd:", "/dev/zero", "[heap]", "[stack]"]
        .iter()
        .any(|begin| name.starts_with(begin))
        || name.is_empty()
}
