// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where switches contradict each other: the reason why what threads and processors did is unknown there.

use lateralis_analysis::{Contradiction, ContradictionKind, Occupant};
use lateralis_semantics::Schedule;
use serde_json::{Value, json};

use super::page::{Page, Section, Who};
use crate::date;
use crate::table::{Align, Table};
use crate::values;

/// Who came, and who left if that is another; `None`: no thread.
fn threads(schedule: &Schedule, kind: ContradictionKind) -> (Option<u32>, Option<Option<u32>>) {
    let tid = |of: Occupant| match of {
        Occupant::Thread(thread) => schedule.tid(thread),
        Occupant::Idle => None,
    };
    match kind {
        ContradictionKind::OtherThreadLeft { came, left } => (tid(came), Some(tid(left))),
        ContradictionKind::RunsElsewhere { thread } => (schedule.tid(thread), None),
    }
}

fn kept(schedule: &Schedule) -> &[Contradiction] {
    schedule.contradictions().map_or(&[], |all| all.kept())
}

fn count(schedule: &Schedule) -> u64 {
    schedule.contradictions().map_or(0, |all| all.count())
}

/// The member `contradictions` of the whole.
pub fn json(schedule: &Schedule, who: Who<'_>) -> Value {
    let row = |of: &Contradiction| {
        let (came, left) = threads(schedule, of.kind);
        let kind = match left {
            Some(_) => "other_thread_left",
            None => "runs_elsewhere",
        };
        let left = left.flatten();
        json!({
            "kind": kind,
            "cpu": schedule.cpu(of.cpu),
            "begin_ns": of.begin.0,
            "end_ns": of.end.0,
            "tid": came,
            "thread": came.and_then(|tid| who.name(tid, None)),
            "left_tid": left,
            "left_thread": left.and_then(|tid| who.name(tid, None)),
        })
    };
    let rows: Vec<Value> = kept(schedule).iter().map(row).collect();
    json!({ "count": count(schedule), "first": rows })
}

/// The table.
pub fn page(schedule: &Schedule, page: &mut Page<'_>, who: Who<'_>) {
    use Align::{Left, Right};
    let name = |tid: Option<u32>| tid.map_or("(idle)".to_owned(), |tid| who.thread(tid, None));
    let mut table = Table::new(&[("cpu", Right), ("from", Left), ("for", Right), ("what", Left)]);
    for of in kept(schedule).iter().take(page.rows) {
        let (came, left) = threads(schedule, of.kind);
        let what = match left {
            Some(left) => format!("{} came, and {} left", name(came), name(left)),
            None => format!("{} came, and was elsewhere before it left", name(came)),
        };
        table.row([
            schedule.cpu(of.cpu).map_or(String::new(), |cpu| cpu.to_string()),
            date::text(of.begin),
            values::time(of.end.since(of.begin).max(0) as u64),
            what,
        ]);
    }
    let total = usize::try_from(count(schedule)).unwrap_or(usize::MAX);
    page.table(Section::Cpus, "contradictions: what was done then is unknown", &table, total);
}
