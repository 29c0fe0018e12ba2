// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The streams of libipt's tests against the dumps that its `ptdump` gives, and written again.

use lateralis_intelpt::packet::{IpBytes, Packet, Packets, Tnt, encode};
use std::fs;
use std::path::Path;

fn ip(name: &str, ip: IpBytes) -> String {
    let text = match ip {
        IpBytes::Suppressed => "0: ????????????????".into(),
        IpBytes::Update16(low) => format!("1: ????????????{low:04x}"),
        IpBytes::Update32(low) => format!("2: ????????{low:08x}"),
        IpBytes::Signed48(_) => format!("3: {:016x}", ip.apply(0).unwrap()),
        IpBytes::Update48(low) => format!("4: ????{low:012x}"),
        IpBytes::Full(all) => format!("6: {all:016x}"),
    };
    format!("{name} {text}")
}

fn tnt(name: &str, tnt: Tnt) -> String {
    let sign = |bit| if tnt.bits >> bit & 1 == 1 { '!' } else { '.' };
    format!("{name} {}", (0..tnt.len).rev().map(sign).collect::<String>())
}

fn flagged(text: &str, flags: &[(bool, &str)]) -> String {
    let set = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name);
    let (head, tail) = text.split_once(' ').unwrap_or((text, ""));
    let parts: Vec<_> = (!tail.is_empty()).then_some(tail).into_iter().chain(set).collect();
    format!("{head} {}", parts.join(", ")).trim_end().to_owned()
}

/// As `ptdump` prints it, without what it works out from earlier packets.
fn print(packet: Packet) -> String {
    use Packet as P;
    match packet {
        P::Pad => "pad".into(),
        P::Psb => "psb".into(),
        P::PsbEnd => "psbend".into(),
        P::Ovf => "ovf".into(),
        P::TraceStop => "stop".into(),
        P::TntShort(bits) => tnt("tnt.8", bits),
        P::TntLong(bits) => tnt("tnt.64", bits),
        P::Tip(to) => ip("tip", to),
        P::TipPge(to) => ip("tip.pge", to),
        P::TipPgd(to) => ip("tip.pgd", to),
        P::Fup(at) => ip("fup", at),
        P::Pip { cr3, non_root } => flagged(&format!("pip {cr3:x}"), &[(non_root, "nr")]),
        P::ModeExec { bits } => flagged(
            "mode.exec",
            &[(bits & 1 != 0, "cs.l"), (bits & 2 != 0, "cs.d"), (bits & 4 != 0, "if")],
        ),
        P::ModeTsx { bits } => {
            flagged("mode.tsx", &[(bits & 1 != 0, "intx"), (bits & 2 != 0, "abrt")])
        }
        P::Tsc(value) => format!("tsc {value:x}"),
        P::Tma { ctc, fast } => format!("tma {ctc:x}, {fast:x}"),
        P::Mtc(value) => format!("mtc {value:x}"),
        P::Cyc(value) => format!("cyc {value:x}"),
        P::Cbr(ratio) => format!("cbr {ratio:x}"),
        P::Vmcs { base } => format!("vmcs {base:x}"),
        P::Mnt(value) => format!("mnt {value:x}"),
        P::Ptw4 { value, ip } => flagged(&format!("ptw 0: {value:x}"), &[(ip, "ip")]),
        P::Ptw8 { value, ip } => flagged(&format!("ptw 1: {value:x}"), &[(ip, "ip")]),
        P::ExStop { ip } => flagged("exstop", &[(ip, "ip")]),
        P::Mwait { hints, ext } => format!("mwait {hints:08x}, {ext:08x}"),
        P::Pwre { state, sub_state, flags } => {
            let text = format!("pwre c{:x}.{:x}", (state + 1) & 15, (sub_state + 1) & 15);
            flagged(&text, &[(flags & 8 != 0, "hw")])
        }
        P::Pwrx { last, deepest, wake } => {
            let why =
                [(1, "int: "), (4, "st: "), (8, "hw: ")].iter().filter(|(bit, _)| wake & bit != 0);
            let why: String = why.map(|(_, name)| *name).collect();
            format!("pwrx {why}c{:x}, c{:x}", (last + 1) & 15, (deepest + 1) & 15)
        }
        P::Cfe { kind, vector, ip } => {
            let vector = if matches!(kind, 1 | 5 | 9 | 12 | 14) {
                format!(": {}", vec(kind, vector))
            } else {
                String::new()
            };
            flagged(&format!("cfe {kind}{vector}"), &[(ip, "ip")])
        }
        P::Evd { kind, value } => format!("evd {kind}: {value:x}"),
        P::Trig { flags, vector, icnt } => {
            let text = format!("trig {vector:02x}");
            let icnt = icnt.map(|count| format!("icnt: {count}"));
            let (icnt, told) = (icnt.clone().unwrap_or_default(), icnt.is_some());
            flagged(&text, &[(flags & 0x80 != 0, "ip"), (flags & 0x20 != 0, "mult"), (told, &icnt)])
        }
        P::Bbp { .. } | P::Bip4 { .. } | P::Bip8 { .. } | P::Bep { .. } => format!("{packet:?}"),
    }
}

fn vec(kind: u8, vector: u8) -> String {
    if kind == 5 { format!("{vector:x}") } else { vector.to_string() }
}

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
            // Other lines are remarks on time and on the processor.
            let Some(at) = (at.len() == 16).then(|| usize::from_str_radix(at, 16).ok()).flatten()
            else {
                continue;
            };
            lines += 1;
            // From there on an erratum of the processor is worked around, which is no work of packets.
            if matches!(stem, "skd007" if at >= 0x19) || matches!(stem, "skz84" if at >= 0x1b) {
                continue;
            }
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let found = read.iter().flatten().find(|packet| packet.start == at);
            let printed = found.map(|found| print(found.packet)).unwrap_or_default();
            // What follows a space is worked out from earlier packets.
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
