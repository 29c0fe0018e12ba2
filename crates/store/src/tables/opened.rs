// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording of a session, with lazily computed properties.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lateralis_analysis::Gaps;
use lateralis_model::{Interval, PartSummary, Source, StreamIndex, Trace};

use super::clocks::Group;
use super::owners::Owners;
use crate::Recording;

/// A recording of a session.
pub struct Opened {
    pub recording: Recording,
    /// Its name in tables as a whole.
    pub label: String,
    /// Its traces by the path that they were opened from; at least one group.
    pub groups: Vec<Group>,
    /// CPUs of its streams.
    pub cpus: Vec<Option<u32>>,
    parts: OnceLock<Vec<PartSummary>>,
    owners: OnceLock<Owners>,
    annotated: OnceLock<Option<Trace>>,
    gaps: OnceLock<Gaps>,
}

impl Opened {
    pub fn new(recording: Recording, label: String, mut groups: Vec<Group>) -> Self {
        if let [only] = groups.as_mut_slice() {
            only.label.clone_from(&label);
        }
        let cpus = recording.streams.iter().map(|stream| stream.cpu.map(|cpu| cpu.0)).collect();
        Self {
            recording,
            label,
            groups,
            cpus,
            parts: OnceLock::new(),
            owners: OnceLock::new(),
            annotated: OnceLock::new(),
            gaps: OnceLock::new(),
        }
    }

    /// Names in tables of the opened traces, and their paths.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &Path)> {
        let one = Some((self.label.as_str(), self.recording.path.as_path()));
        let several = self.groups.iter().map(|Group { label, .. }| {
            let is_it = |path: &&PathBuf| path.display().to_string() == *label;
            let path = self.recording.paths.iter().find(is_it).unwrap_or(&self.recording.path);
            (label.as_str(), path.as_path())
        });
        let is_one = self.groups.len() < 2;
        one.filter(|_| is_one).into_iter().chain(several.filter(move |_| !is_one))
    }

    /// Name in tables of the recording of a stream.
    pub fn label_of(&self, stream: StreamIndex) -> &str {
        match self.groups.as_slice() {
            [] | [_] => &self.label,
            groups => {
                let group = groups.partition_point(|group| group.streams.end <= stream.0);
                groups.get(group).map_or(&self.label, |group| &group.label)
            }
        }
    }

    /// Name in tables of the recording of a stream class.
    pub fn label_of_class(&self, class: u32) -> &str {
        let of_class = self.recording.streams.iter().position(|stream| stream.class == class);
        match of_class {
            Some(stream) => self.label_of(StreamIndex(stream as u32)),
            None => &self.label,
        }
    }

    /// Name in tables of the recording of a damaged file.
    pub fn label_of_file(&self, file: &str) -> &str {
        let traces = self.recording.source.parts();
        let has_it = |group: &&Group| {
            let mut of_group = traces.get(group.traces.clone()).unwrap_or_default().iter();
            of_group.any(|trace| Path::new(file).starts_with(&trace.place))
        };
        match self.groups.as_slice() {
            [] | [_] => &self.label,
            groups => groups.iter().find(has_it).map_or(&self.label, |group| &group.label),
        }
    }

    /// The parts that can be read independently.
    pub fn parts(&self) -> &[PartSummary] {
        self.parts.get_or_init(|| Source::parts(&self.recording.source))
    }

    /// Parts of some traces, by number.
    pub fn parts_of(&self, group: &Group) -> Range<usize> {
        if self.groups.len() < 2 {
            return 0..self.parts().len();
        }
        let traces = self.recording.source.parts().iter();
        let counts: Vec<usize> = traces.map(|trace| trace.source.parts().len()).collect();
        let before = |trace: usize| counts.iter().take(trace).sum();
        before(group.traces.start)..before(group.traces.end)
    }

    /// Threads and names.
    pub fn owners(&self) -> &Owners {
        self.owners.get_or_init(|| Owners::of(&self.recording))
    }

    /// The trace with the roles from its schemas.
    pub fn annotated(&self) -> &Trace {
        let annotated = self.annotated.get_or_init(|| match self.recording.annotated() {
            std::borrow::Cow::Owned(trace) => Some(trace),
            std::borrow::Cow::Borrowed(_) => None,
        });
        annotated.as_ref().unwrap_or_else(|| self.recording.source.trace())
    }

    /// Gaps as far as opening found them; damage inside packets is found by a pass over the headers of
    /// all events.
    pub fn gaps(&self) -> &Gaps {
        self.gaps
            .get_or_init(|| self.recording.gaps(&self.recording.all_damage(self.inner_damage())))
    }

    /// Damage inside packets: events are counted without being decoded.
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
