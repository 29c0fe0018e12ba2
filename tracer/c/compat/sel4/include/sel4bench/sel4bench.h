/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * libsel4bench on Linux: the processor's cycle counter, and its event counters through perf_event_open.
 *
 * Counters are those of the thread that called sel4bench_set_count_event. If the kernel or the machine
 * provides none, sel4bench_get_num_counters is 0, sel4bench_counters_error returns the reason, and the cycle
 * counter works. Context: one thread, no signal handler; the cycle counter: anywhere.
 */
#ifndef SEL4BENCH_SEL4BENCH_H
#define SEL4BENCH_SEL4BENCH_H

#include <sel4/sel4.h>
#include <sel4bench/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Events: values of 32 bits are those of the processor, as in its manual (on x86 mask and number as in
 * IA32_PERFEVTSELx); larger ones are Linux's events, 1 + type << 32 | config [perf_event_open(2)]. */
#define SEL4BENCH_EVENT_LINUX(type, config) ((event_id_t)((1ul + (type)) << 32 | (config)))
/* Caches: cache | operation << 8 | result << 16; read 0, access 0, miss 1. */
#define SEL4BENCH_EVENT_CACHE_L1I_MISS SEL4BENCH_EVENT_LINUX(3u, 1u | 1u << 16)
#define SEL4BENCH_EVENT_CACHE_L1D_MISS SEL4BENCH_EVENT_LINUX(3u, 0u | 1u << 16)
#define SEL4BENCH_EVENT_TLB_L1I_MISS SEL4BENCH_EVENT_LINUX(3u, 4u | 1u << 16)
#define SEL4BENCH_EVENT_TLB_L1D_MISS SEL4BENCH_EVENT_LINUX(3u, 3u | 1u << 16)
#define SEL4BENCH_EVENT_EXECUTE_INSTRUCTION SEL4BENCH_EVENT_LINUX(0u, 1u)
#define SEL4BENCH_EVENT_BRANCH_MISPREDICT SEL4BENCH_EVENT_LINUX(0u, 5u)
#define SEL4BENCH_EVENT_MEMORY_ACCESS SEL4BENCH_EVENT_LINUX(3u, 0u)
/* Counted by Linux itself, without a hardware counter. */
#define SEL4BENCH_EVENT_LINUX_PAGE_FAULTS SEL4BENCH_EVENT_LINUX(1u, 2u)
#define SEL4BENCH_EVENT_LINUX_CONTEXT_SWITCHES SEL4BENCH_EVENT_LINUX(1u, 3u)

#define SEL4BENCH_NUM_GENERIC_EVENTS 7
extern event_id_t GENERIC_EVENTS[SEL4BENCH_NUM_GENERIC_EVENTS];
extern char *GENERIC_EVENT_NAMES[SEL4BENCH_NUM_GENERIC_EVENTS];

/** Number of counters that can be set, of the processor or of Linux. */
#define SEL4BENCH_LINUX_COUNTERS 8

void sel4bench_init(void);
void sel4bench_destroy(void);

/** Ticks of the time stamp counter on x86, of the virtual counter on AArch64, read after all preceding
    instructions. */
ccnt_t sel4bench_get_cycle_count(void);
#define SEL4BENCH_READ_CCNT(result) ((result) = sel4bench_get_cycle_count())
/** Does nothing: the counter has been running since the machine started. */
#define SEL4BENCH_RESET_CCNT ((void)0)

/** Number of usable hardware counters; 0: see sel4bench_counters_error. */
seL4_Word sel4bench_get_num_counters(void);
/** Description of the event of a counter; NULL if there is no such counter. */
const char *sel4bench_get_counter_description(counter_t counter);
/** Why there are no counters, or why the last event could not be counted; "" if there is no error. */
const char *sel4bench_counters_error(void);

/** Sets the event of a counter, and the counter to 0. An event that cannot be counted stays at 0:
    sel4bench_counters_error. */
void sel4bench_set_count_event(counter_t counter, event_id_t event);
void sel4bench_start_counters(counter_bitfield_t counters);
void sel4bench_stop_counters(counter_bitfield_t counters);
void sel4bench_reset_counters(void);
ccnt_t sel4bench_get_counter(counter_t counter);
/** Reads each counter of the mask into the element of its number. @return the cycle counter. */
ccnt_t sel4bench_get_counters(counter_bitfield_t counters, ccnt_t *values);

/** Number of runs needed to count `event_count` events with `counter_count` counters; 0 without counters. */
static inline int sel4bench_get_num_counter_chunks(seL4_Word counter_count, seL4_Word event_count)
{
    return counter_count == 0 ? 0 : (int)((event_count + counter_count - 1) / counter_count);
}
static inline int sel4bench_get_num_generic_counter_chunks(seL4_Word counter_count)
{
    return sel4bench_get_num_counter_chunks(counter_count, SEL4BENCH_NUM_GENERIC_EVENTS);
}
/** Sets and starts the counters for a run. @return the mask of the started ones. */
counter_bitfield_t sel4bench_enable_counters(seL4_Word event_count, event_id_t *events, seL4_Word chunk,
                                             seL4_Word counter_count);
counter_bitfield_t sel4bench_enable_generic_counters(seL4_Word chunk, seL4_Word counter_count);
/** Reads the counters into the elements of their events in `results`, and stops them. Each value also goes to
    `lat record`. */
void sel4bench_read_and_stop_counters(counter_bitfield_t counters, seL4_Word chunk, seL4_Word counter_count,
                                      ccnt_t *results);

#ifdef __cplusplus
}
#endif

#endif
