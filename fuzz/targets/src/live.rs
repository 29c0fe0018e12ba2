// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Live streams: frames from a peer, dumps from a bfscope.

use lateralis_live::bfscope::Dumps;
use lateralis_live::{
    BODY_BYTES_MAX, Count, Decoder, Fault, Folder, Has, Message, PREAMBLE_BYTES, Preamble, Request,
    frame_header,
};

/// Besides not panicking: however the bytes come, the same messages and the same fault come of
/// them; what was read is written as frames that say the same; names stay in their folder; and of
/// a dump nothing but lengths is left out.
pub fn check(bytes: &[u8]) {
    let whole = read(bytes, bytes.len().max(1));
    for piece in [1, 7] {
        assert_eq!(read(bytes, piece), whole);
    }
    let (messages, _) = whole;
    let mut written = Preamble::default().encode().to_vec();
    messages.iter().for_each(|(_, frame)| written.extend(frame));
    let (again, fault) = read(&written, written.len());
    assert_eq!(again, messages);
    assert_eq!(fault, None);
    check_dumps(bytes);
    // No mutation finds a checksum: a body with a right one, of the kind that the first byte says.
    if let Some((kind, body)) = bytes.split_first() {
        let mut framed = Preamble::default().encode().to_vec();
        framed.extend(frame_header((*kind).into(), &[body]));
        framed.extend(body);
        if let (messages, None) = read(&framed, framed.len())
            && let [(_, frame)] = &messages[..]
        {
            let mut again = Preamble::default().encode().to_vec();
            again.extend(frame);
            assert_eq!(read(&again, again.len()), (messages, None));
        }
    }
}

/// Each message as text and as a frame, and why there are no more.
type Messages = (Vec<(String, Vec<u8>)>, Option<Fault>);

fn read(bytes: &[u8], piece: usize) -> Messages {
    let mut decoder = Decoder::new(BODY_BYTES_MAX);
    let mut messages = Vec::new();
    for part in bytes.chunks(piece) {
        decoder.feed(part);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => {
                    if let Message::Stream { name, .. } = message {
                        assert!(!name.contains('/') && !name.starts_with('.'), "{name}");
                    }
                    let mut frame = Vec::new();
                    message.encode(&mut frame);
                    messages.push((format!("{message:?}"), frame));
                }
                Ok(None) => break,
                Err(fault) => return (messages, Some(fault)),
            }
        }
    }
    (messages, None)
}

fn check_dumps(bytes: &[u8]) {
    let text = |piece: usize| {
        let mut dumps = Dumps::default();
        bytes.chunks(piece).for_each(|part| dumps.feed(part));
        dumps.end();
        (dumps.take(), dumps.count())
    };
    let (all, count) = text(bytes.len().max(1));
    assert_eq!(text(1), (all.clone(), count));
    let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines(&all), lines(bytes));
    assert!(all.len() <= bytes.len() && count as usize <= bytes.len() / 7);
}

/// A whole stream of each side, and dumps.
pub fn good() -> Vec<Vec<u8>> {
    let count = Count { packets: 1, bytes: 2, events: None };
    let server = [
        Message::Recording { uuid: [7; 16], from_start: true },
        Message::Report(b"{}"),
        Message::Metadata(b"/* CTF 1.8 */"),
        Message::Stream { stream: 0, class: 1, folder: Folder::Ctf, name: "1_a_cpu0" },
        Message::Packet { stream: 0, number: 0, offset_bytes: 0, bytes: b"a packet" },
        Message::Dropped { stream: 0, first: 1, count },
        Message::Flushed { count: 1, utc_ns: 2 },
        Message::ClockAnswer { asked_ns: 1, received_ns: 2, sent_ns: 3 },
        Message::Refused("no"),
        Message::End { complete: true },
    ];
    let has = Has { folder: Folder::Unreadable, name: "b".into(), next: 3, offset_bytes: 4 };
    let request = Request { token: b"secret".to_vec(), uuid: [7; 16], has: vec![has] };
    let client = [
        Message::Request(request),
        Message::ClockAsk { asked_ns: 5 },
        Message::FlushEvery { period_ms: 5 },
    ];
    let mut all: Vec<Vec<u8>> = [&server[..], &client]
        .into_iter()
        .map(|messages| {
            let mut bytes = Preamble::default().encode().to_vec();
            messages.iter().for_each(|message| message.encode(&mut bytes));
            bytes
        })
        .collect();
    // Bodies preceded by their kind.
    let bodies = server.iter().chain(&client).map(|message| {
        let mut frame = Vec::new();
        message.encode(&mut frame);
        [&frame[4..5], &frame[16..]].concat()
    });
    all.extend(bodies);
    all.push(all[1][PREAMBLE_BYTES..].to_vec());
    all.push(b"00000030# Start 5 Duration 0 Stop 9\n0 7 2\n    6# Start 1\n0 1 2\n".to_vec());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_good_streams_are_read_completely() {
        let counts: Vec<_> = good().iter().map(|bytes| read(bytes, 3).0.len()).collect();
        assert_eq!(counts[..3], [10, 3, 0]);
    }
}
