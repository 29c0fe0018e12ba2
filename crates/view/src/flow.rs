// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of calls of threads whose instructions were recorded. Calls are decoded for the time that is looked
//! at; none is in the index.

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

/// Bytes that a compressed recording may have.
const PACKED_BYTES: u64 = 4 << 30;
/// Bytes of packets that are decoded before the first picture, to know how many rows there are.
const FIRST_BYTES: usize = 8 << 20;
/// The same for each picture after that, until all were.
const MORE_BYTES: usize = 2 << 20;
/// Rows where not all was decoded: what is deeper is drawn on the last of them.
const ROWS_UNKNOWN: u32 = 24;

/// Gives what stands in the files of programs.
#[derive(Clone)]
pub struct ImageSource {
    /// Which files these are: options of `lat` that say where else they are looked for than at their paths.
    pub options: Vec<OsString>,
    open: Arc<dyn Fn() -> Box<dyn Images> + Send + Sync>,
}

impl ImageSource {
    /// `open` is asked for each who reads them by itself.
    pub fn new(
        options: Vec<OsString>,
        open: impl Fn() -> Box<dyn Images> + Send + Sync + 'static,
    ) -> Self {
        Self { options, open: Arc::new(open) }
    }

    /// A reader of its own.
    #[must_use]
    pub fn open(&self) -> Box<dyn Images> {
        (self.open)()
    }
}

/// What a trace has of packets of processors, with the code that they are of.
///
/// Of several recordings only where all are of one machine: threads of others have other numbers in the
/// session.
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
    // A folder that is a recording of ours, or anything else that cannot be read so, has none.
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
    /// Rows of each.
    depths: Vec<u32>,
}

impl FlowRows {
    /// Of what the index of a session has lanes for; `None` where these are of other packets.
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

    /// How many rows the calls of one have.
    pub fn depths(&self, flow: usize) -> u32 {
        self.depths.get(flow).copied().unwrap_or(0)
    }

    /// Its calls; others wait meanwhile.
    pub fn timeline(&self) -> MutexGuard<'_, Timeline<'static>> {
        lock(&self.timeline)
    }

    /// Decodes more of what has not been decoded; how many bytes of packets are left then.
    pub fn advance(&self) -> u64 {
        let mut timeline = self.timeline();
        if timeline.pending_bytes() > 0 {
            timeline.advance(MORE_BYTES);
        }
        timeline.pending_bytes()
    }

    /// What one did in a picture of a session that begins at `origin`.
    pub fn window(&self, flow: usize, origin: i64, scale: &Scale) -> Arc<Window> {
        let absolute = |time: i64| u64::try_from(origin.saturating_add(time)).unwrap_or(0);
        self.timeline().window(flow, (absolute(scale.t0), absolute(scale.t1)))
    }
}

/// When something begins and ends, since the origin of the session.
pub fn since(origin: i64, nanos: u64) -> i64 {
    let time = i128::from(nanos) - i128::from(origin);
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}

/// Stretches since the origin, for [`Pixels::mark`].
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

/// What one pixel has.
#[derive(Clone, Default)]
struct Pixel {
    calls: u64,
    /// Nanoseconds by function.
    covered: Vec<(u32, u64)>,
}

/// Draws pieces of one row, as [`lateralis_lanes::pixels`] has it of intervals; the most calls that touch a
/// pixel, of what stands for several more than one.
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

/// Instructions per microsecond in each pixel: NaN where nothing is known of any.
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
