// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first walk: which kinds of events there are, and what their fields are.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use lateralis_model::{
    Attribute, Builder, Clock, EventClass, FieldClass, StreamClass, StreamIndex,
};
use lateralis_units::CpuId;

use super::shape::{Dict, Plan};
use super::{Dyn, Dynamic, Fill, Lane, Named, Sink};

/// Number of kinds of events that are separated by name. Further names share one class of their
/// tag, with the name as a field.
const MAX_CLASSES: usize = 10_000;
/// Names of fields that are kept in all classes together.
const MAX_NAMES: usize = 200_000;

/// Name of a class shared by many kinds.
const OTHER: &str = "(other)";

/// What an importer knows about a kind of event once all its fields are known.
pub struct ClassText<'a> {
    /// As in [`Dynamic`].
    pub tag: u32,
    /// As in [`Dynamic`].
    pub name: &'a str,
    /// The fields of its context.
    pub context: &'a FieldClass,
    /// Its own fields.
    pub payload: &'a FieldClass,
}

#[derive(Debug)]
pub(super) struct Kind {
    lane: usize,
    tag: u32,
    category: String,
    name: String,
    other: bool,
    context: Dict,
    /// `None` once it is kept as JSON text.
    payload: Option<Dict>,
}

type ByName = HashMap<String, HashMap<String, usize>>;

/// Index of kinds by lane, tag, category and name.
#[derive(Debug, Default)]
pub(super) struct Index {
    kinds: HashMap<(usize, u32), ByName>,
    others: HashMap<(usize, u32), usize>,
}

impl Index {
    /// The kind of an event, and whether it is shared by many.
    pub fn find(&self, event: &Dynamic<'_>) -> Option<(usize, bool)> {
        let place = (event.lane.number(), event.tag);
        let named = self.kinds.get(&place).and_then(|by_category| {
            by_category.get(event.category.as_ref())?.get(event.name.as_ref())
        });
        match named {
            Some(&kind) => Some((kind, false)),
            None => self.others.get(&place).map(|&kind| (kind, true)),
        }
    }
}

/// Learns the kinds of events.
#[derive(Debug, Default)]
pub struct Survey {
    pub(super) index: Index,
    kinds: Vec<Kind>,
    names: usize,
    named_kinds: usize,
    earliest: i64,
    cpus: BTreeSet<(usize, u32)>,
    lanes: BTreeSet<usize>,
    /// Number of events.
    pub events: u64,
}

/// Context fields of an event of a shared class.
pub(super) fn other_context<'a>(event: &'a Dynamic<'_>) -> Named<'a> {
    let mut context: Named<'a> = vec![
        ("event.name".into(), Dyn::Text(Cow::Borrowed(&event.name))),
        ("event.category".into(), Dyn::Text(Cow::Borrowed(&event.category))),
    ];
    context.extend(event.context.iter().cloned());
    context
}

impl Survey {
    fn kind(&mut self, event: &Dynamic<'_>) -> (usize, bool) {
        if let Some((kind, other)) = self.index.find(event)
            && (!other || self.named_kinds >= MAX_CLASSES)
        {
            return (kind, other);
        }
        let other = self.named_kinds >= MAX_CLASSES;
        let number = self.kinds.len();
        let lane = event.lane.number();
        let place = (lane, event.tag);
        let (category, name) = if other {
            self.index.others.insert(place, number);
            (String::new(), OTHER.to_owned())
        } else {
            self.named_kinds += 1;
            let by_category = self.index.kinds.entry(place).or_default();
            let by_name = by_category.entry(event.category.to_string()).or_default();
            by_name.insert(event.name.to_string(), number);
            (event.category.to_string(), event.name.to_string())
        };
        let (context, payload) = (Dict::default(), Some(Dict::default()));
        self.kinds.push(Kind { lane, tag: event.tag, category, name, other, context, payload });
        (number, other)
    }

