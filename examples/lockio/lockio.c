// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Two threads and one lock. The server answers requests, each of which needs the lock; the logger holds it
 * from time to time while it reads from a pipe that is filled only after some milliseconds.
 *
 *     lockio [MILLISECONDS]
 *
 * The program has no events for the lock and the read: record it with `--with mutex,io`.
 */
#define _GNU_SOURCE

#include "lockio.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { REQUESTS = 40, READS = 2, SERVER_PAUSE_US = 1000, WORK_STEPS = 20000 };

static pthread_mutex_t book = PTHREAD_MUTEX_INITIALIZER;
static int feed[2];
static unsigned feed_pause_us = 20000;

static void rest(unsigned microseconds)
{
    struct timespec time = {microseconds / 1000000u, (long)(microseconds % 1000000u) * 1000};
    while (nanosleep(&time, &time) != 0) {
    }
}

/* Computation which compilers cannot remove. */
static void work(uint32_t seed)
{
    volatile uint32_t state = seed;
    for (unsigned step = 0; step < WORK_STEPS; step++)
        state = state * 1664525u + 1013904223u;
}

static void *serve(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "server");
    for (uint32_t id = 0; id < REQUESTS; id++) {
        lat_server_request(id);
        work(id);
        pthread_mutex_lock(&book);
        work(id);
        pthread_mutex_unlock(&book);
        lat_server_answered(id);
        rest(SERVER_PAUSE_US);
    }
    return NULL;
}

static void *keep_log(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "logger");
    for (int n = 0; n < READS; n++) {
        char line;
        rest(SERVER_PAUSE_US);
        pthread_mutex_lock(&book);
        if (read(feed[0], &line, 1) != 1)
            exit(1);
        pthread_mutex_unlock(&book);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        feed_pause_us = 1000u * (unsigned)strtoul(argv[1], NULL, 10);
    pthread_t server, logger;
    if (pipe(feed) != 0 || pthread_create(&logger, NULL, keep_log, NULL) != 0
        || pthread_create(&server, NULL, serve, NULL) != 0)
        return 1;
    for (int n = 0; n < READS; n++) {
        rest(feed_pause_us);
        if (write(feed[1], "x", 1) != 1)
            return 1;
    }
    pthread_join(logger, NULL);
    pthread_join(server, NULL);
    return 0;
}
