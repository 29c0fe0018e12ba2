/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Barrelfish's trace_event, enabled and disabled, one writer: figure 4.1 of Barrelfish Technical Note 8.
 *
 *     events [--rounds N] [--cpu N]
 *
 * The C file of this interface is included, so that a row can return to the state before trace_control was
 * called.
 */
#include <trace.c>

#include "../harness/rows.h"

static void recorded(void)
{
    control.state = NEVER_CONTROLLED;
}
/* Kept in the program as well: begins a run, and removes the events that the last one kept. */
static void recorded_and_kept(void)
{
    trace_reset_all();
    (void)trace_control(TRACE_EVENT(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_START, 0), 0, 0);
    (void)trace_event(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_START, 0);
}
static void disabled(void)
{
    (void)trace_set_subsys_enabled(TRACE_SUBSYS_KERNEL, false);
    recorded();
}

LOOP_4(body_event, (void)trace_event(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_EV1, (uint32_t)i))
LOOP_4(body_disabled, (void)trace_event(TRACE_SUBSYS_KERNEL, TRACE_EVENT_KERNEL_TIMER, (uint32_t)i))

static size_t count_kept(void)
{
    size_t count = 0;
    for (unsigned core = 0; core < 256; core++)
        count += trace_get_event_count((coreid_t)core);
    return count;
}
static uint64_t verify_kept(uint64_t events)
{
    body_event(events / 4);
    return count_kept() - 1; /* without the event of the start */
}
static uint64_t verify_disabled(uint64_t events)
{
    recorded_and_kept();
    body_disabled(events / 4);
    return count_kept() - 1;
}

int main(int argc, char **argv)
{
    rows_rounds = 1000;
    rows_options(argc, argv);
    (void)trace_init();
    rows_add("clock alone (rdtsc)", rows_body_clock, 16, 4);
    struct row *row = rows_add("enabled, recorded", body_event, 16, 4);
    row->before = recorded;
    row = rows_add("enabled, recorded and kept", body_event, 16, 4);
    row->before = recorded_and_kept;
    row->verify = verify_kept;
    row = rows_add("disabled", body_disabled, 16, 4);
    row->before = disabled;
    row->verify = verify_disabled;
    row->nothing_expected = 1;
    return rows_run();
}
