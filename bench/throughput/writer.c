// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writes events at a steady rate, to measure whether the recorder keeps up.
 *
 *     writer EVENTS_PER_SECOND SECONDS    0: at the highest rate possible
 *
 * Every 100 us it writes the events that are due, including late ones. Prints one line:
 * events written, duration in seconds, bytes of each record.
 */
#include "cost.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STEP_NS 100000u
#define RECORD_BYTES 40u

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t when_ns)
{
    const struct timespec when = {(time_t)(when_ns / 1000000000u), (long)(when_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: writer EVENTS_PER_SECOND SECONDS\n");
        return 2;
    }
    const uint64_t rate = strtoull(argv[1], NULL, 10);
    const uint64_t length_ns = (uint64_t)(strtod(argv[2], NULL) * 1e9);
    const uint64_t begin = now_ns();
    uint64_t written = 0, now = begin, step = begin;
    while (now - begin < length_ns) {
        uint64_t due = written + 4096;
        if (rate != 0)
            due = (uint64_t)((double)(now - begin) * 1e-9 * (double)rate);
        for (; written < due; written++)
            lat_cost_e4(written, 1, 2, 3);
        if (rate != 0) {
            step += STEP_NS;
            sleep_until(step);
        }
        now = now_ns();
    }
    printf("%" PRIu64 " %.6f %u\n", written, (double)(now_ns() - begin) * 1e-9, RECORD_BYTES);
    return 0;
}
