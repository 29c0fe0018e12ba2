// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the classes of a model lie in the packets that are written.
//!
//! Every field begins at a byte and is little-endian, so that writing is nearly always a copy of
//! bytes. The model does not contain the location of the length of an array or of the selector of a
//! variant. If a field of the same structure looks like it, it is used and checked with every
//! value; otherwise a field is added, whose name the reader knows and hides.

use lateralis_model::{
    Dropped, Encoding, FieldClass, FieldKind, IntegerClass, Label, Member, Range, Scalar,
};

use super::Version;
use super::names::{LENGTH, PRESENT, TAG, Taken};
use crate::metadata::chosen_twice;

/// A field with its name as written, without the underscore of CTF 1.8.
#[derive(Debug)]
pub(super) struct Written {
    pub name: String,
    pub node: Node,
}

/// How many elements or bytes there are.
#[derive(Debug)]
pub(super) enum Length {
    Fixed(u64),
    /// A 32-bit number added before.
    Own,
    /// The field with this index in the structure around.
    Reused {
        member: usize,
        site: usize,
    },
}

/// What chooses an option.
#[derive(Debug)]
pub(super) enum Tag {
    /// A number added before: the index of the option.
    Own,
    /// The field with this index in the structure around; per option, the
    /// values that choose it.
    Reused { member: usize, site: usize, values: Vec<Vec<Range>> },
}

/// Fields of the packet that the writer knows better than the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Managed {
    /// Counter of losses by cause, by index.
    Lost(usize),
    /// CRC-32C of the packet.
    Checksum,
    /// Flags of a packet of Lateralis: a written packet holds other records than the one that was
    /// in the ring, so it has no place there.
    RingFlags,
}

#[derive(Debug)]
pub(super) enum Node {
    Integer {
        class: IntegerClass,
        signed: bool,
        managed: Option<Managed>,
    },
    Bool,
    Bits {
        bits: u32,
        flags: Vec<Label>,
    },
    Real(u32),
    /// Up to a terminator; the encoding is that of the source, and `convert` says
    /// to make it UTF-8 where the version knows nothing else.
    Text {
        encoding: Encoding,
        convert: bool,
    },
    Bytes {
        media: String,
        length: Length,
    },
    /// `refers`: some array or variant in it uses one of its fields.
    Struct {
        members: Vec<Written>,
        refers: bool,
    },
    Array {
        element: Box<Node>,
        length: Length,
        packed: Option<Scalar>,
    },
    Variant {
        options: Vec<Written>,
        tag: Tag,
    },
    Optional(Box<Node>),
    /// A structure around something that needs a field before it.
    Wrapped(Box<Node>),
    /// Bookkeeping of the source: its slots are passed over.
    Skip(FieldClass),
}

/// The name of what is inside a [`Node::Wrapped`].
pub(super) const WRAPPED: &str = "value";

impl Node {
    /// The end of the name of the field added before this one.
    pub fn added(&self) -> Option<&'static str> {
        match self {
            Self::Array { length: Length::Own, .. } | Self::Bytes { length: Length::Own, .. } => {
                Some(LENGTH)
            }
            Self::Variant { tag: Tag::Own, .. } => Some(TAG),
            Self::Optional(_) => Some(PRESENT),
            _ => None,
        }
    }

    /// Whether something in it depends on a field before it.
    pub fn looks_back(&self) -> bool {
        match self {
            Self::Variant { .. } | Self::Optional(_) | Self::Wrapped(_) => true,
            Self::Array { length, element, .. } => {
                !matches!(length, Length::Fixed(_)) || element.looks_back()
            }
            Self::Bytes { length, .. } => !matches!(length, Length::Fixed(_)),
            Self::Struct { members, .. } => members.iter().any(|member| member.node.looks_back()),
            _ => false,
        }
    }

    /// Whether it begins at a byte even if it has no content: the alignment of
    /// arrays and structures is that of what is in them [CTF 1.8.3 §4.2.1],
    /// options of variants align themselves.
    pub fn begins_at_byte(&self) -> bool {
        match self {
            Self::Struct { members, .. } => {
                let aligned = |w: &Written| w.node.added().is_some() || w.node.begins_at_byte();
                members.iter().any(aligned)
            }
            Self::Array { element, .. } => element.begins_at_byte(),
            Self::Variant { .. } | Self::Optional(_) | Self::Skip(_) => false,
            _ => true,
        }
    }
}

