// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parquet files with flat columns (apache/parquet-format, `parquet.thrift` and
//! `Encodings.md`).
//!
//! A subset that every reader knows: pages of version 1, plain values or indices into a
//! dictionary, zstd, minimum and maximum of each column chunk.

use std::collections::HashMap;
use std::io::{self, Write};

use super::thrift::Struct;

/// Rows of a row group: large enough to compress, small enough to hold.
pub const GROUP_ROWS: usize = 128 * 1024;
/// A dictionary with more entries is given up for plain values.
const MAX_DICTIONARY: usize = 4096;
const ZSTD_LEVEL: i32 = 1;
const MAGIC: &[u8] = b"PAR1";
/// Longer minima and maxima are not written: they may be left out.
const MAX_STATISTIC: usize = 64;

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// 64 bits, signed.
    I64,
    /// 64 bits, unsigned.
    U64,
    /// 32 bits, unsigned.
    U32,
    /// Nanoseconds since 1970.
    Time,
    /// Floating point.
    F64,
    /// Yes or no.
    Bool,
    /// UTF-8.
    Text,
    /// UTF-8 that is JSON.
    Json,
    /// Bytes.
    Bytes,
}

/// A value of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// None.
    Null,
    /// For the integer types and time; unsigned ones in two's complement.
    Integer(i64),
    /// For `F64`.
    Real(f64),
    /// For `Bool`.
    Bool(bool),
    /// For `Text`, `Json`, `Bytes`.
    Bytes(&'a [u8]),
}

