// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The meaning of kernel events, computed one event at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::printed::{Event, number};
use crate::wakeups::of_one_time;

/// Count, and total nanoseconds.
pub type Times = (u64, u64);

fn add(times: &mut Times, nanos: u64) {
    times.0 += 1;
    times.1 += nanos;
}

pub fn has(events: &[Event], names: &[&str]) -> bool {
    events.iter().any(|event| names.contains(&event.name.as_str()))
}

/// Returns the previous and the next thread of a switch.
pub fn switch(event: &Event) -> Option<(i64, i64)> {
    (event.name == "sched_switch").then_some(())?;
    Some((event.either(&["prev_tid", "prev_pid"])?, event.either(&["next_tid", "next_pid"])?))
}

/// Returns the thread of each event: the printed one, else the running one.
pub fn threads(events: &[Event]) -> Vec<Option<i64>> {
    let mut running: BTreeMap<i64, i64> = BTreeMap::new();
    // Recordings of `lat record` name the thread of the following events whenever it changes, as known by the
    // kernel. Switches are not used for them, because the kernel omits some.
    let mut named: BTreeMap<i64, i64> = BTreeMap::new();
    let thread = |event: &Event| {
        let of = |threads: &BTreeMap<i64, i64>| threads.get(&event.cpu).copied();
        let tid = event.tid.or_else(|| of(&named)).or_else(|| of(&running));
        if let Some((_, to)) = switch(event) {
            running.insert(event.cpu, to);
        }
        if event.name == "WRITER" {
            named.extend(event.number("tid").map(|tid| (event.cpu, tid)));
        }
        tid
    };
    events.iter().map(thread).collect()
}

/// Returns threads with a missing switch, to which a CPU switched and never from them, or vice versa; and the
/// CPUs on which this happened. The threads include those with events on two CPUs in the same nanosecond.
pub fn torn(events: &[Event]) -> (BTreeSet<i64>, BTreeSet<i64>) {
    let tids = |event: &Event| match switch(event) {
        Some((from, to)) => vec![from, to],
        None => event.either(&["tid", "pid"]).into_iter().collect(),
    };
    let mut threads = of_one_time(events.iter().map(|event| (event.time, event.cpu, tids(event))));
    let (mut cpus, mut on) = (BTreeSet::new(), BTreeMap::new());
    for event in events {
        if let Some((from, to)) = switch(event)
            && let Some(before) = on.insert(event.cpu, to).filter(|before| *before != from)
        {
            threads.extend([before, from]);
            cpus.insert(event.cpu);
        }
    }
    (threads, cpus)
}

pub fn switches(events: &[Event]) -> BTreeMap<i64, u64> {
    let mut counts = BTreeMap::new();
    for event in events.iter().filter(|event| switch(event).is_some()) {
        *counts.entry(event.cpu).or_default() += 1;
    }
    counts
}

/// Counts how often each thread was scheduled on another CPU than before.
pub fn migrations(events: &[Event]) -> BTreeMap<i64, u64> {
    let (mut counts, mut on) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        let Some((from, to)) = switch(event) else { continue };
        for tid in [from, to].into_iter().filter(|tid| *tid != 0) {
            let moved = on.insert(tid, event.cpu).is_some_and(|before| before != event.cpu);
            *counts.entry(tid).or_default() += u64::from(moved);
        }
    }
    counts
}

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    Running,
    Runnable,
    Preempted,
    Sleeping,
    Blocked,
    Stopped,
}

