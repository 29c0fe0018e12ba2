// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of `lat stats`, `lat path` and `lat diff` as tables: `FROM stats_spans()`.
//!
//! The commands themselves are run during a query, once for all functions with the same arguments, so
//! that numbers cannot differ between SQL and the commands.

mod lat;
mod rows;
pub mod specs;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

pub use lat::Lat;
pub use rows::{batches, schema};

/// Results that are kept; beyond this number, all are discarded.
const KEPT: usize = 16;

/// A command with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    /// `lat stats`: from and until, in the syntax of its options.
    Stats {
        /// Begin of the time range.
        from: Option<String>,
        /// End of the time range.
        until: Option<String>,
    },
    /// `lat path`: the slowest spans of a name.
    Path {
        /// The name.
        span: String,
        /// Number of spans.
        count: u32,
    },
    /// `lat diff`: two recordings by number.
    Diff {
        /// The earlier, good recording.
        good: usize,
        /// The other recording.
        bad: usize,
    },
}

/// Results with the label of the recording, if the command runs for each.
pub type Answer = Vec<(String, Value)>;

type Asked = Arc<OnceLock<Result<Arc<Answer>, String>>>;

/// A recording for the commands.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its name in tables.
    pub label: String,
    /// Its path.
    pub path: PathBuf,
}

/// Runs the commands for opened traces, each once per arguments.
#[derive(Debug)]
pub struct Answers {
    subjects: Vec<Subject>,
    lat: Lat,
    asked: Mutex<HashMap<Question, Asked>>,
}

impl Answers {
    /// For these recordings.
    pub fn new(subjects: Vec<Subject>, lat: Lat) -> Self {
        Self { subjects, lat, asked: Mutex::default() }
    }

    /// Names of the recordings in tables, in order.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = &str> {
        self.subjects.iter().map(|subject| subject.label.as_str())
    }

    /// The result of a command; waits until it is available.
    ///
    /// Cost: that of the command, the first time.
    ///
    /// Errors: those of the command; there is no `lat`.
    pub fn ask(&self, question: &Question) -> Result<Arc<Answer>, String> {
        let lock = || self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = {
            let mut all = lock();
            if all.len() >= KEPT && !all.contains_key(question) {
                all.clear();
            }
            Arc::clone(all.entry(question.clone()).or_default())
        };
        let answer = asked.get_or_init(|| self.answer(question).map(Arc::new)).clone();
        if answer.is_err() {
            // Ctrl-C ends the command as well; it may be run again.
            lock().remove(question);
        }
        answer
    }

    fn answer(&self, question: &Question) -> Result<Answer, String> {
        let each = |arguments: Vec<OsString>| {
            let ask = |subject: &Subject| {
                Ok((subject.label.clone(), self.lat.ask(&arguments, &[&subject.path], true)?))
            };
            self.subjects.iter().map(ask).collect()
        };
        let option = |name: &str, value: &str| OsString::from(format!("{name}={value}"));
        match question {
            Question::Stats { from, until } => {
                let from = from.as_ref().map(|from| option("--from", from));
                let until = until.as_ref().map(|until| option("--until", until));
                each(["stats".into()].into_iter().chain(from).chain(until).collect())
            }
            Question::Path { span, count } => {
                let slowest = option("--slowest", &count.to_string());
                each(vec!["path".into(), option("--span", span), slowest])
            }
            Question::Diff { good, bad } => {
                let path = |index: usize| &self.subjects[index].path;
                let answer = self.lat.ask(&["diff".into()], &[path(*good), path(*bad)], false)?;
                Ok(vec![(String::new(), answer)])
            }
        }
    }
}
