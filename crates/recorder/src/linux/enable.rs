// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets enable bytes by patterns, for existing and later schemas.

use std::sync::atomic::{Ordering, fence};

use lateralis_pleco::Schema;
use lateralis_ring::abi::{self, header};
use lateralis_ring::{AreaView, event_ids_in_use, set_enable_byte};

use super::discovery::each_event;
use super::filters::with_filter;
use crate::error::Error;
use crate::pattern::Patterns;

/// Writes the patterns for schemas that register later. A scan of the schemas after this call
/// finds every schema that was registered without these patterns.
pub(super) fn write_patterns(view: &AreaView<'_>, patterns: &Patterns) -> Result<(), Error> {
    let text = patterns.to_string();
    let greatest = header::ENABLE_BYTES - 1;
    if text.len() as u64 > greatest {
        return Err(Error::Refused(format!(
            "patterns are too long: bytes={}, greatest={greatest}",
            text.len()
        )));
    }
    let _ = view.copy_in(header::ENABLE, &[text.as_bytes(), &[0]].concat());
    fence(Ordering::SeqCst);
    Ok(())
}

/// Sets the enable bytes of a schema's events: 1 if the patterns match, else 0.
pub(super) fn apply(view: &AreaView<'_>, base_id: u32, schema: &Schema, patterns: &Patterns) {
    for event in &schema.events {
        let subsystem = &schema.subsystems[event.subsystem].name;
        set(view, base_id + event.index, patterns.matches(subsystem, &event.name));
    }
}

fn set(view: &AreaView<'_>, id: u32, enabled: bool) {
    let byte = if enabled { abi::ENABLE_RECORD } else { 0 };
    // If it already has a filter, it must not be enabled without it even briefly.
    let _ = set_enable_byte(view, id, with_filter(view, id, byte));
}

/// Enables events by patterns, now and for later schemas.
pub(super) fn enable(view: &AreaView<'_>, patterns: &Patterns) -> Result<(), Error> {
    write_patterns(view, patterns)?;
    each_event(view, |id, subsystem, event, _| set(view, id, patterns.matches(subsystem, event)));
    Ok(())
}

/// Disables all events, also of schemas that register later.
pub(super) fn disable(view: &AreaView<'_>) {
    let _ = view.store_u8(header::ENABLE, 0);
    fence(Ordering::SeqCst);
    for id in 0..event_ids_in_use(view).unwrap_or(abi::EVENT_COUNT) {
        set(view, id, false);
    }
}
