// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts firing times to windows of time; nearby ones share a window.

/// Effect of a firing on the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Extends the open window.
    Extend {
        /// Its new end.
        to: u64,
    },
    /// Opens a new window.
    Open {
        /// Its start.
        from: u64,
        /// Its end.
        to: u64,
        /// The previous window ends at this firing because it reached the maximum length.
        continues: bool,
    },
}

/// Windows around firings, in ticks.
#[derive(Debug)]
pub struct Windows {
    before: u64,
    after: u64,
    /// Maximum length of an extended window.
    longest: u64,
    open: Option<(u64, u64)>,
}

/// Maximum length of an extended window, in lengths of a single firing's window.
const LENGTHS_MAX: u64 = 8;

impl Windows {
    /// Windows from `before` each firing to `after` it.
    pub fn new(before: u64, after: u64) -> Windows {
        let longest = before.saturating_add(after).saturating_mul(LENGTHS_MAX);
        Windows { before, after, longest, open: None }
    }

    /// The open window.
    pub fn open(&self) -> Option<(u64, u64)> {
        self.open
    }

    /// Closes the open window, which has been written.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Adds a firing; in the order of time. A firing inside the open window extends it;
    /// any other one has a complete window of its own, which may overlap another.
    pub fn moment(&mut self, at: u64) -> Next {
        let to = at.saturating_add(self.after);
        if let Some((from, end)) = self.open.filter(|(_, end)| at <= *end) {
            let to = to.max(end);
            if to - from <= self.longest {
                self.open = Some((from, to));
                return Next::Extend { to };
            }
            let from = at.saturating_add(1);
            self.open = Some((from, to));
            return Next::Open { from, to, continues: true };
        }
        let from = at.saturating_sub(self.before);
        self.open = Some((from, to));
        Next::Open { from, to, continues: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_in_a_window_share_it_and_it_does_not_grow_for_ever() {
        let mut windows = Windows::new(10, 5);
        assert_eq!(windows.moment(100), Next::Open { from: 90, to: 105, continues: false });
        assert_eq!(windows.moment(105), Next::Extend { to: 110 });
        // Overlaps only: a window of its own, and both are complete.
        assert_eq!(windows.moment(111), Next::Open { from: 101, to: 116, continues: false });
        let mut opened = Vec::new();
        for at in 112..500 {
            if let Next::Open { from, to, continues } = windows.moment(at) {
                assert!(continues && to > from);
                opened.push(from);
            }
        }
        assert_eq!(opened.len(), 3);
        // 101 + 8 * 15 - 5 is the last firing in the first window.
        assert_eq!(opened[0], 218);
        windows.close();
        assert_eq!(windows.moment(3), Next::Open { from: 0, to: 8, continues: false });
    }
}
