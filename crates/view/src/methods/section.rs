// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `section`: a section of `lat stats` for a range of time and a filter, by the code of `lat stats`.

use std::sync::Arc;

use lateralis_model::{Event, Interval, Source as _};
use lateralis_units::Nanos;
use serde_json::{Value, json};

use super::selecting::{Reading, is_all, stretch};
use crate::answer::Problem;
use crate::params::Params;
use crate::sections::{EventFilter, Query, Table, Tables, Unit};
use crate::session::{Session, Source};

/// Rows of an answer.
const ROWS_MAX: u64 = 10_000;
/// Rows of an answer if the request does not limit them.
const ROWS: u64 = 1000;
/// Events of which one is checked whether the answer is still wanted.
const CHECK_EVERY: u32 = 4096;

/// A section, and how many rows each of the others has.
pub fn section(
    session: &Session,
    params: Params<'_>,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Value, Problem> {
    let name = params.text("name")?;
    let order = params.get("order").map(|_| params.text("order")).transpose()?;
    let most = params.count("most", ROWS)?.min(ROWS_MAX) as usize;
    let filter = params.count("filter", 0)?;
    let range = stretch(session, params)?;
    let key = format!("{range:?} {filter}");
    let tables = match session.tables.get(&key) {
        Some(tables) => tables,
        None => {
            let tables = Arc::new(compute(session, range, filter, is_cancelled)?);
            session.tables.keep(key, &tables);
            tables
        }
    };
    let none = || Problem::new("no such section", name, "load the page again");
    let table = tables.tables.iter().find(|table| table.name == name).ok_or_else(none)?;
    let column = |name: &str| {
        let found = table.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| Problem::new("no such column", name, "choose another"))
    };
    let order = order.map(column).transpose()?.map(|column| (column, params.is("descending")));
    let interval = interval(session, range);
    let count = |of: &Table| of.rows.len() as u64 + of.more;
    let sections = tables
        .tables
        .iter()
        .map(|of| json!({ "name": of.name, "title": of.title, "count": count(of) }));
    let text = |time: Option<Nanos>| time.map(|time| time.0.to_string());
    Ok(json!({
        "name": table.name,
        "title": table.title,
        "columns": columns(session, table, order, most),
        "count": table.rows.len().min(most),
        "total": count(table),
        "kept": table.rows.len(),
        "remarks": table.remarks,
        "sections": sections.collect::<Vec<_>>(),
        "events": { "count": tables.events, "quality": tables.sums.name() },
        "over_ns": tables.over_ns,
        "quality": { "sums": tables.sums.name(), "values": tables.values.name() },
        "from_ns": text(interval.begin),
        "until_ns": text(interval.end),
    }))
}

/// Columns with the values and qualities of the first rows in an order.
fn columns(
    session: &Session,
    table: &Table,
    order: Option<(usize, bool)>,
    most: usize,
) -> Vec<Value> {
    let mut rows = table.sorted(order);
    rows.truncate(most);
    let column = |(index, column): (usize, &crate::sections::Column)| {
        let origin = (column.unit == Unit::Time).then_some(session.lanes.meta().origin);
        let cells = || rows.iter().filter_map(|row| table.rows[*row].get(index));
        let values: Vec<Value> = cells().map(|cell| cell.content.json(origin)).collect();
        let mut qualities: Vec<&str> = cells().map(|cell| cell.quality.name()).collect();
        // Almost always the same for all of them.
        if qualities.windows(2).all(|pair| pair[0] == pair[1]) {
            qualities.truncate(1);
        }
        json!({
            "name": column.name, "title": column.title, "unit": column.unit.name(),
            "values": values, "quality": qualities,
        })
    };
    table.columns.iter().enumerate().map(column).collect()
}

/// The range as options of `lat stats` give it: both ends are included, and all of a recording is no range.
fn interval(session: &Session, range: (i64, i64)) -> Interval {
    if is_all(session, range) {
        return Interval::default();
    }
    let time = |since: i64| Nanos(session.lanes.meta().origin.saturating_add(since));
    Interval { begin: Some(time(range.0)), end: Some(time(range.1.saturating_sub(1))) }
}

fn compute(
    session: &Session,
    range: (i64, i64),
    filter: u64,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Tables, Problem> {
    let no_code = || {
        let advice = "ask a server that was started by lat view";
        Problem::new("sections are not computed here", "section", advice)
    };
    let sections = session.common.sections.as_ref().ok_or_else(no_code)?;
    let interval = interval(session, range);
    // All of what came before is opened, so that it is known whether a range has events before it.
    let source = match &session.growth {
        Some(growth) => session.source_between(i64::MIN, growth.again.end)?,
        None => session.source()?,
    };
    let chosen = Chosen::new(session, &source, filter, (interval.begin, is_cancelled))?;
    let query = Query {
        recording: &source.recording,
        interval,
        filter: chosen.as_ref().map(|chosen| chosen as &dyn EventFilter),
        is_cancelled,
    };
    let tables = sections.tables(&query)?;
    // A partial result is neither returned nor kept.
    match is_cancelled() {
        true => Err(Problem::new("a newer request replaced this one", "section", "")),
        false => Ok(tables),
    }
}

/// A filter of the page for events that are read from the recording.
enum Chosen<'a> {
    /// By the class alone.
    Classes { source: &'a Source, off: Vec<bool> },
    /// By the place of the event in the index.
    Points {
        reading: Box<Reading<'a>>,
        source: &'a Source,
        begin: Option<Nanos>,
        is_cancelled: &'a (dyn Fn() -> bool + Sync),
    },
}

impl<'a> Chosen<'a> {
    fn new(
        session: &'a Session,
        source: &'a Source,
        filter: u64,
        (begin, is_cancelled): (Option<Nanos>, &'a (dyn Fn() -> bool + Sync)),
    ) -> Result<Option<Self>, Problem> {
        if filter == 0 {
            return Ok(None);
        }
        let of = session.filter_of(filter)?;
        let wanted = &of.wanted;
        if of.scripts.is_empty()
            && of.search.is_none()
            && wanted.lanes_off.is_empty()
            && wanted.applications_off.is_empty()
        {
            let classes = 0..session.lanes.meta().classes.len() as u32;
            let off = classes.map(|class| wanted.classes_off.contains(&class)).collect();
            return Ok(Some(Self::Classes { source, off }));
        }
        let reading = Box::new(Reading::new(session, source, filter)?);
        Ok(Some(Self::Points { reading, source, begin, is_cancelled }))
    }
}

impl EventFilter for Chosen<'_> {
    /// The thread and the CPU of an event follow from the switches before it: those before the range are
    /// read as well.
    fn begin(&self) {
        let Self::Points { reading, source, begin, is_cancelled } = self else { return };
        reading.begin();
        let Some(begin) = begin else { return };
        let before = Interval { begin: None, end: Some(Nanos(begin.0.saturating_sub(1))) };
        let mut events = source.recording.source.events_in(before);
        let mut count = 0u32;
        while let Some(event) = events.next_event() {
            reading.passes(&event);
            count = count.wrapping_add(1);
            if count.is_multiple_of(CHECK_EVERY) && is_cancelled() {
                return;
            }
        }
    }

    fn keeps(&self, event: &Event<'_>) -> bool {
        match self {
            Self::Classes { source, off } => {
                let class = source.classes.get(&event.class.name);
                class.is_some_and(|class| off.get(usize::from(*class)) != Some(&true))
            }
            Self::Points { reading, .. } => reading.keeps(event),
        }
    }
}