/// Returns the next state of the previous thread of a switch, from its letter or number; `None` if the thread
/// has exited.
pub fn leaving(event: &Event, is_old: bool) -> Option<Doing> {
    let state = event.text_of(&["prev_state"])?;
    let letter = match number(state) {
        // TASK_INTERRUPTIBLE, _UNINTERRUPTIBLE, and the rest [include/linux/sched.h].
        Some(0) => 'R',
        Some(state) if state & 0x1f00 != 0 && state & 0xff == 0 => 'R',
        Some(state) if state & 1 != 0 => 'S',
        Some(state) if state & 2 != 0 => 'D',
        Some(state) if state & 0x30 != 0 => 'X',
        // Kernels before 4.14 have TASK_DEAD with the number that later ones use for TASK_PARKED, and no
        // state I.
        Some(state) if state & 0x40 != 0 && is_old => 'X',
        Some(state) if state & 0x80 != 0 => 'I',
        Some(_) => 'T',
        // `R+` marks a preempted thread.
        None => state.chars().next()?,
    };
    match letter {
        'R' => Some(Doing::Preempted),
        'S' => Some(Doing::Sleeping),
        // `I`: idle in the kernel, not counted as load.
        'D' | 'I' => Some(Doing::Blocked),
        'T' | 't' | 'P' => Some(Doing::Stopped),
        _ => None,
    }
}

/// Returns the states of every thread with both ends in the trace, and the threads that have exited.
pub fn states(events: &[Event], is_old: bool) -> (BTreeMap<(i64, Doing), Times>, BTreeSet<i64>) {
    let mut times: BTreeMap<(i64, Doing), Times> = BTreeMap::new();
    let mut now: BTreeMap<i64, (Doing, u64)> = BTreeMap::new();
    let mut ended = BTreeSet::new();
    // Wakeups in progress, with a flag that says whether the thread has gone to sleep since.
    let mut begun: BTreeMap<i64, bool> = BTreeMap::new();
    for event in events {
        let time = event.time;
        if let Some((from, to)) = switch(event) {
            if from != 0 {
                if let Some((Doing::Running, since)) = now.remove(&from) {
                    add(times.entry((from, Doing::Running)).or_default(), time - since);
                }
                match leaving(event, is_old) {
                    Some(doing) => {
                        now.insert(from, (doing, time));
                        if doing != Doing::Preempted {
                            begun.entry(from).and_modify(|has_left| *has_left = true);
                        }
                    }
                    None => {
                        ended.insert(from);
                    }
                }
            }
            if to != 0 {
                begun.remove(&to);
                if let Some((doing @ (Doing::Preempted | Doing::Runnable), since)) = now.remove(&to)
                {
                    add(times.entry((to, doing)).or_default(), time - since);
                }
                now.insert(to, (Doing::Running, time));
            }
            continue;
        }
        let Some(tid) = event.either(&["tid", "pid"]) else { continue };
        let wakes = match event.name.as_str() {
            "sched_waking" => begun.insert(tid, false) != Some(true),
            "sched_wakeup" => begun.remove(&tid).unwrap_or(true),
            "sched_wakeup_new" => {
                now.insert(tid, (Doing::Runnable, time));
                false
            }
            _ => false,
        };
        if !wakes {
            continue;
        }
        match now.get(&tid).copied() {
            Some((doing @ (Doing::Sleeping | Doing::Blocked | Doing::Stopped), since)) => {
                add(times.entry((tid, doing)).or_default(), time - since);
                now.insert(tid, (Doing::Runnable, time));
            }
            // Its earlier state is unknown; from now on it is runnable.
            None if tid != 0 => {
                now.insert(tid, (Doing::Runnable, time));
            }
            _ => {}
        }
    }
    (times, ended)
}

/// Pairs begins and ends by name: each end belongs to the last begin with its key.
pub fn spans(
    events: &[Event],
    edge: impl Fn(&Event, Option<i64>) -> Option<(bool, String, String)>,
) -> BTreeMap<String, Times> {
    pair(events, edge).0
}

/// Like [`spans`], and returns whether two with one key were open at the same time: then it is unknown which
/// one ends.
pub fn pair(
    events: &[Event],
    edge: impl Fn(&Event, Option<i64>) -> Option<(bool, String, String)>,
) -> (BTreeMap<String, Times>, bool) {
    let mut open: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    let mut found: BTreeMap<String, Times> = BTreeMap::new();
    let mut is_ambiguous = false;
    for (event, tid) in events.iter().zip(threads(events)) {
        let Some((begins, name, key)) = edge(event, tid) else { continue };
        let begun = open.entry((name.clone(), key)).or_default();
        if begins {
            begun.push(event.time);
            is_ambiguous |= begun.len() > 1;
        } else if let Some(begin) = begun.pop() {
            add(found.entry(name).or_default(), event.time - begin);
        }
    }
    (found, is_ambiguous)
}

