// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the output of hardware tracers lies in a `perf.data`.

use super::attr::Attr;
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
    /// Number of bytes that are there.
    pub size_bytes: u64,
    /// Bytes that are not: the file ends before.
    pub missing_bytes: u64,
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

/// What put out the pieces, and how it was set up [struct perf_record_auxtrace_info].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuxInfo {
    /// The tracer: [`INTEL_PT`], or another one of tools/perf/util/auxtrace.h, enum auxtrace_type.
    pub kind: u32,
    /// Its settings, by their place [tools/perf/util/intel-pt.h, `INTEL_PT_PMU_TYPE` and what follows it].
    pub words: Vec<u64>,
    /// How its event was set up (`perf_event_attr.config`).
    pub config: Option<u64>,
}

/// The number of Intel PT [tools/perf/util/auxtrace.h, PERF_AUXTRACE_INTEL_PT].
pub const INTEL_PT: u32 = 1;

/// Finds the output of hardware tracers in a `perf.data`, in the order of the file. Of a piece
/// that the end of the file cuts there is the beginning; nothing is decoded.
///
/// Cost: one step per record.
#[must_use]
pub fn aux_areas(bytes: &[u8]) -> Vec<AuxArea> {
    aux_output(bytes).1
}

/// The same with who put them out, where a record says so.
#[must_use]
pub fn aux_output(bytes: &[u8]) -> (Option<AuxInfo>, Vec<AuxArea>) {
    let (mut info, mut found) = (None, Vec::new());
    let Some(file) = File::open(bytes, &mut Notes::new("")) else {
        return (info, found);
    };
    let mut at = file.data_begin;
    while let Some(record) = Record::at(bytes, at, file.order).filter(|_| at < file.data_end) {
        at += record.size();
        let mut wire = Wire::new(record.body, file.order);
        match record.kind {
            records::AUXTRACE_INFO => {
                // The kind, and a word that only keeps what follows aligned.
                let (Some(kind), Some(_)) = (wire.u32(), wire.u32()) else { continue };
                let words: Vec<u64> = std::iter::from_fn(|| wire.u64()).collect();
                // The first word is the number of its event source, which each machine gives anew.
                let is_its = |attr: &&Attr| Some(u64::from(attr.kind)) == words.first().copied();
                let config = file.attrs.all.iter().find(is_its).map(|attr| attr.config);
                info = Some(AuxInfo { kind, words, config });
            }
            records::AUXTRACE => {
                let Some(mut area) = area(&mut wire, at) else { continue };
                let end = at.saturating_add(area.size_bytes);
                let there = area.size_bytes.min((bytes.len() as u64).saturating_sub(at));
                area.missing_bytes = area.size_bytes - there;
                area.size_bytes = there;
                found.push(area);
                at = end;
            }
            records::TRACING_DATA if file.pipe => {
                at += u64::from(wire.u32().unwrap_or(0)).next_multiple_of(8);
            }
            _ => {}
        }
    }
    (info, found)
}

fn area(wire: &mut Wire<'_>, begin_bytes: u64) -> Option<AuxArea> {
    Some(AuxArea {
        begin_bytes,
        size_bytes: wire.u64()?,
        missing_bytes: 0,
        offset_bytes: wire.u64()?,
        reference: wire.u64()?,
        index: wire.u32()?,
        tid: wire.u32()? as i32,
        cpu: wire.u32()? as i32,
    })
}
