// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who ran on each processor: by switches, else by whose events come from there.

use std::collections::BTreeMap;

use lateralis_lanes::{Builder, Interval, RowKind};

/// Name of the row where nobody told of switches.
const SEEN: &str = "by its events";

/// Thread and application.
type Who = (u32, u32);

/// Who is on each processor.
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
}

impl Ran {
    /// An event tells of a switch from one thread to another, `None` idleness.
    pub fn switched(
        &mut self,
        builder: &mut Builder,
        (cpu, lane): (u32, u32),
        time: i64,
        [from, to]: [Option<Who>; 2],
    ) {
        let stays = true;
        let before = self.on.insert(cpu, On { lane, who: to, since: time, last: time, stays });
        match before {
            // Who leaves first came before anything is known.
            None => {}
            Some(before) => {
                // If another leaves than came, switches between are missing.
                let quality = if before.who == from { 0 } else { 2 };
                before.ran(builder, Some(time), quality, None);
            }
        }
    }

    /// An event of a thread on a processor, whose switches nobody tells; `is_switch` if it says
    /// that the thread is there from now on.
    pub fn seen(
        &mut self,
        builder: &mut Builder,
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
            on.stays |= is_switch;
            return;
        }
        let on = On { lane, who, since: time, last: time, stays: is_switch };
        if let Some(before) = self.on.insert(cpu, on) {
            let end = if before.stays { time } else { before.last };
            before.ran(builder, Some(end), 0, (!before.stays).then_some(SEEN));
        }
    }

    /// Nothing more comes.
    pub fn end(&mut self, builder: &mut Builder) {
        for (_, on) in std::mem::take(&mut self.on) {
            let end = (!on.stays).then_some(on.last);
            on.ran(builder, end, 0, (!on.stays).then_some(SEEN));
        }
    }
}

impl On {
    fn ran(&self, builder: &mut Builder, end: Option<i64>, quality: u8, name: Option<&str>) {
        let Some((thread, application)) = self.who else { return };
        let (begin, from, to) = (self.since, None, None);
        let interval = Interval { begin, end, name: application, thread, from, to, quality };
        builder.interval(self.lane, RowKind::Running, name, interval);
    }
}
