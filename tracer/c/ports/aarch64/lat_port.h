// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The port for AArch64 at EL1. -DLAT_PORT_CORES=N for N cores. */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include <stdint.h>

#ifndef LAT_PORT_CORES
#define LAT_PORT_CORES 1u
#endif
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

/* The virtual counter, one for all cores [Arm ARM, D12.1]; CNTFRQ_EL0 is 62.5 MHz in QEMU. Read
 * without a barrier: the core may read it early, while preceding instructions are in flight. */
#define LAT_PORT_CLOCK_BITS 64
#define LAT_PORT_CLOCK_HZ 62500000u
static inline uint64_t lat_port_clock(void)
{
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
}

/* Aff0 of MPIDR_EL1: cores of QEMU's virt are numbered without a gap. */
static inline uint32_t lat_port_core(void)
{
    uint64_t affinity;
    __asm__("mrs %0, mpidr_el1" : "=r"(affinity));
    return (uint32_t)(affinity & 0xffu);
}

/* TPIDR_EL1 holds the number: the core plus 1, in an interrupt 0x100 more (board.c). A kernel stores the
 * identity of its running thread there. */
static inline uint32_t lat_port_context(void)
{
    uint64_t context;
    __asm__ volatile("mrs %0, tpidr_el1" : "=r"(context));
    return (uint32_t)context;
}

/* The mask of IRQ in DAIF [Arm ARM, C5.2.2]. */
typedef uint64_t lat_port_mask_t;
static inline lat_port_mask_t lat_port_mask(void)
{
#ifdef LAT_PORT_MASKS_NOTHING /* a broken port, used by a test */
    return 0;
#else
    uint64_t before;
    __asm__ volatile("mrs %0, daif\n\tmsr daifset, #2" : "=r"(before) : : "memory");
    return before;
#endif
}
static inline void lat_port_unmask(lat_port_mask_t before)
{
#ifdef LAT_PORT_MASKS_NOTHING
    (void)before;
#else
    __asm__ volatile("msr daif, %0" : : "r"(before) : "memory");
#endif
}

/* The only serial line; frames are sent between lines of text (board.c). */
void lat_port_put(const void *bytes, uint32_t count);

#endif
