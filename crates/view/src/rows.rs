// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of lanes, as the page numbers and draws them.

use lateralis_lanes::{LaneKind, Lanes, Row, RowKind};
use serde_json::Value;

/// Content of a row of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// Events of the lane.
    Events,
    /// A row of intervals, by its number in the index.
    Intervals(usize),
    /// Rows of one kind and name that are too deep to be drawn separately, as one row; identified
    /// by the first of them.
    Packed(usize),
    /// A counter, by its number.
    Level(u32),
    /// Spans found by a script: number of the script, and row in its result.
    Found(u32, usize),
    /// Calls at one depth of a thread whose instructions were recorded; the first number is the
    /// index in [`lateralis_lanes::Meta::flows`], the second the depth.
    Calls(usize, u32),
}

/// Size of a number range: the rows of a lane get the first range, and the rows that each script
/// finds on the lane get one more.
const NUMBERS: u32 = 1 << 20;

/// Number of a row that a script has found in a live session. It is outside of the range of other
/// rows, including future ones, and stays the same whatever else is found. `None` if the range is
/// exhausted.
pub fn number_of_found(script: u32, nth: u32) -> Option<u32> {
    script.checked_add(1)?.checked_mul(NUMBERS)?.checked_add(nth).filter(|_| nth < NUMBERS)
}

/// Drawn rows of one kind and name; all deeper rows are drawn as the last of them.
const DRAWN_MAX: u32 = 256;

/// Returns how a row of the index is drawn: by itself, or packed with others.
pub fn drawn_as(lanes: &Lanes, row: usize) -> Option<Drawn> {
    let all = &lanes.meta().rows;
    let of = all.get(row)?;
    if of.depth + 1 < DRAWN_MAX {
        return Some(Drawn::Intervals(row));
    }
    let first = all.iter().position(|other| is_group(of, other) && other.depth + 1 == DRAWN_MAX)?;
    Some(Drawn::Packed(first))
}

/// Rows of the index that are drawn as one: `row` alone, or all that are packed with it if it is
/// the first of them.
pub fn drawn_together(lanes: &Lanes, row: usize) -> Vec<usize> {
    let all = &lanes.meta().rows;
    match all.get(row) {
        None => Vec::new(),
        Some(of) if !is_packed(of) => vec![row],
        Some(of) => {
            let is_in = |row: &usize| is_group(of, &all[*row]) && all[*row].depth >= of.depth;
            (row..all.len()).filter(is_in).collect()
        }
    }
}

/// Adds to the description of a row the number of index rows packed in it, if more than one, and
/// the number of intervals for which no row was left.
pub fn tell_packed(lanes: &Lanes, row: usize, told: &mut Value) {
    let packed = drawn_together(lanes, row);
    if packed.len() > 1 {
        told["packed"] = packed.len().into();
    }
    let left_out: u64 = packed.iter().map(|row| lanes.meta().rows[*row].left_out).sum();
    if left_out > 0 {
        told["left_out"] = left_out.into();
    }
}

/// Whether all deeper rows are drawn as this row.
pub fn is_packed(row: &Row) -> bool {
    row.depth + 1 == DRAWN_MAX
}

/// Whether a row is too deep to be drawn by itself.
pub fn is_deeper(row: &Row) -> bool {
    row.depth >= DRAWN_MAX
}

fn is_group(one: &Row, other: &Row) -> bool {
    (one.lane, one.kind) == (other.lane, other.kind) && one.name == other.name
}

/// Numbers rows by their position.
pub fn numbered(rows: Vec<Vec<Drawn>>) -> Vec<Vec<(u32, Drawn)>> {
    rows.into_iter().map(|rows| (0..).zip(rows).collect()).collect()
}

/// Like [`rows`], but numbered by age, so that numbers stay when rows are added: events are 0,
/// followed by rows of intervals and counters.
pub fn rows_of_growing(lanes: &Lanes) -> Vec<Vec<(u32, Drawn)>> {
    let meta = lanes.meta();
    let mut next: Vec<u32> = vec![1; meta.lanes.len()];
    let mut of_row = Vec::with_capacity(meta.rows.len());
    for row in &meta.rows {
        let next = next.get_mut(row.lane as usize);
        of_row.push(next.map_or(0, |next| std::mem::replace(next, *next + 1)));
    }
    let number = |drawn: Drawn| match drawn {
        Drawn::Intervals(row) | Drawn::Packed(row) => of_row.get(row).copied().unwrap_or(0),
        // A counter has a lane of its own.
        Drawn::Level(_) => 1,
        _ => 0,
    };
    let order = |drawn: &Drawn| match drawn {
        Drawn::Intervals(row) | Drawn::Packed(row) => {
            let row = &meta.rows[*row];
            let kind = match row.kind {
                RowKind::Samples => 3,
                RowKind::Stacks => 4,
                RowKind::Spans => 6,
                _ => 5,
            };
            (kind, row.name.clone(), row.depth)
        }
        _ => (2, None, 0),
    };
    let mut all = rows(lanes);
    for rows in &mut all {
        // Rows of one kind are sorted by name and depth, as in a written index.
        rows.sort_by_cached_key(|drawn| match drawn {
            Drawn::Intervals(row) if meta.rows[*row].kind.is_before_events() => {
                let row = &meta.rows[*row];
                (u8::from(row.kind != RowKind::Running), row.name.clone(), row.depth)
            }
            other => order(other),
        });
    }
    let told = |drawn: Drawn| (number(drawn), drawn);
    all.into_iter().map(|rows| rows.into_iter().map(told).collect()).collect()
}

