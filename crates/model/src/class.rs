// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can happen in a trace: classes of streams, events and fields.

use std::fmt;

use lateralis_units::Ticks;

use crate::{Clock, Host, Scalar};

/// 128 bits that name a trace or a clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// Reads the usual text form, `01234567-89ab-cdef-0123-456789abcdef`; hyphens may be anywhere
    /// or absent.
    ///
    /// Errors: `None` unless there are exactly 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0u8; 16];
        let mut digits = 0usize;
        for character in text.chars().filter(|&c| c != '-') {
            let digit = character.to_digit(16)? as u8;
            let byte = bytes.get_mut(digits / 2)?;
            *byte = *byte << 4 | digit;
            digits += 1;
        }
        (digits == 32).then_some(Self(bytes))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A value of the environment of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// A number.
    Integer(i128),
    /// A text.
    Text(String),
}

impl EnvValue {
    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Integer(_) => None,
        }
    }
}

/// Name of the entry of the environment that says whose events the kernel's are.
pub const KERNEL_SCOPE: &str = "lateralis_kernel_scope";
/// Value of [`KERNEL_SCOPE`]: those of recorded programs and what they start. What other threads did on
/// the same processors was not recorded.
pub const SCOPE_PROGRAMS: &str = "programs";
/// Value of [`KERNEL_SCOPE`]: those of all processes.
pub const SCOPE_MACHINE: &str = "machine";

/// Name of the entry of the environment that says how much of what happened a trace is.
pub const EXTENT: &str = "lateralis_extent";
/// Value of [`EXTENT`]: a part cut out of a longer recording. Events before and after were recorded
/// as well, and are not in it.
pub const EXTENT_PART: &str = "part";

/// Name of the entry of the environment that relates its timeline to the clock of other files: nanoseconds
/// by which its times are ahead of `CLOCK_MONOTONIC`, read when the recording began.
pub const MONOTONIC_OFFSET: &str = "lateralis_monotonic_offset_ns";

/// What a trace says about itself.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Name given by the producer.
    pub name: Option<String>,
    /// Its UUID, where it has one.
    pub uuid: Option<Uuid>,
    /// What the producer said about itself and its system, in its order.
    pub environment: Vec<(String, EnvValue)>,
    /// The clocks that stream classes refer to by index.
    pub clocks: Vec<Clock>,
    /// The kinds of streams.
    pub stream_classes: Vec<StreamClass>,
    /// Where several traces are read as one, what each of them said of itself, by
    /// [`Origin::first_stream_class`]; empty in a trace of its own.
    pub origins: Vec<Origin>,
}

/// One of several traces that are read as one.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Index of its first stream class; those up to the next origin are its own.
    pub first_stream_class: u32,
    /// Its UUID, where it has one.
    pub uuid: Option<Uuid>,
    /// What its producer said, in its order.
    pub environment: Vec<(String, EnvValue)>,
}

impl Trace {
    /// What the producer of this kind of stream said: the whole environment, or
    /// that of the one trace of several which the stream class is of.
    ///
    /// Cost: a binary search of the origins.
    #[must_use]
    pub fn environment_of(&self, stream_class: u32) -> &[(String, EnvValue)] {
        let after =
            self.origins.partition_point(|origin| origin.first_stream_class <= stream_class);
        match after.checked_sub(1) {
            Some(index) => &self.origins[index].environment,
            None => &self.environment,
        }
    }

    /// The machine that a kind of stream is from.
    #[must_use]
    pub fn host_of(&self, stream_class: u32) -> Host {
        self.stream_classes.get(stream_class as usize).map_or(Host::default(), |class| class.host)
    }

    /// Whether there are several machines.
    #[must_use]
    pub fn has_hosts(&self) -> bool {
        self.stream_classes.iter().any(|class| !class.host.is_first())
    }

    /// Whether kernel events in streams of this class are only those of recorded programs.
    #[must_use]
    pub fn is_of_programs(&self, stream_class: u32) -> bool {
        let scope = self.environment_of(stream_class).iter().find(|(key, _)| key == KERNEL_SCOPE);
        scope.is_some_and(|(_, value)| value.as_text() == Some(SCOPE_PROGRAMS))
    }

