// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of the page, which are embedded in the program.

use std::io::Read;
use std::sync::LazyLock;

use flate2::read::GzDecoder;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The embedded files, unpacked.
static UNPACKED: LazyLock<Vec<(&'static str, Vec<u8>)>> = LazyLock::new(|| {
    let unpacked = |(name, packed): &(&'static str, &'static [u8])| {
        let mut content = Vec::new();
        // Packed by this crate's build script.
        GzDecoder::new(*packed).read_to_end(&mut content).ok()?;
        Some((*name, content))
    };
    FILES.iter().filter_map(unpacked).collect()
});

/// Whether the page was available when this crate was built.
pub fn is_there() -> bool {
    FILES.iter().any(|(name, _)| *name == "/index.html")
}

/// Content and type of a file.
pub fn find(path: &str) -> Option<(&'static [u8], &'static str)> {
    let path = if path == "/" { "/index.html" } else { path };
    let (name, content) = UNPACKED.iter().find(|(name, _)| *name == path)?;
    let kind = match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    };
    Some((content, kind))
}
