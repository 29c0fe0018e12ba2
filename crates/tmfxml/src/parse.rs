// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From XML to plans. Unsupported elements are reported with their line.

mod change;
mod condition;
mod machines;
mod operand;

use std::collections::HashMap;
use std::fmt;

use roxmltree::{Document, Node, ParsingOptions};

use crate::plan::{Handler, Operand, Pattern, Plan};
use crate::{Analysis, Kind};

/// Bytes of a file.
const FILE_BYTES: usize = 16 << 20;
/// Elements, texts and comments of a file.
const NODES: u32 = 1 << 18;
/// Attributes of an element; the analyses of Trace Compass have at most ten.
const ATTRIBUTES: usize = 256;
/// Elements inside of each other.
const DEPTH: usize = 64;
/// Reported problems.
const PROBLEMS: usize = 100;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Something is not for us: a view.
    Note,
    /// The analysis that contains it is not run.
    Error,
}

/// Something that is wrong, or not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

/// What is in a file.
#[derive(Debug, Default)]
pub struct File {
    /// The analyses that can be run, in the order of the file.
    pub analyses: Vec<Analysis>,
    /// What is wrong or not understood, in the order of the file; at most 100.
    pub problems: Vec<Problem>,
}

impl File {
    /// Whether some analysis of it cannot be run.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }
}

/// Reads a file.
///
/// Cost: linear in its size; one of more than 16 MiB, of more than 2^18 nodes, deeper than 64
/// elements or with a document type is refused, and so is one with an element of more than
/// 256 attributes: the library compares all names of an element with each other.
#[must_use]
pub fn parse(text: &str) -> File {
    let refused = |what: String, line, column| File {
        analyses: Vec::new(),
        problems: vec![Problem { line, column, severity: Severity::Error, what }],
    };
    if text.len() > FILE_BYTES {
        return refused(format!("the file has more than {FILE_BYTES} bytes"), 1, 1);
    }
    if let Some(at) = crowded_element(text) {
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let what = format!("an element has more than {ATTRIBUTES} attributes");
        return refused(what, line as u32, column as u32);
    }
    // Entities could grow, and only a document type declares them.
    let options = ParsingOptions { nodes_limit: NODES, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => {
            let at = error.pos();
            return refused(format!("no XML: {error}"), at.row, at.col);
        }
    };
    if let Some(node) = too_deep(&document) {
        let at = document.text_pos_at(node.range().start);
        let what = format!("elements lie more than {DEPTH} deep in each other");
        return refused(what, at.row, at.col);
    }
    let root = document.root_element();
    if !root.has_tag_name("tmfxml") {
        let at = document.text_pos_at(root.range().start);
        let what = "no analyses of Trace Compass: the outermost element is not <tmfxml>".to_owned();
        return refused(what, at.row, at.col);
    }
    let mut file = File::default();
    for element in root.children().filter(Node::is_element) {
        let mut reader = Reader::new(&document);
        let analysis = match element.tag_name().name() {
            "stateProvider" => reader.analysis(element, Kind::StateProvider).ok(),
            "pattern" => reader.analysis(element, Kind::Pattern).ok(),
            view @ ("timeGraphView" | "xyView") => {
                let what = format!("<{view}> is a view: it is not drawn here");
                reader.tell(element, Severity::Note, what);
                None
            }
            other => {
                let _ = reader.refuse::<()>(element, format!("<{other}> is not understood"));
                None
            }
        };
        file.analyses.extend(analysis);
        file.problems.append(&mut reader.problems);
        file.problems.truncate(PROBLEMS);
    }
    file
}

/// An element deeper than is allowed.
fn too_deep<'a, 'i>(document: &'a Document<'i>) -> Option<Node<'a, 'i>> {
    let mut depths: Vec<usize> = Vec::new();
    for node in document.root().descendants() {
        // Parents come before their children.
        let depth = node.parent().map_or(0, |parent| depths[parent.id().get_usize()] + 1);
        let at = node.id().get_usize();
        if depths.len() <= at {
            depths.resize(at + 1, 0);
        }
        depths[at] = depth;
        if depth > DEPTH {
            return Some(node);
        }
    }
    None
}

/// Unsupported elements have been reported.
#[derive(Debug, Clone, Copy)]
struct Refused;

type Checked<T> = Result<T, Refused>;

