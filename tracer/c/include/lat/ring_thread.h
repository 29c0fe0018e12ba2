// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writing a record into the calling thread's own ring, in plain C
 * (spec/ring-abi.md §4, "per thread"): for programs compiled with LAT_RING_THREAD
 * and for machines without restartable sequences.
 *
 * `limit` also marks the thread as being inside a record: while it is LAT_LIMIT_BUSY, a signal
 * handler of this thread finds no room and takes the slow path, to a ring of
 * its nesting level. It is set before the cursor is read, so a handler either ran
 * completely before or uses another ring. Only this thread writes its ring: the marks need no
 * atomic instruction, only compiler barriers. A handler that opened a new packet
 * between the first two steps left a cursor beyond the old limit, so the check fails.
 *
 * The end is compared including its slack: a record that fits to the byte then takes the slow
 * path, which finds that it fits.
 */
#ifndef LAT_RING_THREAD_H
#define LAT_RING_THREAD_H

#include "clock.h"

#define LAT_I_COMPILER_BARRIER() __asm__ volatile("" ::: "memory")

#define LAT_I_NO_STORES (void)lat_i_data;
#define LAT_I_STORE_R(n, offset) lat_i_data[1 + n] = w##n;
#define LAT_I_STORE_M(n, offset) LAT_I_STORE_R(n, offset)
#define LAT_I_WORD_R(n)
#define LAT_I_WORD_M(n)
#define LAT_I_STORE_P(n, offset) LAT_I_STORE_R(n, offset)
#define LAT_I_WORD_P(n)
#define LAT_I_WORDS_P

/* The clock is read as soon as the ring is reserved, before the room check: on x86-64 later
 * instructions overlap with the read, earlier ones do not (bench/METHODOLOGY.md). */
#if defined(__x86_64__)
struct lat_i_stamp {
    uint32_t low, high;
};
static LAT_INLINE struct lat_i_stamp lat_i_stamp_now(void)
{
    struct lat_i_stamp stamp;
    __asm__ volatile("rdtsc" : "=a"(stamp.low), "=d"(stamp.high));
    return stamp;
}
static LAT_INLINE void lat_i_store_header(uint64_t *place, uint32_t id, struct lat_i_stamp stamp)
{
    /* Three stores instead of shift, or, shift, or: see ring_cpu_x86_64.h. */
    __asm__ volatile("movw %w[id], (%[place])\n"
                     "movl %[low], 2(%[place])\n"
                     "movw %w[high], 6(%[place])\n"
                     :
                     : [id] "r"(id), [place] "r"(place), [low] "a"(stamp.low),
                       [high] "d"(stamp.high)
                     : "memory");
}
#else
struct lat_i_stamp {
    uint64_t ticks;
};
static LAT_INLINE struct lat_i_stamp lat_i_stamp_now(void)
{
    const struct lat_i_stamp stamp = {lat_i_clock()};
    return stamp;
}
static LAT_INLINE void lat_i_store_header(uint64_t *place, uint32_t id, struct lat_i_stamp stamp)
{
    *place = LAT_I_RECORD_HEADER((uint64_t)id, stamp.ticks);
}
#endif

#define LAT_I_RESERVE_STORE_COMMIT(size, stores, words)                                        \
    struct lat_ring *ring = lat_i_thread.ring;                                                 \
    const uint64_t limit = __atomic_load_n(&ring->limit, __ATOMIC_RELAXED);                    \
    __atomic_store_n(&ring->limit, LAT_LIMIT_BUSY, __ATOMIC_RELAXED);                          \
    LAT_I_COMPILER_BARRIER();                                                                  \
    const uint64_t start =                                                                     \
        __atomic_load_n(&ring->cursor, __ATOMIC_RELAXED) & ~LAT_CURSOR_SLACK_MASK;             \
    const uint64_t end = start + LAT_I_SIZE(size) + slack;                                     \
    const struct lat_i_stamp stamp = lat_i_stamp_now();                                        \
    if (LAT_I_LIKELY(end <= limit)) {                                                          \
        uint64_t *lat_i_data = (uint64_t *)(lat_i_thread.base + (uintptr_t)start);             \
        lat_i_store_header(lat_i_data, id, stamp);                                             \
        stores                                                                                 \
        __atomic_store_n(&ring->cursor, end, __ATOMIC_RELEASE); /* pair W1 */                  \
        LAT_I_COMPILER_BARRIER();                                                              \
        __atomic_store_n(&ring->limit, limit, __ATOMIC_RELAXED);                               \
        return 1;                                                                              \
    }                                                                                          \
    __atomic_store_n(&ring->limit, limit, __ATOMIC_RELAXED);
#define LAT_I_RESERVE_STORE_COMMIT_ANY LAT_I_RESERVE_STORE_COMMIT

#endif
