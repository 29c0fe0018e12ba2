// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables in the Arrow IPC formats: file and stream.
//!
//! Reference: Arrow Columnar Format 1.5, "Serialization and Interprocess Communication".

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};

/// Largest number of words of one column of a file, which are in memory until it is complete.
const WORDS_MAX: usize = 1 << 20;

/// Largest size of those words in bytes.
const WORDS_BYTES_MAX: usize = 256 << 20;

/// Writes batches in one of the two formats.
pub enum Ipc<W: Write> {
    /// With an index at the end, so that batches can be read in any order.
    File(Box<FileWriter<W>>, Vec<Words>),
    /// Batches as they come; each has its own words.
    Stream(Box<StreamWriter<W>>),
}

impl<W: Write> Ipc<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn file(out: W, schema: &SchemaRef) -> io::Result<Self> {
        // A file has one list of words per column; batches may only append to it.
        let options =
            IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        let writer = FileWriter::try_new_with_options(out, schema, options).map_err(failed)?;
        let words = schema.fields().iter().map(|_| Words::default()).collect();
        Ok(Self::File(Box::new(writer), words))
    }

    /// Starts a stream.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn stream(out: W, schema: &SchemaRef) -> io::Result<Self> {
        Ok(Self::Stream(Box::new(StreamWriter::try_new(out, schema).map_err(failed)?)))
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If `out` cannot be written, or a column of a file has too many different words.
    pub fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        match self {
            Self::Stream(writer) => writer.write(batch).map_err(failed),
            Self::File(writer, words) => {
                let schema = batch.schema();
                let columns = batch.columns().iter().zip(words).enumerate();
                let columns = columns.map(|(index, (column, words))| {
                    let known = words.of_file(column);
                    known.ok_or_else(|| {
                        let (name, most) = (schema.field(index).name(), WORDS_MAX);
                        io::Error::other(format!(
                            "column {name}: more than {most} different words: write a stream (arrows)"
                        ))
                    })
                });
                let columns = columns.collect::<io::Result<Vec<ArrayRef>>>()?;
                let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(failed)?;
                writer.write(&batch).map_err(failed)
            }
        }
    }

    /// Flushes the rows written so far, so that a reader sees them.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(writer, _) => writer.flush().map_err(failed),
            Self::Stream(writer) => writer.flush().map_err(failed),
        }
    }

    /// Ends the file or stream.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        match &mut self {
            Self::File(writer, _) => writer.finish().map_err(failed),
            Self::Stream(writer) => writer.finish().map_err(failed),
        }
    }
}

/// A broken pipe must be reported as such.
fn failed(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

/// Words of a column, numbered in the order of their first occurrence.
#[derive(Debug, Default)]
pub struct Words {
    numbers: HashMap<Box<str>, i32>,
    bytes: usize,
    all: Option<Arc<StringArray>>,
}

impl Words {
    /// The column with the numbers of the file; `None` if there are too many words.
    fn of_file(&mut self, column: &ArrayRef) -> Option<ArrayRef> {
        let Some(column) = column.as_dictionary_opt::<Int32Type>() else {
            return Some(Arc::clone(column));
        };
        let texts = column.values().as_string_opt::<i32>()?;
        let mut added: Vec<&str> = Vec::new();
        let mut renumbered = Vec::with_capacity(texts.len());
        for text in texts.iter().map(Option::unwrap_or_default) {
            let number = match self.numbers.get(text) {
                Some(number) => *number,
                None => {
                    let number = self.numbers.len();
                    self.bytes += text.len();
                    if number >= WORDS_MAX || self.bytes > WORDS_BYTES_MAX {
                        return None;
                    }
                    self.numbers.insert(text.into(), number as i32);
                    added.push(text);
                    number as i32
                }
            };
            renumbered.push(number);
        }
        let all = match (&self.all, added.is_empty()) {
            (Some(all), true) => Arc::clone(all),
            (all, _) => {
                let before = all.iter().flat_map(|all| all.iter().flatten());
                let all: Vec<&str> = before.chain(added).collect();
                Arc::new(StringArray::from_iter_values(all))
            }
        };
        self.all = Some(Arc::clone(&all));
        let number = |key: i32| renumbered.get(key as usize).copied().unwrap_or(0);
        let keys: Int32Array = column.keys().iter().map(|key| key.map(number)).collect();
        let array = DictionaryArray::<Int32Type>::try_new(keys, all);
        array.ok().map(|array| Arc::new(array) as ArrayRef)
    }
}
