// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The numbers of `tracer/c/include/lat/small_abi.h`, against which a test compares them.

use core::ops::RangeInclusive;

/// `abi_version`.
pub const ABI_VERSION: u32 = 1;
/// First word of an area.
pub const MAGIC: u64 = 0x316c_616d_5374_614c;
/// First word of a packet.
pub const PACKET_MAGIC: u32 = 0x4c34_5053;
/// As the program has it.
pub const BYTE_ORDER_MARK: u32 = 0x0102_0304;
/// Powers of two.
pub const PACKET_BYTES_RANGE: RangeInclusive<u32> = 256..=32768;
/// Powers of two.
pub const PACKETS_RANGE: RangeInclusive<u32> = 2..=65536;
/// Most cores.
pub const CORES_MAX: u16 = 256;
/// A longer area is none.
pub const AREA_BYTES_MAX: u64 = 0x8000_0000;
/// `mode`: the newest packets stay.
pub const MODE_OVERWRITE: u32 = 1;
/// `state`.
pub const STATE_READY: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: u32 = 128;
/// Bytes of a control block.
pub const CONTROL_BYTES: u32 = 64;
/// Bytes of a packet's header.
pub const PACKET_HEADER_BYTES: u32 = 32;
/// Bytes of a schema's descriptor.
pub const SCHEMA_BYTES: u32 = 32;

/// Offsets in the header.
pub mod header {
    #![allow(missing_docs)] // the C header describes each
    pub const MAGIC: u32 = 0;
    pub const MAGIC_COMPLEMENT: u32 = 8;
    pub const ABI_VERSION: u32 = 16;
    pub const BYTE_ORDER: u32 = 20;
    pub const HEADER_BYTES: u32 = 24;
    pub const AREA_BYTES: u32 = 28;
    pub const ADDRESS: u32 = 32;
    pub const CORE_COUNT: u32 = 40;
    pub const SCHEMA_COUNT: u32 = 42;
    pub const EVENT_COUNT: u32 = 44;
    pub const PACKET_BYTES: u32 = 48;
    pub const PACKETS_PER_RING: u32 = 52;
    pub const RING_OFFSET: u32 = 56;
    pub const RING_STRIDE: u32 = 60;
    pub const SCHEMA_OFFSET: u32 = 64;
    pub const MODE: u32 = 68;
    pub const CLOCK_HZ: u32 = 72;
    pub const CLOCK_BITS: u32 = 80;
    pub const POINTER_BYTES: u32 = 84;
    pub const STATE: u32 = 88;
    pub const GENERATION: u32 = 92;
}

/// Offsets in a schema's descriptor.
pub mod schema {
    #![allow(missing_docs)] // the C header describes each
    pub const HASH: u32 = 0;
    pub const TEXT: u32 = 8;
    pub const TEXT_BYTES: u32 = 16;
    pub const BASE_ID: u32 = 20;
    pub const EVENT_COUNT: u32 = 22;
    pub const SWITCHES: u32 = 24;
}

/// Offsets in a control block.
pub mod ring {
    #![allow(missing_docs)] // the C header describes each
    pub const CURSOR: u32 = 0;
    pub const LIMIT: u32 = 4;
    pub const CONTEXT: u32 = 8;
    pub const BUSY: u32 = 12;
    pub const SEQUENCE: u32 = 16;
    pub const SEQUENCE_HIGH: u32 = 20;
    pub const CONSUMED: u32 = 24;
    pub const LOST_FULL: u32 = 28;
    pub const LOST_TOO_BIG: u32 = 32;
    pub const LOST_NESTED: u32 = 36;
    pub const BEGIN: u32 = 40;
    pub const BEGIN_HIGH: u32 = 44;
    pub const CORE: u32 = 48;
    pub const CLOCK_LAST: u32 = 52;
    pub const CLOCK_HIGH: u32 = 56;
    pub const CLOCK_BACKWARD: u32 = 60;
}

/// Offsets in a packet's header.
pub mod packet {
    #![allow(missing_docs)] // the C header describes each
    pub const MAGIC: u32 = 0;
    pub const SEQUENCE: u32 = 4;
    pub const SEQUENCE_HIGH: u32 = 8;
    pub const CONTENT_BYTES: u32 = 10;
    pub const CORE: u32 = 12;
    pub const BEGIN: u32 = 16;
    pub const LOST_FULL: u32 = 24;
    pub const LOST_TOO_BIG: u32 = 28;
    pub const LOST_NESTED: u32 = 30;
}
