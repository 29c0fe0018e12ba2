// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters of events, as the traced program evaluates them [ring-abi §11].

use crate::abi::{self, filter, filter_step, header};
use crate::memory::{AreaView, Load, OutOfArea};

/// One comparison, and which step comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterStep {
    /// Of the field in the payload.
    pub offset: u16,
    /// Of the field: 1, 2, 4 or 8.
    pub bytes: u8,
    /// [`abi::FILTER_EQ`] …, with [`abi::FILTER_SIGNED`].
    pub compare: u8,
    /// Next step: a later one, [`abi::FILTER_ACCEPT`] or [`abi::FILTER_REJECT`].
    pub if_true: u8,
    /// The same.
    pub if_false: u8,
    /// Applied to the field, after its sign was extended.
    pub mask: u64,
    /// What is compared with.
    pub value: u64,
}

impl FilterStep {
    /// As it lies in the memory of a program of this machine's byte order.
    pub fn to_bytes(&self) -> [u8; filter_step::BYTES as usize] {
        let mut bytes = [0; filter_step::BYTES as usize];
        bytes[..2].copy_from_slice(&self.offset.to_ne_bytes());
        bytes[2..6].copy_from_slice(&[self.bytes, self.compare, self.if_true, self.if_false]);
        bytes[8..16].copy_from_slice(&self.mask.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.value.to_ne_bytes());
        bytes
    }
}

/// Whether the program's tracer evaluates filters.
pub fn has_filters(view: &AreaView<'_>) -> bool {
    let features = view.load_u32(header::FEATURES, Load::Relaxed);
    features.is_ok_and(|features| features & abi::FEATURE_FILTERS != 0)
}

/// Place of a filter in the area; `None` if there is no such number.
pub fn filter_offset(number: u16) -> Option<u64> {
    let is_one = number != 0 && u32::from(number) < abi::FILTER_COUNT;
    is_one.then(|| abi::FILTERS_OFFSET + u64::from(number) * filter::BYTES)
}

/// Writes a filter that no event has yet.
///
/// Errors: too many steps, or no such number: as a place outside.
pub fn write_filter(
    view: &AreaView<'_>,
    number: u16,
    steps: &[FilterStep],
) -> Result<(), OutOfArea> {
    let outside = OutOfArea { offset: u64::from(number), bytes: 1, area_bytes: view.bytes() };
    let at = filter_offset(number).ok_or(outside)?;
    if steps.is_empty() || steps.len() > abi::FILTER_STEPS {
        return Err(outside);
    }
    view.store_u32(at + filter::STEP_COUNT, 0)?;
    for (place, step) in (at + filter::STEPS..).step_by(filter_step::BYTES as usize).zip(steps) {
        view.copy_in(place, &step.to_bytes())?;
    }
    view.store_u32(at + filter::STEP_COUNT, steps.len() as u32)
}

fn index_offset(id: u32) -> Result<u64, OutOfArea> {
    if id < abi::EVENT_COUNT {
        Ok(abi::FILTER_INDEX_OFFSET + 2 * u64::from(id))
    } else {
        Err(OutOfArea { offset: u64::from(id), bytes: 2, area_bytes: abi::EVENT_COUNT.into() })
    }
}

/// Says which filter an event has; 0: none.
pub fn set_filter_of(view: &AreaView<'_>, id: u32, number: u16) -> Result<(), OutOfArea> {
    view.copy_in(index_offset(id)?, &number.to_ne_bytes())
}

/// Which filter an event has; 0: none.
pub fn filter_of(view: &AreaView<'_>, id: u32) -> Result<u16, OutOfArea> {
    let mut bytes = [0; 2];
    view.copy_out(index_offset(id)?, &mut bytes)?;
    Ok(u16::from_ne_bytes(bytes))
}
