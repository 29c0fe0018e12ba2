// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Every way to acquire and release a lock. Prints how often a mutex was acquired, which
 * must equal the trace.
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 5000 };
static long taken; /* mutexes taken, by all threads */

static void took(long n)
{
    __atomic_fetch_add(&taken, n, __ATOMIC_RELAXED);
}

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec until;
    clock_gettime(clock, &until);
    until.tv_nsec += ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

/* ---- contention ------------------------------------------------------------ */

static pthread_mutex_t counter_lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *count(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(pthread_mutex_lock(&counter_lock) == 0);
        counter++;
        CHECK(pthread_mutex_unlock(&counter_lock) == 0);
        took(1);
    }
    return unused;
}

static void contention(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], &small, count, &counter) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0 && result == &counter);
    }
    CHECK(counter == THREADS * ROUNDS);
}

/* ---- kinds of mutexes -------------------------------------------------------- */

static void *unlock_foreign(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_unlock(mutex);
}
static void *try_foreign(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_trylock(mutex);
}
static void *die_holding(void *mutex)
{
    CHECK(pthread_mutex_lock(mutex) == 0);
    took(1);
    return NULL;
}
static int in_thread(void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, routine, argument) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return (int)(intptr_t)result;
}

static void kinds(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    void *nothing;
    pthread_t thread;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attributes);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_trylock(&mutex) == 0);
    CHECK(in_thread(try_foreign, &mutex) == EBUSY);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == EPERM);
    pthread_mutex_destroy(&mutex);
    took(4);

    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex, &attributes);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_lock(&mutex) == EDEADLK);
    CHECK(in_thread(unlock_foreign, &mutex) == EPERM);
    struct timespec until = in_ms(CLOCK_REALTIME, 10);
    CHECK(pthread_mutex_timedlock(&mutex, &until) == EDEADLK);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    pthread_mutex_destroy(&mutex);
    took(1);

    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    CHECK(pthread_create(&thread, NULL, die_holding, &mutex) == 0);
    CHECK(pthread_join(thread, &nothing) == 0);
    CHECK(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    CHECK(pthread_mutex_consistent(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    took(1);
    CHECK(pthread_create(&thread, NULL, die_holding, &mutex) == 0);
    CHECK(pthread_join(thread, &nothing) == 0);
    CHECK(pthread_mutex_trylock(&mutex) == EOWNERDEAD);
    CHECK(pthread_mutex_unlock(&mutex) == 0); /* inconsistent: it cannot be acquired any more */
    took(1);
    CHECK(pthread_mutex_lock(&mutex) == ENOTRECOVERABLE);
    pthread_mutex_destroy(&mutex);
    pthread_mutexattr_destroy(&attributes);
}

static void *timed_out(void *mutex)
{
    struct timespec until = in_ms(CLOCK_REALTIME, 5);
    CHECK(pthread_mutex_timedlock(mutex, &until) == ETIMEDOUT);
    until = in_ms(CLOCK_MONOTONIC, 5);
    CHECK(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    CHECK(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &until) == EINVAL);
    until.tv_nsec = -1;
    CHECK(pthread_mutex_timedlock(mutex, &until) == EINVAL);
    return NULL;
}

static void limits(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct timespec until = in_ms(CLOCK_REALTIME, 100);
    CHECK(pthread_mutex_timedlock(&mutex, &until) == 0);
    in_thread(timed_out, &mutex);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    until = in_ms(CLOCK_MONOTONIC, 100);
    CHECK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &until) == EINVAL);
    until.tv_nsec = 2000000000;
    CHECK(pthread_mutex_timedlock(&mutex, &until) == 0); /* free: the limit does not matter */
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    took(3);
}

/* ---- conditions ---------------------------------------------------------------- */

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;
static int queue_length, queue_closed;

static void *consume(void *unused)
{
    long waits = 0, got = 0;
    CHECK(pthread_mutex_lock(&queue_lock) == 0);
    while (queue_length > 0 || !queue_closed) {
        if (queue_length == 0) {
            CHECK(pthread_cond_wait(&queue_changed, &queue_lock) == 0);
            waits++;
        } else {
            queue_length--;
            got++;
        }
    }
    CHECK(pthread_mutex_unlock(&queue_lock) == 0);
    took(1 + waits);
    (void)unused;
    return (void *)got;
}

