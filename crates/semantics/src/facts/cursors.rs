// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Positions of the events of a class in a batch of columns, and the next of them.

use lateralis_analysis::Side;
use lateralis_model::{Column, ColumnBatch, Writer};
use lateralis_units::Nanos;

use super::marks::Mark;
use super::reading::Class;

/// Data needed for every event: time and thread.
pub struct Lane<'b> {
    pub next: usize,
    pub times: &'b [Nanos],
    /// Edge of the class, if its events can be part of runs.
    pub edge: Option<(u32, Side, u32)>,
    pub who: Who<'b>,
}

/// Columns of the thread and of its process.
#[derive(Clone, Copy)]
pub struct Who<'b> {
    pub tid: Numbers<'b>,
    pub pid: Numbers<'b>,
}

/// Remaining data of a class.
pub struct Cursor<'b> {
    pub class: &'b Class,
    /// Index of the class in the batch.
    pub index: usize,
    pub ticks: &'b [u64],
    /// Values of each emit.
    pub values: Vec<(u32, Numbers<'b>)>,
}

/// One event.
pub struct One {
    /// Index among the events of its class.
    pub at: usize,
    pub time: Nanos,
    /// [`Mark::RECORDED`], or 0.
    pub recorded: u32,
    pub who: Writer,
    pub cpu: u32,
}

impl Who<'_> {
    /// Writer of an event: the thread given by the recorder, or by the fields of the event.
    #[inline]
    pub fn of(&self, at: usize, recorded: Option<Writer>) -> (u32, Writer) {
        match recorded {
            Some(writer) => (Mark::RECORDED, writer),
            None => {
                let (pid, tid) = (self.pid.get(at) as u32, self.tid.get(at) as u32);
                (0, Writer { pid, tid })
            }
        }
    }
}

/// A column of numbers, or none.
#[derive(Clone, Copy)]
pub enum Numbers<'b> {
    None,
    Unsigned(&'b [u64]),
    Signed(&'b [i64]),
    Real(&'b [f64]),
}

impl<'b> Numbers<'b> {
    /// The given column of a class in a batch.
    pub fn of(batch: &'b dyn ColumnBatch, class: usize, column: Option<usize>) -> Self {
        match column.map(|column| batch.column(class, column)) {
            Some(column) => Self::in_column(column),
            None => Self::None,
        }
    }

    /// The numbers of a column.
    pub fn in_column(column: Column<'b>) -> Self {
        match column {
            Column::Unsigned(values) => Self::Unsigned(values),
            Column::Signed(values) => Self::Signed(values),
            Column::Real(values) => Self::Real(values),
            _ => Self::None,
        }
    }

    /// As an integer; 0 if there is no column.
    #[inline]
    pub fn get(self, at: usize) -> u64 {
        match self {
            Self::Unsigned(values) => values.get(at).copied().unwrap_or(0),
            Self::Signed(values) => values.get(at).copied().unwrap_or(0) as u64,
            Self::Real(_) | Self::None => 0,
        }
    }

    /// As a floating point number.
    pub fn real(self, at: usize) -> f64 {
        match self {
            Self::Unsigned(values) => values.get(at).copied().unwrap_or(0) as f64,
            Self::Signed(values) => values.get(at).copied().unwrap_or(0) as f64,
            Self::Real(values) => values.get(at).copied().unwrap_or(0.0),
            Self::None => 0.0,
        }
    }
}
