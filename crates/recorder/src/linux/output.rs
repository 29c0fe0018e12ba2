// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The directory of a recording. Packets are appended by single writes, texts are replaced by
//! rename, so it can be read at any time [trace-layout].

mod directory;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use lateralis_files::create_folder;

use super::live::LiveServer;
use super::reserve::Reserve;
use crate::error::Error;
use crate::index::{ENTRY_BYTES, FILE_HEADER, IndexEntry};

pub use directory::{is_being_written, is_locked};
pub(super) use directory::{refuse_of_another, replace};
pub(super) use lateralis_live::Folder;

/// Handle of a stream file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamFile(usize);

#[derive(Debug)]
struct Stream {
    folder: Folder,
    name: String,
    file: Option<File>,
    bytes: u64,
    pending_index: Vec<IndexEntry>,
    indexed: u64,
    last_used: u64,
    failed: bool,
    /// Its number for live clients, once it has a packet.
    live: Option<u32>,
}

/// Why a packet was not written.
#[derive(Debug)]
pub(super) enum AppendError {
    /// The cap on stream bytes is reached.
    Cap,
    /// Writing failed; the file ends with the last complete packet.
    Write(io::Error),
}

/// The directory of a recording.
#[derive(Debug)]
pub(super) struct Output {
    root: PathBuf,
    /// Locked while a recorder writes: see [`is_being_written`].
    _lock: Option<File>,
    reserve: Reserve,
    streams: Vec<Stream>,
    open_count: usize,
    open_max: usize,
    uses: u64,
    bytes: u64,
    bytes_max: u64,
    keeps_streams: bool,
    /// It is a folder of recordings, and not a recording itself.
    is_folder: bool,
    live: Option<LiveServer>,
}

impl Output {
    /// Adds an existing stream file that contains exactly these packets. Its index is
    /// rewritten.
    pub(super) fn restore_stream(
        &mut self,
        folder: Folder,
        name: &str,
        packets: &[IndexEntry],
    ) -> StreamFile {
        let handle = self.add_stream(folder, name);
        let stream = &mut self.streams[handle.0];
        for entry in packets {
            stream.pending_index.push(IndexEntry { offset_bytes: stream.bytes, ..*entry });
            stream.bytes += entry.packet_bits / 8;
        }
        self.bytes += stream.bytes;
        handle
    }

    fn empty(root: PathBuf, bytes_max: Option<u64>) -> Output {
        Output {
            reserve: Reserve::make(&root),
            root,
            _lock: None,
            streams: Vec::new(),
            open_count: 0,
            open_max: 256,
            uses: 0,
            bytes: 0,
            bytes_max: bytes_max.unwrap_or(u64::MAX),
            keeps_streams: true,
            is_folder: false,
            live: None,
        }
    }

    /// Its path.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Bytes of packets so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps at most this many stream files open at the same time.
    pub(super) fn set_open_max(&mut self, open_max: usize) {
        self.open_max = open_max.max(1);
    }

    /// Replaces `ctf/metadata`.
    pub(super) fn write_metadata(&self, text: &str) -> Result<(), Error> {
        if !self.is_folder {
            replace(&self.root.join("ctf").join("metadata"), text.as_bytes())?;
        }
        if let Some(live) = &self.live {
            live.metadata(text);
        }
        Ok(())
    }

    /// Replaces `report.json`.
    pub(super) fn write_report(&self, text: &str) -> Result<(), Error> {
        replace(&self.root.join("report.json"), text.as_bytes())?;
        if let Some(live) = &self.live {
            live.report(text, false);
        }
        Ok(())
    }

    /// Releases the space reserved for the final texts.
    pub(super) fn use_reserve(&mut self) {
        self.reserve.release();
    }

    /// Replaces `report.json` for the last time. Live clients receive it after everything else.
    pub(super) fn write_last_report(&mut self, text: &str) -> Result<(), Error> {
        let live = self.live.take();
        let written = self.write_report(text).or_else(|error| {
            // Without room for another file the old one is overwritten: nothing follows, so
            // readers do not see it half written.
            self.overwrite_report(text).map_err(|_| error)
        });
        if let Some(live) = live {
            live.report(text, true);
            live.close();
        }
        written
    }

