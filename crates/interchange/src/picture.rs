// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the formats of pictures (Chrome JSON, Perfetto, FXT) have in common: each event
//! becomes the marks that its clauses ask for, or an instant where it has none.

mod nesting;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use lateralis_model::role::Role;
use lateralis_model::{Dropped, Event, Loss, Source, Value};

use crate::json::{field_label, find};
use crate::meaning::{Level, Meaning, Meanings, NO_PROCESS, Owner, key, level, loss_text};
use nesting::Nesting;

/// Machines whose state is remembered, so that it can be ended.
const MAX_MACHINES: usize = 100_000;
/// Marks at one time that are put in order.
const MAX_AT_ONCE: usize = 100_000;

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

/// Where a span lies: spans on one lane nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Lane {
    /// 0 is the line of its thread. Spans that overlap others of the thread have further ones.
    pub index: u32,
    /// A number that no other span has that is drawn.
    pub span: u64,
}

/// What is drawn.
#[derive(Debug, Clone)]
pub enum Mark {
    /// A point.
    Instant,
    /// A span begins that belongs to its thread.
    Begin(Lane),
    /// It ends.
    End(Lane),
    /// A complete span with its duration in nanoseconds.
    Whole(u64, Lane),
    /// Begin of a span that belongs to no thread, identified by its number.
    Open(u64),
    /// It ends. With the owner of its beginning, if that is another.
    Close(u64, Option<Owner>),
    /// A counter sample, and the field that contains it; the last is whether it is the only one of
    /// its kind of event.
    Level(String, Level, bool),
    /// A machine enters the state that is the name of the mark; it was in another.
    State(String, Option<String>),
    /// An event that comes from the format that is written, as it is written there.
    Original(Vec<u8>),
}

/// A message that leaves or arrives at a mark.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Whether it leaves.
    pub leaves: bool,
    /// Its kind.
    pub name: String,
    /// The same number where it arrives.
    pub id: u64,
}

/// A format of pictures.
pub trait Canvas {
    /// The fields of an event in the form of the format.
    type Arguments: Default;

    /// Whether a whole span is drawn as a beginning, and an end that is asked for when its time
    /// has come.
    const ENDS_WHOLE: bool = false;

    /// Whether readers take whole spans before beginnings of the same time, which may be longer.
    const WHOLE_FIRST: bool = false;

    /// Makes them.
    fn arguments(
        &mut self,
        event: &Event<'_>,
        meaning: &mut Meaning,
    ) -> io::Result<Self::Arguments>;

    /// Draws a mark called `name`. `event` is the name of the event where it has another.
    fn mark(
        &mut self,
        mark: &Mark,
        place: &Place<'_>,
        names: (&str, Option<&str>),
        arguments: &Self::Arguments,
        flows: &[Flow],
    ) -> io::Result<()>;

    /// Draws the end of a whole span.
    fn end_whole(&mut self, _time: i64, _owner: Owner, _lane: Lane) -> io::Result<()> {
        Ok(())
    }

    /// An event that comes from this very format as it is written there; `None` if it does not.
    fn original(&mut self, _: &Event<'_>, _: Owner, _: &mut Meaning) -> Option<Vec<u8>> {
        None
    }

    /// Draws an event that came from this format, a beginning or an end of a span as `mark` says,
    /// on a lane of its own.
    fn beside(
        &mut self,
        _line: &[u8],
        _mark: Mark,
        _place: &Place<'_>,
        _name: &str,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Draws a loss; it is called so, and ended at this time.
    fn loss(&mut self, loss: &Loss, name: &str, time: i64) -> io::Result<()>;

    /// Where to say what cannot be kept.
    fn dropped(&mut self) -> &mut Dropped;
}

/// A mark that waits for the others of its time.
struct Pending<A> {
    mark: Mark,
    time: i64,
    owner: Owner,
    name: String,
    category: String,
    event: Option<String>,
    arguments: Rc<A>,
    flows: Vec<Flow>,
    /// Nanoseconds at which the span ends that it begins.
    end: Option<i64>,
    /// Which span of a thread it begins or ends.
    span: Option<u64>,
    /// Begins and ends a span of the thread as the format wrote it itself.
    original: Option<Edge>,
}

/// What of a span an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Begin,
    End,
    Whole(u64),
}

