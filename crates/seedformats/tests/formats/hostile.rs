// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random damage: no panic, and never more events than the bytes can hold.

use lateralis_model::Source;
use lateralis_seedformats::{barrelfish, composite, sel4};

use crate::listing;

/// xorshift64*: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) as usize % end.max(1)
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![
        b"# Start 1000 Duration 0 Stop 0\n# Core 0 LOG DUMP ===\n# Offset 0 -5\n\
          0 7 7337000100000000\n\
          # DCB 0 ffffff8002656c00 app\n0 9 ffffcccc02656c00\n0 12 eb00000000abc002\n"
            .to_vec(),
        b"1000,0,3, 2,7,18,\"x %d %*s\"\n1500,1,4, 0\n".to_vec(),
        b"tracepoint id = 3 \tduration = 512\nDumped entire log, size 1\n".to_vec(),
        br#"{"BENCHMARK_TOTAL_UTILISATION":1,"BENCHMARK_TCB_":[{"NAME":"i","UTILISATION":7},]}"#
            .to_vec(),
        br#"[{"Benchmark":"b","Results":[{"Min":1.5,"Raw results":[1,2e300,-1]}]}]"#.to_vec(),
        (0..=255).cycle().take(720).collect(),
    ];
    seeds.extend(crate::shared("barrelfish/atrace.trc").map(|bytes| bytes[..2000].to_vec()));
    seeds
}

#[test]
fn random_damage_never_panics() {
    let mut numbers = Numbers(0x5eed);
    let seeds = seeds();
    for round in 0..2000 {
        let mut bytes = seeds[numbers.below(seeds.len())].clone();
        for _ in 0..=numbers.below(6) {
            let at = numbers.below(bytes.len());
            match numbers.below(6) {
                0 => bytes[at] ^= 1 << numbers.below(8),
                1 => bytes[at] = b"\0\n\"%,#9-[{"[numbers.below(10)],
                2 => bytes.truncate(at.max(1)),
                3 => drop(bytes.drain(at..(at + numbers.below(9)).min(bytes.len() - 1).max(at))),
                4 => bytes.splice(at..at, b"99999999999999999999".iter().copied()).for_each(drop),
                _ => {
                    let piece = bytes[at..(at + 40).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let all = [
            barrelfish::read("m", &bytes, 1 << 16).ok(),
            composite::read("m", &bytes, 1 << 16).ok(),
            sel4::read("m", &bytes, 1 << 16).ok(),
            sel4::read_entries("m", &bytes, 1 << 16, &sel4::Options::new(sel4::Abi::Ia32)).ok(),
            sel4::read_tracepoints("m", &bytes, 1 << 16, &sel4::Options::new(sel4::Abi::X86_64))
                .ok(),
            barrelfish::read_buffers("m", &bytes, 1 << 16, &barrelfish::Options::default()).ok(),
        ];
        for trace in all.into_iter().flatten() {
            assert!(trace.len() <= bytes.len(), "{round}");
            assert_eq!(listing(&trace).len(), trace.len());
            for damage in trace.damage() {
                assert!(damage.begin_bytes <= damage.end_bytes);
                assert!(damage.end_bytes <= bytes.len() as u64, "{damage}");
            }
        }
        let Ok(trace) = barrelfish::read("m", &bytes, u64::MAX) else { continue };
        let mut written = Vec::new();
        barrelfish::write(&trace, &mut written, &barrelfish::Definitions::default()).unwrap();
        let again = barrelfish::read("w", &written, u64::MAX).unwrap();
        assert_eq!(again.len(), trace.len(), "{}", String::from_utf8_lossy(&bytes));
    }
}
