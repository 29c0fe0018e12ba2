// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a page is told without asking: spec/view.md §5.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::host::{Host, Told};
use crate::session::Session;

/// Between two words about growth.
const PERIOD: Duration = Duration::from_millis(80);
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
}

impl Default for Pushing {
    fn default() -> Self {
        Self { next_loss: AtomicU64::new(NOT_OPENED) }
    }
}

impl Pushing {
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
        while !is_over() {
            let news = host.news(&mut told, LOOK);
            // First how far it has grown, then that it has ended.
            if let Some(session) = news.session
                && let Some(word) = self.grown(&session)
            {
                if !send(word.to_string()) {
                    return false;
                }
                thread::sleep(PERIOD);
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
        let lists = growth.lists + if is_too_many { growth.next_loss() } else { 0 };
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
