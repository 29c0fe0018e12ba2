// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starts, stops and flushes running programs: through their recorder if they have one, else
//! in their areas directly, as flight recorders.

use std::path::Path;

use lateralis_ring::RingMode;
use lateralis_ring::abi::header;

use super::control::{Answer, Request, ask};
use super::dirs::area_dir;
use super::discovery::{AreaInfo, Target, find, open, refuse_if};
use super::enable;
use super::rings::{RingWish, ensure_rings};
use super::sites;
use crate::error::Error;
use crate::options::RecordOptions;

/// Result of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Controlled {
    /// A recorder executed it.
    ByRecorder {
        /// Its process id.
        recorder_pid: u32,
        /// Its response.
        answer: Answer,
    },
    /// The program has no recorder: its rings were started or stopped as a flight recorder.
    FlightRecorder {
        /// Its process id.
        pid: u32,
    },
}

/// Sends a request to all recorders of a target.
///
/// Errors: the target is not being recorded, or a recorder rejects the request or does not respond.
pub fn request(
    dir: Option<&Path>,
    target: &Target,
    request: Request,
) -> Result<Vec<Controlled>, Error> {
    let found = find(dir, target)?;
    let answers = ask_recorders(dir, &found, request)?;
    if answers.is_empty() {
        let target = found.first().map_or(0, |area| area.pid).to_string();
        return Err(Error::NotRecorded { target });
    }
    Ok(answers)
}

fn ask_recorders(
    dir: Option<&Path>,
    areas: &[AreaInfo],
    request: Request,
) -> Result<Vec<Controlled>, Error> {
    let mut pids: Vec<u32> = areas.iter().filter_map(|area| area.recorder_pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let dir = area_dir(dir);
    pids.into_iter()
        .map(|recorder_pid| {
            let answer = ask(&dir, recorder_pid, request)?;
            Ok(Controlled::ByRecorder { recorder_pid, answer })
        })
        .collect()
}

/// Enables events: through a recorder those that it records, else those of `options.enable`
/// in rings of overwrite mode, which [`super::snapshot`] reads later. Without a recorder the
/// rings remain until the program ends.
///
/// Errors: not traceable, or no space for rings; then nothing was changed.
pub fn start(
    dir: Option<&Path>,
    target: &Target,
    options: &RecordOptions,
) -> Result<Vec<Controlled>, Error> {
    let found = find(dir, target)?;
    let mut done = ask_recorders(dir, &found, Request::Start)?;
    let wish = RingWish {
        buffer_bytes: options.buffer_bytes,
        packet_bytes: options.packet_bytes,
        cap_bytes: options.cap_bytes,
        mode: RingMode::Overwrite,
    };
    for info in found.iter().filter(|area| area.recorder_pid.is_none()) {
        let path = &info.path;
        let area = open(path)?;
        let mapping = ensure_rings(path, area.file.file(), area.mapping, &area.header, &wish)?;
        let view = mapping.view();
        let _ = view.store_u32(header::RING_MODE, RingMode::Overwrite.to_word());
        enable::enable(&view, &options.enable)?;
        refuse_if(sites::follow(&view, &area.file))?;
        done.push(Controlled::FlightRecorder { pid: info.pid });
    }
    Ok(done)
}

/// Disables all events: through a recorder, whose recording continues, else directly. The contents of the
/// rings remain.
pub fn stop(dir: Option<&Path>, target: &Target) -> Result<Vec<Controlled>, Error> {
    let found = find(dir, target)?;
    let mut done = ask_recorders(dir, &found, Request::Stop)?;
    for info in found.iter().filter(|area| area.recorder_pid.is_none() && area.has_rings) {
        let area = open(&info.path)?;
        let view = area.mapping.view();
        enable::disable(&view);
        refuse_if(sites::follow(&view, &area.file))?;
        done.push(Controlled::FlightRecorder { pid: info.pid });
    }
    if done.is_empty() {
        let target = found.first().map_or(0, |area| area.pid).to_string();
        return Err(Error::NotRecorded { target });
    }
    Ok(done)
}
