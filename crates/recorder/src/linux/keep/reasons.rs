// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts firings to the units of a report: nanoseconds and UTC instead of ticks.

use super::super::recording::Recording;
use crate::condition::{Firing, Measured};
use crate::report::KeptReason;

/// UTC of a time in ticks.
pub(in super::super) fn utc(main: &Recording, ticks: u64) -> i64 {
    main.clock_model().map_or(0, |model| model.utc_ns(ticks))
}

/// Nanoseconds of a duration in ticks.
pub(in super::super) fn ns(main: &Recording, ticks: u64) -> u64 {
    main.clock_model().map_or(0, |model| model.ns(ticks))
}

/// The reason for saving a window.
pub(in super::super) fn reason(main: &Recording, firing: &Firing) -> KeptReason {
    let (mut duration_ns, mut is_over, mut value) = (None, true, None);
    match firing.measured {
        Measured::Nothing => {}
        Measured::Ticks { ticks, is_over: over } => {
            duration_ns = Some(ns(main, ticks));
            is_over = over;
        }
        Measured::PerSecond(number) | Measured::Value(number) => {
            value = serde_json::Number::from_f64(number);
        }
    }
    KeptReason {
        number: firing.number,
        condition: firing.test.clone(),
        at_ns: utc(main, firing.at),
        duration_ns,
        is_over,
        value,
        key: firing.key.clone(),
        pid: firing.by.map(|by| by.pid),
        tid: firing.by.map(|by| by.tid),
        is_certain: firing.is_certain,
    }
}
