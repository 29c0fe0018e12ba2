// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Combines several policies for one program: the events to enable in it, and the rules for each of its
//! threads.

use super::{Choice, Policy};
use crate::pattern::Patterns;
use crate::sieve::ThreadRule;

/// The plan for one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Events to enable in the program, for all threads, and their destination. Rings, mode and writer
    /// are those of the first policy that records it, because its threads share them.
    pub choice: Choice,
    /// Rules for threads; empty: all events of all threads.
    pub threads: Vec<ThreadRule>,
}

pub(super) fn wanted(about: &[&Policy]) -> Option<Wanted> {
    let first = about.iter().find_map(|policy| policy.choice.as_ref())?;
    if about.iter().all(|policy| policy.threads.is_empty()) {
        // The first policy alone: it applies to all threads.
        let choice = about.first()?.choice.clone()?;
        return Some(Wanted { choice, threads: Vec::new() });
    }
    let rule = |policy: &&Policy| ThreadRule {
        conditions: policy.threads.clone(),
        wanted: policy.choice.as_ref().map(|one| (one.enable.clone(), one.filters.clone())),
    };
    let enable = enabled(about.iter().filter_map(|policy| policy.choice.as_ref()));
    // The program does not know the thread's rule, so the filters are applied when records are read.
    let choice = Choice { enable, filters: Vec::new(), ..first.clone() };
    Some(Wanted { choice, threads: about.iter().map(rule).collect() })
}

/// Patterns that enable at least the events of each of them.
pub(super) fn enabled<'a>(choices: impl Iterator<Item = &'a Choice>) -> Patterns {
    let lists: Vec<&Patterns> = choices.map(|choice| &choice.enable).collect();
    Patterns::any_of(&lists)
}

#[cfg(test)]
mod tests {
    use super::super::{Facts, parse};
    use super::*;

    const TEXT: &str = "[[policy]]\nprogram = \"a\"\nthread = \"ep\"\nenable = \"x:Y\"\n\
        buffer = \"64K\"\nfilter = \"x:Y: n == 1\"\n\
        [[policy]]\nprogram = \"b\"\n\
        [[policy]]\nprogram = \"a\"\nthread_prefix = \"idle\"\nrecord = false\n\
        [[policy]]\nprogram = \"a\"\nenable = \"z\"\n[[policy]]\n";

    fn of(text: &str, program: &str) -> Option<Wanted> {
        let facts = Facts { program: program.into(), ..Facts::default() };
        parse("p.toml", text).unwrap_or_else(|faults| panic!("{}", faults[0])).wanted(&facts)
    }

    #[test]
    fn policies_about_threads_go_on_to_the_first_about_all() {
        let wanted = of(TEXT, "a").unwrap();
        assert_eq!(wanted.threads.len(), 3);
        assert_eq!(wanted.choice.enable.to_string(), "x:Y,z");
        assert_eq!(wanted.choice.buffer_bytes, Some(65536));
        assert_eq!(wanted.threads[0].wanted.as_ref().unwrap().1.len(), 1);
        assert_eq!(wanted.threads[1].wanted, None);
        assert!(wanted.choice.filters.is_empty());
        let plain = of(TEXT, "b").unwrap();
        assert_eq!((plain.choice.enable.to_string().as_str(), plain.threads.len()), ("*", 0));
        let only = "[[policy]]\nthread = \"x\"\nrecord = false\n";
        assert_eq!(of(only, "a"), None);
    }
}
