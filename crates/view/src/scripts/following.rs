// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A script that looks for activities in what comes, as long as the session grows.
//!
//! Each has a thread of its own, on which its engine stays, and reads the recording by itself as far
//! as the session has ([`Shown`]): what it costs, or that it is stopped, changes nothing else.

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

/// After so long without a newer state pages are told what was found: else with that.
const QUIET: Duration = Duration::from_millis(150);
/// Who is behind tells what was found after so much work: as often as an eye wants to see it.
const TURN: Duration = Duration::from_millis(200);
/// Work is at least so many times as long as it takes to open what is there, so that of all the time
/// a fifth at most goes into that, however much is there.
const OPENINGS: u32 = 4;

/// How often one begins anew, whose first events were forgotten before it had seen them.
const BEGINNINGS: u32 = 8;

/// How much is looked at before what was found is told.
pub struct Turn<'a> {
    is_over: &'a AtomicBool,
    begun: Instant,
    time: Duration,
    left: u64,
}

impl Turn<'_> {
    /// What is to be read is open: now it begins.
    pub fn begin(&mut self) {
        let now = Instant::now();
        self.time = TURN.max(now.duration_since(self.begun) * OPENINGS);
        self.begun = now;
    }

    /// Whether it is over with the event that was looked at.
    pub fn ends(&mut self) -> bool {
        /// Events between two looks at the clock: it takes less than looking at one of them.
        const LOOK: u64 = 16;
        self.left = self.left.saturating_sub(1);
        let is_late = || self.left.is_multiple_of(LOOK) && self.begun.elapsed() >= self.time;
        // Partner: the store of `end`. It is only about not to work in vain.
        self.left == 0 || self.is_over.load(Ordering::Relaxed) || is_late()
    }
}

#[cfg(test)]
pub fn turn_of_one() -> Turn<'static> {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    Turn { is_over: &IS_OVER, begun: Instant::now(), time: TURN, left: 1 }
}

