// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Columns of a row besides its fields.

use std::borrow::Cow;

use lateralis_model::StreamIndex;

use super::{About, Reading};
use crate::tables::build::{Builder, TooLong};
use crate::tables::opened::Opened;
use crate::tables::shape::Common;

/// Adds a column of a row besides its fields.
pub fn common_cell(
    builder: &mut Builder,
    common: Common,
    opened: &Opened,
    reading: &Reading<'_>,
    about: &About<'_>,
) -> Result<(), TooLong> {
    let (pid, tid) = match about.writer {
        Some(writer) => (Some(writer.pid), Some(writer.tid)),
        None => (None, None),
    };
    let process = || pid.and_then(|pid| opened.owners().process(pid));
    let thread = || tid.and_then(|tid| opened.owners().thread(tid));
    match common {
        Common::Time => builder.int(about.time.0),
        Common::Recording => {
            return builder.text(opened.label_of(StreamIndex(about.stream)));
        }
        Common::Stream => builder.int(i64::from(about.stream)),
        Common::Cpu => builder.int(about.cpu.map(i64::from)),
        Common::Pid => builder.int(about.writer.map(|writer| i64::from(writer.pid))),
        Common::Tid => builder.int(about.writer.map(|writer| i64::from(writer.tid))),
        Common::Packet => builder.int(about.packet.map(|packet| packet as i64)),
        Common::Process => return named(builder, pid, &process, about),
        Common::Thread => return named(builder, tid, &thread, about),
        Common::Application => {
            return match reading.label {
                Some(label) => builder.text(label),
                None => named(builder, pid, &process, about),
            };
        }
        Common::Class => {
            return builder.word_of(reading.number, || Some(Cow::Borrowed(reading.name)));
        }
        Common::Phase => {
            return builder.word_of(reading.number, || reading.phase.map(Cow::Borrowed));
        }
        Common::Fields => builder.null(),
    }
    Ok(())
}

/// Adds the name of a process or thread: the known one, otherwise the one in the event.
fn named<'o>(
    builder: &mut Builder,
    number: Option<u32>,
    name: &dyn Fn() -> Option<&'o str>,
    about: &About<'_>,
) -> Result<(), TooLong> {
    match (number, about.command) {
        // The name in the event may differ each time.
        (_, Some(command)) => match name() {
            Some(name) => builder.text(name),
            None => builder.text(command.as_text().as_deref()),
        },
        (Some(number), None) => builder.word_of(number.into(), || name().map(Cow::Borrowed)),
        (None, None) => {
            builder.null();
            Ok(())
        }
    }
}
