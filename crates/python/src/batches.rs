// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of a table, made while another library takes them.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use lateralis_model::Damage;
use lateralis_reports::selection::{SelectArgs, Selection};
use lateralis_store::{Recording, Scan, Session};
use lateralis_traces::OpenOptions;

use crate::{opening, panics, reports};

/// Batches that are made before they are asked for.
pub const WAITING: usize = 2;

/// Opened traces, and what their streams share.
pub struct Opened {
    /// The traces.
    pub session: Session,
    /// Where they are.
    paths: Vec<PathBuf>,
    /// The traces with the names of threads that only events contain, opened when these are needed.
    named: OnceLock<Session>,
    /// What was found damaged by streams.
    pub damages: Damages,
    /// The stream that decodes packets of processors, if there is one.
    decoding: Mutex<Weak<()>>,
}

impl Opened {
    /// Of which nothing is read yet.
    pub fn new(session: Session, paths: Vec<PathBuf>) -> Self {
        let (damages, decoding) = (Damages::default(), Mutex::default());
        Self { session, paths, named: OnceLock::new(), damages, decoding }
    }

    /// The traces, with the names of threads that only events contain if these are needed.
    ///
    /// Cost: opens the traces again the first time that names are needed, and reads their events.
    ///
    /// Errors: they cannot be read any more.
    pub fn session(&self, needs_names: bool) -> Result<&Session, String> {
        if !needs_names {
            return Ok(&self.session);
        }
        if let Some(session) = self.named.get() {
            return Ok(session);
        }
        let recording = Recording::open_all(&self.paths, &OpenOptions::default());
        let mut recording = recording.map_err(opening::sentence)?;
        recording.learn_names();
        // Another thread may have been faster.
        Ok(self.named.get_or_init(|| Session::new(vec![recording])))
    }

    /// The traces as one recording, as [`Opened::session`] has them.
    ///
    /// Errors: they cannot be read any more.
    pub fn recording(&self, needs_names: bool) -> Result<&Recording, String> {
        let recording = self.session(needs_names)?.recordings().next();
        recording.ok_or_else(|| "nothing is open: no path: give one at least".to_owned())
    }

    /// Marks a stream of this table as one that decodes packets of processors, if it is. A scan of them keeps
    /// others from it until it ends: two streams of which one waits for its consumer, and the consumer
    /// for the other stream, would never go on.
    ///
    /// Errors: another one is not at its end.
    fn decodes(&self, table: usize) -> Result<Option<Arc<()>>, String> {
        let table = &self.session.tables()[table];
        if table.is_of_events() || !table.name.starts_with("flow_") {
            return Ok(None);
        }
        let mut decoding = self.decoding.lock().unwrap_or_else(PoisonError::into_inner);
        if decoding.upgrade().is_some() {
            let advice = "read that one to its end, or open the trace again";
            return Err(format!(
                "cannot read two at once: {}: another table flow_… of this trace is being read: {advice}",
                table.name
            ));
        }
        let mark = Arc::new(());
        *decoding = Arc::downgrade(&mark);
        Ok(Some(mark))
    }
}

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
        let others = match places {
            1 => String::new(),
            places => format!(" (and {} more)", places - 1),
        };
        Some(format!("rows are missing: {first}{others}: see the table `damage`"))
    }
}

/// A stream of batches. Its thread begins with the first batch: some libraries ask a stream for its schema
/// alone. It ends when the stream is dropped.
pub struct Batches {
    schema: SchemaRef,
    state: State,
    /// Held until the end, of tables that one stream at a time can read.
    mark: Option<Arc<()>>,
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
    opened: Arc<Opened>,
    table: usize,
    scan: Scan,
    /// Which events, of tables of them; all if `None`.
    select: Option<Arc<SelectArgs>>,
}

impl Batches {
    /// Rows of a table, by its index; `schema` is that of the wanted columns.
    pub fn new(
        opened: Arc<Opened>,
        table: usize,
        (scan, select): (Scan, Option<Arc<SelectArgs>>),
        schema: SchemaRef,
        failure: Arc<Mutex<Option<String>>>,
    ) -> Self {
        let state = State::Ready(Reading { opened, table, scan, select });
        Self { schema, state, mark: None, process: process::id(), failure }
    }

    fn begin(&mut self, reading: Reading) -> Result<(), String> {
        self.process = process::id();
        self.mark = reading.opened.decodes(reading.table)?;
        self.state = State::Running(reading.begin()?);
        Ok(())
    }

    fn receive(&mut self) -> Option<Result<RecordBatch, String>> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Ready(reading) => {
                if let Err(why) = self.begin(reading) {
                    return Some(Err(why));
                }
            }
            begun => self.state = begun,
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
            (self.mark, self.state) = (None, State::Over);
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
        // What the thread had locked at the fork stays locked here, and hardware cannot be decoded any more.
        if self.process != process::id() {
            std::mem::forget(std::mem::replace(&mut self.state, State::Over));
            std::mem::forget(self.mark.take());
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
        let Self { opened, table, scan, select } = self;
        let session = &opened.session;
        let table = &session.tables()[*table];
        if let Some(select) = select {
            return run_selected(opened, &table.name, scan, select, sender);
        }
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
            opened.damages.add(&found.map_err(|why| why.to_string())?);
            if let Some(limit) = &mut scan.limit {
                *limit = limit.saturating_sub(rows);
                is_over |= *limit == 0;
            }
        }
        Ok(())
    }
}

/// Makes rows of the selected events.
fn run_selected(
    opened: &Opened,
    table: &str,
    scan: &Scan,
    select: &SelectArgs,
    sender: &SyncSender<Result<RecordBatch, String>>,
) -> Result<(), String> {
    let session = opened.session(select.needs_names())?;
    let of = (session.table(table), session.recordings().next());
    let (Some(table), Some(recording)) = of else {
        return Err(format!("cannot read: {table}: the trace has changed: open it again"));
    };
    let selection = Selection::within(select, recording, true, scan.interval);
    let selection = selection.map_err(|why| reports::in_python(&why.to_string()))?;
    let found =
        session.selected_rows(table, scan, &|event| selection.contains(event), &mut |batch| {
            match sender.send(Ok(batch)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
    opened.damages.add(&found.map_err(|why| why.to_string())?);
    selection.finish().map_err(|why| reports::in_python(&why.to_string()))
}
