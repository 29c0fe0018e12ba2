// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `perf.data`, as a file or as `perf record -o -` writes it into a pipe.
//!
//! ```text
//! file   header, attributes of events, records, then features (names, formats …)
//! pipe   header of 16 bytes, records; all else comes as records too
//! ```
//!
//! Reading takes two passes. The first walks the records from header to header,
//! notes what cannot be records, takes what describes others, and remembers time
//! and place of the rest; the second decodes them in the order of time, so that the
//! names of threads are those of the moment.
//!
//! Sources: tools/perf/Documentation/perf.data-file-format.txt and
//! include/uapi/linux/perf_event.h of Linux; what they leave open was found in
//! files that perf writes.

mod attr;
mod aux;
mod features;
mod file;
mod import;
mod index;
mod origin;
mod records;
mod sample;
mod sample_class;
mod sideband;

use lateralis_model::{ByteOrder, MemoryTrace};

pub use aux::{AuxArea, aux_areas};

use crate::Error;

/// Whether a file that begins with these bytes is a `perf.data`.
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    order_of(first).is_some()
}

/// The byte order of a file that begins with these bytes.
fn order_of(first: &[u8]) -> Option<ByteOrder> {
    match first.get(..8)? {
        b"PERFILE2" => Some(ByteOrder::Little),
        b"2ELIFREP" => Some(ByteOrder::Big),
        _ => None,
    }
}

/// Reads a `perf.data`; events take at most `limit_bytes`, decompressed records
/// as many again.
///
/// # Errors
/// Where the header is not whole.
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    let mut notes = crate::notes::Notes::new(name);
    let Some(file) = file::File::open(bytes, &mut notes) else {
        let advice = "it ends or is damaged in its header; nothing can be read";
        return Err(Error::new(name, "no perf.data", advice));
    };
    Ok(import::import(file, limit_bytes, notes))
}