/// Bytes of the tag of a variant of this number of options.
pub(super) fn tag_bytes(options: usize) -> usize {
    if options <= 1 << 8 { 1 } else { 4 }
}

/// Makes nodes of classes.
pub(super) struct Maker<'a> {
    pub version: Version,
    pub dropped: &'a mut Dropped,
    /// Sites whose guess was wrong before; `None`: do not guess.
    pub denied: Option<&'a [usize]>,
    /// Arrays and variants seen so far.
    pub sites: usize,
}

impl<'a> Maker<'a> {
    /// One that uses no field of the source for lengths and tags.
    pub fn plain(version: Version, dropped: &'a mut Dropped) -> Self {
        Self { version, dropped, denied: None, sites: 0 }
    }

    /// The structure of a scope. `taken` are names that mean something there.
    pub fn scope(
        &mut self,
        class: &FieldClass,
        taken: &[&str],
        manage: &dyn Fn(&Member) -> Option<Managed>,
    ) -> Node {
        self.structure(class.members(), Taken::but(taken), manage)
    }

    fn structure(
        &mut self,
        members: &[Member],
        mut taken: Taken,
        manage: &dyn Fn(&Member) -> Option<Managed>,
    ) -> Node {
        let mut written: Vec<Written> = Vec::with_capacity(members.len());
        let mut refers = false;
        for (index, member) in members.iter().enumerate() {
            if member.class.structural {
                let (name, node) = (String::new(), Node::Skip(member.class.clone()));
                written.push(Written { name, node });
                continue;
            }
            let (name, changed) = taken.give(&member.name, self.version);
            if changed {
                self.dropped.note("names of fields that this version of CTF cannot have");
            }
            let before = Before { members: &members[..index], name: &member.name };
            let mut node = self.node(&member.class, Some(&before), &mut refers);
            if let Node::Integer { managed, class, signed: false } = &mut node
                && matches!(class.bits, 32 | 64)
            {
                *managed = manage(member);
            }
            if let Some(end) = node.added() {
                // The name of the added field follows that of the field.
                taken.give(&format!("{name}{end}"), self.version);
            }
            written.push(Written { name, node });
        }
        Node::Struct { members: written, refers }
    }

    /// A field that has no structure around to put another field into.
    fn alone(
        &mut self,
        class: &FieldClass,
        before: Option<&Before<'_>>,
        refers: &mut bool,
    ) -> Node {
        let node = self.node(class, before, refers);
        if node.added().is_none() {
            return node;
        }
        self.dropped
            .note("arrays, variants and optional fields directly inside others: now in structures");
        Node::Wrapped(Box::new(node))
    }

