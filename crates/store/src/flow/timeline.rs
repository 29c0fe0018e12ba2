// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls along time, for showing a window: packets are decoded only for the window, and for the rest a
//! summary of each unit of packets is kept.
//!
//! ```text
//! packets ─ PSB to PSB ─► units ─┬─ in order, once ───► summaries, and the state after each unit
//!                                └─ those of a window ► calls, gaps, instructions along time
//! ```

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use lateralis_intelpt::flow::Event;
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::packet::{Packet, Packets, find_psb};
use lateralis_intelpt::{Block, assembly, instructions};

use super::calls::{Calls, Known, State};
use super::{
    Call, Clock, Decoder, Follow, Moment, Processor, Recorded, Traced, WithPlaces, images_of,
    place_of,
};
use crate::places::{Frame, Places};

/// Minimum size of a unit in bytes of packets, and approximate largest number of units of a thread: some
/// kilobytes are kept for each.
const UNIT_BYTES: usize = 64 << 10;
const UNITS_MAX: usize = 1 << 14;
/// Bytes of packets of a window in which every call is shown: some 40 ms of decoding.
const WINDOW_BYTES: usize = 4 << 20;
/// Number of depths with a row each; deeper calls are on the last one.
pub const DEPTHS_MAX: usize = 48;
/// Largest number of packets of a PSB+ that are read to find its time [SDM volume 3, PSB+ has each once].
const PSB_PACKETS: usize = 64;
/// Bytes of a PSBEND packet [SDM volume 3, PSBEND].
const PSBEND_BYTES: usize = 2;
/// Number of functions weighed for a depth of a summary.
const WEIGHED_MAX: usize = 32;

/// Packets that are decoded in one go: from a PSB to another, or to a switch of threads.
#[derive(Debug, Clone)]
struct Unit {
    /// Index among the thread's pieces.
    piece: usize,
    /// Range in the run of the piece: up to the end of the PSB+ of the next unit, whose address completes
    /// the last packets.
    bytes: Range<usize>,
    /// Whether another thread ran between the previous unit and it, and the state of the processor is
    /// known.
    is_switched: bool,
    /// Whether it begins where the previous unit ends.
    goes_on: bool,
    /// Time of its begin; `None` if no packet has it.
    begin_ns: Option<u64>,
    /// Result once the units before it have been decoded.
    done: Option<Done>,
}

#[derive(Debug, Clone)]
struct Done {
    /// State of the thread at its begin.
    state: State,
    instructions: u64,
    end_ns: Option<u64>,
    depths: Vec<Top>,
    gaps: Vec<(u64, u64)>,
}

/// Calls of one depth in a unit.
#[derive(Debug, Clone, Copy, Default)]
struct Top {
    function: u32,
    calls: u32,
    /// Their share of the instructions of the unit, in 255ths.
    cover: u8,
}

/// Calls of a thread or CPU.
struct Line {
    traced: Traced,
    units: Vec<Unit>,
    /// The first unit that has not been decoded in order, and the state of the thread at its begin.
    next: usize,
    state: Option<State>,
    begin_ns: Option<u64>,
    end_ns: Option<u64>,
    window: Option<(Range<usize>, bool, Arc<Window>)>,
}

/// An item to be drawn: a call; or the calls of a unit at one depth, with the function that has most
/// instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Nanoseconds of the recording's clock; interpolated by instructions between times in packets.
    pub begin_ns: u64,
    /// See `begin_ns`.
    pub end_ns: u64,
    /// Number of the function.
    pub function: u32,
    /// Number of calls that it represents.
    pub calls: u32,
    /// Share of its time that they take, in 255ths.
    pub cover: u8,
    /// Details, for a single call.
    pub call: Option<Call>,
}

/// A part of a thread's time.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// Whether it contains every call.
    pub is_exact: bool,
    /// Whether all callers are known that packets determine; false while earlier packets have not been
    /// decoded.
    pub knows_callers: bool,
    /// By depth, in time order.
    pub depths: Vec<Vec<Piece>>,
    /// Intervals in which execution is unknown.
    pub gaps: Vec<(u64, u64)>,
    /// Times with the number of instructions executed before, in time order.
    pub moments: Vec<(u64, u64)>,
    /// Largest error of times, if bounded.
    pub error_ns: Option<u64>,
}

