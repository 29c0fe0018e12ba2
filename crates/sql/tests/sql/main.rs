// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One program for all tests: linking the engine takes longer than most of them.

mod analyses;
mod command;
mod counting;
mod differential;
mod mistakes;
mod place;
mod traces;
