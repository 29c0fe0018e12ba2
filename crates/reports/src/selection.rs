// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which events of a trace a command works on. The same options everywhere.

mod by_columns;

use std::borrow::Cow;
use std::cell::RefCell;

use lateralis_analysis::filter::columns::Answer;
use lateralis_analysis::filter::{Context, Filter, field_names, matches_pattern};
use lateralis_model::{
    Damage, Event, EventClass, Events, Interval, Loss, Names, Source, StreamClass, StreamSummary,
    Trace,
};

use lateralis_units::Nanos;
use send_wrapper::SendWrapper;

use crate::Error;
use crate::moment::{self, Moment};
use crate::script;
use lateralis_script::{Script, ScriptError};
use lateralis_store::{Chosen, Recording};

/// A further choice of events, made elsewhere: the filter of a page.
pub trait EventFilter {
    /// Called before each pass over the events, which are in the order of time.
    fn begin(&self);
    /// Whether an event is chosen.
    fn keeps(&self, event: &Event<'_>) -> bool;
}

/// The record that names the writer of what follows; every line says the writer
/// already.
const WRITER: &str = "lateralis:WRITER";

/// Options that choose events.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SelectArgs {
    /// Only events whose name matches, with `*` and `?`; separate several by commas, `!` excludes
    #[cfg_attr(feature = "clap", arg(long, value_name = "PATTERN"))]
    pub event: Vec<String>,
    /// Only events of these subsystems
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_delimiter = ','))]
    pub subsystem: Vec<String>,
    /// Only events on these CPUs
    #[cfg_attr(feature = "clap", arg(long, value_name = "NUMBER", value_delimiter = ','))]
    pub cpu: Vec<u32>,
    /// Only these processes: ids, or names with `*` and `?`
    #[cfg_attr(feature = "clap", arg(long, value_name = "PID|NAME", value_delimiter = ','))]
    pub app: Vec<String>,
    /// Only these threads: ids, or names with `*` and `?`
    #[cfg_attr(feature = "clap", arg(long, value_name = "TID|NAME", value_delimiter = ','))]
    pub thread: Vec<String>,
    /// Only events that match an expression: `bytes > 4k && $process == "redis"`; see `lat print --help`
    #[cfg_attr(feature = "clap", arg(long = "where", value_name = "EXPRESSION"))]
    pub condition: Vec<String>,
    /// Only events that a JavaScript filter accepts: a file (NAME.js), or an expression such as
    /// `event.fields.bytes > 4096 && event.cpu === 2`
    #[cfg_attr(feature = "clap", arg(long, value_name = "SCRIPT.js"))]
    pub filter: Vec<String>,
    /// Only events from this time on: 1.5s (after the beginning), -1s (before the end), or any time that
    /// lat prints: HH:MM:SS or a date in UTC, nanoseconds, @SECONDS since 1970
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", allow_hyphen_values = true))]
    pub from: Option<Moment>,
    /// Only events before this time; forms as for --from
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", allow_hyphen_values = true))]
    pub until: Option<Moment>,
}

impl SelectArgs {
    /// What the options say together; `None` if they choose nothing in particular.
    ///
    /// Errors: an expression that cannot be understood.
    fn filter(&self) -> Result<Option<Filter>, Error> {
        let any = |items: &[String]| format!("({})", items.join(" || "));
        let mut all: Vec<String> = Vec::new();
        for (list, id, name) in [(&self.app, "pid", "process"), (&self.thread, "tid", "thread")] {
            let one = |who: &String| match who.parse::<u32>() {
                Ok(number) => format!("${id} == {number} || ${name} == {}", quoted(who)),
                Err(_) => format!("${name} =~ {}", quoted(who)),
            };
            if !list.is_empty() {
                all.push(any(&list.iter().map(one).collect::<Vec<_>>()));
            }
        }
        if !self.subsystem.is_empty() {
            let one = |name: &String| format!("$subsystem =~ {}", quoted(name));
            all.push(any(&self.subsystem.iter().map(one).collect::<Vec<_>>()));
        }
        if !self.cpu.is_empty() {
            let one = |cpu: &u32| format!("$cpu == {cpu}");
            all.push(any(&self.cpu.iter().map(one).collect::<Vec<_>>()));
        }
        for condition in &self.condition {
            Filter::parse(condition).map_err(|error| {
                Error::new("cannot understand the expression", condition, error.to_string())
            })?;
            all.push(format!("({condition})"));
        }
        let filter = (!all.is_empty()).then(|| Filter::parse(&all.join(" && ")));
        filter.transpose().map_err(|error| {
            Error::new("cannot select events", all.join(" && "), error.to_string())
        })
    }

