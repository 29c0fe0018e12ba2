// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Meaning of each event class, computed once: steps that produce the facts of its events.

use lateralis_analysis::Side;
use lateralis_model::role::{
    ALL, CATEGORY, FILTERED, KEY_CATEGORY, KEY_CPU, KEY_PROCESS, Keyed, Role,
};
use lateralis_model::{Event, EventClass, Field, FieldClass, Host, Member, StreamClass};

use super::Leaving;
use super::conventions::{Convention, Dialect, InterruptKind, WakeStage};
use super::keys::{Category, KeyPlan, Part};
use super::kinds::Kinds;

/// One fact of the events of a class.
#[derive(Debug)]
pub enum Step {
    Begin {
        span: u32,
        key: KeyPlan,
    },
    End {
        span: u32,
        key: KeyPlan,
    },
    Whole {
        span: u32,
        duration: usize,
    },
    Send {
        channel: u32,
        key: KeyPlan,
    },
    Receive {
        channel: u32,
        key: KeyPlan,
    },
    State {
        machine: u32,
        field: usize,
        key: KeyPlan,
    },
    /// `cpu`: the CPU that is described, if it may differ from that of the event.
    Level {
        counter: u32,
        field: usize,
        key: KeyPlan,
        cpu: Option<usize>,
    },
    Switch(Switch),
    /// State that a thread will enter when it leaves its CPU.
    Leaves {
        tid: Option<usize>,
        into: Leaving,
    },
    /// A system call begins.
    CallBegins {
        span: u32,
        key: KeyPlan,
    },
    /// The current system call of the thread ends; field with its number, if the event has one.
    CallEnds {
        id: Option<usize>,
    },
    Wake(Wake),
    Interrupt(InterruptKind, Side),
    /// A span of which one is open for each key: it begins with the first of several begins.
    Pending {
        span: u32,
        key: KeyPlan,
        side: Side,
    },
    Thread {
        tid: usize,
        pid: Option<usize>,
        name: Option<usize>,
        flags: Option<usize>,
    },
}

/// Fields of a wake-up.
#[derive(Debug)]
pub struct Wake {
    pub stage: WakeStage,
    pub tid: usize,
    pub cpu: Option<usize>,
    /// Flags of ftrace and perf for the context in which the event happened.
    pub flags: Option<usize>,
}

/// Fields of a context switch.
#[derive(Debug)]
pub struct Switch {
    /// `None`: the thread that came last.
    pub prev_tid: Option<usize>,
    /// `None`: the thread of the event.
    pub next_tid: Option<usize>,
    pub prev_comm: Option<usize>,
    pub next_comm: Option<usize>,
    pub prev_state: Option<usize>,
    pub prev_prio: Option<usize>,
    pub next_prio: Option<usize>,
    /// Whether the idle thread has a number, and is recognised by its name.
    pub has_idle_thread: bool,
}

/// Source of the thread in the context of a class: index among the fields of the common context, or of
/// the specific one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Common(usize),
    Own(usize),
}

/// Number of the first field of the specific context among the fields of an event; payload fields have
/// the numbers below.
const OWN: usize = 1 << 24;
/// Number of the first field of the common context.
const COMMON: usize = 2 << 24;

/// A field by its number in a plan.
pub fn field<'a>(event: &Event<'a>, index: usize) -> Option<Field<'a>> {
    let (fields, index) = match index {
        0..OWN => (event.payload(), index),
        OWN..COMMON => (event.context(), index - OWN),
        _ => (event.common_context(), index - COMMON),
    };
    fields?.into_iter().nth(index).map(|(_, field)| field)
}

/// Meaning of one class.
#[derive(Debug, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub tid: Option<Place>,
    pub pid: Option<Place>,
    /// Field of the common context with the CPU.
    pub cpu: Option<usize>,
    /// Whether its events belong to the only CPU, which no field contains.
    pub is_of_cpu_0: bool,
    /// Whether its events were kept because of their thread, if only kernel events of recorded programs
    /// were kept. Not events of the tracer, nor switches and wakeups, which may have been kept because of
    /// the other thread.
    pub is_of_its_thread: bool,
    /// Whether a consumer needs its events whole, whatever they mean.
    pub is_kept: bool,
}

