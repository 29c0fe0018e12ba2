// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The clock of records: the CPU's own counter, read without a fence. A fence
 * or rdtscp would cost more than the rest of an event (18 cycles). The drawback: a processor may
 * read the counter early, while preceding instructions are still in flight. Of two events in different
 * threads
 * less than about a microsecond apart, either may have the earlier time stamp (tracer/preload/test saw 810
 * ticks on an AMD EPYC, between a lock's release and its next holder). */
#ifndef LAT_CLOCK_H
#define LAT_CLOCK_H

#include <stdint.h>

#if !(defined(__x86_64__) || defined(__aarch64__))
#include <time.h>
#endif

static LAT_INLINE uint64_t lat_i_clock(void)
{
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/** Orders later reads of the clock after all earlier loads. x86: no instruction after LFENCE begins before
 * all earlier ones have completed [Intel SDM vol. 2, LFENCE; RDTSC]; AArch64: ISB
 * [Arm ARM D12.1, reads of CNTVCT_EL0]. clock_gettime orders itself. */
static LAT_INLINE void lat_i_clock_fence(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LAT_I_RECORD_HEADER(id, ticks) ((uint64_t)(ticks) << 16 | (id))
#else
#define LAT_I_RECORD_HEADER(id, ticks) ((uint64_t)(id) << 48 | ((uint64_t)(ticks) & 0xffffffffffffu))
#endif

#endif
