// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The canonical text of a schema, which programs carry with them, and its hash.
//!
//! The text says everything that the schema says, one definition or event a
//! line, in a fixed spelling: enums, subsystems, budgets. Compiling it gives the
//! same schema (but for the places), so also the same text and hash.

use crate::schema::{Clause, EnumType, Event, Field, FieldType, Scalar, Schema};
use crate::string_literal::encode;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

/// The canonical text of a schema and its hash, made when one of them is asked for the first time. It follows
/// from the rest of the schema and takes no part in comparisons.
#[derive(Clone, Debug, Default)]
pub(crate) struct Canonical(OnceLock<(Arc<str>, u64)>);

impl PartialEq for Canonical {
    fn eq(&self, _other: &Canonical) -> bool {
        true
    }
}

impl Schema {
    /// The canonical text of the schema as it was when this or [`hash`](Schema::hash) was called first.
    /// Cost of the first call: O(size of the schema), allocates.
    pub fn canonical_text(&self) -> &str {
        &self.canonical().0
    }

    fn canonical(&self) -> &(Arc<str>, u64) {
        self.canonical.0.get_or_init(|| {
            let text = self.write_canonical();
            let hash = text_hash(&text);
            (text.into(), hash)
        })
    }

    fn write_canonical(&self) -> String {
        let mut out = format!("schema {};\n", self.name);
        for enumeration in &self.enums {
            if let Some(name) = &enumeration.name {
                let _ = writeln!(out, "enum {name} {};", enum_body(enumeration));
            }
        }
        let mut next_subsystem_id = 0;
        for subsystem in &self.subsystems {
            let _ = write!(out, "subsystem {}", subsystem.name);
            head(&mut out, &subsystem.description, subsystem.id, &mut next_subsystem_id);
            out.push_str(" {\n");
            let mut next_event_id = 0;
            for event in &self.events[subsystem.events.clone()] {
                let _ = write!(out, "event {}", event.name);
                head(&mut out, &event.description, event.id, &mut next_event_id);
                self.rest_of_event(&mut out, event);
                out.push_str(",\n");
            }
            out.push_str("};\n");
        }
        for budget in &self.budgets {
            let comparison = if budget.is_inclusive { "<=" } else { "<" };
            let _ = writeln!(
                out,
                "budget {} {} {comparison} {} {};",
                budget.span,
                budget.statistic.word(),
                budget.limit_text(),
                budget.unit.word()
            );
        }
        out
    }

    /// 64-bit FNV-1a of the canonical text: offset basis 0xcbf29ce484222325, for
    /// each byte exclusive or and multiplication by 0x100000001b3. It identifies a
    /// schema among those of one machine; it is no protection against forgery.
    /// Cost: as [`canonical_text`](Schema::canonical_text).
    pub fn hash(&self) -> u64 {
        self.canonical().1
    }

    fn rest_of_event(&self, out: &mut String, event: &Event) {
        if !event.is_legacy {
            let fields: Vec<String> = event.fields.iter().map(|field| self.field(field)).collect();
            let _ = write!(out, " ({})", fields.join(", "));
        }
        for clause in &event.clauses {
            let _ = write!(out, " {}", clause_text(clause, event));
        }
        if event.is_format {
            out.push_str(" format");
        }
    }

    fn field(&self, field: &Field) -> String {
        let mut out = format!("{}: {}", field.name, self.type_text(field.ty));
        for annotation in &field.annotations {
            let _ = write!(out, " @{}", annotation.word());
        }
        out
    }

    /// A type as it is written in a schema file.
    pub fn type_text(&self, ty: FieldType) -> String {
        match ty {
            FieldType::Scalar(scalar) => self.scalar_text(scalar),
            FieldType::Array { element, length } => {
                format!("[{}; {length}]", self.scalar_text(element))
            }
            FieldType::Sequence(element) => format!("[{}]", self.scalar_text(element)),
            FieldType::String => "string".to_owned(),
            FieldType::Bytes => "bytes".to_owned(),
        }
    }

    fn scalar_text(&self, scalar: Scalar) -> String {
        match scalar {
            Scalar::Integer(integer) => integer.name().to_owned(),
            Scalar::F32 => "f32".to_owned(),
            Scalar::F64 => "f64".to_owned(),
            Scalar::Bool => "bool".to_owned(),
            Scalar::Enum { index, .. } => {
                let enumeration = &self.enums[index];
                match &enumeration.name {
                    Some(name) => name.clone(),
                    None => format!("enum {}", enum_body(enumeration)),
                }
            }
        }
    }
}

/// 64-bit FNV-1a.
fn text_hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Description and id, as far as they must be said.
fn head(out: &mut String, description: &str, id: u16, next: &mut u32) {
    if !description.is_empty() {
        let _ = write!(out, " {}", encode(description));
    }
    if u32::from(id) != *next {
        let _ = write!(out, " = {id}");
    }
    *next = u32::from(id) + 1;
}

fn enum_body(enumeration: &EnumType) -> String {
    let labels: Vec<String> =
        enumeration.labels.iter().map(|(label, value)| format!("{label} = {value}")).collect();
    format!(": {} {{ {} }}", enumeration.container.name(), labels.join(", "))
}

/// A clause as it is written in a schema file.
pub(crate) fn clause_text(clause: &Clause, event: &Event) -> String {
    let (mut out, keys) = match clause {
        Clause::Begin { span, keys } => (format!("begin {span}"), keys),
        Clause::End { span, keys } => (format!("end {span}"), keys),
        Clause::Send { channel, keys } => (format!("send {channel}"), keys),
        Clause::Recv { channel, keys } => (format!("recv {channel}"), keys),
        Clause::Counter { field, name, keys } => {
            let field = &event.fields[*field].name;
            // The name is written if it differs, and if it could not be distinguished from the
            // following word.
            let title = if name == field { String::new() } else { format!(" {name}") };
            (format!("counter {field}{title}"), keys)
        }
        Clause::State { field, keys } => (format!("state {}", event.fields[*field].name), keys),
    };
    if !keys.is_empty() {
        let names: Vec<&str> = keys.iter().map(|key| event.fields[*key].name.as_str()).collect();
        let _ = write!(out, " key {}", names.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn hash_is_fnv_1a() {
        // Test vectors of the algorithm's authors.
        assert_eq!(super::text_hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(super::text_hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(super::text_hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