/// Hardware and soft interrupts, paired by CPU.
pub fn interrupt(event: &Event, _: Option<i64>) -> Option<(bool, String, String)> {
    let name = event.name.trim_start_matches("irq_");
    let (kind, key, side) = match name.strip_prefix("handler_") {
        Some(side) => ("irq", "irq", side),
        None => ("softirq", "vec", name.strip_prefix("softirq_")?),
    };
    let begins = match side {
        "entry" => true,
        "exit" => false,
        _ => return None,
    };
    Some((begins, kind.to_owned(), format!("{} {}", event.cpu, event.number(key)?)))
}

/// Soft interrupts from raise to entry; several raises lead to one entry.
pub fn raised(events: &[Event]) -> BTreeMap<i64, Times> {
    let (mut pending, mut found) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        let Some(vector) = event.number("vec") else { continue };
        let key = (event.cpu, vector);
        match event.name.trim_start_matches("irq_") {
            "softirq_raise" => {
                pending.entry(key).or_insert(event.time);
            }
            "softirq_entry" => {
                if let Some(since) = pending.remove(&key) {
                    add(found.entry(vector).or_default(), event.time - since);
                }
            }
            _ => {}
        }
    }
    found
}

/// Calls that do not return: a signal handler returns into the interrupted code, and an exit ends the thread.
const WITHOUT_EXIT: [&str; 4] = ["rt_sigreturn", "sigreturn", "exit", "exit_group"];

/// System calls by name, paired by thread.
pub fn named_call(event: &Event, tid: Option<i64>) -> Option<(bool, String, String)> {
    let name = event.name.trim_start_matches("compat_");
    let begins = ["syscall_entry_", "sys_enter_"].iter().find_map(|of| name.strip_prefix(of));
    let ends = ["syscall_exit_", "sys_exit_"].iter().find_map(|of| name.strip_prefix(of));
    let (begins, call) = begins.map(|call| (true, call)).or(ends.map(|call| (false, call)))?;
    if WITHOUT_EXIT.contains(&call) {
        return None;
    }
    Some((begins, format!("syscall {call}"), tid?.to_string()))
}

/// System calls by number: an end belongs to the call in progress on its thread if it has the same number or
/// -1.
pub fn numbered_calls(events: &[Event]) -> BTreeMap<String, Times> {
    // rt_sigreturn, exit, exit_group of x86-64.
    const WITHOUT_EXIT: [i64; 3] = [15, 60, 231];
    let (mut open, mut found) = (BTreeMap::new(), BTreeMap::<String, Times>::new());
    for (event, tid) in events.iter().zip(threads(events)) {
        let (Some(tid), Some(id)) = (tid, event.number("id")) else { continue };
        if event.name == "sys_enter" && !WITHOUT_EXIT.contains(&id) {
            open.insert(tid, (id, event.time));
        } else if event.name == "sys_exit"
            && let Some((_, since)) = open.get(&tid).copied().filter(|of| of.0 == id || id == -1)
        {
            open.remove(&tid);
            add(found.entry("syscall".to_owned()).or_default(), event.time - since);
        }
    }
    found
}

/// System calls as recorded by LTTng before 2.6, with a single event class for all ends: by name.
pub fn old_calls(events: &[Event]) -> BTreeMap<String, Times> {
    let (mut open, mut found) = (BTreeMap::new(), BTreeMap::<String, Times>::new());
    for (event, tid) in events.iter().zip(threads(events)) {
        let Some(tid) = tid else { continue };
        if let Some(call) = event.name.trim_start_matches("compat_").strip_prefix("sys_") {
            open.insert(tid, (call.to_owned(), event.time));
        } else if event.name == "exit_syscall"
            && let Some((call, since)) = open.remove(&tid)
        {
            add(found.entry(format!("syscall {call}")).or_default(), event.time - since);
        }
    }
    found
}

