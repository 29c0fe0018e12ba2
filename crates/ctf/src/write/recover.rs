// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The healthy part of a damaged trace as a trace of its own.

use std::io;

use lateralis_model::{EnvValue, Source};

use super::{Options, Report, Sink, write};

/// Writes everything of `source` that can be read, as a trace without damage.
///
/// Nothing is passed over in silence: [`Report::damage`] lists what could not be
/// read with file, bytes, reason and time; the environment of the copy says
/// the same in `damage_1` and so on, and in `recovered_from` of what format it
/// was. Losses that the producer counted stay what they were; packets whose
/// numbers are missing because they were damaged count as lost packets.
///
/// Cost: that of [`write()`].
///
/// # Errors
/// Those of the sink.
pub fn recover(source: &dyn Source, sink: &mut dyn Sink, options: &Options) -> io::Result<Report> {
    let mut options = options.clone();
    let from = EnvValue::Text(source.format().to_owned());
    options.environment.push(("recovered_from".to_owned(), from));
    write(source, sink, &options)
}
