// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Updates that are sent to a page without a request (spec/view.md §5).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::host::{Host, Told};
use crate::session::{Session, lock};

/// Minimum interval of growth messages to a page that has drawn the previous one. It is shorter
/// than the interval of snapshots (60 ms, as `lat view` flushes), so that each snapshot is
/// announced at once rather than after a delay.
const SOONEST: Duration = Duration::from_millis(40);
/// Interval for a page that sends no requests, or waits for responses.
const LATEST: Duration = Duration::from_millis(100);
/// Interval of checks whether the page was closed.
const LOOK: Duration = Duration::from_millis(200);
/// Maximum number of losses in a message; for more, the page requests all lists.
const LOSSES_MAX: usize = 100;
/// The page has not requested the lists yet, and gets no growth messages.
const NOT_OPENED: u64 = u64::MAX;

/// Update state of one page.
pub struct Pushing {
    /// Number of the next loss to send.
    next_loss: AtomicU64,
    asked: Mutex<Asked>,
    answered: Condvar,
}

/// Requests of a page.
#[derive(Default)]
struct Asked {
    /// Number of unanswered requests.
    open: u64,
    /// Whether the page sent any request since the last growth message.
    is_any: bool,
}

impl Default for Pushing {
    fn default() -> Self {
        let next_loss = AtomicU64::new(NOT_OPENED);
        Self { next_loss, asked: Mutex::default(), answered: Condvar::new() }
    }
}

impl Pushing {
    /// Counts a new request of the page.
    pub fn asks(&self) {
        let mut asked = lock(&self.asked);
        asked.open += 1;
        asked.is_any = true;
    }

    /// Counts responses that were sent, or requests that will get none.
    pub fn is_answered(&self, requests: usize) {
        let mut asked = lock(&self.asked);
        asked.open = asked.open.saturating_sub(requests as u64);
        if asked.open == 0 {
            self.answered.notify_all();
        }
    }

    /// Waits until the next message is due. A slow page gets fewer messages, so that its requests
    /// are always for the newest snapshot.
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

    /// Marks the losses of a snapshot as sent, because the page gets all its lists.
    pub fn opened(&self, session: &Session) {
        let next = session.growth.as_ref().map_or(0, |growth| growth.next_loss());
        // Partner: the load below. Either order of simultaneous calls is correct: losses are sent
        // twice, or with the lists.
        self.next_loss.store(next, Ordering::Relaxed);
    }

    /// Sends updates until the page is closed; returns false if sending fails.
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
            // Growth is announced before the end of the recording.
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
        // If there are too many losses for a message, the version of the lists must change as well;
        // only the difference matters.
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
