// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads fields from marks, a column at a time.

use lateralis_model::{Clock, Column, Lists, Spans};
use lateralis_units::Nanos;

use crate::plan::{Form, Leaf, Load, What, ZEROS_BLOCK, first_zero_of, text_length};

/// Columns, all of one kind in one vector: memory is that of the values,
/// however many classes there are.
#[derive(Default)]
pub(super) struct Gathered {
    pub times: Vec<Nanos>,
    columns: Vec<Stored>,
    unsigned: Pool<u64>,
    signed: Pool<i64>,
    real: Pool<f64>,
    lengths: Pool<u32>,
}

/// Consecutive values of columns.
#[derive(Default)]
struct Pool<T> {
    /// As long as the longest batch; the first `used` are of this one.
    values: Vec<T>,
    used: usize,
}

impl<T: Copy + Default> Pool<T> {
    /// Values of a column of this number of events, to be written.
    fn take(&mut self, count: usize) -> &mut [T] {
        let first = self.used;
        self.used += count;
        if self.values.len() < self.used {
            self.values.resize(self.used, T::default());
        }
        &mut self.values[first..self.used]
    }

    /// Those of a column that begins there.
    fn of(&self, first: usize, count: usize) -> &[T] {
        &self.values[..self.used][first..first + count]
    }
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
    marks: &'b [u32],
    stride: usize,
    bytes: &'b [u8],
    /// Which mark is read.
    mark: usize,
    /// The largest of them all, once that was asked.
    furthest: Option<usize>,
    /// How far it is from one to the next, if that is always the same.
    step: Option<usize>,
}

impl<'b> Marks<'b> {
    /// Marks of events that leave `stride` each.
    pub fn new(marks: &'b [u32], stride: usize, bytes: &'b [u8]) -> Self {
        let step = if stride == 1 { step_of(marks) } else { None };
        Self { marks, stride, bytes, mark: usize::MAX, furthest: None, step }
    }

    /// Reads this mark of each event from now on.
    pub fn turn_to(&mut self, mark: usize) {
        if self.mark != mark {
            (self.mark, self.furthest) = (mark, None);
        }
    }

    /// Finds the largest of those that are read, which [`Marks::arrays`] needs.
    fn find_furthest(&mut self) {
        if self.furthest.is_none() {
            let each = self.marks.chunks_exact(self.stride);
            let furthest = match (self.stride, self.step) {
                (_, Some(_)) => self.marks.last().copied(),
                (1, None) => self.marks.iter().copied().max(),
                _ => each.map(|marks| marks[self.mark]).max(),
            };
            self.furthest = Some(furthest.unwrap_or(0) as usize);
        }
    }

    /// What `read` makes of the mark of each event.
    #[inline(always)]
    fn each<T: Copy + Default>(self, out: &mut Pool<T>, read: impl Fn(usize) -> T) {
        let out = out.take(self.marks.len() / self.stride);
        if let (Some(step), Some(&first)) = (self.step, self.marks.first()) {
            // Without reading where: so nothing waits for that.
            let mut at = first as usize;
            let mut fours = out.chunks_exact_mut(4);
            for four in &mut fours {
                for (index, value) in four.iter_mut().enumerate() {
                    *value = read(at + index * step);
                }
                at += 4 * step;
            }
            for value in fours.into_remainder() {
                *value = read(at);
                at += step;
            }
        } else if self.stride == 1 {
            for (value, &mark) in out.iter_mut().zip(self.marks) {
                *value = read(mark as usize);
            }
        } else {
            for (value, marks) in out.iter_mut().zip(self.marks.chunks_exact(self.stride)) {
                *value = read(marks[self.mark] as usize);
            }
        }
    }

    /// The same for that mark and the next one.
    #[inline(always)]
    fn pairs<T: Copy + Default>(self, out: &mut Pool<T>, read: impl Fn(usize, usize) -> T) {
        let out = out.take(self.marks.len() / self.stride);
        for (value, marks) in out.iter_mut().zip(self.marks.chunks_exact(self.stride)) {
            *value = read(marks[self.mark] as usize, marks[self.mark + 1] as usize);
        }
    }

