// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The trace's metadata text, from the current stream classes and clock.

use lateralis_pleco::ctf::{
    ByteOrder, ClockDescription, EnvValue, RingKind as PlecoRingKind, StreamClass,
    TraceDescription, ctf1, ctf2,
};
use lateralis_ring::{ClockKind, RingKind};

use crate::classes::ClassTable;
use crate::clock::ClockModel;
use crate::options::CtfVersion;

/// Name of a clock in metadata and `report.json`.
pub fn clock_name(kind: ClockKind) -> &'static str {
    match kind {
        ClockKind::X86Tsc => "x86-tsc",
        ClockKind::Aarch64Cntvct => "aarch64-cntvct",
        ClockKind::MonotonicNs => "monotonic-ns",
        ClockKind::Port => "port",
    }
}

/// Name of a clock in the trace itself.
pub fn clock_identifier(kind: ClockKind) -> &'static str {
    match kind {
        ClockKind::X86Tsc => "tsc",
        ClockKind::Aarch64Cntvct => "cntvct",
        ClockKind::MonotonicNs => "monotonic",
        ClockKind::Port => "port",
    }
}

/// Writes the metadata of a trace. `clock_uuid` is that of the boot whose counter it is, as
/// in LTTng: together with the name it shows whether two traces have the same clock.
/// Cost: proportional to the schemas' text.
pub fn metadata(
    uuid: [u8; 16],
    version: CtfVersion,
    swapped: bool,
    classes: &ClassTable,
    clock: &ClockModel,
    clock_uuid: Option<[u8; 16]>,
    environment: &[(String, String)],
) -> String {
    let little = cfg!(target_endian = "little") != swapped;
    let clock_description = match clock.kind {
        ClockKind::X86Tsc => "time stamp counter (rdtsc)",
        ClockKind::Aarch64Cntvct => "virtual counter (CNTVCT_EL0)",
        ClockKind::MonotonicNs => "CLOCK_MONOTONIC",
        ClockKind::Port => "clock of a machine without an operating system",
    };
    let description = TraceDescription {
        uuid,
        byte_order: if little { ByteOrder::Little } else { ByteOrder::Big },
        clock: ClockDescription {
            name: clock_identifier(clock.kind).to_owned(),
            description: clock_description.to_owned(),
            frequency_hz: clock.frequency_hz,
            offset_seconds: clock.offset_s,
            offset_cycles: clock.offset_ticks,
            precision_cycles: clock.ticks(clock.error_ns).max(1),
            uuid: clock_uuid,
            absolute: true,
        },
        environment: environment
            .iter()
            .map(|(name, value)| (name.clone(), EnvValue::String(value.clone())))
            .collect(),
        streams: classes
            .classes()
            .iter()
            .map(|class| StreamClass {
                id: class.id,
                ring_kind: match class.kind {
                    RingKind::PerCpu => PlecoRingKind::PerCpu,
                    RingKind::PerThread => PlecoRingKind::PerThread,
                },
                schemas: class
                    .schemas
                    .iter()
                    .map(|(base, entry)| (*base, (*entry.schema).clone()))
                    .collect(),
            })
            .collect(),
    };
    match version {
        CtfVersion::Ctf1 => ctf1(&description),
        CtfVersion::Ctf2 => ctf2(&description),
    }
}

/// A UUID as text, with hyphens [RFC 9562 §4].
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
