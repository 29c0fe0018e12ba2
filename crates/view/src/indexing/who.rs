// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Identity of threads and applications, including corrections of guesses.

use lateralis_lanes::{Application, Gathers, Lane, Thread};
use lateralis_model::Writer;
use lateralis_store::facts::{Owner, Threads};

use super::NOBODY;
use super::lists::Lists;

impl Lists {
    /// The thread of a writer; the unknown thread if there is no writer.
    pub fn thread(&mut self, builder: &mut dyn Gathers, writer: Option<Writer>) -> u32 {
        let Some(writer) = writer else { return NOBODY };
        if let Some((last, id)) = self.last_thread
            && last == writer
        {
            return id;
        }
        let known = self.thread_ids.get(&writer).copied();
        let guessed = match writer.pid == writer.tid {
            true => None,
            false => self.guessed.remove(&writer.tid),
        };
        let id = match (known, guessed) {
            (Some(id), _) => id,
            (None, Some(id)) => {
                self.belongs(builder, id, writer);
                id
            }
            (None, None) => {
                let application = self.application(writer.pid);
                self.members[application as usize] += 1;
                let name = self.known.threads.get(&writer.tid).cloned();
                let thread = Thread {
                    pid: Some(writer.pid),
                    tid: Some(writer.tid),
                    name: name.unwrap_or_default(),
                    application,
                    lane: None,
                };
                self.threads.push(thread);
                self.version += 1;
                let id = self.threads.len() as u32 - 1;
                self.thread_ids.insert(writer, id);
                id
            }
        };
        self.last_thread = Some((writer, id));
        id
    }

    /// The thread of an event, or one that an event names. If its process is not known yet, it is
    /// assumed to be the first thread of a process, which may be corrected later.
    pub fn thread_told(
        &mut self,
        builder: &mut dyn Gathers,
        writer: Option<Writer>,
        threads: &Threads,
    ) -> u32 {
        if let Some(writer) = writer.filter(|writer| writer.pid == writer.tid)
            && self.last_thread.is_none_or(|(last, _)| last != writer)
        {
            let is_told = threads.get(writer.tid).is_some_and(|thread| thread.pid.is_some());
            if is_told {
                self.guessed.remove(&writer.tid);
            } else if !self.thread_ids.contains_key(&writer) {
                let id = self.thread(builder, Some(writer));
                self.guessed.insert(writer.tid, id);
            }
        }
        self.thread(builder, writer)
    }

    /// Corrects the process of a thread that was assumed to be the first one of a process.
    fn belongs(&mut self, builder: &mut dyn Gathers, id: u32, writer: Writer) {
        let Writer { pid, tid } = writer;
        let alone = Writer { pid: tid, tid };
        self.version += 1;
        self.thread_ids.remove(&alone);
        self.thread_ids.insert(writer, id);
        let before = self.application_of(id);
        let is_its_own = self.members.get(before as usize) == Some(&1);
        let mut now = before;
        if is_its_own && !self.application_ids.contains_key(&pid) {
            // No other application represents that process: the application keeps its number and its lane.
            self.application_ids.insert(pid, before);
            if let Some(application) = self.applications.get_mut(before as usize) {
                application.pid = Some(pid);
                application.name = self.known.processes.get(&pid).cloned().unwrap_or_default();
            }
            if let Some(lane) = self.process_lanes.remove(&tid) {
                self.process_lanes.insert(pid, lane);
                if let Some(lane) = self.own_lane_mut(builder, lane) {
                    lane.pid = Some(pid);
                }
            }
        } else {
            now = self.application(pid);
            self.members[now as usize] += 1;
            self.members[before as usize] -= 1;
        }
        if is_its_own {
            self.application_ids.remove(&tid);
        }
        if is_its_own && now != before {
            self.merged.insert(before, now);
            let events = self.applications[before as usize].events;
            self.applications[before as usize].events = 0;
            self.applications[now as usize].events += events;
        }
        if let Some(thread) = self.threads.get_mut(id as usize) {
            (thread.pid, thread.application) = (Some(pid), now);
        }
        if let Some(lane) = self.owner_lanes.remove(&Owner::Thread(alone)) {
            self.owner_lanes.insert(Owner::Thread(writer), lane);
            let parent = Some(self.process_lane(builder, pid));
            if let Some(lane) = self.own_lane_mut(builder, lane) {
                (lane.pid, lane.parent) = (Some(pid), parent);
            }
        }
    }

    /// A lane, unless it is the shared one.
    fn own_lane_mut<'b>(&self, builder: &'b mut dyn Gathers, lane: u32) -> Option<&'b mut Lane> {
        builder.lane_mut(lane).filter(|_| Some(lane) != self.others_lane)
    }

    pub fn application_of(&self, thread: u32) -> u32 {
        self.threads.get(thread as usize).map_or(NOBODY, |thread| thread.application)
    }

    /// Removes merged applications, and returns the new number of each old one.
    pub fn settle(&mut self) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::with_capacity(self.applications.len());
        let mut next = 0;
        for id in 0..self.applications.len() as u32 {
            let is_gone = self.merged.contains_key(&id);
            numbers.push(if is_gone { NOBODY } else { next });
            next += u32::from(!is_gone);
        }
        for id in self.merged.keys() {
            // The other application may be merged with yet another one.
            let mut last = *id;
            while let Some(other) = self.merged.get(&last) {
                last = *other;
            }
            numbers[*id as usize] = numbers[last as usize];
        }
        let settled = |id: u32| numbers.get(id as usize).copied().unwrap_or(NOBODY);
        let gone = std::mem::take(&mut self.merged);
        let mut id = 0;
        self.applications.retain(|_| {
            id += 1;
            !gone.contains_key(&(id - 1))
        });
        self.threads.iter_mut().for_each(|t| t.application = settled(t.application));
        self.application_ids.values_mut().for_each(|id| *id = settled(*id));
        numbers
    }

    pub(super) fn application(&mut self, pid: u32) -> u32 {
        if let Some(id) = self.application_ids.get(&pid) {
            return *id;
        }
        let name = self.known.processes.get(&pid).cloned().unwrap_or_default();
        self.applications.push(Application { name, pid: Some(pid), events: 0 });
        self.members.push(0);
        self.version += 1;
        let id = self.applications.len() as u32 - 1;
        self.application_ids.insert(pid, id);
        id
    }
}
