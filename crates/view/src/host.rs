// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is served: the newest state of a session, and what is to be told of how it came about.
//!
//! Whoever makes states puts them here and goes on; whoever answers takes the newest. Nobody waits
//! for a page: of states a page is told the newest when it can take it, of single words the last
//! [`SAID_MAX`].

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Problem;
use crate::session::{Session, lock};

/// Words that are kept for pages that are slow.
const SAID_MAX: usize = 64;

/// What is served.
#[derive(Default)]
pub struct Host {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    now: Option<Result<Arc<Session>, Problem>>,
    /// Grows with every change.
    changes: u64,
    /// When the session changed last.
    shown: u64,
    /// The newest word about progress, and when it came.
    progress: Option<(u64, Value)>,
    said: VecDeque<(u64, Value)>,
}

/// How far somebody has been told.
#[derive(Debug, Default)]
pub struct Told(u64);

/// What is new to somebody.
#[derive(Default)]
pub struct News {
    /// Words, in their order.
    pub said: Vec<Value>,
    /// The session, if it has changed.
    pub session: Option<Arc<Session>>,
}

impl Host {
    /// Of a session.
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

    /// This is what is served from now on.
    pub fn show(&self, session: Arc<Session>) {
        let before = self.change(|state, number| {
            state.shown = number;
            state.progress = None;
            state.now.replace(Ok(session))
        });
        // What it alone had in memory is given back without the lock.
        drop(before);
    }

    /// What is served has more than when pages were told of it.
    pub fn show_again(&self) {
        self.change(|state, number| {
            if let Some(Ok(_)) = &state.now {
                state.shown = number;
            }
        });
    }

    /// Nothing can be served.
    pub fn fail(&self, problem: Problem) {
        let error = problem.json();
        self.change(|state, _| state.now = Some(Err(problem)));
        self.say(json!({ "event": "failed", "error": error }));
    }

    /// How far an index is: `done` of `of`, where that is known.
    pub fn progress(&self, what: &str, done: u64, of: Option<u64>) {
        let word = json!({ "event": "progress", "what": what, "done": done, "of": of });
        self.change(|state, number| state.progress = Some((number, word)));
    }

    /// Something that every page is told.
    pub fn say(&self, word: Value) {
        self.change(|state, number| {
            if state.said.len() >= SAID_MAX {
                state.said.pop_front();
            }
            state.said.push_back((number, word));
        });
    }

    /// The newest state, once there is any; `None` where `is_over` comes before that.
    ///
    /// # Errors
    /// There never will be one.
    pub fn session(&self, is_over: &dyn Fn() -> bool) -> Option<Result<Arc<Session>, Problem>> {
        const LOOK: Duration = Duration::from_millis(50);
        let mut state = lock(&self.state);
        while state.now.is_none() && !is_over() {
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(|e| e.into_inner()).0;
        }
        state.now.clone()
    }

    /// Waits for something new, so long at most.
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
