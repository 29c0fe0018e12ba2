// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a recording in which very many threads wait and very many spans are open, with
//! contradictory switches: the time for it must not grow quadratically.

use std::time::{Duration, Instant};

use lateralis_model::role::ATTRIBUTE;
use lateralis_model::{
    Attribute, Builder, Clock, EventClass, FieldClass, MemoryTrace, Quality, StreamClass,
    StreamIndex, Writer,
};
use lateralis_semantics::{CpuInterval, DerivedSink, DerivedSpan, SpanStatus, ThreadStateInterval};
use lateralis_store::Chosen;
use lateralis_store::compared::Observed;
use lateralis_store::explained::{Explained, Wanted, find, find_stretches};
use lateralis_store::facts::Kinds;
use lateralis_units::{CpuId, Nanos};

const THREADS: u32 = 1_000_000;
const SPANS: u32 = 100_000;
/// Far more than it takes, and far less than quadratic time for a million would.
const TIME_MAX: Duration = Duration::from_secs(120);

const CLASSES: [(&str, &[&str], &[&str]); 5] = [
    ("sched_switch", &[], &["prev_tid", "next_tid", "prev_state"]),
    ("sched_wakeup", &[], &["tid"]),
    ("t:K", &["begin k key key"], &["key"]),
    ("t:A", &["begin a"], &[]),
    ("t:B_END", &["end a"], &[]),
];
const SWITCH: u32 = 0;
const WAKEUP: u32 = 1;
const KEYED: u32 = 2;
const KEYLESS: u32 = 3;
const KEYLESS_END: u32 = 4;

fn builder() -> Builder {
    let mut builder = MemoryTrace::builder("many", u64::MAX);
    let clock = builder.clock(Clock::new("nanoseconds", 1_000_000_000, 0, 0));
    let stream = builder.stream_class(StreamClass { clock: Some(clock), ..StreamClass::default() });
    for (name, roles, fields) in CLASSES {
        let role = |role: &&str| Attribute { name: ATTRIBUTE.into(), value: (*role).into() };
        let fields = fields.iter().map(|field| (*field, FieldClass::u64()));
        builder.event_class(
            stream,
            EventClass {
                name: name.into(),
                attributes: roles.iter().map(role).collect(),
                payload: Some(FieldClass::structure(fields)),
                ..EventClass::default()
            },
        );
    }
    for cpu in 0..2 {
        builder.stream(stream, &format!("cpu{cpu}"), Some(CpuId(cpu)));
    }
    builder
}

/// Each thread is woken and comes to both CPUs, and leaves neither of them; one has all the spans.
fn many() -> MemoryTrace {
    let mut builder = builder();
    let mut time = 0;
    let mut event = |cpu: u32, class: u32, tid: Option<u32>, fields: &[u64]| {
        time += 10;
        let writer = tid.map(|tid| Writer { pid: tid, tid });
        let event = builder.event(StreamIndex(cpu), class, time, writer);
        fields.iter().fold(event, |event, field| event.u64(*field)).end().expect("no limit");
    };
    for number in 0..SPANS {
        event(0, KEYED, Some(1), &[number.into()]);
        event(0, KEYLESS, Some(1), &[]);
    }
    for tid in 1..=THREADS {
        event(0, WAKEUP, None, &[tid.into()]);
        // The switches of every hundredth thread contradict each other.
        if tid % 100 == 0 {
            event(0, SWITCH, None, &[0, tid.into(), 0]);
            event(1, SWITCH, None, &[tid.into(), tid.into(), 1]);
        }
    }
    event(1, KEYLESS_END, Some(2), &[]);
    builder.finish()
}

#[derive(Default)]
struct Counts {
    states: u64,
    exact: u64,
    cpus: u64,
    unfinished: u64,
}

impl DerivedSink for Counts {
    type Event = ();

    fn thread_state(&mut self, _: &Kinds, interval: &ThreadStateInterval) {
        self.states += 1;
        self.exact += u64::from(interval.quality == Quality::Exact);
    }

    fn cpu_interval(&mut self, _: &Kinds, _: &CpuInterval) {
        self.cpus += 1;
    }

    fn span(&mut self, _: &Kinds, span: &DerivedSpan) {
        self.unfinished += u64::from(span.status == SpanStatus::Unfinished);
    }
}

#[test]
fn the_end_of_a_million_threads_and_open_spans_takes_no_square_of_them() {
    let trace = many();
    let chosen = Chosen::all_of(&trace);
    let began = Instant::now();
    let mut facts = chosen.facts();
    let mut deriver = chosen.deriver::<()>(&facts, &[], true);
    let mut counts = Counts::default();
    let mut events = chosen.events();
    let mut last = Nanos(0);
    while let Some(event) = events.next_event() {
        last = event.time;
        facts.tell(&event, |kinds, at, fact| deriver.fact(kinds, at, fact, &mut counts));
    }
    deriver.finish(facts.kinds(), Some(last), &mut counts);
    assert_eq!(counts.unfinished, u64::from(2 * SPANS));
    // Each waits from its wakeup on; those that come to a CPU change their state there.
    assert!(counts.states >= u64::from(THREADS), "{} states", counts.states);
    assert!(counts.cpus >= u64::from(THREADS / 50), "{} stretches of CPUs", counts.cpus);
    let observed = Observed::of(&chosen);
    assert!(observed.events > u64::from(THREADS));
    let spans = find(&chosen, "k", Wanted::Slowest(2)).expect("a kind of span").found;
    assert_eq!(spans.len(), 2);
    let explained = Explained::of(&chosen, &spans[0]);
    let nanos: u64 = explained.path.segments.iter().map(|segment| segment.nanos()).sum();
    assert_eq!(nanos, spans[0].span.nanos());
    let (_, stretches) = find_stretches(&chosen, chosen.interval, "777", Nanos(last.0 - 1), 3)
        .unwrap_or_else(|error| panic!("thread 777 waits for a CPU up to the end: {error:?}"));
    assert!(!stretches.is_empty());
    let took = began.elapsed();
    println!("{took:?}: {} states, {} of them exact", counts.states, counts.exact);
    assert!(took < TIME_MAX, "{took:?}");
}
