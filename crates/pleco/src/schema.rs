// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A checked schema: every name resolved, every id known, every layout fixed.
//! This is what all outputs are made from, and what a reader of traces uses.

use crate::canonical::Canonical;
use crate::source::Place;
use std::ops::Range;

/// The events of a program, and what they mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Name: `schema NAME;`, by default the stem of the file's name.
    pub name: String,
    /// Named enums in order of declaration, then those written inside fields, in
    /// order of appearance.
    pub enums: Vec<EnumType>,
    /// In order of declaration.
    pub subsystems: Vec<Subsystem>,
    /// All events of all subsystems, in order of declaration: `events[i].index == i`.
    pub events: Vec<Event>,
    /// In order of declaration.
    pub budgets: Vec<Budget>,
    /// Its canonical text and hash, once they were asked for.
    pub(crate) canonical: Canonical,
}

/// A group of events that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Subsystem {
    /// Name as written.
    pub name: String,
    /// Description; empty if there is none.
    pub description: String,
    /// Number in the two-level numbering of the original tool.
    pub id: u16,
    /// Range of its events in [`Schema::events`].
    pub events: Range<usize>,
    /// Where it is defined.
    pub place: Place,
}

/// One kind of event: an event class.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Number over the whole schema, from 0, in order of declaration. Event id in
    /// a trace = base id of the schema + index.
    pub index: u32,
    /// Index of its subsystem in [`Schema::subsystems`].
    pub subsystem: usize,
    /// Number in its subsystem, in the two-level numbering of the original tool.
    pub id: u16,
    /// Name as written.
    pub name: String,
    /// Description; empty if there is none. With [`is_format`](Event::is_format),
    /// a printf format for the fields.
    pub description: String,
    /// True if no field list was written: the payload is the single `arg: u32` of
    /// the original tool.
    pub is_legacy: bool,
    /// Payload, in order. At most [`FIELDS_MAX`].
    pub fields: Vec<Field>,
    /// What the event means, in the order written.
    pub clauses: Vec<Clause>,
    /// True if the description is a format string (clause `format`).
    pub is_format: bool,
    /// Where it is defined.
    pub place: Place,
}

/// Most fields an event can have.
pub const FIELDS_MAX: usize = 16;
/// Most events a schema can have: an area numbers 32768, of which 16 are internal.
pub const EVENTS_MAX: usize = 32_752;

/// One value of the payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name as written.
    pub name: String,
    /// Type.
    pub ty: FieldType,
    /// Annotations in the order written.
    pub annotations: Vec<Annotation>,
    /// Where it is defined.
    pub place: Place,
}

impl Field {
    /// True if the field has this annotation.
    pub fn has(&self, annotation: Annotation) -> bool {
        self.annotations.contains(&annotation)
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// One number, truth value or enum.
    Scalar(Scalar),
    /// A fixed number of elements.
    Array {
        /// Type of each element.
        element: Scalar,
        /// Number of elements, 1 to [`ARRAY_LENGTH_MAX`].
        length: u32,
    },
    /// A variable number of elements: u32 count, then the elements.
    Sequence(Scalar),
    /// Bytes up to a NUL, UTF-8 by intention.
    String,
    /// u32 count, then that many bytes.
    Bytes,
}

impl FieldType {
    /// The enum in the type, as an index in [`Schema::enums`].
    pub fn enum_index(self) -> Option<usize> {
        match self {
            FieldType::Scalar(Scalar::Enum { index, .. })
            | FieldType::Array { element: Scalar::Enum { index, .. }, .. }
            | FieldType::Sequence(Scalar::Enum { index, .. }) => Some(index),
            _ => None,
        }
    }
}

/// Longest fixed array.
pub const ARRAY_LENGTH_MAX: u32 = 4096;

/// A type of fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// An integer.
    Integer(Integer),
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// One byte, 0 or 1.
    Bool,
    /// A labelled integer.
    Enum {
        /// Index in [`Schema::enums`].
        index: usize,
        /// The integer that holds it, the same as [`EnumType::container`].
        container: Integer,
    },
}

impl Scalar {
    /// Size, which is also the alignment.
    pub fn size_bytes(self) -> u32 {
        match self {
            Scalar::Integer(integer) | Scalar::Enum { container: integer, .. } => {
                integer.size_bytes()
            }
            Scalar::F32 => 4,
            Scalar::F64 => 8,
            Scalar::Bool => 1,
        }
    }
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub enum Integer {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
}

impl Integer {
    /// All of them, with their names in the language.
    pub const ALL: [(&'static str, Integer); 8] = [
        ("u8", Integer::U8),
        ("u16", Integer::U16),
        ("u32", Integer::U32),
        ("u64", Integer::U64),
        ("i8", Integer::I8),
        ("i16", Integer::I16),
        ("i32", Integer::I32),
        ("i64", Integer::I64),
    ];

    /// Name in the language.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, integer)| *integer == self).map_or("", |(name, _)| name)
    }

