// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream that begins in the middle of another: that of a window or a chunk.

use super::RingStream;

impl RingStream {
    /// The next records begin at this time, in the thread of this WRITER payload.
    pub fn continue_at(&mut self, time: u64, writer: Option<[u8; 8]>) {
        self.last_time = self.last_time.max(time);
        self.writer = writer.or(self.writer);
    }
}