/// A column of the row group that is being filled.
#[derive(Debug)]
struct Column {
    name: String,
    kind: Type,
    optional: bool,
    /// For optional columns: whether each row has a value.
    present: Vec<bool>,
    nulls: u64,
    rows: usize,
    /// Plain values.
    values: Vec<u8>,
    bits: Vec<bool>,
    /// Index of each value, while the dictionary holds.
    indices: Vec<u32>,
    dictionary: Option<HashMap<Vec<u8>, u32>>,
    /// Plain values of the dictionary in order.
    entries: Vec<u8>,
    bounds: Option<(Bound, Bound)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Bound {
    Signed(i64),
    Unsigned(u64),
    Real(f64),
    Bytes(Vec<u8>),
}

impl Bound {
    fn less(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Signed(a), Self::Signed(b)) => a < b,
            (Self::Unsigned(a), Self::Unsigned(b)) => a < b,
            (Self::Real(a), Self::Real(b)) => a < b,
            (Self::Bytes(a), Self::Bytes(b)) => a < b,
            _ => false,
        }
    }

    fn bytes(&self, kind: Type) -> Vec<u8> {
        match self {
            Self::Unsigned(value) if kind == Type::U32 => (*value as u32).to_le_bytes().into(),
            Self::Signed(value) => value.to_le_bytes().into(),
            Self::Unsigned(value) => value.to_le_bytes().into(),
            Self::Real(value) => value.to_le_bytes().into(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

impl Type {
    /// Number of the physical type.
    fn physical(self) -> i32 {
        match self {
            Self::Bool => 0,
            Self::U32 => 1,
            Self::I64 | Self::U64 | Self::Time => 2,
            Self::F64 => 5,
            Self::Text | Self::Json | Self::Bytes => 6,
        }
    }

    /// Adds what the bits mean, in the old form and the new.
    fn describe(self, element: Struct) -> Struct {
        let integer = |bits: u8| {
            let integer = Struct::default().byte(1, bits).bool(2, false);
            Struct::default().record(10, integer)
        };
        match self {
            Self::Text => {
                element.i32(6, 0).record(10, Struct::default().record(1, Struct::default()))
            }
            Self::Json => {
                element.i32(6, 19).record(10, Struct::default().record(12, Struct::default()))
            }
            Self::U32 => element.i32(6, 13).record(10, integer(32)),
            Self::U64 => element.i32(6, 14).record(10, integer(64)),
            Self::Time => {
                let unit = Struct::default().record(3, Struct::default());
                let time = Struct::default().bool(1, true).record(2, unit);
                element.record(10, Struct::default().record(8, time))
            }
            Self::I64 | Self::F64 | Self::Bool | Self::Bytes => element,
        }
    }
}

impl Column {
    fn new(name: &str, kind: Type, optional: bool) -> Self {
        let mut column = Self {
            name: name.to_owned(),
            kind,
            optional,
            present: Vec::new(),
            nulls: 0,
            rows: 0,
            values: Vec::new(),
            bits: Vec::new(),
            indices: Vec::new(),
            dictionary: None,
            entries: Vec::new(),
            bounds: None,
        };
        column.clear();
        column
    }

    fn clear(&mut self) {
        self.present.clear();
        self.nulls = 0;
        self.rows = 0;
        self.values.clear();
        self.bits.clear();
        self.indices.clear();
        let has_dictionary = matches!(self.kind, Type::Text | Type::U32);
        self.dictionary = has_dictionary.then(HashMap::new);
        self.entries.clear();
        self.bounds = None;
    }

    fn push(&mut self, cell: Cell<'_>) {
        self.rows += 1;
        if self.optional {
            self.present.push(cell != Cell::Null);
        }
        let start = self.values.len();
        let bound = match (self.kind, cell) {
            (_, Cell::Null) if self.optional => {
                self.nulls += 1;
                return;
            }
            (Type::Bool, cell) => {
                self.bits.push(cell == Cell::Bool(true));
                return;
            }
            (Type::F64, cell) => {
                let value = if let Cell::Real(value) = cell { value } else { 0.0 };
                self.values.extend_from_slice(&value.to_le_bytes());
                Bound::Real(value)
            }
            (Type::Text | Type::Json | Type::Bytes, cell) => {
                let bytes = if let Cell::Bytes(bytes) = cell { bytes } else { b"" };
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                self.values.extend_from_slice(&length.to_le_bytes());
                self.values.extend_from_slice(&bytes[..length as usize]);
                Bound::Bytes(bytes[..bytes.len().min(MAX_STATISTIC + 1)].into())
            }
            (kind, cell) => {
                let value = if let Cell::Integer(value) = cell { value } else { 0 };
                if kind == Type::U32 {
                    self.values.extend_from_slice(&(value as u32).to_le_bytes());
                } else {
                    self.values.extend_from_slice(&value.to_le_bytes());
                }
                let unsigned = matches!(kind, Type::U32 | Type::U64);
                if unsigned { Bound::Unsigned(value as u64) } else { Bound::Signed(value) }
            }
        };
        if let Some(dictionary) = &mut self.dictionary {
            let value = &self.values[start..];
            let next = dictionary.len() as u32;
            let index = match dictionary.get(value) {
                Some(&index) => Some(index),
                None if dictionary.len() < MAX_DICTIONARY => {
                    dictionary.insert(value.to_vec(), next);
                    self.entries.extend_from_slice(value);
                    Some(next)
                }
                None => None,
            };
            match index {
                Some(index) => self.indices.push(index),
                None => self.dictionary = None,
            }
        }
        match &mut self.bounds {
            None => self.bounds = Some((bound.clone(), bound)),
            Some((low, high)) => {
                if bound.less(low) {
                    *low = bound;
                } else if high.less(&bound) {
                    *high = bound;
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        self.values.len() + self.present.len() + self.indices.len() * 4
    }
}

/// Where a column chunk lies.
struct Chunk {
    dictionary_offset: Option<i64>,
    data_offset: i64,
    compressed: i64,
    uncompressed: i64,
    meta: Struct,
}

/// A file that is being written.
pub struct File<W: Write> {
    out: W,
    written: i64,
    group_bytes: usize,
    columns: Vec<Column>,
    rows: usize,
    total_rows: i64,
    groups: Vec<Struct>,
    key_values: Vec<(String, String)>,
}

/// Runs and packed values of a few bits, the hybrid encoding of `Encodings.md`.
fn hybrid(values: impl Iterator<Item = u32> + Clone, count: usize, width: u32, out: &mut Vec<u8>) {
    let mut first = values.clone();
    if let Some(value) = first.next()
        && first.all(|other| other == value)
    {
        let bytes = value.to_le_bytes();
        super::put_varint(out, (count as u64) << 1);
        out.extend_from_slice(&bytes[..width.div_ceil(8) as usize]);
        return;
    }
    let groups = count.div_ceil(8);
    super::put_varint(out, (groups as u64) << 1 | 1);
    let (mut buffer, mut filled) = (0u64, 0u32);
    for value in values.chain(std::iter::repeat_n(0, groups * 8 - count)) {
        buffer |= u64::from(value) << filled;
        filled += width;
        while filled >= 8 {
            out.push(buffer as u8);
            buffer >>= 8;
            filled -= 8;
        }
    }
}

impl<W: Write> File<W> {
    /// Begins a file with these columns: name, type, whether cells may be empty.
    pub fn new(
        mut out: W,
        columns: &[(String, Type, bool)],
        key_values: Vec<(String, String)>,
        group_bytes: usize,
    ) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let columns = columns
            .iter()
            .map(|(name, kind, optional)| Column::new(name, *kind, *optional))
            .collect();
        let (groups, total_rows) = (Vec::new(), 0);
        Ok(Self { out, written: 4, group_bytes, columns, rows: 0, total_rows, groups, key_values })
    }

    /// Adds the cell of a column to the current row.
    pub fn cell(&mut self, column: usize, cell: Cell<'_>) {
        if let Some(column) = self.columns.get_mut(column) {
            column.push(cell);
        }
    }

    /// Ends the row: columns without a cell get an empty one.
    pub fn end_row(&mut self) -> io::Result<()> {
        self.rows += 1;
        for column in &mut self.columns {
            if column.rows < self.rows {
                column.push(Cell::Null);
            }
        }
        let bytes = || self.columns.iter().map(Column::bytes).sum::<usize>();
        let full =
            self.rows >= GROUP_ROWS || self.rows.is_multiple_of(256) && bytes() >= self.group_bytes;
        if full { self.end_group() } else { Ok(()) }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as i64;
        self.out.write_all(bytes)
    }

    fn end_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let start = self.written;
        let mut columns = std::mem::take(&mut self.columns);
        let (mut chunks, mut total, mut compressed) = (Vec::new(), 0, 0);
        for column in &mut columns {
            let chunk = self.chunk(column)?;
            total += chunk.uncompressed;
            compressed += chunk.compressed;
            let offset = chunk.dictionary_offset.unwrap_or(chunk.data_offset);
            chunks.push(Struct::default().i64(2, offset).record(3, chunk.meta));
            column.clear();
        }
        self.columns = columns;
        let sorted = Struct::default().i32(1, 0).bool(2, false).bool(3, false);
        self.groups.push(
            Struct::default()
                .records(1, chunks)
                .i64(2, total)
                .i64(3, self.rows as i64)
                .records(4, vec![sorted])
                .i64(5, start)
                .i64(6, compressed),
        );
        self.total_rows += self.rows as i64;
        self.rows = 0;
        Ok(())
    }

    /// Writes a page; gives its sizes with header: uncompressed, compressed.
    fn page(&mut self, content: &[u8], kind: i32, header: (i16, Struct)) -> io::Result<(i64, i64)> {
        let small = zstd::bulk::compress(content, ZSTD_LEVEL)?;
        let size = |length: usize| {
            i32::try_from(length).map_err(|_| io::Error::other("a page of Parquet beyond 2 GiB"))
        };
        let header = Struct::default()
            .i32(1, kind)
            .i32(2, size(content.len())?)
            .i32(3, size(small.len())?)
            .record(header.0, header.1)
            .end();
        self.put(&header)?;
        self.put(&small)?;
        let header = header.len() as i64;
        Ok((header + content.len() as i64, header + small.len() as i64))
    }

    fn chunk(&mut self, column: &Column) -> io::Result<Chunk> {
        let mut content = Vec::new();
        if column.optional {
            let mut levels = Vec::new();
            let present = column.present.iter().map(|&present| u32::from(present));
            hybrid(present, column.rows, 1, &mut levels);
            content.extend_from_slice(&(levels.len() as u32).to_le_bytes());
            content.extend_from_slice(&levels);
        }
        let (mut total, mut compressed) = (0, 0);
        let mut dictionary_offset = None;
        let dictionary = column.dictionary.as_ref().filter(|entries| !entries.is_empty());
        if let Some(entries) = dictionary {
            dictionary_offset = Some(self.written);
            let count = entries.len();
            let header = Struct::default().i32(1, count as i32).i32(2, 0);
            let sizes = self.page(&column.entries, 2, (7, header))?;
            total += sizes.0;
            compressed += sizes.1;
            let width = (usize::BITS - (count - 1).leading_zeros()).max(1);
            content.push(width as u8);
            hybrid(column.indices.iter().copied(), column.indices.len(), width, &mut content);
        } else if column.kind == Type::Bool {
            for eight in column.bits.chunks(8) {
                let bit = |(at, &bit): (usize, &bool)| u8::from(bit) << at;
                content.push(eight.iter().enumerate().map(bit).sum());
            }
        } else {
            content.extend_from_slice(&column.values);
        }
        let data_offset = self.written;
        // 0 is PLAIN, 3 RLE, 8 RLE_DICTIONARY.
        let encoding = if dictionary.is_some() { 8 } else { 0 };
        let header =
            Struct::default().i32(1, column.rows as i32).i32(2, encoding).i32(3, 3).i32(4, 3);
        let sizes = self.page(&content, 0, (5, header))?;
        total += sizes.0;
        compressed += sizes.1;
        let mut statistics = Struct::default().i64(3, column.nulls as i64);
        if let Some((low, high)) = &column.bounds {
            let (low, high) = (low.bytes(column.kind), high.bytes(column.kind));
            let has_nan = column.kind == Type::F64;
            if low.len() <= MAX_STATISTIC && high.len() <= MAX_STATISTIC && !has_nan {
                statistics = statistics.bytes(5, &high).bytes(6, &low);
            }
        }
        let mut meta = Struct::default()
            .i32(1, column.kind.physical())
            .i32s(2, &[0, 3, 8])
            .texts(3, &[&column.name])
            .i32(4, 6)
            .i64(5, column.rows as i64)
            .i64(6, total)
            .i64(7, compressed)
            .i64(9, data_offset);
        if let Some(offset) = dictionary_offset {
            meta = meta.i64(11, offset);
        }
        let meta = meta.record(12, statistics);
        Ok(Chunk { dictionary_offset, data_offset, compressed, uncompressed: total, meta })
    }

    /// Ends the file; gives its number of rows.
    pub fn finish(mut self) -> io::Result<i64> {
        self.end_group()?;
        let root = Struct::default().bytes(4, b"events").i32(5, self.columns.len() as i32);
        let mut schema = vec![root];
        for column in &self.columns {
            let element = Struct::default()
                .i32(1, column.kind.physical())
                .i32(3, i32::from(column.optional))
                .bytes(4, column.name.as_bytes());
            schema.push(column.kind.describe(element));
        }
        let pairs = self.key_values.iter().map(|(key, value)| {
            Struct::default().bytes(1, key.as_bytes()).bytes(2, value.as_bytes())
        });
        // The order in which minima and maxima are meant: that of the types.
        let orders = self.columns.iter().map(|_| Struct::default().record(1, Struct::default()));
        let footer = Struct::default()
            .i32(1, 2)
            .records(2, schema)
            .i64(3, self.total_rows)
            .records(4, std::mem::take(&mut self.groups))
            .records(5, pairs.collect())
            .bytes(6, b"lateralis version 0.1.0 (build 0)")
            .records(7, orders.collect())
            .end();
        self.put(&footer)?;
        self.put(&(footer.len() as u32).to_le_bytes())?;
        self.put(MAGIC)?;
        Ok(self.total_rows)
    }
}
