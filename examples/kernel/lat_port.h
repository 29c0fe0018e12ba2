// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The tracer's port for this kernel: 4 cores in machine mode; the kernel knows what runs on each. */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#ifdef PORT_BY_CALLS
/* For files whose own names conflict with those of the kernel: tracer/c/compat. */
#include <stdint.h>
#define LAT_PORT_CORES 4u
uint64_t port_clock(void);
uint32_t port_core(void);
uint32_t port_context(void);
uint32_t port_process(void);
#else
#include "kernel.h"
#define LAT_PORT_CORES CORES
#define port_clock() cycles()
#define port_core() (this_core()->number)
#define port_context() (this_core()->context)
#define port_process() (this_core()->process)
#endif
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

/* The cycle counter of each core; with -icount shift=0 QEMU counts one instruction per nanosecond. */
#define LAT_PORT_CLOCK_HZ 1000000000u
#define LAT_PORT_CLOCK_BITS 64
static inline uint64_t lat_port_clock(void)
{
    return port_clock();
}

static inline uint32_t lat_port_core(void)
{
    return port_core();
}

/* A thread of an application, or an idle core (kernel.c: switch_to). */
static inline uint32_t lat_port_context(void)
{
    return port_context();
}

/* The application of the thread. */
#define LAT_PORT_PROCESSES
static inline uint32_t lat_port_process(void)
{
    return port_process();
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
