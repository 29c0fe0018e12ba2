// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's counters of each CPU's buffer (`per_cpu/cpuN/stats`).

use lateralis_ring::LossCounts;

/// Counts since the buffer was created or cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuStats {
    /// Unread events in the buffer.
    pub entries: u64,
    /// Events whose page was overwritten before it was read.
    pub overrun: u64,
    /// Events dropped because the buffer had wrapped onto a page that was still being written.
    pub commit_overrun: u64,
    /// Events dropped for lack of room, if pages are not overwritten.
    pub dropped: u64,
    /// Events that were read.
    pub read: u64,
}

impl CpuStats {
    /// Parses the file's text; missing values are 0.
    pub fn parse(text: &str) -> CpuStats {
        let mut stats = CpuStats::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let Ok(value) = value.trim().parse() else { continue };
            match name.trim() {
                "entries" => stats.entries = value,
                "overrun" => stats.overrun = value,
                "commit overrun" => stats.commit_overrun = value,
                "dropped events" => stats.dropped = value,
                "read events" => stats.read = value,
                _ => {}
            }
        }
        stats
    }

    /// Converts to losses of a stream: no room is `full`, nested too deep is `no_ring`.
    pub fn losses(&self) -> LossCounts {
        LossCounts {
            full: self.overrun.saturating_add(self.dropped),
            no_ring: self.commit_overrun,
            ..LossCounts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_kernel_is_read() {
        let text = "entries: 3\noverrun: 7\ncommit overrun: 1\nbytes: 99\n\
            oldest event ts:   144.1\nnow ts:   150.2\ndropped events: 2\nread events: 40\n";
        let stats = CpuStats::parse(text);
        let wanted = CpuStats { entries: 3, overrun: 7, commit_overrun: 1, dropped: 2, read: 40 };
        assert_eq!(stats, wanted);
        let LossCounts { full, no_ring, .. } = stats.losses();
        assert_eq!((full, no_ring), (9, 1));
        assert_eq!(CpuStats::parse("overrun: -1\nx\n"), CpuStats::default());
    }
}
