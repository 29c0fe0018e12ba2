// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads policies from TOML. All errors are reported, each with its position; with any error, no policy is
//! used.

use std::ops::Range;
use std::path::PathBuf;

use lateralis_ring::RingMode;
use toml_edit::{Document, Item, Table, Value};

use super::diagnostic::{Diagnostic, advice};
use crate::filter::Filter;

use super::shared::{SHARED, contradictions};
use super::{Choice, Condition, How, PARTS, Policies, Policy, Property, ThreadCondition, patterns};

/// Maximum size of the text.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum number of policies. Each process is compared with all.
pub(super) const POLICIES_MAX: usize = 256;
/// Maximum number of errors reported.
const FAULTS_MAX: usize = 20;

const PROPERTIES: [(&str, Property); 5] = [
    ("program", Property::Program),
    ("command", Property::Command),
    ("label", Property::Label),
    ("cgroup", Property::Cgroup),
    ("user", Property::User),
];

const ENDINGS: [(&str, How); 4] = [
    ("", How::Exact),
    ("_prefix", How::Prefix),
    ("_suffix", How::Suffix),
    ("_pattern", How::Pattern),
];

const EFFECTS: [&str; 11] = [
    "name", "record", "enable", "disable", "filter", "with", "buffer", "packet", "mode", "output",
    "live",
];

/// All keys of a policy.
fn keys() -> Vec<String> {
    let names = PROPERTIES.iter().map(|(name, _)| *name).chain(["thread"]);
    let conditions =
        names.flat_map(|name| ENDINGS.iter().map(move |(ending, _)| format!("{name}{ending}")));
    conditions.chain(EFFECTS.map(str::to_owned)).collect()
}

fn condition_of(key: &str) -> Option<(Property, How)> {
    PROPERTIES.iter().find_map(|(name, property)| {
        let ending = key.strip_prefix(name)?;
        ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, how)| (*property, *how))
    })
}

/// How a key compares the names of threads, if it does.
fn thread_condition_of(key: &str) -> Option<How> {
    let ending = key.strip_prefix("thread")?;
    ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, how)| *how)
}

/// Reads a policy file. `file` is its name for messages.
///
/// Errors: every error, in the order of the text.
pub fn parse(file: &str, text: &str) -> Result<Policies, Vec<Diagnostic>> {
    let mut reader = Reader { file, text, faults: Vec::new() };
    let policies = reader.document();
    match policies {
        Some(policies) if reader.faults.is_empty() => Ok(policies),
        _ => {
            reader.faults.sort_by_key(|fault| (fault.line, fault.column));
            reader.faults.truncate(FAULTS_MAX);
            Err(reader.faults)
        }
    }
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    faults: Vec<Diagnostic>,
}

/// A policy whose patterns are not complete yet: they depend on `with` of all others.
struct Draft {
    policy: Policy,
    place: Range<usize>,
    enable: Vec<String>,
    disable: Vec<String>,
    with: Vec<&'static str>,
    /// Its keys of [`SHARED`], with their positions.
    shared: Vec<(&'static str, Range<usize>)>,
}

impl Reader<'_> {
    fn fault(&mut self, span: Range<usize>, what: impl Into<String>, advice: impl Into<String>) {
        self.faults.push(Diagnostic::new((self.file, self.text), span, what, advice));
    }

