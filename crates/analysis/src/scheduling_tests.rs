// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads and CPUs: cases drawn by hand, and random ones.

use lateralis_model::{Interval, Loss, LossCause, StreamIndex};
use proptest::prelude::*;

use super::*;
use crate::{CpuTime, ThreadTime, ThreadTimes};
use Occupant::{Idle, Thread};
use ThreadState::{Blocked, Preempted, Runnable, Running, Sleeping};

const REST: Occupant = Idle;

/// With sums, starting at 0.
fn from(begin: i64, gaps: &Gaps) -> Scheduling {
    Scheduling::new(Nanos(begin), gaps, Some(16))
}

fn all() -> Scheduling {
    from(0, &Gaps::default())
}

fn switch(time: i64, cpu: u32, from: Occupant, to: Occupant) -> Switch {
    let (stream, time) = (Some(StreamIndex(cpu)), Nanos(time));
    Switch { time, cpu, stream, from, to, to_is_whole: true, is_since_last: true }
}

impl Scheduling {
    /// A switch with complete threads, the leaving one entering a state.
    fn turns(&mut self, time: i64, cpu: u32, (from, into): (Occupant, GoesInto), to: Occupant) {
        self.switch(&switch(time, cpu, from, to), into);
    }

    fn push(&mut self, switch: Switch) {
        self.switch(&switch, GoesInto::Unknown);
    }

    fn cpus(&self) -> &[CpuTime] {
        self.sums.as_ref().unwrap().utilisation.cpus()
    }

    fn ran(&self) -> &[ThreadTime] {
        self.sums.as_ref().unwrap().utilisation.threads()
    }

    fn of(&self, thread: u32) -> &ThreadTimes {
        &self.sums.as_ref().unwrap().threads.threads()[thread as usize]
    }

    /// Times by state.
    fn times(&self, thread: u32) -> [(u64, u64); 6] {
        ThreadState::ALL.map(|state| {
            let time = self.of(thread).of(state);
            (time.nanos, time.count)
        })
    }
}

fn leaves(thread: u32, state: ThreadState) -> (Occupant, GoesInto) {
    (Thread(thread), GoesInto::State(state))
}

fn sleeps(thread: u32) -> (Occupant, GoesInto) {
    leaves(thread, Sleeping)
}

fn ends(thread: u32) -> (Occupant, GoesInto) {
    (Thread(thread), GoesInto::End)
}

const IDLE: (Occupant, GoesInto) = (Idle, GoesInto::Unknown);

#[test]
fn each_stretch_between_two_seen_ends_has_its_state() {
    let mut states = all();
    states.turns(0, 0, IDLE, Thread(1));
    states.turns(10, 0, sleeps(1), Thread(2));
    states.wake(Nanos(30), 1);
    states.wake(Nanos(31), 1);
    // 2 is preempted by 1, goes to another CPU and waits for a disk there.
    states.turns(37, 0, leaves(2, Preempted), Thread(1));
    states.turns(40, 1, IDLE, Thread(2));
    states.turns(45, 1, leaves(2, Blocked), REST);
    states.wake(Nanos(65), 2);
    states.turns(66, 1, IDLE, Thread(2));
    states.turns(67, 1, ends(2), REST);
    states.finish(Nanos(100));
    // Running, runnable, preempted, sleeping, blocked, stopped.
    assert_eq!(states.times(1), [(10, 1), (7, 1), (0, 0), (20, 1), (0, 0), (0, 0)]);
    assert_eq!(states.times(2), [(33, 3), (1, 1), (3, 1), (0, 0), (20, 1), (0, 0)]);
    let (one, two) = (states.of(1), states.of(2));
    assert_eq!((one.unknown_nanos, one.has_ended), (63, false));
    assert_eq!((two.unknown_nanos, two.has_ended), (0, true));
    let longest = one.longest_wait.unwrap();
    assert_eq!((longest.begin, longest.nanos, longest.cpu), (Nanos(30), 7, 0));
    assert_eq!((longest.instead, longest.was_preempted), (Some(2), false));
    assert!(two.longest_wait.unwrap().was_preempted && two.longest_wait.unwrap().instead.is_none());
    assert_eq!(two.waits.len(), 2);
}

