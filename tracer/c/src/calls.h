// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * System calls and a lock that cannot be interposed. A preloaded library
 * (tracer/preload is one) replaces open, read, close or pthread_mutex_lock by name: the tracer's own
 * calls would be recorded as the program's.
 */
#ifndef LAT_CALLS_H
#define LAT_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <linux/futex.h>

extern char **environ;

/*
 * Set-up makes its system calls itself: each libc function that it calls is resolved by name in each
 * starting program, and lies in memory that a short-lived program does not touch otherwise.
 * The following functions return the kernel's result: -4095 … -1 is an error number, and errno is unchanged.
 * The calls are those of libc, except that libc may use newfstatat for fstat: the dynamic linker or exec.c
 * makes each of both kinds. Builds with sanitizers use libc, whose functions report memory use to
 * them, and so do machines on which one number of the kernel takes two arguments.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LAT_I_IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define LAT_I_IS_WATCHED 1
#endif
#endif
#if !defined(LAT_I_IS_WATCHED) && ((defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__))
static inline long lat_i_call(long number, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = 0; /* the offset in a file, of mmap alone */
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = 0;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#endif
}
#define LAT_I_WORD(value) ((long)(value))
#define LAT_I_CALL(function, name, a, b, c, d, e)                                                \
    lat_i_call(SYS_##name, LAT_I_WORD(a), LAT_I_WORD(b), LAT_I_WORD(c), LAT_I_WORD(d), LAT_I_WORD(e))
#else
static inline long lat_i_result(long result)
{
    return result == -1 ? -(long)errno : result;
}
#define LAT_I_CALL(function, name, a, b, c, d, e) lat_i_result((long)(function))
#endif

static inline int lat_i_open(const char *path, int flags, mode_t mode)
{
    return (int)LAT_I_CALL(syscall(SYS_openat, AT_FDCWD, path, flags, mode), openat, AT_FDCWD, path, flags,
                           mode, 0);
}
static inline ssize_t lat_i_read(int file, void *to, size_t bytes)
{
    return (ssize_t)LAT_I_CALL(syscall(SYS_read, file, to, bytes), read, file, to, bytes, 0, 0);
}
static inline void lat_i_close(int file)
{
    (void)LAT_I_CALL(syscall(SYS_close, file), close, file, 0, 0, 0, 0);
}
static inline ssize_t lat_i_read_link(const char *path, char *to, size_t bytes)
{
#if defined(SYS_readlink)
    return (ssize_t)LAT_I_CALL(readlink(path, to, bytes), readlink, path, to, bytes, 0, 0);
#else
    return (ssize_t)LAT_I_CALL(readlink(path, to, bytes), readlinkat, AT_FDCWD, path, to, bytes, 0);
#endif
}
static inline int lat_i_unlink(const char *path)
{
#if defined(SYS_unlink)
    return (int)LAT_I_CALL(unlink(path), unlink, path, 0, 0, 0, 0);
#else
    return (int)LAT_I_CALL(unlink(path), unlinkat, AT_FDCWD, path, 0, 0, 0);
#endif
}
static inline int lat_i_rename(const char *from, const char *to)
{
#if defined(SYS_rename)
    return (int)LAT_I_CALL(rename(from, to), rename, from, to, 0, 0, 0);
#else
    return (int)LAT_I_CALL(rename(from, to), renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
#endif
}
static inline int lat_i_status_of(int file, struct stat *status)
{
    return (int)LAT_I_CALL(fstat(file, status), fstat, file, status, 0, 0, 0);
}
/* Does not follow a link. */
static inline int lat_i_status_at(const char *path, struct stat *status)
{
    return (int)LAT_I_CALL(lstat(path, status), newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW, 0);
}
static inline int lat_i_truncate(int file, uint64_t bytes)
{
    return (int)LAT_I_CALL(ftruncate(file, (off_t)bytes), ftruncate, file, bytes, 0, 0, 0);
}
static inline int lat_i_allocate(int file, uint64_t offset, uint64_t bytes)
{
    return (int)LAT_I_CALL(fallocate(file, 0, (off_t)offset, (off_t)bytes), fallocate, file, 0, offset, bytes,
                           0);
}
static inline int lat_i_flock(int file, int operation)
{
    return (int)LAT_I_CALL(flock(file, operation), flock, file, operation, 0, 0, 0);
}
/* Returns the conflicting lock, if there is one. */
static inline int lat_i_lock_of(int file, struct flock *lock)
{
    return (int)LAT_I_CALL(fcntl(file, F_GETLK, lock), fcntl, file, F_GETLK, lock, 0, 0);
}
static inline int lat_i_limit(int resource, struct rlimit *limit)
{
    return (int)LAT_I_CALL(getrlimit(resource, limit), prlimit64, 0, resource, 0, limit, 0);
}
/* Maps the beginning of a file, or new memory (-1). @return NULL if there is no room. */
static inline void *lat_i_map(void *at, size_t bytes, int protection, int flags, int file)
{
    const long mapped = LAT_I_CALL((intptr_t)mmap(at, bytes, protection, flags, file, 0), mmap, at, bytes,
                                   protection, flags, file);
    return mapped < 0 && mapped >= -4095 ? NULL : (void *)(intptr_t)mapped;
}
static inline int lat_i_unmap(void *memory, size_t bytes)
{
    return (int)LAT_I_CALL(munmap(memory, bytes), munmap, memory, bytes, 0, 0, 0);
}
static inline int lat_i_protect(void *memory, size_t bytes, int protection)
{
    return (int)LAT_I_CALL(syscall(SYS_mprotect, memory, bytes, protection), mprotect, memory, bytes,
                           protection, 0, 0);
}
static inline int lat_i_advise(void *memory, size_t bytes, int advice)
{
    return (int)LAT_I_CALL(madvise(memory, bytes, advice), madvise, memory, bytes, advice, 0, 0);
}
static inline uint32_t lat_i_user(void)
{
    return (uint32_t)LAT_I_CALL(geteuid(), geteuid, 0, 0, 0, 0, 0);
}

/* Value of an environment variable; NULL if unset. Some programs (bash) define their own
 * getenv. */
static inline const char *lat_i_variable(const char *name)
{
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        const char *text = *variable, *wanted = name;
        while (*wanted != 0 && *text == *wanted)
            text++, wanted++;
        if (*wanted == 0 && *text == '=')
            return text + 1;
    }
    return NULL;
}

/* 0 free, 1 locked, 2 locked with waiters. Makes a system call only under contention. Acquire and
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