    fn node(&mut self, class: &FieldClass, before: Option<&Before<'_>>, refers: &mut bool) -> Node {
        let old = self.version == Version::V1;
        match &class.kind {
            FieldKind::Bool => {
                if old {
                    self.dropped.note("yes/no fields: integers in CTF 1.8");
                }
                Node::Bool
            }
            FieldKind::Unsigned(class) => self.integer(class, false),
            FieldKind::Signed(class) => self.integer(class, true),
            FieldKind::Real(bits) => Node::Real(if *bits == 32 { 32 } else { 64 }),
            FieldKind::Bits { bits, flags } => {
                if old {
                    self.dropped.note("bit arrays and names of bits: integers in CTF 1.8");
                }
                Node::Bits { bits: (*bits).clamp(1, 64), flags: flags.clone() }
            }
            FieldKind::Text(encoding) => {
                let convert = old && *encoding != Encoding::Utf8;
                if convert {
                    self.dropped.note("encodings of texts: UTF-8 in CTF 1.8");
                }
                Node::Text { encoding: *encoding, convert }
            }
            FieldKind::Bytes(media) => {
                if old {
                    self.dropped.note("bytes and their media types: arrays of integers in CTF 1.8");
                }
                let length = self.length(None, before, refers);
                Node::Bytes { media: media.clone(), length }
            }
            FieldKind::Struct(members) => self.structure(members, Taken::default(), &|_| None),
            FieldKind::Array { element, length, packed } => {
                let length = self.length(*length, before, refers);
                let element = Box::new(self.alone(element, before, refers));
                Node::Array { element, length, packed: *packed }
            }
            // No event has it: there is nothing to choose. Neither version can say so.
            FieldKind::Variant(options) if options.is_empty() => {
                self.dropped.note("variants without options: empty structures");
                Node::Struct { members: Vec::new(), refers: false }
            }
            FieldKind::Variant(options) => self.variant(options, before, refers),
            FieldKind::Optional(class) => {
                let mut inside = false;
                Node::Optional(Box::new(self.alone(class, None, &mut inside)))
            }
        }
    }

    fn integer(&mut self, class: &IntegerClass, signed: bool) -> Node {
        let mut class = class.clone();
        class.bits = class.bits.clamp(1, 64);
        // A label of no value, or of values that no integer has, names nothing.
        let possible = |range: &Range| {
            range.low <= range.high
                && range.low >= i128::from(i64::MIN)
                && range.high <= i128::from(u64::MAX)
        };
        for label in &mut class.labels {
            label.ranges.retain(possible);
        }
        let all = class.labels.len();
        class.labels.retain(|label| !label.ranges.is_empty());
        if class.labels.len() < all {
            self.dropped.note("labels of values that no integer has");
        }
        Node::Integer { class, signed, managed: None }
    }

    fn length(
        &mut self,
        fixed: Option<u64>,
        before: Option<&Before<'_>>,
        refers: &mut bool,
    ) -> Length {
        if let Some(count) = fixed {
            return Length::Fixed(count);
        }
        let site = self.site();
        match before.and_then(Before::length).filter(|_| self.may_guess(site)) {
            Some(member) => {
                *refers = true;
                Length::Reused { member, site }
            }
            None => Length::Own,
        }
    }

    fn site(&mut self) -> usize {
        self.sites += 1;
        self.sites - 1
    }

    fn may_guess(&self, site: usize) -> bool {
        self.denied.is_some_and(|denied| !denied.contains(&site))
    }

    fn variant(
        &mut self,
        options: &[Member],
        before: Option<&Before<'_>>,
        refers: &mut bool,
    ) -> Node {
        let site = self.site();
        let found = before.and_then(|before| before.tag(options, self.version));
        let found = found.filter(|_| self.may_guess(site));
        let mut taken = Taken::default();
        let mut written = Vec::with_capacity(options.len());
        let mut inside = false;
        for (index, option) in options.iter().enumerate() {
            let name = match &found {
                Some((_, names)) => names[index].0.clone(),
                None => {
                    let (name, changed) = taken.give(&option.name, self.version);
                    if changed {
                        self.dropped.note("names of options that this version of CTF cannot have");
                    }
                    name
                }
            };
            written.push(Written { name, node: self.alone(&option.class, None, &mut inside) });
        }
        let tag = match found {
            Some((member, names)) => {
                *refers = true;
                let values = names.into_iter().map(|(_, ranges)| ranges).collect();
                Tag::Reused { member, site, values }
            }
            None => Tag::Own,
        };
        Node::Variant { options: written, tag }
    }
}

/// The name of an option and the values that choose it.
type Chosen = (String, Vec<Range>);

/// The prefix of a field in its structure.
struct Before<'a> {
    members: &'a [Member],
    name: &'a str,
}

