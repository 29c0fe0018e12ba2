// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metadata of CTF 2: a sequence of JSON objects, one per class.
//!
//! Lenient where writers are known to differ: record separators may be
//! missing, commas may trail, names of release candidates are understood.
//! What the specification calls an extension or an attribute is passed over.

mod fields;
mod rules;
mod tidied;

use std::collections::HashMap;
use std::sync::Arc;

use lateralis_model::{Attribute, Clock, ClockOrigin, EnvValue, Uuid};
use serde_json::{Map, Value};

use super::field::{
    ArrayClass, DEPTH_LIMIT, FieldClass, Length, MemberClass, OptionClass, OptionalClass, Scope,
    Selection, StructClass, VarIntClass, VariantClass, WEIGHT_LIMIT,
};
use super::once::Once;
use super::{DIAGNOSTIC_LIMIT, Diagnostic, EventClass, StreamClass, TraceClass, brief, roles};

use fields::{
    alignment, base, blob, faults, field_roles, integer, labels, length_field, location,
    no_extensions, number_of, object, ranges, scalar, static_length, text, text_of, unit_bytes,
};
use tidied::{Tidied, lines};

type Object = Map<String, Value>;
type Parsed<T> = Result<T, String>;

/// Parses CTF 2 metadata text.
pub(super) fn parse(text: &str, diagnostics: &mut Vec<Diagnostic>) -> TraceClass {
    let mut reader = Reader::default();
    let mut report = |line: usize, column: usize, message: String| {
        if diagnostics.len() < DIAGNOSTIC_LIMIT {
            diagnostics.push(Diagnostic::new(line as u32, column as u32, message));
        }
    };
    let mut tidied = Tidied::new(text);
    'parts: while tidied.advance() {
        let part = tidied.part.as_str();
        let mut fragments = serde_json::Deserializer::from_str(part).into_iter::<Value>();
        loop {
            let begin = fragments.byte_offset();
            match fragments.next() {
                None => break,
                Some(Ok(value)) => {
                    let fault = reader.fragment(&value).err();
                    let messages: Vec<String> = reader.remarks.drain(..).chain(fault).collect();
                    if !messages.is_empty() {
                        let rest = &part[begin.min(part.len())..];
                        let before = &part[..part.len() - rest.trim_start().len()];
                        let line = tidied.line + lines(before);
                        messages.into_iter().for_each(|message| report(line, 1, message));
                    }
                }
                // After a syntax error the position at which JSON continues is unknown.
                Some(Err(error)) => {
                    let first = error.line() <= 1;
                    let column = error.column() + if first { tidied.column } else { 0 };
                    let line = tidied.line + error.line().saturating_sub(1);
                    report(line, column, format!("not JSON: {}", kind_of(&error)));
                    break 'parts;
                }
            }
        }
    }
    let mut trace = reader.trace;
    roles::mark_checksum(&mut trace);
    trace
}

/// What is wrong, without the place, which counts from the beginning of a part.
fn kind_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).map_or(text.clone(), str::to_owned)
}

#[derive(Default)]
struct Reader {
    trace: TraceClass,
    aliases: HashMap<String, FieldClass>,
    clock_ids: HashMap<String, usize>,
    once: Once,
    weight: u64,
    fragments: usize,
    has_trace_class: bool,
    /// Whether the trace needs something that is not known here.
    refused: bool,
    /// What is wrong in the fragment being read, but costs nothing but itself.
    remarks: Vec<String>,
}

impl Reader {
    fn remark(&mut self, message: String) {
        if self.remarks.len() < DIAGNOSTIC_LIMIT {
            self.remarks.push(super::shortened(message));
        }
    }

