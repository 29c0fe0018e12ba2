// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the formats of pictures (Chrome JSON, Perfetto, FXT) have in common: each event
//! becomes the marks that its clauses ask for, or an instant where it has none.

use std::collections::HashMap;
use std::io;

use lateralis_model::role::Role;
use lateralis_model::{Dropped, Event, Loss, Source, Value};

use crate::json::{field_label, find};
use crate::meaning::{Level, Meaning, Meanings, NO_PROCESS, Owner, key, level, loss_text};

/// Machines whose state is remembered, so that it can be ended.
const MAX_MACHINES: usize = 100_000;

/// Where and when something is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Nanoseconds.
    pub time: i64,
    /// On whose line.
    pub owner: Owner,
    /// The category, which may be empty.
    pub category: &'a str,
}

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub enum Mark<'a> {
    /// A point.
    Instant,
    /// A span begins that nests in those of its thread.
    Begin,
    /// It ends.
    End,
    /// A whole span of so many nanoseconds.
    Whole(u64),
    /// A span begins that nests in nothing; the number tells it from others.
    Open(u64),
    /// It ends.
    Close(u64),
    /// A level, and the field it stands in; the last says whether it is the only one of
    /// its kind of event.
    Level(&'a str, Level, bool),
    /// A machine enters the state that is the name of the mark; it was in another.
    State(&'a str, Option<&'a str>),
}

/// A message that leaves or arrives at a mark.
#[derive(Debug, Clone)]
pub struct Flow<'a> {
    /// Whether it leaves.
    pub leaves: bool,
    /// Its kind.
    pub name: &'a str,
    /// The same number where it arrives.
    pub id: u64,
}

/// A format of pictures.
pub trait Canvas {
    /// The fields of an event in the form of the format.
    type Arguments;

    /// Makes them.
    fn arguments(
        &mut self,
        event: &Event<'_>,
        meaning: &mut Meaning,
    ) -> io::Result<Self::Arguments>;

    /// Draws a mark called `name`. `event` is the name of the event where it has another.
    fn mark(
        &mut self,
        mark: &Mark<'_>,
        place: &Place<'_>,
        names: (&str, Option<&str>),
        arguments: &Self::Arguments,
        flows: &[Flow<'_>],
    ) -> io::Result<()>;

    /// Draws an event that comes from this very format; false if it does not.
    fn original(&mut self, _: &Event<'_>, _: Owner, _: &mut Meaning) -> io::Result<bool> {
        Ok(false)
    }

    /// Draws a loss; it is called so, and ended at this time.
    fn loss(&mut self, loss: &Loss, name: &str, time: i64) -> io::Result<()>;

    /// Where to say what cannot be kept.
    fn dropped(&mut self) -> &mut Dropped;
}

/// Draws all events in the order of time, then the losses. `format` is its name in what
/// is said about values that it cannot keep.
///
/// Memory is bounded by classes and machines. Cost: one pass.
pub fn draw<C: Canvas>(source: &dyn Source, canvas: &mut C, format: &str) -> io::Result<()> {
    let mut meanings = Meanings::new(source);
    let mut states = HashMap::new();
    let mut last = 0;
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        last = event.time.0;
        if let Some(meaning) = meanings.of(&event) {
            draw_event(canvas, &event, meaning, &mut states)?;
        }
    }
    for loss in source.losses() {
        let time = loss.interval.end.or(loss.interval.begin).map_or(last, |time| time.0);
        canvas.loss(loss, &loss_text(loss), time)?;
    }
    meanings.lost().note(canvas.dropped(), format);
    Ok(())
}

type States = HashMap<(String, Owner), String>;

