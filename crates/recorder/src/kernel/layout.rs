// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts the kernel's descriptions of its events to schemas, and to the copies that convert a record
//! of the kernel to one of the recording.

mod names;
mod plan;
mod types;

use std::collections::BTreeMap;
use std::fmt::Write;

use lateralis_perfdata::tracepoint::Format;
use lateralis_pleco::Schema;
use lateralis_pleco::schema::{EVENTS_MAX, FIELDS_MAX};

use self::names::Names;
pub(super) use self::names::identifier;
pub use self::plan::EventPlan;
use super::chosen::OtherThread;
use super::tasks::NewTaskPlan;
use crate::classes::RegisteredSchema;
use crate::source::register;

/// Subsystem of events that have a call stack.
const STACKS: &str = "perf";

/// An event's description: its system and the text of `events/SYSTEM/NAME/format`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFormat {
    /// `sched`.
    pub system: String,
    /// Content of the file.
    pub text: String,
    /// Clause after the fields in the schema: ` begin NAME`, or empty.
    pub clause: String,
}

/// Schemas and plans of the kernel events of a recording.
#[derive(Debug, Default)]
pub struct KernelEvents {
    /// One schema for each system, with ids.
    pub schemas: Vec<RegisteredSchema>,
    /// Plans by the kernel's number of the event.
    pub plans: Vec<Option<Box<EventPlan>>>,
    /// Plan of the event that reports new tasks.
    pub new_task: Option<NewTaskPlan>,
    /// Offsets of the other thread in events that concern two.
    pub others: OtherThread,
    /// Events that could not be described, one sentence each.
    pub problems: Vec<String>,
}

/// An event with its definition in the schema.
struct Described {
    format: Format,
    name: String,
    definition: String,
    steps: Vec<plan::Step>,
}

impl KernelEvents {
    /// Describes events.
    ///
    /// Errors: an event without a readable description is left out, with a problem.
    /// Cost: some microseconds an event.
    pub fn new(formats: &[KernelFormat]) -> KernelEvents {
        KernelEvents::described(formats, None)
    }

    /// Describes events with a call stack: `fields` are appended to their own. These events represent a
    /// position in a program, without the meaning that readers give to the kernel's events, so they have
    /// other names: `perf:at_sched_switch`.
    ///
    /// Errors, cost: like [`KernelEvents::new`].
    pub fn with_stacks(formats: &[KernelFormat], fields: &[&str]) -> KernelEvents {
        KernelEvents::described(formats, Some(fields))
    }

    fn described(formats: &[KernelFormat], stack: Option<&[&str]>) -> KernelEvents {
        let mut events = KernelEvents::default();
        let mut systems: BTreeMap<&str, Vec<Described>> = BTreeMap::new();
        let mut names: BTreeMap<&str, Names> = BTreeMap::new();
        let mut cut = Vec::new();
        for KernelFormat { system, text, clause } in formats {
            let long_bytes = size_of::<usize>() as u32;
            let Some(format) = Format::parse(system, text, long_bytes) else {
                events
                    .problems
                    .push(format!("Cannot read the description of an event of {system}"));
                continue;
            };
            let types = types::of(&format, text);
            let most = FIELDS_MAX - stack.map_or(0, <[&str]>::len).min(FIELDS_MAX);
            if types.len() > most {
                cut.push(format.full_name());
            }
            let (system, name) = match stack {
                Some(_) => (STACKS, format!("at_{}", format.name)),
                None => (system.as_str(), format.name.clone()),
            };
            let name = names.entry(system).or_default().unique(&name);
            let kept = &types[..types.len().min(most)];
            let described = describe(format, name, kept, (stack.unwrap_or(&[]), clause));
            systems.entry(system).or_default().push(described);
        }
        if !cut.is_empty() {
            events.problems.push(format!(
                "Cannot keep all fields of some events, only as many as a schema allows \
                 ({FIELDS_MAX}): {}",
                cut.join(", ")
            ));
        }
        let mut subsystems = Names::default();
        let mut schemas = Vec::new();
        let mut of_schemas = Vec::new();
        for (system, list) in systems {
            let subsystem = subsystems.unique(system);
            let (schema, kept) = events.compile(&subsystem, list);
            if let Some(schema) = schema {
                schemas.push(schema);
                of_schemas.push(kept);
            }
        }
        events.schemas = register(schemas);
        if events.schemas.len() < of_schemas.len() {
            events.problems.push(format!("Cannot number all events: more than {EVENTS_MAX}"));
        }
        for (registered, list) in events.schemas.iter().zip(of_schemas) {
            for (event, described) in registered.schema.events.iter().zip(list) {
                let kernel_id = usize::from(described.format.id);
                let Ok(id) = u16::try_from(registered.base_id + event.index) else { continue };
                events.others.learn(&described.format);
                events.new_task = events.new_task.or(NewTaskPlan::new(&described.format));
                if events.plans.len() <= kernel_id {
                    events.plans.resize_with(kernel_id + 1, || None);
                }
                let plan = EventPlan::new(id, &described.format, &described.steps);
                events.plans[kernel_id] = Some(Box::new(plan));
            }
        }
        events
    }

