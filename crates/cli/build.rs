// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the C parts embedded in `lat`, so that a single file is installed: the library that
//! `lat record --with` preloads, and the client of the demonstration.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = manifest.join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let tracer = root.join("tracer/c");
    let preload = root.join("tracer/preload");
    let demo = root.join("examples/demo");
    for folder in [&tracer, &preload, &demo] {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    // Function names and line numbers would double the file's size, and a panic reports its location without
    // them.
    println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    let core = c_files(&tracer.join("src"));
    let includes = [tracer.join("include"), tracer.join("src")];

    let library = out.join("liblateralis-preload.so");
    let mut sources = c_files(&preload);
    sources.extend(core.iter().cloned());
    // Initial-exec: the default TLS model of -fPIC costs half an event per event. Two segments instead of
    // four: the loader of each recorded program maps two fewer, which saves 10 to 20 us in a short-lived
    // program.
    let flags = [
        "-shared",
        "-fPIC",
        "-ftls-model=initial-exec",
        "-fvisibility=hidden",
        "-Wl,-z,noseparate-code",
    ];
    let more = [includes.as_slice(), std::slice::from_ref(&preload)].concat();
    compile(&sources, &more, &flags, &["-ldl"], &library);
    publish("LAT_PRELOAD_HASH", &library);

    let client = out.join("demo-client");
    let mut sources = c_files(&demo);
    sources.extend(core);
    compile(&sources, &includes, &[], &[], &client);
    publish("LAT_DEMO_CLIENT_HASH", &client);
}

/// Passes the hash of a file's content to the compiler, so that `lat` need not compute it in each run.
fn publish(variable: &str, file: &Path) {
    let content =
        fs::read(file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
    println!("cargo::rustc-env={variable}={:016x}", fnv1a(&content));
}

/// FNV-1a, 64 bits: distinguishes versions; not used for security.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn c_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}

/// Compiles and links with one invocation of the C compiler.
fn compile(sources: &[PathBuf], includes: &[PathBuf], flags: &[&str], ends: &[&str], to: &Path) {
    let mut build = cc::Build::new();
    build.opt_level(2).debug(false).warnings(false);
    let mut command = build.get_compiler().to_command();
    command.args(["-std=c11", "-pthread"]).args(flags);
    for folder in includes {
        command.arg("-I").arg(folder);
    }
    command.args(sources).arg("-o").arg(to).args(ends);
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            panic!("cannot build {}: {}", to.display(), String::from_utf8_lossy(&output.stderr))
        }
        Err(error) => panic!("cannot run the C compiler: {error}: install gcc"),
    }
}
