// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chrome JSON, Perfetto and FXT: the readers, and the writers on what was read.

use lateralis_interchange::{Error, chrome, fxt, jsonl, perfetto};
use lateralis_model::{MemoryTrace, Source};

type Reader = fn(&str, &[u8], u64) -> Result<MemoryTrace, Error>;

/// Memory that the events of an input may take.
const LIMIT: u64 = 1 << 20;

/// Reads the bytes as each format, writes what was read as each, and reads that.
pub fn check(bytes: &[u8]) {
    let readers: [Reader; 3] = [chrome::read, perfetto::read, fxt::read];
    for read in readers {
        let Ok(trace) = read("input", bytes, LIMIT) else { continue };
        // An event takes 48 bytes of the limit at least.
        assert!(trace.len() as u64 <= LIMIT / 48, "{} events", trace.len());
        let mut out = Vec::new();
        let sink = "a vector takes everything";
        chrome::write(&trace, &mut out).expect(sink);
        let again = chrome::read("again", &out, u64::MAX).expect("what was written");
        assert!(again.damage().is_empty(), "{:?}", again.damage());
        out.clear();
        perfetto::write(&trace, &mut out).expect(sink);
        let again = perfetto::read("again", &out, u64::MAX).expect("what was written");
        assert!(again.damage().is_empty(), "{:?}", again.damage());
        out.clear();
        fxt::write(&trace, &mut out).expect(sink);
        let again = fxt::read("again", &out, u64::MAX).expect("what was written");
        assert!(again.damage().is_empty(), "{:?}", again.damage());
        jsonl::write(&trace, &mut std::io::sink()).expect(sink);
    }
}

/// A small trace in each format.
pub fn good() -> Vec<Vec<u8>> {
    let text = br#"[{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"main"}},
{"ph":"B","name":"a","cat":"c","ts":1,"pid":1,"tid":2,"args":{"n":1,"s":"x","d":{"k":[1,-2]}}},
{"ph":"X","name":"b","ts":2.5,"dur":1,"pid":1,"tid":2,"args":{"r":0.5}},
{"ph":"E","ts":4,"pid":1,"tid":2},
{"ph":"b","name":"l","id":"0x1f","ts":6,"pid":1,"tid":2},
{"ph":"e","name":"l","id":"0x1f","ts":8,"pid":1,"tid":3},
{"ph":"s","name":"m","id":1,"ts":11,"pid":1,"tid":2},
{"ph":"f","name":"m","id":1,"ts":13,"pid":2,"tid":4},
{"ph":"b","name":"q","cat":"k","id2":{"local":"0x1"},"ts":14,"pid":1,"tid":2},
{"ph":"e","cat":"k","id2":{"local":"0x1"},"ts":15,"pid":1,"tid":2},
{"ph":"X","name":"z","ts":16,"pid":1,"tid":2,"bind_id":"7","flow_out":true,"args":{"v":NaN}},
{"ph":"X","name":"z","ts":17,"dur":-1,"pid":1,"tid":2,"bind_id":"7","flow_in":true},
{"ph":"C","name":"g","ts":20,"pid":1,"id":"0x1","args":{"used":"7.5"}},
{"ph":"C","name":"g","ts":21,"pid":1,"tid":2,"args":{"used":7}}]
{"traceEvents":[{"ph":"i","name":"n","ts":1e1,"pid":1,"args":{"s":"a "b" c"}}]}"#;
    let trace = chrome::read("good", text, LIMIT).expect("a good trace");
    let (mut packets, mut records) = (Vec::new(), Vec::new());
    perfetto::write(&trace, &mut packets).expect("a vector takes everything");
    fxt::write(&trace, &mut records).expect("a vector takes everything");
    vec![text.to_vec(), packets, records]
}
