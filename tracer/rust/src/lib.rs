// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Record events from Rust programs, in libraries and executables, with `std` and without.
//!
//! Write a schema, `app.pleco`:
//!
//! ```text
//! subsystem worker {
//!     event JOB_BEGIN "job taken" (id: u64) begin job key id,
//!     event JOB_END   "job done"  (id: u64) end   job key id,
//! };
//! ```
//!
//! generate a module with `pleco gen --rust src/app_events.rs app.pleco`, and call its functions:
//!
//! ```text
//! mod app_events;
//! app_events::worker::job_begin(id);
//! let _job = app_events::worker::job_span(id);   // or: until the end of the scope
//! ```
//!
//! Nothing is recorded until a recorder requests it: `lat record -- PROGRAM`, or `lat record --attach PID`
//! while it runs. Until then a site costs two loads and a branch. Without a schema there are
//! [`log!`], [`span!`] and [`mark!`], and for network packets [`packet`].
//!
//! # How it works
//!
//! The shared-memory rings and the core are those of C: the tracer's C sources are compiled in, and do
//! everything that happens less often than once per event. The path of one event is written in Rust: a
//! restartable sequence in inline assembly on x86-64 and AArch64, else a call of the core. Normative:
//! `spec/ring-abi.md`.
//!
//! # Design constraints
//!
//! * The program must not be affected: nothing here blocks, allocates, prints, panics, or changes `errno`,
//!   except once at start. Events that cannot be recorded are counted.
//! * Any context: threads, signal handlers, after `fork`, while thread-local data is being destroyed, in
//!   several shared objects at once (each has a tracer of its own, if each is linked with one).
//! * No `std`, no allocator, no dependencies. libc is needed by the C core.
#![no_std]

// The generated module refers to this crate by the name that programs use.
extern crate self as lateralis;

mod c_core;
mod emit;
pub mod log;
mod mark;
mod packet;
#[rustfmt::skip]
mod packet_events;
mod record;
mod schema;

#[doc(hidden)]
pub use c_core::{CORE_CONSTANTS, CORE_LAYOUT};
pub use mark::{is_recording, mark, mark_arguments};
pub use packet::{Direction, Interface, packet, packet_part};
pub use packet_events::SCHEMA as PACKETS;
pub use record::Record;
#[doc(hidden)]
pub use schema::SCHEMA_LAYOUT;
pub use schema::{Schema, text_hash};