/// Draws all events in the order of time, then the losses. `format` is its name in what
/// is said about values that it cannot keep.
///
/// Formats of pictures know of a span what lies between a beginning and the next end on a line,
/// so beginnings at one time come longest first, ends innermost first, and what overlaps has lanes
/// of its own.
///
/// Memory is bounded by classes, machines, marks at one time, and eight bytes for each span. Cost:
/// two passes, one if no spans have beginnings and ends.
pub fn draw<C: Canvas>(source: &dyn Source, canvas: &mut C, format: &str) -> io::Result<()> {
    let mut meanings = Meanings::new(source);
    let nesting = Nesting::survey(source, &mut meanings);
    let mut drawing = Drawing {
        canvas,
        nesting,
        states: HashMap::new(),
        pending: Vec::new(),
        unsorted: 0,
        begun: HashMap::new(),
    };
    let mut last = 0;
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        let is_later = event.time.0 != last;
        if is_later || drawing.pending.len() >= MAX_AT_ONCE {
            drawing.unsorted += u64::from(!is_later);
            drawing.flush()?;
        }
        last = event.time.0;
        if let Some(meaning) = meanings.of(&event) {
            drawing.event(&event, meaning)?;
        }
    }
    drawing.finish()?;
    let Drawing { canvas, nesting, unsorted, .. } = drawing;
    for loss in source.losses() {
        let time = loss.interval.end.or(loss.interval.begin).map_or(last, |time| time.0);
        canvas.loss(loss, &loss_text(loss), time)?;
    }
    let dropped = canvas.dropped();
    dropped.note_many(
        &format!("that spans which overlap are of one thread ({format} gets lines of their own)"),
        nesting.overlapping(),
    );
    dropped
        .note_many("the order of events of one time, where they are more than 100,000", unsorted);
    meanings.lost().note(dropped, format);
    Ok(())
}

type States = HashMap<(String, Owner), String>;

struct Drawing<'c, C: Canvas> {
    canvas: &'c mut C,
    nesting: Nesting,
    states: States,
    pending: Vec<Pending<C::Arguments>>,
    unsorted: u64,
    /// When the last beginning was drawn that is no whole span.
    begun: HashMap<Owner, i64>,
}

