// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From Chrome JSON to the model.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use lateralis_model::role::{Keyed, Role};
use lateralis_model::{
    Attribute, Builder, Clock, Damage, DamageReason, EnvValue, Interval, MemoryTrace, Writer,
};

use serde_json::Value;

use super::event::{Raw, is_json, nanos};
use super::scan::{Fault, skip_blanks, skip_string, skip_value};
use crate::dynamic::{ClassText, Dyn, Dynamic, Lane, Named, Sink, Survey};
use crate::{CHROME_PHASE, Error, phases};

/// Metadata events and members of the outer object that are kept.
const MAX_NOTES: usize = 10_000;
/// Bytes that decide whether it is such a file.
const SNIFF_BYTES: usize = 4096;
/// Longest such text, in bytes.
const MAX_NOTE_BYTES: usize = 64 << 10;
/// Kinds of damage that are told one by one.
const MAX_DAMAGE: usize = 10_000;
/// Spans open at once whose names are remembered for ends without one.
const MAX_OPEN: usize = 1 << 20;

/// Whether a file looks like Chrome JSON, by its first bytes (4 KiB are enough).
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    let first = &first[..first.len().min(SNIFF_BYTES)];
    let bytes = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    let at = skip_blanks(bytes, 0);
    let has = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    match bytes.get(at) {
        Some(b'[') => {
            let next = skip_blanks(bytes, at + 1);
            bytes.get(next) == Some(&b'{') && has(b"\"ph\"")
        }
        Some(b'{') => {
            has(b"\"traceEvents\"") || (has(b"\"displayTimeUnit\"") && has(b"\"otherData\""))
        }
        _ => false,
    }
}

/// Reads a file called `name`, whose events may take `limit_bytes` of memory.
///
/// Time is linear in the length of the file; it is walked twice.
///
/// # Errors
/// If there is no array of events in it.
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    let error = || Error {
        what: "no trace events",
        place: name.to_owned(),
        help: "expected an array of events or an object with \"traceEvents\"",
    };
    let document = Document::find(bytes).ok_or_else(error)?;
    let mut builder = MemoryTrace::builder("Chrome JSON", limit_bytes);
    let mut survey = Survey::default();
    let mut walk = Walk::new(name, bytes);
    walk.run(document.events, &mut survey);
    if survey.events == 0 && !walk.damage.is_empty() {
        return Err(error());
    }
    walk.describe(&document, &mut builder);
    let mut fill = survey.finish(builder, document.clock(), attributes);
    Walk::new(name, bytes).run(document.events, &mut fill);
    Ok(fill.finish())
}

/// Where the parts of a file are.
struct Document<'a> {
    /// First byte after the bracket of the array of events.
    events: usize,
    /// Other members of the outer object.
    members: Vec<(String, &'a [u8])>,
}

impl<'a> Document<'a> {
    /// The clock of the times, which our own writer lets begin later than at 0.
    fn clock(&self) -> Clock {
        let text = self.members.iter().find(|(key, _)| key == super::ORIGIN);
        let origin = text.and_then(|(_, text)| serde_json::from_slice::<Value>(text).ok());
        let origin = origin.unwrap_or_default();
        let nanos = origin["ns"].as_str().and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
        let mut clock = Clock::new("chrome", 1_000_000_000, 0, nanos);
        clock.unix_epoch = origin["unix"].as_bool().unwrap_or(false);
        clock
    }

    fn find(bytes: &'a [u8]) -> Option<Self> {
        let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let mut at = skip_blanks(bytes, start);
        let mut members = Vec::new();
        match bytes.get(at)? {
            b'[' => return Some(Self { events: at + 1, members }),
            b'{' => at += 1,
            _ => return None,
        }
        let mut events = None;
        loop {
            at = skip_blanks(bytes, at);
            if bytes.get(at) == Some(&b',') {
                at = skip_blanks(bytes, at + 1);
            }
            if bytes.get(at) != Some(&b'"') {
                break;
            }
            let Ok(end) = skip_string(bytes, at) else { break };
            let key = serde_json::from_slice::<String>(&bytes[at..end]).unwrap_or_default();
            at = skip_blanks(bytes, end);
            if bytes.get(at) != Some(&b':') {
                break;
            }
            at = skip_blanks(bytes, at + 1);
            let is_events = key == "traceEvents" && bytes.get(at) == Some(&b'[');
            if is_events {
                events = Some(at + 1);
            }
            let Ok(end) = skip_value(bytes, at) else { break };
            if !is_events && members.len() < MAX_NOTES {
                members.push((key, &bytes[at..end]));
            }
            at = end;
        }
        Some(Self { events: events?, members })
    }
}

