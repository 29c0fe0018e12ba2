// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Meaning of events by name, for traces without a schema: events of the Linux kernel as recorded by
//! LTTng, ftrace and perf, and of LTTng's user-space helpers.
//!
//! Names and fields are those of the kernel's `include/trace/events`, of lttng-modules'
//! `instrumentation/events` and of lttng-ust's `liblttng-ust-pthread-wrapper` and
//! `liblttng-ust-cyg-profile`.

use lateralis_analysis::Side;
use lateralis_model::role::{KEY_CPU, Keyed, Role};
use lateralis_model::{EnvValue, StreamClass};

use super::Leaving;

/// Stage of a wakeup that an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeStage {
    /// `sched_waking`: in the context of the waker.
    Waking,
    /// `sched_wakeup`: the thread has been put on a run queue. If it is that of another CPU, this may
    /// happen there, in an interrupt that the waker has sent.
    Wakeup,
    /// `sched_wakeup_new`: a new thread; it has no `sched_waking`.
    New,
}

/// Source of code that interrupts threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptKind {
    /// A device.
    Device,
    /// Work that interrupts defer.
    Soft,
    /// A timer of this CPU.
    Timer,
    /// Another CPU, perhaps on behalf of a thread there.
    Remote,
    /// Any source: the producer has one pair of events for all of them.
    Any,
}