impl<C: Canvas> Drawing<'_, C> {
    fn event(&mut self, event: &Event<'_>, meaning: &mut Meaning) -> io::Result<()> {
        let owner = Owner::of(event);
        let category = find(event, "event.category").and_then(|field| field.as_text());
        let category = category.map_or_else(|| meaning.category.clone(), Cow::into_owned);
        let time = event.time.0;
        let original = self.canvas.original(event, owner, meaning);
        let arguments = match original {
            Some(_) => C::Arguments::default(),
            None => self.canvas.arguments(event, meaning)?,
        };
        let arguments = Rc::new(arguments);
        let meaning = &*meaning;
        let own = meaning.name(event);
        let pending = |mark, name: &str, flows: Vec<Flow>| Pending {
            mark,
            time,
            owner,
            name: name.to_owned(),
            category: category.clone(),
            event: (name != own).then(|| own.clone().into_owned()),
            arguments: Rc::clone(&arguments),
            flows,
            end: None,
            span: None,
            original: None,
        };
        if let Some(line) = original {
            let edge = meaning.roles.iter().find_map(|role| edge(role, event));
            let name = edge.as_ref().map_or(own.as_ref(), |(name, _)| name);
            let mut mark = pending(Mark::Original(line), name, Vec::new());
            if let Some((name, edge)) = edge {
                mark.original = Some(edge);
                self.join(&mut mark, name, edge);
            }
            self.pending.push(mark);
            return Ok(());
        }
        let mut flows: Vec<Flow> = Vec::new();
        for role in &meaning.roles {
            if let Role::Send(keyed) | Role::Receive(keyed) = role {
                let leaves = matches!(role, Role::Send(_));
                let name = keyed.name.clone();
                flows.push(Flow { leaves, name, id: key(event, keyed) });
            }
        }
        let mut shown = false;
        for role in &meaning.roles {
            // Messages bind to the first mark.
            let mut put = |mark: Mark, name: &str| {
                let shown = std::mem::replace(&mut shown, true);
                let flows = if shown { Vec::new() } else { flows.clone() };
                pending(mark, name, flows)
            };
            if let Some((name, edge)) = edge(role, event) {
                let lane = Lane::default();
                let mut mark = match edge {
                    Edge::Begin => put(Mark::Begin(lane), name),
                    Edge::End => put(Mark::End(lane), name),
                    Edge::Whole(nanos) => put(Mark::Whole(nanos, lane), name),
                };
                self.join(&mut mark, name, edge);
                self.pending.push(mark);
                continue;
            }
            match role {
                Role::Begin(keyed) => {
                    let id = self.nesting.open(key(event, keyed), owner);
                    self.pending.push(put(Mark::Open(id), &keyed.name));
                }
                Role::End(keyed) => {
                    let (id, began) = self.nesting.close(key(event, keyed), owner);
                    let other = began.filter(|began| *began != owner);
                    self.pending.push(put(Mark::Close(id, other), &keyed.name));
                }
                Role::State { name, field, keys } => {
                    let Some(label) = find(event, field).map(state_name) else { continue };
                    let name = with_key(name, event, keys);
                    let machine = (name.clone(), owner);
                    let before = self.states.get(&machine).cloned();
                    let is_known = before.is_some();
                    self.pending.push(put(Mark::State(name.clone(), before), &label));
                    if self.states.len() < MAX_MACHINES || is_known {
                        self.states.insert(machine, label);
                    }
                }
                Role::Counter { field, name, keys } => {
                    let Some(value) = find(event, field).and_then(level) else { continue };
                    // A class with one counter is that counter, unless it has a name of its own.
                    let only = meaning.roles.len() == 1 && name.is_none() && keys.is_empty();
                    let name = with_key(name.as_ref().unwrap_or(field), event, keys);
                    let mark = Mark::Level(name, value, only);
                    self.pending.push(pending(mark, &own, Vec::new()));
                    // If the event has nothing else, it need not be shown twice.
                    let fields = event.payload().map_or(0, |fields| fields.into_iter().count());
                    shown |= fields <= meaning.roles.len();
                }
                Role::Span { .. } | Role::Send(_) | Role::Receive(_) => (),
            }
        }
        if !shown {
            self.pending.push(pending(Mark::Instant, &own, flows));
        }
        Ok(())
    }

    /// Says of a mark which span it begins or ends.
    fn join(&mut self, mark: &mut Pending<C::Arguments>, name: &str, edge: Edge) {
        match edge {
            Edge::Begin => {
                let (span, end) = self.nesting.begin(mark.owner, name, mark.time);
                (mark.span, mark.end) = (Some(span), Some(end));
            }
            Edge::End => mark.span = self.nesting.end(mark.owner, name),
            Edge::Whole(nanos) => {
                let end = mark.time.saturating_add(i64::try_from(nanos).unwrap_or(i64::MAX));
                (mark.span, mark.end) = (Some(self.nesting.whole()), Some(end));
            }
        }
    }

    /// Draws what has gathered at one time.
    fn flush(&mut self) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let Some(time) = pending.first().map(|mark| mark.time) else { return Ok(()) };
        while let Some(end) = self.nesting.whole_before(time) {
            self.canvas.end_whole(end.time, end.owner, end.lane)?;
        }
        if pending.len() == 1 && !self.nesting.ends_whole_at(time) {
            let mark = pending.remove(0);
            return self.put(mark);
        }
        // Begins and ends of equal time, by owner: positions in the trace of the last end and the
        // first begin. Points stay on their side of these.
        let mut edges: HashMap<Owner, (usize, usize)> = HashMap::new();
        for (at, mark) in pending.iter().enumerate() {
            let (last_end, first_begin) = edges.entry(mark.owner).or_insert((0, usize::MAX));
            match (mark.span, mark.end) {
                (Some(_), Some(end)) if end > time => *first_begin = at.min(*first_begin),
                (Some(span), None) if self.nesting.order(span).is_some() => *last_end = at + 1,
                _ => (),
            }
        }
        // Start of each span without length, so that its end follows directly.
        let begins: HashMap<u64, usize> = pending
            .iter()
            .enumerate()
            .filter(|(_, mark)| mark.end.is_some())
            .filter_map(|(at, mark)| Some((mark.span?, at)))
            .collect();
        let rank = |at: usize, mark: &Pending<C::Arguments>| {
            let (last_end, first_begin) = edges.get(&mark.owner).copied().unwrap_or((0, 0));
            let beside = |at: usize| match at {
                at if at < last_end => 0,
                at if at < first_begin => 2,
                _ => 4,
            };
            let longest_first = |end: i64| u64::MAX - (end as u64 ^ 1 << 63);
            match (mark.span, mark.end) {
                (Some(_), Some(end)) if end > time => (3, longest_first(end), at, 0),
                (Some(span), None) => match (self.nesting.order(span), begins.get(&span)) {
                    // Innermost first.
                    (Some(order), _) => (1, u64::MAX - order, at, 0),
                    (None, Some(&begin)) => (beside(begin), 0, begin, 1),
                    (None, None) => (beside(at), 0, at, 0),
                },
                _ => (beside(at), 0, at, 0),
            }
        };
        let mut order: Vec<_> =
            pending.iter().enumerate().map(|(at, mark)| (rank(at, mark), at)).collect();
        order.sort_unstable();
        let mut pending: Vec<_> = pending.into_iter().map(Some).collect();
        for ((rank, inverse, ..), at) in order {
            // Ends of complete spans are between those that are events.
            let until = match rank {
                0 => None,
                1 => Some(u64::MAX - inverse),
                _ => Some(0),
            };
            if let Some(least) = until {
                while let Some(end) = self.nesting.whole_at(time, least) {
                    self.canvas.end_whole(time, end.owner, end.lane)?;
                }
            }
            if let Some(mark) = pending[at].take() {
                self.put(mark)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, mut mark: Pending<C::Arguments>) -> io::Result<()> {
        let span = mark.span;
        let lane = match (span, mark.end) {
            (Some(span), Some(end)) => {
                let is_whole = matches!(mark.mark, Mark::Whole(..))
                    || matches!(mark.original, Some(Edge::Whole(_)));
                let ends_whole = C::ENDS_WHOLE && is_whole;
                let category = if is_whole { "" } else { &mark.category };
                let begun = self.begun.get(&mark.owner) == Some(&mark.time);
                let beside = C::WHOLE_FIRST && is_whole && begun && end > mark.time;
                if !is_whole {
                    self.begun.insert(mark.owner, mark.time);
                }
                let least = usize::from(beside);
                self.nesting.place(mark.owner, span, (mark.time, end), category, ends_whole, least)
            }
            (Some(span), None) => {
                let (lane, category) = self.nesting.leave(span);
                // Readers compare it with that of the beginning.
                mark.category = category;
                lane
            }
            _ => Lane::default(),
        };
        let original = mark.original.filter(|_| lane.index > 0);
        if let Mark::Begin(own) | Mark::End(own) | Mark::Whole(_, own) = &mut mark.mark {
            *own = lane;
        }
        let place = Place { time: mark.time, owner: mark.owner, category: &mark.category };
        let names = (mark.name.as_str(), mark.event.as_deref());
        if let (Mark::Original(line), Some(edge)) = (&mark.mark, original) {
            return self.canvas.beside(line, edge.mark(lane), &place, names.0);
        }
        self.canvas.mark(&mark.mark, &place, names, &mark.arguments, &mark.flows)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        while let Some(end) = self.nesting.whole_before(i64::MAX) {
            self.canvas.end_whole(end.time, end.owner, end.lane)?;
        }
        Ok(())
    }
}

