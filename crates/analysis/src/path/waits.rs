// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the thread that ended a wait: the previous holder of the object.

use lateralis_units::Nanos;

/// A wait whose end another thread caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The waiting thread.
    pub thread: u32,
    /// Begin.
    pub begin: Nanos,
    /// End.
    pub end: Nanos,
    /// Name of the wait.
    pub what: u32,
    /// Time of the cause: a release, a send.
    pub cause_time: Nanos,
    /// The thread that caused it.
    pub cause_thread: u32,
    /// Whether a message travels from the cause to the end of the wait.
    pub is_message: bool,
}

/// A recorded wait whose cause is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The waiting thread.
    pub thread: u32,
    /// Begin.
    pub begin: Nanos,
    /// End.
    pub end: Nanos,
    /// Name of the wait.
    pub what: u32,
    /// Family of waits and holds to which it belongs.
    pub family: u32,
    /// Object that is waited for, if known.
    pub object: Option<u64>,
}

/// A hold whose end also ends waits of its family: of a lock; or a signal, as a hold of length 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The holding thread.
    pub thread: u32,
    /// End.
    pub end: Nanos,
    /// The family.
    pub family: u32,
    /// Object that is held, if known.
    pub object: Option<u64>,
}

/// Finds the thread that ended each wait: the other thread that last ended a hold of the same object
/// before the wait was over. If the object of either is unknown, of the same family.
///
/// Cost: O((n + m) log m), plus the latest holds of its own thread for each wait.
#[must_use]
pub fn causes(waits: &[Waiting], holds: &[Hold]) -> Vec<Wait> {
    let mut by_object: Vec<&Hold> = holds.iter().filter(|hold| hold.object.is_some()).collect();
    by_object.sort_by_key(|hold| (hold.family, hold.object, hold.end, hold.thread));
    let mut by_family: Vec<&Hold> = holds.iter().collect();
    by_family.sort_by_key(|hold| (hold.family, hold.end, hold.thread));
    let of = |wait: &Waiting| {
        let last = |holds: &[&Hold], behind: usize, same: &dyn Fn(&Hold) -> bool| {
            let mut back = holds[..behind].iter().rev();
            back.by_ref()
                .take_while(|hold| same(hold) && hold.end > wait.begin)
                .find(|hold| hold.thread != wait.thread)
                .map(|hold| **hold)
        };
        let hold = match wait.object {
            Some(object) => {
                let place = (wait.family, Some(object), wait.end);
                let behind =
                    by_object.partition_point(|hold| (hold.family, hold.object, hold.end) <= place);
                let same = |hold: &Hold| hold.family == wait.family && hold.object == wait.object;
                last(&by_object, behind, &same)
            }
            None => {
                let place = (wait.family, wait.end);
                let behind = by_family.partition_point(|hold| (hold.family, hold.end) <= place);
                last(&by_family, behind, &|hold| hold.family == wait.family)
            }
        }?;
        Some(Wait {
            thread: wait.thread,
            begin: wait.begin,
            end: wait.end,
            what: wait.what,
            cause_time: hold.end,
            cause_thread: hold.thread,
            is_message: false,
        })
    };
    waits.iter().filter_map(of).collect()
}
