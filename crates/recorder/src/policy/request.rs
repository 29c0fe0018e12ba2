// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Policies in the form that programs read at their start [ring-abi §8]: one line each. So a program
//! applies them itself, and none of its events is missed. Policies on properties of a process that only
//! the recorder sees are applied when it has found the process.

use std::fmt::{self, Write};

use lateralis_ring::RingMode;
use lateralis_ring::abi::header;

use super::wanted::enabled;
use super::{Choice, Condition, How, Policies, Policy, Property};
use crate::options::rings_grow;

/// Maximum size of the patterns of a policy: the space in an area's header, without the NUL.
pub const PATTERN_BYTES_MAX: usize = header::ENABLE_BYTES as usize - 1;
/// Maximum length of a line that a tracer reads.
const LINE_BYTES_MAX: usize = 2000;
/// Maximum size of the text: Linux passes 128 KiB in a variable [execve(2)], name and NUL included.
const TEXT_BYTES_MAX: usize = 120 << 10;

/// Common settings of all lines.
#[derive(Debug, Clone, Copy)]
pub struct Common {
    /// The recorder's session.
    pub session: u64,
    /// Process id of the recorder.
    pub recorder_pid: u32,
    /// Size of a ring in bytes, unless a policy sets it.
    pub buffer_bytes: u64,
    /// Size of a packet in bytes, unless a policy sets it.
    pub packet_bytes: u64,
    /// Maximum size of all rings of a program in bytes.
    pub cap_bytes: u64,
    /// Ring mode, unless a policy sets it.
    pub mode: RingMode,
    /// A trigger enables events later.
    pub waits: bool,
    /// The programs belong to a command: the recorder also cleans up after those that it does not
    /// record.
    pub launched: bool,
}

/// The lines together are longer than the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTooLong {
    /// Their size in bytes.
    pub bytes: usize,
}

impl fmt::Display for RequestTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policies are too long: bytes={}, greatest={TEXT_BYTES_MAX}", self.bytes)
    }
}

/// One line for each policy, in order.
pub fn request(policies: &Policies, common: &Common) -> Result<String, RequestTooLong> {
    let line = |number| line(&policies.list[number..], common);
    let mut text: String = (0..policies.list.len()).map(line).collect();
    if common.launched {
        text += &(wait(common) + "\n");
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(RequestTooLong { bytes: text.len() });
    }
    Ok(text)
}

/// The line of the first of these policies.
fn line(list: &[Policy], common: &Common) -> String {
    let Some(policy) = list.first() else { return String::new() };
    let mut line = String::new();
    let mut is_whole = true;
    for condition in &policy.conditions {
        match pattern_of(condition) {
            Some(pattern) => {
                let _ = write!(line, "program={pattern};");
            }
            None => is_whole = false,
        }
    }
    let of_threads = (!policy.threads.is_empty()).then(|| of_threads(list));
    match of_threads.as_ref().unwrap_or(&policy.choice) {
        None if is_whole && !common.launched => line.push_str("leave"),
        Some(choice) if is_whole => line.push_str(&wish(choice, common)),
        _ => line.push_str(&wait(common)),
    }
    // A program that cannot read the line waits for the recorder.
    if line.len() > LINE_BYTES_MAX {
        line = wait(common);
    }
    line + "\n"
}

/// Events that a program enables if its first policy is for some threads only: those of
/// any policy that may apply to the other threads. The thread of an event is checked when it is read.
fn of_threads(list: &[Policy]) -> Option<Choice> {
    let own = &list.first()?.conditions;
    let is_last = |policy: &Policy| {
        let covers = policy.conditions.is_empty() || policy.conditions == *own;
        policy.threads.is_empty() && covers
    };
    let count = list.iter().position(is_last).map_or(list.len(), |at| at + 1);
    let mut choices = list[..count].iter().filter_map(|policy| policy.choice.as_ref());
    let enable = enabled(choices.clone());
    // The first policy that certainly applies determines the settings shared by its threads.
    let certain = list[..count].iter().find_map(|policy| {
        let is_certain = policy.conditions.is_empty() || policy.conditions == *own;
        policy.choice.as_ref().filter(|_| is_certain)
    });
    let choice = certain.or_else(|| choices.next())?;
    Some(Choice { enable, ..choice.clone() })
}

fn wait(common: &Common) -> String {
    format!("session={:x};recorder={};lock;wait", common.session, common.recorder_pid)
}

