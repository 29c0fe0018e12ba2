// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests that wait to be answered.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::Value;

use crate::methods;
use crate::session::lock;

/// Requests that wait at most; whoever sends more waits to send.
const WAITING_MAX: usize = 64;

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its number.
    pub id: u32,
    /// What is asked.
    pub method: String,
    /// With what.
    pub params: Value,
}

impl Request {
    /// From a text; `None` if it is no request.
    pub fn parse(text: &str) -> Option<Self> {
        let mut value: Value = serde_json::from_str(text).ok()?;
        let id = u32::try_from(value.get("id")?.as_u64()?).ok()?;
        let method = value.get("method")?.as_str()?.to_owned();
        let params = value.get_mut("params").map(Value::take).unwrap_or_default();
        Some(Self { id, method, params })
    }
}

/// Whether both ask the same of the same: pictures of two recordings are two.
fn is_same(a: &Request, b: &Request) -> bool {
    a.method == b.method && a.params.get("side") == b.params.get("side")
}

/// A queue in which newer requests take the place of older ones. Several workers take requests out of it,
/// those of one [kind](methods::kind) one after the other.
#[derive(Default)]
pub struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Request>,
    /// Requests that workers are answering.
    taken: Vec<Taken>,
    is_closed: bool,
}

/// A request that is being answered.
#[derive(Debug, Clone)]
pub struct Taken {
    /// The request.
    pub request: Request,
    cancelled: Arc<AtomicBool>,
}

impl Taken {
    /// Whether its answer is not wanted any more.
    pub fn is_cancelled(&self) -> bool {
        // Partner: the stores of `push` and `close`. No other memory depends on it.
        self.cancelled.load(Ordering::Relaxed)
    }

    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Waiting {
    /// Adds a request, once there is room: how many older ones it takes the place of.
    pub fn push(&self, request: Request) -> usize {
        let mut state = lock(&self.state);
        let before = state.requests.len();
        if methods::is_replaced(&request.method) {
            state.requests.retain(|older| !is_same(older, &request));
            state.taken.iter().filter(|of| is_same(&of.request, &request)).for_each(Taken::cancel);
        }
        let replaced = before - state.requests.len();
        while state.requests.len() >= WAITING_MAX && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        state.requests.push_back(request);
        self.changed.notify_all();
        replaced
    }

    /// The next one, once there is one whose kind no other worker is answering; `None` when no more will
    /// come. To be [done](Self::done) afterwards.
    pub fn pop(&self) -> Option<Taken> {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return None;
            }
            let State { requests, taken, .. } = &mut *state;
            let is_free = |request: &Request| {
                let kind = methods::kind(&request.method);
                !taken.iter().any(|of| methods::kind(&of.request.method) == kind)
            };
            if let Some(request) =
                requests.iter().position(is_free).and_then(|at| requests.remove(at))
            {
                let one = Taken { request, cancelled: Arc::default() };
                taken.push(one.clone());
                self.changed.notify_all();
                return Some(one);
            }
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// A request was answered, or needs no answer.
    pub fn done(&self, taken: &Taken) {
        lock(&self.state).taken.retain(|of| !Arc::ptr_eq(&of.cancelled, &taken.cancelled));
        self.changed.notify_all();
    }

    /// Whether a newer request has made one worthless that was popped.
    pub fn replaces(&self, request: &Request) -> bool {
        methods::is_replaced(&request.method)
            && lock(&self.state).requests.iter().any(|newer| is_same(newer, request))
    }

    /// Whether nobody wants any more answers.
    pub fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    /// Nobody wants any more answers.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.taken.iter().for_each(Taken::cancel);
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_views_replace_older_ones_and_nothing_else() {
        let waiting = Waiting::default();
        let request = |id, method: &str| Request { id, method: method.into(), params: Value::Null };
        for (id, method) in [(1, "view"), (2, "events"), (3, "events"), (4, "view"), (5, "levels")]
        {
            waiting.push(request(id, method));
        }
        let next = || {
            let taken = waiting.pop()?;
            waiting.done(&taken);
            Some(taken.request.id)
        };
        assert_eq!([next(), next(), next(), next()], [Some(2), Some(3), Some(4), Some(5)]);
        let of_side = |id, side: u32| {
            let params = serde_json::json!({ "side": side });
            Request { params, ..request(id, "view") }
        };
        let _ = [of_side(8, 0), of_side(9, 1), of_side(10, 0)].map(|request| waiting.push(request));
        assert_eq!([next(), next()], [Some(9), Some(10)]);
        let popped = request(6, "view");
        assert!(!waiting.replaces(&popped));
        assert_eq!(waiting.push(request(7, "view")), 0);
        assert!(waiting.replaces(&popped));
        assert_eq!(waiting.push(request(11, "view")), 1, "one is not answered");
        waiting.close();
        assert_eq!(next(), None);
    }

    #[test]
    fn requests_of_one_kind_are_taken_one_after_the_other() {
        let waiting = Waiting::default();
        let request = |id, method: &str| Request { id, method: method.into(), params: Value::Null };
        for (id, method) in [(1, "flame"), (2, "flame"), (3, "script"), (4, "note"), (5, "stats")] {
            waiting.push(request(id, method));
        }
        let [flame, script, stats] = [(); 3].map(|()| waiting.pop().expect("a request"));
        assert_eq!([&flame, &script, &stats].map(|of| of.request.id), [1, 3, 5]);
        // The rest waits for those of its kind.
        waiting.done(&script);
        assert_eq!(waiting.pop().map(|of| of.request.id), Some(4));
        waiting.done(&flame);
        assert_eq!(waiting.pop().map(|of| of.request.id), Some(2));
    }

    #[test]
    fn a_newer_section_cancels_the_one_that_is_computed() {
        let waiting = Waiting::default();
        let request = |id, method: &str| Request { id, method: method.into(), params: Value::Null };
        waiting.push(request(1, "section"));
        waiting.push(request(2, "flame"));
        let [section, flame] = [(); 2].map(|()| waiting.pop().expect("a request"));
        assert!(!section.is_cancelled());
        waiting.push(request(3, "section"));
        assert!(section.is_cancelled() && waiting.replaces(&section.request));
        waiting.push(request(4, "flame"));
        assert!(!flame.is_cancelled());
        waiting.close();
        assert!(flame.is_cancelled(), "nobody is there any more");
    }

    #[test]
    fn what_is_no_request_is_none() {
        for text in
            ["", "{", "[]", "{\"id\":-1,\"method\":\"x\"}", "{\"id\":1}", "{\"id\":1,\"method\":2}"]
        {
            assert_eq!(Request::parse(text), None, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(Request::parse(&deep), None);
    }
}
