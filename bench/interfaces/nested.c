/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The cost of seL4's tracepoints, measured as on their documentation page: a pair inside a pair. The inner
 * duration is what the instrumentation adds to a measurement; the outer one less the inner one is what a pair
 * adds to the program.
 *
 *     nested
 *
 * Prints `outer,inner,clock` in ticks for each of 740 samples, where `clock` is the difference of two
 * successive readings of the counter.
 */
#include <benchmark/benchmark.h>
#include <sel4bench/kernel_logging.h>

#include "../harness/rows.h"

#define SAMPLES 740u
#define WARM 100u

static kernel_log_entry_t entries[KERNEL_MAX_NUM_LOG_ENTRIES];
static uint64_t clocks[SAMPLES + WARM];

int main(int argc, char **argv)
{
    rows_options(argc, argv);
    rows_pin(rows_cpu);
    kernel_logging_reset_log();
    for (unsigned i = 0; i < SAMPLES + WARM; i++) {
        TRACE_POINT_START(0);
        TRACE_POINT_START(1);
        TRACE_POINT_STOP(1);
        TRACE_POINT_STOP(0);
        const uint64_t begin = ticks();
        clocks[i] = ticks() - begin;
    }
    if (seL4_BenchmarkFinalizeLog() != 2 * (SAMPLES + WARM) ||
        kernel_logging_sync_log(entries, KERNEL_MAX_NUM_LOG_ENTRIES) != 2 * (SAMPLES + WARM)) {
        fprintf(stderr, "nested: entries are missing in the log\n");
        return 1;
    }
    for (unsigned i = WARM; i < SAMPLES + WARM; i++) {
        if (entries[2 * i].id != 1 || entries[2 * i + 1].id != 0)
            return 1;
        printf("%lu,%lu,%" PRIu64 "\n", entries[2 * i + 1].duration, entries[2 * i].duration, clocks[i]);
    }
    return 0;
}
