// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Event headers as constant layouts.
//!
//! A header is a run of numbers, or, as LTTng writes it, a number that chooses
//! between a short layout and a long one. Either is known when the metadata
//! are: what is left for every event is to load an id and a time.

use super::load::{Form, Load};
use super::{Choice, Op, Program};
use crate::metadata::Role;

/// No writer has a header with more layouts than this.
const LAYOUTS_MAX: usize = 16;

/// A header whose layouts are constant.
#[derive(Debug)]
pub struct Header {
    /// Alignment in bytes, less one.
    mask: usize,
    /// Whether events may begin at any bit and this header aligns nothing.
    pub any_bit: bool,
    selector: Option<(Load, usize)>,
    /// Layouts with the values of the selector that choose them.
    layouts: Vec<(u64, u64, Layout)>,
    /// The same for the usual cases, in the same order; all or none.
    forms: Vec<Fast>,
    /// Selector of the forms: shift and mask of the first word.
    form_selector: Piece,
    /// Whether [`Header::read`] may leave out shifts and swaps.
    plain: bool,
    /// Whether there is an id.
    pub has_id: bool,
    /// The first layout, if it is as most tracers have it.
    pub usual: Option<Usual>,
}

/// The usual header of most tracers: a little-endian word of 8 bytes that begins with the id, and
/// this word or one shortly after it contains some bits of the clock. If the largest id means that
/// more follows, as in LTTng's traces, that is the long form.
#[derive(Debug, Clone, Copy)]
pub struct Usual {
    /// Alignment in bytes, less one.
    mask: usize,
    /// 0 if there is no id.
    id_mask: u64,
    /// The largest id of the short form.
    high: u64,
    clock: Piece,
    bytes: usize,
    long: Option<Long>,
}

/// Pieces of up to 8 bytes each, in little-endian order.
#[derive(Debug, Clone, Copy)]
struct Long {
    low: u64,
    high: u64,
    id: Piece,
    clock: Piece,
    bytes: usize,
}

/// Id (0 if there is none), clock, and the byte after the header.
pub type Told = (u64, u64, usize);

impl Usual {
    /// Distance from an aligned header to the next, minus the header, if the header is followed by
    /// a run of this number of bytes with this alignment, minus one; `None` if the run may have to
    /// be aligned itself.
    pub fn stride(&self, run_mask: usize, run_bytes: usize) -> Option<usize> {
        let in_place = run_mask <= self.mask && self.bytes & run_mask == 0;
        let one_form = self.mask == 0 || self.long.is_none();
        let next = (self.bytes + run_bytes + self.mask) & !self.mask;
        (in_place && one_form).then_some(next - self.bytes)
    }

    /// The first byte from `at` on where a header may begin.
    #[inline(always)]
    pub fn aligned(&self, at: usize) -> usize {
        (at + self.mask) & !self.mask
    }

    /// Headers that begin before this byte, or are aligned to begin later, can be read
    /// by [`Usual::read_inside`].
    pub fn inside(&self, bytes: &[u8]) -> usize {
        bytes.len().saturating_sub(FORM_BYTES + self.mask)
    }

    /// Reads the header at the first possible byte from `at` on, which is `at` if
    /// `PACKED`. `None` if it has another layout.
    ///
    /// # Safety
    /// `at` is less than [`Usual::inside`] of these bytes.
    #[inline(always)]
    pub unsafe fn read_inside<const PACKED: bool>(
        &self,
        bytes: &[u8],
        at: usize,
        clock: u64,
    ) -> Option<Told> {
        debug_assert!(at < self.inside(bytes));
        let base = if PACKED { at } else { self.aligned(at) };
        // SAFETY: `base` is at most `at + mask`, and from there on there are FORM_BYTES
        // at least, as the caller says. An array of bytes has no alignment.
        let head = unsafe { &*bytes.as_ptr().add(base).cast::<[u8; FORM_BYTES]>() };
        self.of_head(head, base, clock)
    }

    /// Whether the short form can contain this id.
    pub fn is_short(&self, id: u64) -> bool {
        id <= self.high
    }

    /// Bytes of the short form.
    #[inline(always)]
    pub fn short_bytes(&self) -> usize {
        self.bytes
    }

    /// Id and clock of the header at byte `at`; meaningless if that is not a
    /// [short](Usual::is_short) id.
    ///
    /// # Safety
    /// `at` is less than [`Usual::inside`] of these bytes.
    #[inline(always)]
    pub unsafe fn read_short(&self, bytes: &[u8], at: usize, clock: u64) -> (u64, u64) {
        debug_assert!(at < self.inside(bytes));
        // SAFETY: from `at` on there are FORM_BYTES at least, as the caller says.
        let head = unsafe { &*bytes.as_ptr().add(at).cast::<[u8; FORM_BYTES]>() };
        self.short_of(head, clock)
    }

