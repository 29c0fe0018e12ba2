// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of the call stacks of samples: decoded and named by each scan.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use lateralis_model::{Damage, Source};

use super::build::Holds;
use super::opened::Opened;
use super::shape::Described;
use super::small::{Cell, Rows};
use super::{Scan, StoreError, Table};
use crate::flow::place_of;
use crate::places::{Frame, Images, Places, thread_of};
use crate::stacks::{Branch, Branches, Samples, has_branches};

/// Opens access to the contents of program files, separately for each scan.
pub type OpenImages = Arc<dyn Fn() -> Box<dyn Images> + Send + Sync>;

/// A table of stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stacked {
    Samples,
    Frames,
    Branches,
}

/// Separator of the functions of a stack in one text.
const BETWEEN: &str = ";";

impl Stacked {
    pub const ALL: [Self; 3] = [Self::Samples, Self::Frames, Self::Branches];

    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "stack_samples",
            Self::Frames => "stack_frames",
            Self::Branches => "stack_branches",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Samples => "samples of call stacks, each with the function that was interrupted",
            Self::Frames => "the functions on the stacks of samples, a row for each",
            Self::Branches => "branches that the processor remembered at samples, a row for each",
        }
    }

    pub fn columns(self) -> Vec<Described> {
        use Holds::{Bool, Int, Text, Word};
        let mut all: Vec<Described> = vec![
            ("recording", Word, "", "which of the recordings"),
            ("ts", Int, "ns", "when it was taken"),
            ("cpu", Int, "", "the processor"),
            ("pid", Int, "", "the process"),
            ("tid", Int, "", "the thread"),
            ("program", Word, "", "its name"),
            ("event", Word, "", "what was sampled"),
            ("sample", Int, "", "its number among those of the recording, from 0"),
            ("weight", Int, "", "its period: the part of the event that it represents"),
        ];
        if self == Self::Branches {
            all.extend([
                ("index", Int, "", "how many of the sample came after it, from 0"),
                ("is_open_call", Bool, "", "whether it is a call that has not returned"),
                ("kind", Word, "", "what kind of branch, where it is known: `call`, `return` …"),
                ("is_mispredicted", Bool, "", "whether another way was predicted; none: not known"),
                ("is_in_transaction", Bool, "", "whether it was in a transaction of memory"),
                ("is_abort", Bool, "", "whether it is the abort of one"),
                ("cycles", Int, "", "cycles since the branch before; none: not known"),
                ("from_address", Int, "", "address of the branch"),
                ("from_function", Word, "", "the function that it is in"),
                ("from_image", Word, "", "the file that this is in"),
                ("from_file", Word, "", "the file of source"),
                ("from_line", Int, "", "the line there"),
                ("to_address", Int, "", "where it led"),
                ("to_function", Word, "", "the function there"),
                ("to_image", Word, "", "the file that this is in"),
                ("to_file", Word, "", "the file of source"),
                ("to_line", Int, "", "the line there"),
            ] as [Described; 17]);
            return all;
        }
        if self == Self::Frames {
            all.extend([
                ("depth", Int, "", "how many functions are above it, from 0"),
                ("is_innermost", Bool, "", "whether it called none"),
                ("is_inlined", Bool, "", "whether it was inlined into the one above"),
            ]);
        }
        all.extend([
            ("function", Word, "", "its name; of a sample the innermost function"),
            ("image", Word, "", "the file that it is in"),
            ("file", Word, "", "the file of source"),
            ("line", Int, "", "the line there"),
        ] as [Described; 4]);
        if self == Self::Samples {
            all.push(("depth", Int, "", "how many functions are on the stack"));
            all.push((
                "stack",
                Text,
                "",
                "names of functions, the outermost first, with `;` between",
            ));
        }
        all
    }
}

/// Delivers the rows of a table.
pub fn scan(
    stacked: Stacked,
    recordings: &[Opened],
    images: &OpenImages,
    table: &Table,
    scan: &Scan,
    see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
) -> Result<Vec<Damage>, StoreError> {
    let mut rows = Rows::new(table, scan, see);
    let mut damage = Vec::new();
    'all: for (recording, opened) in recordings.iter().enumerate() {
        let source = &opened.recording.source;
        let mut samples = Samples::new(images(), source.trace());
        samples.call(source.names());
        let mut classes = source.trace().stream_classes.iter().flat_map(|of| &of.event_classes);
        let has_rows =
            samples.are_any() && (stacked != Stacked::Branches || classes.any(has_branches));
        if !has_rows {
            continue;
        }
        // Functions and files have other numbers in each recording.
        if rows.flush().is_break() {
            break;
        }
        let mut events = source.events();
        let mut count = 0;
        while let Some(event) = events.next_event() {
            if samples.see(&event) || !samples.is_sample(&event) {
                continue;
            }
            if stacked == Stacked::Branches {
                let number = count;
                count += 1;
                let Some(found) = Branches::of(&event) else { continue };
                let (pid, tid) = thread_of(&event).unwrap_or((0, 0));
                let program = samples.places().program((pid, tid));
                let head = [
                    Cell::Word(recording as u64, Some(opened.label.as_str())),
                    Cell::Int(event.time.0),
                    event.packet.cpu.map(|cpu| cpu.0).into(),
                    Cell::Int(pid.into()),
                    Cell::Int(tid.into()),
                    Cell::Text(&program),
                    Cell::Text(&event.class.name),
                    Cell::Int(number),
                    Cell::Int(Samples::weight(&event).cast_signed()),
                ];
                if branches(&mut rows, samples.places_mut(), pid, head, &found).is_break() {
                    break 'all;
                }
                continue;
            }
            let Some(sample) = samples.read(&event) else { continue };
            let places = samples.places();
            let program = places.program((sample.pid, sample.tid));
            let head = [
                Cell::Word(recording as u64, Some(opened.label.as_str())),
                Cell::Int(event.time.0),
                event.packet.cpu.map(|cpu| cpu.0).into(),
                Cell::Int(sample.pid.into()),
                Cell::Int(sample.tid.into()),
                Cell::Text(&program),
                Cell::Text(&event.class.name),
                Cell::Int(count),
                Cell::Int(sample.weight.cast_signed()),
            ];
            count += 1;
            let flow = match stacked {
                Stacked::Samples => whole(&mut rows, places, head, &sample.frames),
                Stacked::Frames | Stacked::Branches => {
                    each(&mut rows, places, head, &sample.frames)
                }
            };
            if flow.is_break() {
                break 'all;
            }
        }
        damage.extend(events.damage());
    }
    rows.end()?;
    Ok(damage)
}