/// Field with the category of an event, in classes that represent many.
const CATEGORY_FIELD: &str = "event.category";
const TID_FIELDS: [&str; 4] = ["tid", "vtid", "_tid", "_vtid"];
const PID_FIELDS: [&str; 4] = ["pid", "vpid", "_pid", "_vpid"];
const CPU_FIELDS: [&str; 2] = ["cpu_id", "_cpu_id"];

impl Plan {
    /// Plan of `class`; new spans, channels, … are added to `kinds`.
    ///
    /// `host`: the machine of the stream, if there are several.
    pub fn new(
        stream: &StreamClass,
        (dialect, host): (Dialect, Option<Host>),
        class: &EventClass,
        kinds: &mut Kinds,
    ) -> Self {
        let members = members(&class.payload);
        let common = members_of(stream.common_context.as_ref());
        let own = members_of(class.context.as_ref());
        let place = |names: &[&str]| {
            let at = |members: &[Member], name: &str| position(members, name);
            // The common context has precedence: if it has the field, the specific context has an id in
            // the source format's form, for instance a text.
            names.iter().find_map(|name| {
                at(common, name).map(Place::Common).or_else(|| at(own, name).map(Place::Own))
            })
        };
        let mut plan = Self {
            steps: Vec::new(),
            tid: place(&TID_FIELDS),
            pid: place(&PID_FIELDS),
            cpu: CPU_FIELDS.iter().find_map(|name| position(common, name)),
            is_of_cpu_0: dialect.is_zephyr,
            is_of_its_thread: !class.name.starts_with("lateralis:"),
            is_kept: false,
        };
        let conventions = dialect.conventions(&class.name);
        let mut compiler = Compiler { members, common, class, dialect, host, kinds };
        let mut from_conventions: Vec<Step> =
            conventions.iter().filter_map(|convention| compiler.convention(convention)).collect();
        if dialect.is_zephyr {
            // With the key, and without it for events that lack the field.
            let is_span = |step: &Step| matches!(step, Step::Begin { .. } | Step::End { .. });
            let mut is_first = true;
            from_conventions.retain(|step| !is_span(step) || std::mem::take(&mut is_first));
        }
        // Conventions know more than the schema roles added by importers: the CPU, the name.
        from_conventions.iter().for_each(|step| compiler.kinds.set_of_thread(step));
        plan.steps = from_conventions;
        let is_beside = |step: &Step| match step {
            Step::Interrupt(..) => true,
            Step::Switch(switch) => switch.prev_tid.is_none(),
            _ => false,
        };
        if plan.steps.iter().all(is_beside) {
            plan.steps.extend(Role::of(class).filter_map(|role| compiler.role(&role)));
        }
        let is_of_others = |step: &Step| matches!(step, Step::Switch(_) | Step::Wake(_));
        plan.is_of_its_thread &= !plan.steps.iter().any(is_of_others);
        let left_out = class.attribute(FILTERED);
        if left_out.is_some() {
            plan.steps.iter().for_each(|step| kinds.set_filtered(step));
        }
        if left_out != Some(ALL) {
            plan.steps.iter().for_each(|step| kinds.set_recorded(step));
        }
        plan
    }
}

struct Compiler<'a> {
    members: &'a [Member],
    common: &'a [Member],
    class: &'a EventClass,
    dialect: Dialect,
    host: Option<Host>,
    kinds: &'a mut Kinds,
}

