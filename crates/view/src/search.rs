// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events that a text or an expression finds: a bit for each event of a lane.

use lateralis_analysis::filter::{Context, Filter};
use lateralis_lanes::{Lanes, PointRef, RankedBits, RowKind};
use lateralis_model::Source as _;
use lateralis_store::facts::Facts;

use crate::answer::Problem;
use crate::scripts::Places;
use crate::session::Session;

/// Events of which one is checked whether the answer is still wanted.
const CHECK_EVERY: u64 = 4096;

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Search {
    /// A part of the name of an event, or of a span that begins with the event; letters of either case.
    Name(String),
    /// An expression of `lat print --where`.
    Where(String),
}

impl Search {
    /// From a text: an expression has an operator, or a name that begins with `$`.
    ///
    /// # Errors
    /// It has, and is none.
    pub fn of(text: &str) -> Result<Self, Problem> {
        // What has the characters of an expression in its name is put into quotes.
        let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        if let Some(name) = inside.filter(|name| !name.is_empty() && !name.contains('"')) {
            return Ok(Self::Name(name.to_lowercase()));
        }
        if !text.contains(['=', '<', '>', '&', '|', '!', '$', '~']) {
            return Ok(Self::Name(text.to_lowercase()));
        }
        parse(text)?;
        Ok(Self::Where(text.to_owned()))
    }

    /// The word for its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Name(_) => "name",
            Self::Where(_) => "where",
        }
    }
}

fn parse(text: &str) -> Result<Filter, Problem> {
    Filter::parse(text).map_err(|error| {
        let what = format!("cannot understand the expression: {error}");
        Problem::new(what, text, "compare with == != < <= > >= =~, see lat print --where")
    })
}

/// What a search found.
pub struct Hits {
    /// By lane.
    lanes: Vec<RankedBits>,
}

impl Hits {
    /// Whether an event is found.
    #[must_use]
    pub fn has(&self, point: PointRef) -> bool {
        self.lanes.get(point.lane as usize).is_some_and(|bits| bits.get(point.index as usize))
    }

    /// Searches a session.
    ///
    /// Cost: of a text a look at each event in the index, of an expression a pass over the recording.
    /// Memory: a byte for each event until it is done, then some 1.5 bits.
    ///
    /// # Errors
    /// The expression cannot be understood, the recording cannot be read or still grows, or the search was
    /// cancelled.
    pub fn of(
        session: &Session,
        search: &Search,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, Problem> {
        let found = match search {
            Search::Name(text) => by_name(&session.lanes, text),
            Search::Where(text) => by_expression(session, text, is_cancelled)?,
        };
        let lanes = found.into_iter().map(|of| of.into_iter().collect()).collect();
        Ok(Self { lanes })
    }
}

fn by_name(lanes: &Lanes, text: &str) -> Vec<Vec<bool>> {
    let meta = lanes.meta();
    let has = |name: &String| name.to_lowercase().contains(text);
    let classes: Vec<bool> = meta.classes.iter().map(|class| has(&class.name)).collect();
    let spans: Vec<bool> = meta.span_kinds.iter().map(|kind| has(&kind.name)).collect();
    let of_lane = |lane: u32| {
        let points = lanes.points(lane);
        let is_hit = |class: u16| classes.get(usize::from(class)) == Some(&true);
        points.map_or(Vec::new(), |points| {
            points.kinds(0, points.len()).map(|(class, _)| is_hit(class)).collect()
        })
    };
    let mut found: Vec<Vec<bool>> = (0..lanes.count()).map(of_lane).collect();
    if !spans.contains(&true) {
        return found;
    }
    for (row, info) in meta.rows.iter().enumerate() {
        let Some((_, intervals)) = lanes.row(row).filter(|_| info.kind == RowKind::Spans) else {
            continue;
        };
        for index in 0..intervals.len() {
            if spans.get(intervals.name(index) as usize) != Some(&true) {
                continue;
            }
            if let [Some(point), _] = intervals.events(index)
                && let Some(of) = found.get_mut(point.lane as usize)
                && let Some(hit) = of.get_mut(point.index as usize)
            {
                *hit = true;
            }
        }
    }
    found
}

fn by_expression(
    session: &Session,
    text: &str,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Vec<Vec<bool>>, Problem> {
    let filter = parse(text)?;
    if session.growth.is_some() {
        let advice =
            "search for a part of a name, or write a script, until the recording has ended";
        return Err(Problem::new(
            "expressions do not search a recording in progress",
            text,
            advice,
        ));
    }
    let source = session.source()?;
    let recording = &source.recording;
    let places = Places::new(&session.lanes);
    let mut facts = Facts::new(&source.trace, &recording.streams);
    let context = Context { names: &source.names, streams: &recording.streams };
    let mut found: Vec<Vec<bool>> = vec![Vec::new(); session.lanes.count() as usize];
    let mut events = recording.source.events();
    let mut looked = 0u64;
    while let Some(event) = events.next_event() {
        looked += 1;
        if looked.is_multiple_of(CHECK_EVERY) && is_cancelled() {
            return Err(Problem::new("a newer request replaced this one", "search", ""));
        }
        let at = facts.at(&event);
        facts.of(&event, |_, _| {});
        if !source.classes.contains_key(&event.class.name) {
            continue;
        }
        let lane = places.of(&event, &at, &recording.streams);
        if let Some(of) = lane.and_then(|lane| found.get_mut(lane as usize)) {
            of.push(filter.matches(&event, &context));
        }
    }
    let is_of = |lane: u32| session.lanes.points(lane).map_or(0, |points| points.len());
    match (0u32..).zip(&found).all(|(lane, of)| of.len() == is_of(lane)) {
        true => Ok(found),
        false => Err(Problem::new(
            "the recording has changed since it was indexed",
            text,
            "open it again",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_expressions_are_told_apart() {
        let kind = |text: &str| Search::of(text).map(|search| search.kind());
        for text in ["request", "MUTEX", "syscall read", "a:b", "12 apples", "\"a -> b\""] {
            assert_eq!(kind(text), Ok("name"), "{text}");
        }
        for text in ["id == 7", "$cpu == 0 && len > 4k", "name =~ \"x*\"", "!flag", "$process"] {
            assert_eq!(kind(text), Ok("where"), "{text}");
        }
        for text in ["id ==", "a = 5", "&&", "(a == 1"] {
            assert!(kind(text).is_err(), "{text}");
        }
        assert_eq!(Search::of("ReQuest"), Ok(Search::Name("request".to_owned())));
    }
}
