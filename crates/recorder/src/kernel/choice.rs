// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection of kernel events: groups by purpose, or `SUBSYSTEM:EVENT` with `*` and `?`.

use std::fmt;

use crate::pattern::Patterns;

/// Groups by name, with their descriptions and patterns.
pub const GROUPS: [(&str, &str, &str); 10] = [
    (
        "sched",
        "who runs where, who wakes whom, processes that start and end",
        "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_wakeup_new,\
         sched:sched_migrate_task,sched:sched_process_fork,sched:sched_process_exec,sched:sched_process_exit",
    ),
    ("syscalls", "system calls by name, with arguments and results", "syscalls:*"),
    ("irq", "interrupts of devices", "irq:irq_handler_*"),
    ("softirq", "work that interrupts leave for later", "irq:softirq_*,irq:tasklet_*"),
    ("timer", "timers", "timer:*"),
    ("signal", "signals sent and delivered", "signal:*"),
    ("block", "requests to disks", "block:*"),
    ("net", "packets and sockets inside the kernel", "net:*,napi:*,tcp:*,sock:*"),
    (
        "packets",
        "which threads send and read the packets of --packets",
        "net:net_dev_queue,net:net_dev_start_xmit,net:netif_rx,net:netif_receive_skb,\
         skb:skb_copy_datagram_iovec,irq:softirq_entry,irq:softirq_exit",
    ),
    ("page-faults", "page faults", "exceptions:page_fault_*"),
];

/// Groups recorded by `--system`.
pub const SYSTEM_GROUPS: [&str; 4] = ["sched", "syscalls", "irq", "signal"];

/// Events that identify threads: always recorded.
pub const TASK_EVENTS: [(&str, &str); 2] = [("task", "task_newtask"), ("task", "task_rename")];

/// Maximum number of suggestions for an unknown name.
const NEAR_MAX: usize = 3;

/// An unknown event name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceError {
    /// The name as written.
    pub word: String,
    /// Similar names.
    pub near: Vec<String>,
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this kernel has no group and no event of that name: {}: ", self.word)?;
        if self.near.is_empty() {
            let groups: Vec<&str> = GROUPS.iter().map(|(name, ..)| *name).collect();
            write!(
                f,
                "write SUBSYSTEM:EVENT, with * and ?, as in `available_events` of tracefs, or one \
                 of the groups {}",
                groups.join(", ")
            )
        } else {
            write!(f, "did you mean {}?", self.near.join(", "))
        }
    }
}

impl std::error::Error for ChoiceError {}

/// The events to record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// System and event, in the order of the kernel's list, each once.
    pub events: Vec<(String, String)>,
}

impl Choice {
    /// Finds the events that `words` select in the text of `available_events`.
    ///
    /// Errors: a word that selects nothing.
    /// Cost: words times events.
    pub fn new(words: &[&str], available: &str) -> Result<Choice, ChoiceError> {
        let known: Vec<(&str, &str)> =
            available.lines().filter_map(|line| line.trim().split_once(':')).collect();
        let mut chosen = vec![false; known.len()];
        for word in words.iter().filter(|word| !word.is_empty()) {
            let group = GROUPS.iter().find(|(name, ..)| name == word);
            let text = group.map_or(*word, |(.., patterns)| *patterns);
            let error = || ChoiceError { word: (*word).to_owned(), near: near(word, &known) };
            // An event's own name is sufficient if only one subsystem has it.
            let alone = || known.iter().position(|(_, event)| event == word);
            let patterns = Patterns::parse(text).map_err(|_| error())?;
            let mut found = false;
            for (index, (system, event)) in known.iter().enumerate() {
                if patterns.matches(system, event) {
                    chosen[index] = true;
                    found = true;
                }
            }
            if !found {
                chosen[alone().ok_or_else(error)?] = true;
            }
        }
        let events = known.iter().zip(chosen).filter(|(_, chosen)| *chosen);
        let own = |(system, event): &(&str, &str)| ((*system).to_owned(), (*event).to_owned());
        Ok(Choice { events: events.map(|(name, _)| own(name)).collect() })
    }

