// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The record paths of per-CPU rings, one function each. The listings in this folder hold their machine
 * code; limits.tsv holds the number of instructions of each event, which must not grow. */
#include "../test/support/tests.h"

void probe_empty(void);
void probe_u32(uint32_t value);
void probe_one(uint64_t value);
void probe_four(uint64_t a, uint64_t b, uint64_t c, uint64_t d);
void probe_eight(const uint64_t *v);
int probe_enabled(void);

void probe_empty(void)
{
    lat_t_empty();
}
void probe_u32(uint32_t value)
{
    lat_other_first(value);
}
void probe_one(uint64_t value)
{
    lat_t_one(value);
}
void probe_four(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    lat_t_four(a, b, c, d);
}
void probe_eight(const uint64_t *v)
{
    lat_t_eight(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}
int probe_enabled(void)
{
    return lat_t_one_enabled();
}
