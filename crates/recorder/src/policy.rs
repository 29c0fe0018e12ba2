// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection of programs and their recording options: an ordered list of policies, of which the first that
//! matches a process decides (`docs/guides/policies.md`).
//!
//! ```text
//! read        the TOML text          diagnostic  errors in it, with their positions
//! request     the text for tracers   genode      Genode's configuration as TOML
//! wanted      the combined plan of several policies for one program
//! shared      combinations that are impossible    overlap     whether two policies can match one program
//! ```

mod diagnostic;
mod genode;
mod overlap;
mod read;
mod request;
mod shared;
mod wanted;

pub use diagnostic::Diagnostic;
pub(crate) use diagnostic::advice;
pub use genode::{Translation, from_genode};
pub use read::parse;
pub use request::{Common, RequestTooLong, request};
pub use wanted::Wanted;

use std::path::PathBuf;

use lateralis_ring::RingMode;

use crate::filter::Filter;
use crate::pattern::{PatternError, Patterns, glob};

/// Parts of the library that `with` loads into uninstrumented programs: subsystems of
/// `tracer/preload/preload.pleco`.
pub const PARTS: [&str; 4] = ["mutex", "malloc", "io", "thread"];

/// The property of a process that a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// The program's file name, or its whole path if the condition contains a `/`.
    Program,
    /// Its command line, words joined by blanks.
    Command,
    /// Names of the programs from its first ancestor to itself, joined by ` -> `.
    Label,
    /// Path of its control group.
    Cgroup,
    /// Name or id of its user.
    User,
}

/// How a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Equal texts.
    Exact,
    /// The text starts with the value.
    Prefix,
    /// The text ends with the value.
    Suffix,
    /// `*` matches any text, `?` any byte.
    Pattern,
}

/// One condition on a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The compared property.
    pub property: Property,
    /// The comparison.
    pub how: How,
    /// The value.
    pub value: String,
}

/// One condition on a thread of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadCondition {
    /// The comparison of its name.
    pub how: How,
    /// The value.
    pub value: String,
}

/// Facts about a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Path of the program.
    pub program: String,
    /// Its command line, words joined by blanks.
    pub command: String,
    /// See [`Property::Label`].
    pub label: String,
    /// Path of its control group; empty if unknown.
    pub cgroup: String,
    /// Its user id.
    pub uid: u32,
    /// The user's name; empty if it has none.
    pub user: String,
}

/// Events and ring options for a process. `None`: as for the whole recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// Events.
    pub enable: Patterns,
    /// Filters on their fields.
    pub filters: Vec<Filter>,
    /// Size of a ring in bytes.
    pub buffer_bytes: Option<u64>,
    /// Size of a packet in bytes.
    pub packet_bytes: Option<u64>,
    /// Behaviour when a ring is full.
    pub mode: Option<RingMode>,
    /// A separate recording for the programs it matches.
    pub output: Option<PathBuf>,
    /// Address for live clients of that recording.
    pub live: Option<String>,
}

/// Conditions, all of which must hold, and their effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// A name for users.
    pub name: String,
    /// All must hold; empty: every process.
    pub conditions: Vec<Condition>,
    /// Threads of such a process; empty: every one.
    pub threads: Vec<ThreadCondition>,
    /// `None`: not recorded.
    pub choice: Option<Choice>,
}

/// An ordered list of policies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policies {
    /// The first one that matches decides.
    pub list: Vec<Policy>,
    /// [`PARTS`] that any of them requires.
    pub with: Vec<&'static str>,
}

impl Condition {
    /// Whether it holds.
    pub fn holds(&self, facts: &Facts) -> bool {
        match self.property {
            Property::Program => self.compare(program_name(&facts.program, &self.value)),
            Property::Command => self.compare(&facts.command),
            Property::Label => self.compare(&facts.label),
            Property::Cgroup => self.compare(&facts.cgroup),
            Property::User => {
                self.compare(&facts.uid.to_string())
                    || !facts.user.is_empty() && self.compare(&facts.user)
            }
        }
    }

    fn compare(&self, text: &str) -> bool {
        self.how.holds(text, &self.value)
    }
}

impl How {
    fn holds(self, text: &str, value: &str) -> bool {
        match self {
            How::Exact => text == value,
            How::Prefix => text.starts_with(value),
            How::Suffix => text.ends_with(value),
            How::Pattern => glob(value.as_bytes(), text.as_bytes()),
        }
    }
}

impl ThreadCondition {
    /// Whether it holds for a thread of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.how.holds(name, &self.value)
    }
}

/// The part of a program's path that a condition compares.
fn program_name<'a>(path: &'a str, value: &str) -> &'a str {
    if value.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) }
}

impl Policies {
    /// One policy: these events of programs with these names.
    pub fn of_programs(names: &[String], enable: Patterns, filters: &[Filter]) -> Policies {
        let policy = |name: &String| Policy {
            name: name.clone(),
            conditions: vec![Condition {
                property: Property::Program,
                how: How::Pattern,
                value: name.clone(),
            }],
            threads: Vec::new(),
            choice: Some(Choice {
                enable: enable.clone(),
                filters: filters.to_vec(),
                ..Choice::default()
            }),
        };
        Policies { list: names.iter().map(policy).collect(), with: Vec::new() }
    }

