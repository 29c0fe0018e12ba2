// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tests share: captures made by hand, packets of a source as values.

#![allow(dead_code)]

use std::path::PathBuf;

use lateralis_model::{Source, Value};

/// A packet as a value. `None` as time: it has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub time: Option<i64>,
    pub interface: String,
    pub direction: u64,
    pub link_type: u64,
    pub original: u64,
    pub flags: u64,
    pub comment: Option<String>,
    pub data: Vec<u8>,
}

pub fn packets(source: &dyn Source) -> Vec<Seen> {
    let mut events = source.events();
    let mut all = Vec::new();
    while let Some(event) = events.next_event() {
        let payload = event.payload().unwrap();
        let number = |name: &str| payload.get(name).unwrap().as_u64().unwrap();
        let Value::Bytes(data) = payload.get("data").unwrap().value() else { panic!() };
        let Value::Optional(comment) = payload.get("comment").unwrap().value() else { panic!() };
        assert_eq!(number("captured_bytes"), data.len() as u64);
        let interface = payload.get("interface").unwrap().as_text().unwrap().into_owned();
        assert_eq!(source.streams()[event.stream.0 as usize].name, interface);
        all.push(Seen {
            time: event.ticks.map(|_| event.time.0),
            interface,
            direction: number("direction"),
            link_type: number("link_type"),
            original: number("original_bytes"),
            flags: number("flags"),
            comment: comment.map(|text| text.as_text().unwrap().into_owned()),
            data: data.to_vec(),
        });
    }
    all
}

/// Makes pcapng files, word by word.
pub struct File {
    pub bytes: Vec<u8>,
    pub big: bool,
}

impl File {
    pub fn new() -> Self {
        Self { bytes: Vec::new(), big: false }
    }

    pub fn u32(&self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u16(&self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u64(&self, value: u64) -> [u8; 8] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn block(&mut self, kind: u32, body: &[u8], options: &[(u16, Vec<u8>)]) {
        let mut all = body.to_vec();
        all.resize(all.len().next_multiple_of(4), 0);
        for (code, value) in options {
            all.extend_from_slice(&self.u16(*code));
            all.extend_from_slice(&self.u16(value.len() as u16));
            all.extend_from_slice(value);
            all.resize(all.len().next_multiple_of(4), 0);
        }
        if !options.is_empty() {
            all.extend_from_slice(&[0; 4]);
        }
        let total = self.u32(all.len() as u32 + 12);
        self.bytes.extend_from_slice(&self.u32(kind));
        self.bytes.extend_from_slice(&total);
        self.bytes.extend_from_slice(&all);
        self.bytes.extend_from_slice(&total);
    }

    pub fn section(&mut self, big: bool) {
        self.big = big;
        let mut body = self.u32(0x1a2b_3c4d).to_vec();
        body.extend_from_slice(&self.u16(1));
        body.extend_from_slice(&self.u16(0));
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        self.block(0x0a0d_0d0a, &body, &[(4, b"by hand".to_vec())]);
    }

    pub fn interface(&mut self, name: &str, options: &[(u16, Vec<u8>)]) {
        let mut body = self.u16(1).to_vec();
        body.extend_from_slice(&[0, 0]);
        body.extend_from_slice(&self.u32(0));
        let mut all = options.to_vec();
        if !name.is_empty() {
            all.push((2, name.as_bytes().to_vec()));
        }
        self.block(1, &body, &all);
    }

    pub fn packet(&mut self, number: u32, time: u64, data: &[u8], options: &[(u16, Vec<u8>)]) {
        let words = [number, (time >> 32) as u32, time as u32, data.len() as u32, 99];
        let mut body: Vec<u8> = words.iter().flat_map(|&word| self.u32(word)).collect();
        body.extend_from_slice(data);
        self.block(6, &body, options);
    }

    pub fn statistics(&mut self, number: u32, time: u64, dropped: u64) {
        let words = [number, (time >> 32) as u32, time as u32];
        let body: Vec<u8> = words.iter().flat_map(|&word| self.u32(word)).collect();
        let dropped = self.u64(dropped).to_vec();
        self.block(5, &body, &[(5, dropped)]);
    }
}

/// The captures of the test data; empty, with a word about it, where it is absent.
pub fn captures() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let data = root.join("../../../shared/data/traces/pcapng-MIT");
    let mut found = Vec::new();
    let mut left = vec![data.clone()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let extension = path.extension().unwrap_or_default();
            if path.is_dir() {
                left.push(path);
            } else if extension == "pcapng" || extension == "ntar" {
                found.push(path);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        println!("SKIPPED: {} is absent", data.display());
    }
    found
}
