// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a page is told without asking: spec/view.md §5.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::host::{Host, Told};
use crate::session::{Session, lock};

/// From a word about growth to the next, for a page that has drawn what the one before told of. Less
/// than from one state of a session to the next (60 ms, as `lat view` flushes): a state is told when
/// it is made. Were it to wait for its turn, it would be older by as much as that takes.
const SOONEST: Duration = Duration::from_millis(40);
/// The same for one that asks for nothing, or has not got yet what it asked for.
const LATEST: Duration = Duration::from_millis(100);
/// Between two looks whether the page has gone.
const LOOK: Duration = Duration::from_millis(200);
/// Losses of one word; of more the page asks for all.
const LOSSES_MAX: usize = 100;
/// The page has not asked for lists yet: it is told of no growth.
const NOT_OPENED: u64 = u64::MAX;

/// What one page knows.
pub struct Pushing {
    /// The loss that it is told next.
    next_loss: AtomicU64,
    asked: Mutex<Asked>,
    answered: Condvar,
}

/// What a page has asked for.
#[derive(Default)]
struct Asked {
    /// Requests that have no answer yet.
    open: u64,
    /// Whether any came since it was told last.
    is_any: bool,
}

impl Default for Pushing {
    fn default() -> Self {
        let next_loss = AtomicU64::new(NOT_OPENED);
        Self { next_loss, asked: Mutex::default(), answered: Condvar::new() }
    }
}

impl Pushing {
    /// The page asks for something.
    pub fn asks(&self) {
        let mut asked = lock(&self.asked);
        asked.open += 1;
        asked.is_any = true;
    }

    /// It has got so many answers, or will get none.
    pub fn is_answered(&self, requests: usize) {
        let mut asked = lock(&self.asked);
        asked.open = asked.open.saturating_sub(requests as u64);
        if asked.open == 0 {
            self.answered.notify_all();
        }
    }

    /// Waits until the page can be told again: one that is slow is told less often, so that what it
    /// asks for is of the newest that there is.
    fn wait(&self, told: Instant) {
        let mut asked = lock(&self.asked);
        loop {
            let is_done = asked.is_any && asked.open == 0;
            let until = told + if is_done { SOONEST } else { LATEST };
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            asked = self.answered.wait_timeout(asked, left).unwrap_or_else(|e| e.into_inner()).0;
        }
        asked.is_any = false;
    }

    /// The page gets all lists of this state.
    pub fn opened(&self, session: &Session) {
        let next = session.growth.as_ref().map_or(0, |growth| growth.next_loss());
        // Partner: the load below. Of two at the same time either is right: losses are told once
        // more, or with the lists.
        self.next_loss.store(next, Ordering::Relaxed);
    }

    /// Tells what is new until the page has gone, or takes no more: false.
    pub fn run(
        &self,
        host: &Host,
        is_over: &dyn Fn() -> bool,
        send: &mut dyn FnMut(String) -> bool,
    ) -> bool {
        let mut told = Told::default();
        let mut told_at = None;
        while !is_over() {
            if let Some(at) = told_at.take() {
                self.wait(at);
            }
            let news = host.news(&mut told, LOOK);
            // First how far it has grown, then that it has ended.
            if let Some(session) = news.session
                && let Some(word) = self.grown(&session)
            {
                if !send(word.to_string()) {
                    return false;
                }
                told_at = Some(Instant::now());
            }
            if !news.said.into_iter().all(|word| send(word.to_string())) {
                return false;
            }
        }
        true
    }

    fn grown(&self, session: &Session) -> Option<Value> {
        let growth = session.growth.as_ref()?;
        // Partner: the store above.
        let next = self.next_loss.load(Ordering::Relaxed);
        if next == NOT_OPENED {
            return None;
        }
        let meta = session.lanes.meta();
        let fresh = growth.losses.iter().filter(|(number, _)| *number >= next);
        let losses: Vec<Value> = fresh
            .take(LOSSES_MAX + 1)
            .map(|(_, loss)| {
                let (begin, end) = (loss.begin, loss.end);
                json!({ "lane": loss.lane, "begin": begin, "end": end, "count": loss.count,
                    "cause": loss.cause })
            })
            .collect();
        self.next_loss.store(growth.next_loss(), Ordering::Relaxed);
        // Lists are another whenever losses are too many to be told: only their number counts.
        let is_too_many = losses.len() > LOSSES_MAX;
        let known = growth.lists + session.common.scripts.lists();
        let lists = known + if is_too_many { growth.next_loss() } else { 0 };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let now = now.and_then(|since| i64::try_from(since.as_nanos()).ok());
        let newest = meta.origin.saturating_add_unsigned(meta.end);
        let age = now.filter(|_| growth.is_here).map(|now| now.saturating_sub(newest));
        Some(json!({
            "event": "grown",
            "begin": meta.begin,
            "end": meta.end,
            "events": session.lanes.event_count(),
            "lists": lists,
            "gone": { "events": growth.forgotten },
            "age_ns": age,
            "losses": losses.into_iter().take(LOSSES_MAX).collect::<Vec<_>>(),
        }))
    }
}
