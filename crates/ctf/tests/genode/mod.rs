// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams as Genode's trace recorder writes them: a packet for each period, with the
//! names of component and thread in its context, without the size of its content.

#![allow(dead_code, reason = "each test uses its part")]

/// The layout of the recorder's streams, as its metadata describes it.
pub const METADATA: &str = include_str!("../../../seedformats/tests/formats/genode-metadata.txt");

/// An event: its number, its time, its fields.
pub fn event(id: u8, time: u64, payload: &[u8]) -> Vec<u8> {
    [&[id][..], &time.to_le_bytes(), payload].concat()
}

/// An event of one of the seven kinds, chosen by its number.
pub fn any_event(time: u64, number: u32) -> Vec<u8> {
    let word = number.wrapping_mul(2_654_435_761).to_le_bytes();
    let name = format!("function_{}\0", number % 13).into_bytes();
    match number % 7 {
        4 => event(5, time, &word),
        5 => event(6, time, &[&word[..], &u64::from(number).to_le_bytes()].concat()),
        6 => {
            let kind = [0, 1, 2, 0x10, 0x11, 0x12, 0xfe, 0xff][number as usize / 7 % 8];
            let address = u64::from(number) << 12;
            event(7, time, &[&word[..], &address.to_le_bytes(), &[kind], &name].concat())
        }
        kind => event(kind as u8 + 1, time, &name),
    }
}

/// What one thread did in one period.
pub fn packet(label: &str, thread: &str, times: (u64, u64), events: &[Vec<u8>]) -> Vec<u8> {
    let names = format!("{label}\0{thread}\0");
    let header_bytes = 33 + names.len();
    let events = events.concat();
    let mut bytes = 0xc1fc_1fc1u32.to_le_bytes().to_vec();
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(times.0.to_le_bytes());
    bytes.extend(times.1.to_le_bytes());
    bytes.extend((((header_bytes + events.len()) * 8) as u32).to_le_bytes());
    bytes.extend(((header_bytes * 8) as u16).to_le_bytes());
    // Four bits each: x, y, width, height; then the priority.
    bytes.extend([0x21, 0x11, 128]);
    bytes.extend(names.as_bytes());
    bytes.extend(events);
    bytes
}

/// The streams of a run by path, each with this many packets.
pub fn tree(packets: u32) -> Vec<(String, Vec<u8>)> {
    let stream = |(index, (path, label, events)): (u64, (&str, &str, u32))| {
        let mut bytes = Vec::new();
        for period in 0..packets {
            let time =
                |number: u32| 1_000_000 * u64::from(period) + 100 * u64::from(number) + index;
            let events: Vec<Vec<u8>> =
                (0..events).map(|n| any_event(time(n), period * events + n)).collect();
            let last = events.len() as u32 - 1;
            bytes.extend(packet(label, "ep", (time(0), time(last)), &events));
        }
        (path.to_owned(), bytes)
    };
    let streams = [
        ("init/runtime/nic_router/ep", "init -> runtime -> nic_router", 700),
        ("init/rom/ep", "init -> rom", 40),
        ("init/timer/ep", "init -> timer", 1),
    ];
    (0..).zip(streams).map(stream).collect()
}