/// An executed instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// Number in the thread, from 0; earlier instructions are only counted as far as they were decoded.
    pub number: u64,
    /// Approximate time.
    pub time_ns: Option<u64>,
    /// Address.
    pub address: u64,
    /// Text in Intel's syntax.
    pub assembly: String,
    /// Functions that contain it, and its line.
    pub frames: Arc<[Frame]>,
}

/// Calls of all threads of a recording along time.
///
/// Memory: the packets; for each unit a summary and the calls that are open at its begin; the calls of
/// recently shown windows.
pub struct Timeline<'i> {
    recorded: Recorded<'i>,
    known: Known,
    lines: Vec<Line>,
}

impl<'i> Timeline<'i> {
    /// Finds units without decoding.
    ///
    /// Cost: each byte is examined.
    #[must_use]
    pub fn new(recorded: Recorded<'i>) -> Self {
        Self::with_units(recorded, UNIT_BYTES)
    }

    fn with_units(recorded: Recorded<'i>, least_bytes: usize) -> Self {
        let line = |part| Line::new(&recorded, part, least_bytes);
        let lines = (0..recorded.parts.len()).map(line).collect();
        Self { recorded, known: Known::default(), lines }
    }

    /// Number of threads and CPUs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Thread of the packets.
    #[must_use]
    pub fn traced(&self, line: usize) -> Option<&Traced> {
        self.lines.get(line).map(|line| &line.traced)
    }

    /// Times of the first and last packets of a thread, as far as they have them.
    #[must_use]
    pub fn extent(&self, line: usize) -> Option<(u64, u64)> {
        let line = self.lines.get(line)?;
        line.begin_ns.zip(line.end_ns)
    }

