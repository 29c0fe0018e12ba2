// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace opened for reading, with what its schemas say about its events.

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
    /// All that was given.
    pub paths: Vec<PathBuf>,
    /// The traces as one.
    pub source: Joined,
    /// Its streams.
    pub streams: Vec<StreamSummary>,
    /// Names of processes and threads.
    pub names: Names,
    /// What its events mean.
    pub meanings: Meanings,
    /// `report.json`, where there is one.
    pub report: Option<Value>,
    /// Classes of which the recorder left out some events, as its reports say.
    pub filtered: BTreeSet<String>,
    /// Those that were off all the time: what they would have begun or ended is not known.
    pub disabled: BTreeSet<String>,
    /// What is to be known of how the clocks of several recordings relate: a sentence each.
    pub clocks: Vec<String>,
    /// Paths that were given beside others and hold no trace: why, a sentence each.
    pub not_traces: Vec<String>,
}

impl Recording {
    /// Opens `NAME`, `NAME/ctf`, or any other trace.
    ///
    /// Errors: if there is no trace, or a file cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_all(&[path.to_owned()], &OpenOptions::default())
    }

    /// Opens several traces as one. Paths that hold none are left out ([`Recording::not_traces`]).
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
        // As if all had one time line: a channel is the same whosever clock its messages have.
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

    /// Opens what stands behind some bytes of stream files of a recording that is being
    /// written (see [`lateralis_traces::open_behind`]).
    ///
    /// Times are by a clock that was known before, if one is given, as [`Tail::clock`] has it; and
    /// its clock as it is known now.
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

    /// Learns the names that only events tell: of threads and processes in
    /// recordings of `lat record`.
    ///
    /// Cost: a pass over all events, of traces that have such events.
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
                // What the report says of a process is what the recorder saw last.
                map.entry(id).or_insert(name);
            }
        });
    }

    /// The classes of the trace, each with what its schema says about it as
    /// attributes (see `lateralis_model::role`).
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

    /// Whether the tracer tells who wrote each event, unless it is damaged.
    pub fn has_writers(&self) -> bool {
        let environment = &self.source.trace().environment;
        environment
            .iter()
            .any(|(name, value)| name == "tracer_name" && value.as_text() == Some("lateralis"))
    }

    /// Where events are missing: by losses and this damage, of streams where it is known of
    /// which.
    #[must_use]
    pub fn gaps(&self, damage: &[Damage]) -> Gaps {
        crate::chosen::gaps(&self.source, &self.streams, damage)
    }

    /// How far times of two of its streams may be off.
    #[must_use]
    pub fn clock_errors(&self) -> ClockErrors {
        ClockErrors::of(&self.source)
    }

    /// Whether it has events before a stretch of time, and behind it.
    #[must_use]
    pub fn is_cut(&self, to: Interval) -> (bool, bool) {
        crate::chosen::is_cut(&self.source, to)
    }

    /// When recordings begin before which all others have ended.
    #[must_use]
    pub fn successions(&self) -> Successions {
        if self.paths.len() < 2 {
            return Successions::default();
        }
        let lengths = self.paths.iter().map(|path| self.length_of(path)).collect();
        Successions::of(lengths, self.clock_errors().most())
    }

    /// When the recording begins: at its first event, in every command. Packets can begin long
    /// before, and where there is no event they are all that is known.
    ///
    /// Cost: reads the first event of each stream.
    #[must_use]
    pub fn beginning(&self) -> Option<Nanos> {
        let first = self.source.events().next_event().map(|event| event.time);
        first.or_else(|| self.source.interval().begin)
    }

    /// From when to when a recorder was at work for the recording under a path, as it has said, and
    /// all that it recorded.
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

    /// Damage found on opening and, by then, while reading: in the order of
    /// files and bytes.
    pub fn all_damage(&self, inside: Vec<Damage>) -> Vec<Damage> {
        let mut all = self.source.damage().to_vec();
        all.extend(inside);
        all.sort_by(|a, b| (&a.file, a.begin_bytes).cmp(&(&b.file, b.begin_bytes)));
        all
    }
}

/// Classes of which a recorder left out some events: those with a filter, those that were off for a while,
/// and all of a program of which it left out threads. And those of which it recorded none.
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
    // Of several programs one can have recorded what another has not.
    let is_recorded = |name: &String| areas.iter().any(|area| has_recorded(area, name));
    names.extend(disabled.iter().filter(|name| is_recorded(name)).cloned());
    disabled.retain(|name| !names.contains(name));
    [names, disabled]
}

/// Whether events of this class were on in a program.
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
