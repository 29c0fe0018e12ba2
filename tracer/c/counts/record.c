// SPDX-License-Identifier: Apache-2.0 OR MIT
/* `record CASE REPEATS`: records an event many times, into per-thread rings in plain C, or into per-CPU rings
 * with -DRECORD_PER_CPU. `record all REPEATS`: all cases in turn. `record list` prints them. Instruction
 * counters run it twice and divide the difference. There are no strings: the time of strlen depends on the
 * C library and the processor. */
#define _GNU_SOURCE
#ifndef RECORD_PER_CPU
#define LAT_RING_THREAD
#endif
#include "../test/support/tests.h"

#include <lat/log.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs before the constructor that makes the area, so that events are recorded, into rings that never
 * fill. */
static __attribute__((constructor(101))) void ask_for_rings(void)
{
    setenv("LATERALIS_RECORD", "session=1;buffer=65536;packet=16384;mode=overwrite;enable=*,!other", 1);
}

static void none(uint64_t i) { (void)i; }
static void disabled(uint64_t i) { lat_other_first((uint32_t)i); }
static void empty(uint64_t i) { (void)i; lat_t_empty(); }
static void small(uint64_t i) { lat_t_small((uint8_t)i, (uint16_t)i); }
static void one(uint64_t i) { lat_t_one(i); }
static void four(uint64_t i) { lat_t_four(i, i, i, i); }
static void eight(uint64_t i) { lat_t_eight(i, i, i, i, i, i, i, i); }
static void sixteen(uint64_t i)
{
    lat_t_sixteen(i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i);
}
static void bytes(uint64_t i) { lat_t_blob(&i, 8); }
static void log_two(uint64_t i) { LAT_LOG("took %u us of %u", (unsigned)i, 7u); }

static const struct {
    const char *name;
    void (*event)(uint64_t);
} cases[] = {
    {"none", none}, {"disabled", disabled}, {"empty", empty}, {"small", small}, {"one", one},
    {"four", four}, {"eight", eight}, {"sixteen", sixteen}, {"bytes", bytes},
    {"log", log_two},
};

int main(int count, char **arguments)
{
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        if (count > 1 && strcmp(arguments[1], "list") == 0)
            printf("%s\n", cases[c].name);
        const int is_all = count > 2 && strcmp(arguments[1], "all") == 0;
        if (count < 3 || (!is_all && strcmp(arguments[1], cases[c].name) != 0))
            continue;
        const uint64_t repeats = strtoull(arguments[2], NULL, 10);
        for (uint64_t i = 0; i < repeats; i++)
            cases[c].event(i);
    }
    return 0;
}
