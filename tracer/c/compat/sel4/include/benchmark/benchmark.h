/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * seL4's tracepoints: cycles between two points of a program.
 *
 *     TRACE_POINT_START(0);
 *     f();
 *     TRACE_POINT_STOP(0);
 *
 * Each pair is stored in the log (<sel4bench/kernel_logging.h>) as in seL4, and as a span for `lat record`,
 * which adds what the log lacks: time, CPU and thread. Cycles are counted inside of the cost of recording:
 * the counter is read last in START and first in STOP.
 *
 * A STOP logs only if the calling thread has had a START since its last STOP of this number. Unlike in seL4,
 * the state of a number is per thread, so threads do not disturb each other. A repeated START restarts the
 * measurement. Pairs of different numbers may nest and interleave.
 *
 * Compile sel4.c with the program, and link the tracer. Context: any thread, any signal handler or interrupt.
 * Numbers from CONFIG_MAX_NUM_TRACE_POINTS on do nothing.
 */
#ifndef BENCHMARK_BENCHMARK_H
#define BENCHMARK_BENCHMARK_H

#include <lat/lat.h>

#ifdef LAT_SMALL
#include "lat_port.h"
#else
#include <lat/clock.h>
#endif

/** Must be the same in all files of a program, sel4.c included. */
#ifndef CONFIG_MAX_NUM_TRACE_POINTS
#define CONFIG_MAX_NUM_TRACE_POINTS 64
#endif

LAT_I_C_BEGIN

struct sel4_trace_point {
    uint64_t started_at; /* lower half only with a clock of 32 bits */
    uint8_t is_started;
};
#ifdef LAT_SMALL
extern struct sel4_trace_point sel4_trace_points[LAT_PORT_CORES][CONFIG_MAX_NUM_TRACE_POINTS];
#else
extern __thread struct sel4_trace_point sel4_trace_points[CONFIG_MAX_NUM_TRACE_POINTS];
#endif
void sel4_record_start(uint32_t id);
void sel4_record_stop(uint32_t id, uint64_t cycles);
int sel4_is_recorded(void);

#ifdef LAT_SMALL
#if LAT_PORT_CORES == 1
#define SEL4_TRACE_POINT(id) (&sel4_trace_points[0][id])
#else
#define SEL4_TRACE_POINT(id) (&sel4_trace_points[lat_port_core()][id])
#endif
#define SEL4_CLOCK() lat_port_clock()
#if LAT_PORT_CLOCK_BITS == 32
#define SEL4_CYCLES(from, to) ((uint32_t)((to) - (from)))
#endif
#else
#define SEL4_TRACE_POINT(id) (&sel4_trace_points[id])
#define SEL4_CLOCK() lat_i_clock()
#endif
#ifndef SEL4_CYCLES
#define SEL4_CYCLES(from, to) ((to) - (from))
#endif

static inline void sel4_trace_point_start(uint32_t id)
{
    if (id >= CONFIG_MAX_NUM_TRACE_POINTS)
        return;
    struct sel4_trace_point *const point = SEL4_TRACE_POINT(id);
    sel4_record_start(id);
    point->is_started = 1;
    *(volatile uint64_t *)&point->started_at = SEL4_CLOCK();
}

static inline void sel4_trace_point_stop(uint32_t id)
{
    const uint64_t now = SEL4_CLOCK();
    if (id >= CONFIG_MAX_NUM_TRACE_POINTS)
        return;
    struct sel4_trace_point *const point = SEL4_TRACE_POINT(id);
    if (!point->is_started)
        return;
    point->is_started = 0;
    sel4_record_stop(id, SEL4_CYCLES(*(volatile uint64_t *)&point->started_at, now));
}

LAT_I_C_END

#define TRACE_POINT_START(id) sel4_trace_point_start(id)
#define TRACE_POINT_STOP(id) sel4_trace_point_stop(id)

#endif
