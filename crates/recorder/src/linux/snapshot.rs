// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The current contents of a running program's rings, as a recording. Changes nothing in
//! the program, and needs no recorder; a running recorder is not affected.

use std::path::Path;

use lateralis_ring::ReadPolicy;

use super::area::LiveArea;
use super::discovery::{Target, find, open};
use super::output::Output;
use super::recording::Recording;
use super::session::Summary;
use crate::error::Error;
use crate::options::CtfVersion;
use crate::report::Origin;

/// Writes the current contents of a target's rings to the directory `output`.
///
/// In discard mode these are the packets that no recorder has read yet and those read last; in overwrite mode
/// the newest packets. Packets that writers reuse while they are copied are left out.
///
/// Errors: no process of the target can be traced, it has no rings, or the output cannot be created.
pub fn snapshot(
    dir: Option<&Path>,
    target: &Target,
    output: &Path,
    ctf_version: CtfVersion,
) -> Result<Summary, Error> {
    let found = find(dir, target)?;
    let with_rings: Vec<_> = found.iter().filter(|area| area.has_rings).collect();
    if with_rings.is_empty() {
        let pid = found.first().map_or(0, |area| area.pid);
        return Err(Error::NotRecorded { target: pid.to_string() });
    }
    let output = Output::create(output, None)?;
    let mut recording = Recording::new(output, ctf_version, Origin::Snapshot);
    recording.describe_as_part();
    for info in with_rings {
        let area = open(&info.path)?;
        let kind = LiveArea::clock_kind(&area.header).filter(|_| !area.header.swapped);
        let clock_error =
            Error::Clock { path: info.path.clone(), clock_kind: area.header.clock_kind };
        let Some(kind) = kind else { return Err(clock_error) };
        if recording.use_live_clock(kind).kind != kind {
            return Err(clock_error);
        }
        let parts = (Some(area.file), area.mapping);
        let mut live = LiveArea::new(&mut recording, &info.path, parts, ReadPolicy::Observe)?;
        live.refresh_processes();
        live.drain_to_the_end(&mut recording);
        live.finish(&mut recording);
    }
    let output = recording.output.root().to_owned();
    let report = recording.end()?;
    Ok(Summary { output, report, exit_status: None })
}