    fn fragment(&mut self, value: &Value) -> Parsed<()> {
        let fragment = object(value)?;
        if self.refused {
            return Ok(());
        }
        faults(fragment, &mut |message| self.remark(message));
        let kind = fragment.get("type").and_then(Value::as_str);
        if let Err(message) = no_extensions(fragment) {
            // Those of the preamble are of the whole trace.
            self.refused = kind == Some("preamble");
            return Err(message);
        }
        self.fragments += 1;
        if (kind == Some("preamble")) != (self.fragments == 1) {
            self.remark("the first fragment, and no other, must be a preamble".to_owned());
        }
        match kind {
            Some("preamble") => self.preamble(fragment),
            Some("field-class-alias") => self.alias(fragment),
            Some("clock-class") => self.clock(fragment),
            Some("trace-class") => self.trace_class(fragment),
            Some("data-stream-class") => self.stream_class(fragment),
            Some("event-record-class") => self.event_class(fragment),
            other => Err(format!("unknown kind of fragment {}", brief(other.unwrap_or("(none)")))),
        }
    }

    fn preamble(&mut self, fragment: &Object) -> Parsed<()> {
        let version = number_of(fragment, "version", 2)?;
        if version != 2 {
            return Err(format!("this is version {version} of the format, not 2"));
        }
        self.trace.major_version = 2;
        self.trace.uuid = fragment.get("uuid").and_then(uuid_value);
        Ok(())
    }

    fn alias(&mut self, fragment: &Object) -> Parsed<()> {
        let name = text_of(fragment, "name").ok_or("an alias needs a name")?;
        let class = self.class(fragment.get("field-class").ok_or("an alias needs a class")?)?;
        if self.aliases.insert(name.clone(), class).is_some() {
            self.remark(format!(
                "alias `{}` is declared twice; the later one counts",
                brief(&name)
            ));
        }
        Ok(())
    }

    fn clock(&mut self, fragment: &Object) -> Parsed<()> {
        let id = text_of(fragment, "id").or_else(|| text_of(fragment, "name"));
        let id = id.ok_or("a clock class needs an id")?;
        let frequency = number_of(fragment, "frequency", 1_000_000_000)?;
        if frequency == 0 {
            return Err("the frequency of a clock must be positive".to_owned());
        }
        let offset = fragment.get("offset-from-origin").or_else(|| fragment.get("offset"));
        let (mut seconds, mut cycles) = (0, 0);
        if let Some(offset) = offset {
            let offset = object(offset)?;
            seconds = offset.get("seconds").map_or(Ok(0), integer)?;
            cycles = offset.get("cycles").map_or(Ok(0), integer)?;
        }
        let within =
            |number: i128| i64::try_from(number).map_err(|_| "the clock offset is too large");
        let name = text_of(fragment, "name").unwrap_or_else(|| id.clone());
        let mut clock = Clock::new(&name, frequency, within(seconds)?, within(cycles)?);
        clock.description = text_of(fragment, "description").unwrap_or_default();
        let uid = fragment.get("uid").or_else(|| fragment.get("uuid"));
        clock.uuid = uid.and_then(uuid_value);
        // A UUID has several spellings, any other text is itself.
        clock.uid = uid.filter(|_| clock.uuid.is_none()).and_then(Value::as_str).map(str::to_owned);
        clock.namespace = text_of(fragment, "namespace");
        clock.origin = fragment.get("origin").and_then(Value::as_object).and_then(origin);
        clock.precision = number_of(fragment, "precision", 0)?;
        clock.unix_epoch = fragment.get("origin").and_then(Value::as_str) == Some("unix-epoch")
            || fragment.get("origin-is-unix-epoch").and_then(Value::as_bool) == Some(true);
        if let Some(accuracy) = fragment.get("accuracy")
            && !accuracy.is_u64()
        {
            self.remark(format!("`accuracy` must be a number ≥ 0, found {}", brief(accuracy)));
        }
        if self.clock_ids.contains_key(&id) {
            return Err(format!("clock class `{}` is declared twice", brief(&id)));
        }
        // Two clock classes with one identity are one clock, unless what they state of it differs.
        let is_same = |known: &Clock| {
            known.is_same_clock(&clock)
                && known.converts_like(&clock)
                && known.precision == clock.precision
        };
        let known = self.trace.clocks.iter().take(CLOCKS_COMPARED).position(is_same);
        self.clock_ids.insert(id, known.unwrap_or(self.trace.clocks.len()));
        if known.is_none() {
            self.trace.clocks.push(clock);
        }
        Ok(())
    }

