// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `lat diff` and `lat path` compute, out of any sequence of events: what is called exact
//! stays as it is when the lost events are put back.

use crate::happenings::{self, Happenings};
use lateralis_analysis::diff::Options;
use lateralis_model::{Interval, MemoryTrace, Quality};
use lateralis_store::Chosen;
use lateralis_store::compared::{Comparison, Observed, Of};
use lateralis_store::explained::{Explained, Found, Wanted, find};
use lateralis_units::Nanos;
use std::sync::LazyLock;

/// Spans of a name that are explained.
const EXPLAINED_MAX: usize = 4;
/// Names of spans that are asked about.
const NAMES: [&str; 5] = ["a", "k", "w", "lock_wait", "lock_held"];

/// What is compared with.
static OTHER: LazyLock<Observed> = LazyLock::new(|| {
    let happenings = happenings::read(&happenings::good()[3]);
    Observed::of(&Chosen::all_of(&happenings.all))
});

fn within(trace: &MemoryTrace, interval: Interval) -> Chosen<'_> {
    Chosen { interval, ..Chosen::all_of(trace) }
}

/// Besides not panicking: without losses in the window the results equal those with all events;
/// with losses there is no exact difference, no result that was not there, and no more missing than
/// reported.
pub fn check_compared(input: &[u8]) {
    let Happenings { all, seen, window } = happenings::read(input);
    let truth = Observed::of(&within(&all, window));
    let observed = Observed::of(&within(&seen, window));
    assert_eq!(truth.lost, 0, "nothing is lost of all");
    let comparison = Comparison::of(
        std::slice::from_ref(&OTHER),
        std::slice::from_ref(&observed),
        &Options::default(),
    );
    assert_eq!(comparison.is_lossy, (false, observed.lost > 0));
    for row in comparison.differences.iter().chain(&comparison.perhaps) {
        assert_eq!(row.quality == Quality::Exact, observed.lost == 0, "{row:?}");
    }
    if observed.lost == 0 {
        assert_eq!(observed, truth);
        return;
    }
    assert!(observed.events <= truth.events && observed.seconds <= truth.seconds);
    for (place, counted) in &observed.counts {
        let real = truth.counts.get(place).map_or(0, |counted| counted.count);
        assert!(counted.count <= real, "{place:?}: {} of {real}", counted.count);
        let most = counted.count.saturating_add(counted.missing);
        assert!(place.0 == Of::Cpu || real <= most, "{place:?}: {real} of at most {most}");
    }
    for (place, run) in &observed.durations {
        // A complete span without children is reported once.
        let own = (Of::Own, place.1.clone());
        let real = truth.durations.get(place).or_else(|| truth.durations.get(&own));
        let real = real.map_or(&[][..], |run| run.sorted());
        let most = (run.len() as u64).saturating_add(run.missing());
        assert!(real.len() as u64 <= most, "{place:?}: {} of at most {most}", real.len());
        // Messages are matched only by order and key.
        if place.0 != Of::Message {
            assert!(is_part(run.sorted(), real), "{place:?}: {run:?} of {real:?}");
        }
    }
}

/// Whether all of some sorted numbers are among others.
fn is_part(some: &[u64], all: &[u64]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == one))
}

/// Besides not panicking: paths cover their spans, and an exact path is that of all events.
pub fn check_explained(input: &[u8]) {
    let Happenings { all, seen, window } = happenings::read(input);
    let (all, seen) = (within(&all, window), within(&seen, window));
    for name in NAMES {
        for wanted in [Wanted::Slowest(EXPLAINED_MAX), Wanted::OpenAt(Nanos(500))] {
            let found = find(&seen, name, wanted).expect("a kind of span");
            let real = find(&all, name, wanted).expect("a kind of span");
            let ended = |all: &[Found]| all.iter().all(|one| !one.is_open);
            if found.quality == Quality::Exact && ended(&found.found) && ended(&real.found) {
                assert_eq!(found.found, real.found, "{name}");
            }
            found.found.iter().take(EXPLAINED_MAX).for_each(|one| explain(&seen, &all, name, one));
        }
    }
    let names = find(&seen, "lock", Wanted::Slowest(1)).expect_err("no such span");
    assert!(names[0].starts_with("lock_"), "{names:?}");
}

