// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Keeps a test's writers from overtaking its reader, for tests without losses. */
#ifndef TEST_THROTTLE_H
#define TEST_THROTTLE_H

#include "core.h"

#include <sched.h>
#include <unistd.h>

static inline int ring_half_full(const struct lat_ring *ring)
{
    const uint64_t cursor = __atomic_load_n(&ring->cursor, __ATOMIC_RELAXED);
    const uint64_t consumed = __atomic_load_n(&ring->consumed, __ATOMIC_RELAXED);
    const uint64_t backed = __atomic_load_n(&ring->backed_bytes, __ATOMIC_RELAXED);
    if (backed != 0 && backed < lat_i_area.packets_per_ring * lat_i_area.packet_bytes &&
        cursor > backed / 2)
        return 1; /* its memory is not there yet */
    return cursor > (consumed + lat_i_area.packets_per_ring / 2) * lat_i_area.packet_bytes;
}

/** Waits until the ring that this thread writes into is at most half full. */
static inline void throttle(void)
{
    for (;;) {
        const struct lat_ring *ring = lat_i_thread.ring;
        if (lat_i_area.kind == LAT_RING_PER_CPU)
            ring = (const struct lat_ring *)(const void *)(lat_i_state.rings +
                                                           (uint64_t)sched_getcpu() *
                                                               lat_i_state.ring_stride);
        if (!lat_i_area.rings_usable || !ring_half_full(ring))
            return;
        usleep(100);
    }
}

#endif
