// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Aligned tables that fit the terminal. Widths are determined by the first rows; later rows are written
//! as they come.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use lateralis_model::terminal::shown;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Number of rows that determine the widths.
const LOOKED_AT: usize = 1000;
/// Minimum width of a text column.
const NARROWEST: usize = 8;
/// Width between columns.
const GAP: usize = 2;
/// Largest width of a cell, even without a terminal.
const WIDEST: usize = 4096;
/// Separator of the lines of a plan.
const LINE_END: &str = "\n";

/// Writes batches as a table.
pub struct TableWriter<W: Write> {
    target: W,
    schema: SchemaRef,
    /// Width of the terminal.
    room: Option<usize>,
    /// Rows held until the widths are known.
    waiting: Vec<Vec<String>>,
    /// Widths of the columns shown, once they are known.
    widths: Option<Vec<usize>>,
    rows: u64,
    /// Whether this is the output of EXPLAIN.
    is_plan: bool,
}

impl<W: Write> TableWriter<W> {
    /// A table with these columns, at most `room` wide.
    pub fn new(target: W, schema: SchemaRef, room: Option<usize>) -> Self {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let is_plan = names.eq(["plan_type", "plan"]);
        Self { target, schema, room, waiting: Vec::new(), widths: None, rows: 0, is_plan }
    }

    /// Adds rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let options = FormatOptions::default().with_null("");
        let columns = batch.columns().iter();
        let columns: Vec<ArrayFormatter<'_>> = columns
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let cells: Vec<String> =
                columns.iter().map(|column| self.text(&column.value(row).to_string())).collect();
            self.rows += 1;
            if self.widths.is_some() {
                self.row(&cells)?;
                continue;
            }
            self.waiting.push(cells);
            if self.waiting.len() >= LOOKED_AT {
                self.begin()?;
            }
        }
        Ok(())
    }

    /// Writes the remaining rows, and the number of rows and columns.
    pub fn finish(mut self) -> Result<W, ArrowError> {
        self.begin()?;
        let rows = self.rows;
        let word = if rows == 1 { "row" } else { "rows" };
        let shown = self.widths.as_ref().map_or(0, Vec::len);
        let hidden = self.schema.fields().len() - shown;
        if hidden > 0 {
            let names = self.schema.fields()[shown..].iter().take(5);
            let names: Vec<&str> = names.map(|field| field.name().as_str()).collect();
            let more = if hidden > names.len() { ", …" } else { "" };
            writeln!(
                self.target,
                "({rows} {word}; {hidden} more to name: {}{more})",
                names.join(", ")
            )?;
        } else {
            writeln!(self.target, "({rows} {word})")?;
        }
        self.target.flush()?;
        Ok(self.target)
    }

    /// Text of a cell: only a plan, which the engine generates, has several lines.
    fn text(&self, text: &str) -> String {
        if !self.is_plan {
            return one_line(text);
        }
        let lines: Vec<String> = text.trim_end().split('\n').map(one_line).collect();
        lines.join(LINE_END)
    }

    /// Determines the widths and writes the header and held rows, unless done already.
    fn begin(&mut self) -> Result<(), ArrowError> {
        if self.widths.is_some() {
            return Ok(());
        }
        let names: Vec<String> =
            self.schema.fields().iter().map(|field| one_line(field.name())).collect();
        let wanted: Vec<usize> = (0..names.len())
            .map(|column| {
                let lines = self.waiting.iter().flat_map(|row| row[column].split(LINE_END));
                let cells = lines.map(UnicodeWidthStr::width);
                cells.max().unwrap_or(0).max(names[column].width())
            })
            .collect();
        let can_shrink: Vec<bool> =
            self.schema.fields().iter().map(|field| !is_number(field.data_type())).collect();
        self.widths = Some(fit(&wanted, &can_shrink, self.room));
        self.line(&names)?;
        for row in std::mem::take(&mut self.waiting) {
            self.row(&row)?;
        }
        Ok(())
    }

    /// Writes a row; a plan takes several lines.
    fn row(&mut self, cells: &[String]) -> Result<(), ArrowError> {
        if !self.is_plan {
            return self.line(cells);
        }
        let height = cells.iter().map(|cell| cell.split(LINE_END).count()).max().unwrap_or(1);
        for at in 0..height {
            let part = |cell: &String| cell.split(LINE_END).nth(at).unwrap_or("").to_owned();
            let part: Vec<String> = cells.iter().map(part).collect();
            if at == 0 || part.iter().any(|cell| !cell.is_empty()) {
                self.line(&part)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, cells: &[String]) -> Result<(), ArrowError> {
        let widths = self.widths.as_deref().unwrap_or(&[]);
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let is_number = is_number(self.schema.field(column).data_type());
            // Without a terminal, later rows may be wider than the first.
            let most = if self.room.is_some() { *width } else { WIDEST };
            let cell = cut(cell, most);
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            if is_number {
                line.push_str(&blanks);
                line.push_str(&cell);
            } else {
                line.push_str(&cell);
                line.push_str(&blanks);
            }
        }
        writeln!(self.target, "{}", line.trim_end())?;
        Ok(())
    }
}

