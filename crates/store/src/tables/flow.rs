// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of instructions executed by processors: decoded by each scan, without keeping anything.

use std::cell::Cell as Slot;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use lateralis_intelpt::flow::{Event, GapCause};
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::time::Time;
use lateralis_intelpt::{Block, Ends, assembly, instructions};

use super::build::Holds;
use super::shape::Described;
use super::small::{Cell, Rows};
use super::{Scan, StoreError, Table};
use crate::flow::gather::{
    Cores, Emit, Gather, GatherPackets, Gathering, GatheringPackets, Names, SharedPlaces, Take,
    gather, gather_packets,
};
use crate::flow::{
    Call, CallSteps, Moment, Observe, PacketAt, Recorded, TakeCalls, Traced, cause_name, place_of,
};
use crate::places::Places;

/// A table of flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Calls,
    Blocks,
    Instructions,
    Gaps,
    Packets,
}

impl Flow {
    pub const ALL: [Self; 5] =
        [Self::Calls, Self::Blocks, Self::Instructions, Self::Gaps, Self::Packets];

    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "flow_calls",
            Self::Blocks => "flow_blocks",
            Self::Instructions => "flow_instructions",
            Self::Gaps => "flow_gaps",
            Self::Packets => "flow_packets",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Calls => "calls of functions, as they return; from packets of the processor",
            Self::Blocks => "instructions that were executed one after the other, up to a branch",
            Self::Instructions => "each instruction that was executed",
            Self::Gaps => "stretches of which no instruction is known, with why",
            Self::Packets => "packets of the processor's tracer",
        }
    }

    pub fn columns(self) -> Vec<Described> {
        use Holds::{Int, Text, Word};
        let mut all: Vec<Described> = vec![
            ("ts", Int, "ns", "when it probably was: packets of clocks say so now and then"),
            ("ts_error", Int, "ns", "how far `ts` may be off; none: by any time"),
            ("cpu", Int, "", "the processor, where one was traced"),
            ("pid", Int, "", "the process"),
            ("tid", Int, "", "the thread"),
            ("program", Word, "", "its name"),
        ];
        let function = ("function", Word, "", "the function that the address is in");
        let inlined = ("inlined", Word, "", "the function that was inlined there, the innermost");
        let file = ("file", Word, "", "the file of source of the address");
        let line = ("line", Int, "", "the line there");
        let rest: Vec<Described> = match self {
            Self::Calls => vec![
                ("end_ts", Int, "ns", "when the last block in it was executed"),
                ("end_ts_error", Int, "ns", "how far `end_ts` may be off"),
                ("function", Word, "", "what was called"),
                ("caller", Word, "", "by which function; none: not known"),
                ("address", Int, "", "of its first instruction"),
                ("depth", Int, "", "how many known calls it is inside of"),
                ("begin", Int, "", "which instruction of the thread is its first, from 0"),
                ("instructions", Int, "", "executed in it and in what it called"),
                (
                    "quality",
                    Word,
                    "",
                    "`exact`; `lower_bound` where code was executed in it that a filter left out; or \
                     `unknown` where its call or its return was not seen",
                ),
                file,
                line,
            ],
            Self::Blocks => vec![
                ("address", Int, "", "of the first instruction"),
                ("last", Int, "", "of the last one"),
                ("instructions", Int, "", "how many"),
                ("ends", Word, "", "how it ends: `jump`, `call`, `return` …"),
                function,
                inlined,
                file,
                line,
            ],
            Self::Instructions => vec![
                ("address", Int, "", "where it is"),
                ("assembly", Text, "", "the instruction, in Intel's syntax"),
                function,
                inlined,
                file,
                line,
            ],
            Self::Gaps => vec![
                (
                    "end_ts",
                    Int,
                    "ns",
                    "when something is known again; none: until the end, or not known",
                ),
                ("end_ts_error", Int, "ns", "how far `end_ts` may be off"),
                ("cause", Word, "", "why nothing is known"),
                ("address", Int, "", "where the code is missing or does not fit"),
                ("byte", Int, "", "the packet that says so: its first byte"),
            ],
            Self::Packets => vec![
                ("byte", Int, "", "its first byte, of all of the thread or processor"),
                ("kind", Word, "", "its name [SDM volume 3, Intel Processor Trace]"),
                ("packet", Text, "", "the packet with its fields; `no packet`: other bytes"),
            ],
        };
        all.extend(rest);
        all
    }
}

/// Delivers the rows of a table.
pub fn scan(
    flow: Flow,
    recorded: &mut Recorded<'_>,
    table: &Table,
    scan: &Scan,
    see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let cores = Cores::of(recorded, scan.limit);
    scan_on(flow, recorded, (table, scan), cores, see).map(|_| ())
}

