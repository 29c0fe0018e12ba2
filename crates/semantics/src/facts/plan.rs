// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each class of events means, found once: steps that give facts of its events.

use lateralis_analysis::Side;
use lateralis_model::role::{CATEGORY, FILTERED, KEY_CATEGORY, KEY_CPU, KEY_PROCESS, Keyed, Role};
use lateralis_model::{Event, EventClass, Field, FieldClass, Member, StreamClass};

use super::conventions::{self, Convention, InterruptKind, WakeStage};
use super::keys::{Category, KeyPlan, Part};
use super::kinds::Kinds;

/// One thing that an event of a class says.
#[derive(Debug)]
pub enum Step {
    Begin { span: u32, key: KeyPlan },
    End { span: u32, key: KeyPlan },
    Whole { span: u32, duration: usize },
    Send { channel: u32, key: KeyPlan },
    Receive { channel: u32, key: KeyPlan },
    State { machine: u32, field: usize, key: KeyPlan },
    Level { counter: u32, field: usize, key: KeyPlan },
    Switch(Switch),
    Wake(Wake),
    Interrupt(InterruptKind, Side),
    Thread { tid: usize, pid: Option<usize>, name: Option<usize> },
}

/// Fields of a wake-up.
#[derive(Debug)]
pub struct Wake {
    pub stage: WakeStage,
    pub tid: usize,
    pub cpu: Option<usize>,
    /// What ftrace and perf say of the context in which the event happened.
    pub flags: Option<usize>,
}

/// Fields of a context switch.
#[derive(Debug)]
pub struct Switch {
    pub prev_tid: usize,
    pub next_tid: usize,
    pub prev_comm: Option<usize>,
    pub next_comm: Option<usize>,
    pub prev_state: Option<usize>,
}

/// Where the context of a class tells the thread: index among the fields of the common
/// context, or of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Common(usize),
    Own(usize),
}

/// The first field of the own context among the fields of an event; those of the payload have
/// the numbers below.
const OWN: usize = 1 << 24;
/// The first field of the common context.
const COMMON: usize = 2 << 24;

/// A field by the number that its plan has for it.
pub fn field<'a>(event: &Event<'a>, index: usize) -> Option<Field<'a>> {
    let (fields, index) = match index {
        0..OWN => (event.payload(), index),
        OWN..COMMON => (event.context(), index - OWN),
        _ => (event.common_context(), index - COMMON),
    };
    fields?.into_iter().nth(index).map(|(_, field)| field)
}

/// Everything about one class.
#[derive(Debug, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub tid: Option<Place>,
    pub pid: Option<Place>,
    /// Where the common context tells the processor.
    pub cpu: Option<usize>,
    /// Whether its events are there because of the thread they are in, wherever the kernel's events
    /// are of recorded programs only: not those of the tracer, nor switches and wake-ups, which are
    /// there because of the other thread as well.
    pub is_of_its_thread: bool,
}

/// The field with the category of an event, in classes that stand for many.
const CATEGORY_FIELD: &str = "event.category";
const TID_FIELDS: [&str; 4] = ["tid", "vtid", "_tid", "_vtid"];
const PID_FIELDS: [&str; 4] = ["pid", "vpid", "_pid", "_vpid"];
const CPU_FIELDS: [&str; 2] = ["cpu_id", "_cpu_id"];

impl Plan {
    /// What events of `class` say; new spans, channels, … are added to `kinds`.
    pub fn new(stream: &StreamClass, class: &EventClass, kinds: &mut Kinds) -> Self {
        let members = members(&class.payload);
        let common = members_of(stream.common_context.as_ref());
        let own = members_of(class.context.as_ref());
        let place = |names: &[&str]| {
            let at = |members: &[Member], name: &str| position(members, name);
            // What all events of the stream have counts first: beside it the own context holds an
            // id as its format had it, a text for instance.
            names.iter().find_map(|name| {
                at(common, name).map(Place::Common).or_else(|| at(own, name).map(Place::Own))
            })
        };
        let mut plan = Self {
            steps: Vec::new(),
            tid: place(&TID_FIELDS),
            pid: place(&PID_FIELDS),
            cpu: CPU_FIELDS.iter().find_map(|name| position(common, name)),
            is_of_its_thread: !class.name.starts_with("lateralis:"),
        };
        let conventions = conventions::of(&class.name);
        let mut compiler = Compiler { members, common, class, kinds };
        let from_conventions: Vec<Step> =
            conventions.iter().filter_map(|convention| compiler.convention(convention)).collect();
        // Importers say in the words of schemas what conventions say with more: whose
        // processor, by which name.
        from_conventions.iter().for_each(|step| compiler.kinds.set_of_thread(step));
        plan.steps = from_conventions;
        if plan.steps.iter().all(|step| matches!(step, Step::Interrupt(..))) {
            plan.steps.extend(Role::of(class).filter_map(|role| compiler.role(&role)));
        }
        let is_of_others = |step: &Step| matches!(step, Step::Switch(_) | Step::Wake(_));
        plan.is_of_its_thread &= !plan.steps.iter().any(is_of_others);
        if class.attribute(FILTERED).is_some() {
            plan.steps.iter().for_each(|step| kinds.set_filtered(step));
        }
        plan
    }
}

