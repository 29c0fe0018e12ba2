/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A full ring, also in signal handlers, and many short-lived threads: with LOCAL_LOG_SLOTS=64.
 * Prints nothing on success.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <composite_trace.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define SLOTS 64ul
#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            printf("wrong, line %d: %s\n", __LINE__, #condition);                               \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

static volatile unsigned long in_handler;
static void on_alarm(int number)
{
    unsigned long args[NARGS] = {1, in_handler};
    (void)number;
    if (ENQUEUE_TRACE("handler %lu %lu", 2, args))
        in_handler++;
}

static void *one_event(void *argument)
{
    unsigned long args[NARGS] = {2, (unsigned long)(uintptr_t)argument};
    CHECK(ENQUEUE_TRACE("thread %lu %lu", 2, args));
    return NULL;
}

#define CONSUMED_WRITERS 3ul
#define EACH 200000ul
static unsigned long kept[CONSUMED_WRITERS];
static volatile unsigned running = CONSUMED_WRITERS;
static void *many_events(void *argument)
{
    const unsigned long me = (unsigned long)(uintptr_t)argument;
    unsigned long args[NARGS] = {me, 0, 0};
    for (unsigned long i = 0; i < EACH; i++) {
        args[1] = kept[me];
        args[2] = ~kept[me];
        if (ENQUEUE_TRACE("many %lu %lu %lu", 3, args))
            kept[me]++;
    }
    __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

int main(void)
{
    unsigned long args[NARGS] = {0, 0};
    const struct trace_event *event;
    pthread_t thread;
    TRACE_INIT();

    /* Full: the newest events are dropped and counted. */
    for (unsigned long i = 0; i < 100; i++) {
        args[0] = i;
        CHECK(ENQUEUE_TRACE("fill %lu", 1, args) == (i < SLOTS));
    }
    CHECK(composite_trace_dropped() == 100 - SLOTS);
    for (unsigned long i = 0; i < SLOTS; i++) {
        event = DEQUEUE_TRACE();
        CHECK(event != NULL && event->args[0] == i);
    }
    CHECK(DEQUEUE_TRACE() == NULL);

    /* A signal handler runs at any instruction of the thread's events: each event is complete and in
     * order. */
    const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    unsigned long mine = 0, seen = 0, seen_in_handler = 0;
    args[0] = 0;
    for (unsigned long i = 0; i < 1000000 || in_handler < 100; i++) {
        args[1] = mine;
        if (ENQUEUE_TRACE("thread %lu %lu", 2, args))
            mine++;
        if (i % 16 == 0) {
            while ((event = DEQUEUE_TRACE()) != NULL) {
                CHECK(event->nargs == 2 && event->args[0] < 2);
                CHECK(event->args[1] == (event->args[0] == 0 ? seen++ : seen_in_handler++));
            }
        }
    }
    setitimer(ITIMER_REAL, &never, NULL);
    while ((event = DEQUEUE_TRACE()) != NULL)
        CHECK(event->args[1] == (event->args[0] == 0 ? seen++ : seen_in_handler++));
    CHECK(seen == mine && seen_in_handler == in_handler);

    /* 1,000 threads, one after the other, pass on their ring: 16 events of each fit into it. */
    for (uintptr_t i = 0; i < 1000; i++) {
        CHECK(pthread_create(&thread, NULL, one_event, (void *)i) == 0 && pthread_join(thread, NULL) == 0);
        if (i % 16 == 15)
            for (unsigned long j = 0; j < 16; j++) {
                event = DEQUEUE_TRACE();
                CHECK(event != NULL && event->args[1] == i - 15 + j);
            }
    }
    while (DEQUEUE_TRACE() != NULL) {
    }

    /* A reader concurrent with three writers: it gets only complete events, all that were kept, in the order
       of each writer. */
    pthread_t threads[CONSUMED_WRITERS];
    unsigned long next[CONSUMED_WRITERS] = {0};
    for (uintptr_t i = 0; i < CONSUMED_WRITERS; i++)
        CHECK(pthread_create(&threads[i], NULL, many_events, (void *)i) == 0);
    for (int last = 0; !last;) {
        last = __atomic_load_n(&running, __ATOMIC_ACQUIRE) == 0;
        while ((event = DEQUEUE_TRACE()) != NULL) {
            CHECK(event->nargs == 3 && event->args[0] < CONSUMED_WRITERS);
            CHECK(event->args[1] == next[event->args[0]]++ && event->args[2] == ~event->args[1]);
        }
    }
    for (unsigned i = 0; i < CONSUMED_WRITERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(next[i] == kept[i] && kept[i] >= SLOTS / 2);
    }
    return 0;
}
