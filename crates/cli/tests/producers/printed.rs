// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parsers for events as printed by other programs, each in its own format.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::foreign::TraceProcessor;

/// An event as printed by another program.
#[derive(Debug, Clone, Default)]
pub struct Event {
    /// Nanoseconds from the origin of the clock.
    pub time: u64,
    pub cpu: i64,
    /// The thread in which it occurred, if the program prints it.
    pub tid: Option<i64>,
    /// Whether the program reports that it occurred in an interrupt.
    pub is_interrupt: bool,
    /// Name without the subsystem.
    pub name: String,
    /// Name with the subsystem, if the program prints it.
    pub full: String,
    /// Fields of its contexts, if the program prints them.
    pub context: BTreeMap<String, String>,
    /// Its payload fields, without those of the contexts.
    pub fields: BTreeMap<String, String>,
}

impl Event {
    /// Returns a field as a number, decimal or hexadecimal.
    pub fn number(&self, name: &str) -> Option<i64> {
        number(self.fields.get(name)?)
    }

    /// Returns the first of these fields that the event has.
    pub fn either(&self, names: &[&str]) -> Option<i64> {
        names.iter().find_map(|name| self.number(name))
    }

    pub fn text_of(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.fields.get(*name).map(String::as_str))
    }
}

pub fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

/// `SECONDS.FRACTION` as nanoseconds.
pub fn nanos(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction)
}

/// Returns the output of a program; prints a message and returns `None` if it is missing or fails.
fn output(program: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.inspect_err(|_| println!("SKIPPED: no {program}")).ok()?;
    if !output.status.success() {
        println!("SKIPPED: {program}: {}", String::from_utf8_lossy(&output.stderr).trim());
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the events of a CTF trace from babeltrace2.
pub fn babeltrace(trace: &Path) -> Option<Vec<Event>> {
    let arguments = ["--clock-seconds", "--no-delta", trace.to_str()?];
    let text = output("babeltrace2", &arguments, Path::new("."))?;
    Some(text.lines().filter_map(babeltrace_line).collect())
}

/// `[SECONDS.FRACTION] HOST SUBSYSTEM:NAME: { cpu_id = 1 }, { CONTEXT }, { FIELDS }`
fn babeltrace_line(line: &str) -> Option<Event> {
    let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (head, groups) = rest.split_once(": {").map_or((rest.trim_end_matches(':'), ""), |of| of);
    let full = head.rsplit(' ').next()?;
    let name = full.rsplit(':').next()?.to_owned();
    // Contexts come first; an event without fields has `{ }`.
    let groups: Vec<BTreeMap<String, String>> =
        groups_of(groups).into_iter().map(members).collect();
    let context = |name: &str| groups.iter().find_map(|group| number(group.get(name)?));
    let is_interrupt =
        context("common_flags").is_some_and(|flags| flags & 0x58 != 0 && groups.len() > 1);
    let tid = groups
        .iter()
        .rev()
        .skip(1)
        .find_map(|group| ["vtid", "tid"].iter().find_map(|name| number(group.get(*name)?)));
    Some(Event {
        time: nanos(time)?,
        cpu: context("cpu_id").unwrap_or(-1),
        tid,
        is_interrupt,
        name,
        full: full.to_owned(),
        context: groups
            .iter()
            .rev()
            .skip(1)
            .flatten()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
        fields: groups.last().cloned().unwrap_or_default(),
    })
}

/// Returns the texts between the outermost braces.
fn groups_of(text: &str) -> Vec<&str> {
    let (mut groups, mut begin, mut depth, mut is_quoted, mut is_escaped) =
        (Vec::new(), 0, 1, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'{' => {
                depth += 1;
                if depth == 1 {
                    begin = at + 1;
                }
            }
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    groups.push(text[begin..at].trim());
                }
            }
            _ => {}
        }
    }
    groups
}

