// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream that begins in the middle of another: of a window, of a chunk.

use super::RingStream;

impl RingStream {
    /// The next records begin at this time, in the thread that this WRITER payload names.
    pub fn continue_at(&mut self, time: u64, writer: Option<[u8; 8]>) {
        self.last_time = self.last_time.max(time);
        self.writer = writer.or(self.writer);
    }
}
