// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Column plan: which columns of each class are read, and the facts that they give.

use lateralis_analysis::Side;
use lateralis_model::{ColumnBatch, FieldKind, Scope, StreamSummary, Trace, Want, Wanted, leaves};

use super::keys::KeyPlan;
use super::marks::{Emit, Says};
use super::ordered::Edges;
use super::plan::{Place, Plan, Step};

/// Column plan of all classes of a trace.
pub struct Reading {
    pub emits: Vec<Emit>,
    pub wanted: Wanted,
    pub classes: Vec<Vec<Class>>,
    /// By stream class: meaning of each class, if its batches may come in order.
    pub in_order: Vec<Option<InOrder>>,
    cpus: Vec<Option<u32>>,
    edges: Edges,
    has_switches: bool,
}

/// Index of the emit for the first event of a CPU.
pub const APPEARS: u32 = 0;
/// Index of the emit for events that are kept whole.
pub const KEPT: u32 = 1;
/// The first of four, by the fields of an event: contains the thread (1), the process (2).
const RUN: u32 = 2;

/// Column plan of one class.
#[derive(Debug, Default)]
pub struct Class {
    /// Index of the emit, and column of its value.
    pub emits: Vec<(u32, Option<usize>)>,
    /// Columns of the thread and of its process.
    pub tid: Option<usize>,
    pub pid: Option<usize>,
    /// Whether events of the class must be read whole.
    pub is_kept: bool,
    /// Index of the emit that only identifies the thread.
    pub writer: Option<u32>,
    /// The single fact of the class, if it can be part of a run, and the emit of the run.
    pub edge: Option<(u32, Side, u32)>,
    /// Whether the thread of its events is known although the recorder does not supply it.
    pub is_known: bool,
}

/// Column plan of batches in order.
pub struct InOrder {
    /// Columns ([`ColumnBatch::column_in_order`]) of the thread and of its process.
    pub tid: Option<usize>,
    pub pid: Option<usize>,
    /// Emit of runs.
    pub run: u32,
    /// Whether the thread of events is known although the recorder does not supply it.
    pub is_known: bool,
    /// Whether any class only identifies its writer.
    pub has_writers: bool,
    pub classes: Vec<Saying>,
}

/// Meaning of a class in order: an edge, only the writer, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct Saying {
    pub kind: u32,
    pub side: Side,
    pub is_edge: bool,
    /// Emit of a single event.
    pub alone: Option<u32>,
}

impl Class {
    /// Whether the class has no facts.
    pub fn is_quiet(&self) -> bool {
        self.emits.is_empty() && !self.is_kept && self.writer.is_none()
    }
}

impl Reading {
    /// From the plans of the classes of a trace.
    pub fn new(
        trace: &Trace,
        plans: &[Vec<Plan>],
        streams: &[StreamSummary],
        edges: Edges,
    ) -> Self {
        let cpus = streams.iter().map(|stream| stream.cpu.map(|cpu| cpu.0)).collect();
        let says = |says| Emit { says, tells: (false, false) };
        let run = |bits: u32| Emit { says: Says::Run, tells: (bits & 1 != 0, bits & 2 != 0) };
        let steps = |plan: &Plan| plan.steps.iter().any(|step| matches!(step, Step::Switch(_)));
        let has_switches = plans.iter().flatten().any(steps);
        let mut emits = vec![says(Says::Appears), says(Says::Kept)];
        emits.extend((0..4).map(run));
        let mut reading = Self {
            emits,
            wanted: Wanted::times(trace),
            classes: Vec::new(),
            in_order: Vec::new(),
            cpus,
            edges,
            has_switches,
        };
        let mut wanted = Wanted::times(trace);
        for (index, (stream_class, plans)) in (0..).zip(trace.stream_classes.iter().zip(plans)) {
            let mut classes = Vec::with_capacity(plans.len());
            for (number, (class, plan)) in (0..).zip(stream_class.event_classes.iter().zip(plans)) {
                let columns = Columns::new(stream_class, class);
                let read = reading.class(plan, &columns);
                let read = read.unwrap_or(Class { is_kept: true, ..Class::default() });
                let want = if read.is_kept { Want::All } else { read.want(columns.count) };
                wanted = wanted.with(index, number, want);
                classes.push(read);
            }
            let in_order = InOrder::new(&classes).filter(|_| edges == Edges::InOrder);
            if let Some((columns, _)) = &in_order {
                wanted = wanted.in_order(index, columns.clone());
            }
            reading.in_order.push(in_order.map(|(_, in_order)| in_order));
            reading.classes.push(classes);
        }
        reading.wanted = wanted;
        reading
    }