    /// Bytes of packets that have not been decoded in order yet.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        let left = self.lines.iter().flat_map(|line| &line.units[line.next..]);
        left.map(|unit| unit.bytes.len() as u64).sum()
    }

    /// Depth of calls, as far as they have been decoded.
    #[must_use]
    pub fn depth(&self, line: usize) -> usize {
        let units = self.lines.get(line).map_or(&[][..], |line| &line.units);
        units.iter().filter_map(|unit| Some(unit.done.as_ref()?.depths.len())).max().unwrap_or(0)
    }

    /// Names of functions and lines by number.
    #[must_use]
    pub fn places(&self) -> &Places<'i> {
        &self.recorded.places
    }

    /// `FILE:LINE` of an address in the code of a thread.
    pub fn line_at(&mut self, line: usize, address: u64) -> Option<String> {
        let pid = self.lines.get(line)?.traced.pid;
        let places = &mut self.recorded.places;
        let found = places.frames_at(pid, address, place_of(address)).last()?.line?;
        Some(places.line_text(found))
    }

    /// Decodes more, in packet order: at least a unit of each unfinished thread, and about this number of
    /// bytes of all of them.
    pub fn advance(&mut self, most_bytes: usize) {
        let mut left = most_bytes;
        for line in 0..self.lines.len() {
            while let Some(unit) = self.lines[line].units.get(self.lines[line].next).cloned() {
                self.decode_next(line, &unit);
                left = left.saturating_sub(unit.bytes.len());
                if left == 0 {
                    break;
                }
            }
        }
    }

    fn decode_next(&mut self, line: usize, unit: &Unit) {
        let nth = self.lines[line].next;
        let state = self.lines[line].state.take();
        // Initially the state of the thread is unknown.
        let found = self.decode(line, nth..nth + 1, state.clone(), None);
        let done = found.summary(state.unwrap_or_default());
        let of = &mut self.lines[line];
        if nth + 1 == of.units.len() {
            of.end_ns = of.end_ns.max(done.end_ns);
        }
        of.state = Some(found.state);
        of.units[nth] = Unit { done: Some(done), ..unit.clone() };
        of.next = nth + 1;
    }

    /// Calls of a thread in a time range: every call if it has few packets, otherwise the summaries.
    pub fn window(&mut self, line: usize, (t0, t1): (u64, u64)) -> Arc<Window> {
        let Some(of) = self.lines.get(line) else { return Arc::default() };
        let range = of.units_of(t0, t1);
        if of.bytes(&range) > WINDOW_BYTES {
            return Arc::new(of.summaries(range));
        }
        self.window_of(line, range)
    }

    /// Instructions executed by a thread: those with the given numbers if known, otherwise those in a
    /// time range; `count` of them from an offset on, and their total number if known.
    ///
    /// Cost: that of a window, and of a unit of packets.
    pub fn instructions(
        &mut self,
        line: usize,
        (t0, t1): (u64, u64),
        numbers: Option<Range<u64>>,
        (from, count): (u64, usize),
    ) -> (Vec<Executed>, Option<u64>) {
        let Some(of) = self.lines.get(line) else { return (Vec::new(), Some(0)) };
        // A block that ends in one unit may begin in the previous one.
        let near = of.units_of(t0, t1);
        let range = near.start.saturating_sub(1)..(near.end + 1).min(of.units.len());
        let is_whole = of.bytes(&range) <= WINDOW_BYTES;
        let numbers = match (numbers, is_whole) {
            (Some(numbers), _) => Some(numbers),
            (None, true) => {
                let window = self.window_of(line, range.clone());
                Some(window.number_at(t0)..window.number_at(t1))
            }
            (None, false) => None,
        };
        let first = match &numbers {
            Some(numbers) => numbers.start,
            None => {
                let first = range.start..(range.start + 2).min(range.end);
                self.window_of(line, first).number_at(t0)
            }
        };
        let total = numbers.as_ref().map(|numbers| numbers.end.saturating_sub(numbers.start));
        let first = first.saturating_add(from);
        let count = total.map_or(count, |total| {
            count.min(usize::try_from(total.saturating_sub(from)).unwrap_or(usize::MAX))
        });
        if count == 0 {
            return (Vec::new(), total);
        }
        // The last unit known to begin before them.
        let of = &self.lines[line];
        let begins = |nth: &usize| {
            let unit = of.units.get(*nth).and_then(|unit| unit.done.as_ref());
            unit.is_some_and(|done| done.state.count <= first)
        };
        let start = range.clone().rev().find(begins).unwrap_or(range.start);
        let state = of.state_of(start);
        let wanted = Wanted { numbers: first..first.saturating_add(count as u64), end_ns: t1 };
        let found = self.decode(line, start..range.end, state, Some(wanted));
        (found.instructions, total)
    }

    fn window_of(&mut self, line: usize, range: Range<usize>) -> Arc<Window> {
        let of = &self.lines[line];
        let knows_callers = of.units.get(range.start).is_none_or(|unit| unit.done.is_some());
        let state = of.state_of(range.start);
        if let Some((known, knew, window)) = &of.window
            && (known, *knew) == (&range, knows_callers)
        {
            return Arc::clone(window);
        }
        let window = self.decode(line, range.clone(), state, None).window(knows_callers);
        let window = Arc::new(window);
        self.lines[line].window = Some((range, knows_callers, Arc::clone(&window)));
        window
    }

    /// Decodes consecutive units; `state`: state of the thread at the begin of the first, if known.
    fn decode(
        &mut self,
        line: usize,
        range: Range<usize>,
        state: Option<State>,
        wanted: Option<Wanted>,
    ) -> Decoded {
        let Self { recorded, known, lines } = self;
        let Recorded { places, packed, parts, spaces, filters, processor, .. } = recorded;
        let (Some(of), Some(part)) = (lines.get(line), parts.get(line)) else {
            return Decoded::default();
        };
        let images = images_of(spaces);
        let mut decoder = Decoder::new(packed, parts, (&images, filters), *processor);
        let mut all: Vec<Call> = Vec::new();
        let wants_calls = wanted.is_none();
        let returned = |_: &mut Places<'_>, _: &Traced, call: Call| {
            if wants_calls {
                all.push(call);
            }
            ControlFlow::Continue(())
        };
        let goes_on = state.is_some();
        let begin = state.as_ref().map_or(0, |state| state.count);
        let state = state.unwrap_or_default();
        let mut calls = Calls::new(std::mem::take(known), state, of.traced.clone(), returned);
        match goes_on {
            true => calls.is_of(&of.traced),
            false => calls.begins(places, &of.traced),
        }
        let mut tracer = Tracer {
            calls,
            skips_sync: false,
            moments: Vec::new(),
            gaps: Vec::new(),
            gap_begin_ns: None,
            error_ns: Some(0),
            wanted,
            instructions: Vec::new(),
            is_enough: false,
        };
        for (nth, unit) in of.units[range.clone()].iter().enumerate() {
            let Some(piece) = part.pieces.get(unit.piece) else { continue };
            tracer.skips_sync = unit.goes_on && (nth > 0 || goes_on);
            if !unit.goes_on && !unit.is_switched && range.start + nth > 0 {
                tracer.gap(tracer.moments.last().map(|(nanos, _)| *nanos));
            }
            let mut observe = WithPlaces { places, follow: &mut tracer };
            decoder.decode((part, piece), Some(unit.bytes.clone()), &mut observe);
            if tracer.is_enough {
                break;
            }
        }
        let next_ns = of.units.get(range.end).filter(|unit| unit.goes_on);
        tracer.end(next_ns.and_then(|unit| unit.begin_ns));
        let Tracer { calls, moments, gaps, error_ns, instructions, .. } = tracer;
        let open: Vec<Call> = calls.open().collect();
        let Calls { known: decoded, state, .. } = calls;
        *known = decoded;
        Decoded { calls: all, open, state, begin, moments, gaps, error_ns, instructions }
    }
}