    fn patterns(&self) -> Vec<&str> {
        self.event.iter().flat_map(|list| list.split(',')).filter(|p| !p.is_empty()).collect()
    }

    /// Errors: a pattern that matches no event of any of the traces, with the names there are.
    pub fn check_patterns(&self, traces: &[&Trace]) -> Result<(), Error> {
        let classes = || traces.iter().flat_map(|trace| &trace.stream_classes);
        let names = || classes().flat_map(|stream| &stream.event_classes).map(|event| &event.name);
        let patterns = self.patterns();
        let unused = patterns.iter().find(|pattern| {
            let pattern = pattern.trim_start_matches('!');
            !names().any(|name| matches_pattern(pattern, name))
        });
        let Some(pattern) = unused else { return Ok(()) };
        let some: Vec<&str> = names().take(12).map(String::as_str).collect();
        let whose = if traces.len() == 1 { "the trace" } else { "the traces" };
        let has = if traces.len() == 1 { "it has" } else { "they have" };
        let advice = format!("no event of {whose} matches {pattern}: {has} {}", some.join(", "));
        Err(Error::new("cannot select events", self.event.join(","), advice))
    }

    /// Warnings of fields in the expressions that no event of the trace has, with the nearest names: such
    /// an expression selects nothing, or everything.
    #[must_use]
    pub fn unknown_fields(&self, trace: &Trace) -> Vec<String> {
        // An expression that cannot be understood is an error of the command.
        let filters = self.condition.iter().filter_map(|text| Filter::parse(text).ok());
        let unknown: Vec<String> =
            filters.flat_map(|filter| filter.unknown_fields(trace)).collect();
        let names = if unknown.is_empty() { Vec::new() } else { field_names(trace) };
        let warning = |name: &String| {
            let advice = advice(name, &names);
            format!("no event of the trace has a field `{name}`: {advice}")
        };
        unknown.iter().map(warning).collect()
    }

    /// Whether names are needed that only events tell.
    pub fn needs_names(&self) -> bool {
        let by_name = |text: &String| text.contains("$process") || text.contains("$thread");
        !self.app.is_empty()
            || !self.thread.is_empty()
            // Scripts may ask for them in any way.
            || !self.filter.is_empty()
            || self.condition.iter().any(by_name)
    }
}

/// Names that are shown where none is near.
const NAMES_SHOWN: usize = 12;