/// One walk over the events.
struct Walk<'a> {
    file: &'a str,
    bytes: &'a [u8],
    damage: Vec<Damage>,
    more_damage: u64,
    finer: u64,
    timeless: u64,
    processes: BTreeMap<u32, String>,
    threads: BTreeMap<u32, String>,
    notes: Vec<(String, String)>,
    /// Numbers given to processes and threads that have texts for ids.
    ids: HashMap<String, u32>,
    /// Names of open spans of each thread, for ends that do not tell theirs.
    open: HashMap<(u32, u32), Vec<(String, String)>>,
    open_count: usize,
    /// Bytes that may still be looked at again to find the next event after a
    /// damaged one, so that the whole stays linear.
    again: usize,
}

impl<'a> Walk<'a> {
    fn new(file: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            file,
            bytes,
            damage: Vec::new(),
            more_damage: 0,
            finer: 0,
            timeless: 0,
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            notes: Vec::new(),
            ids: HashMap::new(),
            open: HashMap::new(),
            open_count: 0,
            again: bytes.len().saturating_mul(8),
        }
    }

    fn damaged(&mut self, begin: usize, end: usize, reason: DamageReason) {
        if self.damage.len() >= MAX_DAMAGE {
            self.more_damage += 1;
            return;
        }
        self.damage.push(Damage {
            file: self.file.to_owned(),
            begin_bytes: begin as u64,
            end_bytes: end as u64,
            reason,
            interval: Interval::default(),
        });
    }

    /// Gives all events from `at`, which lies in their array, to `sink`.
    fn run(&mut self, at: usize, sink: &mut dyn Sink) {
        let mut at = at;
        loop {
            at = skip_blanks(self.bytes, at);
            match self.bytes.get(at) {
                // An array without its end is allowed: the writer may have been killed.
                None | Some(b']') => return,
                Some(b',') => at += 1,
                Some(b'{') => match self.object(at) {
                    Ok((raw, end)) => {
                        self.event(raw, sink);
                        at = end;
                    }
                    Err(reason) => at = self.resume(at, reason),
                },
                Some(_) => {
                    let rule = "only objects are events";
                    at = self.resume(at, DamageReason::BadValue { rule });
                }
            }
        }
    }

    fn object(&self, at: usize) -> Result<(Raw<'a>, usize), DamageReason> {
        let end = skip_value(self.bytes, at).map_err(|fault| match fault {
            Fault::Truncated => DamageReason::Truncated { missing_bytes: None },
            Fault::Bad(_) => DamageReason::BadValue { rule: "an event must be JSON" },
        })?;
        let bad = DamageReason::BadValue { rule: "an event must be a JSON object with \"ph\"" };
        let raw: Raw<'a> = serde_json::from_slice(&self.bytes[at..end]).map_err(|_| bad.clone())?;
        match &raw.phase {
            Some(phase) if !phase.is_empty() => Ok((raw, end)),
            _ => Err(bad),
        }
    }

    /// Looks for the next event after a fault at `at`; notes what lies between.
    fn resume(&mut self, at: usize, reason: DamageReason) -> usize {
        let mut next = at + 1;
        loop {
            let brace = self.bytes[next..].iter().position(|&byte| byte == b'{');
            let Some(brace) = brace.filter(|_| self.again > 0) else {
                self.damaged(at, self.bytes.len(), reason);
                return self.bytes.len();
            };
            next += brace;
            let end = skip_value(self.bytes, next).unwrap_or(self.bytes.len());
            self.again = self.again.saturating_sub(end - next);
            if self.object(next).is_ok() {
                self.damaged(at, next, reason);
                return next;
            }
            next += 1;
        }
    }

    fn event(&mut self, raw: Raw<'a>, sink: &mut dyn Sink) {
        let phase = raw.phase.as_deref().and_then(|phase| phase.bytes().next()).unwrap_or(0);
        let mut context: Named<'a> = Vec::new();
        let pid = self.id("pid", raw.pid, &mut context);
        let tid = self.id("tid", raw.tid, &mut context);
        let has_writer = pid.is_some() || tid.is_some();
        let (pid, tid) = (pid.unwrap_or(0), tid.unwrap_or(0));
        if phase == b'M' {
            return self.metadata(raw.name.unwrap_or_default(), pid, tid, raw.args);
        }
        let time = self.time(raw.time);
        if let Some(duration) = raw.duration {
            let (nanos, cut) = nanos(duration).unwrap_or((0, false));
            self.finer += u64::from(cut);
            context.push((
                "dur".into(),
                u64::try_from(nanos).map_or(Dyn::Signed(nanos), Dyn::Unsigned),
            ));
        }
        context.extend(raw.rest);
        let mut name = raw.name.unwrap_or_default();
        let mut category = raw.category.unwrap_or_default();
        let stack = self.open.entry((pid, tid)).or_default();
        match phase {
            b'B' if self.open_count < MAX_OPEN => {
                stack.push((name.to_string(), category.to_string()));
                self.open_count += 1;
            }
            b'E' => {
                if let Some((began, began_category)) = stack.pop() {
                    self.open_count -= 1;
                    if name.is_empty() {
                        name = Cow::Owned(began);
                    }
                    if category.is_empty() {
                        category = Cow::Owned(began_category);
                    }
                }
            }
            _ => (),
        }
        let payload = match raw.args {
            Some(Dyn::Dict(members)) => members,
            None | Some(Dyn::Null) => Vec::new(),
            Some(other) => vec![("args".into(), other)],
        };
        sink.event(&Dynamic {
            lane: if has_writer { Lane::Thread } else { Lane::Global },
            tag: u32::from(phase),
            category,
            name,
            time,
            writer: has_writer.then_some(Writer { pid, tid }),
            context,
            payload,
        });
    }

    fn time(&mut self, text: Option<&str>) -> i64 {
        match text.and_then(nanos) {
            Some((time, cut)) => {
                self.finer += u64::from(cut);
                time
            }
            None => {
                self.timeless += 1;
                0
            }
        }
    }

    /// A process or thread id. What is no number of 32 bits gets one, and stays in
    /// the context as it was.
    fn id(
        &mut self,
        name: &'static str,
        value: Option<Dyn<'a>>,
        context: &mut Named<'a>,
    ) -> Option<u32> {
        let value = value?;
        if let Dyn::Unsigned(number) = value
            && let Ok(number) = u32::try_from(number)
        {
            return Some(number);
        }
        let mut text = Vec::new();
        crate::dynamic::to_json(&value, &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let next = 0x4000_0000 + self.ids.len() as u32;
        let label = if let Dyn::Text(label) = &value { Some(label.to_string()) } else { None };
        context.push((name.into(), value));
        let number = *self.ids.entry(text).or_insert(next);
        if let Some(label) = label
            && number == next
        {
            let names = if name == "pid" { &mut self.processes } else { &mut self.threads };
            names.insert(number, label);
        }
        Some(number)
    }

    fn metadata(&mut self, name: Cow<'_, str>, pid: u32, tid: u32, args: Option<Dyn<'_>>) {
        let args = args.unwrap_or(Dyn::Dict(Vec::new()));
        let named = match &args {
            Dyn::Dict(members) => members.iter().find(|(key, _)| key == "name").map(|(_, v)| v),
            _ => None,
        };
        match (name.as_ref(), named) {
            ("process_name", Some(Dyn::Text(text))) => {
                self.processes.insert(pid, text.to_string());
            }
            ("thread_name", Some(Dyn::Text(text))) => {
                self.threads.insert(tid, text.to_string());
            }
            _ if self.notes.len() < MAX_NOTES => {
                let mut text = Vec::new();
                crate::dynamic::to_json(&args, &mut text);
                text.truncate(MAX_NOTE_BYTES);
                let text = String::from_utf8_lossy(&text).into_owned();
                self.notes.push((format!("{}{name}.{pid}.{tid}", super::METADATA), text));
            }
            _ => (),
        }
    }

    /// Adds what is not events.
    fn describe(self, document: &Document<'_>, builder: &mut Builder) {
        for (key, text) in &document.members {
            if key == super::ORIGIN {
                continue;
            }
            if text.len() > MAX_NOTE_BYTES {
                let size = text.len();
                builder.remark(format!("{key}: {size} bytes of this part are left out: too long"));
            } else if is_json(text) {
                let value = String::from_utf8_lossy(text).into_owned();
                let entry = (format!("{}{key}", super::OTHER), EnvValue::Text(value));
                builder.describe().environment.push(entry);
            }
        }
        let notes = self.notes.into_iter().map(|(key, text)| (key, EnvValue::Text(text)));
        builder.describe().environment.extend(notes);
        builder.names().processes = self.processes;
        builder.names().threads = self.threads;
        self.damage.into_iter().for_each(|damage| builder.damage(damage));
        let counts = [
            (self.more_damage, "further damaged places"),
            (self.finer, "times are finer than a nanosecond: rounded down"),
            (self.timeless, "events tell no time: they stand at 0"),
        ];
        for (count, what) in counts {
            if count > 0 {
                builder.remark(format!("{count} {what}"));
            }
        }
    }
}

/// What a phase means.
fn attributes(class: &ClassText<'_>) -> Vec<Attribute> {
    let phase = class.tag as u8 as char;
    let mut attributes =
        vec![Attribute { name: CHROME_PHASE.to_owned(), value: phase.to_string() }];
    let mut roles = phases::roles(phase, class, &["id", "id2", "scope"]);
    if let Some(bind) = phases::context(class, "bind_id") {
        let keyed = || Keyed { name: class.name.to_owned(), keys: vec![bind.clone()] };
        if phases::context(class, "flow_in").is_some() {
            roles.push(Role::Receive(keyed()));
        }
        if phases::context(class, "flow_out").is_some() {
            roles.push(Role::Send(keyed()));
        }
    }
    attributes.extend(phases::attributes(&roles));
    attributes
}