    fn document(&mut self) -> Option<Policies> {
        if self.text.len() > TEXT_BYTES_MAX {
            self.fault(0..0, "too long for a list of policies", "at most 1 MiB");
            return None;
        }
        let document = match Document::parse(self.text) {
            Ok(document) => document,
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                self.fault(span, error.message().trim().replace('\n', "; "), "");
                return None;
            }
        };
        let mut drafts = Vec::new();
        for (key, item) in document.as_table().iter() {
            let span = self.key_span(document.as_table(), key);
            match (key, item) {
                ("policy", Item::ArrayOfTables(tables)) => {
                    for table in tables.iter().take(POLICIES_MAX) {
                        let draft = self.policy(table, drafts.len() + 1);
                        drafts.push(draft);
                    }
                    if tables.len() > POLICIES_MAX {
                        self.fault(span, "too many policies", format!("at most {POLICIES_MAX}"));
                    }
                }
                ("policy", _) => self.fault(span, "a policy is a table", "write `[[policy]]`"),
                _ => self.fault(span, format!("unknown key `{key}`"), "write `[[policy]]`"),
            }
        }
        if drafts.is_empty() && self.faults.is_empty() {
            self.fault(0..0, "no policies: nothing would be recorded", "write `[[policy]]`");
        }
        self.unreachable(&drafts);
        self.shared(&drafts);
        Some(self.finish(drafts))
    }

    fn key_span(&self, table: &Table, key: &str) -> Range<usize> {
        let key = table.get_key_value(key);
        let span = key.and_then(|(key, item)| key.span().or_else(|| item.span()));
        span.or_else(|| table.span()).unwrap_or(0..0)
    }

    fn policy(&mut self, table: &Table, number: usize) -> Draft {
        let mut draft = Draft {
            policy: Policy {
                name: format!("policy {number}"),
                conditions: Vec::new(),
                threads: Vec::new(),
                choice: Some(Choice::default()),
            },
            place: table.span().unwrap_or(0..0),
            enable: Vec::new(),
            disable: Vec::new(),
            with: Vec::new(),
            shared: Vec::new(),
        };
        let mut refused = None;
        for (key, item) in table.iter() {
            let key_span = self.key_span(table, key);
            let span = item.span().unwrap_or(key_span.clone());
            if let Some((property, how)) = condition_of(key) {
                if let Some(value) = self.condition(item, span, Some(property)) {
                    draft.policy.conditions.push(Condition { property, how, value });
                }
                continue;
            }
            if let Some(how) = thread_condition_of(key) {
                if let Some(value) = self.condition(item, span.clone(), None) {
                    self.thread(&mut draft, ThreadCondition { how, value }, span);
                }
                continue;
            }
            if let Some(shared) = SHARED.into_iter().find(|shared| *shared == key) {
                draft.shared.push((shared, key_span.clone()));
            }
            match key {
                "record" => match item.as_bool() {
                    Some(true) => {}
                    Some(false) => refused = Some(key_span),
                    None => self.fault(span, "not true or false", "write `record = false`"),
                },
                _ => self.effect(&mut draft, key, (item, key_span, span)),
            }
        }
        if let Some(span) = refused {
            self.refuse(&mut draft, table, span);
        }
        if let Some(at) = table.get("live").filter(|_| !table.contains_key("output")) {
            let span = at.span().unwrap_or_else(|| draft.place.clone());
            let advice = "write `output = \"DIR\"`: who connects late gets what is there";
            self.fault(span, "a live writer needs a folder", advice);
        }
        draft
    }

    /// Adds a condition on threads. The kernel truncates names, so a longer value never matches.
    fn thread(&mut self, draft: &mut Draft, condition: ThreadCondition, span: Range<usize>) {
        let is_pattern = condition.how == How::Pattern;
        if !is_pattern && condition.value.len() > THREAD_NAME_MAX {
            let advice = format!("at most {THREAD_NAME_MAX} bytes: longer ones are cut");
            self.fault(span, "no thread has such a name", advice);
        }
        draft.policy.threads.push(condition);
    }

    /// Reports policies whose ring or writer settings contradict those of an earlier policy.
    fn shared(&mut self, drafts: &[Draft]) {
        let policies: Vec<&Policy> = drafts.iter().map(|draft| &draft.policy).collect();
        for (number, draft) in drafts.iter().enumerate() {
            let keys: Vec<&str> = draft.shared.iter().map(|(key, _)| *key).collect();
            let found = contradictions(&policies[..=number], &keys);
            for ((_, span), fault) in draft.shared.iter().zip(found) {
                let Some((what, advice)) = fault else { continue };
                self.fault(span.clone(), what, advice);
            }
        }
    }

    /// Reports other keys of a policy with `record = false`.
    fn refuse(&mut self, draft: &mut Draft, table: &Table, span: Range<usize>) {
        let chooses = |key: &&str| !matches!(*key, "name" | "record") && table.contains_key(key);
        if let Some(key) = EFFECTS.into_iter().find(chooses) {
            self.fault(span, format!("`{key}` means nothing here"), "nothing is recorded");
        }
        draft.policy.choice = None;
    }

    fn condition(
        &mut self,
        item: &Item,
        span: Range<usize>,
        property: Option<Property>,
    ) -> Option<String> {
        let value = match (item.as_str(), item.as_integer()) {
            (Some(text), _) => text.to_owned(),
            (None, Some(number)) if property == Some(Property::User) => number.to_string(),
            _ => {
                self.fault(span, "not a text", "write it in quotes");
                return None;
            }
        };
        if value.is_empty() || value.contains('\0') {
            self.fault(span, "nothing can be compared with this", "write a text, or leave it out");
            return None;
        }
        Some(value)
    }

    fn effect(
        &mut self,
        draft: &mut Draft,
        key: &str,
        (item, key_span, span): (&Item, Range<usize>, Range<usize>),
    ) {
        let mut choice = draft.policy.choice.take().unwrap_or_default();
        match key {
            "name" => match item.as_str() {
                Some(name) => draft.policy.name = name.to_owned(),
                None => self.fault(span, "not a text", "write it in quotes"),
            },
            "enable" => draft.enable = self.patterns(item, span),
            "disable" => draft.disable = self.patterns(item, span),
            "filter" => choice.filters = self.filters(item, span),
            "with" => draft.with = self.parts(item, span),
            "buffer" => choice.buffer_bytes = self.size(item, span, 8192..=1 << 40),
            "packet" => choice.packet_bytes = self.size(item, span, 4096..=16 << 20),
            "mode" => match item.as_str() {
                Some("discard") => choice.mode = Some(RingMode::Discard),
                Some("overwrite") => choice.mode = Some(RingMode::Overwrite),
                _ => {
                    let said = item.as_str().unwrap_or_default();
                    let advice = advice(said, &["discard", "overwrite"]);
                    self.fault(span, "no such mode", advice);
                }
            },
            "output" => choice.output = self.text(item, span).map(PathBuf::from),
            "live" => choice.live = self.text(item, span),
            _ => {
                let keys = keys();
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                self.fault(key_span, format!("unknown key `{key}`"), advice(key, &keys));
            }
        }
        draft.policy.choice = Some(choice);
    }

    /// A non-empty text.
    fn text(&mut self, item: &Item, span: Range<usize>) -> Option<String> {
        let text = item.as_str().filter(|text| !text.is_empty() && !text.contains('\0'));
        if text.is_none() {
            self.fault(span, "not a text", "write it in quotes");
        }
        text.map(str::to_owned)
    }

    /// A text or a list of texts, each with its position.
    fn texts(&mut self, item: &Item, span: Range<usize>) -> Vec<(String, Range<usize>)> {
        if let Some(text) = item.as_str() {
            return vec![(text.to_owned(), span)];
        }
        let Some(array) = item.as_array() else {
            self.fault(span, "not a list of texts", "write `[\"one\", \"two\"]`");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for value in array.iter() {
            let place = value.span().unwrap_or(span.clone());
            match value {
                Value::String(text) => texts.push((text.value().clone(), place)),
                _ => self.fault(place, "not a text", "write it in quotes"),
            }
        }
        texts
    }

    fn patterns(&mut self, item: &Item, span: Range<usize>) -> Vec<String> {
        let mut good = Vec::new();
        for (text, place) in self.texts(item, span) {
            let own = [text.clone()];
            match patterns(&own, &[], None) {
                Ok(_) if !text.is_empty() && !text.contains(',') => good.push(text),
                _ => self.fault(place, "no pattern of events", PATTERN),
            }
        }
        good
    }

    fn filters(&mut self, item: &Item, span: Range<usize>) -> Vec<Filter> {
        let mut filters: Vec<Filter> = Vec::new();
        for (text, place) in self.texts(item, span) {
            match Filter::parse(&text) {
                Ok(one) if filters.iter().any(|known| known.event == one.event) => {
                    self.fault(place, "a second filter of one event", "join them by `and` or `or`");
                }
                Ok(one) => filters.push(one),
                Err(error) => self.fault(place, error.what, ""),
            }
        }
        filters
    }

    fn parts(&mut self, item: &Item, span: Range<usize>) -> Vec<&'static str> {
        let mut parts = Vec::new();
        for (text, place) in self.texts(item, span) {
            match PARTS.into_iter().find(|part| *part == text) {
                Some(part) => parts.push(part),
                None => self.fault(place, "no such part", advice(&text, &PARTS)),
            }
        }
        parts
    }

    fn size(
        &mut self,
        item: &Item,
        span: Range<usize>,
        allowed: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        let number = item.as_integer().and_then(|number| u64::try_from(number).ok());
        let Some(bytes) = number.or_else(|| item.as_str().and_then(bytes_of)) else {
            self.fault(span, "not a size", "write bytes, or a text like \"64K\" or \"4M\"");
            return None;
        };
        if !allowed.contains(&bytes) {
            let (least, greatest) = (allowed.start(), allowed.end());
            self.fault(span, "no such size", format!("from {least} to {greatest} bytes"));
            return None;
        }
        Some(bytes)
    }

    /// Reports policies after a policy for every process, which are never reached.
    fn unreachable(&mut self, drafts: &[Draft]) {
        let is_for_all =
            |draft: &Draft| draft.policy.conditions.is_empty() && draft.policy.threads.is_empty();
        let for_all = drafts.iter().position(is_for_all);
        if let Some(behind) = for_all.and_then(|at| drafts.get(at + 1))
            && self.faults.is_empty()
        {
            let what = "never reached: the policy before matches every program";
            self.fault(behind.place.clone(), what, "move the one without conditions to the end");
        }
    }

    fn finish(&mut self, drafts: Vec<Draft>) -> Policies {
        let wanted = |part: &&str| drafts.iter().any(|draft| draft.with.contains(part));
        let with: Vec<&'static str> = PARTS.into_iter().filter(wanted).collect();
        let mut list = Vec::new();
        for mut draft in drafts {
            let own = (!with.is_empty()).then_some(&draft.with[..]);
            // Each was checked at its position.
            let enable = patterns(&draft.enable, &draft.disable, own).unwrap_or_default();
            if let Some(choice) = &mut draft.policy.choice {
                choice.enable = enable;
            }
            if draft.policy.choice.as_ref().is_some_and(|choice| {
                choice.enable.to_string().len() > super::request::PATTERN_BYTES_MAX
            }) {
                self.fault(draft.place, "too many patterns", "use * and ? to say it shorter");
            }
            list.push(draft.policy);
        }
        Policies { list, with }
    }
}

/// Maximum length of the name of a thread [prctl(2), PR_SET_NAME].
pub(super) const THREAD_NAME_MAX: usize = 15;

const PATTERN: &str = "write SUBSYSTEM or SUBSYSTEM:EVENT, with * and ?";

/// Parses `64K`, `4MiB` as bytes.
fn bytes_of(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let unit = text[digits..].trim_end_matches("iB").trim_end_matches('B');
    let shift = ["", "K", "M", "G"].iter().position(|known| unit.eq_ignore_ascii_case(known))?;
    text[..digits].parse::<u64>().ok()?.checked_mul(1 << (10 * shift))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
