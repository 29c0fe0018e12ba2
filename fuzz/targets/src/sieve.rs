// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is left out of a ring when it is read: by a filter, or because of the thread that wrote it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use lateralis_pleco::Schema;
use lateralis_recorder::classes::RegisteredSchema;
use lateralis_recorder::filter::{Filter, compile};
use lateralis_recorder::policy::{Facts, parse};
use lateralis_recorder::sieve::{Sieve, SiftPlace};
use lateralis_recorder::walk::RecordPlan;
use lateralis_ring::{Chunk, PacketHeader, abi};

const A: u16 = 16;
const B: u16 = 17;

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let text = b"subsystem s { event A (n: u32), event B (t: string) };";
    Arc::new(lateralis_pleco::compile("s.pleco", text).schema.expect("a good schema"))
});

const THREADS: &str = "[[policy]]\nthread = \"ep\"\nenable = \"s:A\"\n\
    [[policy]]\nthread_prefix = \"work\"\nrecord = false\n\
    [[policy]]\nthread_pattern = \"as?ed\"\nfilter = \"s:A: n == 1\"\n";

/// Which thread writes: its bytes in a WRITER record.
type Writer = Option<[u8; 8]>;

/// One record as it is found by stepping from one to the next.
#[derive(Debug, PartialEq, Eq)]
struct Found<'a> {
    id: u16,
    time: u64,
    writer: Writer,
    body: &'a [u8],
}

/// The records that can be stepped over, with who wrote them, and where the last of them ends.
fn found<'a>(
    plan: &RecordPlan,
    bytes: &'a [u8],
    (slack, begin): (u64, u64),
    mut writer: Writer,
) -> (Vec<Found<'a>>, usize) {
    let (mut all, mut end) = (Vec::new(), 0);
    for record in plan.records(bytes, slack, begin) {
        let body = &bytes[record.at + 8..record.end];
        if record.id == abi::ID_WRITER {
            writer = body.get(..8).and_then(|body| body.try_into().ok());
        } else {
            all.push(Found { id: record.id, time: record.time, writer, body });
        }
        end = record.next().min(bytes.len());
    }
    (all, end)
}

/// The expected result, by a plain implementation.
struct Plain {
    is_about_threads: bool,
    names: BTreeMap<[u8; 8], Vec<u8>>,
}

impl Plain {
    fn wants(&mut self, one: &Found<'_>) -> bool {
        let number = || one.body.get(..4).map(|n| u32::from_ne_bytes([n[0], n[1], n[2], n[3]]));
        match (one.id, one.writer) {
            (abi::ID_THREAD_NAME | abi::ID_PROCESS, _) => return true,
            (A, _) if !self.is_about_threads => return number() > Some(5),
            (_, Some(writer)) if self.is_about_threads => {
                if !self.names.contains_key(&writer)
                    && let Some(name) = name_of(writer)
                {
                    self.names.insert(writer, name);
                }
                let Some(name) = self.names.get(&writer) else { return true };
                let is_asked = name.len() == 5 && name.starts_with(b"as") && name.ends_with(b"ed");
                return match (name.as_slice(), one.id) {
                    (b"ep", id) => id != B,
                    (_, A) if is_asked => number() == Some(1),
                    _ => is_asked,
                };
            }
            _ => {}
        }
        true
    }

    fn learn(&mut self, one: &Found<'_>, is_newer: bool) {
        if one.id != abi::ID_THREAD_NAME || !self.is_about_threads {
            return;
        }
        let (Some(thread), Some(name)) = (one.body.first_chunk(), one.body.get(8..)) else {
            return;
        };
        let name = name.iter().take(15).take_while(|byte| **byte != 0).copied().collect();
        if is_newer || !self.names.contains_key(thread) {
            self.names.insert(*thread, name);
        }
    }
}

/// Threads with the number 9 have a name that the system knows.
fn name_of(writer: [u8; 8]) -> Option<Vec<u8>> {
    (u32::from_ne_bytes([writer[4], writer[5], writer[6], writer[7]]) == 9)
        .then(|| b"asked".to_vec())
}

fn sieve(is_about_threads: bool) -> Sieve {
    let registered =
        [RegisteredSchema { base_id: 16, hash: SCHEMA.hash(), schema: Arc::clone(&SCHEMA) }];
    if is_about_threads {
        let policies = parse("p.toml", THREADS).expect("good policies");
        let wanted = policies.wanted(&Facts::default()).expect("something is wanted");
        let mut sieve = Sieve::of_threads(wanted.threads);
        assert_eq!(sieve.bind(&registered), Vec::<String>::new());
        return sieve;
    }
    let filter = Filter::parse("s:A: n > 5").expect("a good filter");
    let mut sieve = Sieve::default();
    sieve.add_filter(16, compile(&filter, &SCHEMA, &SCHEMA.events[0]).expect("steps"));
    sieve
}

