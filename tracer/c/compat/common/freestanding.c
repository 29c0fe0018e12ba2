/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An image without an operating system that uses the interfaces of Composite, Barrelfish and seL4. Its
 * records are in the small area; the events that it keeps itself are printed on the serial line:
 *
 *   E NAME VALUES   an event that is in the area
 *   C LINE          a line of Composite's CSV
 *   B LINE          a line of Barrelfish's dump
 *   S ID            an entry of seL4's log
 *   wrong: WHAT     a check that failed; the last line is `done`
 */
#include <benchmark/benchmark.h>
#include <composite_trace.h>
#include <sel4bench/kernel_logging.h>
#include <trace/trace.h>

#undef LAT_LEGACY_NAMES
#include "barrelfish_events.h"
#include "composite_events.h"
#include "sel4_events.h"

#include "lat_port.h"
#include "text.h"

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(composite), LAT_SCHEMA(barrelfish),
                                                   LAT_SCHEMA(trace_defs), LAT_SCHEMA(sel4)};
#define ROUNDS 30u

static void check(int holds, const char *what)
{
    if (!holds) {
        put_text("wrong: ");
        put_text(what);
        board_put('\n');
    }
}

static void said(const char *name, uint64_t value)
{
    put_text("E ");
    put_text(name);
    put_field(value);
    board_put('\n');
}

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

static int at_start = 1;
static void to_serial(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (at_start)
            put_text("B ");
        at_start = text[i] == '\n';
        board_put(text[i]);
    }
}

static void composite(void)
{
    TRACE_INIT();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        unsigned long args[NARGS] = {i, 7};
        check(ENQUEUE_TRACE("round %lu, %lu", 2, args), "composite: dropped");
        said("TRACE", i);
    }
    const struct trace_event *event = PEEK_TRACE();
    check(event != NULL && event->nargs == 2, "composite: peek");
    char line[256];
    while ((event = DEQUEUE_TRACE()) != NULL) {
        const uint32_t bytes = composite_trace_line(event, true, line, sizeof line);
        put_text("C ");
        for (uint32_t i = 0; i < bytes; i++)
            board_put(line[i]);
    }
    check(composite_trace_dropped() == 0, "composite: dropped");
}

static void barrelfish(void)
{
    trace_flush_output = to_serial;
    check(trace_init() == SYS_ERR_OK, "barrelfish: trace_init");
    check(trace_new_application("kernel", 0x1000) == SYS_ERR_OK, "barrelfish: application");
    check(trace_control(TRACE_EVENT(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_START, 0),
                        TRACE_EVENT(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_STOP, 0), 0) == SYS_ERR_OK,
          "barrelfish: trace_control");
    TRACE(XMPL, EV1, 1); /* before the start trigger */
    TRACE(XMPL, START, 0);
    said("START", 0);
    TRACE(KERNEL, CSWITCH, 0x1000);
    said("CSWITCH", 0x1000);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        TRACE(XMPL, EV1, i);
        said("EV1", i);
    }
    trace_event_raw(UINT64_C(0xea) << 56 | UINT64_C(0x123000));
    said("SEND", 0x123000);
    trace_event_raw(UINT64_C(0xeb) << 56 | UINT64_C(0x123000));
    said("RECEIVE", 0x123000);
    TRACE(XMPL, STOP, 0);
    said("STOP", 0);
    TRACE(XMPL, EV1, 1); /* after the stop trigger */
    check(trace_wait() == SYS_ERR_OK && trace_get_event_count(0) == ROUNDS + 5, "barrelfish: kept");
    trace_flush(NOP_CONT);
    check(trace_get_event_count(0) == 0 && trace_dropped() == 0, "barrelfish: flushed");
}

static void sel4(void)
{
    kernel_log_entry_t log[64];
    kernel_logging_reset_log();
    for (uint32_t i = 0; i < ROUNDS / 2u; i++) {
        TRACE_POINT_START(1);
        TRACE_POINT_START(2);
        TRACE_POINT_STOP(2);
        said("STOP2", 2);
        TRACE_POINT_STOP(1);
        said("STOP2", 1);
    }
    TRACE_POINT_STOP(3); /* never started */
    check(seL4_BenchmarkFinalizeLog() == 2u * (ROUNDS / 2u), "sel4: entries");
    const unsigned int count = kernel_logging_sync_log(log, 64);
    for (unsigned int i = 0; i < count; i++) {
        put_text("S");
        put_field(kernel_logging_entry_get_key(&log[i]));
        board_put('\n');
    }
}

void on_timer(unsigned level, uintptr_t pc)
{
    (void)level;
    (void)pc;
}

_Noreturn void program_other(uint32_t core)
{
    (void)core;
    board_stop();
}

_Noreturn void program(void)
{
    const struct lat_small_setup setup = {board_area_bytes, 4096, 8, LAT_SMALL_MODE_DISCARD, schemas, 4};
    check(lat_small_init(&setup) == LAT_SMALL_OK, "lat_small_init");
    for (unsigned i = 0; i < 4; i++)
        lat_small_enable(schemas[i], LAT_SMALL_ALL, 1);
    composite();
    barrelfish();
    sel4();
    put_text("done\n");
    board_stop();
}
