// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Constants and offsets of ABI version 1, the Rust mirror of `tracer/c/include/lat/abi.h`.
//!
//! `tests/abi.rs` compiles that header and compares every number here with what the C compiler
//! says; a constant that is not compared there fails the test.

/// The only version this crate understands [ring-abi §9].
pub const ABI_VERSION: u32 = 1;
/// First word of an area: "LatArea1" on a little-endian machine.
pub const AREA_MAGIC: u64 = 0x3161_6572_4174_614c;
/// Reads as 0x01020304 in the byte order of the traced program.
pub const BYTE_ORDER_MARK: u32 = 0x0102_0304;

/// Offset of the process table, in bytes from the start of the area.
pub const PROCESSES_OFFSET: u64 = 0x1000;
/// Slots of the process table.
pub const PROCESS_COUNT: u64 = 128;
/// Offset of the schema table.
pub const SCHEMAS_OFFSET: u64 = 0x5000;
/// Slots of the schema table.
pub const SCHEMA_COUNT: u64 = 256;
/// Offset of the enable bytes.
pub const ENABLE_OFFSET: u64 = 0x9000;
/// Offset of the wanted bytes, which a trigger copies to the enable bytes.
pub const WANTED_OFFSET: u64 = 0x11000;
/// Event ids per area: bytes of the enable table.
pub const EVENT_COUNT: u32 = 32768;
/// Offset of the schema heap.
pub const HEAP_OFFSET: u64 = 0x19000;
/// Bytes of the schema heap.
pub const HEAP_BYTES: u64 = 0x80000;
/// Offset of the numbers of the events' filters, 16 bits each.
pub const FILTER_INDEX_OFFSET: u64 = 0xa_0000;
/// Offset of the filters.
pub const FILTERS_OFFSET: u64 = 0xb_0000;
/// Filters of an area; number 0 is none.
pub const FILTER_COUNT: u32 = 512;
/// Offset of ring 0, and so the least length of an area.
pub const RINGS_OFFSET: u64 = 0x10_0000;

/// Event ids below this belong to the internal schema.
pub const INTERNAL_EVENT_COUNT: u32 = 16;
/// Id of the WRITER record.
pub const ID_WRITER: u16 = 0;
/// Id of the THREAD_NAME record.
pub const ID_THREAD_NAME: u16 = 1;
/// Id of the PROCESS record.
pub const ID_PROCESS: u16 = 2;
/// Id of the MARK record.
pub const ID_MARK: u16 = 3;

/// `lat_area_state`: set-up is not finished.
pub const AREA_INITIALISING: u32 = 0;
/// `lat_area_state`: usable.
pub const AREA_READY: u32 = 1;
/// `lat_area_state`: the program has ended normally.
pub const AREA_EXITED: u32 = 2;

/// Enable byte: record the event.
pub const ENABLE_RECORD: u8 = 1;
/// Enable byte: show the event to the trigger first.
pub const ENABLE_WATCH: u8 = 2;
/// Enable byte, only with [`ENABLE_WATCH`]: ask the event's filter before all else.
pub const ENABLE_FILTER: u8 = 4;
/// Feature: the tracer evaluates filters.
pub const FEATURE_FILTERS: u32 = 1;

/// Most steps of a filter.
pub const FILTER_STEPS: usize = 16;
/// Next step of a filter: record the event.
pub const FILTER_ACCEPT: u8 = 0xfe;
/// Next step of a filter: do not.
pub const FILTER_REJECT: u8 = 0xff;
/// Comparison of a filter: equal.
pub const FILTER_EQ: u8 = 0;
/// Comparison of a filter: unequal.
pub const FILTER_NE: u8 = 1;
/// Comparison of a filter: less.
pub const FILTER_LT: u8 = 2;
/// Comparison of a filter: less or equal.
pub const FILTER_LE: u8 = 3;
/// Comparison of a filter: greater.
pub const FILTER_GT: u8 = 4;
/// Comparison of a filter: greater or equal.
pub const FILTER_GE: u8 = 5;
/// Added to a comparison: of signed numbers.
pub const FILTER_SIGNED: u8 = 8;

/// Trigger state: enable bytes alone decide.
pub const TRIGGER_NONE: u32 = 0;
/// Trigger state: waiting for the start event.
pub const TRIGGER_ARMED: u32 = 1;
/// Trigger state: started.
pub const TRIGGER_RUNNING: u32 = 2;
/// Trigger state: stopped.
pub const TRIGGER_DONE: u32 = 3;
/// Trigger flag: the event id must be equal.
pub const TRIGGER_MATCH_EVENT: u32 = 1;
/// Trigger flag: the first payload word must be equal under the mask.
pub const TRIGGER_MATCH_VALUE: u32 = 2;

