// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions on packets made by hand: one tick is one nanosecond.

use std::sync::Arc;

use lateralis_ring::reference_writer::record_header;
use lateralis_ring::{RingKind, abi};

use super::*;
use crate::classes::{ClassTable, RegisteredSchema};

const SCHEMA: &str = "subsystem app {
    event BEGIN (id: u32) begin request key id,
    event END (id: u32) end request key id,
    event IN () begin work, event OUT () end work,
    event BEAT (),
    event LEVEL (depth: u16, queue: u8) counter depth key queue,
    event STATE (state: enum : u8 { IDLE = 0, BUSY = 3 }, who: string),
};";

struct Bench {
    classes: ClassTable,
    watch: Watch,
}

impl Bench {
    fn new(text: &str) -> Bench {
        let compiled = lateralis_pleco::compile("t.pleco", SCHEMA.as_bytes());
        let schema =
            Arc::new(compiled.schema.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
        let registered = RegisteredSchema { base_id: 16, hash: schema.hash(), schema };
        let mut classes = ClassTable::default();
        classes.add(RingKind::PerCpu, &[registered]);
        let condition = Condition::parse(text).unwrap();
        Bench { classes, watch: Watch::new(&[condition], 0, &|ns| ns) }
    }

    /// A packet of records: index of the event, added to the base id 16; time; payload.
    fn packet(&mut self, tid: u32, records: &[(u16, u64, &[u8])]) {
        let mut bytes = record_header(abi::ID_WRITER, records[0].1).to_ne_bytes().to_vec();
        bytes.extend([7u32.to_ne_bytes(), tid.to_ne_bytes()].concat());
        for (id, time, payload) in records {
            bytes.extend(record_header(16 + id, *time).to_ne_bytes());
            bytes.extend(*payload);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        let slack = (8 - records[records.len() - 1].2.len() % 8) % 8;
        self.watch.packet(&self.classes, (0, (0, 0), records[0].1), &bytes, slack as u64);
    }

    fn fired(&mut self, to: u64) -> Vec<(u64, Measured)> {
        self.watch.advance(to).0.into_iter().map(|one| (one.at, one.measured)).collect()
    }
}

fn over(ticks: u64) -> Measured {
    Measured::Ticks { ticks, is_over: true }
}

#[test]
fn a_span_fires_when_it_passes_its_limit_whenever_that_is_looked_at() {
    let id = 42u32.to_ne_bytes();
    let other = 43u32.to_ne_bytes();
    for looks in [vec![10_000], vec![500, 1500, 1700, 10_000]] {
        let mut bench = Bench::new("span(request) > 1us");
        // The end is in another packet, which arrives first.
        bench.packet(2, &[(1, 2600, &id), (1, 2700, &other)]);
        bench.packet(1, &[(0, 400, &id), (0, 1800, &other)]);
        let (mut fired, mut ends) = (Vec::new(), Vec::new());
        for to in looks {
            let (more, ended) = bench.watch.advance(to);
            fired.extend(more);
            ends.extend(ended);
        }
        assert_eq!(fired.len(), 1, "{fired:?}");
        assert_eq!((fired[0].at, fired[0].key.as_deref()), (1400, Some("42")));
        assert!(fired[0].is_certain);
        let ticks = ends.first().map(|end| end.ticks);
        assert!(fired[0].measured == over(2200) || ticks == Some(2200), "{fired:?} {ends:?}");
    }
}

#[test]
fn what_losses_touch_is_not_certain() {
    for (from, to, is_certain) in [(0, 399, true), (500, 600, false), (2601, 2700, true)] {
        let mut bench = Bench::new("span(request) > 1us");
        bench.packet(1, &[(0, 400, &[1, 0, 0, 0]), (1, 2600, &[1, 0, 0, 0])]);
        bench.watch.lost(from, to);
        assert_eq!(bench.watch.advance(9000).0[0].is_certain, is_certain, "{from}");
    }
}

#[test]
fn spans_without_a_key_belong_to_their_thread() {
    let mut bench = Bench::new("span(work) > 1us");
    bench.packet(1, &[(2, 100, &[]), (3, 2000, &[])]);
    bench.packet(2, &[(2, 1900, &[]), (3, 2100, &[])]);
    assert_eq!(bench.fired(9000), [(1100, over(1900))]);
}

#[test]
fn heartbeats_rates_counters_sequences_and_values() {
    let mut bench = Bench::new("missing(app:BEAT) for 160ns");
    bench.packet(1, &[(4, 100, &[]), (4, 200, &[]), (4, 500, &[])]);
    assert_eq!(bench.fired(510), [(360, over(300))]);
    assert_eq!(bench.fired(1000).iter().map(|one| one.0).collect::<Vec<_>>(), [660]);
    assert_eq!(bench.fired(2000), []);

    let mut bench = Bench::new("rate(BEAT) > 1000/s over 10ms");
    let beats: Vec<(u16, u64, &[u8])> =
        (0..20).map(|n| (4, 30_000_000 + n * 100_000, &[][..])).collect();
    bench.packet(1, &beats);
    let fired = bench.fired(100_000_000);
    assert_eq!(fired, [(32_000_000, Measured::PerSecond(2000.0))]);

    let mut bench = Bench::new("counter(depth) >= 9");
    bench.packet(
        1,
        &[(5, 10, &[8, 0, 1]), (5, 20, &[9, 0, 1]), (5, 30, &[9, 0, 1]), (5, 40, &[9, 0, 2])],
    );
    assert_eq!(bench.fired(99), [(20, Measured::Value(9.0)), (40, Measured::Value(9.0))]);

    let mut bench = Bench::new("sequence(IN, BEAT, OUT) within 50ns");
    bench.packet(
        1,
        &[(2, 10, &[]), (4, 20, &[]), (3, 70, &[]), (2, 80, &[]), (4, 90, &[]), (3, 95, &[])],
    );
    assert_eq!(bench.fired(99), [(95, over(15))]);

    let mut bench = Bench::new("event(app:STATE, state == BUSY, who != \"me\")");
    bench.packet(1, &[(6, 10, b"\x03me\0"), (6, 20, b"\x03you\0"), (6, 30, b"\0you\0")]);
    assert_eq!(bench.fired(99), [(20, Measured::Nothing)]);
}

#[test]
fn open_spans_are_bounded_and_counted() {
    let mut bench = Bench::new("span(request) > 1s");
    for id in 0..spans::OPEN_MAX as u32 + 10 {
        bench.packet(1, &[(0, 5, &id.to_ne_bytes())]);
        if id % 1000 == 0 {
            bench.watch.advance(6);
        }
    }
    bench.watch.advance(7);
    assert_eq!(bench.watch.limits().spans_not_watched, 10);
    // After the old ones have fired there is room again.
    assert_eq!(bench.watch.advance(2_000_000_000).0.len(), 4096);
    bench.packet(1, &[(0, 2_000_000_001, &[9, 9, 9, 9])]);
    bench.watch.advance(2_000_000_002);
    assert_eq!(bench.watch.limits().spans_not_watched, 10);
}

#[test]
fn names_nobody_knows_are_told_with_the_nearest() {
    for (text, expected) in [
        (
            "span(reqest) > 1ms",
            "span(reqest) > 1ms: there is no span reqest; did you mean request?",
        ),
        ("missing(app:BEATS) for 1s", "did you mean app:BEAT?"),
        ("event(STATE, state == IDEL)", "the field state of STATE has no such value"),
        ("event(STATE, stat == IDLE)", "did you mean state?"),
    ] {
        let bench = Bench::new(text);
        let unknown = bench.watch.unknown(&bench.classes);
        assert!(unknown.len() == 1 && unknown[0].contains(expected), "{unknown:?}");
    }
    let bench =
        Bench::new("span(request) > 1ms or counter(depth) > 3 or event(STATE, state == BUSY)");
    assert_eq!(bench.watch.unknown(&bench.classes), Vec::<String>::new());
}

#[test]
fn mistakes_are_shown_where_they_are() {
    for (text, at, what) in [
        ("", 0, "expected a test"),
        ("spam(x) > 1ms", 0, "did you mean span?"),
        ("span(x) > 5", 10, "no unit"),
        ("span(x) > 5 parsecs", 10, "no unit of time"),
        ("span(x) < 5ms", 8, "expected \">\""),
        ("span(x) > 5ms and span(y) > 1ms", 14, "never at the same moment"),
        ("event(A) and event(B) within 5", 29, "no unit"),
        ("(event(A) or event(B)", 21, "expected \")\""),
        ("event(A)) or event(B)", 8, "no \"(\""),
        ("event(A) event(B)", 9, "expected `or`, `and`"),
        ("sequence(A) within 1s", 10, "at least two"),
        ("rate(A) == 5/s", 8, "greater or less"),
        ("rate(A) > 5", 10, "events a second"),
        ("event(A, b == \"c)", 14, "no end"),
        ("event(A, b ~ 3)", 11, "means nothing"),
        ("counter(x) > 1e", 13, "is no number"),
    ] {
        let error = Condition::parse(text).unwrap_err();
        assert!(error.at == at && error.what.contains(what), "{text}: {error:?}");
    }
    let error = Condition::parse("span(x) > 5").unwrap_err();
    assert_eq!(error.picture(), "  span(x) > 5\n            ^");
    let many = vec!["span(x) > 1s"; TESTS_MAX + 1].join(" or ");
    assert!(Condition::parse(&many).unwrap_err().what.contains("more than"));
    assert!(Condition::parse(&" ".repeat(TEXT_MAX + 1)).is_err());
    let deep = "(".repeat(DEPTH_MAX + 1);
    assert!(Condition::parse(&deep).unwrap_err().what.contains("within each other"));
}

#[test]
fn things_joined_by_and_fire_with_the_last_of_them_if_they_are_near() {
    let both = "event(IN) and event(OUT) within 50ns";
    // In any order; each is used once.
    let mut bench = Bench::new(both);
    bench.packet(1, &[(3, 10, &[]), (2, 60, &[]), (2, 70, &[]), (3, 80, &[]), (3, 90, &[])]);
    assert_eq!(bench.fired(999), [(60, over(50)), (80, over(10))]);
    assert_eq!(bench.watch.fired(), 2);
    // Too far apart.
    let mut bench = Bench::new(both);
    bench.packet(1, &[(3, 10, &[]), (2, 61, &[])]);
    assert_eq!(bench.fired(999), []);
    // `and` binds more tightly than `or`; parentheses override both.
    for (text, expected) in [
        ("event(BEAT) or event(IN) and event(OUT) within 5ns", vec![(10, Measured::Nothing)]),
        ("(event(BEAT) or event(IN)) and event(OUT) within 5ns", vec![(12, over(2))]),
        ("event(BEAT) and event(OUT) within 2ns and event(IN) within 9ns", vec![]),
        ("(event(BEAT) and event(OUT) within 2ns) and event(IN) within 9ns", vec![(20, over(10))]),
    ] {
        let Ok(condition) = Condition::parse(text) else {
            assert!(expected.is_empty(), "{text}");
            continue;
        };
        assert!(condition.alternatives.len() <= 2);
        let mut bench = Bench::new(text);
        bench.packet(1, &[(4, 10, &[]), (3, 12, &[]), (2, 20, &[])]);
        assert_eq!(bench.fired(999), expected, "{text}");
    }
}

#[test]
fn what_is_joined_by_and_does_not_depend_on_when_it_was_looked_at() {
    let text = "span(request) > 100ns and missing(BEAT) for 160ns within 1us";
    let one = [1, 0, 0, 0];
    let mut all = Vec::new();
    for looks in [vec![9000], (0..90).map(|n| n * 101).collect(), vec![205, 351, 365, 401, 9000]] {
        let mut bench = Bench::new(text);
        // Too long at 300; the silence from 190 on is too long at 350, and ends at 360.
        let records: [(u16, u64, &[u8]); 6] = [
            (4, 90, &[]),
            (4, 190, &[]),
            (0, 200, &one),
            (4, 360, &[]),
            (4, 364, &[]),
            (1, 400, &one),
        ];
        bench.packet(1, &records);
        let fired: Vec<_> = looks.iter().flat_map(|to| bench.watch.advance(*to).0).collect();
        assert_eq!((fired[0].at, &fired[0].measured), (350, &over(50)), "{fired:?}");
        assert_eq!((fired[0].key.as_deref(), fired[0].number), (Some("1"), 1));
        all.push(fired.iter().map(|one| (one.at, one.test.clone())).collect::<Vec<_>>());
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
}

#[test]
fn a_combination_is_as_certain_as_its_parts() {
    for (from, to, is_certain) in [(0, 399, true), (500, 600, false)] {
        let mut bench = Bench::new("span(request) > 1us and event(BEAT) within 1us");
        let key = [1, 0, 0, 0];
        bench.packet(1, &[(0, 400, &key), (4, 1500, &[]), (1, 2600, &key)]);
        bench.watch.lost(from, to);
        assert_eq!(bench.watch.advance(9000).0[0].is_certain, is_certain, "{from}");
    }
}

#[test]
fn a_heartbeat_is_missed_only_while_somebody_is_there_who_has_it() {
    let text = "missing(app:BEAT) for 160ns";
    let is_beat = |name: &EventName| name.event == "BEAT";
    let nobody = |_: &EventName| false;
    // Evaluated every 100: a program is present from 300 to 1000, and beats at 400 and 500.
    let mut bench = Bench::new(text);
    let mut fired = Vec::new();
    for now in (100..=2000).step_by(100) {
        let is_there = (300..=1000).contains(&now);
        bench.watch.expect(now, if is_there { &is_beat } else { &nobody });
        if now == 500 {
            bench.packet(1, &[(4, 400, &[]), (4, 500, &[])]);
        }
        fired.extend(bench.fired(now));
    }
    // Not at 160, when no program was present; once after 500; not after its end, at 1160.
    let at_least = Measured::Ticks { ticks: 200, is_over: false };
    assert_eq!(fired, [(660, at_least)]);
    // A program that ends in time misses nothing; for the next one silence counts from its own start.
    let mut bench = Bench::new(text);
    bench.packet(1, &[(4, 300, &[])]);
    for (now, is_there) in [(300, true), (400, true), (500, false), (900, true), (1000, true)] {
        bench.watch.expect(now, if is_there { &is_beat } else { &nobody });
    }
    assert_eq!(bench.fired(1000), []);
    bench.watch.expect(1100, &is_beat);
    assert_eq!(bench.fired(1100), [(1060, Measured::Ticks { ticks: 200, is_over: false })]);
}

#[test]
fn threads_have_the_names_that_they_had_at_a_moment() {
    let mut bench = Bench::new("event(BEAT)");
    let name = |text: &str, at: u64| {
        let mut bytes = record_header(abi::ID_THREAD_NAME, at).to_ne_bytes().to_vec();
        bytes.extend([7u32.to_ne_bytes(), 9u32.to_ne_bytes()].concat());
        bytes.extend(text.as_bytes());
        bytes.push(0);
        let slack = bytes.len().next_multiple_of(8) - bytes.len();
        bytes.resize(bytes.len() + slack, 0);
        (bytes, slack as u64)
    };
    for (text, at) in [("first", 10), ("second", 50)] {
        let (bytes, slack) = name(text, at);
        bench.watch.packet(&bench.classes, (0, (0, 0), at), &bytes, slack);
    }
    let at = |moment| bench.watch.names_at(moment).into_iter().map(|(_, name)| name);
    assert_eq!(at(10).count(), 0);
    assert_eq!(at(50).collect::<Vec<_>>(), ["first"]);
    assert_eq!(at(51).collect::<Vec<_>>(), ["second"]);
}
