// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options that choose events, the same everywhere; warnings of the choice go to standard error.

use lateralis_model::{Interval, Trace};
pub use lateralis_reports::selection::{SelectArgs, Selected, Selection};
use lateralis_store::Recording;

use crate::error::CliError;
use crate::moment::{self, Moment};

/// See [`Selection::new`].
///
/// Errors: as there.
pub fn select<'r>(
    args: &SelectArgs,
    recording: &'r Recording,
    all: bool,
) -> Result<Selection<'r>, CliError> {
    let selection = Selection::new(args, recording, all)?;
    if let Some(warning) = selection.warning() {
        tell!("warning: {warning}");
    }
    Ok(selection)
}

/// Warns of fields in the expressions that no event of the trace has.
pub fn warn_of_unknown_fields(args: &SelectArgs, trace: &Trace) {
    for warning in args.unknown_fields(trace) {
        tell!("warning: {warning}");
    }
}

/// The time from one moment to another, with a warning if a recording has nothing of it.
pub fn between(extent: Interval, from: Option<Moment>, until: Option<Moment>) -> Interval {
    let (interval, warning) = moment::between(extent, from, until);
    if let Some(warning) = warning {
        tell!("warning: {warning}");
    }
    interval
}
