// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `perf_event_attr`: the configuration of an event, and the layout of its samples.

use lateralis_model::ByteOrder;

use crate::wire::Wire;

/// Bits of `sample_type` [perf_event.h, enum perf_event_sample_format].
pub mod sample {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const AUX: u64 = 1 << 20;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
    /// Fields of 8 bytes at the start of a sample.
    pub const FIXED: u64 = IP | TID | TIME | ADDR | ID | CPU | PERIOD | STREAM_ID | IDENTIFIER;
    /// All of the above.
    pub const KNOWN: u64 = (1 << 25) - 1;
}

/// Bits of `read_format`.
pub mod read {
    pub const TIME_ENABLED: u64 = 1;
    pub const TIME_RUNNING: u64 = 1 << 1;
    pub const ID: u64 = 1 << 2;
    pub const GROUP: u64 = 1 << 3;
    pub const LOST: u64 = 1 << 4;
}

/// Bit of `branch_sample_type`: an index precedes the branches.
pub const BRANCH_HW_INDEX: u64 = 1 << 17;
/// Bit of `branch_sample_type`: counters follow the branches.
pub const BRANCH_COUNTERS: u64 = 1 << 19;

/// Value of `type` for tracepoints.
pub const TYPE_TRACEPOINT: u32 = 2;

/// The fields of `perf_event_attr` that a reader needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attr {
    /// Type of event source.
    pub kind: u32,
    /// Event of that source.
    pub config: u64,
    /// Bits of [`sample`].
    pub sample_type: u64,
    /// Bits of [`read`].
    pub read_format: u64,
    /// Whether records other than samples have time, CPU … at their end.
    pub sample_id_all: bool,
    /// Whether times are those of `clockid`.
    pub use_clockid: bool,
    /// Fields of branches.
    pub branch_sample_type: u64,
    /// Registers of user space.
    pub sample_regs_user: u64,
    /// Registers at the event.
    pub sample_regs_intr: u64,
    /// POSIX clock of the times, if `use_clockid`.
    pub clockid: i32,
    /// Name of the event as given by the user; empty if it is not recorded.
    pub name: String,
}

/// Offset of a field that does not exist.
pub const NOWHERE: u32 = u32::MAX;

/// Offsets of fields: bytes from the start of a sample, and bytes back from the end of other records;
/// [`NOWHERE`] for fields that do not exist.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// Id that identifies the attribute.
    pub id: (u32, u32),
    /// Time in nanoseconds.
    pub time: (u32, u32),
    /// CPU.
    pub cpu: (u32, u32),
    /// Process and thread.
    pub thread: (u32, u32),
    /// In samples: `ip`, `addr`, `stream_id` and `period`.
    pub words: [u32; 4],
    /// Bytes of all fields at the start of a sample.
    pub fixed_bytes: u32,
    /// Whether samples have no other fields than these, a call chain and raw data.
    pub is_plain: bool,
}

impl Attr {
    /// Reads an attribute from the bytes in its container. `None` if they are shorter than the first
    /// version of the struct.
    pub fn parse(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let mut wire = Wire::new(bytes, order);
        let kind = wire.u32()?;
        let _size = wire.u32()?;
        let config = wire.u64()?;
        let _period = wire.u64()?;
        let (sample_type, read_format) = (wire.u64()?, wire.u64()?);
        let flags = wire.u64()?;
        // Bit fields are allocated from the end given by the byte order.
        let flags = match order {
            ByteOrder::Little => flags,
            ByteOrder::Big => flags.reverse_bits(),
        };
        let _wakeup_and_breakpoint = (wire.u64()?, wire.u64());
        let _config2 = wire.u64();
        Some(Self {
            kind,
            config,
            sample_type,
            read_format,
            sample_id_all: flags & 1 << 18 != 0,
            use_clockid: flags & 1 << 25 != 0,
            branch_sample_type: wire.u64().unwrap_or(0),
            sample_regs_user: wire.u64().unwrap_or(0),
            clockid: wire.u64().map_or(0, |both| match order {
                ByteOrder::Little => (both >> 32) as i32,
                ByteOrder::Big => both as i32,
            }),
            sample_regs_intr: wire.u64().unwrap_or(0),
            name: String::new(),
        })
    }

    /// Whether a bit of `sample_type` is set.
    #[inline]
    pub fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// Bytes before the field `bit` among those at the start of a sample; `None` if the sample has no
    /// such field.
    pub fn offset_in_sample(&self, bit: u64) -> Option<usize> {
        use sample::{ADDR, CPU, ID, IDENTIFIER, IP, PERIOD, STREAM_ID, TID, TIME};
        let order = [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD];
        self.has(bit).then(|| {
            let before = order.iter().take_while(|&&other| other != bit);
            before.filter(|&&other| self.has(other)).count() * 8
        })
    }

    /// Bytes from the field `bit` to the end of a record that is not a sample.
    pub fn offset_from_end(&self, bit: u64) -> Option<usize> {
        use sample::{CPU, ID, IDENTIFIER, STREAM_ID, TID, TIME};
        let order = [IDENTIFIER, CPU, STREAM_ID, ID, TIME, TID];
        (self.sample_id_all && self.has(bit)).then(|| {
            let behind = order.iter().take_while(|&&other| other != bit);
            (behind.filter(|&&other| self.has(other)).count() + 1) * 8
        })
    }

