// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tracing of the kernel for people who are not root.
//!
//! ```text
//! recorder ── connects to SOCKET ─────────────────▶ lat-helper (root)
//!          ◀── "lateralis-helper 1", a directory ──  an instance of its own, made for it
//!          ── "events sched:sched_switch …" ──────▶  may enable these
//!          ◀── "ok", or "error: …" ───────────────
//!          ── "buffer_kb 4096" ───────────────────▶  has buffers of this size
//!          ◀── "ok", or "error: …" ───────────────
//!          ── closes ─────────────────────────────▶  the instance is taken away; it counts until
//!                                                    nobody has a file of it open any more
//! ```
//!
//! Who may connect is decided by the socket's group. The helper reads no events and writes no
//! files but those of the instance; what it is told is checked to be names and numbers. If it dies,
//! recordings go on, and the next one takes away what is left.

#![forbid(unsafe_code)]

mod client;
mod lend;
mod loans;
mod request;

pub use client::Loan;
pub use lend::Lender;
pub use loans::{LOANS_MAX, LOANS_OF_USER_MAX, Loans, Refusal};
pub use request::{Request, WrongRequest};

/// Where it listens, unless told otherwise.
pub const SOCKET: &str = "/run/lateralis/helper.sock";

/// What it says first, with the directory.
pub const GREETING: &str = "lateralis-helper 1";

/// Longest line either side reads: 2,000 system calls in 64 KiB, and room.
pub const LINE_BYTES: usize = 1 << 20;

/// Most events of a line. Each costs the helper some system calls.
pub const EVENTS_MAX: usize = 4096;

/// Largest buffer of a CPU that is lent: it is memory of the kernel.
pub const BUFFER_KB_MAX: u64 = 64 << 10;
