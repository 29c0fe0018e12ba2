// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace with every feature, and an independent description of its contents.

use lateralis_model::role::ATTRIBUTE;
use lateralis_model::{
    Attribute, Base, Builder, Clock, Encoding, EnvValue, EventClass, FieldClass, FieldKind,
    IntegerClass, Interval, Label, Loss, LossCause, MemoryTrace, Range, StreamClass, StreamIndex,
    Uuid, Writer,
};
use lateralis_units::{CpuId, Nanos};
use serde_json::{Value, json};

/// Zero of both clocks, except for 500 µs of the second.
pub const BASE: i64 = 1_700_000_000_000_000_000;

/// The common context of all events of `app`.
pub const PRIORITY: i64 = -20;

/// The threads.
pub const MAIN: Writer = Writer { pid: 100, tid: 101 };
pub const HELPER: Writer = Writer { pid: 200, tid: 201 };

/// The fields of `app:KINDS`, one of each kind.
pub fn kinds() -> Value {
    json!({
        "yes": true,
        "small": 200,
        "huge": u64::MAX,
        "least": i64::MIN,
        "half": 0.5,
        "tenth": 0.1,
        "nan": "NaN",
        "down": "-Infinity",
        "quoted": "say \"hi\",\n\tback\\slash;",
        "zero": "a\u{0}b",
        "broken": "\u{fffd}\u{fffd}A",
        "wide": "ü€",
        "blob": [0, 171, 255],
        "inner": { "a": 1, "b": "x" },
        "list": [1, 2, 3],
        "rows": [{ "k": 1, "v": "one" }, { "k": 2, "v": "two" }],
        "choice": { "right": -5 },
        "there": 7,
        "gone": null,
        "mode": "FAST",
        "other_mode": 9,
        "flags": 5,
    })
}

fn kinds_class() -> FieldClass {
    let mode = || {
        let label = |name: &str, value| Label {
            name: name.to_owned(),
            ranges: vec![Range { low: value, high: value }],
        };
        FieldClass::new(FieldKind::Unsigned(IntegerClass {
            bits: 8,
            labels: vec![label("SLOW", 1), label("FAST", 2)],
            ..IntegerClass::default()
        }))
    };
    let flag = Label { name: "READY".to_owned(), ranges: vec![Range { low: 0, high: 0 }] };
    let row = FieldClass::structure([("k", FieldClass::u64()), ("v", FieldClass::text())]);
    let options =
        FieldClass::structure([("left", FieldClass::text()), ("right", FieldClass::i64())]);
    FieldClass::structure([
        ("yes", FieldClass::boolean()),
        ("small", FieldClass::unsigned(8, Base::Decimal)),
        ("huge", FieldClass::unsigned(64, Base::Hexadecimal)),
        ("least", FieldClass::i64()),
        ("half", FieldClass::new(FieldKind::Real(32))),
        ("tenth", FieldClass::real()),
        ("nan", FieldClass::real()),
        ("down", FieldClass::real()),
        ("quoted", FieldClass::text()),
        ("zero", FieldClass::text()),
        ("broken", FieldClass::text()),
        ("wide", FieldClass::new(FieldKind::Text(Encoding::Utf16Be))),
        ("blob", FieldClass::blob()),
        ("inner", FieldClass::structure([("a", FieldClass::u64()), ("b", FieldClass::text())])),
        ("list", FieldClass::array(FieldClass::u64(), None)),
        ("rows", FieldClass::array(row, None)),
        ("choice", FieldClass::new(FieldKind::Variant(options.members().to_vec()))),
        ("there", FieldClass::optional(FieldClass::u64())),
        ("gone", FieldClass::optional(FieldClass::u64())),
        ("mode", mode()),
        ("other_mode", mode()),
        ("flags", FieldClass::new(FieldKind::Bits { bits: 8, flags: vec![flag] })),
    ])
}

fn add_kinds(builder: &mut Builder, stream: StreamIndex, class: u32) {
    builder
        .event(stream, class, 1000, Some(MAIN))
        .i64(PRIORITY)
        .u64(1)
        .u64(200)
        .u64(u64::MAX)
        .i64(i64::MIN)
        .real(0.5)
        .real(0.1)
        .real(f64::NAN)
        .real(f64::NEG_INFINITY)
        .text("say \"hi\",\n\tback\\slash;")
        .text("a\0b")
        .bytes(b"\xff\xfeA")
        .bytes(&[0, 0xfc, 0x20, 0xac])
        .bytes(&[0, 171, 255])
        .u64(1)
        .text("x")
        .array(3, |event| event.u64(1).u64(2).u64(3))
        .array(2, |event| event.u64(1).text("one").u64(2).text("two"))
        .option(1)
        .i64(-5)
        .option(1)
        .u64(7)
        .option(0)
        .u64(2)
        .u64(9)
        .u64(5)
        .end()
        .unwrap();
}

/// An event class with at most one field and at most one clause.
fn simple(name: &str, field: Option<(&str, FieldClass)>, role: Option<&str>) -> EventClass {
    let attribute = |value: &str| Attribute { name: ATTRIBUTE.to_owned(), value: value.to_owned() };
    EventClass {
        name: name.to_owned(),
        payload: Some(FieldClass::structure(field)),
        attributes: role.map(attribute).into_iter().collect(),
        ..EventClass::default()
    }
}