    /// Ends the walk: adds `clock`, which counts nanoseconds, classes and streams
    /// to `builder`. Times below zero move the clock's zero. `attributes` says what a
    /// kind of event means.
    pub fn finish(
        self,
        mut builder: Builder,
        clock: Clock,
        attributes: impl Fn(&ClassText<'_>) -> Vec<Attribute>,
    ) -> Fill {
        let origin = self.earliest;
        let ticks = clock.offset_ticks().saturating_add(origin);
        let mut moved = Clock::new(&clock.name, 1_000_000_000, clock.offset_seconds(), ticks);
        moved.description.clone_from(&clock.description);
        moved.unix_epoch = clock.unix_epoch;
        let clock = builder.clock(moved);
        let mut classes = [0u32; 3];
        for &lane in &self.lanes {
            classes[lane] = builder.stream_class(StreamClass {
                name: Some(["global", "threads", "cpus"][lane].to_owned()),
                clock: Some(clock),
                common_context: common_context(lane),
                ..StreamClass::default()
            });
        }
        let mut streams = HashMap::new();
        for &lane in self.lanes.iter().filter(|&&lane| lane < 2) {
            let name = ["global", "threads"][lane];
            streams.insert((lane, 0), builder.stream(classes[lane], name, None));
        }
        for &(lane, cpu) in &self.cpus {
            let name = format!("cpu{cpu}");
            streams.insert((lane, cpu), builder.stream(classes[lane], &name, Some(CpuId(cpu))));
        }
        let plans = self
            .kinds
            .iter()
            .map(|kind| {
                let (class, plans) = kind.finish(&attributes);
                (builder.event_class(classes[kind.lane], class), plans)
            })
            .collect();
        Fill::new(builder, self.index, plans, streams, origin)
    }
}

fn common_context(lane: usize) -> Option<FieldClass> {
    let number = || FieldClass::unsigned(32, lateralis_model::Base::Decimal);
    let names: &[&str] = match lane {
        1 => &["pid", "tid"],
        2 => &["cpu_id", "pid", "tid"],
        _ => return None,
    };
    Some(FieldClass::structure(names.iter().map(|&name| (name, number()))))
}

impl Kind {
    fn finish(
        &self,
        attributes: &impl Fn(&ClassText<'_>) -> Vec<Attribute>,
    ) -> (EventClass, Plans) {
        let mut json = Vec::new();
        let payload = match &self.payload {
            Some(dict) => dict.finish("", &mut json),
            None => {
                json.push("json".to_owned());
                (FieldClass::structure([("json", FieldClass::text())]), Plan::Json)
            }
        };
        let mut context = self.context.clone();
        // A field of the author's may have the name of one of the format's.
        for member in &mut context.members {
            if payload.0.members().iter().any(|own| own.name == member.name) {
                member.name = format!("event.{}", member.name);
            }
        }
        let (class, plan) = context.finish("", &mut json);
        // Values come under the names that the format uses.
        let plan = match plan {
            Plan::Dict(mut plans) => {
                for (plan, member) in plans.iter_mut().zip(&self.context.members) {
                    plan.name.clone_from(&member.name);
                }
                Plan::Dict(plans)
            }
            other => other,
        };
        let text =
            ClassText { tag: self.tag, name: &self.name, context: &class, payload: &payload.0 };
        let mut attributes = attributes(&text);
        let note = |name: &str, value: &str| Attribute { name: name.into(), value: value.into() };
        if !self.category.is_empty() {
            attributes.push(note(crate::CATEGORY, &self.category));
        }
        if self.other {
            attributes.push(note(crate::NAME_FIELD, "event.name"));
        }
        attributes.extend(json.iter().map(|path| note(crate::JSON_FIELD, path)));
        let has_context = !class.members().is_empty();
        let event = EventClass {
            id: 0,
            name: self.name.clone(),
            context: has_context.then_some(class),
            payload: Some(payload.0),
            attributes,
        };
        (event, Plans { context: has_context.then_some(plan), payload: payload.1 })
    }
}

/// How to add an event of a class.
#[derive(Debug)]
pub(super) struct Plans {
    pub context: Option<Plan>,
    pub payload: Plan,
}

/// Where the events of each lane go.
pub(super) type Streams = HashMap<(usize, u32), StreamIndex>;

impl Sink for Survey {
    fn event(&mut self, event: &Dynamic<'_>) {
        self.events += 1;
        self.earliest = self.earliest.min(event.time);
        self.lanes.insert(event.lane.number());
        if let Lane::Cpu(cpu) = event.lane {
            self.cpus.insert((event.lane.number(), cpu));
        }
        let (number, other) = self.kind(event);
        let mut budget = MAX_NAMES.saturating_sub(self.names);
        let before = budget;
        let kind = &mut self.kinds[number];
        if other {
            kind.context.add(&other_context(event), 1, &mut budget);
        } else {
            // Contexts are made by importers, so their names are few.
            kind.context.add(&event.context, 1, &mut budget);
        }
        if let Some(payload) = &mut kind.payload
            && !payload.add(&event.payload, 1, &mut budget)
        {
            kind.payload = None;
        }
        self.names += before - budget;
    }
}
