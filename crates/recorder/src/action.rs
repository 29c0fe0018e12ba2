// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Actions of a condition that fires: `mark slow; snapshot 10s 5s; run ./tell --all`.

use std::fmt;
use std::time::Duration;

use crate::condition::Condition;

/// Maximum number of actions of a condition.
pub const ACTIONS_MAX: usize = 16;
/// Maximum length of a mark's name.
pub const NAME_MAX: usize = 255;

/// An action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start recording. Before the first start only the events needed by conditions are
    /// recorded.
    Start,
    /// Stop recording, except for the events needed by conditions.
    Stop,
    /// Save the time around the firing, before and after it, as a recording of its own.
    Snapshot(Option<(Duration, Duration)>),
    /// Write the contents of open packets.
    Flush,
    /// Run a command, without a shell.
    Run(Vec<String>),
    /// Insert an event of this name on the timeline, at the time of the firing.
    Mark(String),
}

/// A condition and the actions to run when it fires.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The condition.
    pub condition: Condition,
    /// The actions, in order.
    pub actions: Vec<Action>,
}

/// A parse error of actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionError {
    /// The action as written.
    pub action: String,
    /// What is wrong with it.
    pub what: String,
    /// What to write instead.
    pub advice: String,
}

const ADVICE: &str = "write start, stop, flush, snapshot, snapshot BEFORE AFTER, mark NAME or \
    run COMMAND; several are separated by ;";

impl Action {
    /// Parses a list separated by `;`. Words are quoted as for a shell.
    ///
    /// Errors: the first action that cannot be parsed.
    pub fn parse_list(text: &str) -> Result<Vec<Action>, ActionError> {
        let actions = split(text).into_iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        if actions.len() > ACTIONS_MAX {
            let what = format!("there are more than {ACTIONS_MAX} actions");
            return error(text, &what, "run a command that does the rest");
        }
        Ok(actions)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Start => f.write_str("start"),
            Action::Stop => f.write_str("stop"),
            Action::Snapshot(_) => f.write_str("snapshot"),
            Action::Flush => f.write_str("flush"),
            Action::Run(words) => write!(f, "run {}", words.join(" ")),
            Action::Mark(name) => write!(f, "mark {name}"),
        }
    }
}

fn error<T>(action: &str, what: &str, advice: &str) -> Result<T, ActionError> {
    let (action, what, advice) = (action.trim().to_owned(), what.to_owned(), advice.to_owned());
    Err(ActionError { action, what, advice })
}

/// Splits at each `;` that is not quoted.
fn split(text: &str) -> Vec<&str> {
    let (mut quote, mut is_escaped, mut start) = (None, false, 0);
    let mut parts = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if quote != Some('\'') => is_escaped = true,
            '\'' | '"' if quote == Some(character) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(character),
            ';' if quote.is_none() => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse(text: &str) -> Result<Action, ActionError> {
    let Some(words) = shlex::split(text) else {
        return error(text, "a quote has no end", "close it");
    };
    let Some((verb, rest)) = words.split_first() else {
        return error(text, "an action is missing", ADVICE);
    };
    let alone = |action: Action| match rest {
        [] => Ok(action),
        [word, ..] => error(text, &format!("{word:?} means nothing here"), ADVICE),
    };
    match verb.as_str() {
        "start" => alone(Action::Start),
        "stop" => alone(Action::Stop),
        "flush" => alone(Action::Flush),
        "snapshot" => match rest {
            [] => Ok(Action::Snapshot(None)),
            [before, after] => match (duration(before), duration(after)) {
                (Some(before), Some(after)) => Ok(Action::Snapshot(Some((before, after)))),
                _ => error(text, "expected two times", "write snapshot 10s 5s: before, after"),
            },
            _ => error(text, "expected two times", "write snapshot 10s 5s: before, after"),
        },
        "run" if rest.is_empty() => error(text, "a command is missing", "write run COMMAND"),
        "run" => Ok(Action::Run(rest.to_vec())),
        "mark" => match rest {
            [name] if !name.is_empty() && name.len() <= NAME_MAX && !name.contains('\0') => {
                Ok(Action::Mark(name.clone()))
            }
            _ => error(text, "expected one name", "write mark NAME"),
        },
        _ => {
            let known = ["start", "stop", "snapshot", "flush", "run", "mark"];
            let near = lateralis_pleco::nearest(verb, known);
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            error(text, &format!("there is no action {verb:?}{near}"), ADVICE)
        }
    }
}

/// Parses `10s`, `250ms`; at most a year.
fn duration(text: &str) -> Option<Duration> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let scale = match &text[end..] {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = text[..end].parse::<f64>().ok()? * scale;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| time.as_secs() <= 365 * 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_actions_are_read_and_words_quoted_as_for_a_shell() {
        let text = "mark slow;snapshot 1.5s 250ms; run sh -c 'a; \"b\"' \\;; start ;stop;flush";
        let actions = Action::parse_list(text).unwrap();
        let run = ["sh", "-c", "a; \"b\"", ";"];
        // An escaped `;` is a word of the command.
        assert_eq!(actions[0], Action::Mark("slow".to_owned()));
        let times = (Duration::from_millis(1500), Duration::from_millis(250));
        assert_eq!(actions[1], Action::Snapshot(Some(times)));
        assert_eq!(actions[2], Action::Run(run.iter().map(ToString::to_string).collect()));
        assert_eq!(actions[3..], [Action::Start, Action::Stop, Action::Flush]);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, what) in [
            ("", "missing"),
            ("mark a;", "missing"),
            ("snapshoot", "did you mean snapshot?"),
            ("snapshot 10s", "two times"),
            ("snapshot 10 s", "two times"),
            ("run", "command is missing"),
            ("run 'a", "no end"),
            ("mark a b", "one name"),
            ("stop it", "\"it\" means nothing"),
        ] {
            let error = Action::parse_list(text).unwrap_err();
            assert!(error.what.contains(what), "{text}: {error:?}");
        }
        assert!(Action::parse_list(&["flush"; ACTIONS_MAX + 1].join(";")).is_err());
    }
}
