// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts that find spans in a live session.
//!
//! Each script has a thread of its own, on which its engine stays, and reads the recording itself
//! as far as the session has read it ([`Shown`]): a slow or stopped script delays nothing else.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use lateralis_lanes::Lanes;
use lateralis_model::Clock;
use lateralis_store::{Shown, Tail};

use super::found::Found;
use super::looking::Following;
use crate::answer::Problem;
use crate::indexing::Marks;
use crate::session::{Session, lock};

/// Results are announced separately if no snapshot arrived for this time; otherwise the snapshot
/// announces them.
const QUIET: Duration = Duration::from_millis(150);
/// Length of a turn, after which a lagging script publishes its results; longer if opening the
/// recording takes long ([`OPENINGS`]).
const TURN: Duration = Duration::from_millis(200);
/// A turn takes at least this multiple of the time needed to open the recording, so that opening
/// takes at most a fifth of the time, whatever the size of the recording.
const OPENINGS: u32 = 4;

/// Limit of restarts of a script whose first events were evicted before it examined them.
const BEGINNINGS: u32 = 8;

/// Amount of work until results are published.
pub struct Turn<'a> {
    is_over: &'a AtomicBool,
    begun: Instant,
    time: Duration,
    left: u64,
}

impl Turn<'_> {
    /// Starts the turn, after the recording was opened.
    pub fn begin(&mut self) {
        let now = Instant::now();
        self.time = TURN.max(now.duration_since(self.begun) * OPENINGS);
        self.begun = now;
    }

    /// Whether the turn ends after the event just examined.
    pub fn ends(&mut self) -> bool {
        /// Number of events between two clock readings; a reading takes less time than examining an event.
        const LOOK: u64 = 16;
        self.left = self.left.saturating_sub(1);
        let is_late = || self.left.is_multiple_of(LOOK) && self.begun.elapsed() >= self.time;
        // Partner: the store of `end`. It only avoids useless work.
        self.left == 0 || self.is_over.load(Ordering::Relaxed) || is_late()
    }
}

#[cfg(test)]
pub fn turn_of_one() -> Turn<'static> {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    Turn { is_over: &IS_OVER, begun: Instant::now(), time: TURN, left: 1 }
}

