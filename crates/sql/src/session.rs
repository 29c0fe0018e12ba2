// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs texts of statements in sequence, each limited and cancellable, and writes their results.

use std::future::Future;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::sql::parser::Statement;
use futures::StreamExt;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use crate::engine::{Answer, Engine};
use crate::fault::Fault;
use crate::output::{Format, Sink, is_broken_pipe};
use crate::{memory, panics};

/// Time that a session waits for its threads when it ends.
const END_WAIT: Duration = Duration::from_millis(500);

/// Number of batches of a result that wait to be written.
const WAITING: usize = 1;
/// Interval at which memory is checked while a query runs.
const LOOK: Duration = Duration::from_millis(10);

/// Cancellation of a query: by Ctrl-C, or by the memory check.
#[derive(Debug, Default)]
pub struct Cancel {
    /// [`NOBODY`], [`MEMORY`] or [`USER`].
    asked: AtomicU8,
    wake: Notify,
}

const NOBODY: u8 = 0;
const MEMORY: u8 = 1;
const USER: u8 = 2;

impl Cancel {
    /// Requests cancellation; returns true if that had already been requested.
    pub fn ask(&self) -> bool {
        let before = self.asked.swap(USER, Ordering::SeqCst);
        self.wake();
        before == USER
    }

    /// Requests cancellation for lack of memory; an earlier request has precedence.
    fn refuse(&self) {
        let _ = self.asked.compare_exchange(NOBODY, MEMORY, Ordering::SeqCst, Ordering::SeqCst);
        self.wake();
    }

    /// Clears the request.
    pub fn reset(&self) {
        self.asked.store(NOBODY, Ordering::SeqCst);
    }

    fn wake(&self) {
        self.wake.notify_waiters();
        self.wake.notify_one();
    }

    async fn asked(&self) -> Stop {
        loop {
            match self.asked.load(Ordering::SeqCst) {
                NOBODY => self.wake.notified().await,
                MEMORY => return Fault::new(TOO_LARGE).into(),
                _ => return Stop::Cancelled,
            }
        }
    }
}

const TOO_LARGE: &str = "out of memory for this query: its texts, lists and results need too \
                         much: ask for less, or give more with --memory";

