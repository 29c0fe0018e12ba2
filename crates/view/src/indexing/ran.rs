// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who was seen on each CPU by its events, where no switches are recorded.

use std::collections::BTreeMap;

use lateralis_lanes::{Gathers, Interval, Opened, RowKind};

/// Thread and application.
type Who = (u32, u32);

/// Who was seen last on each processor.
#[derive(Default)]
pub struct Ran {
    on: BTreeMap<u32, On>,
}

struct On {
    lane: u32,
    who: Option<Who>,
    since: i64,
    last: i64,
    /// Whether it is there until somebody else is said to come.
    stays: bool,
    /// Where it is told already, while it goes on.
    opened: Option<Opened>,
}

impl Ran {
    /// From now on it is known who has a processor.
    pub fn is_known(&mut self, builder: &mut dyn Gathers, cpu: u32) {
        if let Some(before) = self.on.remove(&cpu) {
            before.ran(builder, Some(before.last));
        }
    }

    /// An event of a thread on a processor, whose switches nobody tells; `is_switch` if it says
    /// that the thread is there from now on.
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
                // Only from now on is it known to run.
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

    /// Nothing more comes. How long who came last stayed is unknown.
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
    /// Only who stays until another comes is known to run.
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
