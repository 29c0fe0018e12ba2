// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Code shared by all wrappers: the wrapped functions, when not to record, how to record.
 *
 * A wrapper calls the real function with exactly its own arguments and returns its
 * result, errno included. It is a cancellation point, async-signal-safe or lock-free if and
 * only if the real function is: recording adds no lock, no allocation and no call that could
 * block. Disabled, it costs the test of a byte (two for functions with a begin and an end) and an
 * indirect call.
 */
#ifndef PRELOAD_REAL_H
#define PRELOAD_REAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
/* Some compilers check buffers by default, with macros and inline functions of these names. */
#undef _FORTIFY_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "functions.h"
#include "preload.h"

/* Only exported names are visible to the traced program. */
#define PRELOAD_EXPORT __attribute__((visibility("default")))
#define PRELOAD_HIDDEN __attribute__((visibility("hidden")))

#define PRELOAD_POINTER(type, name, parameters, arguments, absent) type(*name) parameters;
/** The wrapped functions, each replaced once by the result of the lookup. */
struct preload_real {
    PRELOAD_FUNCTIONS(PRELOAD_POINTER)
};
PRELOAD_HIDDEN extern struct preload_real preload_real;
#undef PRELOAD_POINTER

/* Pair: the relaxed store in real.c. Both values of the pointer are valid: the first one
 * runs the lookup and then calls the real function. */
#define REAL(name) (__atomic_load_n(&preload_real.name, __ATOMIC_RELAXED))

/**
 * Not 0: this thread may be unable to record. Low bits: the library is being set up, a fork is
 * in progress, or the thread's memory is lent to a child of vfork, which the kernel does not restart
 * in restartable sequences. High bits: its memory is lent to children that run concurrently.
 */
PRELOAD_HIDDEN extern __thread unsigned preload_quiet
    __attribute__((tls_model("initial-exec")));
#define PRELOAD_LENT 0x10000u     /* added for each concurrent child */
#define PRELOAD_LOCKED 0x40000000u /* the processor's clock is forbidden: process.c */
/** Whether this is the thread that lent its memory, and not the child that borrows it. */
PRELOAD_HIDDEN int preload_records_though(void);
/** Whether the calling thread records. */
static inline int preload_records(void)
{
    return LAT_I_LIKELY(preload_quiet == 0) || preload_records_though();
}

/** Records an event; evaluates the arguments only when it is enabled. Never changes errno. */
#define RECORD(event, ...)                                                                       \
    do {                                                                                         \
        if (LAT_I_UNLIKELY(lat_##event##_enabled()) && preload_records())                        \
            lat_##event(__VA_ARGS__);                                                            \
    } while (0)

#define PRELOAD_ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))
/** Return address of the wrapper. */
#define PRELOAD_CALLER PRELOAD_ADDRESS(__builtin_return_address(0))
/** Id of the calling thread. */
PRELOAD_HIDDEN uint32_t preload_thread_slow(void);
static inline uint32_t preload_thread(void)
{
    const uint32_t thread = lat_i_thread.writer;
    return LAT_I_LIKELY(thread != 0) ? thread : preload_thread_slow();
}
/** Id of the calling process. */
PRELOAD_HIDDEN uint32_t preload_process_slow(void);
static inline uint32_t preload_process(void)
{
    const uint32_t process = lat_i_thread.pid;
    return LAT_I_LIKELY(process != 0) ? process : preload_process_slow();
}

/** A result in the kernel's form: negative is an error number. */
static inline int64_t preload_outcome(int64_t result)
{
    return result >= 0 ? result : -(int64_t)errno;
}

#define LOCK_CALL(name) LAT_ENUM_PRELOAD_LOCK_CALL_##name
#define IO_CALL(name) LAT_ENUM_PRELOAD_IO_CALL_##name

#endif
