// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stream files of a client: which packets may be appended to them, and their content when
//! a client returns to its directory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::Path;

use lateralis_live::{Count, Folder, Has};
use lateralis_ring::{PacketHeader, abi};

use crate::error::Error;
use crate::index::IndexEntry;
use crate::linux::output::{Output, StreamFile, is_being_written};
use crate::report::{LiveStreamCount, Report};
use crate::stream::checksum_holds;

const HEADER_BYTES: usize = abi::PACKET_HEADER_BYTES as usize;
/// Maximum size of a packet.
const PACKET_BYTES_MAX: u64 = *abi::PACKET_BYTES_RANGE.end() + abi::WRITER_RECORD_BYTES;

/// A stream of the server, and the part of it that has been received.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) folder: Folder,
    pub(super) name: String,
    pub(super) file: StreamFile,
    /// Sequence number of the next packet, as counted by the server.
    pub(super) next: u64,
    /// Its offset in the server's file.
    pub(super) offset_bytes: u64,
    /// Packets dropped by the server.
    pub(super) dropped: Count,
}

impl Received {
    pub(super) fn has(&self) -> Has {
        let (name, next, offset_bytes) = (self.name.clone(), self.next, self.offset_bytes);
        Has { folder: self.folder, name, next, offset_bytes }
    }
}

/// The header of a packet, in either byte order; `None` if it is invalid.
fn header(bytes: &[u8; HEADER_BYTES]) -> Option<(PacketHeader, bool)> {
    let own = PacketHeader::decode(bytes, false);
    let swapped = own.magic != abi::PACKET_MAGIC;
    let header = if swapped { PacketHeader::decode(bytes, true) } else { own };
    let good = header.magic == abi::PACKET_MAGIC
        && header.packet_bits.is_multiple_of(64)
        && header.content_bits <= header.packet_bits
        && header.content_bits >= abi::PACKET_HEADER_BYTES * 8
        && header.packet_bits / 8 <= PACKET_BYTES_MAX;
    good.then_some((header, swapped))
}

/// Size in bytes of the packet with this header.
pub(super) fn packet_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<u64> {
    header(bytes).map(|(header, _)| header.packet_bits / 8)
}

/// The index entry of a packet that is complete, valid, and of this trace.
pub(super) fn check(packet: &mut [u8], uuid: &[u8; 16]) -> Option<IndexEntry> {
    let (header, swapped) = header(packet.first_chunk()?)?;
    let whole = header.packet_bits / 8 == packet.len() as u64 && header.uuid == *uuid;
    (whole && checksum_holds(packet, swapped)).then_some(IndexEntry::from(&header))
}

/// Removes the empty folders of a client that was killed before it received anything, if they are unused.
pub(super) fn clear_begun(root: &Path) {
    if is_being_written(root) {
        return;
    }
    // A folder that is not empty stays, and is reported later.
    if std::fs::remove_dir(root.join("ctf/index")).is_ok() {
        let _ = std::fs::remove_dir(root.join("ctf"));
    }
}

/// Continues a partly received recording: truncates its files after the last complete
/// packet, and returns their positions.
pub(super) fn resume(
    root: &Path,
    report: &Report,
    uuid: &[u8; 16],
    bytes_max: Option<u64>,
) -> Result<(Output, Vec<Received>), Error> {
    let mut output = Output::reopen(root, bytes_max)?;
    let mut files = Vec::new();
    for (folder, name) in [(Folder::Ctf, "ctf"), (Folder::Unreadable, "unreadable")] {
        let entries = std::fs::read_dir(root.join(name)).into_iter().flatten().flatten();
        for entry in entries.take(lateralis_live::STREAMS_MAX) {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            let file_name = entry.file_name().to_string_lossy().into_owned();
            if !is_file || file_name.starts_with("metadata") {
                continue;
            }
            let path = entry.path();
            let found = scan(&path, uuid).map_err(|cause| Error::file("read", &path, cause))?;
            let file = output.restore_stream(folder, &file_name, &found);
            let dropped = dropped_of(report, &format!("{name}/{file_name}"));
            let bytes: u64 = found.iter().map(|entry| entry.packet_bits / 8).sum();
            files.push(Received {
                folder,
                name: file_name,
                file,
                next: found.len() as u64 + dropped.packets,
                offset_bytes: bytes + dropped.bytes,
                dropped,
            });
        }
    }
    Ok((output, files))
}

/// Packets of a file that were dropped according to the report.
fn dropped_of(report: &Report, file: &str) -> Count {
    let all = report.received.iter().flat_map(|received| &received.dropped_of);
    let one = all.into_iter().find(|one: &&LiveStreamCount| one.file == file);
    one.map_or(Count::default(), |one| Count {
        packets: one.count.packets,
        bytes: one.count.bytes,
        events: one.count.events,
    })
}

/// The packets of a file, which is truncated after the last complete one.
fn scan(path: &Path, uuid: &[u8; 16]) -> io::Result<Vec<IndexEntry>> {
    let file: File = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let length = file.metadata()?.len();
    let (mut found, mut at) = (Vec::new(), 0u64);
    while at < length {
        let mut head = [0; HEADER_BYTES];
        let bytes = match file.read_exact_at(&mut head, at) {
            Ok(()) => packet_bytes(&head),
            Err(_) => None,
        };
        let Some(bytes) = bytes.filter(|bytes| *bytes <= length - at) else { break };
        let mut packet = vec![0; bytes as usize];
        file.read_exact_at(&mut packet, at)?;
        let Some(entry) = check(&mut packet, uuid) else { break };
        found.push(entry);
        at += bytes;
    }
    file.set_len(at)?;
    Ok(found)
}
