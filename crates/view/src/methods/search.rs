// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `search`: a time, a part of a name, or an expression, from one text.

use lateralis_lanes::Scale;
use lateralis_model::{Interval, Source as _};
use lateralis_units::Nanos;
use serde_json::{Value, json};

use super::drawing::density;
use super::opening::counted;
use crate::answer::Problem;
use crate::params::Params;
use crate::search::Search;
use crate::session::{Filter, Session};

/// Bytes of a text.
const TEXT_MAX: usize = 10_000;

/// The time that a text is; or a filter of the events that it finds, of those of another filter, and how many
/// of them are in each pixel of the session.
pub fn search(
    session: &Session,
    params: Params<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Value, Problem> {
    let text = params.text("text")?.trim();
    if text.is_empty() || text.len() > TEXT_MAX {
        let advice = "write a part of a name, an expression like `size > 4k`, or a time";
        return Err(Problem::new("nothing can be searched for", "text", advice));
    }
    if let Some(time) = time(session, text)? {
        return Ok(json!({ "kind": "time", "t": time }));
    }
    let px = params.px()?;
    let search = Search::of(text)?;
    let kind = search.kind();
    session.hits(&search, is_cancelled)?;
    let within = session.filter_of(params.count("filter", 0)?)?;
    let number = session.filter(Filter { search: Some(search), ..within })? as u64;
    let mut answer = counted(session, number)?;
    let meta = session.lanes.meta();
    let scale = Scale::new(meta.begin as i64, meta.end as i64, px);
    let chosen = session.chosen(number)?;
    answer["kind"] = kind.into();
    answer["begin"] = meta.begin.into();
    answer["end"] = meta.end.into();
    answer["pixels"] = density(session, chosen.as_deref(), &scale).into();
    Ok(answer)
}

/// Nanoseconds since the origin, if the text is a time of a form that `--from` reads.
fn time(session: &Session, text: &str) -> Result<Option<i64>, Problem> {
    let Some(sections) = &session.common.sections else { return Ok(None) };
    let meta = session.lanes.meta();
    let extent = match &session.growth {
        Some(_) => {
            let end = Nanos(meta.origin.saturating_add_unsigned(meta.end));
            Interval { begin: Some(Nanos(meta.origin)), end: Some(end) }
        }
        // As commands count: a recording can begin before its first event on a lane, and end after its last.
        None => {
            let source = session.source()?;
            let recording = &source.recording;
            Interval { begin: recording.beginning(), end: recording.source.interval().end }
        }
    };
    Ok(sections.time(extent, text).map(|time| time.0.saturating_sub(meta.origin)))
}
