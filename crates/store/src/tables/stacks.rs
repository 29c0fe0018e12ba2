// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of the call stacks that samples found: decoded and named when they are scanned.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use lateralis_model::{Damage, Source};

use super::build::Holds;
use super::opened::Opened;
use super::shape::Described;
use super::small::{Cell, Rows};
use super::{Scan, StoreError, Table};
use crate::places::{Frame, Images, Places};
use crate::stacks::Samples;

/// Gives what stands in the files of programs, to each scan by itself.
pub type OpenImages = Arc<dyn Fn() -> Box<dyn Images> + Send + Sync>;

/// A table of stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stacked {
    Samples,
    Frames,
}

/// Between the functions of a stack in one text.
const BETWEEN: &str = ";";

impl Stacked {
    pub const ALL: [Self; 2] = [Self::Samples, Self::Frames];

    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "stack_samples",
            Self::Frames => "stack_frames",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Samples => "samples of call stacks, each with the function that was interrupted",
            Self::Frames => "the functions on the stacks of samples, a row for each",
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
            ("weight", Int, "", "its period: how much of the event it stands for"),
        ];
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

/// Shows the rows of a table.
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
    'all: for (number, opened) in recordings.iter().enumerate() {
        let source = &opened.recording.source;
        let mut samples = Samples::new(images(), source.trace());
        samples.call(source.names());
        if !samples.are_any() {
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
            let Some(sample) = samples.read(&event) else { continue };
            let places = samples.places();
            let program = places.program((sample.pid, sample.tid));
            let head = [
                Cell::Word(number as u64, Some(opened.label.as_str())),
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
                Stacked::Frames => each(&mut rows, places, head, &sample.frames),
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
            // What stands between functions cannot be in a name.
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