/// Reads one analysis.
struct Reader<'d, 'i> {
    document: &'d Document<'i>,
    problems: Vec<Problem>,
    plan: Plan,
    /// Values with names, as `$NAME`.
    defined: HashMap<String, String>,
    locations: HashMap<String, Node<'d, 'i>>,
    maps: HashMap<String, usize>,
    tests: HashMap<String, usize>,
    actions: HashMap<String, usize>,
}

impl<'d, 'i> Reader<'d, 'i> {
    fn new(document: &'d Document<'i>) -> Self {
        Self {
            document,
            problems: Vec::new(),
            plan: Plan::default(),
            defined: HashMap::new(),
            locations: HashMap::new(),
            maps: HashMap::new(),
            tests: HashMap::new(),
            actions: HashMap::new(),
        }
    }

    fn tell(&mut self, node: Node<'_, '_>, severity: Severity, what: impl Into<String>) {
        if self.problems.len() < PROBLEMS {
            let at = self.document.text_pos_at(node.range().start);
            let (line, column, what) = (at.row, at.col, what.into());
            self.problems.push(Problem { line, column, severity, what });
        }
    }

    fn refuse<T>(&mut self, node: Node<'_, '_>, what: impl Into<String>) -> Checked<T> {
        self.tell(node, Severity::Error, what);
        Err(Refused)
    }

    /// The children of an element, which may have these and these attributes only.
    fn only(
        &mut self,
        node: Node<'d, 'i>,
        attributes: &[&str],
        elements: &[&str],
    ) -> Checked<Vec<Node<'d, 'i>>> {
        let name = node.tag_name().name();
        let mut result = Ok(());
        for attribute in node.attributes().filter(|a| !attributes.contains(&a.name())) {
            let what = format!("attribute `{}` of <{name}> is not understood", attribute.name());
            result = self.refuse(node, what);
        }
        let children: Vec<_> = node.children().filter(Node::is_element).collect();
        for child in &children {
            let inner = child.tag_name().name();
            if !elements.contains(&inner) {
                result = self.refuse(*child, format!("<{inner}> in <{name}> is not understood"));
            }
        }
        result.map(|()| children)
    }

