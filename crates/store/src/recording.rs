// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace opened for reading, with the meaning of its events from its schemas.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use lateralis_analysis::Gaps;
use lateralis_model::role::{ALL, ATTRIBUTE, FILTERED, SOME};
use lateralis_model::{Attribute, Clock, Damage, Interval, Names, Source, StreamSummary, Trace};
use lateralis_traces::{Error, Joined, OpenOptions, Part, Relate};
use lateralis_units::{Nanos, Ticks};
use serde_json::Value;

use crate::ClockErrors;
use crate::Successions;
use crate::meanings::{Meanings, role};
use crate::relations;
use crate::time_lines::TimeLines;

/// Longest report that is read.
const REPORT_BYTES_MAX: u64 = 64 << 20;

/// A recording of `lat record`, or traces of any format.
pub struct Recording {
    /// As given by the user.
    pub path: PathBuf,
    /// All given paths.
    pub paths: Vec<PathBuf>,
    /// The traces combined.
    pub source: Joined,
    /// Its streams.
    pub streams: Vec<StreamSummary>,
    /// Names of processes and threads.
    pub names: Names,
    /// Meaning of its events.
    pub meanings: Meanings,
    /// Contents of `report.json`, if it exists.
    pub report: Option<Value>,
    /// Classes of which the recorder dropped some events, according to its reports.
    pub filtered: BTreeSet<String>,
    /// Classes that were disabled all the time: the spans that they would begin or end are unknown.
    pub disabled: BTreeSet<String>,
    /// Remarks on how the clocks of several recordings relate.
    pub clocks: Vec<String>,
    /// Paths given among others that contain no trace: remarks with the reason.
    pub not_traces: Vec<String>,
}

