// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the output of hardware tracers lies in a `perf.data`.

use super::file::File;
use super::records::{self, Record};
use crate::notes::Notes;
use crate::wire::Wire;

/// A piece of the output of a hardware tracer, Intel PT for instance [struct
/// perf_record_auxtrace].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxArea {
    /// First byte in the file.
    pub begin_bytes: u64,
    /// Number of bytes.
    pub size_bytes: u64,
    /// Its place in all that the tracer put out into this buffer, bytes.
    pub offset_bytes: u64,
    /// A reading of the tracer's clock about when it was fetched.
    pub reference: u64,
    /// Number of the buffer.
    pub index: u32,
    /// Thread that was traced, −1 for all.
    pub tid: i32,
    /// CPU that was traced, −1 for all.
    pub cpu: i32,
}

/// Finds the output of hardware tracers in a `perf.data`, in the order of the
/// file. Pieces that are not whole are left out; nothing is decoded.
///
/// Cost: one step per record.
#[must_use]
pub fn aux_areas(bytes: &[u8]) -> Vec<AuxArea> {
    let mut found = Vec::new();
    let Some(file) = File::open(bytes, &mut Notes::new("")) else {
        return found;
    };
    let mut at = file.data_begin;
    while let Some(record) = Record::at(bytes, at, file.order).filter(|_| at < file.data_end) {
        at += record.size();
        let mut wire = Wire::new(record.body, file.order);
        match record.kind {
            records::AUXTRACE => {
                let Some(area) = area(&mut wire, at) else { continue };
                let end = at.saturating_add(area.size_bytes);
                if end <= bytes.len() as u64 {
                    found.push(area);
                }
                at = end;
            }
            records::TRACING_DATA if file.pipe => {
                at += u64::from(wire.u32().unwrap_or(0)).next_multiple_of(8);
            }
            _ => {}
        }
    }
    found
}

fn area(wire: &mut Wire<'_>, begin_bytes: u64) -> Option<AuxArea> {
    Some(AuxArea {
        begin_bytes,
        size_bytes: wire.u64()?,
        offset_bytes: wire.u64()?,
        reference: wire.u64()?,
        index: wire.u32()?,
        tid: wire.u32()? as i32,
        cpu: wire.u32()? as i32,
    })
}
