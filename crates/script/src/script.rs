// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A script, loaded: its filters and activities, each compiled or to be interpreted.

use std::fmt;
use std::rc::Rc;

use lateralis_analysis::filter::Context;
use lateralis_analysis::filter::columns::{Node, Plan};
use lateralis_model::{Event, EventClass, StreamClass};
use rquickjs::{Coerced, Ctx, Exception, Function, Object, Persistent, Value};

use crate::activities::{SaidList, handle};
use crate::engine::{Callback, Engine, Limits};
use crate::error::ScriptError;
use crate::expression::{Answer, Expression, Piece};
use crate::objects;

/// Bytes of a script.
const SOURCE_MAX: usize = 1 << 20;
/// Filters and activities of a script.
const DECLARED_MAX: usize = 1000;

/// How a function of a script runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// As a plan, without the engine.
    Compiled,
    /// In the engine, because of this.
    Interpreted(String),
}

impl fmt::Display for How {
    /// `compiled`, or `interpreted: REASON`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compiled => f.write_str("compiled"),
            Self::Interpreted(why) => write!(f, "interpreted: {why}"),
        }
    }
}

/// A function of an event.
pub(crate) struct Test {
    pub plan: Result<Expression, String>,
    pub function: Callback,
}

impl Test {
    fn new<'js>(ctx: &Ctx<'js>, function: Function<'js>, text: &str, source: &str) -> Self {
        let plan =
            Expression::of_function(text).map_err(|why| why.what).and_then(|plan| {
                match plan.names_globals() && redefines_globals(source) {
                    true => {
                        Err("`undefined`, `NaN` or `Infinity` may have another meaning".to_owned())
                    }
                    false => Ok(plan),
                }
            });
        Self { plan, function: Persistent::save(ctx, function) }
    }

    pub fn how(&self) -> How {
        match &self.plan {
            Ok(_) => How::Compiled,
            Err(why) => How::Interpreted(why.clone()),
        }
    }

    /// Whether the plan alone may decide.
    pub fn is_compiled(&self) -> bool {
        self.plan.is_ok()
    }

    /// Whether it holds for an event.
    pub fn holds(
        &self,
        engine: &Engine,
        event: &Event<'_>,
        context: &Context<'_>,
    ) -> Result<bool, ScriptError> {
        match self.plan.as_ref().map(|plan| plan.holds(event, context)) {
            Ok(Answer::Yes) => Ok(true),
            Ok(Answer::No) => Ok(false),
            Ok(Answer::Ask) | Err(_) => engine.with(|ctx| {
                let object = objects::event(ctx, event, context)?;
                let value: Value<'_> = Engine::call(ctx, &self.function, (object,))?;
                truth(ctx, value)
            }),
        }
    }
}

/// Whether a value counts as true. An async function would keep everything.
fn truth<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<bool> {
    if value.is_promise() {
        return Err(Exception::throw_type(ctx, "an async function cannot decide about events"));
    }
    Ok(value.get::<Coerced<bool>>()?.0)
}

/// Whether a script may have given `undefined`, `NaN` or `Infinity` another meaning than
/// they have: only as names of its own can they get one. Says yes where that is not sure.
fn redefines_globals(source: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '\\');
    if source.contains("eval") || source.contains("Function") || source.contains('\\') {
        return true;
    }
    ["undefined", "NaN", "Infinity"].iter().any(|name| {
        source.match_indices(name).any(|(at, _)| {
            let (before, after) = (&source[..at], &source[at + name.len()..]);
            if before.ends_with(is_part) || after.starts_with(is_part) {
                return false;
            }
            let before = before.trim_end();
            let word = before.rsplit(|c: char| !is_part(c)).next().unwrap_or("");
            let is_value = before.ends_with(['=', '!', '&', '|', '<', '>', '?', '+', '-'])
                || matches!(word, "return" | "typeof");
            !is_value
        })
    })
}

/// A filter.
pub(crate) struct Filter {
    pub name: String,
    pub test: Test,
}

/// Events on one side of an activity.
pub(crate) struct SideOf {
    pub patterns: Vec<String>,
    pub test: Option<Test>,
}

/// The key of activities of a kind.
pub(crate) enum KeyOf {
    /// Their thread.
    Thread,
    /// Fields, by the paths to them.
    Fields(Vec<Expression>),
    /// A function.
    Function(Test),
}

/// How activities of a kind come about.
#[allow(clippy::large_enum_variant, reason = "a few of them, in a list that is made once")]
pub(crate) enum Decode {
    /// The script says what begins and what ends.
    Declared { begin: SideOf, end: SideOf, key: KeyOf, attributes: Vec<(String, Expression)> },
    /// A function sees all events, and says on the object what begins and ends.
    Function(Callback, Persistent<Object<'static>>),
}

/// An activity.
pub(crate) struct Kind {
    pub name: String,
    pub decode: Decode,
}

/// What a script declares, and how it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// `filter` or `activity`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// How it runs.
    pub how: How,
}

