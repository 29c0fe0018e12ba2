// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Tracing of the kernel in the way programmers of Barrelfish, Composite and seL4 trace theirs: by the names
 * of their tracers (tracer/c/compat), in addition to its own events. Only with -DINTERFACES (`run MACHINE
 * interfaces`).
 */
#include <benchmark/benchmark.h>
#include <composite_trace.h>
#include <trace/trace.h>

#include "kernel.h"

/* Functions that compilers call in any freestanding program [C11 §4.6, GCC's manual]. */
void *memset(void *to, int value, size_t bytes);
void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memset(void *to, int value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((volatile uint8_t *)to)[i] = (uint8_t)value;
    return to;
}
void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    return to;
}

/* The tracer's port for the files of these interfaces. */
#undef port_clock
#undef port_core
#undef port_context
#undef port_process
uint64_t port_clock(void);
uint32_t port_core(void);
uint32_t port_context(void);
uint32_t port_process(void);
uint64_t port_clock(void)
{
    return cycles();
}
uint32_t port_core(void)
{
    return this_core()->number;
}
uint32_t port_context(void)
{
    return this_core()->context;
}
uint32_t port_process(void)
{
    return this_core()->process;
}
_Static_assert(CORES == 4u, "as lat_port.h has it");

void interface_begin(void)
{
    trace_init();
    for (uint32_t i = 0; i < application_count; i++)
        trace_new_application(applications[i].name, applications[i].pid);
    TRACE_INIT();
}

/* Barrelfish: a context switch; the application's number is used as its dispatcher control block. */
void interface_switch(uint32_t pid)
{
    TRACE(KERNEL, CSWITCH, pid);
}

/* Barrelfish: messages over UMP, with the channel in bits 12 to 55. */
void interface_message(int is_sent, uint32_t channel)
{
    trace_event_raw((is_sent ? UINT64_C(0xea) : UINT64_C(0xeb)) << 56 | ((uint64_t)channel + 1u) << 12);
}

/* Composite: a format and its arguments. */
void interface_lock(uint32_t tid, uint32_t mutex)
{
    unsigned long args[NARGS] = {tid, mutex};
    ENQUEUE_TRACE("thread %lu locks mutex %lu", 2, args);
}

/* seL4: cycles between two points of the kernel. */
void interface_interrupt(int begins, uint32_t which)
{
    if (begins)
        TRACE_POINT_START(which);
    else
        TRACE_POINT_STOP(which);
}
