// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Requests arrive independently of the answers to earlier ones; two workers take them from one queue. The
 * capacity of the workers is close to the rate of requests: the queue is therefore full for a while, or for
 * the whole run, if other programs need the processors.
 *
 *     queue [--hash PERCENT] [--retries N] [--checks PERCENT] [--requests N]
 *
 * --hash makes one function slower by a percentage, --retries adds this number of RETRY events, distributed
 * over the run, --checks keeps a percentage of the CHECK events.
 */
#define _GNU_SOURCE

#include "queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 2, PERIOD_NS = 500000, HASH_STEPS = 330000, HELD_STEPS = 60000 };

static unsigned hash_percent, retries, checks_percent = 100, requests = 2000;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER, books = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_more = PTHREAD_COND_INITIALIZER;
static unsigned come, taken;

/* Computation which compilers cannot remove. */
static uint32_t work(uint32_t seed, unsigned steps)
{
    volatile uint32_t state = seed;
    for (unsigned step = 0; step < steps; step++)
        state = state * 1664525u + 1013904223u;
    return state;
}

static void answer(uint32_t id)
{
    lat_work_taken(id);
    lat_work_hash();
    work(id, HASH_STEPS + HASH_STEPS / 100 * hash_percent);
    lat_work_hashed();
    /* This share of all requests, evenly distributed. */
    if (id * checks_percent / 100 != (id + 1) * checks_percent / 100)
        lat_work_check(id);
    if (id * retries / requests != (id + 1) * retries / requests)
        lat_work_retry(id);
    lat_work_lock();
    pthread_mutex_lock(&books);
    lat_work_locked();
    work(id, HELD_STEPS);
    lat_work_unlock();
    pthread_mutex_unlock(&books);
    lat_work_answered(id);
}

static void *worker(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "worker");
    for (;;) {
        pthread_mutex_lock(&queue_lock);
        while (taken == come && come < requests)
            pthread_cond_wait(&has_more, &queue_lock);
        if (taken == requests) {
            pthread_mutex_unlock(&queue_lock);
            return NULL;
        }
        const uint32_t id = taken++;
        pthread_mutex_unlock(&queue_lock);
        answer(id);
    }
}

int main(int count, char **words)
{
    for (int word = 1; word + 1 < count; word += 2) {
        const unsigned number = (unsigned)strtoul(words[word + 1], NULL, 10);
        if (strcmp(words[word], "--hash") == 0)
            hash_percent = number;
        else if (strcmp(words[word], "--retries") == 0)
            retries = number;
        else if (strcmp(words[word], "--checks") == 0)
            checks_percent = number;
        else if (strcmp(words[word], "--requests") == 0)
            requests = number;
        else
            return 2;
    }
    pthread_t workers[WORKERS];
    for (int each = 0; each < WORKERS; each++)
        if (pthread_create(&workers[each], NULL, worker, NULL) != 0)
            return 1;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (uint32_t id = 0; id < requests; id++) {
        /* Between half a period and one and a half periods. */
        next.tv_nsec += PERIOD_NS / 2 + (long)((id * 2654435761u) >> 12) % PERIOD_NS;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        lat_work_request(id);
        pthread_mutex_lock(&queue_lock);
        come++;
        pthread_cond_broadcast(&has_more);
        pthread_mutex_unlock(&queue_lock);
    }
    for (int each = 0; each < WORKERS; each++)
        pthread_join(workers[each], NULL);
    return 0;
}
