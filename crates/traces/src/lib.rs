// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens traces of any format, and several of them as one.
//!
//! ```text
//! paths ─ open ─► format by content ─► Source each ─ Joined ─► one Source
//! ```
//!
//! What a file is, is decided by its first bytes, never by its name. A directory
//! may hold many traces of many formats: all are opened and merged by time. A file
//! that is compressed as a whole opens like the one inside, an archive like the
//! directory that was packed.
//! This crate knows the formats; they do not know each other, and nobody above
//! it knows them.

mod archive;
mod clocks;
mod convert;
mod error;
mod expected;
mod formats;
pub mod hardware;
mod joined;
mod open;
mod packed;
mod perf_folder;
mod repeated;
mod tracefs;

pub use clocks::{PutOn, Relate, Relation, Tie, TimeBase};
pub use convert::{ConvertError, Converted, Options, TARGETS, Target, convert, convert_into};
pub use error::Error;
pub use formats::{supported, words};
pub use joined::{Joined, Part, Placed};
/// One event as a line of JSON, as [`Target::JsonLines`] has it.
pub use lateralis_interchange::jsonl::Lines as JsonLines;
/// A table of flat columns as a file of Parquet, row by row.
pub use lateralis_interchange::parquet::{Cell as TableCell, File as TableFile, Type as TableType};
pub use open::{OpenOptions, open, open_behind, open_behind_by};
