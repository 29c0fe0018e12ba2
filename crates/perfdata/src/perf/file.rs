// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The header of `perf.data`, and the sections that it refers to.

use std::collections::HashMap;

use lateralis_model::{ByteOrder, DamageReason};

use super::attr::{Attr, Places};
use super::features::Features;
use super::order_of;
use crate::notes::Notes;
use crate::wire::Wire;

/// Header size in the header of a pipe.
const PIPE_HEADER_BYTES: u64 = 16;
/// Bytes of a pair of offset and size.
const SECTION_BYTES: u64 = 16;
/// Bytes of the first version of `perf_event_attr`.
const ATTR_BYTES_MIN: u64 = 64;
/// First byte of the flags of features, after sizes and sections.
const FLAGS_AT: u64 = 72;
/// Feature of a file whose records are partly in other files beside it.
const DIR_FORMAT: u32 = 24;
/// Largest number of features.
const FEATURES: u32 = 256;

/// Attributes, and their ids.
#[derive(Debug, Default)]
pub struct Attrs {
    /// In the order of the file.
    pub all: Vec<Attr>,
    /// Field offsets of each attribute.
    pub places: Vec<Places>,
    /// Attribute index + 1 by small id, the usual ids of the kernel, for the lookup of samples.
    small_ids: Vec<u32>,
    ids: HashMap<u64, u32>,
}

/// Limit of small ids.
const SMALL_ID: u64 = 1 << 16;

impl Attrs {
    /// Adds an attribute with its ids.
    pub fn add(&mut self, attr: Attr, ids: impl IntoIterator<Item = u64>) {
        let index = self.all.len() as u32;
        self.places.push(attr.places());
        self.all.push(attr);
        for id in ids {
            if id >= SMALL_ID {
                self.ids.insert(id, index);
                continue;
            }
            let id = id as usize;
            self.small_ids.resize(self.small_ids.len().max(id + 1), 0);
            self.small_ids[id] = index.saturating_add(1);
        }
    }

    /// The index of the attribute with this id.
    #[inline]
    pub fn by_id(&self, id: u64) -> Option<usize> {
        if id < SMALL_ID {
            let index = self.small_ids.get(id as usize)?;
            return index.checked_sub(1).map(|index| index as usize);
        }
        self.ids.get(&id).map(|&index| index as usize)
    }

    /// Like [`Attrs::by_id`], mutable.
    pub fn by_id_mut(&mut self, id: u64) -> Option<&mut Attr> {
        let index = self.by_id(id)?;
        self.all.get_mut(index)
    }
}

/// Whether the header refers to other files of records beside this one.
pub fn is_of_folder(bytes: &[u8], order: ByteOrder) -> bool {
    let size = Wire::at(bytes, 8, order).u64();
    let flags = Wire::at(bytes, FLAGS_AT, order).u64().unwrap_or(0);
    size.is_some_and(|size| size != PIPE_HEADER_BYTES) && flags >> DIR_FORMAT & 1 != 0
}

/// An opened `perf.data`.
#[derive(Debug)]
pub struct File {
    /// Byte order.
    pub order: ByteOrder,
    /// Whether it was written to a pipe.
    pub pipe: bool,
    /// First byte of the records.
    pub data_begin: u64,
    /// Byte after the last record.
    pub data_end: u64,
    /// Attributes of events.
    pub attrs: Attrs,
    /// Description of machine and events.
    pub features: Features,
}

