// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records traced programs: finds their areas, drains their rings and writes a recording, a
//! directory with a CTF trace and `report.json` (`spec/trace-layout.md`).
//!
//! ```text
//! pattern  selects events          walk     record by record     classes  ids ↔ stream classes
//! stream   chunks → packets        clock    ticks → UTC          metadata, index, report: the files
//! keep     the newest packets, and windows of time cut out of them
//! action   actions of a condition that fires
//! condition  span(request) > 5ms, evaluated on packets in the order of time
//! kernel   events of the Linux kernel: its descriptions and pages → schemas and records
//! filter   selects an event's records by its fields: evaluated in the program
//! policy   selects programs and threads, and events of each
//! sieve    drops records while a ring is read: filters, threads
//! small    memory of a program without an operating system
//! source   sources of events besides programs: capture, packets of interfaces
//! linux    everything that uses the operating system: areas, processes, files, clocks, signals
//! ```
//!
//! Outside of [`linux`] there is no I/O and no clock: bytes and times are arguments.
//!
//! A recording is made by [`linux::Session::new`], then [`linux::Session::launch`] or
//! [`linux::Session::attach`], then [`linux::Session::run`], which returns a
//! [`linux::Summary`].

#[cfg(unix)]
pub mod action;
#[cfg(unix)]
pub mod capture;
pub mod classes;
pub mod clock;
#[cfg(unix)]
pub mod condition;
pub mod core_clocks;
mod core_offsets;
mod error;
mod exchanges;
pub mod filter;
pub mod index;
#[cfg(unix)]
pub mod keep;
#[cfg(unix)]
pub mod kernel;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod metadata;
pub mod options;
pub mod pattern;
pub mod policy;
pub mod report;
pub mod serial;
pub mod sieve;
pub mod small;
#[cfg(unix)]
pub mod source;
pub mod stream;
pub mod walk;

pub use error::Error;
pub use filter::Filter;
pub use options::{
    ChunkOptions, CtfVersion, EventMatch, Fingerprint, KeepOptions, LiveAddress, LiveOptions,
    MatchValue, Progress, RecordOptions, TlsIdentity, TlsTrust, TriggerOptions,
};
pub use pattern::Patterns;
pub use report::Report;
