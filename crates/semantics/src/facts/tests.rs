// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts of small traces that are written out here.

use lateralis_model::role::ATTRIBUTE;
use lateralis_model::{
    Attribute, Base, Builder, Clock, EnvValue, EventClass, FieldClass, MemoryTrace, Source,
    StreamClass, StreamIndex, Writer,
};
use lateralis_units::CpuId;

use super::{Fact, Facts, Kernel, Leaving};

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
                Fact::Wake { tid, cpu, waker, moment, .. } => {
                    format!("wake {tid} {cpu:?} {waker:?} {moment:?}")
                }
                Fact::Belongs { tid, pid } => format!("{tid} belongs to {pid}"),
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
            "6 cpu 1 30/31: wake 44 Some(0) Interrupt Queued",
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
        // Parked; and sleeping like kernel threads.
        (64, Leaving::Other),
        (128, Leaving::WaitingUninterruptibly),
    ] {
        assert_eq!(Leaving::of_number(state, Kernel::default()), expected, "{state:#x}");
    }
    let release =
        |text: &str| Kernel::of(&[("kernel_release".to_owned(), EnvValue::Text(text.to_owned()))]);
    // TASK_DEAD, before 4.14.
    assert_eq!(Leaving::of_number(64, release("4.4.0-116-generic")), Leaving::Ended);
    assert_eq!(Leaving::of_number(64, release("4.15.0-65-generic")), Leaving::Other);
}

/// A trace of CPU 1, on which thread 31 of process 30 runs from the first event on; events contain their
/// thread in a context, like those of perf and trace.dat.
struct Woken {
    builder: Builder,
    stream: StreamIndex,
    stream_class: u32,
    time: u64,
    has_flags: bool,
}

/// Fields of wake-ups.
const WOKEN: [&str; 2] = ["pid", "target_cpu"];

impl Woken {
    fn new(has_flags: bool) -> Self {
        let mut builder = MemoryTrace::builder("test", u64::MAX);
        let clock = Some(builder.clock(Clock::default()));
        let context = FieldClass::structure(["tid", "pid"].map(|name| (name, FieldClass::i64())));
        let common_context = Some(context);
        let stream_class =
            builder.stream_class(StreamClass { clock, common_context, ..Default::default() });
        let stream = builder.stream(stream_class, "s", Some(CpuId(1)));
        Self { builder, stream, stream_class, time: 0, has_flags }
    }

    /// An event of thread `tid`.
    fn event(&mut self, name: &str, tid: i64, flags: u64, fields: &[(&str, i64)]) -> &mut Self {
        let classes = fields.iter().map(|(name, _)| (*name, FieldClass::i64()));
        let mut class = event(name, &[], &classes.collect::<Vec<_>>());
        let flag = ("common_flags", FieldClass::unsigned(8, Base::Hexadecimal));
        class.context = self.has_flags.then(|| FieldClass::structure([flag]));
        let class = self.builder.event_class(self.stream_class, class);
        self.time += 1;
        let pending = self.builder.event(self.stream, class, self.time, None).i64(tid).i64(30);
        let pending = if self.has_flags { pending.u64(flags) } else { pending };
        fields.iter().fold(pending, |pending, (_, value)| pending.i64(*value)).end().unwrap();
        self
    }

    fn wake(&mut self, name: &str, tid: i64, flags: u64, wakee: i64) -> &mut Self {
        self.wake_on(name, tid, flags, (wakee, 0))
    }

    fn wake_on(&mut self, name: &str, tid: i64, flags: u64, woken: (i64, i64)) -> &mut Self {
        let [wakee, cpu] = WOKEN;
        self.event(name, tid, flags, &[(wakee, woken.0), (cpu, woken.1)])
    }

    fn switch(&mut self, from: i64, state: i64, to: i64) -> &mut Self {
        let fields = [("prev_pid", from), ("prev_state", state), ("next_pid", to)];
        self.event("sched:sched_switch", from, 0, &fields)
    }

    /// The wakeups of the trace.
    fn wakes(self) -> Vec<String> {
        let lines = listing(&self.builder.finish()).into_iter();
        lines.filter_map(|line| Some(line.split_once("wake ")?.1.to_owned())).collect()
    }