/// [`scan`] with this division of work. @return the number of started pieces of work.
fn scan_on(
    flow: Flow,
    recorded: &mut Recorded<'_>,
    (table, scan): (&Table, &Scan),
    cores: Cores,
    see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
) -> Result<usize, StoreError> {
    let limit = scan.limit.filter(|_| cores.threads < 2);
    let of_thread = Scan { limit, ..scan.clone() };
    let batches = Batches { flow, table, scan: &of_thread };
    match flow {
        Flow::Calls => {
            let mut rows = Rows::new(table, scan, see);
            let wants_line = rows.wants("file") || rows.wants("line");
            let mut calls = TakeCalls::new(|places: &mut Places<'_>, traced, call| {
                call_row(places, traced, &call, wants_line, &mut rows)
            });
            let count = gather(recorded, &CallSteps::new(limit.is_some()), &mut calls, cores);
            calls.finish(recorded);
            rows.end().map(|()| count)
        }
        Flow::Gaps => {
            let mut gaps = TakeGaps {
                rows: Rows::new(table, scan, see),
                traced: Traced::default(),
                gap: None,
            };
            let steps = if limit.is_some() { 1 } else { GAP_STEPS };
            let count = gather(recorded, &GapSteps { steps }, &mut gaps, cores);
            let _ = gaps.end_gap(None);
            gaps.rows.end().map(|()| count)
        }
        Flow::Packets => {
            let mut taken = TakeBatches::new(scan, see);
            let count = gather_packets(recorded, &batches, &mut taken, cores);
            taken.error.map_or(Ok(count), Err)
        }
        Flow::Blocks | Flow::Instructions => {
            let mut taken = TakeBatches::new(scan, see);
            let count = gather(recorded, &batches, &mut taken, cores);
            taken.error.map_or(Ok(count), Err)
        }
    }
}

fn call_row(
    places: &mut Places<'_>,
    traced: &Traced,
    call: &Call,
    wants_line: bool,
    rows: &mut Rows<'_>,
) -> ControlFlow<()> {
    let frames =
        wants_line.then(|| places.frames_at(traced.pid, call.address, place_of(call.address)));
    let line = frames.as_ref().and_then(|frames| frames.last()).and_then(|frame| frame.line);
    let [file, line] = match line {
        Some(line) => {
            let file = Cell::Word(line.file.into(), Some(places.source(line.file)));
            [file, Cell::Int(line.number.into())]
        }
        None => [Cell::Null; 2],
    };
    let name = |function: u32| places.name_of(function);
    let (begin, end) = call.times;
    let caller = call.caller.map_or(Cell::Null, |caller| Cell::Word(caller.into(), name(caller)));
    let quality = match (call.is_whole, call.is_filtered) {
        (false, _) => "unknown",
        (true, true) => "lower_bound",
        (true, false) => "exact",
    };
    let [ts, error, cpu, pid, tid, program] = common(traced, begin);
    rows.row(&[
        ts,
        error,
        cpu,
        pid,
        tid,
        program,
        time(end),
        error_of(end),
        Cell::Word(call.function.into(), name(call.function)),
        caller,
        address(call.address),
        Cell::Int(call.depth.into()),
        Cell::Int(call.begin.cast_signed()),
        Cell::Int(call.instructions.cast_signed()),
        Cell::Text(quality),
        file,
        line,
    ])
}

/// Addresses have 64 bits, and columns have signed 64-bit integers.
fn address(address: u64) -> Cell<'static> {
    Cell::Int(address.cast_signed())
}

fn time(moment: Moment) -> Cell<'static> {
    moment.map_or(Cell::Null, |moment| Cell::Int(moment.nanos.cast_signed()))
}

fn error_of(moment: Moment) -> Cell<'static> {
    moment.and_then(|moment| moment.error_nanos).into()
}

fn common(traced: &Traced, moment: Moment) -> [Cell<'_>; 6] {
    // If the process is unknown, all ids are 0.
    let number = |number: u32| if traced.tid == 0 { Cell::Null } else { Cell::Int(number.into()) };
    // The name of a thread is the same in all rows: its id is the key of the word.
    let thread = u64::from(traced.pid) << 32 | u64::from(traced.tid);
    let name = match traced.tid {
        0 => Cell::Text(&traced.program),
        _ => Cell::Word(thread, Some(&traced.program)),
    };
    [
        time(moment),
        error_of(moment),
        traced.cpu.into(),
        number(traced.pid),
        number(traced.tid),
        name,
    ]
}

/// Rows of blocks, instructions and packets are made by the thread that decodes them.
struct Batches<'t> {
    flow: Flow,
    table: &'t Table,
    scan: &'t Scan,
}

/// Some rows.
struct Batch {
    rows: RecordBatch,
    /// Number of rows of a block that was executed after the previous block, and the time of its packets.
    first: Option<(usize, Time)>,
}

type Made = Result<Batch, StoreError>;
/// [`Batch::first`] of the next batch.
type First = Rc<Slot<Option<(usize, Time)>>>;

impl<'t> Batches<'t> {
    /// Rows that are passed to `emit`; `first`: [`Batch::first`] of the next batch.
    fn rows<'g>(&'g self, emit: &'g Emit<'g, Made>, first: First) -> Rows<'g> {
        Rows::new(self.table, self.scan, move |rows: RecordBatch| {
            let bytes = rows.get_array_memory_size();
            emit(Ok(Batch { rows, first: first.take() }), bytes)
        })
    }
}

/// Delivers rows in order.
struct TakeBatches<'s> {
    see: &'s mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    left: usize,
    error: Option<StoreError>,
}

impl<'s> TakeBatches<'s> {
    fn new(scan: &Scan, see: &'s mut dyn FnMut(RecordBatch) -> ControlFlow<()>) -> Self {
        Self { see, left: scan.limit.unwrap_or(usize::MAX), error: None }
    }
}

