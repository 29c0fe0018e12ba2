// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every target on a fixed set of mutations, always the same, so that a fault found
//! here is found again everywhere. `LATERALIS_FUZZ_ITERATIONS` asks for another number of them.

use lateralis_fuzz_targets::TARGETS;
use lateralis_fuzz_targets::mutate::{Numbers, mutate};

fn run(name: &str, iterations: usize) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{name}: nothing to begin with");
    let mut numbers = Numbers::new(0x1a7e_7a11);
    for seed in &seeds {
        (target.check)(seed);
    }
    let asked = std::env::var("LATERALIS_FUZZ_ITERATIONS").ok();
    let iterations = asked.map_or(iterations, |number| number.parse().expect("a number"));
    for _ in 0..iterations {
        let seed = &seeds[numbers.below(seeds.len())];
        let other = &seeds[numbers.below(seeds.len())];
        (target.check)(&mutate(seed, other, &mut numbers));
    }
}

macro_rules! smoke {
    ($($name:ident $iterations:literal)*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name), $iterations);
        })*

        #[test]
        fn none_is_left_out() {
            let here = [$(stringify!($name)),*];
            assert!(TARGETS.iter().all(|target| here.contains(&target.name)));
        }
    };
}

smoke! {
    pleco 3000
    condition 3000
    area 400
    ctf_metadata 3000
    ctf_stream 1000
    ctf_trace 3000
    ctf_write 1500
    export 2000
    open 500
    filter 3000
    script 3000
    compared 2000
    explained 500
    tmfxml 2000
    captures 3000
    packet_ring 3000
    seeds 2000
    interchange 1000
    live 5000
    perfdata 1500
    kernel 1500
    policies 3000
    genode 3000
    relate 5000
    event_filter 5000
    sieve 20000
    simulator 10000
    small_area 5000
    serial_line 5000
    symbols 2000
    intelpt 3000
    etrace 3000
    hardware 3000
    view 3000
    probe 3000
}
