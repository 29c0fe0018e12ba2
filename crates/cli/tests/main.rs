// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `lat` does, run as people run it.
//!
//! One program of all files here: making one of each took longer than running them.

mod absurd_times;
mod branches;
mod choosing;
mod clock_identity;
mod conventions;
mod ctf2;
mod damage;
mod diff;
mod every_consumer;
mod exact;
mod exports;
mod faults;
mod flow;
mod following;
mod foreign;
mod genode;
mod habits;

mod hostile_text;
mod hosts;
mod instructions;
mod keep;
mod keep_sources;
mod kernel;
mod kernel_counts;
mod left_out;
mod lent;
mod life;
mod limits;
mod live;
mod look;
mod losses;
mod missing;
mod off_cpu;
mod one_answer;
mod packets;
mod path;
mod place;
mod policies;
mod probes;
mod producers;
mod reading;
mod recording;
mod samples;
mod scripts;
mod second_user;
mod seeds;
mod serial;
mod sessions;
mod simulator;
mod simultaneous;
mod sql;
mod stacks;
mod stats;
mod tables;
mod thread_states;
mod top;
mod tracepoints;
mod triggers;
mod view;
mod wakeups;
mod words;
