// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts names of the kernel to names of the schema language.

use std::collections::HashSet;

/// Maximum length of a name; the language allows 120 bytes, and a number may be appended.
const NAME_BYTES_MAX: usize = 100;

/// Names in use, regardless of case.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// A valid name in the language: letters, digits and `_`, starting with a letter; with a number
    /// if it is in use.
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

/// `__syscall_nr` does not start with a letter; `event` is a keyword.
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