impl Recording {
    /// Opens `NAME`, `NAME/ctf`, or any other trace.
    ///
    /// Errors: if there is no trace, or a file cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_all(&[path.to_owned()], &OpenOptions::default())
    }

    /// Opens several traces as one. Paths without a trace are left out ([`Recording::not_traces`]).
    ///
    /// Errors: as [`Recording::open`], for the first that fails; or none of the paths holds a trace.
    pub fn open_all(paths: &[PathBuf], options: &OpenOptions) -> Result<Self, Error> {
        let mut source = lateralis_traces::open(paths, options)?;
        if options.relate == Relate::Exchange && paths.len() > 1 {
            let reports: Vec<_> = paths.iter().map(|path| (path.clone(), report(path))).collect();
            relations::by_exchanges(&mut source, &reports);
        }
        let report = match paths {
            [path] => report(path),
            _ => None,
        };
        let report = report.or_else(|| serde_json::from_slice(source.report.as_ref()?).ok());
        if options.relate != Relate::Messages {
            return Ok(Self::of(paths, source, report));
        }
        // As if all had one timeline: a channel is the same whatever the clock of its messages.
        let lines = TimeLines { of_parts: vec![None; source.parts().len()], told: Vec::new() };
        let mut together = Self::with(paths, source, report, lines);
        let told = relations::by_messages(&mut together);
        let mut recording = Self::of(paths, together.source, together.report);
        recording.clocks.extend(told);
        Ok(recording)
    }

    fn of(paths: &[PathBuf], source: Joined, report: Option<Value>) -> Self {
        let lines = TimeLines::of(&source, paths);
        Self::with(paths, source, report, lines)
    }

    fn with(paths: &[PathBuf], source: Joined, report: Option<Value>, lines: TimeLines) -> Self {
        let mut names = source.names().clone();
        for process in report.iter().flat_map(|r| r["processes"].as_array()).flatten() {
            let pid = process["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
            if let (Some(pid), Some(name)) = (pid, process["name"].as_str()) {
                names.processes.entry(pid).or_insert_with(|| name.to_owned());
            }
        }
        let path = paths.first().cloned().unwrap_or_default();
        let meanings = Meanings::of(source.trace(), &lines.of_parts);
        let [filtered, disabled] = left_out(&source, paths, report.as_ref());
        let (paths, clocks) = (paths.to_vec(), lines.told);
        let not_traces = source.not_traces.iter().map(ToString::to_string).collect();
        let streams = source.streams();
        Self {
            path,
            paths,
            streams,
            source,
            names,
            meanings,
            report,
            filtered,
            disabled,
            clocks,
            not_traces,
        }
    }

    /// Opens a recording that is being written, from an offset in its stream files on (see
    /// [`lateralis_traces::open_behind`]).
    ///
    /// If a clock that was known before is given, as returned by [`Tail::clock`], times use it. Also
    /// returns the clock as it is known now.
    ///
    /// [`Tail::clock`]: crate::Tail::clock
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn behind_by(
        path: &Path,
        marks: &BTreeMap<String, u64>,
        clock: Option<&Clock>,
    ) -> Result<(Self, Option<Clock>), Error> {
        let (source, told) = lateralis_traces::open_behind_by(path, marks, clock)?;
        Ok((Self::of(&[path.to_owned()], source, report(path)), told))
    }

    /// Learns names that only events contain: of threads and processes in recordings of `lat record`.
    ///
    /// Cost: a pass over all events, for traces that have such events.
    pub fn learn_names(&mut self) {
        let tells = ["lateralis:PROCESS", "lateralis:THREAD_NAME"];
        let mut classes =
            self.source.trace().stream_classes.iter().flat_map(|class| &class.event_classes);
        if !classes.any(|class| tells.contains(&class.name.as_str())) {
            return;
        }
        let names = &mut self.names;
        self.source.visit(&mut |event| {
            let payload = || event.payload();
            let number = |name| u32::try_from(payload()?.get(name)?.as_u64()?).ok();
            let text = |name| Some(payload()?.get(name)?.as_text()?.into_owned());
            let (map, id) = match event.class.name.as_str() {
                "lateralis:PROCESS" => (&mut names.processes, number("pid")),
                "lateralis:THREAD_NAME" => (&mut names.threads, number("tid")),
                _ => return,
            };
            let host = event.stream_class.host;
            if let (Some(id), Some(name)) = (id.map(|id| host.thread(id)), text("name")) {
                // The name of a process in the report is the last one that the recorder saw.
                map.entry(id).or_insert(name);
            }
        });
    }

    /// The classes of the trace, with the roles from their schemas as attributes (see
    /// `lateralis_model::role`).
    pub fn annotated(&self) -> Cow<'_, Trace> {
        let is_whole = self.filtered.is_empty() && self.disabled.is_empty();
        if self.meanings.schemas().is_empty() && is_whole {
            return Cow::Borrowed(self.source.trace());
        }
        let mut trace = self.source.trace().clone();
        for (stream, class) in trace.stream_classes.iter_mut().enumerate() {
            for (index, event) in class.event_classes.iter_mut().enumerate() {
                let left_out = match &event.name {
                    name if self.filtered.contains(name) => Some(SOME),
                    name if self.disabled.contains(name) => Some(ALL),
                    _ => None,
                };
                if let Some(value) = left_out {
                    let (name, value) = (FILTERED.to_owned(), value.to_owned());
                    event.attributes.push(Attribute { name, value });
                }
                let Some(meaning) = self.meanings.get(stream, index) else {
                    continue;
                };
                for role in meaning.clauses.iter().filter_map(|clause| role(meaning, clause)) {
                    let (name, value) = (ATTRIBUTE.to_owned(), role.to_string());
                    event.attributes.push(Attribute { name, value });
                }
            }
        }
        Cow::Owned(trace)
    }

    /// Whether the tracer records the writer of each event, unless the trace is damaged.
    pub fn has_writers(&self) -> bool {
        let environment = &self.source.trace().environment;
        environment
            .iter()
            .any(|(name, value)| name == "tracer_name" && value.as_text() == Some("lateralis"))
    }

    /// Gaps: from losses and this damage, by stream if known.
    #[must_use]
    pub fn gaps(&self, damage: &[Damage]) -> Gaps {
        crate::chosen::gaps(&self.source, &self.streams, damage)
    }

    /// Errors between the times of its streams.
    #[must_use]
    pub fn clock_errors(&self) -> ClockErrors {
        ClockErrors::of(&self.source)
    }

    /// Whether it has events before and after a time range.
    #[must_use]
    pub fn is_cut(&self, to: Interval) -> (bool, bool) {
        crate::chosen::is_cut(&self.source, to)
    }

    /// Starts of recordings before which all others have ended.
    #[must_use]
    pub fn successions(&self) -> Successions {
        if self.paths.len() < 2 {
            return Successions::default();
        }
        let lengths = self.paths.iter().map(|path| self.length_of(path)).collect();
        Successions::of(lengths, self.clock_errors().most())
    }

    /// Start of the recording: its first event, in every command. Packets may begin long before; their
    /// begin is used only if there are no events.
    ///
    /// Cost: reads the first event of each stream.
    #[must_use]
    pub fn beginning(&self) -> Option<Nanos> {
        let first = self.source.events().next_event().map(|event| event.time);
        first.or_else(|| self.source.interval().begin)
    }

    /// Interval in which a recorder was at work for the recording under a path, according to its report,
    /// extended to everything recorded.
    fn length_of(&self, path: &Path) -> Option<(Nanos, Nanos)> {
        let report = report(path)?;
        let ticks = |end: &str| report["clock"][end]["ticks"].as_u64().map(Ticks);
        let (start, end) = (ticks("start")?, ticks("end")?);
        let is_under = |part: &Part| Path::new(&part.place).starts_with(path);
        let mut length: Option<(Nanos, Nanos)> = None;
        for (part, base) in self.source.parts().iter().zip(self.source.bases()) {
            if !is_under(part) {
                continue;
            }
            let clock = &base.as_ref()?.clock;
            let interval = part.source.interval();
            let (start, end) = (clock.nanos(start), clock.nanos(end));
            let start = interval.begin.map_or(start, |begin| begin.min(start));
            let end = interval.end.map_or(end, |last| last.max(end));
            let before = length.unwrap_or((start, end));
            length = Some((before.0.min(start), before.1.max(end)));
        }
        length.filter(|_| report["complete"] == true)
    }

    /// Damage found on opening, and the given damage found while reading: in the order of files and
    /// bytes.
    pub fn all_damage(&self, inside: Vec<Damage>) -> Vec<Damage> {
        let mut all = self.source.damage().to_vec();
        all.extend(inside);
        all.sort_by(|a, b| (&a.file, a.begin_bytes).cmp(&(&b.file, b.begin_bytes)));
        all
    }
}

