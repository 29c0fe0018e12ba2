// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server of `lat view`: an untrusted index, and requests of a page.

use std::sync::Arc;

use lateralis_lanes::{
    Application, Builder, Class, Counter, Interval, Lane, Lanes, Meta, PointRef, RowKind, SpanKind,
    Thread,
};
use lateralis_view::{Head, Request, Session, methods};

/// Methods that look at the index and at nothing else.
const METHODS: [&str; 15] = [
    "open",
    "filter",
    "view",
    "overview",
    "arrows",
    "levels",
    "lane_activity",
    "at",
    "step",
    "events",
    "find",
    "activities",
    "stats",
    "histogram",
    "utilisation",
];
/// Changes of one byte of the index at most.
const CHANGES_MAX: usize = 64;
/// Requests of an input: each may be for a picture of everything.
const REQUESTS_MAX: usize = 8;
/// Bytes after the directory: magic, offset, length, checksum.
const TRAILER: usize = 32;

/// Besides not panicking: every request of a known method gets an answer or an error with three
/// parts, for any index.
///
/// An input is a byte, the number of changes of the index (three bytes for the position, one for
/// the value), and lines: heads of HTTP begin with `G`, all others are requests.
pub fn check(bytes: &[u8]) {
    let Some((count, rest)) = bytes.split_first() else { return };
    let count = (usize::from(*count)).min(CHANGES_MAX).min(rest.len() / 4);
    let (changes, lines) = rest.split_at(count * 4);
    let mut index = good_index();
    for change in changes.chunks_exact(4) {
        let at = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize % index.len();
        index[at] = change[3];
    }
    let lines = String::from_utf8_lossy(lines);
    for line in lines.lines().filter(|line| line.starts_with('G')) {
        let head = format!("{line}\r\nHost: a\r\n\r\n");
        let _ = Head::parse(head.as_bytes());
    }
    seal(&mut index);
    let Ok(lanes) = Lanes::open(Arc::new(index), "this") else { return };
    let session = Session::of_index(lanes);
    let requests = lines.lines().filter_map(Request::parse);
    let known = requests.filter(|request| METHODS.contains(&request.method.as_str()));
    for request in known.take(REQUESTS_MAX) {
        if let Err(problem) = methods::answer(&session, &request.method, &request.params) {
            let told = problem.json();
            assert!(["what", "where", "do"].iter().all(|part| told[part].is_string()), "{told}");
        }
    }
}

/// No mutation finds a checksum.
fn seal(index: &mut [u8]) {
    let Some(at) = index.len().checked_sub(TRAILER) else { return };
    let number = |place: usize| {
        let bytes = index[at + place..at + place + 8].try_into().unwrap_or_default();
        usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
    };
    let (begin, length) = (number(8), number(16));
    let Some(json) = begin.checked_add(length).and_then(|end| index.get(begin..end)) else {
        return;
    };
    let sum = json.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    index[at + 24..at + 32].copy_from_slice(&sum.to_le_bytes());
}

/// A small index with something of everything.
fn good_index() -> Vec<u8> {
    let mut builder = Builder::default();
    let lanes = [builder.lane(Lane::default()), builder.lane(Lane::default())];
    for time in 0..200i64 {
        let lane = lanes[usize::from(time % 3 == 0)];
        let point = builder.point(lane, time * 10, (time % 3) as u16, (time % 2) as u32);
        let kinds = [
            RowKind::Spans,
            RowKind::States,
            RowKind::Running,
            RowKind::ThreadStates,
            RowKind::Wakes,
        ];
        let kind = kinds[(time % 5) as usize];
        builder.interval(
            lane,
            kind,
            None,
            Interval {
                begin: time * 10,
                end: (time % 7 > 0).then_some(time * 10 + time % 40),
                name: (time % 3) as u32,
                thread: (time % 2) as u32,
                from: Some(point),
                to: (time % 2 == 0).then_some(PointRef { lane, index: 0 }),
                quality: (time % 3) as u8,
            },
        );
        builder.level(0, time * 10, time as f64);
        builder.message(0, (time * 10, point), (time * 10 + 15, point));
    }
    let span = |name: &str| SpanKind { name: name.into(), ..SpanKind::default() };
    let meta = Meta {
        end: 2100,
        classes: vec![Class::default(); 3],
        applications: vec![Application::default(); 2],
        threads: (0..2).map(|application| Thread { application, ..Thread::default() }).collect(),
        names: ["running", "runnable", "sleeping"].map(str::to_owned).to_vec(),
        span_kinds: ["a", "b", "c"].map(span).to_vec(),
        counters: vec![Counter::default()],
        ..Meta::default()
    };
    let mut bytes = Vec::new();
    // Memory takes everything.
    let _ = builder.finish(meta, "this", &mut bytes);
    bytes
}

/// Requests that are right.
pub fn good() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"id":1,"method":"open"}
{"id":2,"method":"filter","params":{"classes_off":[1],"lanes_off":[],"applications_off":[0]}}
{"id":3,"method":"view","params":{"lanes":[0,1],"t0":0,"t1":2100,"px":50,"filter":1}}
{"id":4,"method":"overview","params":{"px":30,"filter":0}}
{"id":5,"method":"arrows","params":{"lanes":[0,1],"t0":-5,"t1":900.5,"px":20,"filter":1}}"#,
        r#"{"id":1,"method":"levels","params":{"counters":[0],"t0":0,"t1":2100,"px":9}}
{"id":2,"method":"at","params":{"lane":0,"row":2,"t":70,"within":30,"filter":0}}
{"id":3,"method":"step","params":{"filter":0,"t":99,"class":2,"forward":true}}
{"id":4,"method":"events","params":{"filter":0,"from":3,"count":10}}
{"id":5,"method":"find","params":{"filter":0,"t":500}}
{"id":6,"method":"lane_activity","params":{"t0":40,"t1":1700,"filter":1}}
{"id":7,"method":"at","params":{"lane":0,"row":1,"t":80,"within":90,"filter":0}}
{"id":8,"method":"at","params":{"lane":1,"row":1,"t":1200,"within":90,"filter":0}}"#,
        r#"{"id":1,"method":"activities","params":{"kind":1,"filter":0,"count":9,"order":"duration"}}
{"id":2,"method":"stats","params":{"filter":0,"t0":5,"t1":1800}}
{"id":3,"method":"histogram","params":{"span":0,"filter":0,"bins":12}}
{"id":4,"method":"utilisation","params":{"by":"thread","t0":0,"t1":2100,"px":40}}
GET /export?table=events&filter=0&format=csv&t0=%20&t1=9 HTTP/1.1"#,
    ];
    let seed = |text: &str| [&[2, 9, 1, 0, 200, 40, 0, 0, 7], text.as_bytes()].concat();
    texts.map(seed).to_vec()
}
