// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of the instructions that processors executed: decoded when they are scanned, and nothing of it
//! kept.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use lateralis_intelpt::flow::{Event, GapCause};
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::{Block, Ends, assembly, instructions};

use super::build::Holds;
use super::shape::Described;
use super::small::{Cell, Rows};
use super::{Scan, StoreError, Table};
use crate::flow::{Follow, Moment, Recorded, Traced, cause_name, executed, place_of};
use crate::places::{Frame, Places};

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
                    "`exact`, or `unknown` where its call or its return was not seen",
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

/// Shows the rows of a table.
pub fn scan(
    flow: Flow,
    recorded: &mut Recorded<'_>,
    table: &Table,
    scan: &Scan,
    see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut rows = Rows::new(table, scan, see);
    match flow {
        Flow::Calls => {
            let wants_line = rows.wants("file") || rows.wants("line");
            executed(recorded, |places, traced, call| {
                let frames = wants_line
                    .then(|| places.frames_at(traced.pid, call.address, place_of(call.address)));
                let frame = frames.as_ref().and_then(|frames| frames.last());
                let [file, line] = line_of(places, frame);
                let name = |function: u32| places.name_of(function);
                let (begin, end) = call.times;
                let caller = call
                    .caller
                    .map_or(Cell::Null, |caller| Cell::Word(caller.into(), name(caller)));
                let quality = if call.is_whole { "exact" } else { "unknown" };
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
                    Cell::Word(u64::from(call.is_whole), Some(quality)),
                    file,
                    line,
                ])
            });
        }
        Flow::Packets => {
            let mut text = String::new();
            recorded.packets(&mut |found| {
                use std::fmt::Write as _;
                text.clear();
                let known = found.packet.map(|packet| write!(text, "{packet}").is_ok());
                if known.is_none() {
                    text.push_str("no packet");
                }
                let kind = known.and_then(|_| text.split(' ').next());
                let [ts, error, cpu, pid, tid, program] = common(found.traced, found.time);
                rows.row(&[
                    ts,
                    error,
                    cpu,
                    pid,
                    tid,
                    program,
                    Cell::Int(found.position.cast_signed()),
                    kind.map_or(Cell::Null, Cell::Text),
                    Cell::Text(&text),
                ])
            });
        }
        Flow::Blocks | Flow::Instructions | Flow::Gaps => {
            let wants = |column: &str| rows.wants(column);
            let (wants_text, wants_function) = (wants("assembly"), wants("function"));
            let wants_frames = ["inlined", "file", "line"].into_iter().any(wants);
            let mut steps = Steps {
                flow,
                rows,
                traced: Traced { cpu: None, pid: 0, tid: 0, program: String::new() },
                wants_text,
                wants_function,
                wants_frames,
                text: String::new(),
                is_enough: false,
                gap: None,
            };
            recorded.follow(&mut steps);
            steps.end_gap(None);
            rows = steps.rows;
        }
    }
    rows.end()
}

/// Addresses have 64 bits, and columns hold 63 and a sign.
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
    // Where nothing says which process it was, all numbers are 0.
    let number = |number: u32| if traced.tid == 0 { Cell::Null } else { Cell::Int(number.into()) };
    // The number of the thread stands for the name that it has in all rows.
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

/// Rows of each step of a program.
struct Steps<'r> {
    flow: Flow,
    rows: Rows<'r>,
    traced: Traced,
    wants_text: bool,
    wants_function: bool,
    wants_frames: bool,
    text: String,
    is_enough: bool,
    /// The gap that nothing has followed yet.
    gap: Option<OpenGap>,
}

/// A gap of which the end is not known yet.
struct OpenGap {
    time: Moment,
    /// The processor that it began on.
    cpu: Option<u32>,
    position: u64,
    cause: GapCause,
}

