// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tracepoints as `sel4utils` prints them, among other output of a console.
//!
//! ```text
//! tracepoint id = 3  duration = 512     (a blank and a tab in between)
//! Dumped entire log, size 1
//! ```

use lateralis_model::{DamageReason, LossCause, MemoryTrace};

use super::log::Points;
use crate::damages::{self, Damages};

enum Line {
    Point(u64, u64),
    Size(u64),
    /// Begins as a tracepoint does.
    Bad,
    Other,
}

fn parse(line: &[u8]) -> Line {
    let text = String::from_utf8_lossy(line);
    if let Some((_, size)) = text.split_once("Dumped entire log, size ") {
        return size.trim().parse().map_or(Line::Other, Line::Size);
    }
    let Some((_, rest)) = text.split_once("tracepoint id = ") else {
        return Line::Other;
    };
    let point = || {
        let (id, rest) = rest.split_once(|c: char| !c.is_ascii_digit())?;
        let (_, duration) = rest.split_once("duration = ")?;
        Some(Line::Point(id.parse().ok()?, duration.trim().parse().ok()?))
    };
    point().unwrap_or(Line::Bad)
}

pub(super) fn sniff(first: &[u8]) -> bool {
    first.split(|byte| *byte == b'\n').any(|line| matches!(parse(line), Line::Point(..)))
}

pub(super) fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> MemoryTrace {
    let mut points = Points::new(limit_bytes);
    let mut damages = Damages::new(name);
    let (mut at, mut count) = (0, 0u64);
    points.builder.remark(
        "the log does not say how fast the cycle counter runs: cycles are shown as nanoseconds",
    );
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let end = at + line.len();
        let ended = line.ends_with(b"\n");
        match parse(line) {
            Line::Point(id, cycles) if ended => {
                if points.add(id, cycles, cycles).is_err() {
                    points.builder.remark(damages::full(name, at));
                    break;
                }
                count += 1;
            }
            Line::Size(size) => {
                if size > count {
                    // The console lost lines.
                    points.builder.loss(lateralis_model::Loss {
                        stream: points.stream,
                        cause: LossCause::Discarded,
                        count: Some(size - count),
                        interval: lateralis_model::Interval::default(),
                    });
                }
                count = 0;
            }
            Line::Bad if ended => {
                let rule = "a line of a tracepoint has a number and a duration";
                damages.add(at, end, DamageReason::BadValue { rule });
            }
            Line::Point(..) | Line::Bad => {
                damages.add(at, end, DamageReason::Truncated { missing_bytes: None });
            }
            Line::Other => {}
        }
        at = end;
    }
    damages.finish(&mut points.builder);
    points.builder.finish()
}
