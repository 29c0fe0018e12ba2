// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program's file and the name of a probe, passed to the recorder: both are untrusted.

use lateralis_recorder::kernel::probe::{Program, Wish};

const MARK: &[u8] = b"\n%%%\n";

/// Finds probes. Besides not panicking: a definition is one line, for any file.
pub fn check(bytes: &[u8]) {
    let at = bytes.windows(MARK.len()).position(|window| window == MARK);
    let (word, file) = match at {
        Some(at) => (&bytes[..at], &bytes[at + MARK.len()..]),
        None => (&b"p:app:done"[..], bytes),
    };
    let Some(program) = Program::read(file) else { return };
    let Ok(wish) = Wish::parse(&String::from_utf8_lossy(word)) else { return };
    for definition in wish.find(&program, "/p").unwrap_or_default() {
        for place in &definition.places {
            assert!(!place.contains(|c: char| c.is_control()), "{place:?}");
        }
        definition.format("p", "name: e0\nID: 1\n");
    }
}

/// An ELF file with the sections of static probes, and nothing else.
fn program() -> Vec<u8> {
    let names = b"\0.note.stapsdt\0.stapsdt.base\0.shstrtab\0";
    let mut value: Vec<u8> = [0x1010_u64, 0x1000, 0x1020].map(u64::to_le_bytes).concat();
    value.extend(b"app\0done\0-4@%edi 8@-8(%rbp)\0");
    let mut note: Vec<u8> = [8, value.len() as u32, 3].map(u32::to_le_bytes).concat();
    note.extend(b"stapsdt\0");
    note.extend(&value);
    note.resize(note.len().next_multiple_of(8), 0);
    let (segments, sections) = (64_u64, 64 + 56_u64);
    let content = sections + 4 * 64;
    let names_at = content + note.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([3_u16, 62].map(u16::to_le_bytes).concat());
    file.extend(1_u32.to_le_bytes());
    file.extend([0, segments, sections].map(u64::to_le_bytes).concat());
    file.extend(0_u32.to_le_bytes());
    file.extend([64_u16, 56, 1, 64, 4, 3].map(u16::to_le_bytes).concat());
    file.extend([1_u32, 5].map(u32::to_le_bytes).concat());
    file.extend([0_u64, 0x1000, 0x1000, 0x100, 0x100, 16].map(u64::to_le_bytes).concat());
    let mut section = |name: u32, kind: u32, address: u64, at: u64, bytes: u64| {
        file.extend([name, kind].map(u32::to_le_bytes).concat());
        file.extend([0, address, at, bytes].map(u64::to_le_bytes).concat());
        file.extend([0_u8; 8]);
        file.extend([1_u64, 0].map(u64::to_le_bytes).concat());
    };
    section(0, 0, 0, 0, 0);
    section(1, 7, 0, content, note.len() as u64);
    section(15, 1, 0x1000, content, 1);
    section(29, 3, 0, names_at, names.len() as u64);
    file.extend(note);
    file.extend(names);
    file
}

/// Good inputs.
pub fn good() -> Vec<Vec<u8>> {
    let program = program();
    ["p:app:done", "p:main%return"].map(|word| [word.as_bytes(), MARK, &program].concat()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_has_a_point() {
        let program = Program::read(&program()).expect("an ELF file");
        let wish = Wish::parse("p:app:done").expect("a probe");
        let found = wish.find(&program, "/p").expect("a point");
        assert_eq!(found[0].places, ["/p:0x10(0x20) arg1=%di:s32 arg2=-8(%bp):u64"]);
    }
}
