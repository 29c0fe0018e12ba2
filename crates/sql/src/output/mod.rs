// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes results in various formats. Every writer takes batches as they come: results larger than memory
//! can be written as well.

mod flat;
mod table;

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::csv;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use arrow::json::{self, writer::JsonArray, writer::LineDelimited};
use clap::ValueEnum;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

pub use table::TableWriter;

/// Format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns, for people
    Table,
    /// One JSON array of objects
    Json,
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values with a head line
    Csv,
    /// Arrow IPC: a file with -o, else a stream
    Arrow,
    /// Parquet
    Parquet,
}

impl Format {
    /// Whether the format is binary.
    pub fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet)
    }

    /// Whether several results can follow each other in one file.
    pub fn can_repeat(self) -> bool {
        matches!(self, Self::Table | Self::Jsonl | Self::Json)
    }
}

/// Destination and format of a result.
pub struct Sink<W: Write + Send> {
    writer: Writer<W>,
    schema: SchemaRef,
    rows: u64,
}

enum Writer<W: Write + Send> {
    Table(TableWriter<W>),
    Json(json::Writer<W, JsonArray>),
    Jsonl(json::Writer<W, LineDelimited>),
    Csv(csv::Writer<W>, bool),
    Stream(StreamWriter<W>),
    File(FileWriter<W>),
    Parquet(ArrowWriter<W>),
}

impl<W: Write + Send> Sink<W> {
    /// Starts a result with these columns. `columns` is the width of the terminal, if there is one;
    /// `is_file`: whether the destination is a file of its own.
    ///
    /// Errors: writing fails, or the format does not support a type.
    pub fn new(
        format: Format,
        target: W,
        schema: &SchemaRef,
        columns: Option<usize>,
        is_file: bool,
    ) -> Result<Self, ArrowError> {
        let schema = match format {
            Format::Table => Arc::clone(schema),
            Format::Csv => flat::text_schema(schema),
            _ => flat::plain_schema(schema),
        };
        let json = || json::WriterBuilder::new().with_explicit_nulls(true);
        let writer = match format {
            Format::Table => Writer::Table(TableWriter::new(target, Arc::clone(&schema), columns)),
            Format::Json => Writer::Json(json().build(target)),
            Format::Jsonl => Writer::Jsonl(json().build(target)),
            Format::Csv => Writer::Csv(csv::WriterBuilder::new().build(target), false),
            Format::Arrow if is_file => Writer::File(FileWriter::try_new(target, &schema)?),
            Format::Arrow => Writer::Stream(StreamWriter::try_new(target, &schema)?),
            Format::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                let writer = ArrowWriter::try_new(target, Arc::clone(&schema), Some(properties))?;
                Writer::Parquet(writer)
            }
        };
        Ok(Self { writer, schema, rows: 0 })
    }

    /// Writes the next rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.rows += batch.num_rows() as u64;
        let batch = match &self.writer {
            Writer::Table(_) => batch.clone(),
            _ => flat::fit(batch, &self.schema)?,
        };
        match &mut self.writer {
            Writer::Table(writer) => writer.write(&batch),
            Writer::Json(writer) => writer.write(&batch),
            Writer::Jsonl(writer) => writer.write(&batch),
            Writer::Csv(writer, has_head) => {
                *has_head = true;
                writer.write(&batch)
            }
            Writer::Stream(writer) => writer.write(&batch),
            Writer::File(writer) => writer.write(&batch),
            Writer::Parquet(writer) => Ok(writer.write(&batch)?),
        }
    }

    /// Ends the result; returns its number of rows. Otherwise a file may be unreadable.
    pub fn finish(self) -> Result<u64, ArrowError> {
        let mut target = match self.writer {
            Writer::Table(writer) => writer.finish()?,
            Writer::Json(mut writer) => {
                writer.finish()?;
                let mut target = writer.into_inner();
                target.write_all(b"\n")?;
                target
            }
            Writer::Jsonl(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
            Writer::Csv(mut writer, has_head) => {
                if !has_head {
                    // A result without rows still has columns.
                    writer.write(&RecordBatch::new_empty(Arc::clone(&self.schema)))?;
                }
                writer.into_inner()
            }
            Writer::Stream(mut writer) => {
                writer.finish()?;
                writer.into_inner()?
            }
            Writer::File(mut writer) => {
                writer.finish()?;
                writer.into_inner()?
            }
            Writer::Parquet(writer) => writer.into_inner()?,
        };
        target.flush()?;
        Ok(self.rows)
    }
}

/// Whether an error means that the reader has closed the pipe.
pub fn is_broken_pipe(error: &ArrowError) -> bool {
    match error {
        ArrowError::IoError(_, cause) => cause.kind() == io::ErrorKind::BrokenPipe,
        ArrowError::ExternalError(cause) => cause
            .downcast_ref::<io::Error>()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe),
        // The CSV and Parquet writers keep only the message of the cause.
        other => other.to_string().contains("Broken pipe"),
    }
}
