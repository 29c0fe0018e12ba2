// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Embeds the page, where it has been built (`./x build view`).

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let aquarium = manifest.join("../../aquarium");
    let page = aquarium.join("dist");
    println!("cargo::rerun-if-changed=build.rs");
    // A path that is not there would have this run each time.
    if let Some(watched) = [&page, &aquarium].into_iter().find(|path| path.is_dir()) {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    println!("cargo::rustc-env=LATERALIS_READERS={:016x}", readers(&manifest));
    let mut files = Vec::new();
    gather(&page, "", &mut files);
    files.sort();
    let mut text = String::from("pub static FILES: &[(&str, &[u8])] = &[\n");
    for (name, path) in files {
        let _ = writeln!(text, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    text.push_str("];\n");
    if let Err(error) = fs::write(out.join("files.rs"), text) {
        println!("cargo::error=cannot write the list of the page's files: {error}");
    }
}

/// A number of the sources of whatever has a part in an index: one that others have made may say
/// something else of the same trace.
fn readers(manifest: &Path) -> u64 {
    const READERS: [&str; 11] = [
        "view",
        "lanes",
        "store",
        "analysis",
        "traces",
        "ctf",
        "perfdata",
        "interchange",
        "pcapng",
        "seedformats",
        "model",
    ];
    let mut files = Vec::new();
    for name in READERS {
        let folder = manifest.join("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        gather(&folder, name, &mut files);
    }
    files.sort();
    // FNV-1a: told apart by accident, not against somebody who wants them alike.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (name, path) in files {
        for byte in name.bytes().chain(fs::read(path).unwrap_or_default()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

fn gather(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        if path.is_dir() {
            gather(&path, &name, files);
        } else if !name.ends_with(".map") {
            files.push((name, path));
        }
    }
}
