// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open packet of a source: records in the format of rings [ring-abi §3], WRITER records with the thread
//! of the following records, times that never go back.

use lateralis_ring::{Chunk, LossCounts, PacketHeader, abi};

use crate::stream::PREFIX_BYTES;

const HEADER_BYTES: usize = abi::RECORD_HEADER_BYTES as usize;
const TIME_MASK: u64 = (1 << abi::TIME_BITS) - 1;

/// The thread of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its thread id.
    pub tid: u32,
}

/// Why a record was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The packet has to be closed first.
    Full,
    /// The record is longer than a packet.
    TooBig,
}

/// The payload of a record being written. If it does not fit, the record is
/// not added.
#[derive(Debug)]
pub struct Payload<'a> {
    /// From the start of the record to the end of the packet.
    room: &'a mut [u8],
    end: usize,
    overflows: bool,
}

impl Payload<'_> {
    #[inline]
    fn take(&mut self, align: usize, bytes: usize) -> Option<&mut [u8]> {
        let start = self.end.next_multiple_of(align);
        let end = start.checked_add(bytes).filter(|end| *end <= self.room.len());
        let Some(end) = end else {
            self.overflows = true;
            return None;
        };
        // Padding is zero.
        self.room[self.end..start].fill(0);
        self.end = end;
        Some(&mut self.room[start..end])
    }

    /// Appends a number, or several consecutive ones of one size, at a multiple of `align`.
    #[inline]
    pub fn put(&mut self, align: usize, bytes: &[u8]) {
        if let Some(place) = self.take(align, bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Appends a string: the bytes before the first NUL, and a NUL.
    #[inline]
    pub fn text(&mut self, bytes: &[u8]) {
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        if let Some(place) = self.take(1, length + 1) {
            place[..length].copy_from_slice(&bytes[..length]);
            place[length] = 0;
        }
    }

    /// Appends a sequence of elements of `element_bytes`, or `bytes` with 1: count, then elements.
    pub fn sequence(&mut self, element_bytes: usize, bytes: &[u8]) {
        let count = bytes.len() / element_bytes.max(1);
        let Ok(length) = u32::try_from(count) else {
            self.overflows = true;
            return;
        };
        self.put(4, &length.to_ne_bytes());
        self.put(element_bytes.max(1), &bytes[..count * element_bytes.max(1)]);
    }
}

/// The open packet of a stream.
#[derive(Debug)]
pub struct PacketBuilder {
    buffer: Vec<u8>,
    /// End of the last record, rounded up to 8.
    end: usize,
    slack: usize,
    /// Time of the first record.
    begin: u64,
    /// Time of the last record of the stream.
    last: u64,
    thread: Option<Thread>,
    lost: LossCounts,
    /// Number of records whose time was before that of the previous record.
    clamped: u64,
}

impl PacketBuilder {
    /// An empty packet of at most `packet_bytes` in a stream that begins at clock `started_at`.
    pub fn new(packet_bytes: usize, started_at: u64) -> PacketBuilder {
        // The prefix has room for a header and a WRITER record more than the packet's own.
        let room = packet_bytes.max(4096) & !7;
        let bytes = PREFIX_BYTES + room - abi::PACKET_HEADER_BYTES as usize;
        PacketBuilder {
            buffer: vec![0; bytes],
            end: PREFIX_BYTES,
            slack: 0,
            begin: started_at,
            last: started_at,
            thread: None,
            lost: LossCounts::default(),
            clamped: 0,
        }
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        self.end == PREFIX_BYTES
    }

    /// Time of the last record, or of the last loss.
    pub fn last_time(&self) -> u64 {
        self.last
    }

    /// Number of records so far whose time was before that of the previous record; they got its time.
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    #[inline]
    fn header(&mut self, at: usize, id: u16, time: u64) {
        let word = if cfg!(target_endian = "little") {
            u64::from(id) | (time & TIME_MASK) << 16
        } else {
            u64::from(id) << abi::TIME_BITS | (time & TIME_MASK)
        };
        self.buffer[at..at + HEADER_BYTES].copy_from_slice(&word.to_ne_bytes());
    }

    /// Appends a record, preceded by a WRITER record if the thread changed. `thread` is `None` for
    /// records that belong to no thread.
    ///
    /// Errors: nothing was added.
    /// Cost: the copy of the payload.
    #[inline]
    pub fn record(
        &mut self,
        time: u64,
        thread: Option<Thread>,
        id: u16,
        fill: impl FnOnce(&mut Payload<'_>),
    ) -> Result<(), Refused> {
        let is_empty = self.is_empty();
        // Readers extend the low bits of a time from one record to the next.
        if !is_empty && time.saturating_sub(self.last) >= 1 << (abi::TIME_BITS - 1) {
            return Err(Refused::Full);
        }
        let full = if is_empty { Refused::TooBig } else { Refused::Full };
        let time_given = time;
        let time = time.max(self.last);
        let changes = match thread {
            Some(_) => self.thread != thread,
            None => false,
        };
        let mut at = self.end;
        if let (true, Some(Thread { pid, tid })) = (changes, thread) {
            let end = at + abi::WRITER_RECORD_BYTES as usize;
            if end > self.buffer.len() {
                return Err(full);
            }
            self.header(at, abi::ID_WRITER, time);
            self.buffer[at + 8..at + 12].copy_from_slice(&pid.to_ne_bytes());
            self.buffer[at + 12..at + 16].copy_from_slice(&tid.to_ne_bytes());
            at = end;
        }
        if self.buffer.len() - at < HEADER_BYTES {
            return Err(full);
        }
        self.header(at, id, time);
        let room = &mut self.buffer[at..];
        let mut payload = Payload { room, end: HEADER_BYTES, overflows: false };
        fill(&mut payload);
        let (exact, overflows) = (payload.end, payload.overflows);
        let padded = exact.next_multiple_of(8);
        if overflows || padded > self.buffer.len() - at {
            return Err(full);
        }
        self.buffer[at + exact..at + padded].fill(0);
        if is_empty {
            self.begin = time;
        }
        self.clamped += u64::from(time_given < self.last);
        self.last = time;
        self.end = at + padded;
        self.slack = padded - exact;
        if thread.is_some() {
            self.thread = thread;
        }
        Ok(())
    }

    /// Adds to the loss counts. Context: the packet is empty.
    pub(super) fn lose(&mut self, lost: LossCounts, until: u64) {
        self.lost = self.lost.plus(&lost);
        self.begin = self.last;
        self.last = self.last.max(until);
    }

    /// The content, for [`crate::stream::RingStream::seal`], and its buffer.
    pub(super) fn chunk(&mut self) -> (Chunk, &mut [u8]) {
        let header = PacketHeader {
            timestamp_begin: self.begin,
            timestamp_end: self.last,
            lost: self.lost,
            ..PacketHeader::default()
        };
        let chunk = Chunk {
            sequence: 0,
            from: abi::PACKET_HEADER_BYTES,
            bytes: (self.end - PREFIX_BYTES) as u64,
            slack: self.slack as u64,
            closed: true,
            header,
        };
        (chunk, &mut self.buffer)
    }

    /// The buffer, which contains the sealed packet.
    pub(super) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Starts the next packet. It will repeat the WRITER record, so that it can be read alone.
    pub(super) fn clear(&mut self) {
        self.end = PREFIX_BYTES;
        self.slack = 0;
        self.thread = None;
    }
}
