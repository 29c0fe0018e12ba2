// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who ended a wait: who had held what was waited for.

use lateralis_units::Nanos;

/// A wait whose end another thread caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Who waits.
    pub thread: u32,
    /// Since when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// Name of what it is.
    pub what: u32,
    /// When the cause came about: a release, a sending.
    pub cause_time: Nanos,
    /// Whose doing it was.
    pub cause_thread: u32,
    /// Whether something travels from the cause to the end of the wait.
    pub is_message: bool,
}

/// A wait as it was recorded: nobody has told whose doing its end was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Who waits.
    pub thread: u32,
    /// Since when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// Name of what it is.
    pub what: u32,
    /// The family of waits and holds it is of.
    pub family: u32,
    /// What is waited for, where that is known.
    pub object: Option<u64>,
}

/// Something that makes waits of its family end when it ends: a lock that is held; a signal, as
/// a hold of no length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Who holds it.
    pub thread: u32,
    /// Until when.
    pub end: Nanos,
    /// The family.
    pub family: u32,
    /// What is held, where that is known.
    pub object: Option<u64>,
}

/// Finds who ended each wait: who of the other threads ended a hold of the same object last
/// before the wait was over. Where the object of either is unknown, of the same family.
///
/// Cost: O((n + m) log m), and per wait the holds of its own thread that end last.
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
