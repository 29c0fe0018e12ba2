/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* seL4's tracepoints and their log; on Linux also utilisation. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <benchmark/benchmark.h>
#include <sel4/benchmark_utilisation_types.h>
#include <sel4bench/kernel_logging.h>

#include "sel4_events.h"

/* Number and cycles. */
#define LOCAL_LOG_WORDS 2
#ifndef LOCAL_LOG_SLOTS
#ifdef LAT_SMALL
#define LOCAL_LOG_SLOTS 64u
#else
#define LOCAL_LOG_SLOTS 65536u /* seL4_LogBufferSize / 16: the capacity of seL4's buffer, for each thread */
#endif
#endif
#include "../common/local_log.h"

#ifdef LAT_SMALL
struct sel4_trace_point sel4_trace_points[LAT_PORT_CORES][CONFIG_MAX_NUM_TRACE_POINTS];
#else
__thread struct sel4_trace_point sel4_trace_points[CONFIG_MAX_NUM_TRACE_POINTS];
#endif

void sel4_record_start(uint32_t id)
{
    if (lat_tracepoint_start_enabled())
        lat_tracepoint_start(id, local_thread());
}

void sel4_record_stop(uint32_t id, uint64_t cycles)
{
    const uint64_t words[2] = {id, cycles};
    uint64_t time;
    if (lat_tracepoint_stop_enabled())
        lat_tracepoint_stop(id, local_thread(), cycles);
    (void)local_log_put(words, 2, &time);
}

static void set_entry(kernel_timed_log_entry_t *entry, const struct local_event *event)
{
    entry->entry.id = (seL4_Word)event->words[0];
    entry->entry.duration = (seL4_Word)event->words[1];
    entry->time = event->time;
    entry->core = event->core;
    entry->thread = event->thread;
}

#ifdef LAT_SMALL

/* ---- without an operating system: the log is read in place ----------------------------------------- */

seL4_Error seL4_BenchmarkResetLog(void)
{
    struct local_event event;
    while (local_log_read(&event, 1)) {
    }
    return seL4_NoError;
}

seL4_Word seL4_BenchmarkFinalizeLog(void)
{
    uint64_t count = local_log_dropped();
    for (struct local_ring *ring = local_ring_after(NULL); ring != NULL; ring = local_ring_after(ring))
        count += ring->claimed - ring->taken;
    return (seL4_Word)count;
}

unsigned int kernel_logging_sync_timed_log(kernel_timed_log_entry_t log[], unsigned int n)
{
    struct local_event event;
    unsigned int count = 0;
    while (count < n && local_log_read(&event, 1))
        set_entry(&log[count++], &event);
    return count;
}

unsigned int kernel_logging_sync_log(kernel_log_entry_t log[], unsigned int n)
{
    struct local_event event;
    unsigned int count = 0;
    while (count < n && local_log_read(&event, 1)) {
        kernel_timed_log_entry_t entry;
        set_entry(&entry, &event);
        log[count++] = entry.entry;
    }
    return count;
}

#else

#include <lat/utilisation.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the log --------------------------------------------------------------------------------------- */

/* The log when it was last finalized, in the order of time. Under `log_lock`, as all below. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static kernel_timed_log_entry_t *logged;
static size_t logged_count, logged_room;
static uint64_t dropped_before; /* at the last reset */
static seL4_Word log_buffer;

/* Takes the events out of the rings; those for which there is no memory are dropped and counted. */
static uint64_t collect(void)
{
    struct local_event event;
    uint64_t without_room = 0;
    while (local_log_read(&event, 1)) {
        if (logged_count == logged_room) {
            const size_t room = logged_room == 0 ? 4096 : 2 * logged_room;
            kernel_timed_log_entry_t *const more =
                (kernel_timed_log_entry_t *)realloc(logged, room * sizeof *more);
            if (more == NULL) {
                without_room++;
                continue;
            }
            logged = more;
            logged_room = room;
        }
        set_entry(&logged[logged_count++], &event);
    }
    return without_room;
}

seL4_Error seL4_BenchmarkSetLogBuffer(seL4_Word frame)
{
    if (frame % sizeof(seL4_Word) != 0)
        return seL4_InvalidArgument;
    pthread_mutex_lock(&log_lock);
    log_buffer = frame;
    pthread_mutex_unlock(&log_lock);
    return seL4_NoError;
}

unsigned int kernel_logging_sync_timed_log(kernel_timed_log_entry_t log[], unsigned int n)
{
    pthread_mutex_lock(&log_lock);
    const unsigned int count = logged_count < n ? (unsigned int)logged_count : n;
    for (unsigned int i = 0; i < count; i++)
        log[i] = logged[i];
    pthread_mutex_unlock(&log_lock);
    return count;
}

