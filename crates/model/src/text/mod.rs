// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events and values as text.
//!
//! Everything here appends to a vector of bytes that the caller reuses; numbers
//! and text are written without allocating.

mod babeltrace;
mod digits;
mod escape;
mod fields;
#[cfg(test)]
mod golden;
mod layout;
mod number;
mod pen;
mod time;
mod wide;

pub use babeltrace::Babeltrace;
pub use number::{binary, decimal, decimal_signed, hexadecimal, octal, padded, real};
