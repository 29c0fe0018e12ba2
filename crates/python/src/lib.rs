// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The compiled half of the Python package `lateralis`: tables of the store as streams of the
//! [Arrow C interface](https://arrow.apache.org/docs/format/CStreamInterface.html), and reports as JSON.
//!
//! ```text
//! lateralis (python/lateralis, what users see)
//!    │ open, tables, warnings                 │ __arrow_c_stream__
//!    ▼                                        ▼
//! Trace ─ store::Session ◄── thread per stream ── Batches ──► pyarrow, polars, duckdb …
//!    │ stats, path, diff
//!    ▼
//! reports (the documents of `lat … --json`)
//! ```
//!
//! Batches are made on a thread without the interpreter and passed on as pointers: their buffers are not
//! copied, and at most [`batches::WAITING`] of them wait.

#![forbid(unsafe_code)]

mod batches;
mod opening;
mod panics;
mod reports;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use lateralis_analysis::diff::Options;
use lateralis_model::{Interval, Source};
use lateralis_reports::diff::Settings;
use lateralis_reports::moment;
use lateralis_reports::selection::{SelectArgs, Selection};
use lateralis_store::{Scan, Table as StoreTable};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use batches::{Batches, Opened};
use reports::{Document, Select};

pyo3::create_exception!(
    lateralis,
    Error,
    pyo3::exceptions::PyException,
    "A trace or table that cannot be read; the text says what, where, and what to do."
);

/// Traces opened together.
#[pyclass(frozen, module = "lateralis._lateralis")]
struct Trace {
    opened: Arc<Opened>,
    interval: Interval,
}

/// What of a table is read.
#[pyclass(frozen, module = "lateralis._lateralis")]
struct Table {
    opened: Arc<Opened>,
    /// Its place in [`lateralis_store::Session::tables`].
    index: usize,
    scan: Scan,
    /// Which events; all if `None`.
    select: Option<Arc<SelectArgs>>,
    schema: SchemaRef,
    /// Why the last stream that failed did.
    failure: Arc<Mutex<Option<String>>>,
}

#[pymodule]
mod _lateralis {
    #[pymodule_export]
    use super::{Error, Table, Trace, diff, open};
}

/// Opens traces as one, of the time from `begin` to `end`, in any form that `--from` takes. Returns what
/// users should know of them, each with whether it is a loss.
#[pyfunction]
fn open(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    begin: Option<String>,
    end: Option<String>,
) -> PyResult<(Trace, Vec<(bool, String)>)> {
    let open = || {
        let moments = [reports::time(begin.as_deref())?, reports::time(end.as_deref())?];
        let (session, mut remarks) = opening::open(&paths)?;
        let mut interval = Interval::default();
        if let Some(recording) = session.recordings().next() {
            let extent = moment::extent(recording, moments);
            let (chosen, warning) = moment::between(extent, moments[0], moments[1]);
            interval = chosen;
            remarks.extend(warning.map(|text| (false, reports::in_python(&text))));
        }
        if let (Some(begin), Some(end)) = (interval.begin, interval.end)
            && begin > end
        {
            let (begin, end) = (begin.0, end.0);
            return Err(format!(
                "no time to read: begin {begin} is after end {end}: exchange them"
            ));
        }
        Ok((session, remarks, interval))
    };
    let (session, remarks, interval) = py.detach(|| panics::caught(open))?;
    Ok((Trace { opened: Arc::new(Opened::new(session, paths)), interval }, remarks))
}

/// What changed between recordings, as JSON, with warnings.
///
/// Errors: see [`reports::diff`].
#[pyfunction]
fn diff(
    py: Python<'_>,
    recordings: (Vec<PathBuf>, Vec<PathBuf>, Vec<PathBuf>),
    shares: (f64, f64),
    only_worse: bool,
    by_shares: bool,
    symfs: Option<PathBuf>,
    select: Select,
) -> PyResult<Document> {
    let (threshold, noise) = shares;
    let options = Options { threshold, noise, ..Options::default() };
    let settings = Settings { options, only_worse, by_shares, symfs };
    let (good, bad, known) = recordings;
    py.detach(|| panics::caught(|| reports::diff((&good, &bad, &known), &settings, select)))
}

#[pymethods]
impl Trace {
    /// Names of the tables.
    fn tables(&self) -> Vec<&str> {
        self.opened.session.tables().iter().map(|table| table.name.as_str()).collect()
    }

