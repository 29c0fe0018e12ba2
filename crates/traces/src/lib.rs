// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens traces of any format, and several of them as one.
//!
//! ```text
//! paths ─ open ─► format by content ─► Source each ─ Joined ─► one Source
//! ```
//!
//! The format of a file is determined by its first bytes, never by its name. A directory may contain many
//! traces of many formats: all are opened and merged by time. A compressed file opens like the file
//! inside, an archive like the directory that was packed. This crate knows the formats; they do not know
//! each other, and the layers above do not know them.

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
/// Writes events as lines of JSON, the format of [`Target::JsonLines`].
pub use lateralis_interchange::jsonl::Lines as JsonLines;
/// Writes a table of flat columns as a Parquet file, row by row.
pub use lateralis_interchange::parquet::{Cell as TableCell, File as TableFile, Type as TableType};
pub use open::{OpenOptions, open, open_behind, open_behind_by};
