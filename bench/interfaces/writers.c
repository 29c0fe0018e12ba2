/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The cost of ENQUEUE_TRACE for 1, 4 and 8 writers with 1, 4 and 8 arguments: the tables of Composite's
 * report. Rows take turns, a batch each; a batch is timed by each of its threads, in ticks and in CPU
 * time.
 *
 *     writers [--rounds N] [--reader]       all rows; --reader: a thread dequeues meanwhile
 *     writers count ARGS WRITERS EVENTS KEPT     EVENTS by each writer, for a counter of instructions
 *
 * The C file of this interface is included, so that a row can disable keeping events in the program.
 */
#include <composite_trace.c>

#include "../harness/rows.h"

#define WRITERS_MAX 8u
#define BATCH_EVENTS 2048u
#define GAP_EVENTS 256u
static const unsigned writer_counts[] = {1, 4, 8};
static const unsigned argument_counts[] = {1, 4, 8};

enum body { CLOCK, ONE, FOUR, EIGHT, BODIES };
struct combination {
    enum body body;
    unsigned arguments; /* 0: the clock */
    unsigned writers;
    int kept;
    int gaps; /* 0 to 4 us between events */
    uint64_t *ticks; /* of each batch of each thread */
    uint64_t *cpu_ns;
    unsigned batches;
};
#define COMBINATIONS_MAX 64u
static struct combination combinations[COMBINATIONS_MAX];
static unsigned combination_count;

static pthread_barrier_t begin_barrier, end_barrier;
static struct combination *active; /* ordered by the barriers */
static int finished;
static uint64_t batch_ticks[WRITERS_MAX], batch_cpu_ns[WRITERS_MAX], batch_kept[WRITERS_MAX];
static double ticks_per_ns;

#define BODY(name, count, ...)                                                                   \
    static NOINLINE void name(uint64_t i, unsigned long a)                                       \
    {                                                                                            \
        unsigned long args[NARGS] = {__VA_ARGS__};                                               \
        do {                                                                                     \
            HIDE(a);                                                                             \
            args[0] = i;                                                                         \
            TIMES_4((void)ENQUEUE_TRACE("%lu %lu %lu %lu %lu %lu %lu %lu", count, args));        \
            BARRIER();                                                                           \
        } while (--i != 0);                                                                      \
    }
BODY(body_1, 1, a)
BODY(body_4, 4, a, a, a, a)
BODY(body_8, 8, a, a, a, a, a, a, a, a)

static void write_batch(enum body body, uint64_t events, unsigned long thread)
{
    switch (body) {
    case CLOCK: rows_body_clock(events / 4); break;
    case ONE: body_1(events / 4, thread); break;
    case FOUR: body_4(events / 4, thread); break;
    default: body_8(events / 4, thread); break;
    }
}

/* Marsaglia's xorshift64. */
static uint64_t next_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Ticks of the events alone: each is timed by itself, and followed by a gap. */
static NOINLINE uint64_t gaps(enum body body, uint64_t *state, unsigned long thread)
{
    const uint64_t most = (uint64_t)(4000.0 * ticks_per_ns);
    uint64_t sum = 0;
    for (unsigned i = 0; i < GAP_EVENTS; i++) {
        const uint64_t begin = ticks_ordered();
        write_batch(body, 4, thread);
        const uint64_t end = ticks_ordered();
        sum += end - begin;
        const uint64_t until = end + next_number(state) % most;
        while (ticks() < until) {
        }
    }
    return sum;
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
    uint64_t state = 88172645463325252u + thread;
    rows_pin((int)thread + 1);
    (void)local_ring_mine();
    for (;;) {
        pthread_barrier_wait(&begin_barrier);
        if (finished)
            return NULL;
        if (thread < active->writers) {
            const struct local_ring *ring = local_ring_mine();
            const local_position claimed = ring->claimed;
            write_batch(active->body, 64, thread); /* warm */
            const uint64_t cpu = cpu_time_ns();
            if (active->gaps) {
                batch_ticks[thread] = gaps(active->body, &state, thread);
            } else {
                const uint64_t begin = ticks_ordered();
                write_batch(active->body, BATCH_EVENTS, thread);
                batch_ticks[thread] = ticks_ordered() - begin;
            }
            batch_cpu_ns[thread] = cpu_time_ns() - cpu;
            batch_kept[thread] = ring->claimed - claimed;
        }
        pthread_barrier_wait(&end_barrier);
    }
}

static int reader_stops;
static void *reader(void *argument)
{
    uint64_t *const count = (uint64_t *)argument;
    while (!__atomic_load_n(&reader_stops, __ATOMIC_RELAXED))
        while (composite_trace_next(true) != NULL)
            (*count)++;
    return NULL;
}

static void measure_ticks(void)
{
    struct timespec begin, end;
    const struct timespec pause = {0, 50000000};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    const uint64_t from = ticks();
    nanosleep(&pause, NULL);
    const uint64_t to = ticks();
    clock_gettime(CLOCK_MONOTONIC, &end);
    ticks_per_ns = (double)(to - from) /
                   (1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec));
}

