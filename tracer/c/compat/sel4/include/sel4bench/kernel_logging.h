/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* seL4's log of tracepoints, read back in the program: reset, run, finalize, sync. */
#ifndef SEL4BENCH_KERNEL_LOGGING_H
#define SEL4BENCH_KERNEL_LOGGING_H

#include <sel4/benchmark_tracepoints_types.h>
#include <sel4/sel4.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef benchmark_tracepoint_log_entry_t kernel_log_entry_t;
/** Entries of a log buffer. */
#define KERNEL_MAX_NUM_LOG_ENTRIES (seL4_LogBufferSize / sizeof(benchmark_tracepoint_log_entry_t))

/** Copies at most `n` entries that existed at the last kernel_logging_finalize_log, the oldest first.
 * @return how many. */
unsigned int kernel_logging_sync_log(kernel_log_entry_t log[], unsigned int n);

/** An entry with values that seL4 does not log. */
typedef struct {
    kernel_log_entry_t entry;
    uint64_t time; /* ticks of the processor's counter at the STOP */
    uint32_t core;
    uint32_t thread;
} kernel_timed_log_entry_t;
/** Like kernel_logging_sync_log, with time, core and thread. */
unsigned int kernel_logging_sync_timed_log(kernel_timed_log_entry_t log[], unsigned int n);

static inline seL4_Word kernel_logging_entry_get_key(kernel_log_entry_t *entry)
{
    return entry->id;
}
static inline void kernel_logging_entry_set_key(kernel_log_entry_t *entry, seL4_Word key)
{
    entry->id = key;
}
static inline seL4_Word kernel_logging_entry_get_data(kernel_log_entry_t *entry)
{
    return entry->duration;
}
static inline void kernel_logging_entry_set_data(kernel_log_entry_t *entry, seL4_Word data)
{
    entry->duration = data;
}
static inline void kernel_logging_reset_log(void)
{
    (void)seL4_BenchmarkResetLog();
}
static inline void kernel_logging_finalize_log(void)
{
    (void)seL4_BenchmarkFinalizeLog();
}
/** Like seL4_BenchmarkSetLogBuffer, which takes an address here. */
static inline seL4_Error kernel_logging_set_log_buffer(seL4_CPtr buffer)
{
    return seL4_BenchmarkSetLogBuffer(buffer);
}

#ifdef __cplusplus
}
#endif

#endif
