// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions by address: from the mappings that events report, and the contents of the files.
//!
//! ```text
//! mmap, fork, comm ──► AddressSpaces ──► image and offset ─ Images ─► function
//! ```

use std::collections::{BTreeMap, HashMap};

use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use lateralis_model::{Event, EventClass, Names, Trace, Value};
use lateralis_symbols::{
    AddressSpaces, Functions, Image, JitDump, LineFrame, Lines, Mapping, Registers,
    Stacks as Unwinder, demangled,
};

/// Process id for mappings of the kernel.
const KERNEL: u32 = u32::MAX;
/// Largest number of distinct functions; further ones share one without a name.
const FUNCTIONS_MAX: usize = 1 << 22;
/// Largest number of addresses whose frames are cached; others are looked up each time.
const FRAMES_MAX: usize = 1 << 20;
/// Memory that contains executable code [asm-generic/mman-common.h].
const PROT_EXEC: u64 = 4;
/// Largest number of processes whose stacks can be unwound at once.
const UNWINDERS_MAX: usize = 256;
/// Largest number of threads whose names are remembered.
const THREADS_MAX: usize = 1 << 20;

/// Provides the contents of files, which this module does not access itself.
pub trait Images: Send {
    /// The image of a file, or its debug file.
    ///
    /// # Errors
    /// Why it is unavailable: missing, or another build id.
    fn image(&mut self, path: &str, build_id: Option<&[u8]>) -> Result<Image, String>;

    /// Bytes of a mapped file: `bytes` of them from `offset` on, or as many as there are.
    ///
    /// # Errors
    /// Why they are unavailable: missing, or another build id.
    fn code(
        &mut self,
        path: &str,
        build_id: Option<&[u8]>,
        range: (u64, u64),
    ) -> Result<Vec<u8>, String>;

    /// The build id of a file, if it has one.
    fn build_id(&mut self, path: &str) -> Option<Vec<u8>> {
        let image = self.image(path, None).ok()?;
        Some(image.build_id).filter(|id| !id.is_empty())
    }

    /// Functions of the kernel with this build id.
    ///
    /// # Errors
    /// Why they are unavailable.
    fn kernel(&mut self, build_id: Option<&[u8]>) -> Result<Functions, String>;

    /// Functions made by a just-in-time compiler in a process, and the file that lists them; `None` if
    /// there is none.
    fn generated(&mut self, pid: u32) -> Option<(Functions, String)>;

    /// Contents of a file that a just-in-time compiler wrote and its process mapped.
    ///
    /// # Errors
    /// Why it is unavailable: missing, or not such a file.
    fn jitdump(&mut self, path: &str) -> Result<JitDump, String> {
        let _ = path;
        Err("is not looked for".to_owned())
    }
}

impl<T: Images + ?Sized> Images for &mut T {
    fn image(&mut self, path: &str, build_id: Option<&[u8]>) -> Result<Image, String> {
        (**self).image(path, build_id)
    }

    fn code(
        &mut self,
        path: &str,
        build_id: Option<&[u8]>,
        range: (u64, u64),
    ) -> Result<Vec<u8>, String> {
        (**self).code(path, build_id, range)
    }

    fn kernel(&mut self, build_id: Option<&[u8]>) -> Result<Functions, String> {
        (**self).kernel(build_id)
    }

    fn generated(&mut self, pid: u32) -> Option<(Functions, String)> {
        (**self).generated(pid)
    }

    fn jitdump(&mut self, path: &str) -> Result<JitDump, String> {
        (**self).jitdump(path)
    }
}

impl<T: Images + ?Sized> Images for Box<T> {
    fn image(&mut self, path: &str, build_id: Option<&[u8]>) -> Result<Image, String> {
        (**self).image(path, build_id)
    }

    fn code(
        &mut self,
        path: &str,
        build_id: Option<&[u8]>,
        range: (u64, u64),
    ) -> Result<Vec<u8>, String> {
        (**self).code(path, build_id, range)
    }

    fn kernel(&mut self, build_id: Option<&[u8]>) -> Result<Functions, String> {
        (**self).kernel(build_id)
    }

    fn generated(&mut self, pid: u32) -> Option<(Functions, String)> {
        (**self).generated(pid)
    }

    fn jitdump(&mut self, path: &str) -> Result<JitDump, String> {
        (**self).jitdump(path)
    }
}