unsigned int kernel_logging_sync_log(kernel_log_entry_t log[], unsigned int n)
{
    pthread_mutex_lock(&log_lock);
    const unsigned int count = logged_count < n ? (unsigned int)logged_count : n;
    for (unsigned int i = 0; i < count; i++)
        log[i] = logged[i].entry;
    pthread_mutex_unlock(&log_lock);
    return count;
}

/* ---- utilisation ----------------------------------------------------------------------------------- */

/* The tracking interval; `ticks` also scales the kernel's nanoseconds to ticks of the counter. */
static struct {
    uint64_t ticks;
    uint64_t idle[2]; /* jiffies of the processor of the reset: at the reset, then since */
    uint32_t core;
    int is_tracking;
} interval;

/* Idle time of a processor since the machine started, in ticks of /proc/stat; 0 if it cannot be read. */
static uint64_t idle_of(uint32_t core)
{
    char line[512];
    uint64_t idle = 0;
    FILE *const file = fopen("/proc/stat", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned number;
        unsigned long long user, nice_, kernel, idle_, waiting;
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu", &number, &user, &nice_, &kernel, &idle_,
                   &waiting) == 6 &&
            number == core) {
            idle = idle_ + waiting;
            break;
        }
    }
    if (file != NULL)
        fclose(file);
    return idle;
}

seL4_Error seL4_BenchmarkResetLog(void)
{
    pthread_mutex_lock(&log_lock);
    (void)collect();
    logged_count = 0;
    dropped_before = local_log_dropped();
    interval.ticks = local_now(&interval.core);
    interval.idle[0] = idle_of(interval.core);
    interval.is_tracking = 1;
    pthread_mutex_unlock(&log_lock);
    return lat_utilisation_reset() == 0 ? seL4_NoError : seL4_InvalidArgument;
}

seL4_Word seL4_BenchmarkFinalizeLog(void)
{
    uint32_t core;
    (void)lat_utilisation_finalize();
    pthread_mutex_lock(&log_lock);
    if (interval.is_tracking) {
        interval.ticks = local_now(&core) - interval.ticks;
        interval.idle[1] = idle_of(interval.core) - interval.idle[0];
        interval.is_tracking = 0;
    }
    const uint64_t lost = collect() + local_log_dropped() - dropped_before;
    if (log_buffer != 0) {
        kernel_log_entry_t *const entries = (kernel_log_entry_t *)log_buffer;
        for (size_t i = 0; i < logged_count && i < KERNEL_MAX_NUM_LOG_ENTRIES; i++)
            entries[i] = logged[i].entry;
    }
    const uint64_t count = logged_count + lost;
    pthread_mutex_unlock(&log_lock);
    return (seL4_Word)count;
}

static int thread_of(seL4_CPtr capability)
{
    return capability == seL4_CapInitThreadTCB ? (int)getpid() : (int)capability;
}

static uint64_t to_ticks(uint64_t ns, const struct lat_utilisation *had)
{
    if (had->elapsed_ns == 0)
        return 0;
    return (uint64_t)((double)ns * (double)interval.ticks / (double)had->elapsed_ns);
}

/* @return 0, or a negative error number; then the thread has no values. */
static int utilisation_of(int thread, uint64_t words[13])
{
    struct lat_utilisation had;
    const int result = lat_utilisation_get(thread, &had);
    for (unsigned i = 0; i < 13; i++)
        words[i] = 0;
    if (result != 0)
        return result;
    const uint64_t idle_ns = interval.idle[1] * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
    words[BENCHMARK_TCB_UTILISATION] = to_ticks(had.thread_ns, &had);
    words[BENCHMARK_TCB_NUMBER_SCHEDULES] = had.thread_schedules;
    words[BENCHMARK_IDLE_LOCALCPU_UTILISATION] = to_ticks(idle_ns, &had);
    words[BENCHMARK_IDLE_TCBCPU_UTILISATION] = words[BENCHMARK_IDLE_LOCALCPU_UTILISATION];
    words[BENCHMARK_TOTAL_UTILISATION] = interval.ticks;
    words[BENCHMARK_TOTAL_NUMBER_SCHEDULES] = had.program_schedules;
    return 0;
}

static void name_of(int thread, char *name, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
    FILE *const file = fopen(path, "re");
    if (file == NULL || fgets(name, (int)bytes, file) == NULL)
        snprintf(name, bytes, "thread");
    name[strcspn(name, "\n")] = 0;
    if (file != NULL)
        fclose(file);
}

static void record_utilisation(int thread, const uint64_t words[13])
{
    char name[64];
    if (lat_utilisation_thread_enabled()) {
        name_of(thread, name, 32);
        snprintf(name + strlen(name), 32, " %d", thread);
        lat_utilisation_thread(name, words[BENCHMARK_TCB_UTILISATION],
                               words[BENCHMARK_TCB_KERNEL_UTILISATION],
                               words[BENCHMARK_TCB_NUMBER_KERNEL_ENTRIES],
                               words[BENCHMARK_TCB_NUMBER_SCHEDULES]);
    }
    lat_utilisation_total(words[BENCHMARK_TOTAL_UTILISATION], words[BENCHMARK_TOTAL_KERNEL_UTILISATION],
                          words[BENCHMARK_TOTAL_NUMBER_KERNEL_ENTRIES],
                          words[BENCHMARK_TOTAL_NUMBER_SCHEDULES]);
}

