// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times that the timeline does not reach: readers put them at its ends ([`Nanos::nearest`]), and
//! commands that show times warn of them with their number.

use lateralis_model::Source as _;
use lateralis_store::Recording;
use lateralis_units::Nanos;

/// Whether it is an end of the timeline, where all times beyond are put.
pub fn is_end(time: Nanos) -> bool {
    time.0 == i64::MIN || time.0 == i64::MAX
}

/// How many events are at an end of the timeline, of a recording whose first and last events are known.
///
/// Cost: nothing, unless one of these is there; then a pass, for an order that such times break is no help.
pub fn count(recording: &Recording, first: Option<Nanos>, last: Option<Nanos>) -> u64 {
    let mut count = 0;
    if [first, last].into_iter().flatten().any(is_end) {
        // Damage was reported when the recording was opened.
        let _ = recording.source.visit(&mut |event| count += u64::from(is_end(event.time)));
    }
    count
}

/// A warning of them, if there are any.
#[must_use]
pub fn warning(count: u64) -> Option<String> {
    (count > 0).then(|| sentence(count))
}

fn sentence(count: u64) -> String {
    let events = if count == 1 { "event has a time" } else { "events have times" };
    format!(
        "{count} {events} at or beyond an end of the timeline (the years 1677 and 2262): shown at \
         that end, and wrong in all that is computed from it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_several_are_counted() {
        assert!(sentence(1).starts_with("1 event has a time at or beyond"));
        assert!(sentence(2).starts_with("2 events have times at or beyond"));
    }
}
