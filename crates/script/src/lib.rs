// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters and activities written in JavaScript (docs/guides/scripts.md).
//!
//! ```text
//! text of a script ─ engine ─► Script ─┬─ filters ────► keep or not
//!                                      └─ activities ─► Pairer ─► begin, end, duration, key
//! functions that only look ─ expression ─► run without the engine
//! ```
//!
//! A script is hostile: it has no files, network or clock, its memory, stack and steps are limited,
//! and any failure is a [`ScriptError`] with its position in the text.
//!
//! ## Example
//!
//! ```
//! use lateralis_analysis::filter::Context;
//! use lateralis_model::{Clock, EventClass, FieldClass, MemoryTrace, Source, StreamClass};
//! use lateralis_script::{How, Limits, Script};
//!
//! let mut script =
//!     Script::load("big.js", "event.fields.bytes > 4096", Limits::default()).unwrap();
//! assert_eq!(script.parts()[0].how, How::Compiled);
//!
//! let mut builder = MemoryTrace::builder("example", u64::MAX);
//! let clock = builder.clock(Clock::default());
//! let stream = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
//! let class = EventClass {
//!     name: "io:READ".into(),
//!     payload: Some(FieldClass::structure([("bytes", FieldClass::u64())])),
//!     ..Default::default()
//! };
//! let class = builder.event_class(stream, class);
//! let stream = builder.stream(stream, "cpu0", None);
//! builder.event(stream, class, 1, None).u64(8192).end().unwrap();
//! let trace = builder.finish();
//! let context = Context { names: trace.names(), streams: &trace.streams() };
//! let mut events = trace.events();
//! assert!(script.keeps(&events.next_event().unwrap(), &context).unwrap());
//! ```

#![forbid(unsafe_code)]

mod activities;
mod engine;
mod error;
pub mod expression;
mod objects;
mod scalar;
mod script;

pub use activities::{Activities, Activity, End, Step};
pub use engine::Limits;
pub use error::ScriptError;
pub use scalar::Scalar;
pub use script::{How, Part, Script};