    /// Names like one that does not exist, the nearest first.
    fn nearest(&self, name: &str) -> Vec<&str> {
        self.opened.session.nearest(name)
    }

    /// A table, if there is one of this name; `select` selects events, in tables of them.
    ///
    /// Errors: it has no such column; an expression that cannot be parsed.
    fn table(
        &self,
        name: &str,
        columns: Option<Vec<String>>,
        cpus: Option<Vec<u32>>,
        limit: Option<usize>,
        select: Option<Select>,
    ) -> PyResult<Option<Table>> {
        let tables = self.opened.session.tables();
        let Some(index) = tables.iter().position(|table| table.name == name) else {
            return Ok(None);
        };
        let table = &tables[index];
        let columns = columns.map(|names| places(table, &names)).transpose()?;
        let schema = match &columns {
            Some(columns) => table.schema.project(columns).map_err(error)?,
            None => table.schema.as_ref().clone(),
        };
        let about = HashMap::from([("table".to_owned(), name.to_owned())]);
        let schema = Arc::new(schema.with_metadata(about));
        let scan = Scan { columns, interval: self.interval, cpus, limit, ..Scan::default() };
        let opened = Arc::clone(&self.opened);
        let select = select.map(Select::args).transpose().map_err(error)?;
        if let Some(select) = &select {
            // Errors are raised here, where the expression is written.
            let recording = opened.recording(false).map_err(error)?;
            let selection = Selection::within(select, recording, true, self.interval);
            selection.map_err(|why| error(reports::in_python(&why.to_string())))?;
        }
        let select = select.map(Arc::new);
        Ok(Some(Table { opened, index, scan, select, schema, failure: Arc::default() }))
    }

    /// Warnings of fields in expressions that no event has.
    fn unknown_fields(&self, select: Select) -> PyResult<Vec<String>> {
        let recording = self.opened.recording(false).map_err(error)?;
        let args = select.args().map_err(error)?;
        Ok(args.unknown_fields(recording.source.trace()))
    }

    /// Whether it was opened with a time.
    fn has_window(&self) -> bool {
        self.interval != Interval::default()
    }

    /// Statistics as JSON, with warnings.
    ///
    /// Errors: see [`reports::stats`].
    fn stats(&self, py: Python<'_>, sections: Vec<String>, select: Select) -> PyResult<Document> {
        let (opened, window) = (&*self.opened, self.interval);
        py.detach(|| panics::caught(|| reports::stats(opened, window, &sections, select)))
    }

    /// Critical paths as JSON, with warnings.
    ///
    /// Errors: see [`reports::path`].
    fn path(
        &self,
        py: Python<'_>,
        span: Option<String>,
        slowest: u32,
        at: Option<String>,
        select: Select,
    ) -> PyResult<Document> {
        let (opened, window) = (&*self.opened, self.interval);
        let query = (span.as_deref(), slowest, at.as_deref());
        py.detach(|| panics::caught(|| reports::path(opened, window, query, select)))
    }

    /// What was found damaged while tables were read, since the last call.
    fn take_damage(&self) -> Option<String> {
        self.opened.damages.take()
    }
}

#[pymethods]
impl Table {
    /// What its rows are.
    #[getter]
    fn description(&self) -> &str {
        &self.store_table().description
    }

    /// Names of its columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Whether each row is an event.
    #[getter]
    fn is_of_events(&self) -> bool {
        self.store_table().is_of_events()
    }

    /// Why the last stream failed, once.
    fn take_failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The schema by the Arrow C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(error)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// A new stream of its rows by the Arrow C stream interface.
    fn __arrow_c_stream__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = Batches::new(
            Arc::clone(&self.opened),
            self.index,
            (self.scan.clone(), self.select.clone()),
            Arc::clone(&self.schema),
            Arc::clone(&self.failure),
        );
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

impl Table {
    fn store_table(&self) -> &StoreTable {
        &self.opened.session.tables()[self.index]
    }
}

/// Columns by index.
fn places(table: &StoreTable, names: &[String]) -> PyResult<Vec<usize>> {
    let known: Vec<&str> = table.schema.fields().iter().map(|f| f.name().as_str()).collect();
    let place = |name: &String| {
        known.iter().position(|known| known == name).ok_or_else(|| {
            let known = known.join(", ");
            error(format!("no such column: {}: {name}: it has {known}", table.name))
        })
    };
    names.iter().map(place).collect()
}

fn error(why: impl ToString) -> PyErr {
    Error::new_err(why.to_string())
}
