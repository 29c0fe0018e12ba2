// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading and writing CTF.
//!
//! One program of all files here: making one of each took longer than running them.

mod actf_texts;
mod alike;
mod barectf;
mod batches_in_order;
mod chunks;
mod columns;
mod ctf2_rules;
mod damage_kinds;
mod damage_table;
mod element_streams;
mod fuzzed;
mod genode;
mod hostile;
mod lateralis;
mod maker;
mod metadata_faults;
mod metadata_limits;
mod metadata_suite;
mod open_packets;
mod real_traces;
mod rhythm;
mod write;
mod write_real;
mod written;
mod zephyr;
