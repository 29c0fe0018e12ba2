/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Measures the cost of a tracepoint on this machine: two nested pairs with nothing in between, as in the
 * manual of seL4's tracepoints. `run` in this directory does everything.
 *
 *     cost [SAMPLES]
 *
 * Points 0 and 1 are measured. Points 2 and 3 are the same code while caches are cold. Point 4 is some
 * computation with two empty pairs inside: its duration less the cost of these pairs is that of the
 * computation.
 */
#include "cost.h"

#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 64, SAMPLES = 740, SAMPLES_MAX = 1000000 };

static void empty_pairs(uint32_t outer, uint32_t inner, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        lat_cost_start(outer);
        lat_cost_start(inner);
        lat_cost_stop(inner);
        lat_cost_stop(outer);
    }
}

/* Computation which compilers cannot remove. */
static uint32_t work(uint32_t state)
{
    for (int step = 0; step < 100; step++) {
        state = state * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(state));
    }
    return state;
}

int main(int argc, char **argv)
{
    const unsigned long samples = argc > 1 ? strtoul(argv[1], NULL, 10) : SAMPLES;
    if (argc > 2 || samples == 0 || samples > SAMPLES_MAX) {
        fprintf(stderr, "usage: %s [SAMPLES], from 1 to %d\n", argv[0], SAMPLES_MAX);
        return 2;
    }
    empty_pairs(2, 3, WARM_UP);
    empty_pairs(0, 1, (uint32_t)samples);
    uint32_t state = 1;
    for (unsigned long n = 0; n < samples; n++) {
        lat_cost_start(4);
        state = work(state);
        lat_cost_start(5);
        lat_cost_stop(5);
        lat_cost_start(5);
        lat_cost_stop(5);
        lat_cost_stop(4);
    }
    return 0;
}
