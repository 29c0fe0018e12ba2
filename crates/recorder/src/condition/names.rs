// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of threads as recorded in packets: a window of time that begins later contains them all
//! the same.

use std::collections::{HashMap, VecDeque};

use lateralis_ring::abi;

use crate::source::Thread;

/// Maximum number of threads whose names are kept; beyond it the oldest are evicted.
const THREADS_MAX: usize = 1 << 15;
/// Maximum number of names of one thread: a window may begin before the last renaming.
const EACH_MAX: usize = 4;
/// Maximum length of a name; longer ones are truncated.
const NAME_MAX: usize = 64;

/// The names of threads over time.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By thread: start time and name.
    threads: HashMap<(u32, u32), VecDeque<(u64, String)>>,
    order: VecDeque<(u32, u32)>,
}

impl Names {
    /// Adds a THREAD_NAME record, with its header.
    pub(super) fn add(&mut self, record: Option<&[u8]>, time: u64) {
        let fields = record.and_then(|record| record.get(abi::RECORD_HEADER_BYTES as usize..));
        let Some((ids, name)) = fields.and_then(|fields| fields.split_at_checked(8)) else {
            return;
        };
        let word = |at: usize| ids[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        let thread = (word(0), word(4));
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_MAX)]).into_owned();
        if !self.threads.contains_key(&thread) {
            if self.order.len() >= THREADS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.threads.remove(&oldest);
            }
            self.order.push_back(thread);
        }
        let names = self.threads.entry(thread).or_default();
        let place = names.partition_point(|(from, _)| *from <= time);
        names.insert(place, (time, name));
        if names.len() > EACH_MAX {
            names.pop_front();
        }
    }

    /// The name of each thread that was known at a time.
    pub(super) fn at(&self, moment: u64) -> Vec<(Thread, String)> {
        let known = self.threads.iter().filter_map(|((pid, tid), names)| {
            let (_, name) = names.iter().rev().find(|(from, _)| *from < moment)?;
            Some((Thread { pid: *pid, tid: *tid }, name.clone()))
        });
        let mut known: Vec<_> = known.collect();
        known.sort_by_key(|(thread, _)| (thread.pid, thread.tid));
        known
    }
}