    /// Size, which is also the alignment.
    pub fn size_bytes(self) -> u32 {
        match self {
            Integer::U8 | Integer::I8 => 1,
            Integer::U16 | Integer::I16 => 2,
            Integer::U32 | Integer::I32 => 4,
            Integer::U64 | Integer::I64 => 8,
        }
    }

    /// True if it can be negative.
    pub fn is_signed(self) -> bool {
        matches!(self, Integer::I8 | Integer::I16 | Integer::I32 | Integer::I64)
    }

    /// Least and greatest value.
    pub fn range(self) -> (i128, i128) {
        let bits = self.size_bytes() * 8;
        if self.is_signed() {
            (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
        } else {
            (0, (1_i128 << bits) - 1)
        }
    }
}

/// An enum: labels for the values of an integer.
#[derive(Clone, Debug, PartialEq)]
pub struct EnumType {
    /// Name; `None` for an enum written inside a field.
    pub name: Option<String>,
    /// The integer in the record.
    pub container: Integer,
    /// Labels and values in the order written; both unique.
    pub labels: Vec<(String, i128)>,
    /// For an enum written inside a field: its event, as an index into
    /// [`Schema::events`], and the field's index there.
    pub owner: Option<(usize, usize)>,
    /// Where it is defined.
    pub place: Place,
}

impl EnumType {
    /// The label of a value.
    pub fn label(&self, value: i128) -> Option<&str> {
        self.labels.iter().find(|(_, v)| *v == value).map(|(label, _)| label.as_str())
    }
}

macro_rules! annotations {
    ($($name:ident $word:literal $group:ident $doc:literal,)*) => {
        /// What a number is, beyond its type. A closed list
        /// (spec/schema-language.md §6).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Annotation { $(#[doc = $doc] $name,)* }

        impl Annotation {
            /// All annotations.
            pub const ALL: &[Annotation] = &[$(Annotation::$name,)*];

            /// The word after the `@`.
            pub fn word(self) -> &'static str {
                match self { $(Annotation::$name => $word,)* }
            }

            /// What the annotation says, in a few words.
            pub fn meaning(self) -> &'static str {
                match self { $(Annotation::$name => $doc,)* }
            }

            pub(crate) fn group(self) -> AnnotationGroup {
                match self { $(Annotation::$name => AnnotationGroup::$group,)* }
            }
        }
    };
}

annotations! {
    Hex "hex" Base "shown in base 16",
    Oct "oct" Base "shown in base 8",
    Bin "bin" Base "shown in base 2",
    Bytes "bytes" Unit "a size in bytes",
    Bits "bits" Unit "a size in bits",
    Ns "ns" Unit "a duration in nanoseconds",
    Us "us" Unit "a duration in microseconds",
    Ms "ms" Unit "a duration in milliseconds",
    S "s" Unit "a duration in seconds",
    Cycles "cycles" Unit "a duration in clock ticks",
    Hz "hz" Unit "a frequency in hertz",
    Percent "percent" Unit "a part of a hundred",
    Pid "pid" Meaning "a process id",
    Tid "tid" Meaning "a thread id",
    Cpu "cpu" Meaning "a CPU number",
    Symbol "symbol" Meaning "an address in the program's code",
    Secret "secret" Secrecy "must not leave the machine: exports leave it out",
}

/// Of each group a field can have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnotationGroup {
    /// How it is shown; only for integers.
    Base,
    /// What it is measured in; only for numbers.
    Unit,
    /// What it identifies; only for integers.
    Meaning,
    /// For every type.
    Secrecy,
}

/// What an event means for an analysis. Fields are indices into [`Event::fields`].
#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    /// A span begins. Spans with equal keys match; without keys, by thread.
    Begin {
        /// Name of the span, shared by all subsystems.
        span: String,
        /// Key fields of the span.
        keys: Vec<usize>,
    },
    /// A span ends.
    End {
        /// Name of the span.
        span: String,
        /// Key fields of the span.
        keys: Vec<usize>,
    },
    /// A message leaves.
    Send {
        /// Name of the channel.
        channel: String,
        /// Key fields of the message.
        keys: Vec<usize>,
    },
    /// A message arrives.
    Recv {
        /// Name of the channel.
        channel: String,
        /// Key fields of the message.
        keys: Vec<usize>,
    },
    /// A quantity has this value from now on.
    Counter {
        /// The field that holds the value.
        field: usize,
        /// Name of the counter; by default the field's.
        name: String,
        /// Key fields of the counter.
        keys: Vec<usize>,
    },
    /// Something is in this state from now on.
    State {
        /// The field that holds the state.
        field: usize,
        /// Key fields of the object in the state; without keys, the thread.
        keys: Vec<usize>,
    },
}

