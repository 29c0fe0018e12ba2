/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Buffers of durations, and logs sorted and grouped by key. */
#ifndef SEL4BENCH_LOGGING_H
#define SEL4BENCH_LOGGING_H

#include <sel4bench/kernel_logging.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct log_buffer {
    seL4_Word *buffer;
    unsigned int capacity;
    unsigned int length;
    unsigned int full; /* set when allocation failed */
} log_buffer_t;

void logging_init_log_buffer(log_buffer_t *buffer, unsigned int initial_capacity);
void logging_append_log_buffer(log_buffer_t *buffer, seL4_Word data);

/** Appends the durations of entries to the buffer of their key; keys of `buffer_count` or more are
 * ignored. */
void logging_separate_log(kernel_log_entry_t *logs, unsigned int count, log_buffer_t *buffers,
                          unsigned int buffer_count);
/** Sorts by key. Both keep the order of equal keys. */
void logging_sort_log(kernel_log_entry_t *logs, unsigned int count);
void logging_stable_sort_log(kernel_log_entry_t *logs, unsigned int count);
/** For a sorted log: number of entries of each key below `group_count`, and index of the first. */
void logging_group_log_by_key(kernel_log_entry_t *logs, unsigned int count, unsigned int *sizes,
                              unsigned int *offsets, unsigned int group_count);

#ifdef __cplusplus
}
#endif

#endif