/// Meaning of an event by convention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Convention {
    /// A role that a schema could declare.
    Role(Role),
    /// A CPU switches from one thread to another.
    Switch,
    /// A CPU switches to a thread; the event before names the thread that it left.
    SwitchTo {
        /// Field with the thread id; empty: the thread of the event.
        tid: &'static str,
        /// Field with its name.
        name: &'static str,
    },
    /// State that the running thread, or the given one, will enter when it leaves its CPU.
    Leaves {
        /// Field with the thread id.
        tid: &'static str,
        /// The state.
        into: Leaving,
    },
    /// A system call begins, as a span of this name; optional field with its number.
    CallBegins(String, &'static str),
    /// The current system call of the thread ends; optional field with its number.
    CallEnds(&'static str),
    /// A thread is made runnable.
    Wake(WakeStage),
    /// A soft interrupt is raised or entered. Raised again before it is entered, it is entered once.
    SoftInterrupt(Side),
    /// Code that interrupts the current thread of a CPU begins or ends.
    Interrupt(InterruptKind, Side),
    /// Describes a thread: its id, process and name.
    Thread {
        /// Field with the thread id.
        tid: &'static str,
        /// Field with the process id, if the event has one.
        pid: &'static str,
        /// Field with its name.
        name: &'static str,
        /// Field with the flags of `clone`, which determine whether the thread belongs to the process of
        /// its creator.
        flags: &'static str,
    },
}

/// `CLONE_THREAD` [include/uapi/linux/sched.h].
pub const CLONE_THREAD: u64 = 0x0001_0000;

/// Clauses by the last component of the event name.
const CLAUSES: [(&str, &str); 31] = [
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

/// Prefixes of event names that are followed by the name of a system call.
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

const WAKES: [(&str, WakeStage); 3] = [
    ("sched_waking", WakeStage::Waking),
    ("sched_wakeup", WakeStage::Wakeup),
    ("sched_wakeup_new", WakeStage::New),
];

/// Names of interrupts, without the final `_entry` or `_exit`. The vectors of x86 are those of
/// `arch/x86/include/asm/trace/irq_vectors.h`; LTTng writes `x86_irq_vectors_` before them.
const INTERRUPTS: [(&str, InterruptKind); 16] = [
    ("irq_handler", InterruptKind::Device),
    ("thermal_apic", InterruptKind::Device),
    ("error_apic", InterruptKind::Device),
    ("spurious_apic", InterruptKind::Device),
    ("deferred_error_apic", InterruptKind::Device),
    ("threshold_apic", InterruptKind::Device),
    ("softirq", InterruptKind::Soft),
    ("irq_softirq", InterruptKind::Soft),
    ("hrtimer_expire", InterruptKind::Timer),
    ("timer_hrtimer_expire", InterruptKind::Timer),
    ("local_timer", InterruptKind::Timer),
    ("irq_work", InterruptKind::Remote),
    ("reschedule", InterruptKind::Remote),
    ("call_function", InterruptKind::Remote),
    ("call_function_single", InterruptKind::Remote),
    ("x86_platform_ipi", InterruptKind::Remote),
];

fn interrupt(name: &str) -> Option<Convention> {
    let (name, side) = match name.strip_suffix("_entry") {
        Some(name) => (name, Side::Begin),
        None => (name.strip_suffix("_exit")?, Side::End),
    };
    let name = name.strip_prefix("x86_irq_vectors_").unwrap_or(name);
    let (_, kind) = INTERRUPTS.iter().find(|(known, _)| *known == name)?;
    Some(Convention::Interrupt(*kind, side))
}

/// Events that describe threads.
static THREADS: [(&str, Convention); 5] = [
    ("sched_process_fork", thread("child_tid", "child_pid", "child_comm")),
    ("lttng_statedump_process_state", thread("tid", "pid", "name")),
    (
        "task_newtask",
        Convention::Thread { tid: "pid", pid: "", name: "comm", flags: "clone_flags" },
    ),
    ("THREAD_NAME", thread("tid", "pid", "name")),
    ("task_rename", thread("pid", "", "newcomm")),
];

const fn thread(tid: &'static str, pid: &'static str, name: &'static str) -> Convention {
    Convention::Thread { tid, pid, name, flags: "" }
}

/// Additional conventions of the events of a stream, beside those of the kernel's tracepoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dialect {
    /// LTTng before 2.6: `sys_open` begins a call, `exit_syscall` ends the current call, whichever it is.
    has_old_calls: bool,
    /// Zephyr's `subsys/tracing/ctf`: threads by `thread_id`, system calls as `NAME_enter` and
    /// `NAME_exit`.
    pub is_zephyr: bool,
}

impl Dialect {
    /// Detects the dialect of a stream.
    pub fn of(stream: &StreamClass) -> Self {
        let has = |name: &str| stream.event_classes.iter().any(|class| class.name == name);
        let is_zephyr = has("thread_switched_in") && has("thread_switched_out") && has("isr_enter");
        Self { has_old_calls: has("exit_syscall"), is_zephyr }
    }

    /// Returns the meaning of an event of this name.
    pub fn conventions(self, name: &str) -> Vec<Convention> {
        if self.is_zephyr {
            return zephyr(name);
        }
        if self.has_old_calls {
            if name == "exit_syscall" {
                return vec![Convention::CallEnds("")];
            }
            let name = name.strip_prefix("compat_").unwrap_or(name);
            if let Some(call) = name.strip_prefix("sys_") {
                let begins = |name| Convention::CallBegins(name, "");
                return call_name(call).map(begins).into_iter().collect();
            }
        }
        of(name)
    }
}

/// Events of Zephyr that refer to a thread.
static ZEPHYR: [(&str, Convention); 13] = [
    ("thread_switched_in", Convention::SwitchTo { tid: "thread_id", name: "name" }),
    ("thread_pending", leaves(Leaving::Waiting)),
    ("thread_sched_pend", leaves(Leaving::Waiting)),
    ("thread_sleep_enter", leaves(Leaving::Waiting)),
    ("thread_suspend", leaves(Leaving::Other)),
    ("thread_sched_suspend", leaves(Leaving::Other)),
    ("thread_abort", leaves(Leaving::Ended)),
    ("thread_sched_abort", leaves(Leaving::Ended)),
    ("thread_ready", Convention::Wake(WakeStage::Waking)),
    ("thread_sched_ready", Convention::Wake(WakeStage::Waking)),
    ("thread_create", thread("thread_id", "", "name")),
    ("thread_name_set", thread("thread_id", "", "name")),
    ("thread_info", thread("thread_id", "", "name")),
];

const fn leaves(into: Leaving) -> Convention {
    Convention::Leaves { tid: "thread_id", into }
}

fn zephyr(name: &str) -> Vec<Convention> {
    if let Some((_, convention)) = ZEPHYR.iter().find(|(event, _)| *event == name) {
        return vec![convention.clone()];
    }
    let (name, side) = match (name.strip_suffix("_enter"), name.strip_suffix("_exit")) {
        (Some(name), _) => (name, Side::Begin),
        (_, Some(name)) => (name, Side::End),
        // An interrupt that ends with a switch.
        _ if name == "isr_exit_to_scheduler" => ("isr", Side::End),
        _ => return Vec::new(),
    };
    let role = |keyed| if side == Side::Begin { Role::Begin(keyed) } else { Role::End(keyed) };
    let keyed = |name: &str, keys: &[&str]| {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        Keyed { name: name.to_owned(), keys, ..Keyed::default() }
    };
    if name == "isr" {
        let span = Convention::Role(role(keyed("irq", &[KEY_CPU])));
        return vec![Convention::Interrupt(InterruptKind::Any, side), span];
    }
    // The id of the object is the key, if the event has one.
    vec![Convention::Role(role(keyed(name, &["id"]))), Convention::Role(role(keyed(name, &[])))]
}

/// Returns the meaning of an event by convention; most names have none.
pub fn of(name: &str) -> Vec<Convention> {
    // `irq:irq_handler_entry` of perf, `irq_handler_entry` of LTTng.
    let last = name.rsplit(':').next().unwrap_or(name);
    let mut found = Vec::new();
    match last {
        "sched_switch" => found.push(Convention::Switch),
        // ftrace's events of system calls by number.
        "sys_enter" => found.push(Convention::CallBegins("syscall".to_owned(), "id")),
        "sys_exit" => found.push(Convention::CallEnds("id")),
        "softirq_raise" | "irq_softirq_raise" => found.push(Convention::SoftInterrupt(Side::Begin)),
        "softirq_entry" | "irq_softirq_entry" => found.push(Convention::SoftInterrupt(Side::End)),
        // Barrelfish: the dispatcher found by the reader of its dumps.
        "CSWITCH" => found.push(Convention::SwitchTo { tid: "", name: "application" }),
        _ => {}
    }
    let wakes = WAKES.iter().filter(|(event, _)| *event == last);
    found.extend(wakes.map(|(_, stage)| Convention::Wake(*stage)));
    found.extend(interrupt(last));
    let threads = THREADS.iter().filter(|(event, _)| *event == last);
    found.extend(threads.map(|(_, convention)| convention.clone()));
    let clauses = CLAUSES.iter().filter(|(event, _)| *event == last);
    found.extend(clauses.filter_map(|(_, clause)| Role::parse(clause)).map(Convention::Role));
    if found.is_empty() {
        found.extend(syscall(last).map(Convention::Role));
    }
    found
}

/// The kernel that recorded the events of a stream, as far as the trace describes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Whether switches contain the internal thread state of the kernel (before 4.14); later kernels
    /// report a bit of `TASK_REPORT` [include/linux/sched.h].
    pub has_raw_states: bool,
    /// Numbers of system calls that have an entry, but no exit.
    pub calls_without_exit: &'static [u64],
}

