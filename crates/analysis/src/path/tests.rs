// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Paths of small scenes drawn by hand, and of random scenes.

use lateralis_units::Nanos;
use proptest::prelude::*;

use super::*;

const WORK: u32 = 1;
const LOCK_WAIT: u32 = 2;
const READ: u32 = 3;
const ORDER: u32 = 4;
const TIMER: u32 = 5;

fn named(thread: u32, begin: i64, end: i64, what: u32) -> Named {
    Named { thread, begin: Nanos(begin), end: Nanos(end), what }
}

fn did(thread: u32, begin: i64, end: i64, state: State, woken_by: Option<WokenBy>) -> Did {
    Did { thread, begin: Nanos(begin), end: Nanos(end), state, woken_by }
}

fn waiting(thread: u32, begin: i64, end: i64, object: Option<u64>) -> Waiting {
    let (begin, end) = (Nanos(begin), Nanos(end));
    Waiting { thread, begin, end, what: LOCK_WAIT, family: 0, object }
}

fn hold(thread: u32, end: i64, object: Option<u64>) -> Hold {
    Hold { thread, end: Nanos(end), family: 0, object }
}

/// `thread doing what waited begin-end`, one segment per line.
fn text(path: &Path) -> String {
    let name = |name: Option<u32>| name.map_or("-".to_owned(), |name| name.to_string());
    let of = |s: &Segment| {
        let (what, waited) = (name(s.what), name(s.waited));
        format!("{} {} {what} {waited} {}-{}", s.thread, s.doing.name(), s.begin.0, s.end.0)
    };
    path.segments.iter().map(of).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_lock_held_by_one_that_reads_names_both() {
    // Thread 0 waits 20..81 for a lock that thread 1 holds until 80, reading from 30 to 70.
    let waits =
        causes(&[waiting(0, 20, 81, Some(7))], &[hold(1, 80, Some(7)), hold(0, 90, Some(7))]);
    let builder = SceneBuilder {
        named: vec![
            named(0, 0, 100, WORK),
            named(0, 20, 81, LOCK_WAIT),
            named(1, 10, 80, WORK),
            named(1, 30, 70, READ),
        ],
        waits,
        ..SceneBuilder::default()
    };
    let path = builder.build(2, 0).path(0, Nanos(0), Nanos(100));
    let expected = "0 unknown 1 - 0-20, 1 unknown 1 2 20-30, 1 unknown 3 2 30-70, \
         1 unknown 1 2 70-80, 0 resuming 2 - 80-81, 0 unknown 1 - 81-100";
    assert_eq!(text(&path), expected);
    let shares = shares(&path.segments);
    let first = (shares[0].thread, shares[0].what, shares[0].waited, shares[0].nanos);
    assert_eq!(first, (1, Some(READ), Some(LOCK_WAIT), 40));
}

#[test]
fn the_cause_is_the_last_release_by_another_of_the_same_object() {
    let of = |waits: &[Waiting], holds: &[Hold]| -> Vec<(u32, i64)> {
        causes(waits, holds).iter().map(|w| (w.cause_thread, w.cause_time.0)).collect()
    };
    let holds =
        [hold(1, 50, Some(7)), hold(2, 60, Some(8)), hold(0, 55, Some(7)), hold(3, 5, Some(7))];
    assert_eq!(of(&[waiting(0, 20, 81, Some(7))], &holds), [(1, 50)]);
    assert_eq!(of(&[waiting(0, 20, 81, None)], &holds), [(2, 60)]);
    assert_eq!(of(&[waiting(0, 20, 40, Some(7))], &holds), []);
    assert_eq!(of(&[waiting(0, 20, 81, Some(9))], &holds), []);
}

#[test]
fn a_message_leads_to_its_sender_and_back() {
    let message = Message {
        sender: 1,
        sent: Nanos(60),
        receiver: 0,
        received: Nanos(70),
        idle_since: Nanos(10),
        what: ORDER,
    };
    let builder = SceneBuilder {
        named: vec![named(1, 20, 60, WORK)],
        waits: message.wait().into_iter().collect(),
        ..SceneBuilder::default()
    };
    let path = builder.build(2, 0).path(0, Nanos(0), Nanos(100));
    let expected = "0 unknown - - 0-10, 1 unknown - 4 10-20, 1 unknown 1 4 20-60, \
         0 in_flight 4 - 60-70, 0 unknown - - 70-100";
    assert_eq!(text(&path), expected);
    // A message that was already there was not waited for.
    assert_eq!(Message { idle_since: Nanos(65), ..message }.wait(), None);
}

#[test]
fn the_path_goes_through_what_threads_did() {
    let (runs, ready, waits) = (State::Running(0), State::Ready, State::Blocked);
    let builder = SceneBuilder {
        did: vec![
            did(0, 0, 20, runs, None),
            did(0, 20, 60, waits, None),
            did(0, 60, 75, ready, Some(WokenBy::Thread(1))),
            did(0, 75, 90, runs, None),
            did(0, 90, 95, ready, None),
            did(0, 95, 120, runs, None),
            did(1, 25, 30, ready, Some(WokenBy::Interrupt)),
            did(1, 30, 75, State::Running(1), None),
        ],
        busy: vec![Busy { cpu: 1, begin: Nanos(40), end: Nanos(45), what: TIMER }],
        named: vec![named(0, 10, 80, READ)],
        ..SceneBuilder::default()
    };
    let path = builder.build(3, 2).path(0, Nanos(0), Nanos(100));
    let expected = "0 running - - 0-10, 0 running 3 - 10-20, 1 blocked - 3 20-25, \
         1 ready - 3 25-30, 1 running - 3 30-40, 1 interrupted 5 3 40-45, 1 running - 3 45-60, \
         0 ready 3 - 60-75, 0 running 3 - 75-80, 0 running - - 80-90, 0 ready - - 90-95, \
         0 running - - 95-100";
    assert_eq!(text(&path), expected);
    // The occupants of the CPUs are unknown.
    let instead: Vec<_> = path.segments.iter().filter_map(|segment| segment.instead).collect();
    assert_eq!(instead, [Occupant::Unknown; 3]);
    let woken: Vec<_> = path.segments.iter().filter_map(|segment| segment.woken_by).collect();
    assert_eq!(woken, [WokenBy::Interrupt]);
}

#[test]
fn what_a_thread_did_where_nothing_says_so_is_not_guessed() {
    let builder = SceneBuilder {
        did: vec![
            did(0, 10, 20, State::Running(0), None),
            // Switches are missing, then it is woken.
            did(0, 40, 40, State::Ready, Some(WokenBy::Thread(1))),
            did(0, 40, 50, State::Running(0), None),
            did(1, 30, 35, State::Ready, Some(WokenBy::Interrupt)),
        ],
        ..SceneBuilder::default()
    };
    let path = builder.build(2, 1).path(0, Nanos(0), Nanos(60));
    let expected = "0 unknown - - 0-10, 0 running - - 10-20, 0 unknown - - 20-40, \
         0 running - - 40-50, 0 unknown - - 50-60";
    assert_eq!(text(&path), expected);
}

#[test]
fn a_wait_whose_end_is_not_known_to_be_of_a_thread_is_the_own_time_of_who_waits() {
    for by in [Some(WokenBy::Unknown), Some(WokenBy::Interrupt), None] {
        let builder = SceneBuilder {
            did: vec![
                did(0, 0, 10, State::Running(0), None),
                did(0, 10, 60, State::Blocked, None),
                did(0, 60, 70, State::Ready, by),
                did(0, 70, 90, State::Running(0), None),
            ],
            named: vec![named(0, 5, 80, READ)],
            ..SceneBuilder::default()
        };
        let path = builder.build(2, 1).path(0, Nanos(0), Nanos(90));
        let blocked = path.segments.iter().find(|one| one.doing == Doing::Blocked).unwrap();
        assert_eq!(blocked.woken_by, Some(by.unwrap_or(WokenBy::Unknown)));
        assert!(path.segments.iter().all(|one| one.thread == 0), "{by:?}");
        assert_eq!(path.is_doubtful, by != Some(WokenBy::Interrupt));
    }
}

#[test]
fn a_circle_of_waits_ends_where_it_would_begin_again() {
    let wait = |thread: u32, cause: u32| Wait {
        thread,
        begin: Nanos(0),
        end: Nanos(50),
        what: LOCK_WAIT,
        cause_time: Nanos(50),
        cause_thread: cause,
        is_message: false,
    };
    let builder =
        SceneBuilder { waits: vec![wait(0, 1), wait(1, 2), wait(2, 0)], ..SceneBuilder::default() };
    let path = builder.build(3, 0).path(0, Nanos(0), Nanos(50));
    assert_eq!(text(&path), "2 blocked 2 2 0-50");
}

#[test]
fn a_span_of_no_length_or_of_nobody_has_no_path() {
    let scene = SceneBuilder::default().build(1, 0);
    assert_eq!(scene.path(0, Nanos(5), Nanos(5)), Path::default());
    assert_eq!(scene.path(7, Nanos(0), Nanos(5)), Path::default());
    assert_eq!(text(&scene.path(0, Nanos(-5), Nanos(5))), "0 unknown - - -5-5");
}

/// Arbitrary input: threads and CPUs that do not exist, switches that contradict each other, waits that
/// end before their cause or form cycles.
fn scenes() -> impl Strategy<Value = SceneBuilder> {
    let time = || (0i64..60).prop_map(Nanos);
    let thread = || 0u32..5;
    let by = prop_oneof![
        thread().prop_map(WokenBy::Thread),
        thread().prop_map(WokenBy::Likely),
        Just(WokenBy::Interrupt),
        Just(WokenBy::Unknown)
    ];
    let state = prop_oneof![
        (0u32..3).prop_map(State::Running),
        Just(State::Ready),
        Just(State::Blocked),
        Just(State::Unknown)
    ];
    let did = (thread(), time(), time(), state, proptest::option::of(by)).prop_map(
        |(thread, begin, end, state, woken_by)| Did { thread, begin, end, state, woken_by },
    );
    let spans = (thread(), time(), time(), 0u32..4).prop_map(|(thread, begin, end, what)| Named {
        thread,
        begin,
        end,
        what,
    });
    let busy = (0u32..3, time(), time(), 0u32..4).prop_map(|(cpu, begin, end, what)| Busy {
        cpu,
        begin,
        end,
        what,
    });
    let waits = (thread(), time(), time(), time(), thread(), any::<bool>()).prop_map(
        |(thread, begin, end, cause_time, cause_thread, is_message)| Wait {
            thread,
            begin,
            end,
            what: 9,
            cause_time,
            cause_thread,
            is_message,
        },
    );
    let many = |max: usize| 0..max;
    (
        prop::collection::vec(did, many(40)),
        prop::collection::vec(spans, many(12)),
        prop::collection::vec(busy, many(6)),
        prop::collection::vec(waits, many(16)),
    )
        .prop_map(|(did, named, busy, waits)| SceneBuilder {
            did,
            named,
            busy,
            waits,
            ..SceneBuilder::default()
        })
}

#[test]
fn who_ran_instead_of_a_thread_that_could_is_named() {
    let occupied = |time, by| Occupied { time: Nanos(time), cpu: 1, by };
    let builder = SceneBuilder {
        did: vec![
            did(0, 0, 10, State::Running(1), None),
            did(0, 10, 90, State::Ready, None),
            did(0, 90, 100, State::Running(1), None),
        ],
        occupied: vec![
            occupied(10, Occupant::Thread(1)),
            occupied(40, Occupant::Thread(2)),
            occupied(60, Occupant::Unknown),
            occupied(80, Occupant::Idle),
            occupied(90, Occupant::Thread(0)),
        ],
        ..SceneBuilder::default()
    };
    let path = builder.build(3, 2).path(0, Nanos(0), Nanos(100));
    let of = |s: &Segment| (s.doing.name(), s.instead, s.begin.0);
    let found: Vec<_> = path.segments.iter().map(of).collect();
    let ready = |by, begin| ("ready", Some(by), begin);
    let expected = [
        ("running", None, 0),
        ready(Occupant::Thread(1), 10),
        ready(Occupant::Thread(2), 40),
        ready(Occupant::Unknown, 60),
        ready(Occupant::Idle, 80),
        ("running", None, 90),
    ];
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn segments_cover_the_span_without_gap_or_overlap(
        builder in scenes(),
        (begin, end) in (-5i64..60, 0i64..70),
        thread in 0u32..4,
    ) {
        let path = builder.build(4, 2).path(thread, Nanos(begin), Nanos(end));
        prop_assert!(!path.is_cut);
        let mut at = Nanos(begin);
        for segment in &path.segments {
            prop_assert_eq!(segment.begin, at);
            prop_assert!(segment.end > segment.begin);
            prop_assert!(segment.thread < 4);
            at = segment.end;
        }
        if begin < end {
            prop_assert_eq!(at, Nanos(end));
        }
        let sum: u64 = path.segments.iter().map(Segment::nanos).sum();
        prop_assert_eq!(sum, (end - begin).max(0) as u64);
        let shares: u64 = shares(&path.segments).iter().map(|share| share.nanos).sum();
        prop_assert_eq!(shares, sum);
    }
}
