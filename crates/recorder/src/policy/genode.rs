// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Genode's trace recorder (seed 004): converts its `<config>` to policies in TOML, and lists parts without
//! an equivalent.

use std::fmt::Write;

use roxmltree::{Document, Node, ParsingOptions};

use super::diagnostic::{Diagnostic, advice};
use super::read::{POLICIES_MAX, THREAD_NAME_MAX};
use super::shared::{Part, firsts};
use super::{Condition, How, Property};

/// Maximum size of the text.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum number of elements and attributes.
const NODES_MAX: u32 = 20_000;
/// Maximum number of remarks.
const REMARKS_MAX: usize = 200;

/// A configuration in TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// The policies.
    pub toml: String,
    /// Parts without an equivalent, with their lines: `3: …`.
    pub remarks: Vec<String>,
}

const LABELS: [&str; 3] = ["label", "label_prefix", "label_suffix"];

/// Translates a configuration. `file` is its name for messages.
///
/// Errors: not XML, or not a configuration of the trace recorder.
pub fn from_genode(file: &str, text: &str) -> Result<Translation, Box<Diagnostic>> {
    let fault = |at: usize, what: String, advice: &str| {
        Err(Box::new(Diagnostic::new((file, text), at..at + 1, what, advice)))
    };
    if text.len() > TEXT_BYTES_MAX {
        return fault(0, "too long for a configuration".into(), "at most 1 MiB");
    }
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => {
            let at = offset(text, error.pos());
            return fault(
                at,
                format!("no XML: {error}"),
                "it must be the XML that the trace recorder reads",
            );
        }
    };
    let root = document.root_element();
    if !root.has_tag_name("config") {
        let what = format!("no configuration: <{}>", root.tag_name().name());
        return fault(root.range().start, what, "the outermost element is <config>");
    }
    let mut writer =
        Writer { toml: String::new(), remarks: Vec::new(), has_packets: false, before: Vec::new() };
    writer.config(root);
    if !writer.toml.contains("[[policy]]") {
        let what = "no <policy> in it: nothing would be recorded".to_owned();
        return fault(root.range().start, what, "");
    }
    Ok(Translation { toml: writer.toml, remarks: writer.remarks })
}

/// The byte offset of a row and column, both from 1; columns count characters.
fn offset(text: &str, at: roxmltree::TextPos) -> usize {
    let rows = text.split_inclusive('\n').take(at.row.saturating_sub(1) as usize);
    let row: usize = rows.map(str::len).sum();
    let column = at.col.saturating_sub(1) as usize;
    let line = text.get(row..).unwrap_or_default();
    row + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

struct Writer {
    toml: String,
    remarks: Vec<String>,
    has_packets: bool,
    before: Vec<Before>,
}

/// A policy converted so far.
struct Before {
    label: Vec<Condition>,
    is_about_threads: bool,
    buffer_bytes: Option<u64>,
}

impl Before {
    fn part(&self) -> Part<'_> {
        let is_about_threads = self.is_about_threads;
        Part { conditions: &self.label, is_about_threads, records: true }
    }
}

/// A quoted text in TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

impl Writer {
    fn remark(&mut self, node: Node<'_, '_>, text: impl AsRef<str>) {
        if self.remarks.len() < REMARKS_MAX {
            let line = node.document().text_pos_at(node.range().start).row;
            self.remarks.push(format!("{line}: {}", text.as_ref()));
        }
    }