impl Take<Made> for TakeBatches<'_> {
    fn take(
        &mut self,
        _: &SharedPlaces<'_, '_>,
        made: Made,
        moment: &dyn Fn(Time) -> Moment,
    ) -> ControlFlow<()> {
        let Batch { mut rows, first } = match made {
            Ok(batch) => batch,
            Err(error) => {
                self.error = Some(error);
                return ControlFlow::Break(());
            }
        };
        if let Some((count, time)) = first
            && let Some(error_nanos) = moment(time).map(|moment| moment.error_nanos)
        {
            rows = with_error(rows, count, error_nanos);
        }
        if rows.num_rows() > self.left {
            rows = rows.slice(0, self.left);
        }
        self.left -= rows.num_rows();
        if rows.num_rows() > 0 {
            (self.see)(rows)?;
        }
        if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Sets the error of the times of the first `count` rows.
fn with_error(rows: RecordBatch, count: usize, nanos: Option<u64>) -> RecordBatch {
    let schema = rows.schema();
    let Ok(place) = schema.index_of("ts_error") else { return rows };
    let mut columns = rows.columns().to_vec();
    let Some(errors) = columns.get(place).and_then(|of| of.as_primitive_opt::<Int64Type>()) else {
        return rows;
    };
    let nanos = nanos.map(u64::cast_signed);
    let errors: Int64Array = errors
        .iter()
        .enumerate()
        .map(|(row, error)| if row < count { nanos } else { error })
        .collect();
    columns[place] = Arc::new(errors);
    RecordBatch::try_new(schema, columns).unwrap_or(rows)
}

/// Makes rows of each block or instruction.
struct Steps<'g> {
    flow: Flow,
    rows: Rows<'g>,
    names: Names<'g>,
    emit: &'g Emit<'g, Made>,
    traced: Traced,
    wants_text: bool,
    wants_function: bool,
    wants_frames: bool,
    text: String,
    is_enough: bool,
    /// Time of the next block, if it is the first of a segment.
    first_time: Option<Time>,
    first: First,
}

impl Gathering for Batches<'_> {
    type Item = Made;
    type Gather<'g>
        = Steps<'g>
    where
        Self: 'g;

    fn gather<'g>(&'g self, names: Names<'g>, emit: &'g Emit<'g, Made>) -> Steps<'g> {
        let first = First::default();
        let rows = self.rows(emit, Rc::clone(&first));
        let wants = |column: &str| rows.wants(column);
        let (wants_text, wants_function) = (wants("assembly"), wants("function"));
        let wants_frames = ["inlined", "file", "line"].into_iter().any(wants);
        Steps {
            flow: self.flow,
            rows,
            names,
            emit,
            traced: Traced::default(),
            wants_text,
            wants_function,
            wants_frames,
            text: String::new(),
            is_enough: false,
            first_time: None,
            first,
        }
    }
}

impl Steps<'_> {
    fn row(&mut self, moment: Moment, ip: u64, own: &[Cell<'_>]) {
        if self.is_enough {
            return;
        }
        let (is_wanted, wants_frames) = (self.wants_function, self.wants_frames);
        let named = (is_wanted || wants_frames).then(|| {
            let named = self.names.at(self.traced.pid, ip, wants_frames);
            self.names.know(&named);
            named
        });
        let names = &self.names;
        let word = |function: u32| Cell::Word(function.into(), names.function(function));
        let line = named.and_then(|named| named.line);
        let place = [
            named.map_or(Cell::Null, |named| word(named.function)),
            named.and_then(|named| named.inlined).map_or(Cell::Null, word),
            line.map_or(Cell::Null, |line| Cell::Word(line.file.into(), names.source(line.file))),
            line.map_or(Cell::Null, |line| Cell::Int(line.number.into())),
        ];
        let mut cells = [Cell::Null; 14];
        let head = common(&self.traced, moment);
        let all = head.into_iter().chain(own.iter().copied()).chain(place);
        cells.iter_mut().zip(all).for_each(|(to, cell)| *to = cell);
        self.is_enough = self.rows.row(&cells).is_break();
    }
}

impl Gather for Steps<'_> {
    fn begins(&mut self, traced: &Traced) {
        self.resumes(traced);
    }

    fn goes_on(&mut self, cpu: u32) {
        self.traced.cpu = Some(cpu);
    }

    fn resumes(&mut self, traced: &Traced) {
        self.traced = traced.clone();
        self.is_enough = false;
    }

    fn flush(&mut self) {
        finish(&mut self.rows, self.emit);
        (self.first_time, _) = (None, self.first.take());
    }
}

/// Delivers the remaining rows, and errors.
fn finish(rows: &mut Rows<'_>, emit: &Emit<'_, Made>) {
    let _ = match rows.take_error() {
        Some(error) => emit(Err(error), 0),
        None => rows.flush(),
    };
}

impl Observe for Steps<'_> {
    fn is_first(&mut self, time: Time) {
        self.first_time = Some(time);
    }

    fn block(&mut self, code: &Sections<'_>, block: &Block, time: Moment) {
        if self.flow == Flow::Blocks {
            let cells = [
                address(block.ip),
                address(block.last),
                Cell::Int(block.count.into()),
                Cell::Word(block.ends as u64, Some(ends(block.ends))),
            ];
            self.row(time, block.ip, &cells);
        } else if !self.is_enough {
            let mut text = std::mem::take(&mut self.text);
            instructions(code, block, |ip, instruction| {
                text.clear();
                if self.wants_text {
                    assembly(instruction, &mut text);
                }
                self.row(time, ip, &[address(ip), Cell::Text(&text)]);
            });
            self.text = text;
        }
        if let Some(time) = self.first_time.take() {
            self.first.set(Some((self.rows.count(), time)));
        }
    }

    fn event(&mut self, _: u64, _: Event, _: Moment) {}

    fn is_enough(&self) -> bool {
        self.is_enough
    }
}