/// Notifies pages of new results.
#[derive(Clone, Default)]
pub struct Wake {
    count: Arc<AtomicU64>,
    tell: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Wake {
    /// Creates a notifier that calls `tell`.
    pub fn telling(tell: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { tell: Some(tell), ..Self::default() }
    }

    /// Number of changes of the results' lists.
    pub fn count(&self) -> u64 {
        // Partner: the addition below. A page with an older number is notified again.
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a change of the lists.
    fn note(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn tell(&self) {
        self.note();
        if let Some(tell) = &self.tell {
            tell();
        }
    }
}

/// The newest snapshot of a live session.
#[derive(Default)]
pub struct Newest {
    state: Mutex<Option<Arc<State>>>,
    /// Begin of the session if earlier bytes may be released; else 0.
    begin: AtomicU64,
}

impl Newest {
    /// Sets a newer snapshot. Must be called before any byte is released that the snapshot does not need.
    pub fn set(&self, state: &Arc<State>) {
        *lock(&self.state) = Some(Arc::clone(state));
        let begin = if state.is_let_go { state.lanes.meta().begin } else { 0 };
        // Partner: the load of `beyond`. A script that reads released bytes afterwards detects it
        // by this value.
        self.begin.store(begin, Ordering::Release);
    }

    /// Returns the newest snapshot, if any.
    pub fn get(&self) -> Option<Arc<State>> {
        lock(&self.state).clone()
    }

    /// Returns the newest snapshot if bytes of events after `time` may have been released.
    ///
    /// Cost: one atomic load otherwise.
    pub fn beyond(&self, time: u64) -> Option<Arc<State>> {
        // Partner: the store of `set`.
        if self.begin.load(Ordering::Acquire) <= time { None } else { self.get() }
    }
}

/// Parts of a snapshot that scripts need.
pub struct State {
    pub lanes: Arc<Lanes>,
    pub serial: u64,
    pub lists: u64,
    pub is_live: bool,
    pub shown: Shown,
    /// Number of evicted events, and whether their bytes are released as well.
    pub forgotten: u64,
    pub is_let_go: bool,
    /// Where and with which clock events are read again.
    pub marks: Arc<Vec<(i64, Marks)>>,
    pub clock: Option<Clock>,
}

impl State {
    /// Creates it from a live session; `None` if the session is not live.
    #[must_use]
    pub fn of(session: &Session) -> Option<Self> {
        let growth = session.growth.as_ref()?;
        let (serial, lists, is_live) = (growth.serial, growth.lists, growth.is_live);
        let (lanes, shown) = (Arc::clone(&session.lanes), growth.again.shown.clone());
        let (forgotten, is_let_go) = (growth.forgotten, growth.is_let_go);
        let (marks, clock) = (Arc::clone(&growth.again.marks), growth.again.clock.clone());
        Some(Self { lanes, serial, lists, is_live, shown, forgotten, is_let_go, marks, clock })
    }

    /// Time of the first event that is not evicted.
    pub fn begin(&self) -> i64 {
        let meta = self.lanes.meta();
        meta.origin.saturating_add_unsigned(meta.begin)
    }

    /// Creates a reader that starts at or before the first event that is not evicted.
    pub fn tail(&self, path: &Path) -> Tail {
        let before = self.marks.partition_point(|(time, _)| *time < self.begin()).checked_sub(1);
        let nothing = Marks::default();
        let marks = before.map_or(&nothing, |at| &self.marks[at].1);
        Tail::behind(path, marks, self.clock.as_ref())
    }
}

/// A script of a live session, with its thread and its results.
#[derive(Default)]
pub struct Follower {
    found: Mutex<Option<Arc<Found>>>,
    next: Mutex<Option<Arc<State>>>,
    has_next: Condvar,
    is_over: AtomicBool,
    turn_events: u64,
    newest: Arc<Newest>,
}

impl Follower {
    /// Creates the result of a script in a session that is not live.
    pub fn ended(found: Found) -> Arc<Self> {
        let found = Mutex::new(Some(Arc::new(found)));
        Arc::new(Self { found, is_over: AtomicBool::new(true), ..Self::default() })
    }

    /// Starts a script, and returns when it has first results, which may be incomplete. It then
    /// follows the session; results are published after at most `turn_events` events.
    ///
    /// # Errors
    /// If the script is wrong, or the recording cannot be read.
    pub fn start(
        session: &Session,
        (name, text): (&str, &str),
        (wake, turn_events): (&Wake, u64),
        newest: &Arc<Newest>,
    ) -> Result<Arc<Self>, Problem> {
        let fault = |what: String| Problem::new("cannot follow the recording", what, "");
        let state = State::of(session).ok_or_else(|| fault("it does not grow".into()))?;
        let path = session.paths().first().cloned().unwrap_or_default();
        let newest = Arc::clone(newest);
        let own = Arc::new(Self { turn_events, newest, ..Self::default() });
        let (shared, wake) = (Arc::clone(&own), wake.clone());
        let (name, text) = (name.to_owned(), text.to_owned());
        let (done, first) = mpsc::channel();
        let work = move || {
            let (mut state, mut left) = (Arc::new(state), BEGINNINGS);
            let (mut following, looked) = loop {
                let mut following = match Following::new(&name, &text, &path, &state) {
                    Ok(following) => following,
                    Err(error) => return drop(done.send(Err(error))),
                };
                let looked = following.look(&state, &shared.newest, shared.turn());
                left -= 1;
                match shared.newest.get() {
                    // Nothing was published yet: restart with the current begin of the session.
                    Some(newer) if following.is_overtaken && left > 0 => state = newer,
                    _ => break (following, looked),
                }
            };
            let is_good = looked.is_ok();
            shared.publish(following.found(&state, None));
            let _ = done.send(looked);
            if is_good {
                shared.run(&mut following, &wake, state);
            }
            shared.is_over.store(true, Ordering::Release);
        };
        let thread = thread::Builder::new().name("script".into()).stack_size(STACK_BYTES);
        thread.spawn(work).map_err(|error| fault(error.to_string()))?;
        first.recv().map_err(|_| fault("its thread has ended".into()))??;
        Ok(own)
    }

    fn turn(&self) -> Turn<'_> {
        let left = self.turn_events.max(1);
        Turn { is_over: &self.is_over, begun: Instant::now(), time: TURN, left }
    }

    fn publish(&self, found: Found) {
        *lock(&self.found) = Some(Arc::new(found));
    }

    /// The latest results.
    pub fn found(&self) -> Option<Arc<Found>> {
        lock(&self.found).clone()
    }

    /// Whether the script is still running.
    pub fn is_at_work(&self) -> bool {
        // Partner: the stores of `start`, `end` and `run`.
        !self.is_over.load(Ordering::Acquire)
    }

    /// Passes a newer snapshot to the script.
    pub fn go_on(&self, state: &Arc<State>) {
        if self.is_at_work() {
            let mut next = lock(&self.next);
            if next.as_ref().is_none_or(|known| known.serial < state.serial) {
                *next = Some(Arc::clone(state));
            }
            self.has_next.notify_one();
        }
    }

    /// Stops the script and drops its results.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        *lock(&self.next) = None;
        *lock(&self.found) = None;
        self.has_next.notify_one();
    }

    /// Waits for the next snapshot, at most `time`.
    fn wait(&self, time: Duration) -> Option<Arc<State>> {
        let mut next = lock(&self.next);
        if next.is_none() && self.is_at_work() {
            next = self.has_next.wait_timeout(next, time).unwrap_or_else(|e| e.into_inner()).0;
        }
        next.take()
    }

    /// Follows the session, starting with a snapshot that may not be examined completely.
    fn run(&self, following: &mut Following, wake: &Wake, mut state: Arc<State>) {
        let mut is_news = false;
        while self.is_at_work() {
            let is_done = following.serial >= state.serial;
            if is_done && !state.is_live {
                break;
            }
            // The events of the first snapshot are examined to the end, even if they are evicted
            // meanwhile.
            if following.serial > 0 {
                match self.wait(if is_done { QUIET } else { Duration::ZERO }) {
                    Some(next) if next.serial > state.serial => state = next,
                    // Pages only redraw when they are notified.
                    None if is_done && std::mem::take(&mut is_news) => wake.tell(),
                    _ => {}
                }
            }
            if following.serial >= state.serial {
                continue;
            }
            let before = (following.count, following.lists());
            let stopped = following.look(&state, &self.newest, self.turn()).err();
            if !self.is_at_work() {
                return;
            }
            let is_stopped = stopped.is_some();
            self.publish(following.found(&state, stopped));
            if before.1 != following.lists() {
                wake.note();
            }
            is_news |= before != (following.count, following.lists());
            if is_stopped {
                break;
            }
            // A lagging script announces its results after each turn.
            if following.serial < state.serial && std::mem::take(&mut is_news) {
                wake.tell();
            }
        }
        // The final results are announced as well.
        wake.tell();
    }
}

/// Stack size of the thread: twice the size that calls of a script and the engine need.
pub const STACK_BYTES: usize = 2 << 20;
