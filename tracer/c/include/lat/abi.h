// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The area: the shared-memory file through which a traced program and a
 * recorder meet. This header is layout only; spec/ring-abi.md defines the writer of each
 * word and the order of the writes. The Rust mirror is crates/ring, and a test there
 * compiles this file and compares every number.
 *
 *   offset    size   what
 *   0         4 KiB  struct lat_area_header
 *   0x01000  16 KiB  struct lat_area_process [128]
 *   0x05000  16 KiB  struct lat_area_schema  [256]
 *   0x09000  32 KiB  enable bytes, one per event id
 *   0x11000  32 KiB  wanted bytes, one per event id (what a trigger will enable)
 *   0x19000  512 KiB schema heap: the pleco text of every schema
 *   0xa0000  64 KiB  number of the filter of each event, 16 bits each
 *   0xb0000  256 KiB struct lat_area_filter [512]
 *   0x100000         rings: ring_count times ring_stride bytes
 *
 * All words are in the byte order of the traced program. Every word is zero
 * until it is first written.
 */
#ifndef LAT_ABI_H
#define LAT_ABI_H

#include <stdint.h>

#define LAT_ABI_VERSION 1u

/* A scan of a core dump or a RAM image finds an area by two adjacent words,
 * the second being the complement of the first: program text may contain
 * one as an immediate, never both side by side. The first spells "LatArea1". */
#define LAT_AREA_MAGIC UINT64_C(0x316165724174614c)
#define LAT_BYTE_ORDER_MARK 0x01020304u

#define LAT_AREA_PROCESSES_OFFSET 0x1000u
#define LAT_AREA_PROCESS_COUNT 128u
#define LAT_AREA_SCHEMAS_OFFSET 0x5000u
#define LAT_AREA_SCHEMA_COUNT 256u
#define LAT_AREA_ENABLE_OFFSET 0x9000u
#define LAT_AREA_WANTED_OFFSET 0x11000u
#define LAT_AREA_EVENT_COUNT 32768u
#define LAT_AREA_HEAP_OFFSET 0x19000u
#define LAT_AREA_HEAP_BYTES 0x80000u
#define LAT_AREA_FILTER_INDEX_OFFSET 0xa0000u
#define LAT_AREA_FILTERS_OFFSET 0xb0000u
#define LAT_AREA_FILTER_COUNT 512u /* number 0 is no filter */
#define LAT_AREA_RINGS_OFFSET 0x100000u

/* Ids below this belong to the internal schema (spec/lateralis.pleco). */
#define LAT_INTERNAL_EVENT_COUNT 16u
#define LAT_ID_WRITER 0u
#define LAT_ID_THREAD_NAME 1u
#define LAT_ID_PROCESS 2u
#define LAT_ID_MARK 3u

enum lat_ring_kind { LAT_RING_NONE = 0, LAT_RING_PER_CPU = 1, LAT_RING_PER_THREAD = 2 };
enum lat_ring_mode { LAT_MODE_DISCARD = 0, LAT_MODE_OVERWRITE = 1 };
enum lat_area_state { LAT_AREA_INITIALISING = 0, LAT_AREA_READY = 1, LAT_AREA_EXITED = 2 };
enum lat_clock_kind { LAT_CLOCK_X86_TSC = 1, LAT_CLOCK_AARCH64_CNTVCT = 2, LAT_CLOCK_MONOTONIC_NS = 3 };

/* Enable byte of an event: 0 = disabled. */
#define LAT_ENABLE_RECORD 1u /* record it */
#define LAT_ENABLE_WATCH 2u  /* pass it to the triggers first */
#define LAT_ENABLE_FILTER 4u /* only with LAT_ENABLE_WATCH: apply its filter first */

/* Capabilities of this tracer beyond version 1. */
#define LAT_FEATURE_FILTERS 1u

enum lat_trigger_state {
    LAT_TRIGGER_NONE = 0,    /* only the enable bytes matter */
    LAT_TRIGGER_ARMED = 1,   /* waiting for the start event; nothing is recorded */
    LAT_TRIGGER_RUNNING = 2, /* started; waiting for stop event, count or deadline */
    LAT_TRIGGER_DONE = 3     /* stopped */
};
#define LAT_TRIGGER_MATCH_EVENT 1u /* the event id must equal */
#define LAT_TRIGGER_MATCH_VALUE 2u /* and its first payload word, under the mask */

