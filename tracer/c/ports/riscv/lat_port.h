// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The port for RISC-V, 32 and 64 bits, in machine mode. -DLAT_PORT_CORES=N for N harts. */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include <stdint.h>

#ifndef LAT_PORT_CORES
#define LAT_PORT_CORES 1u
#endif
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

/* The time CSR: one counter for all harts, 10 MHz in QEMU's virt [Unprivileged ISA, Zicntr]. With 32
 * bits, its low half: the tracer handles the wraps. */
#define LAT_PORT_CLOCK_HZ 10000000u
#define LAT_PORT_CLOCK_BITS __riscv_xlen
#if __riscv_xlen == 64
typedef uint64_t lat_port_clock_t;
#else
typedef uint32_t lat_port_clock_t;
#endif
static inline lat_port_clock_t lat_port_clock(void)
{
    lat_port_clock_t now;
    __asm__ volatile("rdtime %0" : "=r"(now));
    return now;
}

/* Harts are numbered from 0 without a gap in QEMU's virt. */
static inline uint32_t lat_port_core(void)
{
    unsigned long hart;
    __asm__("csrr %0, mhartid" : "=r"(hart));
    return (uint32_t)hart;
}

#ifdef LAT_RTOS
#include <lat/rtos_context.h>
static inline uint32_t lat_port_context(void)
{
    return lat_rtos_context();
}
#else
/* mscratch holds the number: the hart plus 1, and in an interrupt 0x100 for each enclosing level.
 * Trap entries maintain it (board.c). */
static inline uint32_t lat_port_context(void)
{
    unsigned long context;
    __asm__ volatile("csrr %0, mscratch" : "=r"(context));
    return (uint32_t)context;
}
#endif

/* MIE of mstatus [Privileged ISA, 3.1.6.1]. */
typedef unsigned long lat_port_mask_t;
static inline lat_port_mask_t lat_port_mask(void)
{
#ifdef LAT_PORT_MASKS_NOTHING /* a broken port, used by a test */
    return 0;
#else
    unsigned long before;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(before) : : "memory");
    return before & 8ul;
#endif
}
static inline void lat_port_unmask(lat_port_mask_t before)
{
#ifdef LAT_PORT_MASKS_NOTHING
    (void)before;
#else
    __asm__ volatile("csrs mstatus, %0" : : "r"(before) : "memory");
#endif
}

/* On the only serial line, between lines of text (board.c). */
void lat_port_put(const void *bytes, uint32_t count);

#endif