    fn overwrite_report(&self, text: &str) -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.root.join("report.json"))?;
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_len(text.len() as u64)
    }

    /// From now on clients receive the same data as the directory. Without `keeps_streams` only clients
    /// receive packets.
    pub(super) fn set_live(&mut self, live: Option<LiveServer>, keeps_streams: bool) {
        self.live = live;
        self.keeps_streams = keeps_streams;
    }

    /// The live stream, if there is one.
    pub(super) fn live(&self) -> Option<&LiveServer> {
        self.live.as_ref()
    }

    /// Adds a stream file, which is created with its first packet. A name in use gets a number.
    pub(super) fn add_stream(&mut self, folder: Folder, name: &str) -> StreamFile {
        let taken = |name: &str| {
            self.streams.iter().any(|stream| stream.folder == folder && stream.name == name)
        };
        let mut unique = name.to_owned();
        let mut number = 1;
        while taken(&unique) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        self.streams.push(Stream {
            folder,
            name: unique,
            file: None,
            bytes: 0,
            pending_index: Vec::new(),
            indexed: 0,
            last_used: 0,
            failed: false,
            live: None,
        });
        StreamFile(self.streams.len() - 1)
    }

    /// Path of a stream file relative to the directory.
    pub(super) fn stream_path(&self, stream: StreamFile) -> String {
        let stream = &self.streams[stream.0];
        match stream.folder {
            Folder::Ctf => format!("ctf/{}", stream.name),
            Folder::Unreadable => format!("unreadable/{}", stream.name),
        }
    }

    /// Appends a packet; on failure the file is unchanged.
    pub(super) fn append(
        &mut self,
        handle: StreamFile,
        packet: &[u8],
        entry: IndexEntry,
    ) -> Result<(), AppendError> {
        self.append_counted(handle, packet, entry, None)
    }

    /// Appends a packet with its number of events of schemas; on failure the file is unchanged.
    pub(super) fn append_counted(
        &mut self,
        handle: StreamFile,
        packet: &[u8],
        entry: IndexEntry,
        events: Option<u64>,
    ) -> Result<(), AppendError> {
        if !self.keeps_streams {
            self.streams[handle.0].bytes += packet.len() as u64;
            self.bytes += packet.len() as u64;
            self.tell_live(handle, packet, entry, events);
            return Ok(());
        }
        if self.streams[handle.0].failed {
            return Err(AppendError::Write(io::Error::from(io::ErrorKind::BrokenPipe)));
        }
        if self.bytes.saturating_add(packet.len() as u64) > self.bytes_max {
            return Err(AppendError::Cap);
        }
        self.uses += 1;
        let written = self.open(handle).and_then(|()| {
            let stream = &mut self.streams[handle.0];
            stream.last_used = self.uses;
            let Some(file) = &mut stream.file else {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            };
            write_whole(file, stream.bytes, packet)
        });
        let stream = &mut self.streams[handle.0];
        if let Err(error) = written {
            stream.failed = true;
            self.reserve.release();
            return Err(AppendError::Write(error));
        }
        stream.pending_index.push(IndexEntry { offset_bytes: stream.bytes, ..entry });
        stream.bytes += packet.len() as u64;
        self.bytes += packet.len() as u64;
        if stream.pending_index.len() >= 1024 {
            // A missing index costs time later, not data; the next attempt may succeed.
            let _ = self.write_index(handle.0);
        }
        self.tell_live(handle, packet, entry, events);
        Ok(())
    }

    /// Appends the last packet of a stream after writing failed or the cap was reached; on failure the
    /// file is unchanged.
    pub(super) fn append_last(
        &mut self,
        handle: StreamFile,
        packet: &[u8],
        entry: IndexEntry,
    ) -> Result<(), AppendError> {
        let bytes_max = std::mem::replace(&mut self.bytes_max, u64::MAX);
        self.streams[handle.0].failed = false;
        let appended = self.append_counted(handle, packet, entry, Some(0));
        self.bytes_max = bytes_max;
        appended
    }

    fn tell_live(
        &mut self,
        handle: StreamFile,
        packet: &[u8],
        entry: IndexEntry,
        events: Option<u64>,
    ) {
        let Some(live) = &self.live else { return };
        let stream = &mut self.streams[handle.0];
        let class = entry.stream_id as u32;
        let add = || live.add_stream(stream.folder, &stream.name, class);
        let number = *stream.live.get_or_insert_with(add);
        live.packet(number, events, packet);
    }

    fn open(&mut self, handle: StreamFile) -> io::Result<()> {
        if self.streams[handle.0].file.is_some() {
            return Ok(());
        }
        if self.open_count >= self.open_max {
            let oldest = self
                .streams
                .iter()
                .enumerate()
                .filter(|(_, stream)| stream.file.is_some())
                .min_by_key(|(_, stream)| stream.last_used)
                .map(|(index, _)| index);
            if let Some(oldest) = oldest {
                self.streams[oldest].file = None;
                self.open_count -= 1;
            }
        }
        let path = self.root.join(self.stream_path(handle));
        let stream = &mut self.streams[handle.0];
        if stream.folder == Folder::Unreadable {
            create_folder(&self.root.join("unreadable"))?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(stream.bytes == 0)
            .truncate(stream.bytes == 0)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        stream.file = Some(file);
        self.open_count += 1;
        Ok(())
    }

    /// Closes a stream file that gets no more packets.
    pub(super) fn close(&mut self, handle: StreamFile) -> Result<(), Error> {
        if self.streams[handle.0].file.take().is_some() {
            self.open_count -= 1;
        }
        self.write_index(handle.0)
    }

    fn write_index(&mut self, index: usize) -> Result<(), Error> {
        let stream = &mut self.streams[index];
        if stream.pending_index.is_empty() || stream.folder == Folder::Unreadable {
            stream.pending_index.clear();
            return Ok(());
        }
        let path = self.root.join("ctf").join("index").join(format!("{}.idx", stream.name));
        let mut bytes = Vec::new();
        if stream.indexed == 0 {
            bytes.extend(FILE_HEADER);
        }
        for entry in &stream.pending_index {
            bytes.extend(entry.encode());
        }
        let at = if stream.indexed == 0 {
            0
        } else {
            FILE_HEADER.len() as u64 + stream.indexed * ENTRY_BYTES as u64
        };
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(stream.indexed == 0)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .and_then(|file| file.write_all_at(&bytes, at))
            .map_err(|cause| Error::file("write", path, cause))?;
        stream.indexed += stream.pending_index.len() as u64;
        stream.pending_index.clear();
        Ok(())
    }

    /// Writes all pending index entries.
    pub(super) fn write_indexes(&mut self) -> Result<(), Error> {
        for index in 0..self.streams.len() {
            self.write_index(index)?;
        }
        Ok(())
    }
}