impl Line {
    fn new(recorded: &Recorded<'_>, part: usize, least_bytes: usize) -> Self {
        let of = &recorded.parts[part];
        let places = of
            .pieces
            .iter()
            .enumerate()
            .filter_map(|(nth, piece)| Some((nth, piece, piece.packets(&recorded.packed)?)));
        let sizes = places.clone().map(|(_, _, (_, turn, end))| end.saturating_sub(turn.begin));
        let least = (sizes.sum::<usize>() / UNITS_MAX).max(least_bytes);
        let mut units: Vec<Unit> = Vec::new();
        for (nth, piece, (run, turn, end)) in places {
            let begins_at_psb = turn.begin == turn.psb;
            if piece.is_gap {
                let bytes = turn.begin..turn.begin;
                let begin_ns = turn.moment().map(|moment| moment.nanos);
                let (goes_on, done) = (false, None);
                let is_switched = true;
                units.push(Unit { piece: nth, bytes, is_switched, goes_on, begin_ns, done });
                continue;
            }
            let bytes = run.bytes.get(..end).unwrap_or(&run.bytes);
            let mut begin = turn.begin;
            let mut goes_on = false;
            while begin < bytes.len() {
                let begin_ns = match goes_on || begins_at_psb {
                    true => header(&run.processor, bytes, begin).0,
                    false => turn.moment().map(|moment| moment.nanos),
                };
                let next = find_psb(bytes, begin.saturating_add(least));
                let end = next.map_or(bytes.len(), |next| header(&run.processor, bytes, next).1);
                let (is_switched, done) = (!begins_at_psb && !goes_on, None);
                let bytes = begin..end;
                units.push(Unit { piece: nth, bytes, is_switched, goes_on, begin_ns, done });
                goes_on = true;
                let Some(next) = next else { break };
                begin = next;
            }
        }
        // Units without a time begin at that of the previous one.
        let mut last = units.iter().find_map(|unit: &Unit| unit.begin_ns);
        let begin_ns = last;
        for unit in &mut units {
            unit.begin_ns = unit.begin_ns.max(last);
            last = unit.begin_ns;
        }
        let end_ns = units.last().and_then(|unit| {
            let piece = of.pieces.get(unit.piece)?;
            let (run, turn, _) = piece.packets(&recorded.packed)?;
            // Clocks count from a PSB on.
            let from = if unit.goes_on { unit.bytes.start } else { turn.psb };
            let mut clock = Clock::new(&run.processor);
            let packets = Packets::new(run.bytes.get(from..unit.bytes.end)?);
            for found in packets.with_errata(run.processor.errata).flatten() {
                clock.packet(&found.packet);
            }
            Some(clock.moment(None)?.nanos)
        });
        let traced = of.traced.clone();
        Self { traced, units, next: 0, state: None, begin_ns, end_ns, window: None }
    }

