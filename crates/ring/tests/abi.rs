// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every constant of `lateralis_ring::abi` against what a C compiler makes of the tracer's header.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use lateralis_ring::abi;

/// C expression, our number, our name.
#[allow(clippy::unnecessary_cast)] // one table for constants of several widths
const NUMBERS: &[(&str, u64, &str)] = &[
    ("LAT_ABI_VERSION", abi::ABI_VERSION as u64, "abi::ABI_VERSION"),
    ("LAT_AREA_MAGIC", abi::AREA_MAGIC as u64, "abi::AREA_MAGIC"),
    ("LAT_BYTE_ORDER_MARK", abi::BYTE_ORDER_MARK as u64, "abi::BYTE_ORDER_MARK"),
    ("LAT_AREA_PROCESSES_OFFSET", abi::PROCESSES_OFFSET as u64, "abi::PROCESSES_OFFSET"),
    ("LAT_AREA_PROCESS_COUNT", abi::PROCESS_COUNT as u64, "abi::PROCESS_COUNT"),
    ("LAT_AREA_SCHEMAS_OFFSET", abi::SCHEMAS_OFFSET as u64, "abi::SCHEMAS_OFFSET"),
    ("LAT_AREA_SCHEMA_COUNT", abi::SCHEMA_COUNT as u64, "abi::SCHEMA_COUNT"),
    ("LAT_AREA_ENABLE_OFFSET", abi::ENABLE_OFFSET as u64, "abi::ENABLE_OFFSET"),
    ("LAT_AREA_WANTED_OFFSET", abi::WANTED_OFFSET as u64, "abi::WANTED_OFFSET"),
    ("LAT_AREA_EVENT_COUNT", abi::EVENT_COUNT as u64, "abi::EVENT_COUNT"),
    ("LAT_AREA_HEAP_OFFSET", abi::HEAP_OFFSET as u64, "abi::HEAP_OFFSET"),
    ("LAT_AREA_HEAP_BYTES", abi::HEAP_BYTES as u64, "abi::HEAP_BYTES"),
    ("LAT_AREA_RINGS_OFFSET", abi::RINGS_OFFSET as u64, "abi::RINGS_OFFSET"),
    ("LAT_INTERNAL_EVENT_COUNT", abi::INTERNAL_EVENT_COUNT as u64, "abi::INTERNAL_EVENT_COUNT"),
    ("LAT_ID_WRITER", abi::ID_WRITER as u64, "abi::ID_WRITER"),
    ("LAT_ID_THREAD_NAME", abi::ID_THREAD_NAME as u64, "abi::ID_THREAD_NAME"),
    ("LAT_ID_PROCESS", abi::ID_PROCESS as u64, "abi::ID_PROCESS"),
    ("LAT_ID_MARK", abi::ID_MARK as u64, "abi::ID_MARK"),
    ("LAT_AREA_INITIALISING", abi::AREA_INITIALISING as u64, "abi::AREA_INITIALISING"),
    ("LAT_AREA_READY", abi::AREA_READY as u64, "abi::AREA_READY"),
    ("LAT_AREA_EXITED", abi::AREA_EXITED as u64, "abi::AREA_EXITED"),
    ("LAT_ENABLE_RECORD", abi::ENABLE_RECORD as u64, "abi::ENABLE_RECORD"),
    ("LAT_ENABLE_WATCH", abi::ENABLE_WATCH as u64, "abi::ENABLE_WATCH"),
    ("LAT_ENABLE_FILTER", abi::ENABLE_FILTER as u64, "abi::ENABLE_FILTER"),
    ("LAT_FEATURE_FILTERS", abi::FEATURE_FILTERS as u64, "abi::FEATURE_FILTERS"),
    ("LAT_AREA_FILTER_INDEX_OFFSET", abi::FILTER_INDEX_OFFSET as u64, "abi::FILTER_INDEX_OFFSET"),
    ("LAT_AREA_FILTERS_OFFSET", abi::FILTERS_OFFSET as u64, "abi::FILTERS_OFFSET"),
    ("LAT_AREA_FILTER_COUNT", abi::FILTER_COUNT as u64, "abi::FILTER_COUNT"),
    ("LAT_FILTER_STEPS", abi::FILTER_STEPS as u64, "abi::FILTER_STEPS"),
    ("LAT_FILTER_ACCEPT", abi::FILTER_ACCEPT as u64, "abi::FILTER_ACCEPT"),
    ("LAT_FILTER_REJECT", abi::FILTER_REJECT as u64, "abi::FILTER_REJECT"),
    ("LAT_FILTER_EQ", abi::FILTER_EQ as u64, "abi::FILTER_EQ"),
    ("LAT_FILTER_NE", abi::FILTER_NE as u64, "abi::FILTER_NE"),
    ("LAT_FILTER_LT", abi::FILTER_LT as u64, "abi::FILTER_LT"),
    ("LAT_FILTER_LE", abi::FILTER_LE as u64, "abi::FILTER_LE"),
    ("LAT_FILTER_GT", abi::FILTER_GT as u64, "abi::FILTER_GT"),
    ("LAT_FILTER_GE", abi::FILTER_GE as u64, "abi::FILTER_GE"),
    ("LAT_FILTER_SIGNED", abi::FILTER_SIGNED as u64, "abi::FILTER_SIGNED"),
    ("sizeof(struct lat_area_filter)", abi::filter::BYTES as u64, "abi::filter::BYTES"),
    (
        "offsetof(struct lat_area_filter, step_count)",
        abi::filter::STEP_COUNT as u64,
        "abi::filter::STEP_COUNT",
    ),
    ("offsetof(struct lat_area_filter, steps)", abi::filter::STEPS as u64, "abi::filter::STEPS"),
    ("sizeof(struct lat_filter_step)", abi::filter_step::BYTES as u64, "abi::filter_step::BYTES"),
    (
        "offsetof(struct lat_filter_step, offset)",
        abi::filter_step::OFFSET as u64,
        "abi::filter_step::OFFSET",
    ),
    (
        "offsetof(struct lat_filter_step, bytes)",
        abi::filter_step::FIELD_BYTES as u64,
        "abi::filter_step::FIELD_BYTES",
    ),
    (
        "offsetof(struct lat_filter_step, compare)",
        abi::filter_step::COMPARE as u64,
        "abi::filter_step::COMPARE",
    ),
    (
        "offsetof(struct lat_filter_step, if_true)",
        abi::filter_step::IF_TRUE as u64,
        "abi::filter_step::IF_TRUE",
    ),
    (
        "offsetof(struct lat_filter_step, if_false)",
        abi::filter_step::IF_FALSE as u64,
        "abi::filter_step::IF_FALSE",
    ),
    (
        "offsetof(struct lat_filter_step, mask)",
        abi::filter_step::MASK as u64,
        "abi::filter_step::MASK",
    ),
    (
        "offsetof(struct lat_filter_step, value)",
        abi::filter_step::VALUE as u64,
        "abi::filter_step::VALUE",
    ),
    (
        "offsetof(struct lat_area_header, filter_count)",
        abi::header::FILTER_COUNT as u64,
        "abi::header::FILTER_COUNT",
    ),
    (
        "offsetof(struct lat_area_header, pid_namespace)",
        abi::header::PID_NAMESPACE as u64,
        "abi::header::PID_NAMESPACE",
    ),
    (
        "offsetof(struct lat_area_header, features)",
        abi::header::FEATURES as u64,
        "abi::header::FEATURES",
    ),
    ("LAT_TRIGGER_NONE", abi::TRIGGER_NONE as u64, "abi::TRIGGER_NONE"),
    ("LAT_TRIGGER_ARMED", abi::TRIGGER_ARMED as u64, "abi::TRIGGER_ARMED"),
    ("LAT_TRIGGER_RUNNING", abi::TRIGGER_RUNNING as u64, "abi::TRIGGER_RUNNING"),
    ("LAT_TRIGGER_DONE", abi::TRIGGER_DONE as u64, "abi::TRIGGER_DONE"),
    ("LAT_TRIGGER_MATCH_EVENT", abi::TRIGGER_MATCH_EVENT as u64, "abi::TRIGGER_MATCH_EVENT"),
    ("LAT_TRIGGER_MATCH_VALUE", abi::TRIGGER_MATCH_VALUE as u64, "abi::TRIGGER_MATCH_VALUE"),
    ("LAT_SLOT_FREE", abi::SLOT_FREE as u64, "abi::SLOT_FREE"),
    ("LAT_SLOT_CLAIMED", abi::SLOT_CLAIMED as u64, "abi::SLOT_CLAIMED"),
    ("LAT_SLOT_READY", abi::SLOT_READY as u64, "abi::SLOT_READY"),
    ("LAT_CURSOR_SLACK_MASK", abi::CURSOR_SLACK_MASK as u64, "abi::CURSOR_SLACK_MASK"),
    ("LAT_LIMIT_BUSY", abi::LIMIT_BUSY as u64, "abi::LIMIT_BUSY"),
    ("LAT_WRITER_NONE", abi::WRITER_NONE as u64, "abi::WRITER_NONE"),
    ("LAT_RING_CONTROL_BYTES", abi::RING_CONTROL_BYTES as u64, "abi::RING_CONTROL_BYTES"),
    ("LAT_PACKET_MAGIC", abi::PACKET_MAGIC as u64, "abi::PACKET_MAGIC"),
    ("LAT_PACKET_HEADER_BYTES", abi::PACKET_HEADER_BYTES as u64, "abi::PACKET_HEADER_BYTES"),
    ("LAT_PACKET_TAIL_BYTES", abi::PACKET_TAIL_BYTES as u64, "abi::PACKET_TAIL_BYTES"),
    ("LAT_RECORD_HEADER_BYTES", abi::RECORD_HEADER_BYTES as u64, "abi::RECORD_HEADER_BYTES"),
    ("LAT_TIME_BITS", abi::TIME_BITS as u64, "abi::TIME_BITS"),
    ("sizeof(struct lat_area_header)", abi::header::BYTES as u64, "abi::header::BYTES"),
    ("offsetof(struct lat_area_header, magic)", abi::header::MAGIC as u64, "abi::header::MAGIC"),
    (
        "offsetof(struct lat_area_header, magic_complement)",
        abi::header::MAGIC_COMPLEMENT as u64,
        "abi::header::MAGIC_COMPLEMENT",
    ),
    (
        "offsetof(struct lat_area_header, abi_version)",
        abi::header::ABI_VERSION as u64,
        "abi::header::ABI_VERSION",
    ),
    (
        "offsetof(struct lat_area_header, header_bytes)",
        abi::header::HEADER_BYTES as u64,
        "abi::header::HEADER_BYTES",
    ),
    (
        "offsetof(struct lat_area_header, byte_order)",
        abi::header::BYTE_ORDER as u64,
        "abi::header::BYTE_ORDER",
    ),
    (
        "offsetof(struct lat_area_header, page_bytes)",
        abi::header::PAGE_BYTES as u64,
        "abi::header::PAGE_BYTES",
    ),
    (
        "offsetof(struct lat_area_header, area_bytes)",
        abi::header::AREA_BYTES as u64,
        "abi::header::AREA_BYTES",
    ),
    (
        "offsetof(struct lat_area_header, area_id)",
        abi::header::AREA_ID as u64,
        "abi::header::AREA_ID",
    ),
    (
        "offsetof(struct lat_area_header, creator_pid)",
        abi::header::CREATOR_PID as u64,
        "abi::header::CREATOR_PID",
    ),
    (
        "offsetof(struct lat_area_header, creator_uid)",
        abi::header::CREATOR_UID as u64,
        "abi::header::CREATOR_UID",
    ),
    (
        "offsetof(struct lat_area_header, session)",
        abi::header::SESSION as u64,
        "abi::header::SESSION",
    ),
    (
        "offsetof(struct lat_area_header, ring_kind)",
        abi::header::RING_KIND as u64,
        "abi::header::RING_KIND",
    ),
    (
        "offsetof(struct lat_area_header, ring_count)",
        abi::header::RING_COUNT as u64,
        "abi::header::RING_COUNT",
    ),
    (
        "offsetof(struct lat_area_header, ring_mode)",
        abi::header::RING_MODE as u64,
        "abi::header::RING_MODE",
    ),
    ("offsetof(struct lat_area_header, state)", abi::header::STATE as u64, "abi::header::STATE"),
    (
        "offsetof(struct lat_area_header, rings_offset)",
        abi::header::RINGS_OFFSET as u64,
        "abi::header::RINGS_OFFSET",
    ),
    (
        "offsetof(struct lat_area_header, ring_stride)",
        abi::header::RING_STRIDE as u64,
        "abi::header::RING_STRIDE",
    ),
    (
        "offsetof(struct lat_area_header, packet_bytes)",
        abi::header::PACKET_BYTES as u64,
        "abi::header::PACKET_BYTES",
    ),
    (
        "offsetof(struct lat_area_header, packets_per_ring)",
        abi::header::PACKETS_PER_RING as u64,
        "abi::header::PACKETS_PER_RING",
    ),
    (
        "offsetof(struct lat_area_header, rings_ready)",
        abi::header::RINGS_READY as u64,
        "abi::header::RINGS_READY",
    ),
    (
        "offsetof(struct lat_area_header, clock_kind)",
        abi::header::CLOCK_KIND as u64,
        "abi::header::CLOCK_KIND",
    ),
    (
        "offsetof(struct lat_area_header, clock_hz)",
        abi::header::CLOCK_HZ as u64,
        "abi::header::CLOCK_HZ",
    ),
    (
        "offsetof(struct lat_area_header, clock_at_start)",
        abi::header::CLOCK_AT_START as u64,
        "abi::header::CLOCK_AT_START",
    ),
    (
        "offsetof(struct lat_area_header, realtime_ns_at_start)",
        abi::header::REALTIME_NS_AT_START as u64,
        "abi::header::REALTIME_NS_AT_START",
    ),
    (
        "offsetof(struct lat_area_header, monotonic_ns_at_start)",
        abi::header::MONOTONIC_NS_AT_START as u64,
        "abi::header::MONOTONIC_NS_AT_START",
    ),
    (
        "offsetof(struct lat_area_header, next_event_id)",
        abi::header::NEXT_EVENT_ID as u64,
        "abi::header::NEXT_EVENT_ID",
    ),
    (
        "offsetof(struct lat_area_header, setup_errno)",
        abi::header::SETUP_ERRNO as u64,
        "abi::header::SETUP_ERRNO",
    ),
    (
        "offsetof(struct lat_area_header, heap_used)",
        abi::header::HEAP_USED as u64,
        "abi::header::HEAP_USED",
    ),
    (
        "offsetof(struct lat_area_header, recorder_pid)",
        abi::header::RECORDER_PID as u64,
        "abi::header::RECORDER_PID",
    ),
    (
        "offsetof(struct lat_area_header, lost_no_ring)",
        abi::header::LOST_NO_RING as u64,
        "abi::header::LOST_NO_RING",
    ),
    (
        "offsetof(struct lat_area_header, lost_schemas)",
        abi::header::LOST_SCHEMAS as u64,
        "abi::header::LOST_SCHEMAS",
    ),
    (
        "offsetof(struct lat_area_header, lost_processes)",
        abi::header::LOST_PROCESSES as u64,
        "abi::header::LOST_PROCESSES",
    ),
    ("offsetof(struct lat_area_header, uuid)", abi::header::UUID as u64, "abi::header::UUID"),
    (
        "offsetof(struct lat_area_header, stream_id)",
        abi::header::STREAM_ID as u64,
        "abi::header::STREAM_ID",
    ),
    (
        "offsetof(struct lat_area_header, pointer_bytes)",
        abi::header::POINTER_BYTES as u64,
        "abi::header::POINTER_BYTES",
    ),
    (
        "offsetof(struct lat_area_header, trigger)",
        abi::header::TRIGGER as u64,
        "abi::header::TRIGGER",
    ),
    ("offsetof(struct lat_area_header, exe)", abi::header::EXE as u64, "abi::header::EXE"),
    (
        "sizeof(((struct lat_area_header *)0)->exe)",
        abi::header::EXE_BYTES as u64,
        "abi::header::EXE_BYTES",
    ),
    (
        "offsetof(struct lat_area_header, command)",
        abi::header::COMMAND as u64,
        "abi::header::COMMAND",
    ),
    (
        "sizeof(((struct lat_area_header *)0)->command)",
        abi::header::COMMAND_BYTES as u64,
        "abi::header::COMMAND_BYTES",
    ),
    ("offsetof(struct lat_area_header, enable)", abi::header::ENABLE as u64, "abi::header::ENABLE"),
    (
        "sizeof(((struct lat_area_header *)0)->enable)",
        abi::header::ENABLE_BYTES as u64,
        "abi::header::ENABLE_BYTES",
    ),
    ("sizeof(struct lat_area_trigger)", abi::trigger::BYTES as u64, "abi::trigger::BYTES"),
    ("offsetof(struct lat_area_trigger, state)", abi::trigger::STATE as u64, "abi::trigger::STATE"),
    (
        "offsetof(struct lat_area_trigger, start_flags)",
        abi::trigger::START_FLAGS as u64,
        "abi::trigger::START_FLAGS",
    ),
    (
        "offsetof(struct lat_area_trigger, start_event)",
        abi::trigger::START_EVENT as u64,
        "abi::trigger::START_EVENT",
    ),
    (
        "offsetof(struct lat_area_trigger, stop_flags)",
        abi::trigger::STOP_FLAGS as u64,
        "abi::trigger::STOP_FLAGS",
    ),
    (
        "offsetof(struct lat_area_trigger, stop_event)",
        abi::trigger::STOP_EVENT as u64,
        "abi::trigger::STOP_EVENT",
    ),
    (
        "offsetof(struct lat_area_trigger, start_value)",
        abi::trigger::START_VALUE as u64,
        "abi::trigger::START_VALUE",
    ),
    (
        "offsetof(struct lat_area_trigger, start_mask)",
        abi::trigger::START_MASK as u64,
        "abi::trigger::START_MASK",
    ),
    (
        "offsetof(struct lat_area_trigger, stop_value)",
        abi::trigger::STOP_VALUE as u64,
        "abi::trigger::STOP_VALUE",
    ),
    (
        "offsetof(struct lat_area_trigger, stop_mask)",
        abi::trigger::STOP_MASK as u64,
        "abi::trigger::STOP_MASK",
    ),
    (
        "offsetof(struct lat_area_trigger, duration)",
        abi::trigger::DURATION as u64,
        "abi::trigger::DURATION",
    ),
    ("offsetof(struct lat_area_trigger, count)", abi::trigger::COUNT as u64, "abi::trigger::COUNT"),
    (
        "offsetof(struct lat_area_trigger, started_at)",
        abi::trigger::STARTED_AT as u64,
        "abi::trigger::STARTED_AT",
    ),
    (
        "offsetof(struct lat_area_trigger, stopped_at)",
        abi::trigger::STOPPED_AT as u64,
        "abi::trigger::STOPPED_AT",
    ),
    (
        "offsetof(struct lat_area_trigger, counted)",
        abi::trigger::COUNTED as u64,
        "abi::trigger::COUNTED",
    ),
    ("sizeof(struct lat_area_process)", abi::process::BYTES as u64, "abi::process::BYTES"),
    ("offsetof(struct lat_area_process, state)", abi::process::STATE as u64, "abi::process::STATE"),
    ("offsetof(struct lat_area_process, pid)", abi::process::PID as u64, "abi::process::PID"),
    (
        "offsetof(struct lat_area_process, parent_pid)",
        abi::process::PARENT_PID as u64,
        "abi::process::PARENT_PID",
    ),
    (
        "offsetof(struct lat_area_process, patch_table)",
        abi::process::PATCH_TABLE as u64,
        "abi::process::PATCH_TABLE",
    ),
    (
        "offsetof(struct lat_area_process, patch_count)",
        abi::process::PATCH_COUNT as u64,
        "abi::process::PATCH_COUNT",
    ),
    ("offsetof(struct lat_area_process, name)", abi::process::NAME as u64, "abi::process::NAME"),
    (
        "sizeof(((struct lat_area_process *)0)->name)",
        abi::process::NAME_BYTES as u64,
        "abi::process::NAME_BYTES",
    ),
    ("sizeof(struct lat_area_schema)", abi::schema::BYTES as u64, "abi::schema::BYTES"),
    ("offsetof(struct lat_area_schema, state)", abi::schema::STATE as u64, "abi::schema::STATE"),
    (
        "offsetof(struct lat_area_schema, base_id)",
        abi::schema::BASE_ID as u64,
        "abi::schema::BASE_ID",
    ),
    (
        "offsetof(struct lat_area_schema, event_count)",
        abi::schema::EVENT_COUNT as u64,
        "abi::schema::EVENT_COUNT",
    ),
    (
        "offsetof(struct lat_area_schema, text_bytes)",
        abi::schema::TEXT_BYTES as u64,
        "abi::schema::TEXT_BYTES",
    ),
    (
        "offsetof(struct lat_area_schema, text_offset)",
        abi::schema::TEXT_OFFSET as u64,
        "abi::schema::TEXT_OFFSET",
    ),
    ("offsetof(struct lat_area_schema, hash)", abi::schema::HASH as u64, "abi::schema::HASH"),
    ("offsetof(struct lat_area_schema, name)", abi::schema::NAME as u64, "abi::schema::NAME"),
    (
        "sizeof(((struct lat_area_schema *)0)->name)",
        abi::schema::NAME_BYTES as u64,
        "abi::schema::NAME_BYTES",
    ),
    ("sizeof(struct lat_ring)", abi::ring::BYTES as u64, "abi::ring::BYTES"),
    ("offsetof(struct lat_ring, cursor)", abi::ring::CURSOR as u64, "abi::ring::CURSOR"),
    ("offsetof(struct lat_ring, limit)", abi::ring::LIMIT as u64, "abi::ring::LIMIT"),
    (
        "offsetof(struct lat_ring, last_writer)",
        abi::ring::LAST_WRITER as u64,
        "abi::ring::LAST_WRITER",
    ),
    ("offsetof(struct lat_ring, mask)", abi::ring::MASK as u64, "abi::ring::MASK"),
    ("offsetof(struct lat_ring, told_full)", abi::ring::TOLD_FULL as u64, "abi::ring::TOLD_FULL"),
    (
        "offsetof(struct lat_ring, told_too_big)",
        abi::ring::TOLD_TOO_BIG as u64,
        "abi::ring::TOLD_TOO_BIG",
    ),
    (
        "offsetof(struct lat_ring, told_contended)",
        abi::ring::TOLD_CONTENDED as u64,
        "abi::ring::TOLD_CONTENDED",
    ),
    (
        "offsetof(struct lat_ring, told_no_ring)",
        abi::ring::TOLD_NO_RING as u64,
        "abi::ring::TOLD_NO_RING",
    ),
    (
        "offsetof(struct lat_ring, told_below)",
        abi::ring::TOLD_BELOW as u64,
        "abi::ring::TOLD_BELOW",
    ),
    (
        "offsetof(struct lat_ring, backed_bytes)",
        abi::ring::BACKED_BYTES as u64,
        "abi::ring::BACKED_BYTES",
    ),
    ("offsetof(struct lat_ring, lost_full)", abi::ring::LOST_FULL as u64, "abi::ring::LOST_FULL"),
    (
        "offsetof(struct lat_ring, lost_too_big)",
        abi::ring::LOST_TOO_BIG as u64,
        "abi::ring::LOST_TOO_BIG",
    ),
    (
        "offsetof(struct lat_ring, lost_contended)",
        abi::ring::LOST_CONTENDED as u64,
        "abi::ring::LOST_CONTENDED",
    ),
    (
        "offsetof(struct lat_ring, lost_no_ring)",
        abi::ring::LOST_NO_RING as u64,
        "abi::ring::LOST_NO_RING",
    ),
    ("offsetof(struct lat_ring, consumed)", abi::ring::CONSUMED as u64, "abi::ring::CONSUMED"),
    ("offsetof(struct lat_ring, owner)", abi::ring::OWNER as u64, "abi::ring::OWNER"),
    ("offsetof(struct lat_packet, magic)", abi::packet::MAGIC as u64, "abi::packet::MAGIC"),
    ("offsetof(struct lat_packet, uuid)", abi::packet::UUID as u64, "abi::packet::UUID"),
    (
        "offsetof(struct lat_packet, stream_id)",
        abi::packet::STREAM_ID as u64,
        "abi::packet::STREAM_ID",
    ),
    (
        "offsetof(struct lat_packet, timestamp_begin)",
        abi::packet::TIMESTAMP_BEGIN as u64,
        "abi::packet::TIMESTAMP_BEGIN",
    ),
    (
        "offsetof(struct lat_packet, timestamp_end)",
        abi::packet::TIMESTAMP_END as u64,
        "abi::packet::TIMESTAMP_END",
    ),
    (
        "offsetof(struct lat_packet, content_bits)",
        abi::packet::CONTENT_BITS as u64,
        "abi::packet::CONTENT_BITS",
    ),
    (
        "offsetof(struct lat_packet, packet_bits)",
        abi::packet::PACKET_BITS as u64,
        "abi::packet::PACKET_BITS",
    ),
    (
        "offsetof(struct lat_packet, sequence)",
        abi::packet::SEQUENCE as u64,
        "abi::packet::SEQUENCE",
    ),
    (
        "offsetof(struct lat_packet, events_discarded)",
        abi::packet::EVENTS_DISCARDED as u64,
        "abi::packet::EVENTS_DISCARDED",
    ),
    (
        "offsetof(struct lat_packet, lost_full)",
        abi::packet::LOST_FULL as u64,
        "abi::packet::LOST_FULL",
    ),
    (
        "offsetof(struct lat_packet, lost_too_big)",
        abi::packet::LOST_TOO_BIG as u64,
        "abi::packet::LOST_TOO_BIG",
    ),
    (
        "offsetof(struct lat_packet, lost_contended)",
        abi::packet::LOST_CONTENDED as u64,
        "abi::packet::LOST_CONTENDED",
    ),
    (
        "offsetof(struct lat_packet, lost_no_ring)",
        abi::packet::LOST_NO_RING as u64,
        "abi::packet::LOST_NO_RING",
    ),
    ("offsetof(struct lat_packet, area_id)", abi::packet::AREA_ID as u64, "abi::packet::AREA_ID"),
    ("offsetof(struct lat_packet, cpu_id)", abi::packet::CPU_ID as u64, "abi::packet::CPU_ID"),
    (
        "offsetof(struct lat_packet, checksum)",
        abi::packet::CHECKSUM as u64,
        "abi::packet::CHECKSUM",
    ),
    (
        "offsetof(struct lat_packet, ring_flags)",
        abi::packet::RING_FLAGS as u64,
        "abi::packet::RING_FLAGS",
    ),
];

