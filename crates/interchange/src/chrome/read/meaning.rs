// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an event means: decided for each event, and then part of what its class is, so that
//! an event can change nothing for others of its name.

use lateralis_model::Attribute;
use lateralis_model::role::{KEY_CATEGORY, KEY_PROCESS, Keyed, PHASE, Role};

use crate::CHROME_PHASE;
use crate::dynamic::{ClassText, Dyn, Dynamic, Named, to_json};
use crate::phases::{self, Track};

// Bits beside the phase, which are the lowest 8.
/// Its duration can be.
const WHOLE: u32 = 1 << 8;
/// Its time cannot be read.
const TIMELESS: u32 = 1 << 9;
/// Its process has no number.
const TEXT_PID: u32 = 1 << 10;
const ID: u32 = 1 << 11;
const LOCAL_ID: u32 = 1 << 12;
const GLOBAL_ID: u32 = 1 << 13;
const SCOPE: u32 = 1 << 14;
const BIND_ID: u32 = 1 << 15;
const FLOW_IN: u32 = 1 << 16;
const FLOW_OUT: u32 = 1 << 17;
/// The types of its ids: a class has ids of one type, so that 1 of one event is 1 of another.
const ID_TYPE: u32 = 18;
const BIND_TYPE: u32 = 20;

/// What an event means.
#[derive(Debug, Clone, Copy)]
pub struct Meaning(u32);

impl Meaning {
    pub fn new(phase: u8, has_text_pid: bool) -> Self {
        Self(u32::from(phase) | if has_text_pid { TEXT_PID } else { 0 })
    }

    pub fn set_whole(&mut self) {
        self.0 |= WHOLE;
    }

    pub fn set_timeless(&mut self) {
        self.0 |= TIMELESS;
    }

    pub fn is_timeless(self) -> bool {
        self.has(TIMELESS)
    }

    /// The key of a class.
    pub fn tag(self) -> u32 {
        self.0
    }

    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    fn phase(self) -> u8 {
        self.0 as u8
    }

    /// Looks at the members that are neither times nor names nor arguments.
    pub fn of_members(&mut self, members: &Named<'_>) {
        for (name, value) in members {
            if *value == Dyn::Null {
                continue;
            }
            match name.as_ref() {
                "id" => self.0 |= ID | kind(value) << ID_TYPE,
                "id2" => {
                    let Dyn::Dict(ids) = value else { continue };
                    let has = |wanted: &str| ids.iter().any(|(name, _)| name == wanted);
                    if has("local") {
                        self.0 |= LOCAL_ID;
                    } else if has("global") {
                        self.0 |= GLOBAL_ID;
                    }
                }
                "scope" => self.0 |= SCOPE,
                "bind_id" => self.0 |= BIND_ID | kind(value) << BIND_TYPE,
                "flow_in" if is_true(value) => self.0 |= FLOW_IN,
                "flow_out" if is_true(value) => self.0 |= FLOW_OUT,
                _ => (),
            }
        }
    }

    /// Whether the event begins or ends a span that others may end or begin.
    pub fn begins(self) -> Option<bool> {
        phases::begins(char::from(self.phase())).filter(|_| !self.is_timeless())
    }

    /// The track on which it does.
    pub fn track(self, event: &Dynamic<'_>) -> Track {
        let writer = event.writer.unwrap_or(lateralis_model::Writer { pid: 0, tid: 0 });
        if matches!(self.phase(), b'B' | b'E') {
            return Track::Thread(writer.pid, writer.tid);
        }
        let mut id = event.category.as_bytes().to_vec();
        let names = self.ids();
        for (name, value) in &event.context {
            if names.contains(&name.as_ref()) {
                id.push(0xff);
                id.extend_from_slice(name.as_bytes());
                to_json(value, &mut id);
            }
        }
        Track::Keyed((!self.has(GLOBAL_ID) || self.has(LOCAL_ID)).then_some(writer.pid), id)
    }

    /// The members that form the key of its span.
    fn ids(self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.has(LOCAL_ID | GLOBAL_ID) {
            names.push("id2");
        } else if self.has(ID) {
            names.push("id");
        }
        if self.has(SCOPE) {
            names.push("scope");
        }
        names
    }

