// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decompression of hostile bytes into bounded memory.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Decompression ended early; what came before the fault is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The input is damaged from about this byte on.
    Damaged(usize),
    /// The output has as many bytes as it may.
    Limit,
}

/// An empty last block, and a checksum for frames that want one: ends a frame
/// that its writer flushed, but never finished.
const END_OF_FRAME: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Appends what the zstd frames in `input` hold; the last frame need not be
/// finished. `out` grows to at most `limit` bytes.
///
/// # Errors
/// [`Stop`].
pub fn zstd(input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Stop> {
    let mut at = 0;
    while at < input.len() {
        let before = out.len();
        match frame(&input[at..], limit, out) {
            Ok(used) => at += used.max(1),
            Err(Cut::Limit) => return Err(Stop::Limit),
            Err(Cut::Block(good)) => {
                // Again, without the block that is cut or bad: a decoder holds back
                // the last window until the frame ends.
                out.truncate(before);
                let mut part = input[at..at + good].to_vec();
                part.extend_from_slice(&END_OF_FRAME);
                match frame(&part, limit, out) {
                    Err(Cut::Limit) => return Err(Stop::Limit),
                    _ if at + good == input.len() && good > 0 => return Ok(()),
                    _ => return Err(Stop::Damaged(at + good)),
                }
            }
        }
    }
    Ok(())
}

enum Cut {
    Limit,
    /// Bytes up to the end of the last good block.
    Block(usize),
}

/// Decodes one frame; returns the number of bytes that it takes.
fn frame(input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<usize, Cut> {
    let mut rest = input;
    let mut decoder = FrameDecoder::new();
    decoder.reset(&mut rest).map_err(|_| Cut::Block(0))?;
    let mut buffer = vec![0u8; 64 << 10];
    loop {
        let good = input.len() - rest.len();
        let decoded = decoder.decode_blocks(&mut rest, BlockDecodingStrategy::UptoBlocks(1));
        let finished = decoded.map_err(|_| Cut::Block(good))?;
        loop {
            let count = decoder.read(&mut buffer).map_err(|_| Cut::Block(good))?;
            if count == 0 {
                break;
            }
            let room = limit.saturating_sub(out.len());
            out.extend_from_slice(&buffer[..count.min(room)]);
            if count > room {
                return Err(Cut::Limit);
            }
        }
        if finished {
            return Ok(input.len() - rest.len());
        }
    }
}

/// Appends what a zlib stream holds, at most until `out` has `limit` bytes.
///
/// # Errors
/// [`Stop`].
pub fn zlib(input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Stop> {
    let room = limit.saturating_sub(out.len());
    match miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(input, room) {
        Ok(bytes) => {
            out.extend(bytes);
            Ok(())
        }
        Err(error) => {
            let full = error.status == miniz_oxide::inflate::TINFLStatus::HasMoreOutput;
            out.extend(error.output);
            Err(if full { Stop::Limit } else { Stop::Damaged(0) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    /// Bytes that fill several blocks of 128 KiB.
    fn plain() -> Vec<u8> {
        (0..400_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect()
    }

    fn inflated(input: &[u8], limit: usize) -> (Vec<u8>, Result<(), Stop>) {
        let mut out = Vec::new();
        let result = zstd(input, limit, &mut out);
        (out, result)
    }

    #[test]
    fn frames_follow_each_other() {
        let plain = plain();
        let frame = compress_to_vec(&plain[..], CompressionLevel::Fastest);
        let (out, result) = inflated(&[&frame[..], &frame[..]].concat(), usize::MAX);
        assert_eq!(result, Ok(()));
        assert!(out == [&plain[..], &plain[..]].concat());
    }

    #[test]
    fn what_comes_before_a_cut_or_a_fault_is_delivered() {
        let plain = plain();
        let frame = compress_to_vec(&plain[..], CompressionLevel::Fastest);
        let mut delivered = 0;
        for cut in (0..frame.len()).step_by(frame.len() / 9) {
            let (out, _) = inflated(&frame[..cut], usize::MAX);
            assert!(plain.starts_with(&out), "cut at {cut}");
            assert!(out.len() >= delivered, "cut at {cut}");
            delivered = out.len();
        }
        assert!(delivered > plain.len() / 2, "{delivered}");
        let (out, result) = inflated(b"no frame at all", usize::MAX);
        assert_eq!((out.len(), result), (0, Err(Stop::Damaged(0))));
    }

    #[test]
    fn the_limit_holds() {
        let frame = compress_to_vec(&plain()[..], CompressionLevel::Fastest);
        let (out, result) = inflated(&frame, 1000);
        assert_eq!((out.len(), result), (1000, Err(Stop::Limit)));
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(&plain(), 6);
        let mut out = Vec::new();
        assert_eq!(zlib(&packed, 1000, &mut out), Err(Stop::Limit));
        assert!(out.len() <= 1000);
        out.clear();
        assert_eq!(zlib(&packed, usize::MAX, &mut out), Ok(()));
        assert!(out == plain());
        assert_eq!(zlib(&packed[..99], usize::MAX, &mut out), Err(Stop::Damaged(0)));
    }
}