seL4_IPCBuffer *seL4_GetIPCBuffer(void)
{
    static __thread seL4_IPCBuffer buffer;
    return &buffer;
}

void seL4_BenchmarkGetThreadUtilisation(seL4_CPtr thread)
{
    uint64_t words[13];
    if (utilisation_of(thread_of(thread), words) == 0)
        record_utilisation(thread_of(thread), words);
    memcpy(seL4_GetIPCBuffer()->msg, words, sizeof words);
}

void seL4_BenchmarkResetThreadUtilisation(seL4_CPtr thread)
{
    (void)lat_utilisation_reset_thread(thread_of(thread));
}

/* Calls a function for each thread of the process. */
static void each_thread(void (*call)(int thread, void *context), void *context)
{
    DIR *const folder = opendir("/proc/self/task");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        const int thread = atoi(entry->d_name);
        if (thread > 0)
            call(thread, context);
    }
    if (folder != NULL)
        closedir(folder);
}

static void reset_one(int thread, void *context)
{
    (void)context;
    (void)lat_utilisation_reset_thread(thread);
}

void seL4_BenchmarkResetAllThreadsUtilisation(void)
{
    each_thread(reset_one, NULL);
}

static void print_name(const char *name)
{
    for (; *name != 0; name++) {
        if (*name == '"' || *name == '\\')
            putchar('\\');
        putchar((unsigned char)*name < ' ' ? '?' : *name);
    }
}

static void print_one(int thread, void *context)
{
    uint64_t words[13];
    char name[32];
    int *const count = (int *)context;
    if (utilisation_of(thread, words) != 0)
        return;
    name_of(thread, name, sizeof name);
    record_utilisation(thread, words);
    printf("%s{\"NAME\":\"", (*count)++ == 0 ? "" : ",\n");
    print_name(name);
    printf("\",\"UTILISATION\":%llu,\"NUMBER_SCHEDULES\":%llu,\"KERNEL_UTILISATION\":%llu,"
           "\"NUMBER_KERNEL_ENTRIES\":%llu}",
           (unsigned long long)words[BENCHMARK_TCB_UTILISATION],
           (unsigned long long)words[BENCHMARK_TCB_NUMBER_SCHEDULES],
           (unsigned long long)words[BENCHMARK_TCB_KERNEL_UTILISATION],
           (unsigned long long)words[BENCHMARK_TCB_NUMBER_KERNEL_ENTRIES]);
}

void seL4_BenchmarkDumpAllThreadsUtilisation(void)
{
    uint64_t words[13];
    int count = 0;
    (void)utilisation_of((int)getpid(), words);
    printf("{\"BENCHMARK_TOTAL_UTILISATION\":%llu,\"BENCHMARK_TOTAL_KERNEL_UTILISATION\":%llu,"
           "\"BENCHMARK_TOTAL_NUMBER_KERNEL_ENTRIES\":%llu,\"BENCHMARK_TOTAL_NUMBER_SCHEDULES\":%llu,"
           "\"BENCHMARK_TCB_\":[\n",
           (unsigned long long)words[BENCHMARK_TOTAL_UTILISATION],
           (unsigned long long)words[BENCHMARK_TOTAL_KERNEL_UTILISATION],
           (unsigned long long)words[BENCHMARK_TOTAL_NUMBER_KERNEL_ENTRIES],
           (unsigned long long)words[BENCHMARK_TOTAL_NUMBER_SCHEDULES]);
    each_thread(print_one, &count);
    printf("]}\n");
    fflush(stdout);
}

/* ---- calls to be measured ---------------------------------------------------------------------------- */

void seL4_BenchmarkNullSyscall(void)
{
    (void)syscall(SYS_getppid);
}

void seL4_BenchmarkFlushCaches(void)
{
    static uint8_t *other;
    static size_t bytes;
    pthread_mutex_lock(&log_lock);
    if (other == NULL) {
        /* Twice the size of the last-level cache, 64 MiB if that is unknown. */
        const long level = sysconf(_SC_LEVEL3_CACHE_SIZE);
        bytes = level > 0 ? 2 * (size_t)level : (size_t)64 << 20;
        void *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        other = memory == MAP_FAILED ? NULL : (uint8_t *)memory;
    }
    for (size_t at = 0; other != NULL && at < bytes; at += 64)
        (*(volatile uint8_t *)&other[at])++;
    pthread_mutex_unlock(&log_lock);
}

#endif
