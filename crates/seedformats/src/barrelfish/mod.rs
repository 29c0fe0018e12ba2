// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Barrelfish: text dumps of its trace buffers, and the buffers themselves.
//!
//! An event is `subsystem << 48 | event << 32 | argument`. Numbers get names from
//! [`Definitions`]: the ones given, else those that were built in before 2013.
//!
//! | in the model | from |
//! |---|---|
//! | stream `core N` | the core |
//! | ticks | time stamp, plus the offset of its core: the time of core 0 |
//! | `arg` | the argument |
//! | writer | the application that the last context switch of the core chose |
//! | `ump:send`, `ump:receive` | raw events that begin with 0xEA, 0xEB |
//!
//! Offsets of cores: Barrelfish halves a difference in unsigned arithmetic, so a
//! negative one is printed 2^63 too large. An offset of 2^62 or more, 46 years of
//! cycles at 3 GHz, is therefore taken 2^63 smaller.
//!
//! Old dumps give times since the start of tracing, and say so by having no line
//! `# Min_timestamp`; a later start in the same file shifts what follows it.
//!
//! Sources: Barrelfish technical note 8; `include/trace/trace.h`,
//! `lib/trace/control.c` and `usr/bfscope` of Barrelfish.

mod buffers;
mod definitions;
mod legacy;
mod recorder;
mod roles;
mod text;
mod write;

pub use buffers::{read_buffers, sniff_buffers};
pub use definitions::{Definitions, EventName};
pub use text::{read, read_with, sniff};
pub use write::write;

/// What a dump does not say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of subsystems and events; those they leave out have their names of
    /// before 2013.
    pub definitions: Definitions,
    /// Cycles per second of the time stamps. Without it a cycle is taken for a
    /// nanosecond, and a remark says so.
    pub frequency_hz: Option<u64>,
}

/// Puts the offset of a core right, see the module.
fn signed_offset(printed: u64) -> i64 {
    if printed < 1 << 62 { printed as i64 } else { printed.wrapping_sub(1 << 63) as i64 }
}

/// Keys of the environment that keep what only this format has; names of all versions
/// of CTF, so that they come back from there.
mod keys {
    pub(super) const FORMAT: &str = "Barrelfish";
    pub(super) const START: &str = "barrelfish_start";
    pub(super) const DURATION: &str = "barrelfish_duration";
    pub(super) const STOP: &str = "barrelfish_stop";
    pub(super) const MIN_TIMESTAMP: &str = "barrelfish_min_timestamp";
    /// And the number of the core.
    pub(super) const OFFSET: &str = "barrelfish_offset_";
    /// And the number of the core, an underscore, the address.
    pub(super) const DCB: &str = "barrelfish_dcb_";
    /// Attribute of event classes: `subsystem:event` in hexadecimal.
    pub(super) const ID: &str = "barrelfish.id";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_printed_too_large_are_negative() {
        assert_eq!(signed_offset(9_223_372_036_854_775_303), -505);
        assert_eq!(signed_offset(1 << 63), 0);
        assert_eq!(signed_offset((1 << 63) - 1), -1);
        assert_eq!(signed_offset(505), 505);
    }
}
