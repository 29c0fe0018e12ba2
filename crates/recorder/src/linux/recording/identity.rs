// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Description of a trace's machine, and the trace's unique id.

use lateralis_model::MONOTONIC_OFFSET;
use lateralis_ring::RingKind;

use super::super::clocks;
use crate::classes::StreamClassEntry;
use crate::report;

/// Facts about the machine for the trace's environment.
pub(super) fn environment(origin: report::Origin) -> Vec<(String, String)> {
    let system = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    let mut environment = vec![
        ("tracer_name".to_owned(), "lateralis".to_owned()),
        ("tracer_version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("domain".to_owned(), "ust".to_owned()),
        ("hostname".to_owned(), text(system.nodename())),
        ("kernel_release".to_owned(), text(system.release())),
        ("architecture".to_owned(), text(system.machine())),
    ];
    // A recovered area may be of another boot.
    if origin != report::Origin::Recovered {
        let now = clocks::sample(clocks::native_kind());
        let offset = now.realtime_ns.saturating_sub(now.monotonic_ns);
        environment.push((MONOTONIC_OFFSET.to_owned(), offset.to_string()));
    }
    environment
}

/// A random UUID [RFC 9562 §5.4].
pub(in super::super) fn random_uuid() -> [u8; 16] {
    let mut uuid = [0; 16];
    // SAFETY: writes at most the 16 bytes of `uuid`. Never short for this length.
    let got = unsafe { libc::getrandom(uuid.as_mut_ptr().cast(), uuid.len(), 0) };
    if got != 16 {
        // The kernel's generator is not ready yet: time and pid are unique enough.
        uuid[..8].copy_from_slice(&clocks::utc_ns().to_ne_bytes());
        uuid[8..12].copy_from_slice(&std::process::id().to_ne_bytes());
    }
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// The report of a stream class, which `lat recover` needs.
pub(super) fn class_report(class: &StreamClassEntry) -> report::StreamClass {
    report::StreamClass {
        id: class.id,
        ring_kind: match class.kind {
            RingKind::PerCpu => "per-cpu".to_owned(),
            RingKind::PerThread => "per-thread".to_owned(),
        },
        schemas: class
            .schemas
            .values()
            .map(|entry| report::ClassSchema {
                base_id: entry.base_id,
                text: entry.schema.canonical_text().to_owned(),
            })
            .collect(),
    }
}
