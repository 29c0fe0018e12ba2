// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Embeds the page if it has been built (`./x build view`).

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let aquarium = manifest.join("../../aquarium");
    let page = aquarium.join("dist");
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo would run this script on every build if a watched path did not exist.
    if let Some(watched) = [&page, &aquarium].into_iter().find(|path| path.is_dir()) {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    println!("cargo::rustc-env=LATERALIS_READERS={:016x}", readers(&manifest));
    let mut files = Vec::new();
    gather(&page, "", &mut files);
    files.sort();
    if let Err(error) = embed(&files, &out) {
        println!("cargo::error=cannot embed the files of the page: {error}");
    }
}

/// Embeds the files compressed: uncompressed, they would take three per cent of `lat`, and each is
/// requested once per run.
fn embed(files: &[(String, PathBuf)], out: &Path) -> io::Result<()> {
    let mut text = String::from("static FILES: &[(&str, &[u8])] = &[\n");
    for (number, (name, path)) in files.iter().enumerate() {
        let packed = format!("page-{number}.gz");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&fs::read(path)?)?;
        fs::write(out.join(&packed), encoder.finish()?)?;
        let packed = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{packed}\"))");
        let _ = writeln!(text, "    ({name:?}, {packed}),");
    }
    text.push_str("];\n");
    fs::write(out.join("files.rs"), text)
}

/// Hash of the sources of all crates that contribute to an index. An index made by other sources
/// may describe the same trace differently.
fn readers(manifest: &Path) -> u64 {
    const READERS: [&str; 12] = [
        "view",
        "lanes",
        "store",
        "semantics",
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
    // FNV-1a: detects accidental differences; it does not resist deliberate collisions.
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
