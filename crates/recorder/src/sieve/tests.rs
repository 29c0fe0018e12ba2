// SPDX-License-Identifier: Apache-2.0 OR MIT
use std::sync::Arc;

use lateralis_ring::PacketHeader;
use lateralis_ring::reference_writer::record_header;

use super::*;
use crate::filter::{Filter, compile};
use crate::pattern::Patterns;
use crate::policy::{How, ThreadCondition};

const TEXT: &str = "subsystem s { event A (n: u32), event B (t: string) };";

fn registered() -> Vec<RegisteredSchema> {
    let schema = lateralis_pleco::compile("t.pleco", TEXT.as_bytes()).schema.unwrap();
    let hash = schema.hash();
    vec![RegisteredSchema { base_id: 16, schema: Arc::new(schema), hash }]
}

fn plan() -> RecordPlan {
    let mut plan = RecordPlan::new(false);
    plan.add(16, &registered()[0].schema);
    plan
}

fn record(id: u16, time: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = record_header(id, time).to_ne_bytes().to_vec();
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(8), 0xaa);
    bytes
}

fn writer(time: u64, tid: u32) -> Vec<u8> {
    record(abi::ID_WRITER, time, &[7u32.to_ne_bytes(), tid.to_ne_bytes()].concat())
}

fn named(time: u64, tid: u32, name: &[u8]) -> Vec<u8> {
    let ids = [7u32.to_ne_bytes(), tid.to_ne_bytes()].concat();
    record(abi::ID_THREAD_NAME, time, &[&ids[..], name, &[0]].concat())
}

fn a(time: u64, n: u32) -> Vec<u8> {
    record(16, time, &n.to_ne_bytes())
}

fn b(time: u64, text: &[u8]) -> Vec<u8> {
    record(17, time, &[text, &[0]].concat())
}

/// The kept records, the last of which ends `slack` bytes before their end, and its slack.
fn sifted(
    sieve: &mut Sieve,
    place: &mut SiftPlace,
    (from, slack): (u64, u64),
    parts: &[Vec<u8>],
) -> (Vec<u8>, u64, (u64, Option<[u8; 8]>)) {
    let mut bytes = parts.concat();
    let header = PacketHeader { timestamp_begin: 1, ..PacketHeader::default() };
    let chunk =
        Chunk { sequence: 0, from, bytes: bytes.len() as u64, slack, closed: false, header };
    let names = &mut |_, tid| (tid == 9).then(|| b"asked".to_vec());
    let left = sieve.sift(&plan(), (&chunk, &mut bytes), place, names);
    bytes.truncate(left.chunk.bytes as usize);
    (bytes, left.chunk.slack, left.begins)
}

const START: u64 = abi::PACKET_HEADER_BYTES;

#[test]
fn what_a_filter_keeps_out_goes_with_its_writer() {
    let filter = Filter::parse("s:A: n > 5").unwrap();
    let schema = &registered()[0].schema;
    let mut sieve = Sieve::default();
    assert!(sieve.is_idle());
    sieve.add_filter(16, compile(&filter, schema, &schema.events[0]).unwrap());
    let mut place = SiftPlace::default();
    let (w1, w2) = (writer(1, 1), writer(3, 2));
    let parts = [w1, a(2, 5), w2.clone(), a(4, 6), a(5, 1), b(6, b"xy")];
    let (left, slack, _) = sifted(&mut sieve, &mut place, (START, 5), &parts);
    assert_eq!(left, [w2, a(4, 6), b(6, b"xy")].concat());
    assert_eq!((slack, sieve.left_out()), (5, 2));
    // The last is dropped: the slack is that of the previous one.
    let (left, slack, begins) = sifted(&mut sieve, &mut place, (999, 4), &[b(7, b""), a(8, 0)]);
    assert_eq!((left, slack), (b(7, b""), 7));
    // It continues in the thread that wrote last.
    assert_eq!(
        begins,
        (6, Some([7u32.to_ne_bytes(), 2u32.to_ne_bytes()].concat().try_into().unwrap()))
    );
    let (left, slack, begins) = sifted(&mut sieve, &mut place, (999, 4), &[a(9, 0)]);
    assert_eq!((left.len(), slack, begins.0), (0, 0, 8));
    // Damage is not handled here.
    let damaged = [a(10, 0), record(99, 11, &[]), a(12, 0)];
    let (left, slack, _) = sifted(&mut sieve, &mut place, (999, 4), &damaged);
    assert_eq!((left, slack), (damaged[1..].concat(), 4));
}

