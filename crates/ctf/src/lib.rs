// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reader of the Common Trace Format 1.8 and 2, and writer of its packet index.
//!
//! ```text
//! metadata text ─ metadata ─► TraceClass ─ plan ─► programs
//! stream bytes ── packets ──► index of packets, damage, losses
//!                 cursor  ──► events of one stream (a Machine runs programs)
//!                 merge   ──► events of all streams in the order of time
//!                 columns ──► events of a packet as columns, on several cores
//! ```
//!
//! ## Design constraints
//!
//! * The core takes bytes and returns values; only [`open`] touches files.
//! * All bytes are hostile: no panic, memory bounded by the largest event, time linear in the bytes
//!   read.
//! * A fault costs only itself: bad bytes become [`Damage`](lateralis_model::Damage), bad metadata
//!   a [`Diagnostic`](metadata::Diagnostic), and reading continues after them.
//! * Nothing is invented: an event is delivered only if all its bits are present.
//!
//! ## Example
//!
//! ```
//! use lateralis_ctf::{Reader, StreamFile};
//!
//! let metadata = b"/* CTF 1.8 */
//!     trace { major = 1; minor = 8; byte_order = le; };
//!     event { name = greeting; fields := struct { string text; }; };";
//! let file = StreamFile { name: "stream".into(), bytes: Box::new(b"hello\0world\0".to_vec()) };
//! let reader = Reader::new(metadata, vec![file]);
//! let mut events = reader.events();
//! let event = events.next_event().unwrap();
//! let text = event.payload().unwrap().get("text").unwrap().as_text().unwrap();
//! assert_eq!((event.class.name.as_str(), &*text), ("greeting", "hello"));
//! ```

pub mod index;
pub mod metadata;
pub mod open;
pub mod write;

mod ahead;
mod chunks;
mod columns;
mod cursor;
mod losses;
mod merge;
mod order;
mod packets;
mod plan;
mod reader;
mod wraps;

pub use columns::{BATCH_EVENTS, Batch, Batches, ClassColumns, Parallel};
pub use cursor::Cursor;
pub use merge::Merge;
pub use packets::Found;
pub use reader::{Bytes, Findings, Reader, Stream, StreamFile};