    fn config(&mut self, root: Node<'_, '_>) {
        self.toml.push_str("# Translated from a configuration of Genode's trace recorder.\n");
        for attribute in root.attributes() {
            let said = match attribute.name() {
                "period_ms" => "packets are written as they fill, what is in open ones each second",
                "enable" => "recording begins with `lat record --policy FILE` and ends with it",
                "target_root" => "the folder is chosen by `lat record --output`",
                "session_ram" | "session_arg_buffer" => "memory is that of the rings alone",
                "default_buffer" => continue,
                _ => "unknown",
            };
            self.remark(root, format!("{}=\"…\": {said}", attribute.name()));
        }
        let default_buffer = root.attribute("default_buffer");
        for node in root.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "policy" => self.policy(node, default_buffer),
                "default-policy" => {}
                "vfs" => self.remark(node, "<vfs>: files are those of this system"),
                other => self.remark(node, format!("<{other}>: unknown")),
            }
        }
        // The default policy comes last, because the first match decides here.
        for node in root.children().filter(|node| node.has_tag_name("default-policy")) {
            self.policy(node, default_buffer);
        }
    }

    fn policy(&mut self, node: Node<'_, '_>, default_buffer: Option<&str>) {
        let is_default = node.has_tag_name("default-policy");
        let label = LABELS.into_iter().find_map(|name| Some((name, node.attribute(name)?)));
        if !is_default && label.is_none_or(|(_, value)| value.is_empty()) {
            self.remark(node, "<policy> without a label: left out");
            return;
        }
        let line = node.document().text_pos_at(node.range().start).row;
        let _ = writeln!(self.toml, "\n[[policy]]\nname = \"line {line}\"");
        if let Some((name, value)) = label.filter(|_| !is_default) {
            let _ = writeln!(self.toml, "{name} = {}", quoted(value));
        }
        // As in Genode: without a name all threads, otherwise those of this name.
        match node.attribute("thread") {
            None | Some("") => {}
            Some(name) if name.len() > THREAD_NAME_MAX => self.remark(
                node,
                format!("thread=\"{name}\": threads have names of at most 15 bytes here; left out"),
            ),
            Some(name) => {
                let _ = writeln!(self.toml, "thread = {}", quoted(name));
            }
        }
        self.module(node);
        let bytes = node.attribute("buffer").or(default_buffer);
        let bytes = bytes.and_then(|text| self.buffer_bytes(node, text));
        self.buffer(node, bytes);
        for attribute in node.attributes() {
            if !LABELS.contains(&attribute.name())
                && !["thread", "buffer", "policy"].contains(&attribute.name())
            {
                self.remark(node, format!("{}=\"…\": unknown", attribute.name()));
            }
        }
        self.writers(node);
    }

    /// Events selected by the policy module: Genode's own events, packets, or both.
    fn module(&mut self, node: Node<'_, '_>) {
        match node.attribute("policy").unwrap_or("ctf0") {
            "ctf0" => self.toml.push_str("disable = [\"packets\"]\n"),
            "pcapng" => {
                self.toml.push_str("enable = [\"packets\"]\n");
                self.packets(node);
            }
            "ctf0_pcapng" => self.packets(node),
            other => {
                let known = advice(other, &["ctf0", "pcapng", "ctf0_pcapng"]);
                self.remark(
                    node,
                    format!(
                        "policy=\"{other}\": its code is unknown: {known}; all \
                     events are recorded"
                    ),
                );
            }
        }
    }

    fn packets(&mut self, node: Node<'_, '_>) {
        if !std::mem::replace(&mut self.has_packets, true) {
            self.remark(
                node,
                "packets that the program itself records stand among its events; `lat convert \
                 --to pcapng` writes them as a capture. Those of an interface: --packets",
            );
        }
    }

    /// Here the threads of a program share rings: those of the first policy that applies to it.
    fn buffer(&mut self, node: Node<'_, '_>, bytes: Option<u64>) {
        let hows = [How::Exact, How::Prefix, How::Suffix];
        let label = LABELS.into_iter().zip(hows).find_map(|(name, how)| {
            let value = node.attribute(name)?.to_owned();
            Some(Condition { property: Property::Label, how, value })
        });
        let own: Vec<_> = label.filter(|_| node.has_tag_name("policy")).into_iter().collect();
        let name = node.attribute("thread").unwrap_or_default();
        let is_about_threads = (1..=THREAD_NAME_MAX).contains(&name.len());
        // More are rejected when the policies are read.
        self.before.truncate(POLICIES_MAX);
        self.before.push(Before { label: own, is_about_threads, buffer_bytes: bytes });
        let parts: Vec<Part<'_>> = self.before.iter().map(|one| one.part()).collect();
        let differs = firsts(&parts).iter().any(|one| self.before[*one].buffer_bytes != bytes);
        match bytes {
            Some(own) if differs => {
                self.remark(
                    node,
                    format!(
                        "buffer of {own} bytes: threads of a program share rings here, and a policy \
                         before can be about the same program; left out"
                    ),
                );
                self.before.last_mut().into_iter().for_each(|own| own.buffer_bytes = None);
            }
            Some(bytes) => {
                let _ = writeln!(self.toml, "buffer = {bytes}");
            }
            None => {}
        }
    }

    fn buffer_bytes(&mut self, node: Node<'_, '_>, text: &str) -> Option<u64> {
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match &text[number.len()..] {
            "" => Some(0),
            "K" => Some(10),
            "M" => Some(20),
            "G" => Some(30),
            _ => None,
        };
        let bytes = number.parse::<u64>().ok().zip(shift);
        match bytes.and_then(|(number, shift)| number.checked_mul(1 << shift)) {
            Some(bytes) if bytes <= 1 << 40 => {
                if bytes < LEAST_BUFFER_BYTES {
                    self.remark(node, format!("buffer=\"{text}\": the least is 8K, per processor"));
                }
                Some(bytes.max(LEAST_BUFFER_BYTES))
            }
            _ => {
                self.remark(node, format!("buffer=\"{text}\": no size; left out"));
                None
            }
        }
    }

    fn writers(&mut self, node: Node<'_, '_>) {
        for writer in node.children().filter(Node::is_element) {
            match writer.tag_name().name() {
                "ctf" | "pcapng" => {}
                other => self.remark(writer, format!("<{other}>: no such writer here")),
            }
        }
    }
}