    /// CPU of a batch, if its packet or stream has one.
    pub fn cpu_of(&self, batch: &dyn ColumnBatch) -> Option<u32> {
        let of_packet = batch.packet().cpu.map(|cpu| cpu.0);
        of_packet.or_else(|| self.cpus.get(batch.stream().0 as usize).copied().flatten())
    }

    /// Whether a batch is of the CPU of its stream.
    pub fn is_at_home(&self, batch: &dyn ColumnBatch) -> bool {
        let of_stream = self.cpus.get(batch.stream().0 as usize).copied().flatten();
        batch.packet().cpu.is_none_or(|cpu| Some(cpu.0) == of_stream)
    }

    /// `None` if events of the class must be read whole.
    fn class(&mut self, plan: &Plan, columns: &Columns) -> Option<Class> {
        if plan.is_kept {
            return None;
        }
        let place = |place: Option<Place>| match place {
            None => Some(None),
            Some(Place::Common(field)) => columns.integer(Scope::Common, field).map(Some),
            Some(Place::Own(field)) => columns.integer(Scope::Own, field).map(Some),
        };
        let mut class = Class { tid: place(plan.tid)?, pid: place(plan.pid)?, ..Class::default() };
        class.is_known = class.tid.is_some() || self.has_switches;
        // A process without a thread is of no use.
        class.pid = class.pid.filter(|_| class.tid.is_some());
        let tells = (class.tid.is_some(), class.pid.is_some());
        let key = |plan: &KeyPlan| match plan {
            KeyPlan::None => Some((None, None)),
            KeyPlan::Integer { field, base } => {
                Some((Some(*base), Some(columns.integer(Scope::Payload, *field)?)))
            }
            KeyPlan::Parts(_) => None,
        };
        for step in &plan.steps {
            let (says, value) = match step {
                Step::Begin { span, key: plan } => {
                    let (key, value) = key(plan)?;
                    (Says::Begin { span: *span, key }, value)
                }
                Step::End { span, key: plan } => {
                    let (key, value) = key(plan)?;
                    (Says::End { span: *span, key }, value)
                }
                Step::Send { channel, key: plan } => {
                    let (key, value) = key(plan)?;
                    (Says::Send { channel: *channel, key }, value)
                }
                Step::Receive { channel, key: plan } => {
                    let (key, value) = key(plan)?;
                    (Says::Receive { channel: *channel, key }, value)
                }
                Step::Whole { span, duration } => {
                    let value = columns.integer(Scope::Payload, *duration)?;
                    (Says::Whole { span: *span }, Some(value))
                }
                // Which counter it is depends on the key.
                Step::Level { counter, field, key: KeyPlan::None, cpu: None } => {
                    let value = columns.number(Scope::Payload, *field)?;
                    (Says::Level { counter: *counter }, Some(value))
                }
                Step::Level { .. }
                | Step::State { .. }
                | Step::Switch(_)
                | Step::Leaves { .. }
                | Step::CallBegins { .. }
                | Step::CallEnds { .. }
                | Step::Wake(_)
                | Step::Interrupt(..)
                | Step::Pending { .. }
                | Step::Thread { .. } => return None,
            };
            class.emits.push((self.emits.len() as u32, value));
            self.emits.push(Emit { says, tells });
        }
        if let (&[(emit, None)], true) = (class.emits.as_slice(), self.edges != Edges::Each) {
            let run = RUN + u32::from(tells.0) + 2 * u32::from(tells.1);
            class.edge = match self.emits[emit as usize].says {
                Says::Begin { span, .. } => Some((span, Side::Begin, run)),
                Says::End { span, .. } => Some((span, Side::End, run)),
                _ => None,
            };
        }
        if class.emits.is_empty() && tells.1 {
            class.writer = Some(self.emits.len() as u32);
            self.emits.push(Emit { says: Says::Writer, tells });
        }
        Some(class)
    }
}