struct Compiler<'a> {
    members: &'a [Member],
    common: &'a [Member],
    class: &'a EventClass,
    kinds: &'a mut Kinds,
}

impl Compiler<'_> {
    fn convention(&mut self, convention: &Convention) -> Option<Step> {
        match convention {
            Convention::Role(role) => self.role(role),
            Convention::Switch => Some(Step::Switch(Switch {
                // LTTng's names, then those of the kernel, where a pid is a thread.
                prev_tid: self.own("prev_tid").or_else(|| self.own("prev_pid"))?,
                next_tid: self.own("next_tid").or_else(|| self.own("next_pid"))?,
                prev_comm: self.own("prev_comm"),
                next_comm: self.own("next_comm"),
                prev_state: self.own("prev_state"),
            })),
            Convention::Wake(stage) => Some(Step::Wake(Wake {
                stage: *stage,
                tid: self.own("tid").or_else(|| self.own("pid"))?,
                cpu: self.own("target_cpu"),
                flags: self.field("common_flags"),
            })),
            Convention::Interrupt(kind, side) => Some(Step::Interrupt(*kind, *side)),
            Convention::Thread { tid, pid, name } => {
                let thread = self.own(tid);
                let process = self.own(pid).filter(|_| thread.is_some());
                Some(Step::Thread {
                    // Without a field for the thread the kernel means it by its pid.
                    tid: thread.or_else(|| self.own(pid))?,
                    pid: process,
                    name: self.own(name),
                })
            }
        }
    }

    fn role(&mut self, role: &Role) -> Option<Step> {
        let keyed = |keys: &[String]| Keyed { keys: keys.to_vec(), ..Keyed::default() };
        Some(match role {
            Role::Begin(of) => Step::Begin { key: self.key(of)?, span: self.kinds.span(of) },
            Role::End(of) => Step::End { key: self.key(of)?, span: self.kinds.span(of) },
            Role::Span { name, duration } => {
                let of = Keyed { name: name.clone(), ..Keyed::default() };
                let duration = self.field(duration)?;
                Step::Whole { duration, span: self.kinds.span(&of) }
            }
            Role::Send(of) => Step::Send { key: self.key(of)?, channel: self.kinds.channel(of) },
            Role::Receive(of) => {
                Step::Receive { key: self.key(of)?, channel: self.kinds.channel(of) }
            }
            Role::State { name, field, keys } => {
                let (field, key) = (self.field(field)?, self.key(&keyed(keys))?);
                Step::State { field, machine: self.kinds.machine(name), key }
            }
            Role::Counter { field: of, name, keys } => {
                let (field, key) = (self.field(of)?, self.key(&keyed(keys))?);
                let counter = self.kinds.counter(&self.class.name, of, name.as_deref());
                Step::Level { field, counter, key }
            }
        })
    }

    /// Of the payload, else of the contexts: importers put there what their format keeps apart
    /// from what the program said, as Chrome's durations and ids.
    fn field(&self, name: &str) -> Option<usize> {
        let own = || Some(OWN + place(members_of(self.class.context.as_ref()), name)?);
        let common = || Some(COMMON + place(self.common, name)?);
        self.own(name).or_else(own).or_else(common)
    }

    /// Of the payload alone: a context has the thread that the event happened in under the same
    /// names as an event of the scheduler has the thread that it is about.
    fn own(&self, name: &str) -> Option<usize> {
        place(self.members, name)
    }

    fn key(&self, keyed: &Keyed) -> Option<KeyPlan> {
        let part = |name: &String| match name.as_str() {
            KEY_CPU => Some(Part::Cpu),
            KEY_PROCESS => Some(Part::Process),
            KEY_CATEGORY => Some(match self.field(CATEGORY_FIELD) {
                // A class that stands for many tells the category of each event.
                Some(field) => Part::Category(Category::Field(field)),
                None => {
                    let category = self.class.attribute(CATEGORY).unwrap_or_default();
                    Part::Category(Category::Fixed(category.to_owned()))
                }
            }),
            name => self.field(name).map(Part::Field),
        };
        let parts: Option<Vec<Part>> = keyed.keys.iter().map(part).collect();
        Some(KeyPlan::new(parts?, self.members))
    }
}

fn members(payload: &Option<FieldClass>) -> &[Member] {
    members_of(payload.as_ref())
}

fn members_of(class: Option<&FieldClass>) -> &[Member] {
    class.map_or(&[], |class| class.members())
}

/// CTF 1.8 hides reserved words behind an underscore.
fn place(members: &[Member], name: &str) -> Option<usize> {
    let hidden = |member: &Member| member.name.strip_prefix('_') == Some(name);
    position(members, name).or_else(|| members.iter().position(hidden))
}

fn position(members: &[Member], name: &str) -> Option<usize> {
    members.iter().position(|member| member.name == name)
}
