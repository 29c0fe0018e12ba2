// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The port for FreeRTOS's POSIX port: tasks are threads of a process, of which one runs at a time, and
 * interrupts are signals. So the process is a machine with one core, and the area is memory of the
 * process. liblateralis would record the threads instead, on the host CPUs that they ran on.
 */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include <lat/rtos_context.h>

#define LAT_PORT_CORES 1u
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

#define LAT_PORT_CLOCK_BITS 64
#define LAT_PORT_CLOCK_HZ 1000000000u
static inline uint64_t lat_port_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint32_t lat_port_context(void)
{
    return lat_rtos_context();
}

/* A tick inside a record would switch to another thread, whose records would be lost. */
typedef sigset_t lat_port_mask_t;
static inline lat_port_mask_t lat_port_mask(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    return before;
}
static inline void lat_port_unmask(lat_port_mask_t before)
{
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

#endif
