// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Mutexes. A free mutex is acquired by trylock, which for every type of mutex begins like
 * lock; only a thread that finds it held records a wait. The release is recorded before
 * it happens and the acquisition after, so that by the time stamps no two threads ever hold it.
 */
#include "real.h"

/* EOWNERDEAD: a robust mutex whose last owner died; it has been acquired. */
static int is_taken(int error)
{
    return error == 0 || error == EOWNERDEAD;
}

static int is_traced(void)
{
    return LAT_I_UNLIKELY(lat_mutex_mutex_lock_enabled() | lat_mutex_mutex_wait_enabled()) &&
           preload_records();
}

/* `wait` is the blocking call, evaluated only when the mutex is not free. */
#define LOCK(mutex, how, wait)                                                                   \
    int error = REAL(pthread_mutex_trylock)(mutex);                                              \
    if (error == EBUSY) {                                                                        \
        RECORD(mutex_mutex_wait, PRELOAD_ADDRESS(mutex), PRELOAD_CALLER);                        \
        error = wait;                                                                            \
        RECORD(mutex_mutex_waited, PRELOAD_ADDRESS(mutex), error);                               \
    }                                                                                            \
    if (is_taken(error))                                                                         \
        RECORD(mutex_mutex_lock, PRELOAD_ADDRESS(mutex), PRELOAD_CALLER, preload_thread(),       \
               LOCK_CALL(how));                                                                  \
    return error

PRELOAD_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!is_traced())
        return REAL(pthread_mutex_lock)(mutex);
    LOCK(mutex, LOCK, REAL(pthread_mutex_lock)(mutex));
}

PRELOAD_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    if (!is_traced())
        return REAL(pthread_mutex_timedlock)(mutex, until);
    LOCK(mutex, TIMEDLOCK, REAL(pthread_mutex_timedlock)(mutex, until));
}

PRELOAD_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                           const struct timespec *until)
{
    /* Clocks other than these two are rejected even if the mutex is free. */
    if (!is_traced() || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
        return REAL(pthread_mutex_clocklock)(mutex, clock, until);
    LOCK(mutex, CLOCKLOCK, REAL(pthread_mutex_clocklock)(mutex, clock, until));
}

PRELOAD_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    const int error = REAL(pthread_mutex_trylock)(mutex);
    if (is_taken(error))
        RECORD(mutex_mutex_lock, PRELOAD_ADDRESS(mutex), PRELOAD_CALLER, preload_thread(),
               LOCK_CALL(TRYLOCK));
    else if (error == EBUSY)
        RECORD(mutex_mutex_busy, PRELOAD_ADDRESS(mutex), PRELOAD_CALLER);
    return error;
}

PRELOAD_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    RECORD(mutex_mutex_unlock, PRELOAD_ADDRESS(mutex), preload_thread());
    const int error = REAL(pthread_mutex_unlock)(mutex);
    if (LAT_I_UNLIKELY(error != 0))
        RECORD(mutex_mutex_unlock_failed, PRELOAD_ADDRESS(mutex), preload_thread(), error);
    return error;
}
