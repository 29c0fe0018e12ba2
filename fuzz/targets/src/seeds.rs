// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dumps and logs of Barrelfish, Composite and seL4.

use lateralis_model::{MemoryTrace, Source};
use lateralis_seedformats::barrelfish::{self, Definitions};
use lateralis_seedformats::{composite, sel4};

/// Memory that events may take.
const LIMIT_BYTES: u64 = 1 << 20;

/// Every reader on the same bytes. Besides not panicking: no more events than bytes,
/// damage lies in the file, and a dump that was read is written with every event.
pub fn check(bytes: &[u8]) {
    let options = |abi| sel4::Options { entries: Some(1 << 40), ..sel4::Options::new(abi) };
    let ia32 = options(sel4::Abi::Ia32);
    let aarch64 = sel4::Options::new(sel4::Abi::Aarch64);
    let all = [
        barrelfish::read("fuzz", bytes, LIMIT_BYTES),
        barrelfish::read_buffers("fuzz", bytes, LIMIT_BYTES, &barrelfish::Options::default()),
        composite::read("fuzz", bytes, LIMIT_BYTES),
        sel4::read("fuzz", bytes, LIMIT_BYTES),
        sel4::read_entries("fuzz", bytes, LIMIT_BYTES, &ia32),
        sel4::read_tracepoints("fuzz", bytes, LIMIT_BYTES, &aarch64),
    ];
    all.into_iter().flatten().for_each(|trace| look(&trace, bytes.len()));
    let _ = Definitions::from_json("fuzz", bytes);
    let Ok(trace) = barrelfish::read("fuzz", bytes, u64::MAX) else { return };
    let mut written = Vec::new();
    let _ = barrelfish::write(&trace, &mut written, &Definitions::default()).expect("a vector");
    let again = barrelfish::read("written", &written, u64::MAX).expect("a dump");
    assert_eq!(again.len(), trace.len());
    assert!(again.damage().is_empty(), "{:?}", again.damage());
}

fn look(trace: &MemoryTrace, length: usize) {
    for damage in trace.damage() {
        assert!(damage.begin_bytes <= damage.end_bytes && damage.end_bytes <= length as u64);
    }
    let (mut count, mut events) = (0usize, trace.events());
    while let Some(event) = events.next_event() {
        count += 1;
        for (_, field) in event.payload().into_iter().flatten() {
            let _ = (field.as_u64(), field.as_text());
        }
    }
    assert!(count <= length, "{count} events out of {length} bytes");
}

/// One input of each kind.
pub fn good() -> Vec<Vec<u8>> {
    let texts = [
        "# Start 1000 Duration 0 Stop 0\n# Min_timestamp 7\n# Core 0 LOG DUMP ===\n\
         # Offset 0 9223372036854775303\n0 7 7337000100000000\n# DCB 0 ffffff8002656c00 app\n\
         0 9 ffffcccc02656c00\n1 10 eeee020000000040\n1 12 eb00000000abc002\n",
        "timestamp,cpuid,thd_id, nargs,args...,text\n1000,0,3, 2,7,18,\"x %d, %*s\"\n1,1,4, 0\n",
        "tracepoint id = 3 \tduration = 512\nDumped entire log, size 1\n",
        "{\"BENCHMARK_TOTAL_UTILISATION\":1,\"BENCHMARK_TCB_\":[{\"NAME\":\"i\",\"UTILISATION\":7},]}",
        "[{\"Benchmark\":\"b\",\"Results\":[{\"Min\":1.5,\"Raw results\":[1,2e300,-1]}]}]",
        "{0: {\"name\": \"kernel\", \"events\": {0: \"Context Switch\", 1: [\"A\", \"b\"]}}}",
    ];
    let mut all: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    all.push((0..=255).cycle().take(720).collect());
    all
}
