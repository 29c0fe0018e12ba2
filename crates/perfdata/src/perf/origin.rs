// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where and when records were made.

use lateralis_model::{ByteOrder, Clock};
use lateralis_units::Nanos;

use super::attr::{NOWHERE, Places};
use super::content::{Ids, from_end, word};
use super::file::File;
use super::records::{self, Record, USER};
use crate::wire::Wire;

/// Where and when a record was made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin {
    /// Process, where it is known.
    pub pid: Option<u32>,
    /// Thread; only of meaning with a process.
    pub tid: u32,
    /// Processor, where it is known.
    pub cpu: Option<u32>,
}

impl Origin {
    /// Where a sample was made.
    #[inline]
    pub fn of_sample(places: &Places, body: &[u8], cpus: &Ids, order: ByteOrder) -> Self {
        let thread = Wire::at(body, u64::from(places.thread.0), order);
        let (pid, tid) = pair(thread).map_or((None, 0), |(pid, tid)| (Some(pid), tid));
        let cpu = Wire::at(body, u64::from(places.cpu.0), order).u32();
        let by_id = || cpus.get(&word(body, places.id.0, order)?).copied();
        Self { pid, tid, cpu: cpu.or_else(by_id) }
    }

    /// Where a record that is no sample was made: as its end tells, else as its
    /// fields do.
    pub fn of_other(record: &Record<'_>, places: Option<&Places>, order: ByteOrder) -> Self {
        let told = if record.kind < USER { Self::at_end(record, places, order) } else { None };
        told.unwrap_or_else(|| Self::own(record.kind, record.body, order))
    }

    /// Where a record that is no sample was made, as its end tells.
    pub fn at_end(record: &Record<'_>, places: Option<&Places>, order: ByteOrder) -> Option<Self> {
        let (places, body) = (places?, record.body);
        let field = |(_, back)| from_end(body, back);
        // What perf made itself about the time before has no time.
        if places.time.1 != NOWHERE && word(body, field(places.time), order)? == 0 {
            return None;
        }
        let thread = Wire::at(body, u64::from(field(places.thread)), order);
        let (pid, tid) = pair(thread)?;
        let cpu = Wire::at(body, u64::from(field(places.cpu)), order).u32();
        let pid = Some(pid).filter(|&pid| pid != u32::MAX);
        Some(Self { pid, tid, cpu: cpu.filter(|&cpu| cpu != u32::MAX) })
    }

    /// Where a record without such an end was made, as its fields tell.
    fn own(kind: u32, body: &[u8], order: ByteOrder) -> Self {
        let mut wire = Wire::new(body, order);
        let (first, second, third) = (wire.u32(), wire.u32(), wire.u32());
        let (pid, tid) = match kind {
            records::MMAP
            | records::MMAP2
            | records::COMM
            | records::ITRACE_START
            | records::NAMESPACES => (first, second),
            records::FORK | records::EXIT => (first, third),
            _ => (None, None),
        };
        let pid = pid.filter(|&pid| pid != u32::MAX);
        Self { pid, tid: tid.unwrap_or(0), cpu: None }
    }
}

fn pair(mut wire: Wire<'_>) -> Option<(u32, u32)> {
    Some((wire.u32()?, wire.u32()?))
}

/// The clock of all records: its zero is that of the file's own pair of
/// readings, where it has one.
pub fn clock(file: &File) -> Clock {
    let attr = file.attrs.all.iter().find(|attr| attr.use_clockid);
    let pair = file.features.clock_pair;
    let id = pair.map(|pair| pair.clockid as i32).or(attr.map(|attr| attr.clockid));
    let name = match id {
        Some(0) => "realtime",
        Some(1) => "monotonic",
        Some(4) => "monotonic_raw",
        Some(7) => "boottime",
        Some(11) => "tai",
        _ => "perf",
    };
    let ahead = pair.map_or(0, |pair| i128::from(pair.wall_nanos) - i128::from(pair.trace_nanos));
    let offset = Nanos::nearest(ahead).0;
    let mut clock = Clock::new(name, 1_000_000_000, 0, offset);
    clock.unix_epoch = pair.is_some() || id == Some(0);
    clock.description = match name {
        "perf" => "clock of the kernel's scheduler".to_owned(),
        name => format!("POSIX clock {name}"),
    };
    clock
}
