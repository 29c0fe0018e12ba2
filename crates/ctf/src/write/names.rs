// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names that both versions of the format can carry.

use std::collections::BTreeSet;

use super::Version;

/// Ends of the names of fields that a writer adds for lengths, tags, and
/// whether something is there. The reader hides fields with these names: the
/// model says the same elsewhere.
pub(crate) const LENGTH: &str = "_lat_len";
/// See [`LENGTH`].
pub(crate) const TAG: &str = "_lat_tag";
/// See [`LENGTH`].
pub(crate) const PRESENT: &str = "_lat_opt";

/// The first field of a payload in CTF 1.8, where it is the event's own context: in the
/// context itself babeltrace 2.0.4 looks for lengths and tags in the wrong place, and aborts. The
/// reader puts it back.
pub(crate) const CONTEXT: &str = "lat_context";
/// The same where the event has no payload.
pub(crate) const CONTEXT_ALONE: &str = "lat_context_alone";

/// Begin of environment entries for what CTF 1.8 has no word for.
pub(crate) const ATTRIBUTE: &str = "lateralis_attribute_";
/// Begin of environment entries for names of processes.
pub(crate) const PROCESS: &str = "lateralis_process_";
/// Begin of environment entries for names of threads.
pub(crate) const THREAD: &str = "lateralis_thread_";
/// The environment entry for the name of a trace in CTF 1.8.
pub(crate) const TRACE_NAME: &str = "lateralis_trace_name";

/// `name` with an underscore for each character that an identifier of C cannot
/// have, and whether there was one.
pub(super) fn identifier(name: &str) -> (String, bool) {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let text: String = name.chars().map(|c| if legal(c) { c } else { '_' }).collect();
    let changed = text != name;
    if text.is_empty() { ("unnamed".to_owned(), true) } else { (text, changed) }
}

/// `name` as an identifier: not beginning with a digit.
pub(super) fn word(name: &str) -> (String, bool) {
    let (text, changed) = identifier(name);
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        (format!("_{text}"), true)
    } else {
        (text, changed)
    }
}

/// Gives names inside one structure, each once.
#[derive(Default)]
pub(super) struct Taken(BTreeSet<String>);

impl Taken {
    /// None but these are taken.
    pub fn but(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// A name as close to `name` as the version allows, and whether it differs.
    pub fn give(&mut self, name: &str, version: Version) -> (String, bool) {
        let (base, mut changed) = match version {
            Version::V1 => identifier(name),
            Version::V2 => (name.to_owned(), false),
        };
        let mut given = base.clone();
        let mut number = 2u32;
        while !self.0.insert(given.clone()) {
            given = format!("{base}_{number}");
            number = number.saturating_add(1);
            changed = true;
        }
        (given, changed)
    }
}

/// The name of a file for the stream `name`: no directory, not hidden, not that
/// of another part of a trace.
pub(super) fn file(name: &str, taken: &mut BTreeSet<String>) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '@');
    let mut base: String = name.chars().map(|c| if legal(c) { c } else { '_' }).take(120).collect();
    if base.is_empty() {
        "stream".clone_into(&mut base);
    }
    if base.starts_with('.') {
        base.insert(0, '_');
    }
    let mut given = base.clone();
    let mut number = 2u32;
    while matches!(given.as_str(), "metadata" | "index") || !taken.insert(given.clone()) {
        given = format!("{base}_{number}");
        number = number.saturating_add(1);
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers_and_stay_apart() {
        let mut taken = Taken::but(&["packet_size"]);
        let mut give = |name: &str| taken.give(name, Version::V1);
        assert_eq!(give("a"), ("a".into(), false));
        assert_eq!(give("a"), ("a_2".into(), true));
        assert_eq!(give("a b"), ("a_b".into(), true));
        assert_eq!(give(""), ("unnamed".into(), true));
        assert_eq!(give("packet_size"), ("packet_size_2".into(), true));
        assert_eq!(taken.give("ü b", Version::V2), ("ü b".into(), false));
        assert_eq!(word("3d"), ("_3d".into(), true));
    }

    #[test]
    fn files_have_names_of_their_own() {
        let mut taken = BTreeSet::new();
        assert_eq!(file("chan_0", &mut taken), "chan_0");
        assert_eq!(file("chan_0", &mut taken), "chan_0_2");
        assert_eq!(file("../metadata", &mut taken), "_.._metadata");
        assert_eq!(file("metadata", &mut taken), "metadata_2");
        assert_eq!(file("", &mut taken), "stream");
    }
}
