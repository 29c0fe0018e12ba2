// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat table --follow`: the rows of events while they are recorded.
//!
//! Rows come in the order of time, each round up to a moment up to which all that happened
//! has been written. Times are as the clock is known by then: a finished recording knows it
//! a little better.

use std::io::{self, Write as _};
use std::ops::ControlFlow;

use lateralis_model::Interval;
use lateralis_store::{Recording, Scan, Session, TableFormat, TableWriter, Tail};
use lateralis_units::Nanos;

use super::{TableArgs, columns, explain, format, unknown_table};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::following::{self, State};
use crate::moment::Moment;

/// What was written, and what was found on the way.
struct Following<'a> {
    args: &'a TableArgs,
    name: &'a str,
    tail: Tail,
    left: usize,
    late: u64,
    is_fine: bool,
}

/// Writes rows until the recording is complete.
pub fn run(args: &TableArgs, name: &str) -> Result<ExitStatus, CliError> {
    let [path] = args.inputs.traces.as_slice() else {
        let advice = "follow one recording at a time";
        return Err(CliError::new("cannot follow", "several recordings", advice));
    };
    let format = format(args)?;
    let is_file = args.output.as_deref().is_some_and(|path| path.as_os_str() != "-");
    if is_file || matches!(format, TableFormat::Parquet | TableFormat::Arrow) {
        let advice = "rows are shown as they come: to standard output, as csv, jsonl or arrows";
        return Err(CliError::new("cannot follow into a file", name, advice));
    }
    let left = args.limit.unwrap_or(usize::MAX);
    let tail = Tail::new(path);
    let mut following = Following { args, name, tail, left, late: 0, is_fine: true };
    let mut stdout = io::stdout().lock();
    let out: &mut dyn io::Write = &mut stdout;
    let mut out = Some(out);
    let mut writer = None;
    loop {
        let state = following::state(path)?;
        let goes_on = matches!(state, State::UpTo(_) | State::Busy);
        if state != State::Busy {
            let until = match state {
                State::UpTo(time) => Some(time),
                _ => None,
            };
            match following.tail.open() {
                Ok(recording) => following.round(recording, until, (&mut out, &mut writer))?,
                // Before the first program there is no trace yet.
                Err(_) if goes_on => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !goes_on || following.left == 0 {
            if let Some(writer) = writer.take() {
                writer.finish()?;
            }
            return Ok(following.end(state));
        }
        following::wait();
    }
}

impl Following<'_> {
    /// Writes what has come.
    fn round<'o>(
        &mut self,
        recording: Recording,
        until: Option<Nanos>,
        (out, writer): (&mut Option<&'o mut dyn io::Write>, &mut Option<TableWriter<'o>>),
    ) -> Result<(), CliError> {
        let session = Session::new(vec![recording]);
        let Some(table) = session.table(self.name) else {
            // Its first event may come yet.
            return if until.is_some() { Ok(()) } else { Err(unknown_table(&session, self.name)) };
        };
        if !table.is_of_events() {
            let advice = "only events are known for certain while a recording goes on: \
                follow `events` or a kind of event";
            return Err(CliError::new("cannot follow the table", self.name, advice));
        }
        let begin = self.tail.begin();
        let moment = |moment: &Option<Moment>| moment.map(|moment| moment.nanos(begin));
        let scan = Scan {
            columns: columns(table, &self.args.column)?,
            interval: Interval { begin: moment(&self.args.from), end: moment(&self.args.until) },
            cpus: (!self.args.cpu.is_empty()).then(|| self.args.cpu.clone()),
            classes: None,
            limit: Some(self.left),
            any_order: false,
            weighs: None,
        };
        if let Some(out) = out.take() {
            let format = format(self.args)?;
            *writer = Some(TableWriter::new(table, scan.columns.as_deref(), format, out)?);
        }
        let (Some(writer), Some(recording)) = (writer, session.recordings().next()) else {
            return Ok(());
        };
        let (tail, mut progress) = (&mut self.tail, None);
        let (left, mut written) = (&mut self.left, Ok(()));
        let rows = session.rows_of(
            table,
            &scan,
            &mut |see| progress = Some(tail.read(recording, until, see)),
            &mut |batch| {
                *left = left.saturating_sub(batch.num_rows());
                written = writer.batch(&batch);
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        );
        written?;
        rows.map_err(|error| explain(lateralis_store::ExportError::Store(error), None))?;
        writer.flush()?;
        let progress = progress.unwrap_or_default();
        self.late += progress.late;
        self.is_fine &= progress.damage.is_empty();
        for damage in progress.damage {
            // Nobody is left to tell if standard error is closed.
            let _ = writeln!(io::stderr(), "damage    {damage}");
        }
        Ok(())
    }

    /// What rows alone do not tell.
    fn end(&self, state: State) -> ExitStatus {
        let say = |line: &str| {
            let _ = writeln!(io::stderr(), "{line}");
        };
        if self.late > 0 {
            let events = crate::values::counted(self.late, "event");
            say(&format!("late      {events} came after others of a later time"));
        }
        if state == State::Interrupted {
            say(&following::interrupted(&self.args.inputs.traces[0]));
        }
        let fine = self.is_fine && state != State::Interrupted;
        if fine { ExitStatus::Fine } else { ExitStatus::Problems }
    }
}
