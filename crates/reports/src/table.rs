// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Aligned tables for terminals.

use crate::page::{Page, Role};
use lateralis_model::terminal;
use std::borrow::Cow;
use std::sync::OnceLock;

/// How the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Columns that are left out where there is no room for all, the first first: what others nearly say.
const LEAST: &[&str] = &[
    "stddev",
    "p90",
    "p99.9",
    "orphans",
    "unfinished",
    "min",
    "self",
    "mean",
    "parent",
    "longest by",
    "total",
];

/// Columns that stay however narrow the terminal is: without them a number would seem to be whole.
const LOSSES: &[&str] = &["lost", "losses", "dropped", "damaged", "missing", "torn", "unknown", ""];

/// Columns that count what is missing.
const COUNTS_OF_MISSING: &[&str] = &["lost", "losses", "dropped", "damaged", "missing", "torn"];
/// See [`fit_to`].
static COLUMNS: OnceLock<fn() -> Option<usize>> = OnceLock::new();

/// From now on, tables are rendered for a terminal with this number of columns, if there is one; it is
/// asked for each table, because windows are resized.
pub fn fit_to(columns: fn() -> Option<usize>) {
    // The first caller decides; there is one terminal.
    let _ = COLUMNS.set(columns);
}

/// Whether a cell is a problem.
type IsProblem = fn(&str) -> bool;

/// A table with a head line; columns are as wide as they must be.
pub struct Table {
    head: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    /// Further columns with problems, and which of their cells are one.
    problems: Option<(&'static str, IsProblem)>,
}

impl Table {
    /// A table with these columns.
    pub fn new(head: &[(&'static str, Align)]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new(), problems: None }
    }

    /// Colours cells of a column as problems.
    pub fn with_problems(mut self, column: &'static str, is_problem: IsProblem) -> Self {
        self.problems = Some((column, is_problem));
        self
    }

    /// Colour of a cell. Text of a trace is in columns of text, whose cells have none but by
    /// [`Table::with_problems`].
    fn role(&self, (name, align): (&'static str, Align), cell: &str) -> Option<Role> {
        let is_count = COUNTS_OF_MISSING.contains(&name) && align == Align::Right;
        let is_missing = is_count && !cell.is_empty() && cell != "0";
        let is_problem = self.problems.is_some_and(|(of, is)| of == name && is(cell));
        match is_missing || is_problem {
            true => Some(Role::Problem),
            false if align == Align::Right || name.is_empty() => Role::of_number(cell),
            false => None,
        }
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        // What is shown is what is measured.
        let shown = |cell: String| match terminal::shown(&cell) {
            Cow::Borrowed(_) => cell,
            Cow::Owned(shown) => shown,
        };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines, indented by two blanks, without trailing blanks. A terminal that is too narrow gets fewer
    /// columns, and the names of the others below; a pipe or a file gets all.
    pub fn render(&self) -> Page {
        self.render_within(COLUMNS.get().and_then(|columns| columns()))
    }

    fn render_within(&self, columns: Option<usize>) -> Page {
        let width = |text: &str| text.chars().count();
        let mut widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|cell| width(cell)).max().unwrap_or(0);
                widest.max(width(self.head[column].0))
            })
            .collect();
        let left_out = columns.map_or_else(Vec::new, |columns| self.narrow(&mut widths, columns));
        let mut page = Page::new();
        let head: Vec<String> = self.head.iter().map(|(name, _)| (*name).to_owned()).collect();
        for (index, row) in std::iter::once(&head).chain(&self.rows).enumerate() {
            for (column, of) in self.head.iter().enumerate() {
                // A column without text has no place.
                if widths[column] == 0 {
                    continue;
                }
                let cell = row.get(column).map_or("", String::as_str);
                let blanks = " ".repeat(widths[column] - width(cell));
                let (before, after) = match of.1 {
                    Align::Left => ("", &*blanks),
                    Align::Right => (&*blanks, ""),
                };
                page.part(format_args!("  {before}"));
                let role = if index == 0 { Some(Role::Heading) } else { self.role(*of, cell) };
                match role {
                    Some(role) => page.part_as(role, format_args!("{cell}")),
                    None => page.part(format_args!("{cell}")),
                }
                page.part(format_args!("{after}"));
            }
            page.trim_line();
            line!(page);
        }
        if !left_out.is_empty() {
            let note = format!(
                "(no room for {}: a wider terminal or a pipe has them)",
                left_out.join(", ")
            );
            for text in wrapped(&note, columns.unwrap_or(usize::MAX).saturating_sub(2)) {
                line!(page, "  {text}");
            }
        }
        page
    }

    /// Gives columns no width until the others fit: those that say least, then from the right, but neither
    /// the first nor those of losses. Their names.
    fn narrow(&self, widths: &mut [usize], columns: usize) -> Vec<&'static str> {
        let taken = |widths: &[usize]| -> usize {
            widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum()
        };
        let mut left_out = Vec::new();
        let least = LEAST.iter().filter_map(|name| self.head.iter().position(|of| of.0 == *name));
        let others = (1..self.head.len()).rev().filter(|at| !LOSSES.contains(&self.head[*at].0));
        for at in least.chain(others) {
            if taken(widths) <= columns {
                break;
            }
            if std::mem::take(&mut widths[at]) > 0 {
                left_out.push(self.head[at].0);
            }
        }
        left_out
    }
}

/// A text in lines of at most this number of characters, cut at blanks; a longer word has a line of its own.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let width = |text: &str| text.chars().count();
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_say_least_give_way_on_a_narrow_terminal() {
        let mut table = Table::new(&[
            ("span", Align::Left),
            ("stddev", Align::Right),
            ("p99", Align::Right),
            ("p99.9", Align::Right),
        ]);
        table.row(["request".into(), "1.00 ms".into(), "2.00 ms".into(), "3.00 ms".into()]);
        let lines = |columns| String::from(table.render_within(columns));
        let all = "  span      stddev      p99    p99.9\n  request  1.00 ms  2.00 ms  3.00 ms\n";
        assert_eq!(lines(None), all);
        assert_eq!(lines(Some(36)), all);
        let without = "  span         p99    p99.9\n  request  2.00 ms  3.00 ms\n  \
                       (no room for stddev: a wider\n  terminal or a pipe has them)\n";
        assert_eq!(lines(Some(35)), without);
    }

