// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What was written is had, sent or dropped: no packet twice, none forgotten.

use super::*;

/// Everything a cursor gets now; packets as stream and number.
#[derive(Default)]
struct Got {
    packets: Vec<(u32, u64)>,
    dropped: Count,
    others: Vec<Item>,
}

fn take(window: &Window, cursor: &mut Cursor, most: usize) -> Got {
    let mut got = Got::default();
    for _ in 0..most {
        match window.next(cursor) {
            None | Some(Item::End) => break,
            Some(Item::Packet { stream, number, .. }) => got.packets.push((stream, number)),
            Some(Item::Dropped { count, .. }) => got.dropped = got.dropped.plus(count),
            Some(other) => got.others.push(other),
        }
    }
    got
}

fn packet(bytes: usize) -> Arc<[u8]> {
    vec![7; bytes].into()
}

/// 100 packets of 10 bytes with 3 events in two streams, of which the window holds 10.
fn full() -> Window {
    let mut window = Window::new(100);
    window.set_metadata(b"m");
    let streams = ["a", "b"].map(|name| window.add_stream(Folder::Ctf, name, 5));
    for n in 0..100 {
        window.push(streams[n % 2], Some(3), packet(10));
    }
    window
}

#[test]
fn a_client_that_keeps_up_gets_all_and_one_that_is_stuck_loses_exactly_the_rest() {
    let mut window = Window::new(100);
    window.set_metadata(b"m");
    let stream = window.add_stream(Folder::Ctf, "a", 5);
    let (mut quick, mut stuck) = (Cursor::default(), Cursor::default());
    let mut quick_packets = Vec::new();
    let mut stuck_packets = Vec::new();
    let mut stuck_dropped = Count::default();
    for n in 0..1000 {
        window.push(stream, Some(2), packet(10));
        quick_packets.extend(take(&window, &mut quick, usize::MAX).packets);
        if n % 37 == 0 {
            let got = take(&window, &mut stuck, 4);
            stuck_packets.extend(got.packets);
            stuck_dropped = stuck_dropped.plus(got.dropped);
        }
    }
    window.end();
    let rest = take(&window, &mut stuck, usize::MAX);
    stuck_packets.extend(rest.packets);
    stuck_dropped = stuck_dropped.plus(rest.dropped);
    assert_eq!(quick_packets, (0..1000).map(|n| (0, n)).collect::<Vec<_>>());
    assert!(stuck_packets.is_sorted_by(|a, b| a.1 < b.1));
    assert!(stuck_dropped.packets > 500);
    assert_eq!(stuck_packets.len() as u64 + stuck_dropped.packets, 1000);
    assert_eq!(stuck_dropped.events, Some(2 * stuck_dropped.packets));
    assert_eq!(stuck_dropped.bytes, 10 * stuck_dropped.packets);
    assert_eq!(stuck.dropped(&window, true)[0].count, stuck_dropped);
    assert_eq!(stuck.sent().events, Some(2000 - stuck_dropped.events.unwrap()));
    assert!(window.is_drained(&quick) && window.is_drained(&stuck));
}

#[test]
fn metadata_and_streams_come_before_their_packets() {
    let mut window = full();
    let mut cursor = Cursor::default();
    assert!(matches!(window.next(&mut cursor), Some(Item::Metadata(text)) if *text == *b"m"));
    assert!(matches!(window.next(&mut cursor), Some(Item::Stream { stream: 0, class: 5, .. })));
    let dropped = Count { packets: 45, bytes: 450, events: Some(135) };
    assert_eq!(
        window.next(&mut cursor),
        Some(Item::Dropped { stream: 0, first: 0, count: dropped })
    );
    assert_eq!(take(&window, &mut cursor, usize::MAX).packets.len(), 10);
    window.set_metadata(b"more");
    window.push(1, None, packet(10));
    window.flushed(77);
    assert!(matches!(window.next(&mut cursor), Some(Item::Metadata(text)) if *text == *b"more"));
    assert!(matches!(window.next(&mut cursor), Some(Item::Packet { stream: 1, number: 50, .. })));
    assert_eq!(window.next(&mut cursor), Some(Item::Flushed { count: 1, utc_ns: 77 }));
    assert_eq!(window.next(&mut cursor), None);
}

#[test]
fn a_late_client_catches_up_from_the_files_while_the_window_moves() {
    let mut window = full();
    let mut cursor = Cursor::new(Vec::new(), true);
    let mut got = [Vec::new(), Vec::new()];
    let mut rounds = 0;
    loop {
        match window.next(&mut cursor) {
            Some(Item::Behind(behind)) => {
                // Only half of it, while the recording continues.
                let some = behind.packets.div_ceil(2);
                got[behind.stream as usize].extend(behind.first..behind.first + some);
                cursor.caught_up(&behind, some, behind.offset_bytes + some * 10, true);
                rounds += 1;
                for n in 0..if rounds < 5 { 20 } else { 0 } {
                    window.push(n % 2, Some(3), packet(10));
                }
            }
            Some(Item::Packet { stream, number, offset_bytes, .. }) => {
                assert_eq!(offset_bytes, number * 10);
                got[stream as usize].push(number);
            }
            Some(Item::Dropped { .. }) => panic!("nothing was lost"),
            Some(_) => {}
            None => break,
        }
    }
    assert!(rounds >= 5);
    for numbers in got {
        assert_eq!(numbers, (0..90).collect::<Vec<_>>());
    }
}

#[test]
fn who_comes_back_gets_what_is_missing_and_nothing_twice() {
    let mut window = full();
    let has = |name: &str, next: u64| Has {
        folder: Folder::Ctf,
        name: name.to_owned(),
        next,
        offset_bytes: next.saturating_mul(10),
    };
    // 45 of each are gone. One is missed by both ways, the other is in the window.
    let mut cursor = Cursor::new(vec![has("a", 40), has("b", 47)], false);
    let got = take(&window, &mut cursor, usize::MAX);
    assert_eq!((got.dropped.packets, got.dropped.bytes, got.dropped.events), (5, 50, None));
    assert_eq!(got.packets.iter().filter(|(stream, _)| *stream == 1).count(), 3);
    assert_eq!(got.packets.iter().filter(|(stream, _)| *stream == 0).count(), 5);
    // More than there is: a lie that gives nothing.
    let mut cursor = Cursor::new(vec![has("a", u64::MAX), has("b", 50)], true);
    assert!(take(&window, &mut cursor, usize::MAX).packets.is_empty());
    window.end();
    assert!(window.is_drained(&cursor));
}

#[test]
fn files_that_cannot_be_read_are_losses() {
    let window = full();
    let mut cursor = Cursor::new(Vec::new(), true);
    let mut dropped = Count::default();
    let mut packets = 0;
    while let Some(item) = window.next(&mut cursor) {
        match item {
            Item::Behind(behind) => cursor.caught_up(&behind, 2, 20, false),
            Item::Dropped { count, .. } => dropped = dropped.plus(count),
            Item::Packet { .. } => packets += 1,
            _ => {}
        }
    }
    assert_eq!((dropped.packets, dropped.bytes, dropped.events), (88, 880, None));
    assert_eq!(packets, 10);
    assert_eq!(cursor.sent().packets, 12);
}
