// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The descriptions of events that came with a file.

use std::collections::HashMap;
use std::rc::Rc;

use crate::tracepoint::{Format, id_of};

/// Texts by event id; each is read when its event first appears, since a file
/// carries those of all events of its kernel.
#[derive(Debug, Default)]
pub struct Catalog {
    /// 4 or 8; 0 is read as 8.
    pub long_bytes: u32,
    texts: HashMap<u16, (Rc<str>, Box<str>)>,
    formats: HashMap<u16, Option<Rc<Format>>>,
}

impl Catalog {
    /// Adds the text of an event of `system`; one without an id is useless and
    /// left out.
    pub fn add(&mut self, system: &Rc<str>, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        if let Some(id) = id_of(&text) {
            self.texts.insert(id, (Rc::clone(system), text.into()));
        }
    }

    /// Number of descriptions.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// The format of the events of this id.
    pub fn get(&mut self, id: u16) -> Option<Rc<Format>> {
        let Self { long_bytes, texts, formats } = self;
        let long_bytes = if *long_bytes == 4 { 4 } else { 8 };
        let read = || {
            let (system, text) = texts.get(&id)?;
            Format::parse(system, text, long_bytes).map(Rc::new)
        };
        formats.entry(id).or_insert_with(read).clone()
    }
}