/// Function, image, file and line.
fn named<'p>(places: &'p Places<'_>, frame: Option<&Frame>) -> [Cell<'p>; 4] {
    let Some(frame) = frame else { return [Cell::Null; 4] };
    let of = places.functions().get(frame.function as usize);
    let image = of.map(|of| of.image.as_str()).filter(|image| !image.is_empty());
    let file = frame.line.map(|line| Cell::Word(line.file.into(), Some(places.source(line.file))));
    [
        Cell::Word(frame.function.into(), of.map(|of| of.name.as_str())),
        image.into(),
        file.unwrap_or(Cell::Null),
        frame.line.map(|line| line.number).into(),
    ]
}

fn whole(
    rows: &mut Rows<'_>,
    places: &Places<'_>,
    head: [Cell<'_>; 9],
    frames: &[Frame],
) -> ControlFlow<()> {
    let mut stack = String::new();
    if rows.wants("stack") {
        for (place, frame) in frames.iter().enumerate() {
            stack.push_str(if place == 0 { "" } else { BETWEEN });
            // The separator must not occur in a name.
            let name = places.name_of(frame.function).unwrap_or_default();
            stack.push_str(&name.replace(BETWEEN, ":"));
        }
    }
    let mut cells: Vec<Cell<'_>> = head.to_vec();
    cells.extend(named(places, frames.last()));
    cells.push(Cell::Int(frames.len() as i64));
    cells.push(Cell::Text(&stack));
    rows.row(&cells)
}

fn each(
    rows: &mut Rows<'_>,
    places: &Places<'_>,
    head: [Cell<'_>; 9],
    frames: &[Frame],
) -> ControlFlow<()> {
    for (depth, frame) in frames.iter().enumerate() {
        let mut cells: Vec<Cell<'_>> = head.to_vec();
        let is_innermost = depth + 1 == frames.len();
        cells.extend([
            Cell::Int(depth as i64),
            Cell::Int(is_innermost.into()),
            Cell::Int(frame.is_inlined.into()),
        ]);
        cells.extend(named(places, Some(frame)));
        rows.row(&cells)?;
    }
    ControlFlow::Continue(())
}

fn branches(
    rows: &mut Rows<'_>,
    places: &mut Places<'_>,
    pid: u32,
    head: [Cell<'_>; 9],
    found: &Branches,
) -> ControlFlow<()> {
    let wants = |side: &str| {
        let columns = ["function", "image", "file", "line"];
        columns.iter().any(|column| rows.wants(&format!("{side}_{column}")))
    };
    let (wants_from, wants_to) = (wants("from"), wants("to"));
    for (index, branch) in found.all.iter().enumerate() {
        let Branch { from, to, .. } = *branch;
        let mut frame = |is_wanted: bool, address: u64| {
            let place = place_of(address);
            let frames = is_wanted.then(|| places.frames_at(pid, address, place));
            frames.and_then(|frames| frames.last().copied())
        };
        let (from_frame, to_frame) = (frame(wants_from, from), frame(wants_to, to));
        let yes = |is_it: bool| Cell::Int(is_it.into());
        let mut cells: Vec<Cell<'_>> = head.to_vec();
        cells.extend([
            Cell::Int(index as i64),
            yes(found.are_calls),
            branch.kind().into(),
            branch.is_mispredicted().map_or(Cell::Null, yes),
            yes(branch.is_in_transaction()),
            yes(branch.is_abort()),
            branch.cycles().map(u32::from).into(),
            Cell::Int(from.cast_signed()),
        ]);
        cells.extend(named(places, from_frame.as_ref()));
        cells.push(Cell::Int(to.cast_signed()));
        cells.extend(named(places, to_frame.as_ref()));
        rows.row(&cells)?;
    }
    ControlFlow::Continue(())
}
