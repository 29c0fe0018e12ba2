// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packet captures: pcapng and pcap.

use lateralis_model::{Source, Value};
use lateralis_pcapng::{Options, read, write};

/// Memory that events may take.
const LIMIT_BYTES: u64 = 1 << 20;

/// Besides not panicking: damage lies in the file, every packet lies in it too, and
/// what was read is written as a capture without fault that has as many packets.
pub fn check(bytes: &[u8]) {
    let Ok(trace) = read("fuzz", bytes, LIMIT_BYTES) else {
        assert!(!lateralis_pcapng::sniff(bytes));
        return;
    };
    for damage in trace.damage() {
        assert!(damage.begin_bytes < damage.end_bytes && damage.end_bytes <= bytes.len() as u64);
    }
    let (mut count, mut captured) = (0usize, 0usize);
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        let data = event.payload().and_then(|payload| payload.get("data"));
        let Some(Value::Bytes(data)) = data.map(|data| data.value()) else {
            panic!("a packet has bytes");
        };
        count += 1;
        captured += data.len();
    }
    assert!(captured <= bytes.len() && count <= bytes.len() / 16, "{count}: {captured}");
    let mut written = Vec::new();
    let _ = write(&trace, &mut written, &Options::default()).expect("a vector takes all");
    let again = read("written", &written, u64::MAX).expect("a capture");
    assert_eq!(again.len(), count);
    assert!(again.damage().is_empty(), "{:?}", again.damage());
}

/// One capture of each kind, with two sections of different byte order.
pub fn good() -> Vec<Vec<u8>> {
    let mut sections = Vec::new();
    for big in [false, true] {
        let order = if big { u32::to_be_bytes } else { u32::to_le_bytes };
        // Two halves, a byte alone, and 64 bits, as words of this order.
        let pair = |a: u32, b: u32| if big { a << 16 | b } else { a | b << 16 };
        let byte = |byte: u32| if big { byte << 24 } else { byte };
        let long = |low: u32| if big { [0, low] } else { [low, 0] };
        let mut block = |kind: u32, words: &[u32]| {
            let total = 12 + 4 * words.len() as u32;
            for word in [&[kind, total][..], words, &[total]].concat() {
                sections.extend_from_slice(&order(word));
            }
        };
        let [seven, nine] = [7, 9].map(long);
        block(0x0a0d_0d0a, &[0x1a2b_3c4d, pair(1, 0), u32::MAX, u32::MAX]);
        block(1, &[pair(1, 0), 64, pair(9, 1), byte(9), 0]);
        block(1, &[pair(1, 0), 64]);
        block(6, &[0, 1, 2, 4, 60, 0xaaaa]);
        block(6, &[1, 1, 3, 3, 60, 0xbbbb, pair(4, 8), seven[0], seven[1], 0]);
        block(3, &[4, 0xcccc]);
        block(5, &[0, 1, 4, pair(5, 8), nine[0], nine[1], 0]);
        block(0xbad, &[1, 2]);
    }
    let classic = |magic: u32| {
        let header = [magic, 0x0004_0002, 0, 0, 65535, 1];
        let packets = [7, 5, 4, 4, 9, 8, 6, 8, 8, 0, 0];
        [&header[..], &packets].concat().into_iter().flat_map(u32::to_le_bytes).collect()
    };
    vec![sections, classic(0xa1b2_c3d4), classic(0xa1b2_3c4d), classic(0xa1b2_cd34)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_good_captures_are_read_completely() {
        let traces: Vec<_> =
            good().iter().map(|bytes| read("good", bytes, u64::MAX).unwrap()).collect();
        let packets: Vec<_> = traces.iter().map(|trace| trace.len()).collect();
        assert_eq!(packets, [6, 2, 2, 1]);
        assert!(traces[0].damage().is_empty());
        let lost: u64 = traces[0].losses().iter().filter_map(|loss| loss.count).sum();
        assert_eq!(lost, 32, "7 and 9 in each section");
    }
}
