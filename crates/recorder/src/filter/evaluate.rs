// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Applies a filter to a record that was read, with the result of the traced program's own filter.

use lateralis_ring::{FilterStep, abi};

/// Whether the steps accept an event with this payload. As in the program (`tracer/c/src/filter.c`),
/// an invalid filter accepts it: a field beyond the payload, a step that is not later.
#[must_use]
pub fn passes(steps: &[FilterStep], payload: &[u8]) -> bool {
    let mut at = 0;
    // Each step leads to a later one, so there are at most as many iterations as steps.
    while let Some(step) = steps.get(at) {
        let Some(field) = load(step, payload) else { return true };
        let next = if holds(step, field) { step.if_true } else { step.if_false };
        if next == abi::FILTER_REJECT {
            return false;
        }
        if usize::from(next) <= at {
            return true;
        }
        at = usize::from(next);
    }
    // Accepted, or a step that does not exist.
    true
}

/// Loads the field and extends its sign.
fn load(step: &FilterStep, payload: &[u8]) -> Option<u64> {
    let (start, bytes) = (usize::from(step.offset), usize::from(step.bytes));
    let field = payload.get(start..start.checked_add(bytes)?)?;
    let number = match *field {
        [one] => u64::from(one),
        [a, b] => u64::from(u16::from_ne_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => return None,
    };
    if step.compare & abi::FILTER_SIGNED == 0 {
        return Some(number);
    }
    let unused = 64 - 8 * bytes as u32;
    Some(((number << unused) as i64 >> unused) as u64)
}

fn holds(step: &FilterStep, field: u64) -> bool {
    let (left, right) = (field & step.mask, step.value);
    let order = if step.compare & abi::FILTER_SIGNED != 0 {
        (left as i64).cmp(&(right as i64))
    } else {
        left.cmp(&right)
    };
    match step.compare & !abi::FILTER_SIGNED {
        abi::FILTER_EQ => order.is_eq(),
        abi::FILTER_NE => order.is_ne(),
        abi::FILTER_LT => order.is_lt(),
        abi::FILTER_LE => order.is_le(),
        abi::FILTER_GT => order.is_gt(),
        abi::FILTER_GE => order.is_ge(),
        _ => true,
    }
}
