// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of the kernel, as its own descriptions lay them out.
//!
//! The kernel describes each of its events by a text (`events/SYSTEM/NAME/format`
//! in tracefs; Documentation/trace/events.rst): names, types, offsets and sizes
//! of the fields, and how to print them. `perf.data` and `trace.dat` carry these
//! texts along. [`Format`] reads one, gives the field classes of the event, and
//! decodes its raw records.

mod decode;
mod expression;
mod format;
mod print_fmt;
mod roles;

pub use decode::Fault;
pub use format::{Element, Field, Format, Kind, id_of};
pub use roles::roles;
