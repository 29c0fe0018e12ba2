// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Tracy's nearest equivalents to the rows of bench/cost: messages and plots, which are one event
 * each, and zones, which are two. Tracy has no events with typed arguments.
 *
 *     tracy [--rounds N] [connected]     `connected`: waits for a receiver first
 */
#include "tracy/Tracy.hpp"

#include "../../harness/rows.h"

static const char text[] = "twenty characters ..";
LOOP_4(body_message, TracyMessageL("m"))
LOOP_4(body_text, TracyMessage(text, sizeof text - 1))
LOOP_4(body_plot, TracyPlot("p", (int64_t)i))
LOOP_4(body_zone, { ZoneScopedN("z"); BARRIER(); })
LOOP_4(body_zone_value, { ZoneScopedN("zv"); ZoneValue(i); BARRIER(); })
LOOP_16(body_off, { ZoneNamedN(zone, "z", false); BARRIER(); })

int main(int argc, char **argv)
{
    const int rest = rows_options(argc, argv);
    tracy::StartupProfiler();
#ifdef TRACY_ON_DEMAND
    const bool connected = rest < argc && strcmp(argv[rest], "connected") == 0;
    for (int i = 0; connected && i < 100 && !tracy::GetProfiler().IsConnected(); i++)
        usleep(100000);
    if (connected && !tracy::GetProfiler().IsConnected()) {
        fprintf(stderr, "tracy: nobody connected\n");
        return 2;
    }
#else
    (void)rest;
#endif
    rows_add_references();
    rows_add("disabled in the program (active=false)", body_off, 1000, 16);
    rows_add("message, literal", body_message, 100, 4);
    rows_add("string of 20", body_text, 100, 4);
    rows_add("1 u64 (plot)", body_plot, 100, 4);
    rows_add("zone (2 events)", body_zone, 50, 4);
    rows_add("zone with a value (3 events)", body_zone_value, 50, 4);
    const int failed = rows_run();
    /* Without Tracy's farewell: it waits for answers that only Tracy's own server gives. */
    _exit(failed);
}
