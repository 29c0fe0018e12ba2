/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An entry of the log of tracepoints, as it is in the log buffer. */
#ifndef SEL4_BENCHMARK_TRACEPOINTS_TYPES_H
#define SEL4_BENCHMARK_TRACEPOINTS_TYPES_H

#include <sel4/sel4.h>

typedef struct benchmark_tracepoint_log_entry {
    seL4_Word id;
    seL4_Word duration; /* cycles */
} benchmark_tracepoint_log_entry_t;

#endif
