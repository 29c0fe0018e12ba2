// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of the sections of `lat stats` for a range of time and a filter. The code that computes them is
//! above this crate, as that of [`Control`](crate::Control).

use std::cmp::Ordering;
use std::sync::{Arc, Mutex};

use lateralis_model::{Event, Interval, Quality};
use lateralis_store::Recording;
use lateralis_units::Nanos;
use serde_json::Value;

use crate::answer::Problem;
use crate::session::lock;

/// Events of which tables are computed.
pub struct Query<'a> {
    /// The recording, with all names.
    pub recording: &'a Recording,
    /// The range of time, both ends included.
    pub interval: Interval,
    /// The filter; `None` if it selects everything.
    pub filter: Option<&'a dyn EventFilter>,
    /// Whether the answer is not wanted any more.
    pub is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// Selects events that are read in the order of time from the begin of the range.
pub trait EventFilter {
    /// Starts a pass over the range.
    fn begin(&self);

    /// Whether the next event is selected.
    fn keeps(&self, event: &Event<'_>) -> bool;
}

/// Computes the tables.
pub trait Sections: Send + Sync {
    /// Every section, also those that are empty.
    ///
    /// # Errors
    /// The events cannot be selected or read.
    fn tables(&self, query: &Query<'_>) -> Result<Tables, Problem>;

    /// A time in any form that `--from` reads, of a recording that lasts so long; `None` if it is none.
    fn time(&self, extent: Interval, text: &str) -> Option<Nanos>;
}

/// Unit of a column, as the page formats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A text.
    Text,
    /// Yes or no.
    Flag,
    /// A number that identifies: a thread, a CPU.
    Id,
    /// A count of things.
    Count,
    /// A number without a unit.
    Number,
    /// Nanoseconds.
    Nanos,
    /// Nanoseconds on the timeline of the recording.
    Time,
    /// Bytes.
    Bytes,
    /// A part of 1.
    Share,
    /// A number per second.
    Rate,
}

impl Unit {
    /// As spec/view.md names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Flag => "flag",
            Self::Id => "id",
            Self::Count => "count",
            Self::Number => "number",
            Self::Nanos => "ns",
            Self::Time => "time",
            Self::Bytes => "bytes",
            Self::Share => "share",
            Self::Rate => "per_second",
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The name of the number in the JSON of `lat stats`.
    pub name: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Unit.
    pub unit: Unit,
}

/// Content of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Content {
    /// Nothing is known, or it does not apply.
    #[default]
    None,
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A number with a fraction.
    Real(f64),
    /// A text.
    Text(Box<str>),
}

impl Content {
    /// From a value of the JSON; lists and objects have no content.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Bool(flag) => Self::Flag(*flag),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Self::Whole(whole),
                (None, Some(real)) => Self::Real(real),
                (None, None) => Self::None,
            },
            Value::String(text) => Self::Text(text.as_str().into()),
            Value::Null | Value::Array(_) | Value::Object(_) => Self::None,
        }
    }

    /// As JSON; times are relative to `origin`, if there is one.
    #[must_use]
    pub fn json(&self, origin: Option<i64>) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Flag(flag) => (*flag).into(),
            Self::Whole(whole) => whole.saturating_sub(origin.unwrap_or(0)).into(),
            Self::Real(real) => (*real).into(),
            Self::Text(text) => text.as_ref().into(),
        }
    }

    /// Order of a sorted table: numbers by value, texts by their letters.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        let real = |content: &Self| match content {
            Self::Flag(flag) => Some(f64::from(u8::from(*flag))),
            Self::Whole(whole) => Some(*whole as f64),
            Self::Real(real) => Some(*real),
            Self::None | Self::Text(_) => None,
        };
        match (self, other) {
            (Self::Whole(one), Self::Whole(two)) => one.cmp(two),
            (Self::Text(one), Self::Text(two)) => one.to_lowercase().cmp(&two.to_lowercase()),
            (Self::Text(_), _) => Ordering::Greater,
            (_, Self::Text(_)) => Ordering::Less,
            _ => real(self).partial_cmp(&real(other)).unwrap_or(Ordering::Equal),
        }
    }
}

