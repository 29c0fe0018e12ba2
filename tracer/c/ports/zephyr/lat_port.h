// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The port for Zephyr, any architecture, one or several CPUs. */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include <zephyr/kernel.h>

#ifdef CONFIG_SMP
#define LAT_PORT_CORES CONFIG_MP_MAX_NUM_CPUS
#else
#define LAT_PORT_CORES 1
#endif
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

/* The kernel's cycle counter; its 32 bits wrap, and the tick interrupt keeps count of the wraps. */
#define LAT_PORT_CLOCK_HZ CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC
#ifdef CONFIG_TIMER_HAS_64BIT_CYCLE_COUNTER
#define LAT_PORT_CLOCK_BITS 64
static inline uint64_t lat_port_clock(void)
{
    return k_cycle_get_64();
}
#else
#define LAT_PORT_CLOCK_BITS 32
static inline uint32_t lat_port_clock(void)
{
    return k_cycle_get_32();
}
#endif

static inline uint32_t lat_port_core(void)
{
#ifdef CONFIG_SMP
    return arch_curr_cpu()->id;
#else
    return 0;
#endif
}

/* lateralis_zephyr.c */
uint32_t lat_zephyr_context(void);
static inline uint32_t lat_port_context(void)
{
    return lat_zephyr_context();
}

/* This CPU only; irq_lock() of an SMP kernel would wait for the others. */
typedef unsigned int lat_port_mask_t;
static inline lat_port_mask_t lat_port_mask(void)
{
    const lat_port_mask_t before = arch_irq_lock();
    __asm__ volatile("" : : : "memory");
    return before;
}
static inline void lat_port_unmask(lat_port_mask_t before)
{
    __asm__ volatile("" : : : "memory");
    arch_irq_unlock(before);
}

/* Defined by the application if it sends packets by small/serial.c. */
void lat_port_put(const void *bytes, uint32_t count);

#endif