    /// The first matching policy, and its number.
    pub fn decide(&self, facts: &Facts) -> Option<(usize, &Policy)> {
        self.about(facts).next()
    }

    /// All policies that apply to a process, in order, with their numbers: several if they are for some of
    /// its threads; the last of them is for all others.
    pub fn about(&self, facts: &Facts) -> impl Iterator<Item = (usize, &Policy)> {
        let matches = |policy: &Policy| policy.conditions.iter().all(|one| one.holds(facts));
        let mut is_over = false;
        let of_process = self.list.iter().enumerate().filter(move |(_, policy)| matches(policy));
        of_process.take_while(move |(_, policy)| {
            let was_over = is_over;
            is_over |= policy.threads.is_empty();
            !was_over
        })
    }

    /// The plan for a process; `None`: not recorded.
    pub fn wanted(&self, facts: &Facts) -> Option<Wanted> {
        wanted::wanted(&self.about(facts).map(|(_, policy)| policy).collect::<Vec<_>>())
    }
}

/// The events to record. If `enable` is empty: all of the program's own. `with`: the parts of the
/// library that are also recorded, if the library is loaded: all of their events, unless `enable` contains
/// events of the library; then only those.
///
/// Errors: an invalid pattern.
pub fn patterns(
    enable: &[String],
    disable: &[String],
    with: Option<&[&str]>,
) -> Result<Patterns, PatternError> {
    let mut list: Vec<String> = enable.to_vec();
    let subsystem = |pattern: &str| pattern.split(':').next().unwrap_or_default().to_owned();
    let named: Vec<String> = enable.iter().map(|one| subsystem(one)).collect();
    let is_of_library =
        |name: &String| PARTS.iter().any(|part| glob(name.as_bytes(), part.as_bytes()));
    if enable.is_empty() || named.iter().any(is_of_library) {
        if enable.is_empty() {
            list.push("*".into());
        }
        // `*` does not include parts that were not requested.
        let is_other = |with: &[&str], part: &str| {
            !with.contains(&part) && !named.iter().any(|name| name == part)
        };
        let others =
            |with: &[&str]| PARTS.into_iter().filter(|part| is_other(with, part)).collect();
        let others: Vec<&str> = with.map(others).unwrap_or_default();
        // Parts that no pattern matches need not be excluded.
        let reached = |part: &&str| {
            enable.is_empty() || named.iter().any(|name| glob(name.as_bytes(), part.as_bytes()))
        };
        list.extend(others.into_iter().filter(reached).map(|part| format!("!{part}")));
    } else {
        list.extend(with.unwrap_or_default().iter().map(|part| part.to_string()));
    }
    list.extend(disable.iter().map(|pattern| format!("!{}", pattern.trim_start_matches('!'))));
    Patterns::parse(&list.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            program: "/usr/sbin/nginx".into(),
            command: "nginx -c /etc/my.conf".into(),
            label: "systemd -> bash -> nginx".into(),
            cgroup: "/user.slice/a".into(),
            uid: 1000,
            user: "alice".into(),
        }
    }

    fn check(property: Property, how: How, value: &str, expected: bool) {
        let condition = Condition { property, how, value: value.into() };
        assert_eq!(condition.holds(&facts()), expected, "{condition:?}");
    }

    #[test]
    fn conditions_compare_whole_texts_and_their_ends() {
        use How::*;
        use Property::*;
        check(Program, Exact, "nginx", true);
        check(Program, Exact, "/usr/sbin/nginx", true);
        check(Program, Exact, "sbin/nginx", false);
        check(Program, Prefix, "ng", true);
        check(Program, Prefix, "/usr/", true);
        check(Program, Suffix, "ginx", true);
        check(Program, Pattern, "n*x", true);
        check(Program, Pattern, "*/nginx", true);
        check(Program, Pattern, "N*", false);
        check(Command, Suffix, "my.conf", true);
        check(Label, Suffix, "bash -> nginx", true);
        check(Label, Exact, "nginx", false);
        check(Cgroup, Prefix, "/user.slice/", true);
        check(User, Exact, "alice", true);
        check(User, Exact, "1000", true);
        check(User, Exact, "100", false);
    }

    #[test]
    fn the_first_that_matches_decides() {
        let text = "[[policy]]\nprogram = \"nginx\"\nuser = \"bob\"\n[[policy]]\nlabel_prefix = \
            \"systemd\"\nrecord = false\n[[policy]]\n";
        let policies = parse("p.toml", text).unwrap();
        let (number, policy) = policies.decide(&facts()).unwrap();
        assert_eq!((number, &policy.choice), (1, &None));
        let other = Facts { label: "x".into(), ..facts() };
        assert_eq!(policies.decide(&other).unwrap().0, 2);
        assert_eq!(Policies::default().decide(&facts()), None);
    }

    #[test]
    fn the_librarys_parts_are_recorded_where_they_are_wanted() {
        let list = |enable: &[&str], with: Option<&[&str]>| {
            let own: Vec<String> = enable.iter().map(ToString::to_string).collect();
            patterns(&own, &["a:B".to_owned()], with).unwrap().to_string()
        };
        assert_eq!(list(&[], None), "*,!a:B");
        assert_eq!(list(&[], Some(&["io"])), "*,!mutex,!malloc,!thread,!a:B");
        assert_eq!(list(&["x"], Some(&["io"])), "x,io,!a:B");
    }
}