    /// Units that overlap a time range.
    fn units_of(&self, t0: u64, t1: u64) -> Range<usize> {
        if self.begin_ns.is_none() {
            return 0..0;
        }
        let before = |time: u64| self.units.partition_point(|unit| unit.begin_ns <= Some(time));
        let begin = before(t0).saturating_sub(1);
        begin..before(t1).max(begin)
    }

    fn bytes(&self, range: &Range<usize>) -> usize {
        self.units[range.clone()].iter().map(|unit| unit.bytes.len()).sum()
    }

    /// State of the thread at the begin of a unit, if known.
    fn state_of(&self, unit: usize) -> Option<State> {
        if unit == self.next {
            return self.state.clone();
        }
        let done = self.units.get(unit)?.done.as_ref();
        done.map(|done| done.state.clone()).filter(|state| !state.is_nowhere())
    }

    /// Summaries of units, without decoding them.
    fn summaries(&self, range: Range<usize>) -> Window {
        let mut window = Window { knows_callers: true, ..Window::default() };
        for (nth, unit) in range.clone().zip(&self.units[range]) {
            let (Some(begin_ns), Some(done)) = (unit.begin_ns, &unit.done) else { continue };
            let next = self.units.get(nth + 1).and_then(|next| next.begin_ns);
            let end_ns = done.end_ns.or(next).unwrap_or(begin_ns).max(begin_ns);
            for (depth, top) in done.depths.iter().enumerate().filter(|(_, top)| top.calls > 0) {
                if window.depths.len() <= depth {
                    window.depths.resize_with(depth + 1, Vec::new);
                }
                let Top { function, calls, cover } = *top;
                let piece = Piece { begin_ns, end_ns, function, calls, cover, call: None };
                window.depths[depth].push(piece);
            }
            window.gaps.extend(&done.gaps);
            let count = done.state.count;
            window.moments.push((begin_ns, count));
            window.moments.push((end_ns, count + done.instructions));
        }
        window.moments.dedup();
        window
    }
}

/// Time of a PSB+, and the byte after it.
fn header(processor: &Processor, bytes: &[u8], psb: usize) -> (Option<u64>, usize) {
    let mut clock = Clock::new(processor);
    for found in Packets::new(bytes.get(psb..).unwrap_or_default()).take(PSB_PACKETS) {
        let Ok(found) = found else { break };
        clock.packet(&found.packet);
        if found.packet == Packet::PsbEnd {
            let end = psb + found.start + PSBEND_BYTES;
            return (clock.moment(None).map(|moment| moment.nanos), end.min(bytes.len()));
        }
    }
    (clock.moment(None).map(|moment| moment.nanos), bytes.len())
}

/// Range of requested instructions.
struct Wanted {
    numbers: Range<u64>,
    /// No instructions after this time.
    end_ns: u64,
}

/// Result of decoding units.
#[derive(Default)]
struct Decoded {
    calls: Vec<Call>,
    /// Calls that have not returned.
    open: Vec<Call>,
    state: State,
    /// Number of instructions before them.
    begin: u64,
    moments: Vec<(u64, u64)>,
    gaps: Vec<(u64, u64)>,
    error_ns: Option<u64>,
    instructions: Vec<Executed>,
}

impl Decoded {
    fn window(self, knows_callers: bool) -> Window {
        let Self { calls, open, moments, gaps, error_ns, .. } = self;
        let mut window =
            Window { is_exact: true, knows_callers, depths: Vec::new(), gaps, moments, error_ns };
        for call in calls.into_iter().chain(open) {
            let depth = (call.depth as usize).min(DEPTHS_MAX - 1);
            if window.depths.len() <= depth {
                window.depths.resize_with(depth + 1, Vec::new);
            }
            let (begin_ns, end_ns) = (window.begin_of(&call), window.end_of(&call));
            let end_ns = end_ns.max(begin_ns);
            let function = call.function;
            let cover = u8::MAX;
            let piece = Piece { begin_ns, end_ns, function, calls: 1, cover, call: Some(call) };
            window.depths[depth].push(piece);
        }
        window.depths.iter_mut().for_each(|of| of.sort_by_key(|of| (of.begin_ns, of.end_ns)));
        window
    }

