// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One line at the bottom of a terminal that changes while something goes on.

use crate::output;
use crate::values;
use lateralis_recorder::Progress;

/// Draws on standard error, so that the output of a recorded program stays as
/// it is; draws nothing if that is no terminal.
///
/// Not for a time in which a recorded program shares the terminal: the program may have left a
/// prompt on the line. After it, [`begin_line`] goes to a line of our own. Nothing is drawn while
/// a program draws the screen itself (an editor, a pager).
pub struct StatusLine {
    active: bool,
    drawn: bool,
}

impl StatusLine {
    /// A line, or nothing with `quiet` or without a terminal.
    pub fn new(quiet: bool) -> Self {
        Self { active: !quiet && output::is_error_terminal(), drawn: false }
    }

    /// Replaces the line's text.
    pub fn show(&mut self, text: &str) {
        if !self.active || screen_is_taken() {
            return;
        }
        self.drawn = true;
        // A terminal that went away is no reason to stop recording.
        output::overwrite_line(fitting(text, width()), loss(text));
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.drawn {
            self.drawn = false;
            output::overwrite_line("", None);
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Goes to the start of a line if standard error is a terminal whose cursor may be elsewhere: a
/// program that used it may have ended inside a line, which must stay.
pub fn begin_line() {
    if !output::is_error_terminal() {
        return;
    }
    let Ok(size) = rustix::termios::tcgetwinsize(rustix::stdio::stderr()) else { return };
    let columns = usize::from(size.ws_col);
    if columns < 2 {
        return;
    }
    // Where the cursor is cannot be asked without taking the program's input. Blanks for all columns
    // stay on an empty line, and wrap to the next one from anywhere else.
    output::leave_line(columns);
}

/// What a recording says of itself while it runs.
pub fn progress(now: &Progress) -> String {
    let lost = match now.lost {
        0 => "0 lost".into(),
        lost => format!("{} LOST", values::count(lost)),
    };
    format!(
        "recording {:.0} s  {}  {}  {}  {lost}",
        now.elapsed.as_secs_f64(),
        values::counted(now.events, "event"),
        values::rate(now.events_per_s),
        values::bytes(now.bytes),
    )
}

/// The part of [`progress`] about lost events, if there are any.
fn loss(text: &str) -> Option<&str> {
    let count = text.strip_suffix(" LOST")?;
    Some(&text[count.rfind("  ").map_or(0, |at| at + 2)..])
}

/// Whether whoever uses the terminal reads single key presses.
fn screen_is_taken() -> bool {
    rustix::termios::tcgetattr(rustix::stdio::stderr())
        .is_ok_and(|modes| !modes.local_modes.contains(rustix::termios::LocalModes::ICANON))
}

fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
    size.map_or(80, |size| usize::from(size.ws_col)).max(20)
}

/// The text cut so that it stays one line.
fn fitting(text: &str, width: usize) -> &str {
    let end = text.char_indices().nth(width - 1).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_loud() {
        let mut now = Progress { events: 10, ..Progress::default() };
        assert!(progress(&now).ends_with("0 lost"));
        now.lost = 5;
        assert!(progress(&now).ends_with("5 LOST"));
        assert_eq!(loss(&progress(&now)), Some("5 LOST"));
        assert_eq!(loss(&progress(&Progress::default())), None);
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(fitting("µµµµ", 3), "µµ");
        assert_eq!(fitting("short", 80), "short");
    }
}
