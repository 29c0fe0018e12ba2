// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of calls of threads whose instructions were recorded. Calls are decoded for the visible
//! time range only; the index contains none.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use lateralis_lanes::{Meta, Pixels, Scale};
use lateralis_model::Source as _;
use lateralis_store::Recording;
use lateralis_store::flow::Recorded;
use lateralis_store::flow::timeline::{DEPTHS_MAX, Piece, Timeline, Window};
use lateralis_store::places::{Images, Places};
use lateralis_traces::hardware;

use crate::session::lock;

/// Size limit of a compressed recording, in bytes.
const PACKED_BYTES: u64 = 4 << 30;
/// Bytes of packets that are decoded before the first picture, to find the number of rows.
const FIRST_BYTES: usize = 8 << 20;
/// Bytes of packets that are decoded for each later picture, until all are decoded.
const MORE_BYTES: usize = 2 << 20;
/// Rows while not all packets are decoded. Deeper calls are drawn on the last of them.
const ROWS_UNKNOWN: u32 = 24;

/// Reads the contents of executable files.
#[derive(Clone)]
pub struct ImageSource {
    /// Options of `lat` that name further places to search for executable files.
    pub options: Vec<OsString>,
    open: Arc<dyn Fn() -> Box<dyn Images> + Send + Sync>,
}

impl ImageSource {
    /// `open` creates a reader; each user of the source gets a reader of its own.
    pub fn new(
        options: Vec<OsString>,
        open: impl Fn() -> Box<dyn Images> + Send + Sync + 'static,
    ) -> Self {
        Self { options, open: Arc::new(open) }
    }

    /// Creates a reader.
    #[must_use]
    pub fn open(&self) -> Box<dyn Images> {
        (self.open)()
    }
}

/// Opens the processor's packets of a trace, with the code that they refer to.
///
/// Several recordings are accepted only if all are of one machine: threads of other machines have
/// other ids in the session.
pub fn open_flow(
    paths: &[PathBuf],
    recording: &Recording,
    images: &ImageSource,
) -> Option<Timeline<'static>> {
    let joined = &recording.source;
    if joined.parts().len() > 1 {
        let mut classes = joined.trace().stream_classes.iter();
        let is_one_machine = classes.all(|class| class.host.is_first());
        let parts = hardware::of_parts(joined);
        if !is_one_machine || parts.iter().all(|of| of.buffers.is_empty()) {
            return None;
        }
        let places = Places::new(images.open(), joined.trace());
        return Some(Timeline::new(Recorded::of_several(joined, places, parts, &[])));
    }
    let [path] = paths else { return None };
    // A folder that is one of our recordings, or a file that cannot be read as hardware packets, has none.
    let of = hardware::read(path, PACKED_BYTES).ok()?;
    if of.is_raw || of.buffers.is_empty() {
        return None;
    }
    let places = Places::new(images.open(), recording.source.trace());
    let recorded = Recorded::of(&recording.source, places, (of.buffers, of.clocks), &of.code);
    Some(Timeline::new(recorded.with_filters(&of.filters)))
}

/// Calls of all threads of a session.
pub struct FlowRows {
    timeline: Mutex<Timeline<'static>>,
    /// Number of rows by thread.
    depths: Vec<u32>,
}

impl FlowRows {
    /// Checks the timeline against the index of a session; returns `None` if the numbers of threads
    /// differ, because the packets are then others than those of the index.
    pub fn new(mut timeline: Timeline<'static>, meta: &Meta) -> Option<Self> {
        if timeline.count() != meta.flows.len() {
            return None;
        }
        timeline.advance(FIRST_BYTES);
        let is_whole = timeline.pending_bytes() == 0;
        let rows = |line| {
            let deep = timeline.depth(line).min(DEPTHS_MAX) as u32;
            if is_whole { deep.max(1) } else { deep.max(ROWS_UNKNOWN) }
        };
        let depths = (0..timeline.count()).map(rows).collect();
        Some(Self { timeline: Mutex::new(timeline), depths })
    }

    /// Number of rows of the calls of one thread.
    pub fn depths(&self, flow: usize) -> u32 {
        self.depths.get(flow).copied().unwrap_or(0)
    }

    /// Locks the timeline; other callers wait meanwhile.
    pub fn timeline(&self) -> MutexGuard<'_, Timeline<'static>> {
        lock(&self.timeline)
    }

    /// Decodes more packets, and returns how many bytes of packets remain.
    pub fn advance(&self) -> u64 {
        let mut timeline = self.timeline();
        if timeline.pending_bytes() > 0 {
            timeline.advance(MORE_BYTES);
        }
        timeline.pending_bytes()
    }