impl Edge {
    fn mark(self, lane: Lane) -> Mark {
        match self {
            Self::Begin => Mark::Begin(lane),
            Self::End => Mark::End(lane),
            Self::Whole(nanos) => Mark::Whole(nanos, lane),
        }
    }
}

/// What of a span of its thread an event is by this role, and the name of the span.
fn edge<'r>(role: &'r Role, event: &Event<'_>) -> Option<(&'r str, Edge)> {
    match role {
        Role::Begin(keyed) if keyed.keys.is_empty() => Some((&keyed.name, Edge::Begin)),
        Role::End(keyed) if keyed.keys.is_empty() => Some((&keyed.name, Edge::End)),
        Role::Span { name, duration } => {
            let nanos = find(event, duration).and_then(number)?;
            Some((name, Edge::Whole(nanos)))
        }
        _ => None,
    }
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

/// A name followed by the values of its keys, as in `lat stats`: `slots[3]`.
fn with_key(name: &str, event: &lateralis_model::Event<'_>, keys: &[String]) -> String {
    if keys.is_empty() {
        return name.to_owned();
    }
    let text = |key: &String| find(event, key).map(state_name).unwrap_or_default();
    format!("{name}[{}]", keys.iter().map(text).collect::<Vec<_>>().join(" "))
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