impl Kernel {
    /// From the environment of a trace.
    pub fn of(environment: &[(String, EnvValue)]) -> Self {
        let text = |names: &[&str]| {
            let mut known = environment.iter().filter(|(key, _)| names.contains(&key.as_str()));
            known.find_map(|(_, value)| value.as_text())
        };
        let release = text(&["kernel_release", "release"]).and_then(|release| {
            let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        });
        // rt_sigreturn, exit, exit_group [arch/x86/entry/syscalls/syscall_64.tbl,
        // include/uapi/asm-generic/unistd.h].
        let calls_without_exit: &[u64] = match text(&["architecture", "machine"]) {
            Some("x86_64") => &[15, 60, 231],
            Some("aarch64" | "riscv64" | "loongarch64") => &[139, 93, 94],
            _ => &[],
        };
        Self { has_raw_states: release.is_some_and(|of| of < (4, 14)), calls_without_exit }
    }
}

/// System calls that have an entry, but no exit, as the kernel traces them: a signal handler returns to
/// the interrupted code without a call number, and an exit never returns. As spans they would never end.
const CALLS_WITHOUT_EXIT: [&str; 4] = ["rt_sigreturn", "sigreturn", "exit", "exit_group"];

fn syscall(name: &str) -> Option<Role> {
    let (call, begins) = SYSCALLS.iter().find_map(|(prefix, begins)| {
        Some((name.strip_prefix(prefix).filter(|call| !call.is_empty())?, *begins))
    })?;
    let keyed = Keyed { name: call_name(call)?, ..Keyed::default() };
    Some(if begins { Role::Begin(keyed) } else { Role::End(keyed) })
}

/// Span name of a system call; `None` for those without an exit.
fn call_name(call: &str) -> Option<String> {
    (!CALLS_WITHOUT_EXIT.contains(&call)).then(|| format!("syscall {call}"))
}

#[cfg(test)]
mod tests {
    use lateralis_model::EventClass;

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
            [.., Convention::Role(role)] => role.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(clause("irq:irq_handler_entry"), "begin irq key irq $cpu");
        assert_eq!(clause("syscall_entry_openat"), "begin \"syscall openat\"");
        assert_eq!(clause("syscalls:sys_exit_read"), "end \"syscall read\"");
        assert_eq!(of("syscalls:sys_enter_rt_sigreturn"), []);
        assert_eq!(of("syscall_entry_exit_group"), []);
        assert_eq!(of("sched:sched_switch"), [Convention::Switch]);
        assert_eq!(of("lttng_ust_pthread:pthread_mutex_lock_acq").len(), 2);
        assert_eq!(of("sched:sched_waking"), [Convention::Wake(WakeStage::Waking)]);
        let timer = |side| [Convention::Interrupt(InterruptKind::Timer, side)];
        assert_eq!(of("irq_vectors:local_timer_entry"), timer(Side::Begin));
        assert_eq!(of("x86_irq_vectors_local_timer_exit"), timer(Side::End));
        assert_eq!(of("app:anything"), []);
        let dialect = |names: &[&str]| {
            let class =
                |name: &&str| EventClass { name: (*name).to_owned(), ..EventClass::default() };
            let event_classes = names.iter().map(class).collect();
            Dialect::of(&StreamClass { event_classes, ..StreamClass::default() })
        };
        let old = dialect(&["sys_open", "exit_syscall"]);
        assert_eq!(old.conventions("exit_syscall"), [Convention::CallEnds("")]);
        let opens = [Convention::CallBegins("syscall open".to_owned(), "")];
        assert_eq!(old.conventions("sys_open"), opens);
        assert_eq!(old.conventions("compat_sys_open"), opens);
        assert_eq!(dialect(&["sys_open"]).conventions("sys_open"), []);
        let zephyr = dialect(&["thread_switched_in", "thread_switched_out", "isr_enter"]);
        assert_eq!(zephyr.conventions("thread_pending"), [leaves(Leaving::Waiting)]);
        assert_eq!(zephyr.conventions("isr_exit_to_scheduler").len(), 2);
    }
}
