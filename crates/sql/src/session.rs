// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running texts of statements: one after the other, each bounded and cancellable, with
//! their results on a target.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use datafusion::sql::parser::Statement;
use futures::StreamExt;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::engine::{Answer, Engine};
use crate::fault::Fault;
use crate::output::{Format, Sink, is_broken_pipe};

/// How long a session waits for its threads when it ends.
const END_WAIT: Duration = Duration::from_millis(500);

/// Somebody who may want a query to end: Ctrl-C.
#[derive(Debug, Default)]
pub struct Cancel {
    asked: AtomicBool,
    wake: Notify,
}

impl Cancel {
    /// Asks for the end of what runs; true if that had been asked for already.
    pub fn ask(&self) -> bool {
        let before = self.asked.swap(true, Ordering::SeqCst);
        self.wake.notify_waiters();
        self.wake.notify_one();
        before
    }

    /// Forgets that it was asked for.
    pub fn reset(&self) {
        self.asked.store(false, Ordering::SeqCst);
    }

    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    async fn asked(&self) {
        while !self.is_asked() {
            self.wake.notified().await;
        }
    }
}

/// How a text ended that could not be run to its end.
#[derive(Debug)]
pub enum Stop {
    /// Something is wrong with it, or it needs too much.
    Fault(Fault),
    /// Somebody asked for its end.
    Cancelled,
    /// Whoever reads the results went away.
    NobodyReads,
    /// Results could not be written.
    Output(ArrowError),
}

impl Stop {
    /// Results could not be written, in the system's words.
    pub fn from_io(error: std::io::Error) -> Self {
        ArrowError::from(error).into()
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<ArrowError> for Stop {
    fn from(error: ArrowError) -> Self {
        if is_broken_pipe(&error) { Self::NobodyReads } else { Self::Output(error) }
    }
}

/// Opened traces, an engine over them, and the threads it runs on.
pub struct Session {
    /// The engine.
    pub engine: Engine,
    /// None only while it is dropped.
    runtime: Option<Runtime>,
    /// How to end a query early.
    pub cancel: Arc<Cancel>,
}

/// Where results go.
pub struct Place<'a> {
    /// How they are written.
    pub format: Format,
    /// Width of the terminal, if it is one.
    pub columns: Option<usize>,
    /// Whether it is a file of its own.
    pub is_file: bool,
    /// Makes the target of the next result.
    pub open: &'a mut dyn FnMut() -> std::io::Result<Box<dyn Write + Send>>,
}

impl Session {
    /// A session on these threads.
    pub fn new(engine: Engine, runtime: Runtime) -> Self {
        Self { engine, runtime: Some(runtime), cancel: Arc::new(Cancel::default()) }
    }

    /// Runs the statements of a text and writes their results. Returns how many rows
    /// the last one had.
    pub fn run(&self, text: &str, place: &mut Place<'_>) -> Result<u64, Stop> {
        let fault = |error: DataFusionError| Stop::Fault(Fault::of(&error, &self.engine));
        let statements = self.engine.parse(text).map_err(fault)?;
        if statements.is_empty() {
            return Err(Fault::new("nothing to run: no statement").into());
        }
        let results = statements.iter().filter(|statement| gives_rows(statement)).count();
        if results > 1 && !place.format.can_repeat() {
            let message = "one statement at a time: this format holds one result";
            return Err(Fault::new(message).into());
        }
        let mut rows = 0;
        for statement in statements {
            rows = self.one(statement, place)?;
        }
        Ok(rows)
    }

    fn one(&self, statement: Statement, place: &mut Place<'_>) -> Result<u64, Stop> {
        let fault = |error: DataFusionError| Stop::Fault(Fault::of(&error, &self.engine));
        let Some(runtime) = &self.runtime else {
            return Err(Stop::Cancelled);
        };
        let (work, cancelled) = (self.engine.run(statement), self.cancel.asked());
        let answer = runtime.block_on(async {
            tokio::select! {
                biased;
                () = cancelled => Err(Stop::Cancelled),
                answer = work => answer.map_err(fault),
            }
        })?;
        let mut stream = match answer {
            Answer::Done => return Ok(0),
            Answer::Rows(stream) => stream,
        };
        let target = (place.open)().map_err(ArrowError::from)?;
        let schema = stream.schema();
        let mut sink = Sink::new(place.format, target, &schema, place.columns, place.is_file)?;
        loop {
            let batch = runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = self.cancel.asked() => Err(Stop::Cancelled),
                    batch = stream.next() => Ok(batch),
                }
            })?;
            match batch {
                Some(batch) => sink.write(&batch.map_err(fault)?)?,
                None => return Ok(sink.finish()?),
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A decoder that nobody listens to any more must not keep the user waiting.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(END_WAIT);
        }
    }
}

fn gives_rows(statement: &Statement) -> bool {
    use datafusion::sql::sqlparser::ast;
    let Statement::Statement(statement) = statement else {
        return true;
    };
    !matches!(statement.as_ref(), ast::Statement::CreateView { .. } | ast::Statement::Drop { .. })
}
