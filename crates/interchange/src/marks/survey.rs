// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first walk over a trace with marks: which kinds of marks there are, and what ends end.

use std::collections::HashMap;

use lateralis_model::role::{self, CATEGORY, PHASE};
use lateralis_model::{
    Attribute, Base, Event, EventClass, FieldClass, Look, Member, Seen, Source, Trace,
};

use super::source::{End, Kinds, Place, key_of, text_of, thread_of};
use super::{CATEGORY_OF_MARKS, Mark, roles};
use crate::dynamic::{Dynamic, Ends, Lane};
use crate::phases::{self, Track};

/// Kinds of marks: a program may put a number into each name.
const KINDS_MAX: usize = 1 << 16;

/// What the walk finds.
pub struct Found {
    /// The classes of the trace, followed by those of marks.
    pub trace: Trace,
    pub kinds: Kinds,
    /// The classes of ends without a name, by stream and clock.
    pub ends: Vec<End>,
    /// Processes by thread, from the marks.
    pub processes: HashMap<u32, u32>,
    pub remarks: Vec<String>,
}

/// An end without a name.
struct Unnamed {
    number: u64,
    stream: u32,
    clock: u64,
    place: Place,
    letter: u8,
}

struct Walk<'t> {
    trace: &'t mut Trace,
    kinds: Kinds,
    count: usize,
    /// By stream class: the number of its next class.
    next_ids: HashMap<u32, u64>,
    edges: Ends<Track>,
    unnamed: Vec<Unnamed>,
    unnamed_max: usize,
    number: u64,
    processes: HashMap<u32, u32>,
    /// Marks that stay texts: too many names, or ends.
    refused: u64,
}

/// Looks at all marks of a trace; `is_text` says which classes may hold some. `None` if there is
/// none.
///
/// Cost: a walk over the trace; memory for the names of marks, and up to `limit_bytes` for spans.
pub fn survey(
    source: &dyn Source,
    is_text: &dyn Fn(Place) -> bool,
    limit_bytes: u64,
) -> Option<Found> {
    let mut trace = source.trace().clone();
    let unnamed_max = usize::try_from(limit_bytes / 4).unwrap_or(usize::MAX) / size_of::<Unnamed>();
    let mut walk = Walk {
        trace: &mut trace,
        kinds: Kinds::default(),
        count: 0,
        next_ids: HashMap::new(),
        edges: Ends::new(limit_bytes / 4 * 3),
        unnamed: Vec::new(),
        unnamed_max,
        number: 0,
        processes: HashMap::new(),
        refused: 0,
    };
    let look = |stream_class, class| match is_text((stream_class, class)) {
        true => Look::Whole,
        false => Look::Ends,
    };
    // Damage is found again when the events are read.
    source.survey(&look, &mut |seen| {
        if let Seen::Event(event) = seen
            && is_text((event.stream_class_index, event.class_index))
        {
            walk.event(event);
        }
    });
    let ends = walk.name_ends();
    let Walk { kinds, count, processes, refused, .. } = walk;
    let mut remarks = Vec::new();
    if refused > 0 {
        remarks.push(format!(
            "{refused} marks of programs stay texts: more than {KINDS_MAX} names, or more ends \
             than fit into the memory they may take"
        ));
    }
    (count > 0).then_some(Found { trace, kinds, ends, processes, remarks })
}

