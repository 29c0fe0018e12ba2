// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Distribution of the work of one request over several threads.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Maximum number of threads per request; more would delay simultaneous requests.
const THREADS_MAX: usize = 4;

/// Number of threads that pay off for a request with this number of pixels: starting a thread takes
/// as long as drawing some thousand pixels.
pub fn threads(pixels: u64) -> usize {
    const PIXELS: u64 = 1 << 12;
    static MACHINE: OnceLock<usize> = OnceLock::new();
    let of_machine = MACHINE.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
    let worth = usize::try_from(pixels / PIXELS).unwrap_or(usize::MAX);
    worth.min(*of_machine).clamp(1, THREADS_MAX)
}

/// Runs `work` for each number below `count` on several threads, and returns the results in order.
pub fn shared<T: Send>(count: usize, threads: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            // Partner: the same operation on the other threads; each number is returned once.
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= count {
                return done;
            }
            done.push((piece, work(piece)));
        }
    };
    let mut all = thread::scope(|scope| {
        let begin = |_| thread::Builder::new().name("view-draw".into()).spawn_scoped(scope, run);
        // If no more threads can be started, the existing ones do all the work.
        let others: Vec<_> = (1..threads.min(count)).map_while(|one| begin(one).ok()).collect();
        let mut all = run();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(piece, _)| *piece);
    all.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_done_once_and_they_stay_in_order() {
        for (count, threads) in [(0, 4), (1, 4), (7, 1), (1000, 4)] {
            let times: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let done = shared(count, threads, &|piece| {
                times[piece].fetch_add(1, Ordering::Relaxed);
                piece * 3
            });
            assert_eq!(done, (0..count).map(|piece| piece * 3).collect::<Vec<_>>());
            assert!(times.iter().all(|times| times.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn small_pictures_are_drawn_by_one() {
        assert_eq!((threads(0), threads(4000)), (1, 1));
        assert!((1..=THREADS_MAX).contains(&threads(u64::MAX)));
    }
}
