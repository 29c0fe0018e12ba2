// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes a recording from the remains of a crash: areas, files that contain areas, and recordings
//! whose recorder was killed.

use std::fs::File;
use std::path::{Path, PathBuf};

use lateralis_ring::abi::header;
use lateralis_ring::{AreaHeader, ReadPolicy, RingMode, scan};

use super::area::LiveArea;
use super::clocks;
use super::dirs::area_files;
use super::mapping::{Access, Mapping};
use super::output::Output;
use super::recording::Recording;
use super::recover_recording::recover_recording;
use super::recover_small::{RecoverTexts, TextFiles, recover_small, small_areas_in};
use super::session::Summary;
use crate::clock::{ClockSample, FrequencySource};
use crate::error::Error;
use crate::options::CtfVersion;
use crate::report::Origin;

/// Maximum number of areas in one file.
pub(super) const AREAS_MAX: usize = 1024;

/// Makes a recording in the new directory `output` from `path`, which is
///
/// * an area file left by a crashed program, or a directory of them;
/// * a core dump, a memory image or any other file that contains contiguous areas, including those of
///   programs without an operating system;
/// * the directory of a recording whose recorder was killed: complete packets are kept,
///   damaged ones are left out and listed, index, metadata and report are written again.
///
/// `path` is not changed.
///
/// Errors: `path` cannot be read, or nothing in it can be recovered.
pub fn recover(path: &Path, output: &Path, ctf_version: CtfVersion) -> Result<Summary, Error> {
    recover_with(path, output, ctf_version, &RecoverTexts::default())
}

/// Like [`recover`]; schema texts that are not in the memory itself are read from these files.
///
/// Errors: as for [`recover`]; also if one of the files cannot be read, or is neither a program nor a schema.
pub fn recover_with(
    path: &Path,
    output: &Path,
    ctf_version: CtfVersion,
    texts: &RecoverTexts,
) -> Result<Summary, Error> {
    let texts = TextFiles::open(texts)?;
    let metadata = std::fs::metadata(path).map_err(|cause| Error::file("open", path, cause))?;
    if metadata.is_dir() && path.join("ctf").is_dir() {
        return recover_recording(path, output, ctf_version);
    }
    let files = if metadata.is_dir() { area_files(path) } else { vec![path.to_owned()] };
    let mut found = Vec::new();
    for file in &files {
        for offset in areas_in(file)? {
            found.push((file.clone(), offset));
        }
    }
    let mut small = Vec::new();
    for file in &files {
        small.extend(small_areas_in(file)?.into_iter().map(|found| (file.clone(), found)));
    }
    if found.is_empty() && small.is_empty() {
        return Err(Error::NothingToRecover(path.to_owned()));
    }
    let output = Output::create(output, None)?;
    let root = output.root().to_owned();
    let mut recording = Recording::new(output, ctf_version, Origin::Recovered);
    let mut recovered = 0;
    for (file, offset) in found {
        match recover_area(&mut recording, &file, offset) {
            Ok(()) => recovered += 1,
            Err(error) => recording.problem(error.to_string()),
        }
    }
    let mut failed = None;
    for (file, found) in small {
        match recover_small(&mut recording, &file, found, &texts) {
            Ok(()) => recovered += 1,
            Err(error) => {
                recording.problem(error.to_string());
                failed.get_or_insert(error);
            }
        }
    }
    if recovered == 0 {
        // Leaves nothing that looks like a recording.
        let _ = std::fs::remove_dir_all(&root);
        return Err(failed.unwrap_or_else(|| Error::NothingToRecover(path.to_owned())));
    }
    let report = recording.end()?;
    Ok(Summary { output: root, report, exit_status: None })
}

pub(super) fn map(path: &Path) -> Result<Option<Mapping>, Error> {
    let file = File::open(path).map_err(|cause| Error::file("open", path, cause))?;
    Mapping::of_file(&file, Access::Private).map_err(|cause| Error::file("map", path, cause))
}

/// Whether a file contains areas of programs, of any version.
pub(super) fn holds_area(path: &Path) -> Result<bool, Error> {
    match areas_in(path) {
        Ok(found) => Ok(!found.is_empty()),
        Err(Error::Area { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Offsets of areas in a file: its start, or all positions of the magic words.
fn areas_in(path: &Path) -> Result<Vec<u64>, Error> {
    let Some(mapping) = map(path)? else { return Ok(Vec::new()) };
    match AreaHeader::read(&mapping.view()) {
        Ok(_) => return Ok(vec![0]),
        Err(cause @ lateralis_ring::AreaHeaderError::Version { .. }) => {
            return Err(Error::Area { path: path.to_owned(), cause });
        }
        Err(_) => {}
    }
    Ok(scan(mapping.bytes()).map(|found| found.offset).take(AREAS_MAX).collect())
}

fn recover_area(recording: &mut Recording, path: &Path, offset: u64) -> Result<(), Error> {
    let mapping = map(path)?
        .and_then(|mapping| mapping.at_offset(offset))
        .ok_or_else(|| Error::NothingToRecover(path.to_owned()))?;
    let found = AreaHeader::read(&mapping.view())
        .map_err(|cause| Error::Area { path: path.to_owned(), cause })?;
    let clock_error = || Error::Clock { path: path.to_owned(), clock_kind: found.clock_kind };
    let kind = LiveArea::clock_kind(&found).ok_or_else(clock_error)?;
    let first = recording.clock.is_none();
    let frequency = if found.clock_hz != 0 {
        (found.clock_hz, FrequencySource::AreaStart)
    } else {
        // Unknown to the area; if it comes from another machine, times are wrong.
        clocks::frequency(kind)
    };
    let start = ClockSample {
        ticks: found.clock_at_start,
        realtime_ns: i64::try_from(found.realtime_ns_at_start).unwrap_or(0),
        ..ClockSample::default()
    };
    let clock = recording.use_dead_clock(kind, frequency, start);
    if clock.kind != kind || (!first && recording.swapped != found.swapped) {
        return Err(clock_error());
    }
    recording.swapped = found.swapped;
    if found.clock_hz == 0 {
        recording.problem(
            "The clock's frequency is this machine's: the area does not tell its own".to_owned(),
        );
    }
    let name = PathBuf::from(path.file_name().unwrap_or_default());
    let policy = ReadPolicy::Observe;
    let mut area = LiveArea::new(recording, &name, (None, mapping), policy)?;
    let view = area.view();
    let mode = view.load_u32(header::RING_MODE, lateralis_ring::Load::Relaxed).unwrap_or(0);
    if RingMode::from_word(mode) == RingMode::Discard && found.recorder_pid != 0 {
        recording.problem(format!(
            "A recorder (pid={}) had read part of the area of pid={}: its recording has what is not \
             in this memory any more, and part of what is; give both to a command to count each \
             event once",
            found.recorder_pid, found.creator_pid
        ));
    }
    area.refresh_processes();
    area.drain_to_the_end(recording);
    area.finish(recording);
    Ok(())
}