/// Contents of a file, and its build id.
pub type MappedFile = (Vec<u8>, Option<Vec<u8>>);

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name as in the source; `[unknown]` if unknown.
    pub name: String,
    /// File that contains it; `[kernel]`; empty if unknown.
    pub image: String,
}

/// One of the functions at an address: the compiled one, or one inlined there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Number of the function.
    pub function: u32,
    /// Source line: for the innermost function that of the address, for the others that of the inlined
    /// call.
    pub line: Option<Line>,
    /// Whether it was inlined into the previous one.
    pub is_inlined: bool,
}

/// A source line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Line {
    /// Number of the file: [`Places::source`].
    pub file: u32,
    /// Line number, from 1.
    pub number: u32,
}

/// Location of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum In {
    /// In the kernel.
    Kernel,
    /// In the program.
    Program,
    /// In a guest or a hypervisor.
    Elsewhere,
}

/// Meaning of the events of a class here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Maps,
    Forks,
    Named,
    BuildId,
}

/// Process and thread of an event: copied events have them in their context.
pub(crate) fn thread_of(event: &Event<'_>) -> Option<(u32, u32)> {
    let number = |name: &str| match event.common_context()?.get(name)?.value() {
        Value::Signed(value) => u32::try_from(value).ok(),
        Value::Unsigned(value) => u32::try_from(value).ok(),
        _ => None,
    };
    let writer = event.writer.map(|writer| (writer.pid, writer.tid));
    writer.or_else(|| number("pid").zip(number("tid")))
}

fn says(class: &EventClass) -> Option<Says> {
    let members = class.payload.as_ref().map_or(&[][..], |payload| payload.members());
    let has = |names: &[&str]| names.iter().all(|name| members.iter().any(|of| of.name == *name));
    // Events taken by the recorder itself belong to a subsystem.
    match class.name.strip_prefix("perf:").unwrap_or(&class.name) {
        "mmap" | "mmap2" | "mmap2_build_id"
            if has(&["pid", "addr", "len", "pgoff", "filename"]) =>
        {
            Some(Says::Maps)
        }
        "fork" if has(&["pid", "ppid", "tid", "ptid"]) => Some(Says::Forks),
        "comm" if has(&["pid", "tid", "comm"]) => Some(Says::Named),
        "build_id" if has(&["build_id", "filename"]) => Some(Says::BuildId),
        _ => None,
    }
}

/// Memory mappings of each process, with the functions in them.
pub struct Places<'i> {
    images: Box<dyn Images + 'i>,
    spaces: AddressSpaces,
    /// Whether lookups have no particular time.
    is_any_time: bool,
    files: Vec<String>,
    file_ids: HashMap<String, u32>,
    build_ids: HashMap<String, Vec<u8>>,
    /// By file, loaded on demand.
    read: HashMap<u32, Image>,
    kernel: Option<Functions>,
    generated: HashMap<u32, Option<(Functions, String)>>,
    /// File number by process of the output of its just-in-time compiler.
    jitdumps: HashMap<u32, u32>,
    /// By file, loaded on demand.
    read_jitdumps: HashMap<u32, JitDump>,
    /// Time of lookups by `CLOCK_MONOTONIC`, if known.
    moment_ns: Option<u64>,
    /// By stream class: offset of its times from that clock.
    monotonic_offsets_ns: Vec<Option<i64>>,
    /// Unwinders by process, until its mappings change.
    unwinders: HashMap<u32, Unwinder>,
    names: HashMap<u32, String>,
    /// Names of threads and processes that no event names.
    called: HashMap<u32, String>,
    /// Process of each named thread.
    processes: HashMap<u32, u32>,
    missing: BTreeMap<String, (String, u64)>,
    functions: Vec<Function>,
    function_ids: HashMap<Function, u32>,
    /// By file and offset; for the kernel by address.
    known: HashMap<(u32, u64), u32, RandomState>,
    says: Vec<Vec<Option<Says>>>,
    /// Line tables of images, loaded on demand.
    lines: HashMap<u32, Option<Lines>>,
    sources: Vec<String>,
    source_ids: HashMap<String, u32>,
    /// By file and offset.
    frames: HashMap<(u32, u64), Arc<[Frame]>, RandomState>,
}

impl<'i> Places<'i> {
    /// For a trace with these event classes.
    pub fn new(images: impl Images + 'i, trace: &Trace) -> Self {
        let mut places = Self::without_events(images);
        places.learn(trace);
        places
    }