fn is_number(kept: &DataType) -> bool {
    match kept {
        DataType::Dictionary(_, value) => is_number(value),
        other => other.is_numeric(),
    }
}

/// Text from a trace must not move the cursor or break the table.
fn one_line(text: &str) -> String {
    shown(text).into_owned()
}

/// The text truncated to `most` cells, with a mark if something is cut off.
fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > most {
            break;
        }
        shown.push(character);
    }
    shown.push('…');
    shown
}

/// Widths with which the table fits: the widest text columns are narrowed first; numbers are shown
/// completely or not at all. Columns without room are left out.
fn fit(wanted: &[usize], can_shrink: &[bool], room: Option<usize>) -> Vec<usize> {
    let mut widths: Vec<usize> = wanted.iter().map(|width| (*width).min(WIDEST)).collect();
    let Some(room) = room else {
        return widths;
    };
    let total =
        |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    while total(&widths) > room {
        let shrinkable = widths.iter().enumerate();
        let widest = shrinkable
            .filter(|(column, width)| can_shrink[*column] && **width > NARROWEST)
            .max_by_key(|(_, width)| **width)
            .map(|(column, _)| column);
        if let Some(column) = widest {
            let over = total(&widths) - room;
            // At most down to the next widest, so that they shrink together.
            let others = widths.iter().enumerate();
            let next = others
                .filter(|(other, width)| {
                    *other != column && can_shrink[*other] && **width < widths[column]
                })
                .map(|(_, width)| *width)
                .max()
                .unwrap_or(NARROWEST)
                .max(NARROWEST);
            let step = (widths[column] - next).max(1).min(over);
            widths[column] -= step;
        } else if widths.len() > 1 {
            widths.pop();
        } else {
            break;
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use std::sync::Arc;

    fn written(room: Option<usize>, texts: Vec<Option<&str>>) -> String {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..texts.len() as i64));
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let batch = RecordBatch::try_from_iter([("text", texts), ("n", numbers)]).unwrap();
        let mut table = TableWriter::new(Vec::new(), batch.schema(), room);
        table.write(&batch).unwrap();
        String::from_utf8(table.finish().unwrap()).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_numbers_stand_right() {
        let shown = written(None, vec![Some("a"), None, Some("longer")]);
        assert_eq!(shown, "text    n\na       0\n        1\nlonger  2\n(3 rows)\n");
    }

    #[test]
    fn text_is_cut_to_the_terminal_and_cannot_move_the_cursor() {
        let shown = written(Some(12), vec![Some("0123456789abc"), Some("\u{1b}[2J\n")]);
        assert!(shown.contains("01234567…") && !shown.contains('\u{1b}'), "{shown}");
        assert!(shown.lines().all(|line| line.width() <= 12), "{shown}");
    }

    #[test]
    fn columns_without_room_are_named() {
        let shown = written(Some(8), vec![Some("0123456789abc")]);
        assert!(shown.contains("1 more to name: n"), "{shown}");
    }

    #[test]
    fn a_table_fits_unless_one_number_is_wider_than_the_terminal() {
        let mut chance = Chance::new(4);
        for _ in 0..2000 {
            let count = 1 + chance.below(30) as usize;
            let wanted: Vec<usize> = (0..count).map(|_| chance.below(200) as usize).collect();
            let can_shrink: Vec<bool> = (0..count).map(|_| chance.below(2) == 0).collect();
            let room = 10 + chance.below(190) as usize;
            let widths = fit(&wanted, &can_shrink, Some(room));
            assert!(!widths.is_empty());
            let total = widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
            assert!(total <= room || (widths.len() == 1 && !can_shrink[0]));
            assert!(widths.iter().zip(&wanted).all(|(width, wanted)| width <= wanted));
        }
    }
}