    #[test]
    fn other_columns_give_way_from_the_right_but_losses_stay() {
        let mut table = Table::new(&[
            ("cpu", Align::Left),
            ("events", Align::Right),
            ("lost", Align::Right),
            ("bytes", Align::Right),
        ]);
        table.row(["first".into(), "100 000".into(), "7".into(), "1 000 000".into()]);
        let lines = |columns| String::from(table.render_within(Some(columns)));
        let note = |names| format!("  (no room for {names}:");
        let some = lines(30);
        let table_of = |text: &str| text.lines().take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(table_of(&some), "  cpu     events  lost\n  first  100 000     7");
        assert!(some.contains(&note("bytes")), "{some}");
        assert!(some.lines().all(|line| line.chars().count() <= 30), "{some}");
        let few = lines(14);
        assert_eq!(table_of(&few), "  cpu    lost\n  first     7");
        let words = few.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("(no room for bytes, events:"), "{few}");
    }

    #[test]
    fn columns_are_aligned_and_lines_end_with_their_text() {
        let mut table =
            Table::new(&[("name", Align::Left), ("n", Align::Right), ("", Align::Left)]);
        assert!(table.is_empty());
        table.row(["a".into(), "10 000".into(), "µs".into()]);
        table.row(["long name".into(), "7".into()]);
        let expected = "  name            n\n  a          10 000  µs\n  long name       7\n";
        assert_eq!(table.render().as_str(), expected);
    }

    #[test]
    fn a_cell_can_neither_end_its_line_nor_move_its_column() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["a\x1b[2K\nb".into(), "1".into()]);
        let expected = "  name         n\n  a\\x1b[2K\\nb  1\n";
        assert_eq!(table.render().as_str(), expected);
    }
}
