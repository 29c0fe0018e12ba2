// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the parts of the simulator contained in `lat`: the plugin for QEMU, and the first process of
//! the simulated machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let folder = manifest.join("c");
    println!("cargo::rerun-if-changed={}", folder.display());
    // QEMU resolves the functions called by the plugin when it loads it.
    let plugin =
        ["-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-s", "-Wl,-z,noseparate-code"];
    compile(&folder.join("plugin.c"), "2", &plugin, &out.join("plugin.so"));
    let init = out.join("init");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        let flags = [
            "-std=gnu11",
            "-ffreestanding",
            "-fno-stack-protector",
            "-fno-tree-loop-distribute-patterns",
            "-fno-asynchronous-unwind-tables",
            "-fcf-protection=none",
            "-fno-pie",
            "-no-pie",
            "-static",
            "-nostdlib",
            "-s",
            "-Wl,--build-id=none",
        ];
        compile(&folder.join("init.c"), "s", &flags, &init);
    } else if let Err(error) = fs::write(&init, []) {
        // The simulated machine is x86-64: on other hosts nothing can be built for it.
        panic!("cannot write {}: {error}", init.display());
    }
}

/// Compiles and links with one call of the C compiler.
fn compile(source: &Path, level: &str, flags: &[&str], to: &Path) {
    let mut build = cc::Build::new();
    build.opt_level_str(level).debug(false).warnings(false);
    let mut command = build.get_compiler().to_command();
    command.args(flags).arg(source).arg("-o").arg(to);
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            panic!("cannot build {}: {}", to.display(), String::from_utf8_lossy(&output.stderr))
        }
        Err(error) => panic!("cannot run the C compiler: {error}: install gcc"),
    }
}
