// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Who runs under FreeRTOS, for the lat_port_context of a port: `return lat_freertos_context();`.
 * The numbers are those of freertos.pleco.
 */
#ifndef LAT_FREERTOS_CONTEXT_H
#define LAT_FREERTOS_CONTEXT_H

#include <stdint.h>

/* The code before the scheduler starts: the name of this thread is the name of the program. A task is the
 * thread uxTCBNumber + 1; the kernel counts the tasks that it creates, from 1. */
#define LAT_FREERTOS_MAIN 1u
/* Interrupt n is the thread n + this. */
#define LAT_FREERTOS_INTERRUPTS 0x10000u
/* Interrupts that nest. More are not recorded. */
#define LAT_FREERTOS_NESTING 8u

struct lat_i_freertos {
    uint32_t task;       /* thread that has the processor */
    uint32_t idle;       /* thread of the idle task; 0 before it is created */
    const void *leaving; /* control block of the task that had it when the kernel looked for the next */
    uint32_t state;      /* what the running task asked for: to be suspended, deleted; else 0 */
    uint16_t depth;      /* interrupts that have begun and not ended; an interrupt leaves it as it was */
    uint16_t irqs[LAT_FREERTOS_NESTING];
};
/* Defined by lat/freertos.h in the kernel's files. */
extern struct lat_i_freertos lat_i_freertos;

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
/** The exception that is handled, 0 in a thread [ARMv7-M ARM, B1.4.2]. */
static inline uint32_t lat_i_freertos_exception(void)
{
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    return exception;
}
#endif

static inline uint32_t lat_freertos_context(void)
{
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    /* SVCall (11) and PendSV (14) are the kernel's own, on behalf of the task. */
    const uint32_t exception = lat_i_freertos_exception();
    return exception < 15u ? lat_i_freertos.task : LAT_FREERTOS_INTERRUPTS + exception;
#else
    const uint32_t depth = *(volatile uint16_t *)&lat_i_freertos.depth;
    return depth == 0 ? lat_i_freertos.task
                      : LAT_FREERTOS_INTERRUPTS + lat_i_freertos.irqs[depth - 1u];
#endif
}

#endif