    fn roles(self, class: &ClassText<'_>) -> Vec<Role> {
        if self.is_timeless() {
            return Vec::new();
        }
        let fields = |names: &[&str]| -> Vec<String> {
            names.iter().filter_map(|name| phases::context(class, name)).collect()
        };
        let in_process = !self.has(GLOBAL_ID) || self.has(LOCAL_ID);
        // Ids of spans are of their process and category, those of flows of their category alone.
        let of_span = || {
            let mut keys = fields(&self.ids());
            keys.push(KEY_CATEGORY.to_owned());
            if in_process {
                keys.push(KEY_PROCESS.to_owned());
            }
            keys
        };
        let of_flow = || {
            let mut keys = fields(&self.ids());
            keys.push(KEY_CATEGORY.to_owned());
            if self.has(LOCAL_ID) {
                keys.push(KEY_PROCESS.to_owned());
            }
            keys
        };
        let keys = phases::Keys {
            span: of_span(),
            flow: of_flow(),
            fans_out: true,
            is_whole: self.has(WHOLE),
        };
        let mut roles = phases::roles(char::from(self.phase()), class, &keys);
        // An end repeats the data of its begin.
        if self.has(BIND_ID) && self.begins() != Some(false) {
            // The id alone is the channel, whatever the events are called.
            let flow = || {
                let keys = fields(&["bind_id"]);
                Keyed { name: "flow".to_owned(), keys, fans_out: true }
            };
            if self.has(FLOW_IN) {
                roles.push(Role::Receive(flow()));
            }
            if self.has(FLOW_OUT) {
                roles.push(Role::Send(flow()));
            }
        }
        roles
    }
}

/// The type of an id.
fn kind(id: &Dyn<'_>) -> u32 {
    match id {
        Dyn::Unsigned(_) => 1,
        Dyn::Text(_) => 2,
        _ => 3,
    }
}

fn is_true(value: &Dyn<'_>) -> bool {
    match value {
        Dyn::Bool(value) => *value,
        Dyn::Unsigned(number) => *number != 0,
        Dyn::Text(text) => !matches!(text.as_ref(), "" | "0" | "false" | "False"),
        _ => false,
    }
}

/// What the name of a counter is followed by where it has an id: counters of one name and of
/// several ids are several. `None` if the name has it already.
pub fn counter_id(context: &Named<'_>, name: &str) -> Option<String> {
    let member = |wanted: &str| context.iter().find(|(name, _)| name == wanted).map(|(_, v)| v);
    let id = match (member("id2"), member("id")) {
        (Some(Dyn::Dict(ids)), _) if !ids.is_empty() => &ids[0].1,
        (_, Some(id)) if *id != Dyn::Null => id,
        _ => return None,
    };
    let id = match id {
        Dyn::Text(text) => text.to_string(),
        other => {
            let mut text = Vec::new();
            to_json(other, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
    };
    let suffix = format!("[{id}]");
    (!name.ends_with(&suffix)).then_some(suffix)
}

/// A number in quotes.
pub fn level(text: &str) -> Option<Dyn<'static>> {
    let text = text.trim();
    let unsigned = text.parse::<u64>().map(Dyn::Unsigned);
    let number = unsigned.or_else(|_| text.parse::<i64>().map(Dyn::Signed)).ok();
    number.or_else(|| text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Dyn::Real))
}

/// The attributes of a class: its phase as Chrome writes it and as a word, and its roles.
pub fn attributes(class: &ClassText<'_>) -> Vec<Attribute> {
    let meaning = Meaning(class.tag);
    let phase = char::from(meaning.phase());
    let attribute = |name: &str, value: String| Attribute { name: name.to_owned(), value };
    let mut attributes = vec![attribute(CHROME_PHASE, phase.to_string())];
    if let Some(word) = phases::word(phase) {
        attributes.push(attribute(PHASE, word.to_owned()));
    }
    attributes.extend(phases::attributes(&meaning.roles(class)));
    attributes
}