impl Walk<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let Some(mark) = text_of(event).and_then(Mark::parse) else { return };
        let place = (event.stream_class_index, event.class_index);
        let thread = thread_of(event);
        if let (Some(tid), Some(pid)) = (thread, mark.pid) {
            self.processes.entry(tid).or_insert(pid);
        }
        let number = self.number;
        self.number += 1;
        if let Some(begins) = mark.begins() {
            let edge = Dynamic {
                lane: Lane::Global,
                tag: 0,
                category: "".into(),
                name: mark.name.into(),
                time: event.time.0,
                writer: None,
                context: Vec::new(),
                payload: Vec::new(),
            };
            // Not every trace knows the thread; the mark has its process.
            let track = match thread {
                Some(tid) => mark.track(0, tid),
                None => mark.track(mark.pid.unwrap_or(0), 0),
            };
            self.edges.add(number, track, &edge, begins);
            if !begins && mark.name.is_empty() {
                if self.unnamed.len() >= self.unnamed_max {
                    self.refused += 1;
                    return;
                }
                let (stream, clock) = key_of(event);
                self.unnamed.push(Unnamed { number, stream, clock, place, letter: mark.letter });
                return;
            }
        }
        if self.class(place, mark.letter, mark.name).is_none() {
            self.refused += 1;
        }
    }

    fn name_ends(&mut self) -> Vec<End> {
        let edges = std::mem::replace(&mut self.edges, Ends::new(0));
        if edges.has_unnamed() {
            self.refused += edges.refused;
        }
        let mut names = edges.names();
        let mut ends = Vec::new();
        for end in std::mem::take(&mut self.unnamed) {
            // Where nothing was open, the end stays what it is: a text.
            let class = match names.get(end.number) {
                Some((name, _)) => {
                    let class = self.class(end.place, end.letter, name);
                    self.refused += u64::from(class.is_none());
                    class
                }
                None => None,
            };
            ends.push(End { stream: end.stream, clock: end.clock, class });
        }
        ends
    }

    /// The class of a kind of mark, made if it is new; `None` if there are too many.
    fn class(&mut self, place: Place, letter: u8, name: &str) -> Option<u32> {
        let known = self.kinds.entry((place, letter)).or_default();
        if let Some(class) = known.get(name) {
            return Some(*class);
        }
        if self.count >= KINDS_MAX {
            return None;
        }
        let classes = &mut self.trace.stream_classes.get_mut(place.0 as usize)?.event_classes;
        let mut class = class_of(classes.get(place.1 as usize)?, letter, name);
        let next = self.next_ids.entry(place.0).or_insert_with(|| {
            classes.iter().map(|class| class.id).max().map_or(0, |id| id.saturating_add(1))
        });
        class.id = *next;
        *next = next.saturating_add(1);
        let index = u32::try_from(classes.len()).ok()?;
        classes.push(class);
        self.count += 1;
        known.insert(name.to_owned(), index);
        Some(index)
    }
}

/// What a mark says beside its text, in the order in which [`super::source`] gives the values.
pub fn values(letter: u8) -> &'static [&'static str] {
    match letter {
        b'C' => &["value"],
        b'S' | b'F' => &["cookie", "process"],
        b'G' | b'H' => &["cookie", "track", "process"],
        b'N' => &["track", "process"],
        b'I' => &["process"],
        _ => &[],
    }
}

/// The class of marks in texts of another class.
fn class_of(text: &EventClass, letter: u8, name: &str) -> EventClass {
    let mut members: Vec<Member> =
        text.payload.iter().flat_map(|class| class.members()).cloned().collect();
    let mut given = Vec::new();
    for value in values(letter) {
        let class = match *value {
            "value" => FieldClass::i64(),
            "process" => FieldClass::unsigned(32, Base::Decimal),
            _ => FieldClass::text(),
        };
        let mut name = (*value).to_owned();
        while members.iter().any(|member| member.name == name) {
            name.insert_str(0, "mark_");
        }
        given.push(name.clone());
        members.push(Member { name, class });
    }
    let value = given.first().cloned().unwrap_or_default();
    let (roles, word) = roles(letter, name, given, &value);
    let plain = |name: &str, value: &str| Attribute { name: name.to_owned(), value: value.into() };
    let own = text.attributes.iter().filter(|own| own.name != role::ATTRIBUTE).cloned();
    let said = [plain(CATEGORY, CATEGORY_OF_MARKS)].into_iter();
    let said = said.chain(word.map(|word| plain(PHASE, word)));
    EventClass {
        id: 0,
        name: name.to_owned(),
        context: text.context.clone(),
        payload: Some(FieldClass::structure(members.into_iter().map(|m| (m.name, m.class)))),
        attributes: own.chain(said).chain(phases::attributes(&roles)).collect(),
    }
}
