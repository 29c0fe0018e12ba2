// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The Linux port: says who runs where, keeps up with threads, forks and exits. area.c makes
 * the area. Set-up may use libc; what the slow path of an event calls
 * (lat_i_port_*) is async-signal-safe and leaves errno alone.
 *
 * The traced program is sacred: nothing here prints, waits, or fails visibly. If
 * something is missing, `lat_i_area.header` stays NULL and every event stays
 * disabled.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "core.h"
#include "area.h"
#include "maps.h"
#include "register.h"
#include "request.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t registered_pid; /* process that has its slot in the process table */
static uint32_t announced_pid;  /* process whose PROCESS record was asked for */
static pthread_key_t thread_end_key;
static int thread_end_key_made;

/* ---- what the core asks (core.h) ---------------------------------------- */

#if defined(__GLIBC__)
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
#endif

/* The beginning of struct rseq [rseq(2)]. */
struct rseq_begin {
    uint32_t cpu_id_start;
    uint32_t cpu_id;
    uint64_t sequence; /* descriptor of the restartable sequence that was begun last */
};

#if defined(__x86_64__) || defined(__aarch64__)
/* Where sites write their descriptor as long as no restartable sequences are used: they do so
 * before they find out, and lat_i_state.rseq_offset must never lead into the thread's own data. */
static __thread volatile struct rseq_begin no_rseq
    __attribute__((tls_model("initial-exec"))) = {0, UINT32_MAX, 0};

