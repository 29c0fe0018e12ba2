// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Read-write locks, in the same way as mutexes (mutex.c). */
#include "real.h"

static int is_traced(void)
{
    return LAT_I_UNLIKELY(lat_mutex_rwlock_read_enabled() | lat_mutex_rwlock_write_enabled() |
                          lat_mutex_rwlock_wait_enabled()) &&
           preload_records();
}

#define LOCK(lock, try, event, exclusive, how, wait)                                             \
    int error = REAL(try)(lock);                                                                 \
    if (error == EBUSY) {                                                                        \
        RECORD(mutex_rwlock_wait, PRELOAD_ADDRESS(lock), PRELOAD_CALLER, exclusive);             \
        error = wait;                                                                            \
        RECORD(mutex_rwlock_waited, PRELOAD_ADDRESS(lock), error);                               \
    }                                                                                            \
    if (error == 0)                                                                              \
        RECORD(event, PRELOAD_ADDRESS(lock), PRELOAD_CALLER, preload_thread(), LOCK_CALL(how));  \
    return error

#define READ(lock, how, wait)                                                                    \
    LOCK(lock, pthread_rwlock_tryrdlock, mutex_rwlock_read, false, how, wait)
#define WRITE(lock, how, wait)                                                                   \
    LOCK(lock, pthread_rwlock_trywrlock, mutex_rwlock_write, true, how, wait)

PRELOAD_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    if (!is_traced())
        return REAL(pthread_rwlock_rdlock)(lock);
    READ(lock, LOCK, REAL(pthread_rwlock_rdlock)(lock));
}

PRELOAD_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    if (!is_traced())
        return REAL(pthread_rwlock_wrlock)(lock);
    WRITE(lock, LOCK, REAL(pthread_rwlock_wrlock)(lock));
}

/* With a time limit the C library checks the limit first, even if the lock is free. The wrapper keeps that
 * order: a call that may be rejected is made as the program made it. */
#define TIMED(lock, event, exclusive, how, call)                                                 \
    RECORD(mutex_rwlock_wait, PRELOAD_ADDRESS(lock), PRELOAD_CALLER, exclusive);                 \
    const int error = call;                                                                      \
    RECORD(mutex_rwlock_waited, PRELOAD_ADDRESS(lock), error);                                   \
    if (error == 0)                                                                              \
        RECORD(event, PRELOAD_ADDRESS(lock), PRELOAD_CALLER, preload_thread(), LOCK_CALL(how));  \
    return error

PRELOAD_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    TIMED(lock, mutex_rwlock_read, false, TIMEDLOCK,
          REAL(pthread_rwlock_timedrdlock)(lock, until));
}

PRELOAD_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    TIMED(lock, mutex_rwlock_write, true, TIMEDLOCK,
          REAL(pthread_rwlock_timedwrlock)(lock, until));
}

PRELOAD_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
                                              const struct timespec *until)
{
    TIMED(lock, mutex_rwlock_read, false, CLOCKLOCK,
          REAL(pthread_rwlock_clockrdlock)(lock, clock, until));
}

PRELOAD_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
                                              const struct timespec *until)
{
    TIMED(lock, mutex_rwlock_write, true, CLOCKLOCK,
          REAL(pthread_rwlock_clockwrlock)(lock, clock, until));
}

#define TRY(name, event, exclusive)                                                              \
    PRELOAD_EXPORT int name(pthread_rwlock_t *lock)                                              \
    {                                                                                            \
        const int error = REAL(name)(lock);                                                      \
        if (error == 0)                                                                          \
            RECORD(event, PRELOAD_ADDRESS(lock), PRELOAD_CALLER, preload_thread(),               \
                   LOCK_CALL(TRYLOCK));                                                          \
        else if (error == EBUSY)                                                                 \
            RECORD(mutex_rwlock_busy, PRELOAD_ADDRESS(lock), PRELOAD_CALLER, exclusive);         \
        return error;                                                                            \
    }
TRY(pthread_rwlock_tryrdlock, mutex_rwlock_read, false)
TRY(pthread_rwlock_trywrlock, mutex_rwlock_write, true)

PRELOAD_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    RECORD(mutex_rwlock_unlock, PRELOAD_ADDRESS(lock), preload_thread());
    return REAL(pthread_rwlock_unlock)(lock);
}
