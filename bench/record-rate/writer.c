// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writes events at a steady rate from several threads, and measures the cost of each burst.
 *
 *     writer THREADS EVENTS_PER_SECOND SECONDS
 *
 * Every 200 us each thread writes the events that are due, including late ones. Prints one line: events
 * written, duration in seconds, ns per event as the median of all bursts, and the same of the fastest
 * tenth. With -DPEER the events are LTTng-UST's.
 */
#ifdef PEER
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "events.h"
#define write_event(n) lttng_ust_tracepoint(rate, words, n, 1, 2, 3)
#else
#include "rate.h"
#define write_event(n) lat_rate_words(n, 1, 2, 3)
#endif

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STEP_NS 200000u
#define THREADS_MAX 64
/* In shorter bursts the cost of reading the clock would dominate. */
#define BURST_MIN 64

struct thread {
    pthread_t id;
    uint64_t written, bursts;
    float *ns; /* per event, by burst */
};

static struct thread threads[THREADS_MAX];
static uint64_t begin_ns, length_ns, bursts_max;
static double rate; /* of each thread */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *work(void *argument)
{
    struct thread *const self = argument;
    uint64_t step = begin_ns, now = begin_ns;
    while (now - begin_ns < length_ns) {
        const uint64_t due = (uint64_t)((double)(now - begin_ns) * 1e-9 * rate);
        const uint64_t count = due > self->written ? due - self->written : 0;
        const uint64_t from = now_ns();
        for (uint64_t n = 0; n < count; n++)
            write_event(self->written + n);
        const uint64_t to = now_ns();
        self->written += count;
        if (count >= BURST_MIN && self->bursts < bursts_max)
            self->ns[self->bursts++] = (float)(to - from) / (float)count;
        step += STEP_NS;
        const struct timespec when = {(time_t)(step / 1000000000u), (long)(step % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
        now = now_ns();
    }
    return NULL;
}

static int compare(const void *left, const void *right)
{
    const float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    const int count = argc == 4 ? atoi(argv[1]) : 0;
    if (count < 1 || count > THREADS_MAX) {
        fprintf(stderr, "usage: writer THREADS EVENTS_PER_SECOND SECONDS\n");
        return 2;
    }
    rate = strtod(argv[2], NULL) / count;
    length_ns = (uint64_t)(strtod(argv[3], NULL) * 1e9);
    bursts_max = length_ns / STEP_NS + 1;
    begin_ns = now_ns();
    for (int i = 0; i < count; i++) {
        threads[i].ns = malloc(bursts_max * sizeof(float));
        if (!threads[i].ns || pthread_create(&threads[i].id, NULL, work, &threads[i]) != 0)
            return 2;
    }
    uint64_t written = 0, bursts = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i].id, NULL);
        written += threads[i].written;
        bursts += threads[i].bursts;
    }
    const double seconds = (double)(now_ns() - begin_ns) * 1e-9;
    float *const all = malloc((bursts + 1) * sizeof(float));
    if (!all)
        return 2;
    uint64_t at = 0;
    for (int i = 0; i < count; i++)
        for (uint64_t n = 0; n < threads[i].bursts; n++)
            all[at++] = threads[i].ns[n];
    qsort(all, at, sizeof(float), compare);
    printf("%" PRIu64 " %.6f %.2f %.2f\n", written, seconds, at ? all[at / 2] : 0.f,
           at ? all[at / 10] : 0.f);
    return 0;
}