    /// Summary of a unit, given the state of the thread at its begin.
    fn summary(&self, state: State) -> Done {
        let count = self.state.count - self.begin;
        let mut weights: Vec<Vec<(u32, u64)>> = Vec::new();
        let mut depths: Vec<Top> = Vec::new();
        for call in self.calls.iter().chain(&self.open) {
            let depth = (call.depth as usize).min(DEPTHS_MAX - 1);
            if depths.len() <= depth {
                depths.resize_with(depth + 1, Top::default);
                weights.resize_with(depth + 1, Vec::new);
            }
            let inside =
                (call.begin + call.instructions).saturating_sub(call.begin.max(self.begin));
            depths[depth].calls = depths[depth].calls.saturating_add(1);
            let of = &mut weights[depth];
            match of.iter().position(|(function, _)| *function == call.function) {
                Some(place) => of[place].1 += inside,
                None if of.len() < WEIGHED_MAX => of.push((call.function, inside)),
                None => {}
            }
        }
        for (top, weights) in depths.iter_mut().zip(&weights) {
            let most = weights.iter().max_by_key(|(function, weight)| (*weight, !function));
            top.function = most.map_or(0, |(function, _)| *function);
            let all: u64 = weights.iter().map(|(_, weight)| weight).sum();
            top.cover = (u128::from(all) * 255 / u128::from(count.max(1))).clamp(1, 255) as u8;
        }
        let end_ns = self.moments.last().map(|(nanos, _)| *nanos);
        Done { state, instructions: count, end_ns, depths, gaps: self.gaps.clone() }
    }
}

impl Window {
    fn begin_of(&self, call: &Call) -> u64 {
        let next = self.moments.partition_point(|(_, count)| *count <= call.begin);
        match next.checked_sub(1) {
            Some(before) => self.between(before, call.begin),
            // It was called before.
            None => call.times.0.map_or(self.begin_ns(), |moment| moment.nanos),
        }
    }

    fn end_of(&self, call: &Call) -> u64 {
        let number = call.begin.saturating_add(call.instructions);
        let next = self.moments.partition_point(|(_, count)| *count < number);
        match next.checked_sub(1) {
            Some(before) => self.between(before, number),
            None => self.begin_ns(),
        }
    }

    fn begin_ns(&self) -> u64 {
        self.moments.first().map_or(0, |(nanos, _)| *nanos)
    }

    /// Time of an instruction that comes after one known time and not after the next one.
    fn between(&self, before: usize, number: u64) -> u64 {
        let (nanos, count) = self.moments[before];
        let Some((next_nanos, next_count)) = self.moments.get(before + 1).copied() else {
            return nanos;
        };
        let (passed, all) = (number.saturating_sub(count), next_count.saturating_sub(count));
        let share = u128::from(next_nanos.saturating_sub(nanos)) * u128::from(passed.min(all));
        nanos + (share / u128::from(all.max(1))) as u64
    }

    /// Number of instructions executed before a time: interpolated linearly between times in packets.
    #[must_use]
    pub fn number_at(&self, time_ns: u64) -> u64 {
        let next = self.moments.partition_point(|(nanos, _)| *nanos <= time_ns);
        let Some(before) = next.checked_sub(1) else {
            return self.moments.first().map_or(0, |(_, count)| *count);
        };
        let (nanos, count) = self.moments[before];
        let Some((next_nanos, next_count)) = self.moments.get(next).copied() else { return count };
        let (passed, all) = (time_ns - nanos, next_nanos.saturating_sub(nanos));
        let share = u128::from(next_count.saturating_sub(count)) * u128::from(passed);
        count + (share / u128::from(all.max(1))) as u64
    }
}

/// Receives the flow of units.
struct Tracer<R> {
    calls: Calls<R>,
    /// Whether the next address is just the end of the previous unit.
    skips_sync: bool,
    moments: Vec<(u64, u64)>,
    gaps: Vec<(u64, u64)>,
    gap_begin_ns: Option<u64>,
    error_ns: Option<u64>,
    wanted: Option<Wanted>,
    instructions: Vec<Executed>,
    is_enough: bool,
}

