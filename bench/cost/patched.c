// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Rows whose sites are patched instead of tested: this file is compiled with LAT_PATCHABLE. */
#include "cost.h"

#include "../harness/rows.h"

void body_off_patched(uint64_t i);
void body_4_patched(uint64_t i);

static volatile uint64_t unknown[3] = {1, 2, 3};

void NOINLINE body_off_patched(uint64_t i)
{
    do {
        TIMES_4(TIMES_4(lat_off_e4(i, i, i, i)));
        BARRIER();
    } while (--i != 0);
}

void NOINLINE body_4_patched(uint64_t i)
{
    const uint64_t a = unknown[0], b = unknown[1], c = unknown[2];
    do {
        TIMES_4(lat_cost_e4(i, a, b, c));
        BARRIER();
    } while (--i != 0);
}