/// Makes rows of each packet.
struct PacketRows<'g> {
    rows: Rows<'g>,
    emit: &'g Emit<'g, Made>,
    text: String,
    is_enough: bool,
}

impl GatheringPackets for Batches<'_> {
    type Item = Made;
    type Gather<'g>
        = PacketRows<'g>
    where
        Self: 'g;

    fn gather<'g>(&'g self, emit: &'g Emit<'g, Made>) -> PacketRows<'g> {
        let rows = self.rows(emit, Rc::default());
        PacketRows { rows, emit, text: String::new(), is_enough: false }
    }
}

impl GatherPackets for PacketRows<'_> {
    fn resumes(&mut self) {
        self.is_enough = false;
    }

    fn packet(&mut self, found: PacketAt<'_>) {
        use std::fmt::Write as _;
        self.text.clear();
        let known = found.packet.map(|packet| write!(self.text, "{packet}").is_ok());
        if known.is_none() {
            self.text.push_str("no packet");
        }
        let kind = known.and_then(|_| self.text.split(' ').next());
        let [ts, error, cpu, pid, tid, program] = common(found.traced, found.time);
        let row = self.rows.row(&[
            ts,
            error,
            cpu,
            pid,
            tid,
            program,
            Cell::Int(found.position.cast_signed()),
            kind.map_or(Cell::Null, Cell::Text),
            Cell::Text(&self.text),
        ]);
        self.is_enough = row.is_break();
    }

    fn is_enough(&self) -> bool {
        self.is_enough
    }

    fn flush(&mut self) {
        finish(&mut self.rows, self.emit);
    }
}

/// Number of steps that are passed on together.
const GAP_STEPS: usize = 1024;

/// Steps of the flow that matter for gaps.
enum GapStep {
    Begins(Box<Traced>),
    GoesOn(u32),
    /// Execution is known again; for a first block by the time of its packets.
    Known(Moment, Option<Time>),
    Gap {
        time: Moment,
        position: u64,
        cause: GapCause,
    },
}

/// Collects gaps, and the items after them.
struct GapSteps {
    steps: usize,
}

struct Gaps<'g> {
    emit: &'g Emit<'g, Vec<GapStep>>,
    most: usize,
    steps: Vec<GapStep>,
    first_time: Option<Time>,
    /// Whether nothing was lost since the last step.
    is_known: bool,
    is_enough: bool,
}

impl Gathering for GapSteps {
    type Item = Vec<GapStep>;
    type Gather<'g> = Gaps<'g>;

    fn gather<'g>(&'g self, _: Names<'g>, emit: &'g Emit<'g, Vec<GapStep>>) -> Gaps<'g> {
        let (most, steps) = (self.steps, Vec::new());
        Gaps { emit, most, steps, first_time: None, is_known: false, is_enough: false }
    }
}

impl Gaps<'_> {
    fn push(&mut self, step: GapStep) {
        self.steps.push(step);
        if self.steps.len() >= self.most {
            self.flush();
        }
    }

    fn known(&mut self, time: Moment) {
        let first = self.first_time.take();
        if !std::mem::replace(&mut self.is_known, true) {
            self.push(GapStep::Known(time, first));
        }
    }
}

impl Gather for Gaps<'_> {
    fn begins(&mut self, traced: &Traced) {
        self.resumes(traced);
        self.push(GapStep::Begins(Box::new(traced.clone())));
    }

    fn goes_on(&mut self, cpu: u32) {
        self.push(GapStep::GoesOn(cpu));
    }

    fn resumes(&mut self, _: &Traced) {
        (self.is_known, self.is_enough, self.first_time) = (false, false, None);
    }

    fn flush(&mut self) {
        let steps = std::mem::take(&mut self.steps);
        let bytes = size_of::<GapStep>() * steps.len();
        if !steps.is_empty() && !self.is_enough {
            self.is_enough = (self.emit)(steps, bytes).is_break();
        }
    }
}

impl Observe for Gaps<'_> {
    fn is_first(&mut self, time: Time) {
        self.first_time = Some(time);
    }

    fn block(&mut self, _: &Sections<'_>, _: &Block, time: Moment) {
        self.known(time);
    }

    fn event(&mut self, position: u64, event: Event, time: Moment) {
        match event {
            Event::Gap(gap) => {
                self.is_known = false;
                self.push(GapStep::Gap { time, position, cause: gap.cause });
            }
            Event::Synced(_) | Event::Enabled(_) => self.known(time),
            _ => {}
        }
    }

    fn is_enough(&self) -> bool {
        self.is_enough
    }
}

/// Makes rows of gaps, as they end.
struct TakeGaps<'s> {
    rows: Rows<'s>,
    traced: Traced,
    /// The gap that has not ended yet.
    gap: Option<OpenGap>,
}

/// A gap whose end is not known yet.
struct OpenGap {
    time: Moment,
    /// The CPU on which it began.
    cpu: Option<u32>,
    position: u64,
    cause: GapCause,
}

