// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of a table, made while another library takes them.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use lateralis_model::Damage;
use lateralis_store::{Scan, Session};

use crate::panics;

/// Batches that are made before they are asked for.
pub const WAITING: usize = 2;

/// What was found damaged while tables were read and not yet shown: how many places, and the first.
#[derive(Default)]
pub struct Damages(Mutex<Option<(usize, String)>>);

impl Damages {
    fn add(&self, found: &[Damage]) {
        let Some(first) = found.first() else { return };
        let mut damages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        damages.get_or_insert_with(|| (0, first.to_string())).0 += found.len();
    }

    /// A sentence.
    pub fn take(&self) -> Option<String> {
        let mut damages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (places, first) = damages.take()?;
        Some(format!("rows are missing: {first}: {places} places could not be read"))
    }
}

/// A stream of batches. Its thread begins with the first batch: some libraries ask a stream for its schema
/// alone. It ends when the stream is dropped.
pub struct Batches {
    schema: SchemaRef,
    state: State,
    /// The process that the thread is in.
    process: u32,
    failure: Arc<Mutex<Option<String>>>,
}

enum State {
    Ready(Reading),
    Running(Receiver<Result<RecordBatch, String>>),
    Over,
}

/// What the thread needs.
struct Reading {
    session: Arc<Session>,
    table: usize,
    scan: Scan,
    damages: Arc<Damages>,
}

impl Batches {
    /// Rows of a table, by its index; `schema` is that of the wanted columns.
    pub fn new(
        (session, table): (Arc<Session>, usize),
        scan: Scan,
        schema: SchemaRef,
        damages: Arc<Damages>,
        failure: Arc<Mutex<Option<String>>>,
    ) -> Self {
        let state = State::Ready(Reading { session, table, scan, damages });
        Self { schema, state, process: process::id(), failure }
    }

    fn receive(&mut self) -> Option<Result<RecordBatch, String>> {
        if let State::Ready(_) = self.state
            && let State::Ready(reading) = std::mem::replace(&mut self.state, State::Over)
        {
            self.process = process::id();
            match reading.begin() {
                Ok(receiver) => self.state = State::Running(receiver),
                Err(why) => return Some(Err(why)),
            }
        }
        let State::Running(receiver) = &self.state else { return None };
        if self.process != process::id() {
            // The thread stayed in the other process: no batch would ever come.
            let why =
                "cannot go on: the stream began before a fork: begin it again in this process";
            return Some(Err(why.to_owned()));
        }
        receiver.recv().ok()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.receive();
        if !matches!(batch, Some(Ok(_))) && self.process == process::id() {
            self.state = State::Over;
        }
        batch.map(|batch| {
            batch.map_err(|why| {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                *failure = Some(why.clone());
                ArrowError::ExternalError(why.into())
            })
        })
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        // What the thread had locked at the fork stays locked here.
        if self.process != process::id() {
            std::mem::forget(std::mem::replace(&mut self.state, State::Over));
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Reading {
    fn begin(self) -> Result<Receiver<Result<RecordBatch, String>>, String> {
        let (sender, receiver) = sync_channel(WAITING);
        let work = move || {
            let ran = catch_unwind(AssertUnwindSafe(|| self.run(&sender)));
            let ran = ran.unwrap_or_else(|panic| Err(panics::sentence(panic.as_ref())));
            if let Err(why) = ran {
                // A consumer that has left needs no reason.
                let _ = sender.send(Err(why));
            }
        };
        let thread = thread::Builder::new().name("lateralis".to_owned()).spawn(work);
        thread.map_err(|why| format!("cannot read the table: no thread: {why}"))?;
        Ok(receiver)
    }

    fn run(&self, sender: &SyncSender<Result<RecordBatch, String>>) -> Result<(), String> {
        let Self { session, table, scan, damages } = self;
        let table = &session.tables()[*table];
        let (mut scan, mut is_over) = (scan.clone(), scan.limit == Some(0));
        for partition in session.partitions(table, &scan) {
            if is_over {
                break;
            }
            let mut rows = 0;
            let found = session.scan(table, &partition, &scan, &mut |batch| {
                rows += batch.num_rows();
                match sender.send(Ok(batch)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => {
                        is_over = true;
                        ControlFlow::Break(())
                    }
                }
            });
            damages.add(&found.map_err(|why| why.to_string())?);
            if let Some(limit) = &mut scan.limit {
                *limit = limit.saturating_sub(rows);
                is_over |= *limit == 0;
            }
        }
        Ok(())
    }
}
