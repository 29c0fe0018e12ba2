// SPDX-License-Identifier: Apache-2.0 OR MIT
//! System calls and their results: errors, bytes.
//!
//! An exit alone gives the result. Its entry gives the begin of the call and, if exits have neither a
//! name nor a number (LTTng before 2.6), which call it is. If a trace has two machines, or the
//! architecture is unknown, calls are shown by number.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_model::{
    Event, EventClass, Field, FieldKind, Label, StreamClass, StreamIndex, Writer,
};
use lateralis_units::Nanos;

use super::{Activity, fields, numbers};
use crate::facts::At;

/// Threads whose current call is remembered; a hostile trace may name any number.
const OPEN_MAX: usize = 1 << 20;
const NAMES_MAX: usize = Calls::NAMES_MAX;
/// The largest error number that a call returns [include/linux/err.h, `MAX_ERRNO`].
const ERROR_MAX: i64 = 4095;

/// The callee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The kernel.
    Kernel,
    /// The C library, as the preload library records it.
    Library,
}

impl Layer {
    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Library => "library",
        }
    }
}

/// Direction of the bytes whose number a call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moves {
    /// To the caller.
    In,
    /// From it.
    Out,
    /// From one file to another.
    Through,
}

impl Moves {
    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::Through => "through",
        }
    }

    /// For a call that returns a number of bytes.
    fn of(call: &str) -> Option<Self> {
        match call {
            "read" | "pread" | "pread64" | "readv" | "preadv" | "preadv2" | "recv" | "recvfrom"
            | "recvmsg" | "fread" => Some(Self::In),
            "write" | "pwrite" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "send"
            | "sendto" | "sendmsg" | "fwrite" => Some(Self::Out),
            "sendfile" | "sendfile64" | "splice" | "tee" | "vmsplice" | "copy_file_range" => {
                Some(Self::Through)
            }
            _ => None,
        }
    }
}

/// A call by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallName {
    /// The callee.
    pub layer: Layer,
    /// Name in the kernel; `#N` for number N without a known name, `?` for an exit without either,
    /// `others` for all names beyond [`Calls::NAMES_MAX`].
    pub name: String,
    /// Direction of the bytes, if it returns their number.
    pub moves: Option<Moves>,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Stream of its last event.
    pub stream: StreamIndex,
    /// Index into [`Calls::names`].
    pub name: u32,
    /// The calling thread; `None` if unknown.
    pub writer: Option<Writer>,
    /// Time of its begin; `None`: not seen.
    pub begin: Option<Nanos>,
    /// Time of its return; `None`: not seen.
    pub end: Option<Nanos>,
    /// Its return value.
    pub value: Option<i64>,
    /// Direction of its bytes, if it returns their number.
    pub moves: Option<Moves>,
    /// Whether its thread made another call without an exit of this one, which is missing.
    pub is_overtaken: bool,
    /// Whether its error numbers are those that [`numbers::error_name`] knows.
    pub has_generic_errors: bool,
}

impl Call {
    /// The error number that it returned.
    #[must_use]
    pub fn error(&self) -> Option<u32> {
        let value = self.value?;
        (-ERROR_MAX..=-1).contains(&value).then(|| value.unsigned_abs() as u32)
    }

    /// Number of bytes that it transferred.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let value = self.value.filter(|_| self.moves.is_some())?;
        u64::try_from(value).ok()
    }

    /// Name of the error; `errno N` if it has none.
    #[must_use]
    pub fn error_name(&self) -> Option<String> {
        let number = self.error()?;
        let known = numbers::error_name(number).filter(|_| self.has_generic_errors);
        Some(known.map_or_else(|| format!("errno {number}"), str::to_owned))
    }
}

/// Source of the call of an event.
#[derive(Debug, Clone, Copy)]
enum Which {
    Name(u32),
    /// Field with its number.
    Number(usize),
    /// Field whose label is its name.
    Label(usize),
    /// The current call of the thread.
    OfThread,
}

/// Meaning of the events of a class.
#[derive(Debug)]
pub struct CallRule {
    which: Which,
    begins: bool,
    /// Field with the return value, and field with an error number that takes precedence.
    value: Option<usize>,
    error: Option<usize>,
    layer: Layer,
    machine: u32,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    name: u32,
    begin: Nanos,
    stream: StreamIndex,
    writer: Writer,
    has_generic_errors: bool,
}

/// Properties of the machine of a stream class.
#[derive(Debug, Default)]
struct Machine {
    architecture: Option<String>,
    has_old_calls: bool,
    has_generic_errors: bool,
    /// Whether a class of the preload library names the call that begins.
    is_of_library: bool,
}

/// Follows the calls of threads, in time order.
#[derive(Debug, Default)]
pub struct Calls {
    names: Vec<CallName>,
    by_name: HashMap<(Layer, String), u32, RandomState>,
    by_number: HashMap<(u32, u64), u32, RandomState>,
    open: HashMap<(Layer, u32), Open, RandomState>,
    machines: Vec<Machine>,
    /// Rows of names beyond the first.
    others: Vec<u32>,
}

