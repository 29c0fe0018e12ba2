// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Measures many rows in one run. A program adds its rows and calls rows_run: the rows take turns, one short
 * batch each, for some hundred rounds; any disturbance of the machine therefore affects all of them
 * alike. Every batch is written out (bench/METHODOLOGY.md); nothing is averaged here.
 *
 * Units: ticks of the CPU's time stamp counter. Compile with -D_GNU_SOURCE.
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Aligned to a line of code: the position of a loop changes its time by a core cycle. */
#define NOINLINE __attribute__((noinline, aligned(64)))
/* Hides from the compiler how the arguments of an event could have been computed. */
#define HIDE(variable) __asm__ volatile("" : "+r"(variable))
#define BARRIER() __asm__ volatile("" ::: "memory")

/* Four events in the body of each loop: this divides the cost of the loop itself by four, and the events are
 * at four positions, which averages the effects of alignment. */
#define TIMES_4(...) __VA_ARGS__; __VA_ARGS__; __VA_ARGS__; __VA_ARGS__
#define LOOP_4(name, ...)                                                                      \
    static NOINLINE void name(uint64_t i)                                                      \
    {                                                                                          \
        do {                                                                                   \
            TIMES_4(__VA_ARGS__);                                                              \
            BARRIER();                                                                         \
        } while (--i != 0);                                                                    \
    }
#define LOOP_16(name, ...)                                                                     \
    static NOINLINE void name(uint64_t i)                                                      \
    {                                                                                          \
        do {                                                                                   \
            TIMES_4(TIMES_4(__VA_ARGS__));                                                     \
            BARRIER();                                                                         \
        } while (--i != 0);                                                                    \
    }

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}
/* Fenced on both sides: for the begin and end of a batch. */
static inline uint64_t ticks_ordered(void)
{
    __asm__ volatile("lfence" ::: "memory");
    const uint64_t now = ticks();
    __asm__ volatile("lfence" ::: "memory");
    return now;
}

struct row {
    const char *name;
    void (*body)(uint64_t iterations);
    uint64_t iterations;
    uint64_t events_per_iteration;
    void (*before)(void);          /* called ahead of each batch, not timed; or NULL */
    uint64_t (*verify)(uint64_t);  /* writes this number of events, returns the number found; or NULL */
    uint64_t *batch_ticks;
    uint64_t found, expected;
    int nothing_expected;
};

#define ROWS_MAX 64u
static struct row rows[ROWS_MAX];
static unsigned row_count;
static unsigned rows_rounds = 400;
static unsigned rows_gap_us; /* pause before each batch */
static int rows_cpu = 1;

static inline struct row *rows_add(const char *name, void (*body)(uint64_t), uint64_t iterations,
                                   uint64_t events_per_iteration)
{
    struct row *row = &rows[row_count++];
    if (row_count > ROWS_MAX)
        abort();
    memset(row, 0, sizeof *row);
    row->name = name;
    row->body = body;
    row->iterations = iterations;
    row->events_per_iteration = events_per_iteration;
    return row;
}

/* ---- rows that every program has ------------------------------------------ */

LOOP_4(rows_body_clock, { uint64_t now = ticks(); HIDE(now); })
LOOP_4(rows_body_empty, BARRIER())
static NOINLINE void rows_empty_function(void)
{
    BARRIER();
}
LOOP_4(rows_body_call, rows_empty_function())

static char rows_memory[1 << 16] __attribute__((aligned(64)));
#define ROWS_COPY(bytes)                                                                       \
    static NOINLINE void rows_body_copy_##bytes(uint64_t i)                                    \
    {                                                                                          \
        char record[bytes] = {0};                                                              \
        uint64_t at = 0;                                                                       \
        do {                                                                                   \
            TIMES_4(                                                                           \
                __asm__ volatile("" : : "r"(record) : "memory");                               \
                memcpy(rows_memory + at, record, bytes);                                       \
                at = (at + bytes) & 0x7fff);                                                   \
        } while (--i != 0);                                                                    \
    }