    #[inline(always)]
    fn short_of(&self, head: &[u8; FORM_BYTES], clock: u64) -> (u64, u64) {
        let mut word = [0; 8];
        word.copy_from_slice(&head[..8]);
        let id = u64::from_le_bytes(word) & self.id_mask;
        // The mask is for `told`; here it would only take time.
        let value = self.clock.word(head) >> (self.clock.shift & 63);
        (id, told(clock, value, self.clock.mask))
    }

    /// Distance from one event to the next of the same kind in the short form, if the next follows
    /// the header after this number of bytes; `None` if it has no short form.
    pub fn step(&self, id: u64, behind_bytes: u32) -> Option<usize> {
        (id <= self.high).then_some(self.bytes + behind_bytes as usize)
    }

    /// The clock at the header at byte `at`, if it is of the short form and has this id.
    ///
    /// # Safety
    /// `at` is less than [`Usual::inside`] of these bytes.
    #[inline(always)]
    pub unsafe fn clock_of_same(
        &self,
        bytes: &[u8],
        at: usize,
        id: u64,
        clock: u64,
    ) -> Option<u64> {
        debug_assert!(at < self.inside(bytes) && id <= self.high);
        // SAFETY: from `at` on there are FORM_BYTES at least, as the caller says.
        let head = unsafe { &*bytes.as_ptr().add(at).cast::<[u8; FORM_BYTES]>() };
        let (found, now) = self.short_of(head, clock);
        (found == id).then_some(now)
    }

    /// [`Usual::read_inside`] anywhere. `None` also if that number of bytes is not available.
    #[inline(always)]
    pub fn read(&self, bytes: &[u8], at: usize, clock: u64) -> Option<Told> {
        let base = self.aligned(at);
        self.of_head(bytes.get(base..)?.first_chunk()?, base, clock)
    }

    #[inline(always)]
    fn of_head(&self, head: &[u8; FORM_BYTES], base: usize, clock: u64) -> Option<Told> {
        let (id, now) = self.short_of(head, clock);
        if id <= self.high {
            return Some((id, now, base + self.bytes));
        }
        let long = self.long.as_ref().filter(|long| long.low <= id && id <= long.high)?;
        let clock = told(clock, long.clock.read::<false>(head), long.clock.mask);
        Some((long.id.read::<false>(head), clock, base + long.bytes))
    }
}

/// A layout whose numbers are read by a load, a shift and a mask each.
#[derive(Debug, Clone, Copy)]
struct Fast {
    low: u64,
    /// `high - low`.
    range: u64,
    bytes: usize,
    id: Piece,
    clock: Piece,
}

/// Bits of the word of 8 bytes that begins at a byte of the header.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at: u8,
    shift: u8,
    swap: bool,
    mask: u64,
}

/// Bytes that forms look at: a word at any of the first [`PIECES`] bytes.
const FORM_BYTES: usize = 24;
const PIECES: usize = FORM_BYTES - 8;

impl Piece {
    /// A field that is not there reads as 0.
    const NONE: Self = Self { at: 0, shift: 0, swap: false, mask: 0 };

    fn of(load: Option<&Load>) -> Option<Self> {
        let Some(load) = load else {
            return Some(Self::NONE);
        };
        let (shift, mask, swap) = load.as_shift().filter(|_| load.form == Form::Unsigned)?;
        let at = u8::try_from(load.at).ok().filter(|&at| usize::from(at) < PIECES)?;
        Some(Self { at, shift, swap, mask })
    }

    #[inline(always)]
    fn word(&self, head: &[u8; FORM_BYTES]) -> u64 {
        // Of [`Piece::of`]; said again for the bounds below.
        let at = usize::from(self.at) % PIECES;
        let mut word = [0; 8];
        word.copy_from_slice(&head[at..at + 8]);
        u64::from_le_bytes(word)
    }

    #[inline(always)]
    fn read<const PLAIN: bool>(&self, head: &[u8; FORM_BYTES]) -> u64 {
        let word = self.word(head);
        if PLAIN {
            return word & self.mask;
        }
        let word = if self.swap { word.swap_bytes() } else { word };
        (word >> (self.shift & 63)) & self.mask
    }
}

/// Where things are in a header.
#[derive(Debug, Clone, Copy)]
struct Layout {
    bytes: usize,
    id: Option<Load>,
    /// Whether the selector is the id.
    id_selects: bool,
    clock: Option<Load>,
    /// The bits of the clock that the header contains.
    clock_mask: u64,
}

/// What a header says.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    /// Id of the event class, if it says.
    pub id: Option<u64>,
    /// The byte after the header.
    pub after: usize,
}

