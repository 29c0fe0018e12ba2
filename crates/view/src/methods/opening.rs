// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `open`, `filter`.

use lateralis_lanes::{Contradictory, LaneKind, Meta, RowKind, Wanted, quality_name};
use lateralis_model::subsystem_and_event;
use serde_json::{Value, json};

use crate::answer::Problem;
use crate::params::Params;
use crate::rows::{Drawn, tell_packed};
use crate::scripts::Progress;
use crate::session::{Filter, Session};

/// Maximum number of listed losses, and of listed places of damage; all of them are drawn.
const LISTED_MAX: usize = 10_000;
/// Earliest origin, in 1973, that is shown as a date: earlier times count from another zero than 1970.
const NO_DATE_BEFORE: i64 = 100_000_000 * 1_000_000_000;

/// Quality of an event count of the whole session.
pub fn count_quality(meta: &Meta) -> &'static str {
    let is_whole = meta.losses.is_empty() && meta.damage.is_empty() && meta.filtered.is_empty();
    if is_whole { "exact" } else { "lower_bound" }
}

/// Whether the recorder was configured to leave out some events of a class.
pub fn is_filtered(meta: &Meta, class: usize) -> bool {
    let name = meta.classes.get(class).map(|class| &class.name);
    name.is_some_and(|name| meta.filtered.binary_search(name).is_ok())
}

/// Returns the description of the session with all lists.
pub fn open(session: &Session) -> Value {
    // Read before the lists: a page that gets older lists is notified again.
    let lists = session.growth.as_ref();
    let lists = lists.map_or(1, |growth| growth.lists + session.common.scripts.lists());
    let meta = session.lanes.meta();
    let quality = count_quality(meta);
    let is_lossy = !meta.losses.is_empty() || !meta.damage.is_empty();
    let of_class = |id| quality_name(u8::from(is_lossy || is_filtered(meta, id)));
    let lanes: Vec<Value> = (0u32..).zip(&meta.lanes).map(|(id, _)| lane(session, id)).collect();
    let classes = meta.classes.iter().enumerate().map(|(id, class)| {
        let (subsystem, name) = subsystem_and_event(&class.name);
        let mut told = json!({
            "id": id, "subsystem": subsystem, "name": name, "count": class.count,
            "quality": of_class(id), "first": class.first, "last": class.last,
        });
        if class.sends {
            told["sends"] = true.into();
        }
        if class.receives {
            told["receives"] = true.into();
        }
        told
    });
    let applications = meta.applications.iter().enumerate().map(|(id, application)| {
        let (name, pid, events) = (&application.name, application.pid, application.events);
        json!({ "id": id, "name": name, "pid": pid, "events": events, "quality": quality })
    });
    let kinds = meta.span_kinds.iter().enumerate().map(|(id, kind)| {
        let mut told = json!({
            "id": id, "name": kind.name, "count": kind.count, "keys": kind.keys,
        });
        if !kind.budgets.is_empty() {
            let texts: Vec<&str> = kind.budgets.iter().map(|budget| budget.text.as_str()).collect();
            told["budgets"] = texts.into();
        }
        told
    });
    let channels = meta.channels.iter().enumerate();
    let channels = channels.map(|(id, c)| json!({ "id": id, "name": c.name, "count": c.count }));
    let counters = meta.counters.iter().enumerate();
    let counters = counters.map(|(id, c)| json!({ "id": id, "name": c.name, "lane": c.lane }));
    let scripts = session.common.scripts.all();
    let scripts = (0u32..).zip(&scripts).filter_map(|(id, ran)| {
        let found = ran.found()?;
        let stopped = found.stopped.as_ref().map(Problem::json);
        let until = found.behind(session);
        Some(json!({ "script": id, "count": found.count, "until": until, "stopped": stopped }))
    });
    let losses = meta.losses.iter().take(LISTED_MAX).map(|loss| {
        let (begin, end) = (loss.begin, loss.end);
        json!({ "lane": loss.lane, "begin": begin, "end": end, "count": loss.count, "cause": loss.cause })
    });
    let damage = meta.damage.iter().take(LISTED_MAX).map(|damage| {
        json!({
            "lane": damage.lane, "file": damage.file, "begin_bytes": damage.begin_bytes,
            "end_bytes": damage.end_bytes, "reason": damage.reason, "begin": damage.begin,
            "end": damage.end,
        })
    });
    let damage = damage.chain(contradictions(meta));
    json!({
        "version": 1,
        "methods": super::of(session),
        "origin": meta.origin.to_string(),
        "is_date": meta.origin >= NO_DATE_BEFORE,
        "begin": meta.begin,
        "end": meta.end,
        "is_live": session.is_live(),
        "lists": lists,
        "gone": { "events": session.growth.as_ref().map_or(0, |growth| growth.forgotten) },
        "late": session.growth.as_ref().map_or(0, |growth| growth.late),
        "recordings": meta.recordings,
        "lanes": lanes,
        "classes": classes.collect::<Vec<_>>(),
        "applications": applications.collect::<Vec<_>>(),
        "names": meta.names,
        "span_kinds": kinds.collect::<Vec<_>>(),
        "channels": channels.collect::<Vec<_>>(),
        "counters": counters.collect::<Vec<_>>(),
        "scripts": scripts.collect::<Vec<_>>(),
        "losses": losses.collect::<Vec<_>>(),
        "damage": damage.collect::<Vec<_>>(),
    })
}

