// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who is at the other end of a connection: a loopback address says nothing, every user of the
//! machine has it.
//!
//! ```text
//! accept ─ Peer::of (sock_diag) ─► HalfOpen ─ request with a token ─► served
//!                                         └─ too many: the oldest is closed
//! ```

#![forbid(unsafe_code)]

mod diag;
mod half_open;
mod peer;

pub use half_open::{HalfOpen, Place};
pub use peer::Peer;
