// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiver of a line from a machine without an operating system (`spec/serial.md`): bytes in, packets
//! out. No I/O, no clock, bounded memory; no input causes a panic.
//!
//! ```text
//! bytes ─▶ Decoder: frames, damaged pieces ─▶ Receiver: runs, schemas, packets, counts ─▶ Consumer
//! ```

mod frame;
mod receiver;

pub use frame::{
    CONTENT_BYTES_MAX, Decoder, Found, Frame, FrameKind, PAYLOAD_BYTES_MAX, VERSION, encode,
};
pub use receiver::{Consumer, Counters, Hello, LineCounts, Receiver, RunEnd};
