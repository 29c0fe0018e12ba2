// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of threads as the packets tell them: a window of time that begins later has them all the
//! same.

use std::collections::{HashMap, VecDeque};

use lateralis_ring::abi;

use crate::source::Thread;

/// Most threads whose names are remembered; of more the oldest are forgotten.
const THREADS_MAX: usize = 1 << 15;
/// Most names of one thread: a window may begin before the last was given.
const EACH_MAX: usize = 4;
/// Longest name: of longer ones the beginning.
const NAME_MAX: usize = 64;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By thread: from when on, and what.
    threads: HashMap<(u32, u32), VecDeque<(u64, String)>>,
    order: VecDeque<(u32, u32)>,
}

impl Names {
    /// Takes a THREAD_NAME record, whole as it stands in a packet.
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

    /// The name of each thread that had told one before a moment, by thread.
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
