// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records of a test program. The test runs itself once more as the traced program,
//! then reads its area without any of the tracer's own code. [ring-abi §2, §3, §5]

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const RUNS_AS_PROGRAM: &str = "LATERALIS_TEST_PROGRAM";

/// A finished run of a test program.
pub struct Recorded {
    pub output: Output,
    pub areas: Vec<Area>,
}

/// In the test: runs the test `name` as a program with this environment, and returns its areas.
/// In the program: None.
pub fn recorded(name: &str, environment: &[(&str, &str)]) -> Option<Recorded> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    if std::env::var_os(RUNS_AS_PROGRAM).is_some() {
        return None;
    }
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "{}-{run}-{}",
        name.replace("::", "-"),
        std::process::id()
    ));
    let _ = fs::remove_dir_all(&directory);
    DirBuilder::new().mode(0o700).create(&directory).expect("a directory for areas");
    let output = Command::new(std::env::current_exe().expect("the name of this test"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(RUNS_AS_PROGRAM, "1")
        .env("LATERALIS_DIR", &directory)
        .envs(environment.iter().copied())
        .output()
        .expect("the test program starts");
    let mut areas = Vec::new();
    for entry in fs::read_dir(&directory).expect("the directory can be read").flatten() {
        let area = Area { bytes: fs::read(entry.path()).expect("the area can be read") };
        // An area without rings whose program has ended contains nothing: the next program
        // or recorder removes it, since a program makes no system calls at its end. [ring-abi §2]
        let (state, rings_ready) = (area.u32(76), area.u32(112));
        if (state, rings_ready) != (2, 0) {
            areas.push(area);
        }
    }
    fs::remove_dir_all(&directory).expect("the directory can be removed");
    Some(Recorded { output, areas })
}

impl Recorded {
    /// Requires that the program succeeded without output on standard error.
    pub fn succeeded(self) -> Recorded {
        let stdout = String::from_utf8_lossy(&self.output.stdout);
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        assert!(self.output.status.success(), "{}\n{stdout}\n{stderr}", self.output.status);
        assert_eq!(stderr, "");
        self
    }

    /// The only area of the program.
    pub fn area(&self) -> &Area {
        assert_eq!(self.areas.len(), 1, "areas");
        &self.areas[0]
    }
}

/// The bytes of an area file.
pub struct Area {
    bytes: Vec<u8>,
}

/// A schema in the table of an area.
#[derive(Debug)]
pub struct Registered {
    pub name: String,
    pub base_id: u32,
    pub event_count: u32,
    pub hash: u64,
    pub text: String,
    /// One byte for each event.
    pub enabled: Vec<u8>,
}

/// A record, with its ring and the thread of the preceding WRITER record.
#[derive(Clone, Debug)]
pub struct Entry {
    pub ring: u64,
    pub tid: u32,
    pub id: u32,
    pub time: u64,
    pub payload: Vec<u8>,
}

impl Area {
    pub fn u32(&self, at: u64) -> u32 {
        u32::from_ne_bytes(self.slice(at, 4).try_into().expect("4 bytes"))
    }

    pub fn u64(&self, at: u64) -> u64 {
        u64::from_ne_bytes(self.slice(at, 8).try_into().expect("8 bytes"))
    }

    fn slice(&self, at: u64, bytes: u64) -> &[u8] {
        &self.bytes[at as usize..(at + bytes) as usize]
    }

    pub fn schemas(&self) -> Vec<Registered> {
        let slots = (0..256).map(|slot| 0x5000 + slot * 64).filter(|at| self.u32(*at) == 2);
        slots
            .map(|at| {
                let text = self.slice(self.u64(at + 16), self.u32(at + 12).into());
                let name = self.slice(at + 32, 32).split(|byte| *byte == 0).next().unwrap_or(&[]);
                let (base_id, event_count) = (self.u32(at + 4), self.u32(at + 8));
                Registered {
                    name: String::from_utf8(name.to_vec()).expect("UTF-8"),
                    base_id,
                    event_count,
                    hash: self.u64(at + 24),
                    text: String::from_utf8(text.to_vec()).expect("UTF-8"),
                    enabled: self.slice(0x9000 + u64::from(base_id), event_count.into()).to_vec(),
                }
            })
            .collect()
    }

    pub fn schema(&self, name: &str) -> Registered {
        let found = self.schemas().into_iter().find(|schema| schema.name == name);
        found.unwrap_or_else(|| panic!("no schema {name} among {:?}", self.schemas()))
    }

    /// Events lost for any reason.
    pub fn lost(&self) -> u64 {
        let rings: u64 = self
            .rings()
            .map(|ring| (0..4).map(|cause| self.u64(ring + 32 + cause * 8)).sum::<u64>())
            .sum();
        rings + self.u64(176) + self.u64(184)
    }

    fn rings(&self) -> impl Iterator<Item = u64> + '_ {
        let stride = self.u64(88);
        (0..u64::from(self.u32(68))).map(move |ring| 0x10_0000 + ring * stride)
    }

    /// All records of all rings except WRITER. `take` reads the fields of an event that is not an
    /// internal one: the record ends after them. Checks everything that must hold for every
    /// ring in discard mode that was never drained.
    pub fn records(&self, mut take: impl FnMut(u32, &mut Fields<'_>)) -> Vec<Entry> {
        assert_eq!(self.u64(0), 0x3161_6572_4174_614c);
        assert_eq!(self.u32(112), 2, "rings are ready");
        let packet_bytes = self.u64(96);
        let mut entries = Vec::new();
        for (ring, at) in self.rings().enumerate() {
            let cursor = self.u64(at);
            let (mut last_time, mut tid) = (0, 0);
            let packets = if cursor == 0 { 0 } else { cursor / packet_bytes + 1 };
            for sequence in 0..packets {
                let packet = at + 4096 + sequence * packet_bytes;
                assert_eq!(self.u32(packet), 0xc1fc_1fc1);
                assert_eq!(self.u64(packet + 56), sequence);
                let content = if sequence == cursor / packet_bytes {
                    (cursor & !7) - (cursor & 7) - sequence * packet_bytes
                } else {
                    self.u64(packet + 40) / 8
                };
                assert!((128..=packet_bytes).contains(&content));
                let mut offset = 128;
                while offset < content {
                    let header = self.u64(packet + offset);
                    let (id, time) = ((header & 0xffff) as u32, header >> 16);
                    assert!(time >= last_time, "time goes back in ring {ring}");
                    last_time = time;
                    let rest = self.slice(packet + offset + 8, content - offset - 8);
                    let mut fields = Fields { bytes: rest, at: 0 };
                    match id {
                        0 => {
                            fields.u32();
                            tid = fields.u32();
                        }
                        1 | 2 => {
                            fields.u64();
                            fields.string();
                        }
                        3 => {
                            fields.string();
                        }
                        16.. => take(id, &mut fields),
                        _ => panic!("no event has the id {id}"),
                    }
                    let payload = rest[..fields.at].to_vec();
                    offset += 8 + fields.at as u64;
                    if id != 0 {
                        entries.push(Entry { ring: ring as u64, tid, id, time, payload });
                    }
                    if offset < content {
                        let padding = self.slice(packet + offset, offset.wrapping_neg() & 7);
                        assert!(padding.iter().all(|byte| *byte == 0), "old bytes show");
                        offset = (offset + 7) & !7;
                    }
                }
                assert_eq!(offset, content, "the last record ends where the content ends");
            }
        }
        entries
    }
}

/// The payload of a record, read field by field at natural alignment.
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

macro_rules! take {
    ($($number:ident)*) => {$(
        pub fn $number(&mut self) -> $number {
            let size = size_of::<$number>();
            self.align(size);
            $number::from_ne_bytes(self.take(size).try_into().expect("as many as asked for"))
        }
    )*};
}

impl<'a> Fields<'a> {
    pub fn of(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, at: 0 }
    }

    take!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

    pub fn string(&mut self) -> String {
        let length = self.bytes[self.at..].iter().position(|byte| *byte == 0).expect("a NUL");
        let text = String::from_utf8(self.take(length).to_vec()).expect("UTF-8");
        self.at += 1;
        text
    }

    /// A count, then elements read by `element`, which are aligned even if there are none.
    pub fn sequence<T>(&mut self, element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.u32();
        self.array(count, element)
    }

    pub fn array<T>(&mut self, count: u32, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        self.align(size_of::<T>());
        (0..count).map(|_| element(self)).collect()
    }

    pub fn align(&mut self, alignment: usize) {
        self.at = self.at.next_multiple_of(alignment);
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        taken
    }
}
