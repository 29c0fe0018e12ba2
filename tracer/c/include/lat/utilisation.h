/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How much of the processors threads had, between two moments: the calls of seL4's CPU utilisation
 * tracking.
 *
 *     lat_utilisation_reset_thread(0);
 *     lat_utilisation_reset();
 *     …
 *     lat_utilisation_finalize();
 *     struct lat_utilisation had;
 *     lat_utilisation_get(0, &had);
 *
 * On Linux the kernel counts all along, so tracking costs nothing but these calls, and needs no
 * right. Both ends stand on the time line of a recording, as marks. Elsewhere a port's scheduler
 * tells each switch: see utilisation_port.h.
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

/** What a thread and its program had while it was tracked. */
struct lat_utilisation {
    uint64_t thread_ns;         /* time of the thread on processors, in all intervals since it was reset */
    uint64_t thread_schedules;  /* how often it was put on one */
    uint64_t program_ns;        /* time of all threads, ended ones too, in the last interval */
    uint64_t program_schedules; /* how often one of them left a processor */
    uint64_t elapsed_ns;        /* how long the last interval was; times `cpus`, all there was */
    uint32_t cpus;              /* processors that the program may use */
    uint32_t threads_missed;    /* threads for which there was no room */
};

/** Most threads that are tracked at a time. */
#define LAT_UTILISATION_THREADS 1024u

/**
 * Begins an interval: the program's counts begin at 0, those of threads go on. 0, or a negative
 * error number; then nothing is tracked.
 */
int lat_utilisation_reset(void);

/** Sets the counts of a thread to 0; 0 means the caller. Without it they add up over intervals. */
int lat_utilisation_reset_thread(int tid);

/** Ends the interval; without a beginning it does nothing. */
int lat_utilisation_finalize(void);

/**
 * What a thread had; 0 means the caller. Before the interval has ended: until now. -ESRCH if the
 * thread had ended when the interval did, or there is none; -ENOSPC if there was no room for it.
 */
int lat_utilisation_get(int tid, struct lat_utilisation *had);

#ifdef __cplusplus
}
#endif

#endif
