// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Field classes with their layout, as both versions of the format say it.

use std::sync::Arc;

use lateralis_model::{Base, Encoding, Label, Range, Scalar};

/// Where a field lies: the outermost structures of packets and events, in the
/// order in which they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Header of the packet.
    PacketHeader,
    /// Context of the packet.
    PacketContext,
    /// Header of the event.
    EventHeader,
    /// Context common to the events of a stream.
    CommonContext,
    /// Context of the class of event.
    EventContext,
    /// Payload of the event.
    Payload,
}

/// A meaning of a field beyond its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `packet-magic-number`
    Magic,
    /// `metadata-stream-uuid`
    Uuid,
    /// `data-stream-class-id`
    StreamClassId,
    /// `data-stream-id`
    StreamId,
    /// `packet-total-length` in bits
    PacketSize,
    /// `packet-content-length` in bits
    ContentSize,
    /// `default-clock-timestamp`
    Clock,
    /// `packet-end-default-clock-timestamp`
    PacketEnd,
    /// `discarded-event-record-counter-snapshot`
    Discarded,
    /// `packet-sequence-number`
    Sequence,
    /// `event-record-class-id`
    EventClassId,
    /// The checksum that Lateralis puts into its packet contexts.
    Checksum,
}

/// Number of roles, for tables indexed by them.
pub const ROLE_COUNT: usize = 12;

/// A set of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Roles(u16);

impl Roles {
    /// Adds a role.
    pub fn insert(&mut self, role: Role) {
        self.0 |= 1 << role as u16;
    }

    /// Whether the role is in the set.
    #[must_use]
    pub fn contains(self, role: Role) -> bool {
        self.0 & 1 << role as u16 != 0
    }

    /// Whether the field is bookkeeping of the format. The checksum is not: it
    /// is a field like any other to readers that do not know it.
    #[must_use]
    pub fn is_structural(self) -> bool {
        self.0 & !(1 << Role::Checksum as u16) != 0
    }

    /// Adds all roles of another set.
    pub fn insert_all(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// The roles in the set as indices into a table of [`ROLE_COUNT`].
    pub fn indices(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let index = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(index as usize)
        })
    }
}

/// What a number means to a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// An integer; its sign is in the scalar.
    Integer {
        /// Preferred base.
        base: Base,
        /// Names of values.
        labels: Arc<[Label]>,
    },
    /// Bits, some of them named.
    Bits {
        /// Names of bits.
        flags: Arc<[Label]>,
    },
    /// Yes or no.
    Bool,
    /// Floating point.
    Real,
}

/// A number of fixed width.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalarClass {
    /// How it lies in the packet.
    pub scalar: Scalar,
    /// What it means to a person.
    pub meaning: Meaning,
    /// What it means to the format.
    pub roles: Roles,
    /// Name of the clock it is a reading of (CTF 1.8).
    pub clock: Option<Arc<str>>,
    /// Whether it is a character: arrays of it are text (CTF 1.8).
    pub character: bool,
}

/// A number in LEB128, byte-aligned.
#[derive(Debug, Clone, PartialEq)]
pub struct VarIntClass {
    /// Two's complement.
    pub signed: bool,
    /// Preferred base.
    pub base: Base,
    /// Names of values.
    pub labels: Arc<[Label]>,
    /// What it means to the format.
    pub roles: Roles,
}

/// How long something is.
#[derive(Debug, Clone, PartialEq)]
pub enum Length {
    /// As long as the class says.
    Fixed(u64),
    /// As the value of another field says.
    Field(Location),
    /// Up to a terminator (text only).
    Terminated,
}

/// Text, or bytes; always byte-aligned.
#[derive(Debug, Clone, PartialEq)]
pub struct TextClass {
    /// In bytes.
    pub length: Length,
    /// `None` for bytes that are no text.
    pub encoding: Option<Encoding>,
    /// Media type of bytes.
    pub media_type: Arc<str>,
    /// What it means to the format.
    pub roles: Roles,
}

/// Elements of one class.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayClass {
    /// Number of elements.
    pub length: Length,
    /// Their class.
    pub element: FieldClass,
    /// Alignment beyond that of the element.
    pub min_align_bits: u32,
}

/// A named field.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberClass {
    /// As shown, without the leading underscore that CTF 1.8 §4.2.1 drops.
    pub name: Arc<str>,
    /// Its class.
    pub class: FieldClass,
}

/// Named fields, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StructClass {
    /// The fields.
    pub members: Vec<MemberClass>,
    /// Alignment beyond that of the fields.
    pub min_align_bits: u32,
}

/// Which values of the selector choose an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// These (CTF 2).
    Ranges(Vec<Range>),
    /// Those that the selector's class gives this label (CTF 1.8).
    Label(Arc<str>),
}

/// The smallest value among the ranges of more than one option, which CTF 2 forbids
/// [CTF2-SPEC-2.0, variant field class].
///
/// Cost: sorts the ranges.
pub(crate) fn chosen_twice<'a>(
    options: impl Iterator<Item = (usize, &'a [Range])>,
) -> Option<i128> {
    let of = |(index, ranges): (usize, &'a [Range])| {
        ranges.iter().map(move |range| (range.low, range.high, index))
    };
    let mut all: Vec<(i128, i128, usize)> = options.flat_map(of).collect();
    all.sort_unstable();
    let mut last: Option<(i128, usize)> = None;
    for (low, high, index) in all {
        if last.is_some_and(|(end, other)| low <= end && other != index) {
            return Some(low);
        }
        last = last.filter(|&(end, _)| end > high).or(Some((high, index)));
    }
    None
}

