// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which events of an area were enabled during its recording.

use lateralis_pleco::Schema;

use crate::pattern::Patterns;

/// Maximum number of lists kept for an area; with more changes, the earlier ones are merged
/// into one.
const LISTS_MAX: usize = 64;

/// The lists of patterns that enabled events of an area, in the order of time. `lat enable` and `lat
/// disable` append patterns to the one in the area, so the last contains all of them.
#[derive(Debug, Default)]
pub(super) struct Enabled {
    lists: Vec<Patterns>,
}

impl Enabled {
    /// Whether no list is known yet.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Events are enabled by these patterns from now on, or have been up to now.
    pub(super) fn are(&mut self, patterns: &Patterns) {
        if patterns.is_empty() || self.lists.last() == Some(patterns) {
            return;
        }
        if self.lists.len() == LISTS_MAX {
            self.lists.pop();
        }
        self.lists.push(patterns.clone());
    }

    /// Names of the events of a schema that were always disabled, and of those that were for part of the
    /// time.
    pub(super) fn off(&self, schema: &Schema) -> [Vec<String>; 2] {
        let mut off = [Vec::new(), Vec::new()];
        let Some((first, later)) = self.lists.split_first() else { return off };
        for event in &schema.events {
            let subsystem = &schema.subsystems[event.subsystem].name;
            let is_on = |list: &Patterns| list.matches(subsystem, &event.name);
            let added = |list: &Patterns| list.added(first.len(), subsystem, &event.name);
            let (mut was_on, mut was_off) = (is_on(first), !is_on(first));
            for list in later {
                let (included, excluded) = added(list);
                was_on |= included || is_on(list);
                was_off |= excluded || !is_on(list);
            }
            match (was_on, was_off) {
                (false, _) => off[0].push(schema.full_name(event)),
                (true, true) => off[1].push(schema.full_name(event)),
                (true, false) => {}
            }
        }
        off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_off_at_any_time_is_known() {
        let text = "schema s;\nsubsystem s \"s\" { event A \"a\" (), event B \"b\" (), event C \"c\" () };";
        let schema = lateralis_pleco::compile("s", text.as_bytes()).schema.unwrap();
        let off = |lists: &[&str]| {
            let mut enabled = Enabled::default();
            lists.iter().for_each(|list| enabled.are(&Patterns::parse(list).unwrap()));
            enabled.off(&schema).map(|names| names.join(" "))
        };
        assert_eq!(off(&[]), ["", ""]);
        assert_eq!(off(&["*"]), ["", ""]);
        assert_eq!(off(&["s,!s:A"]), ["s:A", ""]);
        assert_eq!(off(&["s:A"]), ["s:B s:C", ""]);
        // Disabled, and enabled again; the area contains the patterns one after the other.
        assert_eq!(off(&["s", "s,!s:B,s:B"]), ["", "s:B"]);
        assert_eq!(off(&["s:A", "s:A,s:C"]), ["s:B", "s:C"]);
        // In the first list, the later pattern is not a change.
        assert_eq!(off(&["s,!s:B,s:B"]), ["", ""]);
    }
}
