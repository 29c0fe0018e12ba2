// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that grow, in the order of their receives.

use std::sync::Arc;

use super::grid::GrowingGrid;
use super::pieces::Pieces;
use crate::building::RawMessage;
use crate::messages::{Messages, Order};

/// Messages in the order of their receives.
#[derive(Default)]
pub struct GrowingMessages {
    sent: Pieces<u64>,
    received: Pieces<u64>,
    from: [Pieces<u32>; 2],
    to: [Pieces<u32>; 2],
    channels: Pieces<u32>,
    grid: GrowingGrid,
    longest: u64,
    last: u64,
}

impl GrowingMessages {
    /// Adds a message, with its times since the origin.
    pub fn push(&mut self, sent: u64, received: u64, message: &RawMessage) {
        let received = received.max(self.last);
        self.last = received;
        self.grid.push(received, self.sent.forgotten(), self.sent.len());
        self.sent.push(sent);
        self.received.push(received);
        self.from[0].push(message.from.lane);
        self.from[1].push(message.from.index);
        self.to[0].push(message.to.lane);
        self.to[1].push(message.to.index);
        self.channels.push(message.channel);
        self.longest = self.longest.max(received.saturating_sub(sent));
    }

    /// Evicts messages received before a time.
    pub fn forget(&mut self, time: u64) {
        let (mut low, mut high) = (0, self.received.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.received.get(middle) < time { low = middle + 1 } else { high = middle }
        }
        self.sent.forget(low);
        self.received.forget(low);
        for place in 0..2 {
            self.from[place].forget(low);
            self.to[place].forget(low);
        }
        self.channels.forget(low);
        self.grid.forget(time);
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        let numbers = [&self.from[0], &self.from[1], &self.to[0], &self.to[1], &self.channels];
        let numbers = numbers.map(Pieces::bytes).iter().sum::<usize>();
        self.sent.bytes() + self.received.bytes() + numbers + self.grid.bytes()
    }

    /// Snapshot of the messages.
    pub fn messages(&self, forgotten: &Arc<[u64]>) -> Messages {
        Messages {
            sent: self.sent.column(),
            received: self.received.column(),
            from: [self.from[0].column(), self.from[1].column()],
            to: [self.to[0].column(), self.to[1].column()],
            channels: self.channels.column(),
            grid: self.grid.grid(self.sent.forgotten()),
            longest: self.longest,
            order: Order::Received,
            points_forgotten: Some(Arc::clone(forgotten)),
        }
    }
}
