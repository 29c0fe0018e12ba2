// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of the kernel as names of the schema language.

use std::collections::HashSet;

/// Longest name; the language has 120 bytes, and a number may come behind.
const NAME_BYTES_MAX: usize = 100;

/// Names that are taken, whatever their case.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// The name as the language has it: letters, digits and `_`, a letter first; with a number
    /// if it is taken.
    pub(super) fn unique(&mut self, name: &str) -> String {
        let name = identifier(name);
        let mut unique = name.clone();
        let mut number = 1;
        while !self.taken.insert(unique.to_ascii_lowercase()) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        unique
    }
}

/// `__syscall_nr` has no letter first in the language; `event` is a word of it.
pub(in crate::kernel) fn identifier(name: &str) -> String {
    let name = name.trim_start_matches('_');
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut name: String =
        name.chars().take(NAME_BYTES_MAX).map(|c| if is_part(c) { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "x_");
    }
    if name.eq_ignore_ascii_case("event") || name.eq_ignore_ascii_case("subsystem") {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_possible_and_unique() {
        let mut names = Names::default();
        let given = ["__probe_ip", "probe_ip", "Probe_IP", "event", "9p", "ä->b", ""];
        let made = given.map(|name| names.unique(name));
        assert_eq!(
            made,
            ["probe_ip", "probe_ip_2", "Probe_IP_3", "event_", "x_9p", "x____b", "x_"]
        );
        for name in made {
            let text = format!("subsystem s {{ event {name} ({name}: u8) }};");
            let compiled = lateralis_pleco::compile("t.pleco", text.as_bytes());
            assert!(!compiled.has_errors(), "{}", compiled.render());
        }
    }
}
