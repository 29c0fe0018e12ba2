// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every target on a fixed set of mutations, so that CI meets hostile bytes
//! without a nightly toolchain.

use lateralis_fuzz_targets::mutate::{Numbers, mutate};
use lateralis_fuzz_targets::{area, captures, ctf, perfdata, pleco, seeds};
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(seeds: &[Vec<u8>], iterations: usize, check: fn(&[u8])) {
    let mut numbers = Numbers::new(0x1a7e_7a11);
    for seed in seeds {
        check(seed);
    }
    for _ in 0..iterations {
        let seed = &seeds[numbers.below(seeds.len())];
        let other = &seeds[numbers.below(seeds.len())];
        check(&mutate(seed, other, &mut numbers));
    }
}

/// The schemas of this repository, and the real one if it is there.
fn schemas() -> Vec<Vec<u8>> {
    ["spec/lateralis.pleco", "examples/demo/demo.pleco"]
        .into_iter()
        .chain(["../shared/data/barrelfish/trace_defs.pleco"])
        .filter_map(|path| std::fs::read(root().join(path)).ok())
        .collect()
}

#[test]
fn pleco_text() {
    let seeds = schemas();
    assert!(seeds.len() >= 2, "the schemas of this repository are the seeds");
    run(&seeds, 3000, pleco::check);
}

#[test]
fn area_memory() {
    run(&[vec![0; 12], vec![1; 120], (0..=255).collect()], 400, area::check);
}

#[test]
fn ctf_metadata() {
    let seeds: Vec<Vec<u8>> =
        ctf::good_metadata().iter().map(|text| text.clone().into_bytes()).collect();
    run(&seeds, 3000, ctf::check_metadata);
}

#[test]
fn ctf_stream() {
    run(&[ctf::good_stream()], 1000, ctf::check_stream);
}

#[test]
fn perf_data_and_trace_dat() {
    run(&perfdata::good(), 1500, perfdata::check);
}

#[test]
fn ctf_write() {
    let metadata = ctf::good_metadata().iter().map(|text| text.clone().into_bytes());
    let seeds: Vec<Vec<u8>> = metadata.chain([ctf::good_stream()]).collect();
    run(&seeds, 1500, lateralis_fuzz_targets::write::check);
}

#[test]
fn packet_captures() {
    run(&captures::good(), 3000, captures::check);
}

#[test]
fn dumps_and_logs_of_the_seeds() {
    run(&seeds::good(), 2000, seeds::check);
}

#[test]
fn formats_of_other_tools() {
    let seeds = lateralis_fuzz_targets::interchange::good();
    run(&seeds, 1000, lateralis_fuzz_targets::interchange::check);
}
