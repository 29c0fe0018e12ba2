// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording of a session, with what is found out about it only when somebody asks.

use std::sync::OnceLock;

use lateralis_analysis::Gaps;
use lateralis_model::{Interval, PartSummary, Source, StreamIndex, Trace};

use super::owners::Owners;
use crate::Recording;

/// A recording of a session.
pub struct Opened {
    pub recording: Recording,
    /// What tables call it.
    pub label: String,
    /// Processors of its streams.
    pub cpus: Vec<Option<u32>>,
    parts: OnceLock<Vec<PartSummary>>,
    owners: OnceLock<Owners>,
    annotated: OnceLock<Option<Trace>>,
    gaps: OnceLock<Gaps>,
}

impl Opened {
    pub fn new(recording: Recording, label: String) -> Self {
        let cpus = recording.streams.iter().map(|stream| stream.cpu.map(|cpu| cpu.0)).collect();
        Self {
            recording,
            label,
            cpus,
            parts: OnceLock::new(),
            owners: OnceLock::new(),
            annotated: OnceLock::new(),
            gaps: OnceLock::new(),
        }
    }

    /// The pieces that can be read alone.
    pub fn parts(&self) -> &[PartSummary] {
        self.parts.get_or_init(|| Source::parts(&self.recording.source))
    }

    /// Threads and names.
    pub fn owners(&self) -> &Owners {
        self.owners.get_or_init(|| Owners::of(&self.recording))
    }

    /// The trace with what its schemas say of its classes.
    pub fn annotated(&self) -> &Trace {
        let annotated = self.annotated.get_or_init(|| match self.recording.annotated() {
            std::borrow::Cow::Owned(trace) => Some(trace),
            std::borrow::Cow::Borrowed(_) => None,
        });
        annotated.as_ref().unwrap_or_else(|| self.recording.source.trace())
    }

    /// Where events are missing, as far as opening has found; damage inside of packets is
    /// found by a pass over the headers of all events.
    pub fn gaps(&self) -> &Gaps {
        self.gaps.get_or_init(|| {
            let source = &self.recording.source;
            let damage = self.recording.all_damage(self.inner_damage());
            let stream_of = |file: &str| {
                let streams = &self.recording.streams;
                let found = streams.iter().position(|stream| stream.name == file)?;
                u32::try_from(found).ok().map(StreamIndex)
            };
            Gaps::new(source.losses(), &damage, stream_of)
        })
    }

    /// Damage inside of packets: events are counted, nothing of them is decoded.
    pub fn inner_damage(&self) -> Vec<lateralis_model::Damage> {
        let source = &self.recording.source;
        let wanted = lateralis_model::Wanted::counts(source.trace());
        let parts: Vec<usize> = (0..self.parts().len()).collect();
        let request = lateralis_model::ColumnRequest {
            parts: &parts,
            interval: Interval::default(),
            wanted: &wanted,
        };
        source.columns(&request, &mut |_| std::ops::ControlFlow::Continue(()))
    }
}