    /// An attribute that must be there and not be empty.
    fn needed(&mut self, node: Node<'d, 'i>, attribute: &str) -> Checked<&'d str> {
        match node.attribute(attribute).filter(|value| !value.is_empty()) {
            Some(value) => Ok(value),
            None => {
                let name = node.tag_name().name();
                self.refuse(node, format!("<{name}> needs the attribute `{attribute}`"))
            }
        }
    }

    /// Yes or no, or what counts without it.
    fn flag(&mut self, node: Node<'d, 'i>, attribute: &str, default: bool) -> Checked<bool> {
        match node.attribute(attribute) {
            None | Some("") => Ok(default),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(other) => {
                self.refuse(node, format!("`{attribute}` is `{other}`: use true or false"))
            }
        }
    }

    fn number(&mut self, node: Node<'d, 'i>, text: &str) -> Checked<i64> {
        let number = text.trim().parse();
        number.or_else(|_| self.refuse(node, format!("`{text}` is no whole number of 64 bits")))
    }

    /// Text, in which `$NAME` is a defined value.
    fn resolved(&mut self, node: Node<'d, 'i>, text: &str) -> Checked<String> {
        let Some(name) = text.strip_prefix('$') else { return Ok(text.to_owned()) };
        match self.defined.get(name) {
            Some(value) => Ok(value.clone()),
            None => self.refuse(node, format!("no <definedValue> has the name `{name}`")),
        }
    }

    /// Names of events; other signs of regular expressions than `*` and `|` are refused.
    fn events(&mut self, node: Node<'d, 'i>, text: &str) -> Checked<Pattern> {
        if text.contains(['[', ']', '(', ')', '{', '}', '+', '?', '^', '\\']) {
            let what =
                format!("the names of events `{text}` are a regular expression: use * and |");
            return self.refuse(node, what);
        }
        Ok(Pattern::new(text))
    }

    fn analysis(&mut self, node: Node<'d, 'i>, kind: Kind) -> Checked<Analysis> {
        let body = match kind {
            Kind::StateProvider => "eventHandler",
            Kind::Pattern => "patternHandler",
        };
        let mut elements = vec!["head", "definedValue", "location", "mappingGroup", body];
        if kind == Kind::Pattern {
            elements.push("storedField");
        }
        let children = self.only(node, &["id", "version"], &elements)?;
        let id = self.needed(node, "id")?.to_owned();
        let named = |name: &'static str| {
            children.iter().copied().filter(move |child| child.has_tag_name(name))
        };
        for child in named("definedValue") {
            self.only(child, &["name", "value", "color"], &[])?;
            let name = self.needed(child, "name")?.to_owned();
            let value = child.attribute("value").unwrap_or_default().to_owned();
            self.defined.insert(name, value);
        }
        for child in named("location") {
            self.only(child, &["id"], &["stateAttribute"])?;
            let name = self.needed(child, "id")?.to_owned();
            self.locations.insert(name, child);
        }
        for child in named("mappingGroup") {
            self.map(child)?;
        }
        for child in named("storedField") {
            self.only(child, &["id", "alias"], &[])?;
            let field = self.needed(child, "id")?;
            let alias = child.attribute("alias").filter(|alias| !alias.is_empty());
            self.plan.stored.push((field.into(), alias.unwrap_or(field).into()));
        }
        let label = self.label(named("head").next())?.unwrap_or_else(|| id.clone());
        let mut result = Ok(());
        let mut bodies = 0;
        for child in named(body) {
            bodies += 1;
            // All errors are reported at once.
            let read = match kind {
                Kind::StateProvider => self.handler(child),
                Kind::Pattern => self.machines(child),
            };
            result = result.and(read);
        }
        result?;
        if bodies == 0 || (kind == Kind::Pattern && bodies > 1) {
            let count = if kind == Kind::Pattern { "one" } else { "at least one" };
            return self.refuse(node, format!("an analysis has {count} <{body}>"));
        }
        Ok(Analysis { id, label, kind, plan: std::mem::take(&mut self.plan) })
    }

    /// The name for people in a head.
    fn label(&mut self, head: Option<Node<'d, 'i>>) -> Checked<Option<String>> {
        let Some(head) = head else { return Ok(None) };
        let children = self.only(head, &[], &["traceType", "label", "viewLabelPrefix"])?;
        let label = children.iter().find(|child| child.has_tag_name("label"));
        Ok(label.and_then(|label| label.attribute("value")).map(str::to_owned))
    }

    fn map(&mut self, node: Node<'d, 'i>) -> Checked<()> {
        let children = self.only(node, &["id"], &["entry"])?;
        let id = self.needed(node, "id")?.to_owned();
        let mut entries: Vec<(Operand, Operand)> = Vec::new();
        for entry in children {
            let values = self.only(entry, &[], &["stateValue"])?;
            let [from, to] = values.as_slice() else {
                return self.refuse(entry, "an <entry> has two <stateValue>");
            };
            entries.push((self.operand(*from)?, self.operand(*to)?));
        }
        self.maps.insert(id, self.plan.maps.len());
        self.plan.maps.push(entries);
        Ok(())
    }

    fn handler(&mut self, node: Node<'d, 'i>) -> Checked<()> {
        let children = self.only(node, &["eventName"], &["stateChange"])?;
        let name = self.needed(node, "eventName")?;
        let events = self.events(node, name)?;
        let mut changes = Vec::new();
        for child in children {
            changes.push(self.change(child)?);
        }
        self.plan.handlers.push(Handler { events, changes });
        Ok(())
    }
}

/// Where the first element begins that has too many attributes. Cost: one pass; nothing is checked that
/// the library checks.
fn crowded_element(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(begin) = text[at..].find('<').map(|found| at + found) {
        let rest = &text[begin..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((_, end)) = skipped.iter().find(|(open, _)| rest.starts_with(open)) {
            at = begin + rest.find(end)? + end.len();
            continue;
        }
        let (mut quote, mut attributes, mut length) = (None, 0, rest.len());
        for (index, byte) in rest.bytes().enumerate().skip(1) {
            match (byte, quote) {
                (b'"' | b'\'', None) => quote = Some(byte),
                (_, Some(open)) if byte == open => quote = None,
                (b'=', None) => attributes += 1,
                (b'>', None) => {
                    length = index + 1;
                    break;
                }
                _ => {}
            }
            if attributes > ATTRIBUTES {
                return Some(begin);
            }
        }
        at = begin + length;
    }
    None
}

#[cfg(test)]
#[path = "parse/tests.rs"]
mod tests;