impl File {
    /// Reads the header, attributes and features; `None` if the header is incomplete.
    pub fn open(bytes: &[u8], notes: &mut Notes) -> Option<Self> {
        let order = order_of(bytes)?;
        let mut wire = Wire::at(bytes, 8, order);
        let size = wire.u64()?;
        let mut file = Self {
            order,
            pipe: size == PIPE_HEADER_BYTES,
            data_begin: PIPE_HEADER_BYTES,
            data_end: bytes.len() as u64,
            attrs: Attrs::default(),
            features: Features::default(),
        };
        if file.pipe {
            return Some(file);
        }
        let attr_bytes = wire.u64()?;
        let attrs = (wire.u64()?, wire.u64()?);
        let (begin, size) = (wire.u64()?, wire.u64()?);
        let _event_types = (wire.u64()?, wire.u64()?);
        let mut flags = [0; 4];
        for word in &mut flags {
            *word = wire.u64()?;
        }
        file.attributes(bytes, attrs, attr_bytes, notes);
        file.data_begin = begin.min(bytes.len() as u64);
        if size == 0 {
            notes.remark(
                "the recording was not ended: its header gives no size, names and formats of \
                 events are missing",
            );
            return Some(file);
        }
        let end = begin.saturating_add(size);
        if end > bytes.len() as u64 {
            let missing_bytes = Some(end - bytes.len() as u64);
            let reason = DamageReason::Truncated { missing_bytes };
            notes.damage(bytes.len() as u64, bytes.len() as u64, reason, None);
            return Some(file);
        }
        file.data_end = end;
        file.read_features(bytes, flags, notes);
        Some(file)
    }

    fn attributes(
        &mut self,
        bytes: &[u8],
        (begin, size): (u64, u64),
        entry_bytes: u64,
        notes: &mut Notes,
    ) {
        let whole = entry_bytes >= ATTR_BYTES_MIN + SECTION_BYTES;
        let section = Wire::at(bytes, begin, self.order).take64(size);
        let (true, Some(section)) = (whole, section) else {
            let end = begin.saturating_add(size).min(bytes.len() as u64);
            let rule = "attributes of events";
            notes.damage(begin.min(end), end, DamageReason::BadValue { rule }, None);
            return;
        };
        // Overlapping lists of ids are invalid.
        let mut ids_left = bytes.len() as u64;
        for entry in section.chunks_exact(usize::try_from(entry_bytes).unwrap_or(usize::MAX)) {
            let (attr, ids) = entry.split_at(entry.len() - SECTION_BYTES as usize);
            let mut ids = Wire::new(ids, self.order);
            let (offset, size) = (ids.u64().unwrap_or(0), ids.u64().unwrap_or(0));
            let Some(attr) = Attr::parse(attr, self.order) else { continue };
            let mut wire = Wire::at(bytes, offset, self.order);
            let ids = wire.take64(size.min(ids_left)).unwrap_or(&[]);
            ids_left -= ids.len() as u64;
            let mut ids = Wire::new(ids, self.order);
            self.attrs.add(attr, std::iter::from_fn(|| ids.u64()));
        }
    }

    fn read_features(&mut self, bytes: &[u8], flags: [u64; 4], notes: &mut Notes) {
        let mut sections = Wire::at(bytes, self.data_end, self.order);
        for feature in 0..FEATURES {
            if flags[feature as usize / 64] >> (feature % 64) & 1 == 0 {
                continue;
            }
            let (Some(offset), Some(size)) = (sections.u64(), sections.u64()) else {
                let (begin, end) = (self.data_end, bytes.len() as u64);
                notes.damage(begin, end, DamageReason::Truncated { missing_bytes: None }, None);
                return;
            };
            let Some(content) = Wire::at(bytes, offset, self.order).take64(size) else {
                let end = bytes.len() as u64;
                let missing_bytes = Some(offset.saturating_add(size).saturating_sub(end));
                let reason = DamageReason::Truncated { missing_bytes };
                notes.damage(offset.min(end), end, reason, None);
                continue;
            };
            self.feature(feature, content, offset, notes);
        }
    }

    /// Processes a feature from its section or record.
    pub fn feature(&mut self, feature: u32, content: &[u8], offset: u64, notes: &mut Notes) {
        if self.features.take(feature, content, self.order, &mut self.attrs).is_none() {
            let end = offset + content.len() as u64;
            let rule = "section of a feature";
            notes.damage(offset, end, DamageReason::BadValue { rule }, None);
        }
    }
}
