// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The streams of libipt's tests, compared with the dumps of its `ptdump`, and encoded again.

use lateralis_intelpt::packet::{Packets, encode};
use std::fs;
use std::path::Path;

#[test]
fn packets_are_those_of_the_expected_dumps_and_are_written_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pt/pttc");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("skipped: no {}", folder.display());
        return;
    };
    let (mut streams, mut lines, mut errors, mut wrong) = (0, 0, 0, Vec::new());
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|ext| ext != "pt") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let expected = fs::read_to_string(folder.join(format!("{stem}-ptdump.exp"))).unwrap();
        let read: Vec<_> = Packets::new(&bytes).collect();
        streams += 1;
        for line in expected.lines() {
            let Some((at, text)) = line.split_once(' ') else { continue };
            if text == "error decoding packet: unknown packet]" {
                let at = usize::from_str_radix(at.trim_matches(['[', ':']), 16).unwrap();
                if !read.iter().any(|found| found.is_err_and(|error| error.start == at)) {
                    wrong.push(format!("{stem} {at:x}: no error"));
                }
                errors += 1;
                continue;
            }
            // Other lines are remarks about time and the processor.
            let Some(at) = (at.len() == 16).then(|| usize::from_str_radix(at, 16).ok()).flatten()
            else {
                continue;
            };
            lines += 1;
            // From there on `ptdump` works around an erratum, which is not a matter of single packets.
            if matches!(stem, "skd007" if at >= 0x19) || matches!(stem, "skz84" if at >= 0x1b) {
                continue;
            }
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let found = read.iter().flatten().find(|packet| packet.start == at);
            let printed = found.map(|found| found.packet.to_string()).unwrap_or_default();
            // The text after a space is derived from earlier packets.
            if text != printed && !text.starts_with(&format!("{printed} ")) || printed.is_empty() {
                wrong.push(format!("{stem} {at:x}: {text:?}, not {printed:?}"));
            }
        }
        for found in read.iter().flatten() {
            let mut again = Vec::new();
            encode(&found.packet, &mut again).unwrap();
            if again != bytes[found.start..found.end] {
                wrong.push(format!("{stem} {:x}: written as {again:02x?}", found.start));
            }
        }
    }
    println!("{streams} streams, {lines} packets, {errors} errors");
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(streams, 230);
}