ROWS_COPY(8)
ROWS_COPY(40)
ROWS_COPY(72)

static inline void rows_add_references(void)
{
    rows_add("empty loop", rows_body_empty, 4000, 4);
    rows_add("empty call", rows_body_call, 4000, 4);
    rows_add("clock alone (rdtsc)", rows_body_clock, 1000, 4);
    rows_add("memcpy of 8 bytes", rows_body_copy_8, 2000, 4);
    rows_add("memcpy of 40 bytes", rows_body_copy_40, 2000, 4);
    rows_add("memcpy of 72 bytes", rows_body_copy_72, 2000, 4);
}

/* ---- running --------------------------------------------------------------- */

/* --rounds N, --gap MICROSECONDS, --cpu N; returns the index of the first other argument. */
static inline int rows_options(int count, char **values)
{
    int at = 1;
    for (; at + 1 < count && strncmp(values[at], "--", 2) == 0; at += 2) {
        const int value = atoi(values[at + 1]);
        if (strcmp(values[at], "--rounds") == 0)
            rows_rounds = (unsigned)value;
        else if (strcmp(values[at], "--gap") == 0)
            rows_gap_us = (unsigned)value;
        else if (strcmp(values[at], "--cpu") == 0)
            rows_cpu = value;
        else
            break;
    }
    return at;
}

static inline void rows_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* CSV: row, events in a batch, expected, found, ticks of each batch. A minus sign where
 * nothing can be verified. */
static inline void rows_write(const char *name, uint64_t events, uint64_t expected, uint64_t found,
                              int verified, const uint64_t *batch_ticks, unsigned batches)
{
    printf("\"%s\",%" PRIu64 ",", name, events);
    if (verified)
        printf("%" PRIu64 ",%" PRIu64 ",", expected, found);
    else
        printf("-,-,");
    for (unsigned i = 0; i < batches; i++)
        printf("%s%" PRIu64, i == 0 ? "" : " ", batch_ticks[i]);
    printf("\n");
}

#define ROWS_VERIFY_EVENTS 2000u
#define ROWS_WARM_ROUNDS 3u

/** Runs all rows and prints them. @return 0, or 1 when a count is wrong. */
static inline int rows_run(void)
{
    int failed = 0;
    rows_pin(rows_cpu);
    for (unsigned r = 0; r < row_count; r++)
        rows[r].batch_ticks = (uint64_t *)calloc(rows_rounds, sizeof(uint64_t));
    for (unsigned round = 0; round < rows_rounds + ROWS_WARM_ROUNDS; round++) {
        for (unsigned r = 0; r < row_count; r++) {
            struct row *row = &rows[r];
            if (rows_gap_us != 0)
                usleep(rows_gap_us);
            if (row->before != NULL)
                row->before();
            row->body(row->iterations / 16 + 1);
            const uint64_t begin = ticks_ordered();
            row->body(row->iterations);
            const uint64_t end = ticks_ordered();
            if (round >= ROWS_WARM_ROUNDS)
                row->batch_ticks[round - ROWS_WARM_ROUNDS] = end - begin;
        }
    }
    printf("row,events_per_batch,expected,found,batch_ticks\n");
    for (unsigned r = 0; r < row_count; r++) {
        struct row *row = &rows[r];
        if (row->verify != NULL) {
            if (row->before != NULL)
                row->before();
            row->expected = row->nothing_expected ? 0 : ROWS_VERIFY_EVENTS;
            row->found = row->verify(ROWS_VERIFY_EVENTS);
            failed |= row->found != row->expected;
        }
        rows_write(row->name, row->iterations * row->events_per_iteration, row->expected,
                   row->found, row->verify != NULL, row->batch_ticks, rows_rounds);
        free(row->batch_ticks);
    }
    fflush(stdout);
    return failed;
}

#endif
