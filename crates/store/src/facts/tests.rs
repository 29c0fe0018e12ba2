// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts of small traces that can be read here.

use lateralis_model::role::ATTRIBUTE;
use lateralis_model::{
    Attribute, Clock, EventClass, FieldClass, MemoryTrace, Source, StreamClass, Writer,
};
use lateralis_units::CpuId;

use super::{Fact, Facts, Leaving};

/// One line per fact: time, processor, thread, fact.
fn listing(trace: &MemoryTrace) -> Vec<String> {
    let mut facts = Facts::new(trace.trace(), &trace.streams());
    let mut lines = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        let mut seen = Vec::new();
        facts.of(&event, |at, fact| seen.push((*at, fact)));
        for (at, fact) in seen {
            let key = |kinds: &[super::Kind], kind: u32, key: Option<u64>| {
                let kind = &kinds[kind as usize];
                let key = key.map_or(String::new(), |key| format!(" {}", kind.key_text(key)));
                format!("{}{key}", kind.name)
            };
            let kinds = facts.kinds();
            let what = match fact {
                Fact::Begin { span, key: k } => format!("begin {}", key(&kinds.spans, span, k)),
                Fact::End { span, key: k } => format!("end {}", key(&kinds.spans, span, k)),
                Fact::Whole { span, duration_ns } => {
                    format!("whole {} {duration_ns}", kinds.spans[span as usize].name)
                }
                Fact::Send { channel, key: k } => {
                    format!("send {}", key(&kinds.channels, channel, k))
                }
                Fact::Receive { channel, key: k } => {
                    format!("receive {}", key(&kinds.channels, channel, k))
                }
                Fact::State { machine, state } => {
                    let machine = &kinds.machines[machine as usize];
                    format!("state {} {}", machine.name, machine.states[state as usize])
                }
                Fact::Level { counter, value } => {
                    format!("level {} {value}", kinds.counters[counter as usize].name)
                }
                Fact::Switch { from, to, leaving, .. } => {
                    format!("switch {from} {} {to}", leaving.name())
                }
                Fact::Wake { tid, cpu } => format!("wake {tid} {cpu:?}"),
            };
            let cpu = at.cpu.map_or("-".to_owned(), |cpu| cpu.to_string());
            let who = at.writer.map_or("-".to_owned(), |w| format!("{}/{}", w.pid, w.tid));
            lines.push(format!("{} cpu {cpu} {who}: {what}", at.time.0));
        }
    }
    lines
}

fn event(name: &str, roles: &[&str], fields: &[(&str, FieldClass)]) -> EventClass {
    let attribute = |role: &&str| Attribute { name: ATTRIBUTE.into(), value: (*role).into() };
    EventClass {
        name: name.into(),
        payload: Some(FieldClass::structure(fields.iter().cloned())),
        attributes: roles.iter().map(attribute).collect(),
        ..EventClass::default()
    }
}

#[test]
fn roles_of_schemas_become_facts() {
    let mut builder = MemoryTrace::builder("test", u64::MAX);
    let clock = builder.clock(Clock::default());
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let hex = FieldClass::unsigned(64, lateralis_model::Base::Hexadecimal);
    let lock =
        builder.event_class(class, event("app:LOCK", &["begin held key mutex"], &[("mutex", hex)]));
    let two = [("from", FieldClass::text()), ("seq", FieldClass::u64())];
    let send = builder.event_class(class, event("app:SEND", &["send ipc key from seq"], &two));
    let level = [("free", FieldClass::i64())];
    let level = builder.event_class(class, event("app:QUEUE", &["counter free"], &level));
    let state = [("mode", FieldClass::text())];
    let state = builder.event_class(class, event("app:MODE", &["state engine mode"], &state));
    let whole = [("ns", FieldClass::u64())];
    let whole = builder.event_class(class, event("app:DRAW", &["span draw for ns"], &whole));
    let stream = builder.stream(class, "s", Some(CpuId(2)));
    let me = Some(Writer { pid: 7, tid: 8 });
    builder.event(stream, lock, 1, me).u64(0xbeef).end().unwrap();
    builder.event(stream, send, 2, me).text("a").u64(3).end().unwrap();
    builder.event(stream, level, 3, None).i64(-4).end().unwrap();
    builder.event(stream, state, 4, me).text("off").end().unwrap();
    builder.event(stream, whole, 5, me).u64(90).end().unwrap();
    assert_eq!(
        listing(&builder.finish()),
        [
            "1 cpu 2 7/8: begin held 0xbeef",
            "2 cpu 2 7/8: send ipc a 3",
            "3 cpu 2 -: level app:QUEUE.free -4",
            "4 cpu 2 7/8: state engine off",
            "5 cpu 2 7/8: whole draw 90",
        ]
    );
}

