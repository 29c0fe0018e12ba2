// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The port for Cortex-M0 on the nRF51, one core. A Cortex-M0 has no exclusive accesses, so masking is
 * required; all its code is privileged. */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include <stdint.h>

#define LAT_PORT_CORES 1u
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

/* TIMER0, the only one with 32 bits, at 16 MHz: captured into CC[0], then read [nRF51 Series Reference
 * Manual, "TIMER"]. These are two accesses, so the tracer reads it with interrupts masked. */
#define LAT_PORT_CLOCK_BITS 32
#define LAT_PORT_CLOCK_HZ 16000000u
static inline uint32_t lat_port_clock(void)
{
    *(volatile uint32_t *)0x40008040u = 1;
    return *(volatile const uint32_t *)0x40008540u;
}

/* 0 in threads, else the exception number [ARMv6-M ARM, B1.4.2]. */
static inline uint32_t lat_port_context(void)
{
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    return exception;
}

typedef uint32_t lat_port_mask_t;
static inline lat_port_mask_t lat_port_mask(void)
{
#ifdef LAT_PORT_MASKS_NOTHING /* a broken port, used by a test */
    return 0;
#else
    uint32_t before;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before) : : "memory");
    return before;
#endif
}
static inline void lat_port_unmask(lat_port_mask_t before)
{
#ifdef LAT_PORT_MASKS_NOTHING
    (void)before;
#else
    __asm__ volatile("msr primask, %0" : : "r"(before) : "memory");
#endif
}

/* The only serial line; frames are sent between lines of text (board.c). */
void lat_port_put(const void *bytes, uint32_t count);

#endif
