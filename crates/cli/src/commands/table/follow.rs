// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat table --follow`: prints rows of events while they are recorded.
//!
//! Rows are printed in time order. Each round ends at a time up to which all events have been written. Times
//! use the clock relation known at that point; a finished recording has a slightly more accurate one.

use std::io;
use std::ops::ControlFlow;

use lateralis_store::{Recording, Scan, Session, TableFormat, TableWriter, Tail};
use lateralis_units::Nanos;

use super::{TableArgs, columns, explain, format, style, unknown_table};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::following::{self, Follower, State};
use crate::live_copy::LiveCopy;
use crate::moment::between_while_written;
use crate::output;

/// Progress of the output, and problems found so far.
struct Following<'a> {
    args: &'a TableArgs,
    name: &'a str,
    tail: Tail,
    /// Moved into the writer once the first table defines the columns.
    out: Option<&'a mut dyn io::Write>,
    writer: Option<TableWriter<'a>>,
    left: usize,
    late: u64,
    is_fine: bool,
}

/// Writes rows until the recording is complete.
pub fn run(args: &TableArgs, name: &str, live: Option<&LiveCopy>) -> Result<ExitStatus, CliError> {
    let path = following::only_one(&args.inputs.traces)?;
    let format = format(args)?;
    let is_file = args.output.as_deref().is_some_and(|path| path.as_os_str() != "-");
    if is_file || matches!(format, TableFormat::Parquet | TableFormat::Arrow) {
        let advice = "rows are shown as they come: to standard output, as csv, jsonl or arrows";
        return Err(CliError::new("cannot follow into a file", name, advice));
    }
    let left = args.limit.unwrap_or(usize::MAX);
    let mut stdout = output::data(style(format));
    let mut following = Following {
        args,
        name,
        tail: Tail::new(path),
        out: Some(&mut stdout),
        writer: None,
        left,
        late: 0,
        is_fine: true,
    };
    let state = following::follow(path, live, &mut following)?;
    if let Some(writer) = following.writer.take() {
        writer.finish()?;
    }
    Ok(following.end(state, live))
}

impl Follower for Following<'_> {
    fn tail(&mut self) -> &mut Tail {
        &mut self.tail
    }

    fn wants_more(&self) -> bool {
        self.left > 0
    }

    fn round(&mut self, recording: Recording, until: Option<Nanos>) -> Result<(), CliError> {
        let session = Session::new(vec![recording]);
        let Some(table) = session.table(self.name) else {
            // The first event of the class may still arrive.
            return if until.is_some() { Ok(()) } else { Err(unknown_table(&session, self.name)) };
        };
        if !table.is_of_events() {
            let advice = "only events are known for certain while a recording goes on: \
                follow `events` or a kind of event";
            return Err(CliError::new("cannot follow the table", self.name, advice));
        }
        let scan = Scan {
            columns: columns(table, &self.args.column)?,
            interval: between_while_written(self.tail.begin(), self.args.from, self.args.until)?,
            cpus: (!self.args.cpu.is_empty()).then(|| self.args.cpu.clone()),
            classes: None,
            limit: Some(self.left),
            any_order: false,
            weighs: None,
        };
        if let Some(out) = self.out.take() {
            let format = format(self.args)?;
            self.writer = Some(TableWriter::new(table, scan.columns.as_deref(), format, out)?);
        }
        let (Some(writer), Some(recording)) = (&mut self.writer, session.recordings().next())
        else {
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
            tell!("damage    {damage}");
        }
        Ok(())
    }
}

impl Following<'_> {
    /// Prints warnings that concern the table as a whole.
    fn end(&self, state: State, live: Option<&LiveCopy>) -> ExitStatus {
        let say = |line: &str| tell!("{line}");
        if self.late > 0 {
            let events = crate::values::counted(self.late, "event");
            say(&format!("late      {events} came after others of a later time"));
        }
        if state == State::Interrupted {
            say(&following::interrupted(&self.args.inputs.traces[0], live));
        }
        let fine = self.is_fine && state != State::Interrupted;
        if fine { ExitStatus::Fine } else { ExitStatus::Problems }
    }
}
