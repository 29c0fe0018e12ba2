// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces for tests of scripts.

use lateralis_analysis::filter::Context;
use lateralis_model::{
    Clock, EventClass, FieldClass, FieldKind, IntegerClass, Label, MemoryTrace, Range, Source,
    StreamClass, Writer,
};
use lateralis_script::{Activities, Activity, End, Limits, Script, ScriptError};
use lateralis_units::CpuId;

pub fn load(source: &str) -> Script {
    Script::load("test.js", source, Limits::default()).unwrap_or_else(|e| panic!("{source}: {e}"))
}

pub fn fails(source: &str) -> ScriptError {
    match Script::load("test.js", source, Limits::default()) {
        Ok(_) => panic!("{source}: no error"),
        Err(error) => error,
    }
}

/// One event with fields of every kind; `salt` varies their values.
pub fn every_kind(salts: &[u64]) -> MemoryTrace {
    let mut builder = MemoryTrace::builder("test", u64::MAX);
    let clock = builder.clock(Clock::default());
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let label = Label { name: "RUNNING".into(), ranges: vec![Range { low: 2, high: 2 }] };
    let labelled = IntegerClass { bits: 8, labels: vec![label], ..Default::default() };
    let payload = FieldClass::structure([
        ("u", FieldClass::u64()),
        ("i", FieldClass::i64()),
        ("text", FieldClass::text()),
        ("real", FieldClass::real()),
        ("state", FieldClass::new(FieldKind::Unsigned(labelled))),
        ("list", FieldClass::array(FieldClass::u64(), None)),
        ("at", FieldClass::structure([("port", FieldClass::u64())])),
        ("maybe", FieldClass::optional(FieldClass::u64())),
        ("__proto__", FieldClass::u64()),
    ]);
    let event = EventClass { name: "io:READ".into(), payload: Some(payload), ..Default::default() };
    let event = builder.event_class(class, event);
    let stream = builder.stream(class, "cpu3", Some(CpuId(3)));
    builder.names().processes.insert(7, "redis-server".into());
    const UNSIGNED: [u64; 9] =
        [0, 1, 5, 4096, 1 << 31, (1 << 53) - 1, 1 << 53, (1 << 60) + 1, u64::MAX];
    const SIGNED: [i64; 8] = [0, -1, 5, i64::MIN, i64::MAX, -(1 << 53), 1 - (1 << 53), -4096];
    const TEXTS: [&str; 7] = ["", "5", "hello", "hello world", "\u{ffee}", "\u{1f600}", "é\0x"];
    const REALS: [f64; 8] =
        [0.0, -0.0, 0.5, 5.0, f64::NAN, f64::INFINITY, -1e300, 9007199254740992.0];
    for (time, salt) in salts.iter().enumerate() {
        let pick = |count: usize, part: u32| (salt >> (part * 8)) as usize % count;
        let writer = (salt % 5 > 0).then_some(Writer { pid: 7, tid: 8 });
        let pending = builder.event(stream, event, 42 + time as u64, writer);
        let pending = pending.u64(UNSIGNED[pick(9, 0)]).i64(SIGNED[pick(8, 1)]);
        let pending = pending.text(TEXTS[pick(7, 2)]).real(REALS[pick(8, 3)]);
        let pending = pending.u64(salt >> 40 & 3);
        let pending = pending.array(2, |p| p.u64(10).u64(20)).u64(8080);
        let pending = match salt >> 45 & 1 {
            0 => pending.option(0),
            _ => pending.option(1).u64(UNSIGNED[pick(9, 6)]),
        };
        pending.u64(9).end().unwrap();
    }
    builder.finish()
}

/// Which events a script keeps.
pub fn kept(script: &mut Script, trace: &MemoryTrace) -> Result<Vec<bool>, ScriptError> {
    let streams = trace.streams();
    let context = Context { names: trace.names(), streams: &streams };
    let mut events = trace.events();
    let mut kept = Vec::new();
    while let Some(event) = events.next_event() {
        kept.push(script.keeps(&event, &context)?);
    }
    Ok(kept)
}

/// An event of [`locks`]: time, thread, CPU, name, mutex.
pub type Lock = (u64, u32, u32, &'static str, u64);

/// Events `threads:NAME` with a field `mutex`, one stream per CPU.
pub fn locks(all: &[Lock]) -> MemoryTrace {
    let mut builder = MemoryTrace::builder("test", u64::MAX);
    let clock = builder.clock(Clock::default());
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let mut classes = std::collections::BTreeMap::new();
    let streams: Vec<_> =
        (0..4).map(|cpu| builder.stream(class, &format!("cpu{cpu}"), Some(CpuId(cpu)))).collect();
    for &(time, tid, cpu, name, mutex) in all {
        let event = *classes.entry(name).or_insert_with(|| {
            let payload = FieldClass::structure([("mutex", FieldClass::u64())]);
            let name = format!("threads:{name}");
            builder.event_class(
                class,
                EventClass { name, payload: Some(payload), ..Default::default() },
            )
        });
        let writer = Some(Writer { pid: 1, tid });
        builder.event(streams[cpu as usize], event, time, writer).u64(mutex).end().unwrap();
    }
    builder.finish()
}

/// Of each kind of activity: begun and not ended, ended and not begun.
pub type Counts = Vec<(u64, u64)>;

/// The activities that a script finds.
pub fn activities(
    script: &mut Script,
    trace: &MemoryTrace,
) -> Result<(Vec<Activity>, Counts), ScriptError> {
    let streams = trace.streams();
    let context = Context { names: trace.names(), streams: &streams };
    let mut activities = Activities::new(script);
    let mut found = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        let cpu = event.packet.cpu.map(|cpu| cpu.0);
        let at = End { time: event.time, writer: event.writer, cpu, tag: 0 };
        activities.event(script, &event, at, &context, &mut |activity| found.push(activity))?;
    }
    let left_over = activities.left_over().collect();
    Ok((found, left_over))
}