    fn trace_class(&mut self, fragment: &Object) -> Parsed<()> {
        if std::mem::replace(&mut self.has_trace_class, true) {
            return Err("there is a trace class already".to_owned());
        }
        self.trace.name = text_of(fragment, "name");
        if self.trace.uuid.is_none() {
            self.trace.uuid =
                fragment.get("uid").or_else(|| fragment.get("uuid")).and_then(uuid_value);
        }
        self.trace.packet_header = self.scope(fragment, "packet-header-field-class")?;
        if let Some(environment) = fragment.get("environment") {
            for (key, value) in object(environment)? {
                let value = match value.as_str() {
                    Some(text) => EnvValue::Text(text.to_owned()),
                    None => EnvValue::Integer(integer(value)?),
                };
                self.trace.environment.push((key.clone(), value));
            }
        }
        Ok(())
    }

    fn stream_class(&mut self, fragment: &Object) -> Parsed<()> {
        let id = number_of(fragment, "id", 0)?;
        if self.trace.streams.iter().any(|stream| stream.id == id) {
            return Err(format!("stream class {id} is declared twice"));
        }
        let clock_id = ["default-clock-class-id", "default-clock-class-name"]
            .iter()
            .find_map(|key| text_of(fragment, key));
        let clock = match clock_id {
            None => None,
            Some(id) => {
                let index = self.clock_ids.get(&id);
                Some(*index.ok_or_else(|| format!("unknown clock class `{}`", brief(&id)))?)
            }
        };
        let stream = StreamClass {
            id,
            name: text_of(fragment, "name"),
            clock,
            packet_context: self.scope(fragment, "packet-context-field-class")?,
            event_header: self.scope(fragment, "event-record-header-field-class")?,
            common_context: self.scope(fragment, "event-record-common-context-field-class")?,
            events: Vec::new(),
        };
        self.trace.streams.push(stream);
        Ok(())
    }

    fn event_class(&mut self, fragment: &Object) -> Parsed<()> {
        let stream_id = number_of(fragment, "data-stream-class-id", 0)?;
        let mut event = EventClass {
            id: number_of(fragment, "id", 0)?,
            name: text_of(fragment, "name").unwrap_or_default(),
            context: self.scope(fragment, "specific-context-field-class")?,
            payload: self.scope(fragment, "payload-field-class")?,
            attributes: Vec::new(),
        };
        let known = fragment.get("attributes").and_then(|a| a.get("babeltrace.org,2020"));
        for (key, value) in known.and_then(Value::as_object).into_iter().flatten() {
            if let Some(value) = value.as_str() {
                event.attributes.push(Attribute { name: key.clone(), value: value.to_owned() });
            }
        }
        let ours = fragment.get("attributes").and_then(|a| a.get("lateralis"));
        let clauses = ours.and_then(|ours| ours.get("clauses")).and_then(Value::as_array);
        for clause in clauses.into_iter().flatten().filter_map(Value::as_str) {
            let name = lateralis_model::role::ATTRIBUTE.to_owned();
            event.attributes.push(Attribute { name, value: clause.to_owned() });
        }
        event.attributes.shrink_to_fit();
        let stream = self.trace.streams.iter_mut().find(|stream| stream.id == stream_id);
        let stream = stream.ok_or_else(|| format!("unknown stream class {stream_id}"))?;
        stream.events.push(event);
        Ok(())
    }

