// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Event descriptions contained in a file.

use std::collections::HashMap;
use std::sync::Arc;

use crate::tracepoint::{Format, id_of};

/// Largest total size of descriptions that become event classes: a hostile file could use one description
/// for many classes.
const CLASS_TEXT_BYTES_MAX: usize = 64 << 20;

/// Description texts by event id; each is parsed when its event first appears, since a file contains
/// those of all events of its kernel.
#[derive(Debug, Default)]
pub struct Catalog {
    /// 4 or 8; 0 is read as 8.
    pub long_bytes: u32,
    texts: HashMap<u16, (Arc<str>, Box<str>)>,
    formats: HashMap<u16, Option<Arc<Format>>>,
    class_text_bytes: usize,
}

impl Catalog {
    /// Adds the text of an event of `system`; one without an id is ignored.
    pub fn add(&mut self, system: &Arc<str>, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        if let Some(id) = id_of(&text) {
            self.texts.insert(id, (Arc::clone(system), text.into()));
        }
    }

    /// Number of descriptions.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// The format of the events with this id, for an event class; also `None` if the classes would take
    /// too much memory.
    pub fn class_of(&mut self, id: u16) -> Option<Arc<Format>> {
        let format = self.get(id)?;
        self.class_text_bytes = self.class_text_bytes.saturating_add(format.text_bytes);
        (self.class_text_bytes <= CLASS_TEXT_BYTES_MAX).then_some(format)
    }

    /// The format of the events with this id.
    fn get(&mut self, id: u16) -> Option<Arc<Format>> {
        let Self { long_bytes, texts, formats, .. } = self;
        let long_bytes = if *long_bytes == 4 { 4 } else { 8 };
        let read = || {
            let (system, text) = texts.get(&id)?;
            Format::parse(system, text, long_bytes).map(Arc::new)
        };
        formats.entry(id).or_insert_with(read).clone()
    }
}