/// Name of an exit without a name.
const UNNAMED: &str = "?";
/// Name shared by all calls without a row of their own.
const OTHERS: &str = "others";
/// Calls that have an entry, but no exit.
const WITHOUT_EXIT: [&str; 4] = ["rt_sigreturn", "sigreturn", "exit", "exit_group"];

impl Calls {
    /// Largest number of calls with a row of their own: there are five hundred, but a trace may make up
    /// names and numbers.
    pub const NAMES_MAX: usize = 1 << 12;

    /// Rows shared by calls without a row of their own, at most one for each layer.
    #[must_use]
    pub fn others(&self) -> &[u32] {
        &self.others
    }

    /// Calls by the numbers in [`Call::name`].
    #[must_use]
    pub fn names(&self) -> &[CallName] {
        &self.names
    }

    /// Starts another stream class, of a machine with this architecture.
    pub(super) fn begin_stream_class(&mut self, stream: &StreamClass, architecture: Option<&str>) {
        let has = |name: &str| stream.event_classes.iter().any(|class| class.name == name);
        self.machines.push(Machine {
            architecture: architecture.map(str::to_owned),
            has_old_calls: has("exit_syscall"),
            has_generic_errors: numbers::has_generic_errors(architecture),
            is_of_library: stream.event_classes.iter().any(|class| labels(class).is_some()),
        });
    }

    /// Rule of a class, if its events concern calls.
    pub(super) fn rule(&mut self, class: &EventClass) -> Option<CallRule> {
        let machine = self.machines.len().checked_sub(1)?;
        let Machine { has_old_calls, is_of_library, .. } = self.machines[machine];
        let last = class.name.rsplit(':').next().unwrap_or(&class.name);
        let value = fields::place(class, &["ret"]);
        let of_kernel = |which, begins| CallRule {
            which,
            begins,
            value: value.filter(|_| !begins),
            error: None,
            layer: Layer::Kernel,
            machine: machine as u32,
        };
        if class.name.starts_with("io:") && is_of_library {
            return self.library_rule(class, last, machine as u32);
        }
        match last {
            "sys_enter" => {
                return Some(of_kernel(Which::Number(fields::place(class, &["id"])?), true));
            }
            "sys_exit" => {
                let which = Which::Number(fields::place(class, &["id"])?);
                return value.map(|_| of_kernel(which, false));
            }
            "exit_syscall" if has_old_calls => {
                return value.map(|_| of_kernel(Which::OfThread, false));
            }
            _ => {}
        }
        let name = last.strip_prefix("compat_").unwrap_or(last);
        let begins =
            name.strip_prefix("syscall_entry_").or_else(|| name.strip_prefix("sys_enter_"));
        let ends = name.strip_prefix("syscall_exit_").or_else(|| name.strip_prefix("sys_exit_"));
        let old = name.strip_prefix("sys_").filter(|_| has_old_calls);
        let (call, begins) = match (begins, ends, old) {
            (Some(call), _, _) | (None, None, Some(call)) => (call, true),
            (None, Some(call), _) => (call, false),
            (None, None, None) => return None,
        };
        if call.is_empty() || (!begins && value.is_none()) {
            return None;
        }
        Some(of_kernel(Which::Name(self.name(Layer::Kernel, call)), begins))
    }

    /// Rule for events of the preload library about files and sockets.
    fn library_rule(&mut self, class: &EventClass, last: &str, machine: u32) -> Option<CallRule> {
        let rule = |which, begins, value, error| {
            let layer = Layer::Library;
            Some(CallRule { which, begins, value, error, layer, machine })
        };
        let result = || fields::place(class, &["result"]);
        match last {
            "OPENED" => {
                let error = fields::place(class, &["error"]);
                rule(Which::OfThread, false, fields::place(class, &["fd"]), Some(error?))
            }
            "CLOSED" | "READ_DONE" | "WRITE_DONE" | "TRANSFER_DONE" | "SYNC_DONE" | "CONNECTED"
            | "ACCEPTED" | "POLL_DONE" => rule(Which::OfThread, false, Some(result()?), None),
            "CONNECT" | "ACCEPT" => {
                let name = self.name(Layer::Library, &last.to_ascii_lowercase());
                rule(Which::Name(name), true, None, None)
            }
            _ => rule(Which::Label(labels(class)?), true, None, None),
        }
    }

    fn name(&mut self, layer: Layer, name: &str) -> u32 {
        if let Some(number) = self.by_name.get(&(layer, name.to_owned())) {
            return *number;
        }
        // An exit without a name does not count among the others.
        let is_full = self.names.len() >= NAMES_MAX && name != UNNAMED;
        let name = if is_full { OTHERS } else { name };
        if is_full && let Some(number) = self.by_name.get(&(layer, name.to_owned())) {
            return *number;
        }
        let number = self.names.len() as u32;
        if is_full {
            self.others.push(number);
        }
        self.names.push(CallName { layer, name: name.to_owned(), moves: Moves::of(name) });
        self.by_name.insert((layer, name.to_owned()), number);
        number
    }