impl<R: FnMut(&mut Places<'_>, &Traced, Call) -> ControlFlow<()>> Tracer<R> {
    fn moment(&mut self, nanos: u64) {
        let count = self.calls.state.count;
        if self.moments.last().is_none_or(|(last, _)| *last < nanos) {
            self.moments.push((nanos, count));
        }
    }

    /// Execution is unknown from a time on.
    fn gap(&mut self, nanos: Option<u64>) {
        let Some(nanos) = nanos else { return };
        self.moment(nanos);
        // Instructions after the gap are not spread over it.
        if self.moments.last().is_some_and(|(_, count)| *count < self.calls.state.count) {
            self.moments.push((nanos, self.calls.state.count));
        }
        self.gap_begin_ns.get_or_insert(nanos);
    }

    fn end(&mut self, next_ns: Option<u64>) {
        if let Some(nanos) = next_ns {
            self.moment(nanos);
        }
        if let Some((nanos, count)) = self.moments.last().copied()
            && count < self.calls.state.count
        {
            self.moments.push((nanos, self.calls.state.count));
        }
        if let Some(begin) = self.gap_begin_ns.take() {
            let end = next_ns.unwrap_or(begin).max(begin);
            self.gaps.push((begin, end));
        }
    }

    fn list(&mut self, places: &mut Places<'_>, code: &Sections<'_>, block: &Block, time: Moment) {
        let Some(Wanted { numbers, end_ns }) = &self.wanted else { return };
        let begin = self.calls.state.count;
        let end = begin + u64::from(block.count);
        self.is_enough |= end >= numbers.end || time.is_some_and(|time| time.nanos > *end_ns);
        if end <= numbers.start || begin >= numbers.end {
            return;
        }
        let pid = self.calls.traced.pid;
        let mut number = begin;
        instructions(code, block, |address, instruction| {
            if numbers.contains(&number) {
                let mut text = String::new();
                assembly(instruction, &mut text);
                let frames = places.frames_at(pid, address, place_of(address));
                self.instructions.push(Executed {
                    number,
                    time_ns: time.map(|time| time.nanos),
                    address,
                    assembly: text,
                    frames,
                });
            }
            number += 1;
        });
    }
}