    /// Adds names of threads and processes that no event names.
    pub fn call(&mut self, names: &Names) {
        let all = names.processes.iter().chain(&names.threads);
        self.called = all.map(|(id, name)| (*id, name.clone())).collect();
    }

    /// Adopts event classes that were added to the trace.
    pub fn learn(&mut self, trace: &Trace) {
        let streams = trace.stream_classes.iter();
        self.says = streams.map(|of| of.event_classes.iter().map(says).collect()).collect();
        let count = trace.stream_classes.len() as u32;
        self.monotonic_offsets_ns = (0..count).map(|of| trace.monotonic_offset_ns(of)).collect();
    }

    /// Later lookups have the time of an event.
    pub(crate) fn at_time_of(&mut self, event: &Event<'_>) {
        let offset = self.monotonic_offsets_ns.get(event.stream_class_index as usize);
        let monotonic = |offset: i64| u64::try_from(event.time.0.checked_sub(offset)?).ok();
        self.moment_ns = offset.copied().flatten().and_then(monotonic);
    }

    /// Without events about mappings: only the kernel is known.
    pub fn without_events(images: impl Images + 'i) -> Self {
        Self {
            images: Box::new(images),
            spaces: AddressSpaces::default(),
            is_any_time: false,
            files: Vec::new(),
            file_ids: HashMap::new(),
            build_ids: HashMap::new(),
            read: HashMap::new(),
            kernel: None,
            generated: HashMap::new(),
            jitdumps: HashMap::new(),
            read_jitdumps: HashMap::new(),
            moment_ns: None,
            monotonic_offsets_ns: Vec::new(),
            unwinders: HashMap::new(),
            names: HashMap::new(),
            called: HashMap::new(),
            processes: HashMap::new(),
            missing: BTreeMap::new(),
            functions: Vec::new(),
            function_ids: HashMap::new(),
            known: HashMap::default(),
            says: Vec::new(),
            lines: HashMap::new(),
            sources: Vec::new(),
            source_ids: HashMap::new(),
            frames: HashMap::default(),
        }
    }

    /// Functions by number, and images that could not be read, with the reason and the number of
    /// addresses in them.
    pub fn finish(self) -> (Vec<Function>, Vec<(String, String, u64)>) {
        let missing = self.missing.into_iter().map(|(image, (why, count))| (image, why, count));
        (self.functions, missing.collect())
    }

    /// Processes the next event in time order; returns whether it concerns mappings.
    pub fn see(&mut self, event: &Event<'_>) -> bool {
        let of_stream = self.says.get(event.stream_class_index as usize);
        let said = of_stream.and_then(|classes| classes.get(event.class_index as usize));
        let Some(said) = said.copied().flatten() else { return false };
        self.side(said, event);
        true
    }

