// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles the core over the small area, for the port of the machine.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-env-changed=LAT_PORT_DIR");
    let Some(port) = env::var_os("LAT_PORT_DIR").map(PathBuf::from) else {
        println!("cargo::error=LAT_PORT_DIR is not set: the folder with lat_port.h of the machine");
        return;
    };
    let tracer = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../c");
    println!("cargo::rerun-if-changed=src/rtos_trace.c");
    for path in [tracer.join("small"), tracer.join("include"), port.clone()] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    cc::Build::new()
        .file("src/rtos_trace.c")
        .file(tracer.join("small/small.c"))
        .include(tracer.join("include"))
        .include(port)
        .define("LAT_SMALL", None)
        .define("LAT_RTOS", None)
        .flag("-std=c11")
        .flag("-ffreestanding")
        .warnings(true)
        .extra_warnings(true)
        .compile("lateralis_small");
}
