// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Live streams of recordings (`spec/live.md`): the wire format, and the losses of slow clients.
//!
//! ```text
//! bytes ─ Decoder ─► frames ─ Message ─► what they say      (client)
//! Window ─ next(cursor) ─► Item ─ Message ─► frames ─► bytes (server)
//! Exchange: whose clock is how far off    bfscope: dumps without their length prefixes
//! ```
//!
//! Bytes and times are arguments: no sockets, no threads, no clock. A peer is hostile: no input
//! panics, and none makes more memory than the bounds here.

#![forbid(unsafe_code)]

pub mod bfscope;
mod decoder;
mod exchange;
mod fields;
mod frame;
mod message;
mod token;
mod window;

pub use decoder::Decoder;
pub use exchange::{Exchange, Relation};
pub use frame::{
    BODY_BYTES_MAX, FRAME_HEADER_BYTES, Fault, PREAMBLE_BYTES, Preamble, REQUEST_BYTES_MAX,
    frame_header,
};
pub use message::{Folder, Has, Message, NAME_BYTES_MAX, Request, STREAMS_MAX};
pub use token::{TOKEN_BYTES_MIN, same_token};
pub use window::{Behind, Count, Cursor, Item, StreamCount, Window};
