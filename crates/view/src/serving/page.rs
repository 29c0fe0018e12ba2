// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of the page, as they were built into the program.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Whether the page was there when this was built.
pub fn is_there() -> bool {
    find("/").is_some()
}

/// Content and type of a file.
pub fn find(path: &str) -> Option<(&'static [u8], &'static str)> {
    let path = if path == "/" { "/index.html" } else { path };
    let (name, content) = FILES.iter().find(|(name, _)| *name == path)?;
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
