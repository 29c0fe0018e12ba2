// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SQL over traces: the engine DataFusion on the tables of `lateralis-store`.
//!
//! ```text
//! store::Session ─ provider ─► engine ─► output
//!                  pushdown      │  ▲
//!                  functions, table_functions
//! ```
//!
//! * [`engine`] plans and runs statements within limits of memory, depth and rights;
//! * [`tables`] and [`provider`] push columns, times, CPUs and limits down to the store;
//! * [`counting`] lets statements that only count read events by packet, class and time step, which
//!   [`steps`] finds;
//! * [`functions`] and [`table_functions`] provide timeline functions that SQL lacks;
//! * [`answers`] provides results of `lat stats`, `lat path` and `lat diff` as tables;
//! * [`fault`] describes errors of statements and their position, [`mistakes`] suggests corrections;
//!   [`panics`] handles panics of the engine;
//! * [`memory`] limits memory that the engine does not account; [`nested_loops`] keeps some joins from
//!   disk;
//! * [`output`] writes results; [`describe`] lists everything that can be named; [`shell`] is the
//!   interactive shell.
//!
//! The engine is large; nothing else of Lateralis depends on this crate.

pub mod answers;
pub mod bounds;
#[cfg(test)]
mod chance;
pub mod complete;
pub mod counting;
pub mod damages;
pub mod describe;
pub mod engine;
pub mod fault;
pub mod functions;
pub mod memory;
pub mod mistakes;
pub mod nested_loops;
pub mod output;
pub mod panics;
pub mod provider;
pub mod pushdown;
pub mod reads;
pub mod session;
pub mod shell;
pub mod steps;
pub mod table_functions;
pub mod tables;
