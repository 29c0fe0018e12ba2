// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wraps of short clocks that may be none.
//!
//! A reading below the one before means that the clock has overflowed [CTF 1.8.3 §8]. Where
//! nothing else gives the time, a record that lies one place too late looks the same, and the
//! trace jumps by the whole range of the clock: 4.29 s of 32 bits at 1 GHz. The time stays what
//! the specification says, as in babeltrace2; but such a jump is worth a word.

use lateralis_model::StreamIndex;

use crate::Reader;
use crate::metadata::{FieldClass, Role};

/// A step back by this small a part of the range is hardly a wrap: of real wraps, only one in this
/// number looks like it.
const HARDLY: u64 = 1024;
/// Wider clocks do not wrap in a recording.
const BITS_MAX: u32 = 32;

/// Sentences on streams whose clock seems to have wrapped and hardly has.
///
/// Cost: a walk over the streams with a short clock whose packets do not say when they end.
pub(crate) fn doubtful(reader: &Reader) -> Vec<String> {
    let mut remarks = Vec::new();
    for (index, stream) in reader.streams().iter().enumerate() {
        let class = reader.trace_class().streams.get(stream.class as usize);
        let header = class.and_then(|class| class.event_header.as_ref());
        let Some(bits) = header.and_then(clock_bits).filter(|bits| *bits <= BITS_MAX) else {
            continue;
        };
        if stream.packets.iter().any(|found| found.packet.end.is_some()) {
            continue;
        }
        let range = 1u64 << bits;
        let mut cursor = reader.cursor(StreamIndex(index as u32));
        let (mut before, mut number, mut first, mut count) = (None, 0u64, None, 0u64);
        while cursor.advance() {
            let ticks = cursor.event().ticks.map_or(0, |ticks| ticks.0);
            number += 1;
            let jump = before.map_or(0, |before| ticks.saturating_sub(before));
            let back = range.saturating_sub(jump);
            if jump > 0 && back > 0 && back <= range / HARDLY {
                count += 1;
                first.get_or_insert((number, back, cursor.event().time));
            }
            before = Some(ticks);
        }
        let Some((number, back, time)) = first else { continue };
        let times = if count > 1 { format!(" ({count} such steps)") } else { String::new() };
        remarks.push(format!(
            "{}: the clock of {bits} bits steps back by {back} before event {number}, at {time} s: \
             read as an overflow, as CTF has it, so that time jumps by nearly its whole \
             range; a record that lies behind a later one, as of an interrupt, looks the \
             same{times}",
            stream.name
        ));
    }
    remarks
}

/// The width of the time stamps in an event header.
fn clock_bits(class: &FieldClass) -> Option<u32> {
    match class {
        FieldClass::Scalar(class) => class.roles.contains(Role::Clock).then_some(class.scalar.bits),
        FieldClass::Struct(class) => {
            class.members.iter().filter_map(|member| clock_bits(&member.class)).max()
        }
        FieldClass::Variant(class) => {
            class.options.iter().filter_map(|option| clock_bits(&option.class)).max()
        }
        FieldClass::VarInt(class) => class.roles.contains(Role::Clock).then_some(64),
        FieldClass::Optional(class) => clock_bits(&class.class),
        FieldClass::Array(_) | FieldClass::Text(_) => None,
    }
}
