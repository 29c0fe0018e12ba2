// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From a trace to a file of another format. What is written appears under its
//! name only when it is whole.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use lateralis_ctf::write as ctf;
use lateralis_files::{NewFile, NewFolder, SHARED};
use lateralis_interchange::{chrome, csv, fxt, jsonl, parquet, perfetto};
use lateralis_model::{Damage, Dropped, Source};
use lateralis_seedformats::barrelfish::{self, Definitions};

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 18;

/// A format that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// CTF 1.8, a directory.
    Ctf,
    /// CTF 2, a directory.
    Ctf2,
    /// pcapng.
    Pcapng,
    /// Chrome JSON.
    Chrome,
    /// Perfetto protobuf.
    Perfetto,
    /// Fuchsia's trace format.
    Fxt,
    /// One file with a table of all events, or a directory that has one more for
    /// each kind of event.
    Parquet,
    /// Comma-separated values.
    Csv,
    /// One JSON object a line.
    JsonLines,
    /// Barrelfish's text dump.
    Barrelfish,
}

/// Every target, its word on the command line, its usual endings.
pub const TARGETS: &[(Target, &str, &[&str])] = &[
    (Target::Ctf, "ctf", &["ctf"]),
    (Target::Ctf2, "ctf2", &["ctf2"]),
    (Target::Chrome, "chrome", &["json"]),
    (Target::Perfetto, "perfetto", &["pftrace", "perfetto", "perfetto-trace"]),
    (Target::Fxt, "fxt", &["fxt"]),
    (Target::Parquet, "parquet", &["parquet"]),
    (Target::Csv, "csv", &["csv"]),
    (Target::JsonLines, "jsonl", &["jsonl", "ndjson"]),
    (Target::Pcapng, "pcapng", &["pcapng"]),
    (Target::Barrelfish, "barrelfish", &["trc"]),
];

impl Target {
    /// The target with this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        TARGETS.iter().find(|(_, known, _)| *known == word).map(|(target, ..)| *target)
    }

    /// The target that a path's ending asks for; a path without an ending asks
    /// for a CTF directory.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let Some(ending) = path.extension() else {
            return Some(Self::Ctf);
        };
        let ending = ending.to_str()?.to_ascii_lowercase();
        let known = TARGETS.iter().find(|(_, _, endings)| endings.contains(&ending.as_str()));
        known.map(|(target, ..)| *target)
    }
}

/// How to write.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name and content of a JSON file with the numbers of Barrelfish's events.
    pub definitions: Option<(String, Vec<u8>)>,
    /// Write a head line and a text column, where the format is a table.
    pub header_and_text: bool,
    /// Replace what is there.
    pub replace: bool,
}

/// Why nothing was written.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConvertError {
    /// Something is there already.
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// It is a device or a pipe, and the format is a directory.
    NoDirectory {
        /// Where.
        path: PathBuf,
    },
    /// It cannot be written.
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists { path } => {
                write!(f, "cannot write: {}: it exists: remove it or use --force", path.display())
            }
            Self::NoDirectory { path } => {
                let path = path.display();
                write!(f, "cannot write: {path}: this format is a directory: use another name")
            }
            Self::Io { path, source } => write!(f, "cannot write: {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for ConvertError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Exists { .. } | Self::NoDirectory { .. } => None,
        }
    }
}

/// What came of a conversion.
#[derive(Debug, Clone, Default)]
pub struct Converted {
    /// What the format could not keep.
    pub dropped: Dropped,
    /// What could not be read, and therefore is not in the copy.
    pub damage: Vec<Damage>,
}

/// Writes a trace as a file, or a directory, at `output`.
///
/// A device or a pipe at `output` is never replaced: a file's bytes go into it.
///
/// # Errors
/// If `output` exists or cannot be written; nothing is left there then.
pub fn convert(
    source: &dyn Source,
    target: Target,
    output: &Path,
    options: &Options,
) -> Result<Converted, ConvertError> {
    let io = |source| ConvertError::Io { path: output.to_owned(), source };
    let is_single = output.extension().is_some();
    if fs::metadata(output).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        // The reader of a pipe is open, /dev/null must stay what it is.
        if matches!(target, Target::Ctf | Target::Ctf2) {
            return Err(ConvertError::NoDirectory { path: output.to_owned() });
        }
        return write_special(source, target, output, options).map_err(io);
    }
    // What a link leads to is replaced, not the link: it may be /dev/stdout.
    let behind = output.is_symlink().then(|| output.canonicalize().ok()).flatten();
    let output = behind.as_deref().unwrap_or(output);
    if output.symlink_metadata().is_ok() && !options.replace {
        return Err(ConvertError::Exists { path: output.to_owned() });
    }
    let is_folder =
        matches!(target, Target::Ctf | Target::Ctf2) || (target == Target::Parquet && !is_single);
    // Under its name only when it is whole; before that nobody can guess where it is.
    let written = if is_folder {
        NewFolder::beside(output).and_then(|folder| {
            let converted = write_folder(source, target, folder.path())?;
            if options.replace {
                remove(output)?;
            }
            folder.publish()?;
            Ok(converted)
        })
    } else {
        NewFile::beside(output, SHARED).and_then(|file| {
            let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
            let dropped = write_file(source, target, &mut out, options)?;
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            if options.replace {
                // A folder that is in the way is not replaced by a rename.
                if output.symlink_metadata().is_ok_and(|about| about.is_dir()) {
                    remove(output)?;
                }
                file.publish()?;
            } else {
                file.publish_new()?;
            }
            Ok(Converted { dropped, damage: damage_of(source) })
        })
    };
    written.map_err(io)
}