    /// By how many nanoseconds times of this kind of stream are ahead of `CLOCK_MONOTONIC`, where that is
    /// known.
    #[must_use]
    pub fn monotonic_offset_ns(&self, stream_class: u32) -> Option<i64> {
        let clock = self.stream_classes.get(stream_class as usize)?.clock?;
        let clock = self.clocks.get(clock)?;
        if clock.name == "monotonic" {
            return Some(clock.nanos(Ticks(0)).0);
        }
        let mut all = self.environment_of(stream_class).iter();
        let (_, value) = all.find(|(key, _)| key == MONOTONIC_OFFSET)?;
        match value {
            EnvValue::Integer(offset) => i64::try_from(*offset).ok(),
            EnvValue::Text(text) => text.parse().ok(),
        }
    }

    /// Whether it was cut out of a longer recording, or one of those that are read as one was.
    #[must_use]
    pub fn is_part(&self) -> bool {
        let all = self.origins.iter().map(|origin| &origin.environment).chain([&self.environment]);
        all.flatten().any(|(key, value)| key == EXTENT && value.as_text() == Some(EXTENT_PART))
    }

    /// The environment entry with this name.
    #[must_use]
    pub fn env(&self, name: &str) -> Option<&EnvValue> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// A kind of stream: all its events share a context and a clock.
#[derive(Debug, Clone, Default)]
pub struct StreamClass {
    /// Number given by the producer.
    pub id: u64,
    /// Name, where there is one.
    pub name: Option<String>,
    /// Index into [`Trace::clocks`] of the clock of its time stamps.
    pub clock: Option<usize>,
    /// What each packet says about itself (a struct).
    pub packet_context: Option<FieldClass>,
    /// What every event carries before its own fields (a struct).
    pub common_context: Option<FieldClass>,
    /// The kinds of events.
    pub event_classes: Vec<EventClass>,
    /// The machine that it is from: numbers of processors and threads in its fields are that machine's.
    pub host: Host,
}

/// A kind of event.
#[derive(Debug, Clone, Default)]
pub struct EventClass {
    /// Number given by the producer, unique in its stream class.
    pub id: u64,
    /// Full name, as `subsystem:EVENT`; empty if the producer gave none.
    pub name: String,
    /// What this kind carries besides its payload (a struct).
    pub context: Option<FieldClass>,
    /// Its own fields (a struct).
    pub payload: Option<FieldClass>,
    /// Everything else the producer said about it.
    pub attributes: Vec<Attribute>,
}

impl EventClass {
    /// The attribute with this name, `log-level` for instance.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|a| a.name == name).map(|a| a.value.as_str())
    }
}

/// A named remark on a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// `log-level`, `emf-uri`, …
    pub name: String,
    /// Its text.
    pub value: String,
}

/// In which base a number is meant to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Base {
    /// 2
    Binary,
    /// 8
    Octal,
    /// 10
    #[default]
    Decimal,
    /// 16
    Hexadecimal,
}

/// Inclusive range of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// First value.
    pub low: i128,
    /// Last value.
    pub high: i128,
}

impl Range {
    /// Whether `value` lies in the range.
    #[must_use]
    pub fn contains(self, value: i128) -> bool {
        self.low <= value && value <= self.high
    }
}

/// A name for some values of an integer, or for some bits of a bit map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The name.
    pub name: String,
    /// The values with this label.
    pub ranges: Vec<Range>,
}

/// An integer as it is meant to be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IntegerClass {
    /// Width in the trace, 64 for integers of variable length.
    pub bits: u32,
    /// Preferred base.
    pub base: Base,
    /// Names of values; non-empty for an enumeration.
    pub labels: Vec<Label>,
}

/// How the bytes of a text are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8 (and ASCII).
    #[default]
    Utf8,
    /// UTF-16, high byte first.
    Utf16Be,
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-32, high byte first.
    Utf32Be,
    /// UTF-32, low byte first.
    Utf32Le,
}

impl Encoding {
    /// Bytes of a code unit: 1, 2 or 4.
    #[must_use]
    pub fn unit_bytes(self) -> usize {
        match self {
            Self::Utf8 => 1,
            Self::Utf16Be | Self::Utf16Le => 2,
            Self::Utf32Be | Self::Utf32Le => 4,
        }
    }
}

/// A field of a struct, or an option of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name; may be empty for an option.
    pub name: String,
    /// What it holds.
    pub class: FieldClass,
}