/// Return values of the calls of one name.
#[derive(Debug, Default)]
pub struct Values {
    pub returned: u64,
    /// Counts by negative error number.
    pub errors: BTreeMap<i64, u64>,
    /// Sum of the values that are not errors.
    pub bytes: u64,
}

/// Returns the return values of system calls by name, or by `#N` for calls with a number; `?` for ends
/// without a name whose begin is missing.
pub fn values(events: &[Event]) -> BTreeMap<String, Values> {
    let is_old = has(events, &["exit_syscall"]);
    let (mut open, mut found) = (BTreeMap::new(), BTreeMap::<String, Values>::new());
    for (event, tid) in events.iter().zip(threads(events)) {
        let name = event.name.trim_start_matches("compat_");
        if let Some(call) = name.strip_prefix("sys_").filter(|_| is_old) {
            open.extend(tid.map(|tid| (tid, call.to_owned())));
            continue;
        }
        let ends = ["syscall_exit_", "sys_exit_"].iter().find_map(|of| name.strip_prefix(of));
        let call = match (name, ends) {
            ("exit_syscall", _) => {
                tid.and_then(|tid| open.remove(&tid)).unwrap_or_else(|| "?".to_owned())
            }
            // -1: return from a signal handler.
            ("sys_exit", _) => match event.number("id") {
                Some(id @ 0..) => format!("#{id}"),
                _ => continue,
            },
            (_, Some(call)) => call.to_owned(),
            _ => continue,
        };
        let Some(value) = event.number("ret") else { continue };
        let of = found.entry(call).or_default();
        of.returned += 1;
        match value {
            -4095..=-1 => *of.errors.entry(value).or_default() += 1,
            _ => of.bytes = of.bytes.wrapping_add(value.cast_unsigned()),
        }
    }
    found
}

/// Requests to a device, identified by sector, from issue to completion.
pub fn block(event: &Event, _: Option<i64>) -> Option<(bool, String, String)> {
    let begins = match event.name.as_str() {
        "block_rq_issue" => true,
        "block_rq_complete" => false,
        _ => return None,
    };
    let key = format!("{} {}", event.fields.get("dev")?, event.fields.get("sector")?);
    Some((begins, "block".to_owned(), key))
}

/// Totals of the requests to a device.
#[derive(Debug, Default)]
pub struct Request {
    pub bytes: u64,
    /// Times in queues, and at the device.
    pub queue: Times,
    pub service: Times,
}

/// Returns completed requests by device and whether they read; and whether all can be distinguished: no two
/// at the same place, and none merged, requeued or completed in parts.
pub fn requests(events: &[Event]) -> (BTreeMap<(String, bool), Request>, bool) {
    let (mut waiting, mut given) = (BTreeMap::new(), BTreeMap::new());
    let (mut found, mut is_certain) = (BTreeMap::<(String, bool), Request>::new(), true);
    for event in events {
        let Some(step) = event.name.strip_prefix("block_") else { continue };
        is_certain &= !["rq_requeue", "rq_merge", "bio_frontmerge"].contains(&step);
        let (Some(dev), Some(sector)) = (event.text_of(&["dev"]), event.text_of(&["sector"]))
        else {
            continue;
        };
        let device = match number(dev) {
            Some(dev) => format!("{}:{}", dev >> 20, dev & 0xf_ffff),
            None => dev.replace(',', ":"),
        };
        let place = (device.clone(), sector.to_owned());
        let sectors = event.number("nr_sector").unwrap_or(0).cast_unsigned();
        match step {
            "rq_insert" => is_certain &= waiting.insert(place, event.time).is_none(),
            "rq_issue" => {
                let queued = waiting.remove(&place).map(|since| event.time - since);
                is_certain &= given.insert(place, (event.time, queued, sectors)).is_none();
            }
            "rq_complete" => {
                let letters = event.text_of(&["rwbs"]).unwrap_or_default();
                let is_read = match number(letters) {
                    Some(bits) => bits & 4 != 0,
                    None => letters.starts_with('R'),
                };
                let of = found.entry((device, is_read)).or_default();
                of.bytes += sectors * 512;
                if let Some((since, queued, asked)) = given.remove(&place) {
                    is_certain &= asked == sectors;
                    add(&mut of.service, event.time - since);
                    queued.into_iter().for_each(|nanos| add(&mut of.queue, nanos));
                }
            }
            _ => {}
        }
    }
    found.retain(|_, of| of.bytes > 0 || of.service.0 > 0);
    (found, is_certain)
}

