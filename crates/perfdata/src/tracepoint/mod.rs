// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernel events, laid out by the kernel's own descriptions.
//!
//! The kernel describes each of its events by a text (`events/SYSTEM/NAME/format` in tracefs;
//! Documentation/trace/events.rst): names, types, offsets and sizes of the fields, and how to print them.
//! `perf.data` and `trace.dat` contain these texts. [`Format`] parses one, gives the field classes of the
//! event, and decodes its raw records.

mod decode;
mod expression;
mod format;
mod print_fmt;
mod roles;

pub use decode::Fault;
pub use format::{Element, Field, Format, Kind, id_of};
pub use roles::roles;