impl Header {
    /// The layouts of a header program; `None` if they are not constant or contain more than id and
    /// clock. `kept` are the registers needed after the header.
    pub fn of(program: &Program, kept: &[u32]) -> Option<Self> {
        let align = match program.ops.first() {
            Some(Op::Align(bits)) => (*bits).max(8),
            _ => 8,
        };
        let mut header = Self {
            mask: align as usize / 8 - 1,
            any_bit: !matches!(program.ops.first(), Some(Op::Align(8..))),
            selector: None,
            layouts: Vec::new(),
            forms: Vec::new(),
            form_selector: Piece::NONE,
            plain: false,
            has_id: false,
            usual: None,
        };
        if header.any_bit && !program.ops.is_empty() {
            return None;
        }
        let walk = Walk { program, kept, align, bits: 0, last: None, saved: Vec::new() };
        let first = Found::default();
        match walk.run(0, first)? {
            End::Done(layout) => header.layouts.push((0, u64::MAX, layout)),
            End::Select { walk, next: found, selector, choices } => {
                let bytes = (walk.bits as usize).div_ceil(8);
                header.selector = Some((selector, bytes));
                if choices.len() > LAYOUTS_MAX {
                    return None;
                }
                for choice in choices {
                    // Values below zero cannot be: the selector is unsigned.
                    let low = u64::try_from(choice.low.max(0)).ok()?;
                    let Ok(high) = u64::try_from(choice.high.min(i128::from(u64::MAX))) else {
                        continue;
                    };
                    match walk.clone().run(choice.target as usize, found)? {
                        End::Done(layout) => header.layouts.push((low, high, layout)),
                        End::Select { .. } => return None,
                    }
                }
            }
        }
        let selector = header.selector.map(|(load, _)| load);
        for (_, _, layout) in &mut header.layouts {
            layout.id_selects =
                layout.id.zip(selector).is_some_and(|(id, selector)| id.is_same(&selector));
        }
        header.has_id = header.layouts.iter().any(|(_, _, layout)| layout.id.is_some());
        header.find_forms();
        Some(header)
    }

    /// Alignment in bits.
    pub fn align_bits(&self) -> u64 {
        if self.any_bit { 1 } else { (self.mask as u64 + 1) * 8 }
    }

    /// Whether every header takes a byte at least.
    pub fn takes_bytes(&self) -> bool {
        self.layouts.iter().all(|(_, _, layout)| layout.bytes > 0)
    }

    /// Finds the forms, if every layout has one.
    fn find_forms(&mut self) {
        let form = |(low, high, layout): &(u64, u64, Layout)| {
            Some(Fast {
                low: *low,
                range: high.checked_sub(*low)?,
                bytes: layout.bytes,
                id: Piece::of(layout.id.as_ref())?,
                clock: Piece::of(layout.clock.as_ref())?,
            })
        };
        let forms: Option<Vec<Fast>> = self.layouts.iter().map(form).collect();
        let selector = Piece::of(self.selector.as_ref().map(|(load, _)| load));
        if let (Some(forms), Some(selector)) = (forms, selector) {
            let pieces = forms.iter().flat_map(|form| [form.id, form.clock]);
            self.plain = pieces.chain([selector]).all(|piece| piece.shift == 0 && !piece.swap);
            self.usual = self.find_usual(&forms, selector);
            (self.forms, self.form_selector) = (forms, selector);
        }
    }

    fn find_usual(&self, forms: &[Fast], selector: Piece) -> Option<Usual> {
        let first = forms.first()?;
        let begins = |piece: Piece| (piece.at, piece.shift, piece.swap) == (0, 0, false);
        let selects = self.selector.is_none() || selector.mask == first.id.mask;
        let found = begins(first.id) && begins(selector) && selects;
        let long = forms.get(1).filter(|form| form.id.mask != 0).map(|form| Long {
            low: form.low,
            high: form.low.saturating_add(form.range),
            id: form.id,
            clock: form.clock,
            bytes: form.bytes,
        });
        let usual = found && !first.clock.swap && first.low == 0 && first.bytes > 0;
        usual.then_some(Usual {
            mask: self.mask,
            id_mask: first.id.mask,
            high: first.range,
            clock: first.clock,
            bytes: first.bytes,
            long,
        })
    }

    /// Reads the header at the first possible byte from `at` on, and moves the
    /// clock. `None` if it does not fit before `end` or no layout is chosen; the
    /// clock is then as before. `PLAIN` only where [`Header::plain`].
    #[inline(always)]
    fn read<const PLAIN: bool>(
        &self,
        bytes: &[u8],
        at: usize,
        end: usize,
        clock: &mut u64,
    ) -> Option<Read> {
        let base = (at + self.mask) & !self.mask;
        let Some(head) = bytes.get(base..).and_then(|tail| tail.first_chunk()) else {
            return self.read_any(bytes, base, end, clock);
        };
        let selected = self.form_selector.read::<PLAIN>(head);
        let chosen = |form: &&Fast| selected.wrapping_sub(form.low) <= form.range;
        let Some(form) = self.forms.iter().find(chosen) else {
            return self.read_any(bytes, base, end, clock);
        };
        let after = base + form.bytes;
        if after > end {
            return None;
        }
        *clock = told(*clock, form.clock.read::<PLAIN>(head), form.clock.mask);
        let id = (form.id.mask != 0).then(|| form.id.read::<PLAIN>(head));
        Some(Read { id, after })
    }

