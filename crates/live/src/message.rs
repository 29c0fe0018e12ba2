// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What frames say [live §4].

use crate::fields::Fields;
use crate::frame::frame_header;
use crate::token::TOKEN_BYTES_MAX;
use crate::window::Count;

/// Most streams of a recording.
pub const STREAMS_MAX: usize = 65536;
/// Longest name of a stream, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

mod kind {
    pub(super) const RECORDING: u16 = 1;
    pub(super) const METADATA: u16 = 2;
    pub(super) const STREAM: u16 = 3;
    pub(super) const PACKET: u16 = 4;
    pub(super) const DROPPED: u16 = 5;
    pub(super) const FLUSHED: u16 = 6;
    pub(super) const REPORT: u16 = 7;
    pub(super) const CLOCK_ANSWER: u16 = 8;
    pub(super) const END: u16 = 9;
    pub(super) const REFUSED: u16 = 10;
    pub(super) const CLOCK_TICKS: u16 = 11;
    pub(super) const REQUEST: u16 = 32;
    pub(super) const CLOCK_ASK: u16 = 33;
    pub(super) const FLUSH_EVERY: u16 = 34;
}

/// The folder of a recording that a stream file is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Folder {
    /// Part of the trace.
    Ctf,
    /// Packets that no metadata describes.
    Unreadable,
}

