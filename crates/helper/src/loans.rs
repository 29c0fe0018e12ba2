// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Number of instances lent, by user. An instance counts until the kernel has removed it, even
//! after its connection has closed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Instances at a time: each holds buffers of the kernel.
pub const LOANS_MAX: usize = 16;
/// Of one user: so that others can borrow as well.
pub const LOANS_OF_USER_MAX: usize = 4;

/// Why nothing is lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// All are lent.
    TooMany,
    /// This user has as many as one may have.
    TooManyOfUser,
    /// This user has files of an instance open that was given back.
    LeftOver,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "too many recordings at a time"),
            Self::TooManyOfUser => {
                write!(f, "too many recordings of one user at a time ({LOANS_OF_USER_MAX})")
            }
            Self::LeftOver => {
                let what = "files of an instance that was given back are still open";
                write!(f, "{what}: end the program that has them")
            }
        }
    }
}

/// All instances of this helper.
#[derive(Debug, Default)]
pub struct Loans(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    all: Vec<One>,
}

#[derive(Debug)]
struct One {
    number: u64,
    user: u32,
    is_left_over: bool,
}

/// One instance; counted until this is dropped.
#[derive(Debug)]
pub struct Counted {
    loans: Arc<Loans>,
    number: u64,
}

impl Loans {
    /// Counts one more for a user.
    ///
    /// # Errors
    /// There may be no more.
    pub fn lend(self: &Arc<Self>, user: u32) -> Result<Counted, Refusal> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = || list.all.iter().filter(|one| one.user == user);
        let refusal = if of_user().any(|one| one.is_left_over) {
            Some(Refusal::LeftOver)
        } else if of_user().count() >= LOANS_OF_USER_MAX {
            Some(Refusal::TooManyOfUser)
        } else {
            (list.all.len() >= LOANS_MAX).then_some(Refusal::TooMany)
        };
        match refusal {
            Some(refusal) => Err(refusal),
            None => Ok(self.add(&mut list, user)),
        }
    }

    /// Counts one that another helper lent, and that a recorder still uses.
    #[must_use]
    pub fn adopt(self: &Arc<Self>, user: u32) -> Counted {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.add(&mut list, user)
    }

    fn add(self: &Arc<Self>, list: &mut List, user: u32) -> Counted {
        let number = list.next;
        list.next += 1;
        list.all.push(One { number, user, is_left_over: false });
        Counted { loans: Arc::clone(self), number }
    }
}

impl Counted {
    /// Different for each of this process.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// It was given back, and cannot be removed yet.
    pub fn is_left_over(&self) {
        let mut list = self.loans.0.lock().unwrap_or_else(PoisonError::into_inner);
        for one in list.all.iter_mut().filter(|one| one.number == self.number) {
            one.is_left_over = true;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut list = self.loans.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.all.retain(|one| one.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_leaves_room_for_others_and_what_is_left_over_counts() {
        let loans = Arc::<Loans>::default();
        let mut held: Vec<_> = (0..LOANS_OF_USER_MAX).map(|_| loans.lend(1).unwrap()).collect();
        assert_eq!(loans.lend(1).unwrap_err(), Refusal::TooManyOfUser);
        for user in 2.. {
            match loans.lend(user) {
                Ok(one) => held.push(one),
                Err(refusal) => {
                    assert_eq!(refusal, Refusal::TooMany);
                    break;
                }
            }
        }
        assert_eq!(held.len(), LOANS_MAX);
        held[0].is_left_over();
        drop(held.drain(1..));
        assert_eq!(loans.lend(1).unwrap_err(), Refusal::LeftOver);
        assert!(loans.lend(2).is_ok());
        drop(held);
        assert!(loans.lend(1).is_ok());
        let _adopted: Vec<_> = (0..LOANS_OF_USER_MAX).map(|_| loans.adopt(1)).collect();
        assert_eq!(loans.lend(1).unwrap_err(), Refusal::TooManyOfUser);
    }
}
