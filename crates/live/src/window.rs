// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The newest packets of a recording, and the position of each client in them.
//!
//! ```text
//! gone | oldest ........................ newest | <- push
//!             ^ cursor        ^ another cursor
//! ```
//!
//! One window serves all clients, so its memory does not grow with them. A client that is slower
//! than the packets come is overtaken by the oldest one; what lies in between is lost for it,
//! whole packets, counted as the difference of two sums and therefore exactly. Who pushes never
//! waits for a cursor.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::message::{Folder, Has};

/// An amount of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events of schemas in them; `None` if they were not counted.
    pub events: Option<u64>,
}

impl Default for Count {
    fn default() -> Count {
        Count { packets: 0, bytes: 0, events: Some(0) }
    }
}

impl Count {
    /// The sum.
    #[must_use]
    pub fn plus(self, other: Count) -> Count {
        let events = self.events.zip(other.events).map(|(one, more)| one.saturating_add(more));
        Count {
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
            events,
        }
    }

    /// What is missing to `self` from `earlier` on.
    #[must_use]
    pub fn since(self, earlier: Count) -> Count {
        let events =
            self.events.zip(earlier.events).map(|(all, before)| all.saturating_sub(before));
        Count {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            events,
        }
    }
}

/// A count, and of which stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamCount {
    /// Folder of its file.
    pub folder: Folder,
    /// Name of its file.
    pub name: String,
    /// How much.
    pub count: Count,
}

#[derive(Debug)]
struct Stream {
    folder: Folder,
    name: Arc<str>,
    class: u32,
    written: Count,
    /// Of it, what the window does not hold any more.
    gone: Count,
}

#[derive(Debug)]
struct Entry {
    stream: u32,
    /// In front of it in its stream.
    before: Count,
    events: Option<u64>,
    bytes: Arc<[u8]>,
}

impl Entry {
    fn count(&self) -> Count {
        Count { packets: 1, bytes: self.bytes.len() as u64, events: self.events }
    }
}

/// A text that is replaced as a whole, and what has to be sent before it.
#[derive(Debug, Default, Clone)]
struct Latest {
    version: u64,
    after: u64,
    text: Arc<[u8]>,
}

/// See the module's description.
#[derive(Debug)]
pub struct Window {
    streams: Vec<Stream>,
    entries: VecDeque<Entry>,
    /// Packets that were pushed before the oldest here.
    base: u64,
    bytes: u64,
    bytes_max: u64,
    metadata: Latest,
    report: Latest,
    flushes: u64,
    flushed_ns: i64,
    flushed_after: u64,
    ended: bool,
}

/// What a client gets next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The newest metadata.
    Metadata(Arc<[u8]>),
    /// A stream that the client does not know.
    Stream {
        /// Its number here.
        stream: u32,
        /// Class of its first packet.
        class: u32,
        /// Folder of its file.
        folder: Folder,
        /// Name of its file.
        name: Arc<str>,
    },
    /// A packet.
    Packet {
        /// Its stream.
        stream: u32,
        /// Its number in its file.
        number: u64,
        /// Its place in its file, in bytes.
        offset_bytes: u64,
        /// It.
        bytes: Arc<[u8]>,
    },
    /// Packets that the client came too late for, and does not get.
    Dropped {
        /// Their stream.
        stream: u32,
        /// Number of the first.
        first: u64,
        /// How many.
        count: Count,
    },
    /// Everything up to a moment has been given out.
    Flushed {
        /// Flushes so far.
        count: u64,
        /// The moment.
        utc_ns: i64,
    },
    /// The newest report.
    Report(Arc<[u8]>),
    /// Packets of before the client came: only the files have them. To be answered by
    /// [`Cursor::caught_up`].
    Behind(Behind),
    /// There will be no more packets, and the cursor has had all.
    End,
}

/// Packets that only the files have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// Their stream.
    pub stream: u32,
    /// Folder of its file.
    pub folder: Folder,
    /// Name of its file.
    pub name: Arc<str>,
    /// Number of the first.
    pub first: u64,
    /// Where it begins, in bytes.
    pub offset_bytes: u64,
    /// How many.
    pub packets: u64,
    /// Where the last one ends, in bytes.
    pub end_bytes: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Place {
    announced: bool,
    /// Had, sent or dropped so far.
    at: Count,
    sent: Count,
    dropped: Count,
}

/// How far a client is.
#[derive(Debug, Default)]
pub struct Cursor {
    position: u64,
    metadata: u64,
    report: u64,
    flushes: u64,
    catches_up: bool,
    streams: Vec<Place>,
    /// Where the stream of the last packet was before it.
    before_last: Option<(u32, Place)>,
    has: HashMap<(Folder, String), (u64, u64)>,
}