    /// Adds events that the kernel has and that are not selected yet.
    pub fn add(&mut self, events: &[(&str, &str)], available: &str) {
        for (system, event) in events {
            let is_there = self.events.iter().any(|(s, e)| s == system && e == event);
            let is_known =
                || available.lines().any(|l| l.trim().split_once(':') == Some((system, event)));
            if !is_there && is_known() {
                self.events.push(((*system).to_owned(), (*event).to_owned()));
            }
        }
    }
}

/// Groups, systems and events with names similar to `word`, the most similar first.
fn near(word: &str, known: &[(&str, &str)]) -> Vec<String> {
    let (system, event) = word.split_once(':').unwrap_or(("", word));
    let mut candidates: Vec<(usize, String)> = Vec::new();
    let mut consider = |distance: usize, length: usize, name: String| {
        if distance <= length / 3 && !candidates.iter().any(|(_, there)| *there == name) {
            candidates.push((distance, name));
        }
    };
    if system.is_empty() {
        for (group, ..) in GROUPS {
            consider(distance(word, group), group.len(), group.to_owned());
        }
    }
    for (of, name) in known {
        let apart = if system.is_empty() { 0 } else { distance(system, of) };
        consider(apart + distance(event, name), name.len(), format!("{of}:{name}"));
        if system.is_empty() {
            consider(distance(word, of), of.len(), (*of).to_owned());
        }
    }
    candidates.sort();
    candidates.into_iter().take(NEAR_MAX).map(|(_, name)| name).collect()
}

/// Levenshtein distance; names longer than 64 bytes are only similar if equal.
pub(super) fn distance(a: &str, b: &str) -> usize {
    if a.len() > 64 || b.len() > 64 {
        return if a == b { 0 } else { usize::MAX / 4 };
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, right) in b.bytes().enumerate() {
            let change = corner + usize::from(left != right);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVAILABLE: &str = "sched:sched_switch\nsched:sched_wakeup\nsched:sched_waking\n\
        irq:softirq_entry\nirq:irq_handler_entry\nsyscalls:sys_enter_read\ntask:task_newtask\n";

    fn names(words: &[&str]) -> Vec<String> {
        let choice = Choice::new(words, AVAILABLE).unwrap();
        choice.events.iter().map(|(_, event)| event.clone()).collect()
    }

    #[test]
    fn groups_patterns_and_plain_names_choose() {
        assert_eq!(names(&["sched"]), ["sched_switch", "sched_wakeup", "sched_waking"]);
        assert_eq!(names(&["sched:*"]), ["sched_switch", "sched_wakeup", "sched_waking"]);
        assert_eq!(names(&["irq", "sched_waking"]), ["sched_waking", "irq_handler_entry"]);
        assert_eq!(names(&["softirq", "sys*:*read"]), ["softirq_entry", "sys_enter_read"]);
    }

    #[test]
    fn mistakes_are_told_with_near_names() {
        let near = |word: &str| Choice::new(&[word], AVAILABLE).unwrap_err().near;
        assert_eq!(near("sced"), ["sched"]);
        assert_eq!(near("sched:sched_swich")[0], "sched:sched_switch");
        assert_eq!(near("softirq_entri"), ["irq:softirq_entry"]);
        let strange = Choice::new(&["elephants:*"], AVAILABLE).unwrap_err();
        assert!(strange.to_string().contains("page-faults"), "{strange}");
        assert!(Choice::new(&["a;b"], AVAILABLE).is_err());
    }

    #[test]
    fn events_are_added_once_and_only_if_they_exist() {
        let mut choice = Choice::new(&["sched:sched_switch"], AVAILABLE).unwrap();
        choice.add(&TASK_EVENTS, AVAILABLE);
        choice.add(&TASK_EVENTS, AVAILABLE);
        assert_eq!(choice.events.len(), 2);
    }
}
