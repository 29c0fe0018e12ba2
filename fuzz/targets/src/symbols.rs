// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files with the names of functions: named by a trace, and untrusted.

use lateralis_symbols::{
    Functions, Image, JitDump, Lines, Mapping, Registers, Stacks, build_id_of_notes, demangled,
};

/// Words of a stack.
const STACK_WORDS: u64 = 256;

/// Reads the bytes as each kind of such a file. Besides not panicking: what is found at an address is a name
/// of the file.
pub fn check(bytes: &[u8]) {
    if let Ok(image) = Image::of(bytes) {
        for offset in (0..bytes.len() as u64).step_by(64).chain([u64::MAX]) {
            let name = image.function_at(offset);
            let is_inside = |name: &str| {
                bytes.windows(name.len().max(1)).any(|window| window == name.as_bytes())
            };
            assert!(name.is_none_or(is_inside), "{name:?}");
        }
        unwind(&image, bytes);
        if let Some(lines) = Lines::of(&image) {
            for address in (0..bytes.len() as u64).step_by(64).chain([u64::MAX]) {
                let (frames, line) = (lines.frames(address), lines.line(address));
                assert!(frames.len() <= 256);
                // A line is known by itself, or by a function that has none.
                let known = frames.first().and_then(|frame| frame.line.as_ref());
                assert!(known.is_none() || line.as_ref() == known, "{known:?} {line:?}");
            }
        }
    }
    let _ = build_id_of_notes(bytes);
    let text = String::from_utf8_lossy(bytes);
    for functions in [Functions::of_kallsyms(&text), Functions::of_perf_map(&text)] {
        for address in [0, 1, 0x1000, 0xffff_ffff_8100_0000, u64::MAX] {
            assert!(functions.at(address).is_none_or(|name| text.contains(name)));
        }
    }
    if let Ok(mut dump) = JitDump::of(bytes) {
        let sorted = [1 << 20, 0, u64::MAX];
        for (address, time) in [0, 0x1000, u64::MAX].into_iter().zip(sorted) {
            let found = dump.at(address, Some(time)).map(|of| of.name.to_owned());
            assert!(found.is_none_or(|name| name.len() <= 3 * bytes.len()));
        }
    }
    for word in text.split_whitespace().take(64) {
        let _ = demangled(word);
    }
}

/// Stacks of a process in which the file is mapped whole: not more frames than the stack can hold.
fn unwind(image: &Image, bytes: &[u8]) {
    const BASE: u64 = 0x5555_0000_0000;
    let mut stacks = Stacks::default();
    let end = BASE + bytes.len() as u64;
    stacks.add(&Mapping { begin: BASE, end, offset: 0, file: 0 }, image);
    // Return addresses into the file, at all positions where the tables look for them.
    let words = (0..STACK_WORDS).map(|at| BASE + (at * 0x5bd1) % (bytes.len() as u64 + 1));
    let stack: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    for offset in (0..bytes.len() as u64).step_by(97) {
        let values = (0..24).map(|number| match number {
            7 => 0x7ffe_0000,
            8 => BASE + offset,
            _ => 0x7ffe_0000 + number * 8,
        });
        let found = stacks.unwind(&Registers::of_mask(0xff_ffff, values), &stack);
        assert!(found.len() <= 1024 && !found.is_empty());
    }
}

/// A program, and texts with names.
pub fn good() -> Vec<Vec<u8>> {
    let mut all = crate::probe::good();
    all.push(b"ffffffff81000000 T _text\nffffffff81000040 t do_one_initcall\n0 A none\n".to_vec());
    all.push(b"1000 20 LazyCompile:*run /app/main.js:7\n0x2000 8 _ZN3foo3barEi\n".to_vec());
    all.push(b"_RNvCs1234_7mycrate3foo _ZNSt6vectorIiSaIiEE9push_backEOi.constprop.0".to_vec());
    all
}
