// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is checked at each boundary where bytes from outside come in, as plain
//! functions: `fuzz/fuzz_targets` runs them under libFuzzer, `tests/smoke.rs` on a
//! fixed set of mutations.
//!
//! A function here panics exactly when it found a fault.

pub mod area;
pub mod captures;
pub mod ctf;
pub mod interchange;
pub mod mutate;
pub mod perfdata;
pub mod pleco;
pub mod seeds;
pub mod write;