#[test]
fn contradictions_have_a_place_unless_a_loss_explains_them() {
    let run = |gaps: &Gaps| {
        let mut states = from(0, gaps);
        states.turns(10, 0, IDLE, Thread(1));
        // 1 leaves its CPU later than it comes to another.
        states.turns(20, 1, IDLE, Thread(1));
        states.turns(40, 0, sleeps(1), REST);
        // 2 leaves where 1 had come.
        states.turns(50, 1, sleeps(2), Thread(3));
        // 3 is woken while its CPU claims to run it: up to the end it is undecided which is right.
        states.turns(60, 0, IDLE, Thread(3));
        states.finish(Nanos(100));
        let list = states.take_contradictions();
        list.map(|of| (of.cpu, of.begin.0, of.end.0, of.kind)).collect::<Vec<_>>()
    };
    let other = |came, left| ContradictionKind::OtherThreadLeft { came, left };
    let elsewhere = |thread| ContradictionKind::RunsElsewhere { thread };
    assert_eq!(
        run(&Gaps::default()),
        [
            (0, 20, 40, elsewhere(1)),
            (1, 20, 50, other(Thread(1), Thread(2))),
            (1, 40, 50, elsewhere(1)),
            (1, 60, 100, elsewhere(3)),
        ]
    );
    let loss = |stream, begin, end| Loss {
        stream: StreamIndex(stream),
        cause: LossCause::Full,
        count: Some(1),
        interval: Interval { begin: Some(Nanos(begin)), end: Some(Nanos(end)) },
    };
    let losses = [loss(0, 12, 15), loss(1, 22, 48), loss(1, 52, 55)];
    assert_eq!(run(&Gaps::new(&losses, &[], |_| None)), []);
}