/// A script.
pub struct Script {
    // Functions before their engine: in this order they are dropped.
    pub(crate) filters: Vec<Filter>,
    pub(crate) kinds: Vec<Kind>,
    /// What functions have said of the event that they see.
    pub(crate) said: SaidList,
    kept: Vec<u64>,
    seen: u64,
    pub(crate) engine: Engine,
}

impl Script {
    /// Runs a script once, so that it declares its filters and activities. `file` is its
    /// name in errors. A script may also be one expression over `event`, or one function:
    /// that is a filter.
    ///
    /// # Errors
    /// What is wrong with the script, with the place; also that it declares nothing.
    ///
    /// Cost: bounded by the limits.
    pub fn load(file: &str, source: &str, limits: Limits) -> Result<Self, ScriptError> {
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        if source.len() > SOURCE_MAX {
            let message = format!("a script has at most {SOURCE_MAX} bytes");
            return Err(ScriptError::new(file, message));
        }
        if Expression::parse(source).is_ok()
            && let Ok(script) = Self::load_expression(file, source, limits)
        {
            return Ok(script);
        }
        match Self::load_file(file, source, limits) {
            // An expression that is not compiled.
            Err(error) if error.message.contains("event is not defined") => {
                Self::load_expression(file, source, limits).map_err(|_| error)
            }
            other => other,
        }
    }

    fn load_expression(file: &str, source: &str, limits: Limits) -> Result<Self, ScriptError> {
        let mut engine = Engine::new(file, source, limits)?;
        prepare(&mut engine)?;
        let body = source.trim_end().trim_end_matches(';');
        let text = format!("(event) => (\n{body}\n)");
        let test = engine.run(&text, 1, |ctx, value| {
            let function = function_of(ctx, value)?;
            Ok(Test::new(ctx, function, &text, source))
        })?;
        let filter = Filter { name: "filter 1".to_owned(), test };
        let (kinds, said) = (Vec::new(), SaidList::default());
        Ok(Self { filters: vec![filter], kinds, said, kept: vec![0], seen: 0, engine })
    }

    fn load_file(file: &str, source: &str, limits: Limits) -> Result<Self, ScriptError> {
        let mut engine = Engine::new(file, source, limits)?;
        let registered = prepare(&mut engine)?;
        let last = engine.run(source, 0, |ctx, value| {
            Ok(value.is_function().then(|| Persistent::save(ctx, value)))
        })?;
        let said = SaidList::default();
        let (mut filters, kinds) = engine.with(|ctx| {
            let registered = registered.restore(ctx)?;
            let filters = list(&registered, "filters", |object| {
                let text: String = object.get("text")?;
                let test = Test::new(ctx, object.get("test")?, &text, source);
                Ok(Filter { name: object.get("name")?, test })
            })?;
            let mut next = 0;
            let kinds = list(&registered, "activities", |object| {
                next += 1;
                let handle = handle(ctx, next - 1, Rc::clone(&said))?;
                kind(ctx, object, handle, source)
            });
            Ok((filters, kinds?))
        })?;
        if filters.is_empty()
            && kinds.is_empty()
            && let Some(function) = last
        {
            // The whole file is a function of an event.
            let test = engine.with(|ctx| {
                let function = function_of(ctx, function.restore(ctx)?)?;
                Ok(Test::new(ctx, function, source.trim().trim_end_matches(';'), source))
            })?;
            filters.push(Filter { name: "filter 1".to_owned(), test });
        }
        if filters.is_empty() && kinds.is_empty() {
            let message = "the script declares nothing: call filter(event => …) or \
                           activity(\"NAME\").begin(…).end(…)";
            return Err(engine.error(message));
        }
        if filters.len() + kinds.len() > DECLARED_MAX {
            let message = format!("the script declares more than {DECLARED_MAX} things");
            return Err(engine.error(message));
        }
        let unfinished = kinds.iter().find(|kind| match &kind.decode {
            Decode::Declared { begin, end, .. } => {
                [begin, end].iter().any(|side| side.patterns.is_empty() && side.test.is_none())
            }
            Decode::Function(..) => false,
        });
        if let Some(kind) = unfinished {
            let message = format!(
                "the activity `{}` needs what begins and what ends it: \
                 activity(\"NAME\").begin(…).end(…), or a function",
                kind.name
            );
            return Err(engine.error(message));
        }
        Ok(Self { kept: vec![0; filters.len()], seen: 0, filters, kinds, said, engine })
    }

