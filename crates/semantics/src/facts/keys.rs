// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of spans and messages as numbers: equal keys have equal numbers.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::At;
use lateralis_model::{Base, Event, Field, FieldKind, Host, Member, Value};

/// A part of a key: a payload field by its index, or a property of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Index among the members of the payload.
    Field(usize),
    /// The CPU on which the event happened.
    Cpu,
    /// The process of the event.
    Process,
    /// The machine of the event.
    Host(Host),
    /// The category of the event.
    Category(Category),
}

/// Source of the category of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Category {
    /// All events of the class have this category.
    Fixed(String),
    /// A field contains it.
    Field(usize),
}

/// The parts of an event that form its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlan {
    /// No key: spans are distinguished by thread.
    None,
    /// One field of an integer type.
    Integer {
        /// Index among the members of the payload.
        field: usize,
        /// Base in which it is printed.
        base: Base,
    },
    /// Several parts, or text.
    Parts(Vec<Part>),
}

impl KeyPlan {
    /// From parts of an event with these fields.
    pub fn new(parts: Vec<Part>, members: &[Member]) -> Self {
        let integer = |member: &Member| match &member.class.kind {
            FieldKind::Unsigned(class) | FieldKind::Signed(class) => Some(class.base),
            FieldKind::Bool | FieldKind::Bits { .. } => Some(Base::Decimal),
            _ => None,
        };
        match parts.as_slice() {
            [] => Self::None,
            [Part::Field(field)] => match members.get(*field).and_then(integer) {
                Some(base) => Self::Integer { field: *field, base },
                None => Self::Parts(parts),
            },
            _ => Self::Parts(parts),
        }
    }
}

impl KeyPlan {
    /// Restricts the key to one machine: the same value on another machine is a different key.
    pub fn of_host(self, host: Host) -> Self {
        let mut parts = match self {
            Self::None => return Self::None,
            Self::Integer { field, .. } => vec![Part::Field(field)],
            Self::Parts(parts) => parts,
        };
        parts.push(Part::Host(host));
        Self::Parts(parts)
    }
}

/// Numbers and texts of the keys of one kind of span or message.
#[derive(Debug, Default)]
pub struct Keys {
    base: Option<Base>,
    numbers: HashMap<Vec<u8>, u64>,
    /// Texts by number, for keys that are not single integers.
    texts: Vec<String>,
}

impl Keys {
    /// Sets the base in which single-integer keys are printed.
    pub fn read_as(&mut self, base: Option<Base>) {
        if base.is_some() {
            self.base = base;
        }
    }

    /// Number of the key of an event; `None` for spans without a key.
    ///
    /// Cost: for a single integer, the walk to its field; otherwise one lookup.
    pub fn number(&mut self, plan: &KeyPlan, event: &Event<'_>, at: &At) -> Option<u64> {
        let (cpu, pid) = (at.cpu, at.writer.map(|writer| writer.pid));
        let field = |index: usize| super::plan::field(event, index);
        match plan {
            KeyPlan::None => None,
            KeyPlan::Integer { field: index, base } => {
                self.base = Some(*base);
                Some(field(*index).and_then(|field| field.as_u64()).unwrap_or(0))
            }
            KeyPlan::Parts(parts) => {
                let mut bytes = Vec::new();
                for part in parts {
                    match part {
                        // An absent CPU is a different key than CPU 0.
                        Part::Cpu => add(&mut bytes, &cpu.map_or([0xff; 8], cpu_bytes)),
                        Part::Process => add(&mut bytes, &pid.map_or([0xff; 8], cpu_bytes)),
                        Part::Host(host) => add(&mut bytes, &cpu_bytes(host.number())),
                        Part::Category(Category::Fixed(name)) => add(&mut bytes, name.as_bytes()),
                        Part::Category(Category::Field(index)) | Part::Field(index) => {
                            add_field(&mut bytes, field(*index));
                        }
                    }
                }
                if let Some(number) = self.numbers.get(&bytes) {
                    return Some(*number);
                }
                let number = self.texts.len() as u64;
                self.texts.push(text(parts, field, (cpu, pid)));
                self.numbers.insert(bytes, number);
                Some(number)
            }
        }
    }

    /// Human-readable key.
    pub fn text(&self, key: u64) -> String {
        match self.texts.get(key as usize).filter(|_| self.base.is_none()) {
            Some(text) => text.clone(),
            None => number_text(key, self.base.unwrap_or_default()),
        }
    }
}

fn cpu_bytes(cpu: u32) -> [u8; 8] {
    u64::from(cpu).to_le_bytes()
}

/// Length-prefixed, so that ("a", "bc") differs from ("ab", "c").
fn add(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u64).to_le_bytes());
    bytes.extend(part);
}