struct lat_area_trigger {
    uint32_t state;       /*   0 enum lat_trigger_state, changed by compare-exchange */
    uint32_t start_flags; /*   4 0 = no start condition: runs at once */
    uint32_t start_event; /*   8 */
    uint32_t stop_flags;  /*  12 0 = no stop event */
    uint32_t stop_event;  /*  16 */
    uint32_t reserved;    /*  20 */
    uint64_t start_value; /*  24 */
    uint64_t start_mask;  /*  32 */
    uint64_t stop_value;  /*  40 */
    uint64_t stop_mask;   /*  48 */
    uint64_t duration;    /*  56 clock ticks after the start, 0 = no deadline */
    uint64_t count;       /*  64 events to record, 0 = no count; the start event is the first */
    uint64_t started_at;  /*  72 clock at the start event */
    uint64_t stopped_at;  /*  80 clock at the stop; excludes later events */
    uint64_t counted;     /*  88 events counted so far */
};

struct lat_area_header {
    uint64_t magic;               /*   0 LAT_AREA_MAGIC */
    uint64_t magic_complement;    /*   8 ~LAT_AREA_MAGIC */
    uint32_t abi_version;         /*  16 */
    uint32_t header_bytes;        /*  20 sizeof(struct lat_area_header) */
    uint32_t byte_order;          /*  24 LAT_BYTE_ORDER_MARK */
    uint32_t page_bytes;          /*  28 */
    uint64_t area_bytes;          /*  32 bytes of address space the program mapped: rings must fit */
    uint64_t area_id;             /*  40 never 0; unique on this machine since boot */
    uint32_t creator_pid;         /*  48 */
    uint32_t creator_uid;         /*  52 */
    uint64_t session;             /*  56 from LATERALIS_SESSION: the launching session; 0 = none */
    uint32_t ring_kind;           /*  64 enum lat_ring_kind, decided by the program at start */
    uint32_t ring_count;          /*  68 CPUs (possible) or thread rings, decided by the program */
    uint32_t ring_mode;           /*  72 enum lat_ring_mode; the recorder may change it at any time */
    uint32_t state;               /*  76 enum lat_area_state */
    uint64_t rings_offset;        /*  80 = LAT_AREA_RINGS_OFFSET */
    uint64_t ring_stride;         /*  88 control page + data, multiple of the page size */
    uint64_t packet_bytes;        /*  96 power of two, 4 KiB .. 16 MiB */
    uint64_t packets_per_ring;    /* 104 power of two, 2 .. 65536 */
    uint32_t rings_ready;         /* 112 0 none, 1 being made, 2 usable (release) */
    uint32_t clock_kind;          /* 116 enum lat_clock_kind */
    uint64_t clock_hz;            /* 120 0 = unknown: the recorder calibrates */
    uint64_t clock_at_start;      /* 128 clock and wall clocks read together at start, */
    uint64_t realtime_ns_at_start;  /* 136 so that a crash dump alone has a time base */
    uint64_t monotonic_ns_at_start; /* 144 */
    uint32_t next_event_id;       /* 152 ids handed out so far (atomic add) */
    uint32_t setup_errno;         /* 156 error when this program made its own rings */
    uint64_t heap_used;           /* 160 bytes of schema heap handed out (atomic add) */
    uint32_t recorder_pid;        /* 168 0 = no recorder */
    uint32_t features;            /* 172 LAT_FEATURE_…, set by the program */
    uint64_t lost_no_ring;        /* 176 events that found no ring (atomic add) */
    uint64_t lost_schemas;        /* 184 schemas or format sites not registered */
    uint8_t  uuid[16];            /* 192 trace UUID, set by the recorder */
    uint32_t stream_id;           /* 208 stream class id, set by the recorder */
    uint32_t pointer_bytes;       /* 212 */
    uint32_t filter_count;        /* 216 filters written by a recorder */
    uint32_t lost_processes;      /* 220 processes for which the table had no slot (atomic add) */
    uint64_t pid_namespace;       /* 224 inode of the creator's PID namespace, 0 = unknown: the area's
                                   *     process and thread ids belong to this namespace */
    uint64_t reserved1[3];        /* 232 */
    struct lat_area_trigger trigger; /* 256 */
    uint64_t reserved2[20];       /* 352 */
    char exe[256];                /* 512 path of the program, cut */
    char command[512];            /* 768 its arguments, separated by NUL, cut */
    char enable[1024];            /* 1280 patterns applied to schemas that register later:
                                   *      "sub:EVENT,sub:*,!sub:X"; written by launcher or recorder */
    uint8_t reserved3[1792];      /* 2304 */
};

