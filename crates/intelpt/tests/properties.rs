// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arbitrary bytes are decoded to their end; the result is encoded and decoded again unchanged.

use lateralis_intelpt::packet::{PSB, Packet, Packets, encode, find_psb};
use proptest::prelude::*;

/// Bytes that often begin packets, including complete PSBs.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => any::<u8>().prop_map(|byte| vec![byte]),
        8 => any::<u8>().prop_map(|byte| vec![2, byte]),
        4 => Just(vec![0; 9]),
        2 => Just(vec![2, 0x63, 0x80]),
        2 => Just(vec![2, 0x63, 0x04]),
        1 => Just(PSB.to_vec()),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]
    #[test]
    fn what_is_read_is_written_and_read_again(bytes in bytes()) {
        let (mut end, mut again, mut packets) = (0, Vec::new(), Vec::new());
        for item in Packets::new(&bytes) {
            match item {
                Ok(found) => {
                    prop_assert_eq!(found.start, end);
                    encode(&found.packet, &mut again).unwrap();
                    packets.push(found.packet);
                    end = found.end;
                }
                Err(error) => {
                    prop_assert_eq!(error.start, end);
                    prop_assert_eq!(error.resume, find_psb(&bytes, end + 1).unwrap_or(bytes.len()));
                    end = error.resume;
                }
            }
        }
        prop_assert_eq!(end, bytes.len());
        let read: Vec<_> = Packets::new(&again).map(|found| found.unwrap().packet).collect();
        prop_assert_eq!(read, packets);
    }
}

#[test]
fn fields_that_do_not_fit_are_refused_and_leave_no_bytes() {
    let mut out = vec![7];
    let tma = Packet::Tma { ctc: 0, fast: 0x200 };
    for packet in [Packet::Tsc(1 << 56), Packet::Cyc(1 << 61), tma, Packet::Vmcs { base: 1 }] {
        assert!(encode(&packet, &mut out).is_err(), "{packet:?}");
        assert_eq!(out, [7]);
    }
    encode(&Packet::Cyc((1 << 61) - 1), &mut out).unwrap();
}
