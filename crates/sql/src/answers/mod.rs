// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `lat stats`, `lat path` and `lat diff` say, as tables: `FROM stats_spans()`.
//!
//! The commands themselves are asked, when a query runs and once for all functions of the
//! same arguments: a number cannot be another one here than there.

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

/// Answers that are kept; beyond, all are asked again.
const KEPT: usize = 16;

/// A question to a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    /// To `lat stats`: from and until, as its options have them.
    Stats {
        /// From when on.
        from: Option<String>,
        /// Up to when.
        until: Option<String>,
    },
    /// To `lat path`: the slowest spans of a name.
    Path {
        /// The name.
        span: String,
        /// How many.
        count: u32,
    },
    /// To `lat diff`: two recordings by their numbers.
    Diff {
        /// The one it was before.
        good: usize,
        /// The other.
        bad: usize,
    },
}

/// Answers with the label of the recording, where each is asked.
pub type Answer = Vec<(String, Value)>;

type Asked = Arc<OnceLock<Result<Arc<Answer>, String>>>;

/// A recording that may be asked about.
#[derive(Debug, Clone)]
pub struct Subject {
    /// What tables call it.
    pub label: String,
    /// Where it is.
    pub path: PathBuf,
}

/// Asks the commands about opened traces, each question once.
#[derive(Debug)]
pub struct Answers {
    subjects: Vec<Subject>,
    lat: Lat,
    asked: Mutex<HashMap<Question, Asked>>,
}

impl Answers {
    /// About these recordings.
    pub fn new(subjects: Vec<Subject>, lat: Lat) -> Self {
        Self { subjects, lat, asked: Mutex::default() }
    }

    /// What tables call the recordings, in their order.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = &str> {
        self.subjects.iter().map(|subject| subject.label.as_str())
    }

    /// The answer to a question; waits until there is one.
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
            // Ctrl-C ends the command as well; it may be asked again.
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
