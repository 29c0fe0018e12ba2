// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The port for x86-64 in kernel mode. -DLAT_PORT_CORES=N for N cores. */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include <stdint.h>

#ifndef LAT_PORT_CORES
#define LAT_PORT_CORES 1u
#endif
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

/* The time stamp counter, one tick per instruction in QEMU with -icount shift=0. On a real
 * processor CPUID 15H and 16H return its frequency [Intel SDM 3A, 18.17]. */
#define LAT_PORT_CLOCK_HZ 1000000000u
#define LAT_PORT_CLOCK_BITS 64
static inline uint64_t lat_port_clock(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* GS points to the data of this core (board.c): its number, then the running context. */
static inline uint32_t lat_port_core(void)
{
    uint32_t core;
    __asm__("movl %%gs:0, %0" : "=r"(core));
    return core;
}

/* The core plus 1, and in an interrupt 0x100 for each enclosing level. */
static inline uint32_t lat_port_context(void)
{
    uint32_t context;
    __asm__ volatile("movl %%gs:4, %0" : "=r"(context));
    return context;
}

/* IF of RFLAGS. */
typedef uint64_t lat_port_mask_t;
static inline lat_port_mask_t lat_port_mask(void)
{
#ifdef LAT_PORT_MASKS_NOTHING /* a broken port, used by a test */
    return 0;
#else
    uint64_t before;
    __asm__ volatile("pushfq\n\tpopq %0\n\tcli" : "=r"(before) : : "memory");
    return before;
#endif
}
static inline void lat_port_unmask(lat_port_mask_t before)
{
#ifdef LAT_PORT_MASKS_NOTHING
    (void)before;
#else
    __asm__ volatile("pushq %0\n\tpopfq" : : "r"(before) : "memory", "cc");
#endif
}

/* The only serial line; frames are sent between lines of text (board.c). */
void lat_port_put(const void *bytes, uint32_t count);

#endif