impl Window {
    /// For packets of at most this number of bytes in total; one packet always fits.
    #[must_use]
    pub fn new(bytes_max: u64) -> Window {
        Window {
            streams: Vec::new(),
            entries: VecDeque::new(),
            base: 0,
            bytes: 0,
            bytes_max,
            metadata: Latest::default(),
            report: Latest::default(),
            flushes: 0,
            flushed_ns: 0,
            flushed_after: 0,
            ended: false,
        }
    }

    fn newest(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// A new stream; its number.
    pub fn add_stream(&mut self, folder: Folder, name: &str, class: u32) -> u32 {
        let (written, gone) = (Count::default(), Count::default());
        self.streams.push(Stream { folder, name: name.into(), class, written, gone });
        (self.streams.len() - 1) as u32
    }

    /// A packet that has been written to its file. Packets that no longer fit are returned, so that
    /// the caller can free them after releasing its lock.
    ///
    /// Cost: a copy of the packet.
    pub fn push(&mut self, stream: u32, events: Option<u64>, bytes: Arc<[u8]>) -> Vec<Arc<[u8]>> {
        let mut freed = Vec::new();
        let Some(of) = self.streams.get_mut(stream as usize) else { return freed };
        let entry = Entry { stream, before: of.written, events, bytes };
        of.written = of.written.plus(entry.count());
        self.bytes += entry.bytes.len() as u64;
        self.entries.push_back(entry);
        while self.bytes > self.bytes_max && self.entries.len() > 1 {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.base += 1;
            self.bytes -= oldest.bytes.len() as u64;
            let of = &mut self.streams[oldest.stream as usize];
            of.gone = of.gone.plus(oldest.count());
            freed.push(oldest.bytes);
        }
        freed
    }

    /// New metadata; describes all packets so far.
    pub fn set_metadata(&mut self, text: &[u8]) {
        let version = self.metadata.version + 1;
        self.metadata = Latest { version, after: 0, text: text.into() };
    }

    /// A new report. The `last` one follows all packets.
    pub fn set_report(&mut self, text: &[u8], last: bool) {
        let after = if last { u64::MAX } else { 0 };
        self.report = Latest { version: self.report.version + 1, after, text: text.into() };
    }

    /// Everything up to this moment, nanoseconds of UTC, has been pushed.
    pub fn flushed(&mut self, utc_ns: i64) {
        self.flushes += 1;
        self.flushed_ns = utc_ns;
        self.flushed_after = self.newest();
    }

    /// There will be no more packets.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// What the client of this cursor gets next; `None`: nothing yet. What is given out counts
    /// as sent. Cost: constant, or proportional to the streams where the client was overtaken.
    pub fn next(&self, cursor: &mut Cursor) -> Option<Item> {
        // Sent before the metadata, as in the directory: a client that is cut off in between can
        // still derive the metadata from it.
        if cursor.report != self.report.version && self.report.after == 0 {
            cursor.report = self.report.version;
            return Some(Item::Report(self.report.text.clone()));
        }
        if cursor.metadata != self.metadata.version {
            cursor.metadata = self.metadata.version;
            return Some(Item::Metadata(self.metadata.text.clone()));
        }
        self.make_places(cursor);
        if cursor.position < self.base {
            if let Some(item) = self.overtaken(cursor) {
                return Some(item);
            }
            cursor.position = self.base;
        }
        cursor.catches_up = false;
        while let Some(entry) = self.entries.get((cursor.position - self.base) as usize) {
            let place = &mut cursor.streams[entry.stream as usize];
            // The client has it from another connection, or from the files.
            if entry.before.packets < place.at.packets {
                cursor.position += 1;
                continue;
            }
            if !std::mem::replace(&mut place.announced, true) {
                return Some(self.announcement(entry.stream));
            }
            cursor.position += 1;
            cursor.before_last = Some((entry.stream, *place));
            place.at = entry.before.plus(entry.count());
            place.sent = place.sent.plus(entry.count());
            return Some(Item::Packet {
                stream: entry.stream,
                number: entry.before.packets,
                offset_bytes: entry.before.bytes,
                bytes: entry.bytes.clone(),
            });
        }
        if cursor.flushes != self.flushes && cursor.position >= self.flushed_after {
            cursor.flushes = self.flushes;
            return Some(Item::Flushed { count: self.flushes, utc_ns: self.flushed_ns });
        }
        // The last report contains the clients' losses, so it is sent after all have had their
        // packets.
        if !self.ended || self.report.after == 0 {
            return None;
        }
        if cursor.report != self.report.version {
            cursor.report = self.report.version;
            return Some(Item::Report(self.report.text.clone()));
        }
        Some(Item::End)
    }

    /// Whether the client of this cursor has had all packets there will be.
    #[must_use]
    pub fn is_drained(&self, cursor: &Cursor) -> bool {
        let all = cursor.streams.len() == self.streams.len()
            && cursor
                .streams
                .iter()
                .zip(&self.streams)
                .all(|(place, of)| place.at.packets >= of.written.packets);
        self.ended && all
    }

    fn make_places(&self, cursor: &mut Cursor) {
        for of in &self.streams[cursor.streams.len()..] {
            let mut place = Place::default();
            let has = cursor.has.remove(&(of.folder, of.name.as_ref().to_owned()));
            if let Some((packets, bytes)) = has.filter(|(packets, _)| *packets > 0) {
                let packets = packets.min(of.written.packets);
                place.at = Count { packets, bytes: bytes.min(of.written.bytes), events: None };
            }
            cursor.streams.push(place);
        }
    }

    fn announcement(&self, stream: u32) -> Item {
        let of = &self.streams[stream as usize];
        Item::Stream { stream, class: of.class, folder: of.folder, name: of.name.clone() }
    }

    fn overtaken(&self, cursor: &mut Cursor) -> Option<Item> {
        let late = |(place, of): (&Place, &Stream)| place.at.packets < of.gone.packets;
        let index = cursor.streams.iter().zip(&self.streams).position(late)?;
        let (place, of) = (&mut cursor.streams[index], &self.streams[index]);
        let stream = index as u32;
        if !std::mem::replace(&mut place.announced, true) {
            return Some(self.announcement(stream));
        }
        if cursor.catches_up {
            return Some(Item::Behind(Behind {
                stream,
                folder: of.folder,
                name: of.name.clone(),
                first: place.at.packets,
                offset_bytes: place.at.bytes,
                packets: of.gone.packets - place.at.packets,
                end_bytes: of.gone.bytes,
            }));
        }
        let (first, count) = (place.at.packets, of.gone.since(place.at));
        place.at = of.gone;
        place.dropped = place.dropped.plus(count);
        Some(Item::Dropped { stream, first, count })
    }
}

impl Cursor {
    /// Of a client that has this already. With `catches_up` it gets what came before it from
    /// the files, by [`Item::Behind`]; else that is dropped.
    #[must_use]
    pub fn new(has: Vec<Has>, catches_up: bool) -> Cursor {
        let has = has.into_iter().map(|has| ((has.folder, has.name), (has.next, has.offset_bytes)));
        Cursor { catches_up, has: has.collect(), ..Cursor::default() }
    }