    /// The wakers only.
    fn wakers(self) -> String {
        let wakes = self.wakes();
        wakes.iter().filter_map(|wake| wake.split(' ').nth(2)).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn who_is_woken_is_told_by_the_event_and_not_by_its_context() {
    let mut trace = Woken::new(true);
    trace.wake("sched:sched_wakeup", 31, 0, 44).wake("sched:sched_wakeup_new", 31, 0, 45);
    assert_eq!(trace.wakes(), ["44 Some(0) Thread(31) Queued", "45 Some(0) Thread(31) BeginOfNew"]);
}

#[test]
fn a_wake_up_begins_where_it_is_made_and_counts_once() {
    let mut trace = Woken::new(true);
    // Its `sched_waking` was before the recording; but nothing shows that the trace has such events.
    trace.wake("sched_wakeup", 31, 0, 40);
    trace.wake("sched_waking", 31, 0, 41).wake("sched_wakeup", 32, 0x08, 41);
    // Its `sched_waking` is lost.
    trace.wake("sched_wakeup", 31, 0, 42);
    // 31 is about to sleep when it is woken.
    trace.wake("sched_waking", 7, 0x10, 31).switch(31, 1, 0).wake("sched_wakeup", 0, 0, 31);
    // No pending wakeup remains after the thread has run.
    trace.wake("sched_waking", 7, 0, 50).switch(0, 0, 50).wake("sched_wakeup", 7, 0, 50);
    assert_eq!(
        trace.wakes(),
        [
            "40 Some(0) Thread(31) Queued",
            "41 Some(0) Thread(31) Begin",
            "42 Some(0) Unknown(None) Queued",
            "31 Some(0) Interrupt Begin",
            "31 Some(0) Interrupt QueuedAgain",
            "50 Some(0) Thread(7) Begin",
            "50 Some(0) Unknown(None) Queued",
        ]
    );
}

#[test]
fn what_is_declared_and_never_happens_costs_no_wake_ups() {
    let mut trace = Woken::new(true);
    let class = event("sched:sched_waking", &[], &WOKEN.map(|name| (name, FieldClass::i64())));
    trace.builder.event_class(trace.stream_class, class);
    trace.wake("sched:sched_wakeup", 31, 0, 44);
    assert_eq!(trace.wakes(), ["44 Some(0) Thread(31) Queued"]);
}

#[test]
fn flags_tell_interrupts_from_the_threads_they_are_in() {
    let mut trace = Woken::new(true);
    for flags in [0x00, 0x01, 0x05, 0x08, 0x10, 0x18, 0x40] {
        trace.wake("sched_waking", 31, flags, 44);
    }
    trace.wake("sched_waking", 0, 0, 44);
    let threads = ["Thread(31)"; 3].join(" ");
    assert_eq!(trace.wakers(), format!("{threads} {}", ["Interrupt"; 5].join(" ")));

    // A hard interrupt on the CPU of the woken thread may have been sent by a thread on another CPU.
    let mut trace = Woken::new(true);
    for (flags, cpu) in [(0x08, 1), (0x08, 0), (0x10, 1), (0x00, 1)] {
        trace.wake_on("sched_wakeup", 31, flags, (44, cpu));
    }
    trace.wake_on("sched_wakeup", 0, 0, (44, 1));
    trace.event("irq_handler_entry", 31, 0x08, &[("irq", 9)]);
    trace.wake_on("sched_wakeup", 31, 0x08, (44, 1));
    let expected = "Unknown(None) Interrupt Interrupt Thread(31) Unknown(None) Interrupt";
    assert_eq!(trace.wakers(), expected);
}

#[test]
fn without_flags_a_thread_wakes_only_where_all_interrupts_are_recorded() {
    let mut trace = Woken::new(false);
    let mut wakes = 0;
    let mut wake = |trace: &mut Woken| {
        trace.wake("sched_waking", 31, 0, 44);
        wakes += 1;
    };
    wake(&mut trace);
    for name in ["irq_handler", "irq_softirq", "x86_irq_vectors_local_timer"] {
        for side in ["entry", "exit"] {
            let fields = [("irq", 1), ("vec", 1)];
            trace.event(&format!("{name}_{side}"), 31, 0, &fields);
            wake(&mut trace);
        }
    }
    // A lost interrupt exit does not leave the interrupt open for ever.
    trace.event("hrtimer_expire_entry", 31, 0, &[("hrtimer", 1)]);
    wake(&mut trace);
    trace.switch(31, 0, 32).wake("sched_waking", 32, 0, 44);
    // A call from another CPU.
    trace.event("call_function_single_entry", 32, 0, &[("vector", 1)]);
    trace.wake("sched_waking", 32, 0, 44);
    assert_eq!(wakes, 8);
    assert_eq!(
        trace.wakers(),
        "Unknown(None) Interrupt Unknown(Some(31)) Interrupt Unknown(Some(31)) Interrupt \
         Thread(31) Interrupt Thread(32) Interrupt"
    );
}

#[test]
fn a_process_that_becomes_known_is_told_once() {
    let mut builder = MemoryTrace::builder("test", u64::MAX);
    let clock = builder.clock(Clock::default());
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let fields = ["prev_tid", "next_tid"].map(|name| (name, FieldClass::i64()));
    let switch = builder.event_class(class, event("sched_switch", &[], &fields));
    let fields = ["tid", "pid"].map(|name| (name, FieldClass::i64()));
    let state = event("lttng_statedump_process_state", &[], &fields);
    let state = builder.event_class(class, state);
    let read = builder.event_class(class, event("syscall_entry_read", &[], &[]));
    let stream = builder.stream(class, "s", Some(CpuId(1)));
    builder.event(stream, switch, 1, None).i64(0).i64(31).end().unwrap();
    builder.event(stream, read, 2, None).end().unwrap();
    for (tid, pid) in [(31, 30), (31, 30), (40, 40)] {
        builder.event(stream, state, 3, None).i64(tid).i64(pid).end().unwrap();
    }
    builder.event(stream, read, 4, None).end().unwrap();
    assert_eq!(
        listing(&builder.finish()),
        [
            "1 cpu 1 -: switch 0 unknown 31",
            "2 cpu 1 31/31: begin syscall read",
            "3 cpu 1 31/31: 31 belongs to 30",
            "4 cpu 1 30/31: begin syscall read",
        ]
    );
}
