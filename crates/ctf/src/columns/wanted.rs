// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What to decode of which events.

use crate::reader::Reader;

/// What to decode of the events of one class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Want {
    /// Only their number.
    Count,
    /// When they happened.
    Times,
    /// That, and the columns for which this says yes; columns behind its end
    /// are not wanted. One entry per leaf, as
    /// [`ClassColumns::columns`](super::ClassColumns::columns) counts them. A
    /// class whose events are rows is decoded whole.
    Columns(Vec<bool>),
    /// Everything.
    #[default]
    All,
}

/// What to decode of all classes of a trace.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub(super) classes: Vec<Vec<Want>>,
}

impl Wanted {
    fn of(reader: &Reader, want: &Want) -> Self {
        let of_stream = |stream: &lateralis_model::StreamClass| {
            stream.event_classes.iter().map(|_| want.clone()).collect()
        };
        Self { classes: reader.trace().stream_classes.iter().map(of_stream).collect() }
    }

    /// Every field of every event.
    #[must_use]
    pub fn everything(reader: &Reader) -> Self {
        Self::of(reader, &Want::All)
    }

    /// The times of all events.
    #[must_use]
    pub fn times(reader: &Reader) -> Self {
        Self::of(reader, &Want::Times)
    }

    /// Only how many events of each class there are.
    #[must_use]
    pub fn counts(reader: &Reader) -> Self {
        Self::of(reader, &Want::Count)
    }

    /// Changes what is wanted of one class. An index that the trace does not
    /// have changes nothing.
    #[must_use]
    pub fn with(mut self, stream_class: u32, event_class: u32, want: Want) -> Self {
        let stream = self.classes.get_mut(stream_class as usize);
        if let Some(entry) = stream.and_then(|stream| stream.get_mut(event_class as usize)) {
            *entry = want;
        }
        self
    }
}