/// The names nearest to one that is wrong, else some that there are.
fn advice(wrong: &str, names: &[&str]) -> String {
    let first = wrong.split(['.', '[']).next().unwrap_or(wrong);
    if names.contains(&first) {
        return format!("`{first}` has nothing of that name in it");
    }
    let near = |name: &&&str| strsim::jaro_winkler(first, name) >= 0.8;
    let mut near: Vec<&str> = names.iter().filter(near).copied().collect();
    near.sort_by(|a, b| strsim::jaro_winkler(first, b).total_cmp(&strsim::jaro_winkler(first, a)));
    let quoted = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    match (near.as_slice(), names) {
        ([], []) => "it has no fields".to_owned(),
        ([], names) if names.len() > NAMES_SHOWN => {
            format!(
                "it has {} and {} more",
                quoted(&names[..NAMES_SHOWN]),
                names.len() - NAMES_SHOWN
            )
        }
        ([], names) => format!("it has {}", quoted(names)),
        (near, _) => format!("did you mean {}?", quoted(&near[..near.len().min(3)])),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Scripts that choose, and why one of them failed.
#[derive(Default)]
struct Scripts {
    all: Vec<Script>,
    failed: Option<ScriptError>,
}

impl Scripts {
    /// Whether all keep an event; none once one has failed.
    fn keep(&mut self, event: &Event<'_>, context: &Context<'_>) -> bool {
        if self.failed.is_some() {
            return false;
        }
        self.all.iter_mut().all(|script| match script.keeps(event, context) {
            Ok(kept) => kept,
            Err(error) => {
                self.failed = Some(error);
                false
            }
        })
    }
}

/// Chosen events of a recording.
pub struct Selection<'r> {
    /// One bit per event class, so that choosing by name costs an index.
    chosen: Vec<Vec<bool>>,
    filter: Option<Filter>,
    /// A script's engine belongs to one thread, and events are chosen in the one that reads
    /// them: no other comes here.
    scripts: SendWrapper<RefCell<Scripts>>,
    /// A filter of the page, of the thread that reads the events.
    page: SendWrapper<Option<&'r dyn EventFilter>>,
    is_cancelled: Option<&'r (dyn Fn() -> bool + Sync)>,
    interval: Interval,
    /// Of a time that the recording does not have.
    warning: Option<String>,
    names: &'r Names,
    streams: &'r [StreamSummary],
}

impl<'r> Selection<'r> {
    /// What the options choose in a recording; `all` includes bookkeeping records
    /// where no pattern says so.
    ///
    /// Errors: a pattern that matches no event of the trace, with the names there
    /// are; an expression that cannot be understood.
    pub fn new(args: &SelectArgs, recording: &'r Recording, all: bool) -> Result<Self, Error> {
        args.check_patterns(&[recording.source.trace()])?;
        Self::of_patterns(args, recording, all)
    }

    /// As [`Selection::new`], of patterns that may match no event of this recording.
    ///
    /// Errors: an expression that cannot be understood.
    pub fn of_patterns(
        args: &SelectArgs,
        recording: &'r Recording,
        all: bool,
    ) -> Result<Self, Error> {
        let extent = moment::extent(recording, [args.from, args.until]);
        let (interval, warning) = moment::between(extent, args.from, args.until);
        Ok(Self { warning, ..Self::within(args, recording, all, interval)? })
    }

    /// As [`Selection::of_patterns`], of the time that --from and --until come to.
    ///
    /// Errors: an expression that cannot be understood.
    pub fn within(
        args: &SelectArgs,
        recording: &'r Recording,
        all: bool,
        interval: Interval,
    ) -> Result<Self, Error> {
        let trace = recording.source.trace();
        let patterns = args.patterns();
        let wanted = |name: &str| match patterns.as_slice() {
            [] => all || name != WRITER,
            patterns => chosen(patterns, name),
        };
        let filter = args.filter()?;
        // What a class does not have cannot be chosen by it.
        let never = |stream: &StreamClass, event: &EventClass| {
            let plan = filter.as_ref().map(|filter| filter.plan(stream, event));
            plan.is_some_and(|plan| plan.constant() == Some(Answer::No))
        };
        let class = |stream: &StreamClass| {
            let chosen = |event: &EventClass| wanted(&event.name) && !never(stream, event);
            stream.event_classes.iter().map(chosen).collect()
        };
        let scripts: Result<Vec<Script>, Error> =
            args.filter.iter().map(|given| script::load_filter(given)).collect();
        Ok(Self {
            chosen: trace.stream_classes.iter().map(class).collect(),
            filter,
            scripts: SendWrapper::new(RefCell::new(Scripts { all: scripts?, failed: None })),
            page: SendWrapper::new(None),
            is_cancelled: None,
            interval,
            warning: None,
            names: &recording.names,
            streams: &recording.streams,
        })
    }

    /// Only events that a filter of the page keeps, too, until it is cancelled.
    pub fn of_page(
        self,
        filter: Option<&'r dyn EventFilter>,
        is_cancelled: &'r (dyn Fn() -> bool + Sync),
    ) -> Self {
        Self { page: SendWrapper::new(filter), is_cancelled: Some(is_cancelled), ..self }
    }

    /// Whether the result is not wanted any more.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.is_some_and(|is_cancelled| is_cancelled())
    }

    /// To be called before each pass over its events.
    pub fn begin_pass(&self) {
        if let Some(page) = *self.page {
            page.begin();
        }
    }

    /// A warning if the recording has nothing of the time that is chosen.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The time that is chosen.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Whether a moment is in the time that is chosen.
    pub fn is_within(&self, time: Nanos) -> bool {
        by_columns::contains(self.interval, time)
    }

    /// The events of the recording that it contains, for analyses; `contains` is
    /// [`Selection::contains`].
    pub fn chosen<'a>(
        &self,
        recording: &'a Recording,
        contains: &'a dyn Fn(&Event<'_>) -> bool,
    ) -> Chosen<'a> {
        Chosen { interval: self.interval, contains, ..Chosen::all(recording) }
    }

    /// Whether it contains every event of its interval.
    pub fn is_everything(&self) -> bool {
        self.filter.is_none()
            && self.page.is_none()
            && self.scripts.borrow().all.is_empty()
            && self.chosen.iter().flatten().all(|chosen| *chosen)
    }

    /// Whether an event of that time is chosen.
    #[inline]
    pub fn contains(&self, event: &Event<'_>) -> bool {
        let stream = self.chosen.get(event.stream_class_index as usize);
        let class = stream.and_then(|events| events.get(event.class_index as usize)).copied();
        let context = Context { names: self.names, streams: self.streams };
        class.unwrap_or(true)
            && self.filter.as_ref().is_none_or(|filter| filter.matches(event, &context))
            && self.scripts.borrow_mut().keep(event, &context)
            && self.page.is_none_or(|page| page.keeps(event))
    }

    /// Whether a script has failed, or the result is not wanted: nothing is chosen any more.
    pub fn has_failed(&self) -> bool {
        self.scripts.borrow().failed.is_some() || self.is_cancelled()
    }

    /// To be asked behind the last event.
    ///
    /// Errors: that of a script that failed.
    pub fn finish(&self) -> Result<(), Error> {
        self.scripts.borrow_mut().failed.take().map_or(Ok(()), |error| Err(script::error(error)))
    }
}

