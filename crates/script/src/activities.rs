// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From events to activities.
//!
//! For activities declared or made by a function of the script, the
//! pairing is that of declared spans ([`lateralis_analysis::SpanPairer`]): by key, innermost
//! first, the own thread before others; without a key, on the stack of the thread. And so is what missing
//! events do to it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use lateralis_analysis::filter::{Context, matches_pattern};
use lateralis_analysis::{Edge, Gaps, NOBODY, PairedSpan, Side, SpanInRun, SpanPairer, SpanSink};
use lateralis_model::{Event, StreamIndex, Writer};
use lateralis_units::Nanos;
use rquickjs::function::Opt;
use rquickjs::{Ctx, Exception, Function, Object, Value};

use crate::engine::Engine;
use crate::error::ScriptError;
use crate::expression::Expression;
use crate::objects;
use crate::scalar::Scalar;
use crate::script::{Decode, KeyOf, Kind, Script, SideOf};

/// What a function may say of one event.
const SAID_MAX: usize = 10_000;
/// Attributes of an activity.
const ATTRIBUTES_MAX: usize = 64;
/// Bytes of the name of one.
const NAME_MAX: usize = 256;

/// A sequence of events that belong together, with its duration.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// Index of its kind in [`Activities::kinds`].
    pub kind: usize,
    /// Its key; empty if the thread is the key.
    pub key: Vec<Scalar>,
    /// Its two ends.
    pub begin: End,
    /// The other.
    pub end: End,
    /// What the script says of it: of its beginning, then of its end.
    pub attributes: Vec<(Arc<str>, Scalar)>,
    /// Whether it is one if missing events are put back.
    pub is_certain: bool,
}

/// An end of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Time of the event.
    pub time: Nanos,
    /// The thread.
    pub writer: Option<Writer>,
    /// The processor.
    pub cpu: Option<u32>,
    /// The caller's identifier of the event.
    pub tag: u64,
}

impl Activity {
    /// Duration; 0 if the clocks of two CPUs disagree about the order of its ends.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end.time.since(self.begin.time).max(0) as u64
    }
}

type Attributes = Vec<(Arc<str>, Scalar)>;

/// What an event does to activities.
#[derive(Debug)]
pub enum Step<'a> {
    /// One has begun, and may end.
    Begins {
        /// Identifies it among all others that begin.
        number: u64,
        /// As [`Activity::kind`].
        kind: usize,
        /// As [`Activity::key`].
        key: &'a [Scalar],
        /// Its beginning.
        at: End,
    },
    /// One is whole.
    Ends {
        /// Attributes given at the begin, if any.
        number: Option<u64>,
        /// All of it.
        activity: Activity,
    },
}

/// What a beginning carries until its end.
#[derive(Debug)]
struct Begun {
    key: Vec<Scalar>,
    writer: Option<Writer>,
    cpu: Option<u32>,
    tag: u64,
    attributes: Attributes,
}

/// Of one kind of activities.
#[derive(Default)]
struct KindState {
    /// Numbers of keys that are not one integer ≥ 0.
    values: HashMap<Vec<Scalar>, u64>,
    open: u64,
    orphans: u64,
}

/// Bytes that keys, attributes and open activities take, about.
#[derive(Default)]
struct Held(u64);

impl Held {
    const MAX: u64 = 1 << 30;

    fn of(key: &[Scalar], attributes: &Attributes) -> u64 {
        let text = |value: &Scalar| if let Scalar::Text(text) = value { text.len() } else { 0 };
        let keys: usize = key.iter().map(|value| 32 + text(value)).sum();
        let named = attributes.iter().map(|(name, value)| 64 + name.len() + text(value));
        (200 + keys + named.sum::<usize>()) as u64
    }

    fn add(&mut self, bytes: u64, engine: &Engine) -> Result<(), ScriptError> {
        self.0 += bytes;
        if self.0 > Self::MAX {
            let message = format!(
                "open activities and different keys take more than {} MiB: does the script \
                 end what it begins?",
                Self::MAX >> 20
            );
            return Err(engine.error(message));
        }
        Ok(())
    }
}

