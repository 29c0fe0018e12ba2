// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server behind Aquarium: a session of recordings, as the page in the browser asks for it
//! (spec/view.md).
//!
//! ```text
//! traces ─ indexing ─► index (lanes) ─┐
//!    └──── fields of single events ───┴─ Session ─ methods ─ serving ─ page
//!                                           ▲ Host: which is the newest, and what is to be told
//! a recording that goes on ─ Live, round by round
//! ```
//!
//! The page, and whatever else connects, is hostile: requests are checked, answers are limited, and
//! who does not read them is cut off. Only the traces that were named are served.

pub mod answer;
mod control;
mod flow;
mod growth;
mod host;
mod index_file;
mod indexing;
mod live;
pub mod methods;
mod packets;
mod params;
mod rows;
mod scripts;
mod search;
pub mod sections;
mod serving;
mod session;
mod sides;
mod told;
pub mod trace_server;

pub use control::{Action, Control};
pub use flow::ImageSource;
pub use host::Host;
pub use indexing::Progress;
pub use live::{Live, LiveOptions};
pub use serving::{Head, MetricsServer, Refused, Request, Server, has_page};
pub use session::{Opening, Session};
