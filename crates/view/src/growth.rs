// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a session knows of itself that grows.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use lateralis_lanes::Lost;
use lateralis_model::Clock;
use lateralis_store::{Recording, Shown};

use crate::answer::Problem;
use crate::indexing::Marks;
use crate::session::{Source, lock};

/// A state of a session that grows.
pub struct Growth {
    /// Which: later ones have higher numbers.
    pub serial: u64,
    /// Whether more may come.
    pub is_live: bool,
    /// Changes whenever lists have more.
    pub lists: u64,
    /// Events that were forgotten.
    pub forgotten: u64,
    /// Events that came after others of a later time.
    pub late: u64,
    /// The newest losses, each with its number.
    pub losses: Arc<Vec<(u64, Lost)>>,
    /// Whether times are by a clock that is this machine's.
    pub is_here: bool,
    /// Whether the bytes of what was forgotten go with it.
    pub is_let_go: bool,
    /// How its events are read again.
    pub again: Again,
}

impl Growth {
    /// The number of the next loss.
    #[must_use]
    pub fn next_loss(&self) -> u64 {
        self.losses.last().map_or(0, |(number, _)| number + 1)
    }
}

/// Reads events of a recording that grows again, from near where they are.
pub struct Again {
    /// Where in the files what happened behind some moments begins, by time.
    pub marks: Arc<Vec<(i64, Marks)>>,
    /// The clock that times are by.
    pub clock: Option<Clock>,
    /// Up to where in the files all was read.
    pub shown: Shown,
    /// Up to when this state reaches.
    pub end: i64,
    /// What was opened last.
    pub cached: Arc<Mutex<Option<Opened>>>,
}

/// From when to when it has all events.
pub struct Opened {
    begin: i64,
    end: i64,
    source: Arc<Source>,
}

impl Again {
    /// A recording that has the events of a stretch, both ends included.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn source(
        &self,
        paths: &[PathBuf],
        (begin, end): (i64, i64),
        made: &dyn Fn(Recording) -> Source,
    ) -> Result<Arc<Source>, Problem> {
        let end = end.min(self.end);
        if let Some(known) = &*lock(&self.cached)
            && known.begin <= begin
            && end <= known.end
        {
            return Ok(Arc::clone(&known.source));
        }
        // All that happened behind a mark's moment is behind the mark.
        let before = self.marks.partition_point(|(time, _)| *time < begin).checked_sub(1);
        let nothing = Marks::default();
        let (since, marks) =
            before.map_or((i64::MIN, &nothing), |at| (self.marks[at].0 + 1, &self.marks[at].1));
        let path = paths.first().cloned().unwrap_or_default();
        let opened = Recording::behind_by(&path, marks, self.clock.as_ref());
        let (recording, _) = opened.map_err(|error| {
            Problem::new("cannot read the recording", error.to_string(), "open it again")
        })?;
        let source = Arc::new(made(recording));
        let opened = Opened { begin: since, end: self.end, source: Arc::clone(&source) };
        *lock(&self.cached) = Some(opened);
        Ok(source)
    }
}
