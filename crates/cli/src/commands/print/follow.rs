// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat print -f`: prints a recording in progress.
//!
//! Each round asks the recorder to write the contents of the rings, and then prints the events up to shortly
//! before the request. At that time every stream is complete up to that point, so lines are printed in time
//! order. If the recorder does not answer, the round prints nothing.
//!
//! A round reads only events that no earlier round has printed, whatever the length of the recording.

use std::ops::ControlFlow;

use lateralis_model::{Damage, Source};
use lateralis_store::{Recording, Tail};
use lateralis_units::Nanos;

use super::{Lines, PrintArgs, has_all, remarks};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::following::{self, Follower, State};
use crate::live_copy::LiveCopy;
use crate::moment::between_while_written;
use crate::selection::Selection;
use crate::values;

/// Progress of the printing, and problems found so far.
struct Following<'a> {
    args: &'a PrintArgs,
    tail: Tail,
    left: u64,
    late: u64,
    damage: Vec<Damage>,
}

/// Prints until the recording is complete.
pub fn run(args: &PrintArgs, live: Option<&LiveCopy>) -> Result<ExitStatus, CliError> {
    let path = following::only_one(&args.inputs.traces)?;
    let tail = Tail::new(path);
    let tail = if args.select.needs_names() { tail } else { tail.without_names() };
    let left = args.limit.unwrap_or(u64::MAX);
    let mut following = Following { args, tail, left, late: 0, damage: Vec::new() };
    let state = following::follow(path, live, &mut following)?;
    following.end(state, live)
}

impl Follower for Following<'_> {
    fn tail(&mut self) -> &mut Tail {
        &mut self.tail
    }

    fn wants_more(&self) -> bool {
        self.left > 0
    }

    fn round(&mut self, recording: Recording, until: Option<Nanos>) -> Result<(), CliError> {
        let select = &self.args.select;
        let classes = &recording.source.trace().stream_classes;
        if until.is_some() && classes.iter().all(|class| class.event_classes.is_empty()) {
            // The event classes are known once the first program has registered.
            return Ok(());
        }
        select.check_patterns(&[recording.source.trace()])?;
        let interval = between_while_written(self.tail.begin(), select.from, select.until)?;
        let selection = Selection::within(select, &recording, has_all(self.args), interval)?;
        let mut lines = Lines::new(self.args, &recording, selection, self.left);
        let mut written = Ok(());
        let progress = self.tail.read(&recording, until, &mut |event, _| {
            if lines.selection.is_within(event.time) {
                written = lines.event(event);
            }
            match written.is_ok() && lines.wants_more() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        written?;
        self.left = lines.finish()?;
        self.late += progress.late;
        self.damage.extend(progress.damage);
        Ok(())
    }
}

impl Following<'_> {
    /// Prints the parts of the summary that concern the recording as a whole.
    fn end(self, state: State, live: Option<&LiveCopy>) -> Result<ExitStatus, CliError> {
        let recording = self.args.inputs.open()?;
        let mut damage = recording.all_damage(self.damage);
        damage.dedup_by(|a, b| (&a.file, a.begin_bytes) == (&b.file, b.begin_bytes));
        remarks(&recording, &damage);
        let say = |line: &str| tell!("{line}");
        if self.late > 0 {
            let events = values::counted(self.late, "event");
            say(&format!("late: {events} came after others of a later time"));
        }
        if state == State::Interrupted {
            say(&following::interrupted(&self.args.inputs.traces[0], live));
        }
        let fine = damage.is_empty()
            && recording.source.faults().is_empty()
            && state != State::Interrupted;
        Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
    }
}
