// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the events of a stream class are walked, class by class: made once of what is wanted.

use lateralis_model::{CountBy, Want, Wanted};

use super::BATCH_EVENTS;
use crate::plan::{EventPlan, Header, Leaf, Straight, StreamPlan};

/// Values that the columns of a batch may hold, about: 8 MiB. Events of classes
/// with very many fields come in smaller batches.
pub(super) const BATCH_VALUES: usize = 1 << 20;

/// How to walk the events of a stream class.
#[derive(Default)]
pub(super) struct Ways<'r> {
    pub stream_class: Option<u32>,
    pub classes: Vec<Way<'r>>,
    /// The content after the header, by id, as far as ids are small; 0 if none is known.
    pub strides: Vec<Stride>,
    /// Alignments in bytes, less one, of the same.
    pub masks: Vec<u32>,
    /// Whether nothing needs to be aligned once the first header is: strides then lead to
    /// the next one.
    pub packed: bool,
    /// Events of a batch at most.
    pub limit: usize,
    /// Whether anything but numbers of events is wanted.
    pub keeps: bool,
    /// How events may be counted, if counts may replace the request.
    pub counts: Option<CountBy>,
    /// Requested columns of all events in their order, if that is permitted: they are then at the
    /// same position in all runs.
    pub in_order: Option<Vec<&'r Leaf>>,
}

/// What follows a header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stride {
    /// Length of an event that is a run, else [`NO_RUN`].
    pub bytes: u32,
    /// Index of the class, [`NO_CLASS`] if there is none.
    pub class: u32,
}

/// What it is will be said by who reads it by bits.
pub(super) const NO_CLASS: u32 = u32::MAX;

/// After the end of every packet: walked packets are shorter.
pub(super) const NO_RUN: u32 = u32::MAX;

/// How to walk the events of a class.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way<'r> {
    pub class: u32,
    /// Alignment in bytes of a run, less one.
    pub mask: u32,
    /// Length of an event if it is a run and wanted, and nothing else.
    pub run: Option<u32>,
    pub keep: bool,
    pub names_writer: bool,
    /// Marks of an event that takes several steps and is wanted, and nothing else; else 0.
    pub steps: u32,
    /// Whether it takes several steps, is only counted, and nothing else.
    pub skips: bool,
    pub straight: Option<&'r Straight>,
}

impl<'r> Ways<'r> {
    /// `may_count`: whether events may be counted, as far as that is wanted.
    pub fn of(plan: &'r StreamPlan, stream_class: u32, wanted: &Wanted, may_count: bool) -> Self {
        let wants = wanted.classes(stream_class);
        let is_kept = |want: &Want| *want != Want::Count;
        let counts =
            wanted.count_by(stream_class).filter(|_| may_count && wants.iter().any(is_kept));
        let keeps = counts.is_none() && wants.iter().any(is_kept);
        // Events of no bytes would be as many as one likes.
        let has_bytes = plan.header.as_ref().is_some_and(Header::takes_bytes);
        let way = |(class, (event, want)): (usize, (&'r Option<EventPlan>, &Want))| {
            let straight = event.as_ref().and_then(|event| event.straight.as_ref());
            let fixed = straight.and_then(|straight| straight.fixed);
            let keep = keeps && is_kept(want);
            let names_writer = event.as_ref().is_some_and(|event| event.names_writer);
            let as_run = !names_writer && keep == keeps;
            Way {
                class: class as u32,
                mask: fixed.map_or(0, |fixed| fixed.mask),
                run: fixed
                    .map(|fixed| fixed.bytes)
                    .filter(|&bytes| as_run && (has_bytes || bytes > 0)),
                keep,
                names_writer,
                steps: straight
                    .filter(|straight| as_run && keep && straight.fixed.is_none())
                    .map_or(0, |straight| straight.marks),
                skips: as_run && !keep && straight.is_some_and(|straight| straight.fixed.is_none()),
                straight,
            }
        };
        let classes: Vec<Way> = plan.events.iter().zip(wants).enumerate().map(way).collect();
        let only = plan.only_id().and_then(|id| plan.class_index(id));
        let has_id = plan.header.as_ref().is_some_and(|header| header.has_id);
        let ids = match (has_id, only) {
            (false, Some(index)) => vec![index],
            _ => plan.small_ids().to_vec(),
        };
        let usual = plan.header.as_ref().and_then(|header| header.usual.as_ref());
        let packed_bytes = |way: &Way<'_>| {
            let Some(bytes) = way.run else { return Some(NO_RUN) };
            u32::try_from(usual?.stride(way.mask as usize, bytes as usize)?).ok()
        };
        let packed = classes.iter().all(|way| packed_bytes(way).is_some());
        let of_id = |&index: &u32| classes.get(index as usize);
        let stride = |index| {
            let way = of_id(index);
            let bytes = way.and_then(|way| if packed { packed_bytes(way) } else { way.run });
            Stride { bytes: bytes.unwrap_or(NO_RUN), class: way.map_or(NO_CLASS, |way| way.class) }
        };
        let straight = classes.iter().filter_map(|way| way.straight);
        let widest = straight.map(|straight| straight.leaves.len()).max().unwrap_or(0);
        let in_order = wanted.columns_in_order(stream_class).filter(|_| usual.is_some());
        let in_order = in_order.and_then(|columns| {
            columns.iter().map(|&column| leaf_of_all(&classes, column)).collect()
        });
        Self {
            in_order,
            stream_class: Some(stream_class),
            keeps,
            counts,
            strides: ids.iter().map(stride).collect(),
            masks: ids.iter().map(|index| of_id(index).map_or(0, |way| way.mask)).collect(),
            packed,
            classes,
            limit: (BATCH_VALUES / widest.max(1)).clamp(1, BATCH_EVENTS),
        }
    }

    /// The way of events with this id.
    pub(super) fn by_id(&self, plan: &StreamPlan, id: u64) -> Option<&Way<'r>> {
        let class = match self.strides.get(id as usize) {
            Some(stride) => stride.class,
            None => plan.class_index(id)?,
        };
        self.classes.get(class as usize)
    }
}

/// The leaf of this index, if it is the same in all classes whose events may be reported in order.
fn leaf_of_all<'r>(classes: &[Way<'r>], index: usize) -> Option<&'r Leaf> {
    let kept = classes.iter().filter(|way| way.keep).filter_map(|way| way.straight);
    let runs = kept.filter(|straight| straight.fixed.is_some());
    let mut leaves = runs.map(|straight| straight.leaves.get(index));
    let first = leaves.next()??;
    (first.mark == 0 && leaves.all(|leaf| leaf == Some(first))).then_some(first)
}