/// The first byte says by what is decided and whether names are heard before, the second how much the
/// first of two chunks has, the third the slack; then records. Besides not panicking: exactly what a
/// plain reading of the rules wants is left, with the time and the thread it had, what was left out is
/// counted, and what cannot be stepped over stays as it is.
pub fn check(bytes: &[u8]) {
    let Some(([how, first, slack], records)) = bytes.split_first_chunk() else { return };
    let mut plan = RecordPlan::new(false);
    plan.add(16, &SCHEMA);
    let mut sieve = sieve(how & 1 != 0);
    let mut plain = Plain { is_about_threads: how & 1 != 0, names: BTreeMap::new() };
    let records = &records[..records.len() & !7];
    let (one, two) = records.split_at(records.len().min(8 * usize::from(*first)));
    let slack = u64::from(slack % 8);
    let (mut place, mut writer, mut begin) = (SiftPlace::default(), None, 1);
    for (from, part) in [(abi::PACKET_HEADER_BYTES, one), (abi::PACKET_HEADER_BYTES + 8, two)] {
        let slack = slack.min(part.len() as u64);
        let (before, end) = found(&plan, part, (slack, begin), writer);
        if how & 2 != 0 {
            sieve.listen(&plan, part, (slack, begin));
            before.iter().for_each(|record| plain.learn(record, true));
        }
        let header = PacketHeader { timestamp_begin: 1, ..PacketHeader::default() };
        let bytes = part.len() as u64;
        let chunk = Chunk { sequence: 0, from, bytes, slack, closed: false, header };
        let (mut buffer, out_before) = (part.to_vec(), sieve.left_out());
        let names = &mut |pid: u32, tid: u32| {
            let [a, b, c, d] = pid.to_ne_bytes();
            let [e, f, g, h] = tid.to_ne_bytes();
            name_of([a, b, c, d, e, f, g, h])
        };
        let left = sieve.sift(&plan, (&chunk, &mut buffer), &mut place, names);
        assert_eq!(left.begins, (begin, writer));
        buffer.truncate(left.chunk.bytes as usize);
        let wanted: Vec<&Found<'_>> = before
            .iter()
            .filter(|record| {
                plain.learn(record, false);
                plain.wants(record)
            })
            .collect();
        let out = sieve.left_out() - out_before;
        assert_eq!(wanted.len() as u64 + out, before.len() as u64);
        let is_damaged = end < part.len().saturating_sub(slack as usize);
        if is_damaged {
            assert!(buffer.ends_with(&part[end..]), "what cannot be stepped over stays");
            buffer.truncate(buffer.len() - (part.len() - end));
        }
        let last_slack = if is_damaged { 0 } else { left.chunk.slack };
        assert!(left.chunk.slack < 8 || left.chunk.slack == slack);
        let (after, _) = found(&plan, &buffer, (last_slack, begin), writer);
        // Beyond half a turn of the 48 bits a time can only be determined from the times between.
        let last = before.last().map_or(begin, |record| record.time);
        if last.wrapping_sub(begin) < 1 << (abi::TIME_BITS - 1) {
            assert_eq!(after.iter().collect::<Vec<_>>(), wanted);
        }
        for record in plan.records(part, slack, begin).filter(|one| one.id == abi::ID_WRITER) {
            writer = part[record.at + 8..record.end].first_chunk().copied();
        }
        begin = last_time(&plan, part, (slack, begin));
    }
}

fn last_time(plan: &RecordPlan, bytes: &[u8], (slack, begin): (u64, u64)) -> u64 {
    plan.records(bytes, slack, begin).last().map_or(begin, |record| record.time)
}

fn record(id: u16, time: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (u64::from(id) | time << 16).to_le_bytes().to_vec();
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(8), 0xaa);
    bytes
}

/// Records of some threads, read in each way.
pub fn good() -> Vec<Vec<u8>> {
    let thread = |tid: u32| [7u32.to_ne_bytes(), tid.to_ne_bytes()].concat();
    let named = |name: &[u8], tid| record(1, 5, &[&thread(tid), name, &[0]].concat());
    let a = |n: u32| record(A, 6, &n.to_ne_bytes());
    let b = || record(B, 7, b"xy\0");
    let parts = [
        record(abi::ID_WRITER, 5, &thread(1)),
        named(b"ep", 1),
        a(6),
        b(),
        record(abi::ID_WRITER, 7, &thread(2)),
        record(1, 7, &[&thread(2), &b"worker\0"[..]].concat()),
        record(A, 8, &1u32.to_ne_bytes()),
        record(abi::ID_WRITER, 9, &thread(9)),
        record(A, 10, &1u32.to_ne_bytes()),
        record(3, 10, b"mark\0"),
        record(abi::ID_WRITER, 11, &thread(3)),
        record(B, 12, b"\0"),
        record(A, 13, &0u32.to_ne_bytes()),
    ];
    let of = |how: u8, first: u8| [&[how, first, 4][..], &parts.concat()].concat();
    vec![of(0, 0), of(1, 0), of(3, 255), of(0, 9), of(1, 9), of(3, 9)]
}
