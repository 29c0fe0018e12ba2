// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Roles of kernel events.

use lateralis_model::{Attribute, role};

use super::Format;

/// Spans whose ends are events of these names. Without keys they belong to their thread. `running` has
/// the name of the thread in its key, because the idle threads of all CPUs have id 0.
const CLAUSES: [(&str, &str, &str); 9] = [
    ("raw_syscalls", "sys_enter", "begin syscall"),
    ("raw_syscalls", "sys_exit", "end syscall"),
    ("irq", "irq_handler_entry", "begin irq key irq"),
    ("irq", "irq_handler_exit", "end irq key irq"),
    ("workqueue", "workqueue_execute_start", "begin work key work"),
    ("workqueue", "workqueue_execute_end", "end work key work"),
    ("sched", "sched_switch", "end running key prev_comm prev_pid"),
    ("sched", "sched_switch", "begin running key next_comm next_pid"),
    ("power", "cpu_frequency", "counter state"),
];

/// The clauses of the event as attributes; only if the fields in them exist.
#[must_use]
pub fn roles(format: &Format) -> Vec<Attribute> {
    let mut clauses: Vec<String> = CLAUSES
        .iter()
        .filter(|(system, name, _)| *system == format.system && *name == format.name)
        .map(|(_, _, clause)| (*clause).to_owned())
        .collect();
    if format.system == "syscalls" {
        for (prefix, verb) in [("sys_enter_", "begin"), ("sys_exit_", "end")] {
            let call = format.name.strip_prefix(prefix).filter(|call| !call.is_empty());
            clauses.extend(call.map(|call| format!("{verb} {call}")));
        }
    }
    clauses.retain(|clause| known(format, clause));
    let attribute = |value| Attribute { name: role::ATTRIBUTE.to_owned(), value };
    clauses.into_iter().map(attribute).collect()
}

fn known(format: &Format, clause: &str) -> bool {
    let fields = match role::Role::parse(clause) {
        Some(role::Role::Begin(keyed) | role::Role::End(keyed)) => keyed.keys,
        Some(role::Role::Counter { field, keys, .. }) => [vec![field], keys].concat(),
        _ => return false,
    };
    fields.iter().all(|key| format.fields.iter().any(|field| field.name == *key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clauses(system: &str, name: &str, fields: &[&str]) -> Vec<String> {
        let declare = |f: &&str| format!("\tfield:int {f};\toffset:8;\tsize:4;\tsigned:1;\n");
        let fields: String = fields.iter().map(declare).collect();
        let text = format!("name: {name}\nID: 9\nformat:\n{fields}");
        let format = Format::parse(system, &text, 8).unwrap();
        roles(&format).into_iter().map(|attribute| attribute.value).collect()
    }

    #[test]
    fn clauses_need_their_fields() {
        let keys = ["prev_comm", "prev_pid", "next_comm", "next_pid"];
        assert_eq!(clauses("sched", "sched_switch", &keys).len(), 2);
        assert_eq!(clauses("sched", "sched_switch", &keys[..2]).len(), 1);
        assert_eq!(clauses("raw_syscalls", "sys_exit", &[]), ["end syscall"]);
        assert_eq!(clauses("syscalls", "sys_enter_openat", &[]), ["begin openat"]);
        assert_eq!(clauses("other", "sys_enter_openat", &[]), [""; 0]);
    }
}
