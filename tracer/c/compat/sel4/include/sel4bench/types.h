/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef SEL4BENCH_TYPES_H
#define SEL4BENCH_TYPES_H

#include <sel4/sel4.h>

typedef seL4_Word counter_t;
typedef seL4_Word counter_bitfield_t; /* a bit for each counter */
typedef seL4_Word event_id_t;
typedef uint64_t ccnt_t;

#endif