    /// What the script declares, and how each part runs.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let filter = |filter: &Filter| Part {
            what: "filter",
            name: filter.name.clone(),
            how: filter.test.how(),
        };
        let kind = |kind: &Kind| Part { what: "activity", name: kind.name.clone(), how: how(kind) };
        self.filters.iter().map(filter).chain(self.kinds.iter().map(kind)).collect()
    }

    /// Whether it has filters.
    #[must_use]
    pub fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether all its filters run without the engine, so that it does not matter in which
    /// order they see events.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        self.filters.iter().all(|filter| filter.test.is_compiled())
    }

    /// Whether it has activities.
    #[must_use]
    pub fn has_activities(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Whether names of processes or threads may matter to it.
    #[must_use]
    pub fn needs_names(&self) -> bool {
        let source = self.engine.source();
        source.contains("process") || source.contains("thread") || source.contains('[')
    }

    /// What all filters say together of the events of one class: those that it asks about
    /// are for [`Script::keeps`].
    ///
    /// Cost: a walk over the class for each thing that compiled filters look at.
    #[must_use]
    pub fn plan(&self, stream_class: &StreamClass, class: &EventClass) -> Plan<Piece> {
        let of = |filter: &Filter| match &filter.test.plan {
            Ok(expression) => expression.node(stream_class, class),
            Err(_) => Node::Constant(Answer::Ask),
        };
        Plan::new(Node::all(self.filters.iter().map(of)))
    }

    /// Whether all filters keep an event.
    ///
    /// # Errors
    /// What a filter throws, or that it takes too much; then the script is not to be
    /// asked again.
    ///
    /// Cost: of compiled filters a walk over the fields; of others some microseconds.
    pub fn keeps(&mut self, event: &Event<'_>, context: &Context<'_>) -> Result<bool, ScriptError> {
        self.seen += 1;
        self.engine.refill();
        for (filter, kept) in self.filters.iter().zip(&mut self.kept) {
            if !filter.test.holds(&self.engine, event, context)? {
                return Ok(false);
            }
            *kept += 1;
        }
        Ok(true)
    }

    /// How many events were asked about, and how many each filter has kept of those that
    /// the filters before it kept.
    #[must_use]
    pub fn kept(&self) -> (u64, Vec<(&str, u64)>) {
        let names = self.filters.iter().map(|filter| filter.name.as_str());
        (self.seen, names.zip(self.kept.iter().copied()).collect())
    }
}

fn how(kind: &Kind) -> How {
    match &kind.decode {
        Decode::Function(..) => How::Interpreted("a function of the script sees the events".into()),
        Decode::Declared { begin, end, key, .. } => {
            let of_key = match key {
                KeyOf::Function(test) => Some(test),
                _ => None,
            };
            let mut tests = begin.test.iter().chain(&end.test).chain(of_key);
            let interpreted = tests.find(|test| !test.is_compiled());
            interpreted.map_or(How::Compiled, Test::how)
        }
    }
}

type Registered = Persistent<Object<'static>>;

/// Runs the prelude.
fn prepare(engine: &mut Engine) -> Result<Registered, ScriptError> {
    engine.with(|ctx| {
        let mut options = rquickjs::context::EvalOptions::default();
        options.filename = Some("prelude".to_owned());
        let value: Object<'_> = ctx.eval_with_options(include_str!("prelude.js"), options)?;
        Ok(Persistent::save(ctx, value))
    })
}

fn function_of<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Function<'js>> {
    value.into_function().ok_or_else(|| Exception::throw_type(ctx, "this is no function"))
}

fn list<'js, T>(
    object: &Object<'js>,
    name: &str,
    mut read: impl FnMut(&Object<'js>) -> rquickjs::Result<T>,
) -> rquickjs::Result<Vec<T>> {
    let array: rquickjs::Array<'js> = object.get(name)?;
    array.iter::<Object<'js>>().map(|item| read(&item?)).collect()
}

fn kind<'js>(
    ctx: &Ctx<'js>,
    object: &Object<'js>,
    handle: Object<'js>,
    source: &str,
) -> rquickjs::Result<Kind> {
    let name = object.get("name")?;
    if let Some(function) = object.get::<_, Option<Function<'js>>>("decode")? {
        let (function, handle) = (Persistent::save(ctx, function), Persistent::save(ctx, handle));
        return Ok(Kind { name, decode: Decode::Function(function, handle) });
    }
    let side = |name: &str| -> rquickjs::Result<SideOf> {
        let Some(side) = object.get::<_, Option<Object<'js>>>(name)? else {
            return Ok(SideOf { patterns: Vec::new(), test: None });
        };
        let text: Option<String> = side.get("text")?;
        let test = side.get::<_, Option<Function<'js>>>("test")?;
        let test = test.zip(text).map(|(test, text)| Test::new(ctx, test, &text, source));
        Ok(SideOf { patterns: side.get("patterns")?, test })
    };
    let field = |name: &str| {
        Expression::field(name)
            .ok_or_else(|| Exception::throw_type(ctx, &format!("{name:?} is no name of a field")))
    };
    let keys: Vec<String> = object.get("keys")?;
    let key = match object.get::<_, Option<Function<'js>>>("keyOf")? {
        Some(function) => {
            let text: String = object.get("keyText")?;
            KeyOf::Function(Test::new(ctx, function, &text, source))
        }
        None if keys.is_empty() => KeyOf::Thread,
        None => KeyOf::Fields(keys.iter().map(|key| field(key)).collect::<Result<_, _>>()?),
    };
    let attributes: Vec<String> = object.get("attributes")?;
    let attributes = attributes.into_iter().map(|name| {
        let path = field(&name)?;
        Ok((name, path))
    });
    let attributes = attributes.collect::<rquickjs::Result<_>>()?;
    let decode = Decode::Declared { begin: side("begin")?, end: side("end")?, key, attributes };
    Ok(Kind { name, decode })
}
