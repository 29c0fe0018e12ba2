// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stack of predicted return addresses (specification, "Implicit return mode").

use alloc::collections::VecDeque;

/// Return addresses of the calls that were traced since the last synchronisation.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReturnStack {
    addresses: VecDeque<u64>,
    limit: usize,
    level: i64,
}

impl ReturnStack {
    /// An empty stack of at most `limit` addresses.
    pub(crate) fn new(limit: usize) -> Self {
        Self { addresses: VecDeque::new(), limit, level: 0 }
    }

    /// A full stack loses its oldest address.
    pub(crate) fn push(&mut self, address: u64) {
        if self.limit == 0 {
            return;
        }
        self.level += 1;
        if self.addresses.len() == self.limit {
            self.addresses.pop_front();
        }
        self.addresses.push_back(address);
    }

    pub(crate) fn pop(&mut self) -> Option<u64> {
        let address = self.addresses.pop_back()?;
        self.level -= 1;
        Some(address)
    }

    /// Calls minus returns, also of addresses that a full stack lost.
    pub(crate) fn level(&self) -> i64 {
        self.level
    }

    pub(crate) fn top(&self) -> Option<u64> {
        self.addresses.back().copied()
    }

    pub(crate) fn depth(&self) -> usize {
        self.addresses.len()
    }

    pub(crate) fn clear(&mut self) {
        self.addresses.clear();
    }
}
