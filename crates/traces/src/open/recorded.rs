// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the report and the indexes beside a trace of Lateralis, for comparison with it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirEntry, File};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use lateralis_ctf::index::{ENTRY_BYTES, HEADER_BYTES};
use lateralis_ctf::open::Place;
use lateralis_ctf::{Findings, Reader, index};
use lateralis_model::{Damage, DamageReason, Interval, StreamIndex};
use serde::Deserialize;

use crate::expected::{
    self, Comparison, Expected, FileFacts, IndexFacts, Indexed, Kept, Report, files_of,
};

/// Largest report that is read: 64 MiB for about 100 000 streams.
const REPORT_BYTES_MAX: u64 = 64 << 20;

/// Largest index that is read: 3.7 million packets.
const INDEX_BYTES_MAX: u64 = 256 << 20;

/// Largest number of files of a directory that are examined.
const FILES_MAX: usize = 100_000;

/// Whether a directory is a recording, or a folder of recordings.
pub(super) fn is_recorded(directory: &Path) -> bool {
    let is_recording = |path: &Path| path.join("ctf").join("metadata").is_file();
    is_recording(directory) || entries_of(directory).any(|entry| is_recording(&entry.path()))
}

/// Whether a name in such a directory is one that the recorder or the viewer uses.
pub(super) fn is_of_recorder(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let known = ["ctf", "unreadable", "report.json", "kept.json"];
    known.contains(&&*name) || name.starts_with("view.") || name.starts_with('.')
}

/// Other files in a recording.
pub(super) fn others_beside(recording: &Path) -> Vec<String> {
    let others = entries_of(recording).filter(|entry| !is_of_recorder(&entry.file_name()));
    let name = |entry: DirEntry| {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_directory { format!("{name}/") } else { name }
    };
    let mut others: Vec<String> = others.map(name).collect();
    others.sort_unstable();
    others
}

/// The part of a report that counts events.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counted {
    complete: bool,
    events: BTreeMap<String, u64>,
}

/// Whether the report beside a trace shows that no program has written a mark into it, which is cheaper
/// than searching for marks.
pub(super) fn has_no_marks(place: &Place) -> bool {
    let counted = |part: &PathBuf| {
        let text = fs::canonicalize(part).ok().filter(|real| real.ends_with("ctf"))?;
        let text = text_of(&text.join("../report.json"))?.ok()?;
        serde_json::from_slice::<Counted>(&text).ok()
    };
    let says_none = |part: &PathBuf| {
        counted(part).is_some_and(|it| it.complete && !it.events.contains_key("ftrace:print"))
    };
    place.parts.iter().all(says_none)
}

fn entries_of(directory: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(directory).into_iter().flatten().flatten().take(FILES_MAX)
}

/// Compares a trace with the files that its recorder left beside it.
///
/// Cost: linear in the number of packets; reads report and indexes.
pub(super) fn compare(place: &Place, reader: &mut Reader) {
    if !reader.trace_class().is_lateralis() {
        return;
    }
    let files = files_of(reader);
    let mut all = Vec::new();
    for part in &place.parts {
        let prefix = part.strip_prefix(&place.root).unwrap_or(Path::new(""));
        let name_of = |name: &str| prefix.join(name).to_string_lossy().into_owned();
        let read = report_beside(part);
        let report = match &read {
            Some(Ok(report)) => Some(report),
            _ => None,
        };
        let mut comparison = Comparison::new(reader, report);
        if let Some(Err(sentence)) = &read {
            comparison.fault(sentence.clone());
        }
        let mut names: Vec<String> = Vec::new();
        let mut count = 0;
        for entry in fs::read_dir(part.join("index")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            names.extend(name.strip_suffix(".idx").map(str::to_owned));
            count += 1;
            if count >= FILES_MAX {
                break;
            }
        }
        let own = files.keys().filter_map(|name| {
            let name = Path::new(name).strip_prefix(prefix).ok()?;
            (name.components().count() == 1).then(|| name.to_string_lossy().into_owned())
        });
        names.extend(own);
        names.sort_unstable();
        names.dedup();
        let expected: Vec<Expected<'_>> = names
            .iter()
            .map(|name| {
                let file = files.get(&name_of(name));
                let index = read_index(&part.join("index").join(format!("{name}.idx")), file);
                let about = fs::metadata(part.join(name)).ok().filter(fs::Metadata::is_file);
                let length_now = about.filter(|_| file.is_some()).map_or(0, |about| about.len());
                Expected { name, file, length_now, index }
            })
            .collect();
        comparison.files(&expected, prefix);
        let stream_of = |name: &str| -> Option<StreamIndex> { files.get(&name_of(name))?.stream() };
        comparison.losses(&stream_of);
        comparison.unreadable(&|name| {
            let mut parts = Path::new(name).components();
            let is_name =
                matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
            let path = part.join("../unreadable").join(name);
            fs::metadata(path).ok().filter(|_| is_name).map(|about| about.len())
        });
        all.push(comparison.finish());
    }
    all.into_iter().for_each(|findings| reader.add_findings(findings));
}