    /// Compiles a schema from those of the events that are valid in one.
    fn compile(
        &mut self,
        subsystem: &str,
        list: Vec<Described>,
    ) -> (Option<Schema>, Vec<Described>) {
        if let Some(schema) = schema(subsystem, list.iter().map(|one| one.definition.as_str())) {
            return (Some(schema), list);
        }
        // At least one of them is invalid: find out which.
        let (good, bad): (Vec<_>, Vec<_>) = list
            .into_iter()
            .partition(|one| schema(subsystem, [one.definition.as_str()]).is_some());
        let bad: Vec<_> = bad.iter().map(|one| one.name.as_str()).collect();
        self.problems.push(format!("Cannot describe events of {subsystem}: {}", bad.join(", ")));
        let schema = schema(subsystem, good.iter().map(|one| one.definition.as_str()));
        (schema, good)
    }
}

fn schema<'a>(subsystem: &str, events: impl IntoIterator<Item = &'a str>) -> Option<Schema> {
    let events: Vec<&str> = events.into_iter().collect();
    let text = format!(
        "schema kernel_{subsystem};\nsubsystem {subsystem} {{\n{}\n}};\n",
        events.join(",\n")
    );
    lateralis_pleco::compile("kernel.pleco", text.as_bytes()).schema
}

fn describe(
    format: Format,
    name: String,
    types: &[types::Typed],
    (stack, clause): (&[&str], &str),
) -> Described {
    let mut names = Names::default();
    // The stack fields are found by their names.
    for field in stack {
        names.unique(field.split(':').next().unwrap_or_default());
    }
    let mut definition = format!("event {name} (");
    for (index, typed) in types.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(definition, "{comma}{}: {}", names.unique(&typed.name), typed.text);
    }
    for field in stack {
        let comma = if definition.ends_with('(') { "" } else { ", " };
        let _ = write!(definition, "{comma}{field}");
    }
    definition.push(')');
    definition.push_str(clause);
    let steps = types.iter().map(|typed| typed.step).collect();
    Described { format, name, definition, steps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::samples;

    #[test]
    fn descriptions_become_schemas() {
        let events = KernelEvents::new(&samples::formats());
        assert_eq!(events.problems, [""; 0]);
        let texts: Vec<&str> =
            events.schemas.iter().map(|entry| entry.schema.canonical_text()).collect();
        let all = texts.concat();
        for line in [
            "schema kernel_sched;",
            "event sched_switch (prev_comm: string, prev_pid: i32, prev_prio: i32, \
             prev_state: i64 @hex, next_comm: string, next_pid: i32, next_prio: i32)",
            // The flags include whether it happened in an interrupt.
            "event sched_waking (comm: string, pid: i32, prio: i32, target_cpu: i32, \
             common_flags: u8 @hex)",
            // The number of the call is in the name; registers have the width of their types.
            "event sys_enter_openat (dfd: i32, filename: u64 @hex, flags: i32, mode: u32)",
            "event sys_exit_openat (ret: i64)",
            "event softirq_entry (vec: enum : u32 { HI = 0, TIMER = 1, NET_TX = 2, NET_RX = 3, \
             BLOCK = 4, IRQ_POLL = 5, TASKLET = 6, SCHED = 7, HRTIMER = 8, RCU = 9 })",
            "event odd (event_: u8, list: [u16; 3], file: string, data: bytes, rest: [u32])",
        ] {
            assert!(all.contains(line), "{line}\n{all}");
        }
        let ids: Vec<u32> = events.schemas.iter().map(|entry| entry.base_id).collect();
        assert_eq!(ids[0], 16);
        assert_eq!(events.new_task.map(|plan| plan.id), Some(205));
    }

    #[test]
    fn events_with_stacks_have_names_and_fields_of_their_own() {
        let stack = ["callchain: [u64] @hex"];
        let events = KernelEvents::with_stacks(&samples::formats()[..1], &stack);
        assert_eq!(events.problems, [""; 0]);
        let text = events.schemas[0].schema.canonical_text();
        let wanted = "event at_sched_switch (prev_comm: string, prev_pid: i32, prev_prio: i32, \
                      prev_state: i64 @hex, next_comm: string, next_pid: i32, next_prio: i32, \
                      callchain: [u64] @hex)";
        assert!(text.contains(wanted) && text.contains("subsystem perf"), "{text}");
        let many: String = (0..20)
            .map(|n| format!("\tfield:int f{n};\toffset:{};\tsize:4;\tsigned:1;\n", 8 + 4 * n))
            .collect();
        let wide = samples::format("sched", &format!("name: wide\nID: 900\nformat:\n{many}"));
        let events = KernelEvents::with_stacks(&[wide], &stack);
        assert_eq!(events.schemas[0].schema.events[0].fields.len(), FIELDS_MAX);
        assert!(events.problems[0].contains("sched:wide"), "{:?}", events.problems);
    }

    #[test]
    fn an_event_that_cannot_be_described_costs_itself() {
        let mut formats = samples::formats();
        formats.push(samples::format("sched", "nonsense"));
        let many: String = (0..20)
            .map(|n| format!("\tfield:int f{n};\toffset:{};\tsize:4;\tsigned:1;\n", 8 + 4 * n))
            .collect();
        let text = format!("name: wide\nID: 900\nformat:\n{many}");
        formats.push(samples::format("sched", &text));
        let events = KernelEvents::new(&formats);
        assert_eq!(events.problems.len(), 2);
        assert!(events.problems[1].contains("sched:wide"), "{:?}", events.problems);
        assert!(events.plans[900].is_some() && events.plans[372].is_some());
    }
}