    fn side(&mut self, said: Says, event: &Event<'_>) {
        let Some(payload) = event.payload() else { return };
        let number = |name: &str| payload.get(name).and_then(|field| field.as_u64());
        let text = |name: &str| Some(payload.get(name)?.as_text()?.into_owned());
        let id = |name: &str| number(name).map(|number| number as u32);
        match said {
            Says::Maps => {
                let parts = (id("pid"), number("addr"), number("len"), number("pgoff"));
                let (Some(pid), Some(begin), Some(bytes), Some(offset)) = parts else { return };
                // Data mappings, in recordings that have them, are not code: they replace earlier code.
                let is_code = number("prot").is_none_or(|prot| prot & PROT_EXEC != 0);
                let name = text("filename").filter(|_| is_code).unwrap_or_default();
                if let Some(build_id) = payload.get("build_id").and_then(|of| of.as_bytes()) {
                    self.build_ids.insert(name.clone(), build_id.into_owned());
                }
                let is_jitdump = is_jitdump(&name);
                let file = self.file(name);
                if is_jitdump {
                    self.jitdumps.insert(pid, file);
                }
                let end = begin.saturating_add(bytes);
                self.unwinders.remove(&pid);
                self.spaces.map(pid, Mapping { begin, end, offset, file });
            }
            Says::Forks => {
                let (Some(pid), Some(parent)) = (id("pid"), id("ppid")) else { return };
                self.unwinders.remove(&pid);
                self.spaces.fork(parent, pid);
                if let Some(file) = self.jitdumps.get(&parent).copied() {
                    self.jitdumps.insert(pid, file);
                }
                if let Some(tid) = id("tid").filter(|_| self.processes.len() < THREADS_MAX) {
                    self.processes.insert(tid, pid);
                }
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
                    self.unwinders.remove(&pid);
                    self.spaces.exec(pid);
                }
                if self.processes.len() < THREADS_MAX {
                    self.processes.insert(tid, pid);
                }
                self.name(tid, name);
            }
            Says::BuildId => {
                if let (Some(name), Some(build_id)) =
                    (text("filename"), payload.get("build_id").and_then(|of| of.as_bytes()))
                {
                    self.build_ids.entry(name).or_insert_with(|| build_id.into_owned());
                }
            }
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

    /// The name of a thread, or of its process.
    pub fn program(&self, (pid, tid): (u32, u32)) -> String {
        let of =
            |names: &HashMap<u32, String>| names.get(&tid).or_else(|| names.get(&pid)).cloned();
        match of(&self.names).or_else(|| of(&self.called)) {
            Some(name) => name,
            // Name of idle threads in Linux.
            None if pid == 0 => "swapper".to_owned(),
            None => format!("process {pid}"),
        }
    }

    /// Process of a thread, if an event named it.
    pub fn process_of(&self, tid: u32) -> Option<u32> {
        self.processes.get(&tid).copied()
    }

    /// Ends the events: later lookups have no particular time. Of the programs that a process ran one
    /// after the other, an earlier one is found where no later one is mapped.
    pub fn at_any_time(&mut self) {
        self.is_any_time = true;
    }

    /// Addresses at which a process has, or had as another program, these bytes of a file.
    pub fn mapped(&self, pid: u32, path: &str, bytes: Range<u64>) -> Vec<Range<u64>> {
        let Some(of) = self.file_ids.get(path) else { return Vec::new() };
        let mut found = Vec::new();
        for Mapping { begin, end, offset, file } in self.spaces.ever_of(pid) {
            let first = bytes.start.max(offset);
            let last = bytes.end.min(offset.saturating_add(end - begin));
            if file == *of && first < last {
                found.push(begin + (first - offset)..begin + (last - offset));
            }
        }
        found
    }

    /// File-backed memory that a process has, or had as another program: addresses and bytes. Files that
    /// cannot be read are left out.
    ///
    /// Memory: all of it, at most `bytes_max`.
    pub fn code_of(&mut self, pid: u32, mut bytes_max: u64) -> Vec<(u64, Vec<u8>)> {
        let mappings = self.spaces.ever_of(pid);
        let mut found = Vec::new();
        for Mapping { begin, end, offset, file } in mappings {
            let path = self.files[file as usize].clone();
            let bytes = (end - begin).min(bytes_max);
            if is_generated(&path) || bytes == 0 {
                continue;
            }
            let build_id = self.build_ids.get(&path).map(Vec::as_slice);
            match self.images.code(&path, build_id, (offset, bytes)) {
                Ok(code) => {
                    bytes_max -= code.len() as u64;
                    found.push((begin, code));
                }
                Err(why) => {
                    self.missing.entry(path).or_insert((why, 0));
                }
            }
        }
        found
    }

    /// Files mapped as code, by path, with their contents and build ids; or the reason why they are
    /// unavailable.
    pub fn mapped_files(&mut self) -> Vec<(String, Result<MappedFile, String>)> {
        let Self { files, build_ids, images, .. } = self;
        let real = files.iter().filter(|path| !is_generated(path) && !path.starts_with("[kernel"));
        real.map(|path| {
            let build_id = build_ids.get(path).map(Vec::as_slice);
            let bytes = images.code(path, build_id, (0, u64::MAX));
            (path.clone(), bytes.map(|bytes| (bytes, images.build_id(path))))
        })
        .collect()
    }

    /// The number of a function.
    pub fn function(&mut self, function: Function) -> u32 {
        if let Some(id) = self.function_ids.get(&function) {
            return *id;
        }
        if self.functions.len() >= FUNCTIONS_MAX {
            return 0;
        }
        let id = self.functions.len() as u32;
        self.functions.push(function.clone());
        self.function_ids.insert(function, id);
        id
    }

    /// Function at an address of a process.
    pub fn function_at(&mut self, pid: u32, address: u64, place: In) -> u32 {
        let mapping = match place {
            In::Kernel => self.spaces.at(KERNEL, address),
            In::Program if self.is_any_time => self.spaces.ever_at(pid, address),
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
            // Code generated at run time differs between processes.
            _ => return self.generated_at(pid, address).function,
        };
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let function = match place {
            In::Kernel => self.kernel_at(address, mapping),
            _ => self.image_at(key.0, key.1),
        };
        let id = self.function(function);
        if self.known.len() < FUNCTIONS_MAX {
            self.known.insert(key, id);
        }
        id
    }

    /// Functions at an address of a process: the compiled one, followed by inlined ones, innermost last.
    /// Without debug information there are no inlined functions and no lines.
    pub fn frames_at(&mut self, pid: u32, address: u64, place: In) -> Arc<[Frame]> {
        let function = self.function_at(pid, address, place);
        let alone = || Arc::from([Frame { function, line: None, is_inlined: false }]);
        let mapping = match place {
            In::Program if self.is_any_time => self.spaces.ever_at(pid, address),
            In::Program => self.spaces.at(pid, address),
            In::Kernel | In::Elsewhere => None,
        };
        let is_file = |of: &Mapping| !is_generated(&self.files[of.file as usize]);
        let Some(mapping) = mapping.filter(is_file) else {
            return match place {
                In::Program => Arc::from([self.generated_at(pid, address)]),
                In::Kernel | In::Elsewhere => alone(),
            };
        };
        let key = (mapping.file, mapping.offset_of(address));
        if let Some(known) = self.frames.get(&key) {
            return Arc::clone(known);
        }
        let Some(image) = self.read.get(&mapping.file) else { return alone() };
        let lines = self.lines.entry(mapping.file).or_insert_with(|| Lines::of(image));
        let found = lines.as_ref().zip(image.address_of(key.1));
        let found = found.map_or_else(Vec::new, |(lines, address)| lines.frames(address));
        let frames: Arc<[Frame]> = self.framed(mapping.file, function, &found);
        if self.frames.len() < FRAMES_MAX {
            self.frames.insert(key, Arc::clone(&frames));
        }
        frames
    }

    /// Frames from line information, innermost first; the outermost function is identified by its symbol.
    fn framed(&mut self, file: u32, function: u32, found: &[LineFrame]) -> Arc<[Frame]> {
        let Some((outermost, inlined)) = found.split_last() else {
            return Arc::from([Frame { function, line: None, is_inlined: false }]);
        };
        let mut frames = Vec::with_capacity(found.len());
        let line = self.line_of(outermost);
        frames.push(Frame { function, line, is_inlined: false });
        let image = self.files[file as usize].clone();
        for of in inlined.iter().rev() {
            let name = of.function.clone().unwrap_or_else(unknown);
            let function = self.function(Function { name, image: image.clone() });
            frames.push(Frame { function, line: self.line_of(of), is_inlined: true });
        }
        frames.into()
    }

    fn line_of(&mut self, frame: &LineFrame) -> Option<Line> {
        let (file, number) = frame.line.as_ref()?;
        if let Some(id) = self.source_ids.get(file) {
            return Some(Line { file: *id, number: *number });
        }
        if self.sources.len() >= FUNCTIONS_MAX {
            return None;
        }
        let id = self.sources.len() as u32;
        self.sources.push(file.clone());
        self.source_ids.insert(file.clone(), id);
        Some(Line { file: id, number: *number })
    }

    /// A source file by number.
    #[must_use]
    pub fn source(&self, file: u32) -> &str {
        self.sources.get(file as usize).map_or("", String::as_str)
    }

    /// Source files by number.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// A line as `FILE:LINE`.
    #[must_use]
    pub fn line_text(&self, line: Line) -> String {
        format!("{}:{}", self.source(line.file), line.number)
    }

    /// Functions by number.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Name of a function.
    #[must_use]
    pub fn name_of(&self, function: u32) -> Option<&str> {
        self.functions.get(function as usize).map(|function| function.name.as_str())
    }

    /// Offset of an address from the start of its function; `None` if the function is unknown.
    pub fn offset_at(&mut self, pid: u32, address: u64, place: In) -> Option<u64> {
        // Makes sure that the image is loaded.
        self.function_at(pid, address, place);
        match place {
            In::Kernel => self.kernel.as_ref()?.offset_at(address),
            In::Program => {
                let mapping = self.spaces.at(pid, address)?;
                let image = self.read.get(&mapping.file)?;
                image.functions.offset_at(image.address_of(mapping.offset_of(address))?)
            }
            In::Elsewhere => None,
        }
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
        // For a module the file, for the kernel itself a name that indicates it.
        let file = mapping.and_then(|of| self.files.get(of.file as usize));
        let is_module = file.is_some_and(|file| !file.starts_with("[kernel"));
        let image = file.filter(|_| is_module).cloned().unwrap_or_else(|| "[kernel]".to_owned());
        Function { name: name.unwrap_or_else(unknown), image }
    }

    /// Reads the image of a file, once.
    fn know(&mut self, file: u32) {
        if self.read.contains_key(&file) {
            return;
        }
        let path = &self.files[file as usize];
        let build_id = self.build_ids.get(path).map(Vec::as_slice);
        let image = self.images.image(path, build_id).unwrap_or_else(|why| {
            self.missing.insert(path.clone(), (why, 0));
            Image::default()
        });
        self.read.insert(file, image);
    }

    /// Addresses on a stack of a process, innermost first, as found by [`Unwinder::unwind`].
    pub fn unwind(&mut self, pid: u32, registers: &Registers, stack: &[u8]) -> Vec<u64> {
        if !self.unwinders.contains_key(&pid) {
            let mut unwinder = Unwinder::default();
            let mappings = self.spaces.ever_of(pid);
            for mapping in mappings {
                if is_generated(&self.files[mapping.file as usize]) {
                    continue;
                }
                self.know(mapping.file);
                if let Some(image) = self.read.get(&mapping.file) {
                    unwinder.add(&mapping, image);
                }
            }
            // Each caches information about its files: with many processes, only the recent ones are
            // kept.
            if self.unwinders.len() >= UNWINDERS_MAX {
                self.unwinders.clear();
            }
            self.unwinders.insert(pid, unwinder);
        }
        let unwinder = self.unwinders.get_mut(&pid);
        unwinder.map_or_else(Vec::new, |unwinder| unwinder.unwind(registers, stack))
    }

    fn image_at(&mut self, file: u32, offset: u64) -> Function {
        let path = self.files[file as usize].clone();
        self.know(file);
        let name = self.read.get(&file).and_then(|image| image.function_at(offset)).map(demangled);
        if name.is_none()
            && let Some((_, count)) = self.missing.get_mut(&path)
        {
            *count += 1;
        }
        Function { name: name.unwrap_or_else(unknown), image: path }
    }

    /// Frame in code generated at run time: from the compiler's log at the time of the lookup, or from
    /// the list that it wrote.
    fn generated_at(&mut self, pid: u32, address: u64) -> Frame {
        if let Some(frame) = self.compiled_at(pid, address) {
            return frame;
        }
        let Self { generated, images, .. } = self;
        let of = generated.entry(pid).or_insert_with(|| images.generated(pid));
        let found = of.as_ref().and_then(|(functions, file)| Some((functions.at(address)?, file)));
        let function = match found {
            Some((name, file)) => Function { name: name.to_owned(), image: file.clone() },
            None => Function { name: unknown(), image: String::new() },
        };
        Frame { function: self.function(function), line: None, is_inlined: false }
    }

    fn compiled_at(&mut self, pid: u32, address: u64) -> Option<Frame> {
        let file = *self.jitdumps.get(&pid)?;
        if !self.read_jitdumps.contains_key(&file) {
            let path = &self.files[file as usize];
            let read = self.images.jitdump(path).unwrap_or_else(|why| {
                self.missing.insert(path.clone(), (why, 0));
                JitDump::default()
            });
            self.read_jitdumps.insert(file, read);
        }
        let image = &self.files[file as usize];
        let dump = self.read_jitdumps.get_mut(&file)?;
        let Some(found) = dump.at(address, self.moment_ns) else {
            if let Some((_, count)) = self.missing.get_mut(image) {
                *count += 1;
            }
            return None;
        };
        let function = Function { name: demangled(found.name), image: image.clone() };
        let line = found.line.map(|(file, number)| LineFrame {
            function: None,
            line: Some((file.to_owned(), number)),
        });
        let line = line.and_then(|line| self.line_of(&line));
        Some(Frame { function: self.function(function), line, is_inlined: false })
    }
}

/// Whether a mapping only marks that a just-in-time compiler writes a log, `jit-PID.dump` [Linux,
/// tools/perf/util/jitdump.c].
fn is_jitdump(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let pid = name.strip_prefix("jit-").and_then(|rest| rest.strip_suffix(".dump"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

fn unknown() -> String {
    "[unknown]".to_owned()
}

/// Whether a mapping has no file: memory for generated code.
fn is_generated(name: &str) -> bool {
    ["//anon", "[anon", "/memfd:", "/dev/zero", "[heap]", "[stack]"]
        .iter()
        .any(|begin| name.starts_with(begin))
        || name.is_empty()
}
