// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Inspection of the program's own rings: the number of records of an event between two positions.
 * This is the reader's part of spec/ring-abi.md §5 in its simplest form: nothing is written meanwhile.
 */
#ifndef BENCH_RINGS_H
#define BENCH_RINGS_H

#include "core.h"

#include <string.h>

static inline struct lat_ring *rings_at(uint32_t index)
{
    return (struct lat_ring *)(void *)((char *)lat_i_area.header + LAT_AREA_RINGS_OFFSET +
                                       index * lat_i_area.header->ring_stride);
}

/** The ring of the CPU or thread that executes this. */
static inline struct lat_ring *rings_mine(void)
{
    if (lat_i_area.header->ring_kind == LAT_RING_PER_CPU)
        return rings_at((uint32_t)lat_i_port_cpu());
    return lat_i_thread.ring;
}

static inline uint64_t rings_position(const struct lat_ring *ring)
{
    return ring->cursor & ~LAT_CURSOR_SLACK_MASK;
}

/** Does what a recorder does: releases everything but the open packet. */
static inline void rings_consume(struct lat_ring *ring)
{
    __atomic_store_n(&ring->consumed, ring->cursor / lat_i_area.header->packet_bytes,
                     __ATOMIC_RELEASE); /* pair W2 */
}

static inline uint64_t rings_lost(const struct lat_ring *ring)
{
    return ring->lost_full + ring->lost_too_big + ring->lost_contended + ring->lost_no_ring;
}

/** Examines a record of the program's own events. @return bytes of payload, after its 8 bytes
 * of header; sets *counts if it is one of those searched for and has the expected contents. */
typedef uint64_t rings_look(uint32_t id, const uint8_t *payload, int *counts);

static inline uint64_t rings_payload_bytes(uint32_t id, const uint8_t *payload, rings_look *look,
                                           int *counts)
{
    *counts = 0;
    switch (id) {
    case LAT_ID_WRITER:
        return 8;
    case LAT_ID_THREAD_NAME:
    case LAT_ID_PROCESS:
        return 8 + strlen((const char *)payload + 8) + 1;
    default:
        return look(id, payload, counts);
    }
}

/**
 * Counts records from position `from` to the cursor. Both ends and all bytes between must still be in the
 * ring.
 * @return the count, or 0 if the bytes are invalid.
 */
static inline uint64_t rings_count(struct lat_ring *ring, uint64_t from, rings_look *look)
{
    const uint64_t packet_bytes = lat_i_area.header->packet_bytes;
    const uint64_t end = rings_position(ring) - (ring->cursor & LAT_CURSOR_SLACK_MASK);
    const uint64_t last = ring->cursor / packet_bytes;
    uint64_t counted = 0;
    for (uint64_t sequence = from / packet_bytes; sequence <= last; sequence++) {
        const uint8_t *bytes = (const uint8_t *)ring + LAT_RING_CONTROL_BYTES +
                               (sequence * packet_bytes & ring->mask);
        const struct lat_packet *packet = (const struct lat_packet *)(const void *)bytes;
        const uint64_t content =
            sequence == last ? end - sequence * packet_bytes : packet->content_bits / 8;
        uint64_t at = LAT_PACKET_HEADER_BYTES;
        if (packet->sequence != sequence)
            return 0;
        while (at < content) {
            uint64_t header;
            int counts;
            memcpy(&header, bytes + at, 8);
            const uint64_t payload =
                rings_payload_bytes((uint32_t)(header & 0xffff), bytes + at + 8, look, &counts);
            if (payload == UINT64_MAX)
                return 0;
            counted += counts && sequence * packet_bytes + at >= from;
            at += (8 + payload + 7) & ~UINT64_C(7);
        }
    }
    return counted;
}

#endif
