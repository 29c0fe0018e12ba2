// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernel tracing for users other than root.
//!
//! ```text
//! recorder ── connects to SOCKET ─────────────────▶ lat-helper (root)
//!          ◀── "lateralis-helper 1", a directory ──  an instance of its own, created for it
//!          ── "events sched:sched_switch …" ──────▶  may enable these
//!          ◀── "ok", or "error: …" ───────────────
//!          ── "buffer_kb 4096" ───────────────────▶  has buffers of this size
//!          ◀── "ok", or "error: …" ───────────────
//!          ── closes ─────────────────────────────▶  the instance is removed; it counts until
//!                                                    no process has a file of it open
//! ```
//!
//! The socket's group determines who may connect. The helper reads no events and writes no files
//! except those of the instance; requests are checked to be names and numbers. If it dies,
//! recordings continue, and the next helper removes leftover instances.

#![forbid(unsafe_code)]

mod client;
mod lend;
mod loans;
mod request;

pub use client::Loan;
pub use lend::Lender;
pub use loans::{LOANS_MAX, LOANS_OF_USER_MAX, Loans, Refusal};
pub use request::{Request, WrongRequest};

/// Default path of its socket.
pub const SOCKET: &str = "/run/lateralis/helper.sock";

/// What it says first, with the directory.
pub const GREETING: &str = "lateralis-helper 1";

/// Longest line either side reads: 2,000 system calls in 64 KiB, and room.
pub const LINE_BYTES: usize = 1 << 20;

/// Most events of a line. Each costs the helper some system calls.
pub const EVENTS_MAX: usize = 4096;

/// Largest buffer of a CPU that is lent: it is memory of the kernel.
pub const BUFFER_KB_MAX: u64 = 64 << 10;
