// SPDX-License-Identifier: Apache-2.0 OR MIT
/* LTTng-UST's description of the event of rate.pleco. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER rate
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./events.h"

#if !defined(BENCH_RATE_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_RATE_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#define WORD(name) lttng_ust_field_integer(uint64_t, name, name)

LTTNG_UST_TRACEPOINT_EVENT(rate, words,
                           LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d),
                           LTTNG_UST_TP_FIELDS(WORD(a) WORD(b) WORD(c) WORD(d)))

#endif

#include <lttng/tracepoint-event.h>