    /// What [`Usual::read`] did not read, in the same words.
    #[inline(never)]
    pub fn read_unusual(
        &self,
        bytes: &[u8],
        at: usize,
        end: usize,
        clock: u64,
    ) -> Option<(u64, u64, usize)> {
        let mut now = clock;
        let read = match self.plain {
            true => self.read::<true>(bytes, at, end, &mut now)?,
            false => self.read::<false>(bytes, at, end, &mut now)?,
        };
        Some((read.id.unwrap_or(0), now, read.after))
    }

    /// The same of any layout.
    fn read_any(&self, bytes: &[u8], base: usize, end: usize, clock: &mut u64) -> Option<Read> {
        let mut selected = 0;
        let layout = match &self.selector {
            None => &self.layouts.first()?.2,
            Some((selector, size)) => {
                if base + size > end {
                    return None;
                }
                selected = selector.value(bytes, base);
                let chosen =
                    |(low, high, _): &&(u64, u64, Layout)| *low <= selected && selected <= *high;
                &self.layouts.iter().find(chosen)?.2
            }
        };
        let after = base + layout.bytes;
        if after > end {
            return None;
        }
        if let Some(load) = &layout.clock {
            *clock = told(*clock, load.value(bytes, base), layout.clock_mask);
        }
        let id = match &layout.id {
            Some(_) if layout.id_selects => Some(selected),
            Some(load) => Some(load.value(bytes, base)),
            None => None,
        };
        Some(Read { id, after })
    }
}

/// The clock after some of its low bits are known. The difference modulo these bits: one overflow
/// is corrected [CTF 1.8.3 §8].
#[inline(always)]
fn told(clock: u64, value: u64, mask: u64) -> u64 {
    clock.wrapping_add(value.wrapping_sub(clock) & mask)
}

/// What has been found on the way.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    id: Option<Load>,
    clock: Option<Load>,
}

/// A walk over the operations with known distances.
#[derive(Clone)]
struct Walk<'p> {
    program: &'p Program,
    kept: &'p [u32],
    align: u32,
    bits: u32,
    last: Option<Load>,
    saved: Vec<(u32, Load)>,
}

enum End<'p> {
    Done(Layout),
    Select { walk: Walk<'p>, next: Found, selector: Load, choices: &'p [Choice] },
}

impl<'p> Walk<'p> {
    fn run(mut self, first: usize, mut found: Found) -> Option<End<'p>> {
        let program = self.program;
        let mut next = first;
        while let Some(op) = program.ops.get(next) {
            next += 1;
            match *op {
                Op::Align(bits) if bits <= self.align => {
                    self.bits = self.bits.next_multiple_of(bits.max(1));
                }
                Op::Scalar { ref scalar, .. } => {
                    self.last = Some(Load::of(scalar, self.bits));
                    self.bits += scalar.bits;
                    if self.bits > 1 << 20 {
                        return None;
                    }
                }
                Op::Role(roles) => {
                    let load = self.last?;
                    if roles.contains(Role::EventClassId) {
                        found.id = Some(load);
                    }
                    if roles.contains(Role::Clock) {
                        let plain = load.form == Form::Unsigned && found.clock.is_none();
                        found.clock = Some(load).filter(|_| plain);
                        found.clock?;
                    }
                }
                Op::Save(register) => {
                    if self.kept.contains(&register) {
                        return None;
                    }
                    self.saved.push((register, self.last?));
                }
                Op::Select { register, signed: false, table } => {
                    let of_register = |(saved, _): &&(u32, Load)| *saved == register;
                    let selector = self.saved.iter().rev().find(of_register)?.1;
                    let choices = program.choices.get(table as usize)?;
                    return Some(End::Select { walk: self, next: found, selector, choices });
                }
                // Forwards only: jumps lead past a variant.
                Op::Jump(target) if target as usize >= next => next = target as usize,
                _ => return None,
            }
        }
        if !self.bits.is_multiple_of(8) {
            return None;
        }
        let clock_mask = match found.clock.map_or(64, |load| load.bits()) {
            bits @ 0..64 => (1 << bits) - 1,
            _ => u64::MAX,
        };
        let bytes = self.bits as usize / 8;
        Some(End::Done(Layout {
            bytes,
            id: found.id,
            id_selects: false,
            clock: found.clock,
            clock_mask,
        }))
    }
}
