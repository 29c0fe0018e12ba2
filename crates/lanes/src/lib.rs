// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What of a session stands on which lane, made to be drawn: a view costs lanes × pixels, however
//! many events there are, filtered or not.
//!
//! ```text
//! facts of a trace ─┬ Builder ─► index (bytes) ┬ Lanes ─► pixels of rows, lists, bundles of messages
//!                   └ Growing ─► as it is now  ┘    ▲
//!                        Chosen: a bit for each point, with ranks
//! ```
//!
//! Everything stands in columns sorted by time. A grid of time over each tells which item is the
//! first of a bucket, so that a time is found in a look-up and some steps; how many there are, and
//! how long, between two items is a difference of ranks or sums. That is why there are no levels of
//! aggregates above the grid, which a pyramid has: pixels need not be rounded to buckets, and what
//! is drawn is what a look at each event would give ([`pixels`]).
//!
//! An index is a file that anybody may have written: no number in it is trusted, an impossible one
//! gives a wrong picture at most. No I/O, no clock, no threads.

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
/// In the flags of an interval: it has not ended.
pub const UNFINISHED: u8 = 1;
