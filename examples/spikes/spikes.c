// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Answers requests, each within a fraction of a millisecond, except for some that are slow on purpose.
 * A second thread records an event every 100 us, so that time windows can be checked.
 *
 *     spikes [SPIKES [MILLISECONDS-BETWEEN [MILLISECONDS-EACH [FILE]]]]
 *
 * Ids of slow requests begin at 1000000. FILE receives the times before and after each tick, in UTC
 * nanoseconds as 64-bit words: reference times, independent of the tracer.
 */
#define _GNU_SOURCE

#include "spikes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TICK_NS = 100000, REQUEST_PAUSE_US = 1000, SLOW_ID = 1000000 };

static atomic_int is_over;
static FILE *times;

static void rest_us(long long microseconds)
{
    struct timespec time = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000) * 1000};
    while (nanosleep(&time, &time) != 0) {
    }
}

static long long now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *tick(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "ticker");
    long long next = now_ns(CLOCK_MONOTONIC);
    for (uint32_t number = 0; !atomic_load(&is_over); number++) {
        long long utc[2] = {now_ns(CLOCK_REALTIME), 0};
        lat_spikes_tick(number);
        utc[1] = now_ns(CLOCK_REALTIME);
        if (times != NULL)
            fwrite(utc, sizeof utc, 1, times);
        next += TICK_NS;
        struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return NULL;
}

static void request(uint32_t id, long long microseconds)
{
    lat_spikes_request(id);
    if (microseconds != 0)
        rest_us(microseconds);
    lat_spikes_answered(id);
}

int main(int count, char **arguments)
{
    int spikes = count > 1 ? atoi(arguments[1]) : 3;
    long long between_ms = count > 2 ? atoll(arguments[2]) : 1000;
    long long spike_ms = count > 3 ? atoll(arguments[3]) : 20;
    if (count > 4)
        times = fopen(arguments[4], "wb");
    if (spikes < 0 || between_ms < 1 || spike_ms < 1 || (count > 4 && times == NULL)) {
        fputs("usage: spikes [SPIKES [MILLISECONDS-BETWEEN [MILLISECONDS-EACH [FILE]]]]\n", stderr);
        return 2;
    }
    pthread_t ticker;
    if (pthread_create(&ticker, NULL, tick, NULL) != 0)
        return 2;
    uint32_t id = 0;
    for (int spike = 0; spike <= spikes; spike++) {
        long long end = now_ns(CLOCK_MONOTONIC) + between_ms * 1000000;
        while (now_ns(CLOCK_MONOTONIC) < end) {
            request(id++ % SLOW_ID, 0);
            rest_us(REQUEST_PAUSE_US);
        }
        if (spike < spikes)
            request((uint32_t)(SLOW_ID + spike), spike_ms * 1000);
    }
    atomic_store(&is_over, 1);
    pthread_join(ticker, NULL);
    return times != NULL && fclose(times) != 0 ? 2 : 0;
}
