// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two threads that do jobs, and say so: with the events of a schema and with some that have none.
//!
//! `lat record -- target/debug/examples/quickstart`, then `lat print` and `lat stats`.

use std::thread;
use std::time::{Duration, Instant};

/// Made by `pleco gen --rust jobs.rs jobs.pleco`.
mod jobs {
    include!("jobs.rs");
}

use jobs::worker;

fn main() {
    lateralis::mark!("{} threads", 2);
    let workers: Vec<_> = (0..2).map(|number| thread::spawn(move || work(number))).collect();
    for worker in workers {
        // A thread that has panicked has said so.
        let _ = worker.join();
    }
}

fn work(number: u64) {
    let _span = lateralis::span!(work);
    for i in 0..100_u32 {
        let id = number << 32 | u64::from(i);
        worker::waiting(100 - i);
        let took = do_job(id);
        lateralis::log!("thread {}: job {:#x} took {} us", number, id, took.as_micros() as u64);
    }
}

fn do_job(id: u64) -> Duration {
    let start = Instant::now();
    let kind = if id % 10 == 9 { worker::JobBeginKind::LARGE } else { worker::JobBeginKind::SMALL };
    // Ends when this function does.
    let _job = worker::job_span(id, kind);
    if id % 50 == 49 {
        worker::failed(id, "no paper");
        return start.elapsed();
    }
    thread::sleep(Duration::from_micros(if kind == worker::JobBeginKind::LARGE {
        500
    } else {
        50
    }));
    start.elapsed()
}
