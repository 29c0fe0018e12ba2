/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CPU utilisation on Linux: differences of the kernel's counters.
 *
 * A thread's time is read from its CPU-time clock, which is exact at the moment of reading; the sum in
 * /proc is that of the last tick. The number of times it was scheduled in is the third number of
 * /proc/self/task/TID/schedstat; if the kernel has no such file, the number of times it was scheduled out.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "calls.h"

#include <lat/lat.h>
#include <lat/utilisation.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct lat_i_utilisation_count {
    uint64_t ns;
    uint64_t schedules;
};

struct lat_i_utilisation_thread {
    int tid; /* 0: a free entry */
    int has_base;
    struct lat_i_utilisation_count base; /* its values at the start of the interval */
    struct lat_i_utilisation_count sum;  /* of finished intervals */
    unsigned seen;                       /* number of the last scan in which it was alive */
};

/* All under the lock. Unused pages of the table take no memory. */
static uint32_t lat_i_utilisation_lock;
static struct lat_i_utilisation_thread lat_i_utilisation_threads[LAT_UTILISATION_THREADS];
static unsigned lat_i_utilisation_looks;
static uint32_t lat_i_utilisation_missed;
static int lat_i_utilisation_is_tracking;
static int lat_i_utilisation_owner; /* the process: a forked child starts over */
static struct lat_i_utilisation_count lat_i_utilisation_program; /* at the beginning, then the sum */
static uint64_t lat_i_utilisation_elapsed_ns;                    /* likewise */

static uint64_t lat_i_utilisation_ns(clockid_t clock, int *error)
{
    struct timespec time = {0, 0};
    if (clock_gettime(clock, &time) != 0)
        *error = -errno;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Reads a small file of /proc as text. @return its length, or a negative error number. */
static int lat_i_utilisation_read(int tid, const char *name, char *text, size_t bytes)
{
    char path[64];
    int file, count;
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    file = lat_i_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0)
        return -errno;
    count = (int)lat_i_read(file, text, bytes - 1);
    if (count < 0)
        count = -errno;
    lat_i_close(file);
    text[count > 0 ? count : 0] = 0;
    return count;
}

