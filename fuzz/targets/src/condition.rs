// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions as people write them, and packets that they are judged on.

use std::sync::Arc;

use lateralis_recorder::classes::{ClassTable, RegisteredSchema};
use lateralis_recorder::condition::Condition;
use lateralis_recorder::condition::Watch;
use lateralis_ring::RingKind;

const SCHEMA: &str = "subsystem s { event A (k: u32, t: string) begin x key k t, \
    event B (k: u32, t: string) end x key k t, event C () begin y, event D () end y, \
    event L (v: i16, a: [u16], b: bytes) counter v, event F (f: f64, g: [u8; 3]) };";
const ALL: &str = "span(x) > 5ns or span(y) > 1us or sequence(A, A, C) within 1us or \
    missing(D) for 9ns or rate(C) > 3/s over 1ms or counter(v) >= -3 or \
    event(F, f > 0.5) or event(s:A, t == \"x\", k != 3) or \
    (event(C) or span(x) > 9ns) and missing(D) for 9ns and event(A) within 1us";

/// The input is a condition's text up to the first NUL, then records.
pub fn check(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    let mut conditions = vec![Condition::parse(ALL).expect("a good condition")];
    match Condition::parse(&text) {
        Ok(condition) => conditions.push(condition),
        Err(error) => {
            assert!(error.at <= error.text.chars().count());
            assert_eq!(error.picture().lines().count(), 2);
        }
    }
    let compiled = lateralis_pleco::compile("s.pleco", SCHEMA.as_bytes()).schema;
    let schema = Arc::new(compiled.expect("a good schema"));
    let registered = RegisteredSchema { base_id: 16, hash: schema.hash(), schema };
    let mut classes = ClassTable::default();
    classes.add(RingKind::PerCpu, &[registered]);
    let mut watch = Watch::new(&conditions, 0, &|ns| ns);
    let records = bytes.get(end + 1..).unwrap_or_default();
    for (turn, part) in records.chunks(256).enumerate() {
        let now = turn as u64 * 1000;
        let ring = (0, turn as u32 % 3);
        watch.packet(&classes, (turn as u32 % 2, ring, now), part, (turn % 8) as u64);
        watch.lost(now, now + 10);
        let (firings, _) = watch.advance(now);
        assert!(firings.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }
    watch.advance(1 << 20);
    watch.unknown(&classes);
}

/// Conditions, one followed by records.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut with_records = b"span(x) > 5ms\0".to_vec();
    for (id, time, payload) in
        [(16_u64, 5_u64, *b"\x01\0\0\0ab\0\0"), (17, 90, *b"\x01\0\0\0ab\0\0")]
    {
        with_records.extend((id | time << 16).to_le_bytes());
        with_records.extend(payload);
    }
    vec![
        with_records,
        ALL.as_bytes().to_vec(),
        b"span(x) > 5".to_vec(),
        b"(event(A) or span(x) > 1ms) and event(B) within 5us".to_vec(),
        b"event(s:A, k == 0x1f, t != \"a\")".to_vec(),
        b"rate(A) < 10.5/s over 2 min".to_vec(),
    ]
}
