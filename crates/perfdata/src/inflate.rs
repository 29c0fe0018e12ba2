// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decompression of untrusted bytes into bounded memory.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Bytes that are decompressed at a time.
const CHUNK_BYTES: usize = 128 << 10;
/// Bytes of a block header: what a decoder requests after a block has ended [RFC 8878 §3.1.1.2].
const BLOCK_HEADER_BYTES: usize = 3;

/// Decompression ended early; the output before the fault is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The input is damaged from about this byte on.
    Damaged(usize),
    /// The output has reached its limit.
    Limit,
}

/// Appends the contents of the zstd frames in `input`; the last frame need not be finished. `out` grows
/// to at most `limit` bytes; the decoder itself takes up to 128 MiB if a frame requires such a window.
///
/// # Errors
/// [`Stop`]; if blocks are truncated or damaged, those before them are in `out`.
pub fn zstd(input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Stop> {
    if input.is_empty() {
        return Ok(());
    }
    // Fails only if memory allocation does.
    let Ok(mut decoder) = Decoder::new() else { return Err(Stop::Limit) };
    let mut buffer = vec![0u8; CHUNK_BYTES];
    // Start of the piece that the decoder requested, and the number of bytes that it requests next.
    let (mut at, mut piece, mut wants) = (0usize, 0usize, BLOCK_HEADER_BYTES);
    loop {
        // A piece at a time, so that a bad one can be located.
        let end = at.saturating_add(wants.max(1)).min(input.len());
        let mut source = InBuffer::around(&input[at..end]);
        let mut target = OutBuffer::around(&mut buffer);
        let done = decoder.run(&mut source, &mut target);
        let (read, count) = (source.pos(), target.pos());
        let room = limit.saturating_sub(out.len());
        out.extend_from_slice(&buffer[..count.min(room)]);
        if count > room {
            return Err(Stop::Limit);
        }
        let Ok(hint) = done else { return Err(Stop::Damaged(piece)) };
        at += read;
        if count == CHUNK_BYTES {
            // There may be more of the same block.
            wants = hint;
            continue;
        }
        if at == input.len() {
            // A frame that was flushed, but not finished, ends with a block.
            let whole = hint == 0 || hint == BLOCK_HEADER_BYTES;
            return if whole { Ok(()) } else { Err(Stop::Damaged(piece)) };
        }
        // The header of the next block was read with the last one.
        piece = at.saturating_sub(BLOCK_HEADER_BYTES);
        wants = hint;
    }
}

/// Appends the contents of a zlib stream, until `out` has `limit` bytes.
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
        let frame = zstd::bulk::compress(&plain, 1).unwrap();
        let (out, result) = inflated(&[&frame[..], &frame[..]].concat(), usize::MAX);
        assert_eq!(result, Ok(()));
        assert!(out == [&plain[..], &plain[..]].concat());
    }

    #[test]
    fn what_comes_before_a_cut_or_a_fault_is_delivered() {
        let plain = plain();
        let frame = zstd::bulk::compress(&plain, 1).unwrap();
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
        let frame = zstd::bulk::compress(&plain(), 1).unwrap();
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
