// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The descriptions of events that came with a file.

use std::collections::HashMap;
use std::sync::Arc;

use crate::tracepoint::{Format, id_of};

/// Bytes of description that may become event classes: a hostile file could ask
/// for many classes of one description.
const CLASS_TEXT_BYTES_MAX: usize = 64 << 20;

/// Texts by event id; each is read when its event first appears, since a file
/// carries those of all events of its kernel.
#[derive(Debug, Default)]
pub struct Catalog {
    /// 4 or 8; 0 is read as 8.
    pub long_bytes: u32,
    texts: HashMap<u16, (Arc<str>, Box<str>)>,
    formats: HashMap<u16, Option<Arc<Format>>>,
    class_text_bytes: usize,
}

impl Catalog {
    /// Adds the text of an event of `system`; one without an id is useless and
    /// left out.
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

    /// The format of the events of this id, to make an event class of it; `None`
    /// too where classes would take too much memory.
    pub fn class_of(&mut self, id: u16) -> Option<Arc<Format>> {
        let format = self.get(id)?;
        self.class_text_bytes = self.class_text_bytes.saturating_add(format.text_bytes);
        (self.class_text_bytes <= CLASS_TEXT_BYTES_MAX).then_some(format)
    }

    /// The format of the events of this id.
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
