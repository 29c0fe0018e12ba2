// SPDX-License-Identifier: Apache-2.0 OR MIT
//! User-visible errors of opening traces.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::formats::supported;

/// Reason why nothing could be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no trace.
    NoTrace {
        /// The path.
        path: PathBuf,
        /// Number of examined files of a directory.
        files: usize,
        /// Number of archives among them, which are opened only if they are named.
        archives: usize,
    },
    /// A part of a CTF trace without the metadata that describes it.
    NoMetadata {
        /// Path of the part.
        path: PathBuf,
    },
    /// Unpacking an archive failed.
    Unpacking {
        /// Path of the archive.
        path: PathBuf,
        /// The directory for temporary files.
        directory: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// An archive has files, but no trace.
    Archive {
        /// Path of the archive.
        path: PathBuf,
        /// Its type.
        kind: &'static str,
        /// Description of its contents.
        cause: String,
    },
    /// It is a device, a pipe or a socket: reading it may never end.
    Special {
        /// Its path.
        path: PathBuf,
    },
    /// The file has no known format.
    Unknown {
        /// Its path.
        path: PathBuf,
        /// Its first bytes; decompressed if it is compressed.
        first: Vec<u8>,
        /// Name of the compression.
        packing: Option<&'static str>,
    },
    /// A file has a known format, but cannot be read.
    Format {
        /// Its path.
        path: PathBuf,
        /// Name of the format.
        format: &'static str,
        /// Cause.
        cause: String,
    },
    /// A file cannot be read at all.
    Io {
        /// Its path.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

impl Error {
    /// Whether the path exists, but is not a trace.
    #[must_use]
    pub fn is_no_trace(&self) -> bool {
        matches!(self, Self::NoTrace { .. } | Self::Unknown { .. } | Self::Special { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTrace { path, files, archives } => {
                write!(f, "no trace here: {}: ", path.display())?;
                match files {
                    files if files == archives && *files > 0 => {
                        write!(f, "only archives ({archives}), which are opened one by one")
                    }
                    0 => f.write_str("expected files of a known format, or a CTF metadata file"),
                    1 => f.write_str("the only file is of no known format"),
                    files => write!(f, "none of its {files} files is of a known format"),
                }
            }
            Self::NoMetadata { path } => write!(
                f,
                "no metadata beside it: {}: it belongs to a CTF trace: name the directory that holds \
                 its file `metadata`",
                path.display()
            ),
            Self::Special { path } => write!(
                f,
                "no regular file: {}: copy what comes out of it to a file first",
                path.display()
            ),
            Self::Unknown { path, first, packing: None } if first.is_empty() => {
                write!(f, "no trace here: {}: the file is empty", path.display())
            }
            Self::Unknown { path, first, packing: Some(name) } if first.is_empty() => write!(
                f,
                "cannot unpack: {}: {name} packed it, and it is cut or damaged in its first bytes",
                path.display()
            ),
            Self::Unknown { path, first, packing } => {
                let known: Vec<&str> = supported().collect();
                let (path, known) = (path.display(), known.join(", "));
                let what =
                    packing.map_or("it".to_owned(), |name| format!("what {name} packed in it"));
                write!(
                    f,
                    "unknown format: {path}: {what} begins with {}; known are {known}; \
                     if it is one of them, --as FORMAT says which",
                    beginning(first)
                )
            }
            Self::Format { path, format, cause } => {
                let cause = once_named(path, cause);
                write!(f, "cannot read {format}: {}: {cause}", path.display())
            }
            Self::Io { path, source } => write!(f, "cannot read: {}: {source}", path.display()),
            Self::Unpacking { path, directory, source } => write!(
                f,
                "cannot unpack: {}: {source}; it is unpacked below {}, TMPDIR names another place",
                path.display(),
                directory.display()
            ),
            Self::Archive { path, kind, cause } => {
                write!(f, "no trace in this archive ({kind}): {}: {cause}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::Unpacking { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Cause why a file cannot be read, without its name if the cause repeats it: readers report `no
/// perf.data: NAME: it ends in its header`.
fn once_named(path: &Path, cause: &str) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    cause.replacen(&format!(": {name}: "), ": ", 1)
}

/// First bytes of other kinds of files, their names, and advice.
const OTHER_KINDS: &[(&[u8], &str)] = &[
    (b"PK\x03\x04", "zip"),
    (b"\xfd7zXZ", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip: unpack it first"),
    (b"\x04\x22\x4d\x18", "lz4: unpack it first"),
    (b"BZh", "bzip2: unpack it first"),
    (b"\x7fELF", "a program, library or core dump"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"%PDF", "a PDF document"),
    (b"SQLite format 3", "an SQLite database"),
    (b"PAR1", "a Parquet table, which lat only writes"),
];

/// The first bytes as text if they are text, otherwise in hexadecimal; and the kind of file, if that
/// helps.
fn beginning(first: &[u8]) -> String {
    if first.is_empty() {
        return "nothing: it is empty".into();
    }
    let shown = &first[..first.len().min(16)];
    let is_text = shown.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let text = if is_text {
        format!("{:?}", String::from_utf8_lossy(shown))
    } else {
        shown.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
    };
    let kind = OTHER_KINDS.iter().find(|(beginning, _)| first.starts_with(beginning));
    text + &kind.map_or(String::new(), |(_, kind)| format!(" ({kind})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_once() {
        let format = |cause: &str| {
            let (path, format) = (PathBuf::from("dir/a.data"), "perf.data");
            Error::Format { path, format, cause: cause.to_owned() }.to_string()
        };
        let begins = "cannot read perf.data: dir/a.data: ";
        assert_eq!(
            format("no perf.data: a.data: it ends"),
            format!("{begins}no perf.data: it ends")
        );
        assert_eq!(format("no events: b.json: empty"), format!("{begins}no events: b.json: empty"));
    }

    #[test]
    fn an_unknown_file_is_described_by_its_beginning() {
        assert_eq!(beginning(b"hello world, this is no trace"), "\"hello world, thi\"");
        assert_eq!(beginning(b"PK\x03\x04"), "50 4b 03 04 (zip)");
        assert_eq!(beginning(&[]), "nothing: it is empty");
    }
}
