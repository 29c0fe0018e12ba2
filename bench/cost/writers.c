// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The cost of an event for each of 1, 2, 4 and 8 threads that write at the same time, compared with as many
 * threads that only read the clock. Compiled for rings per CPU, and per thread.
 *
 *     writers [--rounds N]
 *
 * Threads are pinned, to the CPUs in turn. Each thread measures its own batches, so that a batch during which
 * it was preempted appears as a long one; the cost of all batches together is in the rows of CPU time.
 */
#include "cost.h"

#include "../harness/rings.h"
#include "../harness/rows.h"

#include <pthread.h>

#define WRITERS_MAX 8u
#define BATCH_EVENTS 4096u
static const unsigned writer_counts[] = {1, 2, 4, 8};
#define CASES 4u

enum body { BODY_CLOCK, BODY_EVENT, BODY_COUNT };
static const char *const body_names[BODY_COUNT] = {"clock alone (rdtsc)", "4 u64"};

static pthread_barrier_t begin_barrier, end_barrier;
static unsigned active; /* threads that run this batch; ordered by the barriers */
static enum body active_body;
static int finished;
static uint64_t *samples[BODY_COUNT][CASES]; /* [round * writers + thread] */
static uint64_t cpu_ns[BODY_COUNT][CASES];
static uint64_t written[CASES], found[CASES];
static uint64_t batch_ticks[WRITERS_MAX];
static uint64_t batch_cpu_ns[WRITERS_MAX];
static struct lat_ring *thread_rings[WRITERS_MAX];

static NOINLINE void body_event(uint64_t i, uint64_t thread)
{
    do {
        TIMES_4(lat_cost_e4(i, thread, i, i));
        BARRIER();
    } while (--i != 0);
}

static uint64_t cpu_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *writer(void *argument)
{
    const uintptr_t thread = (uintptr_t)argument;
    rows_pin((int)thread + 1);
    lat_cost_e0();
    thread_rings[thread] = lat_i_thread.ring;
    for (;;) {
        pthread_barrier_wait(&begin_barrier);
        if (finished)
            return NULL;
        if (thread < active) {
            const uint64_t cpu = cpu_time_ns();
            const uint64_t begin = ticks_ordered();
            if (active_body == BODY_CLOCK)
                rows_body_clock(BATCH_EVENTS / 4);
            else
                body_event(BATCH_EVENTS / 4, thread);
            batch_ticks[thread] = ticks_ordered() - begin;
            batch_cpu_ns[thread] = cpu_time_ns() - cpu;
        }
        pthread_barrier_wait(&end_barrier);
    }
}

static uint64_t look(uint32_t id, const uint8_t *payload, int *counts)
{
    const uint32_t event = id - lat_schema_cost.base_id;
    uint64_t words[4];
    *counts = 0;
    if (event == 0)
        return 0;
    if (event != 3)
        return UINT64_MAX;
    memcpy(words, payload, sizeof words);
    *counts = words[1] < WRITERS_MAX && words[0] == words[2] && words[0] == words[3];
    return sizeof words;
}

static unsigned ring_total;
static struct lat_ring *ring_number(unsigned index)
{
    return lat_i_area.header->ring_kind == LAT_RING_PER_CPU ? rings_at(index)
                                                             : thread_rings[index];
}

static void batch(unsigned which, enum body body, unsigned round, int keep)
{
    static uint64_t from[WRITERS_MAX + 4096];
    const unsigned writers = writer_counts[which];
    active = writers;
    active_body = body;
    for (unsigned r = 0; r < ring_total; r++)
        from[r] = rings_position(ring_number(r));
    pthread_barrier_wait(&begin_barrier);
    pthread_barrier_wait(&end_barrier);
    if (body == BODY_EVENT) {
        written[which] += (uint64_t)writers * BATCH_EVENTS;
        for (unsigned r = 0; r < ring_total; r++)
            found[which] += rings_count(ring_number(r), from[r], look);
    }
    if (!keep)
        return;
    for (unsigned t = 0; t < writers; t++) {
        samples[body][which][round * writers + t] = batch_ticks[t];
        cpu_ns[body][which] += batch_cpu_ns[t];
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[WRITERS_MAX];
    int failed = 0;
    rows_options(argc, argv);
    lat_cost_e0();
    if (lat_i_area.header == NULL || !lat_i_area.rings_usable) {
        fprintf(stderr, "writers: no rings: start it with LATERALIS_RECORD\n");
        return 2;
    }
    for (unsigned c = 0; c < CASES; c++)
        for (unsigned b = 0; b < BODY_COUNT; b++)
            samples[b][c] = calloc((size_t)rows_rounds * writer_counts[c], sizeof(uint64_t));
    pthread_barrier_init(&begin_barrier, NULL, WRITERS_MAX + 1);
    pthread_barrier_init(&end_barrier, NULL, WRITERS_MAX + 1);
    for (uintptr_t t = 0; t < WRITERS_MAX; t++)
        if (pthread_create(&threads[t], NULL, writer, (void *)t) != 0)
            return 2;
    active = 0;
    pthread_barrier_wait(&begin_barrier);
    pthread_barrier_wait(&end_barrier);
    ring_total = lat_i_area.header->ring_kind == LAT_RING_PER_CPU ? lat_i_area.header->ring_count
                                                                   : WRITERS_MAX;
    for (unsigned round = 0; round < rows_rounds + ROWS_WARM_ROUNDS; round++)
        for (unsigned c = 0; c < CASES; c++)
            for (unsigned b = 0; b < BODY_COUNT; b++)
                batch(c, (enum body)b, round - ROWS_WARM_ROUNDS, round >= ROWS_WARM_ROUNDS);
    finished = 1;
    pthread_barrier_wait(&begin_barrier);
    for (unsigned t = 0; t < WRITERS_MAX; t++)
        pthread_join(threads[t], NULL);

    printf("row,events_per_batch,expected,found,batch_ticks\n");
    for (unsigned c = 0; c < CASES; c++) {
        for (unsigned b = 0; b < BODY_COUNT; b++) {
            const unsigned batches = rows_rounds * writer_counts[c];
            char name[80];
            snprintf(name, sizeof name, "%s; %u at once", body_names[b], writer_counts[c]);
            rows_write(name, BATCH_EVENTS, written[c], found[c], b == BODY_EVENT, samples[b][c],
                       batches);
            /* One batch of all events, in nanoseconds. */
            snprintf(name, sizeof name, "%s; %u at once; CPU time ns", body_names[b],
                     writer_counts[c]);
            rows_write(name, (uint64_t)batches * BATCH_EVENTS, 0, 0, 0, &cpu_ns[b][c], 1);
        }
        failed |= written[c] != found[c];
    }
    return failed;
}