#[test]
fn switches_tell_whose_the_events_behind_them_are() {
    let mut builder = MemoryTrace::builder("test", u64::MAX);
    let clock = builder.clock(Clock::default());
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let fields = [
        ("prev_comm", FieldClass::text()),
        ("prev_tid", FieldClass::i64()),
        ("prev_state", FieldClass::i64()),
        ("next_comm", FieldClass::text()),
        ("next_tid", FieldClass::i64()),
    ];
    let switch = builder.event_class(class, event("sched_switch", &[], &fields));
    let fork = [
        ("child_comm", FieldClass::text()),
        ("child_tid", FieldClass::i64()),
        ("child_pid", FieldClass::i64()),
    ];
    let fork = builder.event_class(class, event("sched_process_fork", &[], &fork));
    let wake = [("tid", FieldClass::i64()), ("target_cpu", FieldClass::i64())];
    let wake = builder.event_class(class, event("sched_wakeup", &[], &wake));
    let read = builder.event_class(class, event("syscall_entry_read", &[], &[]));
    let irq = [("irq", FieldClass::i64())];
    let irq = builder.event_class(class, event("irq_handler_entry", &[], &irq));
    let stream = builder.stream(class, "s", Some(CpuId(1)));
    builder.event(stream, read, 1, None).end().unwrap();
    builder.event(stream, fork, 2, None).text("worker").i64(31).i64(30).end().unwrap();
    let pending = builder.event(stream, switch, 3, None).text("swapper/1").i64(0).i64(0);
    pending.text("worker").i64(31).end().unwrap();
    builder.event(stream, read, 4, None).end().unwrap();
    builder.event(stream, irq, 5, None).i64(19).end().unwrap();
    builder.event(stream, wake, 6, None).i64(44).i64(0).end().unwrap();
    let pending = builder.event(stream, switch, 7, None).text("worker").i64(31).i64(2);
    pending.text("swapper/1").i64(0).end().unwrap();
    let trace = builder.finish();
    assert_eq!(
        listing(&trace),
        [
            "1 cpu 1 -: begin syscall read",
            "3 cpu 1 -: switch 0 preempted 31",
            "4 cpu 1 30/31: begin syscall read",
            "5 cpu 1 30/31: begin irq 19 cpu1",
            "6 cpu 1 30/31: wake 44 Some(0)",
            "7 cpu 1 30/31: switch 31 waiting_uninterruptibly 0",
        ]
    );
}

#[test]
fn states_of_the_kernel_have_names() {
    for (state, expected) in [
        (0, Leaving::Preempted),
        (0x100, Leaving::Preempted),
        (0x1000, Leaving::Preempted),
        (1, Leaving::Waiting),
        (2, Leaving::WaitingUninterruptibly),
        (0x402, Leaving::WaitingUninterruptibly),
        (4, Leaving::Other),
        (16, Leaving::Ended),
        (32, Leaving::Ended),
        (64, Leaving::Ended),
    ] {
        assert_eq!(Leaving::of_number(state), expected, "{state:#x}");
    }
}