static enum body count_body;
static uint64_t count_events;
static void *count_thread(void *thread)
{
    write_batch(count_body, count_events, (unsigned long)(uintptr_t)thread);
    return NULL;
}
static int count_only(char **values)
{
    const int arguments = atoi(values[0]), writers = atoi(values[1]);
    is_kept = atoi(values[3]);
    pthread_t threads[WRITERS_MAX];
    count_body = arguments == 0 ? CLOCK : arguments == 1 ? ONE : arguments == 4 ? FOUR : EIGHT;
    count_events = strtoull(values[2], NULL, 10);
    for (int i = 0; i < writers && i < (int)WRITERS_MAX; i++)
        if (pthread_create(&threads[i], NULL, count_thread, (void *)(uintptr_t)i) != 0)
            return 2;
    for (int i = 0; i < writers && i < (int)WRITERS_MAX; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static void add(enum body body, unsigned arguments, unsigned writers, int kept, int with_gaps)
{
    const size_t batches = (size_t)rows_rounds * writers;
    combinations[combination_count++] = (struct combination){
        body, arguments, writers, kept, with_gaps, (uint64_t *)calloc(batches, 8),
        (uint64_t *)calloc(batches, 8), 0};
}

int main(int argc, char **argv)
{
    pthread_t threads[WRITERS_MAX], reading;
    uint64_t read = 0, expected = 0, found = 0, written = 0;
    int has_reader = 0;
    rows_rounds = 40;
    if (argc == 6 && strcmp(argv[1], "count") == 0)
        return count_only(argv + 2);
    const int rest = rows_options(argc, argv);
    if (rest < argc && strcmp(argv[rest], "--reader") == 0)
        has_reader = 1;
    measure_ticks();
    for (unsigned with_gaps = 0; with_gaps < 2; with_gaps++)
        for (unsigned w = 0; w < 3; w++) {
            add(CLOCK, 0, writer_counts[w], 0, (int)with_gaps);
            for (unsigned a = 0; a < 3; a++)
                for (int kept = has_reader; kept < 2; kept++)
                    add((enum body)(ONE + a), argument_counts[a], writer_counts[w], kept, (int)with_gaps);
        }
    pthread_barrier_init(&begin_barrier, NULL, WRITERS_MAX + 1);
    pthread_barrier_init(&end_barrier, NULL, WRITERS_MAX + 1);
    for (uintptr_t t = 0; t < WRITERS_MAX; t++)
        if (pthread_create(&threads[t], NULL, writer, (void *)t) != 0)
            return 2;
    for (unsigned round = 0; round < rows_rounds + ROWS_WARM_ROUNDS; round++) {
        for (unsigned c = 0; c < combination_count; c++) {
            active = &combinations[c];
            is_kept = active->kept;
            reader_stops = 0;
            if (has_reader && active->kept && pthread_create(&reading, NULL, reader, &read) != 0)
                return 2;
            pthread_barrier_wait(&begin_barrier);
            pthread_barrier_wait(&end_barrier);
            if (has_reader && active->kept) {
                __atomic_store_n(&reader_stops, 1, __ATOMIC_RELAXED);
                pthread_join(reading, NULL);
            }
            while (composite_trace_next(true) != NULL)
                read++;
            const unsigned events = active->gaps ? 4 * GAP_EVENTS : BATCH_EVENTS;
            for (unsigned t = 0; t < active->writers; t++) {
                if (active->kept && active->body != CLOCK) {
                    found += batch_kept[t];
                    expected += events + 64;
                }
                if (active->body != CLOCK)
                    written += events + 64;
                if (round >= ROWS_WARM_ROUNDS) {
                    active->ticks[active->batches] = batch_ticks[t];
                    active->cpu_ns[active->batches++] = batch_cpu_ns[t];
                }
            }
        }
    }
    printf("arguments,writers,kept,gaps,reader,events,ticks,cpu_ns\n");
    for (unsigned c = 0; c < combination_count; c++) {
        const struct combination *row = &combinations[c];
        printf("%u,%u,%d,%d,%d,%u,", row->arguments, row->writers, row->kept, row->gaps, has_reader,
               row->gaps ? 4 * GAP_EVENTS : BATCH_EVENTS);
        for (unsigned i = 0; i < row->batches; i++)
            printf("%s%" PRIu64, i == 0 ? "" : " ", row->ticks[i]);
        printf(",");
        for (unsigned i = 0; i < row->batches; i++)
            printf("%s%" PRIu64, i == 0 ? "" : " ", row->cpu_ns[i]);
        printf("\n");
    }
    /* For the comparison with the recorder's report. */
    fprintf(stderr, "# written %" PRIu64 "\n", written);
    finished = 1;
    pthread_barrier_wait(&begin_barrier);
    for (unsigned t = 0; t < WRITERS_MAX; t++)
        pthread_join(threads[t], NULL);
    if (found != expected || read != expected || composite_trace_dropped() != 0) {
        fprintf(stderr,
                "writers: %" PRIu64 " events written, %" PRIu64 " kept, %" PRIu64 " read, %" PRIu64
                " dropped\n",
                expected, found, read, composite_trace_dropped());
        return 1;
    }
    return 0;
}
