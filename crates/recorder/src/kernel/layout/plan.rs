// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a record of the kernel is copied to one of the recording.

use lateralis_perfdata::tracepoint::Format;

use crate::source::Payload;

/// How the value of a field is copied to a record. Offsets are from the start of the kernel's
/// record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// `bytes` bytes at `at`, aligned to `align`.
    Copy { at: usize, bytes: usize, align: usize },
    /// Characters up to a NUL, in `bytes` bytes.
    Text { at: usize, bytes: usize },
    /// The word at `at` contains offset and length. Elements of 0 bytes are text.
    Located { at: usize, is_relative: bool, element_bytes: usize },
    /// All bytes from `at` on.
    Tail { at: usize, element_bytes: usize },
}

/// The copies of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPlan {
    /// The id in the recording.
    pub id: u16,
    /// Offset of the thread id.
    tid_at: Option<usize>,
    steps: Box<[Step]>,
    /// Shorter records are truncated.
    bytes_min: usize,
    has_located: bool,
}

impl EventPlan {
    pub(super) fn new(id: u16, format: &Format, steps: &[Step]) -> EventPlan {
        let end = |step: &Step| match *step {
            Step::Copy { at, bytes, .. } | Step::Text { at, bytes } => at.saturating_add(bytes),
            Step::Located { at, .. } => at.saturating_add(4),
            Step::Tail { .. } => 0,
        };
        let tid_end = format.thread_offset.map_or(0, |at| at.saturating_add(4));
        let has_located = steps.iter().any(|step| matches!(step, Step::Located { .. }));
        EventPlan {
            id,
            tid_at: format.thread_offset,
            bytes_min: steps.iter().map(end).max().unwrap_or(0).max(tid_end),
            steps: joined(steps).into_boxed_slice(),
            has_located,
        }
    }

    /// Whether the record is complete.
    #[inline]
    pub fn fits(&self, record: &[u8]) -> bool {
        record.len() >= self.bytes_min
            && (!self.has_located || self.steps.iter().all(|step| self.is_inside(*step, record)))
    }

    fn is_inside(&self, step: Step, record: &[u8]) -> bool {
        match step {
            Step::Located { at, is_relative, .. } => located(record, at, is_relative).is_some(),
            _ => true,
        }
    }

    /// The thread id. Context: [`EventPlan::fits`].
    #[inline]
    pub fn tid(&self, record: &[u8]) -> Option<u32> {
        Some(u32::from_ne_bytes(*record.get(self.tid_at?..)?.first_chunk()?))
    }

    /// Copies the fields. Context: [`EventPlan::fits`].
    #[inline]
    pub fn copy(&self, record: &[u8], payload: &mut Payload<'_>) {
        let slice = |at: usize, bytes: usize| record.get(at..at + bytes).unwrap_or(&[]);
        for step in &self.steps {
            match *step {
                Step::Copy { at, bytes: 4, align: 4 } => payload.put(4, slice(at, 4)),
                Step::Copy { at, bytes: 8, align: 8 } => payload.put(8, slice(at, 8)),
                Step::Copy { at, bytes, align } => payload.put(align, slice(at, bytes)),
                Step::Text { at, bytes } => payload.text(slice(at, bytes)),
                Step::Located { at, is_relative, element_bytes } => {
                    let bytes = located(record, at, is_relative).unwrap_or(&[]);
                    elements(bytes, element_bytes, payload);
                }
                Step::Tail { at, element_bytes } => {
                    elements(record.get(at..).unwrap_or(&[]), element_bytes, payload);
                }
            }
        }
    }
}

fn elements(bytes: &[u8], element_bytes: usize, payload: &mut Payload<'_>) {
    match element_bytes {
        0 => payload.text(bytes),
        each => payload.sequence(each, bytes),
    }
}

/// The bytes that the word at `at` refers to: 16 bits of offset, 16 of length
/// (include/trace/stages/stage4_event_fields.h of Linux).
fn located(record: &[u8], at: usize, is_relative: bool) -> Option<&[u8]> {
    let word = u32::from_ne_bytes(*record.get(at..)?.first_chunk()?);
    let base = if is_relative { at + 4 } else { 0 };
    let begin = base + (word & 0xffff) as usize;
    record.get(begin..begin + (word >> 16) as usize)
}

/// Merges copies of adjacent fields that stay adjacent.
fn joined(steps: &[Step]) -> Vec<Step> {
    let mut list: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        if let Step::Copy { at, bytes, align } = *step
            && let Some(Step::Copy { at: first, bytes: before, align: widest }) = list.last_mut()
            && *first + *before == at
            // The offset of the first one is a multiple of its alignment, so this one's is too.
            && align <= *widest
            && before.is_multiple_of(align)
        {
            *before += bytes;
        } else {
            list.push(*step);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined_only_where_both_layouts_agree() {
        let copy = |at, bytes, align| Step::Copy { at, bytes, align };
        assert_eq!(joined(&[copy(8, 8, 8), copy(16, 4, 4), copy(20, 2, 2)]), [copy(8, 14, 8)]);
        // The wider one would not be aligned.
        assert_eq!(joined(&[copy(8, 4, 4), copy(12, 8, 8)]).len(), 2);
        // Padding bytes would be copied.
        assert_eq!(joined(&[copy(8, 4, 4), copy(16, 4, 4)]).len(), 2);
        assert_eq!(joined(&[copy(8, 3, 1), copy(11, 2, 1)]), [copy(8, 5, 1)]);
        let text = Step::Text { at: 12, bytes: 4 };
        assert_eq!(joined(&[copy(8, 4, 4), text, copy(16, 4, 4)]).len(), 3);
    }

    #[test]
    fn what_points_outside_is_seen() {
        let mut record = vec![0; 16];
        record[8..12].copy_from_slice(&(12_u32 | 4 << 16).to_ne_bytes());
        assert_eq!(located(&record, 8, false), Some(&[0; 4][..]));
        assert_eq!(located(&record, 8, true), None);
        record[8..12].copy_from_slice(&(2_u32 << 16).to_ne_bytes());
        assert_eq!(located(&record, 8, true), Some(&[0; 2][..]));
        assert_eq!(located(&record, 14, false), None);
    }
}