impl Before<'_> {
    /// The field that is most likely its length: of a name that says so, or an
    /// integer just before.
    fn length(&self) -> Option<usize> {
        let own = self.name.trim_start_matches('_');
        let usable = |index: usize| {
            let member = &self.members[index];
            let unsigned = matches!(&member.class.kind, FieldKind::Unsigned(_));
            let last = self.members.iter().rposition(|other| other.name == member.name);
            unsigned && !member.class.structural && last == Some(index) && !member.name.is_empty()
        };
        let says = |index: &usize| {
            let name = self.members[*index].name.trim_start_matches('_');
            let rest = name.strip_prefix(own).map(|rest| rest.trim_start_matches('_'));
            rest.is_some_and(|rest| ["len", "length", "count", "size", "num", "nr"].contains(&rest))
        };
        let named = (0..self.members.len()).rev().filter(|&index| usable(index)).find(says);
        let last = self.members.iter().rposition(|member| !member.class.structural);
        named.or_else(|| last.filter(|&index| usable(index)))
    }

    /// A field with a label for each option; with it, per option, the name that
    /// the option must have and the values that choose it.
    fn tag(&self, options: &[Member], version: Version) -> Option<(usize, Vec<Chosen>)> {
        (0..self.members.len()).rev().find_map(|index| {
            let member = &self.members[index];
            let last = self.members.iter().rposition(|other| other.name == member.name);
            if member.class.structural || member.name.is_empty() || last != Some(index) {
                return None;
            }
            let (FieldKind::Unsigned(class) | FieldKind::Signed(class)) = &member.class.kind else {
                return None;
            };
            let of = |option: &Member| {
                let mut fitting = class.labels.iter().filter(|label| {
                    let plain = label.name.strip_prefix('_').unwrap_or(&label.name);
                    plain == option.name
                });
                let label = fitting.next().filter(|_| fitting.next().is_none())?;
                let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let starts = label.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                let fits = starts
                    && label.name.chars().all(legal)
                    && !KEYWORDS.contains(&label.name.as_str());
                match version {
                    Version::V1 => fits.then(|| (label.name.clone(), label.ranges.clone())),
                    Version::V2 => Some((option.name.clone(), label.ranges.clone())),
                }
            };
            let all: Vec<Chosen> = options.iter().map(of).collect::<Option<_>>()?;
            // In CTF 1.8 the first option counts; CTF 2 cannot say so.
            let ranges = || all.iter().map(|(_, ranges)| ranges.as_slice()).enumerate();
            let fits = version == Version::V1 || chosen_twice(ranges()).is_none();
            fits.then_some((index, all))
        })
    }
}

/// Words that cannot be the name of an option without an underscore
/// [CTF 1.8.3 §C.1.1].
const KEYWORDS: [&str; 27] = [
    "align",
    "callsite",
    "char",
    "clock",
    "const",
    "double",
    "enum",
    "env",
    "event",
    "float",
    "floating_point",
    "int",
    "integer",
    "long",
    "short",
    "signed",
    "stream",
    "string",
    "struct",
    "trace",
    "typealias",
    "typedef",
    "unsigned",
    "variant",
    "void",
    "_Bool",
    "_Complex",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(before: &[(&str, FieldClass)], name: &str) -> Option<usize> {
        let members: Vec<Member> = before
            .iter()
            .map(|(name, class)| Member { name: (*name).to_owned(), class: class.clone() })
            .collect();
        Before { members: &members, name }.length()
    }

    #[test]
    fn lengths_are_found_by_name_or_just_before() {
        let n = FieldClass::u64;
        assert_eq!(guess(&[("_a_length", n())], "a"), Some(0), "LTTng's name");
        assert_eq!(guess(&[("a_len", n()), ("x", n())], "a"), Some(0));
        assert_eq!(guess(&[("y", n()), ("x", n())], "a"), Some(1), "just before");
        assert_eq!(guess(&[("x", n()), ("t", FieldClass::text())], "a"), None);
        assert_eq!(guess(&[("x", FieldClass::i64())], "a"), None, "a length is unsigned");
        assert_eq!(guess(&[], "a"), None);
    }
}