/// Where functions leave what they say of an event.
pub(crate) type SaidList = Rc<RefCell<Vec<Said>>>;

/// What is said of an event.
pub(crate) struct Said {
    kind: usize,
    what: What,
    key: Vec<Scalar>,
    attributes: Attributes,
}

enum What {
    Side(Side),
    Whole(Nanos, Nanos),
}

/// Gathers the activities of a script, event by event in the order of time.
pub struct Activities {
    pairing: Pairing,
    /// By stream class and class, for each kind that is declared: whether its patterns
    /// allow that the class begins or ends it.
    classes: HashMap<(u32, u32), Vec<(bool, bool)>>,
}

/// What begins and ends, of all kinds.
struct Pairing {
    /// Two kinds for each: with keys that are one integer ≥ 0 or none, and with other keys.
    pairer: SpanPairer<u64>,
    kinds: Vec<KindState>,
    /// By their numbers.
    begun: HashMap<u64, Begun>,
    /// Ends that came before their beginnings, by their numbers.
    early: HashMap<u64, (End, Attributes)>,
    held: Held,
    /// Activities that began.
    begun_count: u64,
    /// Ends.
    end_count: u64,
}

/// What an end does.
#[derive(Default)]
struct Ended {
    pair: Option<PairedSpan<u64>>,
    /// Numbers of ends to which no beginning comes any more.
    orphans: Vec<u64>,
}

impl SpanSink<u64> for Ended {
    fn pairs(&mut self, paired: &PairedSpan<u64>) {
        self.pair = Some(*paired);
    }

    // Nothing comes in runs here.
    fn pairs_in_run(&mut self, _: &SpanInRun) {}

    fn orphan(&mut self, _: u32, _: &Edge, number: u64) {
        self.orphans.push(number);
    }
}

impl Activities {
    /// Of a script; nothing is missing in the trace, or see [`Activities::set_gaps`].
    #[must_use]
    pub fn new(script: &Script) -> Self {
        let all = (Nanos(i64::MIN), Nanos(i64::MAX));
        let pairing = Pairing {
            pairer: SpanPairer::new(all, Gaps::default(), false),
            kinds: script.kinds.iter().map(|_| KindState::default()).collect(),
            begun: HashMap::new(),
            early: HashMap::new(),
            held: Held::default(),
            begun_count: 0,
            end_count: 0,
        };
        Self { pairing, classes: HashMap::new() }
    }

