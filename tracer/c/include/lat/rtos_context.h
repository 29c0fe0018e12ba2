// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The task or interrupt that runs under an RTOS, for the lat_port_context of a port:
 * `return lat_rtos_context();`. The numbers are those of freertos.pleco and rtos.pleco.
 */
#ifndef LAT_RTOS_CONTEXT_H
#define LAT_RTOS_CONTEXT_H

#include <stdint.h>

/* The code before the scheduler starts: the name of this thread is the name of the program. */
#define LAT_RTOS_MAIN 1u
/* Interrupt n is recorded as thread LAT_RTOS_INTERRUPTS + n. */
#define LAT_RTOS_INTERRUPTS 0x10000u
/* Maximum nesting of interrupts. Deeper ones are not recorded. */
#define LAT_RTOS_NESTING 8u

struct lat_i_rtos {
    uint32_t task;       /* thread that runs */
    uint32_t idle;       /* thread of the idle task; 0 before it is created */
    const void *leaving; /* FreeRTOS: control block of the task that ran before the kernel's choice */
    uint32_t state;      /* state of the running task after it leaves, if known; else 0 */
    uint16_t depth;      /* interrupts that have begun and not ended; every interrupt restores it */
    uint16_t irqs[LAT_RTOS_NESTING];
};
/* Defined by lat/freertos.h in the kernel's files, or by rtos_trace.c. */
extern struct lat_i_rtos lat_i_rtos;

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
/** The active exception, 0 in a thread [ARMv7-M ARM, B1.4.2]. */
static inline uint32_t lat_i_rtos_exception(void)
{
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    return exception;
}
#endif

static inline uint32_t lat_rtos_context(void)
{
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    /* SVCall (11) and PendSV (14) are the kernel's own, on behalf of the task. */
    const uint32_t exception = lat_i_rtos_exception();
    return exception < 15u ? lat_i_rtos.task : LAT_RTOS_INTERRUPTS + exception;
#else
    const uint32_t depth = *(volatile uint16_t *)&lat_i_rtos.depth;
    return depth == 0 ? lat_i_rtos.task
                      : LAT_RTOS_INTERRUPTS + lat_i_rtos.irqs[depth - 1u];
#endif
}

/* The level of an active interrupt, from 1; 0 if it is not active. An interrupt does not interrupt itself:
 * if it begins while it is listed, it and those inside it have ended without an exit event. */
static inline uint32_t lat_i_rtos_level(uint32_t irq)
{
    uint32_t level = lat_i_rtos.depth;
    while (level != 0 && lat_i_rtos.irqs[level - 1u] != irq)
        level--;
    return level;
}

static inline void lat_i_rtos_set_depth(uint32_t depth)
{
    *(volatile uint16_t *)&lat_i_rtos.depth = (uint16_t)depth;
}

/* An interrupt begins; returns 0 if too many are nested. */
static inline int lat_i_rtos_enter(uint32_t irq)
{
    const uint32_t before = lat_i_rtos_level(irq);
    const uint32_t level = before == 0 ? lat_i_rtos.depth : before - 1u;
    if (level >= LAT_RTOS_NESTING)
        return 0;
    lat_i_rtos.irqs[level] = (uint16_t)irq;
    lat_i_rtos_set_depth(level + 1u);
    return 1;
}

#endif