    /// Row of a call by number.
    fn numbered(&mut self, machine: u32, number: u64) -> u32 {
        if let Some(name) = self.by_number.get(&(machine, number)) {
            return *name;
        }
        let architecture =
            self.machines.get(machine as usize).and_then(|of| of.architecture.as_deref());
        let known = u32::try_from(number).ok().and_then(|of| numbers::call_name(architecture, of));
        let name = match known {
            Some(name) => self.name(Layer::Kernel, name),
            None => self.name(Layer::Kernel, &format!("#{number}")),
        };
        if self.by_number.len() < NAMES_MAX {
            self.by_number.insert((machine, number), name);
        }
        name
    }

    /// Row of the call of an event, if the event names it; `Err`: the event belongs to no call.
    fn which(&mut self, rule: &CallRule, event: &Event<'_>) -> Result<Option<u32>, ()> {
        match rule.which {
            Which::Name(name) => Ok(Some(name)),
            Which::OfThread => Ok(None),
            Which::Number(place) => {
                let number = fields::number(event, Some(place)).ok_or(())?;
                // A signal handler has returned, or a tracer has blocked the call.
                match number.cast_signed() {
                    ..0 => Ok(None),
                    _ => Ok(Some(self.numbered(rule.machine, number))),
                }
            }
            Which::Label(place) => {
                let label = fields::field(event, place).and_then(label).ok_or(())?;
                Ok(Some(self.name(Layer::Library, &label.to_ascii_lowercase())))
            }
        }
    }

    pub(super) fn event(
        &mut self,
        rule: &CallRule,
        event: &Event<'_>,
        at: &At,
        see: &mut dyn FnMut(&Activity),
    ) {
        let Ok(name) = self.which(rule, event) else { return };
        let machine = self.machines.get(rule.machine as usize);
        let has_generic_errors = machine.is_some_and(|of| of.has_generic_errors);
        let key = at.writer.map(|writer| (rule.layer, writer.tid));
        if rule.begins {
            let (Some(name), Some(writer), Some(key)) = (name, at.writer, key) else { return };
            if let Some(before) = self.open.remove(&key) {
                see(&Activity::Call(self.unfinished(&before, true)));
            }
            let is_left = !WITHOUT_EXIT.contains(&self.names[name as usize].name.as_str());
            if self.open.len() < OPEN_MAX && is_left {
                let (begin, stream) = (at.time, at.stream);
                self.open.insert(key, Open { name, begin, stream, writer, has_generic_errors });
            }
            return;
        }
        let error = fields::number(event, rule.error).filter(|error| *error != 0);
        let value = match error {
            Some(error) => Some(-error.cast_signed()),
            None => rule.value.and_then(|place| fields::signed(event, place)),
        };
        let mut begun = None;
        if let Some(key) = key
            && let Some(open) = self.open.get(&key)
        {
            let is_same = name.is_none_or(|name| name == open.name);
            begun = is_same.then_some(*open);
            if let Some(open) = self.open.remove(&key).filter(|_| !is_same) {
                see(&Activity::Call(self.unfinished(&open, true)));
            }
        }
        let name = match (name, begun) {
            (Some(name), _) => name,
            (None, Some(open)) => open.name,
            // A numbered exit without an entry is the return of a signal handler: the register then holds
            // the result of the interrupted call.
            (None, None) if matches!(rule.which, Which::Number(_)) => return,
            (None, None) => self.name(rule.layer, UNNAMED),
        };
        see(&Activity::Call(Call {
            stream: at.stream,
            name,
            writer: at.writer,
            begin: begun.map(|open| open.begin),
            end: Some(at.time),
            value,
            moves: self.moves(name),
            is_overtaken: false,
            has_generic_errors,
        }));
    }

    fn moves(&self, name: u32) -> Option<Moves> {
        self.names.get(name as usize)?.moves
    }

    fn unfinished(&self, open: &Open, is_overtaken: bool) -> Call {
        Call {
            stream: open.stream,
            name: open.name,
            writer: Some(open.writer),
            begin: Some(open.begin),
            end: None,
            value: None,
            moves: self.moves(open.name),
            is_overtaken,
            has_generic_errors: open.has_generic_errors,
        }
    }

    pub(super) fn finish(&mut self, see: &mut dyn FnMut(&Activity)) {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_by_key(|((layer, tid), open)| (open.begin, *layer, *tid));
        for (_, open) in &open {
            see(&Activity::Call(self.unfinished(open, false)));
        }
    }
}

/// Field in which the preload library names the called function.
fn labels(class: &EventClass) -> Option<usize> {
    let place = fields::place(class, &["call"]).filter(|_| class.name.starts_with("io:"))?;
    let member = class.payload.as_ref()?.members().get(place)?;
    let FieldKind::Unsigned(integer) = &member.class.kind else { return None };
    let has = |name: &str| integer.labels.iter().any(|label| label.name == name);
    (has("FREAD") && has("RECVMMSG")).then_some(place)
}

fn label(field: Field<'_>) -> Option<String> {
    let FieldKind::Unsigned(integer) = &field.class().kind else { return None };
    let value = i128::from(field.as_u64()?);
    let has = |label: &&Label| label.ranges.iter().any(|range| range.contains(value));
    integer.labels.iter().find(has).map(|label| label.name.clone())
}
