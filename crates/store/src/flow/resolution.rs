// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Temporal resolution of packets: time and instructions between consecutive distinguishable times. After
//! the temporal resolution factor of "Hardware-Assisted Instruction Profiling and Latency Detection"
//! (Sharma and Dagenais, 2016).

use lateralis_intelpt::Block;
use lateralis_intelpt::flow::Event;
use lateralis_intelpt::image::Sections;

use super::{Follow, Moment, Recorded, Traced};
use crate::places::Places;

/// Largest number of times that are kept; the first ones are kept.
const MOMENTS_MAX: usize = 1 << 24;

/// Distances between consecutive times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Nanoseconds, ascending.
    pub nanos: Vec<u64>,
    /// Instructions, ascending.
    pub instructions: Vec<u64>,
    /// Number of bytes of packets.
    pub bytes: u64,
    /// Number of gaps, which are not measured across.
    pub gaps: u64,
}

impl Resolution {
    /// Medians of both, if there are times: for an even number the lower one, as in the paper.
    #[must_use]
    pub fn medians(&self) -> Option<(u64, u64)> {
        let of = |sorted: &[u64]| sorted.get(sorted.len().checked_sub(1)? / 2).copied();
        Some((of(&self.nanos)?, of(&self.instructions)?))
    }
}

/// Factor of each product of two medians among all of them: from 0 for the finest to `most` for the
/// coarsest; `None` if all are equal.
#[must_use]
pub fn factors(products: &[f64], most: f64) -> Option<Vec<f64>> {
    let least = products.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = products.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = largest - least;
    (range > 0.0).then(|| products.iter().map(|of| most * (of - least) / range).collect())
}

#[derive(Default)]
struct Moments {
    found: Resolution,
    /// The last distinguishable time, and the instructions since.
    last: Option<u64>,
    since: u64,
}

/// Decodes everything that was recorded.
///
/// Cost: proportional to packets and blocks. Memory: 16 bytes for each time.
pub fn resolution(recorded: &mut Recorded<'_>) -> Resolution {
    let mut moments = Moments::default();
    recorded.follow(&mut moments);
    let mut found = moments.found;
    found.bytes = recorded.byte_count();
    found.nanos.sort_unstable();
    found.instructions.sort_unstable();
    found
}

impl Moments {
    fn forget(&mut self) {
        (self.last, self.since) = (None, 0);
    }
}

impl Follow for Moments {
    fn begins(&mut self, _: &mut Places<'_>, _: &Traced) {
        self.forget();
    }

    fn block(&mut self, _: &mut Places<'_>, _: &Sections<'_>, block: &Block, time: Moment) {
        if let Some(moment) = time
            && self.last != Some(moment.nanos)
        {
            let last = self.last.replace(moment.nanos);
            let instructions = std::mem::take(&mut self.since);
            let nanos = last.and_then(|last| moment.nanos.checked_sub(last));
            if let Some(nanos) = nanos.filter(|_| self.found.nanos.len() < MOMENTS_MAX) {
                self.found.nanos.push(nanos);
                self.found.instructions.push(instructions);
            }
        }
        self.since += u64::from(block.count);
    }

    fn event(&mut self, _: &mut Places<'_>, _: u64, event: Event, _: Moment) {
        if let Event::Gap(_) = event {
            self.found.gaps += 1;
            self.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finest_has_0_and_the_coarsest_100() {
        // Values of the finest and the coarsest trace in the paper.
        let products = [14.0 * 78.0, 5000.0, 910_500.0 * 2_500_000.0];
        let found = factors(&products, 100.0).expect("they differ");
        assert_eq!((found[0], found[2]), (0.0, 100.0));
        assert!(found[1] > 0.0 && found[1] < 1e-6, "{found:?}");
        assert_eq!(factors(&[3.0, 3.0], 100.0), None);
        assert_eq!(factors(&[], 100.0), None);
    }

    #[test]
    fn a_median_is_one_that_was_measured() {
        let nanos = vec![1, 2, 3, 4];
        let found = Resolution { instructions: nanos.clone(), nanos, bytes: 0, gaps: 0 };
        assert_eq!(found.medians(), Some((2, 2)));
        assert_eq!(Resolution::default().medians(), None);
    }
}
