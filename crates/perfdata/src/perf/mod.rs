// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `perf.data`, as a file or as written to a pipe by `perf record -o -`.
//!
//! ```text
//! file   header, attributes of events, records, then features (names, formats …)
//! pipe   header of 16 bytes, records; everything else comes as records, too
//! folder a file `data`, and files with records only: data.0, data.1 …
//! ```
//!
//! Opening walks the records from header to header, notes invalid ones, reads descriptions of others, and
//! indexes runs of records in time order. Reading merges these runs and decodes one record after the
//! other, so that thread names are those at the time of the event.
//!
//! Sources: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h of
//! Linux; details that they leave open were determined from files written by perf.

mod attr;
mod aux;
mod content;
mod events;
mod features;
mod file;
mod index;
mod origin;
mod records;
mod sample;
mod sample_class;
mod seen;
mod sideband;
mod trace;
pub mod write;

use lateralis_model::ByteOrder;

pub use aux::{
    AddressFilter, AuxArea, AuxInfo, FilterAction, INTEL_PT, address_filters, aux_areas, aux_output,
};
pub use content::Bytes;
pub use trace::PerfTrace;

use crate::Error;
use crate::notes::Notes;
use content::{PARTS_MAX, Part};

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

/// Opens a `perf.data`; decompressed records take at most `limit_bytes`. `name` is used in reports of
/// damage.
///
/// # Errors
/// If the header is incomplete.
pub fn open(name: &str, bytes: Bytes, limit_bytes: u64) -> Result<PerfTrace, Error> {
    open_folder(name, bytes, Vec::new(), limit_bytes)
}

/// Bytes of a file that [`is_of_folder`] needs.
pub const HEADER_BYTES: usize = 104;

/// Whether a file that begins with these bytes is the `data` of a folder made by `perf record --threads`:
/// the records of its threads are beside it, in `data.0`, `data.1` and so on.
#[must_use]
pub fn is_of_folder(first: &[u8]) -> bool {
    order_of(first).is_some_and(|order| file::is_of_folder(first, order))
}

/// Opens the `data` of a folder with the files beside it, each with its name. Otherwise like [`open`].
///
/// # Errors
/// If the header of `data` is incomplete.
pub fn open_folder(
    name: &str,
    data: Bytes,
    beside: Vec<(String, Bytes)>,
    limit_bytes: u64,
) -> Result<PerfTrace, Error> {
    let mut notes = Notes::new(name);
    let Some(file) = file::File::open((*data).as_ref(), &mut notes) else {
        let advice = "it ends or is damaged in its header; nothing can be read";
        return Err(Error::new(name, "no perf.data", advice));
    };
    let mut parts = vec![Part::new(name, data)];
    let left_out = beside.len().saturating_sub(PARTS_MAX - 1);
    if left_out > 0 {
        notes.remark(format!("{left_out} files beside it are left out: there are too many"));
    }
    let beside = beside.into_iter().take(PARTS_MAX - 1);
    parts.extend(beside.map(|(name, bytes)| Part::new(&name, bytes)));
    Ok(trace::open(file, parts, limit_bytes, notes))
}
