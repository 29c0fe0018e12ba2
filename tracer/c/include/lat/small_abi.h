// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The small area: the memory of a traced program without an operating system. Layout only;
 * spec/small-area.md defines the writer of each word and the order of the writes. The Rust mirror is
 * crates/ring, and a test there compiles this file and compares every number.
 *
 *   header 128 bytes | per core: control block 64 bytes, packets | schema descriptors
 *
 * All words are in the byte order of the program. 64-bit words change at set-up only.
 */
#ifndef LAT_SMALL_ABI_H
#define LAT_SMALL_ABI_H

#include <stdint.h>

#define LAT_SMALL_ABI_VERSION 1u
/* Spells "LatSmal1"; the complement is next to it, as in abi.h. */
#define LAT_SMALL_MAGIC UINT64_C(0x316c616d5374614c)
#define LAT_SMALL_PACKET_MAGIC 0x4c345053u /* "SP4L" */
#define LAT_SMALL_BYTE_ORDER_MARK 0x01020304u

#define LAT_SMALL_PACKET_BYTES_MIN 256u
#define LAT_SMALL_PACKET_BYTES_MAX 32768u /* content_bytes has 16 bits */
#define LAT_SMALL_PACKETS_MIN 2u
#define LAT_SMALL_PACKETS_MAX 65536u
#define LAT_SMALL_CORES_MAX 256u
#define LAT_SMALL_AREA_BYTES_MAX 0x80000000u

#define LAT_SMALL_MODE_DISCARD 0u   /* a full ring drops new events */
#define LAT_SMALL_MODE_OVERWRITE 1u /* a full ring drops the oldest packets */
#define LAT_SMALL_STATE_READY 1u

#define LAT_SMALL_LIMIT_CLOSED 0u /* the next record opens a packet */
#define LAT_SMALL_CONTEXT_NONE 0xffffffffu
#define LAT_SMALL_PROCESS 1u /* the process that WRITER records name: the program */
#define LAT_SMALL_THREAD 1u  /* and the thread where the context is 0 */

#define LAT_SMALL_FIRST_ID 16u /* as LAT_INTERNAL_EVENT_COUNT */
#define LAT_SMALL_ID_WRITER 0u
#define LAT_SMALL_ID_THREAD_NAME 1u
#define LAT_SMALL_ID_PROCESS 2u
#define LAT_SMALL_ID_MARK 3u

struct lat_small_header {
    uint64_t magic;            /*   0 LAT_SMALL_MAGIC, written last */
    uint64_t magic_complement; /*   8 ~LAT_SMALL_MAGIC */
    uint32_t abi_version;      /*  16 */
    uint32_t byte_order;       /*  20 LAT_SMALL_BYTE_ORDER_MARK */
    uint32_t header_bytes;     /*  24 sizeof(struct lat_small_header) */
    uint32_t area_bytes;       /*  28 used bytes of the memory */
    uint64_t address;          /*  32 of this header in the program's address space */
    uint16_t core_count;       /*  40 */
    uint16_t schema_count;     /*  42 */
    uint32_t event_count;      /*  44 of all schemas */
    uint32_t packet_bytes;     /*  48 power of two, 256 .. 32768 */
    uint32_t packets_per_ring; /*  52 power of two, 2 .. 65536 */
    uint32_t ring_offset;      /*  56 = 128 */
    uint32_t ring_stride;      /*  60 64 + packet_bytes * packets_per_ring */
    uint32_t schema_offset;    /*  64 */
    uint32_t mode;             /*  68 LAT_SMALL_MODE_… */
    uint64_t clock_hz;         /*  72 0 = unknown */
    uint32_t clock_bits;       /*  80 32 or 64 */
    uint32_t pointer_bytes;    /*  84 */
    uint32_t state;            /*  88 LAT_SMALL_STATE_READY */
    uint32_t generation;       /*  92 1, or one more than that of the previous area here */
    uint32_t reserved[8];      /*  96 */
};

struct lat_small_schema {
    uint64_t hash;        /*  0 of the canonical text */
    uint64_t text;        /*  8 address of the canonical pleco text in the image */
    uint32_t text_bytes;  /* 16 */
    uint16_t base_id;     /* 20 id of its first event */
    uint16_t event_count; /* 22 */
    uint64_t switches;    /* 24 address of a u16 per event: its id while it is on, else 0 */
};

struct lat_small_ring {
    uint32_t cursor;         /*  0 offset of the next record from here; 0 = no packet yet */
    uint32_t limit;          /*  4 end of the open packet, or LAT_SMALL_LIMIT_CLOSED */
    uint32_t context;        /*  8 writer of the last record, or LAT_SMALL_CONTEXT_NONE */
    uint32_t busy;           /* 12 a record is being written */
    uint32_t sequence;       /* 16 of the open packet */
    uint32_t sequence_high;  /* 20 */
    uint32_t consumed;       /* 24 packets below it may be reused (low 32 bits) */
    uint32_t lost_full;      /* 28 events: no free packet */
    uint32_t lost_too_big;   /* 32 events: longer than a packet */
    uint32_t lost_nested;    /* 36 events: inside another one, in an unmaskable interrupt */
    uint32_t begin;          /* 40 clock when the open packet was opened */
    uint32_t begin_high;     /* 44 */
    uint32_t core;           /* 48 */
    uint32_t clock_last;     /* 52 clocks of 32 bits: last reading of an opening */
    uint32_t clock_high;     /* 56 number of its wraps */
    uint32_t clock_backward; /* 60 openings where the clock was less than clock_last */
};

struct lat_small_packet {
    uint32_t magic;         /*  0 LAT_SMALL_PACKET_MAGIC; 0 while the rest is written */
    uint32_t sequence;      /*  4 */
    uint16_t sequence_high; /*  8 */
    uint16_t content_bytes; /* 10 with this header; 0 while open */
    uint16_t core;          /* 12 */
    uint16_t reserved;      /* 14 */
    uint64_t begin;         /* 16 clock when it was opened */
    uint32_t lost_full;     /* 24 of the ring, when the packet was closed (while open: when opened) */
    uint16_t lost_too_big;  /* 28 low 16 bits */
    uint16_t lost_nested;   /* 30 low 16 bits */
};

#define LAT_SMALL_ASSERT(name, condition) typedef char lat_small_assert_##name[(condition) ? 1 : -1]
LAT_SMALL_ASSERT(header, sizeof(struct lat_small_header) == 128);
LAT_SMALL_ASSERT(schema, sizeof(struct lat_small_schema) == 32);
LAT_SMALL_ASSERT(ring, sizeof(struct lat_small_ring) == 64);
LAT_SMALL_ASSERT(packet, sizeof(struct lat_small_packet) == 32);

#endif
