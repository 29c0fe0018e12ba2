// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The tracer's port for this kernel: 4 cores in machine mode, which know who runs. */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include "kernel.h"

#define LAT_PORT_CORES CORES
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

/* The cycle counter of each core; QEMU counts one instruction a nanosecond with -icount shift=0. */
#define LAT_PORT_CLOCK_HZ 1000000000u
#define LAT_PORT_CLOCK_BITS 64
static inline uint64_t lat_port_clock(void)
{
    return cycles();
}

static inline uint32_t lat_port_core(void)
{
    return this_core()->number;
}

/* A thread of an application, or a core that has none (kernel.c: switch_to). */
static inline uint32_t lat_port_context(void)
{
    return this_core()->context;
}

/* Whose thread it is. */
#define LAT_PORT_PROCESSES
static inline uint32_t lat_port_process(void)
{
    return this_core()->process;
}

/* The kernel is never interrupted: only applications and idle cores are. */
typedef int lat_port_mask_t;
static inline lat_port_mask_t lat_port_mask(void)
{
    __asm__ volatile("" : : : "memory");
    return 0;
}
static inline void lat_port_unmask(lat_port_mask_t before)
{
    (void)before;
    __asm__ volatile("" : : : "memory");
}

#endif
