// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The newest snapshot of a session, and the updates that pages have not received yet.
//!
//! Producers publish snapshots; handlers read the latest one. Neither waits for a page: a slow page
//! skips to the latest snapshot, and receives at most the last [`SAID_MAX`] messages.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Problem;
use crate::session::{Session, lock};

/// Messages that are kept for slow pages.
const SAID_MAX: usize = 64;

/// The newest snapshot, and messages to pages.
#[derive(Default)]
pub struct Host {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    now: Option<Result<Arc<Session>, Problem>>,
    /// Incremented by each change.
    changes: u64,
    /// Number of the last change of the session.
    shown: u64,
    /// The latest progress message, and its change number.
    progress: Option<(u64, Value)>,
    said: VecDeque<(u64, Value)>,
}

/// Number of the last change that a page has received.
#[derive(Debug, Default)]
pub struct Told(u64);

/// Updates since the last change that a page has received.
#[derive(Default)]
pub struct News {
    /// Messages, in order.
    pub said: Vec<Value>,
    /// The session, if it has changed.
    pub session: Option<Arc<Session>>,
}

impl Host {
    /// Creates a host that serves a session.
    #[must_use]
    pub fn of(session: Session) -> Self {
        let host = Self::default();
        host.show(Arc::new(session));
        host
    }

    fn change<T>(&self, with: impl FnOnce(&mut State, u64) -> T) -> T {
        let mut state = lock(&self.state);
        state.changes += 1;
        let number = state.changes;
        let done = with(&mut state, number);
        self.changed.notify_all();
        done
    }

    /// Replaces the served session.
    pub fn show(&self, session: Arc<Session>) {
        let before = self.change(|state, number| {
            state.shown = number;
            state.progress = None;
            state.now.replace(Ok(session))
        });
        // Its memory is released after the lock.
        drop(before);
    }

    /// Notifies pages that the served session has new results.
    pub fn show_again(&self) {
        self.change(|state, number| {
            if let Some(Ok(_)) = &state.now {
                state.shown = number;
            }
        });
    }

    /// Reports that nothing can be served.
    pub fn fail(&self, problem: Problem) {
        let error = problem.json();
        self.change(|state, _| state.now = Some(Err(problem)));
        self.say(json!({ "event": "failed", "error": error }));
    }

    /// Reports the progress of indexing: `done` out of `of`, if that is known.
    pub fn progress(&self, what: &str, done: u64, of: Option<u64>) {
        let word = json!({ "event": "progress", "what": what, "done": done, "of": of });
        self.change(|state, number| state.progress = Some((number, word)));
    }

    /// Sends a message to all pages.
    pub fn say(&self, word: Value) {
        self.change(|state, number| {
            if state.said.len() >= SAID_MAX {
                state.said.pop_front();
            }
            state.said.push_back((number, word));
        });
    }

    /// Waits for the first session and returns the newest; `None` if `is_over` returns true before
    /// there is one.
    ///
    /// # Errors
    /// If the session failed.
    pub fn session(&self, is_over: &dyn Fn() -> bool) -> Option<Result<Arc<Session>, Problem>> {
        const LOOK: Duration = Duration::from_millis(50);
        let mut state = lock(&self.state);
        while state.now.is_none() && !is_over() {
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(|e| e.into_inner()).0;
        }
        state.now.clone()
    }

    /// Waits for updates, at most `time`.
    pub fn news(&self, told: &mut Told, time: Duration) -> News {
        let mut state = lock(&self.state);
        if state.changes <= told.0 {
            let waited = self.changed.wait_timeout(state, time);
            state = waited.unwrap_or_else(|e| e.into_inner()).0;
        }
        let is_new = |number: u64| number > told.0;
        let mut said: Vec<(u64, Value)> =
            state.said.iter().filter(|(number, _)| is_new(*number)).cloned().collect();
        said.extend(state.progress.clone().filter(|(number, _)| is_new(*number)));
        said.sort_by_key(|(number, _)| *number);
        let session = match &state.now {
            Some(Ok(session)) if is_new(state.shown) => Some(Arc::clone(session)),
            _ => None,
        };
        told.0 = state.changes;
        News { said: said.into_iter().map(|(_, word)| word).collect(), session }
    }
}
