// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The rows of bench/cost, written by LTTng-UST. The run script creates the sessions.
 *
 *     lttng [--rounds N]       measures
 *     lttng count N            writes N events of each kind, for the run script to count
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "events.h"

#include "../../harness/rows.h"

#define trace(...) lttng_ust_tracepoint(cost, __VA_ARGS__)
static const char text[] = "twenty characters ..";

LOOP_4(body_0, trace(e0))
LOOP_4(body_1, trace(e1, i))
LOOP_4(body_4, trace(e4, i, 1, 2, 3))
LOOP_4(body_8, trace(e8, i, 1, 2, 3, 4, 5, 6, 7))
LOOP_4(body_u32, trace(barrelfish, (uint32_t)i))
LOOP_4(body_text, trace(text, text))
LOOP_16(body_off, trace(off))

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "count") == 0) {
        const uint64_t events = strtoull(argv[2], NULL, 10);
        void (*const bodies[])(uint64_t) = {body_0, body_1, body_4, body_8, body_u32, body_text};
        for (unsigned b = 0; b < sizeof bodies / sizeof *bodies; b++)
            bodies[b](events / 4);
        return 0;
    }
    rows_options(argc, argv);
    rows_add_references();
    rows_add("disabled", body_off, 1000, 16);
    rows_add("0 u64", body_0, 100, 4);
    rows_add("1 u64", body_1, 100, 4);
    rows_add("4 u64", body_4, 100, 4);
    rows_add("8 u64", body_8, 100, 4);
    rows_add("u32 (Barrelfish)", body_u32, 100, 4);
    rows_add("string of 20", body_text, 100, 4);
    return rows_run();
}
