// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads fields from marks, a column at a time.

use lateralis_model::Clock;
use lateralis_units::Nanos;

use super::{Column, Lists, Spans};
use crate::plan::{Form, Load, What, text_length};

/// Columns, all of one kind in one vector: memory is that of the values,
/// however many classes there are.
#[derive(Default)]
pub(super) struct Gathered {
    pub times: Vec<Nanos>,
    columns: Vec<Stored>,
    unsigned: Vec<u64>,
    signed: Vec<i64>,
    real: Vec<f64>,
    lengths: Vec<u32>,
}

/// Where the values of a column begin.
#[derive(Clone, Copy)]
enum Stored {
    Unsigned(usize),
    Signed(usize),
    Real(usize),
    /// Starts among the unsigned numbers, lengths.
    Spans(usize, usize),
    Lists(usize, usize),
    Skipped,
}

/// The marks of the events of one class.
#[derive(Clone, Copy)]
pub(super) struct Marks<'b> {
    pub marks: &'b [u32],
    pub stride: usize,
    pub bytes: &'b [u8],
}

impl Marks<'_> {
    /// What `read` makes of one mark of each event.
    #[inline(always)]
    fn each<T>(self, mark: usize, out: &mut Vec<T>, read: impl Fn(usize) -> T) {
        if self.stride == 1 {
            out.extend(self.marks.iter().map(|&mark| read(mark as usize)));
        } else {
            let events = self.marks.chunks_exact(self.stride);
            out.extend(events.map(|marks| read(marks[mark] as usize)));
        }
    }

    /// The same of a mark and the one behind.
    #[inline(always)]
    fn pairs<T>(self, mark: usize, out: &mut Vec<T>, read: impl Fn(usize, usize) -> T) {
        let events = self.marks.chunks_exact(self.stride);
        out.extend(events.map(|marks| read(marks[mark] as usize, marks[mark + 1] as usize)));
    }
}

impl Gathered {
    pub fn clear(&mut self) {
        self.times.clear();
        self.columns.clear();
        self.unsigned.clear();
        self.signed.clear();
        self.real.clear();
        self.lengths.clear();
    }

    pub fn times(&mut self, ticks: &[u64], clock: Option<&Clock>) {
        match clock {
            Some(clock) => clock.nanos_of(ticks, &mut self.times),
            None => self.times.resize(self.times.len() + ticks.len(), Nanos(0)),
        }
    }

    /// Number of columns so far.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    pub fn skip(&mut self) {
        self.columns.push(Stored::Skipped);
    }

    /// Adds the column of a leaf.
    pub fn leaf(&mut self, what: &What, mark: usize, marks: Marks<'_>) {
        let bytes = marks.bytes;
        let (numbers, lengths) = (self.unsigned.len(), self.lengths.len());
        let stored = match *what {
            What::Number(load) => self.number(load, mark, marks),
            What::FixedSpan { at, bytes: size, unit } => {
                let (at, size) = (at as usize, size as usize);
                marks.each(mark, &mut self.unsigned, |base| (base + at) as u64);
                marks.each(mark, &mut self.lengths, |base| {
                    let content = bytes.get(base + at..base + at + size).unwrap_or(&[]);
                    text_length(content, unit) as u32
                });
                Stored::Spans(numbers, lengths)
            }
            What::FixedList { at_bits, count } => {
                let at = u64::from(at_bits);
                marks.each(mark, &mut self.unsigned, |base| base as u64 * 8 + at);
                self.lengths.resize(lengths + self.unsigned.len() - numbers, count);
                Stored::Lists(numbers, lengths)
            }
            What::Text => {
                marks.each(mark, &mut self.unsigned, |start| start as u64);
                marks.each(mark + 1, &mut self.lengths, |length| length as u32);
                Stored::Spans(numbers, lengths)
            }
            What::Span { unit } => {
                marks.each(mark, &mut self.unsigned, |start| start as u64);
                marks.pairs(mark, &mut self.lengths, |start, length| {
                    let content = bytes.get(start..start + length).unwrap_or(&[]);
                    text_length(content, unit) as u32
                });
                Stored::Spans(numbers, lengths)
            }
            What::List => {
                marks.each(mark, &mut self.unsigned, |start| start as u64 * 8);
                marks.each(mark + 1, &mut self.lengths, |count| count as u32);
                Stored::Lists(numbers, lengths)
            }
        };
        self.columns.push(stored);
    }

    /// Numbers. The usual layouts have a loop of their own, in which the width
    /// is a constant; so has everything else, with its shifts.
    #[inline(never)]
    fn number(&mut self, load: Load, mark: usize, marks: Marks<'_>) -> Stored {
        let (bytes, at) = (marks.bytes, load.at as usize);
        let tail = bytes.get(at..).unwrap_or(&[]);
        macro_rules! plain {
            ($kind:ty, $out:expr, $into:expr) => {
                marks.each(mark, $out, |base| {
                    let mut word = [0; size_of::<$kind>()];
                    // The walk has seen that it is inside.
                    if let Some(found) = tail.get(base..base + size_of::<$kind>()) {
                        word.copy_from_slice(found);
                    }
                    $into(<$kind>::from_le_bytes(word))
                })
            };
        }
        match load.form {
            Form::Unsigned => {
                let first = self.unsigned.len();
                let out = &mut self.unsigned;
                match () {
                    () if load.is_plain(1) => plain!(u8, out, u64::from),
                    () if load.is_plain(2) => plain!(u16, out, u64::from),
                    () if load.is_plain(4) => plain!(u32, out, u64::from),
                    () if load.is_plain(8) => plain!(u64, out, |value| value),
                    () => marks.each(mark, out, |base| load.value(bytes, base)),
                }
                Stored::Unsigned(first)
            }
            Form::Signed => {
                let first = self.signed.len();
                let out = &mut self.signed;
                match () {
                    () if load.is_plain(4) => plain!(i32, out, i64::from),
                    () if load.is_plain(8) => plain!(i64, out, |value| value),
                    () => marks.each(mark, out, |base| load.value(bytes, base) as i64),
                }
                Stored::Signed(first)
            }
            Form::Single => {
                let first = self.real.len();
                marks.each(mark, &mut self.real, |base| {
                    f64::from(f32::from_bits(load.value(bytes, base) as u32))
                });
                Stored::Real(first)
            }
            Form::Double => {
                let first = self.real.len();
                marks.each(mark, &mut self.real, |base| f64::from_bits(load.value(bytes, base)));
                Stored::Real(first)
            }
        }
    }

    /// A column of so many events.
    pub fn column<'b>(&'b self, index: usize, count: usize, bytes: &'b [u8]) -> Column<'b> {
        match self.columns[index] {
            Stored::Unsigned(first) => Column::Unsigned(&self.unsigned[first..first + count]),
            Stored::Signed(first) => Column::Signed(&self.signed[first..first + count]),
            Stored::Real(first) => Column::Real(&self.real[first..first + count]),
            Stored::Spans(first, lengths) => Column::Spans(Spans {
                starts: &self.unsigned[first..first + count],
                lengths: &self.lengths[lengths..lengths + count],
                bytes,
            }),
            Stored::Lists(first, lengths) => Column::Lists(Lists {
                starts: &self.unsigned[first..first + count],
                counts: &self.lengths[lengths..lengths + count],
            }),
            Stored::Skipped => Column::Skipped,
        }
    }
}