/// Parses `NAME = VALUE, …`; also quoted texts, and enumerations `( "LABEL" : container = NUMBER )`.
fn members(text: &str) -> BTreeMap<String, String> {
    let (mut fields, mut begin, mut depth, mut is_quoted, mut is_escaped) =
        (BTreeMap::new(), 0, 0, false, false);
    let mut add = |part: &str| {
        if let Some((name, value)) = part.split_once(" = ") {
            let value = match value.rsplit_once("container = ") {
                Some((_, number)) => number.trim_end_matches([' ', ')']),
                None => value.trim().trim_matches('"'),
            };
            fields.insert(name.trim().to_owned(), value.to_owned());
        }
    };
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth -= 1,
            b',' if depth == 0 => {
                add(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    add(&text[begin..]);
    fields
}

/// Returns the events of a perf.data from `perf script`.
pub fn perf(folder: &Path, file: &str) -> Option<Vec<Event>> {
    let arguments = ["script", "--ns", "-F", "comm,tid,cpu,time,event,trace", "-i", file];
    let text = output("perf", &arguments, folder)?;
    Some(text.lines().filter_map(perf_line).collect())
}

/// `COMM TID [CPU] SECONDS.FRACTION: SUBSYSTEM:NAME: …`; thread names may contain blanks.
fn perf_line(line: &str) -> Option<Event> {
    let bracket = line.find(" [")?;
    let (cpu, rest) = line[bracket + 2..].split_once("] ")?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (full, text) = rest.trim_start().split_once(": ").unwrap_or((rest.trim(), ""));
    let full = full.trim_end_matches(':');
    let name = full.rsplit(':').next()?.to_owned();
    let tid = line[..bracket].split_whitespace().next_back()?.parse().ok()?;
    let (fields, time, cpu) = (kernel_fields(&name, text), nanos(time)?, cpu.parse().ok()?);
    Some(Event { time, cpu, tid: Some(tid), name, fields, ..Event::default() })
}

/// Returns the events of a trace.dat from `trace-cmd report`.
pub fn trace_cmd(folder: &Path, file: &str) -> Option<Vec<Event>> {
    let text = output("trace-cmd", &["report", "-N", "-t", "-l", "-i", file], folder)?;
    Some(text.lines().filter_map(trace_cmd_line).collect())
}

/// `BUFFER: COMM-TID CPUFLAGS SECONDS.FRACTION: NAME: …`; the third flag marks an interrupt.
fn trace_cmd_line(line: &str) -> Option<Event> {
    // The time is the first number with nine digits after its point and a colon after them.
    let is_time = |word: &str| {
        word.split_once('.').is_some_and(|(_, end)| end.len() == 10 && end.ends_with(':'))
    };
    let mut words = line.split_whitespace();
    let mut before = Vec::new();
    let time = loop {
        match words.next()? {
            word if is_time(word) => break nanos(word.trim_end_matches(':'))?,
            word => before.push(word),
        }
    };
    let flags = before.pop()?;
    let digits = flags.bytes().take_while(u8::is_ascii_digit).count();
    let tid = before.pop()?.rsplit('-').next()?.parse().ok()?;
    let name = words.next()?.trim_end_matches(':').to_owned();
    let text = words.collect::<Vec<_>>().join(" ");
    Some(Event {
        time,
        cpu: flags[..digits].parse().ok()?,
        tid: Some(tid),
        is_interrupt: flags.chars().nth(digits + 2).is_some_and(|flag| "hHszZ".contains(flag)),
        fields: kernel_fields(&name, &text),
        name,
        ..Event::default()
    })
}

/// Parses fields in the kernel's print formats: mostly `NAME=VALUE`.
fn kernel_fields(name: &str, text: &str) -> BTreeMap<String, String> {
    let mut fields: BTreeMap<String, String> = text
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.trim_end_matches(',').to_owned()))
        .collect();
    let mut set = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value.to_owned());
        }
    };
    // Thread names may contain blanks: they extend to the next field.
    for (key, next) in [
        ("prev_comm=", " prev_pid="),
        ("next_comm=", " next_pid="),
        ("child_comm=", " child_pid="),
        ("newcomm=", " oom_score_adj="),
    ] {
        let rest = text.find(key).map(|at| &text[at + key.len()..]);
        set(&key[..key.len() - 1], rest.and_then(|rest| rest.split_once(next)).map(|of| of.0));
    }
    if ["task_newtask", "sched_process_fork"].contains(&name) {
        let end = if name == "task_newtask" { " clone_flags=" } else { " pid=" };
        let rest = text.find(" comm=").map(|at| &text[at + 6..]);
        set("comm", rest.and_then(|rest| rest.split_once(end)).map(|of| of.0));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match name {
        // `NR 16 (4d, 2400, …)`, `NR 16 = 0`
        "sys_enter" => set("id", words.get(1).copied()),
        "sys_exit" => {
            set("id", words.get(1).copied());
            set("ret", words.get(3).copied());
        }
        // `254,0 RA 4096 () 2164384 + 8 …`
        "block_rq_insert" | "block_rq_issue" | "block_rq_complete" => {
            set("dev", words.first().copied());
            set("rwbs", words.get(1).copied());
            let plus = words.iter().position(|word| *word == "+");
            set("sector", plus.and_then(|at| words.get(at - 1)).copied());
            set("nr_sector", plus.and_then(|at| words.get(at + 1)).copied());
        }
        _ => {}
    }
    fields
}

/// Returns the kernel events from Perfetto's trace processor.
pub fn perfetto(tool: &TraceProcessor, trace: &Path) -> Vec<Event> {
    let events = "select r.id, r.ts, r.cpu, t.tid, r.name from ftrace_event r \
                  left join thread t using (utid) order by r.ts, r.id";
    let fields =
        "select r.id, a.key, a.display_value from ftrace_event r join args a using (arg_set_id)";
    let answers = tool.ask(trace, &[events, fields]);
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut by_event: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for row in answers[1].as_array().expect("rows") {
        by_event.entry(text(&row[0])).or_default().insert(text(&row[1]), text(&row[2]));
    }
    let event = |row: &Value| Event {
        time: text(&row[1]).parse().expect("a time"),
        cpu: text(&row[2]).parse().expect("a processor"),
        tid: text(&row[3]).parse().ok(),
        name: text(&row[4]),
        fields: by_event.remove(&text(&row[0])).unwrap_or_default(),
        ..Event::default()
    };
    answers[0].as_array().expect("rows").iter().map(event).collect()
}
