// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The compiled half of the Python package `lateralis`: tables of the store as streams of the
//! [Arrow C interface](https://arrow.apache.org/docs/format/CStreamInterface.html).
//!
//! ```text
//! lateralis (python/lateralis, what users see)
//!    │ open, tables, warnings                 │ __arrow_c_stream__
//!    ▼                                        ▼
//! Trace ─ store::Session ◄── thread per stream ── Batches ──► pyarrow, polars, duckdb …
//! ```
//!
//! Batches are made on a thread without the interpreter and passed on as pointers: their buffers are not
//! copied, and at most [`batches::WAITING`] of them wait.

#![forbid(unsafe_code)]

mod batches;
mod opening;
mod panics;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use lateralis_model::Interval;
use lateralis_store::{Scan, Table as StoreTable};
use lateralis_units::Nanos;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use batches::{Batches, Opened};

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
    schema: SchemaRef,
    /// Why the last stream that failed did.
    failure: Arc<Mutex<Option<String>>>,
}

#[pymodule]
mod _lateralis {
    #[pymodule_export]
    use super::{Error, Table, Trace, open};
}

/// Opens traces as one; what users should know of them, each with whether it is a loss.
#[pyfunction]
fn open(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    begin: Option<i64>,
    end: Option<i64>,
) -> PyResult<(Trace, Vec<(bool, String)>)> {
    let (session, remarks) = py.detach(|| panics::caught(|| opening::open(&paths)))?;
    let interval = Interval { begin: begin.map(Nanos), end: end.map(Nanos) };
    Ok((Trace { opened: Arc::new(Opened::new(session)), interval }, remarks))
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

    /// A table, if there is one of this name.
    ///
    /// Errors: it has no such column.
    fn table(
        &self,
        name: &str,
        columns: Option<Vec<String>>,
        cpus: Option<Vec<u32>>,
        limit: Option<usize>,
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
        Ok(Some(Table { opened, index, scan, schema, failure: Arc::default() }))
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
            self.scan.clone(),
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