/// Writes a trace as bytes of a file into `out`, which is flushed then.
///
/// # Errors
/// If the format is a directory, or `out` cannot be written: some of it may have been
/// by then. `name` is what the error calls it.
pub fn convert_into(
    source: &dyn Source,
    target: Target,
    out: &mut dyn Write,
    name: &Path,
    options: &Options,
) -> Result<Converted, ConvertError> {
    if matches!(target, Target::Ctf | Target::Ctf2) {
        return Err(ConvertError::NoDirectory { path: name.to_owned() });
    }
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let written = write_file(source, target, &mut out, options);
    let written = written.and_then(|dropped| out.flush().map(|()| dropped));
    let dropped = written.map_err(|source| ConvertError::Io { path: name.to_owned(), source })?;
    Ok(Converted { dropped, damage: damage_of(source) })
}

fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

/// What could not be read. Most writers do not say, so it is found once more.
fn damage_of(source: &dyn Source) -> Vec<Damage> {
    let mut damage = source.damage().to_vec();
    damage.extend(source.visit(&mut |_| {}));
    damage
}

/// Into something that is there: a device, a pipe.
fn write_special(
    source: &dyn Source,
    target: Target,
    path: &Path,
    options: &Options,
) -> io::Result<Converted> {
    let file = OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.is_file() {
        // It was something else a moment ago.
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let dropped = write_file(source, target, &mut out, options)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(Converted { dropped, damage: damage_of(source) })
}

fn write_folder(source: &dyn Source, target: Target, path: &Path) -> io::Result<Converted> {
    let directory = |version| {
        let options = ctf::Options { version, ..ctf::Options::default() };
        let report = ctf::directory::write_directory(source, path, &options)?;
        Ok(Converted { dropped: report.dropped, damage: report.damage })
    };
    match target {
        Target::Ctf => directory(ctf::Version::V1),
        Target::Ctf2 => directory(ctf::Version::V2),
        _ => {
            let create = |name: &str| File::create_new(path.join(format!("{name}.parquet")));
            let mut events = BufWriter::new(create("events")?);
            parquet::write(source, &mut events)?;
            events.into_inner().map_err(io::IntoInnerError::into_error)?;
            let mut open = |name: &str| {
                let out = BufWriter::new(create(name)?);
                Ok(Box::new(out) as Box<dyn Write>)
            };
            let dropped = parquet::write_classes(source, &mut open)?;
            Ok(Converted { dropped, damage: damage_of(source) })
        }
    }
}

/// Writes the bytes of a format that is one file.
fn write_file(
    source: &dyn Source,
    target: Target,
    out: &mut dyn Write,
    options: &Options,
) -> io::Result<Dropped> {
    match target {
        Target::Ctf | Target::Ctf2 => Err(io::ErrorKind::IsADirectory.into()),
        Target::Chrome => chrome::write(source, out),
        Target::Perfetto => perfetto::write(source, out),
        Target::Fxt => fxt::write(source, out),
        Target::Parquet => parquet::write(source, out),
        Target::Csv => {
            let (header, text) = (options.header_and_text, options.header_and_text);
            csv::write(source, out, csv::Options { header, text })
        }
        Target::JsonLines => jsonl::write(source, out),
        Target::Barrelfish => {
            let definitions = match &options.definitions {
                Some((name, json)) => {
                    Definitions::from_json(name, json).map_err(io::Error::other)?
                }
                None => Definitions::legacy(),
            };
            barrelfish::write(source, out, &definitions)
        }
        Target::Pcapng => {
            lateralis_pcapng::write(source, out, &lateralis_pcapng::Options::default())
        }
    }
}