    fn scope(&mut self, fragment: &Object, key: &str) -> Parsed<Option<FieldClass>> {
        let Some(value) = fragment.get(key) else {
            return Ok(None);
        };
        match self.class(value).map_err(|reason| format!("{key}: {reason}"))? {
            mut class @ FieldClass::Struct(_) => {
                let scope = scope_of(key).ok_or_else(|| format!("unknown scope {key}"))?;
                let mut messages = Vec::new();
                rules::keep_roles(&mut class, scope, &mut messages);
                messages.into_iter().for_each(|message| self.remark(format!("{key}: {message}")));
                Ok(Some(class))
            }
            _ => Err(format!("{key} must be a structure")),
        }
    }

    fn class(&mut self, value: &Value) -> Parsed<FieldClass> {
        let class = self.class_of(value)?;
        Ok(self.once.class(class))
    }

    fn class_of(&mut self, value: &Value) -> Parsed<FieldClass> {
        if let Some(name) = value.as_str() {
            let class = self.aliases.get(name).cloned();
            let class =
                class.ok_or_else(|| format!("unknown field class alias `{}`", brief(name)))?;
            self.weight = self.weight.saturating_add(class.weight());
            if self.weight > WEIGHT_LIMIT || class.depth() > DEPTH_LIMIT {
                return Err("the types of this trace grow beyond all use".to_owned());
            }
            return Ok(class);
        }
        let class = object(value)?;
        let kind = class.get("type").and_then(Value::as_str).ok_or("a field class needs a type")?;
        let shown = brief(kind);
        faults(class, &mut |message| self.remark(format!("{shown}: {message}")));
        no_extensions(class).map_err(|message| format!("{shown}: {message}"))?;
        match kind {
            "fixed-length-bit-array"
            | "fixed-length-bit-map"
            | "fixed-length-boolean"
            | "fixed-length-unsigned-integer"
            | "fixed-length-signed-integer"
            | "fixed-length-unsigned-enumeration"
            | "fixed-length-signed-enumeration"
            | "fixed-length-floating-point-number" => scalar(class, kind),
            "variable-length-unsigned-integer"
            | "variable-length-signed-integer"
            | "variable-length-unsigned-enumeration"
            | "variable-length-signed-enumeration" => {
                Ok(FieldClass::VarInt(Arc::new(VarIntClass {
                    signed: kind.contains("-signed-"),
                    base: base(class)?,
                    labels: labels(class, "mappings")?.into(),
                    roles: field_roles(class),
                })))
            }
            "null-terminated-string" => text(class, Length::Terminated),
            "static-length-string" => {
                let bytes = static_length(class)?;
                let units = text_of(class, "encoding").map_or(1, |name| unit_bytes(&name));
                if bytes % units != 0 {
                    self.remark(format!("{kind}: {bytes} bytes end inside a character"));
                }
                text(class, Length::Fixed(bytes))
            }
            "dynamic-length-string" => text(class, length_field(class)?),
            "static-length-blob" => blob(class, Length::Fixed(static_length(class)?)),
            "dynamic-length-blob" => blob(class, length_field(class)?),
            "static-length-array" => self.array(class, Length::Fixed(static_length(class)?)),
            "dynamic-length-array" => self.array(class, length_field(class)?),
            "structure" => self.structure(class),
            "variant" => self.variant(class),
            "optional" => self.optional(class),
            other => Err(format!("unknown type of field class `{}`", brief(other))),
        }
    }

    fn array(&mut self, class: &Object, length: Length) -> Parsed<FieldClass> {
        let element = class.get("element-field-class").ok_or("an array needs an element class")?;
        let element = self.class(element)?;
        let min_align_bits = alignment(class, "minimum-alignment", 1)?;
        Ok(FieldClass::Array(Arc::new(ArrayClass { length, element, min_align_bits })))
    }