impl Steps<'_> {
    fn row(&mut self, moment: Moment, rest: &[Cell<'_>]) {
        if self.is_enough {
            return;
        }
        let mut cells = [Cell::Null; 14];
        let head = common(&self.traced, moment);
        let all = head.into_iter().chain(rest.iter().copied());
        cells.iter_mut().zip(all).for_each(|(to, cell)| *to = cell);
        self.is_enough = self.rows.row(&cells).is_break();
    }

    /// Something is known again.
    fn end_gap(&mut self, end: Moment) {
        let Some(OpenGap { time: begin, cpu, position, cause }) = self.gap.take() else { return };
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
        self.row(begin, &[time(end), error_of(end), cause, place, position]);
        self.traced.cpu = now;
    }
}

/// File and line of source.
fn line_of<'p>(places: &'p Places<'_>, frame: Option<&Frame>) -> [Cell<'p>; 2] {
    let Some(line) = frame.and_then(|frame| frame.line) else { return [Cell::Null; 2] };
    let file = Cell::Word(line.file.into(), Some(places.source(line.file)));
    [file, Cell::Int(line.number.into())]
}

/// The function of an address, the one inlined there, and the line.
fn function<'p>(
    places: &'p mut Places<'_>,
    (pid, ip): (u32, u64),
    (is_wanted, wants_frames): (bool, bool),
) -> [Cell<'p>; 4] {
    if wants_frames {
        let frames = places.frames_at(pid, ip, place_of(ip));
        let word =
            |frame: &Frame| Cell::Word(frame.function.into(), places.name_of(frame.function));
        let inlined = frames.last().filter(|frame| frame.is_inlined).map(word);
        let [file, line] = line_of(places, frames.last());
        return [
            frames.first().map_or(Cell::Null, word),
            inlined.unwrap_or(Cell::Null),
            file,
            line,
        ];
    }
    if !is_wanted {
        return [Cell::Null; 4];
    }
    let function = places.function_at(pid, ip, place_of(ip));
    [Cell::Word(function.into(), places.name_of(function)), Cell::Null, Cell::Null, Cell::Null]
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

impl Follow for Steps<'_> {
    fn begins(&mut self, _: &mut Places<'_>, traced: &Traced) {
        self.end_gap(None);
        self.traced = traced.clone();
    }

    fn goes_on(&mut self, cpu: u32) {
        self.traced.cpu = Some(cpu);
    }

    fn block(&mut self, places: &mut Places<'_>, code: &Sections<'_>, block: &Block, time: Moment) {
        let (pid, wants) = (self.traced.pid, (self.wants_function, self.wants_frames));
        match self.flow {
            Flow::Blocks => {
                let how = ends(block.ends);
                let [function, inlined, file, line] = function(places, (pid, block.ip), wants);
                let cells = [
                    address(block.ip),
                    address(block.last),
                    Cell::Int(block.count.into()),
                    Cell::Word(block.ends as u64, Some(how)),
                    function,
                    inlined,
                    file,
                    line,
                ];
                self.row(time, &cells);
            }
            Flow::Instructions if !self.is_enough => {
                let mut text = std::mem::take(&mut self.text);
                instructions(code, block, |ip, instruction| {
                    text.clear();
                    if self.wants_text {
                        assembly(instruction, &mut text);
                    }
                    let [function, inlined, file, line] = function(places, (pid, ip), wants);
                    let cells = [address(ip), Cell::Text(&text), function, inlined, file, line];
                    self.row(time, &cells);
                });
                self.text = text;
            }
            Flow::Gaps => self.end_gap(time),
            _ => {}
        }
    }

    fn event(&mut self, _: &mut Places<'_>, position: u64, event: Event, time: Moment) {
        if self.flow != Flow::Gaps {
            return;
        }
        match event {
            Event::Gap(gap) => {
                self.end_gap(time);
                let (cpu, cause) = (self.traced.cpu, gap.cause);
                self.gap = Some(OpenGap { time, cpu, position, cause });
            }
            Event::Synced(_) | Event::Enabled(_) => self.end_gap(time),
            _ => {}
        }
    }

    fn is_enough(&self) -> bool {
        self.is_enough
    }
}
