// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Columnar timeline index optimised for drawing: a view costs lanes × pixels, however many events there
//! are, filtered or not.
//!
//! ```text
//! facts of a trace ─┬ Builder ─► index (bytes) ┬ Lanes ─► pixels of rows, lists, bundles of messages
//!                  └ Growing ─► snapshots     ┘    ▲
//!                       Chosen: a bit for each point, with ranks
//! ```
//!
//! Everything is stored in columns sorted by time. A time grid over each column gives the first item of
//! each bucket, so that a time is found with a lookup and some steps; the number and the total length of
//! items between two positions is a difference of ranks or sums. That is why there are no levels of
//! aggregates above the grid, as in a pyramid: pixels need not be rounded to buckets, and the result is
//! the same as from examining each event ([`pixels`]).
//!
//! An index is a file from an untrusted source: no number in it is trusted, and an impossible one leads
//! at most to a wrong picture. No I/O, no clock, no threads.

#![forbid(unsafe_code)]

mod bits;
mod building;
mod chosen;
mod column;
mod covered;
mod drawn;
mod gathers;
mod grid;
mod growing;
mod intervals;
mod left;
mod levels;
mod listed;
mod messages;
mod meta;
mod opened;
pub mod pixels;
mod points;
mod slots;
mod spool;
mod writing;

pub use bits::RankedBits;
pub use building::{Builder, Interval, PointRef};
pub use chosen::{Chosen, Wanted};
pub use column::Shared;
pub use gathers::{Gathers, Opened};
pub use growing::Growing;
pub use intervals::Intervals;
pub use left::Left;
pub use levels::{Levels, Reach};
pub use listed::Listed;
pub use messages::{Bundle, Messages};
pub use meta::{
    Application, Budget, Channel, Class, Contradictory, Counter, FlowLane, Lane, LaneKind, Lost,
    Meta, Missing, Recorded, Row, RowKind, SpanKind, Thread, WakerKind, quality_name,
};
pub use opened::{IndexError, Lanes};
pub use pixels::{Pixels, Scale};
pub use points::Points;
pub use spool::Spool;

/// No point, no thread, no name.
pub const NONE: u32 = u32::MAX;
/// Flag of an interval: it is unfinished.
pub const UNFINISHED: u8 = 1;