/// Constants that follow from the specification's text and have no name in the C header.
const OWN: &[&str] = &[
    "abi::RINGS_NONE",
    "abi::RINGS_BEING_MADE",
    "abi::RINGS_READY",
    "abi::WRITER_RECORD_BYTES",
    "abi::FLAG_OVERWRITE",
    "abi::FLAG_OPEN_PART",
];

#[test]
fn the_c_header_has_the_same_numbers() {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("SKIPPED: comparison with abi.h: no C compiler (cc)");
        return;
    }
    let mut program =
        "#include <stdio.h>\n#include <stddef.h>\n#include \"lat/abi.h\"\nint main(void) {\n"
            .to_owned();
    for (expression, _, _) in NUMBERS {
        writeln!(program, "printf(\"%llu\\n\", (unsigned long long)({expression}));").unwrap();
    }
    program.push_str("return 0; }\n");
    let dir = std::env::temp_dir().join(format!("lateralis-abi-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let source = dir.join("abi.c");
    std::fs::write(&source, program).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tracer/c/include");
    let compiled = Command::new("cc")
        .arg("-std=c11")
        .arg("-I")
        .arg(include)
        .arg(&source)
        .arg("-o")
        .arg(dir.join("abi"))
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(dir.join("abi")).output().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let found: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), NUMBERS.len());
    for ((expression, ours, name), theirs) in NUMBERS.iter().zip(found) {
        assert_eq!(*ours, theirs, "{name} is not {expression}");
    }
}

#[test]
fn no_constant_is_left_out() {
    let source = include_str!("../src/abi.rs");
    let mut module = String::new();
    for line in source.lines() {
        if let Some(rest) = line.strip_prefix("pub mod ") {
            module = format!("{}::", rest.trim_end_matches(" {"));
        } else if line == "}" {
            module.clear();
        }
        let Some((name, kind)) =
            line.trim_start().strip_prefix("pub const ").and_then(|rest| rest.split_once(": "))
        else {
            continue;
        };
        if kind.starts_with("core::ops") {
            continue; // Ranges: checked where geometry is.
        }
        let name = format!("abi::{module}{name}");
        let compared = NUMBERS.iter().any(|(_, _, ours)| *ours == name);
        assert!(compared || OWN.contains(&name.as_str()), "{name} is compared with nothing");
    }
}
