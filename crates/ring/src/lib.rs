// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The area: the shared-memory file through which a traced program and a recorder meet,
//! seen from the recorder's side. Normative text: `spec/ring-abi.md`; layout in numbers:
//! `tracer/c/include/lat/abi.h`, against which a test compares [`abi`].
//!
//! ```text
//! AreaView ──► AreaHeader, ProcessEntry, SchemaEntry   copied out once, then plain values
//!    │             └► Geometry                         checked against the mapped length
//!    └► RingReader::poll ──► Chunk                     bytes of one packet, copied
//! ```
//!
//! # Design constraints
//!
//! * Everything in an area is hostile: any word may change at any time. So no `&` or `&mut` to
//!   shared memory ever exists; every word is loaded once, checked, then used; every access is
//!   checked against the length that was really mapped.
//! * No I/O, no clock, no allocation in reading; `no_std`. The caller maps the memory and owns
//!   the buffers.
//! * The reader is generic over [`RingMemory`], so that the model checker in `tests/model.rs`
//!   runs this very code and not a copy of it.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod abi;
mod filter;
mod geometry;
mod header;
mod maker;
mod memory;
mod packet;
mod reader;
#[cfg(feature = "reference-writer")]
pub mod reference_writer;
mod scan;
pub mod small;

pub use filter::{FilterStep, filter_of, filter_offset, has_filters, set_filter_of, write_filter};
pub use geometry::{Geometry, GeometryError, RingKind, RingMode};
pub use header::{
    AreaHeader, AreaHeaderError, ClockKind, ProcessEntry, SchemaEntry, Trigger, enable_byte,
    event_ids_in_use, free_process, processes, schema_text, schemas, set_enable_byte,
    set_wanted_byte, wanted_byte, write_trigger,
};
pub use maker::{MakeRings, RingPlan, abandon_rings, begin_rings, finish_rings, plan_rings};
pub use memory::{AreaView, Load, OutOfArea, RingMemory};
pub use packet::{LossCounts, PacketHeader, PacketPlace};
pub use reader::{Chunk, Poll, ReadPolicy, RingDamage, RingReader};
pub use scan::{Found, scan};