/// Appends an injective encoding of a value: equal values give equal bytes, different values different
/// bytes.
fn add_field(bytes: &mut Vec<u8>, field: Option<Field<'_>>) {
    let Some(field) = field else {
        // A length that no value has.
        return bytes.extend(u64::MAX.to_le_bytes());
    };
    match field.value() {
        Value::Text(text) => add(bytes, text.to_str().as_bytes()),
        Value::Bytes(blob) => add(bytes, blob),
        Value::Real(real) => add(bytes, &real.to_bits().to_le_bytes()),
        Value::Array(elements) => {
            // An array of characters or numbers is encoded as its contents.
            let mut inner = Vec::new();
            elements.for_each(|element| add_field(&mut inner, Some(element)));
            add(bytes, &inner);
        }
        Value::Struct(fields) => {
            let mut inner = Vec::new();
            for (member, field) in fields {
                if !matches!(field.value(), Value::Optional(None)) {
                    add(&mut inner, member.name.as_bytes());
                    add_field(&mut inner, Some(field));
                }
            }
            add(bytes, &inner);
        }
        Value::Optional(inner) => add_field(bytes, inner),
        Value::Variant(_, inner) => add_field(bytes, Some(inner)),
        Value::Bool(_) | Value::Unsigned(_) | Value::Signed(_) | Value::Bits(_) => {
            add(bytes, &field.as_u64().unwrap_or(0).to_le_bytes());
        }
    }
}

fn text<'a>(
    parts: &[Part],
    field: impl Fn(usize) -> Option<Field<'a>>,
    (cpu, pid): (Option<u32>, Option<u32>),
) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Category(Category::Fixed(category)) if category.is_empty() => continue,
            Part::Host(host) if host.is_first() => continue,
            _ => {}
        }
        if !text.is_empty() {
            text.push(' ');
        }
        // Writing to a String cannot fail.
        let _ = match part {
            Part::Cpu => match cpu {
                Some(cpu) => write!(text, "cpu{cpu}"),
                None => write!(text, "cpu?"),
            },
            Part::Process => match pid {
                Some(pid) => write!(text, "pid={pid}"),
                None => write!(text, "pid=?"),
            },
            Part::Host(host) => write!(text, "machine={}", host.number()),
            Part::Category(Category::Fixed(category)) => write!(text, "cat={category}"),
            Part::Category(Category::Field(index)) => {
                write!(text, "cat={}", field(*index).map(field_text).unwrap_or_default())
            }
            Part::Field(index) => match field(*index) {
                Some(field) => write!(text, "{}", field_text(field)),
                None => write!(text, "?"),
            },
        };
    }
    text
}

/// Human-readable value of a key: an integer in its base, an enumeration by its label, text unchanged.
pub fn field_text(field: Field<'_>) -> String {
    match field.value() {
        Value::Text(text) => text.to_str().into_owned(),
        Value::Real(real) => real.to_string(),
        Value::Signed(value) => label(field, i128::from(value)).unwrap_or(value.to_string()),
        Value::Unsigned(value) => {
            let base = match &field.class().kind {
                FieldKind::Unsigned(class) => class.base,
                _ => Base::Decimal,
            };
            label(field, i128::from(value)).unwrap_or_else(|| number_text(value, base))
        }
        Value::Bool(value) => value.to_string(),
        Value::Bits(value) => value.to_string(),
        Value::Optional(Some(inner)) | Value::Variant(_, inner) => field_text(inner),
        Value::Bytes(bytes) => {
            let hex: Vec<String> = bytes.iter().take(32).map(|b| format!("{b:02x}")).collect();
            hex.concat()
        }
        Value::Struct(fields) => {
            let members = fields.into_iter().filter_map(|(member, field)| {
                let is_there = !matches!(field.value(), Value::Optional(None));
                is_there.then(|| format!("{}={}", member.name, field_text(field)))
            });
            members.collect::<Vec<_>>().join(" ")
        }
        Value::Array(elements) => elements.map(field_text).collect::<Vec<_>>().join(" "),
        Value::Optional(None) => "?".to_owned(),
    }
}

/// Label of a value of an enumeration.
fn label(field: Field<'_>, value: i128) -> Option<String> {
    let (FieldKind::Unsigned(class) | FieldKind::Signed(class)) = &field.class().kind else {
        return None;
    };
    let has = |label: &&lateralis_model::Label| label.ranges.iter().any(|r| r.contains(value));
    class.labels.iter().find(has).map(|label| label.name.clone())
}

fn number_text(value: u64, base: Base) -> String {
    match base {
        Base::Binary => format!("{value:#b}"),
        Base::Octal => format!("{value:#o}"),
        Base::Decimal => value.to_string(),
        Base::Hexadecimal => format!("{value:#x}"),
    }
}
