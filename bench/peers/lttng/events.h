// SPDX-License-Identifier: Apache-2.0 OR MIT
/* LTTng-UST's description of the events that are measured. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER cost
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./events.h"

#if !defined(BENCH_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#define WORD(name) lttng_ust_field_integer(uint64_t, name, name)

LTTNG_UST_TRACEPOINT_EVENT(cost, e0, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(cost, off, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(cost, e1, LTTNG_UST_TP_ARGS(uint64_t, a), LTTNG_UST_TP_FIELDS(WORD(a)))
LTTNG_UST_TRACEPOINT_EVENT(cost, e4,
                           LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d),
                           LTTNG_UST_TP_FIELDS(WORD(a) WORD(b) WORD(c) WORD(d)))
LTTNG_UST_TRACEPOINT_EVENT(cost, e8,
                           LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d,
                                             uint64_t, e, uint64_t, f, uint64_t, g, uint64_t, h),
                           LTTNG_UST_TP_FIELDS(WORD(a) WORD(b) WORD(c) WORD(d) WORD(e) WORD(f)
                                                   WORD(g) WORD(h)))
LTTNG_UST_TRACEPOINT_EVENT(cost, barrelfish, LTTNG_UST_TP_ARGS(uint32_t, arg),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, arg, arg)))
LTTNG_UST_TRACEPOINT_EVENT(cost, text, LTTNG_UST_TP_ARGS(const char *, text),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(text, text)))

#endif

#include <lttng/tracepoint-event.h>