impl InOrder {
    /// Also returns the columns that are needed; `None` if a class has other facts, or two classes have
    /// different thread columns.
    fn new(classes: &[Class]) -> Option<(Vec<usize>, Self)> {
        let nothing = Saying { kind: 0, side: Side::Begin, is_edge: false, alone: None };
        let (mut alike, mut run, mut has_writers) = (None, None, false);
        let mut saying = vec![nothing; classes.len()];
        for (class, saying) in classes.iter().zip(&mut saying).filter(|(of, _)| !of.is_quiet()) {
            *saying = match (class.edge, class.emits.as_slice(), class.writer) {
                _ if class.is_kept => return None,
                (Some((kind, side, emit)), &[(alone, None)], None) => {
                    run = Some(emit);
                    Saying { kind, side, is_edge: true, alone: Some(alone) }
                }
                (None, [], Some(writer)) => {
                    has_writers = true;
                    Saying { alone: Some(writer), ..nothing }
                }
                _ => return None,
            };
            // Then the emits of their runs are equal, too.
            let who = (class.tid, class.pid, class.is_known);
            if *alike.get_or_insert(who) != who {
                return None;
            }
        }
        let ((tid, pid, is_known), run) = alike.zip(run)?;
        let columns: Vec<usize> = [tid, pid].into_iter().flatten().collect();
        let (tid, pid) = (tid.map(|_| 0), pid.map(|_| 1));
        Some((columns, Self { tid, pid, run, is_known, has_writers, classes: saying }))
    }
}

impl Class {
    fn want(&self, columns: usize) -> Want {
        let mut wanted = vec![false; columns];
        let values = self.emits.iter().filter_map(|(_, column)| *column);
        // Without facts, the thread matters only together with its process.
        let who = [self.tid, self.pid].into_iter().flatten().filter(|_| !self.is_quiet());
        values.chain(who).for_each(|column| wanted[column] = true);
        if wanted.contains(&true) { Want::Columns(wanted) } else { Want::Times }
    }
}

/// Columns of the fields of a class.
struct Columns {
    /// By scope and member: the column, if there is one, and its type.
    members: [Vec<Option<(usize, Holds)>>; 3],
    count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Integers,
    Numbers,
    Other,
}

impl Columns {
    fn new(stream: &lateralis_model::StreamClass, class: &lateralis_model::EventClass) -> Self {
        let scopes = [&stream.common_context, &class.context, &class.payload];
        let mut next = 0;
        let members = scopes.map(|scope| {
            let members = scope.as_ref().map_or(&[][..], |scope| scope.members());
            let column = |member: &lateralis_model::Member| match &member.class.kind {
                FieldKind::Struct(_) => {
                    let inside = lateralis_model::EventClass {
                        payload: Some(member.class.clone()),
                        ..Default::default()
                    };
                    next += leaves(&Default::default(), &inside).len();
                    None
                }
                kind => {
                    next += 1;
                    let holds = match kind {
                        FieldKind::Unsigned(_)
                        | FieldKind::Signed(_)
                        | FieldKind::Bool
                        | FieldKind::Bits { .. } => Holds::Integers,
                        FieldKind::Real(_) => Holds::Numbers,
                        _ => Holds::Other,
                    };
                    Some((next - 1, holds))
                }
            };
            members.iter().map(column).collect()
        });
        Self { members, count: next }
    }

    fn integer(&self, scope: Scope, member: usize) -> Option<usize> {
        self.find(scope, member, &[Holds::Integers])
    }

    fn number(&self, scope: Scope, member: usize) -> Option<usize> {
        self.find(scope, member, &[Holds::Integers, Holds::Numbers])
    }

    fn find(&self, scope: Scope, member: usize, of: &[Holds]) -> Option<usize> {
        let (column, holds) = (*self.members[scope as usize].get(member)?)?;
        of.contains(&holds).then_some(column)
    }
}