static void conditions(void)
{
    pthread_t threads[THREADS];
    long got = 0;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, consume, NULL) == 0);
    for (int i = 0; i < 1000; i++) {
        CHECK(pthread_mutex_lock(&queue_lock) == 0);
        queue_length++;
        CHECK(pthread_cond_signal(&queue_changed) == 0);
        CHECK(pthread_mutex_unlock(&queue_lock) == 0);
    }
    CHECK(pthread_mutex_lock(&queue_lock) == 0);
    queue_closed = 1;
    CHECK(pthread_cond_broadcast(&queue_changed) == 0);
    CHECK(pthread_mutex_unlock(&queue_lock) == 0);
    took(1001);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0);
        got += (long)result;
    }
    CHECK(got == 1000);

    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    CHECK(pthread_mutex_lock(&queue_lock) == 0);
    struct timespec until = in_ms(CLOCK_REALTIME, 3);
    CHECK(pthread_cond_timedwait(&never, &queue_lock, &until) == ETIMEDOUT);
    until = in_ms(CLOCK_MONOTONIC, 3);
    CHECK(pthread_cond_clockwait(&never, &queue_lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    until.tv_nsec = -1;
    CHECK(pthread_cond_timedwait(&never, &queue_lock, &until) == EINVAL);
    CHECK(pthread_mutex_unlock(&queue_lock) == 0);
    took(4);
}

/* ---- cancellation --------------------------------------------------------------- */

static int released;
static void release(void *mutex)
{
    CHECK(pthread_mutex_unlock(mutex) == 0);
    released++;
}
static void *wait_for_ever(void *mutex)
{
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    CHECK(pthread_mutex_lock(mutex) == 0);
    took(2); /* and once more by the wait that is cancelled */
    pthread_cleanup_push(release, mutex);
    for (;;)
        pthread_cond_wait(&never, mutex);
    pthread_cleanup_pop(0);
    return NULL;
}
static sem_t never_given;
static void *wait_for_semaphore(void *unused)
{
    sem_wait(&never_given);
    return unused;
}
static void *sleep_in_read(void *fd)
{
    char byte;
    CHECK(read(*(int *)fd, &byte, 1) < 0);
    return NULL;
}

static void cancellation(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    void *result;
    int ends[2];
    CHECK(pthread_create(&thread, NULL, wait_for_ever, &mutex) == 0);
    usleep(20000);
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED && released == 1);
    CHECK(pthread_mutex_trylock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    took(1);
    CHECK(sem_init(&never_given, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, wait_for_semaphore, NULL) == 0);
    usleep(10000);
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(pipe(ends) == 0);
    CHECK(pthread_create(&thread, NULL, sleep_in_read, ends) == 0);
    usleep(10000);
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

/* ---- the others ------------------------------------------------------------------- */

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t gate;
static long shared;

static void *share(void *unused)
{
    const int result = pthread_barrier_wait(&barrier);
    CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    for (int i = 0; i < 1000; i++) {
        if (i % 10 == 0) {
            CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
            shared++;
        } else {
            CHECK(pthread_rwlock_rdlock(&rwlock) == 0);
        }
        CHECK(pthread_rwlock_unlock(&rwlock) == 0);
    }
    CHECK(sem_wait(&gate) == 0);
    CHECK(sem_post(&gate) == 0);
    return unused;
}

static void *try_writing(void *unused)
{
    struct timespec until = in_ms(CLOCK_REALTIME, 3);
    CHECK(pthread_rwlock_trywrlock(&rwlock) == EBUSY);
    CHECK(pthread_rwlock_timedwrlock(&rwlock, &until) == ETIMEDOUT);
    CHECK(pthread_rwlock_tryrdlock(&rwlock) == 0);
    CHECK(pthread_rwlock_unlock(&rwlock) == 0);
    until = in_ms(CLOCK_MONOTONIC, 100);
    CHECK(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &until) == 0);
    CHECK(pthread_rwlock_unlock(&rwlock) == 0);
    return unused;
}

static void others(void)
{
    pthread_t threads[THREADS];
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    CHECK(sem_init(&gate, 0, 0) == 0);
    errno = 0;
    CHECK(sem_trywait(&gate) == -1 && errno == EAGAIN);
    struct timespec until = in_ms(CLOCK_REALTIME, 3);
    CHECK(sem_timedwait(&gate, &until) == -1 && errno == ETIMEDOUT);
    until = in_ms(CLOCK_MONOTONIC, 3);
    CHECK(sem_clockwait(&gate, CLOCK_MONOTONIC, &until) == -1 && errno == ETIMEDOUT);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, share, NULL) == 0);
    CHECK(sem_post(&gate) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(shared == THREADS * 100);
    CHECK(sem_trywait(&gate) == 0);
    CHECK(pthread_rwlock_rdlock(&rwlock) == 0);
    in_thread(try_writing, NULL);
    CHECK(pthread_rwlock_unlock(&rwlock) == 0);
}

int main(void)
{
    contention();
    kinds();
    limits();
    conditions();
    cancellation();
    others();
    printf("taken %ld\n", taken);
    return 7;
}
