// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A separate recording for programs matched by a policy: a complete trace, with a report and,
//! if requested, clients of its own. Conditions are also evaluated on its packets.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::super::live::LiveServer;
use super::super::recording::Recording;
use super::Traced;
use super::feed::Feed;
use super::part::Part;
use crate::error::Error;
use crate::options::{Fingerprint, LiveOptions};
use crate::report::{Area, KeptWindow, Origin, PolicyOutput, Process};

/// Writer of such a recording.
pub(in super::super) struct Writer {
    /// Path as named in the policy.
    asked: PathBuf,
    part: Part,
    feed: Feed,
    traced: Traced,
    /// Writing failed, and the reason was reported.
    has_failed: bool,
}

impl Writer {
    /// Creates its folder, and listens. Context: the recording has its clock.
    ///
    /// Errors: the folder cannot be created, is part of the session's own, or listening failed.
    pub(in super::super) fn new(
        main: &Recording,
        asked: &Path,
        bytes_max: Option<u64>,
        live: Option<&LiveOptions>,
    ) -> Result<Writer, Error> {
        let everything = (0, u64::MAX);
        let bytes_max = bytes_max.unwrap_or(u64::MAX);
        let mut part = Part::new(main, asked, everything, bytes_max, KeptWindow::default())?;
        if part.recording.output.root().starts_with(main.output.root()) {
            let _ = std::fs::remove_dir_all(part.recording.output.root());
            return Err(Error::OutputExists(asked.to_owned()));
        }
        part.recording.origin = Origin::Recorded;
        let root = part.recording.output.root().to_owned();
        let uuid = part.recording.uuid;
        let live = live.map(|live| LiveServer::start(live, uuid, Some(root))).transpose()?;
        part.recording.output.set_live(live, true);
        part.recording.write_metadata_if_due()?;
        let (asked, feed, traced) = (asked.to_owned(), Feed::default(), Traced::default());
        Ok(Writer { asked, part, feed, traced, has_failed: false })
    }

    pub(in super::super) fn asked(&self) -> &Path {
        &self.asked
    }

    pub(in super::super) fn root(&self) -> &Path {
        self.part.recording.output.root()
    }

    /// Address for clients.
    pub(in super::super) fn live_address(&self) -> Option<SocketAddr> {
        self.part.recording.output.live().and_then(LiveServer::address)
    }

    /// Fingerprint for clients; `None` without encryption.
    pub(in super::super) fn live_fingerprint(&self) -> Option<Fingerprint> {
        self.part.recording.output.live().and_then(LiveServer::fingerprint)
    }

    /// Writes a sealed packet; returns false on failure.
    pub(in super::super) fn take(
        &mut self,
        main: &mut Recording,
        name: &str,
        packet: &[u8],
    ) -> bool {
        self.feed.give(&mut self.part, &main.classes, name, packet);
        let has_failed = self.part.has_failed();
        if has_failed && !std::mem::replace(&mut self.has_failed, true) {
            let root = self.root().display();
            main.problem(format!("Cannot record further: path={root}: its own report says why"));
        }
        !has_failed
    }

    pub(in super::super) fn flushed(&mut self, began_ns: i64) {
        self.part.recording.flushed(began_ns);
    }

    /// Adds an area's report.
    pub(in super::super) fn leave(&mut self, area: &Area, processes: &[Process]) {
        self.traced.areas.push(Area { output: None, ..area.clone() });
        self.traced.processes.extend(processes.iter().cloned());
    }

    /// Ends the recording.
    pub(in super::super) fn finish(mut self, main: &Recording) -> Result<PolicyOutput, Error> {
        self.part.recording.command = main.command.clone();
        let path = self.part.recording.output.root().display().to_string();
        let (_, report) = self.part.finish(self.traced)?;
        Ok(PolicyOutput { path, complete: report.complete, totals: report.totals })
    }
}