    /// The bytes `at..at + N` after the mark of each event; `None` if an event has fewer.
    #[inline(always)]
    fn arrays<const N: usize>(self, at: usize) -> Option<impl Fn(usize) -> &'b [u8; N]> {
        let tail = self.bytes.get(at..)?;
        let furthest = self.furthest?;
        (furthest <= tail.len().checked_sub(N)?).then_some(move |mark: usize| {
            debug_assert!(mark <= furthest);
            // SAFETY: `mark` is one of those of which `furthest` is the largest, since
            // only `each` and `pairs` call this (those that are computed: [`step_of`]); so
            // `mark + N` is at most the length of `tail`. An array of bytes has no alignment.
            unsafe { &*tail.as_ptr().add(mark).cast::<[u8; N]>() }
        })
    }
}

impl Gathered {
    pub fn clear(&mut self) {
        self.times.clear();
        self.columns.clear();
        self.unsigned.used = 0;
        self.signed.used = 0;
        self.real.used = 0;
        self.lengths.used = 0;
    }

    /// What all of this takes.
    pub fn bytes(&self) -> usize {
        let words = self.times.capacity()
            + self.unsigned.values.capacity()
            + self.signed.values.capacity()
            + self.real.values.capacity();
        words * size_of::<u64>()
            + self.lengths.values.capacity() * size_of::<u32>()
            + self.columns.capacity() * size_of::<Stored>()
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
    pub fn leaf(&mut self, leaf: &Leaf, marks: &mut Marks<'_>) {
        marks.turn_to(leaf.mark as usize);
        if let What::Number(_) | What::FixedSpan { .. } = leaf.what {
            marks.find_furthest();
        }
        let (marks, bytes) = (*marks, marks.bytes);
        let (numbers, lengths) = (self.unsigned.used, self.lengths.used);
        let stored = match leaf.what {
            What::Number(ref load) => self.number(load, marks),
            What::FixedSpan { at, bytes: size, unit } => {
                let (at, size) = (at as usize, size as usize);
                marks.each(&mut self.unsigned, |base| (base + at) as u64);
                let length = |base: usize| {
                    let content = bytes.get(base + at..base + at + size).unwrap_or(&[]);
                    text_length(content, unit) as u32
                };
                match marks.arrays(at) {
                    Some(heads) if unit == 1 => marks.each(&mut self.lengths, |base| {
                        let head = first_zero_of(heads(base));
                        if head < ZEROS_BLOCK { head.min(size) as u32 } else { length(base) }
                    }),
                    _ => marks.each(&mut self.lengths, length),
                }
                Stored::Spans(numbers, lengths)
            }
            What::FixedList { at_bits, count } => {
                let at = u64::from(at_bits);
                marks.each(&mut self.unsigned, |base| base as u64 * 8 + at);
                self.lengths.take(self.unsigned.used - numbers).fill(count);
                Stored::Lists(numbers, lengths)
            }
            What::Text => {
                marks.each(&mut self.unsigned, |start| start as u64);
                marks.pairs(&mut self.lengths, |_, length| length as u32);
                Stored::Spans(numbers, lengths)
            }
            What::Span { unit } => {
                marks.each(&mut self.unsigned, |start| start as u64);
                marks.pairs(&mut self.lengths, |start, length| {
                    let content = bytes.get(start..start + length).unwrap_or(&[]);
                    text_length(content, unit) as u32
                });
                Stored::Spans(numbers, lengths)
            }
            What::List => {
                marks.each(&mut self.unsigned, |start| start as u64 * 8);
                marks.pairs(&mut self.lengths, |_, count| count as u32);
                Stored::Lists(numbers, lengths)
            }
        };
        self.columns.push(stored);
    }

    /// Numbers. The usual layouts have a loop of their own, in which the width
    /// is a constant; so has everything else, with its shifts.
    #[inline(never)]
    fn number(&mut self, load: &Load, marks: Marks<'_>) -> Stored {
        let at = load.at as usize;
        macro_rules! plain {
            ($kind:ty, $out:expr, $into:expr) => {
                match marks.arrays(at) {
                    Some(found) if load.is_plain(size_of::<$kind>() as u32) => {
                        marks.each($out, |base| $into(<$kind>::from_le_bytes(*found(base))));
                        true
                    }
                    _ => false,
                }
            };
        }
        match load.form {
            Form::Unsigned => {
                let (first, out) = (self.unsigned.used, &mut self.unsigned);
                let done = plain!(u8, out, u64::from)
                    || plain!(u16, out, u64::from)
                    || plain!(u32, out, u64::from)
                    || plain!(u64, out, |value| value);
                if !done {
                    loaded(load, marks, out, |value| value);
                }
                Stored::Unsigned(first)
            }
            Form::Signed => {
                let (first, out) = (self.signed.used, &mut self.signed);
                let done = plain!(i8, out, i64::from)
                    || plain!(i16, out, i64::from)
                    || plain!(i32, out, i64::from)
                    || plain!(i64, out, |value| value);
                if !done {
                    let unused = 64 - load.bits().clamp(1, 64);
                    loaded(load, marks, out, |raw| (raw << unused) as i64 >> unused);
                }
                Stored::Signed(first)
            }
            Form::Single => {
                let first = self.real.used;
                let real = |bits| f64::from(f32::from_bits(bits as u32));
                loaded(load, marks, &mut self.real, real);
                Stored::Real(first)
            }
            Form::Double => {
                let (first, out) = (self.real.used, &mut self.real);
                if !plain!(f64, out, |value| value) {
                    loaded(load, marks, out, f64::from_bits);
                }
                Stored::Real(first)
            }
        }
    }

    /// A column of this number of events.
    pub fn column<'b>(&'b self, index: usize, count: usize, bytes: &'b [u8]) -> Column<'b> {
        match self.columns[index] {
            Stored::Unsigned(first) => Column::Unsigned(self.unsigned.of(first, count)),
            Stored::Signed(first) => Column::Signed(self.signed.of(first, count)),
            Stored::Real(first) => Column::Real(self.real.of(first, count)),
            Stored::Spans(first, lengths) => Column::Spans(Spans::new(
                self.unsigned.of(first, count),
                self.lengths.of(lengths, count),
                bytes,
            )),
            Stored::Lists(first, lengths) => Column::Lists(Lists::new(
                self.unsigned.of(first, count),
                self.lengths.of(lengths, count),
            )),
            Stored::Skipped => Column::Skipped,
        }
    }
}

/// Distance from each position to the next, if it is constant: then the positions are the first and
/// its multiples after it, and the last one is the furthest.
fn step_of(places: &[u32]) -> Option<usize> {
    let (first, second) = (places.first()?, places.get(1)?);
    let step = second.checked_sub(*first)?;
    // In pieces: most that are not even differ at once.
    let is_even = |(before, behind): (&[u32], &[u32])| {
        let differs = |(before, behind): (&u32, &u32)| behind.wrapping_sub(*before) ^ step;
        before.iter().zip(behind).map(differs).fold(0, |bits, differs| bits | differs) == 0
    };
    let mut pieces = places[..places.len() - 1].chunks(64).zip(places[1..].chunks(64));
    // Sums that run over the end of the type would be even, too.
    let ascends = places.len() as u64 * u64::from(step) <= u64::from(u32::MAX);
    (ascends && pieces.all(is_even)).then_some(step as usize)
}

/// Numbers of any layout: `take` makes the value of its bits, above which there is nothing, or its sign.
fn loaded<T: Copy + Default>(
    load: &Load,
    marks: Marks<'_>,
    out: &mut Pool<T>,
    take: impl Fn(u64) -> T,
) {
    let bytes = marks.bytes;
    match (marks.arrays(load.at as usize), load.as_shift()) {
        (Some(words), Some((shift, mask, false))) => {
            marks.each(out, |base| take(u64::from_le_bytes(*words(base)) >> (shift & 63) & mask));
        }
        (Some(words), Some((shift, mask, true))) => {
            marks.each(out, |base| take(u64::from_be_bytes(*words(base)) >> (shift & 63) & mask));
        }
        _ => marks.each(out, |base| take(load.value(bytes, base))),
    }
}