#[test]
fn threads_have_what_the_first_rule_for_their_name_says() {
    let condition = |how, value: &str| ThreadCondition { how, value: value.to_owned() };
    let of = |list: &str| Some((Patterns::parse(list).unwrap(), Vec::new()));
    let filtered = Some((Patterns::all(), vec![Filter::parse("s:A: n == 1").unwrap()]));
    let rules = vec![
        ThreadRule { conditions: vec![condition(How::Exact, "ep")], wanted: of("s:A") },
        ThreadRule { conditions: vec![condition(How::Prefix, "work")], wanted: None },
        ThreadRule { conditions: vec![condition(How::Pattern, "as?ed")], wanted: filtered },
    ];
    let mut sieve = Sieve::of_threads(rules);
    assert_eq!(sieve.bind(&registered()), Vec::<String>::new());
    let mut place = SiftPlace::default();
    let ep = [writer(1, 1), named(1, 1, b"ep"), a(2, 0)];
    let parts = [&ep[..], &[b(3, b""), writer(4, 2), named(4, 2, b"worker"), a(5, 0)]].concat();
    let (left, ..) = sifted(&mut sieve, &mut place, (START, 4), &parts);
    // Records that identify threads are kept, also of threads whose events are dropped.
    assert_eq!(left, [&ep[..], &parts[4..6]].concat().concat());
    // A name that was not recorded is looked up; a thread of unknown name keeps its events; of
    // a thread without a rule all events are dropped.
    let asked = [writer(6, 9), a(7, 1), a(8, 2), b(9, b"")];
    let unknown = [writer(10, 3), a(11, 0)];
    let other = [writer(12, 4), named(12, 4, b"other"), a(13, 0), record(3, 14, b"mark\0")];
    let (left, ..) =
        sifted(&mut sieve, &mut place, (START, 3), &[&asked[..], &unknown, &other].concat());
    let kept = [&asked[..2], &asked[3..], &unknown, &other[..2]].concat();
    assert_eq!(left, kept.concat());
    // A renamed thread has another rule.
    sieve.threads().unwrap().refresh(&mut |_, tid| (tid == 4).then(|| b"ep".to_vec()));
    let later = [writer(20, 4), a(21, 0), b(22, b"")];
    let (left, ..) = sifted(&mut sieve, &mut place, (START, 7), &later);
    assert_eq!(left, later[..2].concat());
}

/// Bytes of a ring come from a program: no input causes a panic or new records, and records that are
/// not dropped are unchanged.
#[test]
fn any_bytes_are_sifted_and_none_are_made_up() {
    let mut state = 0x51e7_e5e7_u64;
    let mut next = |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % end
    };
    let named =
        || vec![ThreadRule { conditions: Vec::new(), wanted: Some((Patterns::all(), Vec::new())) }];
    let nobody = || vec![ThreadRule { conditions: Vec::new(), wanted: None }];
    for _ in 0..20_000 {
        let mut parts = Vec::new();
        for time in 1..2 + next(8) {
            parts.push(match next(6) {
                0 => writer(time, next(3) as u32),
                1 => self::named(time, next(3) as u32, b"x"),
                2 => b(time, &vec![b'a'; next(20) as usize]),
                3 => record(next(100) as u16, time, &vec![0xff; next(30) as usize]),
                _ => a(time, next(9) as u32),
            });
        }
        let mut bytes = parts.concat();
        if next(2) == 0 {
            let at = next(bytes.len() as u64) as usize;
            bytes[at] = next(256) as u8;
        }
        let from = [START, 999][next(2) as usize];
        let slack = next(8);
        for rules in [named(), nobody()] {
            let keeps_all = rules == named();
            let mut sieve = Sieve::of_threads(rules);
            sieve.bind(&registered());
            let (left, kept_slack, _) =
                sifted(&mut sieve, &mut SiftPlace::default(), (from, slack), &[bytes.clone()]);
            assert!(left.len() <= bytes.len() && kept_slack < 8);
            let mut rest = bytes.chunks(8);
            assert!(left.chunks(8).all(|word| rest.any(|other| other == word)), "in order");
            if keeps_all && sieve.left_out() == 0 && left.len() == bytes.len() {
                assert_eq!((left, kept_slack), (bytes.clone(), slack));
            }
        }
    }
}
