// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether conditions of two policies can hold for one program. If this is unknown, the result is yes.

use super::{Condition, How, Property};

/// Maximum length of a pattern compared with another one, in steps of both lengths: 256 policies of this
/// length take (256 · 128)² ≈ 10⁹ of them, a second.
const PATTERN_BYTES_MAX: usize = 128;

/// Whether all conditions of both can hold for one program.
pub(super) fn can_meet(one: &[Condition], other: &[Condition]) -> bool {
    let mut pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    pairs.all(|(a, b)| can_both_hold(a, b))
}

fn can_both_hold(a: &Condition, b: &Condition) -> bool {
    if a.property != b.property {
        return true;
    }
    match a.property {
        Property::Program => programs(a, b),
        Property::User => users(a, b),
        Property::Command | Property::Label | Property::Cgroup => texts(a, b),
    }
}

/// A condition with a `/` compares the whole path, one without only its last part.
fn programs(a: &Condition, b: &Condition) -> bool {
    let is_path = |condition: &Condition| condition.value.contains('/');
    match (is_path(a), is_path(b)) {
        (true, false) => name_of_path(a, b),
        (false, true) => name_of_path(b, a),
        _ => texts(a, b),
    }
}

fn name_of_path(path: &Condition, name: &Condition) -> bool {
    let last = path.value.rsplit('/').next().unwrap_or_default();
    path.how != How::Exact || name.how.holds(last, &name.value)
}

/// A user has a name and an id, and a condition may contain either.
fn users(a: &Condition, b: &Condition) -> bool {
    let is_number = |condition: &Condition| condition.value.parse::<u32>().is_ok();
    let are_alike = is_number(a) == is_number(b);
    let are_exact = a.how == How::Exact && b.how == How::Exact;
    !(are_exact && are_alike) || a.value == b.value
}

/// Whether both can hold for one text.
fn texts(a: &Condition, b: &Condition) -> bool {
    let (x, y) = (a.value.as_str(), b.value.as_str());
    match (a.how, b.how) {
        (How::Exact, how) => how.holds(x, y),
        (how, How::Exact) => how.holds(y, x),
        (How::Prefix, How::Prefix) => x.starts_with(y) || y.starts_with(x),
        (How::Suffix, How::Suffix) => x.ends_with(y) || y.ends_with(x),
        // One applies to the start, the other to the end.
        (How::Prefix, How::Suffix) | (How::Suffix, How::Prefix) => true,
        _ => patterns(&steps(a), &steps(b)),
    }
}

/// One step of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Byte(u8),
    Any,
    /// Any number of bytes.
    Rest,
}

fn steps(condition: &Condition) -> Vec<Step> {
    let is_pattern = condition.how == How::Pattern;
    let step = |byte| match byte {
        b'*' if is_pattern => Step::Rest,
        b'?' if is_pattern => Step::Any,
        byte => Step::Byte(byte),
    };
    let mut steps: Vec<Step> = condition.value.bytes().map(step).collect();
    match condition.how {
        How::Prefix => steps.push(Step::Rest),
        How::Suffix => steps.insert(0, Step::Rest),
        How::Exact | How::Pattern => {}
    }
    steps
}