/// What a field can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldClass {
    /// The shape.
    pub kind: FieldKind,
    /// Whether the field is bookkeeping of the format (a packet size, a time
    /// stamp) that the model already says elsewhere; listings leave it out.
    pub structural: bool,
}

/// The shape of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// Yes or no.
    Bool,
    /// Integer ≥ 0.
    Unsigned(IntegerClass),
    /// Integer.
    Signed(IntegerClass),
    /// Floating point of this many bits, 32 or 64.
    Real(u32),
    /// This number of bits without a numeric meaning, some of which may have names.
    Bits {
        /// Width.
        bits: u32,
        /// Names of bit positions, 0 being the least significant.
        flags: Vec<Label>,
    },
    /// Characters.
    Text(Encoding),
    /// Bytes of some media type.
    Bytes(String),
    /// Named fields in order.
    Struct(Vec<Member>),
    /// Elements of one class.
    Array {
        /// The class of each.
        element: Box<FieldClass>,
        /// Their number, where the class fixes it.
        length: Option<u64>,
        /// Set where elements lie in the packet one after the other at a
        /// fixed distance, so that they are read when asked for.
        packed: Option<Scalar>,
    },
    /// One of several.
    Variant(Vec<Member>),
    /// There or not.
    Optional(Box<FieldClass>),
}

impl FieldClass {
    /// A field class that is not structural.
    #[must_use]
    pub fn new(kind: FieldKind) -> Self {
        Self { kind, structural: false }
    }

    /// Unsigned 64 bits, decimal.
    #[must_use]
    pub fn u64() -> Self {
        Self::unsigned(64, Base::Decimal)
    }

    /// Unsigned integer of this number of bits.
    #[must_use]
    pub fn unsigned(bits: u32, base: Base) -> Self {
        Self::new(FieldKind::Unsigned(IntegerClass { bits, base, labels: Vec::new() }))
    }

    /// Signed 64 bits, decimal.
    #[must_use]
    pub fn i64() -> Self {
        Self::signed(64)
    }

    /// Signed integer of this number of bits, decimal.
    #[must_use]
    pub fn signed(bits: u32) -> Self {
        Self::new(FieldKind::Signed(IntegerClass { bits, ..IntegerClass::default() }))
    }

    /// Yes or no.
    #[must_use]
    pub fn boolean() -> Self {
        Self::new(FieldKind::Bool)
    }

    /// Floating point of 64 bits.
    #[must_use]
    pub fn real() -> Self {
        Self::new(FieldKind::Real(64))
    }

    /// UTF-8 text.
    #[must_use]
    pub fn text() -> Self {
        Self::new(FieldKind::Text(Encoding::Utf8))
    }

    /// Bytes without a media type.
    #[must_use]
    pub fn blob() -> Self {
        Self::new(FieldKind::Bytes("application/octet-stream".to_owned()))
    }

    /// Elements of a class, `length` of them if it is fixed.
    #[must_use]
    pub fn array(element: FieldClass, length: Option<u64>) -> Self {
        Self::new(FieldKind::Array { element: Box::new(element), length, packed: None })
    }

    /// There or not.
    #[must_use]
    pub fn optional(class: FieldClass) -> Self {
        Self::new(FieldKind::Optional(Box::new(class)))
    }

    /// Named fields in order.
    #[must_use]
    pub fn structure<N: Into<String>>(members: impl IntoIterator<Item = (N, FieldClass)>) -> Self {
        let member = |(name, class): (N, FieldClass)| Member { name: name.into(), class };
        Self::new(FieldKind::Struct(members.into_iter().map(member).collect()))
    }

    /// The members, if this is a struct.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            FieldKind::Struct(members) => members,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_round_trips_through_text() {
        let text = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564";
        assert_eq!(Uuid::parse(text).unwrap().to_string(), text);
        assert_eq!(Uuid::parse(&text.replace('-', "")), Uuid::parse(text));
    }

    #[test]
    fn uuid_of_wrong_length_or_alphabet_is_refused() {
        assert_eq!(Uuid::parse("2a6422d0-6cee-11e0-8c08-cb07d7b3a56"), None);
        assert_eq!(Uuid::parse("2a6422d0-6cee-11e0-8c08-cb07d7b3a5640"), None);
        assert_eq!(Uuid::parse("2a6422d0-6cee-11e0-8c08-cb07d7b3a56g"), None);
        assert_eq!(Uuid::parse(""), None);
    }
}
