// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What changed between recordings of two versions of a program.

mod functions;
mod page;

use std::path::{Path, PathBuf};

use lateralis_analysis::diff::Options;
use lateralis_images::ImageFiles;
use lateralis_model::{Source, Trace};
use lateralis_store::Recording;
use lateralis_store::compared::{Comparison, Observed};
use lateralis_store::stacks::{Gathered, Samples, gather};
use serde_json::Value;

use self::functions::Functions;
use crate::Error;
use crate::page::Page;
use crate::selection::{SelectArgs, Selection};

/// What counts as a difference.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Thresholds.
    pub options: Options,
    /// Whether only differences to the worse are reported.
    pub only_worse: bool,
    /// Whether shares of samples are compared, not their numbers.
    pub by_shares: bool,
    /// The folder that contains the files with the functions of samples.
    pub symfs: Option<PathBuf>,
}

/// The caller's part.
pub trait Caller {
    /// Opens a recording.
    ///
    /// Errors: it cannot be read.
    fn open(&mut self, path: &Path) -> Result<Recording, Error>;

    /// Receives a warning.
    fn warn(&mut self, text: &str);
}

/// Differences between recordings of the good and the bad program.
pub struct Compared {
    good: Vec<PathBuf>,
    bad: Vec<PathBuf>,
    options: Options,
    comparison: Comparison,
    functions: Option<Functions>,
}

impl Compared {
    /// Compares the selected events of good recordings with those of bad ones.
    ///
    /// Cost: a pass over each recording, one after the other; only numbers stay in memory.
    ///
    /// # Errors
    /// A recording cannot be read, or they have nothing in common.
    pub fn of(
        good: &[PathBuf],
        bad: &[PathBuf],
        select: &SelectArgs,
        settings: &Settings,
        caller: &mut dyn Caller,
    ) -> Result<Self, Error> {
        let good_seen = Seen::of(good, select, settings, caller)?;
        let bad_seen = Seen::of(bad, select, settings, caller)?;
        let traces: Vec<&Trace> = good_seen.traces.iter().chain(&bad_seen.traces).collect();
        select.check_patterns(&traces)?;
        let options = &settings.options;
        let mut comparison = Comparison::of(&good_seen.observed, &bad_seen.observed, options);
        let mut functions =
            Functions::compare(&good_seen.stacks, &bad_seen.stacks, settings.by_shares, options);
        if settings.only_worse {
            comparison.differences.retain(|difference| difference.is_worse());
            comparison.perhaps.retain(|difference| difference.is_worse());
            if let Some(functions) = &mut functions {
                functions.differences.retain(|difference| difference.is_worse());
            }
        }
        if comparison.compared == 0 && functions.is_none() {
            let name = |side: &[PathBuf]| side.first().map(|path| path.display().to_string());
            let names: Vec<String> = [good, bad].into_iter().filter_map(name).collect();
            let advice = "they have no events in common";
            return Err(Error::new("nothing to compare", names.join(" and "), advice));
        }
        let options = *options;
        Ok(Self { good: good.to_vec(), bad: bad.to_vec(), options, comparison, functions })
    }

    /// Whether there is no difference.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.comparison.differences.is_empty()
            && self.functions.as_ref().is_none_or(|functions| functions.differences.is_empty())
    }

    /// The page for people.
    #[must_use]
    pub fn page(&self) -> Page {
        let mut page = page::render((&self.good, &self.bad), &self.comparison, &self.options);
        if let Some(functions) = &self.functions {
            functions.show(&mut page);
        }
        page
    }

    /// The JSON document, without its version; times in nanoseconds.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut json = page::json((&self.good, &self.bad), &self.comparison, &self.options);
        json["functions"] = self.functions.as_ref().map(Functions::json).into();
        json
    }
}

/// Recordings of one side.
#[derive(Default)]
struct Seen {
    observed: Vec<Observed>,
    traces: Vec<Trace>,
    stacks: Vec<Gathered>,
}

impl Seen {
    /// Reads one after the other, so that only numbers stay in memory, and what can happen.
    fn of(
        paths: &[PathBuf],
        select: &SelectArgs,
        settings: &Settings,
        caller: &mut dyn Caller,
    ) -> Result<Self, Error> {
        let mut seen = Self::default();
        for path in paths {
            let mut recording = caller.open(path)?;
            if select.needs_names() {
                recording.learn_names();
            }
            let unknown = select.unknown_fields(recording.source.trace());
            unknown.iter().for_each(|warning| caller.warn(warning));
            // How often the tracer notes who writes is nothing that a program does.
            let selection = Selection::of_patterns(select, &recording, false)?;
            selection.warning().into_iter().for_each(|warning| caller.warn(warning));
            let contains = |event: &lateralis_model::Event<'_>| selection.contains(event);
            let chosen = selection.chosen(&recording, &contains);
            seen.observed.push(Observed::of(&chosen));
            let mut files = ImageFiles::new(settings.symfs.as_deref());
            if Samples::new(&mut files, &chosen.trace).are_any() {
                seen.stacks.push(gather(&chosen, &mut files, true));
            }
            selection.finish()?;
            seen.traces.push(recording.source.trace().clone());
        }
        Ok(seen)
    }
}
