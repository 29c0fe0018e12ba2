// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The trace buffers as they lie in memory, one after the other from core 0 on
//! (x86-64, little-endian).
//!
//! ```text
//!      0 head   8 tail   64 t0   72 duration   56 offset to core 0
//!     88 20000 events of 16 bytes: time stamp, raw
//! 320088 number of applications
//! 320096 128 applications: 8 characters, address of the dispatcher
//! ```

use lateralis_model::{DamageReason, MemoryTrace};

use super::recorder::{Header, Recorder};
use super::{Options, signed_offset};
use crate::Error;
use crate::damages::{self, Damages};

const EVENTS: u64 = 20_000;
const EVENTS_AT: usize = 88;
const EVENT_BYTES: usize = 16;
const APPLICATION_COUNT_AT: usize = 320_088;
const APPLICATIONS_AT: usize = 320_096;
const APPLICATIONS: usize = 128;
/// The structure.
const BUFFER_BYTES: usize = 322_144;
/// From a core to the next: Barrelfish reserves the events twice.
const REGION_BYTES: usize = 642_144;

/// Whether a file of this size with these first bytes (88 are needed) can be a
/// dump of buffers. There is no magic number: sizes and flags must be possible.
#[must_use]
pub fn sniff_buffers(first: &[u8], total_bytes: u64) -> bool {
    let whole = |unit: usize| total_bytes > 0 && total_bytes.is_multiple_of(unit as u64);
    let sized = whole(REGION_BYTES) || whole(BUFFER_BYTES);
    let (Some(head), Some(tail)) = (word(first, 0), word(first, 8)) else {
        return false;
    };
    let flags = first.get(24..26).is_some_and(|flags| flags.iter().all(|flag| *flag <= 1));
    sized && head < EVENTS && tail < EVENTS && flags
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The buffer of a core.
struct Buffer<'a> {
    core: u32,
    at: usize,
    bytes: &'a [u8],
    head: u64,
    tail: u64,
}

impl<'a> Buffer<'a> {
    /// Numbers of the slots that hold events, in their order.
    fn slots(&self) -> impl Iterator<Item = usize> + 'a {
        let (tail, count) = (self.tail, (self.head + EVENTS - self.tail + EVENTS - 1) % EVENTS);
        (1..=count).map(move |step| ((tail + step) % EVENTS) as usize)
    }

    fn event(&self, slot: usize) -> Option<(u64, u64)> {
        let at = EVENTS_AT + slot * EVENT_BYTES;
        Some((word(self.bytes, at)?, word(self.bytes, at + 8)?))
    }

    fn is_full(&self) -> bool {
        (self.head + 1) % EVENTS == self.tail
    }

    fn applications(&self, header: &mut Header) {
        let count = self.bytes.get(APPLICATION_COUNT_AT).copied().unwrap_or(0);
        for index in 0..usize::from(count).min(APPLICATIONS) {
            let at = APPLICATIONS_AT + index * 16;
            let (Some(name), Some(dcb)) = (self.bytes.get(at..at + 8), word(self.bytes, at + 8))
            else {
                return;
            };
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(8);
            let name = String::from_utf8_lossy(&name[..end]).into_owned();
            header.dcbs.insert((self.core, dcb), name);
        }
    }
}

/// Reads buffers, of each core one.
///
/// # Errors
/// If there is not even one header.
pub fn read_buffers(
    name: &str,
    bytes: &[u8],
    limit_bytes: u64,
    options: &Options,
) -> Result<MemoryTrace, Error> {
    let regions = bytes.len().is_multiple_of(REGION_BYTES);
    let bare = !regions && bytes.len().is_multiple_of(BUFFER_BYTES);
    let stride = if bare { BUFFER_BYTES } else { REGION_BYTES };
    if bytes.len() < EVENTS_AT {
        let advice = "give a dump of whole buffers, 642144 bytes for each core";
        return Err(Error::new("no Barrelfish trace buffers", name, advice));
    }
    let mut header = Header::default();
    let mut damages = Damages::new(name);
    let mut buffers = Vec::new();
    for (core, region) in bytes.chunks(stride).enumerate() {
        let at = core * stride;
        let (Some(head), Some(tail), Some(offset)) =
            (word(region, 0), word(region, 8), word(region, 56))
        else {
            damages.add(at, bytes.len(), DamageReason::Truncated { missing_bytes: None });
            continue;
        };
        if head >= EVENTS || tail >= EVENTS {
            let rule = "head and tail of a buffer are below 20000";
            damages.add(at, at + region.len(), DamageReason::BadValue { rule });
            continue;
        }
        let buffer = Buffer { core: core as u32, at, bytes: region, head, tail };
        if offset != 0 {
            header.offsets.insert(buffer.core, signed_offset(offset));
        }
        buffer.applications(&mut header);
        if core == 0 {
            header.start = word(region, 64);
            header.duration = word(region, 72);
        }
        if region.len() < BUFFER_BYTES {
            let missing_bytes = Some((BUFFER_BYTES - region.len()) as u64);
            damages.add(at, bytes.len(), DamageReason::Truncated { missing_bytes });
        }
        buffers.push(buffer);
    }
    for buffer in &buffers {
        for (timestamp, raw) in buffer.slots().map_while(|slot| buffer.event(slot)) {
            let time = header.time(buffer.core, timestamp);
            header.see(time, raw);
        }
    }
    // Time stamps are not relative, and say so as a new dump does.
    header.min_timestamp = header.start;
    let mut recorder = Recorder::new(&header, options, limit_bytes);
    'buffers: for buffer in &buffers {
        let Some(stream) = recorder.stream(buffer.core) else {
            recorder.builder.remark(format!("{name}: only the first 4096 cores are read"));
            break;
        };
        for (timestamp, raw) in buffer.slots().filter_map(|slot| buffer.event(slot)) {
            let time = header.time(buffer.core, timestamp);
            if recorder.event(stream, buffer.core, time, raw).is_err() {
                recorder.builder.remark(damages::full(name, buffer.at));
                break 'buffers;
            }
        }
        if buffer.is_full() {
            recorder.full_buffer(buffer.core);
        }
    }
    damages.finish(&mut recorder.builder);
    Ok(recorder.builder.finish())
}
