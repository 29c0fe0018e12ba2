/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Programs of seL4's benchmarking page: nested, interleaved and conditional tracepoints, the log and its
 * calls, CPU utilisation, counters.
 *
 *     example LOG JSON
 *
 * Prints each entry that must be in the log, `T THREAD ID CYCLES`. Failed checks are printed on lines
 * that begin with `wrong`. The raw log and the utilisation of all threads are written to the files.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <benchmark/benchmark.h>
#include <sel4/benchmark_utilisation_types.h>
#include <sel4/sel4.h>
#include <sel4bench/kernel_logging.h>
#include <sel4bench/logging.h>
#include <sel4bench/sel4bench.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 50u
static int wrongs;
static void check(int holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s\n", what);
        wrongs++;
    }
}

static __thread volatile unsigned long sum;
static void f(void)
{
    for (unsigned i = 0; i < 1000; i++)
        sum += i;
}

/* The tracepoints of each thread, in the order of their numbers. */
static void path(int c)
{
    /* f and g, only when the condition is true */
    TRACE_POINT_START(0);
    f();
    if (c) {
        f();
        TRACE_POINT_STOP(0);
    }
    /* likewise, with the START inside the condition */
    if (c) {
        f();
        TRACE_POINT_START(1);
    }
    f();
    TRACE_POINT_STOP(1);
    /* both */
    TRACE_POINT_START(2);
    f();
    if (c) {
        f();
        TRACE_POINT_STOP(2);
        TRACE_POINT_START(3);
    }
    f();
    TRACE_POINT_STOP(3);
    /* nested, interleaved */
    TRACE_POINT_START(4);
    TRACE_POINT_START(5);
    TRACE_POINT_STOP(5);
    TRACE_POINT_STOP(4);
    TRACE_POINT_START(6);
    TRACE_POINT_START(7);
    f();
    TRACE_POINT_STOP(6);
    f();
    TRACE_POINT_STOP(7);
}
/* The condition is true in 25 of 50 rounds. For 8 and 9 see main. */
static const unsigned expected[] = {25, 25, 25, 25, 50, 50, 50, 50};

static void *thread(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < ROUNDS; i++)
        path(i % 2 != 0);
    TRACE_POINT_STOP(CONFIG_MAX_NUM_TRACE_POINTS - 1); /* never started */
    TRACE_POINT_START(CONFIG_MAX_NUM_TRACE_POINTS);    /* out of range */
    TRACE_POINT_STOP(CONFIG_MAX_NUM_TRACE_POINTS);
    return NULL;
}

static kernel_log_entry_t entries[KERNEL_MAX_NUM_LOG_ENTRIES];
static kernel_timed_log_entry_t timed[KERNEL_MAX_NUM_LOG_ENTRIES];
static kernel_log_entry_t frame[KERNEL_MAX_NUM_LOG_ENTRIES];

static void tracepoints(const char *log)
{
    pthread_t threads[2];
    seL4_Word count;
    check(kernel_logging_set_log_buffer(1) == seL4_InvalidArgument, "a buffer that is not aligned");
    check(kernel_logging_set_log_buffer((seL4_CPtr)frame) == seL4_NoError, "a log buffer");
    TRACE_POINT_START(0); /* before the log is reset: not logged */
    TRACE_POINT_STOP(0);
    kernel_logging_reset_log();
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    count = seL4_BenchmarkFinalizeLog();
    check(count == 600, "how many entries are in the log");
    TRACE_POINT_START(0); /* after the log is finalized: not read */
    TRACE_POINT_STOP(0);
    check(kernel_logging_sync_log(entries, 10) == 10, "ten entries");
    check(kernel_logging_sync_log(entries, KERNEL_MAX_NUM_LOG_ENTRIES) == 600, "all entries");
    check(kernel_logging_sync_timed_log(timed, KERNEL_MAX_NUM_LOG_ENTRIES) == 600, "all entries with times");
    check(memcmp(entries, frame, sizeof *frame * 600) == 0 && frame[600].duration == 0, "the log buffer");
    for (unsigned i = 0; i < 600; i++) {
        check(timed[i].entry.id == entries[i].id && timed[i].entry.duration == entries[i].duration &&
                  (i == 0 || timed[i].time >= timed[i - 1].time),
              "entries with times are those without, in order");
        printf("T %u %lu %lu\n", timed[i].thread, entries[i].id, entries[i].duration);
    }
    FILE *const file = fopen(log, "wb");
    check(file != NULL && fwrite(frame, sizeof *frame, 600, file) == 600 && fclose(file) == 0, "the raw log");

    /* Sorted, grouped, separated. */
    unsigned sizes[9], offsets[9];
    for (seL4_Word i = 0; i < 600; i++)
        kernel_logging_entry_set_data(&frame[i], i); /* so that the order can be checked */
    logging_stable_sort_log(frame, 600);
    logging_group_log_by_key(frame, 600, sizes, offsets, 9);
    for (unsigned key = 0; key < 9; key++) {
        check(sizes[key] == (key < 8 ? 2 * expected[key] : 0), "entries of a key");
        for (unsigned i = 0; i < sizes[key]; i++)
            check(kernel_logging_entry_get_key(&frame[offsets[key] + i]) == key &&
                      (i == 0 || frame[offsets[key] + i].duration > frame[offsets[key] + i - 1].duration),
                  "sorted by key, stable");
    }
    log_buffer_t buffers[4];
    for (unsigned i = 0; i < 4; i++)
        logging_init_log_buffer(&buffers[i], 1);
    logging_separate_log(entries, 600, buffers, 4);
    for (unsigned i = 0; i < 4; i++) {
        check(buffers[i].length == 2 * expected[i] && !buffers[i].full, "separated");
        free(buffers[i].buffer);
    }
    /* The duration of the outer pair includes the cost of the inner one. */
    for (unsigned i = 0; i + 1 < 600; i++)
        if (timed[i].entry.id == 5 && timed[i + 1].entry.id == 4 && timed[i].thread == timed[i + 1].thread)
            check(timed[i].entry.duration <= timed[i + 1].entry.duration, "nested pairs");
}

