// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Critical paths: why a span took as long as it did, and what a thread did and waited for.

mod page;

use lateralis_model::{Event, Interval, Quality};
use lateralis_store::explained::{
    Explained, Found, NotFound, Spans, Stretch, Wanted, find, find_stretches, find_thread,
};
use lateralis_store::{Chosen, Recording};
use lateralis_units::Nanos;
use serde_json::Value;

use crate::Error;
use crate::moment::{self, Moment};
use crate::page::Page;
use crate::selection::{SelectArgs, Selection};

/// Stretches of a thread before and after the one that contains the time of `--at`, each at most.
const STRETCHES: usize = 3;

/// What a thread did around a time.
struct Around {
    at: Nanos,
    stretches: Vec<Stretch>,
}

/// What is explained.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The name of the span. `None` explains what the one selected thread did; without one, the only kind of
    /// span.
    pub span: Option<&'a str>,
    /// Number of spans, slowest first.
    pub slowest: usize,
    /// The span that was open at this time, or what the thread did then.
    pub at: Option<Moment>,
}

/// Paths of some spans, or of a thread.
pub struct Paths {
    name: String,
    spans: Spans,
    stretches: Option<Around>,
    explained: Vec<Explained>,
}

impl Paths {
    /// Finds the spans and walks back through them; `selection` is that of `select`, in a recording with
    /// the names that its events contain.
    ///
    /// # Errors
    /// There is no such span or thread.
    pub fn of(
        recording: &Recording,
        selection: &Selection<'_>,
        select: &SelectArgs,
        query: Query<'_>,
    ) -> Result<Self, Error> {
        let contains = |event: &Event<'_>| selection.contains(event);
        let chosen = selection.chosen(recording, &contains);
        // What a thread is in the midst of when the time begins is known from before.
        let only = match query.span {
            None if select.thread.is_empty() => Some(only_span(&chosen)?),
            _ => None,
        };
        let query = Query { span: only.as_deref().or(query.span), ..query };
        let begin = query.span.and(chosen.interval.begin);
        let interval = Interval { begin, ..chosen.interval };
        let around = Chosen { interval, ..selection.chosen(recording, &contains) };
        let (name, spans, stretches) = match (query.span, query.at) {
            (Some(span), _) => (span.to_owned(), spans(query, span, recording, &chosen)?, None),
            (None, Some(at)) => {
                let thread = thread(select)?;
                let at = at.nanos(moment::extent(recording, [Some(at), None]));
                let found = find_stretches(&around, chosen.interval, thread, at, STRETCHES);
                let (found, stretches) = found.map_err(|error| no_thread(thread, &error))?;
                (format!("thread {thread}"), one(found), Some(Around { at, stretches }))
            }
            (None, None) => {
                let thread = thread(select)?;
                let found =
                    find_thread(&chosen, thread).map_err(|error| no_thread(thread, &error))?;
                (format!("thread {thread}"), one(found), None)
            }
        };
        selection.finish()?;
        let explained = spans.found.iter().map(|span| Explained::of(&around, span)).collect();
        Ok(Self { name, spans, stretches, explained })
    }

    /// Whether no event is missing that could change a path.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.explained.iter().all(|one| one.quality == Quality::Exact)
    }

    /// The page for people.
    #[must_use]
    pub fn page(&self) -> Page {
        page::render(&self.name, &self.spans, &self.explained, self.stretches.as_ref())
    }

    /// The JSON document, without its version; times in nanoseconds.
    #[must_use]
    pub fn json(&self) -> Value {
        page::json(&self.name, &self.spans, &self.explained, self.stretches.as_ref())
    }
}

/// The name of the spans to explain if none is given: the only kind of span that there is.
fn only_span(chosen: &Chosen<'_>) -> Result<String, Error> {
    // No span has an empty name: this finds the existing names.
    let names = find(chosen, "", Wanted::Slowest(1)).err().unwrap_or_default();
    let advice = match names.as_slice() {
        [name] => return Ok(name.clone()),
        [] => "the trace has no spans: name one thread with --thread".to_owned(),
        names => {
            format!("name one with --span: {}", names[..names.len().min(8)].join(", "))
        }
    };
    Err(Error::new("cannot tell a path", "neither a span nor one thread is named", advice))
}

/// The thread that is asked about without a span.
fn thread(select: &SelectArgs) -> Result<&str, Error> {
    match select.thread.as_slice() {
        [thread] if !thread.contains(['*', '?', ',']) => Ok(thread),
        _ => {
            let advice = "name a span with --span, or one thread with --thread";
            let place = "neither a span nor one thread is named";
            Err(Error::new("cannot tell a path", place, advice))
        }
    }
}

/// All of a thread, as one span.
fn one(found: Found) -> Spans {
    Spans { found: vec![found], quality: Quality::Exact, damage: Vec::new() }
}

fn no_thread(thread: &str, error: &NotFound) -> Error {
    match error {
        NotFound::NoThread => {
            Error::new("no such thread", thread, "`lat table TRACE --name threads` lists them")
        }
        NotFound::Several(threads) => {
            let numbers: Vec<String> = threads.iter().take(8).map(u32::to_string).collect();
            let advice = format!("give the number of one: {}", numbers.join(", "));
            Error::new("several threads have this name", thread, advice)
        }
        NotFound::Unknown => Error::new(
            "nothing is known of this thread at this time",
            thread,
            "`lat table TRACE --name thread_states` lists the times; `lat record --kernel sched` records \
             them",
        ),
    }
}

/// Errors: no span of the name; none that is wanted; none with a thread.
fn spans(
    query: Query<'_>,
    span: &str,
    recording: &Recording,
    chosen: &Chosen<'_>,
) -> Result<Spans, Error> {
    let wanted = match query.at {
        Some(at) => Wanted::OpenAt(at.nanos(moment::extent(recording, [Some(at), None]))),
        None => Wanted::Slowest(query.slowest),
    };
    let spans = find(chosen, span, wanted).map_err(|names| {
        let advice = match names.as_slice() {
            [] => "the trace has no spans at all".to_owned(),
            names => format!("there are {}", names[..names.len().min(8)].join(", ")),
        };
        Error::new("no such span", span, advice)
    })?;
    if !spans.found.is_empty() {
        return Ok(spans);
    }
    let (place, advice) = match wanted {
        Wanted::OpenAt(Nanos(_)) => {
            ("none is open at this time", "look at `lat print` for when it begins")
        }
        Wanted::Slowest(_) => (
            "none that is chosen has both ends and a thread",
            "see `lat stats` for unfinished ones",
        ),
    };
    Err(Error::new(format!("no span {span}"), place, advice))
}
