// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All targets as one program of libFuzzer. `fuzz/run` says which by `FUZZ_TARGET`;
//! with `FUZZ_SEEDS` it only writes seeds and dictionary, with `FUZZ_LIST` names.
#![no_main]

use lateralis_fuzz_targets::{TARGETS, Target, dictionary};
use std::path::PathBuf;
use std::process::exit;
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let target = TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| {
        eprintln!("error: no such target: {name:?}: see fuzz/README.md");
        exit(2)
    })
});

fn prepare() {
    if std::env::var_os("FUZZ_LIST").is_some() {
        TARGETS.iter().for_each(|target| println!("{}", target.name));
        exit(0);
    }
    let target = *TARGET;
    if let Some(folder) = std::env::var_os("FUZZ_SEEDS").map(PathBuf::from) {
        for (index, seed) in (target.seeds)().iter().enumerate() {
            let name = format!("seeds/{index:03}");
            std::fs::write(folder.join(name), seed).expect("fuzz/run makes the folder");
        }
        let words = dictionary(target.words);
        std::fs::write(folder.join("words"), words).expect("fuzz/run makes the folder");
        exit(0);
    }
}

libfuzzer_sys::fuzz_target!(init: { prepare() }, |data: &[u8]| (TARGET.check)(data));
