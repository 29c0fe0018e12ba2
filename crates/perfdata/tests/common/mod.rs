// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared by the tests: running tools, and events as lines.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use lateralis_model::{Damage, Event, Field, Fields, Source, Value};
use lateralis_perfdata::Error;

/// A directory that is removed with the test.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let directory = format!("lateralis-perfdata-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(directory);
        std::fs::create_dir_all(&path).expect("a directory for temporary files can be made");
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The output of a tool; `None`, with the reason printed, if it cannot run here.
pub fn output(program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = match Command::new(program).args(arguments).output() {
        Ok(output) => output,
        Err(error) => {
            println!("SKIPPED: {program}: {error}");
            return None;
        }
    };
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        println!("SKIPPED: {program} {}: {}", arguments.join(" "), stderr.trim());
        return None;
    }
    Some(output.stdout)
}

pub fn text(program: &str, arguments: &[&str]) -> Option<String> {
    output(program, arguments).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Opens a file with these bytes.
pub fn open(name: &str, bytes: &[u8], limit: u64) -> Result<Box<dyn Source>, Error> {
    lateralis_perfdata::open(name, Arc::new(bytes.to_vec()), limit)
}

/// All damage, including that found while reading.
pub fn damage(trace: &dyn Source) -> Vec<Damage> {
    let mut damage = trace.damage().to_vec();
    damage.extend(trace.visit(&mut |_| {}));
    damage
}

pub fn count(trace: &dyn Source) -> usize {
    let mut count = 0;
    trace.visit(&mut |_| count += 1);
    count
}

/// Reads a file and asserts that nothing in it is damaged.
pub fn read(path: &Path) -> Box<dyn Source> {
    let bytes = std::fs::read(path).expect("the file is there");
    let trace = open(&path.to_string_lossy(), &bytes, 4 << 30).expect("the file can be read");
    assert_eq!(damage(&*trace), []);
    trace
}

/// A real file outside of the repository.
pub fn shared(path: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    let bytes = std::fs::read(&path);
    if bytes.is_err() {
        println!("SKIPPED: {} is not there", path.display());
    }
    bytes.ok()
}

pub fn show(field: Field<'_>) -> String {
    match field.value() {
        Value::Text(text) => text.to_str().into_owned(),
        Value::Signed(value) => value.to_string(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Array(all) => format!("[{}]", all.map(show).collect::<Vec<_>>().join(" ")),
        Value::Struct(fields) => format!("{{{}}}", show_all(fields)),
        _ => field.as_u64().map_or_else(|| "?".to_owned(), |value| value.to_string()),
    }
}

pub fn show_all(fields: Fields<'_>) -> String {
    let fields =
        fields.into_iter().map(|(member, field)| format!("{}={}", member.name, show(field)));
    fields.collect::<Vec<_>>().join(" ")
}

/// A field of an event in any scope, as text.
pub fn get(event: &Event<'_>, name: &str) -> Option<String> {
    [event.payload(), event.context(), event.common_context()]
        .into_iter()
        .flatten()
        .find_map(|fields| fields.get(name))
        .map(show)
}

pub fn number(event: &Event<'_>, name: &str) -> i64 {
    let all = [event.payload(), event.context(), event.common_context()];
    let field = all.into_iter().flatten().find_map(|fields| fields.get(name));
    field.and_then(|field| field.as_u64()).unwrap_or_else(|| panic!("no number {name}")) as i64
}

/// The text that the kernel's print format gives for some events; `None` for events whose format is not
/// reimplemented here.
pub fn printed(event: &Event<'_>) -> Option<String> {
    let text = |name| get(event, name).unwrap();
    let number = |name| number(event, name);
    Some(match event.class.name.as_str() {
        "sched:sched_switch" => {
            let state = number("prev_state");
            let letters = [
                (1, "S"),
                (2, "D"),
                (4, "T"),
                (8, "t"),
                (16, "X"),
                (32, "Z"),
                (64, "P"),
                (128, "I"),
            ];
            let set: Vec<_> =
                letters.iter().filter(|(bit, _)| state & bit != 0).map(|(_, name)| *name).collect();
            let state = match (set.is_empty(), state & 0x100 != 0) {
                (true, false) => "R".to_owned(),
                (true, true) => "R+".to_owned(),
                (false, plus) => set.join("|") + if plus { "+" } else { "" },
            };
            format!(
                "prev_comm={} prev_pid={} prev_prio={} prev_state={state} ==> next_comm={} \
                 next_pid={} next_prio={}",
                text("prev_comm"),
                number("prev_pid"),
                number("prev_prio"),
                text("next_comm"),
                number("next_pid"),
                number("next_prio")
            )
        }
        "sched:sched_waking" | "sched:sched_wakeup" | "sched:sched_wakeup_new" => format!(
            "comm={} pid={} prio={} target_cpu={:03}",
            text("comm"),
            number("pid"),
            number("prio"),
            number("target_cpu")
        ),
        "sched:sched_stat_runtime" => format!(
            "comm={} pid={} runtime={} [ns]",
            text("comm"),
            number("pid"),
            number("runtime")
        ),
        "raw_syscalls:sys_exit" => format!("NR {} = {}", number("id"), number("ret")),
        "raw_syscalls:sys_enter" => {
            let arguments = text("args");
            let arguments = arguments.trim_matches(['[', ']']).split(' ');
            let arguments: Vec<_> =
                arguments.map(|word| format!("{:x}", word.parse::<u64>().unwrap())).collect();
            format!("NR {} ({})", number("id"), arguments.join(", "))
        }
        _ => return None,
    })
}
