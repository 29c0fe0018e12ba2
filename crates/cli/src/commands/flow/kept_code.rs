// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Code kept beside a recording: each mapped file once, with an index that maps paths on the recorded machine
//! to these files (spec/trace-layout.md, "Packets of a processor's tracer").

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use lateralis_images::{ImageFiles, hex};
use lateralis_model::Source;
use lateralis_store::places::Places;
use serde_json::{Map, Value, json};

use crate::error::CliError;

/// Name of the folder, and of its files besides code.
const FOLDER: &str = "code";
const INDEX: &str = "index.json";
const KALLSYMS: &str = "kallsyms";
/// Size limit of an index, in bytes.
const INDEX_BYTES: u64 = 64 << 20;
/// Size limit of a symbol list or of a file of kernel code, in bytes.
const FILE_BYTES: u64 = 1 << 30;
const WHAT: &str = "cannot keep the code";

/// Code kept beside recordings.
#[derive(Debug, Clone, Default)]
pub struct KeptCode {
    /// Files by their path on the recorded machine.
    pub files: HashMap<String, PathBuf>,
    /// Kernel code, with the address of its first byte.
    pub kernel: Vec<(PathBuf, u64)>,
    /// Kernel symbols.
    pub kallsyms: Option<PathBuf>,
}

impl KeptCode {
    /// Reads the index of each trace: in the trace, or beside it if the trace is a file.
    ///
    /// Errors: an index exists and cannot be read.
    pub fn of(traces: &[PathBuf]) -> Result<Self, CliError> {
        let mut kept = Self::default();
        for trace in traces {
            let folder = if trace.is_dir() { Some(trace.as_path()) } else { trace.parent() };
            let Some(folder) = folder.map(|folder| folder.join(FOLDER)) else { continue };
            let path = folder.join(INDEX);
            if !is_plain_file(&path) {
                continue;
            }
            let text = lateralis_files::read_regular(&path, INDEX_BYTES).map_err(|error| {
                CliError::at_path("cannot read the index of code", &path, &error)
            })?;
            let index: Value = serde_json::from_slice(&text).map_err(|error| {
                let place = path.display().to_string();
                CliError::new("cannot read the index of code", place, error.to_string())
            })?;
            // The recording may come from an untrusted source: only files inside its folder are code.
            let inside = |name: &Value| {
                let name = name.as_str()?;
                let is_name = Path::new(name).file_name().is_some_and(|of| of == name);
                Some(folder.join(name)).filter(|path| is_name && is_plain_file(path))
            };
            let entries = |key: &str| index[key].as_object().into_iter().flatten();
            for (path, name) in entries("files") {
                kept.files.extend(inside(name).map(|file| (path.clone(), file)));
            }
            for (address, name) in entries("kernel") {
                let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).ok();
                kept.kernel.extend(inside(name).zip(address));
            }
            kept.kallsyms = kept.kallsyms.or_else(|| inside(&index["kallsyms"]));
        }
        Ok(kept)
    }
}

impl KeptCode {
    /// Adds the kept files to files of this machine. Kept files take precedence.
    #[must_use]
    pub fn beside(&self, files: ImageFiles) -> ImageFiles {
        files.with_kept(&self.files, self.kallsyms.as_deref())
    }
}

/// Whether a trace has packets of a processor's tracer. Their code must be kept.
pub fn is_wanted(source: &dyn Source) -> bool {
    let mut classes = source.trace().stream_classes.iter().flat_map(|of| &of.event_classes);
    classes.any(|class| class.name == "auxtrace")
}

/// Copies the code that a trace reports as mapped, as far as it can be read, into a folder of the recording.
/// `from` is code kept earlier, including the kernel's.
///
/// Returns the files that are missing, with the reason.
///
/// Errors: a file cannot be written.
pub fn keep(
    source: &dyn Source,
    images: ImageFiles,
    from: &KeptCode,
    recording: &Path,
) -> Result<Vec<(String, String)>, CliError> {
    let mut places = Places::new(images, source.trace());
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        places.see(&event);
    }
    let folder = recording.join(FOLDER);
    let failed = |path: &Path, error: &std::io::Error| CliError::at_path(WHAT, path, error);
    fs::create_dir(&folder).map_err(|error| failed(&folder, &error))?;
    let (mut files, mut kernel, mut missing) = (Map::new(), Map::new(), Vec::new());
    for (path, content) in places.mapped_files() {
        match content {
            Ok((bytes, build_id)) => {
                let name = match build_id {
                    Some(id) if !id.is_empty() => hex(&id),
                    _ => format!("file-{}", files.len()),
                };
                let file = folder.join(&name);
                if !file.exists() {
                    put(&file, &bytes)?;
                }
                files.insert(path, name.into());
            }
            Err(why) => missing.push((path, why)),
        }
    }
    let read = |path: &Path| {
        let bytes = lateralis_files::read_regular(path, FILE_BYTES);
        bytes.map_err(|error| CliError::at_path("cannot read the code", path, &error))
    };
    for (path, address) in &from.kernel {
        let name = format!("kernel-{address:x}");
        put(&folder.join(&name), &read(path)?)?;
        kernel.insert(format!("{address:#x}"), name.into());
    }
    let mut index = json!({ "files": files, "kernel": kernel });
    if let Some(path) = &from.kallsyms {
        put(&folder.join(KALLSYMS), &read(path)?)?;
        index["kallsyms"] = KALLSYMS.into();
    }
    let text = format!("{index:#}\n").into_bytes();
    put(&folder.join(INDEX), &text)?;
    Ok(missing)
}

fn is_plain_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|of| of.is_file())
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let written = File::create_new(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| CliError::at_path(WHAT, path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_in_the_folder_are_code() {
        let folder = lateralis_files::TemporaryFolder::new("lateralis-kept-").expect("a folder");
        let code = folder.path().join(FOLDER);
        fs::create_dir(&code).expect("a folder");
        fs::write(code.join("ab12"), "code").expect("a file");
        fs::write(folder.path().join("outside"), "no code").expect("a file");
        std::os::unix::fs::symlink("/etc/passwd", code.join("link")).expect("a link");
        let index = r#"{"files": {"/a": "ab12", "/b": "../outside", "/c": "link", "/d": "", "/e": "gone"},
                        "kernel": {"0xffffffff81000000": "ab12", "no number": "ab12"},
                        "kallsyms": "/etc/passwd"}"#;
        fs::write(code.join(INDEX), index).expect("a file");
        let kept = KeptCode::of(&[folder.path().to_owned()]).expect("it is read");
        assert_eq!(kept.files, HashMap::from([("/a".to_owned(), code.join("ab12"))]));
        assert_eq!(kept.kernel, [(code.join("ab12"), 0xffff_ffff_8100_0000)]);
        assert_eq!(kept.kallsyms, None);
        fs::write(code.join(INDEX), "no JSON").expect("a file");
        assert!(KeptCode::of(&[folder.path().to_owned()]).is_err());
    }
}
