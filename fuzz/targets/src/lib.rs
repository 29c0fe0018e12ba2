// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is checked at each boundary where bytes from outside come in, as plain
//! functions: `fuzz/run` runs them under libFuzzer, `tests/smoke.rs` on a fixed set of
//! mutations.
//!
//! A function here panics exactly when it found a fault.

#![forbid(unsafe_code)]

pub mod analyses;
pub mod area;
pub mod captures;
pub mod choice;
pub mod columns;
pub mod condition;
pub mod ctf;
pub mod etrace;
pub mod event_filter;
pub mod export;
pub mod filter;
pub mod happenings;
pub mod hardware;
pub mod intelpt;
pub mod interchange;
pub mod kernel;
pub mod live;
pub mod mutate;
pub mod open;
pub mod packet_ring;
pub mod perfdata;
pub mod pieces;
pub mod pleco;
pub mod policy;
pub mod probe;
pub mod relate;
pub mod script;
pub mod seeds;
pub mod serial_line;
pub mod sieve;
pub mod simulator;
pub mod small_area;
pub mod symbols;
pub mod tmfxml;
pub mod trace;
pub mod view;
mod words;
pub mod write;

pub use words::dictionary;

/// A boundary.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Checks an input.
    pub check: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that mean something at this boundary; a fuzzer tries them.
    pub words: &'static [&'static str],
}

const fn target(
    name: &'static str,
    check: fn(&[u8]),
    seeds: fn() -> Vec<Vec<u8>>,
    words: &'static [&'static str],
) -> Target {
    Target { name, check, seeds, words }
}

/// Every boundary.
pub const TARGETS: &[Target] = &[
    target("pleco", pleco::check, pleco::good, words::PLECO),
    target("condition", condition::check, condition::seeds, &[]),
    target("area", area::check, area::good_changes, &[]),
    target("ctf_metadata", ctf::check_metadata, ctf::good_texts, words::CTF),
    target("ctf_stream", ctf::check_stream, || vec![ctf::good_stream()], &[]),
    target("ctf_trace", trace::check, trace::good, words::CTF),
    target("ctf_write", write::check, write::good, words::CTF),
    target("export", export::check, export::good, words::CTF),
    target("open", open::check, open::good, words::OPEN),
    target("filter", filter::check, filter::good, words::FILTER),
    target("script", script::check, script::good, words::SCRIPT),
    target("compared", analyses::check_compared, happenings::good, &[]),
    target("explained", analyses::check_explained, happenings::good, &[]),
    target("tmfxml", tmfxml::check, tmfxml::good, words::TMFXML),
    target("captures", captures::check, captures::good, &[]),
    target("packet_ring", packet_ring::check, packet_ring::good, &[]),
    target("seeds", seeds::check, seeds::good, words::SEEDS),
    target("interchange", interchange::check, interchange::good, words::INTERCHANGE),
    target("live", live::check, live::good, words::LIVE),
    target("perfdata", perfdata::check, perfdata::good, words::PERFDATA),
    target("kernel", kernel::check, kernel::good, words::KERNEL),
    target("policies", policy::check_policies, policy::good_policies, words::POLICY),
    target("event_filter", event_filter::check, event_filter::good, words::EVENT_FILTER),
    target("sieve", sieve::check, sieve::good, &[]),
    target("genode", policy::check_genode, policy::good_genode, words::GENODE),
    target("relate", relate::check, relate::good, &[]),
    target("view", view::check, view::good, words::VIEW),
    target("intelpt", intelpt::check, intelpt::good, &[]),
    target("hardware", hardware::check, hardware::good, &[]),
    target("etrace", etrace::check, etrace::good, &[]),
    target("simulator", simulator::check, simulator::good, &[]),
    target("small_area", small_area::check, small_area::good, &[]),
    target("serial_line", serial_line::check, serial_line::good, &[]),
    target("symbols", symbols::check, symbols::good, &["\x7fELF", ".symtab", "_ZN", "_R", " T "]),
    target("probe", probe::check, probe::good, &["stapsdt", ".note.stapsdt", "%rdi", "%return"]),
];
