// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `stats_spans()`, `path_steps('request')`, `diff_shifts()` and others: results of commands of `lat` as
//! tables.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;

use super::computed::{Computed, ComputedTable};
use crate::answers::specs::{Command, Spec};
use crate::answers::{Answers, Question, batches, schema};
use crate::damages::Damages;
use crate::fault::{nearest, quoted};

/// Largest number of paths of one name, as in `lat path`.
const MOST_PATHS: i64 = 1000;

/// A function that runs a command.
pub struct Asking {
    /// Its spec.
    pub spec: &'static Spec,
    /// Runs the commands.
    pub answers: Arc<Answers>,
    /// Collects damage reported by the command.
    pub damages: Arc<Damages>,
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec.name)
    }
}

/// An argument: a text or an integer.
enum Argument {
    Text(String),
    Number(i64),
}

impl Asking {
    fn argument(&self, expr: &Expr) -> Result<Argument> {
        match expr {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _)
            | Expr::Literal(ScalarValue::LargeUtf8(Some(text)), _)
            | Expr::Literal(ScalarValue::Utf8View(Some(text)), _) => {
                Ok(Argument::Text(text.clone()))
            }
            Expr::Literal(ScalarValue::Int64(Some(number)), _) => Ok(Argument::Number(*number)),
            // A name in double quotes is parsed as a column; the meaning is clear.
            Expr::Column(column) => Ok(Argument::Text(column.name.clone())),
            other => plan_err!(
                "{}: not a text, nor a number: '{other}': {}",
                self.spec.name,
                self.usage()
            ),
        }
    }

    fn usage(&self) -> String {
        format!("FROM {}({})", self.spec.name, self.spec.arguments)
    }

    fn question(&self, arguments: &[Argument]) -> Result<Question> {
        // Nanoseconds on the timeline, as in columns, are times as well.
        let time = |argument: &Argument| match argument {
            Argument::Text(text) => text.clone(),
            Argument::Number(nanos) => {
                let (seconds, rest) =
                    (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
                format!("@{seconds}.{rest:09}")
            }
        };
        match (self.spec.command, arguments) {
            (Command::Stats, []) => Ok(Question::Stats { from: None, until: None }),
            (Command::Stats, [from]) => Ok(Question::Stats { from: Some(time(from)), until: None }),
            (Command::Stats, [from, until]) => {
                Ok(Question::Stats { from: Some(time(from)), until: Some(time(until)) })
            }
            (Command::Path, [Argument::Text(span)]) => {
                Ok(Question::Path { span: span.clone(), count: 1 })
            }
            (Command::Path, [Argument::Text(span), Argument::Number(count @ 1..=MOST_PATHS)]) => {
                Ok(Question::Path { span: span.clone(), count: *count as u32 })
            }
            (Command::Path, [Argument::Text(_), Argument::Number(count)]) => {
                plan_err!("{}: {count} of them: 1 to {MOST_PATHS} are told", self.spec.name)
            }
            (Command::Diff, []) => match self.answers.labels().len() {
                2 => Ok(Question::Diff { good: 0, bad: 1 }),
                count => plan_err!(
                    "{}: which of {count}: open two recordings, or name them: {}",
                    self.spec.name,
                    self.usage()
                ),
            },
            (Command::Diff, [Argument::Text(good), Argument::Text(bad)]) => {
                Ok(Question::Diff { good: self.recording(good)?, bad: self.recording(bad)? })
            }
            _ => plan_err!("{}: wrong arguments: write {}", self.spec.name, self.usage()),
        }
    }

    /// Number of a recording by its name in tables.
    fn recording(&self, name: &str) -> Result<usize> {
        let labels: Vec<&str> = self.answers.labels().collect();
        if let Some(index) = labels.iter().position(|label| *label == name) {
            return Ok(index);
        }
        let near: Vec<String> =
            nearest(name, labels.iter().copied()).into_iter().map(quoted).collect();
        let known = if near.is_empty() { labels.join(", ") } else { near.join(", ") };
        plan_err!("{}: no such recording: {name}: there are {known}", self.spec.name)
    }
}

impl TableFunctionImpl for Asking {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = args.exprs().iter().map(|expr| self.argument(expr));
        let question = self.question(&arguments.collect::<Result<Vec<_>>>()?)?;
        Ok(Arc::new(ComputedTable(Asked {
            spec: self.spec,
            schema: schema(self.spec),
            answers: Arc::clone(&self.answers),
            damages: Arc::clone(&self.damages),
            question,
        })))
    }
}

/// A command as a table.
#[derive(Clone)]
struct Asked {
    spec: &'static Spec,
    schema: SchemaRef,
    answers: Arc<Answers>,
    damages: Arc<Damages>,
    question: Question,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec.name)
    }
}

#[async_trait::async_trait]
impl Computed for Asked {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn stream(
        &self,
        _: &dyn Session,
        _: Option<&[usize]>,
    ) -> Result<Arc<dyn PartitionStream>> {
        Ok(Arc::new(self.clone()))
    }
}

impl PartitionStream for Asked {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let (sender, asked) = (builder.tx(), self.clone());
        builder.spawn_blocking(move || {
            let answer = asked.answers.ask(&asked.question);
            let answer = answer.map_err(DataFusionError::Plan)?;
            let places = answer.iter().filter_map(|(_, all)| all.get("damage")?.as_array());
            asked.damages.told(places.flatten().filter_map(|place| place.as_str()));
            for batch in batches(asked.spec, &answer)? {
                if sender.blocking_send(Ok(batch)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        builder.build()
    }
}
