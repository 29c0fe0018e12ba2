// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of records [perf_event.h, enum perf_event_type;
//! tools/lib/perf/include/perf/event.h, enum perf_user_event_type].

use lateralis_model::ByteOrder;

pub const MMAP: u32 = 1;
/// Flags of an `AUX` record: the buffer was full; parts are missing; another tracer interfered
/// [perf_event.h, PERF_AUX_FLAG_TRUNCATED, _PARTIAL and _COLLISION].
pub const AUX_TRUNCATED: u64 = 1;
pub const AUX_INCOMPLETE: u64 = AUX_TRUNCATED | 4 | 8;
pub const LOST: u32 = 2;
pub const COMM: u32 = 3;
pub const EXIT: u32 = 4;
pub const THROTTLE: u32 = 5;
pub const UNTHROTTLE: u32 = 6;
pub const FORK: u32 = 7;
pub const READ: u32 = 8;
pub const SAMPLE: u32 = 9;
pub const MMAP2: u32 = 10;
pub const AUX: u32 = 11;
pub const ITRACE_START: u32 = 12;
pub const LOST_SAMPLES: u32 = 13;
pub const SWITCH: u32 = 14;
pub const SWITCH_CPU_WIDE: u32 = 15;
pub const NAMESPACES: u32 = 16;
pub const KSYMBOL: u32 = 17;
pub const BPF_EVENT: u32 = 18;
pub const CGROUP: u32 = 19;
pub const TEXT_POKE: u32 = 20;
pub const AUX_OUTPUT_HW_ID: u32 = 21;
/// Records of this type and above come from perf itself, not from the kernel.
pub const USER: u32 = 64;
pub const HEADER_ATTR: u32 = 64;
pub const TRACING_DATA: u32 = 66;
pub const BUILD_ID: u32 = 67;
pub const ID_INDEX: u32 = 69;
pub const AUXTRACE_INFO: u32 = 70;
pub const AUXTRACE: u32 = 71;
pub const AUXTRACE_ERROR: u32 = 72;
pub const EVENT_UPDATE: u32 = 78;
pub const TIME_CONV: u32 = 79;
pub const HEADER_FEATURE: u32 = 80;
pub const COMPRESSED: u32 = 81;
pub const COMPRESSED2: u32 = 83;

/// Bytes of a record's header.
pub const HEADER_BYTES: usize = 8;
/// The record contains a build id (MMAP2).
pub const MISC_BUILD_ID: u16 = 1 << 14;

/// A record: type, flags, and the bytes after its header.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// One of the numbers above, or another one.
    pub kind: u32,
    /// Bits whose meaning depends on the type.
    pub misc: u16,
    /// Contents without the header.
    pub body: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record at `at`; `None` if there is no room for one.
    #[inline]
    pub fn at(bytes: &'a [u8], at: u64, order: ByteOrder) -> Option<Self> {
        let rest = bytes.get(usize::try_from(at).ok()?..)?;
        let header = rest.first_chunk::<HEADER_BYTES>()?;
        let (kind, misc, size) = match order {
            ByteOrder::Little => {
                let word = u64::from_le_bytes(*header);
                (word as u32, (word >> 32) as u16, (word >> 48) as u16)
            }
            ByteOrder::Big => {
                let word = u64::from_be_bytes(*header);
                ((word >> 32) as u32, (word >> 16) as u16, word as u16)
            }
        };
        let body = rest.get(HEADER_BYTES..usize::from(size))?;
        Some(Self { kind, misc, body })
    }

    /// Length including the header.
    #[inline]
    pub fn size(&self) -> u64 {
        (self.body.len() + HEADER_BYTES) as u64
    }

    /// Whether it becomes an event, or reports lost ones.
    #[inline]
    pub fn is_event(&self) -> bool {
        self.kind < USER
            || matches!(self.kind, BUILD_ID | AUXTRACE_INFO | AUXTRACE | AUXTRACE_ERROR)
    }

    /// Whether records of this type exist, with room for new ones.
    pub fn known(kind: u32) -> bool {
        matches!(kind, 1..=31 | 64..=95)
    }
}