    /// Calls of one thread in the time range of `scale`, whose times are relative to `origin`.
    pub fn window(&self, flow: usize, origin: i64, scale: &Scale) -> Arc<Window> {
        let absolute = |time: i64| u64::try_from(origin.saturating_add(time)).unwrap_or(0);
        self.timeline().window(flow, (absolute(scale.t0), absolute(scale.t1)))
    }
}

/// Converts an absolute time in nanoseconds to a time relative to the origin of the session.
pub fn since(origin: i64, nanos: u64) -> i64 {
    let time = i128::from(nanos) - i128::from(origin);
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}

/// Merges gaps to ascending intervals relative to the origin, for [`Pixels::mark`].
pub fn stretches(origin: i64, gaps: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let to = |nanos| u64::try_from(since(origin, nanos)).unwrap_or(0);
    let mut all: Vec<(u64, u64)> = gaps.iter().map(|(b, e)| (to(*b), to(*e))).collect();
    all.sort_unstable();
    all.dedup_by(|later, before| {
        let touches = later.0 <= before.1;
        if touches {
            before.1 = before.1.max(later.1);
        }
        touches
    });
    all
}

/// Calls within one pixel.
#[derive(Clone, Default)]
struct Pixel {
    calls: u64,
    /// Covered nanoseconds by function.
    covered: Vec<(u32, u64)>,
}

/// Rasterizes pieces of one row, as [`lateralis_lanes::pixels`] does with intervals. Returns the
/// largest number of calls that touch one pixel; a piece can represent several calls.
pub fn draw(pieces: &[Piece], origin: i64, scale: &Scale, out: &mut Pixels) -> u64 {
    let mut all = vec![Pixel::default(); scale.px as usize];
    let mut most = 0;
    for piece in pieces {
        let (begin, end) = (since(origin, piece.begin_ns), since(origin, piece.end_ns));
        let reach = end.max(begin.saturating_add(1));
        if reach <= scale.t0 || begin >= scale.t1 {
            continue;
        }
        let Some(first) = scale.pixel_of(begin.max(scale.t0)) else { continue };
        for pixel in first..scale.px {
            let (since, until) = scale.pixel(pixel);
            if since >= reach {
                break;
            }
            let Some(of) = all.get_mut(pixel as usize) else { break };
            of.calls += u64::from(piece.calls);
            most = most.max(of.calls);
            let covered = end.min(until).saturating_sub(begin.max(since)).max(0).unsigned_abs();
            let covered = covered * u64::from(piece.cover) / u64::from(u8::MAX);
            match of.covered.iter_mut().find(|(function, _)| *function == piece.function) {
                Some((_, sum)) => *sum += covered,
                None => of.covered.push((piece.function, covered)),
            }
        }
    }
    for (pixel, of) in (0..).zip(&all) {
        let (since, until) = scale.pixel(pixel);
        let best = of.covered.iter().max_by_key(|(function, sum)| (*sum, !function));
        let Some((function, _)) = best else {
            out.nothing();
            continue;
        };
        let covered: u64 = of.covered.iter().map(|(_, sum)| sum).sum();
        let width = until.abs_diff(since).max(1);
        let cover = (u128::from(covered) * 255 / u128::from(width)).min(255) as u8;
        out.push(*function, cover, usize::try_from(of.calls).unwrap_or(usize::MAX), false);
    }
    most
}

/// Instructions per microsecond in each pixel; NaN where they are unknown.
pub fn rates(window: &Window, origin: i64, scale: &Scale) -> Vec<f64> {
    let (Some((first, _)), Some((last, _))) = (window.moments.first(), window.moments.last())
    else {
        return vec![f64::NAN; scale.px as usize];
    };
    let (first, last) = (since(origin, *first), since(origin, *last));
    let gaps = stretches(origin, &window.gaps);
    let absolute = |time: i64| u64::try_from(origin.saturating_add(time)).unwrap_or(0);
    let rate = |pixel: u32| {
        let (begin, end) = scale.pixel(pixel);
        let is_lost = gaps.iter().any(|(since, until)| {
            i64::try_from(*since).is_ok_and(|since| since <= begin)
                && i64::try_from(*until).is_ok_and(|until| until >= end)
        });
        if end <= first || begin >= last || is_lost {
            return f64::NAN;
        }
        let count =
            window.number_at(absolute(end)).saturating_sub(window.number_at(absolute(begin)));
        count as f64 * 1000.0 / (end - begin).max(1) as f64
    };
    (0..scale.px).map(rate).collect()
}