/// Checks memory until it is dropped.
struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn begin(cancel: &Arc<Cancel>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (ended, cancel) = (Arc::clone(&is_over), Arc::clone(cancel));
        let look = move || {
            while !ended.load(Ordering::SeqCst) {
                if memory::is_over() {
                    return cancel.refuse();
                }
                thread::park_timeout(LOOK);
            }
        };
        // Without this thread the allocator still enforces its second limit.
        let thread = thread::Builder::new().name("lat-sql memory".to_owned()).spawn(look).ok();
        Self { is_over, thread }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Aborts a task when its handle is dropped.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reason why a text was not run to its end.
#[derive(Debug)]
pub enum Stop {
    /// An error in it, or exceeded limits.
    Fault(Fault),
    /// It was cancelled.
    Cancelled,
    /// The reader of the results closed the pipe.
    NobodyReads,
    /// Writing the results failed.
    Output(ArrowError),
}

impl Stop {
    /// Writing failed with an error of the system.
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

/// Opened traces, an engine over them, and its threads.
pub struct Session {
    /// The engine.
    pub engine: Engine,
    /// `None` only during drop.
    runtime: Option<Runtime>,
    /// Cancels a query.
    pub cancel: Arc<Cancel>,
}

/// Destination of results.
pub struct Place<'a> {
    /// Format of results.
    pub format: Format,
    /// Width of the terminal, if it is one.
    pub columns: Option<usize>,
    /// Whether it is a file of its own.
    pub is_file: bool,
    /// Opens the destination of the next result.
    pub open: &'a mut dyn FnMut() -> std::io::Result<Box<dyn Write + Send>>,
}

impl Session {
    /// A session with these threads.
    pub fn new(engine: Engine, runtime: Runtime) -> Self {
        Self { engine, runtime: Some(runtime), cancel: Arc::new(Cancel::default()) }
    }

    /// Runs the statements of a text and writes their results. Returns the number of rows of the last
    /// one.
    pub fn run(&self, text: &str, place: &mut Place<'_>) -> Result<u64, Stop> {
        let fault = |error: DataFusionError| Stop::Fault(Fault::of(&error, &self.engine, text));
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
        let Some(runtime) = &self.runtime else {
            return Err(Stop::Cancelled);
        };
        let _watch = Watch::begin(&self.cancel);
        let sql = statement.to_string();
        let fault = |error: DataFusionError| Stop::Fault(Fault::of(&error, &self.engine, &sql));
        let answer = self.wait(runtime, self.engine.run(statement))?.map_err(fault)?;
        match answer {
            Answer::Done => Ok(0),
            Answer::Rows(stream) => self.write(runtime, (stream, &sql), place),
        }
    }

    /// Writes the rows of a statement; returns their number.
    fn write(
        &self,
        runtime: &Runtime,
        (stream, sql): (SendableRecordBatchStream, &str),
        place: &mut Place<'_>,
    ) -> Result<u64, Stop> {
        let fault = |error: DataFusionError| Stop::Fault(Fault::of(&error, &self.engine, sql));
        let target = (place.open)().map_err(ArrowError::from)?;
        let schema = stream.schema();
        let mut sink = Sink::new(place.format, target, &schema, place.columns, place.is_file)?;
        // A separate task: one that never yields does not prevent cancellation.
        let (sender, mut receiver) = mpsc::channel(WAITING);
        let task = runtime.spawn(send(stream, sender));
        let _task = Task(task.abort_handle());
        while let Some(batch) = self.wait(runtime, receiver.recv())? {
            sink.write(&batch.map_err(fault)?)?;
        }
        match self.wait(runtime, task)? {
            Ok(()) => Ok(sink.finish()?),
            Err(why) if why.is_panic() => Err(Fault::new(panics::take()).into()),
            Err(_) => Err(Stop::Cancelled),
        }
    }

    /// Waits for work of the engine, unless it is cancelled.
    ///
    /// Errors: cancelled; the engine panicked.
    fn wait<T>(&self, runtime: &Runtime, work: impl Future<Output = T>) -> Result<T, Stop> {
        let work = async {
            tokio::select! {
                biased;
                why = self.cancel.asked() => Err(why),
                done = work => Ok(done),
            }
        };
        // Anything the engine leaves unfinished belongs to this statement only.
        let ran = catch_unwind(AssertUnwindSafe(|| runtime.block_on(work)));
        ran.unwrap_or_else(|_| Err(Fault::new(panics::take()).into()))
    }
}

async fn send(
    mut stream: SendableRecordBatchStream,
    sender: mpsc::Sender<Result<RecordBatch, DataFusionError>>,
) {
    while let Some(batch) = stream.next().await {
        let is_last = batch.is_err();
        if sender.send(batch).await.is_err() || is_last {
            break;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A decoder whose receiver is gone must not keep the user waiting.
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::num::NonZeroUsize;

    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::{FutureExt, stream};
    use lateralis_store::Session as Traces;

    use super::*;
    use crate::answers::Lat;
    use crate::engine::Limits;

    fn session() -> Session {
        panics::install();
        let limits = Limits { memory_bytes: 64 << 20, cores: NonZeroUsize::MIN };
        let engine = Engine::new(Arc::new(Traces::new(Vec::new())), Lat::default(), limits);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(panics::THREADS)
            .build();
        Session::new(engine.unwrap(), runtime.unwrap())
    }

    /// Message of a fault.
    fn said(outcome: Result<u64, Stop>) -> String {
        match outcome {
            Err(Stop::Fault(fault)) => fault.message,
            other => panic!("{other:?}"),
        }
    }

    /// Runs a function on a thread whose panics are reported as errors.
    fn in_a_thread_of_the_engine(run: impl FnOnce() + Send + 'static) {
        let thread = thread::Builder::new().name(panics::THREADS.to_owned()).spawn(run);
        thread.unwrap().join().unwrap();
    }

    fn ask(session: &Session, sql: &str) -> Result<u64, Stop> {
        let mut open = || Ok(Box::new(io::sink()) as Box<dyn Write + Send>);
        let (format, columns) = (Format::Csv, None);
        session.run(sql, &mut Place { format, columns, is_file: false, open: &mut open })
    }

    #[test]
    fn a_panic_ends_its_statement_and_not_the_session() {
        in_a_thread_of_the_engine(|| {
            let session = session();
            let runtime = session.runtime.as_ref().unwrap();
            // During planning.
            let planning = async { panic!("never {} planned", "so") };
            let planned: Result<u64, Stop> = session.wait(runtime, planning);
            let words = said(planned);
            assert!(
                words.starts_with("the engine failed: never so planned (src/session.rs:"),
                "{words}"
            );
            assert!(words.contains("please report"), "{words}");
            // During execution, after its first rows.
            let rows: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
            let rows = RecordBatch::try_from_iter([("n", rows)]).unwrap();
            let schema = rows.schema();
            let ends = async { panic!("in the middle\nof a line") }.into_stream();
            let all = stream::iter([Ok(rows)]).chain(ends);
            let all = Box::pin(RecordBatchStreamAdapter::new(schema, all));
            let mut open = || Ok(Box::new(io::sink()) as Box<dyn Write + Send>);
            let (format, columns) = (Format::Csv, None);
            let mut place = Place { format, columns, is_file: false, open: &mut open };
            let words = said(session.write(runtime, (all, ""), &mut place));
            assert!(words.starts_with("the engine failed: in the middle (src/"), "{words}");
            assert_eq!(ask(&session, "SELECT 6 * 7").unwrap(), 1);
        });
    }

    #[test]
    fn whoever_asks_first_for_the_end_is_heard() {
        in_a_thread_of_the_engine(|| {
            let session = session();
            session.cancel.refuse();
            let words = said(ask(&session, "SELECT 1"));
            assert!(words.starts_with("out of memory for this query"), "{words}");
            session.cancel.reset();
            assert!(!session.cancel.ask());
            session.cancel.refuse();
            assert!(matches!(ask(&session, "SELECT 1"), Err(Stop::Cancelled)));
            assert!(session.cancel.ask(), "asked twice");
            session.cancel.reset();
            assert_eq!(ask(&session, "SELECT 1").unwrap(), 1);
        });
    }
}