static uint64_t lat_i_utilisation_number(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

/* Reads the values of a thread since its start. @return 0, or -ESRCH. */
static int lat_i_utilisation_count_thread(int tid, struct lat_i_utilisation_count *count)
{
    /* The clock of a thread of this process, by its number [linux: posix-timers, CPUCLOCK_PERTHREAD |
     * CPUCLOCK_SCHED]. */
    clockid_t clock = (clockid_t)((~(unsigned)tid << 3) | 4u | 2u);
    char text[2048];
    int error = 0;
    count->ns = lat_i_utilisation_ns(clock, &error);
    if (error != 0)
        return -ESRCH;
    if (lat_i_utilisation_read(tid, "schedstat", text, sizeof text) > 0) {
        const char *last = strrchr(text, ' ');
        count->schedules = last == NULL ? 0 : strtoull(last, NULL, 10);
    } else if (lat_i_utilisation_read(tid, "status", text, sizeof text) > 0) {
        count->schedules = lat_i_utilisation_number(text, "\nvoluntary_ctxt_switches:") +
                           lat_i_utilisation_number(text, "\nnonvoluntary_ctxt_switches:");
    } else {
        return -ESRCH;
    }
    return 0;
}

static void lat_i_utilisation_count_program(struct lat_i_utilisation_count *count)
{
    struct rusage usage;
    int error = 0;
    count->ns = lat_i_utilisation_ns(CLOCK_PROCESS_CPUTIME_ID, &error);
    memset(&usage, 0, sizeof usage);
    getrusage(RUSAGE_SELF, &usage);
    count->schedules = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

static struct lat_i_utilisation_thread *lat_i_utilisation_find(int tid)
{
    for (size_t i = 0; i < LAT_UTILISATION_THREADS; i++)
        if (lat_i_utilisation_threads[i].tid == tid)
            return &lat_i_utilisation_threads[i];
    return NULL;
}

/* The entry of a thread; NULL if there is no room. Entries of ended threads are reused when
 * there are no others. */
static struct lat_i_utilisation_thread *lat_i_utilisation_place(int tid)
{
    struct lat_i_utilisation_thread *place = lat_i_utilisation_find(tid);
    if (place != NULL)
        return place;
    place = lat_i_utilisation_find(0);
    for (size_t i = 0; place == NULL && i < LAT_UTILISATION_THREADS; i++)
        if (lat_i_utilisation_threads[i].seen + 1 < lat_i_utilisation_looks)
            place = &lat_i_utilisation_threads[i];
    if (place != NULL) {
        memset(place, 0, sizeof *place);
        place->tid = tid;
    }
    return place;
}

static struct lat_i_utilisation_count
lat_i_utilisation_since(struct lat_i_utilisation_count now, struct lat_i_utilisation_count base)
{
    /* The id was reused: another thread, whose values started at 0. */
    /* Scans every thread: at the start of an interval (`begins`), or at its end. */
    if (now.ns < base.ns || now.schedules < base.schedules)
        return now;
    now.ns -= base.ns;
    now.schedules -= base.schedules;
    return now;
}

/* Looks at every thread: at the beginning (`begins`) of an interval, or at its end. */
static int lat_i_utilisation_look(int begins)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    if (tasks == NULL)
        return -errno;
    lat_i_utilisation_looks++;
    while ((entry = readdir(tasks)) != NULL) {
        int tid = atoi(entry->d_name);
        struct lat_i_utilisation_count now;
        struct lat_i_utilisation_thread *thread;
        if (tid <= 0 || lat_i_utilisation_count_thread(tid, &now) != 0)
            continue;
        thread = lat_i_utilisation_place(tid);
        if (thread == NULL) {
            lat_i_utilisation_missed++;
            continue;
        }
        thread->seen = lat_i_utilisation_looks;
        if (begins) {
            thread->base = now;
        } else {
            struct lat_i_utilisation_count had = lat_i_utilisation_since(now, thread->base);
            thread->sum.ns += had.ns;
            thread->sum.schedules += had.schedules;
        }
        thread->has_base = begins;
    }
    closedir(tasks);
    /* Threads that were not seen have ended: a later thread with the same id starts at 0. */
    for (size_t i = 0; begins && i < LAT_UTILISATION_THREADS; i++)
        if (lat_i_utilisation_threads[i].seen != lat_i_utilisation_looks)
            memset(&lat_i_utilisation_threads[i].base, 0, sizeof lat_i_utilisation_threads[i].base);
    return 0;
}

static void lat_i_utilisation_enter(void)
{
    /* A forked child has one thread, and perhaps a lock that another thread held. */
    if (lat_i_utilisation_owner != 0 && lat_i_utilisation_owner != (int)getpid())
        lat_i_utilisation_lock = 0;
    lat_i_lock(&lat_i_utilisation_lock);
    if (lat_i_utilisation_owner != (int)getpid()) {
        memset(lat_i_utilisation_threads, 0, sizeof lat_i_utilisation_threads);
        lat_i_utilisation_is_tracking = 0;
        lat_i_utilisation_owner = (int)getpid();
    }
}

static int lat_i_utilisation_leave(int result)
{
    lat_i_unlock(&lat_i_utilisation_lock);
    return result;
}

int lat_utilisation_reset(void)
{
    int error, ignored = 0;
    lat_i_utilisation_enter();
    lat_i_utilisation_missed = 0;
    /* The interval of a thread lies within that of the program, which lies within the elapsed time. */
    lat_i_utilisation_elapsed_ns = lat_i_utilisation_ns(CLOCK_MONOTONIC, &ignored);
    lat_i_utilisation_count_program(&lat_i_utilisation_program);
    error = lat_i_utilisation_look(1);
    lat_i_utilisation_is_tracking = error == 0;
    lat_mark("utilisation: reset");
    return lat_i_utilisation_leave(error);
}

int lat_utilisation_reset_thread(int tid)
{
    struct lat_i_utilisation_thread *thread;
    struct lat_i_utilisation_count now;
    int error = 0;
    if (tid == 0)
        tid = (int)syscall(SYS_gettid);
    lat_i_utilisation_enter();
    if (tid < 0 || lat_i_utilisation_count_thread(tid, &now) != 0) {
        error = -ESRCH;
    } else if ((thread = lat_i_utilisation_place(tid)) == NULL) {
        error = -ENOSPC;
    } else {
        memset(&thread->sum, 0, sizeof thread->sum);
        thread->base = now;
        thread->seen = lat_i_utilisation_looks;
    }
    return lat_i_utilisation_leave(error);
}

int lat_utilisation_finalize(void)
{
    struct lat_i_utilisation_count now;
    int error = 0, ignored = 0;
    lat_i_utilisation_enter();
    if (lat_i_utilisation_is_tracking) {
        lat_mark("utilisation: finalize");
        error = lat_i_utilisation_look(0);
        lat_i_utilisation_count_program(&now);
        lat_i_utilisation_program = lat_i_utilisation_since(now, lat_i_utilisation_program);
        lat_i_utilisation_elapsed_ns =
            lat_i_utilisation_ns(CLOCK_MONOTONIC, &ignored) - lat_i_utilisation_elapsed_ns;
        lat_i_utilisation_is_tracking = 0;
    }
    return lat_i_utilisation_leave(error);
}

int lat_utilisation_get(int tid, struct lat_utilisation *had)
{
    struct lat_i_utilisation_count program = {0, 0}, now = {0, 0};
    struct lat_i_utilisation_thread *thread;
    cpu_set_t usable;
    int error = 0, ignored = 0;
    memset(had, 0, sizeof *had);
    if (tid == 0)
        tid = (int)syscall(SYS_gettid);
    lat_i_utilisation_enter();
    thread = tid < 0 ? NULL : lat_i_utilisation_find(tid);
    if (thread != NULL && tid != 0) {
        had->thread_ns = thread->sum.ns;
        had->thread_schedules = thread->sum.schedules;
    }
    program = lat_i_utilisation_program;
    had->elapsed_ns = lat_i_utilisation_elapsed_ns;
    if (lat_i_utilisation_is_tracking) {
        had->elapsed_ns = lat_i_utilisation_ns(CLOCK_MONOTONIC, &ignored) - had->elapsed_ns;
        lat_i_utilisation_count_program(&now);
        program = lat_i_utilisation_since(now, program);
        error = lat_i_utilisation_count_thread(tid, &now);
        if (error == 0) {
            struct lat_i_utilisation_count base = {0, 0};
            now = lat_i_utilisation_since(now, thread == NULL ? base : thread->base);
            had->thread_ns += now.ns;
            had->thread_schedules += now.schedules;
        }
    } else if (thread == NULL || thread->seen != lat_i_utilisation_looks) {
        error = thread == NULL && lat_i_utilisation_missed != 0 ? -ENOSPC : -ESRCH;
    }
    had->program_ns = program.ns;
    had->program_schedules = program.schedules;
    had->threads_missed = lat_i_utilisation_missed;
    CPU_ZERO(&usable);
    if (sched_getaffinity(0, sizeof usable, &usable) == 0)
        had->cpus = (uint32_t)CPU_COUNT(&usable);
    return lat_i_utilisation_leave(error);
}
