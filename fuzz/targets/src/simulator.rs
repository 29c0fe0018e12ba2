// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a simulated machine sends: a program in it can make it say anything.

use lateralis_perfdata::perf;
use lateralis_simulator::elf;
use lateralis_simulator::frame::{Frames, kind};
use lateralis_simulator::packets::Packets;
use lateralis_simulator::recording::{Options, Output, Recording};

/// Takes the input as what the plugin wrote, and as the file of a program. Besides not panicking: what comes
/// out is a recording whose packets can be found.
pub fn check(input: &[u8]) {
    let _ = elf::needs(input);
    let _ = elf::script_interpreter(input);
    let _ = elf::library_cache(input);
    let options = Options {
        kernel: true,
        packets: Packets::default(),
        per_cpu: input.len() % 2 == 1,
        vdso_path: b"/vdso".to_vec(),
        truth: false,
    };
    let (mut recording, mut data) = (Recording::new(options), Vec::new());
    let mut output = |what: Output<'_>| {
        if let Output::Data(bytes) = what {
            data.extend_from_slice(bytes);
        }
        Ok::<(), ()>(())
    };
    let _ = Frames::default().push(input, |frame| recording.take(frame, &mut output));
    let header = recording.finish(&mut output);
    if let Ok(Some(header)) = header {
        data[..header.len()].copy_from_slice(&header);
        let packets: u64 = perf::aux_areas(&data).iter().map(|area| area.size_bytes).sum();
        assert!(packets <= data.len() as u64);
    }
    let _ = recording.kernel_code();
}

fn frame(kind: u16, content: &[u8]) -> Vec<u8> {
    let size = (content.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &[0, 0], &size, content].concat()
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A program of two blocks, with a name, an exception and a system call.
pub fn good() -> Vec<Vec<u8>> {
    let mut begin = words(&[0; 16]);
    begin[48..52].copy_from_slice(&1u32.to_le_bytes());
    let block = |id: u32, ip: u64, sizes: &[u8], code: &[u8]| {
        let head = [words(&[id, sizes.len() as u32]), ip.to_le_bytes().to_vec()].concat();
        [&head[..], sizes, code].concat()
    };
    let blocks = [
        block(0, 0x1000, &[1, 2], &[0x90, 0x74, 2]),
        block(1, 0x1003, &[2], &[0x0f, 0x05]),
        block(2, 0xffff_ffff_8100_0000, &[1], &[0xc3]),
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
        0xffff_fffe,
        1,
        0xffff_fffb,
        0x1000,
        0,
        0xffff_fffa,
        0xffff_fff9,
        0x4000,
        0,
        0,
        1,
        0xffff_fffa,
    ];
    let comm = [words(&[3, 0x0028_2000, 6, 7]), b"program\0".to_vec(), words(&[6, 7, 99, 0, 0, 0])];
    let frames = [
        frame(kind::BEGIN, &begin),
        frame(kind::BLOCKS, &blocks.concat()),
        frame(kind::FLOW, &words(&flow)),
        frame(kind::SIDEBAND, &comm.concat()),
        frame(kind::STDOUT, b"hello"),
        frame(kind::STATUS, &words(&[0, 0])),
    ];
    vec![frames.concat(), b"#!/bin/sh -e\n".to_vec()]
}