impl TakeGaps<'_> {
    /// Execution is known again.
    fn end_gap(&mut self, end: Moment) -> ControlFlow<()> {
        let Some(OpenGap { time: begin, cpu, position, cause }) = self.gap.take() else {
            return ControlFlow::Continue(());
        };
        let place = match cause {
            GapCause::NoCode(at) | GapCause::Contradiction(at) => address(at),
            GapCause::Overflow
            | GapCause::Malformed(_)
            | GapCause::UnknownThread
            | GapCause::BufferFull
            | GapCause::Missing => Cell::Null,
        };
        let number = match cause {
            GapCause::Overflow => 0,
            GapCause::Malformed(_) => 1,
            GapCause::NoCode(_) => 2,
            GapCause::Contradiction(_) => 3,
            GapCause::UnknownThread => 4,
            GapCause::BufferFull => 5,
            GapCause::Missing => 6,
        };
        let cause = Cell::Word(number, Some(cause_name(&cause)));
        let position = Cell::Int(position.cast_signed());
        let now = std::mem::replace(&mut self.traced.cpu, cpu);
        let [ts, error, cpu, pid, tid, program] = common(&self.traced, begin);
        let end = [time(end), error_of(end)];
        let [end_ts, end_error] = end;
        let row = self
            .rows
            .row(&[ts, error, cpu, pid, tid, program, end_ts, end_error, cause, place, position]);
        self.traced.cpu = now;
        row
    }
}

