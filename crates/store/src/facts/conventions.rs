// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What events mean by their names alone, where nobody wrote a schema: those of the Linux
//! kernel as LTTng, ftrace and perf record them, and of LTTng's user-space helpers.
//!
//! Names and fields are those of the kernel's `include/trace/events`, of lttng-modules'
//! `instrumentation/events` and of lttng-ust's `liblttng-ust-pthread-wrapper` and
//! `liblttng-ust-cyg-profile`.

use lateralis_model::role::{Keyed, Role};

/// What a clause of a convention is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Convention {
    /// As a schema would say it.
    Role(Role),
    /// A processor goes from one thread to another.
    Switch,
    /// A thread is made ready to run.
    Wake,
    /// It tells of a thread: its number, its process, its name.
    Thread {
        /// Field with the thread's number.
        tid: &'static str,
        /// Field with the number of its process, if there is one.
        pid: &'static str,
        /// Field with its name.
        name: &'static str,
    },
}

/// Clauses by the last part of the name of the event.
const CLAUSES: [(&str, &str); 34] = [
    ("irq_handler_entry", "begin irq key irq $cpu"),
    ("irq_handler_exit", "end irq key irq $cpu"),
    ("softirq_entry", "begin softirq key vec $cpu"),
    ("softirq_exit", "end softirq key vec $cpu"),
    ("irq_softirq_entry", "begin softirq key vec $cpu"),
    ("irq_softirq_exit", "end softirq key vec $cpu"),
    ("timer_expire_entry", "begin timer key timer $cpu"),
    ("timer_expire_exit", "end timer key timer $cpu"),
    ("hrtimer_expire_entry", "begin hrtimer key hrtimer $cpu"),
    ("hrtimer_expire_exit", "end hrtimer key hrtimer $cpu"),
    ("timer_hrtimer_expire_entry", "begin hrtimer key hrtimer $cpu"),
    ("timer_hrtimer_expire_exit", "end hrtimer key hrtimer $cpu"),
    ("workqueue_execute_start", "begin work key work"),
    ("workqueue_execute_end", "end work key work"),
    ("block_rq_issue", "begin block key dev sector"),
    ("block_rq_complete", "end block key dev sector"),
    // ftrace's events of system calls by number.
    ("sys_enter", "begin syscall key id"),
    ("sys_exit", "end syscall key id"),
    // LTTng before 2.6: every call ends by the same event.
    ("exit_syscall", "end syscall"),
    ("page_fault_entry", "begin page_fault"),
    ("page_fault_exit", "end page_fault"),
    ("power_cpu_frequency", "counter state"),
    ("cpu_frequency", "counter state"),
    ("kvm_entry", "begin guest key $cpu"),
    ("kvm_exit", "end guest key $cpu"),
    ("kvm_x86_entry", "begin guest key $cpu"),
    ("kvm_x86_exit", "end guest key $cpu"),
    ("pthread_mutex_lock_req", "begin mutex_wait key mutex"),
    ("pthread_mutex_lock_acq", "end mutex_wait key mutex"),
    ("pthread_mutex_lock_acq", "begin mutex_held key mutex"),
    ("pthread_mutex_trylock", "begin mutex_held key mutex"),
    ("pthread_mutex_unlock", "end mutex_held key mutex"),
    ("func_entry", "begin function key addr"),
    ("func_exit", "end function key addr"),
];

/// Beginnings of names behind which the name of a system call stands.
const SYSCALLS: [(&str, bool); 8] = [
    ("syscall_entry_", true),
    ("compat_syscall_entry_", true),
    ("syscall_exit_", false),
    ("compat_syscall_exit_", false),
    ("sys_enter_", true),
    ("sys_exit_", false),
    ("compat_sys_enter_", true),
    ("compat_sys_exit_", false),
];

const SWITCHES: [&str; 1] = ["sched_switch"];
const WAKES: [&str; 2] = ["sched_wakeup", "sched_wakeup_new"];

/// Events that tell of threads.
static THREADS: [(&str, Convention); 5] = [
    ("sched_process_fork", thread("child_tid", "child_pid", "child_comm")),
    ("lttng_statedump_process_state", thread("tid", "pid", "name")),
    ("task_newtask", thread("pid", "", "comm")),
    ("THREAD_NAME", thread("tid", "pid", "name")),
    ("task_rename", thread("pid", "", "newcomm")),
];

const fn thread(tid: &'static str, pid: &'static str, name: &'static str) -> Convention {
    Convention::Thread { tid, pid, name }
}

/// What an event of this name means by convention; nothing for most.
pub fn of(name: &str) -> Vec<Convention> {
    // `irq:irq_handler_entry` of perf, `irq_handler_entry` of LTTng.
    let last = name.rsplit(':').next().unwrap_or(name);
    let mut found = Vec::new();
    if SWITCHES.contains(&last) {
        found.push(Convention::Switch);
    }
    if WAKES.contains(&last) {
        found.push(Convention::Wake);
    }
    let threads = THREADS.iter().filter(|(event, _)| *event == last);
    found.extend(threads.map(|(_, convention)| convention.clone()));
    let clauses = CLAUSES.iter().filter(|(event, _)| *event == last);
    found.extend(clauses.filter_map(|(_, clause)| Role::parse(clause)).map(Convention::Role));
    if found.is_empty() {
        found.extend(syscall(last).map(Convention::Role));
    }
    found
}

fn syscall(name: &str) -> Option<Role> {
    let named = |call: &str| Keyed { name: format!("syscall {call}"), ..Keyed::default() };
    for (prefix, begins) in SYSCALLS {
        if let Some(call) = name.strip_prefix(prefix).filter(|call| !call.is_empty()) {
            return Some(if begins { Role::Begin(named(call)) } else { Role::End(named(call)) });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clause_is_one() {
        for (event, clause) in CLAUSES {
            assert!(Role::parse(clause).is_some(), "{event}: {clause}");
            assert!(!of(event).is_empty(), "{event}");
        }
    }

    #[test]
    fn names_of_all_tracers_are_known() {
        let clause = |name: &str| match of(name).as_slice() {
            [Convention::Role(role)] => role.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(clause("irq:irq_handler_entry"), "begin irq key irq $cpu");
        assert_eq!(clause("syscall_entry_openat"), "begin \"syscall openat\"");
        assert_eq!(clause("syscalls:sys_exit_read"), "end \"syscall read\"");
        assert_eq!(of("sched:sched_switch"), [Convention::Switch]);
        assert_eq!(of("lttng_ust_pthread:pthread_mutex_lock_acq").len(), 2);
        assert_eq!(of("app:anything"), []);
    }
}
