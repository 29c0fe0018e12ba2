// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Location of the output of hardware tracers in a `perf.data`.

use super::attr::Attr;
use super::file::File;
use super::records::{self, Record};
use crate::notes::Notes;
use crate::wire::Wire;

/// A piece of the output of a hardware tracer, for instance Intel PT [struct perf_record_auxtrace].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxArea {
    /// First byte in the file.
    pub begin_bytes: u64,
    /// Number of bytes in the file.
    pub size_bytes: u64,
    /// Number of bytes missing because the file ends early.
    pub missing_bytes: u64,
    /// Offset in the whole output of the tracer into this buffer, in bytes.
    pub offset_bytes: u64,
    /// Value of the tracer's clock at about the time of the copy.
    pub reference: u64,
    /// Number of the buffer.
    pub index: u32,
    /// Thread that was traced, −1 for all.
    pub tid: i32,
    /// CPU that was traced, −1 for all.
    pub cpu: i32,
}

/// Tracer of the pieces, and its configuration [struct perf_record_auxtrace_info].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuxInfo {
    /// The tracer: [`INTEL_PT`], or another value of tools/perf/util/auxtrace.h, enum auxtrace_type.
    pub kind: u32,
    /// Its settings, by index [tools/perf/util/intel-pt.h, `INTEL_PT_PMU_TYPE` and following].
    pub words: Vec<u64>,
    /// Configuration of its event (`perf_event_attr.config`).
    pub config: Option<u64>,
}

/// Action of an address filter [tools/perf/Documentation/perf-record.txt, --filter].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterAction {
    /// Only code there is traced.
    Filter,
    /// Tracing begins there.
    Start,
    /// Tracing ends there.
    Stop,
    /// Tracing ends there, and does not begin again.
    TraceStop,
}

/// An address filter of a tracer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressFilter {
    /// What it does.
    pub action: FilterAction,
    /// Start: an offset if there is a file, otherwise a kernel address.
    pub begin: u64,
    /// Number of bytes; 0: only the start address.
    pub size_bytes: u64,
    /// The file.
    pub file: Option<String>,
}

/// Largest number of filters of a recording: processors have four ranges.
const FILTERS_MAX: usize = 256;
/// Index of the word with the length of the text of the filters, which follows the words of Intel PT
/// [tools/perf/util/intel-pt.h, INTEL_PT_FILTER_STR_LEN].
const FILTER_BYTES: usize = 16;

impl AuxInfo {
    /// Text of the address filters as written by perf; `None`: there are none, everything is traced.
    #[must_use]
    pub fn filter_text(&self) -> Option<String> {
        if self.kind != INTEL_PT {
            return None;
        }
        let count =
            usize::try_from(*self.words.get(FILTER_BYTES)?).ok().filter(|count| *count > 0)?;
        let words = self.words.get(FILTER_BYTES + 1..)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(count).collect();
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(text).into_owned()).filter(|text| !text.is_empty())
    }
}

/// Parses the text of address filters: `ACTION BEGIN[/SIZE][@FILE]`, separated by commas. `None` if the
/// syntax is invalid.
#[must_use]
pub fn address_filters(text: &str) -> Option<Vec<AddressFilter>> {
    const ACTIONS: [(&str, FilterAction); 4] = [
        ("filter ", FilterAction::Filter),
        ("start ", FilterAction::Start),
        ("stop ", FilterAction::Stop),
        ("tracestop ", FilterAction::TraceStop),
    ];
    let begins = |text: &str| ACTIONS.iter().find(|(name, _)| text.starts_with(name)).copied();
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if all.len() >= FILTERS_MAX {
            return None;
        }
        let (name, action) = begins(rest)?;
        rest = rest.get(name.len()..)?.trim_start();
        // File names may contain commas: only one followed by an action ends a filter.
        let ends = |(at, _): &(usize, &str)| begins(rest[at + 1..].trim_start()).is_some();
        let end = rest.match_indices(',').find(ends).map_or(rest.len(), |(at, _)| at);
        let (one, behind) = rest.split_at(end);
        rest = behind.strip_prefix(',').unwrap_or(behind).trim_start();
        let (place, file) = match one.split_once('@') {
            Some((place, file)) => (place, Some(file.trim().to_owned())),
            None => (one, None),
        };
        let (begin, size) = match place.split_once('/') {
            Some((begin, size)) => (begin, number(size)?),
            None => (place, 0),
        };
        all.push(AddressFilter { action, begin: number(begin)?, size_bytes: size, file });
    }
    Some(all)
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Number of Intel PT [tools/perf/util/auxtrace.h, PERF_AUXTRACE_INTEL_PT].
pub const INTEL_PT: u32 = 1;

/// Finds the output of hardware tracers in a `perf.data`, in the order of the file. A piece that the end
/// of the file truncates is included up to there; nothing is decoded.
///
/// Cost: one step per record.
#[must_use]
pub fn aux_areas(bytes: &[u8]) -> Vec<AuxArea> {
    aux_output(bytes).1
}

/// Like [`aux_areas`], also returns the tracer, if a record describes it.
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
                let Some((kind, words)) = info_of(&mut wire) else { continue };
                // The first word is the number of its event source, which differs between machines.
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

/// The kind of a tracer and its words, from its record.
pub(super) fn info_of(wire: &mut Wire<'_>) -> Option<(u32, Vec<u64>)> {
    // The second word is only for alignment.
    let (kind, _) = (wire.u32()?, wire.u32()?);
    Some((kind, std::iter::from_fn(|| wire.u64()).collect()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_those_of_perf() {
        // As written by `addr_filter__to_str` of tools/perf/util/auxtrace.c, joined by
        // `evsel__append_addr_filter`.
        // `evsel__append_addr_filter`.
        let text = "filter 0x1139/0x2a@/tmp/a,b filter/prog,start 0xffffffff81000000,\
                    stop 0x20@/lib/x.so,tracestop 0x40/0x8@/lib/x.so";
        let of = |action, begin, size_bytes, file: Option<&str>| AddressFilter {
            action,
            begin,
            size_bytes,
            file: file.map(str::to_owned),
        };
        let expected = [
            of(FilterAction::Filter, 0x1139, 0x2a, Some("/tmp/a,b filter/prog")),
            of(FilterAction::Start, 0xffff_ffff_8100_0000, 0, None),
            of(FilterAction::Stop, 0x20, 0, Some("/lib/x.so")),
            of(FilterAction::TraceStop, 0x40, 8, Some("/lib/x.so")),
        ];
        assert_eq!(address_filters(text).as_deref(), Some(&expected[..]));
        for wrong in ["filter", "filter x", "follow 0x10", "filter 0x10/0x2,0x30"] {
            assert_eq!(address_filters(wrong), None, "{wrong}");
        }
        let mut words = vec![8; 17];
        words[FILTER_BYTES] = text.len() as u64;
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
        words.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
        let info = AuxInfo { kind: INTEL_PT, words, config: None };
        assert_eq!(info.filter_text().as_deref(), Some(text));
        // Truncated, missing, and with an invalid length.
        let changed = |change: &dyn Fn(&mut Vec<u64>)| {
            let mut info = info.clone();
            change(&mut info.words);
            info.filter_text()
        };
        assert_eq!(changed(&|words| words.truncate(18)).as_deref(), Some("filter 0"));
        assert_eq!(changed(&|words| words[FILTER_BYTES] = 0), None);
        assert!(changed(&|words| words[FILTER_BYTES] = u64::MAX).is_some());
        assert_eq!(changed(&|words| words.truncate(16)), None);
    }
}
