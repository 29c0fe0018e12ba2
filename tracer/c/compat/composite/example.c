/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A program that uses Composite's tracer as a user would: four threads that enqueue with 0 to 10 arguments,
 * and a reader that dequeues, peeks, outputs and appends.
 *
 *     example FIRST.csv BOTH.csv WITH-FORMATS.csv
 *
 * Prints each event as printf formats it, `E THREAD TEXT`. Failed checks are printed on lines that begin
 * with `wrong`.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <composite_trace.h>

#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WRITERS 4
#define ROUNDS 50
#define EACH_ROUND 7

static int wrongs;
static void check(int holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s\n", what);
        wrongs++;
    }
}

/* Records the event and prints it formatted by printf. */
#define BOTH(format, nargs, ...)                                                                \
    do {                                                                                        \
        check(ENQUEUE_TRACE(format, nargs, args), "an event was dropped: " format);             \
        flockfile(stdout);                                                                      \
        printf("E %ld ", syscall(SYS_gettid));                                                  \
        printf(format "\n", __VA_ARGS__);                                                       \
        funlockfile(stdout);                                                                    \
    } while (0)

static void *writer(void *argument)
{
    const unsigned long me = (unsigned long)(uintptr_t)argument;
    for (unsigned long round = 0; round < ROUNDS; round++) {
        unsigned long args[NARGS] = {me, round, (unsigned long)-(long)round, round << 40, 1, 2, 3, 4, 5, 6};
        BOTH("nothing at all%s", 0, "%s"); /* a conversion without an argument is kept unchanged */
        BOTH("writer %lu", 1, args[0]);
        BOTH("a, comma and \"quotes\": %lu of 100%%", 1, args[0]);
        BOTH("writer %lu, round %4lu, %ld and %#lx", 4, args[0], args[1], (long)args[2], args[3]);
        BOTH("%lu %lu %ld %lu %lu %lu %lu %lu", 8, args[0], args[1], (long)args[2], args[3], args[4],
             args[5], args[6], args[7]);
        BOTH("%lu %lu %ld %lu %lu %lu %lu %lu %lu %lu", 10, args[0], args[1], (long)args[2], args[3],
             args[4], args[5], args[6], args[7], args[8], args[9]);
        const int count = (int)(round % 4); /* not a compile-time constant */
        check(ENQUEUE_TRACE("any count", count, args), "an event was dropped");
    }
    return NULL;
}

static void write_all(void)
{
    pthread_t threads[WRITERS];
    for (uintptr_t i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, writer, (void *)i);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    unsigned long args[NARGS] = {7, 8};
    if (argc != 4)
        return 2;
    check(!ENQUEUE_TRACE("before TRACE_INIT", 0, args), "kept before TRACE_INIT");
    check(DEQUEUE_TRACE() == NULL, "an event before TRACE_INIT");
    TRACE_INIT();
    check(DEQUEUE_TRACE() == NULL && PEEK_TRACE() == NULL, "an event before any");
    const int too_many = NARGS + 1;
    check(!ENQUEUE_TRACE("too many", too_many, args), "more arguments than NARGS were taken");
    check(!ENQUEUE_TRACE("too few", too_many - NARGS - 2, args), "-1 arguments were taken");

    check(ENQUEUE_TRACE("first %lu, %lu", 2, args), "not kept");
    check(ENQUEUE_TRACE("second", 0, args), "not kept");
    const struct trace_event *event = PEEK_TRACE();
    check(event != NULL && event->nargs == 2 && event->args[0] == 7 && event->args[1] == 8 &&
              event->thd_id == (uint32_t)syscall(SYS_gettid),
          "peek");
    const uint64_t time = event != NULL ? event->time_stamp : 0;
    event = DEQUEUE_TRACE();
    check(event != NULL && event->time_stamp == time, "dequeue of what was peeked");
    event = DEQUEUE_TRACE();
    check(event != NULL && event->nargs == 0 && event->time_stamp >= time, "dequeue of the second");
    check(DEQUEUE_TRACE() == NULL, "nothing is left");

    write_all();
    check(OUTPUT_TRACE(argv[1]) == WRITERS * ROUNDS * EACH_ROUND, "output");
    check(OUTPUT_TRACE(argv[2]) == 0, "output of nothing");
    write_all();
    check(APPEND_TRACE(argv[2]) == WRITERS * ROUNDS * EACH_ROUND, "append");
    write_all();
    check(APPEND_TRACE(argv[2]) == WRITERS * ROUNDS * EACH_ROUND, "append again");
    composite_trace_with_formats = 1;
    write_all();
    check(OUTPUT_TRACE(argv[3]) == WRITERS * ROUNDS * EACH_ROUND, "output with formats");
    check(OUTPUT_TRACE("/nowhere/at/all.csv") == -1, "output where there is no folder");
    check(composite_trace_dropped() == 0, "dropped");
    return wrongs != 0;
}
