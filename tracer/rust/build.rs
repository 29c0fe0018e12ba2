// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles the tracer's C core, so that there is one implementation of set-up and slow path.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Other systems have no port: events stay disabled there (src/c_core.rs).
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let core = Path::new("../c");
    if !core.join("src/core.c").exists() {
        println!("cargo:error=the C core is missing: tracer/rust is built inside its repository");
        return;
    }
    println!("cargo:rerun-if-changed=../c/src");
    println!("cargo:rerun-if-changed=../c/include");
    cc::Build::new()
        .files(c_files(&core.join("src")).expect("the directory tracer/c/src can be read"))
        .include(core.join("include"))
        .std("c11")
        // The slow path runs inside the traced program: optimised in every profile.
        .opt_level(2)
        .pic(true)
        .flag_if_supported("-fno-exceptions")
        .compile("lateralis_core");
}

fn c_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
