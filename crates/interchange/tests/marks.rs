// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Marks of programs in events `print` of the kernel, in a trace of any format.

use lateralis_interchange::with_marks;
use lateralis_model::role::Role;
use lateralis_model::{
    Clock, EventClass, FieldClass, Interval, MemoryTrace, Source, StreamClass, Writer,
};
use lateralis_units::{CpuId, Nanos};

/// Texts on two processors: time, processor, thread, text.
fn trace(marks: &[(u64, u32, u32, &str)]) -> Box<dyn Source> {
    let mut builder = MemoryTrace::builder("test", u64::MAX);
    let clock = builder.clock(Clock::new("mono", 1_000_000_000, 0, 0));
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..StreamClass::default() });
    let streams = [0, 1].map(|cpu| builder.stream(class, &format!("cpu{cpu}"), Some(CpuId(cpu))));
    let payload = FieldClass::structure([("ip", FieldClass::u64()), ("buf", FieldClass::text())]);
    let print = EventClass {
        name: "ftrace:print".to_owned(),
        payload: Some(payload),
        ..EventClass::default()
    };
    let print = builder.event_class(class, print);
    for &(time, cpu, tid, text) in marks {
        let writer = Some(Writer { pid: tid, tid });
        let event = builder.event(streams[cpu as usize], print, time, writer);
        event.u64(7).text(text).end().unwrap();
    }
    Box::new(builder.finish())
}

/// Time, process, name and what the events say.
fn shown(source: &dyn Source, interval: Interval) -> Vec<String> {
    let mut events = source.events_in(interval);
    let mut lines = Vec::new();
    while let Some(event) = events.next_event() {
        let roles: Vec<String> = Role::of(event.class).map(|role| role.to_string()).collect();
        let mut line =
            format!("{} {} {}", event.time.0, event.writer.unwrap().pid, event.class.name);
        for (member, field) in event.payload().unwrap().into_iter().skip(2) {
            let text = field.as_text().map(|text| text.into_owned());
            let text = text.unwrap_or_else(|| (field.as_u64().unwrap() as i64).to_string());
            line += &format!(" {}={text}", member.name);
        }
        assert_eq!(event.payload().unwrap().get("ip").unwrap().as_u64(), Some(7));
        lines.push(format!("{line}: {}", roles.join(", ")));
    }
    lines
}

/// Threads move between processors, several end at one time, ends have no names.
const MARKS: [(u64, u32, u32, &str); 13] = [
    (1, 0, 11, "E|10"),
    (2, 0, 11, "B|10|outer"),
    (3, 1, 12, "B|10|other"),
    (4, 1, 11, "B|10|inner"),
    (5, 0, 12, "C|10|queue|-3\n"),
    (6, 0, 11, "E|10"),
    (6, 0, 12, "E|10"),
    (6, 0, 11, "E|10"),
    (7, 1, 12, "S|10|load|x"),
    (8, 1, 13, "G|10|row|work|9"),
    (9, 0, 12, "F|10|load|x"),
    (10, 0, 13, "H|10|row|9"),
    (11, 0, 13, "plain text"),
];

const SHOWN: [&str; 13] = [
    "1 10 ftrace:print: ",
    "2 10 outer: begin outer",
    "3 10 other: begin other",
    "4 10 inner: begin inner",
    "5 10 queue value=-3: counter value",
    "6 10 inner: end inner",
    "6 10 other: end other",
    "6 10 outer: end outer",
    "7 10 load cookie=x process=10: begin load key cookie process",
    "8 10 work cookie=9 track=row process=10: begin work key cookie track process",
    "9 10 load cookie=x process=10: end load key cookie process",
    "10 10 work cookie=9 track=row process=10: end work key cookie track process",
    "11 10 ftrace:print: ",
];

#[test]
fn ends_are_named_as_what_they_end_wherever_reading_begins() {
    let source = with_marks(trace(&MARKS), 1 << 20);
    assert_eq!(shown(&*source, Interval::default()), SHOWN);
    for begin in 1..12 {
        let from = Interval { begin: Some(Nanos(begin)), end: None };
        let expected = SHOWN
            .iter()
            .filter(|line| line.split(' ').next().unwrap().parse::<i64>().unwrap() >= begin);
        assert_eq!(shown(&*source, from), expected.copied().collect::<Vec<_>>(), "{begin}");
    }
    let classes = &source.trace().stream_classes[0].event_classes;
    let mut ids: Vec<u64> = classes.iter().map(|class| class.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), classes.len(), "each class has a number of its own");
}

#[test]
fn what_does_not_fit_stays_text_with_a_remark() {
    let marks: Vec<(u64, u32, u32, String)> = (0..200)
        .map(|n| {
            let text = if n % 2 == 0 { format!("B|1|n{n}") } else { "E|1".to_owned() };
            (n, 0, 1, text)
        })
        .collect();
    let marks: Vec<_> = marks.iter().map(|(a, b, c, text)| (*a, *b, *c, text.as_str())).collect();
    let source = with_marks(trace(&marks), 400);
    let texts = |source: &dyn Source| {
        let lines = shown(source, Interval::default());
        lines.iter().filter(|line| line.contains("ftrace:print")).count()
    };
    assert!(texts(&*source) > 90);
    assert_eq!(source.remarks().len(), 1, "{:?}", source.remarks());
    assert_eq!(texts(&*with_marks(trace(&marks), 1 << 20)), 0);
}

#[test]
fn a_trace_without_marks_stays_as_it_is() {
    let source = with_marks(trace(&[(1, 0, 1, "hello"), (2, 0, 1, "B|x|y")]), 1 << 20);
    assert_eq!(source.trace().stream_classes[0].event_classes.len(), 1);
    assert_eq!(shown(&*source, Interval::default()).len(), 2);
}
