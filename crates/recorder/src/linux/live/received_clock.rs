// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of a received recording about the server's counter and this machine's.

use lateralis_ring::ClockKind;

use crate::clock::ClockModel;
use crate::exchanges::{Reading, Readings};
use crate::linux::clocks;
use crate::linux::recover_recording::parse_uuid;
use crate::metadata::{clock_identifier, uuid_text};
use crate::report::Exchanges;

/// This machine's counter. Cost: microseconds; 20 ms if its frequency has to be measured.
pub(super) fn own() -> ClockModel {
    let kind = clocks::native_kind();
    let (frequency_hz, source) = clocks::frequency(kind);
    ClockModel::fit(kind, frequency_hz, source, &clocks::sample(kind), None)
}

/// In the form of the report; `None` without readings.
pub(super) fn told(
    their_clock: Option<ClockKind>,
    readings: &Readings,
    own: Option<&ClockModel>,
) -> Option<Exchanges> {
    let their_clock = clock_identifier(their_clock?).to_owned();
    let model = own?;
    Some(Exchanges {
        their_clock,
        our_clock: clock_identifier(model.kind).to_owned(),
        our_clock_uuid: clocks::boot_uuid().map(|uuid| uuid_text(&uuid)),
        our_frequency_hz: model.frequency_hz,
        our_offset_s: model.offset_s,
        our_offset_ticks: model.offset_ticks,
        made: readings.made(),
        listed: readings.kept().iter().map(|reading| reading.ticks).collect(),
    })
}

/// Readings of an earlier report, if it is of this boot of this machine.
pub(super) fn before(said: Option<&Exchanges>) -> Option<(ClockKind, Readings)> {
    let said = said?;
    let boot = said.our_clock_uuid.as_deref().and_then(parse_uuid);
    let is_ours = boot.is_some() && boot == clocks::boot_uuid();
    let kinds = [ClockKind::X86Tsc, ClockKind::Aarch64Cntvct, ClockKind::MonotonicNs];
    let kind = kinds.into_iter().find(|kind| clock_identifier(*kind) == said.their_clock);
    let kept = said.listed.iter().map(|&[asked, received, sent, answered]| {
        let here = answered.saturating_sub(asked);
        let ticks = here.saturating_sub(sent.saturating_sub(received));
        // Of two of them the shorter round trip is better, in whatever unit.
        Reading { ticks: [asked, received, sent, answered], error_ns: ticks }
    });
    kind.filter(|_| is_ours).map(|kind| (kind, Readings::after(kept.collect(), said.made)))
}