/// One option of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionClass {
    /// Its name; may be empty.
    pub name: Arc<str>,
    /// Its class.
    pub class: FieldClass,
    /// What chooses it.
    pub selection: Selection,
}

/// One of several, chosen by another field.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantClass {
    /// The options.
    pub options: Vec<OptionClass>,
    /// The field that chooses; `None` in a variant declared without tag.
    pub selector: Option<Location>,
}

/// Something or nothing; with ranges the selector is a number, without it a yes/no.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionalClass {
    /// What may be there.
    pub class: FieldClass,
    /// The selector field.
    pub selector: Location,
    /// The values of it that mean yes.
    pub ranges: Option<Vec<Range>>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathItem {
    /// To the field of this name.
    Name(Arc<str>),
    /// To the structure around (CTF 2: `null`).
    Up,
}

/// Where to find the field that a length or a selector is taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// From the beginning of this scope; else from the place of use.
    pub scope: Option<Scope>,
    /// The way there.
    pub path: Vec<PathItem>,
    /// Whether a path from the place of use is looked up outwards through
    /// structures and scopes (CTF 1.8 §7.3.2), or begins in the structure around
    /// (CTF 2).
    pub searched: bool,
}

/// Types deeper than this are refused: they exist only to exhaust a stack.
pub(super) const DEPTH_LIMIT: u64 = 64;

/// Field classes that may be made in all by naming types; a large kernel trace
/// has some ten thousand.
pub(super) const WEIGHT_LIMIT: u64 = 1 << 22;

/// What a field can hold and how it lies in a packet.
///
/// Compound classes are shared: a type used in many places exists once.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldClass {
    /// A number of fixed width.
    Scalar(Arc<ScalarClass>),
    /// A number of variable width.
    VarInt(Arc<VarIntClass>),
    /// Text or bytes.
    Text(Arc<TextClass>),
    /// Fields.
    Struct(Arc<StructClass>),
    /// Elements.
    Array(Arc<ArrayClass>),
    /// One of several.
    Variant(Arc<VariantClass>),
    /// Something or nothing.
    Optional(Arc<OptionalClass>),
}

impl FieldClass {
    /// Alignment from the beginning of the packet, in bits.
    #[must_use]
    pub fn align_bits(&self) -> u32 {
        match self {
            Self::Scalar(class) => class.scalar.align_bits.max(1),
            Self::VarInt(_) | Self::Text(_) => 8,
            Self::Struct(class) => class
                .members
                .iter()
                .map(|member| member.class.align_bits())
                .fold(class.min_align_bits.max(1), u32::max),
            Self::Array(class) => class.element.align_bits().max(class.min_align_bits),
            // The chosen option aligns itself [CTF 1.8.3 §4.2.2].
            Self::Variant(_) | Self::Optional(_) => 1,
        }
    }

    /// Number of classes in the tree, itself included; shared parts count each
    /// time they are used.
    #[must_use]
    pub fn weight(&self) -> u64 {
        1 + match self {
            Self::Scalar(_) | Self::VarInt(_) | Self::Text(_) => 0,
            Self::Struct(class) => class.members.iter().map(|m| m.class.weight()).sum(),
            Self::Array(class) => class.element.weight(),
            Self::Variant(class) => class.options.iter().map(|o| o.class.weight()).sum(),
            Self::Optional(inner) => inner.class.weight(),
        }
    }

    /// Length of the longest way from the class to a leaf.
    #[must_use]
    pub fn depth(&self) -> u64 {
        1 + match self {
            Self::Scalar(_) | Self::VarInt(_) | Self::Text(_) => 0,
            Self::Struct(class) => class.members.iter().map(|m| m.class.depth()).max().unwrap_or(0),
            Self::Array(class) => class.element.depth(),
            Self::Variant(class) => {
                class.options.iter().map(|o| o.class.depth()).max().unwrap_or(0)
            }
            Self::Optional(inner) => inner.class.depth(),
        }
    }

    /// Labels of an integer, empty for everything else.
    #[must_use]
    pub fn labels(&self) -> &[Label] {
        match self {
            Self::Scalar(class) => match &class.meaning {
                Meaning::Integer { labels, .. } => labels,
                _ => &[],
            },
            Self::VarInt(class) => &class.labels,
            _ => &[],
        }
    }

    /// The members, if this is a structure.
    #[must_use]
    pub fn members(&self) -> &[MemberClass] {
        match self {
            Self::Struct(class) => &class.members,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_a_set() {
        let mut roles = Roles::default();
        assert!(!roles.is_structural());
        roles.insert(Role::Checksum);
        assert!(!roles.is_structural());
        roles.insert(Role::Clock);
        roles.insert(Role::Clock);
        assert!(roles.is_structural());
        let expected = [Role::Clock as usize, Role::Checksum as usize];
        assert_eq!(roles.indices().collect::<Vec<_>>(), expected);
        assert!(expected.iter().all(|&index| index < ROLE_COUNT));
    }
}