/// The trace. It contains no damage, which converters report separately.
pub fn trace() -> MemoryTrace {
    let mut builder = MemoryTrace::builder("test", 1 << 20);
    let about = builder.describe();
    about.name = Some("rich".to_owned());
    about.uuid = Uuid::parse("2a6422d0-6cee-11e0-8c08-cb07d7b3a564");
    about.environment = vec![
        ("hostname".to_owned(), EnvValue::Text("the \"box\"".to_owned())),
        ("answer".to_owned(), EnvValue::Integer(42)),
    ];
    builder.names().processes.extend([(100, "ui \"one\"".to_owned()), (200, "disk".to_owned())]);
    builder.names().threads.extend([(101, "main\nline".to_owned()), (201, "helper ü".to_owned())]);
    let mut fast = Clock::new("fast", 1_000_000_000, BASE / 1_000_000_000, 0);
    let mut slow = Clock::new("slow", 1_000_000, BASE / 1_000_000_000, 500);
    (fast.unix_epoch, slow.unix_epoch) = (true, true);
    let (fast, slow) = (builder.clock(fast), builder.clock(slow));
    let of = |clock| StreamClass { clock: Some(clock), ..StreamClass::default() };
    let common = FieldClass::structure([("prio", FieldClass::i64())]);
    let app = builder.stream_class(StreamClass { common_context: Some(common), ..of(fast) });
    let device = builder.stream_class(of(slow));
    let cpus = [0, 1].map(|cpu| builder.stream(app, &format!("cpu{cpu}"), Some(CpuId(cpu))));
    let ticking = builder.stream(device, "device", None);

    let kinds = EventClass { payload: Some(kinds_class()), ..simple("app:KINDS", None, None) };
    let kinds = builder.event_class(app, kinds);
    add_kinds(&mut builder, cpus[0], kinds);

    let phase = FieldClass::new(FieldKind::Unsigned(IntegerClass {
        bits: 8,
        labels: [("RUN", 1), ("WAIT", 2)]
            .map(|(name, value)| Label {
                name: name.to_owned(),
                ranges: vec![Range { low: value, high: value }],
            })
            .to_vec(),
        ..IntegerClass::default()
    }));
    let hex = FieldClass::unsigned(64, Base::Hexadecimal);
    let mut class = |name: &str, field: Option<(&str, FieldClass)>, role: &str| {
        builder.event_class(app, simple(name, field, Some(role)))
    };
    let outer = class("app:OUTER_BEGIN", Some(("n", FieldClass::u64())), "begin outer");
    let inner = class("app:INNER_BEGIN", None, "begin inner");
    let inner_end = class("app:INNER_END", Some(("n", FieldClass::u64())), "end inner");
    let outer_end = class("app:OUTER_END", None, "end outer");
    let lock = class("app:LOCK", Some(("mutex", hex.clone())), "begin held key mutex");
    let unlock = class("app:UNLOCK", Some(("mutex", hex.clone())), "end held key mutex");
    let work = class("app:WORK", Some(("took", FieldClass::u64())), "span work for took");
    let send = class("app:SEND", Some(("id", FieldClass::u64())), "send mail key id");
    let receive = class("app:RECEIVE", Some(("id", FieldClass::u64())), "recv mail key id");
    let queue = class("app:QUEUE", Some(("free", FieldClass::u64())), "counter free");
    let heat = class("app:HEAT", Some(("celsius", FieldClass::real())), "counter celsius");
    let state = class("app:STATE", Some(("phase", phase)), "state machine phase");
    let tick = builder.event_class(device, simple("dev:TICK", None, None));

    let mut event = |cpu: usize, class, ticks, writer, value: Option<u64>| {
        let event = builder.event(cpus[cpu], class, ticks, Some(writer)).i64(PRIORITY);
        value.into_iter().fold(event, |event, value| event.u64(value)).end().unwrap();
    };
    event(0, outer, 2000, MAIN, Some(1));
    event(1, lock, 2500, HELPER, Some(0xabc));
    event(1, lock, 2600, HELPER, Some(0xdef));
    event(1, unlock, 2700, HELPER, Some(0xabc));
    event(0, unlock, 2800, MAIN, Some(0xdef));
    event(0, inner, 3000, MAIN, None);
    event(0, inner_end, 4000, MAIN, Some(2));
    event(0, outer_end, 5000, MAIN, None);
    event(0, work, 6000, MAIN, Some(400));
    event(0, send, 7000, MAIN, Some(77));
    event(1, receive, 7300, HELPER, Some(77));
    event(0, queue, 8000, MAIN, Some(5));
    event(0, queue, 8100, MAIN, Some(u64::MAX));
    event(1, state, 9000, HELPER, Some(1));
    event(1, state, 9100, HELPER, Some(2));
    builder.event(cpus[1], heat, 8200, Some(HELPER)).i64(PRIORITY).real(-1.5).end().unwrap();
    // 500 ticks of the clock's offset and 4 of the time stamp, each a microsecond.
    builder.event(ticking, tick, 4, None).end().unwrap();

    let at = |nanos| Some(Nanos(BASE + nanos));
    builder.loss(Loss {
        stream: cpus[0],
        cause: LossCause::Full,
        count: Some(3),
        interval: Interval { begin: at(4000), end: at(5000) },
    });
    builder.loss(Loss {
        stream: ticking,
        cause: LossCause::Discarded,
        count: None,
        interval: Interval { begin: None, end: at(504_000) },
    });
    builder.finish()
}