enum lat_slot_state { LAT_SLOT_FREE = 0, LAT_SLOT_CLAIMED = 1, LAT_SLOT_READY = 2 };

struct lat_area_process {   /* one per process that writes into this area */
    uint32_t state;         /*  0 enum lat_slot_state */
    uint32_t pid;           /*  4 */
    uint32_t parent_pid;    /*  8 */
    uint32_t reserved;      /* 12 */
    uint64_t patch_table;   /* 16 address of its patchable sites in its memory, 0 = none */
    uint64_t patch_count;   /* 24 */
    char name[32];          /* 32 comm of its first thread */
    uint8_t reserved1[64];  /* 64 */
};

struct lat_area_schema {
    uint32_t state;         /*  0 enum lat_slot_state */
    uint32_t base_id;       /*  4 id of its first event */
    uint32_t event_count;   /*  8 */
    uint32_t text_bytes;    /* 12 */
    uint64_t text_offset;   /* 16 from the start of the area */
    uint64_t hash;          /* 24 of the canonical pleco text */
    char name[32];          /* 32 cut */
};

/*
 * A filter of an event: steps that each compare a field of the payload and select the
 * next step, always a later one (spec/ring-abi.md §11). The event is recorded unless a step rejects it.
 */
#define LAT_FILTER_STEPS 16u
#define LAT_FILTER_ACCEPT 0xfeu /* as next step: record the event */
#define LAT_FILTER_REJECT 0xffu /* as next step: do not record it */
enum lat_filter_compare {
    LAT_FILTER_EQ = 0,
    LAT_FILTER_NE = 1,
    LAT_FILTER_LT = 2,
    LAT_FILTER_LE = 3,
    LAT_FILTER_GT = 4,
    LAT_FILTER_GE = 5,
    LAT_FILTER_SIGNED = 8 /* added to one of them: field and value are signed */
};

struct lat_filter_step {
    uint16_t offset;   /*  0 of the field in the payload */
    uint8_t bytes;     /*  2 of the field: 1, 2, 4 or 8 */
    uint8_t compare;   /*  3 enum lat_filter_compare */
    uint8_t if_true;   /*  4 next step */
    uint8_t if_false;  /*  5 next step */
    uint16_t reserved; /*  6 */
    uint64_t mask;     /*  8 applied to the field, after its sign was extended */
    uint64_t value;    /* 16 compared with the field */
};

struct lat_area_filter {
    uint32_t step_count; /* 0 */
    uint32_t reserved;   /* 4 */
    struct lat_filter_step steps[LAT_FILTER_STEPS]; /* 8 */
    uint64_t reserved1[15]; /* 392 */
};

/*
 * A ring: one control page, then packets_per_ring packets of packet_bytes.
 *
 * A position counts bytes since the ring was made and never wraps (2^60 bytes
 * are 26 years at 1.4 GB/s). position / packet_bytes is the packet's sequence
 * number, position modulo ring bytes the place in the data.
 *
 * `cursor` is a position, multiple of 8, plus in its low three bits the slack:
 * the number of bytes by which the last record ends before that multiple. So the exact end
 * of the content is (cursor & ~7) - (cursor & 7), and one aligned store both
 * reserves and publishes.
 *
 * `limit` is a position too, which a reservation must not pass. 0 until the slow
 * path has set it; LAT_LIMIT_BUSY while the owner of a per-thread ring is
 * inside a record, which makes every other reservation fail.
 */
#define LAT_CURSOR_SLACK_MASK UINT64_C(7)
#define LAT_LIMIT_BUSY UINT64_C(1)
#define LAT_WRITER_NONE 0xffffffffu
#define LAT_RING_CONTROL_BYTES 4096u

