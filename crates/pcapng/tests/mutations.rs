// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Damaged captures: no panic, no packet that was not there, and what was
//! written reads as it was.

mod support;

use lateralis_model::Source;
use lateralis_pcapng::{Options, read, write};
use support::{File, packets};

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
    let mut file = File::new();
    for big in [false, true] {
        file.section(big);
        file.interface("uplink", &[(9, vec![9])]);
        file.interface("nic", &[]);
        for time in 0..4 {
            file.packet(time as u32 % 2, time, &[time as u8; 9], &[(1, b"hi".to_vec())]);
        }
        file.statistics(0, 7, 3);
        file.block(3, &[0; 8], &[]);
    }
    let mut classic = Vec::new();
    for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65535, 1, 7, 5, 4, 4, 9, 8, 6, 8, 8, 0, 0] {
        classic.extend_from_slice(&word.to_le_bytes());
    }
    let mut all = vec![file.bytes, classic];
    all.extend(support::captures().iter().map(|path| std::fs::read(path).unwrap()));
    all
}

#[test]
fn random_damage_never_panics_and_what_is_left_can_be_written_and_read_again() {
    let mut numbers = Numbers(0x5eed);
    let seeds = seeds();
    let mut read_again = 0;
    for _ in 0..3000 {
        let mut bytes = seeds[numbers.below(seeds.len())].clone();
        for _ in 0..=numbers.below(6) {
            let at = numbers.below(bytes.len());
            match numbers.below(5) {
                0 => bytes[at] ^= 1 << numbers.below(8),
                1 => bytes[at] = [0, 0xff, 0x7f, 0x80][numbers.below(4)],
                2 => bytes.truncate(at.max(16)),
                3 => drop(bytes.drain(at..(at + numbers.below(9)).min(bytes.len()))),
                _ => {
                    let piece = bytes[at..(at + 40).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
            if bytes.is_empty() {
                bytes.push(10);
            }
        }
        let Ok(trace) = read("m", &bytes, 1 << 20) else { continue };
        let seen = packets(&trace);
        let mut written = Vec::new();
        let dropped = write(&trace, &mut written, &Options::default()).unwrap();
        let again = read("w", &written, u64::MAX).unwrap();
        assert!(again.damage().is_empty(), "{:?}", again.damage());
        assert!(again.remarks().is_empty());
        let texts: Vec<&str> = dropped.iter().map(|(what, _)| what).collect();
        if !texts.iter().any(|text| text.contains("time")) {
            let (mut left, mut right) = (seen, packets(&again));
            left.sort();
            right.sort();
            assert_eq!(left, right);
            read_again += 1;
        }
    }
    assert!(read_again > 1000, "{read_again}");
}

#[test]
fn a_cut_at_any_byte_keeps_every_packet_before_it() {
    let bytes = &seeds()[0];
    let whole = packets(&read("w", bytes, u64::MAX).unwrap());
    let mut ends = vec![0];
    while let Some(end) = ends.last().copied().filter(|&end| end < bytes.len()) {
        let length: [u8; 4] = bytes[end + 4..end + 8].try_into().unwrap();
        let length = u32::from_le_bytes(length).min(u32::from_be_bytes(length));
        ends.push(end + length as usize);
    }
    let mut last = 0;
    for cut in 12..=bytes.len() {
        let trace = read("c", &bytes[..cut], u64::MAX).unwrap();
        let seen = packets(&trace);
        assert!(seen.iter().all(|packet| whole.contains(packet)), "{cut}");
        assert!(seen.len() >= last, "{cut}");
        assert_eq!(trace.damage().is_empty(), ends.contains(&cut), "{cut}");
        last = seen.len();
    }
    assert_eq!(last, whole.len());
}