fn explain(seen: &Chosen<'_>, all: &Chosen<'_>, name: &str, found: &Found) {
    let explained = Explained::of(seen, found);
    let mut at = found.span.begin.time;
    for segment in &explained.path.segments {
        assert_eq!(segment.begin, at, "{segment:?}");
        at = segment.end;
    }
    assert!(explained.path.segments.is_empty() || at == found.span.end.time);
    let sum: u128 = explained.shares.iter().map(|share| u128::from(share.nanos)).sum();
    let nanos = explained.path.segments.iter().map(|segment| u128::from(segment.nanos()));
    assert_eq!(sum, nanos.sum::<u128>());
    if explained.quality == Quality::Exact || found.is_certain {
        let real = find(all, name, Wanted::Slowest(1 << 16)).expect("a kind of span").found;
        // One that has not ended by the last event that was not lost can only be longer.
        let is_it = |real: &Found| {
            let (ours, theirs) = (&found.span, &real.span);
            ours.begin == theirs.begin && found.is_open && ours.end.time <= theirs.end.time
        };
        assert!(real.contains(found) || real.iter().any(is_it), "{found:?}");
    }
    if explained.quality == Quality::Exact {
        assert_eq!(explained, Explained::of(all, found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by fuzzing: a lost event contained the process of a thread whose other events have
    /// none.
    #[test]
    fn what_a_lost_event_told_of_a_thread_changes_nothing_certain() {
        const LOST: u8 = 0xf0;
        const SWITCH: u8 = 11;
        const NOBODY: u8 = 0x80;
        const CPU_1: u8 = 1 << 3;
        let input = [
            [0; 4],
            [LOST, CPU_1, 0, 0],
            [0, CPU_1 | 4, 0, 0],
            [LOST, CPU_1, 0, 0],
            [SWITCH, NOBODY, 4, 1],
            [4, NOBODY, 3, 1],
            [5, NOBODY, 3, 1],
        ];
        let input = input.concat();
        let Happenings { seen, window, .. } = happenings::read(&input);
        let found = find(&within(&seen, window), "k", Wanted::Slowest(1)).unwrap().found;
        assert!(found[0].is_certain, "{found:?}");
        check_explained(&input);
    }

    /// Found by fuzzing: the own time of what lasts beyond the window was doubted for a loss there.
    #[test]
    fn a_loss_behind_the_window_casts_no_doubt_on_an_own_time_within_it() {
        const TILL_256_NS: [u8; 4] = [0, 0, 0, 1];
        const WHOLE_OF_240_NS: u8 = 6;
        const WHOLE: u8 = 10;
        const LOST: u8 = 0xf0;
        let input = [
            TILL_256_NS,
            [WHOLE, 1, WHOLE_OF_240_NS, 199],
            [4, 1, 0, 99],
            [LOST, 0, 0, 9],
            [4, 1, 0, 9],
            [LOST, 0, 0, 9],
            [4, 1, 0, 200],
        ];
        check_compared(&input.concat());
    }

    /// Else the checks above would say nothing.
    #[test]
    fn there_are_exact_and_other_numbers_in_good_inputs() {
        let (mut lossy, mut exact) = (0, 0);
        for input in happenings::good() {
            let Happenings { seen, window, .. } = happenings::read(&input);
            let chosen = within(&seen, window);
            let observed = Observed::of(&chosen);
            let timed = observed.durations.values().map(|run| run.len()).sum::<usize>();
            assert!(timed > 3, "{timed} durations");
            lossy += usize::from(observed.lost > 0);
            for name in NAMES {
                let found = find(&chosen, name, Wanted::Slowest(EXPLAINED_MAX)).unwrap().found;
                let all = found.iter().map(|one| Explained::of(&chosen, one).quality);
                exact += all.filter(|quality| *quality == Quality::Exact).count();
            }
        }
        assert!(lossy >= 3 && exact >= 5, "{lossy} with losses, {exact} exact paths");
    }
}
