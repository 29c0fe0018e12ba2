// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Small files of known content, in either byte order.
#![allow(dead_code, reason = "each test uses a part")]

use lateralis_model::ByteOrder;

/// A growing buffer of bytes with numbers in one byte order.
#[derive(Clone)]
pub struct Out {
    pub bytes: Vec<u8>,
    order: ByteOrder,
}

impl Out {
    pub fn new(order: ByteOrder) -> Self {
        Self { bytes: Vec::new(), order }
    }

    fn put(mut self, little: &[u8]) -> Self {
        match self.order {
            ByteOrder::Little => self.bytes.extend(little),
            ByteOrder::Big => self.bytes.extend(little.iter().rev()),
        }
        self
    }

    pub fn u8(self, value: u8) -> Self {
        self.put(&[value])
    }

    pub fn u16(self, value: u16) -> Self {
        self.put(&value.to_le_bytes())
    }

    pub fn u32(self, value: u32) -> Self {
        self.put(&value.to_le_bytes())
    }

    pub fn u64(self, value: u64) -> Self {
        self.put(&value.to_le_bytes())
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// Text with NULs up to the next multiple of 8 bytes.
    pub fn padded(self, text: &str) -> Self {
        let length = (text.len() + 1).next_multiple_of(8);
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(length, 0);
        self.raw(&bytes)
    }
}

/// Format of the tracepoint in the files below.
pub const FORMAT: &str = "name: beat\nID: 77\nformat:\n\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
\tfield:s32 level;\toffset:8;\tsize:4;\tsigned:1;\n\
\tfield:__data_loc char[] who;\toffset:12;\tsize:4;\tsigned:0;\n\n\
print fmt: \"%d %s\", REC->level, __get_str(who)\n";

/// A raw record of that tracepoint, whose length is 4 more than a multiple of 8.
pub fn beat(order: ByteOrder, tid: u32, level: i32, who: &str) -> Vec<u8> {
    let mut text = who.as_bytes().to_vec();
    text.push(0);
    let location = 16 | (text.len() as u32) << 16;
    let out = Out::new(order).u16(77).u8(1).u8(2).u32(tid).u32(level as u32).u32(location);
    let mut bytes = out.raw(&text).bytes;
    bytes.resize((bytes.len() + 4).next_multiple_of(8) - 4, 0);
    bytes
}

/// The description of tracing in perf.data and trace.dat of version 6.
pub fn tracing_data(order: ByteOrder, version: &str) -> Vec<u8> {
    let header_page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    let big = u8::from(order == ByteOrder::Big);
    Out::new(order)
        .raw(b"\x17\x08\x44tracing")
        .raw(version.as_bytes())
        .raw(&[0, big, 8])
        .u32(4096)
        .raw(b"header_page\0")
        .u64(header_page.len() as u64)
        .raw(header_page.as_bytes())
        .raw(b"header_event\0")
        .u64(0)
        .u32(0)
        .u32(1)
        .raw(b"heart\0")
        .u32(1)
        .u64(FORMAT.len() as u64)
        .raw(FORMAT.as_bytes())
        .u32(0)
        .u32(0)
        .u64(12)
        .raw(b"41 pacemaker")
        .bytes
}

fn attr(order: ByteOrder, kind: u32, config: u64, sample_type: u64, read_format: u64) -> Vec<u8> {
    // sample_id_all and use_clockid.
    let flags: u64 = 1 << 18 | 1 << 25;
    let flags = if order == ByteOrder::Big { flags.reverse_bits() } else { flags };
    Out::new(order)
        .u32(kind)
        .u32(128)
        .u64(config)
        .u64(1)
        .u64(sample_type)
        .u64(read_format)
        .u64(flags)
        .u32(0)
        .u32(0)
        .u64(0)
        .u64(0)
        .u64(1 << 17)
        .u64(0b101)
        .u32(0)
        .u32(1)
        .u64(0b11)
        .u64(0)
        .u64(0)
        .u64(0)
        .bytes
}

fn record(order: ByteOrder, kind: u32, misc: u16, body: Out) -> Vec<u8> {
    let size = body.bytes.len() as u16 + 8;
    Out::new(order).u32(kind).u16(misc).u16(size).raw(&body.bytes).bytes
}

/// The trailer of records that are not samples.
fn trailer(body: Out, tid: u32, time: u64, cpu: u32, id: u64) -> Out {
    body.u32(40).u32(tid).u64(time).u32(cpu).u32(0).u64(id)
}

/// IDENTIFIER, TID, TIME, CPU and more.
const TRACEPOINT_SAMPLE: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;
/// The same fields, and every other one.
const FULL_SAMPLE: u64 = ((1 << 24) - 1) & !(1 << 6) & !(1 << 9);

/// The records of [`perf_data`], individually.
pub fn perf_records(order: ByteOrder) -> Vec<Vec<u8>> {
    let out = || Out::new(order);
    let comm = trailer(out().u32(40).u32(41).padded("beater"), 41, 1000, 0, 5);
    let fork = out().u32(42).u32(40).u32(43).u32(41).u64(1100);
    let raw = beat(order, 41, -7, "left");
    let sample = out().u64(5).u32(40).u32(41).u64(2000).u32(1).u32(0);
    let sample = sample.u32(raw.len() as u32).raw(&raw);
    // A bit field: allocated from the end given by the byte order.
    let mispredicted = if order == ByteOrder::Big { 1 << 63 } else { 1 };
    let full = out()
        .u64(6)
        .u64(0xffff_ffff_8000_0000)
        .u32(42)
        .u32(43)
        .u64(1500)
        .u64(0xadd)
        .u32(0)
        .u32(0)
        .u64(250)
        // read: group of two with id, times.
        .u64(2)
        .u64(11)
        .u64(12)
        .u64(101)
        .u64(6)
        .u64(102)
        .u64(7)
        // callchain, raw
        .u64(2)
        .u64(0xc1)
        .u64(0xc2)
        .u32(4)
        .raw(b"rawd")
        // branches
        .u64(1)
        .u64(9)
        .u64(0xf0)
        .u64(0x70)
        .u64(mispredicted)
        // user registers and stack
        .u64(2)
        .u64(0xa1)
        .u64(0xa2)
        .u64(8)
        .raw(b"stackxxx")
        .u64(5)
        .u64(3)
        .u64(4)
        .u64(5)
        // registers at the event: none
        .u64(0)
        .u64(0xbead)
        .u64(21)
        .u64(4096)
        .u64(8192)
        .u64(3)
        .raw(b"aux");
    let full = Out {
        bytes: {
            let mut b = full.bytes;
            b.extend([0; 5]);
            b
        },
        order,
    };
    let lost = trailer(out().u64(5).u64(13), 41, 2100, 1, 5);
    let exit = trailer(out().u32(42).u32(40).u32(43).u32(41).u64(2200), 43, 2200, 0, 6);
    vec![
        record(order, 3, 1 << 13, comm),
        record(order, 7, 0, trailer(fork, 41, 1100, 0, 5)),
        record(order, 9, 1, sample),
        record(order, 9, 2, full),
        record(order, 2, 0, lost),
        record(order, 68, 0, out()),
        record(order, 4, 0, exit),
    ]
}

/// A perf.data with every field of samples, a tracepoint, a loss and names.
pub fn perf_data(order: ByteOrder) -> Vec<u8> {
    let out = || Out::new(order);
    let magic = if order == ByteOrder::Little { b"PERFILE2" } else { b"2ELIFREP" };
    let attrs_begin = 104u64;
    let ids_begin = attrs_begin + 2 * 144;
    let data_begin = ids_begin + 16;
    let data: Vec<u8> = perf_records(order).concat();
    let features_begin = data_begin + data.len() as u64;
    let string = |text: &str| {
        let padded = out().padded(text).bytes;
        out().u32(padded.len() as u32).raw(&padded).bytes
    };
    let clock = out().u32(1).u32(1).u64(1_000_000_000).u64(900).bytes;
    let attr_full = attr(order, 0, 0, FULL_SAMPLE, 0b1111);
    let names = out().u32(1).u32(128).raw(&attr_full).u32(1).raw(&string("heat")).u64(6).bytes;
    let features =
        [(1u32, tracing_data(order, "0.6")), (3, string("ward")), (12, names), (29, clock)];
    let mut flags = 0u64;
    let mut offset = features_begin + features.len() as u64 * 16;
    let (mut table, mut contents) = (out(), Vec::new());
    for (number, content) in features {
        flags |= 1 << number;
        table = table.u64(offset).u64(content.len() as u64);
        offset += content.len() as u64;
        contents.extend(content);
    }
    out()
        .raw(magic)
        .u64(104)
        .u64(144)
        .u64(attrs_begin)
        .u64(2 * 144)
        .u64(data_begin)
        .u64(data.len() as u64)
        .u64(0)
        .u64(0)
        .u64(flags)
        .u64(0)
        .u64(0)
        .u64(0)
        .raw(&attr(order, 2, 77, TRACEPOINT_SAMPLE, 0))
        .u64(ids_begin)
        .u64(8)
        .raw(&attr_full)
        .u64(ids_begin + 8)
        .u64(8)
        .u64(5)
        .u64(6)
        .raw(&data)
        .raw(&table.bytes)
        .raw(&contents)
        .bytes
}

/// A page of the ring buffer with three events; 2 and 7 ns after each other.
pub fn page(order: ByteOrder, time: u64, missed: bool) -> Vec<u8> {
    let mut data = out_events(order);
    let flags = if missed { 1u64 << 31 } else { 0 };
    let commit = data.len() as u64 | flags;
    data.resize(4096 - 16, 0);
    Out::new(order).u64(time).u64(commit).raw(&data).bytes
}

fn out_events(order: ByteOrder) -> Vec<u8> {
    let mut out = Out::new(order);
    for (delta, tid, level, who) in [(0, 41, 1, "a"), (2, 0, 2, "bb"), (7, 99, -3, "ccc")] {
        let raw = beat(order, tid, level, who);
        let words = raw.len() as u32 / 4;
        let head = match order {
            ByteOrder::Little => delta << 5 | words,
            ByteOrder::Big => words << 27 | delta,
        };
        out = out.u32(head).raw(&raw);
    }
    out.bytes
}

/// A trace.dat of version 6 with two pages of one CPU of two.
pub fn trace_dat(order: ByteOrder) -> Vec<u8> {
    let mut head = Out::new(order)
        .raw(&tracing_data(order, "6"))
        .u32(2)
        .raw(b"options  \0")
        .u16(4)
        .u32(13)
        .raw(b"local [mono]\0")
        .u16(1)
        .u32(4)
        .raw(b"0x1\0")
        .u16(0)
        .raw(b"flyrecord\0");
    let begin = (head.bytes.len() + 32).next_multiple_of(4096) as u64;
    head = head.u64(begin).u64(0).u64(begin).u64(8192);
    head.bytes.resize(begin as usize, 0);
    head.raw(&page(order, 5000, false)).raw(&page(order, 6000, true)).bytes
}