    /// Where events are missing, as far as that is known by now.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.pairing.pairer.set_gaps(gaps);
    }

    /// Takes the next event, in the order of time, which happened `at` a time, in a thread
    /// and on a processor as far as these are known; `found` gets the activities it ends.
    ///
    /// # Errors
    /// What the script throws, or that it takes too much; then it is not to be asked again.
    ///
    /// Cost: of declared activities a look-up, and of events that begin or end one a
    /// walk over the fields that it names.
    pub fn event(
        &mut self,
        script: &mut Script,
        event: &Event<'_>,
        at: End,
        context: &Context<'_>,
        found: &mut dyn FnMut(Activity),
    ) -> Result<(), ScriptError> {
        self.steps(script, event, at, context, &mut |step| {
            if let Step::Ends { activity, .. } = step {
                found(activity);
            }
        })
    }

    /// Variant for callers that need open activities.
    ///
    /// # Errors
    /// As [`Activities::event`].
    pub fn steps(
        &mut self,
        script: &mut Script,
        event: &Event<'_>,
        at: End,
        context: &Context<'_>,
        see: &mut dyn FnMut(Step<'_>),
    ) -> Result<(), ScriptError> {
        let engine = &script.engine;
        engine.refill();
        let class = (event.stream_class_index, event.class_index);
        let allowed = self.classes.entry(class).or_insert_with(|| {
            script.kinds.iter().map(|kind| sides(kind, &event.class.name)).collect()
        });
        for (index, kind) in script.kinds.iter().enumerate() {
            match &kind.decode {
                Decode::Declared { begin, end, key, attributes } => {
                    // An event that does both ends the last and begins the next.
                    for (of, side, is_allowed) in
                        [(end, Side::End, allowed[index].1), (begin, Side::Begin, allowed[index].0)]
                    {
                        if !is_allowed || !holds(of, engine, event, context)? {
                            continue;
                        }
                        let said = Said {
                            kind: index,
                            what: What::Side(side),
                            key: key_of(&kind.name, key, engine, event, context)?,
                            attributes: attributes_of(attributes, event, context),
                        };
                        self.pairing.take(said, (at, event.stream), engine, see)?;
                    }
                }
                Decode::Function(function, handle) => {
                    let result: Result<(), ScriptError> = engine.with(|ctx| {
                        let object = objects::event(ctx, event, context)?;
                        let handle = handle.clone().restore(ctx)?;
                        Engine::call::<_, Value<'_>>(ctx, function, (object, handle)).map(drop)
                    });
                    let all = std::mem::take(&mut *script.said.borrow_mut());
                    result?;
                    for said in all {
                        self.pairing.take(said, (at, event.stream), engine, see)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// For each kind: unfinished activities, and ends without a begin.
    pub fn left_over(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.pairing.kinds.iter().map(|kind| (kind.open, kind.orphans))
    }
}

impl Script {
    /// Names of the kinds of activities, in the order of the script.
    pub fn activity_names(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        self.kinds.iter().map(|kind| kind.name.as_str())
    }
}

/// Whether the patterns of a kind allow that events of this name begin and end it.
fn sides(kind: &Kind, name: &str) -> (bool, bool) {
    let Decode::Declared { begin, end, .. } = &kind.decode else {
        return (false, false);
    };
    let allows = |side: &SideOf| {
        side.patterns.is_empty() || side.patterns.iter().any(|p| matches_pattern(p, name))
    };
    (allows(begin), allows(end))
}

fn holds(
    side: &SideOf,
    engine: &Engine,
    event: &Event<'_>,
    context: &Context<'_>,
) -> Result<bool, ScriptError> {
    side.test.as_ref().map_or(Ok(true), |test| test.holds(engine, event, context))
}

fn key_of(
    name: &str,
    key: &KeyOf,
    engine: &Engine,
    event: &Event<'_>,
    context: &Context<'_>,
) -> Result<Vec<Scalar>, ScriptError> {
    let what = || format!("the key of the activity `{name}`");
    match key {
        KeyOf::Thread => Ok(Vec::new()),
        KeyOf::Fields(fields) => fields
            .iter()
            .map(|field| {
                let value = field.value_of(event, context).and_then(Scalar::of);
                value.ok_or_else(|| engine.error(format!("{} is neither number nor text", what())))
            })
            .collect(),
        KeyOf::Function(test) => {
            let plan = test.plan.as_ref().ok();
            let value = plan.and_then(|plan| plan.value_of(event, context)).and_then(Scalar::of);
            match value {
                Some(value) => Ok(vec![value]),
                None => engine.with(|ctx| {
                    let object = objects::event(ctx, event, context)?;
                    let value: Value<'_> = Engine::call(ctx, &test.function, (object,))?;
                    Ok(vec![objects::scalar(ctx, &what(), &value)?])
                }),
            }
        }
    }
}

fn attributes_of(
    wanted: &[(String, Expression)],
    event: &Event<'_>,
    context: &Context<'_>,
) -> Attributes {
    let value = |(name, field): &(String, Expression)| {
        let value = field.value_of(event, context).and_then(Scalar::of)?;
        (value != Scalar::Nothing).then(|| (Arc::from(name.as_str()), value))
    };
    wanted.iter().filter_map(value).collect()
}

/// The thread on a CPU whose running thread is unknown, as for declared spans: one thread per CPU,
/// different from those of other CPUs. Numbers of threads are below 2²² (`PID_MAX_LIMIT`,
/// `include/linux/threads.h`).
fn nobody_on(cpu: u32) -> Writer {
    Writer { pid: NOBODY, tid: 1 << 31 | cpu }
}

impl Pairing {
    fn take(
        &mut self,
        said: Said,
        (at, stream): (End, StreamIndex),
        engine: &Engine,
        see: &mut dyn FnMut(Step<'_>),
    ) -> Result<(), ScriptError> {
        let End { time, writer, cpu, tag } = at;
        let kind = said.kind;
        let side = match said.what {
            What::Side(side) => side,
            What::Whole(begin, end) => {
                let is_certain = !self.pairer.certainty().gaps().touch(begin, end);
                let end_at = |time| End { time, ..at };
                let (begin, end) = (end_at(begin), end_at(end));
                let Said { key, attributes, .. } = said;
                let activity = Activity { kind, key, begin, end, attributes, is_certain };
                see(Step::Ends { number: None, activity });
                return Ok(());
            }
        };
        let of_kind = &mut self.kinds[kind];
        let (is_number, key) = match said.key.as_slice() {
            [] => (true, None),
            [Scalar::Integer(value)] if u64::try_from(*value).is_ok() => {
                (true, Some(*value as u64))
            }
            _ => {
                let next = of_kind.values.len() as u64;
                if !of_kind.values.contains_key(&said.key) {
                    self.held.add(Held::of(&said.key, &Attributes::new()), engine)?;
                }
                (false, Some(*of_kind.values.entry(said.key.clone()).or_insert(next)))
            }
        };
        let edge = Edge { time, side, key, writer: writer.or(cpu.map(nobody_on)) };
        let of_pairer = 2 * kind as u32 + u32::from(!is_number);
        let number = match side {
            Side::Begin => self.begun_count,
            Side::End => self.end_count,
        };
        let mut ended = Ended::default();
        self.pairer.push(of_pairer, edge, (stream.0, number), &mut ended);
        for orphan in &ended.orphans {
            if let Some((_, attributes)) = self.early.remove(orphan) {
                self.held.0 = self.held.0.saturating_sub(Held::of(&[], &attributes));
            }
        }
        if side == Side::Begin {
            self.begun_count += 1;
            see(Step::Begins { number, kind, key: &said.key, at });
            // It may have ended at the same time, in a stream that comes first.
            let end = ended.pair.and_then(|pair| Some((pair, self.early.remove(&pair.end_tag)?)));
            let Some((PairedSpan { is_certain, .. }, (end, of_end))) = end else {
                of_kind.open += 1;
                self.held.add(Held::of(&said.key, &said.attributes), engine)?;
                let begun = Begun { key: said.key, writer, cpu, tag, attributes: said.attributes };
                self.begun.insert(number, begun);
                return Ok(());
            };
            of_kind.orphans = of_kind.orphans.saturating_sub(1);
            self.held.0 = self.held.0.saturating_sub(Held::of(&[], &of_end));
            let attributes = joined(said.attributes, of_end);
            let activity = Activity { kind, key: said.key, begin: at, end, attributes, is_certain };
            see(Step::Ends { number: Some(number), activity });
            return Ok(());
        }
        self.end_count += 1;
        let Some(PairedSpan { span, tag: number, is_certain, .. }) = ended.pair else {
            of_kind.orphans += 1;
            if !ended.orphans.contains(&number) {
                self.held.add(Held::of(&[], &said.attributes), engine)?;
                self.early.insert(number, (at, said.attributes));
            }
            return Ok(());
        };
        of_kind.open -= 1;
        let Some(begun) = self.begun.remove(&number) else { return Ok(()) };
        self.held.0 = self.held.0.saturating_sub(Held::of(&begun.key, &begun.attributes));
        let attributes = joined(begun.attributes, said.attributes);
        let Begun { writer, cpu, tag, .. } = begun;
        let begin = End { time: span.begin.time, writer, cpu, tag };
        let activity = Activity { kind, key: begun.key, begin, end: at, attributes, is_certain };
        see(Step::Ends { number: Some(number), activity });
        Ok(())
    }
}

/// Attributes of an activity: of its begin, then those of its end with other names.
fn joined(mut of_begin: Attributes, of_end: Attributes) -> Attributes {
    for (name, value) in of_end {
        if !of_begin.iter().any(|(known, _)| *known == name) {
            of_begin.push((name, value));
        }
    }
    of_begin
}

/// The object with which a function says what begins and ends.
pub(crate) fn handle<'js>(
    ctx: &Ctx<'js>,
    kind: usize,
    all: SaidList,
) -> rquickjs::Result<Object<'js>> {
    let object = Object::new_proto(ctx.clone(), None)?;
    for (name, side) in [("begin", Side::Begin), ("end", Side::End)] {
        let all = Rc::clone(&all);
        let say = move |ctx: Ctx<'js>, key: Opt<Value<'js>>, attributes: Opt<Value<'js>>| {
            say(&ctx, &all, kind, What::Side(side), key.0, attributes.0)
        };
        object.set(name, Function::new(ctx.clone(), say)?.with_name(name)?)?;
    }
    let whole = move |ctx: Ctx<'js>,
                      begin: Value<'js>,
                      end: Value<'js>,
                      key: Opt<Value<'js>>,
                      attributes: Opt<Value<'js>>| {
        let what = What::Whole(time(&ctx, "begin", &begin)?, time(&ctx, "end", &end)?);
        say(&ctx, &all, kind, what, key.0, attributes.0)
    };
    object.set("add", Function::new(ctx.clone(), whole)?.with_name("add")?)?;
    Ok(object)
}

fn time<'js>(ctx: &Ctx<'js>, what: &str, value: &Value<'js>) -> rquickjs::Result<Nanos> {
    match objects::scalar(ctx, what, value)? {
        Scalar::Integer(time) if i64::try_from(time).is_ok() => Ok(Nanos(time as i64)),
        _ => {
            let message = format!("the {what} of an activity is a time in nanoseconds");
            Err(Exception::throw_type(ctx, &message))
        }
    }
}

fn say<'js>(
    ctx: &Ctx<'js>,
    all: &RefCell<Vec<Said>>,
    kind: usize,
    what: What,
    key: Option<Value<'js>>,
    attributes: Option<Value<'js>>,
) -> rquickjs::Result<()> {
    let key = match key {
        None => Vec::new(),
        Some(key) => match objects::scalar(ctx, "the key", &key)? {
            Scalar::Nothing => Vec::new(),
            key => vec![key],
        },
    };
    let mut said = Attributes::new();
    if let Some(attributes) = attributes.filter(|a| !a.is_undefined() && !a.is_null()) {
        let Some(object) = attributes.as_object() else {
            return Err(Exception::throw_type(ctx, "attributes are an object: {bytes: 3}"));
        };
        for property in object.props::<String, Value<'js>>() {
            let (name, value) = property?;
            if said.len() == ATTRIBUTES_MAX {
                let message = format!("an activity has at most {ATTRIBUTES_MAX} attributes");
                return Err(Exception::throw_range(ctx, &message));
            }
            let value = objects::scalar(ctx, "an attribute", &value)?;
            if name.len() > NAME_MAX {
                let message = format!("the name of an attribute has at most {NAME_MAX} bytes");
                return Err(Exception::throw_range(ctx, &message));
            }
            said.push((Arc::from(name), value));
        }
    }
    // The script may call this again from a getter: no borrow is held until here.
    let mut all = all.borrow_mut();
    if all.len() == SAID_MAX {
        let message = format!("more than {SAID_MAX} beginnings and ends for one event");
        return Err(Exception::throw_range(ctx, &message));
    }
    all.push(Said { kind, what, key, attributes: said });
    Ok(())
}