/// A promise about the durations of a span.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Name of the span.
    pub span: String,
    /// Which number of the distribution.
    pub statistic: Statistic,
    /// `<=` rather than `<`.
    pub is_inclusive: bool,
    /// Limit in thousandths of [`unit`](Budget::unit).
    pub limit_thousandths: u64,
    /// Unit of the limit.
    pub unit: BudgetUnit,
    /// Where it is defined.
    pub place: Place,
}

impl Budget {
    /// The limit in nanoseconds; `None` if it is given in cycles.
    pub fn limit_ns(&self) -> Option<f64> {
        let unit_ns = match self.unit {
            BudgetUnit::Ns => 1.0,
            BudgetUnit::Us => 1e3,
            BudgetUnit::Ms => 1e6,
            BudgetUnit::S => 1e9,
            BudgetUnit::Cycles => return None,
        };
        Some(self.limit_thousandths as f64 / 1000.0 * unit_ns)
    }

    /// The limit in clock ticks; `None` if it is given in time.
    pub fn limit_cycles(&self) -> Option<f64> {
        (self.unit == BudgetUnit::Cycles).then(|| self.limit_thousandths as f64 / 1000.0)
    }

    /// The limit as a decimal number without its unit: `1.5`.
    pub fn limit_text(&self) -> String {
        let (whole, rest) = (self.limit_thousandths / 1000, self.limit_thousandths % 1000);
        if rest == 0 {
            return whole.to_string();
        }
        format!("{whole}.{rest:03}").trim_end_matches('0').to_owned()
    }
}

macro_rules! words {
    ($(#[$meta:meta])* $type:ident { $($name:ident $word:literal $doc:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $(#[doc = $doc] $name,)* }

        impl $type {
            /// All of them.
            pub const ALL: &[$type] = &[$($type::$name,)*];

            /// The word in the language.
            pub fn word(self) -> &'static str {
                match self { $($type::$name => $word,)* }
            }
        }
    };
}

words! {
    /// Which number of a distribution of durations.
    Statistic {
        P50 "p50" "The median.",
        P90 "p90" "90 % are at most this.",
        P99 "p99" "99 % are at most this.",
        P999 "p99.9" "99.9 % are at most this.",
        Mean "mean" "The arithmetic mean.",
        Max "max" "The longest.",
        Min "min" "The shortest.",
    }
}

words! {
    /// Unit of a budget.
    BudgetUnit {
        Ns "ns" "Nanoseconds.",
        Us "us" "Microseconds.",
        Ms "ms" "Milliseconds.",
        S "s" "Seconds.",
        Cycles "cycles" "Clock ticks.",
    }
}

/// A span or channel with the events at its two ends, as indices into
/// [`Schema::events`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing<'a> {
    /// Name of the span or channel.
    pub name: &'a str,
    /// Events that begin or send.
    pub openings: Vec<usize>,
    /// Events that end or receive.
    pub closings: Vec<usize>,
}

impl Schema {
    /// `subsystem:EVENT`, the name of an event class in traces.
    pub fn full_name(&self, event: &Event) -> String {
        format!("{}:{}", self.subsystems[event.subsystem].name, event.name)
    }

    /// All spans in order of their first appearance. Cost: O(clauses).
    pub fn spans(&self) -> Vec<Pairing<'_>> {
        self.pairings(|clause| match clause {
            Clause::Begin { span, .. } => Some((span, true)),
            Clause::End { span, .. } => Some((span, false)),
            _ => None,
        })
    }

    /// All channels in order of their first appearance. Cost: O(clauses).
    pub fn channels(&self) -> Vec<Pairing<'_>> {
        self.pairings(|clause| match clause {
            Clause::Send { channel, .. } => Some((channel, true)),
            Clause::Recv { channel, .. } => Some((channel, false)),
            _ => None,
        })
    }

    fn pairings<'a>(
        &'a self,
        select: impl Fn(&'a Clause) -> Option<(&'a String, bool)>,
    ) -> Vec<Pairing<'a>> {
        let mut found: Vec<Pairing<'a>> = Vec::new();
        let mut by_name = std::collections::HashMap::new();
        for (index, event) in self.events.iter().enumerate() {
            for (name, is_opening) in event.clauses.iter().filter_map(&select) {
                let at = *by_name.entry(name.as_str()).or_insert_with(|| {
                    found.push(Pairing { name, openings: Vec::new(), closings: Vec::new() });
                    found.len() - 1
                });
                let side =
                    if is_opening { &mut found[at].openings } else { &mut found[at].closings };
                side.push(index);
            }
        }
        found
    }
}