impl<R: FnMut(&mut Places<'_>, &Traced, Call) -> ControlFlow<()>> Follow for Tracer<R> {
    fn begins(&mut self, places: &mut Places<'_>, traced: &Traced) {
        self.calls.begins(places, traced);
    }

    fn block(&mut self, places: &mut Places<'_>, code: &Sections<'_>, block: &Block, time: Moment) {
        if let Some(time) = time {
            self.moment(time.nanos);
            self.error_ns = self.error_ns.zip(time.error_nanos).map(|(most, of)| most.max(of));
            if let Some(begin) = self.gap_begin_ns.take() {
                self.gaps.push((begin, time.nanos.max(begin)));
            }
        }
        self.list(places, code, block, time);
        self.calls.block(places, code, block, time);
    }

    fn event(&mut self, places: &mut Places<'_>, position: u64, event: Event, time: Moment) {
        match event {
            Event::Synced(_) if std::mem::take(&mut self.skips_sync) => return,
            Event::Gap(_) => {
                self.skips_sync = false;
                let last = self.moments.last().map(|(nanos, _)| *nanos);
                self.gap(time.map(|time| time.nanos).or(last));
            }
            _ => {}
        }
        self.calls.event(places, position, event, time);
    }

    fn is_enough(&self) -> bool {
        self.is_enough
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use lateralis_symbols::{Functions, Image};
    use lateralis_traces::hardware;

    use super::*;
    use crate::flow::executed;
    use crate::places::Images;

    /// A function for each 64 bytes of code, so that calls lead from one to another.
    struct Cells(String);

    impl Images for Cells {
        fn image(&mut self, _: &str, _: Option<&[u8]>) -> Result<Image, String> {
            Err("no files".to_owned())
        }

        fn code(&mut self, _: &str, _: Option<&[u8]>, _: (u64, u64)) -> Result<Vec<u8>, String> {
            Err("no files".to_owned())
        }

        fn kernel(&mut self, _: Option<&[u8]>) -> Result<Functions, String> {
            Err("no kernel".to_owned())
        }

        fn generated(&mut self, _: u32) -> Option<(Functions, String)> {
            Some((Functions::of_perf_map(&self.0), "cells".to_owned()))
        }
    }

    /// Programs recorded by hardware, from other sources.
    fn recorded(name: &str) -> Option<Recorded<'static>> {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/pt"));
        let path = root.join("griffin").join(name).join("trace.griffin.gz");
        if !path.exists() {
            println!("SKIPPED: no data: {}", path.display());
            return None;
        }
        let of = hardware::read(&path, 1 << 30).expect("a recording");
        let mut map = String::new();
        for (address, bytes) in &of.code {
            for at in (*address..address + bytes.len() as u64).step_by(64) {
                map.push_str(&format!("{at:x} 40 f{at:x}\n"));
            }
        }
        let places = Places::without_events(Cells(map));
        Some(Recorded::raw(places, of.buffers, &of.code))
    }

    type Told = (String, u64, u64, u32, bool);

    fn told(places: &Places<'_>, call: &Call) -> Told {
        let name = places.name_of(call.function).unwrap_or_default().to_owned();
        (name, call.begin, call.instructions, call.depth, call.is_whole)
    }

    #[test]
    fn units_one_after_the_other_have_the_calls_of_all_packets_in_one_go() {
        let mut all_units = 0;
        for name in ["df-01-poc", "ovf-02-ben", "cve-2018-12327-ben"] {
            let Some(mut whole) = recorded(name) else { return };
            let mut expected: Vec<Vec<Told>> = Vec::new();
            let mut last: Option<Traced> = None;
            let all = executed(&mut whole, |places, traced, call| {
                if last.as_ref() != Some(traced) {
                    expected.push(Vec::new());
                    last = Some(traced.clone());
                }
                if let Some(of) = expected.last_mut() {
                    of.push(told(places, &call));
                }
                ControlFlow::Continue(())
            });
            let recorded = recorded(name).expect("it was here");
            let mut timeline = Timeline::with_units(recorded, 512);
            let (mut instructions, mut found) = (0, Vec::new());
            for line in 0..timeline.count() {
                let mut of_line: Vec<Told> = Vec::new();
                let units = timeline.lines[line].units.len();
                all_units += units;
                let mut state = None;
                for unit in 0..units {
                    let decoded = timeline.decode(line, unit..unit + 1, state.take(), None);
                    instructions += decoded.state.count - decoded.begin;
                    let is_last = unit + 1 == units;
                    let open = decoded.open.iter().filter(|_| is_last);
                    for call in decoded.calls.iter().chain(open) {
                        of_line.push(told(&timeline.recorded.places, call));
                    }
                    state = Some(decoded.state);
                }
                found.push(of_line);
            }
            for of in expected.iter_mut().chain(&mut found) {
                of.sort();
            }
            found.retain(|of| !of.is_empty());
            assert_eq!(instructions, all.instructions, "{name}");
            assert!(expected.iter().map(Vec::len).sum::<usize>() > 100);
            assert_eq!(found, expected, "{name}");
        }
        assert!(all_units > 10, "{all_units} units");
    }

    #[test]
    fn times_between_two_moments_are_shared_by_instructions_and_none_by_a_gap() {
        let window = Window {
            // 10 instructions in 100 ns, a gap of 1000 ns, 20 instructions in 100 ns.
            moments: vec![(0, 0), (100, 10), (1100, 10), (1200, 30)],
            ..Window::default()
        };
        let call = |begin, instructions| Call {
            function: 0,
            caller: None,
            begin,
            instructions,
            depth: 0,
            address: 0,
            times: (None, None),
            is_whole: true,
            is_filtered: false,
        };
        let ends = |begin, count| {
            let call = call(begin, count);
            (window.begin_of(&call), window.end_of(&call))
        };
        assert_eq!(ends(0, 5), (0, 50));
        // One that ends before the gap, and one that begins after it.
        assert_eq!(ends(5, 5), (50, 100));
        assert_eq!(ends(10, 2), (1100, 1110));
        assert_eq!(ends(0, 30), (0, 1200));
        let numbers = [0, 50, 100, 600, 1100, 1150, 5000].map(|time| window.number_at(time));
        assert_eq!(numbers, [0, 5, 10, 10, 10, 20, 30]);
    }
}
