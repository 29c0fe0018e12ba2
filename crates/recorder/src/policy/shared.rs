// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Settings shared by the threads of a program: rings, mode and writer. The first policy that applies to a
//! program determines them. A different setting in a later policy that can apply to the same program would
//! have no effect, so it is reported when policies are read.

use super::overlap::can_meet;
use super::{Condition, Policy};

/// Keys of settings of a program as a whole.
pub(super) const SHARED: [&str; 5] = ["buffer", "packet", "mode", "output", "live"];

/// The relevant parts of a policy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) conditions: &'a [Condition],
    pub(super) is_about_threads: bool,
    /// False for `record = false`.
    pub(super) records: bool,
}

impl Part<'_> {
    fn of(policy: &Policy) -> Part<'_> {
        Part {
            conditions: &policy.conditions,
            is_about_threads: !policy.threads.is_empty(),
            records: policy.choice.is_some(),
        }
    }

    /// Whether this applies to every program that both of the others apply to.
    fn has_all_of(&self, one: &Part<'_>, other: &Part<'_>) -> bool {
        let is_theirs =
            |own: &Condition| one.conditions.contains(own) || other.conditions.contains(own);
        self.conditions.iter().all(is_theirs)
    }
}

/// Those before the last of `parts` that can be the first for a program to whose threads the last applies,
/// too.
pub(super) fn firsts(parts: &[Part<'_>]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let Some((last, before)) = parts.split_last().filter(|(last, _)| last.records) else {
        return found;
    };
    for (at, one) in before.iter().enumerate() {
        if !one.is_about_threads || !one.records || !can_meet(one.conditions, last.conditions) {
            continue;
        }
        // After a policy for all other threads no more policies apply to a program.
        let ends = |part: &Part<'_>| !part.is_about_threads && part.has_all_of(one, last);
        let is_first = !found.iter().any(|first| before[*first].has_all_of(one, last));
        if is_first && !before[at + 1..].iter().any(ends) {
            found.push(at);
        }
    }
    found
}

/// Contradictions of the last of these policies in these keys of [`SHARED`], with
/// advice.
pub(super) fn contradictions(policies: &[&Policy], keys: &[&str]) -> Vec<Option<(String, String)>> {
    if keys.is_empty() {
        return Vec::new();
    }
    let parts: Vec<Part<'_>> = policies.iter().map(|policy| Part::of(policy)).collect();
    let firsts = firsts(&parts);
    keys.iter().map(|key| contradiction(policies, &firsts, key)).collect()
}

fn contradiction(policies: &[&Policy], firsts: &[usize], key: &str) -> Option<(String, String)> {
    let (last, before) = policies.split_last()?;
    let own = shared_of(last, key);
    let differs = |policy: &&&Policy| shared_of(policy, key) != own;
    let first = firsts.iter().map(|at| &before[*at]).find(differs);
    if let Some(first) = first {
        let name = &first.name;
        let what = format!("threads of a program share its `{key}`");
        let advice = if first.conditions == last.conditions {
            format!("`{name}` says it, the first about them")
        } else {
            format!(
                "`{name}` can be about the same program: write the same in both, or between them a \
                 policy with the conditions of `{name}`, but no `thread`"
            )
        };
        return Some((what, advice));
    }
    // A folder shared by several policies is created once.
    let output = shared_of(last, "output").filter(|_| key == "live")?;
    let same = |policy: &&&Policy| shared_of(policy, "output").as_ref() == Some(&output);
    let first = before.iter().find(same).filter(differs)?;
    let advice = format!("`{}` says it, the first with this `output`", first.name);
    Some(("a folder has one `live` address".to_owned(), advice))
}

fn shared_of(policy: &Policy, key: &str) -> Option<String> {
    let choice = policy.choice.as_ref()?;
    match key {
        "buffer" => choice.buffer_bytes.map(|bytes| bytes.to_string()),
        "packet" => choice.packet_bytes.map(|bytes| bytes.to_string()),
        "mode" => choice.mode.map(|mode| format!("{mode:?}")),
        "output" => choice.output.as_ref().map(|path| path.display().to_string()),
        _ => choice.live.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    /// Checks the lines of the reported errors.
    fn check(text: &str, lines: &[usize]) {
        let faults = parse("p.toml", text).err().unwrap_or_default();
        let found: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(found, lines, "{text}\n{faults:?}");
    }

    const FIRST: &str = "[[policy]]\nprogram = \"ab\"\nthread = \"x\"\nbuffer = \"1M\"\n";

    #[test]
    fn what_would_be_without_effect_is_refused() {
        let then = |second: &str, lines: &[usize]| check(&format!("{FIRST}{second}"), lines);
        let other = "thread = \"y\"\nbuffer = \"2M\"\n";
        then(&format!("[[policy]]\nprogram = \"ab\"\n{other}"), &[8]);
        then(&format!("[[policy]]\nprogram_prefix = \"a\"\n{other}"), &[8]);
        then(&format!("[[policy]]\nlabel_suffix = \"a\"\n{other}"), &[8]);
        then("[[policy]]\nbuffer = \"2M\"\n", &[6]);
        then("[[policy]]\nmode = \"overwrite\"\n", &[6]);
        // No program matches both, or the settings are equal or absent.
        then(&format!("[[policy]]\nprogram_prefix = \"b\"\n{other}"), &[]);
        then("[[policy]]\nbuffer = \"1M\"\n", &[]);
        let silent = |program: &str| {
            format!("[[policy]]\n{program}\nthread = \"y\"\n[[policy]]\nbuffer = \"1M\"\n")
        };
        then(&silent("program = \"ab\""), &[]);
        // For other programs with `a` it is the first, and uses the settings of the recording.
        then(&silent("program_prefix = \"a\""), &[9]);
        then("[[policy]]\nrecord = false\n", &[]);
        // Another one applies to all other threads, or contains the setting first.
        then("[[policy]]\nprogram = \"ab\"\n[[policy]]\nbuffer = \"2M\"\n", &[]);
        then("[[policy]]\nprogram = \"ab\"\nrecord = false\n[[policy]]\nbuffer = \"2M\"\n", &[]);
        then("[[policy]]\nprogram = \"c\"\n[[policy]]\nbuffer = \"2M\"\n", &[8]);
    }

    #[test]
    fn a_folder_has_one_address() {
        let one = |program: &str, live: &str| {
            format!("[[policy]]\nprogram = \"{program}\"\noutput = \"o\"\n{live}")
        };
        let (first, second) = ("live = \"127.0.0.1:1\"\n", "live = \"127.0.0.1:2\"\n");
        check(&(one("a", first) + &one("b", first)), &[]);
        check(&(one("a", first) + &one("b", "")), &[]);
        check(&(one("a", first) + &one("b", second)), &[8]);
        check(&(one("a", "") + &one("b", second)), &[7]);
    }
}