    /// This number of packets of [`Item::Behind`] was sent, from `behind.first` on; up to `end_bytes`.
    /// The next ones are requested again, unless the files cannot be read: then they are dropped.
    pub fn caught_up(&mut self, behind: &Behind, packets: u64, end_bytes: u64, readable: bool) {
        let Some(place) = self.streams.get_mut(behind.stream as usize) else { return };
        let bytes = end_bytes.saturating_sub(behind.offset_bytes);
        let sent = Count { packets, bytes, events: None };
        place.at = Count { packets: behind.first + packets, bytes: end_bytes, events: None };
        place.sent = place.sent.plus(sent);
        self.catches_up &= readable;
    }

    /// The packet that was given out last did not reach the client: it is not sent.
    pub fn take_back(&mut self) {
        if let Some((stream, place)) = self.before_last.take()
            && let Some(now) = self.streams.get_mut(stream as usize)
        {
            *now = place;
        }
    }

    /// Sent so far, all streams.
    #[must_use]
    pub fn sent(&self) -> Count {
        self.streams.iter().fold(Count::default(), |sum, place| sum.plus(place.sent))
    }

    /// Dropped so far, of each stream that something was dropped of. With `rest` also what the
    /// client was not sent in time, up to the end of the recording.
    #[must_use]
    pub fn dropped(&self, window: &Window, rest: bool) -> Vec<StreamCount> {
        let none = Place::default();
        let all = window.streams.iter().enumerate().map(|(index, of)| {
            let place = self.streams.get(index).unwrap_or(&none);
            let left = of.written.since(place.at);
            let count = if rest { place.dropped.plus(left) } else { place.dropped };
            StreamCount { folder: of.folder, name: of.name.as_ref().to_owned(), count }
        });
        all.filter(|one| one.count.packets > 0).collect()
    }
}

#[cfg(test)]
mod tests;