/// Whether a text matches both. Cost: the product of their lengths.
fn patterns(a: &[Step], b: &[Step]) -> bool {
    if a.len() > PATTERN_BYTES_MAX || b.len() > PATTERN_BYTES_MAX {
        return true;
    }
    // ends[j]: whether the rest of a after the current step, and b[j..], match a common text.
    let all_rest = |steps: &[Step]| steps.iter().all(|step| *step == Step::Rest);
    let mut ends: Vec<bool> = (0..=b.len()).map(|j| all_rest(&b[j..])).collect();
    for (i, step) in a.iter().enumerate().rev() {
        let mut here = vec![false; b.len() + 1];
        here[b.len()] = all_rest(&a[i..]);
        for j in (0..b.len()).rev() {
            here[j] = match (step, b[j]) {
                // One of them ends, or matches the next step of the other.
                (Step::Rest, _) | (_, Step::Rest) => ends[j] || here[j + 1],
                (Step::Byte(x), Step::Byte(y)) => *x == y && ends[j + 1],
                (Step::Any, _) | (_, Step::Any) => ends[j + 1],
            };
        }
        ends = here;
    }
    ends[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::glob;

    fn of(property: Property, text: &str) -> Condition {
        // `=x` exact, `x>` prefix, `<x` suffix; anything else a pattern.
        let (how, value) = match text.strip_prefix('=') {
            Some(value) => (How::Exact, value),
            None => match (text.strip_suffix('>'), text.strip_prefix('<')) {
                (Some(value), _) => (How::Prefix, value),
                (_, Some(value)) => (How::Suffix, value),
                _ => (How::Pattern, text),
            },
        };
        Condition { property, how, value: value.into() }
    }

    fn check(property: Property, a: &str, b: &str, expected: bool) {
        let (a, b) = (of(property, a), of(property, b));
        for (a, b) in [(&a, &b), (&b, &a)] {
            let said = can_meet(std::slice::from_ref(a), std::slice::from_ref(b));
            assert_eq!(said, expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn conditions_that_no_program_fulfils_both() {
        use Property::*;
        for (a, b, expected) in [
            ("=a", "=a", true),
            ("=a", "=b", false),
            ("=ab", "a>", true),
            ("=ab", "<a", false),
            ("=ab", "?b", true),
            ("ab>", "a>", true),
            ("ab>", "b>", false),
            ("<ab", "<b", true),
            ("<ab", "<a", false),
            ("ab>", "<c", true),
            ("a*", "*b", true),
            ("a*c", "b*", false),
            ("a?c", "ab>", true),
            ("a?c", "abd>", false),
            ("*x*", "?", true),
            ("??", "?", false),
            ("?*", "**", true),
            ("*ab", "<bb", false),
        ] {
            check(Label, a, b, expected);
        }
        check(Program, "=a", "=/bin/a", true);
        check(Program, "=a", "=/bin/b", false);
        check(Program, "=/x/a", "=/y/a", false);
        check(Program, "=a", "/bin/>", true);
        check(User, "=1000", "=alice", true);
        check(User, "=1000", "=1001", false);
        check(User, "=bob", "=alice", false);
        check(User, "1>", "=bob", true);
        let (program, label) = (of(Program, "=a"), of(Label, "=b"));
        let all = [program, label];
        assert!(can_meet(&all[..1], &all[1..]));
        assert!(can_meet(&all, &[]) && !can_meet(&all, &[of(Label, "=c")]));
        let long = "?".repeat(PATTERN_BYTES_MAX + 1);
        check(Label, &long, "?*a", true);
    }

    /// Compares with all texts of up to four letters of an alphabet of two, sufficient for patterns of up to
    /// three.
    #[test]
    fn patterns_meet_where_some_text_matches_both() {
        let words = |letters: &[u8], longest: usize| {
            let mut all = vec![Vec::new()];
            let mut last = all.clone();
            for _ in 0..longest {
                let longer = |word: &Vec<u8>, letter: &u8| [&word[..], &[*letter]].concat();
                last = last.iter().flat_map(|w| letters.iter().map(|l| longer(w, l))).collect();
                all.extend(last.iter().cloned());
            }
            all
        };
        let texts = words(b"ab", 4);
        for a in words(b"ab?*", 3) {
            for b in words(b"ab?*", 3) {
                let found = texts.iter().any(|text| glob(&a, text) && glob(&b, text));
                let step = |word: &[u8]| {
                    let value = String::from_utf8_lossy(word).into_owned();
                    steps(&Condition { property: Property::Label, how: How::Pattern, value })
                };
                assert_eq!(patterns(&step(&a), &step(&b)), found, "{a:?} {b:?}");
            }
        }
    }
}
