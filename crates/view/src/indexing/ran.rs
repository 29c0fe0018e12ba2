// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CPU occupancy estimated from events, for recordings without context switches.

use std::collections::BTreeMap;

use lateralis_lanes::{Gathers, Interval, Opened, RowKind};

/// Thread and application.
type Who = (u32, u32);

/// The thread that was seen last on each CPU.
#[derive(Default)]
pub struct Ran {
    on: BTreeMap<u32, On>,
}

struct On {
    lane: u32,
    who: Option<Who>,
    since: i64,
    last: i64,
    /// Whether the thread is known to run until another is switched in.
    stays: bool,
    /// Its interval, if the index already shows it.
    opened: Option<Opened>,
}

impl Ran {
    /// Ends the estimate for a CPU, because context switches are known from now on.
    pub fn is_known(&mut self, builder: &mut dyn Gathers, cpu: u32) {
        if let Some(before) = self.on.remove(&cpu) {
            before.ran(builder, Some(before.last));
        }
    }

    /// Processes an event of a thread on a CPU without recorded context switches. `is_switch` marks
    /// events which say that the thread runs from now on.
    pub fn seen(
        &mut self,
        builder: &mut dyn Gathers,
        (cpu, lane): (u32, u32),
        time: i64,
        who: Who,
        is_switch: bool,
    ) {
        let who = Some(who).filter(|(thread, _)| *thread != super::NOBODY);
        if let Some(on) = self.on.get_mut(&cpu)
            && on.who == who
        {
            on.last = on.last.max(time);
            if is_switch && !on.stays {
                // The thread is known to run only from this event on.
                on.ran(builder, Some(on.last));
                (on.stays, on.since, on.opened) = (true, time, None);
                on.begins(builder, None);
            } else if !on.stays
                && let Some(opened) = on.opened
            {
                builder.goes_on(opened, time);
            }
            return;
        }
        if let Some(before) = self.on.remove(&cpu) {
            let end = if before.stays { time } else { before.last };
            before.ran(builder, Some(end));
        }
        let stays = is_switch;
        let mut on = On { lane, who, since: time, last: time, stays, opened: None };
        on.begins(builder, (!stays).then_some(time));
        self.on.insert(cpu, on);
    }

    /// Ends all intervals. The end of a thread that runs until the next switch stays unknown.
    pub fn end(&mut self, builder: &mut dyn Gathers) {
        for (_, on) in std::mem::take(&mut self.on) {
            match on.opened {
                Some(opened) if on.stays => builder.ends(opened, None),
                _ if on.stays => {}
                _ => on.ran(builder, Some(on.last)),
            }
        }
    }
}

impl On {
    /// A thread is known to run only if it stays until another is switched in.
    fn kind(&self) -> RowKind {
        if self.stays { RowKind::Running } else { RowKind::Seen }
    }

    fn begins(&mut self, builder: &mut dyn Gathers, end: Option<i64>) {
        let Some((thread, application)) = self.who else { return };
        let (begin, from, to, quality) = (self.since, None, None, 0);
        let interval = Interval { begin, end, name: application, thread, from, to, quality };
        self.opened = builder.begins(self.lane, self.kind(), None, interval);
    }

    fn ran(&self, builder: &mut dyn Gathers, end: Option<i64>) {
        let Some((thread, application)) = self.who else { return };
        let (begin, from, to, quality) = (self.since, None, None, 0);
        let interval = Interval { begin, end, name: application, thread, from, to, quality };
        match self.opened {
            Some(opened) if end.is_some() => builder.ends(opened, Some(interval)),
            Some(_) => {}
            None => builder.interval(self.lane, self.kind(), None, interval),
        }
    }
}