/// Minimum size of a ring: two packets of a page.
const LEAST_BUFFER_BYTES: u64 = 8192;

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    /// The example of seed 004, with its tags closed as in its README.
    const SEED: &str = r#"<config period_ms="5000" target_root="/" enable="yes">
    <vfs> <fs/> </vfs>
    <policy label_suffix="dynamic_rom" policy="ctf0"> <ctf/> </policy>
    <policy label_suffix="nic_router1" thread="ep" buffer="64K" policy="pcapng"> <pcapng/> </policy>
    <policy label_prefix="init -> &quot;x&quot;" policy="ctf0_pcapng"> <ctf/> <pcapng/> </policy>
</config>"#;

    #[test]
    fn the_seeds_example_becomes_policies() {
        let said = from_genode("config", SEED).unwrap();
        let policies = parse("t.toml", &said.toml).unwrap_or_else(|faults| panic!("{faults:?}"));
        let [rom, router, both] = &policies.list[..] else { panic!("three: {}", said.toml) };
        assert_eq!(rom.conditions[0].value, "dynamic_rom");
        let enable = |policy: &super::super::Policy| {
            policy.choice.as_ref().map(|choice| choice.enable.to_string()).unwrap()
        };
        assert_eq!(enable(rom), "*,!packets");
        assert_eq!(enable(router), "packets");
        assert_eq!(router.choice.as_ref().unwrap().buffer_bytes, Some(65536));
        assert_eq!(both.conditions[0].value, "init -> \"x\"");
        assert_eq!(enable(both), "*");
        let remarks = said.remarks.join("\n");
        assert_eq!(router.threads[0].value, "ep");
        assert!(rom.threads.is_empty() && both.threads.is_empty());
        for expected in ["1: period_ms", "1: target_root", "1: enable", "2: <vfs>"] {
            assert!(remarks.contains(expected), "{expected}: {remarks}");
        }
    }

    #[test]
    fn the_default_policy_comes_last() {
        let text = "<config default_buffer=\"1K\"><default-policy/><policy label=\"a\"/></config>";
        let said = from_genode("config", text).unwrap();
        let policies = parse("t.toml", &said.toml).unwrap();
        assert!(policies.list[1].conditions.is_empty());
        assert_eq!(policies.list[0].choice.as_ref().unwrap().buffer_bytes, Some(8192));
        assert!(said.remarks.iter().any(|remark| remark.contains("least")));
    }

    #[test]
    fn threads_of_a_program_share_the_rings_of_the_first() {
        let text = "<config><policy label=\"a\" thread=\"x\" buffer=\"64K\"/>\n<policy label=\"a\" \
            thread=\"y\" buffer=\"1M\"/>\n<policy label=\"a\" thread=\"a name of 17 byte\"/></config>";
        let said = from_genode("config", text).unwrap();
        let policies = parse("t.toml", &said.toml).unwrap_or_else(|faults| panic!("{}", faults[0]));
        let bytes = |at: usize| policies.list[at].choice.as_ref().unwrap().buffer_bytes;
        assert_eq!((bytes(0), bytes(1)), (Some(65536), None));
        assert_eq!(policies.list[1].threads[0].value, "y");
        let remarks = said.remarks.join("\n");
        assert!(remarks.contains("2: buffer") && remarks.contains("3: thread"), "{remarks}");
    }

    #[test]
    fn what_is_no_configuration_is_refused_with_its_place() {
        let check = |text: &str, line: usize, said: &str| {
            let fault = from_genode("c.xml", text).unwrap_err();
            assert!(fault.line == line && fault.to_string().contains(said), "{fault}");
        };
        check("", 1, "XML");
        check("<config>\n<policy label=\"a\">\n</config>", 3, "XML");
        check("<x/>", 1, "<config>");
        check("<config/>", 1, "no <policy>");
        check("<config><policy label=\"\"/></config>", 1, "no <policy>");
    }
}
