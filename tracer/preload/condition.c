// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Condition variables, semaphores, barriers.
 *
 * Waiting for a condition releases the mutex and acquires it again: both are recorded as such, so
 * that every MUTEX_LOCK has its MUTEX_UNLOCK. A thread that is cancelled while it waits has acquired
 * the mutex again when its clean-up handlers run, and they usually release it. So the acquisition
 * is recorded by a handler of this library, which runs before theirs.
 */
#include "real.h"

struct wait {
    pthread_cond_t *condition;
    pthread_mutex_t *mutex;
    uint64_t caller;
};

static void begins(const struct wait *wait)
{
    RECORD(mutex_cond_wait, PRELOAD_ADDRESS(wait->condition), PRELOAD_ADDRESS(wait->mutex),
           wait->caller);
    RECORD(mutex_mutex_unlock, PRELOAD_ADDRESS(wait->mutex), preload_thread());
}

static void ends(const struct wait *wait, int error)
{
    /* EPERM: the mutex was not this thread's, so it was not released either.
     * ENOTRECOVERABLE: a robust mutex that no thread can acquire any more. */
    if (error == EPERM)
        RECORD(mutex_mutex_unlock_failed, PRELOAD_ADDRESS(wait->mutex), preload_thread(), error);
    else if (error != ENOTRECOVERABLE)
        RECORD(mutex_mutex_lock, PRELOAD_ADDRESS(wait->mutex), wait->caller, preload_thread(),
               LOCK_CALL(COND_WAIT));
    RECORD(mutex_cond_woken, PRELOAD_ADDRESS(wait->condition), PRELOAD_ADDRESS(wait->mutex), error);
}

static void cancelled(void *wait)
{
    ends(wait, ECANCELED);
}

static int is_traced(void)
{
    return LAT_I_UNLIKELY(lat_mutex_mutex_lock_enabled() | lat_mutex_cond_wait_enabled()) &&
           preload_records();
}

#define WAIT(call)                                                                               \
    struct wait wait = {condition, mutex, PRELOAD_CALLER};                                       \
    int error;                                                                                   \
    begins(&wait);                                                                               \
    pthread_cleanup_push(cancelled, &wait);                                                      \
    error = call;                                                                                \
    pthread_cleanup_pop(0);                                                                      \
    ends(&wait, error);                                                                          \
    return error

PRELOAD_EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (!is_traced())
        return REAL(pthread_cond_wait)(condition, mutex);
    WAIT(REAL(pthread_cond_wait)(condition, mutex));
}

PRELOAD_EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                          const struct timespec *until)
{
    if (!is_traced())
        return REAL(pthread_cond_timedwait)(condition, mutex, until);
    WAIT(REAL(pthread_cond_timedwait)(condition, mutex, until));
}

PRELOAD_EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                          clockid_t clock, const struct timespec *until)
{
    if (!is_traced())
        return REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
    WAIT(REAL(pthread_cond_clockwait)(condition, mutex, clock, until));
}

/* Recorded before the call, so that the woken thread's records are later. */
PRELOAD_EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
    RECORD(mutex_cond_signal, PRELOAD_ADDRESS(condition));
    return REAL(pthread_cond_signal)(condition);
}

PRELOAD_EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
    RECORD(mutex_cond_broadcast, PRELOAD_ADDRESS(condition));
    return REAL(pthread_cond_broadcast)(condition);
}

/* ---- semaphores ------------------------------------------------------------ */

#define TAKE(call)                                                                               \
    RECORD(mutex_sem_wait, PRELOAD_ADDRESS(semaphore), PRELOAD_CALLER);                          \
    const int result = call;                                                                     \
    RECORD(mutex_sem_waited, PRELOAD_ADDRESS(semaphore), result == 0 ? 0 : errno);               \
    return result

PRELOAD_EXPORT int sem_wait(sem_t *semaphore)
{
    TAKE(REAL(sem_wait)(semaphore));
}

PRELOAD_EXPORT int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    TAKE(REAL(sem_timedwait)(semaphore, until));
}

PRELOAD_EXPORT int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    TAKE(REAL(sem_clockwait)(semaphore, clock, until));
}

PRELOAD_EXPORT int sem_trywait(sem_t *semaphore)
{
    const int result = REAL(sem_trywait)(semaphore);
    if (result == 0)
        RECORD(mutex_sem_take, PRELOAD_ADDRESS(semaphore));
    return result;
}

PRELOAD_EXPORT int sem_post(sem_t *semaphore)
{
    RECORD(mutex_sem_post, PRELOAD_ADDRESS(semaphore));
    return REAL(sem_post)(semaphore);
}

/* ---- barriers ---------------------------------------------------------------- */

PRELOAD_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    RECORD(mutex_barrier_wait, PRELOAD_ADDRESS(barrier), PRELOAD_CALLER);
    const int result = REAL(pthread_barrier_wait)(barrier);
    RECORD(mutex_barrier_pass, PRELOAD_ADDRESS(barrier), result);
    return result;
}