/// Table slot: free.
pub const SLOT_FREE: u32 = 0;
/// Table slot: being filled.
pub const SLOT_CLAIMED: u32 = 1;
/// Table slot: readable (pair R2).
pub const SLOT_READY: u32 = 2;

/// `rings_ready`: rings are not made.
pub const RINGS_NONE: u32 = 0;
/// `rings_ready`: rings are being made.
pub const RINGS_BEING_MADE: u32 = 1;
/// `rings_ready`: usable (pair R1).
pub const RINGS_READY: u32 = 2;

/// Low bits of a cursor: how many bytes the last record ends before the position.
pub const CURSOR_SLACK_MASK: u64 = 7;
/// `limit` of a per-thread ring while its owner is inside a record.
pub const LIMIT_BUSY: u64 = 1;
/// `last_writer` of a ring whose next record needs a WRITER record before it.
pub const WRITER_NONE: u32 = 0xffff_ffff;
/// Bytes of a ring's control page; the data follows.
pub const RING_CONTROL_BYTES: u64 = 4096;

/// Magic of a CTF packet.
pub const PACKET_MAGIC: u32 = 0xc1fc_1fc1;
/// Bytes of a packet header.
pub const PACKET_HEADER_BYTES: u64 = 128;
/// Unused bytes at the end of a packet.
pub const PACKET_TAIL_BYTES: u64 = 8;
/// Bytes of a record header.
pub const RECORD_HEADER_BYTES: u64 = 8;
/// Bits of the clock in a record header.
pub const TIME_BITS: u32 = 48;
/// Bytes of a WRITER record: header, process, thread.
pub const WRITER_RECORD_BYTES: u64 = 16;
/// Flag in `ring_flags`: the ring was in overwrite mode.
pub const FLAG_OVERWRITE: u32 = 1;
/// Flag in `ring_flags`: part of a packet that was still open.
pub const FLAG_OPEN_PART: u32 = 2;

/// Least and greatest bytes of a packet, both powers of two.
pub const PACKET_BYTES_RANGE: core::ops::RangeInclusive<u64> = 4096..=16 << 20;
/// Least and greatest number of packets in a ring, both powers of two.
pub const PACKETS_PER_RING_RANGE: core::ops::RangeInclusive<u64> = 2..=65536;

/// Offsets in `struct lat_area_header`.
pub mod header {
    #![allow(missing_docs, reason = "names and meaning are the C header's")]
    pub const BYTES: u64 = 4096;
    pub const MAGIC: u64 = 0;
    pub const MAGIC_COMPLEMENT: u64 = 8;
    pub const ABI_VERSION: u64 = 16;
    pub const HEADER_BYTES: u64 = 20;
    pub const BYTE_ORDER: u64 = 24;
    pub const PAGE_BYTES: u64 = 28;
    pub const AREA_BYTES: u64 = 32;
    pub const AREA_ID: u64 = 40;
    pub const CREATOR_PID: u64 = 48;
    pub const CREATOR_UID: u64 = 52;
    pub const SESSION: u64 = 56;
    pub const RING_KIND: u64 = 64;
    pub const RING_COUNT: u64 = 68;
    pub const RING_MODE: u64 = 72;
    pub const STATE: u64 = 76;
    pub const RINGS_OFFSET: u64 = 80;
    pub const RING_STRIDE: u64 = 88;
    pub const PACKET_BYTES: u64 = 96;
    pub const PACKETS_PER_RING: u64 = 104;
    pub const RINGS_READY: u64 = 112;
    pub const CLOCK_KIND: u64 = 116;
    pub const CLOCK_HZ: u64 = 120;
    pub const CLOCK_AT_START: u64 = 128;
    pub const REALTIME_NS_AT_START: u64 = 136;
    pub const MONOTONIC_NS_AT_START: u64 = 144;
    pub const NEXT_EVENT_ID: u64 = 152;
    pub const SETUP_ERRNO: u64 = 156;
    pub const HEAP_USED: u64 = 160;
    pub const RECORDER_PID: u64 = 168;
    pub const FEATURES: u64 = 172;
    pub const LOST_NO_RING: u64 = 176;
    pub const LOST_SCHEMAS: u64 = 184;
    pub const UUID: u64 = 192;
    pub const STREAM_ID: u64 = 208;
    pub const POINTER_BYTES: u64 = 212;
    pub const FILTER_COUNT: u64 = 216;
    pub const LOST_PROCESSES: u64 = 220;
    pub const PID_NAMESPACE: u64 = 224;
    pub const TRIGGER: u64 = 256;
    pub const EXE: u64 = 512;
    pub const EXE_BYTES: u64 = 256;
    pub const COMMAND: u64 = 768;
    pub const COMMAND_BYTES: u64 = 512;
    pub const ENABLE: u64 = 1280;
    pub const ENABLE_BYTES: u64 = 1024;
}

