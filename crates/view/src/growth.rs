// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of a live session.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use lateralis_lanes::Lost;
use lateralis_model::Clock;
use lateralis_store::{Recording, Shown};

use crate::answer::Problem;
use crate::indexing::Marks;
use crate::session::{Source, lock};

/// A snapshot of a live session.
pub struct Growth {
    /// Number of the snapshot; later ones have higher numbers.
    pub serial: u64,
    /// Whether more events may arrive.
    pub is_live: bool,
    /// Changes whenever entries are added to the lists.
    pub lists: u64,
    /// Number of evicted events.
    pub forgotten: u64,
    /// Number of events that arrived out of order, after events with a later time.
    pub late: u64,
    /// The newest losses, each with its number.
    pub losses: Arc<Vec<(u64, Lost)>>,
    /// Whether times are by a clock of this machine.
    pub is_here: bool,
    /// Whether the file bytes of evicted events are released as well.
    pub is_let_go: bool,
    /// Reads events of the recording again.
    pub again: Again,
}

impl Growth {
    /// Number that the next loss gets.
    #[must_use]
    pub fn next_loss(&self) -> u64 {
        self.losses.last().map_or(0, |(number, _)| number + 1)
    }
}

/// Reads events of a live recording again, starting near the requested time.
pub struct Again {
    /// File positions by time: all events after the time are located after the positions.
    pub marks: Arc<Vec<(i64, Marks)>>,
    /// Clock of the times.
    pub clock: Option<Clock>,
    /// File positions up to which everything was read.
    pub shown: Shown,
    /// Time of the end of this snapshot.
    pub end: i64,
    /// The recording that was opened last.
    pub cached: Arc<Mutex<Option<Opened>>>,
}

/// An opened recording, and the time range in which it has all events.
pub struct Opened {
    begin: i64,
    end: i64,
    source: Arc<Source>,
}

impl Again {
    /// Opens the recording so that it contains all events of a time range, both ends included.
    ///
    /// # Errors
    /// If it cannot be read.
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
        // All events after the time of a mark are located after its positions.
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
