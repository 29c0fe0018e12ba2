// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Destination of results: standard output, or a file that appears complete or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use lateralis_sql::output::Format;

/// Destination of results.
pub struct Target {
    path: Option<PathBuf>,
}

impl Target {
    /// Standard output, or a file.
    ///
    /// Errors: the file exists, and replacing it was not requested.
    pub fn new(path: Option<PathBuf>, replace: bool) -> Result<Self, String> {
        let path = path.filter(|path| path.as_os_str() != "-");
        if let Some(path) = &path
            && !replace
            && fs::symlink_metadata(path).is_ok_and(|there| there.is_file())
        {
            return Err(format!("exists: {}: --force replaces it", path.display()));
        }
        Ok(Self { path })
    }

    /// The format selected by the ending of the file.
    pub fn format(&self) -> Option<Format> {
        let ending = self.path.as_ref()?.extension()?.to_str()?;
        Some(match ending {
            "json" => Format::Json,
            "jsonl" | "ndjson" => Format::Jsonl,
            "csv" => Format::Csv,
            "arrow" | "feather" | "ipc" => Format::Arrow,
            "parquet" | "pq" => Format::Parquet,
            _ => return None,
        })
    }

    /// Whether results go to a terminal.
    pub fn is_terminal(&self) -> bool {
        self.path.is_none() && io::stdout().is_terminal()
    }

    /// Width of the terminal, if it is one.
    pub fn columns(&self) -> Option<usize> {
        if self.is_terminal() { terminal_columns() } else { None }
    }

    /// Starts writing.
    pub fn begin(&self) -> Writing {
        // A pipe or a device is written to, never replaced.
        let is_special = |path: &Path| fs::metadata(path).is_ok_and(|there| !there.is_file());
        let path = self.path.clone();
        let temporary = path.as_deref().filter(|path| !is_special(path)).map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.with_file_name(format!(".{name}.{}", std::process::id()))
        });
        Writing { path, temporary, file: None }
    }
}

/// Results being written.
pub struct Writing {
    path: Option<PathBuf>,
    /// Temporary path until everything is complete.
    temporary: Option<PathBuf>,
    file: Option<File>,
}

impl Writing {
    /// Whether this is a file of its own.
    pub fn is_file(&self) -> bool {
        self.temporary.is_some()
    }

    /// The destination of the next result; several follow each other.
    pub fn open(&mut self) -> io::Result<Box<dyn Write + Send>> {
        let Some(path) = &self.path else {
            return Ok(Box::new(BufWriter::new(io::stdout())));
        };
        let file = match &self.file {
            Some(file) => file,
            None => {
                let opened = match &self.temporary {
                    Some(new) => OpenOptions::new().write(true).create_new(true).open(new),
                    None => OpenOptions::new().write(true).open(path),
                };
                self.file.insert(opened?)
            }
        };
        Ok(Box::new(BufWriter::new(file.try_clone()?)))
    }

    /// The results are complete: the file gets its final name.
    pub fn finish(mut self) -> io::Result<()> {
        if let (Some(new), Some(path)) = (self.temporary.take(), &self.path)
            && self.file.is_some()
        {
            fs::rename(&new, path).inspect_err(|_| drop(fs::remove_file(&new)))?;
        }
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(new) = self.temporary.take().filter(|_| self.file.is_some()) {
            // An incomplete file is removed.
            let _ = fs::remove_file(new);
        }
    }
}

/// Width in columns of the terminal on standard output.
pub fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(size.ws_col.into()).filter(|columns| *columns > 0)
}
