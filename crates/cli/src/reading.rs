// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress line on the terminal while traces are read: share read, speed, time remaining.
//!
//! A separate thread draws it. All other output to the terminal removes it first ([`crate::output`]).

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use lateralis_model::progress;
use lateralis_store::Recording;

use crate::status_line::StatusLine;
use crate::values;

/// Delay before the line is drawn: most commands end sooner.
const SHOWN_AFTER: Duration = Duration::from_millis(500);
const PERIOD: Duration = Duration::from_millis(100);

struct Reading {
    line: StatusLine,
    began: Instant,
    /// Bytes of the traces; 0 while they are opened.
    bytes: u64,
    /// Number of bytes that readers had passed when reading began.
    before: u64,
}

/// `None` if no trace is being read, or drawing has ended.
static READING: Mutex<Option<Reading>> = Mutex::new(None);

fn with(act: impl FnOnce(&mut Option<Reading>)) {
    // A thread that panicked with the lock has ended the command.
    if let Ok(mut reading) = READING.lock() {
        act(&mut reading);
    }
}

/// Called when traces are opened: draws from now on if standard error is a terminal.
pub fn begin() {
    if !crate::output::is_error_terminal() {
        return;
    }
    let now = Instant::now();
    let mut is_first = false;
    with(|reading| match reading {
        // Traces opened one after the other, as in `lat diff`.
        Some(reading) => (reading.began, reading.bytes) = (now, 0),
        None => {
            is_first = true;
            let line = StatusLine::new(false);
            *reading = Some(Reading { line, began: now, bytes: 0, before: 0 });
        }
    });
    if !is_first {
        return;
    }
    thread::spawn(|| {
        let mut goes_on = true;
        while goes_on {
            thread::sleep(PERIOD);
            with(|reading| {
                goes_on = reading.is_some();
                if let Some(reading) = reading {
                    reading.draw();
                }
            });
        }
    });
}

/// Called when the traces are open and reading begins.
pub fn opened(recording: &Recording) {
    let bytes = recording.streams.iter().map(|stream| stream.bytes).sum();
    with(|reading| {
        if let Some(reading) = reading {
            reading.line.clear();
            reading.bytes = bytes;
            reading.before = progress::passed();
            reading.began = Instant::now();
        }
    });
}

/// Removes the line to make room for other output; it is drawn again below.
pub fn make_room() {
    with(|reading| {
        if let Some(reading) = reading {
            reading.line.clear();
        }
    });
}

/// Stops drawing.
pub fn end() {
    with(|reading| *reading = None);
}

impl Reading {
    fn draw(&mut self) {
        let elapsed = self.began.elapsed();
        if elapsed >= SHOWN_AFTER {
            let passed = progress::passed().saturating_sub(self.before);
            self.line.show(&text(passed, self.bytes, elapsed));
        }
    }
}

fn text(passed: u64, bytes: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if bytes == 0 || passed == 0 {
        return format!("reading  {seconds:.0} s");
    }
    let per_second = passed as f64 / seconds.max(1e-3);
    let rate = values::bytes(per_second as u64);
    // Some commands read all traces more than once.
    let (looks, of_this) = ((passed - 1) / bytes, (passed - 1) % bytes + 1);
    let percent = u128::from(of_this) * 100 / u128::from(bytes);
    if looks > 0 {
        return format!("reading  {percent} % of look {}  {rate}/s", looks + 1);
    }
    let left = (bytes - of_this) as f64 / per_second;
    format!("reading  {percent} % of {}  {rate}/s  {left:.0} s left", values::bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_much_how_fast_and_how_long_still() {
        let second = Duration::from_secs(1);
        assert_eq!(text(0, 0, second), "reading  1 s");
        assert_eq!(
            text(1 << 20, 4 << 20, second),
            "reading  25 % of 4.00 MiB  1.00 MiB/s  3 s left"
        );
        assert_eq!(
            text(4 << 20, 4 << 20, second),
            "reading  100 % of 4.00 MiB  4.00 MiB/s  0 s left"
        );
        assert_eq!(text(5 << 20, 4 << 20, second), "reading  25 % of look 2  5.00 MiB/s");
        assert_eq!(
            text(u64::MAX, 1, second),
            "reading  100 % of look 18446744073709551615  16777216 TiB/s"
        );
    }
}
