// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JavaScript engine: a runtime with limits, and nothing outside of it.
//!
//! A script has the language itself, `JSON`, regular expressions, `Map` and `Set`; no
//! files, network, clock, chance, threads or modules. Memory and stack are limited by the
//! engine; time by counting steps (calls, turns of loops, steps back of regular
//! expressions), so a script that is stopped is stopped in the same place every time.

use std::cell::Cell;
use std::rc::Rc;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::IntoArgs;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, FromJs, Function, Persistent, Runtime};

use crate::error::ScriptError;

/// What a script may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of its values.
    pub memory_bytes: usize,
    /// Stack of its calls; the thread that runs it needs twice as much.
    pub stack_bytes: usize,
    /// Steps it may take at once.
    pub steps: u64,
    /// Steps it gets for each event, up to [`Limits::steps`] in all.
    pub steps_per_event: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            stack_bytes: 256 << 10,
            steps: 20_000_000,
            steps_per_event: 20_000,
        }
    }
}

/// Steps between two calls of the engine's interrupt handler.
const STEPS_ASKED: u64 = 10_000;

/// A runtime with one script in it. Not to be shared by threads: each has its own.
pub struct Engine {
    file: String,
    source: String,
    /// Lines of the evaluated text before the first of the source.
    lines_before: u32,
    limits: Limits,
    steps_left: Rc<Cell<u64>>,
    // The context before the runtime: in this order they are dropped.
    context: Context,
    _runtime: Runtime,
}

/// Parts of the engine that a script gets.
type Parts = (
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::Promise,
);

/// A function of the script.
pub type Callback = Persistent<Function<'static>>;

impl Engine {
    /// A runtime for a script that is not run yet.
    ///
    /// Errors: no memory for it.
    pub fn new(file: &str, source: &str, limits: Limits) -> Result<Self, ScriptError> {
        // The name becomes a C string.
        let file = file.replace('\0', " ");
        let no = |error: rquickjs::Error| ScriptError::new(&file, error.to_string());
        let runtime = Runtime::new().map_err(no)?;
        runtime.set_memory_limit(limits.memory_bytes);
        runtime.set_max_stack_size(limits.stack_bytes);
        let steps_left = Rc::new(Cell::new(limits.steps));
        let steps = Rc::clone(&steps_left);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            steps.set(steps.get().saturating_sub(STEPS_ASKED));
            steps.get() == 0
        })));
        let context = Context::custom::<Parts>(&runtime).map_err(no)?;
        Ok(Self {
            file,
            source: source.to_owned(),
            lines_before: 0,
            limits,
            steps_left,
            context,
            _runtime: runtime,
        })
    }

    /// The text of the script.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// An event more may take its steps.
    pub fn refill(&self) {
        let steps = self.steps_left.get().saturating_add(self.limits.steps_per_event);
        // Once stopped, always stopped.
        if self.steps_left.get() > 0 {
            self.steps_left.set(steps.min(self.limits.steps));
        }
    }

    /// Works inside of the engine; what is thrown becomes an error with its place.
    pub fn with<T>(
        &self,
        work: impl for<'js> FnOnce(&Ctx<'js>) -> rquickjs::Result<T>,
    ) -> Result<T, ScriptError> {
        self.context.with(|ctx| {
            let result = work(&ctx);
            result.catch(&ctx).map_err(|error| self.explain(&error))
        })
    }

    /// Calls a function of the script.
    pub fn call<'js, A, R>(ctx: &Ctx<'js>, function: &Callback, args: A) -> rquickjs::Result<R>
    where
        A: IntoArgs<'js>,
        R: FromJs<'js>,
    {
        function.clone().restore(ctx)?.call(args)
    }

    /// Runs a text; `lines_before` of it are not the script's own.
    pub fn run<T>(
        &mut self,
        text: &str,
        lines_before: u32,
        work: impl for<'js> FnOnce(&Ctx<'js>, rquickjs::Value<'js>) -> rquickjs::Result<T>,
    ) -> Result<T, ScriptError> {
        self.lines_before = lines_before;
        let mut options = EvalOptions::default();
        options.filename = Some(self.file.clone());
        if text.contains('\0') {
            return Err(ScriptError::new(&self.file, "a script is text, without NUL characters"));
        }
        self.with(|ctx| {
            let value = ctx.eval_with_options(text, options)?;
            work(ctx, value)
        })
    }

    /// An error without a place.
    pub fn error(&self, message: impl Into<String>) -> ScriptError {
        ScriptError::new(&self.file, message)
    }

    fn explain(&self, error: &CaughtError<'_>) -> ScriptError {
        if self.steps_left.get() == 0 {
            let message = format!(
                "stopped after {} steps without an end: does a loop not end?",
                self.limits.steps
            );
            return self.error(message);
        }
        match error {
            CaughtError::Exception(exception) => {
                // Reading them runs the script's own code if it gave them getters; it may fail.
                let text = |key: &str| -> Option<String> {
                    exception.as_object().get::<_, rquickjs::Coerced<String>>(key).ok().map(|t| t.0)
                };
                let message = text("message").unwrap_or_default();
                let name = text("name").filter(|name| !name.is_empty() && name != "Error");
                let message = match name {
                    Some(name) if name == "InternalError" && message == "out of memory" => format!(
                        "out of memory: a script may use {} MiB",
                        self.limits.memory_bytes >> 20
                    ),
                    Some(name) => format!("{name}: {message}"),
                    None if message.is_empty() => "an error without a message".to_owned(),
                    None => message,
                };
                self.placed(message, &text("stack").unwrap_or_default())
            }
            // Where there is no memory for an error, the engine throws this.
            CaughtError::Value(value) if value.is_null() => self.error(format!(
                "the script threw null, or its {} MiB of memory were used up",
                self.limits.memory_bytes >> 20
            )),
            CaughtError::Value(value) => {
                let text = value.get::<rquickjs::Coerced<String>>().map(|text| text.0);
                let text = text.unwrap_or_else(|_| value.type_name().to_owned());
                self.error(format!("the script threw {text}"))
            }
            CaughtError::Error(error) => self.error(error.to_string()),
        }
    }

    /// The message at the first place of a stack that is in the script.
    fn placed(&self, message: String, stack: &str) -> ScriptError {
        let error = self.error(message);
        let numbers = |rest: &str| -> Option<(u32, Option<u32>)> {
            let mut parts = rest.split(|c: char| !c.is_ascii_digit());
            let line = parts.next()?.parse().ok()?;
            Some((line, parts.next().and_then(|column| column.parse().ok())))
        };
        let marker = format!("{}:", self.file);
        let place = stack.lines().find_map(|frame| {
            let at = frame.rfind(&marker)?;
            numbers(&frame[at + marker.len()..])
        });
        match place {
            Some((line, column)) if line > self.lines_before => {
                error.at(&self.source, line - self.lines_before, column)
            }
            _ => error,
        }
    }
}