impl Compiler<'_> {
    fn convention(&mut self, convention: &Convention) -> Option<Step> {
        match convention {
            Convention::Role(role) => {
                let mut step = self.role(role)?;
                // A key of a schema means one object on all machines; a device or a piece of work in the
                // kernel does not.
                if let (Step::Begin { key, .. } | Step::End { key, .. }, Some(host)) =
                    (&mut step, self.host)
                {
                    *key = std::mem::replace(key, KeyPlan::None).of_host(host);
                }
                Some(step)
            }
            Convention::Switch => Some(Step::Switch(Switch {
                // LTTng's names, then those of the kernel, where a pid is a thread id.
                prev_tid: Some(self.own("prev_tid").or_else(|| self.own("prev_pid"))?),
                next_tid: Some(self.own("next_tid").or_else(|| self.own("next_pid"))?),
                prev_comm: self.own("prev_comm"),
                next_comm: self.own("next_comm"),
                prev_state: self.own("prev_state"),
                prev_prio: self.own("prev_prio"),
                next_prio: self.own("next_prio"),
                has_idle_thread: false,
            })),
            Convention::SwitchTo { tid, name } => Some(Step::Switch(Switch {
                prev_tid: None,
                next_tid: if tid.is_empty() { None } else { Some(self.own(tid)?) },
                prev_comm: None,
                next_comm: self.own(name),
                prev_state: None,
                prev_prio: None,
                next_prio: None,
                has_idle_thread: self.dialect.is_zephyr,
            })),
            Convention::Leaves { tid, into } => {
                Some(Step::Leaves { tid: self.own(tid), into: *into })
            }
            Convention::CallBegins(name, id) => {
                let keys = self.own(id).map(|_| (*id).to_owned()).into_iter().collect();
                let keyed = Keyed { name: name.clone(), keys, ..Keyed::default() };
                // Ignored if the number that it should have is missing.
                let is_whole = id.is_empty() || !keyed.keys.is_empty();
                let key = self.key(&keyed).filter(|_| is_whole)?;
                Some(Step::CallBegins { span: self.kinds.span(&keyed), key })
            }
            Convention::CallEnds(id) => {
                let is_whole = id.is_empty() || self.own(id).is_some();
                is_whole.then(|| Step::CallEnds { id: self.own(id) })
            }
            Convention::Wake(stage) => Some(Step::Wake(Wake {
                stage: *stage,
                tid: ["tid", "pid", "thread_id"].iter().find_map(|name| self.own(name))?,
                cpu: self.own("target_cpu"),
                flags: self.field("common_flags"),
            })),
            Convention::Interrupt(kind, side) => Some(Step::Interrupt(*kind, *side)),
            Convention::SoftInterrupt(side) => {
                let keys = vec!["vec".to_owned(), KEY_CPU.to_owned()];
                let keyed = Keyed { name: "softirq_raised".to_owned(), keys, ..Keyed::default() };
                let key = self.key(&keyed)?;
                let span = self.kinds.span(&keyed);
                // The thread itself does not cause it.
                self.kinds.spans[span as usize].is_beside_threads = true;
                Some(Step::Pending { span, key, side: *side })
            }
            Convention::Thread { tid, pid, name, flags } => {
                let thread = self.own(tid);
                let process = self.own(pid).filter(|_| thread.is_some());
                Some(Step::Thread {
                    // Without a thread field, the kernel's pid is the thread id.
                    tid: thread.or_else(|| self.own(pid))?,
                    pid: process,
                    name: self.own(name),
                    flags: self.own(flags),
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
                // The frequency of a CPU can be set from any CPU.
                let cpu = self.own("cpu_id").filter(|_| self.kinds.is_of_cpu(counter));
                Step::Level { field, counter, key, cpu }
            }
        })
    }

    /// A field of the payload, otherwise of the contexts: importers put there what their format keeps
    /// apart from the program's data, as Chrome's durations and ids.
    fn field(&self, name: &str) -> Option<usize> {
        let own = || Some(OWN + place(members_of(self.class.context.as_ref()), name)?);
        let common = || Some(COMMON + place(self.common, name)?);
        self.own(name).or_else(own).or_else(common)
    }

    /// A field of the payload only: in scheduler events, the context has the current thread under the
    /// same names as the payload has the thread that the event describes.
    fn own(&self, name: &str) -> Option<usize> {
        place(self.members, name)
    }

    fn key(&self, keyed: &Keyed) -> Option<KeyPlan> {
        let part = |name: &String| match name.as_str() {
            KEY_CPU => Some(Part::Cpu),
            KEY_PROCESS => Some(Part::Process),
            KEY_CATEGORY => Some(match self.field(CATEGORY_FIELD) {
                // In a class that represents many, each event contains its category.
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

/// CTF 1.8 prefixes reserved words with an underscore.
fn place(members: &[Member], name: &str) -> Option<usize> {
    let hidden = |member: &Member| member.name.strip_prefix('_') == Some(name);
    position(members, name).or_else(|| members.iter().position(hidden))
}

fn position(members: &[Member], name: &str) -> Option<usize> {
    members.iter().position(|member| member.name == name)
}