/// Classes of which a recorder dropped some events: those with a filter, those that were disabled for a
/// while, and all classes of a program of which it left out threads. And classes of which it recorded
/// none.
fn left_out(source: &Joined, paths: &[PathBuf], known: Option<&Value>) -> [BTreeSet<String>; 2] {
    let others: Vec<Value> = match paths {
        [_] => Vec::new(),
        paths => paths.iter().filter_map(|path| report(path)).collect(),
    };
    let (mut names, mut disabled) = (BTreeSet::new(), BTreeSet::new());
    let reports = known.into_iter().chain(&others);
    let areas: Vec<&Value> = reports.flat_map(|it| it["areas"].as_array()).flatten().collect();
    for area in &areas {
        for filter in area["filters"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            names.extend(filter.split_once(": ").map(|(event, _)| event.to_owned()));
        }
        let list =
            |name: &str| area[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.extend(list("disabled_in_part").map(str::to_owned));
        disabled.extend(list("disabled").map(str::to_owned));
        if area["left_out_of_threads"].as_u64() > Some(0) {
            let of_area: Vec<String> = area["schemas"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|name| Some(format!("{}:", name.as_str()?)))
                .collect();
            let classes = source.trace().stream_classes.iter().flat_map(|it| &it.event_classes);
            let is_of_area = |name: &str| of_area.iter().any(|schema| name.starts_with(schema));
            names.extend(classes.filter(|it| is_of_area(&it.name)).map(|it| it.name.clone()));
        }
    }
    // With several programs, one may have recorded a class and another not.
    let is_recorded = |name: &String| areas.iter().any(|area| has_recorded(area, name));
    names.extend(disabled.iter().filter(|name| is_recorded(name)).cloned());
    disabled.retain(|name| !names.contains(name));
    [names, disabled]
}

/// Whether events of this class were enabled in a program.
fn has_recorded(area: &Value, class: &str) -> bool {
    let has_schemas = area["schemas"].as_array().is_some_and(|schemas| !schemas.is_empty());
    let mut off = area["disabled"].as_array().into_iter().flatten();
    has_schemas && !off.any(|name| name.as_str() == Some(class))
}
fn report(path: &Path) -> Option<Value> {
    let beside = [path.join("report.json"), path.join("../report.json")];
    let is_short = |path: &&PathBuf| {
        fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= REPORT_BYTES_MAX)
    };
    let beside = beside.iter().filter(is_short);
    beside.into_iter().find_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok())
}