static void *busy(void *argument)
{
    struct timespec now = {0, 0};
    (void)argument;
    while (now.tv_nsec < 60000000 && now.tv_sec == 0) {
        for (unsigned i = 0; i < 100; i++)
            f();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    }
    const struct timespec pause = {0, 1000000};
    for (unsigned i = 0; i < 20; i++)
        nanosleep(&pause, NULL);
    return NULL;
}

static void utilisation(const char *json)
{
    uint64_t *const words = (uint64_t *)(void *)&seL4_GetIPCBuffer()->msg[0];
    pthread_t other;
    seL4_BenchmarkGetThreadUtilisation((seL4_CPtr)1u << 30);
    check(words[BENCHMARK_TCB_UTILISATION] == 0, "a thread that there is not");
    seL4_BenchmarkResetAllThreadsUtilisation();
    seL4_BenchmarkResetThreadUtilisation(seL4_CapInitThreadTCB);
    const uint64_t before = sel4bench_get_cycle_count();
    seL4_BenchmarkResetLog();
    const uint64_t begin = sel4bench_get_cycle_count();
    pthread_create(&other, NULL, busy, NULL);
    pthread_join(other, NULL);
    const uint64_t end = sel4bench_get_cycle_count();
    seL4_BenchmarkFinalizeLog();
    const uint64_t after = sel4bench_get_cycle_count();
    seL4_BenchmarkGetThreadUtilisation(seL4_CapInitThreadTCB);
    const uint64_t total = words[BENCHMARK_TOTAL_UTILISATION], mine = words[BENCHMARK_TCB_UTILISATION];
    check(total >= end - begin && total <= after - before, "overall utilisation");
    /* The main thread waited; the other thread ran for 60 ms and ended. */
    check(mine < total / 2, "a thread that waits");
    check(words[BENCHMARK_TOTAL_NUMBER_SCHEDULES] >= 20, "how often threads were switched to");
    printf("U %llu %llu %llu\n", (unsigned long long)mine, (unsigned long long)total,
           (unsigned long long)words[BENCHMARK_TCB_NUMBER_SCHEDULES]);
    fflush(stdout);
    /* All threads, on standard output, where seL4's tools read it. */
    const int out = dup(1);
    check(freopen(json, "w", stdout) != NULL, "the file for the JSON");
    seL4_BenchmarkDumpAllThreadsUtilisation();
    fflush(stdout);
    dup2(out, 1);
    close(out);
}

static void counters(void)
{
    ccnt_t values[SEL4BENCH_NUM_GENERIC_EVENTS] = {0};
    event_id_t faults[1] = {SEL4BENCH_EVENT_LINUX_PAGE_FAULTS};
    ccnt_t one, two;
    sel4bench_init();
    SEL4BENCH_RESET_CCNT;
    SEL4BENCH_READ_CCNT(one);
    f();
    SEL4BENCH_READ_CCNT(two);
    check(two > one, "the cycle counter counts");
    const seL4_Word count = sel4bench_get_num_counters();
    check((count == 0) == (sel4bench_counters_error()[0] != 0), "no counters, and why");
    check(sel4bench_get_num_generic_counter_chunks(count) ==
              (count == 0 ? 0 : (int)((7 + count - 1) / count)),
          "runs for all events");
    check(sel4bench_get_counter_description(SEL4BENCH_LINUX_COUNTERS) == NULL, "a counter that there is not");
    for (int chunk = 0; chunk < sel4bench_get_num_generic_counter_chunks(count); chunk++) {
        const counter_bitfield_t mask = sel4bench_enable_generic_counters((seL4_Word)chunk, count);
        f();
        sel4bench_read_and_stop_counters(mask, (seL4_Word)chunk, count, values);
    }
    if (count != 0)
        check(values[4] > 1000, "instructions of a loop of 1,000");
    printf("N %lu %s\n", count, sel4bench_counters_error());

    /* Page faults are counted exactly, by Linux itself: one for each page touched first. */
    const long page = sysconf(_SC_PAGESIZE);
    volatile char *const pages = (volatile char *)aligned_alloc((size_t)page, 64 * (size_t)page);
    counter_bitfield_t mask = sel4bench_enable_counters(1, faults, 0, 1);
    if (sel4bench_counters_error()[0] != 0) {
        printf("N no page faults: %s\n", sel4bench_counters_error());
        return;
    }
    for (long i = 0; i < 64; i++)
        pages[i * page] = 1;
    sel4bench_stop_counters(mask);
    const ccnt_t first = sel4bench_get_counter(0);
    for (long i = 0; i < 64; i++)
        pages[i * page] = 2;
    check(sel4bench_get_counter(0) == first && first >= 64, "page faults of 64 pages, stopped");
    sel4bench_reset_counters();
    check(sel4bench_get_counter(0) == 0, "reset");
    mask = sel4bench_enable_counters(1, faults, 0, 1);
    sel4bench_read_and_stop_counters(mask, 0, 1, values);
    printf("C %llu\n", (unsigned long long)values[0]);
    sel4bench_destroy();
    check(sel4bench_get_counter(0) == 0, "destroyed");
    seL4_BenchmarkNullSyscall();
    seL4_BenchmarkFlushCaches();
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    tracepoints(argv[1]);
    utilisation(argv[2]);
    counters();
    return wrongs != 0;
}
