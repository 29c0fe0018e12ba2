// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statistics of a recording: how often, how long, which thread ran, and what is missing.

mod block;
mod calls;
mod counted;
pub mod document;
mod faults;
pub mod gather;
mod idle;
mod kernel;
mod latency;
mod left_out;
mod levels;
pub mod mark;
mod memory;
mod messages;
mod network;
pub mod page;
mod rates;
mod running;
pub mod sections;
mod spans;
mod thread_states;
pub mod utilised;
mod wakeups;
