// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings of a session each by itself, to be held against each other.
//!
//! On one time line two runs of a program are hours apart, and what happened on processor 0 of both is
//! one lane. A side is the session of one of the recordings alone: all methods have it by the parameter
//! `side`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lateralis_lanes::{Lane, Wanted};
use lateralis_traces::OpenOptions;
use serde_json::Value;

use crate::answer::Problem;
use crate::flow::ImageSource;
use crate::scripts::{Beside, Ran, Run};
use crate::sections::Sections;
use crate::session::{Filter, Opening, Session};

/// Recordings that can be held against each other.
const SIDES_MAX: usize = 16;

/// The sides of a session; none of one recording.
pub struct Sides {
    paths: Vec<PathBuf>,
    options: OpenOptions,
    images: Option<ImageSource>,
    sections: Option<Arc<dyn Sections>>,
    opened: Vec<OnceLock<Result<Arc<Session>, Problem>>>,
    scripts: Beside,
}

impl Sides {
    /// Of what was opened together.
    #[must_use]
    pub fn new(
        paths: &[PathBuf],
        options: &OpenOptions,
        images: Option<ImageSource>,
        sections: Option<Arc<dyn Sections>>,
    ) -> Self {
        let count = if paths.len() < 2 { 0 } else { paths.len().min(SIDES_MAX) };
        Self {
            paths: paths.to_vec(),
            options: options.clone(),
            images,
            sections,
            opened: (0..count).map(|_| OnceLock::new()).collect(),
            scripts: Beside::default(),
        }
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.opened.len() as u32
    }

    /// The path of one, as it was given.
    #[must_use]
    pub fn path(&self, side: u32) -> Option<&PathBuf> {
        self.paths.get(side as usize).filter(|_| (side as usize) < self.opened.len())
    }

    /// One; its index is made, if there is none yet, when somebody asks first.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn get(&self, side: u32) -> Result<Arc<Session>, Problem> {
        let none = || Problem::new("no such recording", side.to_string(), "load the page again");
        let (path, opened) =
            self.path(side).zip(self.opened.get(side as usize)).ok_or_else(none)?;
        let open = || {
            let paths = std::slice::from_ref(path);
            let cannot = |cause: String| {
                Problem::new("cannot read the recording", path.display().to_string(), cause)
            };
            let opening = Opening::with_images(paths, &self.options, self.images.clone());
            let opening = opening.map_err(|error| cannot(error.to_string()))?;
            let session = opening.with_sections(self.sections.clone()).index(&mut |_, _| {});
            session.map(Arc::new).map_err(|error| cannot(error.to_string()))
        };
        opened.get_or_init(open).clone()
    }

    /// A script of the whole session over one of them alone; begun, if nobody asked before.
    ///
    /// # Errors
    /// As [`Sides::get`]; there is no such script.
    pub fn script(&self, whole: &Session, side: u32, id: u32) -> Result<Arc<Run>, Problem> {
        let script = whole.common.scripts.get(id)?;
        let session = self.get(side)?;
        let place = self.path(side).map(|path| path.display().to_string());
        self.scripts.run((side, &session, place.unwrap_or_default()), (id, &script))
    }

    /// Another script has taken the place of one of the whole session.
    pub fn replaced(&self, id: u32, all: &[Arc<Ran>]) {
        self.scripts.replaced(id, all);
    }

    /// The page that ran these scripts of the whole session has gone; `all`: as they were before.
    pub fn left(&self, ids: &[u32], all: &[Arc<Ran>]) {
        ids.iter().for_each(|id| self.replaced(*id, all));
    }

    /// One of a request, and the request as that one understands it: its filter is by other
    /// numbers there. It may wait until scripts of the filter have looked at that recording.
    ///
    /// # Errors
    /// As [`Sides::get`]; there is no such filter; its scripts failed there, or it does not wait and
    /// they have not ended.
    pub fn of_request(
        &self,
        whole: &Session,
        side: u32,
        params: &Value,
        waits: bool,
    ) -> Result<(Arc<Session>, Value), Problem> {
        let session = self.get(side)?;
        let mut own = params.clone();
        if let Some(own) = own.as_object_mut() {
            own.remove("side");
        }
        if let Some(number) = params.get("filter").and_then(Value::as_u64) {
            let filter = whole.filter_of(number)?;
            let wanted = translated(whole, &session, &filter);
            // All are begun before the first is waited for.
            let runs = filter.scripts.iter().map(|id| self.script(whole, side, *id));
            let runs = runs.collect::<Result<Vec<_>, _>>()?;
            let number = |run: &Arc<Run>| if waits { run.wait() } else { run.number() };
            let scripts = runs.iter().map(number).collect::<Result<_, _>>()?;
            own["filter"] = session.filter(Filter { wanted, scripts, search: None })?.into();
        }
        Ok((session, own))
    }
}

/// What makes a lane of one session that of another.
fn identity(lane: &Lane) -> (u8, Option<u32>, Option<u32>, Option<u32>, &str) {
    let numbered = lane.cpu.or(lane.pid).or(lane.tid).is_some();
    let name = if numbered { "" } else { lane.name.as_str() };
    (lane.kind as u8, lane.cpu, lane.pid, lane.tid, name)
}

/// Places in one list of what is chosen in another.
fn carried<'a, T, K: Ord + 'a>(
    off: &BTreeSet<u32>,
    from: &'a [T],
    to: &'a [T],
    key: impl Fn(&'a T) -> K,
) -> BTreeSet<u32> {
    let chosen = off.iter().filter_map(|id| from.get(*id as usize));
    let keys: BTreeSet<K> = chosen.map(&key).collect();
    let all = (0..).zip(to);
    all.filter(|(_, one)| keys.contains(&key(one))).map(|(id, _)| id).collect()
}

/// What a filter wants in another session, by what its numbers stand for.
fn translated(whole: &Session, side: &Session, filter: &Filter) -> Wanted {
    let (from, to) = (whole.lanes.meta(), side.lanes.meta());
    Wanted {
        lanes_off: carried(&filter.wanted.lanes_off, &from.lanes, &to.lanes, identity),
        classes_off: carried(&filter.wanted.classes_off, &from.classes, &to.classes, |class| {
            class.name.as_str()
        }),
        applications_off: carried(
            &filter.wanted.applications_off,
            &from.applications,
            &to.applications,
            |application| (application.pid, application.name.as_str()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_found_by_its_name_wherever_it_stands() {
        let from = ["a", "b", "c"].map(String::from);
        let to = ["c", "x", "a", "a"].map(String::from);
        let off = BTreeSet::from([0, 1, 9]);
        assert_eq!(carried(&off, &from, &to, |name| name.as_str()), BTreeSet::from([2, 3]));
        assert_eq!(carried(&BTreeSet::new(), &from, &to, |name| name.as_str()), BTreeSet::new());
    }
}
