// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random damage to real and made inputs: no panic, no more events than bytes, memory
//! within its limit, and what is read can be written again in every format.

use std::path::PathBuf;

use lateralis_interchange::{Error, chrome, csv, fxt, jsonl, parquet, perfetto};
use lateralis_model::{MemoryTrace, Source};

/// The same numbers on every machine (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16;
        (number as usize).checked_rem(end).unwrap_or(0)
    }
}

fn mutate(input: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=numbers.below(6) {
        let at = numbers.below(bytes.len());
        let end = at + numbers.below((bytes.len() - at).min(64) + 1);
        match numbers.below(6) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = [0, 0xff, 0x7f, 0x80, b'"', b'{', b'[', b'9'][numbers.below(8)],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => bytes[at..end].iter_mut().for_each(|byte| *byte = 0xff),
            _ if numbers.below(8) == 0 => bytes.truncate(at),
            _ => bytes[at] = numbers.below(256) as u8,
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

const LIMIT: u64 = 1 << 20;

fn check(bytes: &[u8], read: fn(&str, &[u8], u64) -> Result<MemoryTrace, Error>) -> usize {
    let Ok(trace) = read("hostile", bytes, LIMIT) else { return 0 };
    // A record takes 48 bytes of the limit.
    assert!(trace.len() as u64 * 48 <= LIMIT, "{} events", trace.len());
    for damage in trace.damage() {
        assert!(damage.begin_bytes <= damage.end_bytes);
    }
    let mut out = Vec::new();
    chrome::write(&trace, &mut out).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok(), "what is written is JSON");
    out.clear();
    perfetto::write(&trace, &mut out).unwrap();
    let again = perfetto::read("again", &out, u64::MAX).unwrap();
    assert!(again.damage().is_empty(), "{:?}", again.damage());
    out.clear();
    fxt::write(&trace, &mut out).unwrap();
    let again = fxt::read("again", &out, u64::MAX).unwrap();
    assert!(again.damage().is_empty(), "{:?}", again.damage());
    out.clear();
    jsonl::write(&trace, &mut out).unwrap();
    for line in out.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        assert!(serde_json::from_slice::<serde_json::Value>(line).is_ok());
    }
    parquet::write(&trace, &mut std::io::sink()).unwrap();
    csv::write(&trace, &mut std::io::sink(), csv::Options { header: true, text: true }).unwrap();
    trace.len()
}

fn run(seeds: &[Vec<u8>], rounds: usize, read: fn(&str, &[u8], u64) -> Result<MemoryTrace, Error>) {
    let mut numbers = Numbers(0x1a7e_7a11);
    for seed in seeds {
        assert!(check(seed, read) > 0, "the seeds are read");
    }
    let mut events = 0;
    for _ in 0..rounds {
        let seed = &seeds[numbers.below(seeds.len())];
        events += check(&mutate(seed, &mut numbers), read);
    }
    assert!(events > rounds, "damage leaves most events: {events}");
}

const CHROME: &str = r#"{"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"args":{"name":"ui"}},
{"ph":"B","name":"outer","cat":"a","ts":1,"pid":1,"tid":2,"args":{"n":1,"s":"x","d":{"k":[1,2]}}},
{"ph":"X","name":"draw","cat":"a","ts":2,"dur":1.5,"pid":1,"tid":2,"args":{"r":0.5,"m":-3}},
{"ph":"X","name":"draw","cat":"a","ts":3.25,"dur":1e2,"pid":1,"tid":"w","args":{"r":null}},
{"ph":"E","ts":4,"pid":1,"tid":2},
{"ph":"b","name":"load","cat":"net","id":"0x1f","ts":6,"pid":1,"tid":2},
{"ph":"e","name":"load","cat":"net","id":"0x1f","ts":8,"pid":1,"tid":3},
{"ph":"s","name":"msg","id":1,"ts":11,"pid":1,"tid":2},
{"ph":"f","name":"msg","id":1,"ts":13,"pid":2,"tid":4},
{"ph":"C","name":"mem","ts":-21,"pid":1,"tid":2,"args":{"used":7}},
{"ph":"i","name":"tick","ts":22}],"otherData":{"a":"b"}}"#;

fn written(
    write: fn(&dyn Source, &mut dyn std::io::Write) -> std::io::Result<lateralis_model::Dropped>,
) -> Vec<u8> {
    let trace = chrome::read("t", CHROME.as_bytes(), LIMIT).unwrap();
    let mut out = Vec::new();
    write(&trace, &mut out).unwrap();
    out
}

#[test]
fn chrome_json() {
    let odd = r#"[,{"ph":"B","name":"a","ts":1,"pid":1,"tid":2,"args":{"v":NaN,"s":"a "b" c"}},
{"ph":"E","ts":null,"pid":1,"tid":2},{"ph":"E","ts":1.5e1,"pid":1,"tid":2},
{"ph":"b","name":"q","cat":"k","id2":{"local":"0x1"},"ts":4,"pid":1,"tid":2},
{"ph":"e","cat":"k","id2":{"local":"0x1"},"ts":5,"pid":1,"tid":2,"args":{"s":"\ud800"}},
{"ph":"X","name":"z","ts":6,"pid":1,"tid":2,"bind_id":"7","flow_out":true,"dur":-1},
{"ph":"C","name":"g","ts":20,"pid":1,"id":"0x1","args":{"used":"7.5"}}]
{"baseTimeNanoseconds":1700000000000000000,"traceEvents":[{"ph":"i","name":"n","ts":1,"pid":1}]}
{"baseTimeNanoseconds":1700000000000000001,"traceEvents":[{"ph":"i","name":"n","ts":1,"pid":1}]}"#;
    run(&[CHROME.into(), odd.into()], 300, chrome::read);
}

#[test]
fn fxt_records() {
    run(&[written(fxt::write)], 300, fxt::read);
}

#[test]
fn perfetto_packets() {
    let mut seeds = vec![written(perfetto::write)];
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let path = folder.join("perfetto-MIT/test_trace.perfetto-trace");
    match std::fs::read(&path) {
        Ok(bytes) => seeds.push(bytes[..30_000].into()),
        Err(_) => println!("SKIPPED: {} is absent", path.display()),
    }
    run(&seeds, 40, perfetto::read);
}