/// What a client has of a stream already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Has {
    /// Folder of its file.
    pub folder: Folder,
    /// Name of its file.
    pub name: String,
    /// The packet that it wants next, counted from 0 in the server's file.
    pub next: u64,
    /// Where that packet begins in the server's file, in bytes.
    pub offset_bytes: u64,
}

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The secret; empty where none is needed.
    pub token: Vec<u8>,
    /// The recording that `has` is of; zeros for a new client.
    pub uuid: [u8; 16],
    /// Streams that it has something of.
    pub has: Vec<Has>,
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// The first of a server: which recording it is.
    Recording {
        /// UUID of the trace, in every packet.
        uuid: [u8; 16],
        /// What came before the client did is sent, too.
        from_start: bool,
    },
    /// All of `ctf/metadata`, as of now.
    Metadata(&'a [u8]),
    /// A stream file begins.
    Stream {
        /// Number of the stream on this connection.
        stream: u32,
        /// Stream class of its first packet.
        class: u32,
        /// Folder of its file.
        folder: Folder,
        /// Name of its file: no `/`, no NUL, no dot in front.
        name: &'a str,
    },
    /// A packet with its bytes as in the file.
    Packet {
        /// Which stream.
        stream: u32,
        /// Its number in the server's file, counted from 0.
        number: u64,
        /// Where it begins in the server's file, in bytes.
        offset_bytes: u64,
        /// The packet.
        bytes: &'a [u8],
    },
    /// Packets that this client does not get.
    Dropped {
        /// Which stream.
        stream: u32,
        /// Number of the first of them.
        first: u64,
        /// How many.
        count: Count,
    },
    /// Everything recorded up to a moment has been sent or dropped.
    Flushed {
        /// Flushes so far.
        count: u64,
        /// The moment, nanoseconds of UTC as the server has it.
        utc_ns: i64,
    },
    /// All of `report.json`, as of now.
    Report(&'a [u8]),
    /// What the client asked with [`Message::ClockAsk`], and when it came and went.
    ClockAnswer {
        /// As asked.
        asked_ns: i64,
        /// The server's clock when it was received.
        received_ns: i64,
        /// The server's clock when it is sent.
        sent_ns: i64,
    },
    /// The same by the counter that events have their times from; before the
    /// [`Message::ClockAnswer`].
    ClockTicks {
        /// As asked.
        asked_ns: i64,
        /// Which counter: `lat_clock_kind` [ring-abi].
        clock_kind: u32,
        /// The server's counter when it was received.
        received_ticks: u64,
        /// The server's counter when it is sent.
        sent_ticks: u64,
    },
    /// Nothing follows.
    End {
        /// The recording is complete; else only this connection ends.
        complete: bool,
    },
    /// The server does not serve this client, and why.
    Refused(&'a str),
    /// What a client wants: its first frame.
    Request(Request),
    /// What time is it? With the client's own.
    ClockAsk {
        /// The client's clock.
        asked_ns: i64,
    },
    /// The client would see events sooner: it asks for a flush at least this often.
    FlushEvery {
        /// Milliseconds; 0: as often as there are flushes anyway.
        period_ms: u32,
    },
}

fn is_file_name(name: &str) -> bool {
    let inside = name.bytes().any(|byte| byte == b'/' || byte < b' ' || byte == 0x7f);
    // `index` is a folder, and what begins with `metadata` describes the streams.
    let taken = name == "index" || name.starts_with("metadata");
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.starts_with('.') && !inside && !taken
}

fn folder_of(word: u32) -> Option<Folder> {
    [Folder::Ctf, Folder::Unreadable].get(word as usize).copied()
}

impl<'a> Message<'a> {
    pub(crate) fn knows(kind: u16) -> bool {
        matches!(kind, kind::RECORDING..=kind::CLOCK_TICKS | kind::REQUEST..=kind::FLUSH_EVERY)
    }

    /// Reads a body; `None` if it is malformed.
    pub(crate) fn decode(kind: u16, body: &'a [u8]) -> Option<Message<'a>> {
        let mut fields = Fields(body);
        let message = match kind {
            kind::RECORDING => {
                Message::Recording { uuid: fields.array()?, from_start: fields.u32()? & 1 != 0 }
            }
            kind::METADATA => Message::Metadata(fields.rest()),
            kind::STREAM => {
                let (stream, class) = (fields.u32()?, fields.u32()?);
                let folder = folder_of(fields.u32()?)?;
                let name = std::str::from_utf8(fields.rest()).ok()?;
                let good = is_file_name(name) && (stream as usize) < STREAMS_MAX;
                good.then_some(Message::Stream { stream, class, folder, name })?
            }
            kind::PACKET => {
                let (stream, _) = (fields.u32()?, fields.u32()?);
                let (number, offset_bytes) = (fields.u64()?, fields.u64()?);
                Message::Packet { stream, number, offset_bytes, bytes: fields.rest() }
            }
            kind::DROPPED => {
                let (stream, _) = (fields.u32()?, fields.u32()?);
                let first = fields.u64()?;
                let count =
                    Count { packets: fields.u64()?, bytes: fields.u64()?, events: fields.known()? };
                Message::Dropped { stream, first, count }
            }
            kind::FLUSHED => Message::Flushed { count: fields.u64()?, utc_ns: fields.i64()? },
            kind::REPORT => Message::Report(fields.rest()),
            kind::CLOCK_ANSWER => Message::ClockAnswer {
                asked_ns: fields.i64()?,
                received_ns: fields.i64()?,
                sent_ns: fields.i64()?,
            },
            kind::CLOCK_TICKS => {
                let (asked_ns, clock_kind, _) = (fields.i64()?, fields.u32()?, fields.u32()?);
                let (received_ticks, sent_ticks) = (fields.u64()?, fields.u64()?);
                Message::ClockTicks { asked_ns, clock_kind, received_ticks, sent_ticks }
            }
            kind::END => Message::End { complete: fields.u32()? & 1 != 0 },
            kind::REFUSED => Message::Refused(std::str::from_utf8(fields.rest()).ok()?),
            kind::REQUEST => Message::Request(Request::decode(&mut fields)?),
            kind::CLOCK_ASK => Message::ClockAsk { asked_ns: fields.i64()? },
            kind::FLUSH_EVERY => Message::FlushEvery { period_ms: fields.u32()? },
            _ => return None,
        };
        fields.end()?;
        Some(message)
    }

    /// Appends the frame. Packets are better sent by [`packet_head`](Message::packet_head).
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let mut put = |bytes: &[u8]| body.extend_from_slice(bytes);
        let kind = match self {
            Message::Recording { uuid, from_start } => {
                put(uuid);
                put(&u32::from(*from_start).to_le_bytes());
                kind::RECORDING
            }
            Message::Metadata(text) => {
                put(text);
                kind::METADATA
            }
            Message::Stream { stream, class, folder, name } => {
                put(&stream.to_le_bytes());
                put(&class.to_le_bytes());
                put(&(*folder as u32).to_le_bytes());
                put(name.as_bytes());
                kind::STREAM
            }
            Message::Packet { stream, number, offset_bytes, bytes } => {
                put(&Self::packet_fields(*stream, *number, *offset_bytes));
                put(bytes);
                kind::PACKET
            }
            Message::Dropped { stream, first, count } => {
                put(&stream.to_le_bytes());
                put(&[0; 4]);
                let numbers =
                    [*first, count.packets, count.bytes, count.events.unwrap_or(u64::MAX)];
                put(numbers.map(u64::to_le_bytes).as_flattened());
                kind::DROPPED
            }
            Message::Flushed { count, utc_ns } => {
                put(&count.to_le_bytes());
                put(&utc_ns.to_le_bytes());
                kind::FLUSHED
            }
            Message::Report(text) => {
                put(text);
                kind::REPORT
            }
            Message::ClockAnswer { asked_ns, received_ns, sent_ns } => {
                put([*asked_ns, *received_ns, *sent_ns].map(i64::to_le_bytes).as_flattened());
                kind::CLOCK_ANSWER
            }
            Message::ClockTicks { asked_ns, clock_kind, received_ticks, sent_ticks } => {
                put(&asked_ns.to_le_bytes());
                put(&clock_kind.to_le_bytes());
                put(&[0; 4]);
                put([*received_ticks, *sent_ticks].map(u64::to_le_bytes).as_flattened());
                kind::CLOCK_TICKS
            }
            Message::End { complete } => {
                put(&u32::from(*complete).to_le_bytes());
                kind::END
            }
            Message::Refused(reason) => {
                put(reason.as_bytes());
                kind::REFUSED
            }
            Message::Request(request) => {
                request.encode(&mut body);
                kind::REQUEST
            }
            Message::ClockAsk { asked_ns } => {
                put(&asked_ns.to_le_bytes());
                kind::CLOCK_ASK
            }
            Message::FlushEvery { period_ms } => {
                put(&period_ms.to_le_bytes());
                kind::FLUSH_EVERY
            }
        };
        out.extend_from_slice(&frame_header(kind, &[&body]));
        out.extend_from_slice(&body);
    }

    fn packet_fields(stream: u32, number: u64, offset_bytes: u64) -> [u8; 24] {
        let mut fields = [0; 24];
        fields[..4].copy_from_slice(&stream.to_le_bytes());
        fields[8..16].copy_from_slice(&number.to_le_bytes());
        fields[16..].copy_from_slice(&offset_bytes.to_le_bytes());
        fields
    }

    /// The bytes before a packet's own bytes in its frame, so that the packet need not be copied.
    #[must_use]
    pub fn packet_head(stream: u32, number: u64, offset_bytes: u64, bytes: &[u8]) -> [u8; 40] {
        let fields = Self::packet_fields(stream, number, offset_bytes);
        let mut head = [0; 40];
        head[..16].copy_from_slice(&frame_header(kind::PACKET, &[&fields, bytes]));
        head[16..].copy_from_slice(&fields);
        head
    }
}

impl Request {
    fn decode(fields: &mut Fields<'_>) -> Option<Request> {
        let token = fields.counted(TOKEN_BYTES_MAX)?.to_vec();
        let uuid = fields.array()?;
        let count = fields.u32()? as usize;
        if count > STREAMS_MAX {
            return None;
        }
        let mut has = Vec::new();
        for _ in 0..count {
            let folder = folder_of(fields.u32()?)?;
            let (next, offset_bytes) = (fields.u64()?, fields.u64()?);
            let name = std::str::from_utf8(fields.counted(NAME_BYTES_MAX)?).ok()?.to_owned();
            has.push(Has { folder, name, next, offset_bytes });
        }
        Some(Request { token, uuid, has })
    }

    fn encode(&self, body: &mut Vec<u8>) {
        let counted = |body: &mut Vec<u8>, bytes: &[u8]| {
            body.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            body.extend_from_slice(bytes);
        };
        counted(body, &self.token);
        body.extend_from_slice(&self.uuid);
        body.extend_from_slice(&(self.has.len() as u32).to_le_bytes());
        for has in &self.has {
            body.extend_from_slice(&(has.folder as u32).to_le_bytes());
            body.extend_from_slice(&has.next.to_le_bytes());
            body.extend_from_slice(&has.offset_bytes.to_le_bytes());
            counted(body, has.name.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BODY_BYTES_MAX, Decoder, Preamble};

    #[test]
    fn what_is_encoded_is_decoded() {
        let count = Count { packets: 1, bytes: 2, events: Some(3) };
        let has = Has { folder: Folder::Unreadable, name: "a".into(), next: 7, offset_bytes: 9 };
        let request = Request { token: b"secret".to_vec(), uuid: [3; 16], has: vec![has] };
        let messages = [
            Message::Recording { uuid: *b"0123456789abcdef", from_start: true },
            Message::Metadata(b"/* CTF 1.8 */"),
            Message::Stream { stream: 4, class: 1, folder: Folder::Ctf, name: "1_a_cpu0" },
            Message::Packet { stream: 4, number: 5, offset_bytes: 6, bytes: b"packet" },
            Message::Dropped { stream: 4, first: 5, count },
            Message::Dropped { stream: 4, first: 5, count: Count { events: None, ..count } },
            Message::Flushed { count: 1, utc_ns: -1 },
            Message::Report(b"{}"),
            Message::ClockAnswer { asked_ns: 1, received_ns: 2, sent_ns: 3 },
            Message::ClockTicks {
                asked_ns: -1,
                clock_kind: 1,
                received_ticks: 2,
                sent_ticks: u64::MAX,
            },
            Message::End { complete: true },
            Message::Refused("wrong token"),
            Message::Request(request),
            Message::ClockAsk { asked_ns: i64::MIN },
            Message::FlushEvery { period_ms: 50 },
        ];
        let mut bytes = Preamble::default().encode().to_vec();
        messages.iter().for_each(|message| message.encode(&mut bytes));
        let mut decoder = Decoder::new(BODY_BYTES_MAX);
        decoder.feed(&bytes);
        for message in &messages {
            assert_eq!(decoder.next_message().unwrap().as_ref(), Some(message));
        }
        assert_eq!(decoder.next_message(), Ok(None));
        let mut whole = Vec::new();
        messages[3].encode(&mut whole);
        let head = Message::packet_head(4, 5, 6, b"packet");
        assert_eq!(whole, [&head[..], b"packet"].concat());
    }

    #[test]
    fn names_stay_in_their_folder() {
        for name in ["", "..", ".hidden", "a/b", "/etc/passwd", "a\0", "index", "metadata.new"] {
            assert!(!is_file_name(name), "{name}");
        }
        assert!(is_file_name("1234_00000000000000a1_cpu0") && !is_file_name(&"a".repeat(256)));
    }
}