static char *thread_pointer(void)
{
    char *pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

static volatile struct rseq_begin *rseq_of_thread(void)
{
    return (volatile struct rseq_begin *)(void *)(thread_pointer() + lat_i_state.rseq_offset);
}

static void use_no_rseq(void)
{
    lat_i_state.rseq_offset = (const volatile char *)&no_rseq - thread_pointer();
}

int lat_i_port_cpu(void)
{
    return (int)rseq_of_thread()->cpu_id; /* negative while not registered */
}

void lat_i_port_sequence_over(void)
{
    rseq_of_thread()->sequence = 0;
}
#else
void lat_i_port_sequence_over(void)
{
}
static void use_no_rseq(void)
{
}
int lat_i_port_cpu(void)
{
    return -1;
}
int lat_i_rseq_stores(struct lat_ring *ring, uint32_t cpu, uint64_t expect,
                      const struct lat_i_store *stores, uint64_t count, uint64_t *target,
                      uint64_t value)
{
    (void)ring, (void)cpu, (void)expect, (void)stores, (void)count, (void)target, (void)value;
    return 0; /* never called: this machine's rings belong to threads */
}
int lat_i_rseq_record(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *place,
                      uint64_t id, const struct lat_i_piece *pieces, uint64_t count,
                      uint64_t cursor)
{
    (void)ring, (void)cpu, (void)expect, (void)place, (void)id, (void)pieces, (void)count,
        (void)cursor;
    return 0;
}
#endif

int lat_i_rseq_works(void)
{
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
    /* glibc 2.35 and later registers every thread; 0 where the kernel refused. */
    if (&__rseq_size == NULL || &__rseq_offset == NULL || __rseq_size == 0)
        return 0;
    lat_i_state.rseq_offset = __rseq_offset;
    if (lat_i_port_cpu() >= 0)
        return 1;
    use_no_rseq();
    return 0;
#else
    return 0;
#endif
}

static struct lat_area_process *processes(void)
{
    return (struct lat_area_process *)(void *)((char *)lat_i_area.header +
                                               LAT_AREA_PROCESSES_OFFSET);
}

/* Of a process or thread; async-signal-safe, but for errno. */
static int lives(uint32_t id)
{
    return syscall(SYS_kill, id, 0) == 0 || errno == EPERM;
}

int lat_i_port_thread_gone(uint32_t thread)
{
    const int saved_errno = errno;
    const int gone = !lives(thread);
    errno = saved_errno;
    return gone;
}

/* Async-signal-safe. A full table takes the slot of a process that is gone; its
 * PROCESS record is in the trace. */
void lat_i_register_process(uint32_t pid)
{
    struct lat_area_process *table = processes();
    for (uint32_t i = 0; i < 2 * LAT_AREA_PROCESS_COUNT; i++) {
        struct lat_area_process *slot = &table[i % LAT_AREA_PROCESS_COUNT];
        uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);
        const int second_round = i >= LAT_AREA_PROCESS_COUNT;
        if (state != LAT_SLOT_FREE &&
            !(second_round && state == LAT_SLOT_READY && !lives(slot->pid)))
            continue;
        if (!__atomic_compare_exchange_n(&slot->state, &state, LAT_SLOT_CLAIMED, 0,
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        lat_i_port_thread_name(slot->name);
        slot->pid = pid;
        slot->parent_pid = (uint32_t)syscall(SYS_getppid);
        slot->patch_table = (uint64_t)(uintptr_t)lat_i_patch_tables;
        __atomic_store_n(&slot->state, LAT_SLOT_READY, __ATOMIC_RELEASE); /* pair R2 */
        return;
    }
    __atomic_fetch_add(&lat_i_area.header->lost_schemas, 1, __ATOMIC_RELAXED);
}

int lat_i_port_thread_begin(void)
{
    const int saved_errno = errno;
    if (lat_i_area.kind == LAT_RING_PER_CPU && lat_i_port_cpu() < 0)
        return 0;
    const uint32_t pid = (uint32_t)syscall(SYS_getpid);
    if (__atomic_exchange_n(&registered_pid, pid, __ATOMIC_RELAXED) != pid)
        lat_i_register_process(pid);
    const int first = __atomic_exchange_n(&announced_pid, pid, __ATOMIC_RELAXED) != pid;
    lat_i_thread.pid = pid;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a handler that sees the id sees the pid */
    lat_i_thread.writer = (uint32_t)syscall(SYS_gettid);
    errno = saved_errno;
    return first ? LAT_I_FIRST_OF_PROCESS : LAT_I_THREAD_READY;
}

uint32_t lat_i_port_parent_pid(void)
{
    return (uint32_t)syscall(SYS_getppid); /* can not fail */
}

void lat_i_port_thread_claimed(void)
{
    /* The key was made at start, so it is one of those that live in the thread
     * block itself: setting it allocates nothing. */
    if (thread_end_key_made)
        pthread_setspecific(thread_end_key, &lat_i_thread);
}

void lat_i_port_thread_name(char name[16])
{
    const int saved_errno = errno;
    if (syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0) != 0)
        name[0] = 0;
    name[15] = 0;
    errno = saved_errno;
}

/* The first thread is called like its process. Where another is the first to write, the table has the
 * name of the one that registered the process, which is the first as a rule: the tracer is loaded with
 * the program, and a fork leaves one thread. */
void lat_i_port_process_name(char name[16])
{
    lat_i_port_thread_name(name);
    if (lat_i_thread.writer == lat_i_thread.pid)
        return;
    const struct lat_area_process *table = processes();
    for (uint32_t i = 0; i < LAT_AREA_PROCESS_COUNT; i++) {
        if (__atomic_load_n(&table[i].state, __ATOMIC_ACQUIRE) != LAT_SLOT_READY || /* pair R2 */
            table[i].pid != lat_i_thread.pid)
            continue;
        for (uint32_t at = 0; at < 15; at++)
            name[at] = table[i].name[at];
        return;
    }
}

static void thread_ended(void *unused)
{
    (void)unused;
    lat_i_thread_end();
}

/* ---- forks, start and end ---------------------------------------------- */

/* Around fork nobody is half-way through a registration. */
static void before_fork(void)
{
    lat_i_register_lock();
}
static void forked_parent(void)
{
    lat_i_register_unlock();
}
static void forked_child(void)
{
    const int saved_errno = errno;
    lat_i_register_unlock();
    lat_i_thread_forked();
    /* A daemon's parent ends now and must see that somebody is left. */
    if (lat_i_area.header != NULL) {
        registered_pid = (uint32_t)getpid();
        lat_i_register_process(registered_pid);
    }
    errno = saved_errno;
}

/* Into the area that programs share. If a launcher wants records, the first makes it, and who
 * can not join makes one of its own: none stays out of the recording. */
static void join_or_make(const char *path)
{
    struct lat_i_request request = {0};
    const int requested = lat_i_request_of_launcher(&request);
    lat_i_area_join(path);
    if (lat_i_area.header == NULL && requested)
        lat_i_area_make(path);
    if (lat_i_area.header == NULL && requested)
        lat_i_area_join(path); /* another program was quicker */
    if (lat_i_area.header == NULL && requested)
        lat_i_area_make(NULL);
}

void lat_i_port_start(void)
{
    static int started;
    const int saved_errno = errno;
    const char *shared = getenv("LATERALIS_AREA");
    if (started)
        return;
    started = 1;
    use_no_rseq();
    if (getauxval(AT_SECURE) == 0 && getenv("LATERALIS_DISABLE") == NULL) {
        thread_end_key_made = pthread_key_create(&thread_end_key, thread_ended) == 0;
        pthread_atfork(before_fork, forked_parent, forked_child);
        if (shared != NULL && shared[0] != 0)
            join_or_make(shared);
        else
            lat_i_area_make(NULL);
        if (lat_i_area.header != NULL)
            registered_pid = (uint32_t)getpid();
    }
    errno = saved_errno;
}

/* Whether another process still writes here. One that has called exec since has not got the
 * area any more, and neither has one that has ended and is waited for. */
static int process_uses_area(uint32_t pid)
{
    return lives(pid) && lat_i_maps_each(pid, lat_i_area_in_line, NULL) != 0;
}

/* A normal end. If nobody is left in this area and nobody records, it goes; a
 * flight recorder's contents stay. */
static __attribute__((destructor(101))) void process_ends(void)
{
    struct lat_area_header *header = lat_i_area.header;
    const int saved_errno = errno;
    const uint32_t pid = (uint32_t)getpid();
    int others = 0;
    struct lat_area_process *table = header != NULL ? processes() : NULL;
    for (uint32_t i = 0; header != NULL && i < LAT_AREA_PROCESS_COUNT; i++) {
        if (__atomic_load_n(&table[i].state, __ATOMIC_ACQUIRE) != LAT_SLOT_READY)
            continue;
        if (table[i].pid == pid)
            __atomic_store_n(&table[i].state, LAT_SLOT_FREE, __ATOMIC_RELEASE);
        else
            others |= process_uses_area(table[i].pid);
    }
    if (header != NULL && !others) {
        /* A shared one waits for the next program as long as its recorder wants it. */
        if (!lat_i_area_shared || header->session == 0)
            __atomic_store_n(&header->state, LAT_AREA_EXITED, __ATOMIC_RELEASE); /* pair R2 */
        if (header->session == 0 && header->recorder_pid == 0 &&
            !(header->rings_ready != 0 && header->ring_mode == LAT_MODE_OVERWRITE))
            unlink(lat_i_area_path);
    }
    /* This may be the end of a plug-in that holds the tracer, and threads go on. */
    if (thread_end_key_made)
        pthread_key_delete(thread_end_key);
    thread_end_key_made = 0;
    errno = saved_errno;
}