/// Tells pages that there is more than they were told of.
#[derive(Clone, Default)]
pub struct Wake {
    count: Arc<AtomicU64>,
    tell: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Wake {
    /// That calls somebody.
    pub fn telling(tell: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { tell: Some(tell), ..Self::default() }
    }

    /// How often it was told.
    pub fn count(&self) -> u64 {
        // Partner: the addition below. Whoever sees an older number is told again.
        self.count.load(Ordering::Relaxed)
    }

    /// Lists are another.
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

/// The newest state of a session that grows.
#[derive(Default)]
pub struct Newest {
    state: Mutex<Option<Arc<State>>>,
    /// When it begins, where bytes of what was before may be gone; else 0.
    begin: AtomicU64,
}

impl Newest {
    /// There is a newer one. Before any byte goes that it does not need.
    pub fn set(&self, state: &Arc<State>) {
        *lock(&self.state) = Some(Arc::clone(state));
        let begin = if state.is_let_go { state.lanes.meta().begin } else { 0 };
        // Partner: the load of `beyond`. Whoever reads bytes that are gone by then sees it.
        self.begin.store(begin, Ordering::Release);
    }

    /// It, if there is any.
    pub fn get(&self) -> Option<Arc<State>> {
        lock(&self.state).clone()
    }

    /// It, if bytes of what was behind a time may be gone.
    ///
    /// Cost: of an event that is not: a look at a number.
    pub fn beyond(&self, time: u64) -> Option<Arc<State>> {
        // Partner: the store of `set`.
        if self.begin.load(Ordering::Acquire) <= time { None } else { self.get() }
    }
}

/// How far a session has grown.
pub struct State {
    pub lanes: Arc<Lanes>,
    pub serial: u64,
    pub lists: u64,
    pub is_live: bool,
    pub shown: Shown,
    /// Events that were forgotten; and whether their bytes go as well.
    pub forgotten: u64,
    pub is_let_go: bool,
    /// How its events are read again.
    pub marks: Arc<Vec<(i64, Marks)>>,
    pub clock: Option<Clock>,
}

impl State {
    /// Of a session that grows.
    #[must_use]
    pub fn of(session: &Session) -> Option<Self> {
        let growth = session.growth.as_ref()?;
        let (serial, lists, is_live) = (growth.serial, growth.lists, growth.is_live);
        let (lanes, shown) = (Arc::clone(&session.lanes), growth.again.shown.clone());
        let (forgotten, is_let_go) = (growth.forgotten, growth.is_let_go);
        let (marks, clock) = (Arc::clone(&growth.again.marks), growth.again.clock.clone());
        Some(Self { lanes, serial, lists, is_live, shown, forgotten, is_let_go, marks, clock })
    }

    /// The first moment that is remembered.
    pub fn begin(&self) -> i64 {
        let meta = self.lanes.meta();
        meta.origin.saturating_add_unsigned(meta.begin)
    }

    /// Reads what is remembered: begins there or before.
    pub fn tail(&self, path: &Path) -> Tail {
        let before = self.marks.partition_point(|(time, _)| *time < self.begin()).checked_sub(1);
        let nothing = Marks::default();
        let marks = before.map_or(&nothing, |at| &self.marks[at].1);
        Tail::behind(path, marks, self.clock.as_ref())
    }
}

/// What a script finds, and who looks for it.
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
    /// Of a session that does not grow.
    pub fn ended(found: Found) -> Arc<Self> {
        let found = Mutex::new(Some(Arc::new(found)));
        Arc::new(Self { found, is_over: AtomicBool::new(true), ..Self::default() })
    }

    /// Has a script look at all there is, and follow: back when there is something to tell, though
    /// that may not be all; later after so many events at least.
    ///
    /// # Errors
    /// What is wrong with the script; the recording cannot be read.
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
                    // Nobody was told anything of it: it begins with what is there by now.
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

    /// What was found by now.
    pub fn found(&self) -> Option<Arc<Found>> {
        lock(&self.found).clone()
    }

    /// Whether it looks for more.
    pub fn is_at_work(&self) -> bool {
        // Partner: the stores of `start`, `end` and `run`.
        !self.is_over.load(Ordering::Acquire)
    }

    /// The session has grown.
    pub fn go_on(&self, state: &Arc<State>) {
        if self.is_at_work() {
            let mut next = lock(&self.next);
            if next.as_ref().is_none_or(|known| known.serial < state.serial) {
                *next = Some(Arc::clone(state));
            }
            self.has_next.notify_one();
        }
    }

    /// Nobody wants it any more: what it found is given back.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        *lock(&self.next) = None;
        *lock(&self.found) = None;
        self.has_next.notify_one();
    }

    /// The next state, so long at most.
    fn wait(&self, time: Duration) -> Option<Arc<State>> {
        let mut next = lock(&self.next);
        if next.is_none() && self.is_at_work() {
            next = self.has_next.wait_timeout(next, time).unwrap_or_else(|e| e.into_inner()).0;
        }
        next.take()
    }

    /// Follows from a state on, of which not all may have been looked at.
    fn run(&self, following: &mut Following, wake: &Wake, mut state: Arc<State>) {
        let mut is_news = false;
        while self.is_at_work() {
            let is_done = following.serial >= state.serial;
            if is_done && !state.is_live {
                break;
            }
            // What there was when it began is looked at to its end, also where that is forgotten by then.
            if following.serial > 0 {
                match self.wait(if is_done { QUIET } else { Duration::ZERO }) {
                    Some(next) if next.serial > state.serial => state = next,
                    // Nobody draws anything, unless told to.
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
            // Who is behind is not quiet for long.
            if following.serial < state.serial && std::mem::take(&mut is_news) {
                wake.tell();
            }
        }
        // What has ended, or was stopped, is told once more.
        wake.tell();
    }
}

/// Stack of the thread: twice that of the script's calls, and of what calls it.
pub const STACK_BYTES: usize = 2 << 20;