fn draw_event<C: Canvas>(
    canvas: &mut C,
    event: &Event<'_>,
    meaning: &mut Meaning,
    states: &mut States,
) -> io::Result<()> {
    let owner = Owner::of(event);
    if canvas.original(event, owner, meaning)? {
        return Ok(());
    }
    let category = find(event, "event.category").and_then(|field| field.as_text());
    let category = category.map_or_else(|| meaning.category.clone(), |text| text.into_owned());
    let place = Place { time: event.time.0, owner, category: &category };
    let arguments = canvas.arguments(event, meaning)?;
    let meaning = &*meaning;
    let own = meaning.name(event);
    let mut flows: Vec<Flow<'_>> = Vec::new();
    for role in &meaning.roles {
        if let Role::Send(keyed) | Role::Receive(keyed) = role {
            let leaves = matches!(role, Role::Send(_));
            flows.push(Flow { leaves, name: &keyed.name, id: key(event, keyed) });
        }
    }
    let mut shown = false;
    for role in &meaning.roles {
        let mut put = |mark: &Mark<'_>, name: &str| {
            let other = (name != own).then_some(own.as_ref());
            // Messages bind to the first mark.
            let flows = if std::mem::replace(&mut shown, true) { &[][..] } else { &flows };
            canvas.mark(mark, &place, (name, other), &arguments, flows)
        };
        match role {
            Role::Begin(keyed) if keyed.keys.is_empty() => put(&Mark::Begin, &keyed.name)?,
            Role::End(keyed) if keyed.keys.is_empty() => put(&Mark::End, &keyed.name)?,
            Role::Begin(keyed) => put(&Mark::Open(key(event, keyed)), &keyed.name)?,
            Role::End(keyed) => put(&Mark::Close(key(event, keyed)), &keyed.name)?,
            Role::Span { name, duration } => {
                if let Some(nanos) = find(event, duration).and_then(number) {
                    put(&Mark::Whole(nanos), name)?;
                }
            }
            Role::State { name, field } => {
                let Some(label) = find(event, field).map(state_name) else { continue };
                let machine = (name.clone(), owner);
                let before = states.get(&machine).map(String::as_str);
                put(&Mark::State(name, before), &label)?;
                if states.len() < MAX_MACHINES || before.is_some() {
                    states.insert(machine, label);
                }
            }
            Role::Counter { field } => {
                let Some(value) = find(event, field).and_then(level) else { continue };
                // A class with one counter is that counter.
                let only = meaning.roles.len() == 1;
                let mark = Mark::Level(field, value, only);
                canvas.mark(&mark, &place, (&own, None), &arguments, &[])?;
                // If the event has nothing else, it need not be shown twice.
                let fields = event.payload().map_or(0, |fields| fields.into_iter().count());
                shown |= fields <= meaning.roles.len();
            }
            Role::Send(_) | Role::Receive(_) => (),
        }
    }
    if !shown {
        canvas.mark(&Mark::Instant, &place, (&own, None), &arguments, &flows)?;
    }
    Ok(())
}

/// A duration or another whole number.
fn number(field: lateralis_model::Field<'_>) -> Option<u64> {
    match field.value() {
        Value::Optional(Some(field)) | Value::Variant(_, field) => number(field),
        _ => field.as_u64(),
    }
}

fn state_name(field: lateralis_model::Field<'_>) -> String {
    match (field_label(field), field.as_text(), number(field)) {
        (Some(label), ..) => label.to_owned(),
        (_, Some(text), _) => text.into_owned(),
        (.., Some(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// The name of a process, where there is one.
pub fn process_name(source: &dyn Source, pid: u32) -> Option<String> {
    let known = source.names().processes.get(&pid).cloned();
    known.or_else(|| (pid == NO_PROCESS).then(|| "no process".to_owned()))
}

/// The name of a line of the picture, where there is one.
pub fn line_name(source: &dyn Source, owner: Owner) -> Option<String> {
    let name = match owner {
        Owner::Thread { tid, .. } => source.names().threads.get(&tid).cloned(),
        Owner::Cpu(cpu) => Some(format!("CPU {cpu}")),
        Owner::Stream(stream) => {
            source.streams().get(stream as usize).map(|stream| stream.name.clone())
        }
    };
    name.filter(|name| !name.is_empty())
}