    fn structure(&mut self, class: &Object) -> Parsed<FieldClass> {
        let mut members = Vec::new();
        for member in class.get("member-classes").and_then(Value::as_array).into_iter().flatten() {
            let member = object(member)?;
            let name = member.get("name").and_then(Value::as_str);
            let name = name.ok_or("a member needs a name")?;
            no_extensions(member).map_err(|reason| within(name, reason))?;
            let class = member.get("field-class").ok_or("a member needs a field class")?;
            let class = self.class(class).map_err(|reason| within(name, reason))?;
            members.push(MemberClass { name: self.once.name(name), class });
        }
        members.shrink_to_fit();
        let min_align_bits = alignment(class, "minimum-alignment", 1)?;
        Ok(FieldClass::Struct(Arc::new(StructClass { members, min_align_bits })))
    }

    fn variant(&mut self, class: &Object) -> Parsed<FieldClass> {
        let mut options: Vec<OptionClass> = Vec::new();
        for option in class.get("options").and_then(Value::as_array).into_iter().flatten() {
            let option = object(option)?;
            let ranges_of = option.get("selector-field-ranges").ok_or("an option needs ranges")?;
            let inner = option.get("field-class").ok_or("an option needs a field class")?;
            no_extensions(option)?;
            options.push(OptionClass {
                name: text_of(option, "name").unwrap_or_default().into(),
                class: self.class(inner)?,
                selection: Selection::Ranges(ranges(ranges_of)?),
            });
        }
        if options.is_empty() {
            return Err("a variant needs `options`, at least one".to_owned());
        }
        rules::options_apart(&options, &mut |message| self.remark(message));
        let selector = Some(location(class, "selector-field-location")?);
        Ok(FieldClass::Variant(Arc::new(VariantClass { options, selector })))
    }

    fn optional(&mut self, class: &Object) -> Parsed<FieldClass> {
        let inner = class.get("field-class").ok_or("an optional needs a field class")?;
        let chosen = class.get("selector-field-ranges").map(ranges).transpose()?;
        Ok(FieldClass::Optional(Arc::new(OptionalClass {
            class: self.class(inner)?,
            selector: location(class, "selector-field-location")?,
            ranges: chosen,
        })))
    }
}

/// A reason, and the field that it is of.
fn within(name: &str, reason: String) -> String {
    format!("{}: {reason}", brief(name))
}

fn scope_of(key: &str) -> Option<Scope> {
    Some(match key {
        "packet-header-field-class" => Scope::PacketHeader,
        "packet-context-field-class" => Scope::PacketContext,
        "event-record-header-field-class" => Scope::EventHeader,
        "event-record-common-context-field-class" => Scope::CommonContext,
        "specific-context-field-class" => Scope::EventContext,
        "payload-field-class" => Scope::Payload,
        _ => return None,
    })
}

/// Clock classes that others are compared with; hostile metadata may have any number.
const CLOCKS_COMPARED: usize = 64;

/// The identity of an origin other than 1970; `None` if it has none.
fn origin(object: &Object) -> Option<ClockOrigin> {
    Some(ClockOrigin {
        namespace: text_of(object, "namespace"),
        name: text_of(object, "name")?,
        uid: text_of(object, "uid")?,
    })
}

/// A UUID is a list of 16 numbers, or its text.
fn uuid_value(value: &Value) -> Option<Uuid> {
    if let Some(text) = value.as_str() {
        return Uuid::parse(text);
    }
    let numbers = value.as_array().filter(|numbers| numbers.len() == 16)?;
    let mut bytes = [0; 16];
    for (byte, number) in bytes.iter_mut().zip(numbers) {
        *byte = u8::try_from(number.as_u64()?).ok()?;
    }
    Some(Uuid(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_syntax_have_their_place_in_the_text() {
        let preamble = "{\"type\": \"preamble\", \"version\": 2}";
        for (text, line, column) in [
            (format!("{preamble}\n{preamble} {{1}}"), 2, 37),
            (format!("{preamble}\n\n {{]"), 3, 3),
        ] {
            let mut diagnostics = Vec::new();
            parse(&text, &mut diagnostics);
            let last = diagnostics.last().expect("a fault");
            assert_eq!((last.line, last.column), (line, column), "{text}: {last}");
            assert!(last.message.starts_with("not JSON: ") && !last.message.contains(" line "));
        }
    }
}
