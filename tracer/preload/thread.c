// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Threads: created, started, ended, joined, named. */
#include "thread.h"
#include "real.h"

#include "area.h"
#include "core.h"

/*
 * Data that a new thread needs for its first record and its name. Entries are released as soon as
 * the thread runs; pages of unused entries take no memory. If none is free the thread
 * starts without the wrapper, and its events are counted as lost. Allocating one would appear among the
 * program's own allocations.
 */
#define START_COUNT 16384u
struct start {
    void *(*routine)(void *);
    void *argument;
    uint64_t ticket;
    char name[16];
    uint32_t taken; /* claimed (acquire) and released (release): pair of itself */
};
static struct start starts[START_COUNT];
static uint32_t next_ticket; /* relaxed: only unique */

static uint32_t starts_used; /* highest entry ever claimed, plus 1; relaxed */

static struct start *claim_start(void)
{
    for (uint32_t i = 0; i < START_COUNT; i++) {
        uint32_t nobody = 0;
        if (__atomic_load_n(&starts[i].taken, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&starts[i].taken, &nobody, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            uint32_t used = __atomic_load_n(&starts_used, __ATOMIC_RELAXED);
            while (used <= i && !__atomic_compare_exchange_n(&starts_used, &used, i + 1, 1,
                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            }
            return &starts[i];
        }
    }
    return NULL;
}

void preload_threads_forked(void)
{
    for (uint32_t i = 0; i < starts_used; i++)
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
    lat_i_begin_thread(start->name);
    __atomic_store_n(&start->taken, 0, __ATOMIC_RELEASE);

    RECORD(thread_start, ticket, PRELOAD_ADDRESS(routine), PRELOAD_ADDRESS(pthread_self()));
    /* Also runs if the routine ends by pthread_exit or is cancelled. */
    pthread_cleanup_push(ended, NULL);
    result = routine(argument);
    pthread_cleanup_pop(1);
    return result;
}

PRELOAD_EXPORT int pthread_create(pthread_t *handle, const pthread_attr_t *attributes,
                                  void *(*routine)(void *), void *argument)
{
    if (LAT_I_LIKELY(!(lat_thread_create_enabled() | lat_thread_start_enabled() |
                       lat_thread_exit_enabled() | lat_recording())) ||
        !preload_records())
        return REAL(pthread_create)(handle, attributes, routine, argument);

    struct start *start = claim_start();
    const uint64_t ticket = (uint64_t)preload_process() << 32 |
                            __atomic_fetch_add(&next_ticket, 1, __ATOMIC_RELAXED);
    int error;
    RECORD(thread_create, ticket, PRELOAD_ADDRESS(routine));
    if (start == NULL) {
        lat_i_count_lost((lat_thread_start_enabled() != 0) + (lat_thread_exit_enabled() != 0));
        error = REAL(pthread_create)(handle, attributes, routine, argument);
    } else {
        start->routine = routine;
        start->argument = argument;
        start->ticket = ticket;
        for (uint32_t at = 0; at < sizeof start->name; at++)
            start->name[at] = lat_i_name_of_thread()[at];
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
    if (error == 0) {
        if (preload_records() && pthread_equal(handle, pthread_self()))
            lat_i_rename_thread(name);
        else if (preload_records())
            lat_i_name_thread(lat_i_thread_of(handle), name);
        RECORD(thread_name, PRELOAD_ADDRESS(handle), name);
    }
    return error;
}