/// Contradictions between context switches, as rows of the list of damage without bytes.
fn contradictions(meta: &Meta) -> impl Iterator<Item = Value> + '_ {
    let row = |lane: Option<u32>, reason: String, ends: Option<(u64, u64)>| {
        json!({
            "lane": lane, "file": "switches", "begin_bytes": 0, "end_bytes": 0, "reason": reason,
            "begin": ends.map(|ends| ends.0), "end": ends.map(|ends| ends.1),
        })
    };
    let listed = meta.contradictions.len() as u64;
    let more = meta.contradiction_count.saturating_sub(listed);
    let of = move |of: &Contradictory| {
        let cpu = of.lane.and_then(|lane| meta.lanes.get(lane as usize));
        let cpu = cpu.map_or("a CPU", |lane| lane.name.as_str());
        row(of.lane, format!("contradiction on {cpu}: {}", of.reason), Some((of.begin, of.end)))
    };
    let rest = (more > 0).then(|| row(None, format!("{more} more contradictions"), None));
    meta.contradictions.iter().map(of).chain(rest)
}

fn lane(session: &Session, id: u32) -> Value {
    let meta = session.lanes.meta();
    let lane = &meta.lanes[id as usize];
    let kind = match lane.kind {
        LaneKind::Cpu => "cpu",
        LaneKind::Process => "process",
        LaneKind::Thread => "thread",
        LaneKind::Component => "component",
        LaneKind::Counter => "counter",
        LaneKind::Packets => "packets",
    };
    let rows = session.rows_of(id).into_iter().map(|(number, drawn)| match drawn {
        Drawn::Found(script, row) => {
            let ran = session.common.scripts.get(script).ok();
            let found = ran.and_then(|ran| ran.found());
            let until = found.as_ref().and_then(|found| found.behind(session));
            let told = found.as_ref().and_then(|found| found.lanes.meta().rows.get(row));
            let (name, depth) = told.map_or((None, 0), |row| (row.name.clone(), row.depth));
            let mut told = json!({
                "row": number, "kind": "spans", "name": name, "depth": depth, "script": script,
                "until": until,
            });
            if let Some(found) = &found {
                tell_packed(&found.lanes, row, &mut told);
            }
            told
        }
        Drawn::Calls(flow, depth) => {
            let mut told = json!({ "row": number, "kind": "calls", "depth": depth });
            // Deeper calls are drawn on the last row.
            let of = session.flow().map_or(0, |flows| flows.depths(flow));
            if depth + 1 == of && of > 1 {
                told["is_last"] = true.into();
            }
            told
        }
        Drawn::Events => json!({ "row": number, "kind": "events" }),
        Drawn::Level(_) => json!({ "row": number, "kind": "level", "name": lane.name }),
        Drawn::Intervals(row) | Drawn::Packed(row) => {
            let of = &meta.rows[row];
            let kind = match of.kind {
                RowKind::Running => "running",
                RowKind::Seen => "seen",
                RowKind::ThreadStates => "thread_states",
                RowKind::Spans => "spans",
                RowKind::States => "states",
                RowKind::Samples => "samples",
                RowKind::Stacks => "stacks",
                RowKind::Wakes => "wakes",
            };
            let mut told =
                json!({ "row": number, "kind": kind, "name": of.name, "depth": of.depth });
            tell_packed(&session.lanes, row, &mut told);
            told
        }
    });
    json!({
        "id": id, "parent": lane.parent, "kind": kind, "name": lane.name, "cpu": lane.cpu,
        "pid": lane.pid, "tid": lane.tid, "events": lane.events, "rows": rows.collect::<Vec<_>>(),
    })
}

/// Applies a filter of the session to one of its recordings, and counts the remaining events;
/// reports the progress of its scripts while they run over that recording.
pub fn filter_of(session: &Session, side: u32, params: Params<'_>) -> Result<Value, Problem> {
    let number = params.count("filter", 0)?;
    let mut running = Vec::new();
    for script in session.filter_of(number)?.scripts {
        let run = session.sides.script(session, side, script)?;
        if let Progress::Running { looked, events } = run.progress()? {
            running.push(json!({ "script": script, "looked": looked, "events": events }));
        }
    }
    if !running.is_empty() {
        return Ok(json!({ "filter": number, "running": running }));
    }
    let asked = json!({ "filter": number });
    let (of, own) = session.sides.of_request(session, side, &asked, false)?;
    let mut told = counted(&of, Params(&own).count("filter", 0)?)?;
    told["filter"] = number.into();
    told["running"] = running.into();
    Ok(told)
}

/// Creates a filter, and counts the events that it keeps.
pub fn filter(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let wanted = Wanted {
        lanes_off: params.set("lanes_off")?,
        classes_off: params.set("classes_off")?,
        applications_off: params.set("applications_off")?,
    };
    let scripts = params.set("scripts")?.into_iter().collect();
    let number = session.filter(Filter { wanted, scripts, search: None })?;
    counted(session, number as u64)
}

pub fn counted(session: &Session, number: u64) -> Result<Value, Problem> {
    let chosen = session.chosen(number)?;
    let count = chosen.map_or_else(|| session.lanes.event_count(), |chosen| chosen.count());
    Ok(json!({ "filter": number, "count": count, "quality": count_quality(session.lanes.meta()) }))
}