/// Compares a folder of recordings, as written by `lat keep` and `lat record --chunk-size`, with its
/// report and list. A missing recording is reported by the one before it.
pub(super) fn compare_folder(path: &Path, readers: &mut [(String, Reader)]) {
    let report =
        text_of(&path.join("report.json")).map(|text| text.and_then(|it| Report::read(&it)));
    let kept = text_of(&path.join("kept.json"));
    let kept = kept.map(|text| text.and_then(|text| Kept::read(&text)));
    if report.is_none() && kept.is_none() || readers.is_empty() {
        return;
    }
    let sentences: Vec<String> = [
        report.as_ref().and_then(|it| it.as_ref().err()),
        kept.as_ref().and_then(|it| it.as_ref().err()),
    ]
    .into_iter()
    .flatten()
    .cloned()
    .collect();
    let is_there = |name: &str| path.join(name).join("ctf").is_dir();
    let report = report.as_ref().and_then(|it| it.as_ref().ok());
    let kept = kept.as_ref().and_then(|it| it.as_ref().ok());
    let (mut findings, missing) = expected::folder(report, kept, &is_there);
    findings.faults.extend(sentences);
    readers[0].1.add_findings(findings);
    for one in missing {
        let next = readers.partition_point(|(place, _)| place.as_str() < one.name.as_str());
        let end = readers.get(next).and_then(|(_, reader)| reader.interval().begin);
        let before = next.saturating_sub(1);
        let begin = readers[before].1.interval().end.filter(|_| next > 0);
        let damage = Damage {
            file: format!("../../{}", one.name),
            begin_bytes: 0,
            end_bytes: one.bytes,
            reason: DamageReason::Missing { packets: None, events: one.events },
            interval: Interval { begin, end }.ordered(),
        };
        let findings = Findings { damage: vec![damage], ..Findings::default() };
        readers[before].1.add_findings(findings);
    }
}

/// Contents of a file of bounded size, if it exists.
fn text_of(path: &Path) -> Option<Result<Vec<u8>, String>> {
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if about.len() > REPORT_BYTES_MAX {
        let (bytes, most) = (about.len(), REPORT_BYTES_MAX);
        return Some(Err(format!(
            "{name} is too long to be compared: {bytes} bytes, at most {most}"
        )));
    }
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(REPORT_BYTES_MAX).read_to_end(&mut text));
    Some(read.map(|_| text).map_err(|cause| format!("{name} cannot be read: {cause}")))
}

/// The report beside a directory with a trace, if there is one.
fn report_beside(directory: &Path) -> Option<Result<Report, String>> {
    // Its files are named ctf/NAME: a trace anywhere else is a different one, perhaps derived from it.
    let real = fs::canonicalize(directory).ok()?;
    let text = text_of(&directory.join("../report.json")).filter(|_| real.ends_with("ctf"))?;
    Some(text.and_then(|text| Report::read(&text)))
}

/// Contents of an index, compared with its stream file.
fn read_index(path: &Path, file: Option<&FileFacts>) -> IndexFacts {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return IndexFacts::Absent,
        Err(cause) => return IndexFacts::Unreadable(format!("cannot be read: {cause}")),
    };
    if !about.is_file() {
        return IndexFacts::Unreadable("it is no file".to_owned());
    }
    if about.len() > INDEX_BYTES_MAX {
        return IndexFacts::Unreadable(format!("it is longer than {INDEX_BYTES_MAX} bytes"));
    }
    let read = || -> io::Result<IndexFacts> {
        let mut bytes = BufReader::new(File::open(path)?);
        let mut header = [0; HEADER_BYTES];
        if bytes.read_exact(&mut header).is_err() {
            return Ok(IndexFacts::Unreadable("it is cut".to_owned()));
        }
        if header != index::header() {
            return Ok(IndexFacts::Unreadable("it is no packet index".to_owned()));
        }
        let mut indexed = Indexed::default();
        let mut entry = [0; ENTRY_BYTES];
        // An incomplete entry, still being written or truncated, is left out.
        while indexed.packets < about.len() / ENTRY_BYTES as u64 {
            match bytes.read_exact(&mut entry) {
                Ok(()) => indexed.add(&entry, file),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        Ok(IndexFacts::Read(indexed))
    };
    read().unwrap_or_else(|cause| IndexFacts::Unreadable(format!("cannot be read: {cause}")))
}
