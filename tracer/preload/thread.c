// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Threads: made, started, ended, joined, named. */
#include "thread.h"
#include "real.h"

#include <string.h>

/*
 * What a new thread needs to begin by a record. The places are few and given back as soon as
 * the thread runs; if none is free the thread starts without us. Allocating one would show among
 * the program's own allocations.
 */
#define START_COUNT 256u
struct start {
    void *(*routine)(void *);
    void *argument;
    uint64_t ticket;
    uint32_t taken; /* claimed (acquire) and given back (release): pair of itself */
};
static struct start starts[START_COUNT];
static uint32_t next_ticket; /* relaxed: only unique */

static struct start *claim_start(void)
{
    for (uint32_t i = 0; i < START_COUNT; i++) {
        uint32_t nobody = 0;
        if (__atomic_load_n(&starts[i].taken, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&starts[i].taken, &nobody, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return &starts[i];
    }
    return NULL;
}

void preload_threads_forked(void)
{
    for (uint32_t i = 0; i < START_COUNT; i++)
        starts[i].taken = 0;
}

static void ended(void *unused)
{
    (void)unused;
    RECORD(thread_exit, PRELOAD_ADDRESS(pthread_self()));
}

static void *run(void *place)
{
    struct start *start = place;
    void *(*const routine)(void *) = start->routine;
    void *const argument = start->argument;
    const uint64_t ticket = start->ticket;
    void *result;
    __atomic_store_n(&start->taken, 0, __ATOMIC_RELEASE);

    RECORD(thread_start, ticket, PRELOAD_ADDRESS(routine), PRELOAD_ADDRESS(pthread_self()));
    /* Also when the routine leaves by pthread_exit or is cancelled. */
    pthread_cleanup_push(ended, NULL);
    result = routine(argument);
    pthread_cleanup_pop(1);
    return result;
}

PRELOAD_EXPORT int pthread_create(pthread_t *handle, const pthread_attr_t *attributes,
                                  void *(*routine)(void *), void *argument)
{
    if (LAT_I_LIKELY(!(lat_thread_create_enabled() | lat_thread_start_enabled() |
                       lat_thread_exit_enabled())) ||
        preload_quiet != 0)
        return REAL(pthread_create)(handle, attributes, routine, argument);

    struct start *start = claim_start();
    const uint64_t ticket = (uint64_t)preload_process() << 32 |
                            __atomic_fetch_add(&next_ticket, 1, __ATOMIC_RELAXED);
    int error;
    RECORD(thread_create, ticket, PRELOAD_ADDRESS(routine));
    if (start == NULL) {
        error = REAL(pthread_create)(handle, attributes, routine, argument);
    } else {
        start->routine = routine;
        start->argument = argument;
        start->ticket = ticket;
        error = REAL(pthread_create)(handle, attributes, run, start);
        if (error != 0)
            __atomic_store_n(&start->taken, 0, __ATOMIC_RELEASE);
    }
    RECORD(thread_created, error == 0 ? PRELOAD_ADDRESS(*handle) : 0, error);
    return error;
}

#define JOIN(call)                                                                               \
    RECORD(thread_join, PRELOAD_ADDRESS(handle));                                                \
    const int error = call;                                                                      \
    RECORD(thread_joined, PRELOAD_ADDRESS(handle), error);                                       \
    return error

PRELOAD_EXPORT int pthread_join(pthread_t handle, void **result)
{
    JOIN(REAL(pthread_join)(handle, result));
}
PRELOAD_EXPORT int pthread_timedjoin_np(pthread_t handle, void **result,
                                        const struct timespec *until)
{
    JOIN(REAL(pthread_timedjoin_np)(handle, result, until));
}
PRELOAD_EXPORT int pthread_clockjoin_np(pthread_t handle, void **result, clockid_t clock,
                                        const struct timespec *until)
{
    JOIN(REAL(pthread_clockjoin_np)(handle, result, clock, until));
}

PRELOAD_EXPORT int pthread_setname_np(pthread_t handle, const char *name)
{
    const int error = REAL(pthread_setname_np)(handle, name);
    if (error == 0)
        RECORD(thread_name, PRELOAD_ADDRESS(handle), name);
    return error;
}
