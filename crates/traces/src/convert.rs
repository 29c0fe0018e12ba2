// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts a trace to a file of another format. The output gets its final name only when it is complete.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use lateralis_ctf::write as ctf;
use lateralis_files::{NewFile, NewFolder, SHARED};
use lateralis_interchange::{chrome, csv, fxt, jsonl, parquet, perfetto};
use lateralis_model::{Damage, Dropped, Source};
use lateralis_seedformats::barrelfish::{self, Definitions};

/// Size of the output buffer.
const BUFFER_BYTES: usize = 1 << 18;

/// An output format.
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
    /// One file with a table of all events, or a directory that also has one for each event class.
    Parquet,
    /// Comma-separated values.
    Csv,
    /// One JSON object per line.
    JsonLines,
    /// Barrelfish's text dump.
    Barrelfish,
}

/// Every target, with its name on the command line and its usual endings.
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
    /// The target with this name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        TARGETS.iter().find(|(_, known, _)| *known == word).map(|(target, ..)| *target)
    }

    /// The target for the ending of a path; for a path without an ending, a CTF directory.
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

/// Options of the output.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name and content of a JSON file with the numbers of Barrelfish's events.
    pub definitions: Option<(String, Vec<u8>)>,
    /// Whether to write a header line and a text column in table formats.
    pub header_and_text: bool,
    /// Whether to replace an existing output.
    pub replace: bool,
}

/// Reason why nothing was written.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConvertError {
    /// The output exists.
    Exists {
        /// Its path.
        path: PathBuf,
    },
    /// The output is a device or a pipe, but the format is a directory.
    NoDirectory {
        /// Its path.
        path: PathBuf,
    },
    /// Writing failed.
    Io {
        /// Path of the output.
        path: PathBuf,
        /// Cause.
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

/// Result of a conversion.
#[derive(Debug, Clone, Default)]
pub struct Converted {
    /// Information that the format could not represent.
    pub dropped: Dropped,
    /// Damage of the source, which is missing in the copy.
    pub damage: Vec<Damage>,
}

/// Writes a trace to a file, or a directory, at `output`.
///
/// A device or a pipe at `output` is never replaced: the bytes of a file are written to it.
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
        // The reader of a pipe has it open, and /dev/null must stay a device.
        if matches!(target, Target::Ctf | Target::Ctf2) {
            return Err(ConvertError::NoDirectory { path: output.to_owned() });
        }
        return write_special(source, target, output, options).map_err(io);
    }
    // The target of a link is replaced, not the link: it may be /dev/stdout.
    let behind = output.is_symlink().then(|| output.canonicalize().ok()).flatten();
    let output = behind.as_deref().unwrap_or(output);
    if output.symlink_metadata().is_ok() && !options.replace {
        return Err(ConvertError::Exists { path: output.to_owned() });
    }
    let is_folder =
        matches!(target, Target::Ctf | Target::Ctf2) || (target == Target::Parquet && !is_single);
    // The final name is used only when the output is complete; the temporary one cannot be guessed.
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
                // A rename does not replace an existing folder.
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

/// Writes a trace as bytes of a file into `out`, and flushes it.
///
/// # Errors
/// If the format is a directory, or writing to `out` fails, possibly after a part was written. `name` is
/// the name of the output in errors.
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

/// Damage of a source. Most writers do not return it, so it is searched again.
fn damage_of(source: &dyn Source) -> Vec<Damage> {
    let mut damage = source.damage().to_vec();
    damage.extend(source.visit(&mut |_| {}));
    damage
}

/// Writes to an existing device or pipe.
fn write_special(
    source: &dyn Source,
    target: Target,
    path: &Path,
    options: &Options,
) -> io::Result<Converted> {
    let file = OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.is_file() {
        // The file type has changed in the meantime.
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

/// Writes the bytes of a single-file format.
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
