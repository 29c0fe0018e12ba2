// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Documents of reports, as the JSON of `lat stats`, `lat path` and `lat diff`.

use std::path::{Path, PathBuf};

use lateralis_model::{Interval, Source};
use lateralis_reports::diff::{Caller, Compared, Settings};
use lateralis_reports::json::{Versioned, VersionedMembers};
use lateralis_reports::moment::{self, Moment};
use lateralis_reports::path::{Paths, Query};
use lateralis_reports::selection::{SelectArgs, Selection};
use lateralis_reports::stats::gather::Statistics;
use lateralis_reports::stats::page::Section;
use lateralis_reports::stats::sections::{self, Asked};
use lateralis_reports::{Error, beyond};
use lateralis_store::Recording;
use lateralis_traces::OpenOptions;
use pyo3::FromPyObject;
use serde::Serialize;

use crate::batches::Opened;
use crate::opening;

/// A document, and warnings, each with whether it is about losses.
pub type Document = (String, Vec<(bool, String)>);

/// Options that select events, by their keywords in Python; times in the forms that `--from` takes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Select {
    event: Vec<String>,
    subsystem: Vec<String>,
    cpu: Vec<u32>,
    app: Vec<String>,
    thread: Vec<String>,
    #[pyo3(item("where"))]
    condition: Vec<String>,
    filter: Vec<String>,
    #[pyo3(item("from_"))]
    from: Option<String>,
    until: Option<String>,
}

impl Select {
    /// Errors: a time in none of the forms.
    pub fn args(self) -> Result<SelectArgs, String> {
        let (from, until) = (time(self.from.as_deref())?, time(self.until.as_deref())?);
        Ok(SelectArgs {
            event: self.event,
            subsystem: self.subsystem,
            cpu: self.cpu,
            app: self.app,
            thread: self.thread,
            condition: self.condition,
            filter: self.filter,
            from,
            until,
        })
    }
}

/// A time that users give.
///
/// Errors: it is in none of the forms.
pub fn time(text: Option<&str>) -> Result<Option<Moment>, String> {
    let parse = |text: &str| text.parse().map_err(|why| format!("no such time: {text}: {why}"));
    text.map(parse).transpose()
}

/// Messages of reports name options of `lat`; those of Python have the same names without dashes.
pub fn in_python(text: &str) -> String {
    let words = [("--from", "from_"), ("--until", "until"), ("--span", "span")];
    let words = words.into_iter().chain([("--thread", "thread"), ("--filter", "filter")]);
    words.fold(text.to_owned(), |text, (option, keyword)| text.replace(option, keyword))
}

fn sentence(error: impl ToString) -> String {
    in_python(&error.to_string())
}

fn warnings(texts: impl IntoIterator<Item = String>) -> Vec<(bool, String)> {
    texts.into_iter().map(|text| (false, in_python(&text))).collect()
}

/// Errors: it is no JSON.
fn json(document: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(document).map_err(|why| format!("cannot make the document: {why}"))
}

/// The options with the time that the trace was opened with: both ends hold.
fn narrowed(args: SelectArgs, recording: &Recording, window: Interval) -> SelectArgs {
    if window == Interval::default() {
        return args;
    }
    let extent = moment::extent(recording, [args.from, args.until]);
    let at = |moment: Option<Moment>| moment.map(|moment| moment.nanos(extent));
    let begin = at(args.from).max(window.begin);
    let end = at(args.until).into_iter().chain(window.end).min();
    let (from, until) = (begin.map(|t| Moment::At(t.0)), end.map(|t| Moment::At(t.0)));
    SelectArgs { from, until, ..args }
}

/// The document of `lat stats --json`; no sections are all.
///
/// Errors: no such section, event or time; an expression that cannot be parsed.
pub fn stats(
    opened: &Opened,
    window: Interval,
    sections: &[String],
    select: Select,
) -> Result<Document, String> {
    let sections: Result<Vec<Section>, Error> =
        sections.iter().map(|name| Section::named(name)).collect();
    let (sections, args) = (sections.map_err(sentence)?, select.args()?);
    let is_cut = args.from.is_some() || window.begin.is_some();
    // Threads report their names when they begin, perhaps before the selected time.
    let recording = opened.recording(args.needs_names() || is_cut)?;
    let args = narrowed(args, recording, window);
    let mut texts = args.unknown_fields(recording.source.trace());
    let selection = Selection::new(&args, recording, true).map_err(sentence)?;
    texts.extend(selection.warning().map(str::to_owned));
    let statistics = Statistics::of(recording, &selection, Asked::of(&sections, true));
    selection.finish().map_err(sentence)?;
    texts.extend(beyond::warning(statistics.times_beyond));
    let members = sections::keep(statistics.members(recording), &sections);
    Ok((json(&VersionedMembers(&members))?, warnings(texts)))
}

/// The document of `lat path --json`.
///
/// Errors: as [`stats`]; no such span or thread, or nothing is known of it.
pub fn path(
    opened: &Opened,
    window: Interval,
    (span, slowest, at): (Option<&str>, u32, Option<&str>),
    select: Select,
) -> Result<Document, String> {
    let (args, at) = (select.args()?, time(at)?);
    let recording = opened.recording(true)?;
    let args = narrowed(args, recording, window);
    let mut texts = args.unknown_fields(recording.source.trace());
    let selection = Selection::new(&args, recording, true).map_err(sentence)?;
    texts.extend(selection.warning().map(str::to_owned));
    let query = Query { span, slowest: slowest as usize, at };
    let paths = Paths::of(recording, &selection, &args, query).map_err(sentence)?;
    Ok((json(&Versioned(&paths.json()))?, warnings(texts)))
}

/// The document of `lat diff --json`. Losses are reported for recordings that are not `known`.
///
/// Errors: as [`stats`]; a recording cannot be read, or they have no events in common.
pub fn diff(
    (good, bad, known): (&[PathBuf], &[PathBuf], &[PathBuf]),
    settings: &Settings,
    select: Select,
) -> Result<Document, String> {
    let mut opener = Opener { known, warnings: Vec::new() };
    let compared = Compared::of(good, bad, &select.args()?, settings, &mut opener);
    let compared = compared.map_err(sentence)?;
    Ok((json(&Versioned(&compared.json()))?, opener.warnings))
}

/// Opens recordings, and keeps warnings.
struct Opener<'a> {
    known: &'a [PathBuf],
    warnings: Vec<(bool, String)>,
}

impl Caller for Opener<'_> {
    fn open(&mut self, path: &Path) -> Result<Recording, Error> {
        let recording = Recording::open_all(&[path.to_owned()], &OpenOptions::default())?;
        if !self.known.iter().any(|known| known == path) {
            self.warnings.extend(opening::remarks(&recording));
        }
        Ok(recording)
    }

    fn warn(&mut self, text: &str) {
        self.warnings.push((false, in_python(text)));
    }
}