impl Take<Vec<GapStep>> for TakeGaps<'_> {
    fn take(
        &mut self,
        _: &SharedPlaces<'_, '_>,
        steps: Vec<GapStep>,
        moment: &dyn Fn(Time) -> Moment,
    ) -> ControlFlow<()> {
        for step in steps {
            match step {
                GapStep::Begins(traced) => {
                    self.end_gap(None)?;
                    self.traced = *traced;
                }
                GapStep::GoesOn(cpu) => self.traced.cpu = Some(cpu),
                GapStep::Known(time, first) => self.end_gap(first.map_or(time, moment))?,
                GapStep::Gap { time, position, cause } => {
                    self.end_gap(time)?;
                    let cpu = self.traced.cpu;
                    self.gap = Some(OpenGap { time, cpu, position, cause });
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn ends(ends: Ends) -> &'static str {
    match ends {
        Ends::Through => "through",
        Ends::Jump => "jump",
        Ends::Conditional => "conditional",
        Ends::Call => "call",
        Ends::IndirectJump => "indirect jump",
        Ends::IndirectCall => "indirect call",
        Ends::Return => "return",
        Ends::Far => "far",
        Ends::NoCode => "no code",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use arrow_array::Array as _;
    use lateralis_intelpt::Branch;
    use lateralis_intelpt::encoder::{self, Encoder, Settings};
    use lateralis_intelpt::errata::Errata;
    use lateralis_model::Source as _;
    use lateralis_symbols::{Functions, Image};
    use lateralis_traces::hardware::{self, AddressFilter, Buffer, Clocks, FilterAction};

    use super::super::{Kind, described};
    use super::*;
    use crate::Recording;
    use crate::places::Images;

    /// Programs of recordings by name, and a function for each 64 bytes of other code.
    #[derive(Clone, Default)]
    struct Programs {
        folder: PathBuf,
        map: String,
    }

    impl Images for Programs {
        fn image(&mut self, path: &str, _: Option<&[u8]>) -> Result<Image, String> {
            let bytes = self.code(path, None, (0, u64::MAX))?;
            Image::of(&bytes).map_err(|error| error.to_string())
        }

        fn code(
            &mut self,
            path: &str,
            _: Option<&[u8]>,
            (from, count): (u64, u64),
        ) -> Result<Vec<u8>, String> {
            let name = Path::new(path).file_name().ok_or("no name")?;
            let bytes = std::fs::read(self.folder.join(name)).map_err(|error| error.to_string())?;
            let rest = bytes.get(from as usize..).unwrap_or_default();
            Ok(rest[..rest.len().min(usize::try_from(count).unwrap_or(usize::MAX))].to_vec())
        }

        fn kernel(&mut self, _: Option<&[u8]>) -> Result<Functions, String> {
            Err("no kernel".to_owned())
        }

        fn generated(&mut self, _: u32) -> Option<(Functions, String)> {
            Some((Functions::of_perf_map(&self.map), "cells".to_owned()))
        }
    }

    type Open = Box<dyn Fn(&dyn Fn(&mut Vec<Buffer>)) -> Recorded<'static>>;

    /// A program that branches at random, recorded with many PSBs and with clocks.
    fn random() -> (String, Open) {
        let code = vec![
            // jne +6; call 0x1100; nop; jmp rax
            (0x1000, vec![0x75, 6, 0xe8, 0xf9, 0, 0, 0, 0x90, 0xff, 0xe0]),
            // jne +1; nop; ret
            (0x1100, vec![0x75, 1, 0x90, 0xc3]),
            // call rax; jmp 0x1000
            (0x1200, vec![0xff, 0xd0, 0xe9, 0xf9, 0xfd, 0xff, 0xff]),
        ];
        let clock = encoder::Clock {
            mtc_frequency: Some(3),
            tsc_per_crystal: (40, 1),
            tsc_per_bus: 10,
            cycle_threshold: Some(0),
        };
        let settings = Settings { clock: Some(clock), psb_bytes: 256, ..Settings::default() };
        let mut encoder = Encoder::new(settings);
        encoder.set_tsc(1 << 20);
        encoder.enable(0x1000);
        let (mut at, mut callers, mut random) = (0x1000_u64, Vec::new(), 1_u64);
        for nth in 0..30_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let is_taken = random >> 40 & 1 == 1;
            let (ends, next, target) = match at {
                0x1000 => (Ends::Conditional, 0x1002, 0x1008),
                0x1002 => (Ends::Call, 0x1007, 0x1100),
                0x1100 => (Ends::Conditional, 0x1102, 0x1103),
                0x1102 | 0x1103 => (Ends::Return, 0x1104, 0),
                0x1200 => (Ends::IndirectCall, 0x1202, 0),
                0x1202 => (Ends::Jump, 0x1207, 0x1000),
                _ => (Ends::IndirectJump, 0x100a, 0),
            };
            let to = match ends {
                Ends::Conditional => [next, target][usize::from(is_taken)],
                Ends::Call | Ends::IndirectCall => {
                    callers.push(next);
                    0x1100
                }
                Ends::Return => callers.pop().expect("a caller"),
                Ends::Jump => target,
                _ => [0x1000, 0x1200][usize::from(is_taken)],
            };
            encoder.branch(&Branch { ends, next, target }, to).expect("a branch of the program");
            at = to;
            encoder.advance(random >> 59);
            match nth % 1000 {
                999 => encoder.lose(),
                500 => encoder.disable_at(at),
                _ => encoder.at(at),
            }
            if matches!(nth % 1000, 500 | 999) {
                encoder.advance(1000);
                encoder.enable(at);
            }
        }
        let buffer = Buffer { runs: vec![encoder.take()], ..Buffer::default() };
        let clocks = Clocks {
            mtc_frequency: Some(3),
            tsc_per_crystal: Some((40, 1)),
            tsc_per_bus: Some(10),
            nanos: Some((0, 0, 1)),
        };
        let open = move |change: &dyn Fn(&mut Vec<Buffer>)| {
            let mut buffers = vec![buffer.clone()];
            change(&mut buffers);
            let map = "1000 a main\n1100 4 inner\n1200 7 other\n".to_owned();
            let places = Places::without_events(Programs { map, ..Programs::default() });
            Recorded::raw(places, buffers, &code).with_clocks(clocks)
        };
        ("random".to_owned(), Box::new(open))
    }

    /// Recordings of processors and simulators, if present; their buffers are passed through a function
    /// first.
    fn recordings() -> Vec<(String, Open)> {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/pt"));
        let mut all: Vec<(String, Open)> = vec![random()];
        for name in ["df-01-poc", "ovf-02-ben", "uaf-04-ben"] {
            let path = root.join("griffin").join(name).join("trace.griffin.gz");
            if !path.exists() {
                println!("SKIPPED: no data: {}", path.display());
                continue;
            }
            let of = hardware::read(&path, 1 << 30).expect("a recording");
            let mut map = String::new();
            for (address, bytes) in &of.code {
                for at in (*address..address + bytes.len() as u64).step_by(64) {
                    map.push_str(&format!("{at:x} 40 f{at:x}\n"));
                }
            }
            let programs = Programs { map, ..Programs::default() };
            let open = move |change: &dyn Fn(&mut Vec<Buffer>)| {
                let mut buffers = of.buffers.clone();
                change(&mut buffers);
                Recorded::raw(Places::without_events(programs.clone()), buffers, &of.code)
            };
            all.push((name.to_owned(), Box::new(open)));
        }
        for name in ["fibs", "fibscyc", "fibsnoretcomp"] {
            let folder = root.join("made");
            let path = folder.join(name).join("perf.data");
            if !path.exists() {
                println!("SKIPPED: no data: {}", path.display());
                continue;
            }
            let of = hardware::read(&path, 1 << 30).expect("a recording");
            let open = move |change: &dyn Fn(&mut Vec<Buffer>)| {
                let recording = Recording::open(&path).expect("a recording");
                let mut buffers = of.buffers.clone();
                change(&mut buffers);
                let programs = Programs { folder: folder.clone(), map: String::new() };
                let places = Places::new(programs, recording.source.trace());
                Recorded::of(&recording.source, places, (buffers, of.clocks), &[])
            };
            all.push((name.to_owned(), Box::new(open)));
        }
        all
    }

    /// Rows of a table, and the number of started pieces of work.
    fn rows(
        flow: Flow,
        recorded: &mut Recorded<'_>,
        scan: &Scan,
        (threads, segment_bytes): (usize, usize),
    ) -> (Vec<String>, usize) {
        let table = described("flow", "", flow.columns(), Kind::Flow(flow));
        let (mut found, cores) = (Vec::new(), Cores { threads, segment_bytes });
        let count = scan_on(flow, recorded, (&table, scan), cores, &mut |batch| {
            for row in 0..batch.num_rows() {
                let cell = |column: &arrow_array::ArrayRef| {
                    if column.is_null(row) {
                        return "-".to_owned();
                    }
                    if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
                        return numbers.value(row).to_string();
                    }
                    if let Some(texts) = column.as_string_opt::<i32>() {
                        return texts.value(row).to_owned();
                    }
                    let words = column.as_dictionary::<arrow_array::types::Int32Type>();
                    let key = words.keys().value(row) as usize;
                    words.values().as_string::<i32>().value(key).to_owned()
                };
                let cells: Vec<String> = batch.columns().iter().map(cell).collect();
                found.push(cells.join(","));
            }
            ControlFlow::Continue(())
        });
        (found, count.expect("rows"))
    }

    /// Changes some bytes: anywhere, and at the starts of PSBs.
    fn damaged(nth: usize) -> impl Fn(&mut Vec<Buffer>) {
        move |buffers: &mut Vec<Buffer>| {
            for run in buffers.iter_mut().flat_map(|buffer| &mut buffer.runs) {
                let mut at = 301 + 97 * nth;
                while let Some(byte) = run.get_mut(at) {
                    *byte = byte.wrapping_mul(31).wrapping_add(nth as u8);
                    at += 2003 + 541 * nth;
                }
                let psbs: Vec<usize> = run
                    .windows(16)
                    .enumerate()
                    .filter(|(_, of)| of.chunks(2).all(|pair| pair == [2, 0x82]))
                    .map(|(at, _)| at)
                    .collect();
                for at in psbs.into_iter().skip(nth + 1).step_by(3) {
                    // The head of a packet whose payload would be the PSB.
                    let heads: [&[u8]; 4] = [&[0x7d], &[0xcd], &[2, 0x43], &[0x19]];
                    let head = heads[nth % heads.len()];
                    if let Some(place) = run.get_mut(at - head.len()..at) {
                        place.copy_from_slice(head);
                    }
                }
            }
        }
    }

    #[test]
    fn rows_of_several_cores_are_those_of_one_in_their_order() {
        let (mut segments, mut most) = (0, HashMap::<&str, usize>::new());
        for (name, open) in recordings() {
            for nth in 0..4 {
                let change = damaged(nth);
                let nothing = |_: &mut Vec<Buffer>| {};
                let change: &dyn Fn(&mut Vec<Buffer>) = if nth == 0 { &nothing } else { &change };
                for flow in Flow::ALL {
                    // Text of millions of instructions is tested with one recording only.
                    if flow == Flow::Instructions && (nth > 1 || name == "uaf-04-ben") {
                        continue;
                    }
                    let scan = Scan::default();
                    let (one, _) = rows(flow, &mut open(change), &scan, (1, 1));
                    let (several, count) = rows(flow, &mut open(change), &scan, (3, 1));
                    let same = one.iter().zip(&several).take_while(|(a, b)| a == b).count();
                    assert!(
                        one == several,
                        "{name} {nth} {flow:?}: {} and {} rows: {:?} {:?}",
                        one.len(),
                        several.len(),
                        one.get(same),
                        several.get(same)
                    );
                    segments = segments.max(count);
                    let of = most.entry(flow.name()).or_default();
                    *of = (*of).max(one.len());
                }
            }
        }
        // If the recordings are present, all tables have rows.
        let is_enough = segments > 40 && most.values().all(|count| *count > 20);
        assert!(is_enough, "{segments} segments, {most:?}");
    }

    #[test]
    fn of_rows_that_are_not_wanted_nothing_is_decoded() {
        for (name, open) in recordings() {
            let nothing = |_: &mut Vec<Buffer>| {};
            for flow in [Flow::Calls, Flow::Blocks, Flow::Instructions, Flow::Packets] {
                let scan = Scan { limit: Some(10), ..Scan::default() };
                let all = rows(flow, &mut open(&nothing), &Scan::default(), (1, 1)).0;
                let wanted = all.len().min(10);
                for threads in [1, 3] {
                    let found = rows(flow, &mut open(&nothing), &scan, (threads, 1)).0;
                    assert_eq!(found, all[..wanted], "{name} {flow:?} {threads}");
                }
            }
        }
    }

    /// A program of which only 0x1000 to 0x1fff is traced: `start` calls `main`, which calls `outside`,
    /// which calls `inside` and returns; then `main` calls `inside`.
    fn filtered(filters: &[AddressFilter]) -> Recorded<'static> {
        const START: u64 = 0x1300;
        const MAIN: u64 = 0x1000;
        const INSIDE: u64 = 0x1100;
        const OUTSIDE: u64 = 0x2000;
        let call = |from: u64, to: u64| {
            let distance = to.wrapping_sub(from + 5) as u32;
            [&[0xe8][..], &distance.to_le_bytes()].concat()
        };
        let main = [call(MAIN, OUTSIDE), call(MAIN + 5, INSIDE), vec![0xc3]].concat();
        let start = [call(START, MAIN), vec![0xc3]].concat();
        let outside = [call(OUTSIDE, INSIDE), vec![0xc3]].concat();
        let code = [(MAIN, main), (INSIDE, vec![0x90, 0xc3]), (START, start), (OUTSIDE, outside)];
        let mut encoder = Encoder::new(Settings::default());
        encoder.enable(START);
        let direct = |from: u64, to| Branch { ends: Ends::Call, next: from + 5, target: to };
        let returns = |from: u64| Branch { ends: Ends::Return, next: from + 1, target: 0 };
        encoder.branch(&direct(START, MAIN), MAIN).expect("a call");
        // A processor with SKL014 does not report where it left the traced code.
        encoder.disable();
        encoder.enable(INSIDE);
        encoder.disable();
        encoder.enable(MAIN + 5);
        encoder.branch(&direct(MAIN + 5, INSIDE), INSIDE).expect("a call");
        encoder.branch(&returns(INSIDE + 1), MAIN + 10).expect("a return");
        encoder.branch(&returns(MAIN + 10), START + 5).expect("a return");
        encoder.disable();
        let buffer = Buffer { runs: vec![encoder.take()], ..Buffer::default() };
        let map = "1000 b main\n1100 2 inside\n1300 6 start\n2000 6 outside\n".to_owned();
        let places = Places::without_events(Programs { map, ..Programs::default() });
        Recorded::raw(places, vec![buffer], &code)
            .with_errata(Errata::of_processor(6, 94))
            .with_filters(filters)
    }

    #[test]
    fn code_that_a_filter_leaves_out_is_not_made_up_and_calls_with_it_are_lower_bounds() {
        let filter = AddressFilter {
            action: FilterAction::Filter,
            begin: 0x1000,
            size_bytes: 0x1000,
            file: None,
        };
        let columns = |flow: Flow, names: &[&str]| {
            let place = |name: &&str| flow.columns().iter().position(|of| of.0 == *name);
            Scan { columns: names.iter().map(place).collect(), ..Scan::default() }
        };
        let read = |flow, filters: &[AddressFilter], names: &[&str]| {
            rows(flow, &mut filtered(filters), &columns(flow, names), (1, 1)).0
        };
        let executed = |filters: &[AddressFilter]| {
            let rows = read(Flow::Instructions, filters, &["address"]);
            rows.iter().map(|row| row.parse().expect("a number")).collect::<Vec<u64>>()
        };
        let truth = [0x1300, 0x1000, 0x1100, 0x1101, 0x1005, 0x1100, 0x1101, 0x100a, 0x1305];
        assert_eq!(executed(std::slice::from_ref(&filter)), truth);
        // Without knowledge of the filter, decoding continues into code that was not reported.
        assert!(executed(&[]).contains(&0x2000));
        let names = ["function", "caller", "instructions", "quality"];
        let calls = read(Flow::Calls, &[filter], &names);
        let expected = [
            "inside,-,2,unknown",
            "inside,main,2,exact",
            "main,start,7,lower_bound",
            "start,-,9,unknown",
        ];
        assert_eq!(calls, expected);
    }

    /// Two recordings of one thread on one CPU, of different programs and with different clocks.
    #[test]
    fn recordings_in_one_folder_have_the_rows_of_each() {
        let made =
            PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/pt/made"));
        if !made.exists() {
            println!("SKIPPED: no data: {}", made.display());
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["fibs", "fibscyc"] {
            let from = made.join(name).join("perf.data");
            std::fs::copy(from, folder.path().join(format!("{name}.data"))).expect("a copy");
        }
        let places = |recording: &Recording| {
            let programs = Programs { folder: made.clone(), map: String::new() };
            Places::new(programs, recording.source.trace())
        };
        let alone = |name: &str, flow| {
            let path = made.join(name).join("perf.data");
            let of = hardware::read(&path, 1 << 30).expect("a recording");
            let recording = Recording::open(&path).expect("a recording");
            let clocked = (of.buffers, of.clocks);
            let places = places(&recording);
            let mut recorded = Recorded::of(&recording.source, places, clocked, &[]);
            rows(flow, &mut recorded, &Scan::default(), (1, 1)).0
        };
        for flow in Flow::ALL {
            let recording = Recording::open(folder.path()).expect("recordings");
            assert_eq!(recording.source.parts().len(), 2);
            let hardware = hardware::of_parts(&recording.source);
            let places = places(&recording);
            let mut recorded = Recorded::of_several(&recording.source, places, hardware, &[]);
            let found = rows(flow, &mut recorded, &Scan::default(), (1, 1)).0;
            let expected = [alone("fibs", flow), alone("fibscyc", flow)].concat();
            assert!(found == expected, "{flow:?}: {} and {}", found.len(), expected.len());
        }
    }

    /// Counts decoded blocks.
    struct Counting<'c>(&'c AtomicUsize);

    struct CountedBlocks<'g>(&'g AtomicUsize, &'g Emit<'g, ()>, bool);

    impl Gathering for Counting<'_> {
        type Item = ();
        type Gather<'g>
            = CountedBlocks<'g>
        where
            Self: 'g;

        fn gather<'g>(&'g self, _: Names<'g>, emit: &'g Emit<'g, ()>) -> CountedBlocks<'g> {
            CountedBlocks(self.0, emit, false)
        }
    }

    impl Gather for CountedBlocks<'_> {
        fn begins(&mut self, _: &Traced) {
            self.2 = false;
        }

        fn goes_on(&mut self, _: u32) {}

        fn resumes(&mut self, _: &Traced) {
            self.2 = false;
        }

        fn flush(&mut self) {}
    }

    impl Observe for CountedBlocks<'_> {
        fn block(&mut self, _: &Sections<'_>, _: &Block, _: Moment) {
            self.0.fetch_add(1, Ordering::Relaxed);
            self.2 = self.2 || (self.1)((), 1 << 20).is_break();
        }

        fn event(&mut self, _: u64, _: Event, _: Moment) {}

        fn is_enough(&self) -> bool {
            self.2
        }
    }

    struct First(usize);

    impl Take<()> for First {
        fn take(
            &mut self,
            _: &SharedPlaces<'_, '_>,
            (): (),
            _: &dyn Fn(Time) -> Moment,
        ) -> ControlFlow<()> {
            self.0 -= 1;
            if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }

    #[test]
    fn segments_that_are_decoded_before_they_are_asked_for_are_few() {
        for (name, open) in recordings().into_iter().take(3) {
            let nothing = |_: &mut Vec<Buffer>| {};
            let count = |wanted, threads| {
                let blocks = AtomicUsize::new(0);
                let cores = Cores { threads, segment_bytes: 1 };
                let begun =
                    gather(&mut open(&nothing), &Counting(&blocks), &mut First(wanted), cores);
                (blocks.into_inner(), begun)
            };
            let (all, _) = count(usize::MAX, 1);
            let (few, _) = count(5, 1);
            assert!(few * 20 < all, "{name}: {few} of {all}");
            // Each thread waits once 96 items of a megabyte each wait to be taken.
            let (few, begun) = count(5, 2);
            assert!(begun <= 5 + 8, "{name}: {begun}");
            assert!(few < 400 || few * 20 < all, "{name}: {few} of {all}");
        }
    }
}