/// Rows of each lane, in the order: running threads, seen threads, thread states, events, samples,
/// their stacks, states, spans, counters.
pub fn rows(lanes: &Lanes) -> Vec<Vec<Drawn>> {
    let meta = lanes.meta();
    let mut rows: Vec<Vec<Drawn>> = vec![Vec::new(); meta.lanes.len()];
    let add = |rows: &mut Vec<Vec<Drawn>>, kind: RowKind| {
        for (index, row) in meta.rows.iter().enumerate().filter(|(_, row)| row.kind == kind) {
            if let Some(rows) = rows.get_mut(row.lane as usize) {
                match row.depth + 1 {
                    DRAWN_MAX => rows.push(Drawn::Packed(index)),
                    depth if depth < DRAWN_MAX => rows.push(Drawn::Intervals(index)),
                    _ => {}
                }
            }
        }
    };
    add(&mut rows, RowKind::Running);
    add(&mut rows, RowKind::Seen);
    add(&mut rows, RowKind::ThreadStates);
    for (lane, told) in (0..).zip(&meta.lanes) {
        if lanes.points(lane).is_some() || told.kind == LaneKind::Cpu {
            rows[lane as usize].push(Drawn::Events);
        }
    }
    add(&mut rows, RowKind::Samples);
    add(&mut rows, RowKind::Stacks);
    add(&mut rows, RowKind::States);
    add(&mut rows, RowKind::Spans);
    for (counter, told) in (0..).zip(&meta.counters) {
        if let Some(rows) = rows.get_mut(told.lane as usize) {
            rows.push(Drawn::Level(counter));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lateralis_lanes::{
        Builder, Gathers, Growing, Interval, Lane, Lanes, Meta, Shared, SpanKind,
    };
    use serde_json::json;

    use super::*;
    use crate::answer::{Answer, Numbers};
    use crate::methods;
    use crate::session::Session;

    /// Spans that are open at the same time; one more follows them alone.
    const DEEP: i64 = 300;

    fn span(nth: i64) -> Interval {
        let (begin, end) = if nth < DEEP { (nth, Some(1000 + nth)) } else { (5000, Some(6000)) };
        Interval { begin, end, name: 0, thread: 0, from: None, to: None, quality: 0 }
    }

    fn meta() -> Meta {
        let kind =
            SpanKind { name: "request".into(), count: DEEP as u64 + 1, ..SpanKind::default() };
        Meta { end: 7000, names: vec!["request".into()], span_kinds: vec![kind], ..Meta::default() }
    }

    fn finished() -> Lanes {
        let mut builder = Builder::default();
        let lane = builder.lane(Lane::default());
        for nth in 0..=DEEP {
            builder.interval(lane, RowKind::Spans, None, span(nth));
        }
        let mut bytes = Vec::new();
        builder.finish(meta(), "", &mut bytes).unwrap();
        let bytes: Shared = Arc::new(bytes);
        Lanes::open(bytes, "").unwrap()
    }

    fn growing() -> Lanes {
        let mut growing = Growing::new(0);
        let lane = growing.lane(Lane::default());
        let begins = |nth| Interval { end: None, ..span(nth) };
        let opened: Vec<_> = (0..DEEP)
            .map(|nth| growing.begins(lane, RowKind::Spans, None, begins(nth)).unwrap())
            .collect();
        for (nth, opened) in (0..).zip(opened) {
            growing.ends(opened, Some(span(nth)));
        }
        growing.interval(lane, RowKind::Spans, None, span(DEEP));
        growing.lanes(meta())
    }

    /// Adds three spans more than the limit of rows, all open at the same time.
    fn too_many(into: &mut dyn Gathers, lane: u32) {
        for nth in 0..ROWS + 3 {
            let interval = Interval { begin: nth, end: Some(100_000), ..span(0) };
            into.interval(lane, RowKind::Spans, None, interval);
        }
    }

    /// Limit of rows of spans of a lane.
    const ROWS: i64 = 1 << 16;

    #[test]
    fn spans_that_have_room_on_no_row_are_counted_and_said_to_be_left_out() {
        let meta = || {
            let count = ROWS as u64 + 3;
            let kind = SpanKind { name: "request".into(), count, ..SpanKind::default() };
            Meta { end: 100_000, span_kinds: vec![kind], ..meta() }
        };
        let mut builder = Builder::default();
        let lane = builder.lane(Lane::default());
        too_many(&mut builder, lane);
        let mut bytes = Vec::new();
        builder.finish(meta(), "", &mut bytes).unwrap();
        let finished = Lanes::open(Arc::new(bytes) as Shared, "").unwrap();
        let mut growing = Growing::new(0);
        let lane = growing.lane(Lane::default());
        // A span without a row is reported when it ends.
        too_many(&mut growing, lane);
        assert_eq!(growing.begins(lane, RowKind::Spans, None, span(1)), None);
        assert_eq!(growing.left_out(), 3);
        for lanes in [finished, growing.lanes(meta())] {
            let session = Session::of_index(lanes);
            let open = ask(&session, "open", &json!({}));
            let rows = open["lanes"][0]["rows"].as_array().unwrap();
            let spans: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "spans").collect();
            let told = (&spans[255]["packed"], &spans[255]["left_out"]);
            assert_eq!(told, (&json!(ROWS - 255), &json!(3)));
            assert!(spans[..255].iter().all(|row| row["left_out"].is_null()));
            let asked = json!({ "filter": 0, "from": 0, "count": 1 });
            assert_eq!(ask(&session, "activities", &asked)["total"], ROWS);
            let stats = ask(&session, "stats", &json!({ "filter": 0 }));
            let told = (&stats["spans"][0]["count"], &stats["spans"][0]["quality"]);
            assert_eq!(told, (&json!(ROWS), &json!("unknown")), "{stats}");
            assert_eq!(open["span_kinds"][0]["count"], ROWS + 3);
        }
    }

    fn ask(session: &Session, method: &str, params: &Value) -> Value {
        match methods::answer(session, method, params) {
            Ok(Answer::Json(value)) => value,
            Ok(_) => panic!("{method}: columns"),
            Err(problem) => panic!("{method}: {problem:?}"),
        }
    }

    #[test]
    fn spans_deeper_than_rows_are_drawn_listed_and_counted() {
        for lanes in [finished(), growing()] {
            let session = Session::of_index(lanes);
            let open = ask(&session, "open", &json!({}));
            let rows = open["lanes"][0]["rows"].as_array().unwrap();
            let spans: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "spans").collect();
            assert_eq!(spans.len(), 256);
            let last = spans[255];
            assert_eq!((&last["depth"], &last["packed"]), (&json!(255), &json!(DEEP - 255)));
            assert!(spans[..255].iter().all(|row| row["packed"].is_null()));
            let asked = json!({ "filter": 0, "from": 0, "count": 1000 });
            let list = ask(&session, "activities", &asked);
            assert_eq!(list["total"], DEEP + 1);
            for (nth, row) in (0..).zip(list["rows"].as_array().unwrap()) {
                assert_eq!(
                    (&row["begin"], &row["end"]),
                    (&json!(span(nth).begin), &json!(span(nth).end))
                );
                // Each span names the row in which it is drawn.
                let expected = if nth < DEEP { nth.min(255) } else { 0 };
                assert_eq!(row["row"], spans[expected as usize]["row"]);
            }
            let stats = ask(&session, "stats", &json!({ "filter": 0 }));
            assert_eq!(stats["spans"][0]["count"], DEEP + 1, "{stats}");
            // The last of the packed spans is found where no other is.
            let at =
                json!({ "lane": 0, "row": last["row"], "t": 998 + DEEP, "within": 0, "filter": 0 });
            let thing = ask(&session, "at", &at)["thing"].clone();
            assert_eq!(thing["end"], 999 + DEEP, "{thing}");
            let view = json!({ "lanes": [0], "t0": 0, "t1": 7000, "px": 7, "filter": 0 });
            let Ok(Answer::Columns(told, columns)) = methods::answer(&session, "view", &view)
            else {
                panic!("a picture")
            };
            let rows = told["rows"].as_array().unwrap();
            let place = rows.iter().position(|row| row["row"] == last["row"]).unwrap();
            let bytes = |name: &str| match columns.iter().find(|(known, _)| *known == name) {
                Some((_, Numbers::U8(bytes))) => bytes[place * 7..(place + 1) * 7].to_vec(),
                other => panic!("{name}: {other:?}"),
            };
            // 45 are packed: 16·log2(46) is 88; the flag marks pixels with several items.
            assert_eq!(bytes("count"), [88, 88, 0, 0, 0, 0, 0]);
            assert_eq!(bytes("flags"), [1, 1, 0, 0, 0, 0, 0]);
            assert!(rows[place]["exact"] == false && bytes("cover")[0] > 0);
        }
    }
}