    /// Bytes at the end of a record that is not a sample.
    pub fn trailer_bytes(&self) -> usize {
        use sample::{CPU, ID, IDENTIFIER, STREAM_ID, TID, TIME};
        let bits = TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER;
        if self.sample_id_all { (self.sample_type & bits).count_ones() as usize * 8 } else { 0 }
    }

    /// Offsets of the fields that are needed of every record.
    pub fn places(&self) -> Places {
        let in_sample = |bit| self.offset_in_sample(bit).map(|at| at as u32);
        let from_end = |bit| self.offset_from_end(bit).map(|back| back as u32);
        let id = if self.has(sample::IDENTIFIER) { sample::IDENTIFIER } else { sample::ID };
        let of = |bit| (in_sample(bit).unwrap_or(NOWHERE), from_end(bit).unwrap_or(NOWHERE));
        let words = [sample::IP, sample::ADDR, sample::STREAM_ID, sample::PERIOD];
        Places {
            id: of(id),
            time: of(sample::TIME),
            cpu: of(sample::CPU),
            thread: of(sample::TID),
            words: words.map(|bit| in_sample(bit).unwrap_or(NOWHERE)),
            fixed_bytes: (self.sample_type & sample::FIXED).count_ones() * 8,
            is_plain: self.sample_type & !(sample::FIXED | sample::CALLCHAIN | sample::RAW) == 0,
        }
    }

    /// Name of the event: as recorded, otherwise as perf would name it. `tracepoint` returns names of
    /// tracepoints.
    pub fn event_name(&self, tracepoint: impl FnOnce(u64) -> Option<String>) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let named = match self.kind {
            0 => HARDWARE.get(self.config as usize & 0xff).map(|name| (*name).to_owned()),
            1 => SOFTWARE.get(self.config as usize).map(|name| (*name).to_owned()),
            TYPE_TRACEPOINT => tracepoint(self.config),
            3 => cache_name(self.config),
            4 => Some(format!("r{:x}", self.config)),
            5 => Some("breakpoint".to_owned()),
            _ => None,
        };
        named.unwrap_or_else(|| match self.kind {
            TYPE_TRACEPOINT => format!("tracepoint:{}", self.config),
            kind => format!("pmu{kind}:{:#x}", self.config),
        })
    }
}

/// By `config` of hardware events.
const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// By `config` of software events.
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

fn cache_name(config: u64) -> Option<String> {
    let caches = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
    let cache = caches.get(config as usize & 0xff)?;
    let operation = ["load", "store", "prefetch"].get((config >> 8) as usize & 0xff)?;
    Some(match (config >> 16) & 0xff {
        0 => format!("{cache}-{operation}s"),
        1 => format!("{cache}-{operation}-misses"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::sample::*;
    use super::*;

    #[test]
    fn fields_lie_where_the_sample_type_says() {
        let sample_type = IDENTIFIER | IP | TID | TIME | CPU | PERIOD;
        let attr = Attr { sample_type, sample_id_all: true, ..Attr::default() };
        assert_eq!(attr.offset_in_sample(IDENTIFIER), Some(0));
        assert_eq!(attr.offset_in_sample(TIME), Some(24));
        assert_eq!(attr.offset_in_sample(CPU), Some(32));
        assert_eq!(attr.offset_in_sample(ADDR), None);
        assert_eq!(attr.offset_from_end(IDENTIFIER), Some(8));
        assert_eq!(attr.offset_from_end(TIME), Some(24));
        assert_eq!((attr.offset_from_end(TID), attr.trailer_bytes()), (Some(32), 32));
    }

    #[test]
    fn flags_and_clock_read_in_both_orders() {
        let mut little = vec![0u8; 112];
        little[40 + 2] = 1 << 2;
        little[92..96].copy_from_slice(&7i32.to_le_bytes());
        little[40 + 3] = 1 << 1;
        let attr = Attr::parse(&little, ByteOrder::Little).unwrap();
        assert!(attr.sample_id_all && attr.use_clockid);
        assert_eq!(attr.clockid, 7);
        let mut big = vec![0u8; 112];
        big[40 + 2] = 1 << 5;
        big[40 + 3] = 1 << 6;
        big[92..96].copy_from_slice(&7i32.to_be_bytes());
        assert_eq!(Attr::parse(&big, ByteOrder::Big).unwrap(), attr);
        assert_eq!(Attr::parse(&big[..47], ByteOrder::Big), None);
    }

    #[test]
    fn events_without_a_name_are_called_as_perf_does() {
        let attr = |kind, config| Attr { kind, config, ..Attr::default() };
        let name = |kind, config| attr(kind, config).event_name(|_| None);
        assert_eq!(name(0, 0), "cycles");
        assert_eq!(name(1, 3), "context-switches");
        assert_eq!(name(3, 0x1_0002), "LLC-load-misses");
        assert_eq!(name(4, 0x1c2), "r1c2");
        assert_eq!(name(2, 5), "tracepoint:5");
        assert_eq!(name(9, 1), "pmu9:0x1");
        assert_eq!(name(1, u64::MAX), "pmu1:0xffffffffffffffff");
    }
}
