// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one vocabulary of traces in memory.
//!
//! Formats translate into it, analyses and writers read from it, and neither
//! knows the other. A [`Trace`] says what can happen ([`StreamClass`],
//! [`EventClass`], [`FieldClass`], [`Clock`]); an [`Event`] is something that
//! did happen, lent by a reader for one step: its values point into the bytes of
//! its packet, nothing is copied. [`Loss`] and [`Damage`] are values like any
//! other, so that no reader can drop them by accident.
//!
//! This crate does no I/O and reads no clock; it allocates when classes are built
//! and in [`MemoryTrace`], nowhere else.
//!
//! ```text
//! Trace
//! ├─ clocks          frequency, offset: ticks → nanoseconds
//! └─ StreamClass     packet context, common event context
//!    └─ EventClass   name, context, payload: trees of FieldClass
//! Event  = class + time + writer + packet + values (Field → Value)
//! Source = an opened trace: Trace + Events + Loss + Damage
//! ```

mod class;
mod clock;
mod columns;
mod dropped;
mod event;
mod host;
mod loss;
mod memory;
pub mod original;
pub mod progress;
mod quality;
pub mod role;
mod scalar;
mod source;
mod steps;
mod subsystem;
pub mod terminal;
pub mod text;
mod tournament;
mod value;

pub use class::{
    Attribute, Base, EXTENT, EXTENT_PART, Encoding, EnvValue, EventClass, FieldClass, FieldKind,
    IntegerClass, KERNEL_SCOPE, Label, MONOTONIC_OFFSET, Member, Origin, Range, SCOPE_MACHINE,
    SCOPE_PROGRAMS, StreamClass, Trace, Uuid,
};
pub use clock::{Clock, ClockOrigin, Second};
pub use columns::{
    ClassBatch, Column, ColumnBatch, ColumnRequest, Leaf, Lists, PartSummary, Place, Places, Scope,
    Spans, TooLong, Want, Wanted, leaves,
};
pub use dropped::Dropped;
pub use event::{Event, Packet, Repeated, RingPlace, StreamIndex, Writer};
pub use host::Host;
pub use loss::{Damage, DamageReason, Interval, Loss, LossCause};
pub use memory::{Builder, Full, MemoryTrace, Pending};
pub use quality::Quality;
pub use scalar::{ByteOrder, Scalar, ScalarKind, read_bits};
pub use source::{Events, Look, Names, Seen, Source, StreamSummary};
pub use steps::{CountBy, Step};
pub use subsystem::subsystem_and_event;
pub use tournament::{ENDED, Tournament, Turn, turn_of};
pub use value::{Elements, Field, Fields, NumberKind, Slot, Text, Value};