#[test]
fn stretches_are_those_that_the_times_are_sums_of() {
    let mut states = all();
    states.turns(0, 0, IDLE, Thread(1));
    states.turns(10, 0, sleeps(1), Thread(2));
    states.wake(Nanos(30), 1);
    states.turns(37, 0, leaves(2, Preempted), Thread(1));
    let mut told: Vec<ThreadInterval> = states.take().collect();
    states.finish(Nanos(50));
    told.extend(states.take());
    let of = |i: &ThreadInterval| (i.thread, i.state, i.begin.0, i.end.0, i.cpu, i.has_ended);
    let told: Vec<_> = told.iter().map(of).collect();
    let expected = [
        (1, Some(Running), 0, 10, Some(0), true),
        (1, Some(Sleeping), 10, 30, None, true),
        (2, Some(Running), 10, 37, Some(0), true),
        (1, Some(Runnable), 30, 37, None, true),
        (1, Some(Running), 37, 50, Some(0), false),
        (2, Some(Preempted), 37, 50, None, false),
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_contradicts_itself_is_unknown() {
    let mut states = all();
    states.turns(0, 0, IDLE, Thread(1));
    // A different thread leaves than came, and one that was never woken comes.
    states.turns(10, 0, sleeps(2), Thread(3));
    states.turns(20, 0, sleeps(3), REST);
    states.turns(30, 0, IDLE, Thread(3));
    states.turns(40, 0, sleeps(3), REST);
    // Two CPUs claim to run it.
    states.turns(50, 0, IDLE, Thread(3));
    states.turns(55, 1, IDLE, Thread(3));
    states.finish(Nanos(60));
    assert_eq!(states.times(1), [(0, 0); 6]);
    assert_eq!(states.of(1).unknown_nanos, 60);
    assert_eq!(states.times(3)[Running as usize], (20, 2));
    assert_eq!(states.times(3)[Sleeping as usize], (0, 0));
    assert_eq!(states.times(3)[Runnable as usize], (0, 0));
    // 20 to 30: no wakeup was seen; 40 to 60: likewise, and two CPUs claim it.
    assert_eq!(states.of(3).unknown_nanos, 30);
}

#[test]
fn a_thread_that_is_made_has_nothing_before() {
    let mut states = all();
    states.made(Nanos(5), 1);
    states.turns(7, 0, IDLE, Thread(1));
    states.turns(9, 0, ends(1), REST);
    // Its number is reused.
    states.made(Nanos(50), 1);
    states.turns(51, 0, IDLE, Thread(1));
    states.turns(53, 0, ends(1), REST);
    states.finish(Nanos(60));
    assert_eq!(states.times(1), [(4, 2), (3, 2), (0, 0), (0, 0), (0, 0), (0, 0)]);
    assert!(!states.of(1).is_open && states.of(1).unknown_nanos == 0);
}

#[test]
fn nothing_is_known_before_the_first_and_after_the_last_switch() {
    let mut all = from(100, &Gaps::default());
    all.appear(0, Nanos(100));
    all.appear(1, Nanos(130));
    all.push(switch(110, 0, Thread(3), Idle));
    all.push(switch(130, 0, Idle, Thread(1)));
    all.push(switch(140, 0, Thread(1), Thread(3)));
    all.finish(Nanos(160));
    let cpu = &all.cpus()[0];
    assert_eq!((cpu.busy_nanos, cpu.idle_nanos, cpu.unknown_nanos), (10, 20, 30));
    assert_eq!(all.ran()[3].running_nanos, 0);
    assert_eq!((all.ran()[1].running_nanos, all.ran()[1].schedule_count), (10, 1));
    assert_eq!(all.cpus()[1].unknown_nanos, 60, "no switch, so it is unknown");
}

#[test]
fn a_thread_whose_switches_are_left_out_has_no_time() {
    let mut all = from(0, &Gaps::default());
    all.push(switch(10, 0, Idle, Thread(1)));
    all.push(switch(20, 0, Thread(1), Thread(2)));
    // Others may have come and gone since 20.
    let foreign = switch(90, 0, Thread(2), Thread(1));
    all.push(Switch { is_since_last: false, ..foreign });
    all.push(switch(95, 0, Thread(1), Thread(2)));
    all.finish(Nanos(500));
    let running: Vec<u64> = all.ran().iter().map(|time| time.running_nanos).collect();
    assert_eq!(running, [0, 15, 0]);
    assert_eq!((all.cpus()[0].busy_nanos, all.cpus()[0].missing_count), (15, 0));
    assert_eq!(all.cpus()[0].unknown_nanos, 500 - 15);
}

#[test]
fn contradictions_are_unknown_time() {
    let mut all = from(0, &Gaps::default());
    all.appear(0, Nanos(0));
    all.push(switch(10, 0, Thread(1), Thread(2)));
    all.push(switch(20, 0, Thread(3), Thread(1)));
    all.push(switch(30, 0, Thread(1), Thread(4)));
    // It comes to another CPU, and leaves neither.
    all.push(switch(35, 1, Idle, Thread(4)));
    all.push(switch(40, 0, Thread(4), Idle));
    all.finish(Nanos(40));
    assert_eq!(all.cpus()[0].unknown_nanos, 30);
    assert_eq!(all.cpus()[0].missing_count, 1);
    let running: Vec<u64> = all.ran().iter().map(|time| time.running_nanos).collect();
    assert_eq!(running, [0, 10, 0, 0, 0]);
    let missing: Vec<u64> = all.ran().iter().map(|time| time.missing_count).collect();
    assert_eq!(missing, [0, 0, 1, 1, 0]);
    assert!(all.ran()[4].open_count > 0);
}

#[test]
fn migrations_are_counted() {
    let mut all = from(0, &Gaps::default());
    for (time, cpu) in [(1, 0), (2, 1), (3, 1), (4, 0)] {
        all.push(switch(time, cpu, Idle, Thread(0)));
    }
    assert_eq!(all.ran()[0].migration_count, 2);
    // It was on CPU 6 before its first switch.
    all.push(switch(5, 6, Thread(1), Idle));
    all.push(switch(6, 7, Idle, Thread(1)));
    assert_eq!(all.ran()[1].migration_count, 1);
}

fn loss(&(stream, begin, long): &(u32, i64, i64)) -> Loss {
    Loss {
        stream: StreamIndex(stream),
        cause: LossCause::Full,
        count: None,
        interval: Interval { begin: Some(Nanos(begin)), end: Some(Nanos(begin + long)) },
    }
}

/// A thread, or none, that is on no other CPU.
fn free(number: u32, on: &[Occupant], cpu: usize) -> Occupant {
    let is_elsewhere = |who| on.iter().enumerate().any(|(at, other)| at != cpu && *other == who);
    Some(Thread(number)).filter(|who| number != 0 && !is_elsewhere(*who)).unwrap_or(Idle)
}

#[test]
fn a_thread_may_move_in_the_moment_in_which_it_leaves() {
    let mut all = all();
    all.turns(0, 1, IDLE, Thread(1));
    // The switch of its new CPU comes first.
    all.turns(30, 0, IDLE, Thread(1));
    all.turns(30, 1, leaves(1, Preempted), Idle);
    all.turns(45, 0, sleeps(1), Idle);
    // Now it is on two CPUs for a while.
    all.turns(50, 0, IDLE, Thread(1));
    all.turns(55, 1, IDLE, Thread(1));
    all.turns(57, 0, sleeps(1), Idle);
    all.turns(60, 1, sleeps(1), Idle);
    all.finish(Nanos(60));
    assert_eq!(all.times(1), [(45, 2), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]);
    assert_eq!((all.of(1).unknown_nanos, all.ran()[1].running_nanos), (15, 45));
    assert_eq!((all.cpus()[0].busy_nanos, all.cpus()[1].busy_nanos), (15, 30));
}

/// Found by fuzzing: the path test checked for events missing between two events, the interval test also
/// at the ends.
#[test]
fn a_stretch_is_known_up_to_the_last_event_before_a_loss_and_from_the_first_after_it() {
    let gaps = Gaps::new(&[loss(&(0, 20, 20))], &[], |_| None);
    let mut all = from(0, &gaps);
    all.turns(10, 0, IDLE, Thread(1));
    all.turns(20, 0, sleeps(1), Thread(2));
    all.turns(40, 0, sleeps(2), Thread(3));
    all.turns(50, 0, sleeps(3), REST);
    all.wake(Nanos(60), 3);
    all.finish(Nanos(60));
    assert_eq!(all.times(1)[Running as usize], (10, 1));
    assert_eq!(all.times(2)[Running as usize], (0, 0));
    assert_eq!(all.times(3)[Running as usize], (10, 1));
    assert_eq!(all.times(3)[Sleeping as usize], (10, 1));
}

proptest! {
    #[test]
    fn no_time_is_lost_or_counted_twice(
        steps in prop::collection::vec((0i64..50, 0u32..3, 0u32..4), 0..100),
    ) {
        let mut all = all();
        let (mut time, mut running, mut has_come) = (0, [Idle; 3], [false; 3]);
        let mut expected = [0u64; 4];
        let mut since = [0i64; 3];
        for cpu in 0..3 {
            all.appear(cpu, Nanos(0));
        }
        for (later, cpu, to) in steps {
            time += later;
            let slot = cpu as usize;
            if let Some(thread) = running[slot].thread().filter(|_| has_come[slot]) {
                expected[thread as usize] += (time - since[slot]) as u64;
            }
            let to = free(to, &running, slot);
            all.push(switch(time, cpu, running[slot], to));
            (running[slot], has_come[slot], since[slot]) = (to, true, time);
        }
        all.finish(Nanos(time));
        for (thread, nanos) in expected.iter().enumerate() {
            let found = all.ran().get(thread).map_or(0, |thread| thread.running_nanos);
            prop_assert_eq!(found, *nanos);
        }
        for cpu in all.cpus() {
            prop_assert_eq!(cpu.busy_nanos + cpu.idle_nanos + cpu.unknown_nanos, time as u64);
            prop_assert_eq!(cpu.busy.values().iter().sum::<u64>(), cpu.busy_nanos);
        }
    }

    /// For arbitrary switches and omissions: a thread's running time equals its time in that state, and
    /// the intervals of a thread in a state add up to its sums.
    #[test]
    fn threads_and_processors_say_the_same(
        steps in prop::collection::vec(
            (0i64..50, 0u32..3, (0u32..4, any::<bool>()), (0u32..4, any::<bool>()), 0u8..5),
            0..100,
        ),
        lost in prop::collection::vec((0u32..3, 0i64..2000, 0i64..300), 0..3),
    ) {
        let who = |number: u32| if number == 0 { Idle } else { Thread(number) };
        let losses: Vec<Loss> = lost.iter().map(loss).collect();
        let mut all = from(0, &Gaps::new(&losses, &[], |_| None));
        let (mut time, mut told) = (0, Vec::new());
        for (later, cpu, (old, is_since_last), (new, to_is_whole), what) in steps {
            time += later;
            let next = switch(time, cpu, who(old), who(new));
            let next = Switch { to_is_whole, is_since_last, ..next };
            match what {
                0 => drop(all.wake(Nanos(time), new)),
                1 => all.made(Nanos(time), new),
                2 => all.finish(Nanos(time)),
                3 => drop(all.switch(&next, GoesInto::End)),
                _ => drop(all.switch(&next, GoesInto::State(Sleeping))),
            }
            told.extend(all.take());
        }
        all.finish(Nanos(time));
        told.extend(all.take());
        let mut sums = vec![[(0u64, 0u64); 6]; 4];
        for of in told.iter().filter(|of| of.has_ended) {
            if let Some(state) = of.state {
                let sum = &mut sums[of.thread as usize][state as usize];
                *sum = (sum.0 + of.end.since(of.begin) as u64, sum.1 + 1);
            }
        }
        for (thread, sums) in sums.iter().enumerate() {
            if all.sums.as_ref().unwrap().threads.threads().len() > thread {
                prop_assert_eq!(all.times(thread as u32), *sums);
            }
            let ran = all.ran().get(thread).map_or(0, |of| of.running_nanos);
            prop_assert_eq!(sums[Running as usize].0, ran);
        }
        let busy: u64 = all.cpus().iter().map(|cpu| cpu.busy_nanos).sum();
        prop_assert_eq!(busy, all.ran().iter().map(|of| of.running_nanos).sum::<u64>());
    }

    /// Arbitrary switches, with threads on several CPUs at once: no CPU contradicts the known intervals
    /// of a thread or CPU, each checked individually.
    #[test]
    fn what_is_known_is_contradicted_by_no_processor(
        steps in prop::collection::vec((0i64..4, 0u32..3, 0u32..4, 0u32..4, 0u8..8), 0..60),
    ) {
        let who = |number: u32| if number == 0 { Idle } else { Thread(number) };
        let mut all = all();
        let (mut time, mut told, mut stretches) = (0, Vec::new(), Vec::new());
        // Thread, CPU and time of each arrival, and the one before.
        let mut claims: Vec<(u32, u32, i64, i64)> = Vec::new();
        let mut last = [None; 3];
        for (later, cpu, old, new, what) in steps {
            time += later;
            match (what, new) {
                (0 | 1, 0) => {}
                (0, _) => drop(all.wake(Nanos(time), new)),
                (1, _) => all.made(Nanos(time), new),
                _ => {
                    // In most cases the thread that leaves is the one that came.
                    let came = last[cpu as usize].filter(|_| what != 2);
                    let old = came.map_or(old, |(came, _)| came);
                    let next = switch(time, cpu, who(old), who(new));
                    stretches.push(all.switch(&next, GoesInto::State(Sleeping)));
                    if let Some((came, since)) = last[cpu as usize].replace((new, time)) {
                        claims.push((cpu, came, since, time));
                    }
                }
            }
            told.extend(all.take());
        }
        all.finish(Nanos(time));
        told.extend(all.take());
        for (cpu, of) in (0..).zip(last) {
            claims.extend(of.map(|(came, since)| (cpu, came, since, time)));
        }
        let is_contradicted = |thread: u32, on: Option<u32>, begin: Nanos, end: Nanos| {
            claims.iter().any(|&(cpu, came, since, until)| {
                (came, Some(cpu) != on) == (thread, true) && since.max(begin.0) < until.min(end.0)
            })
        };
        for of in &told {
            let is_known = of.state.is_some() || of.is_off_cpu;
            prop_assert!(!is_known || !is_contradicted(of.thread, of.cpu, of.begin, of.end), "{:?}", of);
        }
        for of in &stretches {
            if let Some(Thread(thread)) = of.occupant {
                prop_assert!(!is_contradicted(thread, Some(of.cpu), of.begin, of.end), "{:?}", of);
            }
        }
    }

    #[test]
    fn what_is_put_back_takes_no_time_from_anybody(
        steps in prop::collection::vec((1i64..50, 0u32..2, 0u32..4), 0..80),
        lost in prop::collection::vec((0u32..2, 0i64..2000, 0i64..300), 0..4),
    ) {
        let losses: Vec<Loss> = lost.iter().map(loss).collect();
        let gaps = Gaps::new(&losses, &[], |_| None);
        let mut seen = from(0, &gaps);
        let mut truth = all();
        let (mut time, mut running) = (0, [Idle; 2]);
        for all in [&mut seen, &mut truth] {
            (0..2).for_each(|cpu| all.appear(cpu, Nanos(0)));
        }
        for (later, cpu, to) in steps {
            time += later;
            let to = free(to, &running, cpu as usize);
            let next = switch(time, cpu, running[cpu as usize], to);
            running[cpu as usize] = to;
            truth.push(next);
            if !gaps.touch_stream(StreamIndex(cpu), Nanos(time), Nanos(time)) {
                seen.push(next);
            }
        }
        seen.finish(Nanos(time));
        truth.finish(Nanos(time));
        for (seen, truth) in seen.ran().iter().zip(truth.ran()) {
            prop_assert!(seen.running_nanos <= truth.running_nanos);
            prop_assert!(seen.schedule_count <= truth.schedule_count);
            prop_assert!(losses.is_empty() <= (seen == truth));
            prop_assert_eq!(truth.missing_count, 0);
        }
        for (cpu, (seen, truth)) in seen.cpus().iter().zip(truth.cpus()).enumerate() {
            let is_exact = !gaps.touch_stream(StreamIndex(cpu as u32), Nanos(0), Nanos(time));
            prop_assert!(seen.busy_nanos <= truth.busy_nanos);
            prop_assert!(seen.idle_nanos <= truth.idle_nanos);
            prop_assert!(!is_exact || seen == truth);
        }
    }
}
