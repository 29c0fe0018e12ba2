// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording in chunks: each is a complete recording, and begins where the previous one ended. A chunk
//! ends with a flush, so that all its streams extend to the same time.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::super::area::LiveArea;
use super::super::recording::Recording;
use super::feed::Feed;
use super::part::Part;
use super::{Traced, reasons};
use crate::keep::split;
use crate::options::ChunkOptions;
use crate::report::KeptWindow;

/// Writes the chunks.
pub(in super::super) struct Chunks {
    options: ChunkOptions,
    root: PathBuf,
    part: Option<Part>,
    began: Instant,
    /// Time of the last flush: events between two flushes are at most that old.
    last_flush: Instant,
    /// Clock at the flush that ended the last chunk: nothing in the next one is older.
    flushed_at: u64,
    feed: Feed,
    chunks: u64,
    on_disk: VecDeque<String>,
    gone: Traced,
    /// Writing has failed.
    has_failed: bool,
}

impl Chunks {
    pub(in super::super) fn new(options: ChunkOptions, main: &Recording) -> Chunks {
        Chunks {
            options,
            root: main.output.root().to_owned(),
            part: None,
            began: Instant::now(),
            last_flush: Instant::now(),
            flushed_at: 0,
            feed: Feed::default(),
            chunks: 0,
            on_disk: VecDeque::new(),
            gone: Traced::default(),
            has_failed: false,
        }
    }

    /// Whether the chunk has reached its limit.
    pub(in super::super) fn is_full(&self) -> bool {
        let bytes = self.part.as_ref().map_or(0, Part::bytes);
        let over_time = |most: Duration| self.part.is_some() && self.began.elapsed() >= most;
        self.options.bytes.is_some_and(|most| bytes >= most)
            || self.options.time.is_some_and(over_time)
    }

    /// Remembers an area that is removed.
    pub(in super::super) fn gone(&mut self, area: &LiveArea) {
        self.gone.remember(area);
    }

    /// Writes a sealed packet; returns false on failure.
    pub(in super::super) fn take(
        &mut self,
        main: &mut Recording,
        name: &str,
        packet: &[u8],
    ) -> bool {
        if self.part.is_none() && !self.has_failed {
            let Some((header, _)) = split(packet) else { return true };
            self.begin(main, header.timestamp_begin);
        }
        let Some(part) = &mut self.part else { return false };
        self.feed.give(part, &main.classes, name, packet);
        !part.has_failed()
    }

    fn begin(&mut self, main: &mut Recording, from: u64) {
        self.chunks += 1;
        let name = format!("chunk-{:06}", self.chunks);
        let window = KeptWindow {
            name: name.clone(),
            from_ns: reasons::utc(main, from),
            continues: self.chunks > 1,
            ..KeptWindow::default()
        };
        self.began = self.last_flush;
        // A packet may begin slightly before the one that arrived first.
        match Part::new(main, &self.root.join(&name), (0, u64::MAX), u64::MAX, window) {
            Ok(mut part) => {
                if self.chunks > 1 {
                    // The packets of another stream may begin before the one that arrived first.
                    part.write_introductions(&main.introduced, from.min(self.flushed_at));
                }
                self.part = Some(part);
                main.made_chunks = self.chunks;
                self.on_disk.push_back(name);
            }
            Err(error) => {
                self.has_failed = true;
                main.problem(error.to_string());
            }
        }
    }

    /// Ends a chunk that has reached its limit. Context: after a flush.
    pub(in super::super) fn step(
        &mut self,
        main: &mut Recording,
        traced: &dyn Fn() -> Traced,
        (flushed_at, is_last): (u64, bool),
    ) {
        let is_over = is_last || self.is_full();
        self.last_flush = Instant::now();
        if !is_over {
            return;
        }
        self.flushed_at = flushed_at;
        if is_last && self.chunks == 0 && !self.has_failed {
            // Nothing was traced: the trace is empty, but it must exist.
            let now = main.now();
            self.begin(main, now);
        }
        let Some(mut part) = self.part.take() else { return };
        part.window.to_ns = reasons::utc(main, main.now());
        part.recording.gaps.clone_from(&main.gaps);
        let mut all = traced();
        all.append(std::mem::take(&mut self.gone));
        match part.finish(all) {
            Ok((_, report)) => report.problems.into_iter().for_each(|text| main.problem(text)),
            Err(error) => main.problem(error.to_string()),
        }
        let most = self.options.chunks_max.unwrap_or(u64::MAX).max(1);
        while self.on_disk.len() as u64 > most {
            let Some(oldest) = self.on_disk.pop_front() else { break };
            // The name is one of this recorder's own.
            let _ = std::fs::remove_dir_all(self.root.join(oldest));
            main.removed_chunks += 1;
        }
    }
}