/// Writes a packet completely or not at all: a short write is undone.
fn write_whole(file: &mut File, at: u64, packet: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < packet.len() {
        match file.write_at(&packet[done..], at + done as u64) {
            Ok(0) => {
                let _ = file.set_len(at);
                return Err(io::Error::from(io::ErrorKind::WriteZero));
            }
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let _ = file.set_len(at);
                return Err(error);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_failed_write_leaves_whole_packets_and_the_cap_holds() {
        let root = std::env::temp_dir().join(format!("lateralis-output-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let mut output = Output::create(&root, Some(300)).unwrap();
        assert!(matches!(Output::create(&root, None), Err(Error::OutputExists(_))));
        output.set_open_max(1);
        let first = output.add_stream(Folder::Ctf, "a");
        let second = output.add_stream(Folder::Ctf, "a");
        for _ in 0..2 {
            output.append(first, &[1; 100], IndexEntry::default()).unwrap();
        }
        output.append(second, &[2; 100], IndexEntry::default()).unwrap();
        let over = output.append(second, &[2; 1], IndexEntry::default());
        assert!(matches!(over, Err(AppendError::Cap)));
        output.write_indexes().unwrap();
        assert_eq!(fs::read(root.join("ctf/a")).unwrap(), [1; 200]);
        assert_eq!(fs::read(root.join("ctf/a_2")).unwrap(), [2; 100]);
        assert_eq!(fs::read(root.join("ctf/index/a.idx")).unwrap().len(), 16 + 2 * 72);
        fs::remove_dir_all(&root).unwrap();
        // The device that is always full.
        let mut full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = write_whole(&mut full, 0, &[0; 10]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
