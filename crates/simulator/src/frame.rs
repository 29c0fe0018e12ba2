// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames in the plugin's pipe (`c/protocol.h`).

/// Kinds of frames.
pub mod kind {
    /// Standard output of the program.
    pub const STDOUT: u16 = 1;
    /// Standard error of the program.
    pub const STDERR: u16 = 2;
    /// Records of the guest's perf events.
    pub const SIDEBAND: u16 = 3;
    /// Text of its `/proc/kallsyms`.
    pub const KALLSYMS: u16 = 4;
    /// The ELF file that the guest kernel maps into each program.
    pub const VDSO: u16 = 5;
    /// The program has ended.
    pub const STATUS: u16 = 6;
    /// Init reports a failure.
    pub const PROBLEM: u16 = 7;
    /// The program is about to be started.
    pub const BEGIN: u16 = 8;
    /// Definitions of blocks.
    pub const BLOCKS: u16 = 16;
    /// Blocks executed by a CPU.
    pub const FLOW: u16 = 17;
    /// Number of instructions begun by a CPU.
    pub const COUNTS: u16 = 18;
    /// Every instruction, if requested.
    pub const TRUTH: u16 = 19;
}

/// Bytes of the header of a frame.
const HEADER: usize = 8;
/// Largest size of a frame.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// A message of the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// One of [`kind`], or another.
    pub kind: u16,
    /// The CPU.
    pub cpu: u16,
    /// Its contents.
    pub content: &'a [u8],
}

/// Bytes that are not frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("what the plugin wrote is damaged")
    }
}

impl std::error::Error for Malformed {}

/// Splits a stream of bytes into frames.
///
/// Memory: one frame.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Adds the next bytes of the stream. `each` receives every frame that is now complete.
    ///
    /// # Errors
    /// If they are not frames; nothing more can be read.
    pub fn push<E>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Frame<'_>) -> Result<(), E>,
    ) -> Result<Result<(), E>, Malformed> {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(header) = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<HEADER>())
        {
            let [k0, k1, c0, c1, s0, s1, s2, s3] = *header;
            let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
            if size > FRAME_BYTES_MAX {
                return Err(Malformed);
            }
            let Some(content) = self.bytes.get(at + HEADER..at + HEADER + size) else { break };
            let (kind, cpu) = (u16::from_le_bytes([k0, k1]), u16::from_le_bytes([c0, c1]));
            if let Err(error) = each(Frame { kind, cpu, content }) {
                return Ok(Err(error));
            }
            at += HEADER + size;
        }
        self.bytes.drain(..at);
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_whole_however_their_bytes_come() {
        let frame = |kind: u16, content: &[u8]| {
            let size = (content.len() as u32).to_le_bytes();
            [&kind.to_le_bytes()[..], &[3, 0], &size, content].concat()
        };
        let all = [frame(1, b"abc"), frame(17, b""), frame(2, b"defgh")].concat();
        for step in 1..all.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in all.chunks(step) {
                let pushed = frames.push(piece, |frame| {
                    found.push((frame.kind, frame.cpu, frame.content.to_vec()));
                    Ok::<(), ()>(())
                });
                assert_eq!(pushed, Ok(Ok(())));
            }
            let expected: [(u16, u16, &[u8]); 3] = [(1, 3, b"abc"), (17, 3, b""), (2, 3, b"defgh")];
            assert!(found.iter().map(|of| (of.0, of.1, &of.2[..])).eq(expected), "{step}");
        }
        let mut frames = Frames::default();
        let huge = [1, 0, 0, 0, 255, 255, 255, 255];
        assert_eq!(frames.push(&huge, |_| Ok::<(), ()>(())), Err(Malformed));
    }
}
