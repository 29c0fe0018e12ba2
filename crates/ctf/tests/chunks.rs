// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rotated and snapshot recordings: packets of one stream in several files.

use std::fs;
use std::path::PathBuf;

use lateralis_ctf::{Reader, StreamFile, open};
use lateralis_model::LossCause;

const UUID: &str = "f6a5f6b0-7a0d-4a53-8e2c-5a4b1d0c9e11";

/// Metadata with an event for each name; packets are numbered or not.
fn metadata(uuid: &str, numbered: bool, names: &[&str]) -> String {
    let number = if numbered { "u64 packet_seq_num; " } else { "" };
    let mut text = format!(
        "/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; }} := u8;
typealias integer {{ size = 64; align = 8; }} := u64;
trace {{ major = 1; minor = 8; byte_order = le; uuid = \"{uuid}\";
    packet.header := struct {{ u8 stream_instance_id; }}; }};
clock {{ name = c; }};
stream {{ id = 0;
    packet.context := struct {{ u64 timestamp_begin; u64 timestamp_end; u64 content_size;
        u64 packet_size; u64 events_discarded; {number}}};
    event.header := struct {{ u8 id;
        integer {{ size = 64; align = 8; map = clock.c.value; }} timestamp; }}; }};
"
    );
    for (id, name) in names.iter().enumerate() {
        text += &format!(
            "event {{ name = {name}; id = {id}; stream_id = 0; fields := struct {{ u8 n; }}; }};\n"
        );
    }
    text
}

/// A packet of stream 5 with two events, at ten times its number and one later.
fn packet(number: u64, numbered: bool, n: u8) -> Vec<u8> {
    let time = number * 10;
    let size = if numbered { 49 } else { 41 } + 2 * 10;
    let mut words = vec![time, time + 1, size * 8, size * 8, number * 3];
    words.extend(numbered.then_some(number));
    let mut bytes = vec![5];
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    for time in [time, time + 1] {
        bytes.push(0);
        bytes.extend(time.to_le_bytes());
        bytes.push(n);
    }
    assert_eq!(bytes.len() as u64, size);
    bytes
}

fn read(metadata: &str, files: &[Vec<u8>]) -> (Vec<(i64, u64)>, Reader) {
    let files = files.iter().enumerate().map(|(index, bytes)| StreamFile {
        name: format!("{index}"),
        bytes: Box::new(bytes.clone()),
    });
    let reader = Reader::new(metadata.as_bytes(), files.collect());
    assert_eq!(reader.diagnostics(), []);
    assert_eq!(reader.damage(), []);
    let mut events = Vec::new();
    let mut merge = reader.events();
    while let Some(event) = merge.next_event() {
        let n = event.payload().unwrap().get("n").unwrap().as_u64().unwrap();
        events.push((event.time.0, n));
    }
    assert_eq!(merge.damage().count(), 0);
    (events, reader)
}

#[test]
fn packets_in_several_snapshots_count_once() {
    let metadata = metadata(UUID, true, &["e"]);
    let snapshot = |numbers: &[u64]| {
        numbers.iter().flat_map(|&number| packet(number, true, 1)).collect::<Vec<u8>>()
    };
    // The third begins before the second, and packet 6 is in none.
    let files = [snapshot(&[2, 3, 4]), snapshot(&[4, 5]), snapshot(&[3, 4, 5, 7])];
    let (events, reader) = read(&metadata, &files);
    let expected: Vec<(i64, u64)> =
        [2, 3, 4, 5, 7].into_iter().flat_map(|n| [(n * 10, 1), (n * 10 + 1, 1)]).collect();
    assert_eq!(events, expected);
    assert_eq!(reader.streams().len(), 1);
    let lost = |cause| {
        let of_cause = reader.losses().iter().filter(|loss| loss.cause == cause);
        of_cause.filter_map(|loss| loss.count).sum::<u64>()
    };
    assert_eq!((lost(LossCause::Packets), lost(LossCause::Discarded)), (1, 15));
}

#[test]
fn without_numbers_the_bytes_tell_what_is_the_same() {
    let metadata = metadata(UUID, false, &["e"]);
    let files = [packet(2, false, 1), packet(2, false, 1), packet(2, false, 9)];
    let (events, _) = read(&metadata, &files);
    assert_eq!(events, [(20, 1), (21, 1), (20, 9), (21, 9)]);
}

#[test]
fn chunks_that_follow_each_other_are_joined_by_time() {
    let metadata = metadata(UUID, true, &["e"]);
    let (events, reader) = read(&metadata, &[packet(8, true, 2), packet(7, true, 1)]);
    assert_eq!(events, [(70, 1), (71, 1), (80, 2), (81, 2)]);
    assert!(reader.losses().iter().all(|loss| loss.cause != LossCause::Packets));
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lat-chunks-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn chunk(&self, name: &str, metadata: &str, packets: &[u8]) {
        fs::create_dir_all(self.0.join(name)).unwrap();
        fs::write(self.0.join(name).join("metadata"), metadata).unwrap();
        fs::write(self.0.join(name).join("stream_0"), packets).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn directories_with_one_uuid_are_one_trace_with_the_metadata_that_says_most() {
    let folder = Folder::new("one");
    let first = metadata(UUID, true, &["e"]);
    // Not the same beginning: a later chunk may be written in another order.
    let second = metadata(UUID, true, &["e", "f"]).replace("/* CTF 1.8 */", "/* CTF 1.8 */ ");
    folder.chunk("a", &first, &packet(1, true, 1));
    folder.chunk("b", &second, &packet(2, true, 2));
    let places = open::find(&folder.0).unwrap();
    assert_eq!(places.len(), 1);
    assert_eq!(places[0].metadata, folder.0.join("b/metadata"));
    assert_eq!(places[0].streams.len(), 2);
    let reader = places[0].open().unwrap();
    assert_eq!(reader.streams().len(), 1);
    assert_eq!(reader.trace().stream_classes[0].event_classes.len(), 2);
}

#[test]
fn directories_whose_metadata_contradict_each_other_stay_apart() {
    let folder = Folder::new("two");
    folder.chunk("a", &metadata(UUID, true, &["e"]), &packet(1, true, 1));
    folder.chunk("b", &metadata(UUID, true, &["other"]), &packet(2, true, 2));
    let foreign = UUID.replace('f', "e");
    folder.chunk("c", &metadata(&foreign, true, &["e"]), &packet(3, true, 3));
    let places = open::find(&folder.0).unwrap();
    assert_eq!(places.len(), 3);
}
