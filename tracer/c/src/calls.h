// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * System calls and a lock that nobody can stand in front of. A library that is preloaded
 * (tracer/preload is one) replaces open, read, close or pthread_mutex_lock by name: what the tracer
 * does for itself would be recorded as the program's.
 */
#ifndef LAT_CALLS_H
#define LAT_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <linux/futex.h>

static inline int lat_i_open(const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
static inline ssize_t lat_i_read(int file, void *to, size_t bytes)
{
    return syscall(SYS_read, file, to, bytes);
}
static inline void lat_i_close(int file)
{
    syscall(SYS_close, file);
}

/* 0 free, 1 taken, 2 taken and somebody waits. No system call unless two threads meet. Acquire and
 * release: pair of itself. */
static inline void lat_i_lock(uint32_t *lock)
{
    uint32_t found = 0;
    if (__atomic_compare_exchange_n(lock, &found, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE) != 0)
        syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}
static inline void lat_i_unlock(uint32_t *lock)
{
    if (__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) == 2)
        syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