/// Page faults of each thread: in user mode, in kernel mode.
pub fn faults(events: &[Event]) -> BTreeMap<i64, (u64, u64)> {
    let mut found = BTreeMap::<i64, (u64, u64)>::new();
    for (event, tid) in events.iter().zip(threads(events)) {
        let of = match event.name.trim_start_matches("x86_exceptions_") {
            "page_fault_user" => (1, 0),
            "page_fault_kernel" => (0, 1),
            _ => continue,
        };
        let sum = found.entry(tid.unwrap_or(-1)).or_default();
        *sum = (sum.0 + of.0, sum.1 + of.1);
    }
    found
}

/// Packets and bytes of each network device, by event.
pub fn packets(events: &[Event]) -> BTreeMap<(String, &'static str), Times> {
    let mut found = BTreeMap::new();
    for event in events {
        let step = match event.name.as_str() {
            "net_dev_queue" => "queued",
            "net_dev_xmit" if event.number("rc") == Some(0) => "sent",
            "net_dev_xmit" => "refused",
            "netif_rx" | "net_if_rx" => "backlogged",
            "netif_receive_skb" | "net_if_receive_skb" => "received",
            _ => continue,
        };
        let (Some(device), Some(bytes)) = (event.text_of(&["name", "dev"]), event.number("len"))
        else {
            continue;
        };
        add(found.entry((device.to_owned(), step)).or_default(), bytes.cast_unsigned());
    }
    found
}

/// Returns the last name of each thread.
pub fn names(events: &[Event]) -> BTreeMap<i64, String> {
    let mut names = BTreeMap::new();
    let mut set = |event: &Event, tid: &[&str], name: &[&str]| {
        if let (Some(tid), Some(name)) = (event.either(tid), event.text_of(name))
            && tid != 0
            && !name.is_empty()
        {
            names.insert(tid, name.to_owned());
        }
    };
    for event in events {
        match event.name.as_str() {
            "sched_switch" => {
                set(event, &["prev_tid", "prev_pid"], &["prev_comm"]);
                set(event, &["next_tid", "next_pid"], &["next_comm"]);
            }
            "sched_process_fork" => set(event, &["child_tid", "child_pid"], &["child_comm"]),
            "task_newtask" => set(event, &["pid"], &["comm"]),
            "task_rename" => set(event, &["pid"], &["newcomm"]),
            "lttng_statedump_process_state" => set(event, &["tid"], &["name"]),
            _ => {}
        }
    }
    names
}

/// Returns the process of each new thread: that of its parent, if it was created with `CLONE_THREAD`
/// [include/uapi/linux/sched.h].
pub fn children(events: &[Event]) -> BTreeMap<i64, i64> {
    let mut processes = BTreeMap::new();
    let mut made = BTreeMap::new();
    for (event, tid) in events.iter().zip(threads(events)) {
        let (child, process) = match event.name.as_str() {
            "sched_process_fork" => {
                let Some(tid) = event.number("child_tid") else { continue };
                (tid, event.number("child_pid"))
            }
            "task_newtask" => {
                let (Some(child), Some(flags)) = (event.number("pid"), event.number("clone_flags"))
                else {
                    continue;
                };
                let of_parent = tid.map(|tid| processes.get(&tid).copied().unwrap_or(tid));
                let is_thread = flags & 0x0001_0000 != 0;
                // The process of a parent is unknown if its creation is not in the trace.
                let is_known = tid.is_some_and(|tid| processes.contains_key(&tid));
                (child, if is_thread { of_parent.filter(|_| is_known) } else { Some(child) })
            }
            _ => continue,
        };
        if let Some(process) = process {
            processes.insert(child, process);
            made.insert(child, process);
        }
    }
    made
}
