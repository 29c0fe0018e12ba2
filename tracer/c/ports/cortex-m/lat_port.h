// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The port for Cortex-M3 and later on the MPS2 boards, one core. Thread code must be privileged:
 * otherwise CPSID has no effect [ARMv7-M ARM, B5.2.1], and interrupts inside a record are counted
 * in lost_nested.
 */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include <stdint.h>

#define LAT_PORT_CORES 1u
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

/* FPGAIO COUNTER: counts up and wraps, 25 MHz on AN385, 20 MHz on AN505 (its secure alias); a
 * SysTick would count down and have 24 bits. */
#define LAT_PORT_CLOCK_BITS 32
#ifdef BOARD_AN505
#define LAT_PORT_CLOCK_HZ 20000000u
#define LAT_PORT_CLOCK_ADDRESS 0x50302018u
#else
#define LAT_PORT_CLOCK_HZ 25000000u
#define LAT_PORT_CLOCK_ADDRESS 0x40028018u
#endif
static inline uint32_t lat_port_clock(void)
{
    return *(volatile const uint32_t *)LAT_PORT_CLOCK_ADDRESS;
}

#ifdef LAT_RTOS
#include <lat/rtos_context.h>
static inline uint32_t lat_port_context(void)
{
    return lat_rtos_context();
}
#else
/* 0 in threads, else the exception number [ARMv7-M ARM, B1.4.2]. */
static inline uint32_t lat_port_context(void)
{
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    return exception;
}
#endif

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

/* The second serial line (board.c). */
void lat_port_put(const void *bytes, uint32_t count);

#endif
