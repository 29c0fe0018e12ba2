// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The blocks of TSDL: trace, env, clock, stream, event [CTF 1.8.3 §7.4, §8].

use std::collections::HashSet;

use lateralis_model::{Attribute, Clock, EnvValue, Uuid};

use super::super::{EventClass, FieldClass, StreamClass, brief};
use super::types::Value;
use super::words::truth;
use super::{Parsed, Parser};

/// The content of one line of a block.
enum Entry {
    /// `key = value`
    Value(Value),
    /// `key := type`
    Type(FieldClass),
}

impl Parser<'_, '_> {
    /// Runs `set` for each entry of a block. Types may be declared in between.
    fn block(&mut self, mut set: impl FnMut(&mut Self, &str, Entry) -> Parsed<()>) -> Parsed<()> {
        self.next += 1;
        let mut seen = HashSet::new();
        self.braces(|parser| {
            if matches!(
                parser.peek_word(),
                Some("typealias" | "typedef" | "struct" | "variant" | "enum")
            ) {
                parser.declaration()?;
                return parser.expect_mark(";");
            }
            let key = parser.dotted()?;
            if !seen.insert(key.clone()) {
                parser.remark(format!("`{}` is said twice; the later one counts", brief(&key)));
            }
            let entry = if parser.take_mark(":=") {
                let class = parser.specifier()?;
                if !matches!(class, FieldClass::Struct(_)) {
                    return Err(format!("`{}` must be a structure", brief(&key)));
                }
                Entry::Type(class)
            } else {
                parser.expect_mark("=")?;
                Entry::Value(parser.value()?)
            };
            set(parser, &key, entry)?;
            parser.expect_mark(";")
        })
    }

    pub(super) fn trace_block(&mut self) -> Parsed<()> {
        self.has_trace_block = true;
        self.block(|parser, key, entry| {
            match (key, entry) {
                ("uuid", Entry::Value(value)) => {
                    let text = value.into_text();
                    parser.trace.uuid = Uuid::parse(&text);
                    if parser.trace.uuid.is_none() {
                        parser.remark(format!("not a UUID: {}", brief(text)));
                    }
                }
                ("packet.header", Entry::Type(class)) => parser.trace.packet_header = Some(class),
                // It was looked up before.
                ("byte_order", Entry::Value(value)) => {
                    let word = value.into_text();
                    if !["le", "be", "network"].contains(&word.as_str()) {
                        parser.remark(format!(
                            "unknown byte order `{}`, taken for le: le, be or network",
                            brief(word)
                        ));
                    }
                }
                ("major", Entry::Value(value)) => {
                    let major = value.into_text();
                    if major != "1" {
                        parser.remark(format!(
                            "this is version {} of the format, not 1",
                            brief(major)
                        ));
                    }
                }
                ("minor", Entry::Value(value)) => {
                    let minor = value.into_text();
                    if minor != "8" {
                        parser.remark(format!("this is version 1.{}, read as 1.8", brief(minor)));
                    }
                }
                _ => {}
            }
            Ok(())
        })
    }

    pub(super) fn env_block(&mut self) -> Parsed<()> {
        self.block(|parser, key, entry| {
            if let Entry::Value(value) = entry {
                let value = match value {
                    Value::Number(number) => EnvValue::Integer(number),
                    Value::Text(text) | Value::Name(text) => EnvValue::Text(text),
                };
                parser.trace.environment.push((key.to_owned(), value));
            }
            Ok(())
        })
    }

