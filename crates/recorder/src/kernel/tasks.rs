// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The process of each thread. A record of the kernel contains only the thread id;
//! the process is known from `/proc` for existing threads, and from `task:task_newtask` for
//! new ones.

use std::collections::HashMap;

use lateralis_perfdata::tracepoint::{Format, Kind};

/// Maximum number of threads; a machine cannot have more (PID_MAX_LIMIT of Linux).
const THREADS_MAX: usize = 1 << 22;
/// The new task is a thread of its creator's process (include/uapi/linux/sched.h).
const CLONE_THREAD: u64 = 0x0001_0000;

/// Maps threads to processes.
#[derive(Debug, Default)]
pub struct Tasks {
    processes: HashMap<u32, u32>,
}

impl Tasks {
    /// The process of a thread; `None` if unknown. The idle threads, which all have id 0,
    /// belong to process 0.
    #[inline]
    pub fn process(&self, tid: u32) -> Option<u32> {
        if tid == 0 { Some(0) } else { self.processes.get(&tid).copied() }
    }

    /// Sets the process of a thread.
    pub fn learn(&mut self, tid: u32, pid: u32) {
        if self.processes.len() < THREADS_MAX || self.processes.contains_key(&tid) {
            self.processes.insert(tid, pid);
        }
    }

    /// Adds a new task from `task_newtask`.
    pub fn made(&mut self, by: u32, task: NewTask) {
        let pid = if task.is_thread { self.process(by).unwrap_or(by) } else { task.tid };
        self.learn(task.tid, pid);
    }
}

/// A new task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewTask {
    /// Its thread id.
    pub tid: u32,
    /// Whether it belongs to the process of its creator.
    pub is_thread: bool,
}

/// Offsets of the fields of `task_newtask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewTaskPlan {
    /// `common_type` of the event.
    pub id: u16,
    tid_at: usize,
    flags_at: usize,
    flags_bytes: usize,
}

impl NewTaskPlan {
    /// From the format of the event; `None` for another event.
    pub fn new(format: &Format) -> Option<NewTaskPlan> {
        if (format.system.as_str(), format.name.as_str()) != ("task", "task_newtask") {
            return None;
        }
        let place = |name: &str| {
            let field = format.fields.iter().find(|field| field.name == name)?;
            matches!(field.kind, Kind::Integer { .. }).then_some((field.offset, field.size))
        };
        let (tid_at, tid_bytes) = place("pid")?;
        let (flags_at, flags_bytes) = place("clone_flags")?;
        let possible = tid_bytes == 4 && matches!(flags_bytes, 4 | 8);
        possible.then_some(NewTaskPlan { id: format.id, tid_at, flags_at, flags_bytes })
    }

    /// Reads a record of the event; `None` if it is truncated.
    pub fn read(&self, record: &[u8]) -> Option<NewTask> {
        let word = |at: usize| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?));
        let tid = word(self.tid_at)?;
        let flags = match self.flags_bytes {
            4 => u64::from(word(self.flags_at)?),
            _ => u64::from_ne_bytes(*record.get(self.flags_at..)?.first_chunk()?),
        };
        Some(NewTask { tid, is_thread: flags & CLONE_THREAD != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::samples;

    #[test]
    fn threads_belong_to_the_process_of_their_maker_and_processes_to_themselves() {
        let format = Format::parse("task", samples::TASK_NEWTASK, 8).unwrap();
        let plan = NewTaskPlan::new(&format).unwrap();
        let mut tasks = Tasks::default();
        tasks.learn(11, 10);
        for (tid, flags) in [(12, 0x0035_0f00 | CLONE_THREAD), (20, 17)] {
            let record = samples::newtask(11, tid, flags);
            tasks.made(11, plan.read(&record).unwrap());
        }
        assert_eq!(
            [0, 11, 12, 20, 21].map(|tid| tasks.process(tid)),
            [Some(0), Some(10), Some(10), Some(20), None]
        );
        assert_eq!(plan.read(&samples::newtask(1, 2, 3)[..20]), None);
        let other = Format::parse("sched", samples::SCHED_SWITCH, 8).unwrap();
        assert_eq!(NewTaskPlan::new(&other), None);
    }
}
