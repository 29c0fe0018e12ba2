// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opening traces, with all tables that can be made of them.

use std::path::PathBuf;
use std::sync::Arc;

use lateralis_images::ImageFiles;
use lateralis_model::{LossCause, Source};
use lateralis_store::flow::Recorded;
use lateralis_store::places::{Images, Places};
use lateralis_store::{Recording, Session};
use lateralis_traces::{Error, OpenOptions, hardware};

/// Bytes that a compressed recording of hardware may have.
const PACKED_BYTES: u64 = 4 << 30;

/// Traces as one, and what users should know of them, each with whether it is a loss.
///
/// Errors: a sentence: what, where, what to do.
pub fn open(paths: &[PathBuf]) -> Result<(Session, Vec<(bool, String)>), String> {
    let recording = Recording::open_all(paths, &OpenOptions::default()).map_err(sentence)?;
    let remarks = remarks(&recording);
    let files = ImageFiles::new(None);
    let mut flow = None;
    if let [path] = paths {
        let of = hardware::read(path, PACKED_BYTES).map_err(sentence)?;
        if !of.buffers.is_empty() && !of.is_raw {
            let places = Places::new(files.clone(), recording.source.trace());
            let packets = (of.buffers, of.clocks);
            flow = Some(Recorded::of(&recording.source, places, packets, &of.code));
        }
    }
    let open = move || -> Box<dyn Images> { Box::new(files.clone()) };
    let session = Session::new(vec![recording]);
    let session = match flow {
        Some(flow) => session.with_flow(flow),
        None => session,
    };
    Ok((session.with_stacks(Arc::new(open)), remarks))
}

/// Why a trace cannot be opened: what, where, what to do.
pub fn sentence(error: Error) -> String {
    match error {
        Error::Io { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
            let path = path.display();
            format!("cannot read: {path}: no such file or directory: check the name")
        }
        Error::Io { path, source } => format!("cannot read: {}: {source}", path.display()),
        other => other.to_string(),
    }
}

/// What users should know of a recording, each with whether it is a loss.
pub fn remarks(recording: &Recording) -> Vec<(bool, String)> {
    let mut remarks = Vec::new();
    let losses = recording.source.losses();
    let (mut events, mut packets) = (0_u64, 0_u64);
    for loss in losses {
        let count = match loss.cause {
            LossCause::Packets => &mut packets,
            _ => &mut events,
        };
        *count = count.saturating_add(loss.count.unwrap_or(1));
    }
    let lost = match (events, packets) {
        (0, 0) => None,
        (events, 0) => Some(format!("{events} events")),
        (0, packets) => Some(format!("{packets} packets of events")),
        (events, packets) => Some(format!("{events} events and {packets} packets of events")),
    };
    let place = recording.path.display();
    if let Some(lost) = lost {
        let more = if losses.iter().any(|loss| loss.count.is_none()) { " or more" } else { "" };
        let advice = "see the column `quality` and the table `losses`";
        remarks.push((true, format!("events were lost: {place}: {lost}{more}: {advice}")));
    }
    let source = &recording.source;
    let damage = source.damage().iter().map(ToString::to_string);
    let mut damage = damage.chain(source.faults());
    if let Some(first) = damage.next() {
        let others = match damage.count() {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        let advice = "what is healthy is read: see the table `damage`";
        remarks.push((false, format!("the trace is damaged: {place}: {first}{others}: {advice}")));
    }
    let not_read = recording.not_traces.iter().map(|why| format!("not read: {why}"));
    remarks.extend(not_read.chain(recording.clocks.iter().cloned()).map(|text| (false, text)));
    remarks
}
