/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CPU time of threads between two moments: the calls of seL4's CPU utilisation
 * tracking.
 *
 *     lat_utilisation_reset_thread(0);
 *     lat_utilisation_reset();
 *     …
 *     lat_utilisation_finalize();
 *     struct lat_utilisation had;
 *     lat_utilisation_get(0, &had);
 *
 * On Linux the kernel counts all the time, so tracking costs nothing but these calls, and needs no
 * privileges. Both ends are marks on the timeline of a recording. Elsewhere a port's scheduler
 * reports each switch: see utilisation_port.h.
 *
 * Context of the functions: any thread, no signal handler. They read files of /proc, which takes some
 * microseconds for each thread of the program; they wait for each other.
 */
#ifndef LAT_UTILISATION_H
#define LAT_UTILISATION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** CPU time and scheduling counts of a thread and its program while tracked. */
struct lat_utilisation {
    uint64_t thread_ns;         /* CPU time of the thread, in all intervals since it was reset */
    uint64_t thread_schedules;  /* number of times it was scheduled in */
    uint64_t program_ns;        /* CPU time of all threads, ended ones too, in the last interval */
    uint64_t program_schedules; /* number of times one of them was scheduled out */
    uint64_t elapsed_ns;        /* length of the last interval; times `cpus`: all CPU time */
    uint32_t cpus;              /* processors that the program may use */
    uint32_t threads_missed;    /* threads not tracked for lack of room */
};

/** Maximum number of threads tracked at a time. */
#define LAT_UTILISATION_THREADS 1024u

/**
 * Begins an interval: the program's counts restart at 0, those of threads continue. @return 0, or a negative
 * error number; then nothing is tracked.
 */
int lat_utilisation_reset(void);

/** Sets the counts of a thread to 0; 0 means the caller. Otherwise they accumulate over intervals. */
int lat_utilisation_reset_thread(int tid);

/** Ends the interval; does nothing if none has begun. */
int lat_utilisation_finalize(void);

/**
 * Returns the values of a thread; 0 means the caller. During an interval: up to now. -ESRCH if the
 * thread had ended before the interval did, or does not exist; -ENOSPC if there was no room for it.
 */
int lat_utilisation_get(int tid, struct lat_utilisation *had);

#ifdef __cplusplus
}
#endif

#endif
