// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Input from the machine may be anything.

use lateralis_perfdata::perf;
use lateralis_simulator::elf;
use lateralis_simulator::frame::{Frames, kind};
use lateralis_simulator::packets::Packets;
use lateralis_simulator::recording::{Options, Output, Recording};

/// Reproducible numbers [Steele, Lea, Flood: SplitMix64].
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let one = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let other = (one ^ (one >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        other ^ (other >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

fn frame(kind: u16, content: &[u8]) -> Vec<u8> {
    let size = (content.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &[0, 0], &size, content].concat()
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A program of three blocks with a branch, a fault and a system call, with a mapping and a name.
fn good() -> Vec<u8> {
    let mut begin = words(&[0; 16]);
    begin[48..52].copy_from_slice(&1u32.to_le_bytes());
    let block = |id: u32, ip: u64, code: &[&[u8]]| {
        let sizes: Vec<u8> = code.iter().map(|of| of.len() as u8).collect();
        let head = [words(&[id, code.len() as u32]), ip.to_le_bytes().to_vec()].concat();
        [head, sizes, code.concat()].concat()
    };
    let blocks = [
        block(0, 0x1000, &[&[0x90], &[0x74, 2]]),
        block(1, 0x1003, &[&[0xe8, 0, 1, 0, 0]]),
        block(2, 0x1108, &[&[0xc3]]),
        block(3, 0xffff_ffff_8100_0000, &[&[0x0f, 0x05]]),
    ];
    let flow = [
        0xffff_fffd,
        7,
        6,
        9,
        0,
        0xffff_fffc,
        99,
        0,
        0,
        1,
        2,
        0xffff_fffe,
        1,
        0xffff_fffb,
        0x1108,
        0,
        0xffff_fffa,
        0xffff_fff9,
        0x4000,
        0,
        0,
        0xffff_fffb,
        0x5003,
        0,
        3,
        0xffff_fffa,
    ];
    let trailer = words(&[6, 7, 99, 0, 0, 0]);
    let comm = [words(&[3, 0x0028_2000, 6, 7]), b"program\0".to_vec(), trailer].concat();
    [
        frame(kind::KALLSYMS, b"ffffffff81000000 T start\n"),
        frame(kind::BEGIN, &begin),
        frame(kind::BLOCKS, &blocks.concat()),
        frame(kind::FLOW, &words(&flow)),
        frame(kind::SIDEBAND, &comm),
        frame(kind::STDOUT, b"hello"),
        frame(kind::COUNTS, &words(&[9, 0, 9, 0])),
        frame(kind::STATUS, &words(&[0, 0])),
    ]
    .concat()
}

fn take(bytes: &[u8]) -> (Recording, Vec<u8>) {
    let options = Options {
        kernel: true,
        per_cpu: false,
        packets: Packets::default(),
        vdso_path: b"/v".to_vec(),
        truth: true,
    };
    let (mut recording, mut data) = (Recording::new(options), Vec::new());
    let mut output = |what: Output<'_>| {
        if let Output::Data(bytes) = what {
            data.extend_from_slice(bytes);
        }
        Ok::<(), ()>(())
    };
    let _ = Frames::default().push(bytes, |frame| recording.take(frame, &mut output));
    if let Some(header) = recording.finish(&mut output).expect("it is taken") {
        data[..header.len()].copy_from_slice(&header);
    }
    (recording, data)
}

#[test]
fn whatever_is_sent_a_file_that_can_be_read_comes_out() {
    let good = good();
    let (recording, data) = take(&good);
    assert!(recording.flow.odd.transfers <= 1 && recording.flow.sums.retired >= 4);
    assert_eq!(perf::aux_areas(&data).len(), 1);
    let mut numbers = Numbers(1);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len());
            match numbers.below(4) {
                0 => bytes[at] = numbers.next() as u8,
                1 => bytes[at] ^= 1 << numbers.below(8),
                2 => bytes.truncate(at + 1),
                _ => {
                    let from = numbers.below(bytes.len());
                    let end = (from + numbers.below(64)).min(bytes.len());
                    let piece = bytes[from..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let (recording, data) = take(&bytes);
        let _ = recording.kernel_code();
        let packets: u64 = perf::aux_areas(&data).iter().map(|area| area.size_bytes).sum();
        assert!(packets <= data.len() as u64);
    }
}

#[test]
fn programs_may_be_damaged() {
    let good = std::fs::read("/bin/true").expect("a program");
    let mut numbers = Numbers(2);
    for _ in 0..2_000 {
        let mut bytes = good.clone();
        for _ in 0..8 {
            // Most of the significant bytes are at the start.
            let at = numbers.below(2048.min(bytes.len()));
            bytes[at] = numbers.next() as u8;
        }
        bytes.truncate(1 + numbers.below(bytes.len()));
        let _ = elf::needs(&bytes);
        let _ = elf::script_interpreter(&bytes);
        let _ = elf::library_cache(&bytes);
    }
}
