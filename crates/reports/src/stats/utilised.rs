// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--utilisation`: the time between two calls of a program, `lat_utilisation_reset` and
//! `lat_utilisation_finalize`, which leave remarks in its recording.

use std::collections::HashMap;

use lateralis_model::{Event, Interval, Names, Source};
use lateralis_store::Recording;
use lateralis_units::Nanos;
use serde_json::{Value, json};

use crate::Error;
use crate::moment::Moment;
use crate::selection::SelectArgs;
use crate::values;

/// The remarks (`tracer/c/src/utilisation.c`).
const REMARK: &str = "lateralis:MARK";
const BEGIN: &str = "utilisation: reset";
const END: &str = "utilisation: finalize";

/// One interval of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tracked {
    begin: Nanos,
    end: Nanos,
    /// The program's process, where the recording tells.
    pid: Option<u32>,
}

/// The interval that was chosen.
#[derive(Debug)]
pub struct Utilised {
    number: usize,
    of: usize,
    tracked: Tracked,
}

/// Finds the interval of this number, from 1 in the order of their ends; 0 is the last one.
///
/// Errors: there is none of that number.
/// Cost: one pass over the recording.
pub fn find(recording: &Recording, number: usize) -> Result<Utilised, Error> {
    let mut events = recording.source.events_in(Interval::default());
    let mut open: HashMap<Option<u32>, Nanos> = HashMap::new();
    let mut all = Vec::new();
    while events.advance() {
        remark(&events.event(), &mut open, &mut all);
    }
    let chosen = if number == 0 { all.len() } else { number };
    let tracked = chosen.checked_sub(1).and_then(|at| all.get(at)).copied();
    let Some(tracked) = tracked else {
        let there = match all.len() {
            0 => {
                "no program in it called lat_utilisation_reset and then lat_utilisation_finalize; \
                  choose with --from and --until"
                    .to_owned()
            }
            count => format!("it has {}", values::counted(count as u64, "interval")),
        };
        let what = format!("{} --utilisation={number}", recording.path.display());
        return Err(Error::new("no such interval", what, there));
    };
    Ok(Utilised { number: chosen, of: all.len(), tracked })
}

/// What a remark says. A reset begins anew; a program has one interval at a time.
fn remark(event: &Event<'_>, open: &mut HashMap<Option<u32>, Nanos>, all: &mut Vec<Tracked>) {
    if event.class.name != REMARK {
        return;
    }
    let text = event.payload().and_then(|payload| payload.get("text")?.as_text());
    let pid = event.writer.map(|writer| writer.pid);
    match text.as_deref() {
        Some(BEGIN) => drop(open.insert(pid, event.time)),
        Some(END) => {
            let begin = open.remove(&pid);
            all.extend(begin.map(|begin| Tracked { begin, end: event.time, pid }));
        }
        _ => {}
    }
}

impl Utilised {
    /// Chooses it.
    pub fn choose(&self, select: &mut SelectArgs) {
        select.from = Some(Moment::At(self.tracked.begin.0));
        select.until = Some(Moment::At(self.tracked.end.0));
    }

    /// A line above the page.
    pub fn line(&self, names: &Names) -> String {
        let Tracked { begin, end, pid } = self.tracked;
        let program = pid.map_or("a program".to_owned(), |pid| {
            let name = names.processes.get(&pid);
            name.map_or(format!("process {pid}"), |name| format!("{name} ({pid})"))
        });
        let time = values::time(u64::try_from(end.0.saturating_sub(begin.0)).unwrap_or(0));
        format!("utilisation  interval {} of {} of {program}: {time}", self.number, self.of)
    }

    /// The member `utilisation` of the document.
    pub fn to_json(&self) -> Value {
        let Tracked { begin, end, pid } = self.tracked;
        json!({
            "interval": self.number,
            "of": self.of,
            "pid": pid,
            "begin_ns": begin.0,
            "end_ns": end.0,
        })
    }
}
