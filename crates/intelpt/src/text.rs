// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets in the format of `ptdump` of Intel's library.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::packet::{IpBytes, Packet, Tnt};

impl fmt::Display for Packet {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&text(*self))
    }
}

fn ip(name: &str, ip: IpBytes) -> String {
    let text = match ip {
        IpBytes::Suppressed => "0: ????????????????".into(),
        IpBytes::Update16(low) => format!("1: ????????????{low:04x}"),
        IpBytes::Update32(low) => format!("2: ????????{low:08x}"),
        IpBytes::Signed48(_) => format!("3: {:016x}", ip.apply(0).unwrap_or_default()),
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
    format!("{head} {}", parts.join(", ")).trim_end().to_string()
}

/// Without the values that `ptdump` derives from earlier packets.
fn text(packet: Packet) -> String {
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
            let (icnt, is_there) = (icnt.clone().unwrap_or_default(), icnt.is_some());
            flagged(
                &text,
                &[(flags & 0x80 != 0, "ip"), (flags & 0x20 != 0, "mult"), (is_there, &icnt)],
            )
        }
        P::Bbp { kind, four_bytes } => {
            format!("bbp {kind:x}, {}", if four_bytes { "4 bytes" } else { "8 bytes" })
        }
        P::Bip4 { id, value } => format!("bip {id:x}: {value:x}"),
        P::Bip8 { id, value } => format!("bip {id:x}: {value:x}"),
        P::Bep { ip } => flagged("bep", &[(ip, "ip")]),
    }
}

fn vec(kind: u8, vector: u8) -> String {
    if kind == 5 { format!("{vector:x}") } else { vector.to_string() }
}