/// The chosen events of a recording as a trace of their own.
pub struct Selected<'r> {
    /// The recording.
    pub recording: &'r Recording,
    /// What is chosen.
    pub selection: &'r Selection<'r>,
    /// Its classes, perhaps with attributes of their own.
    pub trace: Cow<'r, Trace>,
}

impl Source for Selected<'_> {
    fn format(&self) -> &str {
        self.recording.source.format()
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    fn streams(&self) -> Vec<StreamSummary> {
        self.recording.streams.clone()
    }

    fn interval(&self) -> Interval {
        self.recording.source.interval()
    }

    fn losses(&self) -> &[Loss] {
        self.recording.source.losses()
    }

    fn damage(&self) -> &[Damage] {
        self.recording.source.damage()
    }

    fn faults(&self) -> Vec<String> {
        self.recording.source.faults()
    }

    fn remarks(&self) -> Vec<String> {
        self.recording.source.remarks()
    }

    fn names(&self) -> &Names {
        &self.recording.names
    }

    fn events_in(&self, interval: Interval) -> Box<dyn Events + '_> {
        let chosen = self.selection.interval();
        let interval = Interval {
            begin: interval.begin.max(chosen.begin),
            end: interval.end.into_iter().chain(chosen.end).min(),
        };
        let events = self.recording.source.events_in(interval);
        if self.selection.is_everything() {
            return events;
        }
        Box::new(SelectedEvents { events, selection: self.selection })
    }
}

struct SelectedEvents<'a> {
    events: Box<dyn Events + 'a>,
    selection: &'a Selection<'a>,
}

impl Events for SelectedEvents<'_> {
    fn advance(&mut self) -> bool {
        while !self.selection.has_failed() && self.events.advance() {
            if self.selection.contains(&self.events.event()) {
                return true;
            }
        }
        false
    }

    fn event(&self) -> Event<'_> {
        self.events.event()
    }

    fn damage(&self) -> Vec<Damage> {
        self.events.damage()
    }
}

/// The last pattern that matches decides; if all only exclude, the rest is in.
fn chosen(patterns: &[&str], name: &str) -> bool {
    let default = patterns.iter().all(|pattern| pattern.starts_with('!'));
    patterns.iter().fold(default, |chosen, pattern| match pattern.strip_prefix('!') {
        Some(pattern) if matches_pattern(pattern, name) => false,
        None if matches_pattern(pattern, name) => true,
        _ => chosen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_advised() {
        let names = ["addr", "bytes", "byte_count", "state"];
        assert_eq!(advice("byts", &names), "did you mean `bytes`?");
        assert_eq!(advice("stat.x", &names), "did you mean `state`?");
        assert_eq!(advice("addr.port", &names), "`addr` has nothing of that name in it");
        assert_eq!(advice("q", &names[..2]), "it has `addr`, `bytes`");
        assert_eq!(advice("q", &[]), "it has no fields");
        assert!(advice("q", &["zz"; 20]).ends_with("`zz` and 8 more"));
    }

    #[test]
    fn the_last_match_decides() {
        assert!(chosen(&["a:*", "!a:B"], "a:C"));
        assert!(!chosen(&["a:*", "!a:B"], "a:B"));
        assert!(!chosen(&["a:*"], "b:C"));
        assert!(chosen(&["!a:*"], "b:C"));
        assert!(chosen(&["!a:*", "a:B"], "a:B"));
    }

    #[test]
    fn options_become_one_expression() {
        let args = SelectArgs {
            app: vec!["7".into(), "redis-*".into(), "odd\"name".into()],
            cpu: vec![0, 2],
            condition: vec!["bytes > 1k".into()],
            ..SelectArgs::default()
        };
        let expected = Filter::parse(
            "($pid == 7 || $process == \"7\" || $process =~ \"redis-*\" \
             || $process =~ \"odd\\\"name\") && ($cpu == 0 || $cpu == 2) && (bytes > 1k)",
        );
        assert_eq!(args.filter().unwrap(), Some(expected.unwrap()));
        assert_eq!(SelectArgs::default().filter().unwrap(), None);
        let wrong = SelectArgs { condition: vec!["bytes >".into()], ..SelectArgs::default() };
        assert!(wrong.filter().unwrap_err().to_string().contains("column 8"));
    }
}