fn wish(choice: &Choice, common: &Common) -> String {
    let mode = match choice.mode.unwrap_or(common.mode) {
        RingMode::Discard => "discard",
        RingMode::Overwrite => "overwrite",
    };
    let enable = if common.waits { String::new() } else { choice.enable.to_string() };
    let buffer = choice.buffer_bytes.unwrap_or(common.buffer_bytes);
    let grow = if rings_grow(buffer) { "grow;" } else { "" };
    format!(
        "session={:x};recorder={};lock;{grow}buffer={};packet={};mode={mode};cap={};enable={enable}",
        common.session,
        common.recorder_pid,
        buffer,
        choice.packet_bytes.unwrap_or(common.packet_bytes),
        common.cap_bytes,
    )
}

/// The condition as a pattern of the program's name, if it is no more than that.
fn pattern_of(condition: &Condition) -> Option<String> {
    let value = &condition.value;
    // Characters that end an item or a line, or are special in a pattern.
    let special = |c: char| c == ';' || c.is_control();
    let wild = |c: char| c == '*' || c == '?';
    if condition.property != Property::Program || value.contains(special) {
        return None;
    }
    match condition.how {
        How::Pattern => Some(value.clone()),
        _ if value.contains(wild) => None,
        How::Exact => Some(value.clone()),
        How::Prefix => Some(format!("{value}*")),
        How::Suffix => Some(format!("*{value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const COMMON: Common = Common {
        session: 0xabc,
        recorder_pid: 7,
        buffer_bytes: 1 << 20,
        packet_bytes: 1 << 16,
        cap_bytes: 1 << 28,
        mode: RingMode::Discard,
        waits: false,
        launched: false,
    };

    fn lines(text: &str) -> Vec<String> {
        let text = request(&parse("p", text).unwrap(), &COMMON).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_the_name_decides_the_program_decides() {
        let text = "[[policy]]\nprogram_prefix = \"a\"\nprogram_suffix = \"/b\"\nmode = \
            \"overwrite\"\nenable = \"x:Y\"\n[[policy]]\nprogram = \"c\"\nrecord = false\n\
            [[policy]]\n";
        let common = "session=abc;recorder=7;lock;grow;buffer=1048576;packet=65536;mode";
        assert_eq!(
            lines(text),
            [
                format!("program=a*;program=*/b;{common}=overwrite;cap=268435456;enable=x:Y"),
                "program=c;leave".to_owned(),
                format!("{common}=discard;cap=268435456;enable=*"),
            ]
        );
    }

    #[test]
    fn what_only_the_recorder_sees_waits_for_it() {
        let text = "[[policy]]\nprogram = \"a\"\nlabel = \"x\"\n[[policy]]\ncgroup = \"/\"\n\
            record = false\n[[policy]]\nprogram = \"a*b\"\n";
        let wait = "session=abc;recorder=7;lock;wait";
        assert_eq!(lines(text), [format!("program=a;{wait}"), wait.to_owned(), wait.to_owned()]);
    }

    #[test]
    fn all_programs_of_a_command_are_looked_after() {
        let policies = parse("p", "[[policy]]\nprogram = \"c\"\nrecord = false\n").unwrap();
        let text = request(&policies, &Common { launched: true, ..COMMON }).unwrap();
        let wait = "session=abc;recorder=7;lock;wait";
        assert_eq!(text, format!("program=c;{wait}\n{wait}\n"));
    }

    #[test]
    fn a_program_enables_what_any_of_its_threads_may_be_wanted_for() {
        let text = "[[policy]]\nprogram = \"a\"\nthread = \"x\"\nenable = \"s\"\nbuffer = \"64K\"\n\
            [[policy]]\nprogram_prefix = \"b\"\nenable = \"t\"\n\
            [[policy]]\nprogram = \"a\"\nenable = \"u\"\n[[policy]]\nthread = \"y\"\nrecord = false\n";
        let said = lines(text);
        assert!(said[0].starts_with("program=a;") && said[0].contains("buffer=65536"), "{said:?}");
        assert!(said[0].ends_with("enable=s,t,u"), "{said:?}");
        assert!(said[2].ends_with("enable=u") && said[3] == "leave", "{said:?}");
    }

    #[test]
    fn nothing_breaks_out_of_its_line() {
        let text = "[[policy]]\nprogram = \"a;leave\"\n[[policy]]\nprogram = \"a\\nleave\"\n";
        assert!(lines(text).iter().all(|line| line.ends_with(";wait") && !line.contains("leave")));
        let long = format!("[[policy]]\nprogram = \"{}\"\n", "a".repeat(3000));
        assert_eq!(lines(&long), ["session=abc;recorder=7;lock;wait"]);
    }

    #[test]
    fn too_many_are_refused() {
        let one = format!("[[policy]]\nprogram = \"{}\"\n", "a".repeat(1800));
        let policies = parse("p", &one.repeat(100)).unwrap();
        assert!(request(&policies, &COMMON).is_err());
    }
}
