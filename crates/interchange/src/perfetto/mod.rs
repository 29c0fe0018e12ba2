// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Perfetto traces: packets of protocol buffers.
//!
//! Source: google/perfetto, `protos/perfetto/trace` (v0.59 and before), which documents
//! each field; names and numbers here are those of the `.proto` files.
//!
//! Times: every packet contains its clock or leaves it to the defaults of its sequence, `BOOTTIME`
//! being the default of all. Times of other clocks are converted by the latest snapshot before them
//! that has both clocks. If a snapshot has `REALTIME` too, the timeline counts from 1970.

mod clocks;
mod ftrace;
mod packets;
mod read;
mod stacks;
mod state;
mod track_event;
mod wire;
mod write;

pub use read::{read, sniff};
pub use write::write;
