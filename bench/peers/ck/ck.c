// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The design of seed 001 (Composite): one global ring of Concurrency Kit for all threads, an event
 * consists of a format string and up to ten arguments, with time, core and thread. Also its
 * behaviour with several writers, as in cost/writers.c.
 *
 *     ck [--rounds N]
 */
#include "../../harness/rows.h"

#include <ck_ring.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define ARGUMENTS_MAX 10u
struct event {
    const char *format;
    uint64_t type;
    uint64_t arguments[ARGUMENTS_MAX];
    uint64_t time;
    uint32_t core;
    uint64_t thread;
};
CK_RING_PROTOTYPE(event, event)

#define RING_EVENTS 65536u
static struct event buffer[RING_EVENTS];
static ck_ring_t ring __attribute__((aligned(64)));
static __thread uint64_t own_thread;
static uint64_t refused;

static inline __attribute__((always_inline)) void record(const char *format,
                                                         const uint64_t *arguments, unsigned count)
{
    struct event event;
    uint32_t low, high;
    event.format = format;
    event.type = 1;
    for (unsigned a = 0; a < count; a++)
        event.arguments[a] = arguments[a];
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(event.core));
    event.time = (uint64_t)high << 32 | low;
    event.thread = own_thread;
    if (!CK_RING_ENQUEUE_MPMC(event, &ring, buffer, &event))
        __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
}

#define ARGUMENTS(...) ((const uint64_t[]){__VA_ARGS__})
LOOP_4(body_0, record("f", NULL, 0))
LOOP_4(body_1, record("f", ARGUMENTS(i), 1))
LOOP_4(body_4, record("f", ARGUMENTS(i, 1, 2, 3), 4))
LOOP_4(body_8, record("f", ARGUMENTS(i, 1, 2, 3, 4, 5, 6, 7), 8))

static uint64_t drain(void)
{
    struct event event;
    uint64_t count = 0;
    while (CK_RING_DEQUEUE_MPMC(event, &ring, buffer, &event))
        count++;
    return count;
}
static void before(void)
{
    drain();
}
#define VERIFY(body)                                                                           \
    static uint64_t verify_##body(uint64_t count)                                              \
    {                                                                                          \
        drain();                                                                               \
        body(count / 4);                                                                       \
        return drain();                                                                        \
    }
VERIFY(body_0)
VERIFY(body_1)
VERIFY(body_4)
VERIFY(body_8)

static void add(const char *name, void (*body)(uint64_t), uint64_t (*verify)(uint64_t))
{
    struct row *row = rows_add(name, body, 250, 4);
    row->before = before;
    row->verify = verify;
}

/* ---- several writers --------------------------------------------------------- */

#define WRITERS_MAX 8u
#define BATCH_EVENTS 1024u
static pthread_barrier_t barrier;
static unsigned writers_rounds;
static uint64_t *writers_ticks;

struct writer {
    unsigned number, of;
};

static void *write_batches(void *argument)
{
    const struct writer *writer = (const struct writer *)argument;
    rows_pin((int)writer->number + 1);
    own_thread = writer->number;
    for (unsigned round = 0; round < writers_rounds; round++) {
        pthread_barrier_wait(&barrier);
        const uint64_t begin = ticks_ordered();
        body_4(BATCH_EVENTS / 4);
        writers_ticks[round * writer->of + writer->number] = ticks_ordered() - begin;
        pthread_barrier_wait(&barrier);
        if (writer->number == 0)
            drain();
    }
    return NULL;
}

/* If a writer is preempted between its two steps, all others wait for it: a batch can take seconds.
 * Hence there are few rounds, in a process of their own that is ended after a time limit. */
static int measure_writers(unsigned count, unsigned limit_s)
{
    pthread_t threads[WRITERS_MAX];
    struct writer writers[WRITERS_MAX];
    char name[64];
    int status;
    fflush(stdout);
    const pid_t child = fork();
    if (child != 0) {
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 1;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            printf("# %u writers did not finish within %u s\n", count, limit_s);
        else if (status != 0)
            return 1;
        return 0;
    }
    alarm(limit_s);
    writers_rounds = count == 1 ? rows_rounds : rows_rounds / 10 + 2;
    writers_ticks = (uint64_t *)calloc((size_t)writers_rounds * count, sizeof(uint64_t));
    pthread_barrier_init(&barrier, NULL, count);
    for (unsigned w = 0; w < count; w++) {
        writers[w] = (struct writer){w, count};
        if (pthread_create(&threads[w], NULL, write_batches, &writers[w]) != 0)
            _exit(2);
    }
    for (unsigned w = 0; w < count; w++)
        pthread_join(threads[w], NULL);
    snprintf(name, sizeof name, "4 u64; %u at once", count);
    rows_write(name, BATCH_EVENTS, 0, 0, 0, writers_ticks, writers_rounds * count);
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    rows_options(argc, argv);
    memset(buffer, 1, sizeof buffer);
    ck_ring_init(&ring, RING_EVENTS);
    own_thread = (uint64_t)getpid();
    rows_add_references();
    add("0 u64", body_0, verify_body_0);
    add("1 u64", body_1, verify_body_1);
    add("4 u64", body_4, verify_body_4);
    add("8 u64", body_8, verify_body_8);
    int failed = rows_run();
    drain();
    for (unsigned count = 1; count <= WRITERS_MAX; count *= 2)
        failed |= measure_writers(count, rows_rounds < 50 ? 3 : 60);
    return failed || refused != 0;
}