    pub(super) fn clock_block(&mut self) -> Parsed<()> {
        let (mut name, mut description, mut uuid) = (String::new(), String::new(), None);
        let (mut frequency, mut precision) = (1_000_000_000i128, 0i128);
        let (mut seconds, mut ticks, mut absolute) = (0i128, 0i128, false);
        self.block(|parser, key, entry| {
            let Entry::Value(value) = entry else {
                return Ok(());
            };
            match (key, value) {
                ("name", value) => name = value.into_text(),
                ("description", value) => description = value.into_text(),
                ("uuid", value) => {
                    let text = value.into_text();
                    uuid = Uuid::parse(&text);
                    if uuid.is_none() {
                        parser.remark(format!("not a UUID: {}", brief(text)));
                    }
                }
                ("freq", Value::Number(number)) => frequency = number,
                ("precision", Value::Number(number)) => precision = number,
                ("offset_s", Value::Number(number)) => seconds = number,
                ("offset", Value::Number(number)) => ticks = number,
                ("absolute", value) => match truth(&value.into_text()) {
                    Ok(truth) => absolute = truth,
                    Err(message) => parser.remark(message),
                },
                (key @ ("freq" | "precision" | "offset_s" | "offset"), value) => {
                    let found = brief(value.into_text());
                    parser.remark(format!("`{key}` of a clock must be a number, found `{found}`"));
                }
                _ => {}
            }
            Ok(())
        })?;
        let frequency = u64::try_from(frequency).ok().filter(|&hz| hz > 0);
        let frequency = frequency.ok_or("the frequency of a clock must be positive")?;
        let within =
            |number: i128| i64::try_from(number).map_err(|_| "the clock offset is too large");
        let mut clock = Clock::new(&name, frequency, within(seconds)?, within(ticks)?);
        clock.description = description;
        clock.uuid = uuid;
        clock.unix_epoch = absolute;
        clock.precision = u64::try_from(precision).unwrap_or(0);
        if name.is_empty() {
            self.remark("a clock needs a name: no field can refer to this one".to_owned());
        } else if self.trace.clocks.iter().any(|known| known.name == name) {
            self.remark(format!(
                "clock `{}` is declared twice; the first one counts",
                brief(&name)
            ));
        }
        self.trace.clocks.push(clock);
        Ok(())
    }

    pub(super) fn stream_block(&mut self) -> Parsed<()> {
        let mut stream = StreamClass::default();
        self.block(|_, key, entry| {
            match (key, entry) {
                ("id", Entry::Value(Value::Number(id))) => {
                    stream.id = u64::try_from(id).map_err(|_| "a stream id cannot be negative")?;
                }
                ("id", _) => return Err("the id of a stream must be a number".to_owned()),
                ("packet.context", Entry::Type(class)) => stream.packet_context = Some(class),
                ("event.header", Entry::Type(class)) => stream.event_header = Some(class),
                ("event.context", Entry::Type(class)) => stream.common_context = Some(class),
                _ => {}
            }
            Ok(())
        })?;
        match self.trace.streams.iter_mut().find(|known| known.id == stream.id) {
            // Events that came first made the stream known by its number only.
            Some(known) if self.declared.insert(stream.id) => {
                stream.events = std::mem::take(&mut known.events);
                *known = stream;
            }
            Some(_) => return Err(format!("stream {} is declared twice", stream.id)),
            None => {
                self.declared.insert(stream.id);
                self.trace.streams.push(stream);
            }
        }
        Ok(())
    }

    pub(super) fn event_block(&mut self) -> Parsed<()> {
        let mut event = EventClass::default();
        let (mut id, mut stream_id) = (None, None);
        self.block(|_, key, entry| {
            match (key, entry) {
                ("name", Entry::Value(value)) => event.name = value.into_text(),
                ("id", Entry::Value(Value::Number(number))) => id = Some(number),
                ("stream_id", Entry::Value(Value::Number(number))) => stream_id = Some(number),
                ("context", Entry::Type(class)) => event.context = Some(class),
                ("fields", Entry::Type(class)) => event.payload = Some(class),
                (key @ ("id" | "stream_id"), _) => {
                    return Err(format!("`{key}` of an event must be a number"));
                }
                (key, Entry::Value(value)) => {
                    let name = match key {
                        "loglevel" => "log-level",
                        "model.emf.uri" => "emf-uri",
                        key => key,
                    };
                    let value = value.into_text();
                    event.attributes.push(Attribute { name: name.to_owned(), value });
                }
                _ => {}
            }
            Ok(())
        })?;
        let natural = |number: i128| {
            u64::try_from(number).map_err(|_| "the id of an event cannot be negative".to_owned())
        };
        event.attributes.shrink_to_fit();
        event.id = natural(id.unwrap_or(0))?;
        // Without a stream id the event belongs to the only stream there is.
        let stream_id = match stream_id {
            Some(number) => natural(number)?,
            None => self.trace.streams.first().map_or(0, |stream| stream.id),
        };
        let index = self.trace.streams.iter().position(|stream| stream.id == stream_id);
        let index = index.unwrap_or_else(|| {
            self.trace.streams.push(StreamClass { id: stream_id, ..StreamClass::default() });
            self.trace.streams.len() - 1
        });
        let stream = &mut self.trace.streams[index];
        stream.events.push(event);
        Ok(())
    }
}
