// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server behind Aquarium: a session of recordings, as the page in the browser asks for it
//! (spec/view.md).
//!
//! ```text
//! traces ─ indexing ─► index (lanes) ─┐
//!    └──── fields of single events ───┴─ Session ─ methods ─ serving ─ page
//! ```
//!
//! The page, and whatever else connects, is hostile: requests are checked, answers are limited, and
//! who does not read them is cut off. Only the traces that were named are served.

pub mod answer;
mod index_file;
mod indexing;
pub mod methods;
mod params;
mod scripts;
mod serving;
mod session;
mod sides;
mod told;
pub mod trace_server;

pub use indexing::Progress;
pub use serving::{Head, Refused, Request, Server, has_page};
pub use session::{OpenError, Session};