/// Offsets in `struct lat_area_trigger`.
pub mod trigger {
    #![allow(missing_docs, reason = "names and meaning are the C header's")]
    pub const BYTES: u64 = 96;
    pub const STATE: u64 = 0;
    pub const START_FLAGS: u64 = 4;
    pub const START_EVENT: u64 = 8;
    pub const STOP_FLAGS: u64 = 12;
    pub const STOP_EVENT: u64 = 16;
    pub const START_VALUE: u64 = 24;
    pub const START_MASK: u64 = 32;
    pub const STOP_VALUE: u64 = 40;
    pub const STOP_MASK: u64 = 48;
    pub const DURATION: u64 = 56;
    pub const COUNT: u64 = 64;
    pub const STARTED_AT: u64 = 72;
    pub const STOPPED_AT: u64 = 80;
    pub const COUNTED: u64 = 88;
}

/// Offsets in `struct lat_area_process`.
pub mod process {
    #![allow(missing_docs, reason = "names and meaning are the C header's")]
    pub const BYTES: u64 = 128;
    pub const STATE: u64 = 0;
    pub const PID: u64 = 4;
    pub const PARENT_PID: u64 = 8;
    pub const PATCH_TABLE: u64 = 16;
    pub const PATCH_COUNT: u64 = 24;
    pub const NAME: u64 = 32;
    pub const NAME_BYTES: u64 = 32;
}

/// Offsets in `struct lat_area_schema`.
pub mod schema {
    #![allow(missing_docs, reason = "names and meaning are the C header's")]
    pub const BYTES: u64 = 64;
    pub const STATE: u64 = 0;
    pub const BASE_ID: u64 = 4;
    pub const EVENT_COUNT: u64 = 8;
    pub const TEXT_BYTES: u64 = 12;
    pub const TEXT_OFFSET: u64 = 16;
    pub const HASH: u64 = 24;
    pub const NAME: u64 = 32;
    pub const NAME_BYTES: u64 = 32;
}

/// Offsets in `struct lat_area_filter`.
pub mod filter {
    #![allow(missing_docs, reason = "names and meaning are the C header's")]
    pub const BYTES: u64 = 512;
    pub const STEP_COUNT: u64 = 0;
    pub const STEPS: u64 = 8;
}

/// Offsets in `struct lat_filter_step`.
pub mod filter_step {
    #![allow(missing_docs, reason = "names and meaning are the C header's")]
    pub const BYTES: u64 = 24;
    pub const OFFSET: u64 = 0;
    pub const FIELD_BYTES: u64 = 2;
    pub const COMPARE: u64 = 3;
    pub const IF_TRUE: u64 = 4;
    pub const IF_FALSE: u64 = 5;
    pub const MASK: u64 = 8;
    pub const VALUE: u64 = 16;
}

/// Offsets in `struct lat_ring`.
pub mod ring {
    #![allow(missing_docs, reason = "names and meaning are the C header's")]
    pub const BYTES: u64 = 192;
    pub const CURSOR: u64 = 0;
    pub const LIMIT: u64 = 8;
    pub const LAST_WRITER: u64 = 16;
    pub const MASK: u64 = 24;
    pub const LOST_FULL: u64 = 32;
    pub const LOST_TOO_BIG: u64 = 40;
    pub const LOST_CONTENDED: u64 = 48;
    pub const LOST_NO_RING: u64 = 56;
    pub const CONSUMED: u64 = 64;
    pub const TOLD_FULL: u64 = 72;
    pub const TOLD_TOO_BIG: u64 = 80;
    pub const TOLD_CONTENDED: u64 = 88;
    pub const TOLD_NO_RING: u64 = 96;
    pub const TOLD_BELOW: u64 = 104;
    pub const BACKED_BYTES: u64 = 112;
    pub const OWNER: u64 = 128;
}

/// Offsets in `struct lat_packet`, the header of a packet.
pub mod packet {
    #![allow(missing_docs, reason = "names and meaning are the C header's")]
    pub const MAGIC: u64 = 0;
    pub const UUID: u64 = 4;
    pub const STREAM_ID: u64 = 20;
    pub const TIMESTAMP_BEGIN: u64 = 24;
    pub const TIMESTAMP_END: u64 = 32;
    pub const CONTENT_BITS: u64 = 40;
    pub const PACKET_BITS: u64 = 48;
    pub const SEQUENCE: u64 = 56;
    pub const EVENTS_DISCARDED: u64 = 64;
    pub const LOST_FULL: u64 = 72;
    pub const LOST_TOO_BIG: u64 = 80;
    pub const LOST_CONTENDED: u64 = 88;
    pub const LOST_NO_RING: u64 = 96;
    pub const AREA_ID: u64 = 104;
    pub const CPU_ID: u64 = 112;
    pub const CHECKSUM: u64 = 116;
    pub const RING_FLAGS: u64 = 120;
}