/// A cell: its content and how far that can be trusted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Content.
    pub content: Content,
    /// Quality.
    pub quality: Quality,
}

/// A section.
#[derive(Debug, Clone)]
pub struct Table {
    /// What a request calls it.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Number of rows beyond those that are kept.
    pub more: u64,
    /// Sentences about what is missing in it.
    pub remarks: Vec<String>,
}

impl Table {
    /// Indices of the rows, sorted by a column. Rows without content in it are last in both directions, and
    /// equal ones stay in their order.
    #[must_use]
    pub fn sorted(&self, by: Option<(usize, bool)>) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.rows.len()).collect();
        let Some((column, is_descending)) = by else { return all };
        let content = |row: usize| self.rows[row].get(column).map(|cell| &cell.content);
        let is_none = |content: Option<&Content>| content.is_none_or(|of| *of == Content::None);
        all.sort_by(|one, two| {
            let (one, two) = (content(*one), content(*two));
            let order = match (one, two) {
                (Some(one), Some(two)) => one.order(two),
                _ => Ordering::Equal,
            };
            let order = if is_descending { order.reverse() } else { order };
            is_none(one).cmp(&is_none(two)).then(order)
        });
        all
    }
}

/// All sections of a range.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// Sections in the order in which they are listed.
    pub tables: Vec<Table>,
    /// Number of events.
    pub events: u64,
    /// Nanoseconds from the first to the last event.
    pub over_ns: i64,
    /// Quality of counts and sums.
    pub sums: Quality,
    /// Quality of all other numbers.
    pub values: Quality,
}

/// Tables of the newest request, for requests about other sections of the same range, or in another order.
#[derive(Default)]
pub struct KeptTables(Mutex<Option<(String, Arc<Tables>)>>);

impl KeptTables {
    /// Tables of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Arc<Tables>> {
        let kept = lock(&self.0);
        kept.as_ref().filter(|(known, _)| known == key).map(|(_, tables)| Arc::clone(tables))
    }

    /// Keeps tables in place of those before.
    pub fn keep(&self, key: String, tables: &Arc<Tables>) {
        *lock(&self.0) = Some((key, Arc::clone(tables)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(contents: &[Content]) -> Table {
        let cell = |content: &Content| Cell { content: content.clone(), quality: Quality::Exact };
        let column = Column { name: "n", title: "n", unit: Unit::Count };
        let rows = contents.iter().map(|content| vec![cell(content)]).collect();
        let (columns, remarks) = (vec![column], Vec::new());
        Table { name: "t", title: "t", columns, rows, more: 0, remarks }
    }

    #[test]
    fn rows_without_content_are_last_in_both_directions() {
        let of = table(&[
            Content::None,
            Content::Whole(2),
            Content::Real(1.5),
            Content::Whole(2),
            Content::Whole(i64::MAX),
        ]);
        assert_eq!(of.sorted(None), [0, 1, 2, 3, 4]);
        assert_eq!(of.sorted(Some((0, false))), [2, 1, 3, 4, 0]);
        assert_eq!(of.sorted(Some((0, true))), [4, 1, 3, 2, 0]);
        assert_eq!(of.sorted(Some((9, true))), [0, 1, 2, 3, 4], "no such column");
    }

    #[test]
    fn texts_are_sorted_by_letters_whatever_their_case() {
        let text = |text: &str| Content::Text(text.into());
        let of = table(&[text("b"), text("A"), text("a"), Content::Whole(7)]);
        assert_eq!(of.sorted(Some((0, false))), [3, 1, 2, 0]);
    }

    #[test]
    fn large_numbers_keep_their_order() {
        // Both are the same as doubles.
        let of = table(&[Content::Whole(i64::MAX), Content::Whole(i64::MAX - 1)]);
        assert_eq!(of.sorted(Some((0, false))), [1, 0]);
    }
}