struct lat_ring {
    /* line 0: written by writers */
    uint64_t cursor;         /*  0 */
    uint64_t limit;          /*  8 position that a reservation must not pass */
    uint32_t last_writer;    /* 16 thread id of the writer of the last record */
    uint32_t reserved0;      /* 20 */
    uint64_t mask;           /* 24 (ring bytes - 1) & ~7, set when the ring is made */
    uint64_t lost_full;      /* 32 events: no free packet (discard mode) */
    uint64_t lost_too_big;   /* 40 events: longer than a packet */
    uint64_t lost_contended; /* 48 events: gave up after LAT_RETRY_LIMIT restarts */
    uint64_t lost_no_ring;   /* 56 events: nested deeper than there are rings for */
    /* line 1: written by the reader */
    uint64_t consumed;       /* 64 packets with lower sequence numbers may be reused */
    uint64_t told_full;      /* 72 losses above that readers have reported so far */
    uint64_t told_too_big;   /* 80 */
    uint64_t told_contended; /* 88 */
    uint64_t told_no_ring;   /* 96 */
    uint64_t told_below;     /* 104 reported by packets before this one */
    uint64_t backed_bytes;   /* 112 of the data, from its start, that have memory; 0 = all of it.
                              *     Only grows; set when the ring is made, raised by the reader */
    uint64_t reserved1;
    /* line 2: per-thread rings: the owner */
    uint64_t owner;          /* 128 0 = free, else thread id (compare-exchange) */
    uint64_t reserved2[7];
};

/* A packet begins with the complete CTF packet header and context of
 * spec/trace-layout.md, so that it can be written to a file unchanged. */
#define LAT_PACKET_MAGIC 0xc1fc1fc1u
#define LAT_PACKET_HEADER_BYTES 128u

struct lat_packet {
    uint32_t magic;            /*   0 writer, on opening */
    uint8_t  uuid[16];         /*   4 set by the recorder */
    uint32_t stream_id;        /*  20 set by the recorder */
    uint64_t timestamp_begin;  /*  24 writer, on opening */
    uint64_t timestamp_end;    /*  32 writer, on closing */
    uint64_t content_bits;     /*  40 writer, on closing; 0 while open */
    uint64_t packet_bits;      /*  48 writer, on closing: content rounded up to 8 bytes */
    uint64_t sequence;         /*  56 writer, on opening */
    uint64_t events_discarded; /*  64 writer, on closing: sum of the four below */
    uint64_t lost_full;        /*  72 */
    uint64_t lost_too_big;     /*  80 */
    uint64_t lost_contended;   /*  88 */
    uint64_t lost_no_ring;     /*  96 */
    uint64_t area_id;          /* 104 writer, on opening */
    uint32_t cpu_id;           /* 112 or ring number; writer, on opening */
    uint32_t checksum;         /* 116 CRC-32C, filled in by the recorder; 0 = none */
    uint32_t ring_flags;       /* 120 bit 0: overwrite mode; bit 1: the packet was still open */
    uint32_t reserved;         /* 124 */
};

/* A packet's last 8 bytes stay unused, so that an open packet's cursor never
 * equals the start of the next one. */
#define LAT_PACKET_TAIL_BYTES 8u

/* Record header: id in the low 16 bits, time in the high 48. 48 bits of a
 * 3 GHz counter are 26 hours; every packet contains the full time. */
#define LAT_RECORD_HEADER_BYTES 8u
#define LAT_TIME_BITS 48u

#define LAT_ASSERT_LAYOUT(name, condition) typedef char lat_assert_##name[(condition) ? 1 : -1]
LAT_ASSERT_LAYOUT(header, sizeof(struct lat_area_header) == 4096);
LAT_ASSERT_LAYOUT(trigger, sizeof(struct lat_area_trigger) == 96);
LAT_ASSERT_LAYOUT(process, sizeof(struct lat_area_process) == 128);
LAT_ASSERT_LAYOUT(schema, sizeof(struct lat_area_schema) == 64);
LAT_ASSERT_LAYOUT(filter_step, sizeof(struct lat_filter_step) == 24);
LAT_ASSERT_LAYOUT(filter, sizeof(struct lat_area_filter) == 512);
LAT_ASSERT_LAYOUT(ring, sizeof(struct lat_ring) == 192);
LAT_ASSERT_LAYOUT(packet, sizeof(struct lat_packet) == LAT_PACKET_HEADER_BYTES);

#endif
